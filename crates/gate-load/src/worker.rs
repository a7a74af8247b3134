//! An I/O thread: its connections, its alarm, its share of the requests.
//!
//! Requests are dealt to the threads in turn, warm-up's too, so that each has its share of the opened connections. Each
//! thread keeps the times of its own requests: none waits for another thread to wake. Each arm has its own connections
//! on each thread, and its own slots. A conversation stays on the thread of its first turn.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use gate_model::{Connections, Footprint, Histogram, Nanos, Outcome, Pace, PlannedRequest, Stamping};
use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};
use tokio::task::JoinSet;

use crate::abort::Aborts;
use crate::alarm::Alarm;
use crate::arms::Arms;
use crate::budget::{Claim, Ledger};
use crate::client::{Client, Cut, Cuts, Terms};
use crate::clock::Zero;
use crate::conductor::Note;
use crate::exchange::{Source, Timing, measure};
use crate::footprint::Resources;
use crate::health::Probe;
use crate::receive::Receiver;
use crate::record::{Held, Measurement};
use crate::requests::Prepared;
use crate::turns::{Conversation, NextTurn};
use crate::wake::Wakeups;
use crate::{LoadError, Stop};

/// How many measured requests were sent, and how many of them are open.
#[derive(Default)]
pub(crate) struct Counts {
    pub(crate) sent: AtomicU32,
    pub(crate) open: AtomicU32,
    /// How many connections they opened.
    pub(crate) connections: AtomicU32,
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
    pub(crate) aborts: Aborts,
    pub(crate) ledger: Arc<Ledger>,
    /// Who writes later turns; absent where there are none.
    pub(crate) turns: Option<mpsc::Sender<NextTurn>>,
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
    claim: Claim,
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
    /// What the process took meanwhile.
    pub(crate) footprint: Footprint,
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
    pub(crate) async fn warm_up(&self, prepared: Prepared, claim: Claim, zero: Zero) -> Option<Measurement> {
        let (reply, measured) = oneshot::channel();
        self.warmups.send(WarmUp { prepared, claim, zero, reply }).await.ok()?;
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
    while let Some(WarmUp { prepared, claim, zero, reply }) = warmups.recv().await {
        let client = clients.get(prepared.planned.arm)?;
        let start = Instant::now();
        let timing = Timing { zero, intended: zero.point(start), start, slot: None };
        // Each opens a connection for the pool, except where one serves all.
        let source = if client.pool.is_shared() { Source::Pool } else { Source::New };
        let _ = reply.send(measure(client, &prepared, timing, source, Held { slot: None, claim }).await);
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
    let wakeups = Wakeups::default();
    Rc::new(Measured { clients, receiver, common, zero, wakeups }).run(queues).await
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
    /// Turns that wait until they are due.
    wakeups: Wakeups,
}

/// A request that another turn follows, and was answered.
struct Answered {
    request: PlannedRequest,
    conversation: Conversation,
    /// When its answer ended.
    at: Nanos,
}

impl Measured {
    async fn run(self: Rc<Self>, queues: Vec<Queue>) -> Result<Shift, LoadError> {
        let (probe, resources) = (Probe::default(), Resources::now());
        let mut beside = JoinSet::new();
        beside.spawn_local(probe.watch());
        if self.common.turns.is_some() {
            let (measured, alarm) = (Rc::clone(&self), Alarm::new().map_err(LoadError::Timer)?);
            beside.spawn_local(async move { measured.wakeups.ring(alarm).await });
        }
        self.receiver.begin();
        let mut queues = queues.into_iter();
        // Not as tasks: what sends has its turn before all streams, however many are open.
        let (first, second) = tokio::try_join!(self.send(queues.next()), self.send(queues.next()))?;
        let read_delays = (self.common.clock == Stamping::Kernel).then(|| self.receiver.delays());
        let (last_end, loop_delays) = (first.max(second), probe.delays());
        // While the connections stand.
        Ok(Shift { last_end, loop_delays, read_delays, footprint: resources.footprint(0, 0) })
    }

    /// Sends a queue's requests, each when it is its turn, and gives the time when the last of them ended.
    async fn send(self: &Rc<Self>, queue: Option<Queue>) -> Result<Nanos, LoadError> {
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
            streams.spawn_local(Rc::clone(self).follow(prepared, turn));
            while let Some(ended) = streams.try_join_next() {
                last_end = last_end.max(ended.map_err(|_| LoadError::Internal)??);
            }
            next = cuts.unless_cut(requests.recv()).await.ok().flatten().transpose()?;
        }
        drop(requests);
        while let Some(ended) = streams.join_next().await {
            last_end = last_end.max(ended.map_err(|_| LoadError::Internal)??);
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

    /// Follows a request to its end, and the turns after it to theirs. Gives the time of the last end.
    async fn follow(self: Rc<Self>, mut prepared: Prepared, mut turn: Turn) -> Result<Nanos, LoadError> {
        let mut last_end = Nanos::ZERO;
        while let Some((end, answered)) = self.request(prepared, turn).await? {
            last_end = last_end.max(end);
            let Some(answered) = answered else { break };
            // In a box: most requests have no turn after them.
            let Some(next) = Box::pin(self.next_turn(answered)).await? else { break };
            (prepared, turn) = next;
        }
        Ok(last_end)
    }

    /// Sends one request, and gives the time of its end; `None` where it was not sent any more.
    async fn request(&self, prepared: Prepared, turn: Turn) -> Result<Option<(Nanos, Option<Answered>)>, LoadError> {
        let client = self.clients.get(prepared.planned.arm)?;
        let (common, terms) = (&self.common, &client.terms);
        let Turn { mut timing, permit: mut slot } = turn;
        if let Pace::Open { cap: Some(_), .. } = common.pace {
            tokio::select! {
                biased;
                // What was cut while it waited ends at once.
                _ = common.cuts.until_cut() => {}
                () = common.halt.triggered() => return Ok(None),
                free = acquire(&terms.slots) => {
                    slot = free;
                    timing.slot = Some(Instant::now());
                }
            }
        }
        let claim = match common.ledger.claim(&prepared.planned, prepared.context) {
            Ok(claim) => claim,
            Err(reason) => {
                common.aborts.give_up(reason);
                return Ok(None);
            }
        };
        let source = match terms.connections {
            Connections::Pooled => Source::Pool,
            Connections::Fresh => Source::New,
        };
        common.counts.sent.fetch_add(1, Ordering::Relaxed);
        common.counts.open.fetch_add(1, Ordering::Relaxed);
        let measurement = measure(client, &prepared, timing, source, Held { slot, claim }).await;
        let end = timing.zero.point(Instant::now());
        common.counts.open.fetch_sub(1, Ordering::Relaxed);
        let Measurement { sample, text, context, quota, .. } = measurement;
        common.counts.connections.fetch_add(u32::from(sample.connected.is_some()), Ordering::Relaxed);
        common.aborts.ended(&sample, quota);
        let (mut answered, mut uncounted) = (None, None);
        if let Some(text) = text.filter(|_| sample.outcome == Outcome::Ok) {
            if let Some(conversation) = prepared.conversation {
                let mut conversation = *conversation;
                conversation.answers.push(text.visible);
                conversation.context = context;
                answered = Some(Answered { request: prepared.planned, conversation, at: sample.end.unwrap_or(end) });
            }
            let texts = terms.texts.as_ref().filter(|_| text.is_uncounted);
            uncounted = texts.and_then(|texts| texts.keep(text.generated));
        }
        let _ = common.notes.send(Note::Ended(Box::new(sample), uncounted)).await;
        Ok(Some((end, answered)))
    }

    /// Has the next turn written, and waits until it is due and, in a closed loop, has a slot; `None` where it is not
    /// sent any more.
    async fn next_turn(&self, answered: Answered) -> Result<Option<(Prepared, Turn)>, LoadError> {
        let Common { cuts, halt, turns, pace, .. } = &self.common;
        let Answered { request, conversation, at } = answered;
        let turn = async {
            let (reply, written) = oneshot::channel();
            let asked = NextTurn { after: request, conversation, reply };
            turns.as_ref().ok_or(LoadError::Internal)?.send(asked).await.map_err(|_| LoadError::Internal)?;
            let prepared = written.await.map_err(|_| LoadError::Internal)??;
            let intended = at + prepared.planned.at;
            self.wakeups.until(self.zero.instant(intended)).await;
            let permit = match pace {
                Pace::Open { .. } => None,
                Pace::Closed { .. } => acquire(&self.common.arms.get(request.arm)?.slots).await,
            };
            let start = Instant::now();
            let intended = match pace {
                Pace::Open { .. } => intended,
                Pace::Closed { .. } => self.zero.point(start),
            };
            Ok(Some((prepared, Turn { timing: Timing { zero: self.zero, intended, start, slot: None }, permit })))
        };
        tokio::select! {
            biased;
            _ = cuts.until_cut() => Ok(None),
            () = halt.triggered() => Ok(None),
            turn = turn => turn,
        }
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
