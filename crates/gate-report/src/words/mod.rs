//! The words for every thing a verdict can say: one function per thing, the same in every report.
//!
//! The sentences are for people: they name the thing, the numbers and a likely remedy. They carry text from outside
//! as it came, clipped; the report that prints them escapes it for its target.

mod cause;
mod finding;

use gate_model::{
    Aggregate, Bound, Check, CheckOutcome, CheckVerdict, Evidence, Importance, Metric, Op, Origin, Quantity, Rule,
    Side, Status,
};

pub use cause::{cause_sentence, end_reason};
pub use finding::finding_sentence;

/// The heading of every report of a run against the built-in engine.
pub const SIMULATED: &str = "SIMULATED ENGINE: these numbers are of the built-in engine, not of a server";

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

/// What became of a check, in two or three words.
///
/// `proven` is said only where there was a test: a share that is merely counted `holds`. Capitals are for what breaks
/// the build.
#[must_use]
pub fn outcome_word(verdict: &CheckVerdict) -> &'static str {
    match verdict.outcome {
        CheckOutcome::Violated if verdict.check.importance == Importance::Preferred => "violated",
        CheckOutcome::Violated => "VIOLATED",
        CheckOutcome::Met if matches!(verdict.rule, Rule::Quantile | Rule::Rate) => "proven",
        CheckOutcome::Met => "holds",
        CheckOutcome::Inconclusive { side: Side::Within } => "holds, not proven",
        CheckOutcome::Inconclusive { side: Side::Over } => match verdict.check.op {
            Op::Greater | Op::AtLeast => "under, not proven",
            _ => "over, not proven",
        },
        CheckOutcome::CouldNotMeasure { .. } => "could not measure",
    }
}

/// The check with its marks: `errors.rate < 5% (implied)`.
#[must_use]
pub fn check_label(check: &Check) -> String {
    let implied = if check.origin == Origin::Implied { " (implied)" } else { "" };
    let preferred = if check.importance == Importance::Preferred { " (preferred)" } else { "" };
    format!("{check}{implied}{preferred}")
}

/// What became of a check, with its numbers: `not proven: P95 900 ms seen, limit 800 ms, 5 of 50 over, 2.5 allowed,
/// 8 needed to be sure`.
#[must_use]
pub fn outcome_sentence(verdict: &CheckVerdict) -> String {
    let word = match &verdict.outcome {
        CheckOutcome::CouldNotMeasure { cause } => return format!("could not measure: {}", cause_sentence(cause)),
        CheckOutcome::Violated => "violated",
        CheckOutcome::Inconclusive { side: Side::Over } => "not proven",
        CheckOutcome::Met | CheckOutcome::Inconclusive { side: Side::Within } => outcome_word(verdict),
    };
    let label = short_label(verdict.check.metric);
    let mut parts =
        vec![seen(verdict).map_or_else(|| format!("{label} has no value"), |seen| format!("{label} {seen} seen"))];
    parts.push(limit(verdict));
    parts.extend(counts(verdict, ""));
    format!("{word}: {}", parts.join(", "))
}

/// A check as a colleague would put it: `ttft.p95 is 1,040 ms, limit 800 ms: 9 of 50 requests over it, 2.5 allowed,
/// 7 needed to be sure`.
#[must_use]
pub fn headline(verdict: &CheckVerdict) -> String {
    let metric = verdict.check.metric;
    if let CheckOutcome::CouldNotMeasure { cause } = &verdict.outcome {
        return capitalised(&cause_sentence(cause));
    }
    let seen = seen(verdict).unwrap_or_else(|| "unknown".to_owned());
    let counts = counts(verdict, " requests");
    let counts = if counts.is_empty() { String::new() } else { format!(": {}", counts.join(", ")) };
    format!("{metric} is {seen}, {}{counts}", limit(verdict))
}

/// Why the rule decided as it did, for a report with room for it.
#[must_use]
pub fn why_sentence(verdict: &CheckVerdict) -> String {
    let rule = match verdict.rule {
        Rule::Quantile => "a percentile is judged by how many requests lie beyond the limit (exact binomial)",
        Rule::Rate => "a share is judged by how many requests are bad (exact binomial)",
        Rule::Counted => "a share or count of errors is compared as it is, when the run has ended",
        Rule::Extreme => "one request beyond the limit violates it",
        Rule::Point => "the run has this number once: it is compared as it is, with no sampling error claimed",
    };
    let tested = verdict.evidence.as_ref().and_then(|evidence| evidence.p_fail.zip(evidence.level));
    let Some((p_fail, level)) = tested else { return rule.to_owned() };
    let violated = matches!(verdict.outcome, CheckOutcome::Violated);
    let compared = match (violated, p_fail <= level) {
        (true, true) => "which is not by chance",
        (true, false) => "which an earlier look had already ruled out as chance",
        (false, _) => "which may be chance",
    };
    let than = if p_fail <= level { "at or below" } else { "above" };
    format!(
        "{rule}; if the limit held exactly, as many would be seen with probability {}, {than} the level {}: {compared}",
        probability(p_fail),
        probability(level)
    )
}

/// The metric without the series where the check stands beside it: `P95`, `largest`, `attainment`.
fn short_label(metric: Metric) -> String {
    match metric {
        Metric::Series(_, Aggregate::Percentile(percentile)) => percentile.to_string().replace('p', "P"),
        Metric::Series(_, Aggregate::PercentileOfAll(percentile)) => {
            format!("{} of all requests", percentile.to_string().replace('p', "P"))
        }
        Metric::Series(_, Aggregate::Max) => "largest".to_owned(),
        Metric::Series(_, Aggregate::Min) => "smallest".to_owned(),
        Metric::Series(_, Aggregate::Stddev) => "standard deviation".to_owned(),
        Metric::ErrorShare(_) | Metric::ErrorCount(_) | Metric::Attainment | Metric::Scalar(_) => metric.to_string(),
    }
}

/// The bound in words: `limit 800 ms`, `at least 95 %`.
fn limit(verdict: &CheckVerdict) -> String {
    let Bound::Absolute(bound) = &verdict.check.bound;
    let bound = figure(*bound);
    match verdict.check.op {
        Op::Less | Op::AtMost => format!("limit {bound}"),
        Op::Greater => format!("more than {bound} required"),
        Op::AtLeast => format!("at least {bound} required"),
        Op::Equal => format!("exactly {bound} required"),
    }
}

/// The number seen; a percentile of all requests is ∞ where a failed request has that rank.
fn seen(verdict: &CheckVerdict) -> Option<String> {
    let seen = verdict.seen?;
    let failed = if seen.value == f64::INFINITY { " (a failed request)" } else { "" };
    Some(format!("{}{failed}", figure(seen)))
}

/// How many requests lie beyond the bound, how many may, and how many violate it. `noun` follows the size.
fn counts(verdict: &CheckVerdict, noun: &str) -> Vec<String> {
    let Some(Evidence { n, k, allowed, needed, .. }) = verdict.evidence else { return Vec::new() };
    let beyond = format!("{} of {}{noun} {}", grouped(k), grouped(n), beyond_word(&verdict.check));
    match verdict.rule {
        Rule::Point => Vec::new(),
        Rule::Counted => vec![format!("{} of {} requests", grouped(k), grouped(n))],
        Rule::Extreme if matches!(verdict.outcome, CheckOutcome::Violated) => {
            vec![beyond, "one is enough".to_owned()]
        }
        Rule::Extreme => vec![beyond],
        Rule::Quantile | Rule::Rate => {
            let proof = match verdict.outcome {
                CheckOutcome::Violated | CheckOutcome::Inconclusive { side: Side::Over } => Some(match needed {
                    Some(needed) => format!("{} needed to be sure", grouped(needed)),
                    None => "no count is enough at this size".to_owned(),
                }),
                CheckOutcome::Inconclusive { side: Side::Within } => too_few_to_prove(verdict, n),
                CheckOutcome::Met | CheckOutcome::CouldNotMeasure { .. } => None,
            };
            [beyond, format!("{} allowed", number(allowed))].into_iter().chain(proof).collect()
        }
    }
}

/// Says so where no result of this size could have proven the check.
fn too_few_to_prove(verdict: &CheckVerdict, n: u32) -> Option<String> {
    let power = verdict.power.as_ref()?;
    power.proves_at_most.is_none().then(|| format!("{} requests are too few to prove it", grouped(n)))
}

/// Where a request beyond the bound lies.
pub(crate) fn beyond_word(check: &Check) -> &'static str {
    match (check.metric, check.op) {
        (Metric::Attainment | Metric::ErrorShare(_) | Metric::ErrorCount(_), _) => "bad",
        (_, Op::Less | Op::AtMost) => "over",
        (_, Op::Greater | Op::AtLeast) => "under",
        (_, Op::Equal) => "different",
    }
}

/// The one-sided 95 % bounds of the estimate: `280–345 ms`, `≥ 620 ms`.
pub(crate) fn bounds(evidence: &Evidence) -> String {
    match (evidence.lower.map(figure), evidence.upper.map(figure)) {
        (Some(lower), Some(upper)) => match (lower.split_once(' '), upper.split_once(' ')) {
            (Some((number, unit)), Some((_, same))) if unit == same => format!("{number}–{upper}"),
            _ => format!("{lower}–{upper}"),
        },
        (Some(lower), None) => format!("≥ {lower}"),
        (None, Some(upper)) => format!("≤ {upper}"),
        (None, None) => String::new(),
    }
}

/// The quantity without trailing zeros: `2.5 ms`, `7 %`.
#[must_use]
pub fn figure(quantity: Quantity) -> String {
    let text = quantity.to_string();
    let end = text.find([' ', '/']).unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    format!("{}{unit}", without_zeros(digits))
}

/// A bare number with at most two decimals, without trailing zeros.
pub(crate) fn number(value: f64) -> String {
    figure(Quantity::count(value))
}

/// A whole number with its thousands separated.
pub(crate) fn grouped(value: u32) -> String {
    Quantity::count(f64::from(value)).to_string()
}

/// A probability with four decimals, and never `0`.
fn probability(value: f64) -> String {
    if value < 1e-4 { "below 0.0001".to_owned() } else { without_zeros(&format!("{value:.4}")).to_owned() }
}

/// The text with its first letter as a capital.
pub(crate) fn capitalised(text: &str) -> String {
    let mut symbols = text.chars();
    symbols.next().map_or(String::new(), |first| first.to_uppercase().chain(symbols).collect())
}

fn without_zeros(digits: &str) -> &str {
    if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits }
}
