//! A whole run in virtual time.

use gate_model::{
    Arm, Delivery, EndReason, EngineParams, GateSpec, Health, Nanos, Outcome, Pace, Plan, PlannedRequest, ReferenceEnd,
    Run, RunEnd, RunHeader, Sample, Stamping, Timeouts, Usage,
};

use crate::delivery::delivered;
use crate::fate::{Fate, after_warmup, of_arm};
use crate::script::{EventKind, Script, script};

mod turns;

use turns::Turn;

/// A whole run in virtual time: every request of the plan, with exact times and a client in perfect health.
///
/// - Each arm has an engine of its own, with its own slots and its own randomness ([`of_arm`]); nothing that happens to
///   one is felt by the other. Without parameters for the reference only the target's requests are played.
/// - An engine's requests are numbered in the order of their arrival, warm-up requests first, and play [`script`] of
///   that number. Warm-up requests follow one another at once, those of both arms in the plan's order, and end at the
///   run's epoch; the measured ones start as `header.spec.load.pace` says, on open connections: when they are due, where
///   there is a cap not before one of the slots is free, and in a closed loop when one is. Faults by script count the
///   measured ones, so no warm-up request has one.
/// - Answers come as the arm's `delivery` in `header.spec` says. Streams are held back by a proxy of `buffer_bytes`,
///   counted by [`EventKind::nominal_bytes`]; of one body only the end is known, as `last_token`. Embeddings are one
///   body, due when a first token would be.
/// - The deadlines of `header.spec.timeouts` for the first token, for stalls and for the whole request apply, from when
///   the request is sent; of one body only the last.
/// - The engine dies when `dies_after` measured requests have arrived: what is open at that instant (that last
///   request included) is [`Outcome::Reset`], what comes later is [`Outcome::Connect`]. With 0 it was never there.
/// - Usage is the plan's input length and the tokens sent, for answers that end well. There are no bytes, so
///   `body_bytes` is 0, and `ready_after` is over before the run begins. The whole plan is played: looks are the
///   reader's business.
#[must_use]
pub fn simulate(target: &EngineParams, reference: Option<&EngineParams>, plan: &Plan, header: RunHeader) -> Run {
    let arms = [(Arm::Target, Some(target)), (Arm::Reference, reference)];
    let sides = arms.map(|(arm, params)| Some(Side::new(arm, params?, plan, &header.spec)));
    let sides = || sides.iter().flatten();

    let mut warmups: Vec<_> = sides().flat_map(|side| side.warmup().map(move |warmup| (side, warmup))).collect();
    warmups.sort_by_key(|(_, (request, ..))| request.index);
    let mut start = warmups.iter().fold(Nanos::ZERO, |start, (_, (.., ending))| start - ending.at);
    let warmup = warmups.into_iter().map(|(side, (request, script, ending))| {
        let sample = side.play(request, &script, Turn::at(start), ending);
        start = start + ending.at;
        sample
    });
    let warmup: Vec<Sample> = warmup.collect();
    let mut samples: Vec<Sample> = sides().flat_map(|side| side.measured(header.spec.load.pace)).collect();
    samples.sort_by_key(|sample| sample.index);

    let end = RunEnd {
        reason: EndReason::Completed,
        sent: u32::try_from(samples.len()).unwrap_or(u32::MAX),
        at: samples.iter().filter_map(|sample| sample.end).max().unwrap_or_default(),
        epoch_unix: None,
        switched_to: None,
        reached: None,
        reference: reference.map(|_| ReferenceEnd::default()),
        health: Health {
            clock: Stamping::Virtual,
            cpu_share: Some(0.0),
            loop_delay_p95: Some(Nanos::ZERO),
            ..Health::default()
        },
    };
    Run { header, warmup, samples, end: Some(end) }
}

/// One arm: its engine, and the requests it gets.
struct Side {
    /// With faults counted from its first warm-up request on.
    params: EngineParams,
    /// Counted from its first measured request on.
    dies_after: Option<u32>,
    generates: bool,
    delivery: Delivery,
    timeouts: Timeouts,
    warmup: Vec<PlannedRequest>,
    requests: Vec<PlannedRequest>,
}

impl Side {
    fn new(arm: Arm, params: &EngineParams, plan: &Plan, spec: &GateSpec) -> Self {
        let asked = |requests: &[PlannedRequest]| {
            requests.iter().filter(|request| request.arm == arm).copied().collect::<Vec<_>>()
        };
        let (warmup, requests) = (asked(&plan.warmup), asked(&plan.requests));
        let target = spec.of_arm(arm).unwrap_or(&spec.target);
        let generates = target.api.generates();
        let delivery = if generates { target.delivery } else { Delivery::Whole };
        let (dies_after, timeouts) = (params.dies_after, timeouts(spec.timeouts, delivery));
        let params = after_warmup(&of_arm(params, arm), u32::try_from(warmup.len()).unwrap_or(u32::MAX));
        Self { params, dies_after, generates, delivery, timeouts, warmup, requests }
    }

    /// The engine's script of its request of this number.
    fn script(&self, number: u32, request: &PlannedRequest) -> Script {
        let output_tokens = if self.generates { request.output_tokens } else { 1 };
        delivered(script(&self.params, number, output_tokens), self.delivery, self.params.buffer_bytes)
    }

    /// Its warm-up requests, each with its script and how it ends.
    fn warmup(&self) -> impl Iterator<Item = (&PlannedRequest, Script, Ending)> {
        (0..).zip(&self.warmup).map(|(number, request)| {
            let script = self.script(number, request);
            let ending = ending(&script, &self.timeouts, None);
            (request, script, ending)
        })
    }

    /// The samples of its measured requests.
    fn measured(&self, pace: Pace) -> Vec<Sample> {
        let first_number = u32::try_from(self.warmup.len()).unwrap_or(u32::MAX);
        let length = |position: u32, request: &PlannedRequest| {
            ending(&self.script(first_number.saturating_add(position), request), &self.timeouts, None).at
        };
        let (turns, died) = turns::turns(pace, &self.requests, self.dies_after, length);
        let turns = (first_number..).zip(&self.requests).zip(turns).enumerate();
        let samples = turns.map(|(position, ((number, request), turn))| match died {
            Some(death) if position >= death.arrived => refused(request, turn),
            _ => {
                let script = self.script(number, request);
                let ending = ending(&script, &self.timeouts, died.map(|death| death.at - turn.sent));
                self.play(request, &script, turn, ending)
            }
        });
        samples.collect()
    }

    /// The sample of a request that is served.
    fn play(&self, request: &PlannedRequest, script: &Script, turn: Turn, ending: Ending) -> Sample {
        let mut sample = play(request, script, turn, ending, self.delivery);
        if !self.generates {
            without_tokens(&mut sample);
        }
        sample
    }
}

/// One whole body shows neither its first token nor its pauses, so that only `total` applies to it.
fn timeouts(timeouts: Timeouts, delivery: Delivery) -> Timeouts {
    const NEVER: Nanos = Nanos(i64::MAX);
    match delivery {
        Delivery::Streamed => timeouts,
        Delivery::Whole => Timeouts { first_token: NEVER, stall: NEVER, ..timeouts },
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

/// The sample of a request that is served.
fn play(request: &PlannedRequest, script: &Script, turn: Turn, ending: Ending, delivery: Delivery) -> Sample {
    let start = turn.sent;
    let mut sample = with_outcome(request, turn, ending.outcome);
    sample.writing = Some(start);
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
fn refused(request: &PlannedRequest, turn: Turn) -> Sample {
    Sample { end: Some(turn.sent), ..with_outcome(request, turn, Outcome::Connect) }
}

/// Embeddings have no output: neither tokens nor their count nor a reason to end.
fn without_tokens(sample: &mut Sample) {
    sample.finish_reason = None;
    if let Some(usage) = &mut sample.usage {
        usage.output = None;
    }
}

/// A sample with nothing in it but the plan, its start, the outcome and its words.
fn with_outcome(request: &PlannedRequest, turn: Turn, outcome: Outcome) -> Sample {
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
    Sample {
        intended: turn.intended,
        start: Some(turn.intended),
        cap_wait: turn.cap_wait,
        outcome,
        error: error.map(str::to_owned),
        ..Sample::unsent(request)
    }
}

#[cfg(test)]
mod tests;
