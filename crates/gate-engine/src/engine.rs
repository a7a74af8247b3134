//! What the requests of an engine share: its slots, its queue and its prefix cache.

use std::collections::VecDeque;

use gate_model::{Drift, EngineParams, Nanos, Scaling};
use serde::{Deserialize, Serialize};

use crate::prefix::Blocks;
use crate::script::grown;

/// The memory that an engine reports at its epoch, in bytes: 4 GiB.
const MEMORY: f64 = 4.0 * 1024.0 * 1024.0 * 1024.0;

/// How many backlogs are remembered; when there are twice as many the shorter half is forgotten.
const MOST_BACKLOGS: usize = 1_000;

/// The state that requests share, without a clock: whoever drives it says what time it is, and time never goes back.
///
/// - A request that finds no free slot waits; who waited longest is served first. It has its slot until it
///   [leaves](Self::leave).
/// - Where [`Scaling::queue`] requests wait, [`Scaling::step`] slots are asked for, up to [`Scaling::max_slots`], and
///   serve after [`Scaling::cold_start`]; until then no more are asked for. They stay.
/// - A prompt is read when its request is served, for as long as it has tokens that the prefix cache does not hold.
///
/// ```
/// use gate_engine::Engine;
/// use gate_model::{EngineParams, Nanos};
///
/// let mut engine = Engine::new(&EngineParams { slots: Some(1), ..EngineParams::default() });
/// engine.arrive(Nanos(0), 1);
/// engine.arrive(Nanos(5), 2);
/// assert_eq!((engine.start(Nanos(5)), engine.start(Nanos(5))), (Some(1), None));
/// engine.leave(Nanos(9), 1);
/// assert_eq!(engine.start(Nanos(9)), Some(2));
/// ```
#[derive(Clone, Debug)]
pub struct Engine {
    slots: Option<u32>,
    scaling: Option<Scaling>,
    /// When the slots that were asked for serve.
    growth: Option<Nanos>,
    running: u32,
    /// In order of arrival.
    waiting: VecDeque<u64>,
    /// Tokens a second.
    prefill: Option<f64>,
    block_tokens: u32,
    blocks: Option<Blocks>,
    queries: u64,
    hits: u64,
    drift: Drift,
    backlog: Option<Backlog>,
    backlogs: Vec<Backlog>,
}

/// A stretch of time in which requests waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Backlog {
    /// When the first of them began to wait.
    pub from: Nanos,
    /// When none waited any more: the last of them was served, or gave up; absent while some wait.
    pub to: Option<Nanos>,
    /// How many waited at most.
    pub most: u32,
}

impl Backlog {
    fn lasts(&self) -> Nanos {
        self.to.map_or(Nanos(i64::MAX), |to| to - self.from)
    }
}

/// The reading of one prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// Tokens that the prefix cache held; absent where there is none.
    pub cached: Option<u32>,
    /// How long the others take.
    pub takes: Nanos,
}

impl Engine {
    /// An engine that nothing was asked of yet.
    #[must_use]
    pub fn new(params: &EngineParams) -> Self {
        Self {
            slots: params.slots.map(|slots| slots.max(1)),
            scaling: params.scaling,
            growth: None,
            running: 0,
            waiting: VecDeque::new(),
            prefill: params.prefill.filter(|rate| *rate > 0.0),
            block_tokens: params.prefix_cache.map_or(0, |cache| cache.block_tokens.max(1)),
            blocks: params.prefix_cache.map(Blocks::new),
            queries: 0,
            hits: 0,
            drift: params.drift,
            backlog: None,
            backlogs: Vec::new(),
        }
    }

    /// A request arrives. Tickets ascend, and none is used twice.
    pub fn arrive(&mut self, now: Nanos, ticket: u64) {
        self.waiting.push_back(ticket);
        self.account(now);
    }

    /// The next request that is served from now on; to be asked again until there is none.
    pub fn start(&mut self, now: Nanos) -> Option<u64> {
        if !self.has_room() {
            return None;
        }
        let ticket = self.waiting.pop_front()?;
        self.running = self.running.saturating_add(1);
        self.account(now);
        Some(ticket)
    }

    /// A request has all its tokens, or its client is gone: it gives its slot back, or waits no more.
    pub fn leave(&mut self, now: Nanos, ticket: u64) {
        match self.waiting.binary_search(&ticket) {
            Ok(place) => drop(self.waiting.remove(place)),
            Err(_) => self.running = self.running.saturating_sub(1),
        }
        self.account(now);
    }

    /// When it changes by itself, where it does: [`Self::grow`] is due then.
    #[must_use]
    pub fn next_event(&self) -> Option<Nanos> {
        self.growth
    }

    /// The slots that are due by now begin to serve.
    pub fn grow(&mut self, now: Nanos) {
        if self.growth.is_none_or(|due| due > now) {
            return;
        }
        self.growth = None;
        if let (Some(slots), Some(scaling)) = (&mut self.slots, self.scaling) {
            *slots = slots.saturating_add(scaling.step.max(1)).min(scaling.max_slots.max(*slots));
        }
        self.account(now);
    }

    /// Reads a prompt of so many tokens whose whole blocks are these ([`Self::block_tokens`] each).
    pub fn read(&mut self, blocks: &[u64], tokens: u32) -> Reading {
        let cached = self.blocks.as_mut().map(|held| {
            let cached = held.held(blocks, tokens);
            held.hold(blocks);
            cached
        });
        self.queries = self.queries.saturating_add(u64::from(tokens));
        self.hits = self.hits.saturating_add(u64::from(cached.unwrap_or(0)));
        let left = f64::from(tokens.saturating_sub(cached.unwrap_or(0)));
        Reading { cached, takes: self.prefill.map_or(Nanos::ZERO, |rate| Nanos::from_secs_f64(left / rate)) }
    }

    /// Remembers what is known after an answer: these are the whole blocks of the prompt and the answer.
    pub fn remember(&mut self, blocks: &[u64]) {
        if let Some(held) = &mut self.blocks {
            held.hold(blocks);
        }
    }

    /// Tokens of a block; `None` where there is no prefix cache, and no block need be made.
    #[must_use]
    pub fn block_tokens(&self) -> Option<u32> {
        self.blocks.is_some().then_some(self.block_tokens)
    }

    /// How many requests wait.
    #[must_use]
    pub fn waiting(&self) -> u32 {
        u32::try_from(self.waiting.len()).unwrap_or(u32::MAX)
    }

    /// How many are served at once by now; `None`: as many as come.
    #[must_use]
    pub fn slots(&self) -> Option<u32> {
        self.slots
    }

    /// The stretches of time in which requests waited, in order: all of them while they are under 2,000, else the
    /// longest.
    #[must_use]
    pub fn backlogs(&self) -> Vec<Backlog> {
        self.backlogs.iter().copied().chain(self.backlog).collect()
    }

    /// What it reports of itself so long after its epoch, under the names of [`gate_model::ServerMetric::COMMON`].
    #[must_use]
    pub fn gauges(&self, since: Nanos) -> Vec<(&'static str, f64)> {
        let (running, waiting) = (f64::from(self.running), f64::from(self.waiting()));
        let mut gauges = Vec::with_capacity(8);
        gauges.extend(self.slots.map(|slots| ("kv_cache_usage", running / f64::from(slots))));
        gauges.extend([("running", running), ("waiting", waiting)]);
        if self.blocks.is_some() {
            gauges.extend([("prefix_cache_queries", self.queries as f64), ("prefix_cache_hits", self.hits as f64)]);
        }
        let memory = MEMORY * grown(self.drift.memory, since);
        gauges.extend([("preemptions", 0.0), ("memory", memory.round()), ("connections", running + waiting)]);
        gauges
    }

    fn has_room(&self) -> bool {
        self.slots.is_none_or(|slots| self.running < slots)
    }

    /// After any change: whether more slots are to be asked for, and whether a backlog begins or ends. Requests that
    /// are about to be served wait for nothing.
    fn account(&mut self, now: Nanos) {
        let waiting = if self.has_room() {
            let room = self.slots.map_or(u32::MAX, |slots| slots - self.running);
            self.waiting().saturating_sub(room)
        } else {
            self.waiting()
        };
        if let (Some(slots), Some(scaling), None) = (self.slots, self.scaling, self.growth)
            && waiting >= scaling.queue.max(1)
            && slots < scaling.max_slots
        {
            self.growth = Some(now + scaling.cold_start.max(Nanos::ZERO));
        }
        match (&mut self.backlog, waiting) {
            (None, 0) => {}
            (None, most) => self.backlog = Some(Backlog { from: now, to: None, most }),
            (Some(_), 0) => {
                let over = self.backlog.take().map(|backlog| Backlog { to: Some(now), ..backlog });
                // One that began and ended at one instant was none.
                self.backlogs.extend(over.filter(|backlog| backlog.from < now));
                self.forget();
            }
            (Some(backlog), waiting) => backlog.most = backlog.most.max(waiting),
        }
    }

    fn forget(&mut self) {
        if self.backlogs.len() >= 2 * MOST_BACKLOGS {
            self.backlogs.sort_by_key(|backlog| std::cmp::Reverse(backlog.lasts()));
            self.backlogs.truncate(MOST_BACKLOGS);
            self.backlogs.sort_by_key(|backlog| backlog.from);
        }
    }
}

#[cfg(test)]
mod tests;
