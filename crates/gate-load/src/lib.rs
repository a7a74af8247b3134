//! Sends a plan's requests on time and records what came back.
//!
//! [`run`] turns a [`Plan`], its [`Prompts`] and a [`Referee`] into a [`Run`]. Threads share the work, so that nothing
//! heavy delays a send or a read:
//!
//! - the **I/O threads**, one unless the spec names more workers, own sockets, timers and decoders, and nothing else;
//!   requests are dealt to them in turn, and each keeps the times of its own;
//! - the **conductor's thread** waits for the target, leads through warm-up, and sets the epoch;
//! - the **prompts thread** writes measured requests a little ahead of the time they are due, once warm-up has told
//!   how the server counts tokens; side by side in a closed loop each arm has its own;
//! - the **turns thread** writes the later turns of conversations, whose prompts hold what was answered before;
//! - the **caller's thread** writes the journal, asks the referee and tells the observer; after the load it counts the
//!   tokens that the server didn't.
//!
//! All times come from one monotonic clock. What a read completed is taken before the next read, so an event always
//! bears the stamp of the read that completed it. By the kernel's clock that is the instant at which the network handed
//! over the last bytes of the read, by the user's the instant at which they were read; either way events that came in
//! one read share its stamp, which for all but the last is an upper bound, and counted. Under TLS the stamp is taken
//! beneath: it is that of the read that completed the event's record; over HTTP/2 that of the read that completed its
//! frame. Points of a measured sample count from the epoch, the instant the first measured request is due; points of a
//! warm-up sample count from the start of the first warm-up request.
//!
//! In a closed loop a request is due when there is a slot for it. Under a cap it is due when the plan says, and waits
//! for its slot; its time limits count from then.
//!
//! Side by side, the reference is a second target: with its own dialect, credentials, connections and slots, but the
//! same clock and the same threads. Both are asked at the same time whether they are ready. In an open loop a pair goes
//! out back to back, in the plan's order. In a closed loop each arm sends when a slot of its own is free: one that is
//! slow does not hold the other back, so the requests of a pair may lie far apart in time. At a look both have ended;
//! where it stops the load, a pair that is begun is completed, unless one of the two still waits for a slot. Prompts are
//! fitted to what the target counted.
//!
//! A later turn of a conversation is due its think time after the end of the answer before it, in a closed loop when it
//! then has a slot. A turn that fails ends its conversation: what would have followed is never sent, so that a run which
//! is complete may have fewer requests than its plan.
//!
//! A run is given up by its own rules ([`EndReason::is_abort`]) as at a look: nothing more is sent, and what is open ends
//! as it does, unless answers that go on by themselves pass the budget. What it may use up is claimed before a request is
//! sent, by its worst case.
//!
//! The target is reached directly, through the proxy that the environment names, or by a Unix socket. The name of
//! whichever is connected to is looked up for each question whether it is ready, and not again afterwards.
//!
//! An answer that comes as one body has no first token: its last one is the body's end, and of the timeouts only
//! `connect`, `total` and `run` apply.

mod abort;
mod alarm;
mod arms;
mod ask;
mod budget;
mod client;
mod clock;
mod conductor;
mod connection;
mod error;
mod exchange;
mod footprint;
mod health;
mod journal;
mod metrics;
mod multiplexed;
mod peer;
mod progress;
mod proxy;
mod ready;
mod receive;
mod record;
mod recorder;
mod requests;
mod scrape;
mod socket;
mod stamped;
mod stop;
mod target;
mod tls;
mod transport;
mod turns;
mod wake;
mod words;
mod worker;

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::Builder;
use std::time::{Duration, Instant};

use gate_model::{
    Arm, CountTokens, EndReason, Footprint, GateSpec, Health, Http, Nanos, Plan, Prompts, Redactor, Referee,
    ReferenceEnd, Run, RunEnd, RunHeader, Spent,
};
use tokio::sync::{mpsc, oneshot};

use abort::Aborts;
use arms::Arms;
use budget::Ledger;
use client::{Cuts, Shared, Terms, Texts, load_of};
use conductor::{Finish, Note, Orders, conduct};
use recorder::Recorder;
use requests::{Writer, queues};
use scrape::Scraper;
use target::Target;
use worker::{Common, work, worker};

pub use ask::{Answer, get};
pub use error::LoadError;
pub use progress::Progress;
pub use proxy::ProxyEnv;
pub use stop::Stop;
pub use tls::{ClientIdentity, Trust};

/// Everything a run of one section needs.
pub struct Load<'a> {
    /// The journal's first line; its `spec` says what is sent, how long is waited, and who is asked, its `section` for
    /// which scenarios.
    pub header: RunHeader,
    /// The endpoint under test.
    pub target: Remote,
    /// What it is compared with side by side, where the spec and the plan have a reference.
    pub reference: Option<Remote>,
    /// The proxies that may stand on the way; its secrets are in custody of `redactor`.
    pub proxies: ProxyEnv,
    /// What to send, and when: the section's.
    pub plan: &'a Plan,
    /// What each request says.
    pub prompts: Arc<dyn Prompts>,
    /// Counts the tokens of answers without usage, after the load.
    pub counter: Option<Arc<dyn CountTokens>>,
    /// Who decides at each look.
    pub referee: &'a mut dyn Referee,
    /// Removes secrets from everything a server or a network says.
    pub redactor: &'a Redactor,
    /// What earlier sections of the run have used up of the budget.
    pub spent: Spent,
    /// When the epoch is, since the UNIX epoch, so that several machines start at once; else it is when warm-up has
    /// ended.
    pub start_at: Option<Nanos>,
    /// Where the journal goes, whole lines only: the header before the first byte is sent, a sample when it has ended or,
    /// where many end at once, a few milliseconds later.
    pub journal: Option<Box<dyn Write + Send + 'a>>,
    /// Ends the run from outside.
    pub stop: Stop,
}

/// Where an arm is.
#[derive(Clone)]
pub struct Remote {
    /// Where to send: the spec's URL, or the simulated engine's.
    pub base: url::Url,
    /// The Unix socket it is behind, of a `unix:` target; `base` then says what is asked there, on `localhost`.
    pub socket: Option<PathBuf>,
    /// Who may vouch for it, over `https`, and what it is shown.
    pub trust: Trust,
}

/// How many notes of the other threads may wait for the caller's thread.
const NOTES: usize = 4_096;
/// How much text is kept to be counted, in all.
const TEXTS: usize = 256 << 20;

/// Whether the target of an arm can be asked at all, as far as can be told before anything is sent: its URL, the
/// headers, the certificates, the proxy on the way.
///
/// # Errors
/// What [`run`] would fail with.
pub fn check(spec: &GateSpec, arm: Arm, remote: &Remote, proxies: &ProxyEnv) -> Result<(), LoadError> {
    let sections = 0..u16::try_from(spec.sections().len()).unwrap_or(u16::MAX);
    sections
        .into_iter()
        .try_for_each(|section| set_up(spec, arm, remote, proxies, load_of(spec, section).http).map(drop))
}

/// The way to an arm's target, and what writes its requests.
fn set_up(
    spec: &GateSpec,
    arm: Arm,
    remote: &Remote,
    proxies: &ProxyEnv,
    http: Http,
) -> Result<(Target, Writer), LoadError> {
    let Remote { base, socket, trust } = remote;
    let target = Target::new(base, socket.as_deref(), trust, proxies, http);
    let set_up = target.and_then(|target| {
        let writer = Writer::new(spec, arm, base, target.forward())?;
        Ok((target, writer))
    });
    set_up.map_err(|error| match arm {
        Arm::Target => error,
        Arm::Reference => LoadError::OfReference(Box::new(error)),
    })
}

/// Runs a load to its end. Blocks the calling thread, on which `observe`, the journal and the referee are called.
///
/// # Errors
/// [`LoadError`], only for what is not a measurement. A target that cannot be reached is a run, whose end says so.
pub fn run(load: Load<'_>, observe: &mut dyn FnMut(Progress<'_>)) -> Result<Run, LoadError> {
    let Load { header, target, reference, proxies, plan, prompts, counter, referee, redactor, journal, stop, .. } =
        load;
    let (spent, start_at) = (load.spent, load.start_at);
    let spec = &header.spec;
    let asked = load_of(spec, header.section);
    if let Some(late) = start_at.and_then(conductor::late) {
        return Err(LoadError::StartPassed { late });
    }
    let scraper = Scraper::new(spec, &target, &proxies, redactor);
    let sides = Arms { target, reference }.try_map(|arm, remote| {
        if remote.trust.insecure {
            let key = words::key_of(arm, "`target.tls.insecure`");
            tracing::warn!("{key}: any certificate is accepted, so anyone in between can read and answer");
        }
        set_up(spec, arm, &remote, &proxies, asked.http)
    })?;
    // One clock for both: what is compared must be stamped alike.
    let chosen = receive::choose(asked.clock, sides.iter().any(|(_, (target, _))| target.is_unix()))?;
    let (cuts, halt) = (Cuts::default(), Stop::new());
    let aborts = Aborts::new(spec.abort.connection_failures, halt.clone(), cuts.clone());
    let ledger = Ledger::new(spec.budget, spec.prices, spent);
    let mut recorder = Recorder::new(journal, redactor, header.clone(), plan, halt.clone(), aborts.clone())?;
    let texts = counter.as_ref().map(|_| Arc::new(Texts::new(TEXTS)));
    let shared = Shared { redactor: redactor.clone(), texts, cuts: cuts.clone(), aborts: aborts.clone() };
    let arms = sides.try_map(|arm, side| Terms::new(&header, arm, side, shared.clone()).map(Arc::new))?;
    let (notes, noted) = mpsc::channel(NOTES);
    let (turns, turns_asked) =
        plan.requests.iter().any(|one| one.turn > 0).then(|| mpsc::channel(turns::ASKED)).unzip();
    let (pace, clock, counts) = (asked.pace, chosen.clock, Arc::default());
    let books = Arc::clone(&ledger);
    let common = Common { arms: arms.clone(), pace, clock, counts, notes, cuts, halt, aborts, ledger: books, turns };
    let mut taken: Vec<_> = (0..asked.workers.max(1)).map(|_| Vec::new()).collect();
    let (mut to_write, mut warmed_up) = (Vec::new(), Vec::new());
    for queue in queues(pace, &arms) {
        let (tell, told) = oneshot::channel();
        let (out, dealt): (Vec<_>, Vec<_>) = taken.iter().map(|_| mpsc::channel(requests::ahead(asked))).unzip();
        taken.iter_mut().zip(dealt).for_each(|(taken, dealt)| taken.push(dealt));
        to_write.push((queue, told, out));
        warmed_up.push(tell);
    }
    let (workers, posts): (Vec<_>, Vec<_>) = taken.into_iter().map(|queues| worker(common.clone(), queues)).unzip();
    let (prompts, arms) = (&*prompts, &arms);
    let orders = Orders { spec, plan, prompts, common, workers, warmed_up, start_at, scraper, stop };
    let finish = std::thread::scope(|threads| {
        let named = |name: &str| Builder::new().name(name.to_owned());
        for (queue, told, out) in to_write {
            named("gate-prompts")
                .spawn_scoped(threads, move || requests::write_measured(plan, &queue, prompts, arms, told, &out))
                .map_err(LoadError::Runtime)?;
        }
        if let Some(asked) = turns_asked {
            named("gate-turns")
                .spawn_scoped(threads, move || turns::write_turns(plan, prompts, arms, asked))
                .map_err(LoadError::Runtime)?;
        }
        let mut crew = Vec::new();
        for post in posts {
            crew.push(named("gate-io").spawn_scoped(threads, move || work(post)).map_err(LoadError::Runtime)?);
        }
        let conductor =
            named("gate-conductor").spawn_scoped(threads, move || conduct(orders)).map_err(LoadError::Runtime)?;
        let recorded = record(noted, &mut recorder, referee, observe);
        for io in crew {
            io.join().map_err(|_| LoadError::Internal)?;
        }
        let finish = conductor.join().map_err(|_| LoadError::Internal)?;
        recorded.and(finish)
    })?;
    let reason = match (finish.reason, recorder.stopped_at) {
        (EndReason::Completed, Some(n)) if plan.looks.last() != Some(&n) => EndReason::StoppedAtLook(n),
        (reason, _) => reason,
    };
    let coalesced_share = recorder.coalesced_share();
    let (journal, run) = recorder.finish(counter.as_deref())?;
    let Finish { sent, at, epoch_unix, health, footprint, .. } = finish;
    let health = Health { coalesced_share, ..health };
    let learnt = |terms: &Terms| (terms.writer.switched_to(), terms.target.reached());
    let (switched_to, reached) = learnt(&arms.target);
    let reference = arms.reference.as_deref().map(learnt);
    let reference = reference.map(|(switched_to, reached)| ReferenceEnd { switched_to, reached });
    let footprint = footprint.map(|footprint| Footprint { journal_bytes: journal.bytes(), ..footprint });
    let spent = ledger.spent();
    let end = RunEnd { reason, sent, at, epoch_unix, health, switched_to, reached, reference, spent, footprint };
    journal.end(&end)?;
    Ok(Run { end: Some(end), ..run })
}

/// Where so many notes come in a [`WINDOW`], the next ones are left to gather: to wake this thread for each would cost the
/// I/O threads more than what they tell.
const BUSY: u32 = 40;
/// How long notes are counted.
const WINDOW: Duration = Duration::from_millis(50);
/// How long they gather.
const BREATH: Duration = Duration::from_millis(5);

/// Takes what the other threads tell until they have ended. Returning early ends them.
fn record(
    mut notes: mpsc::Receiver<Note>,
    recorder: &mut Recorder<'_>,
    referee: &mut dyn Referee,
    observe: &mut dyn FnMut(Progress<'_>),
) -> Result<(), LoadError> {
    let (mut since, mut count, mut is_busy) = (Instant::now(), 0, false);
    while let Some(first) = notes.blocking_recv() {
        let mut next = Some(first);
        while let Some(note) = next {
            take(note, recorder, referee, observe)?;
            count += 1;
            next = notes.try_recv().ok();
        }
        recorder.journal.flush()?;
        if since.elapsed() >= WINDOW {
            // A window may be longer where little comes.
            is_busy = f64::from(count) * WINDOW.as_secs_f64() >= f64::from(BUSY) * since.elapsed().as_secs_f64();
            (since, count) = (Instant::now(), 0);
        }
        if is_busy {
            std::thread::sleep(BREATH);
        }
    }
    Ok(())
}

/// Takes one note.
fn take(
    note: Note,
    recorder: &mut Recorder<'_>,
    referee: &mut dyn Referee,
    observe: &mut dyn FnMut(Progress<'_>),
) -> Result<(), LoadError> {
    match note {
        Note::Waiting { elapsed, last } => observe(Progress::Waiting { elapsed, last: &last }),
        Note::Ready => observe(Progress::Ready),
        Note::Warmup(sample) => recorder.warmed_up(*sample, observe)?,
        Note::Scrape(scrape) => recorder.scraped(scrape)?,
        Note::Started => observe(Progress::Started),
        Note::Tick { elapsed, sent, in_flight } => observe(Progress::Tick { elapsed, sent, in_flight }),
        Note::Ended(sample, text) => recorder.ended(*sample, text, referee, observe)?,
    }
    Ok(())
}
