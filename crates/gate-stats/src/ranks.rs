//! Ranks of values: their places in order, and whether one group's lie higher than another's.

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
    if one.is_empty() || other.is_empty() {
        return Err(Error::Empty);
    }
    let both = [one, other].concat();
    if let Some((position, value)) = both.iter().copied().enumerate().find(|(_, value)| value.is_nan()) {
        return Err(Error::Sample { position, value });
    }
    let ranks = midranks(&both);
    let (m, n) = (one.len() as f64, other.len() as f64);
    let all = m + n;
    let sum: f64 = ranks.iter().take(one.len()).sum();
    let over = sum - m * (m + 1.0) / 2.0 - m * n / 2.0;
    let variance = m * n / 12.0 * (all + 1.0 - ties(&ranks) / (all * (all - 1.0)));
    Ok(if variance > 0.0 { normal::tail((over - 0.5) / variance.sqrt()) } else { 1.0 })
}

/// `Σ (t³ − t)` over groups of `t` equal ranks.
fn ties(ranks: &[f64]) -> f64 {
    let mut sorted = ranks.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let groups = sorted.chunk_by(|a, b| a == b).map(|tied| tied.len() as f64);
    groups.map(|tied| tied.powi(3) - tied).sum()
}
