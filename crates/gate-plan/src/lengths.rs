//! Lengths in tokens: stratified draws of a truncated distribution.

use gate_model::{Length, Shape};
use statrs::distribution::{ContinuousCDF, LogNormal, Normal, Uniform};

use crate::draw::{Draws, Purpose};
use crate::error::PlanError;

/// Requests per block of stratified draws. It divides the usual looks (30, 50, 100), and depends on nothing,
/// so that a request's lengths depend on the seed and its index alone.
pub(crate) const BLOCK: u32 = 10;

/// The least share of draws that must fall between `min` and `max`.
const LEAST_MASS: f64 = 1e-6;

/// A distribution of lengths, cut to `min..=max` by redrawing.
pub(crate) struct Truncated {
    quantile: Quantile,
    min: u32,
    max: u32,
}

enum Quantile {
    Constant(f64),
    Drawn { distribution: Box<dyn ContinuousCDF<f64, f64>>, below: f64, mass: f64 },
}

impl Truncated {
    /// The distribution a spec's `key` asks for, with its errors.
    ///
    /// A length is a draw rounded to whole tokens, redrawn until it lies in `min..=max`: the continuous
    /// distribution truncated to `min - 0.5 ..= max + 0.5`.
    pub(crate) fn new(key: &'static str, length: &Length) -> Result<Self, PlanError> {
        let Length { mean, stddev, min, max, shape } = *length;
        if min == 0 || min > max {
            return Err(PlanError::Bounds { key, min, max });
        }
        let moments = PlanError::Moments { key, mean, stddev };
        if !(mean.is_finite() && mean > 0.0 && stddev.is_finite() && stddev >= 0.0) {
            return Err(moments);
        }
        let (low, high) = (f64::from(min) - 0.5, f64::from(max) + 0.5);
        let no_mass = PlanError::NoMass { key, mean, stddev, min, max };
        let quantile = if stddev == 0.0 {
            if !(low..=high).contains(&mean) {
                return Err(no_mass);
            }
            Quantile::Constant(mean)
        } else {
            let distribution = shaped(shape, mean, stddev).ok_or(moments)?;
            let below = distribution.cdf(low);
            let mass = distribution.cdf(high) - below;
            if mass.is_nan() || mass < LEAST_MASS {
                return Err(no_mass);
            }
            Quantile::Drawn { distribution, below, mass }
        };
        Ok(Self { quantile, min, max })
    }

    /// The length below which a share `level` (0 to 1) of all lengths lies.
    fn at(&self, level: f64) -> u32 {
        let tokens = match &self.quantile {
            Quantile::Constant(tokens) => *tokens,
            Quantile::Drawn { distribution, below, mass } => {
                // Rounding could lead past 1, where `inverse_cdf` panics.
                distribution.inverse_cdf((below + level * mass).min(1.0))
            }
        };
        // Rounding of the truncation's edges alone can leave the range.
        (tokens.round() as u32).clamp(self.min, self.max)
    }

    /// The first `count` lengths of a purpose's stream.
    ///
    /// Each block of [`BLOCK`] takes one draw from every tenth of the distribution, in random order. Any run
    /// of blocks so has a mean much closer to the distribution's than free draws would.
    pub(crate) fn draw(&self, seed: u64, purpose: Purpose, count: u32) -> impl Iterator<Item = u32> {
        let blocks = u64::from(count.div_ceil(BLOCK));
        let block = move |part| {
            let mut draws = Draws::new(seed, purpose, part);
            let mut strata: Vec<u32> = (0..BLOCK).collect();
            draws.shuffle(&mut strata);
            strata.into_iter().map(move |stratum| self.at((f64::from(stratum) + draws.unit()) / f64::from(BLOCK)))
        };
        (0..blocks).flat_map(block).take(count as usize)
    }
}

/// The length that stands for a whole distribution: its mean, brought into its bounds.
pub(crate) fn typical(length: &Length) -> u32 {
    // Not `clamp`, which panics where the bounds are out of order.
    (length.mean.round() as u32).max(length.min).min(length.max)
}

/// The distribution with this mean and standard deviation; `None` where no parameters give them.
fn shaped(shape: Shape, mean: f64, stddev: f64) -> Option<Box<dyn ContinuousCDF<f64, f64>>> {
    match shape {
        Shape::Normal => Some(Box::new(Normal::new(mean, stddev).ok()?)),
        Shape::Lognormal => {
            let variance = (stddev / mean).powi(2).ln_1p();
            Some(Box::new(LogNormal::new(mean.ln() - variance / 2.0, variance.sqrt()).ok()?))
        }
        Shape::Uniform => {
            let half_width = 3.0_f64.sqrt() * stddev;
            Some(Box::new(Uniform::new(mean - half_width, mean + half_width).ok()?))
        }
    }
}
