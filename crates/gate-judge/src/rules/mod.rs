//! Which rule decides a check, and what each rule sees in the scored requests.
//!
//! One module per family; all of them answer with a [`Reading`].

pub(crate) mod counted;
pub(crate) mod extreme;
pub(crate) mod point;
pub(crate) mod quantile;
pub(crate) mod rate;

use gate_model::{Aggregate, Bound, Check, Metric, Op, Quantity, Rule, Series};
use gate_stats::{DesignEffect, Indicators, series};

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
    /// Requests beyond the bound.
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

/// The exceedances of a check, tested against the share its bound allows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Test {
    /// The share of exceedances the bound allows.
    p0: f64,
    /// How the exceedances hang together.
    effect: DesignEffect,
    /// The probability of as many or more if the bound holds exactly.
    pub(crate) p_fail: f64,
    /// The probability of as few or fewer.
    pub(crate) p_pass: f64,
}

impl Test {
    /// Tests marks in send order; `None` of nothing.
    pub(crate) fn of(marks: &Indicators, p0: f64) -> Option<Self> {
        let (n, k, effect) = (marks.n(), marks.k(), marks.design_effect());
        let p_fail = series::p_fail(k, n, effect, p0).ok()?;
        Some(Self { p0, effect, p_fail, p_pass: series::p_pass(k, n, effect, p0).ok()? })
    }

    /// The design effect: 1 where exceedances are independent.
    pub(crate) fn design_effect(&self) -> f64 {
        self.effect.value()
    }

    /// The least count among `n` that violates at a level, with this design effect; `None` where none does.
    pub(crate) fn needed(&self, n: u32, level: f64) -> Option<u32> {
        let violates = |k: u32| {
            series::p_fail(u64::from(k), u64::from(n), self.effect, self.p0).is_ok_and(|p_fail| p_fail <= level)
        };
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
#[must_use]
pub fn rule(check: &Check) -> Rule {
    let upper = matches!(check.op, Op::Less | Op::AtMost);
    let lower = matches!(check.op, Op::Greater | Op::AtLeast);
    match check.metric {
        Metric::Series(Series::SendLag, _) | Metric::Scalar(_) => Rule::Point,
        Metric::Series(_, Aggregate::Percentile(_) | Aggregate::PercentileOfAll(_)) if upper || lower => Rule::Quantile,
        Metric::Series(_, Aggregate::Max) if upper => Rule::Extreme,
        Metric::Series(_, Aggregate::Min) if lower => Rule::Extreme,
        Metric::Series(..) => Rule::Point,
        Metric::ErrorShare(_) | Metric::ErrorCount(_) => Rule::Counted,
        Metric::Attainment => Rule::Rate,
    }
}

/// Whether a rule decides by evidence, and so shares the gate's error probability with the others.
pub(crate) fn is_evidence(rule: Rule) -> bool {
    matches!(rule, Rule::Quantile | Rule::Rate | Rule::Extreme)
}

/// The share of requests beyond its bound that a check decided by evidence allows; `None` for the others.
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
    }
}
