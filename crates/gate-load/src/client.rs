//! What the requests of a run share.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use gate_model::{Connections, Delivery, GateSpec, Nanos, Outcome, Redactor, Stamping, Timeouts};
use gate_wire::{Dialect, Keep};
use http::HeaderName;
use tokio::sync::watch;
use tokio::time::timeout_at;

use crate::connection::{Connection, Pool};
use crate::receive::Receiver;
use crate::record::Ending;
use crate::stamped::Stamps;
use crate::target::{ConnectError, Phases, Target};
use crate::words::{Loss, other_version};

/// What ends open requests before their time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// The run was interrupted.
    Interrupted,
    /// The run's own limit passed.
    RunTimeout,
    /// This machine has no more of what a connection needs.
    Exhausted(&'static str),
    /// A thread of the run failed.
    Failed,
}

impl Cut {
    pub(crate) fn ending(self) -> Ending {
        match self {
            Self::Interrupted => Ending::new(Outcome::Cancelled, "the run was interrupted"),
            Self::Exhausted(what) => Ending::new(Outcome::Cancelled, format!("this machine has no more {what}")),
            Self::RunTimeout => Ending::new(Outcome::TimeoutTotal, "the run's own time limit (`timeouts.run`) passed"),
            Self::Failed => Ending::new(Outcome::Cancelled, "a thread of the run failed"),
        }
    }
}

/// Where requests go, how long they may take, what is kept of them, and what cuts them short.
pub(crate) struct Terms {
    pub(crate) target: Target,
    pub(crate) dialect: Arc<dyn Dialect>,
    pub(crate) delivery: Delivery,
    pub(crate) timeouts: Timeouts,
    pub(crate) redactor: Redactor,
    pub(crate) connections: Connections,
    /// The header of answers that names the replica.
    pub(crate) replica: Option<HeaderName>,
    /// Where the texts of answers are kept; absent where nobody counts them.
    pub(crate) texts: Option<Texts>,
    /// Which clock stamps what is received.
    pub(crate) clock: Stamping,
    cut: watch::Sender<Option<Cut>>,
}

impl Terms {
    pub(crate) fn new(
        target: Target,
        dialect: Arc<dyn Dialect>,
        spec: &GateSpec,
        redactor: Redactor,
        clock: Stamping,
        texts: Option<Texts>,
    ) -> Self {
        let delivery = delivery(spec);
        Self {
            target,
            dialect,
            delivery,
            timeouts: timeouts(spec.timeouts, delivery),
            redactor,
            connections: spec.load.connections,
            replica: spec.target.replica_header.as_ref().and_then(|name| name.parse().ok()),
            texts,
            clock,
            cut: watch::Sender::new(None),
        }
    }

    /// Ends every open request; the first reason stands.
    pub(crate) fn cut(&self, cut: Cut) {
        self.cut.send_if_modified(|current| {
            let first = current.is_none();
            current.get_or_insert(cut);
            first
        });
    }

    /// What has cut the run.
    pub(crate) fn cut_by(&self) -> Option<Cut> {
        *self.cut.borrow()
    }

    /// Waits until the run is cut.
    pub(crate) async fn until_cut(&self) -> Cut {
        let mut cuts = self.cut.subscribe();
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

    /// Does a request's `work` until its deadline, unless the run is cut first.
    pub(crate) async fn within(&self, deadline: Instant, work: impl Future<Output = Ending>) -> Ending {
        match self.unless_cut(timeout_at(deadline.into(), work)).await {
            Ok(Ok(ending)) => ending,
            Ok(Err(_)) => Ending::new(Outcome::TimeoutTotal, format!("not complete within {}", self.timeouts.total)),
            Err(cut) => cut.ending(),
        }
    }

    /// What a decoder keeps of an answer.
    pub(crate) fn keep(&self) -> Keep {
        match &self.texts {
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

/// What the requests of one I/O thread share.
pub(crate) struct Client {
    pub(crate) terms: Arc<Terms>,
    pub(crate) pool: Pool,
    pub(crate) receiver: Arc<Receiver>,
}

impl Client {
    pub(crate) fn new(terms: Arc<Terms>) -> Self {
        let receiver = Receiver::new(terms.clock);
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

/// How answers come: what generates nothing has nothing to stream.
pub(crate) fn delivery(spec: &GateSpec) -> Delivery {
    if spec.target.api.generates() { spec.target.delivery } else { Delivery::Whole }
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
