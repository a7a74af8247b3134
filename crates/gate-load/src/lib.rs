//! Sends a plan's requests on time and records what came back.
//!
//! [`run`] turns a [`Plan`], its [`Prompts`] and a [`Referee`] into a [`Run`]. Three threads share the work, so that
//! nothing heavy delays a send or a read:
//!
//! - the **I/O thread** owns sockets, schedule, timers and decoders, and nothing else;
//! - the **prompts thread** writes measured requests a little ahead of the time they are due, once warm-up has told
//!   how the server counts tokens;
//! - the **caller's thread** writes the journal, asks the referee and tells the observer.
//!
//! All times come from one monotonic clock. A read is stamped as soon as the socket gives its bytes, and what it
//! completed is taken before the next read, so an event always bears the stamp of the read that completed it; events
//! that came in one read share its stamp. Under TLS the stamp is taken beneath: it is that of the read that completed
//! the event's record. Points of a measured sample count from the epoch, the instant the first measured request is due;
//! points of a warm-up sample count from the start of the first warm-up request.
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
mod progress;
mod ready;
mod record;
mod recorder;
mod requests;
mod stamped;
mod stop;
mod target;
mod tls;
mod transport;
mod words;

use std::io::Write;
use std::sync::Arc;
use std::thread::Builder;

use gate_model::{EndReason, Plan, Prompts, Redactor, Referee, Run, RunEnd, RunHeader};
use tokio::sync::{mpsc, oneshot};

use conductor::{Finish, Note, Orders, conduct};
use recorder::{Journal, Recorder};
use requests::Writer;
use target::Target;

pub use error::LoadError;
pub use progress::Progress;
pub use stop::Stop;
pub use tls::Trust;

/// Everything a run needs.
pub struct Load<'a> {
    /// The journal's first line; its `spec` says what is sent, how long is waited, and who is asked.
    pub header: RunHeader,
    /// Where to send: the spec's URL, or the simulated engine's.
    pub base: url::Url,
    /// Who may vouch for it, over `https`.
    pub trust: Trust,
    /// What to send, and when.
    pub plan: &'a Plan,
    /// What each request says.
    pub prompts: Arc<dyn Prompts>,
    /// Who decides at each look.
    pub referee: &'a mut dyn Referee,
    /// Removes secrets from everything a server or a network says.
    pub redactor: &'a Redactor,
    /// Where the journal goes: one write and one flush a line, the header before the first byte is sent.
    pub journal: Option<Box<dyn Write + Send + 'a>>,
    /// Ends the run from outside.
    pub stop: Stop,
}

/// How many notes of the I/O thread may wait for the caller's thread.
const NOTES: usize = 1_024;

/// Runs a load to its end. Blocks the calling thread, on which `observe`, the journal and the referee are called.
///
/// # Errors
/// [`LoadError`], only for what is not a measurement. A target that cannot be reached is a run, whose end says so.
pub fn run(load: Load<'_>, observe: &mut dyn FnMut(Progress<'_>)) -> Result<Run, LoadError> {
    let Load { header, base, trust, plan, prompts, referee, redactor, journal, stop } = load;
    let writer = &Writer::new(&header.spec, &base)?;
    let target = Target::new(&base, &trust)?;
    let journal = Journal::start(journal, &header, redactor)?;
    let halt = Stop::new();
    let (to_send, requests) = mpsc::channel(requests::AHEAD);
    let (notes, noted) = mpsc::channel(NOTES);
    let (warmed_up, counted) = oneshot::channel();
    let prompts = &*prompts;
    let orders = Orders {
        spec: &header.spec,
        plan,
        prompts,
        writer,
        target,
        redactor,
        warmed_up,
        requests,
        notes,
        stop,
        halt: halt.clone(),
    };
    let mut recorder = Recorder::new(journal, plan.looks.clone(), halt);
    let finish = std::thread::scope(|threads| {
        let named = |name: &str| Builder::new().name(name.to_owned());
        named("gate-prompts")
            .spawn_scoped(threads, move || requests::write_measured(plan, prompts, writer, counted, &to_send))
            .map_err(LoadError::Runtime)?;
        let io = named("gate-io").spawn_scoped(threads, move || conduct(orders)).map_err(LoadError::Runtime)?;
        let recorded = record(noted, &mut recorder, referee, observe);
        let finish = io.join().map_err(|_| LoadError::Internal)?;
        recorded.and(finish)
    })?;
    let reason = match (finish.reason, recorder.stopped_at) {
        (EndReason::Completed, Some(n)) if plan.looks.last() != Some(&n) => EndReason::StoppedAtLook(n),
        (reason, _) => reason,
    };
    let Finish { sent, at, health, .. } = finish;
    let end = RunEnd { reason, sent, at, health, switched_to: writer.switched_to() };
    let (journal, warmup, samples) = recorder.finish();
    journal.end(&end)?;
    Ok(Run { header, warmup, samples, end: Some(end) })
}

/// Takes what the I/O thread tells until it has ended. Returning early ends it.
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
            Note::Ended(sample) => recorder.ended(*sample, referee, observe)?,
        }
    }
    Ok(())
}
