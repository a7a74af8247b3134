//! How to read a table: what its words mean, and what so many requests can show.

use gate_model::{Check, CheckOutcome, CheckVerdict, Importance, Origin, Side, Status, Verdict};

use crate::layout::{counted, listed};
use crate::words::{beyond_word, bounds, change, comparison, grouped, limit_figure, percent, seen_figure, was_tested};

/// How many checks are named.
const NAMED: usize = 3;

/// What the words and brackets of the table mean that are in it, a sentence each.
pub(super) fn legend(verdict: &Verdict) -> Vec<String> {
    let has = |wanted: fn(&CheckVerdict) -> bool| verdict.checks.iter().any(wanted);
    let bounded = has(|check| check.evidence.as_ref().is_some_and(|evidence| !bounds(evidence).is_empty()));
    let within = has(|check| matches!(check.outcome, CheckOutcome::Inconclusive { side: Side::Within }));
    let beyond = has(|check| matches!(check.outcome, CheckOutcome::Inconclusive { side: Side::Over }));
    let blind = has(|check| matches!(check.outcome, CheckOutcome::Inconclusive { side: Side::Blind }));
    let sentences = [
        (bounded, "In brackets: the least and the most that the true value may be, each 95 % sure."),
        (within, "*holds, not proven*: keeps its limit here, but so few requests cannot make it sure; it passes."),
        (beyond, "*not proven*: seen beyond its limit, which may be chance with so few requests."),
        (blind, "*runs differ too much*: so much from one to the next that a change of this size cannot be told."),
    ];
    // A word of the table stands between backticks: the one markup of a sentence.
    sentences.into_iter().filter(|(is_there, _)| *is_there).map(|(_, words)| words.replace('*', "`")).collect()
}

/// The numbers that a passed gate stands for: its required checks with what they saw and what was asked for.
pub(super) fn numbers(verdict: &Verdict) -> Option<String> {
    if !matches!(verdict.status, Status::Passed) {
        return None;
    }
    let asked = |check: &&CheckVerdict| {
        check.check.importance == Importance::Required && matches!(check.check.origin, Origin::Declared(_))
    };
    let numbers = verdict.checks.iter().filter(asked).filter_map(|check| {
        let seen = seen_figure(check)?;
        let limit = limit_figure(check).unwrap_or_else(|| check.check.bound_text.clone());
        Some(format!("{} {seen} ({} {limit})", check.check.metric, check.check.op.symbol()))
    });
    let numbers: Vec<String> = numbers.take(NAMED).collect();
    (!numbers.is_empty()).then(|| format!("{}.", listed(&numbers, "and")))
}

/// What so many requests can show, and what they cannot: `50 requests show, in 4 of 5 runs, when 15 % of them or more
/// are over ttft.p95 < 800ms; less may go unseen`.
pub(super) fn sample(verdict: &Verdict) -> Option<String> {
    let shown: Vec<String> = verdict.checks.iter().filter_map(finds).take(NAMED).collect();
    if verdict.run.judged == 0 {
        return None;
    }
    let requests = counted(verdict.run.judged as usize, "request");
    if shown.is_empty() {
        return None;
    }
    Some(format!("{requests} judged. In 4 of 5 runs this finds {}; less may go unseen.", listed(&shown, "and")))
}

/// The least that a check finds with 80 % power.
fn finds(verdict: &CheckVerdict) -> Option<String> {
    let Check { metric, bound_text, op, .. } = &verdict.check;
    if let Some(comparison) = comparison(verdict).filter(|_| was_tested(verdict)) {
        let detects = comparison.detects.filter(|detects| detects.is_finite())?;
        return Some(format!("a change of `{metric}` by {}", change(metric.unit(), detects)));
    }
    let power = verdict.power.as_ref().filter(|power| power.detects_share < 1.0)?;
    let beyond = beyond_word(&verdict.check, verdict.rule);
    let (found, allowed) = (percent(power.detects_share), percent(power.allowed_share));
    let last = power.violates_at.last().map(|(n, _)| format!(" at {} requests", grouped(*n))).unwrap_or_default();
    Some(format!(
        "{found} of requests {beyond} in `{metric} {} {bound_text}` ({allowed} are allowed){last}",
        op.symbol()
    ))
}
