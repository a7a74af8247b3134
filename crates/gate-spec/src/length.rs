//! Token lengths: whether a truncated distribution leaves anything to draw.

use gate_model::{Length, Shape};
use statrs::function::erf::erf;

/// Truncation that leaves less than this share of the distribution is refused.
pub(crate) const LEAST_MASS: f64 = 0.01;

/// The share of the distribution that rounds to a length within `min..=max`.
pub(crate) fn mass(length: &Length) -> f64 {
    let (low, high) = (f64::from(length.min) - 0.5, f64::from(length.max) + 0.5);
    let Length { mean, stddev, .. } = *length;
    if stddev == 0.0 {
        return if (low..=high).contains(&mean) { 1.0 } else { 0.0 };
    }
    let below = |x: f64| match length.shape {
        Shape::Normal => normal((x - mean) / stddev),
        Shape::Lognormal => {
            // The parameters of the logarithm from the mean and standard deviation of the length itself.
            let variance = (stddev / mean).powi(2).ln_1p();
            if x <= 0.0 { 0.0 } else { normal((x.ln() - mean.ln() + variance / 2.0) / variance.sqrt()) }
        }
        Shape::Uniform => {
            let half = 3_f64.sqrt() * stddev;
            ((x - mean + half) / (2.0 * half)).clamp(0.0, 1.0)
        }
    };
    below(high) - below(low)
}

fn normal(z: f64) -> f64 {
    0.5 * (1.0 + erf(z / std::f64::consts::SQRT_2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mass_is_the_share_that_is_left() {
        let length = |mean, stddev, min, max, shape| Length { mean, stddev, min, max, shape };
        for (length, share) in [
            (length(550.0, 150.0, 50, 2000, Shape::Normal), 0.999_569),
            (length(100.0, 0.0, 100, 100, Shape::Normal), 1.0),
            (length(100.0, 0.0, 200, 300, Shape::Normal), 0.0),
            (length(100.0, 1000.0, 100, 100, Shape::Normal), 0.000_398_9),
            (length(100.0, 50.0, 1, 1000, Shape::Lognormal), 0.999_999),
            (length(100.0, 1000.0, 100, 100, Shape::Lognormal), 0.001_042),
            (length(100.0, 10.0, 1, 99, Shape::Uniform), 0.485_566),
        ] {
            let mass = mass(&length);
            assert!((mass - share).abs() < 1e-5, "{length:?}: {mass}");
        }
    }
}
