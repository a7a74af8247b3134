//! A metric against that of stored runs: its logarithm by Student's t with the noise from run to run and, of a high
//! percentile, the exceedances of the runs' pooled order statistic.

use gate_model::{Aggregate, Cause, Check, Comparison, Metric, With};
use gate_stats::mean::Resemblance;
use gate_stats::stored::{self, LogEstimate, RunNoise};
use gate_stats::{Quantile, tail};

use super::paired::{exceedances, order_statistic};
use super::{Reading, Says, Test};
use crate::BOUNDS_ALPHA;
use crate::allowance::Allowance;
use crate::base::{self, Number, StoredRuns, Values};
use crate::scored::Scored;

/// Reads a check on a number.
///
/// Neighbouring requests share the state of the server, so that the variance which requests explain is larger by the
/// design effect of their values, pooled over all runs: where neighbours correlate by .5, a check at its limit is falsely
/// red 5.7 % of the time without it (5 stored runs of 50 requests) and 3.5 % with it. Independent requests lose .1 % of
/// power.
///
/// The base is the geometric mean of the runs'. Zeros have no logarithm: where all runs have zero, the bound is
/// compared as it is; where only some do, with their median, and nothing is concluded.
pub(crate) fn number(check: &Check, scored: &Scored<'_>, stored: &StoredRuns) -> Result<Reading, Cause> {
    let (seen, candidate, numbers) = stored.values.numbers(check, scored).ok_or(Cause::NoData)?;
    let logs: Vec<LogEstimate> = numbers.iter().filter_map(|number| number.log).collect();
    let have_logs = logs.len() == numbers.len();
    let base = if have_logs { geometric_mean(&logs) } else { base::median(values(&numbers)) };
    let allowance = base.and_then(|base| Allowance::of(check, base)).ok_or(Cause::NoData)?;
    let comparison = allowance.comparison(with(stored), seen.value, stored.requests(seen.n));
    let reading = Reading::of(check, seen, allowance.keeps(seen.value));
    let (Some(log), Some(tolerance), true) = (candidate.log, allowance.ratio_less_one(), have_logs) else {
        let is_mixed = !have_logs && !logs.is_empty();
        let says = if is_mixed { Says::Nothing } else { Says::All };
        return Ok(Reading { comparison: Some(comparison), says, ..reading });
    };
    let worse = allowance.worse();
    let resemblance =
        numbers.iter().map(|number| number.resemblance).chain([candidate.resemblance]).sum::<Resemblance>();
    let effect = resemblance.design_effect();
    let dependent = |log: LogEstimate| LogEstimate { variance: log.variance * effect.value(), ..log };
    let logs: Vec<LogEstimate> = logs.into_iter().map(dependent).collect();
    let log = dependent(log);
    let test = stored::stored(log, &logs, tolerance, stored.noise, worse).map_err(|_| Cause::NoData)?;
    let bounds = test.bounds(BOUNDS_ALPHA).ok();
    Ok(Reading {
        test: Some(Test::plain(effect, test.p_fail, test.p_pass)),
        comparison: Some(Comparison {
            change: allowance.change(test.ratio),
            lower: bounds.and_then(|(lower, _)| allowance.change(lower)),
            upper: bounds.and_then(|(_, upper)| allowance.change(upper)),
            statistic: Some(test.t).filter(|t| t.is_finite()),
            deviation: Some(test.error).filter(|error| *error > 0.0),
            freedom: Some(test.freedom),
            noise: Some(test.deviation),
            ..comparison
        }),
        says: says(test.deviation, tolerance),
        ..reading
    })
}

/// The smallest change that a comparison with the mean of stored runs finds with 80 % power at a level, as a share of it;
/// `None` of other comparisons.
pub(crate) fn detects(check: &Check, comparison: &Comparison, level: f64) -> Option<f64> {
    let With::Baseline { runs } = comparison.with else { return None };
    found(check, comparison.tolerance?, level, comparison.noise?, comparison.freedom?, runs)
}

/// The same before a run, of so many stored ones that differ by no more than is expected.
pub(crate) fn expects(check: &Check, tolerance: f64, level: f64, noise: RunNoise, runs: u32) -> Option<f64> {
    let others = f64::from(runs.checked_sub(1)?);
    found(check, tolerance, level, noise.tau, noise.freedom + others, runs)
}

fn found(check: &Check, tolerance: f64, level: f64, deviation: f64, freedom: f64, runs: u32) -> Option<f64> {
    let runs = usize::try_from(runs).ok()?;
    let beyond = stored::detectable_at(level, deviation, freedom, runs).ok()?;
    let found = if check.op.wants_more() { (1.0 + tolerance) / beyond } else { (1.0 + tolerance) * beyond };
    Some(found - 1.0).filter(|change| change.is_finite())
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
