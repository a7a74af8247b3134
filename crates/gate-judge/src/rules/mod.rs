//! Which rule decides a check, and what each rule sees in the scored requests.
//!
//! One module per family; all of them answer with a [`Reading`].

pub(crate) mod bounds;
pub(crate) mod cluster;
pub(crate) mod counted;
pub(crate) mod extreme;
pub(crate) mod knee;
pub(crate) mod mean;
pub(crate) mod paired;
pub(crate) mod point;
pub(crate) mod quantile;
pub(crate) mod rate;
pub(crate) mod recovery;
pub(crate) mod relative;
pub(crate) mod stored;
pub(crate) mod trend;

use gate_model::{
    Against, Aggregate, Bound, Cause, Check, Comparison, Decide, Metric, Op, PatternFacts, Percentile, Quantity, Rule,
    Scalar, Series,
};
use gate_stats::tail::Tail;
use gate_stats::{DesignEffect, Indicators, Limit, Mean, series};

use crate::base::Base;
use crate::scope::Scope;
use crate::scored::{Measured, Scored, count};

/// The percentile from which on stored runs are compared by their tails.
pub(crate) const HIGH: u32 = 90_000;

/// What a rule saw of one check.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Reading {
    /// The printed estimate, in the metric's unit.
    pub(crate) seen: Quantity,
    /// Whether the estimate keeps the bound.
    pub(crate) keeps: bool,
    /// Requests it rests on.
    pub(crate) n: u32,
    /// Requests beyond the bound, as the check's rule counts them.
    pub(crate) k: u32,
    /// How many beyond it a check exactly at its limit has.
    pub(crate) allowed: f64,
    /// The test, for the rules that have one.
    pub(crate) test: Option<Test>,
    /// The count that breaks the bound, for the rules without a test.
    pub(crate) breaks_at: Option<u32>,
    /// The one-sided 95 % lower bound of the estimate.
    pub(crate) lower: Option<f64>,
    /// The one-sided 95 % upper bound of the estimate.
    pub(crate) upper: Option<f64>,
    /// What it was compared with, for relative bounds.
    pub(crate) comparison: Option<Comparison>,
    /// What the pattern of load brought to light, for the rules that look for it.
    pub(crate) pattern: Option<PatternFacts>,
    /// What it may say.
    pub(crate) says: Says,
}

/// What a reading may say of its check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Says {
    /// That it is violated, or that it holds.
    All,
    /// Only that it is violated: runs differ too much for it to be seen to hold.
    Violated,
    /// Neither: the number was measured once, and nothing is known of its error.
    Nothing,
}

impl Reading {
    /// A number compared as it is.
    pub(crate) fn of(check: &Check, seen: Measured, keeps: bool) -> Self {
        Self {
            seen: Quantity { value: seen.value, unit: check.metric.unit() },
            keeps,
            n: seen.n,
            k: 0,
            allowed: 0.0,
            test: None,
            breaks_at: None,
            lower: None,
            upper: None,
            comparison: None,
            pattern: None,
            says: Says::All,
        }
    }
}

/// What a check's requests prove.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Test {
    counts: Counts,
    /// How the exceedances, or the values, hang together.
    effect: DesignEffect,
    /// The probability of as much beyond the bound, or more, if it holds exactly.
    pub(crate) p_fail: f64,
    /// The probability of as little or less.
    pub(crate) p_pass: f64,
}

/// What a test counts.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Counts {
    /// Exceedances, of which this share is allowed.
    Share(f64),
    /// Exceedances of another sample's order statistic.
    Tail(Tail),
    /// Nothing.
    Nothing,
}

impl Test {
    /// Tests marks in send order against the share of exceedances allowed; `None` of nothing.
    pub(crate) fn of(marks: &Indicators, p0: f64) -> Option<Self> {
        let (n, k, effect) = (marks.n(), marks.k(), marks.design_effect());
        let p_fail = series::p_fail(k, n, effect, p0).ok()?;
        Some(Self { counts: Counts::Share(p0), effect, p_fail, p_pass: series::p_pass(k, n, effect, p0).ok()? })
    }

    /// Exceedances of another sample's order statistic.
    pub(crate) fn of_tail(tail: Tail) -> Self {
        let counts = Counts::Tail(tail);
        Self { counts, effect: tail.design_effect, p_fail: tail.p_fail, p_pass: tail.p_pass }
    }

    /// A test that counts nothing.
    pub(crate) fn plain(effect: DesignEffect, p_fail: f64, p_pass: f64) -> Self {
        Self { counts: Counts::Nothing, effect, p_fail, p_pass }
    }

    /// Tests a mean against a limit.
    pub(crate) fn of_mean(mean: Mean, limit: Limit) -> Self {
        Self::plain(mean.design_effect(), mean.p_fail(limit), mean.p_pass(limit))
    }

    /// The design effect: 1 where requests are independent.
    pub(crate) fn design_effect(&self) -> f64 {
        self.effect.value()
    }

    /// The least count among `n` that violates at a level, with this design effect; `None` where none does, and
    /// where nothing is counted.
    pub(crate) fn needed(&self, n: u32, level: f64) -> Option<u32> {
        let p0 = match &self.counts {
            Counts::Share(p0) => *p0,
            Counts::Tail(tail) => return tail.needed(level).map(count),
            Counts::Nothing => return None,
        };
        let violates =
            |k: u32| series::p_fail(u64::from(k), u64::from(n), self.effect, p0).is_ok_and(|p_fail| p_fail <= level);
        least_count(n, violates)
    }
}

/// The exceedances among marks, as the file formats count them.
fn exceedances(marks: &Indicators) -> u32 {
    u32::try_from(marks.k()).unwrap_or(u32::MAX)
}

/// The least count of `1..=n` for which a condition holds that, once true, stays so; `None` where it never is.
pub(crate) fn least_count(n: u32, holds: impl Fn(u32) -> bool) -> Option<u32> {
    let (mut below, mut at_or_above) = (0, n.checked_add(1)?);
    while at_or_above - below > 1 {
        let middle = below + (at_or_above - below) / 2;
        if holds(middle) {
            at_or_above = middle;
        } else {
            below = middle;
        }
    }
    (at_or_above <= n).then_some(at_or_above)
}

/// The rule that decides a check.
///
/// A percentile, largest or smallest value that is compared with `==`, and an extreme bounded on its inner
/// side (`ttft.max > 1s`: one slow request is enough), have no test: they are compared as they are. So are
/// the client's own lateness and standard deviations.
///
/// Against the reference, medians and means are compared by pairs, and other percentiles by the tail; against stored
/// runs a percentile from P90 on by the tail, and all other numbers by their logarithm. Shares are counted.
///
/// `decide: point` takes the test away from the others; `errors.*` have none to lose, and stay counted. `decide:
/// evidence` gives one to a share that is counted; a count of failures has no share that every look could be tested by.
///
/// What a spike has is decided as the same metric over a whole run; growth, and what a ramp and a spike bring to light,
/// by rules of their own, which `decide: point` takes the test away from like others.
#[must_use]
pub fn rule(check: &Check) -> Rule {
    if let Metric::Spike(_) = check.metric {
        return rule(&over_all(check));
    }
    let rule = match &check.bound {
        Bound::Absolute(_) => by_metric(check),
        Bound::Relative(bound) => by_comparison(check, bound.to),
        Bound::ShareOf { .. } => by_share(check),
    };
    match (check.decide, check.metric) {
        (Some(Decide::Point), _) if is_evidence(rule) => Rule::Point,
        (Some(Decide::Evidence), Metric::ErrorShare(_) | Metric::Attainment) if rule == Rule::Counted => Rule::Rate,
        _ => rule,
    }
}

/// The same check on the metric over all requests, where it is on what a spike has.
pub(crate) fn over_all(check: &Check) -> Check {
    let metric = match check.metric {
        Metric::Spike(inner) => inner.metric(),
        metric => metric,
    };
    Check { metric, ..check.clone() }
}

/// The rule of a metric with a fixed bound, unless `decide` says otherwise.
fn by_metric(check: &Check) -> Rule {
    let upper = matches!(check.op, Op::Less | Op::AtMost);
    let lower = matches!(check.op, Op::Greater | Op::AtLeast);
    match check.metric {
        Metric::Scalar(Scalar::KneeRate) => Rule::Knee,
        Metric::Scalar(Scalar::Recovery) => Rule::Recovery,
        Metric::Drift(_) => Rule::Trend,
        Metric::Series(Series::SendLag, _) | Metric::Scalar(_) | Metric::Server(..) | Metric::Spike(_) => Rule::Point,
        Metric::Series(series, Aggregate::Percentile(_)) if series.is_pooled() && (upper || lower) => Rule::Cluster,
        Metric::Series(_, Aggregate::Percentile(_) | Aggregate::PercentileOfAll(_)) if upper || lower => Rule::Quantile,
        Metric::Series(_, Aggregate::Max) if upper => Rule::Extreme,
        Metric::Series(_, Aggregate::Min) if lower => Rule::Extreme,
        Metric::Series(_, Aggregate::Mean) if upper || lower => Rule::Mean,
        Metric::Series(..) => Rule::Point,
        Metric::ErrorShare(_) | Metric::ErrorCount(_) => Rule::Counted,
        Metric::Attainment => Rule::Rate,
    }
}

/// The rule of a metric against what it is in the reference or in stored runs.
///
/// Gaps, and percentiles in which failures count, have no such rule; nor has a comparison without a direction. Largest,
/// smallest and standard deviation hang on a few requests, and differ from run to run by far more than what is usual.
pub(crate) fn by_comparison(check: &Check, to: Against) -> Rule {
    match (check.metric, to) {
        (Metric::ErrorShare(_) | Metric::ErrorCount(_) | Metric::Attainment, _) => Rule::Counted,
        _ if check.op == Op::Equal => Rule::Point,
        (Metric::Series(series, _), _) if series.is_pooled() => Rule::Point,
        (Metric::Series(_, Aggregate::PercentileOfAll(_)), _) => Rule::Point,
        (Metric::Series(Series::SendLag, _), _) => Rule::Point,
        (Metric::Series(_, Aggregate::Max | Aggregate::Min | Aggregate::Stddev), _) => Rule::Point,
        (Metric::Series(_, Aggregate::Percentile(Percentile::P50) | Aggregate::Mean), Against::Reference) => {
            Rule::Paired
        }
        (Metric::Series(_, Aggregate::Percentile(_)), Against::Reference) => Rule::PairedTail,
        (_, Against::Reference) => Rule::Point,
        (Metric::Series(_, Aggregate::Percentile(percentile)), Against::Baseline)
            if percentile.thousandths() >= HIGH =>
        {
            Rule::StoredTail
        }
        (_, Against::Baseline) => Rule::Stored,
    }
}

/// The rule of a metric against a share of what it is in another scenario.
fn by_share(check: &Check) -> Rule {
    match check.metric {
        Metric::Series(series, Aggregate::Percentile(_) | Aggregate::Mean)
            if !series.is_pooled() && series != Series::SendLag && check.op != Op::Equal =>
        {
            Rule::Bounds
        }
        _ => Rule::Point,
    }
}

/// Whether a rule decides by evidence, and so shares the gate's error probability with the others.
pub(crate) fn is_evidence(rule: Rule) -> bool {
    match rule {
        Rule::Quantile
        | Rule::Rate
        | Rule::Extreme
        | Rule::Mean
        | Rule::Cluster
        | Rule::Paired
        | Rule::PairedTail
        | Rule::Stored
        | Rule::StoredTail
        | Rule::Bounds
        | Rule::Knee
        | Rule::Recovery
        | Rule::Trend => true,
        Rule::Counted | Rule::Point => false,
    }
}

/// Whether a required check, seen over its limit, asks for more requests: more of them tell how requests differ, but
/// not how runs do, and what is compared with something else that was measured is as uncertain as that.
pub(crate) fn extends(check: &Check) -> bool {
    let rule = matches!(rule(check), Rule::Quantile | Rule::Rate | Rule::Extreme | Rule::Counted);
    rule && limit(check).is_some()
}

/// The share of requests beyond its bound that a check allows which is decided by counting them; `None` for the
/// others, and where only the data tell it.
pub(crate) fn allowed_share(check: &Check) -> Option<f64> {
    if let Metric::Spike(_) = check.metric {
        return allowed_share(&over_all(check));
    }
    match (rule(check), check.metric) {
        (Rule::Quantile, Metric::Series(_, Aggregate::Percentile(p) | Aggregate::PercentileOfAll(p))) => {
            quantile::allowed_share(p, check.op)
        }
        (Rule::Rate, _) => Some(rate::allowed_share(check.op, limit(check)?)),
        (Rule::Extreme, _) => Some(0.0),
        _ => None,
    }
}

/// The number of a fixed bound, in the metric's unit.
pub(crate) fn limit(check: &Check) -> Option<f64> {
    check.bound.absolute().map(|quantity| quantity.value)
}

/// What a check's rule sees at a look, or why it sees nothing.
pub(crate) fn read(check: &Check, scope: &Scope<'_>) -> Result<Reading, Cause> {
    match (rule(check), scope.base) {
        (Rule::Paired, _) => paired::location(check, scope),
        (Rule::PairedTail, _) => paired::tail(check, scope),
        (Rule::Stored, Base::Runs(runs)) => stored::number(check, &scope.scored, runs),
        (Rule::StoredTail, Base::Runs(runs)) => stored::tail(check, &scope.scored, runs),
        (Rule::Bounds, _) => bounds::read(check, scope),
        (Rule::Knee, _) => knee::read(check, scope),
        (Rule::Recovery, _) => recovery::read(check, scope),
        (Rule::Trend, _) => trend::read(check, scope),
        // `decide: point` takes away the test, not the way the number is found.
        (Rule::Point, _) if check.bound.absolute().is_some() && by_metric(check) != Rule::Point => {
            untested(check, scope)
        }
        _ => match limit(check) {
            Some(limit) => with_limit(check, &scope.scored, limit).ok_or(Cause::NoData),
            None => relative::read(check, scope),
        },
    }
}

/// The number of a pattern compared as it is; any other number by itself.
fn untested(check: &Check, scope: &Scope<'_>) -> Result<Reading, Cause> {
    let read = match by_metric(check) {
        Rule::Knee => knee::read,
        Rule::Recovery => recovery::read,
        Rule::Trend => trend::read,
        _ => {
            let limit = limit(check).ok_or(Cause::NoData)?;
            return with_limit(check, &scope.scored, limit).ok_or(Cause::NoData);
        }
    };
    Ok(Reading { test: None, says: Says::All, ..read(check, scope)? })
}

/// What the rule of a fixed bound sees; `None` where the metric has no value.
fn with_limit(check: &Check, scored: &Scored<'_>, limit: f64) -> Option<Reading> {
    match rule(check) {
        Rule::Quantile => quantile::read(check, scored),
        Rule::Rate => rate::read(check, scored, limit),
        Rule::Extreme => extreme::read(check, scored),
        Rule::Counted => counted::read(check, scored, limit),
        Rule::Mean => mean::read(check, scored),
        Rule::Cluster => cluster::read(check, scored),
        _ => point::read(check, scored, limit),
    }
}
