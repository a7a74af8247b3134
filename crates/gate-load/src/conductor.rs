//! The course of a run: readiness, warm-up, the measured phase. The I/O threads do the work.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime};

use gate_model::{
    Arm, EndReason, Footprint, GateSpec, Health, Nanos, Outcome, Pace, Plan, PlannedRequest, Prompts, Sample, Scrape,
};
use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinSet, spawn_local};

use crate::client::{Client, Cut, Cuts, Terms};
use crate::clock::{Clocks, Zero, later};
use crate::health::Watch;
use crate::metrics::Readings;
use crate::ready::until_ready;
use crate::receive::Receiver;
use crate::record::Measurement;
use crate::requests::{Switch, Writer, dealt};
use crate::scrape::Scraper;
use crate::worker::{Common, Counts, Worker};
use crate::{LoadError, Stop};

/// Between the end of warm-up and the epoch.
const LEAD: Duration = Duration::from_millis(20);
/// A warm-up whose first requests are all refused is not gone on with after so many of an arm.
const REFUSED: u32 = 4;
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
    /// The target's own metrics were read.
    Scrape(Scrape),
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
    /// What it took of this machine, but for the journal; absent where nothing was measured.
    pub(crate) footprint: Option<Footprint>,
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
    /// When the epoch is, since the UNIX epoch; else as soon as warm-up has ended.
    pub(crate) start_at: Option<Nanos>,
    /// What reads the target's own metrics.
    pub(crate) scraper: Option<Scraper>,
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

async fn phases(mut orders: Orders<'_>) -> Result<Finish, LoadError> {
    let Common { cuts, notes, .. } = orders.common.clone();
    spawn_local(interrupt(cuts.clone(), orders.stop.clone(), notes.clone()));
    match cuts.unless_cut(all_ready(orders.spec, &orders.common)).await {
        Ok(Ok(())) => {}
        Ok(Err(NotReady::Never(words))) => return Ok(unsent(EndReason::NotReady(words), &orders.common)),
        Ok(Err(NotReady::Failed(error))) => return Err(error),
        Err(_) => return Ok(unsent(EndReason::Interrupted, &orders.common)),
    }
    let _ = notes.send(Note::Ready).await;

    let readings = match orders.scraper.take() {
        Some(scraper) => cuts.unless_cut(Readings::start(scraper, orders.plan, notes.clone())).await.ok(),
        None => None,
    };
    let finish = load(orders, readings.as_ref()).await;
    if let Some(readings) = readings {
        readings.end().await;
    }
    finish
}

/// How a run ended of which nothing was measured.
fn unsent(reason: EndReason, common: &Common) -> Finish {
    let health = Health { clock: common.clock, ..Health::default() };
    Finish { reason, sent: 0, at: Nanos::ZERO, epoch_unix: None, health, footprint: None }
}

/// Warm-up and the measured phase.
async fn load(orders: Orders<'_>, readings: Option<&Readings>) -> Result<Finish, LoadError> {
    let Orders { spec, plan, prompts, common, workers, warmed_up, start_at, .. } = orders;
    let Common { cuts, .. } = &common;
    let mut limits = JoinSet::new();
    if let Some(limit) = spec.timeouts.run {
        // A limit the spec names is for the whole run, warm-up included; the default one is for the schedule. A wait
        // for others to start is no part of it.
        let from = start_at.map_or_else(Instant::now, |at| Clocks::read().instant_of(at));
        limits.spawn_local(time_limit(cuts.clone(), Zero(from), limit));
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
        WarmUp::Ended(reason) => return Ok(unsent(reason, &common)),
    }
    measured(spec, plan, workers, &common, start_at, readings).await
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

/// Why a run ended whose referee did not end it.
fn end_reason(common: &Common) -> EndReason {
    if let Some(reason) = common.aborts.reason() {
        return reason.clone();
    }
    match common.cuts.by() {
        // A budget that cuts has given the run up before, unless something else had ended it.
        Some(Cut::Interrupted | Cut::Failed | Cut::Spent(_)) => EndReason::Interrupted,
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
    /// It ends the run.
    Ended(EndReason),
}

/// How an arm's warm-up requests fared.
#[derive(Default)]
struct Fared {
    sent: u32,
    refused: u32,
    /// Of them for want of credentials.
    unauthorised: u32,
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
        if fared.sent == REFUSED && fared.refused == REFUSED {
            break;
        }
        let warmed_up = warm_up_once(planned, prompts, &terms.writer, dealt(planned, workers)?, zero, common).await?;
        let Some(Measurement { sample, quota, .. }) = warmed_up else { break };
        if let Some(words) = quota {
            common.aborts.give_up(EndReason::Quota(terms.words_of_arm(&words)));
        }
        fared.sent += 1;
        if is_refusal(&sample) {
            fared.refused += 1;
            fared.unauthorised += u32::from(matches!(sample.status, Some(401 | 403)));
            fared.refusal = fared.refusal.take().or_else(|| sample.error.clone());
        }
        if sample.outcome == Outcome::Ok && planned.arm == Arm::Target {
            counted.extend(sample.usage.and_then(|usage| usage.input).map(|input| (planned.input_tokens, input)));
        }
        let _ = common.notes.send(Note::Warmup(Box::new(sample))).await;
        if common.cuts.by().is_some() || common.aborts.reason().is_some() {
            break;
        }
    }
    if common.cuts.by().is_some() || common.aborts.reason().is_some() {
        return Ok(WarmUp::Ended(end_reason(common)));
    }
    for (arm, (terms, Fared { sent, refused, unauthorised, refusal })) in fared.iter() {
        if let Some(words) = refusal.as_ref().filter(|_| refused == sent) {
            let planned = plan.warmup.iter().filter(|planned| planned.arm == arm).count();
            let which = if u32::try_from(planned).is_ok_and(|planned| *refused < planned) {
                format!("the first {refused} of {planned}")
            } else {
                format!("all {refused}")
            };
            let words = terms.words_of_arm(&format!("{which} warm-up requests failed, the first with: {words}"));
            let reason = if unauthorised == sent { EndReason::NoCredentials(words) } else { EndReason::Refused(words) };
            return Ok(WarmUp::Ended(reason));
        }
    }
    Ok(WarmUp::Done(counted))
}

/// Sends one warm-up request. Where the server refuses it for the field that says how long the answer may be, it is
/// sent again with the other one, and so are all after it: the first try is no sample. `None` where the budget does not
/// allow it, which ends the run.
async fn warm_up_once(
    planned: &PlannedRequest,
    prompts: &dyn Prompts,
    writer: &Writer,
    worker: &Worker,
    zero: Zero,
    common: &Common,
) -> Result<Option<Measurement>, LoadError> {
    loop {
        let claim = match common.ledger.claim(planned, 0) {
            Ok(claim) => claim,
            Err(reason) => {
                common.aborts.give_up(reason);
                return Ok(None);
            }
        };
        let prepared = writer.prepare(planned, &prompts.warmup(planned))?;
        let measurement = worker.warm_up(prepared, claim, zero).await.ok_or(LoadError::Internal)?;
        if measurement.wanted.map(|field| writer.switch_to(field)) != Some(Switch::Done) {
            return Ok(Some(measurement));
        }
    }
}

/// Whether no later request can fare better.
fn is_refusal(sample: &Sample) -> bool {
    matches!(sample.outcome, Outcome::Connect | Outcome::Tls | Outcome::TimeoutConnect)
        || matches!(sample.status, Some(401 | 403 | 404 | 429))
}

/// The measured phase: all I/O threads start at the same epoch.
async fn measured(
    spec: &GateSpec,
    plan: &Plan,
    workers: Vec<Worker>,
    common: &Common,
    start_at: Option<Nanos>,
    readings: Option<&Readings>,
) -> Result<Finish, LoadError> {
    let Common { cuts, notes, counts, .. } = common;
    let (mut starts, mut done) = (Vec::new(), Vec::new());
    for worker in workers {
        let (start, ends) = worker.ready().await;
        starts.extend(start);
        done.push(ends);
    }
    let clocks = Clocks::read();
    let zero = Zero(match start_at {
        None => Instant::now() + LEAD,
        Some(at) => match late(at) {
            None => clocks.instant_of(at),
            Some(late) => {
                let words = format!("warm-up ended {late} after the time of `--start-at`; give a later one");
                return Ok(unsent(EndReason::NotReady(words), common));
            }
        },
    });
    if let Some(readings) = readings {
        readings.epoch(zero);
    }
    let watch = Watch::new();
    for start in starts {
        // A thread that failed says why in the end.
        let _ = start.send(zero);
    }
    let epoch_unix = start_at.or_else(|| clocks.unix(zero.0));
    let mut beside = JoinSet::new();
    // A closed loop's end is not known ahead.
    if spec.timeouts.run.is_none() && matches!(common.pace, Pace::Open { .. }) {
        beside.spawn_local(time_limit(cuts.clone(), zero, spec.run_limit(plan.duration() + thinking(plan, spec))));
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
    let sent = counts.sent.load(Ordering::Relaxed);
    let reason = match end_reason(common) {
        // It was given up when there was nothing left to be sent, or to be cut.
        reason if reason.is_abort() && cuts.by().is_none() && plan.requests.len() == sent as usize => {
            EndReason::Completed
        }
        reason => reason,
    };
    let connections = counts.connections.load(Ordering::Relaxed);
    let footprint = shifts.iter().map(|shift| shift.footprint).reduce(|one, other| Footprint {
        descriptors: one.descriptors.max(other.descriptors),
        memory: one.memory.max(other.memory),
        ..one
    });
    let footprint = footprint.map(|footprint| Footprint { connections, ..footprint });
    Ok(Finish { reason, sent, at, epoch_unix, health, footprint })
}

/// How long ago a time was, with what it takes to start; `None` where there is still time.
pub(crate) fn late(at: Nanos) -> Option<Nanos> {
    let now: Nanos = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().into();
    (now > at).then(|| now - at)
}

/// The longest that the later turns of one conversation may take: each its think time, and as long as an answer may.
fn thinking(plan: &Plan, spec: &GateSpec) -> Nanos {
    let (mut longest, mut own) = (Nanos::ZERO, [Nanos::ZERO; 2]);
    for request in &plan.requests {
        let [target, reference] = &mut own;
        let own = if request.arm == Arm::Target { target } else { reference };
        *own = if request.turn == 0 { Nanos::ZERO } else { *own + request.at + spec.timeouts.total };
        longest = longest.max(*own);
    }
    longest
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
