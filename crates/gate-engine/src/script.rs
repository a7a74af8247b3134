//! What the engine does with one request.

use gate_model::{EngineParams, Faults, Nanos};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::latency::Draw;

/// How the engine ends a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// All tokens, a finish reason, the end.
    Complete,
    /// Status 500 at once.
    #[serde(rename = "http_500")]
    Http500,
    /// Some tokens, then an error event inside the 200 stream.
    StreamError,
    /// Some tokens, then silence on an open connection.
    Stall,
    /// Some tokens, then the connection is reset.
    Reset,
    /// Some tokens, then the stream is closed with neither end nor finish reason.
    Truncate,
    /// The engine died before or while it served this request. [`script`] never says so: dying depends on the
    /// other requests.
    Dead,
}

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
    /// The events sent, with their times ascending; none for [`Fate::Http500`].
    pub events: Vec<ScriptEvent>,
    /// When the last thing happens, from the request's arrival: the status of an [`Fate::Http500`], the end that
    /// follows the last token of a [`Fate::Complete`] at once, the moment silence begins for a [`Fate::Stall`];
    /// for the other faults the moment the next event would have been due.
    pub end: Nanos,
}

impl Script {
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
/// - Fates are independent draws: a uniform number is held against the cumulative rates of [`Faults`] in the order
///   of its fields, so rates that sum to more than 1 starve the later ones.
/// - A fault inside the stream happens after a uniformly drawn number of content events: at least one, and before
///   the last (after it where it is the only one, so before the end all the same). It changes nothing before it:
///   with other rates the same request has the same times.
#[must_use]
pub fn script(params: &EngineParams, number: u32, output_tokens: u32) -> Script {
    let mut random = ChaCha8Rng::seed_from_u64(params.seed);
    random.set_stream(u64::from(number));
    let fate = fate(&params.faults, random.random());
    let fault_position: f64 = random.random();
    if fate == Fate::Http500 {
        return Script { fate, events: Vec::new(), end: Nanos::ZERO };
    }

    let output_tokens = output_tokens.max(1);
    let per_event = params.tokens_per_chunk.max(1);
    let content_events = 1 + (output_tokens - 1).div_ceil(per_event);
    let kept = match fate {
        Fate::Complete => content_events,
        // Truncating a float in 0..1 times a u32 stays below that u32.
        _ => 1 + (fault_position * f64::from(content_events.saturating_sub(1))) as u32,
    };

    let first = Draw::new(params.ttft).sample(&mut random);
    let between = Draw::new(params.tpot);
    let mut events = Vec::with_capacity(kept as usize + 1);
    events.extend(params.role_chunk.map(|due| ScriptEvent { at: due.min(first), kind: EventKind::Role }));
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
    Script { fate, events, end }
}

/// The fate that a uniform number in 0..1 means.
fn fate(faults: &Faults, uniform: f64) -> Fate {
    let rates = [
        (faults.http_500, Fate::Http500),
        (faults.stream_error, Fate::StreamError),
        (faults.stall, Fate::Stall),
        (faults.reset, Fate::Reset),
        (faults.truncate, Fate::Truncate),
    ];
    let mut below = 0.0;
    for (rate, fate) in rates {
        below += rate;
        if uniform < below {
            return fate;
        }
    }
    Fate::Complete
}

#[cfg(test)]
mod tests;
