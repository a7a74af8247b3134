//! Why a check could not be measured, and why a run ended.

use gate_model::{Cause, EndReason, OutcomeCount};

use super::{figure, grouped, number, percent};
use crate::layout::{clip, counted};
use gate_model::Quantity;

const CHECK_TARGET: &str = "check that the server runs and that `target.url` is right";

/// How much of a server's message is quoted, in characters.
const QUOTED: usize = 300;

/// Why a check could not be measured, with what to do about it.
#[must_use]
pub fn cause_sentence(cause: &Cause) -> String {
    match cause {
        Cause::NotRun(reason) => end_reason(reason),
        Cause::Killed { recorded, planned } => killed(*recorded, *planned),
        Cause::NothingReached { outcomes, message } => nothing_reached(outcomes, message.as_deref()),
        Cause::TooFewOk { ok, needed } => format!(
            "only {} ok, and a verdict by evidence needs {}: see how the others failed, or raise `load.iterations`",
            if *ok == 1 { "1 request was".to_owned() } else { format!("{ok} requests were") },
            grouped(*needed)
        ),
        Cause::NoData => "no request that was ok has a value for this metric".to_owned(),
        Cause::RateLimited { share } => format!(
            "{} of the answers were 429 (too many requests), so latencies say nothing about the server: lower \
             `load.rps`, or raise the quota",
            percent(*share)
        ),
        Cause::ClientLate { share, limit } => format!(
            "{} of the requests were taken up more than {} late, so the machine that sends may be slow, not the \
             server: give it a quieter or larger machine, or lower `load.rps`",
            percent(*share),
            figure(Quantity::time(*limit))
        ),
        Cause::LoopDelay { p95, limit } => format!(
            "the thread that reads answers woke up to {} late (P95, limit {}), so the machine that sends may be \
             slow, not the server: give it a quieter or larger machine",
            figure(Quantity::time(*p95)),
            figure(Quantity::time(*limit))
        ),
        Cause::ClientCpu { share } => format!(
            "the client used {} of the CPU it has, so it may be slow, not the server: give it more cores, or lower \
             `load.rps`",
            percent(*share)
        ),
        Cause::RateShort { planned, achieved } => format!(
            "{} requests a second were sent where the plan has {}: the load was not the one asked for; give the \
             client a larger machine, or lower `load.rps`",
            number(*achieved),
            number(*planned)
        ),
        Cause::EstimatedTokens => "the server reports no usage, so its tokens were only estimated from the events of \
                                   the stream: make it send `usage`"
            .to_owned(),
        Cause::Interrupted => "the run was interrupted before its first look".to_owned(),
    }
}

/// Why a run ended, with what to do where that was too early.
#[must_use]
pub fn end_reason(reason: &EndReason) -> String {
    match reason {
        EndReason::Completed => "every planned request ended".to_owned(),
        EndReason::StoppedAtLook(count) => {
            format!("the run stopped at its look at {}: it was decided", counted(*count as usize, "request"))
        }
        EndReason::Interrupted => "the run was interrupted".to_owned(),
        EndReason::RunTimeout => "the run reached its own time limit: see whether the server hangs, or raise \
                                  `timeouts.run`"
            .to_owned(),
        // What the load saw is a sentence of its own.
        EndReason::NotReady(seen) => {
            with_remedy(quoted(seen), "start the server first, check `target.url`, or raise `target.ready.within`")
        }
        EndReason::Refused(seen) => with_remedy(quoted(seen), CHECK_TARGET),
        EndReason::ClientExhausted(what) => {
            format!("{}, which says nothing of the target: raise that limit, or lower `load.rps`", quoted(what))
        }
    }
}

pub(super) fn killed(recorded: u32, planned: u32) -> String {
    format!(
        "the run was killed: {} of {} requests are recorded, and the journal has no end; run it again",
        grouped(recorded),
        grouped(planned)
    )
}

fn nothing_reached(outcomes: &[OutcomeCount], message: Option<&str>) -> String {
    let ways = outcomes.iter().map(|way| format!("{} {}", grouped(way.count), way.outcome.name()));
    let ways = ways.collect::<Vec<_>>().join(", ");
    let ways = if ways.is_empty() { String::new() } else { format!(" ({ways})") };
    let first = message.map(|message| format!("; the first: {}", quoted(message))).unwrap_or_default();
    with_remedy(format!("not one request was answered{ways}{first}"), CHECK_TARGET)
}

/// The sentence with what usually helps, unless it names a key of the spec already.
fn with_remedy(sentence: String, remedy: &str) -> String {
    let named = ["`target.", "`load.", "`timeouts."].iter().any(|key| sentence.contains(key));
    if named { sentence } else { format!("{sentence}; {remedy}") }
}

/// A message from outside, of bounded length and without a full stop.
pub(super) fn quoted(message: &str) -> String {
    clip(message.trim().trim_end_matches('.'), QUOTED)
}
