//! `X.pQ` against a limit: the exceedances of the limit, by an exact binomial with a design effect.

use gate_model::{Aggregate, Check, Metric, Op, Outcome, Percentile};
use gate_stats::{Indicators, Limit, Mark, Quantile, Sorted, quantile};

use super::{Reading, Test, exceedances, limit};
use crate::BOUNDS_ALPHA;
use crate::scored::{Measured, Scored, count, of_all};

/// `1 − Q` where small values are good, `Q` where large ones are.
pub(crate) fn allowed_share(percentile: Percentile, op: Op) -> Option<f64> {
    let allowed = Quantile::from_thousandths(allowed_thousandths(percentile, op)).ok()?;
    Some(allowed.fraction())
}

/// The same in exact thousandths of a percent.
pub(crate) fn allowed_thousandths(percentile: Percentile, op: Op) -> u32 {
    let quantile = percentile.thousandths();
    if is_lower_bound(op) { quantile } else { 100_000 - quantile }
}

/// Reads a percentile check.
pub(crate) fn read(check: &Check, scored: &Scored<'_>) -> Option<Reading> {
    let Metric::Series(series, aggregate) = check.metric else { return None };
    let (percentile, of_ok) = match aggregate {
        Aggregate::Percentile(percentile) => (percentile, true),
        Aggregate::PercentileOfAll(percentile) => (percentile, false),
        _ => return None,
    };
    let limit = limit(check)?;
    let bound = as_limit(check.op, limit);
    let mut marks = Indicators::default();
    let mut values = Vec::new();
    for request in scored.all() {
        let failed = request.outcome() != Outcome::Ok;
        if failed && of_ok {
            continue;
        }
        let Some(value) = of_all(request, series, worst(check.op)) else { continue };
        marks.push(if failed { Mark::Exceeded } else { bound.mark(value) });
        values.push(value);
    }
    let p0 = allowed_share(percentile, check.op)?;
    let quantile = Quantile::from_thousandths(percentile.thousandths()).ok()?;
    let sorted = Sorted::new(values).ok()?;
    let at = |rank: Option<usize>| rank.and_then(|rank| sorted.at_rank(rank));
    let seen = quantile::nearest_rank(&sorted, quantile);
    let n = count(sorted.len());
    Some(Reading {
        k: exceedances(&marks),
        allowed: f64::from(n) * p0,
        test: Some(Test::of(&marks, p0)?),
        lower: at(quantile::lower_rank(sorted.len(), quantile, BOUNDS_ALPHA).ok().flatten()),
        upper: at(quantile::upper_rank(sorted.len(), quantile, BOUNDS_ALPHA).ok().flatten()),
        ..Reading::of(check, Measured { value: seen, n }, check.op.holds(seen, limit))
    })
}

/// What a failed request counts as: it is infinitely late, and where more is better it brought nothing.
pub(crate) fn worst(op: Op) -> f64 {
    if is_lower_bound(op) { 0.0 } else { f64::INFINITY }
}

/// Whether large values are good.
fn is_lower_bound(op: Op) -> bool {
    matches!(op, Op::Greater | Op::AtLeast)
}

/// The bound as one on a single value.
pub(crate) fn as_limit(op: Op, limit: f64) -> Limit {
    match op {
        Op::Less => Limit::Below(limit),
        Op::AtMost | Op::Equal => Limit::AtMost(limit),
        Op::Greater => Limit::Above(limit),
        Op::AtLeast => Limit::AtLeast(limit),
    }
}
