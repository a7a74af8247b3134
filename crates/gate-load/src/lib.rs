//! Sends a plan's requests on time and records what came back.
//!
//! [`run`] turns a [`Plan`], its [`Prompts`] and a [`Referee`] into a [`Run`]. Threads share the work, so that nothing
//! heavy delays a send or a read:
//!
//! - the **I/O threads**, one unless the spec names more workers, own sockets, timers and decoders, and nothing else;
//!   requests are dealt to them in turn, and each keeps the times of its own;
//! - the **conductor's thread** waits for the target, leads through warm-up, and sets the epoch;
//! - the **prompts thread** writes measured requests a little ahead of the time they are due, once warm-up has told
//!   how the server counts tokens;
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
//! The target is reached directly, through the proxy that the environment names, or by a Unix socket. The name of
//! whichever is connected to is looked up for each question whether it is ready, and not again afterwards.
//!
//! An answer that comes as one body has no first token: its last one is the body's end, and of the timeouts only
//! `connect`, `total` and `run` apply.

mod alarm;
mod client;
mod clock;
mod conductor;
mod connection;
mod error;
mod exchange;
mod health;
mod multiplexed;
mod peer;
mod progress;
mod proxy;
mod ready;
mod receive;
mod record;
mod recorder;
mod requests;
mod socket;
mod stamped;
mod stop;
mod target;
mod tls;
mod transport;
mod words;
mod worker;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::Builder;

use gate_model::{CountTokens, EndReason, GateSpec, Health, Plan, Prompts, Redactor, Referee, Run, RunEnd, RunHeader};
use tokio::sync::{mpsc, oneshot};

use client::{Terms, Texts};
use conductor::{Finish, Note, Orders, conduct};
use recorder::{Journal, Recorder};
use requests::Writer;
use target::Target;
use worker::{Common, work, worker};

pub use error::LoadError;
pub use progress::Progress;
pub use proxy::ProxyEnv;
pub use stop::Stop;
pub use tls::{ClientIdentity, Trust};

/// Everything a run needs.
pub struct Load<'a> {
    /// The journal's first line; its `spec` says what is sent, how long is waited, and who is asked.
    pub header: RunHeader,
    /// Where to send: the spec's URL, or the simulated engine's.
    pub base: url::Url,
    /// The Unix socket it is behind, of a `unix:` target; `base` then says what is asked there, on `localhost`.
    pub socket: Option<PathBuf>,
    /// Who may vouch for it, over `https`, and what it is shown.
    pub trust: Trust,
    /// The proxies that may stand on the way; its secrets are in custody of `redactor`.
    pub proxies: ProxyEnv,
    /// What to send, and when.
    pub plan: &'a Plan,
    /// What each request says.
    pub prompts: Arc<dyn Prompts>,
    /// Counts the tokens of answers without usage, after the load.
    pub counter: Option<Arc<dyn CountTokens>>,
    /// Who decides at each look.
    pub referee: &'a mut dyn Referee,
    /// Removes secrets from everything a server or a network says.
    pub redactor: &'a Redactor,
    /// Where the journal goes: one write and one flush a line, the header before the first byte is sent.
    pub journal: Option<Box<dyn Write + Send + 'a>>,
    /// Ends the run from outside.
    pub stop: Stop,
}

/// How many notes of the other threads may wait for the caller's thread.
const NOTES: usize = 1_024;
/// How much text is kept to be counted, in all.
const TEXTS: usize = 256 << 20;

/// Whether a spec's target can be asked at all, as far as can be told before anything is sent: its URL, the headers,
/// the certificates, the proxy on the way.
///
/// # Errors
/// What [`run`] would fail with.
pub fn check(
    spec: &GateSpec,
    base: &url::Url,
    socket: Option<&Path>,
    trust: &Trust,
    proxies: &ProxyEnv,
) -> Result<(), LoadError> {
    let target = Target::new(base, socket, trust, proxies, spec.load.http)?;
    Writer::new(spec, base, target.forward()).map(drop)
}

/// Runs a load to its end. Blocks the calling thread, on which `observe`, the journal and the referee are called.
///
/// # Errors
/// [`LoadError`], only for what is not a measurement. A target that cannot be reached is a run, whose end says so.
pub fn run(load: Load<'_>, observe: &mut dyn FnMut(Progress<'_>)) -> Result<Run, LoadError> {
    let Load { header, base, socket, trust, proxies, plan, prompts, counter, referee, redactor, journal, stop } = load;
    let spec = &header.spec;
    let target = Target::new(&base, socket.as_deref(), &trust, &proxies, spec.load.http)?;
    let writer = &Writer::new(spec, &base, target.forward())?;
    if trust.insecure {
        tracing::warn!("`target.tls.insecure`: any certificate is accepted, so anyone in between can read and answer");
    }
    let chosen = receive::choose(spec.load.clock, target.is_unix())?;
    let journal = Journal::start(journal, &header, redactor)?;
    let texts = counter.as_ref().map(|_| Texts::new(TEXTS));
    let terms = Terms::new(target, Arc::clone(writer.dialect()), spec, redactor.clone(), chosen.clock, texts);
    let terms = Arc::new(terms);
    let halt = Stop::new();
    let (notes, noted) = mpsc::channel(NOTES);
    let (warmed_up, counted) = oneshot::channel();
    let common = Common::new(Arc::clone(&terms), spec.load.pace, notes, halt.clone());
    let (mut to_send, mut workers, mut posts) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..spec.load.workers.max(1) {
        let (requests, taken) = mpsc::channel(requests::AHEAD);
        let (worker, post) = worker(common.clone(), taken);
        to_send.push(requests);
        workers.push(worker);
        posts.push(post);
    }
    let prompts = &*prompts;
    let orders = Orders { spec, plan, prompts, writer, common, workers, warmed_up, stop };
    let mut recorder = Recorder::new(journal, plan.looks.clone(), halt);
    let finish = std::thread::scope(|threads| {
        let named = |name: &str| Builder::new().name(name.to_owned());
        named("gate-prompts")
            .spawn_scoped(threads, move || requests::write_measured(plan, prompts, writer, counted, &to_send))
            .map_err(LoadError::Runtime)?;
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
    let (journal, warmup, samples) = recorder.finish(counter.as_deref())?;
    let Finish { sent, at, epoch_unix, health, .. } = finish;
    let health = Health { coalesced_share: health::coalesced_share(&samples), ..health };
    let (switched_to, reached) = (writer.switched_to(), terms.target.reached());
    let end = RunEnd { reason, sent, at, epoch_unix, health, switched_to, reached };
    journal.end(&end)?;
    Ok(Run { header, warmup, samples, end: Some(end) })
}

/// Takes what the other threads tell until they have ended. Returning early ends them.
fn record(
    mut notes: mpsc::Receiver<Note>,
    recorder: &mut Recorder<'_>,
    referee: &mut dyn Referee,
    observe: &mut dyn FnMut(Progress<'_>),
) -> Result<(), LoadError> {
    while let Some(note) = notes.blocking_recv() {
        match note {
            Note::Waiting { elapsed, last } => observe(Progress::Waiting { elapsed, last: &last }),
            Note::Ready => observe(Progress::Ready),
            Note::Warmup(sample) => recorder.warmed_up(*sample, observe)?,
            Note::Started => observe(Progress::Started),
            Note::Tick { elapsed, sent, in_flight } => observe(Progress::Tick { elapsed, sent, in_flight }),
            Note::Ended(sample, text) => recorder.ended(*sample, text, referee, observe)?,
        }
    }
    Ok(())
}
