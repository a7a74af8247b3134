//! Two arms measured in pairs: whether the candidate's typical change is worse than allowed.
//!
//! Wilcoxon's signed ranks of the log ratios, with a design effect, and the
//! Hodges–Lehmann estimate that belongs to them.

use crate::mean::Resemblance;
use crate::{DesignEffect, Error, error, normal, ranks};

/// Which way a value is worse.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Worse {
    /// More is worse, as with a latency.
    Larger,
    /// Less is worse, as with a rate.
    Smaller,
}

impl Worse {
    /// A log ratio, turned so that more is worse.
    pub(crate) fn turned(self, log: f64) -> f64 {
        match self {
            Self::Larger => log,
            Self::Smaller => -log,
        }
    }
}

/// A log ratio that rounding alone can make of two equal values: 115 is not beyond 1.15 · 100.
pub(crate) const ROUNDING: f64 = 1e-12;

/// Stands for an infinite log ratio where averages are formed; those of finite ones are far below.
const ENDLESS: f64 = 1e300;

/// The largest log of a ratio that is still a number.
const LARGEST: f64 = 700.0;

/// What the signed ranks of the pairs say about a limit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SignedRank {
    /// Pairs that are not tied with the limit.
    pub n: usize,
    /// `W`, the sum of the signed ranks; positive where the candidate is worse than allowed.
    pub statistic: f64,
    /// `√V`, its standard deviation at the limit.
    pub deviation: f64,
    /// How many neighbouring signed ranks carry the evidence of one.
    pub design_effect: DesignEffect,
    /// Evidence that the typical change is worse than allowed: `1 − Φ((W − 1)/√V)`.
    pub p_fail: f64,
    /// Evidence that it is not: `Φ((W + 1)/√V)`.
    pub p_pass: f64,
}

/// Judges pairs (candidate, reference) in send order against the limit `(1 + tolerance) · reference`.
///
/// `d = ln c − ln r − ln(1 + tolerance)`, zeros dropped; `S = sign(d) · midrank |d|`, `W = Σ S`,
/// `V = D(S) Σ rank²`. Values are from 0, +∞ where a request never ended. A pair of zeros or of infinities is no
/// change, `(x, 0)` an endless rise, `(0, x)` an endless fall. Where every pair is tied with the limit, or there is
/// none, nothing follows: both p-values are 1.
///
/// # Errors
/// [`Error::Tolerance`]; [`Error::Sample`] for a value that is negative or NaN, with the position of its pair.
pub fn signed_rank(pairs: &[(f64, f64)], tolerance: f64, worse: Worse) -> Result<SignedRank, Error> {
    let margin = error::margin(tolerance)?;
    let beyond: Vec<f64> = log_ratios(pairs)?
        .into_iter()
        .map(|log| worse.turned(log - margin))
        .filter(|distance| distance.abs() > ROUNDING)
        .collect();
    let signed = signed_ranks(&beyond);
    let statistic: f64 = signed.iter().sum();
    let effect = Resemblance::of(&signed).design_effect();
    let deviation = (effect.value() * signed.iter().map(|rank| rank * rank).sum::<f64>()).sqrt();
    let (p_fail, p_pass) = if signed.is_empty() {
        (1.0, 1.0)
    } else {
        (normal::tail((statistic - 1.0) / deviation), normal::tail(-(statistic + 1.0) / deviation))
    };
    Ok(SignedRank { n: signed.len(), statistic, deviation, design_effect: effect, p_fail, p_pass })
}

/// A typical change, as a factor on the reference.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ratio {
    /// The Hodges–Lehmann estimate: `exp` of the median of the Walsh averages of the log ratios.
    pub value: f64,
    /// One-sided lower bound; `None` where the pairs are too few for one, or have no end.
    pub lower: Option<f64>,
    /// One-sided upper bound, likewise.
    pub upper: Option<f64>,
}

/// The typical change from the reference to the candidate, with one-sided bounds at `1 − alpha`.
///
/// The bounds are order statistics of the Walsh averages: the changes that [`signed_rank`] would just reject, with
/// the design effect of the signed ranks about the estimate. `None` without pairs, for values that cannot be
/// measured ones, and where the estimate itself has no end.
#[must_use]
pub fn location(pairs: &[(f64, f64)], alpha: f64) -> Option<Ratio> {
    let alpha = error::alpha(alpha).ok()?;
    let logs: Vec<f64> = log_ratios(pairs).ok()?.into_iter().map(|log| log.clamp(-ENDLESS, ENDLESS)).collect();
    let mut sorted = logs.clone();
    sorted.sort_unstable_by(f64::total_cmp);
    let n = u64::try_from(sorted.len()).ok()?;
    let averages = n * (n + 1) / 2;
    let at = |rank: u64| walsh_average(&sorted, rank);
    let centre = f64::midpoint(at(averages.div_ceil(2))?, at(averages / 2 + 1)?);

    let distances: Vec<f64> = logs.iter().map(|log| log - centre).filter(|d| d.abs() > ROUNDING).collect();
    let effect = Resemblance::of(&signed_ranks(&distances)).design_effect();
    let size = n as f64;
    let variance = effect.value() * size * (size + 1.0) * (2.0 * size + 1.0) / 6.0;
    // W = 2T − n(n+1)/2 rejects from this many Walsh averages T beyond the change on.
    let rejecting = ((averages as f64 + 1.0 + normal::quantile(alpha)? * variance.sqrt()) / 2.0).ceil();
    let rejecting = (rejecting <= averages as f64).then_some(rejecting.max(1.0) as u64);
    Some(Ratio {
        value: ratio(centre)?,
        lower: rejecting.and_then(|rank| ratio(at(averages - rank + 1)?)),
        upper: rejecting.and_then(|rank| ratio(at(rank)?)),
    })
}

/// `exp(log)` while that is a number.
fn ratio(log: f64) -> Option<f64> {
    (log.abs() <= LARGEST).then(|| log.exp())
}

fn log_ratios(pairs: &[(f64, f64)]) -> Result<Vec<f64>, Error> {
    let checked = |(position, (candidate, reference)): (usize, &(f64, f64))| {
        Ok(log_ratio(error::measured(position, *candidate)?, error::measured(position, *reference)?))
    };
    pairs.iter().enumerate().map(checked).collect()
}

fn log_ratio(candidate: f64, reference: f64) -> f64 {
    if candidate == reference { 0.0 } else { candidate.ln() - reference.ln() }
}

/// `sign(d) · midrank |d|` of distances that are not 0, in their order.
fn signed_ranks(distances: &[f64]) -> Vec<f64> {
    let sizes: Vec<f64> = distances.iter().map(|distance| distance.abs()).collect();
    let ranks = ranks::midranks(&sizes);
    ranks.into_iter().zip(distances).map(|(rank, distance)| rank.copysign(*distance)).collect()
}

/// The Walsh average `(x_i + x_j)/2`, `i ≤ j`, of a 1-based rank, without forming all of them: a bisection over the
/// numbers themselves, each step counting in linear time.
fn walsh_average(sorted: &[f64], rank: u64) -> Option<f64> {
    let (mut low, mut high) = (key(*sorted.first()?), key(*sorted.last()?));
    while low < high {
        let middle = (low & high) + ((low ^ high) >> 1);
        if averages_up_to(sorted, number(middle)) >= rank {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Some(number(low))
}

/// How many Walsh averages are at most `limit`.
fn averages_up_to(sorted: &[f64], limit: f64) -> u64 {
    let mut rest = sorted;
    let mut count = 0;
    while let ([least, ..], [.., most]) = (rest, rest) {
        let shorter = if f64::midpoint(*least, *most) > limit {
            rest.split_last().map(|(_, shorter)| shorter)
        } else {
            count += rest.len() as u64;
            rest.split_first().map(|(_, shorter)| shorter)
        };
        rest = shorter.unwrap_or_default();
    }
    count
}

/// A whole number that orders as the floating-point number does.
fn key(number: f64) -> i64 {
    let bits = number.to_bits().cast_signed();
    if bits < 0 { i64::MIN - bits - 1 } else { bits }
}

/// The number of a [`key`].
fn number(key: i64) -> f64 {
    let bits = if key < 0 { i64::MIN - key - 1 } else { key };
    f64::from_bits(bits.cast_unsigned())
}
