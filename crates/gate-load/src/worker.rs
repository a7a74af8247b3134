//! An I/O thread: its connections, its alarm, its share of the requests.
//!
//! Requests are dealt to the threads in turn, warm-up's too, so that each has its share of the opened connections. Each
//! thread keeps the times of its own requests: none waits for another thread to wake. Each arm has its own connections
//! on each thread, and its own slots.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use gate_model::{Connections, Histogram, Nanos, Outcome, Pace, Stamping};
use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::task::JoinSet;

use crate::alarm::Alarm;
use crate::arms::Arms;
use crate::client::{Client, Cut, Cuts, Terms};
use crate::clock::Zero;
use crate::conductor::Note;
use crate::exchange::{Source, Timing, measure};
use crate::health::Probe;
use crate::receive::Receiver;
use crate::record::Measurement;
use crate::requests::Prepared;
use crate::{LoadError, Stop};

/// How many measured requests were sent, and how many of them are open.
#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) sent: AtomicU32,
    pub(crate) open: AtomicU32,
}

/// What all I/O threads share.
#[derive(Clone)]
pub(crate) struct Common {
    pub(crate) arms: Arms<Arc<Terms>>,
    pub(crate) pace: Pace,
    /// Which clock stamps what is received.
    pub(crate) clock: Stamping,
    pub(crate) counts: Arc<Counts>,
    pub(crate) notes: mpsc::Sender<Note>,
    pub(crate) cuts: Cuts,
    /// Ends sending.
    pub(crate) halt: Stop,
}

/// The conductor's end of an I/O thread.
pub(crate) struct Worker {
    warmups: mpsc::Sender<WarmUp>,
    ready: oneshot::Receiver<oneshot::Sender<Zero>>,
    done: oneshot::Receiver<Result<Shift, LoadError>>,
}

/// Requests in the order of sending.
pub(crate) type Requests = mpsc::Receiver<Result<Prepared, LoadError>>;

/// What an I/O thread is given.
pub(crate) struct Post {
    common: Common,
    queues: Vec<Requests>,
    warmups: mpsc::Receiver<WarmUp>,
    ready: oneshot::Sender<oneshot::Sender<Zero>>,
    done: oneshot::Sender<Result<Shift, LoadError>>,
}

struct WarmUp {
    prepared: Prepared,
    zero: Zero,
    reply: oneshot::Sender<Measurement>,
}

/// What an I/O thread did.
#[derive(Default)]
pub(crate) struct Shift {
    /// When the last of its requests ended.
    pub(crate) last_end: Nanos,
    /// How late it woke for a timer of its own.
    pub(crate) loop_delays: Histogram,
    /// How long bytes lay in the kernel, where that is known.
    pub(crate) read_delays: Option<Histogram>,
}

/// The two ends of an I/O thread that takes these requests.
pub(crate) fn worker(common: Common, queues: Vec<Requests>) -> (Worker, Post) {
    let (to_warm_up, warmups) = mpsc::channel(1);
    let (say_ready, ready) = oneshot::channel();
    let (say_done, done) = oneshot::channel();
    let post = Post { common, queues, warmups, ready: say_ready, done: say_done };
    (Worker { warmups: to_warm_up, ready, done }, post)
}

impl Worker {
    /// Has a warm-up request sent; `None` where the thread is gone.
    pub(crate) async fn warm_up(&self, prepared: Prepared, zero: Zero) -> Option<Measurement> {
        let (reply, measured) = oneshot::channel();
        self.warmups.send(WarmUp { prepared, zero, reply }).await.ok()?;
        measured.await.ok()
    }

    /// Ends warm-up, and waits until the thread has its first requests. Gives what starts it, unless it has failed, and
    /// what it then did.
    pub(crate) async fn ready(self) -> (Option<oneshot::Sender<Zero>>, oneshot::Receiver<Result<Shift, LoadError>>) {
        drop(self.warmups);
        (self.ready.await.ok(), self.done)
    }
}

/// Does an I/O thread's work on this thread.
pub(crate) fn work(post: Post) {
    let Post { common, queues, warmups, ready, done } = post;
    let cuts = common.cuts.clone();
    let runtime = Builder::new_current_thread().enable_all().build_local(LocalOptions::default());
    let shift = runtime.map_err(LoadError::Runtime).and_then(|runtime| {
        let shift = runtime.block_on(phases(common, queues, warmups, ready));
        // A name may still be looked up; nobody waits for it.
        runtime.shutdown_background();
        shift
    });
    if shift.is_err() {
        cuts.cut(Cut::Failed);
    }
    let _ = done.send(shift);
}

async fn phases(
    common: Common,
    requests: Vec<Requests>,
    mut warmups: mpsc::Receiver<WarmUp>,
    ready: oneshot::Sender<oneshot::Sender<Zero>>,
) -> Result<Shift, LoadError> {
    let receiver = Receiver::new(common.clock);
    let clients = common.arms.clone().map(|terms| Rc::new(Client::new(terms, Arc::clone(&receiver))));
    while let Some(WarmUp { prepared, zero, reply }) = warmups.recv().await {
        let client = clients.get(prepared.planned.arm)?;
        let start = Instant::now();
        let timing = Timing { zero, intended: zero.point(start), start, slot: None };
        // Each opens a connection for the pool, except where one serves all.
        let source = if client.pool.is_shared() { Source::Pool } else { Source::New };
        let _ = reply.send(measure(client, prepared, timing, source, None).await);
    }
    // The epoch waits for the text of each queue's first request.
    let mut queues = Vec::new();
    for mut rest in requests {
        let next = common.cuts.unless_cut(rest.recv()).await.ok().flatten().transpose()?;
        queues.push(Queue { next, rest });
    }
    let (start, started) = oneshot::channel();
    let _ = ready.send(start);
    // Without a word the run has ended before.
    let Ok(zero) = started.await else { return Ok(Shift::default()) };
    Measured { clients, receiver, common, zero }.run(queues).await
}

/// Requests that are sent one after another.
struct Queue {
    next: Option<Prepared>,
    rest: Requests,
}

/// The measured phase of one thread.
struct Measured {
    clients: Arms<Rc<Client>>,
    receiver: Arc<Receiver>,
    common: Common,
    zero: Zero,
}

impl Measured {
    async fn run(self, queues: Vec<Queue>) -> Result<Shift, LoadError> {
        let probe = Probe::default();
        let mut beside = JoinSet::new();
        beside.spawn_local(probe.watch());
        self.receiver.begin();
        let mut queues = queues.into_iter();
        // Not as tasks: what sends has its turn before all streams, however many are open.
        let (first, second) = tokio::try_join!(self.send(queues.next()), self.send(queues.next()))?;
        let read_delays = (self.common.clock == Stamping::Kernel).then(|| self.receiver.delays());
        Ok(Shift { last_end: first.max(second), loop_delays: probe.delays(), read_delays })
    }

    /// Sends a queue's requests, each when it is its turn, and gives the time when the last of them ended.
    async fn send(&self, queue: Option<Queue>) -> Result<Nanos, LoadError> {
        let Some(Queue { mut next, rest: mut requests }) = queue else { return Ok(Nanos::ZERO) };
        let Common { cuts, halt, .. } = &self.common;
        let mut alarm = Alarm::new().map_err(LoadError::Timer)?;
        let mut streams = JoinSet::new();
        let mut last_end = Nanos::ZERO;
        let mut begun = None;
        while let Some(prepared) = next {
            let pair = prepared.planned.pair;
            let turn = tokio::select! {
                biased;
                _ = cuts.until_cut() => break,
                // Of a pair that is begun, the second goes out too.
                () = halt.triggered(), if pair.is_none() || pair != begun => break,
                turn = self.turn(&prepared, &mut alarm) => turn?,
            };
            begun = pair;
            streams.spawn_local(self.follow(prepared, turn)?);
            while let Some(ended) = streams.try_join_next() {
                last_end = last_end.max(ended.map_err(|_| LoadError::Internal)?.unwrap_or_default());
            }
            next = cuts.unless_cut(requests.recv()).await.ok().flatten().transpose()?;
        }
        drop(requests);
        while let Some(ended) = streams.join_next().await {
            last_end = last_end.max(ended.map_err(|_| LoadError::Internal)?.unwrap_or_default());
        }
        Ok(last_end)
    }

    /// Waits until it is a request's turn: when it is due, or in a closed loop when there is a slot for it.
    async fn turn(&self, prepared: &Prepared, alarm: &mut Alarm) -> Result<Turn, LoadError> {
        let pace = self.common.pace;
        let (due, permit) = match pace {
            Pace::Open { .. } => (self.zero.instant(prepared.planned.at), None),
            // Nobody sends before the epoch.
            Pace::Closed { .. } => {
                let terms = self.common.arms.get(prepared.planned.arm)?;
                (self.zero.0, acquire(&terms.slots).await)
            }
        };
        alarm.wait_until(due).await.map_err(LoadError::Timer)?;
        let start = Instant::now();
        let intended = match pace {
            Pace::Open { .. } => prepared.planned.at,
            Pace::Closed { .. } => self.zero.point(start),
        };
        Ok(Turn { timing: Timing { zero: self.zero, intended, start, slot: None }, permit })
    }

    /// Follows one request to its end, and gives the time of it; `None` where it was not sent any more.
    fn follow(
        &self,
        prepared: Prepared,
        turn: Turn,
    ) -> Result<impl Future<Output = Option<Nanos>> + 'static, LoadError> {
        let client = Rc::clone(self.clients.get(prepared.planned.arm)?);
        let common = self.common.clone();
        Ok(async move {
            let Turn { mut timing, mut permit } = turn;
            let terms = &client.terms;
            if let Pace::Open { cap: Some(_), .. } = common.pace {
                tokio::select! {
                    biased;
                    // What was cut while it waited ends at once.
                    _ = common.cuts.until_cut() => {}
                    () = common.halt.triggered() => return None,
                    slot = acquire(&terms.slots) => {
                        permit = slot;
                        timing.slot = Some(Instant::now());
                    }
                }
            }
            let source = match terms.connections {
                Connections::Pooled => Source::Pool,
                Connections::Fresh => Source::New,
            };
            common.counts.sent.fetch_add(1, Ordering::Relaxed);
            common.counts.open.fetch_add(1, Ordering::Relaxed);
            let Measurement { sample, text, .. } = measure(&client, prepared, timing, source, permit).await;
            let end = timing.zero.point(Instant::now());
            common.counts.open.fetch_sub(1, Ordering::Relaxed);
            let text = text.filter(|_| sample.outcome == Outcome::Ok);
            let text = text.and_then(|text| terms.texts.as_ref()?.keep(text));
            let _ = common.notes.send(Note::Ended(Box::new(sample), text)).await;
            Some(end)
        })
    }
}

/// A request whose turn has come.
struct Turn {
    timing: Timing,
    permit: Option<OwnedSemaphorePermit>,
}

/// Waits for a slot, in the order of asking.
async fn acquire(slots: &Option<Arc<Semaphore>>) -> Option<OwnedSemaphorePermit> {
    // It is never closed.
    Arc::clone(slots.as_ref()?).acquire_owned().await.ok()
}
