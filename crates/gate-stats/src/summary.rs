//! Mean, spread and range of a sample.

use crate::Error;

/// A finite sample in five numbers, all but the count in the samples' unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    /// Number of samples, at least 1.
    pub count: usize,
    /// Arithmetic mean.
    pub mean: f64,
    /// Sample standard deviation (divisor `n − 1`); `None` for a single sample.
    pub standard_deviation: Option<f64>,
    /// Smallest sample.
    pub min: f64,
    /// Largest sample.
    pub max: f64,
}

/// Summarises a sample in one pass (Welford).
///
/// # Errors
/// [`Error::Empty`]; [`Error::Sample`] for a value that is not finite.
pub fn summarize(samples: &[f64]) -> Result<Summary, Error> {
    let (mut mean, mut squares) = (0.0, 0.0);
    let (mut min, mut max) = (f64::INFINITY, f64::NEG_INFINITY);
    for (position, &value) in samples.iter().enumerate() {
        if !value.is_finite() {
            return Err(Error::Sample { position, value });
        }
        let from_old = value - mean;
        mean += from_old / (position + 1) as f64;
        squares += from_old * (value - mean);
        min = value.min(min);
        max = value.max(max);
    }
    match samples.len() {
        0 => Err(Error::Empty),
        count => Ok(Summary {
            count,
            mean: mean.clamp(min, max),
            standard_deviation: (count > 1).then(|| (squares / (count - 1) as f64).max(0.0).sqrt()),
            min,
            max,
        }),
    }
}
