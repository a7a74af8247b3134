//! The course of a run: readiness, warm-up, the measured phase. The I/O threads do the work.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use gate_model::{EndReason, GateSpec, Health, Nanos, Outcome, Pace, Plan, PlannedRequest, Prompts, Sample};
use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinSet, spawn_local};

use crate::client::{Client, Cut, Terms};
use crate::clock::{Clocks, Zero, later};
use crate::health::Watch;
use crate::ready::until_ready;
use crate::record::Measurement;
use crate::requests::{Counted, Switch, Writer};
use crate::words::clean;
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
    pub(crate) writer: &'a Writer,
    pub(crate) common: Common,
    pub(crate) workers: Vec<Worker>,
    /// Tells what warm-up counted, so that measured requests are written.
    pub(crate) warmed_up: oneshot::Sender<Counted>,
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
    let Orders { spec, plan, prompts, writer, common, workers, warmed_up, stop } = orders;
    let Common { terms, notes, .. } = &common;
    spawn_local(interrupt(Arc::clone(terms), stop, notes.clone()));
    let unsent = |reason| {
        let health = Health { clock: terms.clock, ..Health::default() };
        Finish { reason, sent: 0, at: Nanos::ZERO, epoch_unix: None, health }
    };

    let waiting = async |elapsed, last: &str| {
        let _ = notes.send(Note::Waiting { elapsed, last: clean(last, &terms.redactor) }).await;
    };
    let asking = Client::new(Arc::clone(terms));
    match terms.unless_cut(until_ready(&spec.target.ready, writer, &asking, waiting)).await {
        Ok(Ok(Ok(()))) => {}
        Ok(Ok(Err(words))) => return Ok(unsent(EndReason::NotReady(clean(&words, &terms.redactor)))),
        Ok(Err(error)) => return Err(error),
        Err(_) => return Ok(unsent(EndReason::Interrupted)),
    }
    let _ = notes.send(Note::Ready).await;

    let mut limits = JoinSet::new();
    if let Some(limit) = spec.timeouts.run {
        // A limit the spec names is for the whole run, warm-up included; the default one is for the schedule.
        limits.spawn_local(time_limit(Arc::clone(terms), Zero(Instant::now()), limit));
    }
    match warm_up(plan, prompts, writer, &workers, &common).await? {
        // Nobody listens where the prompts thread has ended, and the first request to come says so.
        WarmUp::Done(counted) => drop(warmed_up.send(counted)),
        WarmUp::Refused(words) => return Ok(unsent(EndReason::Refused(words))),
        WarmUp::Cut => return Ok(unsent(cut_reason(terms))),
    }
    measured(spec, plan, workers, &common).await
}

/// Why a run ended that nothing else ended.
fn cut_reason(terms: &Terms) -> EndReason {
    match terms.cut_by() {
        Some(Cut::Interrupted | Cut::Failed) => EndReason::Interrupted,
        Some(Cut::RunTimeout) => EndReason::RunTimeout,
        Some(Cut::Exhausted(what)) => EndReason::ClientExhausted(format!("this machine has no more {what}")),
        None => EndReason::Completed,
    }
}

enum WarmUp {
    Done(Counted),
    Refused(String),
    Cut,
}

/// Sends the warm-up requests one after another, each on a new connection that then joins the pool of one of the I/O
/// threads, in turn; over HTTP/2 the first opens the one that all share. Nothing is measured meanwhile, so they are
/// written here, each when it is due.
async fn warm_up(
    plan: &Plan,
    prompts: &dyn Prompts,
    writer: &Writer,
    workers: &[Worker],
    common: &Common,
) -> Result<WarmUp, LoadError> {
    let zero = Zero(Instant::now());
    let mut counted = Counted::new();
    let mut refusal = None;
    let mut refused = 0;
    for (planned, worker) in plan.warmup.iter().zip(workers.iter().cycle()) {
        let sample = warm_up_once(planned, prompts, writer, worker, zero).await?;
        let outcome = sample.outcome;
        if is_refusal(&sample) {
            refused += 1;
            refusal = refusal.or_else(|| sample.error.clone());
        }
        let input = sample.usage.and_then(|usage| usage.input).filter(|_| outcome == Outcome::Ok);
        counted.extend(input.map(|input| (sample.planned_input, input)));
        let _ = common.notes.send(Note::Warmup(Box::new(sample))).await;
        if common.terms.cut_by().is_some() {
            return Ok(WarmUp::Cut);
        }
    }
    Ok(match refusal {
        Some(words) if refused == plan.warmup.len() => {
            WarmUp::Refused(format!("all {refused} warm-up requests failed, the first with: {words}"))
        }
        _ => WarmUp::Done(counted),
    })
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
    let Common { terms, notes, counts, .. } = common;
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
        beside.spawn_local(time_limit(Arc::clone(terms), zero, spec.run_limit(plan.duration())));
    }
    beside.spawn_local(tick(notes.clone(), zero, Arc::clone(counts)));
    let _ = notes.send(Note::Started).await;

    let mut shifts = Vec::new();
    for ends in done {
        let shift = ends.await.unwrap_or(Err(LoadError::Internal));
        if shift.is_err() {
            terms.cut(Cut::Failed);
        }
        shifts.push(shift);
    }
    let shifts = shifts.into_iter().collect::<Result<Vec<_>, _>>()?;
    let at = shifts.iter().map(|shift| shift.last_end).max().unwrap_or_default();
    let health = watch.health(terms.clock, &shifts);
    let (reason, sent) = (cut_reason(terms), counts.sent.load(Ordering::Relaxed));
    Ok(Finish { reason, sent, at, epoch_unix, health })
}

/// Cuts the run when it is stopped from outside, or when nobody takes what it tells.
async fn interrupt(terms: Arc<Terms>, stop: Stop, notes: mpsc::Sender<Note>) {
    tokio::select! {
        () = stop.triggered() => {}
        () = notes.closed() => {}
    }
    terms.cut(Cut::Interrupted);
}

/// Cuts the run when its own time limit has passed, counted from the epoch.
async fn time_limit(terms: Arc<Terms>, zero: Zero, limit: Nanos) -> std::io::Result<()> {
    tokio::time::sleep(later(zero.0, limit).saturating_duration_since(Instant::now())).await;
    terms.cut(Cut::RunTimeout);
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
