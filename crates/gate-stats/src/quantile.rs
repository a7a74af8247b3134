//! Quantiles: exact ranks, estimates, and bounds by order statistics.

use crate::beta::regularized;
use crate::{Error, binomial};

const WHOLE: u32 = 100_000;

/// A quantile strictly between 0 and 1, held in exact thousandths of a percent.
///
/// Ranks and sizes come from integer arithmetic: in doubles 1/(1−0.95) is more than 20.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Quantile(u32);

impl Quantile {
    /// A quantile of so many thousandths of a percent, 1..=99 999 (P95 is 95 000).
    ///
    /// # Errors
    /// [`Error::Quantile`] outside that range.
    pub fn from_thousandths(thousandths: u32) -> Result<Self, Error> {
        if (1..WHOLE).contains(&thousandths) { Ok(Self(thousandths)) } else { Err(Error::Quantile(thousandths)) }
    }

    /// Thousandths of a percent.
    #[must_use]
    pub fn thousandths(self) -> u32 {
        self.0
    }

    /// `Q` as a number between 0 and 1.
    #[must_use]
    pub fn fraction(self) -> f64 {
        f64::from(self.0) / f64::from(WHOLE)
    }

    /// `1 − Q` from the integer: the share of requests that may exceed the quantile.
    #[must_use]
    pub fn complement(self) -> f64 {
        f64::from(WHOLE - self.0) / f64::from(WHOLE)
    }

    /// The quantile that has as much below it as this one has above: P95 for P5.
    #[must_use]
    pub fn mirrored(self) -> Self {
        Self(WHOLE - self.0)
    }

    /// `⌈Q n⌉`, the 1-based rank of the nearest-rank estimate; 0 only for `n = 0`.
    #[must_use]
    pub fn rank(self, n: usize) -> usize {
        let rank = (u128::from(self.0) * n as u128).div_ceil(u128::from(WHOLE));
        usize::try_from(rank).unwrap_or(n)
    }

    /// Whether `n (1 − Q) < 1`: fewer than one of `n` requests is expected above the quantile.
    #[must_use]
    pub fn is_beyond(self, n: u64) -> bool {
        u128::from(WHOLE - self.0) * u128::from(n) < u128::from(WHOLE)
    }

    /// Least `n` that is not [beyond](Self::is_beyond) (20 for P95).
    #[must_use]
    pub fn least_requests(self) -> u64 {
        u64::from(WHOLE.div_ceil(WHOLE - self.0))
    }

    /// `Q (n − 1)` as its whole part and the fraction above it.
    fn position(self, n: usize) -> (usize, f64) {
        let product = u128::from(self.0) * n.saturating_sub(1) as u128;
        let whole = usize::try_from(product / u128::from(WHOLE)).unwrap_or(0);
        (whole, (product % u128::from(WHOLE)) as f64 / f64::from(WHOLE))
    }
}

/// A non-empty sample in ascending order, without NaN or −∞; +∞ stands for "never finished".
#[derive(Debug, Clone, PartialEq)]
pub struct Sorted(Vec<f64>);

impl Sorted {
    /// Sorts a sample.
    ///
    /// # Errors
    /// [`Error::Empty`]; [`Error::Sample`] for NaN or −∞.
    pub fn new(mut samples: Vec<f64>) -> Result<Self, Error> {
        if samples.is_empty() {
            return Err(Error::Empty);
        }
        let unrankable = |value: &f64| value.is_nan() || *value == f64::NEG_INFINITY;
        if let Some(position) = samples.iter().position(unrankable) {
            let value = samples.get(position).copied().unwrap_or(f64::NAN);
            return Err(Error::Sample { position, value });
        }
        samples.sort_unstable_by(f64::total_cmp);
        Ok(Self(samples))
    }

    /// Number of samples, at least 1.
    #[expect(clippy::len_without_is_empty, reason = "a sorted sample is never empty")]
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The samples in ascending order.
    #[must_use]
    pub fn values(&self) -> &[f64] {
        &self.0
    }

    /// The order statistic of a 1-based rank, `None` outside `1..=len`.
    #[must_use]
    pub fn at_rank(&self, rank: usize) -> Option<f64> {
        self.0.get(rank.checked_sub(1)?).copied()
    }
}

/// The observed value at rank `⌈Q n⌉` (Hyndman–Fan type 1), in the samples' unit.
#[must_use]
pub fn nearest_rank(sample: &Sorted, quantile: Quantile) -> f64 {
    // A rank of a non-empty sample exists; +∞ would be on the safe side.
    sample.at_rank(quantile.rank(sample.len())).unwrap_or(f64::INFINITY)
}

/// Linear interpolation between order statistics (Hyndman–Fan type 7), in the
/// samples' unit; +∞ as soon as an infinite sample has any weight.
#[must_use]
pub fn type7(sample: &Sorted, quantile: Quantile) -> f64 {
    let (below, fraction) = quantile.position(sample.len());
    let low = sample.at_rank(below + 1).unwrap_or(f64::INFINITY);
    match sample.at_rank(below + 2) {
        Some(high) if fraction > 0.0 && low.is_finite() => low + fraction * (high - low),
        _ => low,
    }
}

/// An estimate with its standard error, both in the samples' unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The estimate.
    pub value: f64,
    /// Its standard error.
    pub standard_error: f64,
}

/// The Harrell–Davis estimate: all order statistics weighted by
/// `I_{i/n} − I_{(i−1)/n}` of Beta((n+1)Q, (n+1)(1−Q)).
///
/// The standard error is the weighted standard deviation
/// `sqrt(Σ w x² − (Σ w x)²)`. Biased upwards for high quantiles: not for verdicts on a limit.
///
/// # Errors
/// [`Error::Sample`] if a sample is infinite (position in ascending order).
pub fn harrell_davis(sample: &Sorted, quantile: Quantile) -> Result<Estimate, Error> {
    if let Some(position) = sample.values().iter().position(|x| x.is_infinite()) {
        return Err(Error::Sample { position, value: f64::INFINITY });
    }
    let weights = Weights::of(sample.len(), quantile);
    let value = weights.sum(sample, |x| x);
    let variance = weights.sum(sample, |x| (x - value) * (x - value));
    Ok(Estimate { value, standard_error: variance.max(0.0).sqrt() })
}

/// What each order statistic counts for in the Harrell–Davis estimate; those left out count for nothing.
pub(crate) struct Weights {
    /// Order statistics below the first weighted one.
    skipped: usize,
    weights: Vec<f64>,
}

impl Weights {
    pub(crate) fn of(n: usize, quantile: Quantile) -> Self {
        /// Far below the last digit of any estimate.
        const NEGLIGIBLE: f64 = 1e-18;
        let size = n as f64;
        let (a, b) = ((size + 1.0) * quantile.fraction(), (size + 1.0) * quantile.complement());
        let up_to = |i: usize| regularized(a, b, i as f64 / size);
        // Of many values only those near the quantile count.
        let skipped = least(n, |i| up_to(i) > NEGLIGIBLE).saturating_sub(1);
        let last = least(n, |i| 1.0 - up_to(i) <= NEGLIGIBLE);
        let mut below = up_to(skipped);
        let weights = (skipped + 1..=last).map(|i| {
            let reached = up_to(i);
            let weight = reached - below;
            below = reached;
            weight
        });
        Self { skipped, weights: weights.collect() }
    }

    /// `Σ w f(x)` over a sample of the size these weights are for.
    pub(crate) fn sum(&self, sample: &Sorted, of: impl Fn(f64) -> f64) -> f64 {
        self.weights.iter().zip(self.weighted(sample)).map(|(w, x)| w * of(*x)).sum()
    }

    /// The values that count for something, in ascending order.
    pub(crate) fn weighted<'a>(&self, sample: &'a Sorted) -> impl Iterator<Item = &'a f64> {
        sample.values().iter().skip(self.skipped).take(self.weights.len())
    }
}

/// The least of `0..=n` from which on `holds`; `n` if none before.
fn least(n: usize, holds: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (0, n);
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}

/// Rank of the one-sided lower bound of a quantile at `1 − alpha`:
/// `max{l : P[Bin(n, Q) ≤ l−1] ≤ alpha}`; `None` if no order statistic is low enough.
///
/// Distribution-free for independent samples.
///
/// # Errors
/// [`Error::Empty`] if `n` is 0, [`Error::Alpha`].
pub fn lower_rank(n: usize, quantile: Quantile, alpha: f64) -> Result<Option<usize>, Error> {
    let last = binomial::pass_count(n as u64, quantile.fraction(), alpha)?;
    Ok(last.and_then(|l| usize::try_from(l + 1).ok()))
}

/// Rank of the one-sided upper bound of a quantile at `1 − alpha`:
/// `min{u : P[Bin(n, Q) ≤ u−1] ≥ 1 − alpha}`; `None` if it would be `n + 1`
/// (P95 needs 59 samples at alpha 0.05).
///
/// Distribution-free for independent samples.
///
/// # Errors
/// [`Error::Empty`] if `n` is 0, [`Error::Alpha`].
pub fn upper_rank(n: usize, quantile: Quantile, alpha: f64) -> Result<Option<usize>, Error> {
    let rank = binomial::fail_count(n as u64, quantile.fraction(), alpha)?;
    Ok(usize::try_from(rank).ok().filter(|u| *u <= n))
}
