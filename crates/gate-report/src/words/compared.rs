//! What a number was compared with: stored runs, the reference, another scenario.

use gate_model::{
    Against, Check, CheckOutcome, CheckVerdict, Comparison, Evidence, Moved, Phase, Quantity, Relative, Rule, Side,
    Unit, With,
};

use super::baseline::name;
use super::number::{beside, exact, is_same};
use super::{base_figure, beyond_word, figure, grouped, judged, limit_figure, p_value};
use crate::layout::counted;

/// A change with its sign: `+38.1 %` of most metrics, `−1.5 pp` of shares.
pub(crate) fn change(unit: Unit, change: f64) -> String {
    let decimals = if (change * 100.0).abs() < 99.95 { 1 } else { 0 };
    to_decimals(unit, change, decimals)
}

fn to_decimals(unit: Unit, change: f64, decimals: usize) -> String {
    let unit = if unit == Unit::Share { "pp" } else { "%" };
    if !change.is_finite() {
        return format!("{}∞ {unit}", if change < 0.0 { "−" } else { "+" });
    }
    let text = format!("{:.decimals$}", (change * 100.0).abs());
    let (whole, rest) = text.split_once('.').unwrap_or((&text, ""));
    let whole = figure(Quantity::count(whole.parse().unwrap_or_default()));
    let rest = rest.trim_end_matches('0');
    let digits = if rest.is_empty() { whole } else { format!("{whole}.{rest}") };
    let sign = match change {
        _ if digits == "0" => "",
        below if below < 0.0 => "−",
        _ => "+",
    };
    format!("{sign}{digits} {unit}")
}

/// A change as a spec has it: none of its digits is lost.
fn as_written(unit: Unit, share: f64) -> String {
    let digits = (1..=6).find(|decimals| {
        let scale = 10_f64.powi(*decimals);
        is_same((share * 100.0 * scale).round(), share * 100.0 * scale)
    });
    to_decimals(unit, share, digits.map_or(6, |digits| digits as usize))
}

/// The change seen with its bounds: `+38 % (+29 … +48 %)`, `+41 % (at least +33 %)`; `None` where there is none. It has
/// as many digits as it takes to tell it from the change that is allowed.
pub(crate) fn change_seen(unit: Unit, comparison: &Comparison) -> Option<String> {
    let value = comparison.change?;
    let allowed = match unit {
        Unit::Share => comparison.limit.zip(comparison.base).map(|(limit, base)| limit.value - base.value),
        _ => comparison.tolerance,
    };
    let change = |value: f64| change(unit, value);
    let hidden = allowed.filter(|allowed| change(*allowed) == change(value) && !is_same(*allowed, value));
    let finer = hidden.and_then(|allowed| {
        let texts = (2..=9).map(|decimals| [value, allowed].map(|value| to_decimals(unit, value, decimals)));
        texts.into_iter().find_map(|[seen, allowed]| (seen != allowed).then_some(seen))
    });
    let seen = finer.unwrap_or_else(|| change(value));
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
pub(crate) fn base(verdict: &CheckVerdict, comparison: &Comparison) -> String {
    let value = base_figure(verdict).unwrap_or_else(|| "–".to_owned());
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
pub(crate) fn allowance(verdict: &CheckVerdict, comparison: &Comparison) -> String {
    let limit = comparison.limit.and_then(|_| Some(super::limit(verdict, &limit_figure(verdict)?)));
    match (limit, allowed(&verdict.check, comparison)) {
        (Some(limit), Some(allowed)) => format!("{limit} ({allowed})"),
        (Some(limit), None) => limit,
        (None, allowed) => format!("{} allowed", allowed.unwrap_or_else(|| verdict.check.bound_text.clone())),
    }
}

/// How far from the base a value may be; `None` of a share of another scenario.
fn allowed(check: &Check, comparison: &Comparison) -> Option<String> {
    let relative = check.bound.relative()?;
    let by_change = relative.change.map(|share| as_written(check.metric.unit(), share));
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
        return as_written(Unit::Share, step.value);
    }
    let sign = if step.value < 0.0 { "−" } else { "+" };
    format!("{sign}{}", exact(Quantity { value: step.value.abs(), ..step }))
}

/// The base, the change and what is allowed, in the words of a sentence.
pub(super) fn parts(verdict: &CheckVerdict, evidence: &Evidence, comparison: &Comparison) -> Vec<String> {
    let mut parts = vec![seen_change(verdict, comparison), allowance(verdict, comparison)];
    parts.retain(|part| !part.is_empty());
    parts.extend(counted_beyond(verdict, evidence, comparison));
    parts.extend(only_medians(verdict, comparison));
    if comparison.dropped > 0 {
        parts.push(format!("{} left out, since an arm failed", counted(comparison.dropped as usize, "pair")));
    }
    let violated = matches!(judged(&verdict.outcome), CheckOutcome::Violated);
    parts.extend(evidence.p_fail.filter(|_| violated).map(p_value));
    parts
}

/// That only the printed numbers of the two arms break a bound that a typical pair keeps.
fn only_medians(verdict: &CheckVerdict, comparison: &Comparison) -> Option<String> {
    let is_over = matches!(judged(&verdict.outcome), CheckOutcome::Inconclusive { side: Side::Over });
    let (change, tolerance) = comparison.change.zip(comparison.tolerance)?;
    let keeps = verdict.check.op.holds(change, tolerance);
    (verdict.rule == Rule::Paired && is_over && keeps)
        .then(|| "the arms' own numbers break it, and a typical pair does not".to_owned())
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
        Rule::Knee => Some("KNEE"),
        Rule::Recovery => Some("RECOVERY"),
        Rule::Trend => Some("TREND"),
        Rule::Quantile | Rule::Rate | Rule::Counted | Rule::Extreme | Rule::Point | Rule::Mean | Rule::Cluster => None,
    }
}

/// The estimate with its bounds, the probability and the rule: `+41 % (+33 … +49.7 %), p = 0.0003, at or below the
/// level 0.0125, by STORED`.
pub(crate) fn decided(verdict: &CheckVerdict, comparison: &Comparison) -> String {
    let evidence = verdict.evidence.as_ref();
    let tested = evidence.and_then(|evidence| evidence.p_fail.zip(evidence.level));
    let p = tested.map(|(p_fail, level)| format!("{}, {}", p_value(p_fail), beside(p_fail, level).1));
    let by = match (tested, rule_name(verdict.rule), judged(&verdict.outcome)) {
        (Some(_), Some(rule), _) => format!("by {rule}"),
        (Some(_), None, _) => "by an exact binomial".to_owned(),
        (None, _, CheckOutcome::Inconclusive { .. }) => "shown, not tested".to_owned(),
        (None, ..) => "compared as it is".to_owned(),
    };
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
    let beyond = beyond_word(&verdict.check, verdict.rule);
    let of = format!("{} of {}", grouped(evidence.k), grouped(evidence.n));
    let counts = match verdict.rule {
        Rule::PairedTail | Rule::StoredTail => {
            let Some(cut) = comparison.cut.map(figure) else { return Vec::new() };
            let noise = if verdict.rule == Rule::StoredTail { " (the limit with the noise between runs)" } else { "" };
            format!("{of} {beyond} {cut}{noise}")
        }
        Rule::Rate | Rule::Counted => format!("{of} {beyond}"),
        _ => return Vec::new(),
    };
    let is_over = matches!(judged(&verdict.outcome), CheckOutcome::Inconclusive { side: Side::Over });
    let needed = evidence
        .needed
        .filter(|_| is_over && verdict.rule != Rule::Counted)
        .map(|needed| format!("{} needed to be sure", grouped(needed)));
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
    Some(noise_hides(noise, tolerance, comparison.map(|comparison| &comparison.with)))
}

/// That noise from run to run hides a change of the tolerance.
pub(super) fn noise_hides(noise: Option<f64>, tolerance: Option<f64>, with: Option<&With>) -> String {
    let noise = match noise {
        Some(noise) => runs_differ(noise, with),
        None => "runs differ among themselves".to_owned(),
    };
    let tolerance = match tolerance {
        Some(tolerance) => format!("a change of {}", super::percent(tolerance.abs())),
        None => "a change of the size it is to find".to_owned(),
    };
    format!(
        "{noise}, so {tolerance} cannot be seen: more baseline runs, a larger tolerance or a reference side by side would \
         help"
    )
}

/// How much runs differ, as far as that is known: one stored run does not show it, so it is assumed.
pub(crate) fn runs_differ(noise: f64, with: Option<&With>) -> String {
    let noise = super::percent(noise);
    match with {
        Some(With::Baseline { runs: 1 }) => {
            format!("runs are taken to differ by {noise}, which 1 stored run cannot show")
        }
        Some(With::Baseline { runs }) => format!("runs differ by {noise}, as far as {} of them tell", grouped(*runs)),
        _ => format!("runs differ by {noise} among themselves"),
    }
}

/// `against 10 ms in 5 stored runs`.
pub(super) fn against(verdict: &CheckVerdict, comparison: &Comparison) -> String {
    let base = base_figure(verdict).unwrap_or_else(|| "no value".to_owned());
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
