//! What the requests of a run share.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use gate_model::{Arm, Connections, Delivery, GateSpec, Load, Nanos, Outcome, Redactor, RunHeader, Timeouts};
use gate_wire::{Keep, StreamState};
use http::HeaderName;
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout_at;

use crate::LoadError;
use crate::abort::Aborts;
use crate::connection::{Connection, Pool};
use crate::receive::Receiver;
use crate::record::Ending;
use crate::requests::Writer;
use crate::stamped::Stamps;
use crate::target::{ConnectError, Phases, Target};
use crate::words::{Loss, clean, key_of, other_version};

/// What ends open requests before their time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// The run was interrupted.
    Interrupted,
    /// The run's own limit passed.
    RunTimeout,
    /// This machine has no more of what a connection needs.
    Exhausted(&'static str),
    /// What open answers have come to passes this key of the budget.
    Spent(&'static str),
    /// A thread of the run failed.
    Failed,
}

impl Cut {
    pub(crate) fn ending(self) -> Ending {
        match self {
            Self::Interrupted => Ending::new(Outcome::Cancelled, "the run was interrupted"),
            Self::Exhausted(what) => Ending::new(Outcome::Cancelled, format!("this machine has no more {what}")),
            Self::Spent(key) => Ending::new(
                Outcome::Cancelled,
                format!("cut off: with what open answers have come to, `{key}` is spent"),
            ),
            Self::RunTimeout => Ending::new(Outcome::TimeoutTotal, "the run's own time limit (`timeouts.run`) passed"),
            Self::Failed => Ending::new(Outcome::Cancelled, "a thread of the run failed"),
        }
    }
}

/// Cuts a run short; its clones are the same.
#[derive(Clone, Default)]
pub(crate) struct Cuts(watch::Sender<Option<Cut>>);

impl Cuts {
    /// Ends every open request; the first reason stands.
    pub(crate) fn cut(&self, cut: Cut) {
        self.0.send_if_modified(|current| {
            let first = current.is_none();
            current.get_or_insert(cut);
            first
        });
    }

    /// What has cut the run.
    pub(crate) fn by(&self) -> Option<Cut> {
        *self.0.borrow()
    }

    /// Waits until the run is cut.
    pub(crate) async fn until_cut(&self) -> Cut {
        let mut cuts = self.0.subscribe();
        match cuts.wait_for(Option::is_some).await.map(|cut| *cut) {
            Ok(Some(cut)) => cut,
            // The sender lives as long as `self`, and the wait is for `Some`.
            Ok(None) | Err(_) => std::future::pending().await,
        }
    }

    /// Does `work` unless the run is cut first.
    pub(crate) async fn unless_cut<T>(&self, work: impl Future<Output = T>) -> Result<T, Cut> {
        tokio::select! {
            biased;
            cut = self.until_cut() => Err(cut),
            done = work => Ok(done),
        }
    }
}

/// Where an arm's requests go, what they are like, how many may be open and for how long, what is kept of them, and
/// what cuts them short.
pub(crate) struct Terms {
    pub(crate) arm: Arm,
    pub(crate) target: Target,
    pub(crate) writer: Writer,
    pub(crate) delivery: Delivery,
    pub(crate) timeouts: Timeouts,
    pub(crate) redactor: Redactor,
    pub(crate) connections: Connections,
    /// One for each request that may be open; absent where nothing limits them.
    pub(crate) slots: Option<Arc<Semaphore>>,
    /// The header of answers that names the replica.
    pub(crate) replica: Option<HeaderName>,
    /// Where the texts of answers are kept; absent where nobody counts them.
    pub(crate) texts: Option<Arc<Texts>>,
    /// Whether samples have the texts of answers.
    pub(crate) keep_text: bool,
    /// Before which index requests have the times of their tokens kept.
    pub(crate) with_times: u32,
    pub(crate) cuts: Cuts,
    pub(crate) aborts: Aborts,
    /// Whether it was told that usage cannot be read.
    told: OnceLock<()>,
}

/// What both arms have in common.
#[derive(Clone)]
pub(crate) struct Shared {
    pub(crate) redactor: Redactor,
    pub(crate) texts: Option<Arc<Texts>>,
    pub(crate) cuts: Cuts,
    pub(crate) aborts: Aborts,
}

impl Terms {
    /// The terms of an arm whose target and writer are these, in the section of a header.
    pub(crate) fn new(
        header: &RunHeader,
        arm: Arm,
        (target, writer): (Target, Writer),
        shared: Shared,
    ) -> Result<Self, LoadError> {
        let spec = &header.spec;
        let load = load_of(spec, header.section);
        let asked = spec.of_arm(arm).ok_or(LoadError::NoReference)?;
        let delivery = delivery(asked);
        let Shared { redactor, texts, cuts, aborts } = shared;
        let slots = load.pace.cap().and_then(|cap| usize::try_from(cap).ok());
        Ok(Self {
            arm,
            target,
            writer,
            delivery,
            timeouts: timeouts(spec.timeouts, delivery),
            redactor,
            connections: load.connections,
            slots: slots.map(|cap| Arc::new(Semaphore::new(cap))),
            replica: asked.replica_header.as_ref().and_then(|name| name.parse().ok()),
            texts,
            keep_text: spec.journal.keep_text,
            with_times: header.first.saturating_add(spec.journal.tokens),
            cuts,
            aborts,
            told: OnceLock::new(),
        })
    }

    /// What went wrong, as a person reads it: outside text is clean, and the keys to look at are the arm's.
    pub(crate) fn words(&self, text: &str) -> String {
        clean(&key_of(self.arm, text), &self.redactor)
    }

    /// The same, of what ends the run or keeps it waiting: it begins with the arm, where that is the reference.
    pub(crate) fn words_of_arm(&self, text: &str) -> String {
        match self.arm {
            Arm::Target => self.words(text),
            Arm::Reference => self.words(&format!("the reference: {text}")),
        }
    }

    /// Does a request's `work` until its deadline, unless the run is cut first.
    pub(crate) async fn within(&self, deadline: Instant, work: impl Future<Output = Ending>) -> Ending {
        match self.cuts.unless_cut(timeout_at(deadline.into(), work)).await {
            Ok(Ok(ending)) => ending,
            Ok(Err(_)) => Ending::new(Outcome::TimeoutTotal, format!("not complete within {}", self.timeouts.total)),
            Err(cut) => cut.ending(),
        }
    }

    /// Tells once what is wrong with an answer's usage: a check on tokens can only say that there is none.
    pub(crate) fn unread_usage(&self, state: &StreamState) {
        if let Some(problem) = state.unread_usage().filter(|_| self.told.set(()).is_ok()) {
            tracing::warn!(arm = ?self.arm, problem, "an answer's usage cannot be read");
        }
    }

    /// What a decoder keeps of an answer.
    pub(crate) fn keep(&self) -> Keep {
        match &self.texts {
            _ if self.keep_text => Keep::Text,
            Some(texts) if texts.left.load(Ordering::Relaxed) > 0 => Keep::Text,
            _ => Keep::Nothing,
        }
    }
}

/// Room for the texts that are counted after the load.
pub(crate) struct Texts {
    left: AtomicUsize,
}

impl Texts {
    /// Room for so many bytes.
    pub(crate) fn new(bytes: usize) -> Self {
        Self { left: AtomicUsize::new(bytes) }
    }

    /// Keeps a text where there is room left for it.
    pub(crate) fn keep(&self, text: String) -> Option<String> {
        let taken = |left: usize| left.checked_sub(text.len());
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, taken).ok().map(|_| text)
    }
}

/// What one arm's requests of one I/O thread share.
pub(crate) struct Client {
    pub(crate) terms: Arc<Terms>,
    pub(crate) pool: Pool,
    pub(crate) receiver: Arc<Receiver>,
}

impl Client {
    pub(crate) fn new(terms: Arc<Terms>, receiver: Arc<Receiver>) -> Self {
        Self { terms, pool: Pool::default(), receiver }
    }

    /// A new connection to the target, if it stands before a deadline, and how long its phases took.
    pub(crate) async fn connect(&self, deadline: Instant) -> Result<(Connection, Phases), ConnectError> {
        let stamps = Stamps::new(&self.receiver);
        let connected = self.terms.target.connect(deadline, &stamps).await?;
        let phases = connected.phases;
        match Connection::new(connected, stamps).await {
            Ok(connection) => Ok((connection, phases)),
            Err(error) => Err(ConnectError::Failed(error.to_string())),
        }
    }

    /// A new connection stands: others may share it, where it can be shared.
    pub(crate) fn opened(&self, connection: &Connection) {
        if self.terms.connections == Connections::Pooled {
            self.pool.opened(connection);
        }
    }

    /// Keeps a connection whose exchange is complete for a later request.
    pub(crate) async fn release(&self, connection: Connection) {
        if self.terms.connections == Connections::Pooled {
            self.pool.put(connection).await;
        }
    }
}

/// The load of a section, which all its scenarios share.
pub(crate) fn load_of(spec: &GateSpec, section: u16) -> &Load {
    let sections = spec.sections();
    let own = sections.get(usize::from(section)).and_then(|own| own.first());
    spec.load_of(own.copied().unwrap_or_default())
}

/// How answers come: what generates nothing has nothing to stream.
pub(crate) fn delivery(target: &gate_model::Target) -> Delivery {
    if target.api.generates() { target.delivery } else { Delivery::Whole }
}

/// One whole body shows neither its first token nor its pauses: only `connect`, `total` and `run` apply to it.
fn timeouts(timeouts: Timeouts, delivery: Delivery) -> Timeouts {
    const NEVER: Nanos = Nanos(i64::MAX);
    match delivery {
        Delivery::Streamed => timeouts,
        Delivery::Whole => Timeouts { first_token: NEVER, stall: NEVER, ..timeouts },
    }
}

/// What it means that a server answers plain HTTP with a TLS alert.
pub(crate) const ENCRYPTED: &str = "the server speaks TLS, not plain HTTP: write `https://` in `target.url`";

/// How an exchange ended whose connection was lost before the response's head came.
pub(crate) fn unanswered(loss: Loss) -> Ending {
    match loss {
        Loss::Reset => Ending::new(Outcome::Reset, "the server reset the connection before it answered"),
        Loss::Ended(words) => Ending::new(Outcome::Reset, format!("{words} before it answered")),
        Loss::Closed => Ending::new(Outcome::Truncated, "the server closed the connection without an answer"),
        Loss::Garbled(words) => {
            Ending::new(Outcome::Decode, format!("the answer is {words}: is `target.url` an HTTP server?"))
        }
        Loss::Encrypted => Ending::new(Outcome::Decode, ENCRYPTED),
        Loss::OtherVersion(spoken) => Ending::new(Outcome::Decode, other_version(spoken)),
        Loss::Tls(words) => Ending::new(Outcome::Tls, words),
    }
}
