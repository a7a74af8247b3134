//! The words for every thing a verdict can say: one function per thing, the same in every report.
//!
//! The sentences are for people: they name the thing, the numbers and a likely remedy. They carry text from outside
//! as it came, clipped; the report that prints them escapes it for its target.

mod baseline;
mod cause;
mod compared;
mod evidence;
mod finding;
mod key;
mod lead;
mod number;
mod pattern;
mod power;
mod since;
mod suspect;

use gate_model::{
    Aggregate, Cause, Check, CheckOutcome, CheckVerdict, Comparison, Evidence, HttpVersion, Importance, Metric, Op,
    Origin, Quantity, Rule, Side, Status, Verdict,
};

use baseline::no_baseline_of;
pub use baseline::no_baseline_sentence;
pub(crate) use baseline::{chosen, differences_text, short};
use cause::{STOPPED, too_few_pairs};
pub use cause::{cause_sentence, end_reason};
pub use compared::moved_sentence;
use compared::{against, blind};
pub(crate) use compared::{
    allowance, base, change, change_cell, change_seen, decided, rule_name, runs_differ, seen_change, whose,
};
use evidence::counts;
pub use evidence::why_sentence;
pub(crate) use evidence::{BOUNDS, beyond_word, bounds, is_tested, rule_sentence, short_label};
pub use finding::finding_sentence;
pub(crate) use finding::found;
pub(crate) use key::{Setting, settings};
pub use lead::lead_sentence;
pub(crate) use lead::{
    failures, further_findings, leads_with_waiver, may_end_early, needs_reason, reasons, report_only,
};
pub use number::figure;
pub(crate) use number::{beside, capitalised, grouped, number, p_value, percent, probability, reckoned};
use number::{exact, is_same, told_from};
pub(crate) use pattern::{likelihood, pattern_sentence, rate, span};
pub use power::stored_runs;
pub(crate) use power::{power_sentences, stored_finds};
pub(crate) use since::{is_doubtful, since, since_known};
pub use suspect::suspect_sentence;

/// The heading of every report of a run against the built-in engine.
pub const SIMULATED: &str = "SIMULATED ENGINE: these numbers are of the built-in engine, not of a server";

/// The version of HTTP that was spoken.
pub(crate) fn http_version(version: HttpVersion) -> &'static str {
    match version {
        HttpVersion::Http1 => "HTTP/1.1",
        HttpVersion::Http2 => "HTTP/2",
    }
}

/// How a gate ended, in capitals, as it stands in the first line of a report.
#[must_use]
pub fn status_word(status: Status) -> &'static str {
    match status {
        Status::Passed => "PASSED",
        Status::PassedWithWarnings => "PASSED WITH WARNINGS",
        Status::Violated => "VIOLATED",
        Status::CouldNotMeasure => "COULD NOT MEASURE",
        Status::Inconclusive => "INCONCLUSIVE",
        Status::Interrupted => "INTERRUPTED",
    }
}

/// The same for a whole verdict, which says so where only `--report-only` lets the build pass.
pub(crate) fn verdict_word(verdict: &Verdict) -> String {
    let but = if report_only(verdict).is_some() { " (report only)" } else { "" };
    format!("{}{but}", status_word(verdict.status))
}

/// What became of a check, in two or three words.
///
/// `proven` is said only where there was a test: a share that is merely counted `holds`. Capitals are for what breaks
/// the build, and for what only a waiver keeps from it.
#[must_use]
pub fn outcome_word(verdict: &CheckVerdict) -> &'static str {
    match verdict.outcome {
        CheckOutcome::Violated if verdict.check.importance == Importance::Preferred => "violated",
        CheckOutcome::Violated => "VIOLATED",
        CheckOutcome::Met if was_tested(verdict) => "proven",
        CheckOutcome::Met => "holds",
        CheckOutcome::Inconclusive { side: Side::Within } => "holds, not proven",
        CheckOutcome::Inconclusive { side: Side::Over } => match verdict.check.op {
            Op::Greater | Op::AtLeast => "under, not proven",
            _ => "over, not proven",
        },
        CheckOutcome::Inconclusive { side: Side::Blind } => "runs differ too much",
        CheckOutcome::CouldNotMeasure { .. } => "could not measure",
        CheckOutcome::NoBaseline { .. } => "no baseline",
        CheckOutcome::Waived { .. } => "WAIVED",
    }
}

/// The metric that another one is of a part of the run: of `spike.ttft.p95` it is `ttft.p95`.
pub(crate) fn whole(metric: Metric) -> Metric {
    match metric {
        Metric::Spike(inner) => inner.metric(),
        other => other,
    }
}

/// The name of a scenario where a gate has several.
pub(crate) fn scenario_name(verdict: &Verdict, scenario: u16) -> Option<String> {
    let names = &verdict.run.scenarios;
    names.get(usize::from(scenario)).filter(|_| names.len() > 1).map(|name| baseline::name(name))
}

/// `batch: `, the scenario of a check where a gate has several; else nothing.
pub(crate) fn of_scenario(verdict: &Verdict, check: &CheckVerdict) -> String {
    scenario_name(verdict, check.check.scenario).map(|name| format!("{name}: ")).unwrap_or_default()
}

/// Whether there was a test: some bases, zero above all, have none.
pub(crate) fn was_tested(verdict: &CheckVerdict) -> bool {
    let untested = |evidence: &Evidence| evidence.comparison.is_some() && evidence.p_fail.is_none();
    is_tested(verdict.rule) && !verdict.evidence.as_ref().is_some_and(untested)
}

/// The check with its marks: `errors.rate < 5% (implied)`.
#[must_use]
pub fn check_label(check: &Check) -> String {
    let marks = marks(check).map(|mark| format!(" ({mark})"));
    format!("{check}{}", marks.collect::<String>())
}

/// What a check is beside a required one that the spec names, decided with the usual confidence.
pub(crate) fn marks(check: &Check) -> impl Iterator<Item = String> {
    let implied = (check.origin == Origin::Implied).then(|| "implied".to_owned());
    let preferred = (check.importance == Importance::Preferred).then(|| "preferred".to_owned());
    let unusual = (check.confidence - Check::CONFIDENCE).abs() > f64::EPSILON;
    let confidence = unusual.then(|| format!("{} confidence", percent(check.confidence)));
    [implied, preferred, confidence].into_iter().flatten()
}

/// What became of a check, with its numbers: `over, not proven: P95 900 ms seen, limit 800 ms, 5 of 50 over, 2.5
/// allowed, 8 needed to be sure`.
#[must_use]
pub fn outcome_sentence(verdict: &CheckVerdict) -> String {
    let word = match &verdict.outcome {
        CheckOutcome::CouldNotMeasure { cause } => return format!("could not measure: {}", unmeasured(verdict, cause)),
        CheckOutcome::NoBaseline { why } => return format!("no baseline: {}", no_baseline_sentence(why)),
        CheckOutcome::Waived { otherwise } => {
            let otherwise = CheckVerdict { outcome: (**otherwise).clone(), ..verdict.clone() };
            let end = if needs_reason(&otherwise) { "" } else { "; the waiver can go" };
            return format!("waived{}; by itself {}{end}", waiver(&verdict.check), outcome_sentence(&otherwise));
        }
        CheckOutcome::Violated => "violated",
        CheckOutcome::Met | CheckOutcome::Inconclusive { .. } => outcome_word(verdict),
    };
    let label = short_label(verdict.check.metric);
    let mut parts = match (seen(verdict), comparison(verdict)) {
        _ if let Some(found) = pattern::instead(verdict) => vec![found, written(verdict)],
        (Some(seen), Some(comparison)) => vec![format!("{label} {seen} seen {}", against(verdict, comparison))],
        (Some(seen), None) => vec![format!("{label} {seen} seen"), written(verdict)],
        (None, _) => vec![format!("{label} has no value"), written(verdict)],
    };
    parts.extend(counts(verdict, ""));
    let blind = blind(verdict).map(|blind| format!("; {blind}")).unwrap_or_default();
    format!("{word}: {}{blind}", parts.join(", "))
}

/// A check as a colleague would put it: `ttft.p95 is 1,040 ms, limit 800 ms: 9 of 50 requests over, 2.5 allowed,
/// 7 needed to be sure`.
#[must_use]
pub fn headline(verdict: &CheckVerdict) -> String {
    let metric = verdict.check.metric;
    match judged(&verdict.outcome) {
        CheckOutcome::CouldNotMeasure { cause: Cause::NoData } => return no_value(metric),
        CheckOutcome::CouldNotMeasure { cause } => return capitalised(&unmeasured(verdict, cause)),
        CheckOutcome::NoBaseline { why } => return format!("{metric} has no baseline: {}", no_baseline_sentence(why)),
        _ => {}
    }
    if let Some(found) = pattern::instead(verdict) {
        return format!("{metric}: {found}, {}", written(verdict));
    }
    let seen = seen(verdict).unwrap_or_else(|| "unknown".to_owned());
    if let Some(comparison) = comparison(verdict) {
        let blind = blind(verdict).map(|blind| format!("; {blind}")).unwrap_or_default();
        let parts = counts(verdict, "").join(", ");
        return format!("{metric} is {seen} {}: {parts}{blind}", against(verdict, comparison));
    }
    let counts = counts(verdict, " requests");
    let counts = if counts.is_empty() { String::new() } else { format!(": {}", counts.join(", ")) };
    format!("{metric} is {seen}, {}{counts}", written(verdict))
}

/// Why a check could not be measured; where pairs are compared, it is pairs that are too few.
fn unmeasured(verdict: &CheckVerdict, cause: &Cause) -> String {
    match (cause, verdict.rule) {
        (Cause::ReferenceTooFewOk { ok, needed }, Rule::Paired | Rule::PairedTail) => too_few_pairs(*ok, *needed),
        _ => cause_sentence(cause),
    }
}

/// That a metric has no value; one of a spread needs several.
fn no_value(metric: Metric) -> String {
    let few = match whole(metric) {
        Metric::Series(_, Aggregate::Mean | Aggregate::Stddev) => "Too few requests",
        _ => "No request",
    };
    format!("{few} had a value for `{metric}`")
}

/// What became of a check, a waiver left aside.
pub(crate) fn judged(mut outcome: &CheckOutcome) -> &CheckOutcome {
    while let CheckOutcome::Waived { otherwise } = outcome {
        outcome = otherwise;
    }
    outcome
}

/// How long a check is waived, and why, after the word: ` until 2027-01-31 (issue 412)`.
pub(crate) fn waiver(check: &Check) -> String {
    let waiver = check.waive.as_ref();
    waiver.map(|waiver| format!(" until {} ({})", waiver.until, cause::quoted(&waiver.reason))).unwrap_or_default()
}

/// The bound in words: `limit 800 ms`, `at least 95 % required`. What is seen just at a limit that it has to be under
/// is told so.
fn limit(verdict: &CheckVerdict, bound: &str) -> String {
    let [seen, _, limit] = numbers(verdict);
    let is_at = seen.zip(limit).is_some_and(|(seen, limit)| is_same(seen.value, limit.value));
    match verdict.check.op {
        Op::Less if is_at => format!("under {bound} required"),
        Op::Less | Op::AtMost => format!("limit {bound}"),
        Op::Greater => format!("more than {bound} required"),
        Op::AtLeast => format!("at least {bound} required"),
        Op::Equal => format!("exactly {bound} required"),
    }
}

/// The bound as it is written, in words.
fn written(verdict: &CheckVerdict) -> String {
    let is_fixed = verdict.check.bound.absolute().is_some();
    let bound = limit_figure(verdict).filter(|_| is_fixed);
    limit(verdict, &bound.unwrap_or_else(|| verdict.check.bound_text.clone()))
}

/// What the check was compared with, where its bound is relative and there was something.
pub(crate) fn comparison(verdict: &CheckVerdict) -> Option<&Comparison> {
    verdict.evidence.as_ref()?.comparison.as_ref()
}

/// What was seen, what it was compared with, and what the bound comes to.
fn numbers(verdict: &CheckVerdict) -> [Option<Quantity>; 3] {
    let comparison = comparison(verdict);
    let limit = comparison.and_then(|comparison| comparison.limit).or_else(|| verdict.check.bound.absolute());
    [verdict.seen, comparison.and_then(|comparison| comparison.base), limit]
}

/// The number seen, with the digits that tell it from its base and its limit.
pub(crate) fn seen_figure(verdict: &CheckVerdict) -> Option<String> {
    let [seen, base, limit] = numbers(verdict);
    Some(told_from(seen?, &[base, limit]))
}

/// The number it was compared with, likewise.
pub(crate) fn base_figure(verdict: &CheckVerdict) -> Option<String> {
    let [seen, base, limit] = numbers(verdict);
    Some(told_from(base?, &[seen, limit]))
}

/// What the bound comes to, likewise; a fixed one as it is written.
pub(crate) fn limit_figure(verdict: &CheckVerdict) -> Option<String> {
    let [seen, base, limit] = numbers(verdict);
    Some(if verdict.check.bound.absolute().is_some() { exact(limit?) } else { told_from(limit?, &[seen, base]) })
}

/// The number seen; a percentile of all requests is ∞ where a failed request has that rank.
fn seen(verdict: &CheckVerdict) -> Option<String> {
    let seen = verdict.seen?;
    let failed = if seen.value == f64::INFINITY { " (a failed request)" } else { "" };
    Some(format!("{}{failed}", seen_figure(verdict)?))
}
