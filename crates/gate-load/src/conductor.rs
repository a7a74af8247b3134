//! The I/O thread: readiness, warm-up, the measured phase.

use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use gate_model::{EndReason, GateSpec, Health, Nanos, Outcome, Plan, PlannedRequest, Prompts, Redactor, Sample};
use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinSet, spawn_local};

use crate::alarm::Alarm;
use crate::client::{Client, Cut};
use crate::clock::{Zero, later};
use crate::exchange::{Source, Timing, measure};
use crate::health::Watch;
use crate::ready::until_ready;
use crate::record::Measurement;
use crate::requests::{Counted, Prepared, Switch, Writer};
use crate::target::Target;
use crate::words::clean;
use crate::{LoadError, Stop};

/// Between the end of warm-up and the epoch.
const LEAD: Duration = Duration::from_millis(20);
/// Between two ticks.
const TICK: Duration = Duration::from_millis(500);

/// What the I/O thread tells the caller's thread.
pub(crate) enum Note {
    Waiting { elapsed: Nanos, last: String },
    Ready,
    Warmup(Box<Sample>),
    Started,
    Tick { elapsed: Nanos, sent: u32, in_flight: u32 },
    Ended(Box<Sample>),
}

/// How the I/O thread ended.
#[derive(Debug)]
pub(crate) struct Finish {
    pub(crate) reason: EndReason,
    /// Measured requests sent.
    pub(crate) sent: u32,
    /// When the last of them ended.
    pub(crate) at: Nanos,
    pub(crate) health: Health,
}

/// What the I/O thread needs.
pub(crate) struct Orders<'a> {
    pub(crate) spec: &'a GateSpec,
    pub(crate) plan: &'a Plan,
    pub(crate) prompts: &'a dyn Prompts,
    pub(crate) writer: &'a Writer,
    pub(crate) target: Target,
    pub(crate) redactor: &'a Redactor,
    /// Tells what warm-up counted, so that measured requests are written.
    pub(crate) warmed_up: oneshot::Sender<Counted>,
    /// Measured requests in the order of sending.
    pub(crate) requests: mpsc::Receiver<Result<Prepared, LoadError>>,
    pub(crate) notes: mpsc::Sender<Note>,
    /// Ends everything.
    pub(crate) stop: Stop,
    /// Ends sending.
    pub(crate) halt: Stop,
}

/// Runs the load on this thread.
pub(crate) fn conduct(orders: Orders<'_>) -> Result<Finish, LoadError> {
    let options = LocalOptions::default();
    let runtime = Builder::new_current_thread().enable_all().build_local(options).map_err(LoadError::Runtime)?;
    let finish = runtime.block_on(phases(orders));
    // A name may still be looked up; nobody waits for it.
    runtime.shutdown_background();
    finish
}

async fn phases(orders: Orders<'_>) -> Result<Finish, LoadError> {
    let Orders { spec, plan, prompts, writer, target, redactor, warmed_up, requests, notes, stop, halt } = orders;
    let client = Rc::new(Client::new(target, writer.dialect(), spec, redactor.clone()));
    spawn_local(interrupt(Rc::clone(&client), stop, notes.clone()));
    let unsent = |reason| Finish { reason, sent: 0, at: Nanos::ZERO, health: Health::default() };

    let waiting = async |elapsed, last: &str| {
        let _ = notes.send(Note::Waiting { elapsed, last: clean(last, redactor) }).await;
    };
    match client.unless_cut(until_ready(&spec.target.ready, writer, &client, waiting)).await {
        Ok(Ok(Ok(()))) => {}
        Ok(Ok(Err(words))) => return Ok(unsent(EndReason::NotReady(clean(&words, redactor)))),
        Ok(Err(error)) => return Err(error),
        Err(_) => return Ok(unsent(EndReason::Interrupted)),
    }
    let _ = notes.send(Note::Ready).await;

    let mut limits = JoinSet::new();
    if let Some(limit) = spec.timeouts.run {
        // A limit the spec names is for the whole run, warm-up included; the default one is for the schedule.
        limits.spawn_local(time_limit(Rc::clone(&client), Zero(Instant::now()), limit));
    }
    match warm_up(plan, prompts, writer, &client, &notes).await? {
        // Nobody listens where the prompts thread has ended, and the first request to come says so.
        WarmUp::Done(counted) => drop(warmed_up.send(counted)),
        WarmUp::Refused(words) => return Ok(unsent(EndReason::Refused(words))),
        WarmUp::Cut => return Ok(unsent(cut_reason(&client))),
    }
    Measured { client, notes, halt }.run(spec, plan, requests).await
}

/// Why a run ended that nothing else ended.
fn cut_reason(client: &Client) -> EndReason {
    match client.cut_by() {
        Some(Cut::Interrupted) => EndReason::Interrupted,
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

/// Sends the warm-up requests one after another, each on a new connection that then joins the pool. Nothing is measured
/// meanwhile, so they are written here, each when it is due.
async fn warm_up(
    plan: &Plan,
    prompts: &dyn Prompts,
    writer: &Writer,
    client: &Client,
    notes: &mpsc::Sender<Note>,
) -> Result<WarmUp, LoadError> {
    let zero = Zero(Instant::now());
    let mut counted = Counted::new();
    let mut refusal = None;
    let mut refused = 0;
    for planned in &plan.warmup {
        let sample = warm_up_once(planned, prompts, writer, client, zero).await?;
        let outcome = sample.outcome;
        if is_refusal(&sample) {
            refused += 1;
            refusal = refusal.or_else(|| sample.error.clone());
        }
        let input = sample.usage.and_then(|usage| usage.input).filter(|_| outcome == Outcome::Ok);
        counted.extend(input.map(|input| (sample.planned_input, input)));
        let _ = notes.send(Note::Warmup(Box::new(sample))).await;
        if client.cut_by().is_some() {
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
    client: &Client,
    zero: Zero,
) -> Result<Sample, LoadError> {
    loop {
        let prepared = writer.prepare(planned, &prompts.warmup(planned))?;
        let start = Instant::now();
        let timing = Timing { zero, intended: zero.point(start), start };
        let Measurement { sample, wanted } = measure(client, prepared, timing, Source::New).await;
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

/// How many measured requests were sent, and how many of them are open.
#[derive(Default)]
struct Counts {
    sent: Cell<u32>,
    open: Cell<u32>,
}

/// The measured phase.
struct Measured {
    client: Rc<Client>,
    notes: mpsc::Sender<Note>,
    halt: Stop,
}

impl Measured {
    async fn run(
        self,
        spec: &GateSpec,
        plan: &Plan,
        mut requests: mpsc::Receiver<Result<Prepared, LoadError>>,
    ) -> Result<Finish, LoadError> {
        let mut alarm = Alarm::new().map_err(LoadError::Timer)?;
        let counts = Rc::new(Counts::default());
        let mut last_end = Nanos::ZERO;
        let mut streams = JoinSet::new();
        let mut beside = JoinSet::new();
        // The epoch waits for the first request's text.
        let mut next = self.client.unless_cut(requests.recv()).await.ok().flatten().transpose()?;
        let zero = Zero(Instant::now() + LEAD);
        let watch = Watch::new();
        beside.spawn_local(watch.probe());
        if spec.timeouts.run.is_none() {
            beside.spawn_local(time_limit(Rc::clone(&self.client), zero, spec.run_limit(plan.duration())));
        }
        beside.spawn_local(tick(self.notes.clone(), zero, Rc::clone(&counts)));
        let _ = self.notes.send(Note::Started).await;

        while let Some(prepared) = next {
            let due = zero.instant(prepared.planned.at);
            let halted = tokio::select! {
                biased;
                _ = self.client.until_cut() => true,
                () = self.halt.triggered() => true,
                waited = alarm.wait_until(due) => waited.map(|()| false).map_err(LoadError::Timer)?,
            };
            if halted {
                break;
            }
            streams.spawn_local(self.follow(prepared, zero, Instant::now(), Rc::clone(&counts)));
            while let Some(ended) = streams.try_join_next() {
                last_end = last_end.max(ended.map_err(|_| LoadError::Internal)?);
            }
            next = self.client.unless_cut(requests.recv()).await.ok().flatten().transpose()?;
        }
        drop(requests);
        while let Some(ended) = streams.join_next().await {
            last_end = last_end.max(ended.map_err(|_| LoadError::Internal)?);
        }
        let health = watch.health();
        let reason = cut_reason(&self.client);
        Ok(Finish { reason, sent: counts.sent.get(), at: last_end, health })
    }

    /// Follows one request to its end, and gives the time of it.
    fn follow(
        &self,
        prepared: Prepared,
        zero: Zero,
        start: Instant,
        counts: Rc<Counts>,
    ) -> impl Future<Output = Nanos> + 'static {
        let (client, notes) = (Rc::clone(&self.client), self.notes.clone());
        counts.sent.set(counts.sent.get() + 1);
        counts.open.set(counts.open.get() + 1);
        async move {
            let timing = Timing { zero, intended: prepared.planned.at, start };
            let Measurement { sample, .. } = measure(&client, prepared, timing, Source::Pool).await;
            let end = zero.point(Instant::now());
            counts.open.set(counts.open.get() - 1);
            let _ = notes.send(Note::Ended(Box::new(sample))).await;
            end
        }
    }
}

/// Cuts the run when it is stopped from outside, or when nobody takes what it tells.
async fn interrupt(client: Rc<Client>, stop: Stop, notes: mpsc::Sender<Note>) {
    tokio::select! {
        () = stop.triggered() => {}
        () = notes.closed() => {}
    }
    client.cut(Cut::Interrupted);
}

/// Cuts the run when its own time limit has passed, counted from the epoch.
async fn time_limit(client: Rc<Client>, zero: Zero, limit: Nanos) -> std::io::Result<()> {
    tokio::time::sleep(later(zero.0, limit).saturating_duration_since(Instant::now())).await;
    client.cut(Cut::RunTimeout);
    Ok(())
}

/// Tells how far the run is; a tick that finds the channel full is left out.
async fn tick(notes: mpsc::Sender<Note>, zero: Zero, counts: Rc<Counts>) -> std::io::Result<()> {
    loop {
        tokio::time::sleep(TICK).await;
        let (sent, in_flight) = (counts.sent.get(), counts.open.get());
        let _ = notes.try_send(Note::Tick { elapsed: zero.point(Instant::now()), sent, in_flight });
    }
}
