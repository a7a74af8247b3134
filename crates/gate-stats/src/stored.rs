//! A run against earlier runs: whether it is worse by more than runs differ from one another.
//!
//! Runs of one and the same server differ by more than their requests explain:
//! the machine has moods. What is compared are one estimate per run, on the log scale.

use crate::paired::{ROUNDING, Worse};
use crate::quantile::{self, Weights};
use crate::{Error, Quantile, Sorted, error, student, summary};

/// The log of an estimate of one run, with the variance its requests explain.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LogEstimate {
    /// `ln` of the estimate.
    pub value: f64,
    /// Its variance within the run.
    pub variance: f64,
}

impl LogEstimate {
    /// A quantile by Harrell and Davis, its variance that of the logs; `None` where the estimate is not a finite
    /// number above 0.
    ///
    /// Where a value of 0 counts, which has no log, the variance is that of the estimate by its square.
    #[must_use]
    pub fn quantile(sample: &Sorted, quantile: Quantile) -> Option<Self> {
        let estimate = quantile::harrell_davis(sample, quantile).ok()?;
        let value = log(estimate.value)?;
        let weights = Weights::of(sample.len(), quantile);
        let variance = if weights.weighted(sample).all(|x| *x > 0.0) {
            let mean = weights.sum(sample, f64::ln);
            weights.sum(sample, |x| (x.ln() - mean) * (x.ln() - mean))
        } else {
            (estimate.standard_error / estimate.value).powi(2)
        };
        Some(Self { value, variance })
    }

    /// A mean: `y = ln x̄`, `v = s²/(n x̄²)`, 0 of a single value; `None` where the mean is not a finite number above 0.
    #[must_use]
    pub fn mean(values: &[f64]) -> Option<Self> {
        let summary = summary::summarize(values).ok()?;
        let error = summary.standard_deviation.unwrap_or(0.0) / summary.mean;
        Some(Self { value: log(summary.mean)?, variance: error * error / summary.count as f64 })
    }

    /// A number measured once per run, without an error of its own; `None` where it is not finite and above 0.
    #[must_use]
    pub fn number(value: f64) -> Option<Self> {
        Some(Self { value: log(value)?, variance: 0.0 })
    }
}

fn log(value: f64) -> Option<f64> {
    (value.is_finite() && value > 0.0).then(|| value.ln())
}

/// How much runs are expected to differ before they are seen.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RunNoise {
    /// Standard deviation of the logs between runs, beyond what their requests explain; about the relative one.
    pub tau: f64,
    /// How many degrees of freedom that is worth.
    pub freedom: f64,
}

impl Default for RunNoise {
    /// 5 %, worth four degrees of freedom.
    fn default() -> Self {
        Self { tau: 0.05, freedom: 4.0 }
    }
}

impl RunNoise {
    fn checked(self) -> Result<Self, Error> {
        let Self { tau, freedom } = self;
        if tau.is_finite() && tau >= 0.0 && freedom.is_finite() && freedom >= 1.0 {
            Ok(self)
        } else {
            Err(Error::Noise { tau, freedom })
        }
    }
}

/// What a run is worth against earlier ones.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stored {
    /// The run's estimate as a factor on the geometric mean of the earlier ones.
    pub ratio: f64,
    /// Distance from the limit in units of its error; positive where it is worse.
    pub t: f64,
    /// Degrees of freedom.
    pub freedom: f64,
    /// `s`, the standard deviation of a run's log estimate.
    pub deviation: f64,
    /// `s √(1 + 1/N)`, that of its distance from the mean of the earlier ones.
    pub error: f64,
    /// `v`, the part of `s²` that requests explain.
    pub within: f64,
    /// Earlier runs.
    pub runs: usize,
    /// Evidence that the run is worse than allowed.
    pub p_fail: f64,
    /// Evidence that it is not.
    pub p_pass: f64,
}

impl Stored {
    /// One-sided bounds of the ratio at `1 − alpha`: lower, upper.
    ///
    /// # Errors
    /// [`Error::Alpha`].
    pub fn bounds(&self, alpha: f64) -> Result<(f64, f64), Error> {
        let margin = student::margin(error::alpha(alpha)?, self.error, self.freedom);
        Ok((self.ratio * (-margin).exp(), self.ratio * margin.exp()))
    }
}

/// Judges a run against earlier ones and the limit `(1 + tolerance)` times their geometric mean.
///
/// `s² = (ν0 (τ0² + v) + Σ (y_j − ȳ)²)/(ν0 + N − 1)`, `v` the mean of all variances, the candidate's too;
/// `t = (y_0 − ȳ − ln(1 + tolerance))/(s √(1 + 1/N))` with `ν0 + N − 1` degrees of freedom. Works from one run on.
///
/// # Errors
/// [`Error::Empty`] without runs, [`Error::Tolerance`], [`Error::Noise`].
pub fn stored(
    candidate: LogEstimate,
    runs: &[LogEstimate],
    tolerance: f64,
    noise: RunNoise,
    worse: Worse,
) -> Result<Stored, Error> {
    let margin = error::margin(tolerance)?;
    let noise = noise.checked()?;
    let earlier = Spread::of(runs)?;
    let count = runs.len() as f64;
    let within = (earlier.within * count + candidate.variance) / (count + 1.0);
    let freedom = noise.freedom + count - 1.0;
    let prior = noise.freedom * (noise.tau * noise.tau + within);
    let deviation = ((prior + earlier.squares) / freedom).sqrt();
    let change = candidate.value - earlier.mean;
    let distance = worse.turned(change - margin);
    let distance = if distance.abs() > ROUNDING { distance } else { 0.0 };
    let error = deviation * spread(runs.len());
    Ok(Stored {
        ratio: change.exp(),
        t: if distance == 0.0 { 0.0 } else { distance / error },
        freedom,
        deviation,
        error,
        within,
        runs: runs.len(),
        p_fail: student::tail(distance, error, freedom),
        p_pass: student::tail(-distance, error, freedom),
    })
}

/// Whether runs differ too much for a check to see its own tolerance: `s > 1.5 |ln(1 + tolerance)|`.
///
/// Such a check can be violated, but neither met nor within.
#[must_use]
pub fn is_blind(deviation: f64, tolerance: f64) -> bool {
    deviation.is_nan() || deviation > 1.5 * tolerance.ln_1p().abs()
}

/// The noise between runs as their medians show it, drawn towards what was expected:
/// `τ² = (ν0 τ0² + (N − 1) max(0, var(y) − mean v))/(ν0 + N − 1)`.
///
/// # Errors
/// [`Error::Empty`] without runs, [`Error::Noise`].
pub fn tail_noise(medians: &[LogEstimate], noise: RunNoise) -> Result<f64, Error> {
    let noise = noise.checked()?;
    let seen = Spread::of(medians)?;
    let others = medians.len() as f64 - 1.0;
    let squares = noise.freedom * noise.tau * noise.tau + (seen.squares - others * seen.within).max(0.0);
    Ok((squares / (noise.freedom + others)).sqrt())
}

/// The ratio that [`exceedances`](crate::tail::exceedances) takes against earlier runs: the limit, moved to its
/// lenient side by one deviation between runs, `(1 + tolerance) exp(± τ √(1 + 1/N))`.
///
/// # Errors
/// [`Error::Tolerance`], [`Error::Empty`] without runs.
pub fn tail_ratio(tolerance: f64, tau: f64, runs: usize, worse: Worse) -> Result<f64, Error> {
    let margin = error::margin(tolerance)?;
    if runs == 0 {
        return Err(Error::Empty);
    }
    Ok((margin + worse.turned(tau * spread(runs))).exp())
}

/// The least ratio, over the tolerance, that is found with 80 % power at alpha .05 where runs differ by so much:
/// `exp(2.49 τ √(1 + 1/N))`.
#[must_use]
pub fn detectable(deviation: f64, runs: usize) -> f64 {
    /// The normal quantiles of 95 % and 80 %.
    const BOTH: f64 = 2.49;
    (BOTH * deviation * spread(runs)).exp()
}

/// The same at any level, with no more known of the deviation than so many degrees of freedom tell:
/// `exp((t_{1 − level} + t_{.8}) s √(1 + 1/N))`.
///
/// # Errors
/// [`Error::Alpha`].
pub fn detectable_at(level: f64, deviation: f64, freedom: f64, runs: usize) -> Result<f64, Error> {
    /// How often it is missed.
    const MISSED: f64 = 0.2;
    let error = deviation * spread(runs);
    let margin = student::margin(error::alpha(level)?, error, freedom);
    Ok((margin + student::margin(MISSED, error, freedom)).exp())
}

/// `√(1 + 1/N)`: a new run differs from the mean of N by its own noise and theirs.
fn spread(runs: usize) -> f64 {
    (1.0 + 1.0 / runs as f64).sqrt()
}

/// Estimates of several runs in three numbers.
struct Spread {
    mean: f64,
    /// `Σ (y − ȳ)²`.
    squares: f64,
    /// Mean of the variances within the runs.
    within: f64,
}

impl Spread {
    fn of(runs: &[LogEstimate]) -> Result<Self, Error> {
        if runs.is_empty() {
            return Err(Error::Empty);
        }
        let count = runs.len() as f64;
        let mean = runs.iter().map(|run| run.value).sum::<f64>() / count;
        Ok(Self {
            mean,
            squares: runs.iter().map(|run| (run.value - mean).powi(2)).sum(),
            within: runs.iter().map(|run| run.variance).sum::<f64>() / count,
        })
    }
}
