//! Which rule decides a check, and what each rule sees in the scored requests.
//!
//! One module per family; all of them answer with a [`Reading`].

pub(crate) mod cluster;
pub(crate) mod counted;
pub(crate) mod extreme;
pub(crate) mod mean;
pub(crate) mod point;
pub(crate) mod quantile;
pub(crate) mod rate;

use gate_model::{Aggregate, Bound, Check, Decide, Metric, Op, Quantity, Rule, Series};
use gate_stats::{DesignEffect, Indicators, Limit, Mean, series};

use crate::scored::Scored;

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
}

/// What a check's requests prove.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Test {
    /// The share of exceedances the bound allows; `None` where a mean is tested.
    p0: Option<f64>,
    /// How the exceedances, or the values, hang together.
    effect: DesignEffect,
    /// The probability of as much beyond the bound, or more, if it holds exactly.
    pub(crate) p_fail: f64,
    /// The probability of as little or less.
    pub(crate) p_pass: f64,
}

impl Test {
    /// Tests marks in send order against the share of exceedances allowed; `None` of nothing.
    pub(crate) fn of(marks: &Indicators, p0: f64) -> Option<Self> {
        let (n, k, effect) = (marks.n(), marks.k(), marks.design_effect());
        let p_fail = series::p_fail(k, n, effect, p0).ok()?;
        Some(Self { p0: Some(p0), effect, p_fail, p_pass: series::p_pass(k, n, effect, p0).ok()? })
    }

    /// Tests a mean against a limit.
    pub(crate) fn of_mean(mean: Mean, limit: Limit) -> Self {
        Self { p0: None, effect: mean.design_effect(), p_fail: mean.p_fail(limit), p_pass: mean.p_pass(limit) }
    }

    /// The design effect: 1 where requests are independent.
    pub(crate) fn design_effect(&self) -> f64 {
        self.effect.value()
    }

    /// The least count among `n` that violates at a level, with this design effect; `None` where none does, and
    /// where a mean is tested.
    pub(crate) fn needed(&self, n: u32, level: f64) -> Option<u32> {
        let p0 = self.p0?;
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
/// `decide: point` takes the test away from the others; `errors.*` have none to lose, and stay counted. `decide:
/// evidence` gives one to a share of failures; a count of failures has no share that every look could be tested by.
#[must_use]
pub fn rule(check: &Check) -> Rule {
    let rule = by_metric(check);
    match (check.decide, check.metric) {
        (Some(Decide::Point), _) if is_evidence(rule) => Rule::Point,
        (Some(Decide::Evidence), Metric::ErrorShare(_)) => Rule::Rate,
        _ => rule,
    }
}

/// The rule of a metric with its bound, unless `decide` says otherwise.
fn by_metric(check: &Check) -> Rule {
    let upper = matches!(check.op, Op::Less | Op::AtMost);
    let lower = matches!(check.op, Op::Greater | Op::AtLeast);
    match check.metric {
        Metric::Series(Series::SendLag, _) | Metric::Scalar(_) => Rule::Point,
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

/// Whether a rule decides by evidence, and so shares the gate's error probability with the others.
pub(crate) fn is_evidence(rule: Rule) -> bool {
    match rule {
        Rule::Quantile | Rule::Rate | Rule::Extreme | Rule::Mean | Rule::Cluster => true,
        Rule::Counted | Rule::Point => false,
    }
}

/// Whether a required check under this rule, seen over its limit, asks for more requests.
pub(crate) fn extends(rule: Rule) -> bool {
    matches!(rule, Rule::Quantile | Rule::Rate | Rule::Extreme | Rule::Counted)
}

/// The share of requests beyond its bound that a check allows which is decided by counting them; `None` for the
/// others.
pub(crate) fn allowed_share(check: &Check) -> Option<f64> {
    match (rule(check), check.metric) {
        (Rule::Quantile, Metric::Series(_, Aggregate::Percentile(p) | Aggregate::PercentileOfAll(p))) => {
            quantile::allowed_share(p, check.op)
        }
        (Rule::Rate, _) => Some(rate::allowed_share(check.op, limit(check))),
        (Rule::Extreme, _) => Some(0.0),
        _ => None,
    }
}

/// The bound's number, in the metric's unit.
pub(crate) fn limit(check: &Check) -> f64 {
    let Bound::Absolute(quantity) = &check.bound;
    quantity.value
}

/// What a check's rule sees in the scored requests; `None` where its metric has no value.
pub(crate) fn read(check: &Check, scored: &Scored<'_>) -> Option<Reading> {
    match rule(check) {
        Rule::Quantile => quantile::read(check, scored),
        Rule::Rate => rate::read(check, scored),
        Rule::Extreme => extreme::read(check, scored),
        Rule::Counted => counted::read(check, scored),
        Rule::Point => point::read(check, scored),
        Rule::Mean => mean::read(check, scored),
        Rule::Cluster => cluster::read(check, scored),
    }
}
