//! What the engine does with one request.

use gate_model::{EngineParams, Nanos, WarmingUp};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::Fate;
use crate::fate::fate;
use crate::latency::Draw;

/// What an event carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// The role of the answer, without content.
    Role,
    /// This many tokens of content.
    Tokens(u32),
}

/// One event of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScriptEvent {
    /// When it is due, from the request's arrival.
    pub at: Nanos,
    /// What it carries.
    pub kind: EventKind,
}

/// What the engine does with one request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Script {
    /// How it ends.
    pub fate: Fate,
    /// When status and headers are due, from the request's arrival: at once, but for a [`Fate::SlowHeaders`].
    pub headers: Nanos,
    /// The events sent, with their times ascending; none where the answer is no stream at all.
    pub events: Vec<ScriptEvent>,
    /// When the last thing happens, from the request's arrival: the whole answer where it is no stream, the end that
    /// follows the last token of a [`Fate::Complete`] at once, the moment silence begins for a [`Fate::Stall`];
    /// for the other faults the moment the next event would have been due.
    pub end: Nanos,
}

impl Script {
    /// The same with its first token, and all that follows, so much later: it waited, or its prompt was long. Status,
    /// headers and role are as early as before, and so is an answer that comes at once.
    #[must_use]
    pub fn delayed(mut self, by: Nanos) -> Self {
        if by > Nanos::ZERO && !self.fate.is_at_once() {
            let tokens = self.events.iter_mut().filter(|event| event.kind != EventKind::Role);
            tokens.for_each(|event| event.at = event.at + by);
            self.end = self.end + by;
        }
        self
    }

    /// How many tokens the events carry.
    #[must_use]
    pub fn tokens(&self) -> u32 {
        self.events.iter().map(|event| event.kind.tokens()).sum()
    }
}

impl EventKind {
    /// How many tokens it carries.
    #[must_use]
    pub fn tokens(self) -> u32 {
        match self {
            Self::Role => 0,
            Self::Tokens(tokens) => tokens,
        }
    }
}

/// What the engine does with its `number`-th request (from 0, warm-up requests included) that asks for
/// `output_tokens` tokens (0 counts as 1): drawn from (`params.seed`, `number`) alone.
///
/// - The first content event is due after a draw of `ttft` and carries one token, as engines that group their
///   output do; each later one carries up to `tokens_per_chunk` and is due one draw of `tpot` per token after the
///   one before, so grouping never changes a request's time per token.
/// - The role-only event is due at `role_chunk`, never after the first content event.
/// - [`EngineParams::warming_up`] multiplies the draws of `ttft` and `tpot` of the first requests: by `slowdown` for
///   request 0, and by less from one to the next, linearly down to 1 for request `requests`.
/// - A fault by script happens to the requests `from..=to`, counted from 1, warm-up included ([`crate::after_warmup`]
///   shifts those that count measured requests); of several that fit the first. Other fates are independent draws: a
///   uniform number is held against the cumulative rates of [`gate_model::Faults`] in the order of its fields, so
///   rates that sum to more than 1 starve the later ones.
/// - A fault inside the stream happens after a uniformly drawn number of content events: at least one, and before
///   the last (after it where it is the only one, so before the end all the same). It changes nothing before it:
///   with other faults the same request has the same times. A [`Fate::Empty`] ends when its first token was due, and
///   a [`Fate::SlowHeaders`] is a [`Fate::Complete`] that is late by `slow_headers` from the headers on.
///
/// It is served at once, by an engine that has just begun ([`script_at`] serves it later).
#[must_use]
pub fn script(params: &EngineParams, number: u32, output_tokens: u32) -> Script {
    script_at(params, number, output_tokens, Nanos::ZERO)
}

/// [`script`] of a request that arrives so long after the engine's epoch: what drifts has grown by then, in a straight
/// line, for the whole request.
#[must_use]
pub fn script_at(params: &EngineParams, number: u32, output_tokens: u32, since: Nanos) -> Script {
    let mut random = ChaCha8Rng::seed_from_u64(params.seed);
    random.set_stream(u64::from(number));
    let fate = fate(params, number, random.random());
    let fault_position: f64 = random.random();
    if fate.is_at_once() {
        return Script { fate, headers: Nanos::ZERO, events: Vec::new(), end: Nanos::ZERO };
    }

    let output_tokens = output_tokens.max(1);
    let per_event = params.tokens_per_chunk.max(1);
    let content_events = 1 + (output_tokens - 1).div_ceil(per_event);
    let kept = match fate {
        Fate::Complete | Fate::SlowHeaders => content_events,
        Fate::Empty => 0,
        // Truncating a float in 0..1 times a u32 stays below that u32.
        _ => 1 + (fault_position * f64::from(content_events.saturating_sub(1))) as u32,
    };

    let headers = if fate == Fate::SlowHeaders { params.slow_headers.max(Nanos::ZERO) } else { Nanos::ZERO };
    let slowness = params.warming_up.map_or(1.0, |warming_up| slowness(warming_up, number));
    let slower = |drift: f64| slowness * grown(drift, since);
    let to_first = Draw::new(params.ttft, slower(params.drift.ttft));
    let between = Draw::new(params.tpot, slower(params.drift.tpot));
    let first = headers + to_first.sample(&mut random);
    let mut events = Vec::with_capacity(kept as usize + 1);
    let role = params.role_chunk.map(|due| ScriptEvent { at: (headers + due).min(first), kind: EventKind::Role });
    events.extend(role);
    if kept == 0 {
        return Script { fate, headers, events, end: first };
    }
    events.push(ScriptEvent { at: first, kind: EventKind::Tokens(1) });
    let (mut at, mut left) = (first, output_tokens - 1);
    let mut next = || {
        let tokens = left.min(per_event);
        at = (0..tokens).fold(at, |at, _| at + between.sample(&mut random));
        left -= tokens;
        ScriptEvent { at, kind: EventKind::Tokens(tokens) }
    };
    events.extend((1..kept).map(|_| next()));
    let end = match fate {
        Fate::StreamError | Fate::Reset | Fate::Truncate => next().at,
        _ => events.last().map_or(first, |event| event.at),
    };
    Script { fate, headers, events, end }
}

/// What a drift of this share per hour has made of 1 in this time; never below 0.
pub(crate) fn grown(drift: f64, since: Nanos) -> f64 {
    (1.0 + drift * since.max(Nanos::ZERO).as_secs_f64() / 3_600.0).max(0.0)
}

/// How many times slower than a warm engine this one serves its `number`-th request, from 0.
fn slowness(warming_up: WarmingUp, number: u32) -> f64 {
    let left = f64::from(warming_up.requests.saturating_sub(number)) / f64::from(warming_up.requests.max(1));
    1.0 + (warming_up.slowdown - 1.0).max(0.0) * left
}

#[cfg(test)]
mod tests;
