//! What A/A runs say of a gate: how often it would be red for nothing, how much runs differ, and what limits and
//! tolerances that leaves room for.

use std::collections::BTreeMap;

use gate_model::{
    Against, Aggregate, BASELINE_SCHEMA, Baseline, BaselineKey, Bound, Calibration, Check, CheckCalibration,
    CheckOutcome, CheckVerdict, FalseAlarms, GateSpec, Importance, Metric, Noise, Percentile, Prior, Quantity, Rule,
    Run, Series, Side, Status, Verdict,
};
use gate_stats::stored::{LogEstimate, RunNoise, detectable, is_blind, stored, tail_noise};
use gate_stats::{Quantile, Sorted, Worse, binomial, quantile};

use crate::BOUNDS_ALPHA;
use crate::base::{Kept, median, number};
use crate::judge::judge;
use crate::rules::{HIGH, by_comparison, is_evidence, rule};
use crate::scored::{Scored, count, of_all};
use crate::windowed::{self, Windowed};

/// What is seen lies at this share of a proposed limit.
const HEADROOM: f64 = 0.8;

/// The steps of proposed tolerances, and the least that is proposed.
const STEP: f64 = 0.05;
const LEAST_STEPS: u32 = 2;
/// A tolerance of 100 % allows twice as much; beyond it none is worth proposing.
const MOST_STEPS: u32 = 20;

/// The fewest runs that differ from one another.
const LEAST_RUNS: usize = 2;
/// From so many runs on less noise than usual is believed. They come one after another, and do not show what differs from
/// day to day.
const RUNS_FOR_LESS_NOISE: usize = 10;

/// Metrics whose noise is kept whether or not a check names them; high percentiles go by the median.
const ALWAYS: [(Series, Percentile); 4] = [
    (Series::Ttft, Percentile::P50),
    (Series::Ttft, Percentile::P95),
    (Series::Tpot, Percentile::P50),
    (Series::E2e, Percentile::P50),
];

/// Why runs say nothing of a gate; each reads on from "failed to".
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CalibrateError {
    /// Too few of them could be measured.
    #[error(
        "calibrate by {valid} of {of} runs: the others could not be measured, and at least {LEAST_RUNS} must be; see \
         with `gate judge` what was wrong with them, or raise `--runs`"
    )]
    TooFew {
        /// How many could.
        valid: u32,
        /// Of how many.
        of: u32,
    },
}

/// What runs of one gate against an unchanged target say of it. They are given in time order.
///
/// Each run is judged with the newest of the others as its baselines, as many as the spec takes, and with the noise
/// that is reckoned with from now on ([`Calibration::noise`]): what all of them show, and with less than 10 runs at least
/// the 5 % that is assumed without a calibration. What was found of a metric is in [`CheckCalibration::noise`]. Runs that
/// could not be measured are left out.
///
/// # Errors
/// [`CalibrateError::TooFew`] where less than two are left.
pub fn calibrate(runs: &[Run]) -> Result<Calibration, CalibrateError> {
    let valid = runs.iter().rev().filter(|run| judge(run, &Prior::default()).valid);
    let baselines: Vec<Baseline> = valid.map(as_baseline).collect();
    let Some(newest) = baselines.first().filter(|_| baselines.len() >= LEAST_RUNS) else {
        return Err(CalibrateError::TooFew { valid: count(baselines.len()), of: count(runs.len()) });
    };
    let spec = newest.run.header.spec.clone();
    let found = newest.run.header.started.clone();
    let kept = Kept::of(&baselines);
    let noise = Noise { runs: count(kept.len()), found, tau: taus(&spec, &kept) };
    let proposals: Vec<Proposal> = spec.checks.iter().map(|check| Proposal::of(check, &spec, &kept)).collect();
    let pooled: Vec<Option<Sorted>> = spec.checks.iter().map(|check| pooled(check, &spec, &kept)).collect();
    drop(kept);

    let verdicts = leave_one_out(baselines, &spec, &noise);
    let checks = spec.checks.iter().enumerate().zip(proposals.into_iter().zip(&pooled));
    let checks = checks.map(|((position, check), (proposal, pooled))| {
        let each: Vec<&CheckVerdict> = verdicts.iter().filter_map(|verdict| verdict.checks.get(position)).collect();
        of_check(check, &each, proposal, pooled.as_ref())
    });
    Ok(Calibration {
        name: spec.name.clone(),
        runs: count(verdicts.len()),
        left_out: count(runs.len().saturating_sub(verdicts.len())),
        false_alarms: false_alarms(&verdicts),
        checks: checks.collect(),
        noise,
    })
}

/// A run as one to compare others with.
fn as_baseline(run: &Run) -> Baseline {
    Baseline {
        schema: BASELINE_SCHEMA,
        key: BaselineKey::default(),
        saved: run.header.started.clone(),
        status: Status::Passed,
        run: run.clone(),
    }
}

/// The verdict on each run by the others, in time order.
fn leave_one_out(baselines: Vec<Baseline>, spec: &GateSpec, noise: &Noise) -> Vec<Verdict> {
    let most = usize::try_from(spec.baseline.runs).unwrap_or(usize::MAX);
    let mut prior = Prior { baselines, noise: Some(noise.clone()), ..Prior::default() };
    let mut verdicts = Vec::new();
    for left_out in (0..prior.baselines.len()).rev() {
        let own = prior.baselines.remove(left_out);
        let older = prior.baselines.split_off(most.min(prior.baselines.len()));
        verdicts.push(judge(&own.run, &prior));
        prior.baselines.extend(older);
        prior.baselines.insert(left_out, own);
    }
    verdicts
}

fn false_alarms(verdicts: &[Verdict]) -> FalseAlarms {
    let is_red = |verdict: &&Verdict| verdict.status == Status::Violated;
    let over = |one: &CheckVerdict| one.check.importance == Importance::Required && is_over(&one.outcome);
    let warned = verdicts.iter().filter(|verdict| !is_red(verdict) && verdict.checks.iter().any(over));
    let (red, of) = (count(verdicts.iter().filter(is_red).count()), count(verdicts.len()));
    let (k, n) = (u64::from(red), u64::from(of));
    FalseAlarms {
        red,
        warned: count(warned.count()),
        of,
        lower: binomial::share_lower(k, n, BOUNDS_ALPHA).unwrap_or(0.0),
        upper: binomial::share_upper(k, n, BOUNDS_ALPHA).unwrap_or(1.0),
    }
}

/// What became of a check, were it not waived.
fn unwaived(outcome: &CheckOutcome) -> &CheckOutcome {
    match outcome {
        CheckOutcome::Waived { otherwise } => otherwise,
        other => other,
    }
}

fn is_over(outcome: &CheckOutcome) -> bool {
    matches!(outcome, CheckOutcome::Inconclusive { side: Side::Over })
}

fn of_check(check: &Check, each: &[&CheckVerdict], proposal: Proposal, pooled: Option<&Sorted>) -> CheckCalibration {
    let outcomes = || each.iter().map(|one| unwaived(&one.outcome));
    let seen: Vec<Quantity> = each.iter().filter_map(|one| one.seen).collect();
    let detects = detects(check, each, &seen, pooled);
    // Where it is unknown what a check finds, nothing is taken of what it allows.
    let own = own_tolerance(check).filter(|_| detects.is_none());
    CheckCalibration {
        check: check.clone(),
        red: count(outcomes().filter(|outcome| **outcome == CheckOutcome::Violated).count()),
        over: count(outcomes().filter(|outcome| is_over(outcome)).count()),
        limit: limit(check, &seen),
        noise: proposal.noise,
        tolerance: proposal.tolerance.map(|tolerance| own.map_or(tolerance, |own| own.max(tolerance))),
        detects,
        seen,
    }
}

/// The tolerance that a check against stored runs has.
fn own_tolerance(check: &Check) -> Option<f64> {
    let change = check.bound.relative().filter(|bound| bound.to == Against::Baseline)?.change?;
    Some(if check.op.wants_more() { -change } else { change })
}

/// The noise of a metric as it was found, and the tolerance against stored runs that it lets be seen.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Proposal {
    noise: Option<f64>,
    tolerance: Option<f64>,
}

impl Proposal {
    fn of(check: &Check, spec: &GateSpec, kept: &[Kept<'_>]) -> Self {
        let Some(estimates) = estimates(check.metric, check.scenario, spec, kept) else { return Self::default() };
        let Some(tau) = tau(&estimates) else { return Self::default() };
        let used = reckoned(tau, estimates.len());
        // A tail is compared with a margin for the noise alone; what else runs differ by is in its counts.
        let deviation = if is_tail(check.metric) { Some(used) } else { deviation(&estimates, used) };
        // Only what is compared with stored runs by evidence: one request can move a largest value as it likes.
        let deviation = deviation.filter(|_| is_evidence(by_comparison(check, Against::Baseline)));
        Self { noise: Some(tau), tolerance: deviation.and_then(|deviation| tolerance(check, deviation, spec)) }
    }
}

/// The noise of each check's metric and of those that are always kept, by the metric's name, as it is reckoned with.
fn taus(spec: &GateSpec, kept: &[Kept<'_>]) -> BTreeMap<String, f64> {
    let always = ALWAYS.map(|(series, percentile)| (Metric::Series(series, Aggregate::Percentile(percentile)), 0));
    let of_checks = spec.checks.iter().map(|check| (check.metric, check.scenario));
    let found = always
        .into_iter()
        .chain(of_checks)
        .filter_map(|(metric, scenario)| Some((metric, tau(&estimates(metric, scenario, spec, kept)?)?)));
    // Scenarios may share a metric: the noisiest counts for all.
    let mut taus = BTreeMap::new();
    for (metric, tau) in found {
        let tau = reckoned(tau, kept.len());
        let largest = taus.entry(metric.to_string()).or_insert(tau);
        *largest = tau.max(*largest);
    }
    taus
}

/// The standard deviation from run to run, sampling error out.
fn tau(estimates: &[LogEstimate]) -> Option<f64> {
    tail_noise(estimates, RunNoise::default()).ok()
}

/// The same as it is reckoned with.
fn reckoned(tau: f64, runs: usize) -> f64 {
    if runs < RUNS_FOR_LESS_NOISE { tau.max(RunNoise::default().tau) } else { tau }
}

/// The standard deviation that the next run of such a kind is compared by.
fn deviation(estimates: &[LogEstimate], tau: f64) -> Option<f64> {
    let (next, runs) = estimates.split_first()?;
    let noise = RunNoise { tau, ..RunNoise::default() };
    Some(stored(*next, runs, 0.0, noise, Worse::Larger).ok()?.deviation)
}

/// Whether a metric is compared with stored runs by its tail.
fn is_tail(metric: Metric) -> bool {
    matches!(metric, Metric::Series(_, Aggregate::Percentile(percentile)) if percentile.thousandths() >= HIGH)
}

/// A metric of each run as its noise is found by: of a tail, the median of the series. `None` of shares and counts,
/// and where a run has no value above zero.
fn estimates(metric: Metric, scenario: u16, spec: &GateSpec, kept: &[Kept<'_>]) -> Option<Vec<LogEstimate>> {
    let metric = match metric {
        Metric::ErrorShare(_) | Metric::ErrorCount(_) | Metric::Attainment => return None,
        Metric::Series(series, _) if is_tail(metric) => Metric::Series(series, Aggregate::Percentile(Percentile::P50)),
        other => other,
    };
    let scored: Vec<Scored<'_>> = kept.iter().map(|run| run.scored(scenario, spec.slo_of(scenario))).collect();
    let windowed: Vec<Windowed> = scored.iter().filter_map(|run| Windowed::of(metric, run)).collect();
    if !windowed.is_empty() {
        let (_, numbers) = windowed::numbers(&windowed.iter().collect::<Vec<_>>())?;
        return numbers.into_iter().map(|number| number.log).collect();
    }
    scored.iter().map(|run| number(metric, run)?.0.log).collect()
}

/// The values of all runs together, of a check on a percentile, or on a largest or smallest value, against a fixed limit.
fn pooled(check: &Check, spec: &GateSpec, kept: &[Kept<'_>]) -> Option<Sorted> {
    let Bound::Absolute(_) = check.bound else { return None };
    let (Rule::Quantile | Rule::Extreme, Metric::Series(series, aggregate)) = (rule(check), check.metric) else {
        return None;
    };
    let wants_more = check.op.wants_more();
    let worst = if wants_more { 0.0 } else { f64::INFINITY };
    let worst_gap =
        |gaps: Vec<f64>| gaps.into_iter().reduce(|one, other| if wants_more { one.min(other) } else { one.max(other) });
    let runs = kept.iter().map(|run| run.scored(check.scenario, spec.slo_of(check.scenario)));
    let values = runs.flat_map(|run| match aggregate {
        Aggregate::PercentileOfAll(_) => run.all().filter_map(|one| of_all(one, series, worst)).collect(),
        _ if series.is_pooled() => run.gaps(series).filter_map(worst_gap).collect(),
        _ => run.values(series),
    });
    Sorted::new(values.collect()).ok()
}

/// The smallest worsening that is found with 80 % power, as a share of what is seen: against a fixed limit, so much that
/// the share of requests beyond it is one that is found; else as each verdict says, and between them.
fn detects(check: &Check, each: &[&CheckVerdict], seen: &[Quantity], pooled: Option<&Sorted>) -> Option<f64> {
    let found = || Some(each.iter().find_map(|one| one.power.as_ref())?.detects_share).filter(|share| *share < 1.0);
    let wants_more = check.op.wants_more();
    let (seen, reached) = match (pooled, check.metric) {
        (Some(pooled), _) => {
            // So many requests must be beyond the limit: 1 in n where it is found at all.
            let beyond = if wants_more { found()? } else { 1.0 - found()? };
            let quantile = Quantile::from_thousandths((beyond * 100_000.0).round() as u32).ok()?;
            (quantile::nearest_rank(pooled, quantile), check.bound.absolute()?.value)
        }
        (None, Metric::Attainment | Metric::ErrorShare(_)) => {
            let bad = found()?;
            (median(seen.iter().map(|seen| seen.value).collect())?, if wants_more { 1.0 - bad } else { bad })
        }
        _ => {
            return median(each.iter().filter_map(|one| one.evidence.as_ref()?.comparison.as_ref()?.detects).collect());
        }
    };
    let worse = if wants_more { 1.0 - reached / seen } else { reached / seen - 1.0 };
    // Where more is found than a worsening of nothing, the gate is at its limit already.
    worse.is_finite().then(|| worse.max(0.0))
}

/// A fixed bound with headroom that every run keeps: what is usually seen lies at .8 of it; of a share that must be
/// high, the part that is missing does. `None` of a largest or smallest, which one request of any later run may break.
fn limit(check: &Check, seen: &[Quantity]) -> Option<Quantity> {
    if let Metric::Series(_, Aggregate::Max | Aggregate::Min) = check.metric {
        return None;
    }
    let unit = check.metric.unit();
    let values: Vec<f64> = seen.iter().map(|seen| seen.value).filter(|value| value.is_finite()).collect();
    let usual = median(values.clone()).filter(|_| values.len() == seen.len())?;
    let value = match (check.metric, check.op.wants_more()) {
        (Metric::Attainment, true) => {
            let worst = values.iter().copied().fold(usual, f64::min);
            1.0 - rounded((1.0 - usual) / HEADROOM, f64::ceil)?.max(rounded(1.0 - worst, f64::ceil)?)
        }
        (_, true) => rounded((usual * HEADROOM).min(values.iter().copied().fold(usual, f64::min)), f64::floor)?,
        (_, false) => rounded((usual / HEADROOM).max(values.iter().copied().fold(usual, f64::max)), f64::ceil)?,
    };
    (value > 0.0).then_some(Quantity { value, unit })
}

/// A number with two significant digits; `None` of what is not above zero.
fn rounded(value: f64, to_whole: impl Fn(f64) -> f64) -> Option<f64> {
    if !(value.is_finite() && value > 0.0) {
        return None;
    }
    let digits = value.log10().floor() as i32 - 1;
    // By whole powers of ten either way: .082 is 82 / 1000, but not 82 · .001.
    let (scale, grows) = (10_f64.powi(digits.abs()), digits >= 0);
    let scaled = if grows { value / scale } else { value * scale };
    let nearest = scaled.round();
    let whole = if (scaled - nearest).abs() < 1e-9 { nearest } else { to_whole(scaled) };
    Some(if grows { whole * scale } else { whole / scale })
}

/// The least tolerance, in steps of 5 % from 10 % on, that runs which differ so much leave visible, and that is no
/// smaller than what they hide: twice of it is found with 80 % power.
fn tolerance(check: &Check, deviation: f64, spec: &GateSpec) -> Option<f64> {
    let runs = usize::try_from(spec.baseline.runs).unwrap_or(usize::MAX).max(1);
    let hidden = detectable(deviation, runs).ln();
    (LEAST_STEPS..=MOST_STEPS).map(|steps| f64::from(steps) * STEP).find(|tolerance| {
        let signed = if check.op.wants_more() { -tolerance } else { *tolerance };
        !is_blind(deviation, signed) && hidden <= signed.ln_1p().abs()
    })
}
