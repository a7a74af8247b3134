//! What a rule saw of a check, and why it decided as it did.

use gate_model::{Aggregate, Check, CheckOutcome, CheckVerdict, Decide, ErrorKind, Evidence, Metric, Op, Rule, Side};

use super::number::beside;
use super::{compared, figure, grouped, judged, number, pattern, percent, whole};

/// Why the rule decided as it did, for a report with room for it.
#[must_use]
pub fn why_sentence(verdict: &CheckVerdict) -> String {
    let rule = rule_sentence(verdict.rule, verdict.check.decide);
    let tested = verdict.evidence.as_ref().and_then(|evidence| evidence.p_fail.zip(evidence.level));
    let Some((p_fail, level)) = tested else {
        let undecided = matches!(judged(&verdict.outcome), CheckOutcome::Inconclusive { .. });
        let both = match verdict.rule {
            Rule::Point if undecided => "; nothing follows from that, unless `decide: point` says so",
            _ => "",
        };
        return format!("{rule}{both}");
    };
    let violated = matches!(judged(&verdict.outcome), CheckOutcome::Violated);
    let rare = format!("too rare to be put down to chance at this gate's {}", percent(1.0 - verdict.check.confidence));
    let compared = match (violated, p_fail <= level) {
        (true, true) => format!("which is {rare}"),
        (true, false) => format!("but an earlier look had already seen what is {rare}"),
        (false, _) => "which may be chance".to_owned(),
    };
    let (p_fail, than) = beside(p_fail, level);
    let as_bad = match verdict.rule {
        Rule::Mean
        | Rule::Cluster
        | Rule::Paired
        | Rule::Stored
        | Rule::Bounds
        | Rule::Knee
        | Rule::Recovery
        | Rule::Trend => "a result as bad",
        _ => "as many",
    };
    format!("{rule}; if the limit held exactly, {as_bad} would be seen with probability {p_fail}, {than}: {compared}")
}

/// How a rule decides, in words.
pub(crate) fn rule_sentence(rule: Rule, decide: Option<Decide>) -> &'static str {
    match rule {
        Rule::Quantile => "a percentile is judged by how many requests lie beyond the limit (exact binomial)",
        Rule::Rate => "a share is judged by how many requests are bad (exact binomial)",
        Rule::Counted => "a share or count is compared as it is, when the run has ended",
        Rule::Extreme => "one request beyond the limit violates it",
        Rule::Point if decide == Some(Decide::Point) => {
            "the number seen is compared as it is, since `decide: point` asks for it: nothing is claimed of how sure \
             that is"
        }
        Rule::Point => "the run has this number once: it is compared as it is, with no sampling error claimed",
        Rule::Mean => {
            "a mean is judged by how far it lies from the limit, against the spread of the requests (Student's t)"
        }
        Rule::Cluster => {
            "a percentile of gaps is judged request by request, since the gaps of one hang together: by its gaps \
             beyond the limit less those that the percentile allows (Student's t); it is proven only where one more \
             request that is slow as a whole would not undo that"
        }
        Rule::Paired => {
            "each request is compared with the reference's answer to the same prompt, and the ranks of the changes are \
             summed (PAIR: Wilcoxon's signed ranks)"
        }
        Rule::PairedTail => {
            "a high percentile is judged by how many requests lie beyond the reference's own, with the tolerance added \
             (EXC: exceedances, beta-binomial)"
        }
        Rule::Stored => {
            "a number is compared with that of stored runs, against how much runs differ among themselves (STORED: \
             Student's t)"
        }
        Rule::StoredTail => {
            "a high percentile is judged by how many requests lie beyond that of the stored runs together, with the \
             tolerance and a margin for how much runs differ added (STORED-TAIL: exceedances, beta-binomial)"
        }
        Rule::Bounds => {
            "a share of another scenario's number is judged by the bounds of both: it is broken where this one's lower \
             bound is beyond that share of the other's upper bound (BOUNDS: order statistics)"
        }
        Rule::Knee => {
            "the capacity knee is looked for as the one time of the ramp from which far fewer requests are good, and the \
             good requests per second after it are judged by their bounds (KNEE: change point of greatest likelihood, \
             Student's t over eight stretches of time)"
        }
        Rule::Recovery => {
            "the recovery is looked for as the one time after the spike from which far fewer requests are slow, and is \
             judged by the bounds of that time (RECOVERY: change point of greatest likelihood)"
        }
        Rule::Trend => {
            "growth is judged by how the medians of equal stretches of time follow one another, less what the limit \
             allows (TREND: Mann and Kendall's test with Hamed and Rao's variance; the slope is Theil and Sen's)"
        }
    }
}

/// Whether the rule tests, so that it can prove.
pub(crate) fn is_tested(rule: Rule) -> bool {
    match rule {
        Rule::Counted | Rule::Extreme | Rule::Point => false,
        Rule::Quantile | Rule::Rate | Rule::Mean | Rule::Cluster => true,
        Rule::Paired | Rule::PairedTail | Rule::Stored | Rule::StoredTail | Rule::Bounds => true,
        Rule::Knee | Rule::Recovery | Rule::Trend => true,
    }
}

/// The metric without the series where the check stands beside it: `P95`, `largest`, `attainment`.
pub(crate) fn short_label(metric: Metric) -> String {
    match metric {
        Metric::Series(_, Aggregate::Percentile(percentile)) => percentile.to_string().replace('p', "P"),
        Metric::Series(_, Aggregate::PercentileOfAll(percentile)) => {
            format!("{} of all requests", percentile.to_string().replace('p', "P"))
        }
        Metric::Series(_, Aggregate::Max) => "largest".to_owned(),
        Metric::Series(_, Aggregate::Min) => "smallest".to_owned(),
        Metric::Series(_, Aggregate::Mean) => "mean".to_owned(),
        Metric::Series(_, Aggregate::Stddev) => "standard deviation".to_owned(),
        Metric::Spike(inner @ gate_model::PerRun::Series(..)) => {
            format!("{} inside the spike", short_label(inner.metric()))
        }
        Metric::ErrorShare(_)
        | Metric::ErrorCount(_)
        | Metric::Attainment
        | Metric::Scalar(_)
        | Metric::Spike(_)
        | Metric::Drift(_)
        | Metric::Server(..) => metric.to_string(),
    }
}

/// How many requests lie beyond the bound, how many may, and how many violate it. `noun` follows the size.
pub(super) fn counts(verdict: &CheckVerdict, noun: &str) -> Vec<String> {
    let Some(evidence) = &verdict.evidence else { return Vec::new() };
    if let Some(comparison) = &evidence.comparison {
        return compared::parts(verdict, evidence, comparison);
    }
    let Evidence { n, k, allowed, needed, .. } = *evidence;
    let outcome = judged(&verdict.outcome);
    let beyond = format!("{} of {}{noun} {}", grouped(k), grouped(n), beyond_word(&verdict.check, verdict.rule));
    match verdict.rule {
        Rule::Point if verdict.check.decide == Some(Decide::Point) => vec!["compared as it is".to_owned()],
        Rule::Point => Vec::new(),
        Rule::Counted => vec![beyond],
        Rule::Extreme if matches!(outcome, CheckOutcome::Violated) => vec![beyond, "one is enough".to_owned()],
        Rule::Extreme => vec![beyond],
        Rule::Mean => {
            let bounds = Some(bounds(evidence)).filter(|bounds| !bounds.is_empty());
            let bounds = bounds.map(|bounds| format!("{BOUNDS}: {bounds}"));
            std::iter::once(format!("from {} requests", grouped(n))).chain(bounds).collect()
        }
        Rule::Cluster => vec![too_many_gaps(verdict, evidence)],
        Rule::Quantile | Rule::Rate => {
            let proof = match outcome {
                CheckOutcome::Violated | CheckOutcome::Inconclusive { side: Side::Over } => Some(match needed {
                    Some(needed) => format!("{} needed to be sure", grouped(needed)),
                    None => "no count is enough at this size".to_owned(),
                }),
                CheckOutcome::Inconclusive { side: Side::Within } => too_few_to_prove(verdict, n),
                CheckOutcome::Met
                | CheckOutcome::Inconclusive { side: Side::Blind }
                | CheckOutcome::CouldNotMeasure { .. }
                | CheckOutcome::NoBaseline { .. }
                | CheckOutcome::Waived { .. } => None,
            };
            [beyond, format!("{} allowed", number(allowed))].into_iter().chain(proof).collect()
        }
        // What they saw is all in the comparison.
        Rule::Paired | Rule::PairedTail | Rule::Stored | Rule::StoredTail | Rule::Bounds => Vec::new(),
        Rule::Knee | Rule::Recovery | Rule::Trend => {
            let bounds = Some(bounds(evidence)).filter(|bounds| !bounds.is_empty());
            let bounds = bounds.map(|bounds| format!("{BOUNDS}: {bounds}"));
            bounds
                .into_iter()
                .chain(evidence.pattern.as_ref().map(pattern::how))
                .filter(|part| !part.is_empty())
                .collect()
        }
    }
}

/// In how many requests more gaps lie beyond the bound than the percentile allows of theirs.
fn too_many_gaps(verdict: &CheckVerdict, evidence: &Evidence) -> String {
    let of = format!("{} of {} requests", grouped(evidence.k), grouped(evidence.n));
    let share = allowed_share(&verdict.check).map_or_else(|| "is allowed".to_owned(), percent);
    format!("{of} with more than {share} of their gaps {}", beyond_word(&verdict.check, verdict.rule))
}

/// The share of measurements that a check on a percentile lets lie beyond its bound.
fn allowed_share(check: &Check) -> Option<f64> {
    let Metric::Series(_, Aggregate::Percentile(percentile)) = whole(check.metric) else { return None };
    let below = f64::from(percentile.thousandths());
    Some(if matches!(check.op, Op::Greater | Op::AtLeast) { below } else { 100_000.0 - below } / 100_000.0)
}

/// Says so where no result of this size could have proven the check.
fn too_few_to_prove(verdict: &CheckVerdict, n: u32) -> Option<String> {
    let power = verdict.power.as_ref()?;
    power.proves_at_most.is_none().then(|| format!("{} requests are too few to prove it", grouped(n)))
}

/// Where a request beyond the bound lies, or what it is: after `4 of 50`, and after `4 of 50 are`.
pub(crate) fn beyond_word(check: &Check, rule: Rule) -> &'static str {
    // A test counts what the bound wants few of; what is only counted is always what is bad.
    let wants_few = matches!(check.op, Op::Less | Op::AtMost);
    match (whole(check.metric), check.op) {
        (Metric::Attainment, _) if rule == Rule::Rate && wants_few => "good",
        (Metric::Attainment, _) => "not good",
        (Metric::ErrorShare(_), _) if rule == Rule::Rate && check.op.wants_more() => "without that",
        (Metric::ErrorShare(kind) | Metric::ErrorCount(kind), _) => failed_word(kind),
        (_, Op::Less | Op::AtMost) => "over",
        (_, Op::Greater | Op::AtLeast) => "under",
        (_, Op::Equal) => "different",
    }
}

/// What a request is that failed in some way.
fn failed_word(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Any => "not ok",
        ErrorKind::Http4xx => "answered with 4xx",
        ErrorKind::Http429 => "answered with 429",
        ErrorKind::Http5xx => "answered with 5xx",
        ErrorKind::Connect => "not connected",
        ErrorKind::Timeout => "timed out",
        ErrorKind::Reset => "reset",
        ErrorKind::Stream => "ended by an error event",
        ErrorKind::Truncated => "truncated",
        ErrorKind::Empty => "empty",
        ErrorKind::Decode => "not decoded",
        ErrorKind::NotStreamed => "not streamed",
    }
}

/// What [`bounds`] are: each is one-sided, so both together hold with 90 %.
pub(crate) const BOUNDS: &str = "95 % each side";

/// The one-sided 95 % bounds of the estimate: `280–345 ms`, `≥ 620 ms`.
pub(crate) fn bounds(evidence: &Evidence) -> String {
    match (evidence.lower.map(figure), evidence.upper.map(figure)) {
        (Some(lower), Some(upper)) if lower == upper => lower,
        (Some(lower), Some(upper)) if lower.ends_with("/s") && upper.ends_with("/s") && !lower.contains(' ') => {
            format!("{}–{upper}", lower.trim_end_matches("/s"))
        }
        (Some(lower), Some(upper)) => match (lower.split_once(' '), upper.split_once(' ')) {
            (Some((number, unit)), Some((_, same))) if unit == same => format!("{number}–{upper}"),
            _ => format!("{lower}–{upper}"),
        },
        (Some(lower), None) => format!("≥ {lower}"),
        (None, Some(upper)) => format!("≤ {upper}"),
        (None, None) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use gate_model::Quantity;

    use super::*;

    #[test]
    fn bounds_that_read_alike_are_one() {
        let between = |lower: &str, upper: &str| {
            let bound = |text: &str| text.parse::<Quantity>().ok();
            bounds(&Evidence {
                n: 30,
                k: 0,
                allowed: 1.5,
                needed: None,
                p_fail: None,
                p_pass: None,
                level: None,
                design_effect: 1.0,
                lower: bound(lower),
                upper: bound(upper),
                comparison: None,
                pattern: None,
                shared: None,
            })
        };
        assert_eq!(between("280ms", "345ms"), "280–345 ms");
        assert_eq!(between("280.1ms", "280.2ms"), "280 ms");
        assert_eq!(between("280ms", "none"), "≥ 280 ms");
        assert_eq!(between("7.6/s", "8.2/s"), "7.6–8.2/s");
        assert_eq!(between("1.4%/h", "2.8%/h"), "1.4–2.8 %/h");
        assert_eq!(between("$0.31", "$0.40"), "$0.31–$0.40");
    }
}
