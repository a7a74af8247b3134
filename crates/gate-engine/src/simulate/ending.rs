//! How a request ends for the client.

use gate_model::{Delivery, Nanos, Outcome, Timeouts};

use crate::fate::Fate;
use crate::script::{EventKind, Script};

/// How a request ends for the client.
#[derive(Clone, Copy)]
pub(super) struct Ending {
    pub(super) outcome: Outcome,
    /// From the request's start.
    pub(super) at: Nanos,
    /// Whether status and headers arrive.
    pub(super) answered: bool,
    /// How many of the script's events arrive.
    pub(super) events: usize,
}

/// One whole body shows neither its first token nor its pauses, so that only `total` applies to it.
pub(super) fn timeouts(timeouts: Timeouts, delivery: Delivery) -> Timeouts {
    const NEVER: Nanos = Nanos(i64::MAX);
    match delivery {
        Delivery::Streamed => timeouts,
        Delivery::Whole => Timeouts { first_token: NEVER, stall: NEVER, ..timeouts },
    }
}

/// The earliest of the script's own end, the engine's death (from the request's start) and the client's deadlines.
/// Whatever cuts a script keeps the events strictly before it; at the start itself it leaves nothing, not even a 500.
pub(super) fn ending(script: &Script, timeouts: &Timeouts, death: Option<Nanos>) -> Ending {
    let silent_from = |point: Nanos| point + timeouts.stall;
    let mut content = script.events.iter().filter(|event| event.kind != EventKind::Role).map(|event| event.at);
    let (first, last) = (content.clone().next(), content.clone().next_back());
    let (own, own_end) = match (script.fate, last) {
        (Fate::Complete | Fate::SlowHeaders, _) => (Outcome::Ok, script.end),
        (Fate::Http401, _) => (Outcome::Http4xx, script.end),
        (Fate::Http429, _) => (Outcome::Http429, script.end),
        (Fate::Http500, _) => (Outcome::Http5xx, script.end),
        (Fate::StreamError, _) => (Outcome::StreamError, script.end),
        (Fate::Reset | Fate::Dead, _) => (Outcome::Reset, script.end),
        (Fate::Truncate, _) => (Outcome::Truncated, script.end),
        (Fate::Empty, _) => (Outcome::Empty, script.end),
        (Fate::Html200, _) => (Outcome::Decode, script.end),
        (Fate::Stall, Some(last)) => (Outcome::TimeoutStall, silent_from(last)),
        (Fate::Stall, None) => (Outcome::TimeoutFirstToken, timeouts.first_token),
    };

    let late = first.unwrap_or(own_end) > timeouts.first_token;
    let stalled = content.next().and_then(|first| {
        content
            .chain([own_end])
            .scan(first, |last, at| Some((std::mem::replace(last, at), at)))
            .find(|(last, at)| *at > silent_from(*last))
            .map(|(last, _)| silent_from(last))
    });
    let cuts = [
        (death, Outcome::Reset),
        (late.then_some(timeouts.first_token), Outcome::TimeoutFirstToken),
        (stalled, Outcome::TimeoutStall),
        (Some(timeouts.total), Outcome::TimeoutTotal),
    ];
    let cut = cuts
        .into_iter()
        .filter_map(|(at, outcome)| at.map(|at| (at, outcome)))
        .min_by_key(|(at, _)| *at)
        .filter(|(at, _)| *at < own_end || *at == Nanos::ZERO);
    match cut {
        None => Ending { outcome: own, at: own_end, answered: script.headers <= own_end, events: script.events.len() },
        Some((at, outcome)) => {
            let events = script.events.partition_point(|event| event.at < at);
            Ending { outcome, at, answered: script.headers < at, events }
        }
    }
}
