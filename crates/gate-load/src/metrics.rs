//! The target's own metrics, read beside the load.

use std::pin::pin;
use std::time::{Duration, Instant};

use gate_model::{Nanos, Plan, Scrape};
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinHandle, spawn_local};
use tokio::time::timeout;

use crate::Stop;
use crate::clock::Zero;
use crate::conductor::Note;
use crate::scrape::{Read, Scraper};

/// Between two readings.
const EVERY: Duration = Duration::from_secs(1);
/// Between two readings of a long run.
const EVERY_OF_LONG: Duration = Duration::from_secs(10);
/// A schedule that is longer makes a run long.
const LONG: Nanos = Nanos::from_secs(3_600);
/// How long the last reading is waited for: the run is over.
const LAST: Duration = Duration::from_secs(2);
/// Between two complaints.
const COMPLAIN: Duration = Duration::from_secs(60);

/// A reading, and when it was begun.
type Reading = (Instant, Result<Read, String>);

/// Readings that go on until [`Readings::end`].
pub(crate) struct Readings {
    epoch: watch::Sender<Option<Zero>>,
    over: Stop,
    task: JoinHandle<()>,
}

impl Readings {
    /// Reads once, then again and again beside the load of a plan.
    pub(crate) async fn start(scraper: Scraper, plan: &Plan, notes: mpsc::Sender<Note>) -> Self {
        let first = (Instant::now(), scraper.once().await);
        let every = if plan.duration() > LONG { EVERY_OF_LONG } else { EVERY };
        let (epoch, told) = watch::channel(None);
        let over = Stop::new();
        let task = spawn_local(go_on(scraper, every, first, told, over.clone(), notes));
        Self { epoch, over, task }
    }

    /// From now on it is known when the epoch is.
    pub(crate) fn epoch(&self, zero: Zero) {
        self.epoch.send_replace(Some(zero));
    }

    /// Reads a last time.
    pub(crate) async fn end(self) {
        self.over.trigger();
        // It never panics, and nobody else ends it.
        let _ = self.task.await;
    }
}

async fn go_on(
    scraper: Scraper,
    every: Duration,
    first: Reading,
    epoch: watch::Receiver<Option<Zero>>,
    over: Stop,
    notes: mpsc::Sender<Note>,
) {
    let (mut waiting, mut complained, mut is_last) = (vec![first], None, false);
    loop {
        complain(waiting.last(), &mut complained);
        let known = *epoch.borrow();
        if let Some(zero) = known {
            tell(&mut waiting, zero, &notes).await;
        }
        if is_last {
            break;
        }
        tokio::select! {
            () = over.triggered() => {}
            () = tokio::time::sleep(every) => {}
        }
        is_last = over.is_triggered();
        let begun = Instant::now();
        let mut reading = pin!(scraper.once());
        let read = tokio::select! {
            biased;
            read = &mut reading => read,
            // Nobody waits long for what is read when the run is over.
            () = over.triggered() => timeout(LAST, reading)
                .await
                .unwrap_or_else(|_| Err(format!("the last reading was not done within {}", Nanos::from(LAST)))),
        };
        waiting.push((begun, read));
    }
    // Without an epoch all was before it.
    tell(&mut waiting, Zero(Instant::now()), &notes).await;
}

/// Tells the readings that wait for the epoch.
async fn tell(waiting: &mut Vec<Reading>, zero: Zero, notes: &mpsc::Sender<Note>) {
    for (begun, read) in waiting.drain(..) {
        let (values, error) = match read {
            Ok(Read { values, problem }) => (values, problem),
            Err(words) => (Vec::new(), Some(words)),
        };
        let _ = notes.send(Note::Scrape(Scrape { at: zero.point(begun), values, error })).await;
    }
}

/// Says that a reading failed, at most once a minute.
fn complain(last: Option<&Reading>, complained: &mut Option<Instant>) {
    if let Some((at, Err(problem) | Ok(Read { problem: Some(problem), .. }))) = last
        && complained.is_none_or(|before| at.saturating_duration_since(before) >= COMPLAIN)
    {
        tracing::warn!(problem, "the target's metrics cannot be read");
        *complained = Some(*at);
    }
}
