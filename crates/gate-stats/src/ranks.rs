//! Ranks of values: their places in order, whether one group's lie higher than another's, and whether two rise together.

use crate::mean::Resemblance;
use crate::{Error, normal};

/// The rank of each value among all, from 1; equal values share the middle of their ranks. Values are in their order.
#[must_use]
pub fn midranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<(f64, usize)> = values.iter().copied().zip(0..).collect();
    order.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut ranks = vec![0.0; values.len()];
    let mut before = 0;
    for tied in order.chunk_by(|a, b| a.0 == b.0) {
        // The middle of the ranks before + 1 ..= before + tied.
        let rank = before as f64 + (tied.len() as f64 + 1.0) / 2.0;
        for (_, place) in tied {
            if let Some(own) = ranks.get_mut(*place) {
                *own = rank;
            }
        }
        before += tied.len();
    }
    ranks
}

/// Evidence that `one` tends to be larger than `other`: Wilcoxon's rank sum (Mann and Whitney's U), by the normal
/// approximation with corrections for ties and continuity. Where all values are equal it is 1.
///
/// # Errors
/// [`Error::Empty`] where either has no value; [`Error::Sample`] for NaN.
pub fn p_larger(one: &[f64], other: &[f64]) -> Result<f64, Error> {
    larger(one, other, |_, _| 1.0)
}

/// [`p_larger`] of values in send order, which resemble those before them: the variance of the rank sum is that of
/// independent values times `(n D₁ + m D₂)/(m + n)`, the design effects of the ranks of `m` and `n` values.
///
/// # Errors
/// Those of [`p_larger`].
pub fn p_larger_in_order(one: &[f64], other: &[f64]) -> Result<f64, Error> {
    larger(one, other, |one, other| {
        let (m, n) = (one.len() as f64, other.len() as f64);
        let effect = |ranks: &[f64]| Resemblance::of(ranks).design_effect().value();
        (n * effect(one) + m * effect(other)) / (m + n)
    })
}

/// Wilcoxon's rank sum, where its variance is so much more than that of independent values by the ranks of each group.
fn larger(one: &[f64], other: &[f64], effect: impl Fn(&[f64], &[f64]) -> f64) -> Result<f64, Error> {
    let both = [one, other].concat();
    measured(&both)?;
    if one.is_empty() || other.is_empty() {
        return Err(Error::Empty);
    }
    let ranks = midranks(&both);
    let (m, n) = (one.len() as f64, other.len() as f64);
    let all = m + n;
    let (own, others) = ranks.split_at(one.len());
    let over = own.iter().sum::<f64>() - m * (m + 1.0) / 2.0 - m * n / 2.0;
    let variance = m * n / 12.0 * (all + 1.0 - ties(&ranks) / (all * (all - 1.0))) * effect(own, others);
    Ok(if variance > 0.0 { normal::tail((over - 0.5) / variance.sqrt()) } else { 1.0 })
}

/// Evidence that the second values of pairs tend to be larger the larger the first: Spearman's correlation of ranks `r`,
/// `P[Z ≥ r √(n − 1)]`. Where either are all equal it is 1.
///
/// # Errors
/// [`Error::Empty`] of fewer than three pairs; [`Error::Sample`] for NaN, the second values counted after the first.
pub fn p_rising(pairs: &[(f64, f64)]) -> Result<f64, Error> {
    let (first, second): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
    measured(&[first.as_slice(), &second].concat())?;
    if pairs.len() < 3 {
        return Err(Error::Empty);
    }
    let n = pairs.len() as f64;
    let centred =
        |values: &[f64]| midranks(values).into_iter().map(|rank| rank - (n + 1.0) / 2.0).collect::<Vec<f64>>();
    let (first, second) = (centred(&first), centred(&second));
    let product = |one: &[f64], other: &[f64]| one.iter().zip(other).map(|(one, other)| one * other).sum::<f64>();
    let spread = (product(&first, &first) * product(&second, &second)).sqrt();
    let correlation = product(&first, &second) / spread;
    Ok(if spread > 0.0 { normal::tail(correlation * (n - 1.0).sqrt()) } else { 1.0 })
}

/// Accepts values that have a rank.
fn measured(values: &[f64]) -> Result<(), Error> {
    match values.iter().copied().enumerate().find(|(_, value)| value.is_nan()) {
        Some((position, value)) => Err(Error::Sample { position, value }),
        None => Ok(()),
    }
}

/// `Σ (t³ − t)` over groups of `t` equal ranks.
fn ties(ranks: &[f64]) -> f64 {
    let mut sorted = ranks.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let groups = sorted.chunk_by(|a, b| a == b).map(|tied| tied.len() as f64);
    groups.map(|tied| tied.powi(3) - tied).sum()
}
