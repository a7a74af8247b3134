//! What latencies are drawn from, and what is true of them.
//!
//! Medians and spreads are those of the samples that the reference vectors of the gate's statistics were drawn with:
//! 300 ms to the first token, varying by .4 on the log scale, and 30 ms per token, varying by .1.

use gate_stats::{Quantile, Sorted, quantile};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Gamma, StandardNormal, Weibull};

/// Output tokens of every answer.
pub(crate) const TOKENS: u32 = 50;

/// How latencies are distributed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Model {
    /// Lognormal, σ .4 (TTFT) and .1 (TPOT); one TTFT in a hundred is five times, one TPOT in a hundred twice as long.
    Lognormal,
    /// The same with twice as many outliers.
    Wild,
    /// Gamma of shape 6 (TTFT) and 100 (TPOT): spreads of about .4 and .1, and shorter tails.
    Gamma,
    /// Weibull of shape 2 (TTFT) and 10 (TPOT): no long tail, but a wide body, half of it at small values.
    Weibull,
    /// A cache: three TTFTs in four are hits at a third of the misses, σ .15 each; a TPOT is lognormal, σ .1.
    Bimodal,
    /// Lognormal without outliers, each logarithm correlated .5 with the one before: a queue that fills and empties.
    Correlated,
}

/// One answered request, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Latency {
    pub(crate) ttft: f64,
    pub(crate) tpot: f64,
}

impl Latency {
    pub(crate) fn e2e(self) -> f64 {
        self.ttft + f64::from(TOKENS - 1) * self.tpot
    }

    /// The same on a server that is slower by these factors.
    pub(crate) fn slower(self, by: Self) -> Self {
        Self { ttft: self.ttft * by.ttft, tpot: self.tpot * by.tpot }
    }
}

/// Nothing is slower.
pub(crate) const UNCHANGED: Latency = Latency { ttft: 1.0, tpot: 1.0 };

const MEDIAN: Latency = Latency { ttft: 300.0, tpot: 30.0 };

impl Model {
    pub(crate) const INDEPENDENT: [Self; 5] = [Self::Lognormal, Self::Wild, Self::Gamma, Self::Weibull, Self::Bimodal];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Lognormal => "lognormal with outliers",
            Self::Wild => "lognormal with twice as many outliers",
            Self::Gamma => "gamma",
            Self::Weibull => "Weibull",
            Self::Bimodal => "bimodal",
            Self::Correlated => "AR(1) .5",
        }
    }

    /// The latencies of a run, in send order.
    pub(crate) fn draw(self, rng: &mut ChaCha8Rng, n: usize) -> Vec<Latency> {
        let mut state = (normal(rng), normal(rng));
        let draws = (0..n).map(|_| match self {
            Self::Lognormal => with_outliers(rng, 0.01),
            Self::Wild => with_outliers(rng, 0.02),
            // In units of the medians: those of these gamma distributions are 5.6702 and 99.667.
            Self::Gamma => Latency { ttft: gamma(rng, 6.0) / 5.6702, tpot: gamma(rng, 100.0) / 99.667 },
            Self::Weibull => Latency { ttft: weibull(rng, 2.0), tpot: weibull(rng, 10.0) },
            Self::Bimodal => {
                let mode = if rng.random_bool(0.75) { 1.0 } else { 3.0 };
                Latency { ttft: mode * (0.15 * normal(rng)).exp(), tpot: (0.1 * normal(rng)).exp() }
            }
            Self::Correlated => {
                let next = |before: f64, rng: &mut ChaCha8Rng| 0.5 * before + 0.75_f64.sqrt() * normal(rng);
                state = (next(state.0, rng), next(state.1, rng));
                Latency { ttft: (0.4 * state.0).exp(), tpot: (0.1 * state.1).exp() }
            }
        });
        draws.map(|latency| latency.slower(MEDIAN)).collect()
    }
}

fn normal(rng: &mut ChaCha8Rng) -> f64 {
    StandardNormal.sample(rng)
}

/// In units of the medians without the outliers.
fn with_outliers(rng: &mut ChaCha8Rng, share: f64) -> Latency {
    let outlier = |rng: &mut ChaCha8Rng, factor: f64| if rng.random_bool(share) { factor } else { 1.0 };
    Latency { ttft: (0.4 * normal(rng)).exp() * outlier(rng, 5.0), tpot: (0.1 * normal(rng)).exp() * outlier(rng, 2.0) }
}

fn gamma(rng: &mut ChaCha8Rng, shape: f64) -> f64 {
    Gamma::new(shape, 1.0).map_or(f64::NAN, |gamma| gamma.sample(rng))
}

/// In units of its median.
fn weibull(rng: &mut ChaCha8Rng, shape: f64) -> f64 {
    let median = std::f64::consts::LN_2.powf(1.0 / shape);
    Weibull::new(1.0, shape).map_or(f64::NAN, |weibull| weibull.sample(rng) / median)
}

/// What is true of a model, by a million draws.
#[derive(Clone, Debug)]
pub(crate) struct Truth {
    ttft: Sorted,
    tpot: Sorted,
    e2e: Sorted,
}

impl Truth {
    pub(crate) fn of(model: Model) -> Option<Self> {
        let draws = model.draw(&mut ChaCha8Rng::seed_from_u64(0), 1_000_000);
        let sorted = |of: fn(Latency) -> f64| Sorted::new(draws.iter().copied().map(of).collect()).ok();
        Some(Self {
            ttft: sorted(|latency| latency.ttft)?,
            tpot: sorted(|latency| latency.tpot)?,
            e2e: sorted(Latency::e2e)?,
        })
    }

    /// The true value of a metric such as `ttft.p95`, in milliseconds.
    pub(crate) fn value(&self, metric: &str) -> Option<f64> {
        let (series, percent) = metric.split_once(".p")?;
        let sorted = match series {
            "ttft" => &self.ttft,
            "tpot" => &self.tpot,
            "e2e" => &self.e2e,
            _ => return None,
        };
        let thousandths = percent.parse::<u32>().ok()? * 1000;
        Some(quantile::nearest_rank(sorted, Quantile::from_thousandths(thousandths).ok()?))
    }
}
