//! The course of a run: readiness, warm-up, the measured phase. The I/O threads do the work.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use gate_model::{Arm, EndReason, GateSpec, Health, Nanos, Outcome, Pace, Plan, PlannedRequest, Prompts, Sample};
use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinSet, spawn_local};

use crate::client::{Client, Cut, Cuts, Terms};
use crate::clock::{Clocks, Zero, later};
use crate::health::Watch;
use crate::ready::until_ready;
use crate::receive::Receiver;
use crate::record::Measurement;
use crate::requests::{Switch, Writer, dealt};
use crate::worker::{Common, Counts, Worker};
use crate::{LoadError, Stop};

/// Between the end of warm-up and the epoch.
const LEAD: Duration = Duration::from_millis(20);
/// Between two ticks.
const TICK: Duration = Duration::from_millis(500);

/// What the run's threads tell the caller's thread.
pub(crate) enum Note {
    Waiting {
        elapsed: Nanos,
        last: String,
    },
    Ready,
    Warmup(Box<Sample>),
    Started,
    Tick {
        elapsed: Nanos,
        sent: u32,
        in_flight: u32,
    },
    /// A measured request, and the text of its answer where that is to be counted.
    Ended(Box<Sample>, Option<String>),
}

/// How the run ended.
#[derive(Debug)]
pub(crate) struct Finish {
    pub(crate) reason: EndReason,
    /// Measured requests sent.
    pub(crate) sent: u32,
    /// When the last of them ended.
    pub(crate) at: Nanos,
    /// The epoch by the wall clock; absent where nothing was measured.
    pub(crate) epoch_unix: Option<Nanos>,
    pub(crate) health: Health,
}

/// What the conductor needs.
pub(crate) struct Orders<'a> {
    pub(crate) spec: &'a GateSpec,
    pub(crate) plan: &'a Plan,
    pub(crate) prompts: &'a dyn Prompts,
    pub(crate) common: Common,
    pub(crate) workers: Vec<Worker>,
    /// Has measured requests written.
    pub(crate) warmed_up: Vec<oneshot::Sender<()>>,
    /// Ends everything.
    pub(crate) stop: Stop,
}

/// Conducts the load from this thread.
pub(crate) fn conduct(orders: Orders<'_>) -> Result<Finish, LoadError> {
    let options = LocalOptions::default();
    let runtime = Builder::new_current_thread().enable_all().build_local(options).map_err(LoadError::Runtime)?;
    let finish = runtime.block_on(phases(orders));
    // A name may still be looked up; nobody waits for it.
    runtime.shutdown_background();
    finish
}

async fn phases(orders: Orders<'_>) -> Result<Finish, LoadError> {
    let Orders { spec, plan, prompts, common, workers, warmed_up, stop } = orders;
    let Common { cuts, notes, .. } = &common;
    spawn_local(interrupt(cuts.clone(), stop, notes.clone()));
    let unsent = |reason| {
        let health = Health { clock: common.clock, ..Health::default() };
        Finish { reason, sent: 0, at: Nanos::ZERO, epoch_unix: None, health }
    };

    match cuts.unless_cut(all_ready(spec, &common)).await {
        Ok(Ok(())) => {}
        Ok(Err(NotReady::Never(words))) => return Ok(unsent(EndReason::NotReady(words))),
        Ok(Err(NotReady::Failed(error))) => return Err(error),
        Err(_) => return Ok(unsent(EndReason::Interrupted)),
    }
    let _ = notes.send(Note::Ready).await;

    let mut limits = JoinSet::new();
    if let Some(limit) = spec.timeouts.run {
        // A limit the spec names is for the whole run, warm-up included; the default one is for the schedule.
        limits.spawn_local(time_limit(cuts.clone(), Zero(Instant::now()), limit));
    }
    match warm_up(plan, prompts, &workers, &common).await? {
        WarmUp::Done(counted) => {
            if !counted.is_empty() {
                prompts.fit(&counted);
            }
            for write in warmed_up {
                // Nobody listens where a prompts thread has ended, and the first request to come says so.
                let _ = write.send(());
            }
        }
        WarmUp::Refused(words) => return Ok(unsent(EndReason::Refused(words))),
        WarmUp::Cut => return Ok(unsent(cut_reason(cuts))),
    }
    measured(spec, plan, workers, &common).await
}

/// Waits until every arm is ready, asking both at the same time; the first that never will be ends the wait.
async fn all_ready(spec: &GateSpec, common: &Common) -> Result<(), NotReady> {
    let receiver = Receiver::new(common.clock);
    let ready = async |terms: &Arc<Terms>| {
        let waiting = async |elapsed, last: &str| {
            let _ = common.notes.send(Note::Waiting { elapsed, last: terms.words_of_arm(last) }).await;
        };
        let asked = spec.of_arm(terms.arm).ok_or(LoadError::NoReference)?;
        let client = Client::new(Arc::clone(terms), Arc::clone(&receiver));
        let ready = until_ready(&asked.ready, &client, waiting).await?;
        ready.map_err(|words| NotReady::Never(terms.words_of_arm(&words)))
    };
    let reference = async {
        match &common.arms.reference {
            Some(terms) => ready(terms).await,
            None => Ok(()),
        }
    };
    tokio::try_join!(ready(&common.arms.target), reference).map(drop)
}

/// Why an arm is not ready.
enum NotReady {
    /// In words.
    Never(String),
    /// There is no run.
    Failed(LoadError),
}

impl From<LoadError> for NotReady {
    fn from(error: LoadError) -> Self {
        Self::Failed(error)
    }
}

/// Why a run ended that nothing else ended.
fn cut_reason(cuts: &Cuts) -> EndReason {
    match cuts.by() {
        Some(Cut::Interrupted | Cut::Failed) => EndReason::Interrupted,
        Some(Cut::RunTimeout) => EndReason::RunTimeout,
        Some(Cut::Exhausted(what)) => EndReason::ClientExhausted(format!("this machine has no more {what}")),
        None => EndReason::Completed,
    }
}

/// For each of the target's warm-up requests that ended well, the input tokens planned and counted. The reference may
/// count in another way, and gets the same prompts.
type Counted = Vec<(u32, u64)>;

enum WarmUp {
    Done(Counted),
    Refused(String),
    Cut,
}

/// How an arm's warm-up requests fared.
#[derive(Default)]
struct Fared {
    sent: u32,
    refused: u32,
    /// The first refusal, in words.
    refusal: Option<String>,
}

/// Sends the warm-up requests one after another, each on a new connection that then joins the arm's pool of one of the
/// I/O threads, in turn; over HTTP/2 the first opens the one that all share. Nothing is measured meanwhile, so they are
/// written here, each when it is due.
async fn warm_up(plan: &Plan, prompts: &dyn Prompts, workers: &[Worker], common: &Common) -> Result<WarmUp, LoadError> {
    let zero = Zero(Instant::now());
    let mut counted = Counted::new();
    let mut fared = common.arms.clone().map(|terms| (terms, Fared::default()));
    for planned in &plan.warmup {
        let (terms, fared) = fared.get_mut(planned.arm)?;
        let sample = warm_up_once(planned, prompts, &terms.writer, dealt(planned, workers)?, zero).await?;
        fared.sent += 1;
        if is_refusal(&sample) {
            fared.refused += 1;
            fared.refusal = fared.refusal.take().or_else(|| sample.error.clone());
        }
        if sample.outcome == Outcome::Ok && planned.arm == Arm::Target {
            counted.extend(sample.usage.and_then(|usage| usage.input).map(|input| (planned.input_tokens, input)));
        }
        let _ = common.notes.send(Note::Warmup(Box::new(sample))).await;
        if common.cuts.by().is_some() {
            return Ok(WarmUp::Cut);
        }
    }
    for (_, (terms, Fared { sent, refused, refusal })) in fared.iter() {
        if let Some(words) = refusal.as_ref().filter(|_| refused == sent) {
            let words = format!("all {refused} warm-up requests failed, the first with: {words}");
            return Ok(WarmUp::Refused(terms.words_of_arm(&words)));
        }
    }
    Ok(WarmUp::Done(counted))
}

/// Sends one warm-up request. Where the server refuses it for the field that says how long the answer may be, it is
/// sent again with the other one, and so are all after it: the first try is no sample.
async fn warm_up_once(
    planned: &PlannedRequest,
    prompts: &dyn Prompts,
    writer: &Writer,
    worker: &Worker,
    zero: Zero,
) -> Result<Sample, LoadError> {
    loop {
        let prepared = writer.prepare(planned, &prompts.warmup(planned))?;
        let Measurement { sample, wanted, .. } = worker.warm_up(prepared, zero).await.ok_or(LoadError::Internal)?;
        if wanted.map(|field| writer.switch_to(field)) != Some(Switch::Done) {
            return Ok(sample);
        }
    }
}

/// Whether no later request can fare better.
fn is_refusal(sample: &Sample) -> bool {
    matches!(sample.outcome, Outcome::Connect | Outcome::Tls | Outcome::TimeoutConnect)
        || matches!(sample.status, Some(401 | 403 | 404 | 429))
}

/// The measured phase: all I/O threads start at the same epoch.
async fn measured(spec: &GateSpec, plan: &Plan, workers: Vec<Worker>, common: &Common) -> Result<Finish, LoadError> {
    let Common { cuts, notes, counts, .. } = common;
    let (mut starts, mut done) = (Vec::new(), Vec::new());
    for worker in workers {
        let (start, ends) = worker.ready().await;
        starts.extend(start);
        done.push(ends);
    }
    let zero = Zero(Instant::now() + LEAD);
    let watch = Watch::new();
    for start in starts {
        // A thread that failed says why in the end.
        let _ = start.send(zero);
    }
    let epoch_unix = Clocks::read().unix(zero.0);
    let mut beside = JoinSet::new();
    // A closed loop's end is not known ahead.
    if spec.timeouts.run.is_none() && matches!(spec.load.pace, Pace::Open { .. }) {
        beside.spawn_local(time_limit(cuts.clone(), zero, spec.run_limit(plan.duration())));
    }
    beside.spawn_local(tick(notes.clone(), zero, Arc::clone(counts)));
    let _ = notes.send(Note::Started).await;

    let mut shifts = Vec::new();
    for ends in done {
        let shift = ends.await.unwrap_or(Err(LoadError::Internal));
        if shift.is_err() {
            cuts.cut(Cut::Failed);
        }
        shifts.push(shift);
    }
    let shifts = shifts.into_iter().collect::<Result<Vec<_>, _>>()?;
    let at = shifts.iter().map(|shift| shift.last_end).max().unwrap_or_default();
    let health = watch.health(common.clock, &shifts);
    let (reason, sent) = (cut_reason(cuts), counts.sent.load(Ordering::Relaxed));
    Ok(Finish { reason, sent, at, epoch_unix, health })
}

/// Cuts the run when it is stopped from outside, or when nobody takes what it tells.
async fn interrupt(cuts: Cuts, stop: Stop, notes: mpsc::Sender<Note>) {
    tokio::select! {
        () = stop.triggered() => {}
        () = notes.closed() => {}
    }
    cuts.cut(Cut::Interrupted);
}

/// Cuts the run when its own time limit has passed, counted from the epoch.
async fn time_limit(cuts: Cuts, zero: Zero, limit: Nanos) -> std::io::Result<()> {
    tokio::time::sleep(later(zero.0, limit).saturating_duration_since(Instant::now())).await;
    cuts.cut(Cut::RunTimeout);
    Ok(())
}

/// Tells how far the run is; a tick that finds the channel full is left out.
async fn tick(notes: mpsc::Sender<Note>, zero: Zero, counts: Arc<Counts>) -> std::io::Result<()> {
    loop {
        tokio::time::sleep(TICK).await;
        let (sent, in_flight) = (counts.sent.load(Ordering::Relaxed), counts.open.load(Ordering::Relaxed));
        let _ = notes.try_send(Note::Tick { elapsed: zero.point(Instant::now()), sent, in_flight });
    }
}
