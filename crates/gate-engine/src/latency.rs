//! Draws from a [`Latency`].

use gate_model::{Latency, Nanos, Shape};
use rand::Rng;
use rand_distr::{Distribution, LogNormal, Normal, Uniform};

/// How often a draw below zero is repeated before it becomes zero; only a mean far below zero needs as many.
const REDRAWS: usize = 64;

/// A [`Latency`] made ready for drawing, so many times slower.
pub(crate) struct Draw {
    distribution: Distributed,
    slowness: f64,
}

/// In nanoseconds.
enum Distributed {
    Constant(Nanos),
    Normal(Normal<f64>),
    Lognormal(LogNormal<f64>),
    Uniform(Uniform<f64>),
}

impl Draw {
    pub(crate) fn new(latency: Latency, slowness: f64) -> Self {
        Self { distribution: Distributed::new(latency), slowness }
    }

    /// One latency. A draw below zero is repeated, so a wide normal or uniform is truncated at zero and its mean
    /// lies above the one asked for.
    pub(crate) fn sample(&self, random: &mut impl Rng) -> Nanos {
        let drawn = match &self.distribution {
            Distributed::Constant(latency) => latency.0 as f64,
            Distributed::Normal(normal) => redrawn(normal, random),
            Distributed::Lognormal(lognormal) => redrawn(lognormal, random),
            Distributed::Uniform(uniform) => redrawn(uniform, random),
        };
        Nanos((drawn * self.slowness).round() as i64)
    }
}

impl Distributed {
    /// A zero (or negative) deviation makes a constant, and so does a mean the shape cannot have.
    fn new(latency: Latency) -> Self {
        let (mean, stddev) = (latency.mean.0 as f64, latency.stddev.0 as f64);
        if stddev <= 0.0 {
            return Self::Constant(latency.mean.max(Nanos::ZERO));
        }
        let drawn = match latency.shape {
            Shape::Normal => Normal::new(mean, stddev).ok().map(Self::Normal),
            Shape::Lognormal => LogNormal::from_mean_cv(mean, stddev / mean).ok().map(Self::Lognormal),
            Shape::Uniform => {
                let half = stddev * 3_f64.sqrt();
                Uniform::new_inclusive(mean - half, mean + half).ok().map(Self::Uniform)
            }
        };
        drawn.unwrap_or(Self::Constant(latency.mean.max(Nanos::ZERO)))
    }
}

fn redrawn(distribution: &impl Distribution<f64>, random: &mut impl Rng) -> f64 {
    let drawn = (0..REDRAWS).map(|_| distribution.sample(random)).find(|value| *value >= 0.0);
    drawn.unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::*;

    const N: usize = 40_000;

    fn moments(latency: Latency) -> (f64, f64, Vec<f64>) {
        let mut random = ChaCha8Rng::seed_from_u64(7);
        let draw = Draw::new(latency, 1.0);
        let values: Vec<f64> = (0..N).map(|_| draw.sample(&mut random).0 as f64).collect();
        let mean = values.iter().sum::<f64>() / N as f64;
        let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (N - 1) as f64;
        (mean, variance.sqrt(), values)
    }

    #[test]
    fn every_shape_has_the_mean_and_deviation_asked_for() {
        let (mean, stddev) = (Nanos::from_millis(100), Nanos::from_millis(20));
        for shape in [Shape::Normal, Shape::Lognormal, Shape::Uniform] {
            let (seen_mean, seen_stddev, _) = moments(Latency { mean, stddev, shape });
            let standard_error = stddev.0 as f64 / (N as f64).sqrt();
            assert!((seen_mean - mean.0 as f64).abs() < 4.0 * standard_error, "{shape:?}: mean {seen_mean}");
            assert!((seen_stddev / stddev.0 as f64 - 1.0).abs() < 0.03, "{shape:?}: deviation {seen_stddev}");
        }
    }

    #[test]
    fn a_wide_distribution_is_never_below_zero() {
        for shape in [Shape::Normal, Shape::Lognormal, Shape::Uniform] {
            let wide = Latency { mean: Nanos::from_millis(10), stddev: Nanos::from_millis(30), shape };
            let (_, _, values) = moments(wide);
            assert!(values.iter().all(|value| *value >= 0.0), "{shape:?}");
        }
    }

    #[test]
    fn without_deviation_or_with_a_senseless_mean_it_is_constant() {
        for (mean, stddev, expected) in [(5, 0, 5), (-5, 0, 0), (0, 3, 0), (-5, 3, 0)] {
            let latency = Latency { mean: Nanos(mean), stddev: Nanos(stddev), shape: Shape::Lognormal };
            let (_, _, values) = moments(latency);
            assert!(values.iter().all(|value| *value == f64::from(expected)), "{mean} ± {stddev}");
        }
    }
}
