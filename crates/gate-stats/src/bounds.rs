//! One sample against a share of another, each by its own bounds: safe for two that have nothing in common.

use crate::binomial::{at_least, at_most};
use crate::{Error, Mean, Quantile, Sorted, Worse, error};

/// The least alphas at which the bounds of two samples lie apart; 1 where they never do.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bounds {
    /// Evidence that this is worse than the share of that.
    pub p_fail: f64,
    /// Evidence that it is better.
    pub p_pass: f64,
}

impl Bounds {
    /// From the least alphas at which this lies above, and below, the share of that.
    fn new(above: f64, below: f64, worse: Worse) -> Self {
        match worse {
            Worse::Larger => Self { p_fail: above, p_pass: below },
            Worse::Smaller => Self { p_fail: below, p_pass: above },
        }
    }
}

/// Judges a quantile of `this` against `share` times that of `that`, by one-sided order-statistic bounds.
///
/// `p_fail` is the least alpha at which the lower bound of this is above the share of the upper bound of that, each
/// at that alpha; for `p_pass`, and where smaller is worse, the other way round. A bound that does not exist is
/// never beyond another: P95 needs 59 values for an upper one at .05.
///
/// # Errors
/// [`Error::Ratio`] for a share that is not finite and above 0.
pub fn share_of(this: &Sorted, that: &Sorted, quantile: Quantile, share: f64, worse: Worse) -> Result<Bounds, Error> {
    let share = error::ratio(share)?;
    let above = least_alpha(this, that, quantile, |lower, upper| lower > share * upper);
    let below = least_alpha(that, this, quantile, |lower, upper| share * lower > upper);
    Ok(Bounds::new(above, below, worse))
}

/// Judges the mean of `this` against `share` times that of `that`, as [`share_of`] does, by Student's bounds.
///
/// # Errors
/// [`Error::Ratio`] for a share that is not finite and above 0.
pub fn mean_share_of(this: Mean, that: Mean, share: f64, worse: Worse) -> Result<Bounds, Error> {
    let share = error::ratio(share)?;
    let gap = this.value() - share * that.value();
    let apart = apart_at(gap.abs(), |alpha| Ok(this.margin(alpha)? + share * that.margin(alpha)?))?;
    // Student's distribution has two equal sides; a certain gap proves nothing of the other.
    let other = if apart == 0.0 { 1.0 } else { 1.0 - apart };
    let (above, below) = if gap == 0.0 {
        (apart, apart)
    } else if gap > 0.0 {
        (apart, other)
    } else {
        (other, apart)
    };
    Ok(Bounds::new(above, below, worse))
}

/// The least alpha whose lower bound of `low` is beyond the upper bound of `high`.
///
/// The lower bound at rank `l` needs `P[Bin(n, Q) ≤ l − 1]`, the upper one at rank `u` needs `P[Bin(m, Q) ≥ u]`. A
/// higher `u` needs less but also a higher `l`, which needs more: the least is where the two cross.
fn least_alpha(low: &Sorted, high: &Sorted, quantile: Quantile, beyond: impl Fn(f64, f64) -> bool) -> f64 {
    let (n, m, q) = (low.len() as u64, high.len() as u64, quantile.fraction());
    let for_upper = |upper: u64| at_least(upper, m, q);
    let for_lower = |upper: u64| -> f64 {
        let Some(bound) = usize::try_from(upper).ok().and_then(|rank| high.at_rank(rank)) else { return 1.0 };
        let short = low.values().partition_point(|value| !beyond(*value, bound)) as u64;
        if short < n { at_most(short, n, q) } else { 1.0 }
    };
    let (mut before, mut crossed) = (0, m);
    while crossed - before > 1 {
        let upper = before + (crossed - before) / 2;
        if for_lower(upper) >= for_upper(upper) {
            crossed = upper;
        } else {
            before = upper;
        }
    }
    let needed = |upper: u64| for_lower(upper).max(for_upper(upper));
    needed(crossed).min(if before > 0 { needed(before) } else { 1.0 })
}

/// The alpha, up to one half, at which the margins add up to the gap; 0 where they are nothing.
fn apart_at(gap: f64, margins: impl Fn(f64) -> Result<f64, Error>) -> Result<f64, Error> {
    /// Below any level that is asked for.
    const LEAST: f64 = 1e-15;
    if margins(LEAST)? <= 0.0 {
        return Ok(if gap > 0.0 { 0.0 } else { 1.0 });
    }
    // Alphas are compared by their size, so that small ones are as exact as large ones.
    let (mut low, mut high) = (LEAST.ln(), 0.5_f64.ln());
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if margins(middle.exp())? < gap {
            high = middle;
        } else {
            low = middle;
        }
    }
    Ok(high.exp())
}
