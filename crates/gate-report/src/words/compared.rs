//! What a number was compared with: stored runs, the reference, another scenario.

use gate_model::{
    Against, Check, CheckOutcome, CheckVerdict, Comparison, Evidence, Moved, Phase, Quantity, Relative, Rule, Side,
    Unit, With,
};

use super::baseline::name;
use super::number::beside;
use super::{beyond_word, figure, grouped, judged, p_value, short_label};
use crate::layout::counted;

/// A change with its sign: `+38.1 %` of most metrics, `-1.5 pp` of shares.
pub(crate) fn change(unit: Unit, change: f64) -> String {
    let unit = if unit == Unit::Share { "pp" } else { "%" };
    if !change.is_finite() {
        return format!("{}∞ {unit}", if change < 0.0 { "−" } else { "+" });
    }
    let hundredths = change * 100.0;
    let decimals = if hundredths.abs() < 99.95 { 1 } else { 0 };
    let rounded = format!("{:.decimals$}", hundredths.abs()).parse().unwrap_or(hundredths.abs());
    let digits = figure(Quantity::count(rounded));
    let sign = match hundredths {
        _ if rounded == 0.0 => "",
        below if below < 0.0 => "−",
        _ => "+",
    };
    format!("{sign}{digits} {unit}")
}

/// The change seen with its bounds: `+38 % (+29 … +48 %)`, `+41 % (at least +33 %)`; `None` where there is none.
pub(crate) fn change_seen(unit: Unit, comparison: &Comparison) -> Option<String> {
    let change = |value: f64| change(unit, value);
    let seen = change(comparison.change?);
    let bounds = match (comparison.lower.map(change), comparison.upper.map(change)) {
        (Some(lower), Some(upper)) => {
            let lower = lower.split_once(' ').map_or(lower.clone(), |(digits, _)| digits.to_owned());
            format!(" ({lower} … {upper})")
        }
        (Some(lower), None) => format!(" (at least {lower})"),
        (None, Some(upper)) => format!(" (at most {upper})"),
        (None, None) => String::new(),
    };
    Some(seen + &bounds)
}

/// The base as a table has it: `512 ms (5 runs)`, `498 ms (reference)`, `8 s (cold)`.
pub(crate) fn base(comparison: &Comparison) -> String {
    let value = comparison.base.map_or_else(|| "–".to_owned(), figure);
    let with = match &comparison.with {
        With::Baseline { runs } => counted(*runs as usize, "run"),
        With::Reference => Against::Reference.name().to_owned(),
        With::Scenario(scenario) => name(scenario),
    };
    format!("{value} ({with})")
}

/// Where the base was seen: `in 5 stored runs`, `of the reference`.
pub(crate) fn whose(with: &With) -> String {
    match with {
        With::Baseline { runs } => format!("in {}", counted(*runs as usize, "stored run")),
        With::Reference => "of the reference".to_owned(),
        With::Scenario(scenario) => format!("of {}", name(scenario)),
    }
}

/// What the bound comes to on this base, and which of two allowances counts: `limit 11.5 ms (+15 %)`, `limit 620 ms
/// (+20 ms, which is more than +15 %)`.
pub(crate) fn allowance(check: &Check, comparison: &Comparison) -> String {
    let limit = comparison.limit.map(|limit| super::limit(check.op, &figure(limit)));
    match (limit, allowed(check, comparison)) {
        (Some(limit), Some(allowed)) => format!("{limit} ({allowed})"),
        (Some(limit), None) => limit,
        (None, allowed) => format!("{} allowed", allowed.unwrap_or_else(|| check.bound_text.clone())),
    }
}

/// How far from the base a value may be; `None` of a share of another scenario.
fn allowed(check: &Check, comparison: &Comparison) -> Option<String> {
    let relative = check.bound.relative()?;
    let by_change = relative.change.map(|share| change(check.metric.unit(), share));
    let by_step = relative.step.map(step);
    Some(match (by_change, by_step) {
        (None, None) => "no change".to_owned(),
        (Some(only), None) | (None, Some(only)) => only,
        (Some(change), Some(step)) => match comparison.base {
            Some(base) if step_counts(relative, base.value, check) => format!("{step}, which is more than {change}"),
            Some(_) => format!("{change}, which is more than {step}"),
            None => format!("{change} or {step}, whichever is more"),
        },
    })
}

/// Whether the step of a bound allows more than its change.
fn step_counts(relative: Relative, base: f64, check: &Check) -> bool {
    let alone = Relative { change: None, ..relative };
    let by_change = Relative { step: None, ..relative };
    let (by_step, by_change) = (alone.limit(base, check.op), by_change.limit(base, check.op));
    if check.op.wants_more() { by_step < by_change } else { by_step > by_change }
}

/// A signed step in the metric's own unit: `+20 ms`, `−2 pp`.
fn step(step: Quantity) -> String {
    if step.unit == Unit::Share {
        return change(Unit::Share, step.value);
    }
    let sign = if step.value < 0.0 { "−" } else { "+" };
    format!("{sign}{}", figure(Quantity { value: step.value.abs(), ..step }))
}

/// The base, the change and what is allowed, in the words of a sentence.
pub(super) fn parts(verdict: &CheckVerdict, evidence: &Evidence, comparison: &Comparison) -> Vec<String> {
    let mut parts = vec![seen_change(verdict, comparison), allowance(&verdict.check, comparison)];
    parts.retain(|part| !part.is_empty());
    parts.extend(counted_beyond(verdict, evidence, comparison));
    if comparison.dropped > 0 {
        parts.push(format!("{} left out, since an arm failed", counted(comparison.dropped as usize, "pair")));
    }
    let violated = matches!(judged(&verdict.outcome), CheckOutcome::Violated);
    parts.extend(evidence.p_fail.filter(|_| violated).map(p_value));
    parts
}

/// The change as a table has it: with its bounds, or in words where the base is zero.
pub(crate) fn change_cell(verdict: &CheckVerdict, comparison: &Comparison) -> String {
    let is_zero = |quantity: Option<Quantity>| quantity.is_some_and(|quantity| quantity.value == 0.0);
    match change_seen(verdict.check.metric.unit(), comparison) {
        Some(change) => change,
        None if is_zero(comparison.base) && is_zero(verdict.seen) => "both zero".to_owned(),
        None if is_zero(comparison.base) => "up from zero".to_owned(),
        None => String::new(),
    }
}

/// The rule's name in the literature of this gate; `None` of rules that are no comparison's own.
pub(crate) fn rule_name(rule: Rule) -> Option<&'static str> {
    match rule {
        Rule::Paired => Some("PAIR"),
        Rule::PairedTail => Some("EXC"),
        Rule::Stored => Some("STORED"),
        Rule::StoredTail => Some("STORED-TAIL"),
        Rule::Bounds => Some("BOUNDS"),
        Rule::Quantile | Rule::Rate | Rule::Counted | Rule::Extreme | Rule::Point | Rule::Mean | Rule::Cluster => None,
    }
}

/// The estimate with its bounds, the probability and the rule: `+41 % (+33 … +49.7 %), p = 0.0003, at or below the
/// level 0.0125, by STORED`.
pub(crate) fn decided(verdict: &CheckVerdict, comparison: &Comparison) -> String {
    let evidence = verdict.evidence.as_ref();
    let tested = evidence.and_then(|evidence| evidence.p_fail.zip(evidence.level));
    let p = tested.map(|(p_fail, level)| format!("{}, {}", p_value(p_fail), beside(p_fail, level).1));
    let rule = rule_name(verdict.rule).filter(|_| tested.is_some());
    let by = rule.map_or_else(|| "compared as it is".to_owned(), |rule| format!("by {rule}"));
    let parts = [Some(change_cell(verdict, comparison)).filter(|change| !change.is_empty()), p, Some(by)];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// The change in the words of a sentence.
pub(crate) fn seen_change(verdict: &CheckVerdict, comparison: &Comparison) -> String {
    let change = change_cell(verdict, comparison);
    // The two medians need not differ as much as their pairs do.
    if verdict.rule == Rule::Paired && comparison.change.is_some() {
        format!("a typical pair {change}")
    } else {
        change
    }
}

/// The requests that were counted, of rules that count them, and how many would have been enough.
fn counted_beyond(verdict: &CheckVerdict, evidence: &Evidence, comparison: &Comparison) -> Vec<String> {
    let beyond = beyond_word(&verdict.check);
    let of = format!("{} of {}", grouped(evidence.k), grouped(evidence.n));
    let counts = match verdict.rule {
        Rule::PairedTail | Rule::StoredTail => {
            let Some(cut) = comparison.cut.map(figure) else { return Vec::new() };
            format!("{of} {beyond} {cut}")
        }
        Rule::Rate => format!("{of} {beyond}"),
        Rule::Counted => return vec![format!("{of} requests")],
        _ => return Vec::new(),
    };
    let is_over = matches!(judged(&verdict.outcome), CheckOutcome::Inconclusive { side: Side::Over });
    let needed = evidence.needed.filter(|_| is_over).map(|needed| format!("{} needed to be sure", grouped(needed)));
    std::iter::once(counts).chain(needed).collect()
}

/// Why a check cannot see its own tolerance, and what would help.
pub(super) fn blind(verdict: &CheckVerdict) -> Option<String> {
    if !matches!(judged(&verdict.outcome), CheckOutcome::Inconclusive { side: Side::Blind }) {
        return None;
    }
    let comparison = super::comparison(verdict);
    let noise = comparison.and_then(|comparison| comparison.noise);
    let tolerance = comparison.and_then(|comparison| comparison.tolerance);
    Some(noise_hides(noise, tolerance))
}

/// That noise from run to run hides a change of the tolerance.
pub(super) fn noise_hides(noise: Option<f64>, tolerance: Option<f64>) -> String {
    let noise = noise.map(|noise| format!(" by {}", super::percent(noise))).unwrap_or_default();
    let tolerance = match tolerance {
        Some(tolerance) => format!("a change of {}", super::percent(tolerance.abs())),
        None => "a change of the size it is to find".to_owned(),
    };
    format!(
        "runs differ{noise} among themselves, so {tolerance} cannot be seen: more baseline runs, a larger tolerance or \
         a reference side by side would help"
    )
}

/// A number beside what it was compared with, as a sentence begins: `P50 14.1 ms seen against 10 ms in 5 stored runs`.
pub(super) fn beside_base(verdict: &CheckVerdict, seen: &str, comparison: &Comparison) -> String {
    format!("{} {seen} seen {}", short_label(verdict.check.metric), against(comparison))
}

/// `against 10 ms in 5 stored runs`.
pub(super) fn against(comparison: &Comparison) -> String {
    let base = comparison.base.map_or_else(|| "no value".to_owned(), figure);
    format!("against {base} {}", whose(&comparison.with))
}

/// The part of a request that moved most: `decode moved most: 10 → 14 ms per token (+40 %) against the baseline`.
#[must_use]
pub fn moved_sentence(moved: &Moved) -> String {
    let (phase, each) = match moved.phase {
        Phase::Connect => ("connecting", ""),
        Phase::FirstToken => ("the wait for the first token", ""),
        Phase::Decode => ("decode", " per token"),
    };
    let (from, to) = (figure(Quantity::time(moved.from)), figure(Quantity::time(moved.to)));
    let from = match (from.split_once(' '), to.split_once(' ')) {
        (Some((digits, unit)), Some((_, same))) if unit == same => digits.to_owned(),
        _ => from,
    };
    let by = (moved.from.0 > 0).then(|| moved.to.0 as f64 / moved.from.0 as f64 - 1.0);
    let by = by.map(|by| format!(" ({})", change(Unit::Time, by))).unwrap_or_default();
    format!("{phase} moved most: {from} → {to}{each}{by} against the {}", moved.against.name())
}

#[cfg(test)]
mod tests {
    use gate_model::Nanos;

    use super::*;

    #[test]
    fn changes_have_a_sign_and_a_unit() {
        for (unit, value, text) in [
            (Unit::Time, 0.38, "+38 %"),
            (Unit::Time, 0.3812, "+38.1 %"),
            (Unit::Time, -0.035, "−3.5 %"),
            (Unit::Time, 12.3456, "+1,235 %"),
            (Unit::Time, 0.0001, "0 %"),
            (Unit::Time, -0.0001, "0 %"),
            (Unit::Time, f64::INFINITY, "+∞ %"),
            (Unit::Share, -0.015, "−1.5 pp"),
        ] {
            assert_eq!(change(unit, value), text, "{value}");
        }
    }

    #[test]
    fn what_moved_is_said_in_the_units_it_has() {
        let moved = |phase, from, to| {
            let (from, to) = (Nanos(from), Nanos(to));
            moved_sentence(&Moved { phase, against: Against::Baseline, from, to })
        };
        let decode = "decode moved most: 10 → 14 ms per token (+40 %) against the baseline";
        assert_eq!(moved(Phase::Decode, 10_000_000, 14_000_000), decode);
        let first = "the wait for the first token moved most: 900 µs → 1.2 ms (+33.3 %) against the baseline";
        assert_eq!(moved(Phase::FirstToken, 900_000, 1_200_000), first);
        assert_eq!(moved(Phase::Connect, 0, 30_000_000), "connecting moved most: 0 → 30 ms against the baseline");
    }
}
