//! A metric against that of stored runs: its logarithm by Student's t with the noise from run to run and, of a high
//! percentile, the exceedances of the runs' pooled order statistic.

use gate_model::{Aggregate, Cause, Check, Comparison, Metric, With};
use gate_stats::stored::{self, LogEstimate};
use gate_stats::{Quantile, Worse, tail};

use super::paired::{exceedances, order_statistic};
use super::{Reading, Says, Test};
use crate::BOUNDS_ALPHA;
use crate::allowance::Allowance;
use crate::base::{self, Number, StoredRuns, Values};
use crate::scored::Scored;

/// Reads a check on a number.
///
/// The base is the geometric mean of the runs'. Zeros have no logarithm: where all runs have zero, the bound is
/// compared as it is; where only some do, with their median, and nothing is concluded.
pub(crate) fn number(check: &Check, scored: &Scored<'_>, stored: &StoredRuns) -> Result<Reading, Cause> {
    let Values::Numbers(numbers) = &stored.values else { return Err(Cause::NoData) };
    let (candidate, _) = base::number(check.metric, scored).ok_or(Cause::NoData)?;
    let logs: Vec<LogEstimate> = numbers.iter().filter_map(|number| number.log).collect();
    let have_logs = logs.len() == numbers.len();
    let base = if have_logs { geometric_mean(&logs) } else { base::median(values(numbers)) };
    let allowance = base.and_then(|base| Allowance::of(check, base)).ok_or(Cause::NoData)?;
    let seen = scored.measure(check.metric).ok_or(Cause::NoData)?;
    let comparison = allowance.comparison(with(stored), seen.value, stored.n);
    let reading = Reading::of(check, seen, allowance.keeps(seen.value));
    let (Some(log), Some(tolerance), true) = (candidate.log, allowance.ratio_less_one(), have_logs) else {
        let is_mixed = !have_logs && !logs.is_empty();
        let says = if is_mixed { Says::Nothing } else { Says::All };
        return Ok(Reading { comparison: Some(comparison), says, ..reading });
    };
    let worse = allowance.worse();
    let test = stored::stored(log, &logs, tolerance, stored.noise, worse).map_err(|_| Cause::NoData)?;
    let bounds = test.bounds(BOUNDS_ALPHA).ok();
    let found = stored::detectable(test.deviation, test.runs);
    let found = match worse {
        Worse::Larger => (1.0 + tolerance) * found,
        Worse::Smaller => (1.0 + tolerance) / found,
    };
    Ok(Reading {
        test: Some(Test::plain(gate_stats::DesignEffect::NONE, test.p_fail, test.p_pass)),
        comparison: Some(Comparison {
            change: allowance.change(test.ratio),
            lower: bounds.and_then(|(lower, _)| allowance.change(lower)),
            upper: bounds.and_then(|(_, upper)| allowance.change(upper)),
            statistic: Some(test.t).filter(|t| t.is_finite()),
            freedom: Some(test.freedom),
            noise: Some(test.deviation),
            detects: allowance.change(found),
            ..comparison
        }),
        says: says(test.deviation, tolerance),
        ..reading
    })
}

/// Reads a check on a high percentile.
pub(crate) fn tail(check: &Check, scored: &Scored<'_>, stored: &StoredRuns) -> Result<Reading, Cause> {
    let Metric::Series(series, Aggregate::Percentile(percentile)) = check.metric else { return Err(Cause::NoData) };
    let Values::Pooled { values: pooled, medians } = &stored.values else { return Err(Cause::NoData) };
    let quantile = Quantile::from_thousandths(percentile.thousandths()).map_err(|_| Cause::NoData)?;
    let seen = scored.measure(check.metric).ok_or(Cause::NoData)?;
    let allowance = Allowance::of(check, order_statistic(pooled, quantile, check)).ok_or(Cause::NoData)?;
    let comparison = allowance.comparison(with(stored), seen.value, stored.n);
    let reading = Reading::of(check, seen, allowance.keeps(seen.value));
    let Some(tolerance) = allowance.ratio_less_one() else {
        return Ok(Reading { comparison: Some(comparison), ..reading });
    };
    let noise = stored::tail_noise(medians, stored.noise).unwrap_or(stored.noise.tau);
    let runs = usize::try_from(stored.runs).unwrap_or(usize::MAX);
    let tail = stored::tail_ratio(tolerance, noise, runs, allowance.worse())
        .and_then(|ratio| tail::exceedances(&scored.values(series), pooled, quantile, ratio, allowance.worse()));
    let comparison = Comparison { noise: Some(noise), ..comparison };
    let reading = exceedances(tail.map_err(|_| Cause::NoData)?, comparison, reading);
    Ok(Reading { says: says(noise, tolerance), ..reading })
}

fn with(stored: &StoredRuns) -> With {
    With::Baseline { runs: stored.runs }
}

fn values(numbers: &[Number]) -> Vec<f64> {
    numbers.iter().map(|number| number.value).collect()
}

fn geometric_mean(logs: &[LogEstimate]) -> Option<f64> {
    base::mean(logs.iter().map(|log| log.value)).map(f64::exp)
}

/// What can be said where runs differ so much.
fn says(noise: f64, tolerance: f64) -> Says {
    if stored::is_blind(noise, tolerance) { Says::Violated } else { Says::All }
}
