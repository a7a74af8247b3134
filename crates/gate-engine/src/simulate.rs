//! A whole run in virtual time.

use gate_model::{
    Delivery, EndReason, EngineParams, Health, Nanos, Outcome, Plan, PlannedRequest, Run, RunEnd, RunHeader, Sample,
    Timeouts, Usage,
};

use crate::delivery::delivered;
use crate::fate::{Fate, after_warmup};
use crate::script::{EventKind, Script, script};

/// A whole run in virtual time: every request of the plan, with exact times and a client in perfect health.
///
/// - Requests are numbered in the order of their arrival, warm-up requests first, and play [`script`] of that number.
///   Warm-up requests follow one another at once and end at the run's epoch; the measured ones start when they are
///   due, on open connections. Faults by script count the measured ones, so no warm-up request has one.
/// - Answers come as `header.spec.target.delivery` says. Streams are held back by a proxy of `buffer_bytes`, counted by
///   [`EventKind::nominal_bytes`]; of one body only the end is known, as `last_token`.
/// - The deadlines of `header.spec.timeouts` for the first token, for stalls and for the whole request apply.
/// - The engine dies when `dies_after` measured requests have arrived: what is open at that instant (that last
///   request included) is [`Outcome::Reset`], what comes later is [`Outcome::Connect`]. With 0 it was never there.
/// - Usage is the plan's input length and the tokens sent, for answers that end well. There are no bytes, so
///   `body_bytes` is 0, and `ready_after` is over before the run begins. The whole plan is played: looks are the
///   reader's business.
#[must_use]
pub fn simulate(params: &EngineParams, plan: &Plan, header: RunHeader) -> Run {
    let timeouts = header.spec.timeouts;
    let first_number = u32::try_from(plan.warmup.len()).unwrap_or(u32::MAX);
    let all = after_warmup(params, first_number);
    let delivery = header.spec.target.delivery;
    let script_of = |number, request: &PlannedRequest| {
        delivered(script(&all, number, request.output_tokens), delivery, params.buffer_bytes)
    };
    let scripts: Vec<Script> =
        plan.warmup.iter().zip(0..).map(|(request, number)| script_of(number, request)).collect();
    let ends: Vec<Ending> = scripts.iter().map(|script| ending(script, &timeouts, None)).collect();
    let mut start = ends.iter().fold(Nanos::ZERO, |start, ending| start - ending.at);
    let warmup = plan
        .warmup
        .iter()
        .zip(scripts.iter().zip(ends))
        .map(|(request, (script, ending))| {
            let sample = play(request, script, start, ending, delivery);
            start = start + ending.at;
            sample
        })
        .collect();

    let death = params.dies_after.map(|count| Death::of(plan, count));
    let samples: Vec<Sample> = (first_number..)
        .zip(&plan.requests)
        .enumerate()
        .map(|(position, (number, request))| match death {
            Some(death) if position >= death.arrived => refused(request),
            _ => {
                let script = script_of(number, request);
                let ending = ending(&script, &timeouts, death.map(|death| death.at - request.at));
                play(request, &script, request.at, ending, delivery)
            }
        })
        .collect();

    let end = RunEnd {
        reason: EndReason::Completed,
        sent: u32::try_from(samples.len()).unwrap_or(u32::MAX),
        at: samples.iter().filter_map(|sample| sample.end).max().unwrap_or_default(),
        switched_to: None,
        health: Health { cpu_share: Some(0.0), loop_delay_p95: Some(Nanos::ZERO) },
    };
    Run { header, warmup, samples, end: Some(end) }
}

/// When the engine dies.
#[derive(Clone, Copy)]
struct Death {
    /// How many measured requests arrive before it, or with it.
    arrived: usize,
    /// The arrival of the last of them.
    at: Nanos,
}

impl Death {
    fn of(plan: &Plan, count: u32) -> Self {
        let arrived = count as usize;
        let last = arrived.checked_sub(1).and_then(|last| plan.requests.get(last));
        // Without such a request the engine outlives the plan, or (with 0) no request is ever open.
        let at = last.map_or(Nanos(i64::MAX), |request| request.at);
        Self { arrived, at }
    }
}

/// How a request ends for the client.
#[derive(Clone, Copy)]
struct Ending {
    outcome: Outcome,
    /// From the request's start.
    at: Nanos,
    /// Whether status and headers arrive.
    answered: bool,
    /// How many of the script's events arrive.
    events: usize,
}

/// The earliest of the script's own end, the engine's death (from the request's start) and the client's deadlines.
/// Whatever cuts a script keeps the events strictly before it; at the start itself it leaves nothing, not even a 500.
fn ending(script: &Script, timeouts: &Timeouts, death: Option<Nanos>) -> Ending {
    let silent_from = |point: Nanos| point + timeouts.stall;
    let mut content = script.events.iter().filter(|event| event.kind != EventKind::Role).map(|event| event.at);
    let (first, last) = (content.clone().next(), content.clone().next_back());
    let (own, own_end) = match (script.fate, last) {
        (Fate::Complete | Fate::SlowHeaders, _) => (Outcome::Ok, script.end),
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

/// The sample of a request that arrives at `start`.
fn play(request: &PlannedRequest, script: &Script, start: Nanos, ending: Ending, delivery: Delivery) -> Sample {
    let mut sample = with_outcome(request, start, ending.outcome);
    sample.start = Some(start);
    sample.sent = Some(start);
    sample.end = Some(start + ending.at);
    if ending.answered {
        sample.headers = Some(start + script.headers);
        sample.status = Some(match ending.outcome {
            Outcome::Http429 => 429,
            Outcome::Http5xx => 500,
            _ => 200,
        });
    }

    let events = script.events.get(..ending.events).unwrap_or_default();
    let tokens: u64 = events.iter().map(|event| u64::from(event.kind.tokens())).sum();
    sample.events = u32::try_from(events.len()).unwrap_or(u32::MAX);
    match delivery {
        Delivery::Streamed => {
            sample.first_event = events.first().map(|event| start + event.at);
            let content = events.iter().filter(|event| event.kind != EventKind::Role);
            content.for_each(|event| sample.record_token(start + event.at));
            sample.first_answer = sample.first_token;
        }
        Delivery::Whole => {
            sample.content_events = sample.events;
            sample.last_token = events.last().map(|event| start + event.at);
        }
    }

    match ending.outcome {
        Outcome::Ok | Outcome::Empty => {
            sample.finish_reason = Some(if tokens > 0 { "length" } else { "stop" }.to_owned());
            sample.events = match delivery {
                // The finish reason, the usage and the end mark.
                Delivery::Streamed => sample.events.saturating_add(3),
                // The body, and its end.
                Delivery::Whole => 2,
            };
            let (input, output) = (Some(u64::from(request.input_tokens)), Some(tokens));
            sample.usage = Some(Usage { input, output, ..Usage::default() });
        }
        Outcome::StreamError => {
            sample.events += 1;
            sample.embedded_server_error = true;
        }
        _ => {}
    }
    sample
}

/// The sample of a request after the engine's death.
fn refused(request: &PlannedRequest) -> Sample {
    let mut sample = with_outcome(request, request.at, Outcome::Connect);
    sample.start = Some(request.at);
    sample.end = Some(request.at);
    sample
}

/// A sample with nothing in it but the plan, the outcome and its words.
fn with_outcome(request: &PlannedRequest, intended: Nanos, outcome: Outcome) -> Sample {
    let error = match outcome {
        Outcome::Http429 => Some("simulated rate limit of the engine"),
        Outcome::Http5xx => Some("simulated failure of the engine"),
        Outcome::StreamError => Some("simulated failure inside the stream"),
        Outcome::TimeoutFirstToken => Some("no token within timeouts.first_token"),
        Outcome::TimeoutStall => Some("no further event within timeouts.stall"),
        Outcome::TimeoutTotal => Some("not ended within timeouts.total"),
        Outcome::Reset => Some("connection reset"),
        Outcome::Truncated => Some("the stream ended with neither an end mark nor a finish reason"),
        Outcome::Empty => Some("the stream ended without a token"),
        Outcome::Decode => Some("the answer is an HTML page"),
        Outcome::Connect => Some("connection refused"),
        _ => None,
    };
    Sample { intended, outcome, error: error.map(str::to_owned), ..Sample::unsent(request) }
}

#[cfg(test)]
mod tests;
