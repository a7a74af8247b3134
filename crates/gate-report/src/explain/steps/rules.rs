//! The steps of each rule up to its probability.

use gate_model::{Aggregate, CheckVerdict, Comparison, Evidence, Metric, Op, Quantity, Rule, Unit, With};

use crate::layout::counted;
use crate::words::{
    BOUNDS, allowance, base_figure, beyond_word, bounds, change, change_seen, figure, grouped, limit_figure, number,
    p_value, percent, reckoned, seen_figure, short_label, whose,
};

/// What is compared, what is counted or reckoned, and the probability that comes out.
pub(super) fn steps(check: &CheckVerdict, evidence: &Evidence) -> Vec<String> {
    let comparison = evidence.comparison.as_ref();
    let mut steps = vec![compared(check, evidence)];
    steps.extend(comparison.map(|comparison| base(check, comparison)));
    steps.extend(match check.rule {
        Rule::Quantile | Rule::Rate => vec![exceedances(check, evidence), bursts(evidence), binomial(evidence)],
        Rule::Counted => vec![count(check, evidence)],
        Rule::Extreme => vec![extreme(check, evidence)],
        Rule::Point => vec!["Nothing is tested: the number is compared as it is.".to_owned()],
        Rule::Mean => vec![mean(check, evidence), bursts(evidence), student(check, evidence)],
        Rule::Cluster => vec![cluster(check, evidence), bursts(evidence), student(check, evidence)],
        Rule::Paired => comparison.map(|comparison| paired(check, evidence, comparison)).unwrap_or_default(),
        Rule::PairedTail => comparison.map(|comparison| paired_tail(check, evidence, comparison)).unwrap_or_default(),
        Rule::Stored => comparison.map(|comparison| stored(check, evidence, comparison)).unwrap_or_default(),
        Rule::StoredTail => comparison.map(|comparison| stored_tail(check, evidence, comparison)).unwrap_or_default(),
        Rule::Bounds => comparison.map(|comparison| of_bounds(evidence, comparison)).unwrap_or_default(),
        Rule::Knee | Rule::Recovery | Rule::Trend => super::patterns::steps(check, evidence),
    });
    steps.into_iter().filter(|step| !step.is_empty()).collect()
}

/// The number seen and what is asked of it.
fn compared(check: &CheckVerdict, evidence: &Evidence) -> String {
    let noun = if check.rule == Rule::Paired { "pair" } else { "request" };
    let what = format!("{} of {}", short_label(check.check.metric), counted(evidence.n as usize, noun));
    let bounds = Some(bounds(evidence)).filter(|bounds| !bounds.is_empty());
    let bounds = bounds.map(|bounds| format!(" ({BOUNDS}: {bounds})")).unwrap_or_default();
    let seen = seen_figure(check).unwrap_or_else(|| "unknown".to_owned());
    let bound = limit_figure(check).filter(|_| check.check.bound.absolute().is_some());
    let bound = bound.unwrap_or_else(|| check.check.bound_text.clone());
    if evidence.pattern.is_some() && check.seen.is_none() {
        return format!(
            "What is seen. The {what} has no value in this run. It has to be {} {bound}.",
            op_words(check.check.op)
        );
    }
    format!("What is seen. The {what} is {seen}{bounds}. It has to be {} {bound}.", op_words(check.check.op))
}

fn op_words(op: Op) -> &'static str {
    match op {
        Op::Less => "under",
        Op::AtMost => "at most",
        Op::Greater => "over",
        Op::AtLeast => "at least",
        Op::Equal => "exactly",
    }
}

/// What it is compared with, and what the bound comes to there.
fn base(check: &CheckVerdict, comparison: &Comparison) -> String {
    let Some(base) = comparison.base else {
        return "The base. It has no value there.".to_owned();
    };
    let how = match (check.rule, &comparison.with) {
        _ if base.value == 0.0 => "",
        (_, With::Baseline { runs: 1 }) => "",
        (Rule::Stored, _) => ", the geometric mean of the runs",
        (Rule::StoredTail, _) => ", of all their requests together",
        (Rule::Counted | Rule::Rate, With::Baseline { .. }) => ", of all their requests together",
        (Rule::Point, With::Baseline { .. }) => ", their median",
        _ => "",
    };
    let noun = if check.rule == Rule::Paired { "pair" } else { "request" };
    let of = counted(comparison.n as usize, noun);
    let dropped = match comparison.dropped {
        0 => String::new(),
        1 => "; 1 more pair is left out, since an arm failed in it".to_owned(),
        dropped => format!("; {} more pairs are left out, since an arm failed in them", grouped(dropped)),
    };
    let zero = if base.value == 0.0 && comparison.tolerance.is_none() && check.check.metric.unit() != Unit::Share {
        " Zero has no percent: only what the bound allows in the metric's own unit counts, and zero to zero is equal."
    } else {
        ""
    };
    format!(
        "The base. It is {} {} ({of}{how}{dropped}). The bound on that: {}.{zero}",
        base_figure(check).unwrap_or_default(),
        whose(&comparison.with),
        allowance(check, comparison)
    )
}

/// How many requests are beyond the bound, and how many would be.
fn exceedances(check: &CheckVerdict, evidence: &Evidence) -> String {
    let beyond = beyond_word(&check.check, check.rule);
    let what = match (check.check.metric, check.check.op) {
        (Metric::Attainment, _) => NOT_GOOD.to_owned(),
        (Metric::ErrorShare(_) | Metric::ErrorCount(_), _) => format!("A request counts where it is {beyond}"),
        (_, Op::Less | Op::Greater) => format!("A request is {beyond} where its value is the limit or beyond it"),
        _ => format!("A request is {beyond} where its value is beyond the limit"),
    };
    let failed = match check.check.metric {
        Metric::Series(_, Aggregate::PercentileOfAll(_)) => ", and so is one that failed",
        _ => "",
    };
    let share = if evidence.n > 0 { evidence.allowed / f64::from(evidence.n) } else { 0.0 };
    format!(
        "The count. {what}{failed}: {} of {} {}. If the bound held just so, {} would be: {}.",
        grouped(evidence.k),
        grouped(evidence.n),
        are(evidence.k),
        percent(share),
        number(evidence.allowed)
    )
}

/// How requests beyond the bound, or values, hang together.
fn bursts(evidence: &Evidence) -> String {
    let effect = evidence.design_effect;
    if effect <= 1.0 {
        return "Bursts. What came one after the other is no more alike than chance has it (design effect 1), so each \
                request counts for itself."
            .to_owned();
    }
    format!(
        "Bursts. What came one after the other is alike (design effect {}, from how each request goes with the five \
         after it), so {} requests say as much as {} independent ones.",
        number(effect),
        grouped(evidence.n),
        number(f64::from(evidence.n) / effect)
    )
}

fn binomial(evidence: &Evidence) -> String {
    let Some(p) = evidence.p_fail else { return String::new() };
    format!(
        "The probability. If the bound held just so, {} or more of {} would be beyond it with {} (binomial{}).",
        grouped(evidence.k),
        grouped(evidence.n),
        p_value(p),
        if evidence.design_effect > 1.0 { ", both numbers divided by the design effect" } else { "" }
    )
}

fn count(check: &CheckVerdict, evidence: &Evidence) -> String {
    let what = if check.check.metric == Metric::Attainment { format!("{NOT_GOOD}. ") } else { String::new() };
    format!(
        "The count. {what}{} of {} requests {} {}, when the run has ended. Nothing is tested: the number is compared as \
         it is.",
        grouped(evidence.k),
        grouped(evidence.n),
        are(evidence.k),
        beyond_word(&check.check, check.rule)
    )
}

fn are(count: u32) -> &'static str {
    if count == 1 { "is" } else { "are" }
}

/// What good requests are not.
const NOT_GOOD: &str = "A request is not good where it failed or broke a bound of `slo`";

fn extreme(check: &CheckVerdict, evidence: &Evidence) -> String {
    format!(
        "The count. {} of {} requests {} {}; one is enough, and no chance is involved.",
        grouped(evidence.k),
        grouped(evidence.n),
        are(evidence.k),
        beyond_word(&check.check, check.rule)
    )
}

fn mean(check: &CheckVerdict, evidence: &Evidence) -> String {
    let bound = check.check.bound.absolute().map(figure).unwrap_or_default();
    format!(
        "The distance. The mean is {} away from {bound}, and the spread of {} requests tells how far a mean of so many \
         strays by chance.",
        distance(check).unwrap_or_else(|| "an unknown way".to_owned()),
        grouped(evidence.n)
    )
}

/// How far what was seen lies from a fixed bound.
fn distance(check: &CheckVerdict) -> Option<String> {
    let (seen, bound) = (check.seen?, check.check.bound.absolute()?);
    Some(figure(Quantity { value: (seen.value - bound.value).abs(), ..seen }))
}

fn cluster(check: &CheckVerdict, evidence: &Evidence) -> String {
    format!(
        "The count. Gaps of one request hang together, so each request gives one number: its gaps {} the limit, less \
         those that the percentile allows of its gaps. {} of {} requests have too many. If the bound held just so, the \
         mean of these numbers would be 0.",
        beyond_word(&check.check, check.rule),
        grouped(evidence.k),
        grouped(evidence.n)
    )
}

fn student(check: &CheckVerdict, evidence: &Evidence) -> String {
    let Some(p) = evidence.p_fail else { return String::new() };
    let freedom = f64::from(evidence.n) / evidence.design_effect.max(1.0) - 1.0;
    let what = if check.rule == Rule::Cluster { "their mean" } else { "the mean" };
    format!(
        "The probability. By Student's t with {} degrees of freedom, {what} would be as far beyond the bound, or \
         farther, with {}.",
        number(freedom),
        p_value(p)
    )
}

fn paired(check: &CheckVerdict, evidence: &Evidence, comparison: &Comparison) -> Vec<String> {
    let Some(p) = evidence.p_fail else { return vec![untested(comparison)] };
    let tolerance = comparison.tolerance.map(|tolerance| format!(" − {}", in_formula(tolerance)));
    let w = comparison.statistic.map(|w| format!(" is W = {}", reckoned(w))).unwrap_or_default();
    let alike = if evidence.design_effect > 1.0 {
        format!(", the sum times the design effect {}, since neighbours are alike", number(evidence.design_effect))
    } else {
        String::new()
    };
    let z = normal(comparison, -1.0).map_or_else(String::new, |z| {
        let deviation = comparison.deviation.map(reckoned).unwrap_or_default();
        format!(
            " By chance it strays from 0 by √V = {deviation}, the root of the sum of the squared ranks{alike}. {z}."
        )
    });
    vec![
        format!(
            "The pairs. Each of the {} pairs gives d = ln(target) − ln(reference){}. In {} of them the target is beyond \
             the bound; if it held just so, half would be: {}.",
            grouped(evidence.n),
            tolerance.unwrap_or_default(),
            grouped(evidence.k),
            number(evidence.allowed)
        ),
        format!(
            "The ranks. The d are ranked by their size, and those of 0 left out. The sum of the ranks of the pairs beyond \
             the bound, less that of the others,{w}. It would be near 0 if the bound held just so."
        ),
        format!(
            "The probability.{z} If the bound held just so, a sum as large, or larger, would be seen with {} (normal \
             distribution).",
            p_value(p)
        ),
        estimate(
            check,
            comparison,
            "the typical change of a pair, the median of the averages of every two (Hodges–Lehmann)",
        ),
    ]
}

/// The standardised sum of signed ranks, one step of it nearer to 0 or farther from it: `z = (W − 1) ÷ √V =
/// (91 − 1) ÷ 207.1 = 0.4346`.
pub(super) fn normal(comparison: &Comparison, step: f64) -> Option<String> {
    let (w, deviation) = comparison.statistic.zip(comparison.deviation.filter(|deviation| *deviation > 0.0))?;
    let sign = if step < 0.0 { '−' } else { '+' };
    let z = reckoned((w + step) / deviation);
    Some(format!("z = (W {sign} 1) ÷ √V = ({} {sign} 1) ÷ {} = {z}", reckoned(w), reckoned(deviation)))
}

fn paired_tail(check: &CheckVerdict, evidence: &Evidence, comparison: &Comparison) -> Vec<String> {
    let Some(p) = evidence.p_fail else { return vec![untested(comparison)] };
    vec![
        cut(check, evidence, comparison, "the reference's own number with what the bound allows"),
        bursts(evidence),
        drawn(evidence, comparison, p),
    ]
}

fn stored(check: &CheckVerdict, evidence: &Evidence, comparison: &Comparison) -> Vec<String> {
    let Some(p) = evidence.p_fail else { return vec![untested(comparison)] };
    let With::Baseline { runs } = comparison.with else { return Vec::new() };
    let freedom = comparison.freedom.map(|freedom| format!(" with {} degrees of freedom", number(freedom)));
    let smooth = match check.check.metric {
        Metric::Series(_, Aggregate::Percentile(_)) => {
            ", each percentile as a weighted mean of the values around it (Harrell–Davis), which strays less than the one \
             value that is shown above"
        }
        _ => "",
    };
    let stored = if runs == 1 { "the stored one" } else { "the mean of the stored ones" };
    vec![
        estimate(check, comparison, &format!("this run ÷ {stored}{smooth}")),
        noise(check, comparison, runs),
        distance_of_runs(check, comparison, runs),
        format!(
            "The probability. If the bound held just so, t would be as large, or larger, with {} (Student's t{}).",
            p_value(p),
            freedom.unwrap_or_default()
        ),
    ]
}

/// How much runs differ among themselves.
fn noise(check: &CheckVerdict, comparison: &Comparison, runs: u32) -> String {
    let noise = comparison.noise.map(percent).unwrap_or_else(|| "an unknown share".to_owned());
    let from = match runs {
        1 => format!(
            "Runs are taken to differ by s = {noise}: by 5 % (or what `gate calibrate` found), and by what so many \
             requests differ by chance. One stored run shows nothing of that itself."
        ),
        runs => format!(
            "Runs differ by s = {noise} among themselves: their own spread, mixed with 5 % (or what `gate calibrate` \
             found) and what so many requests differ by chance, in the weight of four runs, since {} tell little of it.",
            grouped(runs)
        ),
    };
    let detects = comparison.detects.map(|detects| {
        let found = change(check.check.metric.unit(), detects);
        format!(" With so much noise {found} is found in 4 of 5 runs, and less more rarely.")
    });
    format!("The noise. {from}{}", detects.unwrap_or_default())
}

/// Student's t, with its numbers. It is large where the run is bad, whichever way the bound.
fn distance_of_runs(check: &CheckVerdict, comparison: &Comparison, runs: u32) -> String {
    let base = comparison.base.map(|base| base.value).filter(|base| *base > 0.0);
    let is_share = check.check.metric.unit() == Unit::Share;
    // Changes of shares are in points.
    let ratio = comparison.change.and_then(|change| if is_share { Some(change / base?) } else { Some(change) });
    let limit = base.zip(comparison.limit).map(|(base, limit)| limit.value / base - 1.0);
    let limit = comparison.tolerance.or(limit);
    let names = ["ln(this run ÷ stored runs)".to_owned(), limit.map_or_else(|| "ln(limit)".to_owned(), in_formula)];
    let turned = |pair: [String; 2]| {
        let [first, second] = pair;
        if check.check.op.wants_more() { format!("{second} − {first}") } else { format!("{first} − {second}") }
    };
    let deviation = comparison.deviation.map(reckoned);
    let numbers = ratio.zip(limit).zip(deviation.clone()).map(|((ratio, limit), deviation)| {
        let in_brackets = |value: f64| {
            let text = reckoned(value.ln_1p());
            if text.starts_with('−') { format!("({text})") } else { text }
        };
        format!(" = ({}) ÷ {deviation}", turned([ratio, limit].map(in_brackets)))
    });
    let t = comparison.statistic.map(|t| format!(" = {}", reckoned(t))).unwrap_or_default();
    let straying = deviation.map(|deviation| format!(", and s √(1 + 1/{runs}) = {deviation}")).unwrap_or_default();
    format!(
        "The distance. Logarithms are compared{straying}: t = ({}) ÷ (s √(1 + 1/{runs})){}{t}.",
        turned(names),
        numbers.unwrap_or_default()
    )
}

fn stored_tail(check: &CheckVerdict, evidence: &Evidence, comparison: &Comparison) -> Vec<String> {
    let Some(p) = evidence.p_fail else { return vec![untested(comparison)] };
    let With::Baseline { runs } = comparison.with else { return Vec::new() };
    let (sign, noise) = (if check.check.op.wants_more() { "−" } else { "" }, comparison.noise);
    let margin = noise.map(|noise| format!(", times exp({sign}{} × √(1 + 1/{runs}))", reckoned(noise)));
    let how = format!(
        "the limit{} for the noise from run to run, so that a run is not to blame for it",
        margin.unwrap_or_else(|| ", with a margin".to_owned())
    );
    vec![cut(check, evidence, comparison, &how), bursts(evidence), drawn(evidence, comparison, p)]
}

fn of_bounds(evidence: &Evidence, comparison: &Comparison) -> Vec<String> {
    let Some(p) = evidence.p_fail else { return vec![untested(comparison)] };
    vec![format!(
        "The bounds. Both numbers are known only within bounds, from {} requests here and {} there; the surer the \
         bounds, the wider. The check is violated where the near bound of this one still breaks the limit that the far \
         bound of the other sets. With {} they just do.",
        grouped(evidence.n),
        grouped(comparison.n),
        p_value(p)
    )]
}

/// The value whose exceedances are counted, and how many there are.
fn cut(check: &CheckVerdict, evidence: &Evidence, comparison: &Comparison, how: &str) -> String {
    let cut = comparison.cut.map_or_else(|| "unknown".to_owned(), figure);
    format!(
        "The count. The cut is {cut}: {how}. {} of {} requests {} {} it; about {} would be if the bound held just so.",
        grouped(evidence.k),
        grouped(evidence.n),
        are(evidence.k),
        beyond_word(&check.check, check.rule),
        number(evidence.allowed)
    )
}

/// The probability of exceedances of an order statistic, with the parameters of its distribution.
fn drawn(evidence: &Evidence, comparison: &Comparison, p: f64) -> String {
    let (n, k, base) = (f64::from(evidence.n), f64::from(evidence.k), f64::from(comparison.n));
    // Of M + 1 gaps between the base's values so many lie beyond the cut.
    let beyond = (evidence.allowed / n.max(1.0) * (base + 1.0)).round();
    let effect = evidence.design_effect.max(1.0);
    let whole = |value: f64| (value / effect + 1e-9).floor();
    format!(
        "The probability. If the bound held just so, {} or more of {} would be beyond the cut with {} (beta-binomial with \
         α = {} and β = {}, since the base is itself known from {} only: {} or more of {}{}).",
        grouped(evidence.k),
        grouped(evidence.n),
        p_value(p),
        number(beyond),
        number(base + 1.0 - beyond),
        counted(comparison.n as usize, "request"),
        number(whole(k)),
        number(whole(n)),
        if evidence.design_effect > 1.0 { ", both divided by the design effect" } else { "" }
    )
}

/// The change by the rule's own estimate.
fn estimate(check: &CheckVerdict, comparison: &Comparison, how: &str) -> String {
    let change = change_seen(check.check.metric.unit(), comparison);
    change.map(|change| format!("The estimate. The change is {change}: {how}.")).unwrap_or_default()
}

/// Why a relative check has no test on this base.
fn untested(comparison: &Comparison) -> String {
    let zero = comparison.base.is_some_and(|base| base.value == 0.0);
    if zero {
        "Nothing is tested: a base of zero has no logarithm, so the numbers are compared as they are.".to_owned()
    } else {
        "Nothing is tested: the numbers are compared as they are.".to_owned()
    }
}

/// A tolerance as it stands in a formula: `ln(1 + 15 %)`.
fn in_formula(tolerance: f64) -> String {
    let sign = if tolerance < 0.0 { '−' } else { '+' };
    format!("ln(1 {sign} {})", percent(tolerance.abs()))
}
