//! What every request of a run shares.

use std::sync::Arc;
use std::time::Instant;

use gate_model::{Delivery, GateSpec, Nanos, Outcome, Redactor, Timeouts};
use gate_wire::Dialect;
use tokio::sync::watch;
use tokio::time::timeout_at;

use crate::connection::{Connection, Pool};
use crate::record::Ending;
use crate::stamped::Stamps;
use crate::target::{ConnectError, Target};
use crate::words::Loss;

/// What ends open requests before their time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// The run was interrupted.
    Interrupted,
    /// The run's own limit passed.
    RunTimeout,
    /// This machine has no more of what a connection needs.
    Exhausted(&'static str),
}

impl Cut {
    fn ending(self) -> Ending {
        match self {
            Self::Interrupted => Ending::new(Outcome::Cancelled, "the run was interrupted"),
            Self::Exhausted(what) => Ending::new(Outcome::Cancelled, format!("this machine has no more {what}")),
            Self::RunTimeout => Ending::new(Outcome::TimeoutTotal, "the run's own time limit (`timeouts.run`) passed"),
        }
    }
}

/// The shared part of every request: where it goes, how long it may take, what cuts it short.
pub(crate) struct Client {
    pub(crate) target: Target,
    pub(crate) pool: Pool,
    pub(crate) dialect: &'static dyn Dialect,
    pub(crate) delivery: Delivery,
    pub(crate) timeouts: Timeouts,
    pub(crate) redactor: Redactor,
    cut: watch::Sender<Option<Cut>>,
}

impl Client {
    pub(crate) fn new(target: Target, dialect: &'static dyn Dialect, spec: &GateSpec, redactor: Redactor) -> Self {
        let cut = watch::Sender::new(None);
        let delivery = spec.target.delivery;
        let timeouts = timeouts(spec.timeouts, delivery);
        Self { target, pool: Pool::default(), dialect, delivery, timeouts, redactor, cut }
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

    /// A new connection to the target, if it stands before a deadline.
    pub(crate) async fn connect(&self, deadline: Instant) -> Result<Connection, ConnectError> {
        let stamps = Arc::new(Stamps::default());
        let transport = self.target.connect(deadline, &stamps).await?;
        Connection::new(transport, stamps).await.map_err(|error| ConnectError::Failed(error.to_string()))
    }
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
        Loss::Closed => Ending::new(Outcome::Truncated, "the server closed the connection without an answer"),
        Loss::Garbled(words) => Ending::new(
            Outcome::Decode,
            format!("the answer is not HTTP/1.1 ({words}): is `target.url` an HTTP server?"),
        ),
        Loss::Encrypted => Ending::new(Outcome::Decode, ENCRYPTED),
        Loss::Tls(words) => Ending::new(Outcome::Tls, words),
    }
}
