//! A percentile or mean against a share of another scenario's: each by its own bounds.

use gate_model::{Aggregate, Bound, Cause, Check, Metric, With};
use gate_stats::{DesignEffect, Mean, Quantile, Sorted, bounds, quantile};

use super::{Reading, Test};
use crate::BOUNDS_ALPHA;
use crate::allowance::Allowance;
use crate::scope::Scope;

/// Reads a check on a share of another scenario.
pub(crate) fn read(check: &Check, scope: &Scope<'_>) -> Result<Reading, Cause> {
    let (Metric::Series(series, aggregate), Bound::ShareOf { share, scenario }) = (check.metric, &check.bound) else {
        return Err(Cause::NoData);
    };
    let other = scope.other()?;
    let seen = scope.scored.measure(check.metric).ok_or(Cause::NoData)?;
    let there = other.measure(check.metric).ok_or(Cause::NoData)?;
    let allowance = Allowance::of(check, there.value).ok_or(Cause::NoData)?;
    let comparison = allowance.comparison(With::Scenario(scenario.clone()), seen.value, there.n);
    let reading = Reading { comparison: Some(comparison), ..Reading::of(check, seen, allowance.keeps(seen.value)) };
    if allowance.ratio_less_one().is_none() {
        return Ok(reading);
    }
    let worse = allowance.worse();
    let (these, those) = (scope.scored.values(series), other.values(series));
    let sorted = |values: Vec<f64>| Sorted::new(values).map_err(|_| Cause::NoData);
    let (test, lower, upper) = match aggregate {
        Aggregate::Percentile(percentile) => {
            let quantile = Quantile::from_thousandths(percentile.thousandths()).map_err(|_| Cause::NoData)?;
            let (these, those) = (sorted(these)?, sorted(those)?);
            let at = |rank: Result<Option<usize>, _>| these.at_rank(rank.ok().flatten()?);
            let lower = at(quantile::lower_rank(these.len(), quantile, BOUNDS_ALPHA));
            let upper = at(quantile::upper_rank(these.len(), quantile, BOUNDS_ALPHA));
            (bounds::share_of(&these, &those, quantile, *share, worse), lower, upper)
        }
        Aggregate::Mean => {
            let mean = |values: &[f64]| Mean::of(values).ok().flatten().ok_or(Cause::NoData);
            let (these, those) = (mean(&these)?, mean(&those)?);
            let (lower, upper) = (these.lower(BOUNDS_ALPHA).ok(), these.upper(BOUNDS_ALPHA).ok());
            (bounds::mean_share_of(these, those, *share, worse), lower.map(|lower| lower.max(0.0)), upper)
        }
        _ => return Err(Cause::NoData),
    };
    let test = test.map_err(|_| Cause::NoData)?;
    Ok(Reading { test: Some(Test::plain(DesignEffect::NONE, test.p_fail, test.p_pass)), lower, upper, ..reading })
}
