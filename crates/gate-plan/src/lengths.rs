//! Lengths in tokens: stratified draws of a truncated distribution, or of lengths seen before.

use gate_model::{Latency, Length, Nanos, Shape};
use statrs::distribution::{ContinuousCDF, LogNormal, Normal, Uniform};

use crate::draw::Stream;
use crate::error::PlanError;
use crate::length_file::LengthFile;
use crate::levels::{fine_levels, levels};

/// The least share of draws that must fall between `min` and `max`.
const LEAST_MASS: f64 = 1e-6;

/// The most tokens of a request, either way: its text must fit in memory. Error messages of files name it in words.
pub(crate) const MOST_TOKENS: u32 = 10_000_000;

/// A length that a file gives, where it is not too long.
pub(crate) fn most(tokens: u64) -> Option<u32> {
    u32::try_from(tokens).ok().filter(|tokens| *tokens <= MOST_TOKENS)
}

/// Where lengths come from.
pub(crate) enum Lengths {
    /// A distribution.
    Drawn(Truncated),
    /// Lengths seen before.
    Seen(LengthFile),
}

impl Lengths {
    /// Those a spec's `key` asks for, with its errors; `seen` is the file it names.
    pub(crate) fn new(key: &'static str, length: &Length, seen: Option<&LengthFile>) -> Result<Self, PlanError> {
        match seen {
            Some(file) => Ok(Self::Seen(file.clone())),
            None => Ok(Self::Drawn(Truncated::new(key, length)?)),
        }
    }

    /// Lengths without end.
    pub(crate) fn draw(&self, stream: Stream) -> Box<dyn Iterator<Item = u32> + '_> {
        match self {
            Self::Drawn(truncated) if truncated.is_skewed => {
                Box::new(fine_levels(stream).map(|level| truncated.at(level)))
            }
            Self::Drawn(truncated) => Box::new(levels(stream).map(|level| truncated.at(level))),
            Self::Seen(file) => Box::new(file.draw(stream)),
        }
    }

    /// The shortest there can be.
    pub(crate) fn least(&self) -> u32 {
        match self {
            Self::Drawn(truncated) => truncated.at(0.0),
            Self::Seen(file) => file.lengths().first().copied().unwrap_or(0),
        }
    }
}

/// A distribution of lengths, cut to `min..=max` by redrawing.
pub(crate) struct Truncated {
    quantile: Quantile,
    min: u32,
    max: u32,
    is_skewed: bool,
}

enum Quantile {
    Constant(f64),
    Drawn { distribution: Box<dyn ContinuousCDF<f64, f64>>, below: f64, mass: f64 },
}

impl Quantile {
    /// The value below which a share `level` (0 to 1) of all lies.
    fn at(&self, level: f64) -> f64 {
        match self {
            Self::Constant(value) => *value,
            // Rounding could lead past 1, where `inverse_cdf` panics.
            Self::Drawn { distribution, below, mass } => distribution.inverse_cdf((below + level * mass).min(1.0)),
        }
    }
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
        Ok(Self { quantile, min, max, is_skewed: shape == Shape::Lognormal })
    }

    /// The length below which a share `level` (0 to 1) of all lengths lies.
    fn at(&self, level: f64) -> u32 {
        // Rounding of the truncation's edges alone can leave the range.
        (self.quantile.at(level).round() as u32).clamp(self.min, self.max)
    }
}

/// A distribution of times, redrawn where negative.
pub(crate) struct Times(Quantile);

impl Times {
    /// The one that `prompts.think` asks for.
    pub(crate) fn new(key: &'static str, latency: &Latency) -> Result<Self, PlanError> {
        let (mean, stddev) = (latency.mean.0 as f64, latency.stddev.0 as f64);
        let wrong = PlanError::Time { key, mean: latency.mean, stddev: latency.stddev };
        if mean < 0.0 || stddev < 0.0 {
            return Err(wrong);
        }
        if stddev == 0.0 || mean == 0.0 {
            return Ok(Self(Quantile::Constant(mean)));
        }
        let distribution = shaped(latency.shape, mean, stddev).ok_or(wrong)?;
        let below = distribution.cdf(0.0);
        Ok(Self(Quantile::Drawn { distribution, below, mass: 1.0 - below }))
    }

    /// Times without end.
    pub(crate) fn draw(&self, stream: Stream) -> impl Iterator<Item = Nanos> {
        levels(stream).map(|level| Nanos(self.0.at(level).round().max(0.0) as i64))
    }
}

/// The length that stands for a whole distribution: its mean, brought into its bounds; of lengths seen before their
/// mean.
pub(crate) fn typical(length: &Length, seen: Option<&LengthFile>) -> u32 {
    if let Some(file) = seen {
        let sum: u64 = file.lengths().iter().map(|length| u64::from(*length)).sum();
        return (sum as f64 / file.lengths().len() as f64).round() as u32;
    }
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
