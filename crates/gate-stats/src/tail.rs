//! The tail of one sample against an order statistic of another: how many exceed it, and how surprising that is.
//!
//! If both come from one distribution, the exceedances of the base's r-th of M order statistics are
//! beta-binomially distributed, whatever the distribution is.

use crate::mass::Mass;
use crate::paired::ROUNDING;
use crate::{DesignEffect, Error, Indicators, Mark, Quantile, Sorted, Worse, error};

/// How many values are worse than the cut, and what follows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Tail {
    /// Values judged.
    pub n: usize,
    /// Values worse than the cut.
    pub k: usize,
    /// The order statistic of the base, times the ratio, in the samples' unit.
    pub cut: f64,
    /// The rank of that order statistic among the base, counted from the better end, from 1.
    pub rank: usize,
    /// Values of the base.
    pub base: usize,
    /// How many neighbouring values carry the evidence of one.
    pub design_effect: DesignEffect,
    /// Evidence that the tail is worse: `P[BetaBin(⌊n/D⌋, M − r + 1, r) ≥ ⌊k/D⌋]`.
    pub p_fail: f64,
    /// Evidence that it is not: `P[… ≤ ⌈k/D⌉]`.
    pub p_pass: f64,
}

impl Tail {
    /// The least `k` that would violate at a level, with this design effect; `None` where no count would.
    #[must_use]
    pub fn needed(&self, level: f64) -> Option<usize> {
        let effect = self.design_effect;
        let effective = self.chances().least_count_within(level);
        let from = (effective as f64 * effect.value()).ceil() as usize;
        // Rounding may have gone one too far either way.
        (from.saturating_sub(1)..=from.saturating_add(1))
            .find(|k| effect.effective(*k as u64).floor() >= effective as f64)
            .filter(|k| *k <= self.n)
    }

    /// How many of the independent values exceed if nothing is worse.
    fn chances(&self) -> Mass {
        let independent = self.design_effect.effective(self.n as u64).floor() as u64;
        Mass::beta_binomial(independent, self.base - self.rank + 1, self.rank)
    }
}

/// Judges values in send order against `ratio` times the base's nearest-rank quantile.
///
/// Where smaller is worse everything is mirrored: the rank is `⌈(1 − Q) M⌉` from the top, and values below the cut
/// are counted. An endless cut proves nothing either way: both p-values are 1.
///
/// # Errors
/// [`Error::Empty`] without values; [`Error::Ratio`]; [`Error::Sample`] for a value that is negative or NaN.
pub fn exceedances(
    candidate: &[f64],
    base: &Sorted,
    quantile: Quantile,
    ratio: f64,
    worse: Worse,
) -> Result<Tail, Error> {
    let ratio = error::ratio(ratio)?;
    exceedances_of(candidate, base, quantile, |value| value * ratio, worse)
}

/// [`exceedances`] of a cut that is any function of the base's quantile: `value + 20` ms, say.
///
/// # Errors
/// [`Error::Empty`] without values; [`Error::Ratio`] for a cut that is negative or NaN; [`Error::Sample`] for a value
/// that is.
pub fn exceedances_of(
    candidate: &[f64],
    base: &Sorted,
    quantile: Quantile,
    cut: impl FnOnce(f64) -> f64,
    worse: Worse,
) -> Result<Tail, Error> {
    if candidate.is_empty() {
        return Err(Error::Empty);
    }
    let rank = match worse {
        Worse::Larger => quantile.rank(base.len()),
        Worse::Smaller => quantile.mirrored().rank(base.len()),
    };
    let place = match worse {
        Worse::Larger => rank,
        Worse::Smaller => base.len() - rank + 1,
    };
    let cut = cut(base.at_rank(place).unwrap_or(f64::INFINITY));
    if cut.is_nan() || cut < 0.0 {
        return Err(Error::Ratio(cut));
    }
    let mut marks = Indicators::default();
    for (position, value) in candidate.iter().enumerate() {
        let value = error::measured(position, *value)?;
        let exceeds = match worse {
            Worse::Larger => value - cut > cut * ROUNDING,
            Worse::Smaller => cut - value > cut * ROUNDING,
        };
        marks.push(if exceeds { Mark::Exceeded } else { Mark::Kept });
    }
    let effect = marks.design_effect();
    let k = usize::try_from(marks.k()).unwrap_or(candidate.len());
    let mut tail =
        Tail { n: candidate.len(), k, cut, rank, base: base.len(), design_effect: effect, p_fail: 1.0, p_pass: 1.0 };
    if cut.is_finite() {
        let (chances, effective) = (tail.chances(), effect.effective(marks.k()));
        tail.p_fail = chances.at_least(effective.floor() as u64);
        tail.p_pass = chances.at_most(effective.ceil() as u64);
    }
    Ok(tail)
}
