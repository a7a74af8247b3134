//! `X.p50` and `X.mean` against the reference: Wilcoxon's signed ranks of the pairs' log ratios; and `X.pQ` for any
//! other Q: the exceedances of the reference's order statistic.

use gate_model::{Aggregate, Cause, Check, Comparison, Metric, Outcome, Quantity, Request, Series, With};
use gate_stats::{Quantile, Sorted, paired, quantile, tail};

use super::{Reading, Test};
use crate::BOUNDS_ALPHA;
use crate::allowance::{Allowance, is_beyond};
use crate::scope::Scope;
use crate::scored::{Scored, count};
use crate::validity::{LEAST_OK, LEAST_OK_OF_TAIL};

/// The values of both arms in the pairs that have both, in send order.
pub(crate) struct Pairs {
    /// (target, reference)
    pub(crate) values: Vec<(f64, f64)>,
    /// Pairs in which an arm failed, or has no value.
    pub(crate) dropped: u32,
}

impl Pairs {
    /// Those of a series.
    pub(crate) fn of(series: Series, scored: &Scored<'_>, reference: &Scored<'_>) -> Self {
        let value = |one: Request<'_>| one.value(series).filter(|_| one.outcome() == Outcome::Ok);
        let pairs = scored.all().zip(reference.all());
        let values: Vec<(f64, f64)> =
            pairs.filter_map(|(target, reference)| Some((value(target)?, value(reference)?))).collect();
        let dropped = scored.n().saturating_sub(count(values.len()));
        Self { values, dropped }
    }

    fn len(&self) -> u32 {
        count(self.values.len())
    }

    /// So few that nothing can be said.
    fn too_few(&self, needed: u32) -> Cause {
        Cause::ReferenceTooFewOk { ok: self.len(), needed }
    }
}

/// Reads a check on a median or a mean.
///
/// The bound is reckoned from the reference's printed number, and the tested change is that of the typical pair: where
/// only the printed numbers break the bound, the check is seen over it. Of the evidence, `k` are the pairs beyond the
/// tolerance; half of them are allowed.
pub(crate) fn location(check: &Check, scope: &Scope<'_>) -> Result<Reading, Cause> {
    let Metric::Series(series, _) = check.metric else { return Err(Cause::NoData) };
    let pairs = Pairs::of(series, &scope.scored, &scope.reference);
    let seen = scope.scored.measure(check.metric).ok_or(Cause::NoData)?;
    let base = scope.reference.measure(check.metric).filter(|_| pairs.len() > 0).ok_or(pairs.too_few(LEAST_OK))?;
    let allowance = Allowance::of(check, base.value).ok_or(Cause::NoData)?;
    let comparison =
        Comparison { dropped: pairs.dropped, ..allowance.comparison(With::Reference, seen.value, pairs.len()) };
    let reading = Reading { n: pairs.len(), ..Reading::of(check, seen, allowance.keeps(seen.value)) };
    let Some(tolerance) = allowance.ratio_less_one() else {
        return Ok(Reading { comparison: Some(comparison), ..reading });
    };
    let worse = allowance.worse();
    let test = paired::signed_rank(&pairs.values, tolerance, worse).map_err(|_| Cause::NoData)?;
    let change = paired::location(&pairs.values, BOUNDS_ALPHA);
    let beyond =
        pairs.values.iter().filter(|(target, reference)| is_beyond(*target, (1.0 + tolerance) * reference, worse));
    Ok(Reading {
        k: count(beyond.count()),
        allowed: f64::from(pairs.len()) / 2.0,
        test: Some(Test::plain(test.design_effect, test.p_fail, test.p_pass)),
        comparison: Some(Comparison {
            change: change.and_then(|change| allowance.change(change.value)),
            lower: change.and_then(|change| allowance.change(change.lower?)),
            upper: change.and_then(|change| allowance.change(change.upper?)),
            statistic: Some(test.statistic),
            deviation: Some(test.deviation).filter(|deviation| *deviation > 0.0),
            ..comparison
        }),
        ..reading
    })
}

/// Reads a check on any other percentile. The test is exact at any size; what it may say of few pairs is for
/// [`validity`](crate::validity).
pub(crate) fn tail(check: &Check, scope: &Scope<'_>) -> Result<Reading, Cause> {
    let Metric::Series(series, Aggregate::Percentile(percentile)) = check.metric else { return Err(Cause::NoData) };
    let pairs = Pairs::of(series, &scope.scored, &scope.reference);
    if pairs.values.is_empty() {
        return Err(pairs.too_few(LEAST_OK_OF_TAIL));
    }
    let dropped = pairs.dropped;
    let (values, reference): (Vec<f64>, Vec<f64>) = pairs.values.into_iter().unzip();
    let base = Sorted::new(reference).map_err(|_| Cause::NoData)?;
    let quantile = Quantile::from_thousandths(percentile.thousandths()).map_err(|_| Cause::NoData)?;
    let seen = scope.scored.measure(check.metric).ok_or(Cause::NoData)?;
    let allowance = Allowance::of(check, order_statistic(&base, quantile, check)).ok_or(Cause::NoData)?;
    let n = count(values.len());
    let comparison = Comparison { dropped, ..allowance.comparison(With::Reference, seen.value, n) };
    let reading = Reading { n, ..Reading::of(check, seen, allowance.keeps(seen.value)) };
    if allowance.ratio_less_one().is_none() {
        return Ok(Reading { comparison: Some(comparison), ..reading });
    }
    let tail = tail::exceedances_of(&values, &base, quantile, |_| allowance.limit, allowance.worse());
    Ok(exceedances(tail.map_err(|_| Cause::NoData)?, comparison, reading))
}

/// What exceedances add to a reading.
pub(crate) fn exceedances(tail: tail::Tail, comparison: Comparison, reading: Reading) -> Reading {
    let share = (tail.base + 1 - tail.rank) as f64 / (tail.base + 1) as f64;
    Reading {
        k: count(tail.k),
        allowed: tail.n as f64 * share,
        comparison: Some(Comparison { cut: Some(Quantity { value: tail.cut, unit: reading.seen.unit }), ..comparison }),
        test: Some(Test::of_tail(tail)),
        ..reading
    }
}

/// The value whose exceedances are counted, before what is allowed of it: the nearest-rank quantile, from the top where
/// more is better.
pub(crate) fn order_statistic(base: &Sorted, quantile: Quantile, check: &Check) -> f64 {
    if check.op.wants_more() {
        let rank = quantile.mirrored().rank(base.len());
        base.at_rank((base.len() + 1).saturating_sub(rank)).unwrap_or(f64::NAN)
    } else {
        quantile::nearest_rank(base, quantile)
    }
}

/// How alike the arms' spreads are: the smaller range between the quartiles of the logarithms ÷ the larger; `None`
/// where a quartile is zero, and where both arms have no spread.
pub(crate) fn likeness(pairs: &Pairs) -> Option<f64> {
    let (target, reference): (Vec<f64>, Vec<f64>) = pairs.values.iter().copied().unzip();
    let (target, reference) = (log_range(target)?, log_range(reference)?);
    let ratio = target.min(reference) / target.max(reference);
    Some(ratio).filter(|ratio| ratio.is_finite())
}

fn log_range(values: Vec<f64>) -> Option<f64> {
    let sorted = Sorted::new(values).ok()?;
    let at = |thousandths| {
        let value = quantile::nearest_rank(&sorted, Quantile::from_thousandths(thousandths).ok()?);
        (value > 0.0).then(|| value.ln())
    };
    Some(at(75_000)? - at(25_000)?)
}
