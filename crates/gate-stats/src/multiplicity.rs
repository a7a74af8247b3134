//! Several p-values taken together.

use crate::Error;
use crate::error;

/// Bonferroni-adjusted p-values, `min(1, m p)`, in the order given.
///
/// # Errors
/// [`Error::Empty`], [`Error::Probability`].
pub fn bonferroni(p: &[f64]) -> Result<Vec<f64>, Error> {
    let m = ascending(p)?.len() as f64;
    Ok(p.iter().map(|p| (p * m).min(1.0)).collect())
}

/// Holm-adjusted p-values (Holm 1979), in the order given.
///
/// The i-th smallest is `max over j <= i of min(1, (m − j + 1) p_(j))`.
///
/// # Errors
/// [`Error::Empty`], [`Error::Probability`].
pub fn holm(p: &[f64]) -> Result<Vec<f64>, Error> {
    let order = ascending(p)?;
    let mut adjusted = vec![1.0; p.len()];
    let mut highest: f64 = 0.0;
    for (done, (position, value)) in order.iter().enumerate() {
        highest = highest.max((value * (p.len() - done) as f64).min(1.0));
        if let Some(slot) = adjusted.get_mut(*position) {
            *slot = highest;
        }
    }
    Ok(adjusted)
}

/// Simes' p-value of the hypothesis that no check is broken (Simes 1986): `min over i of m p_(i) / i`.
///
/// # Errors
/// [`Error::Empty`], [`Error::Probability`].
pub fn simes(p: &[f64]) -> Result<f64, Error> {
    let order = ascending(p)?;
    let m = p.len() as f64;
    let ranked = (1..).zip(&order).map(|(i, (_, value))| m * value / f64::from(i));
    Ok(ranked.fold(1.0, f64::min))
}

/// The p-values with their positions, smallest first.
fn ascending(p: &[f64]) -> Result<Vec<(usize, f64)>, Error> {
    if p.is_empty() {
        return Err(Error::Empty);
    }
    let checked: Result<Vec<_>, _> =
        p.iter().enumerate().map(|(i, p)| Ok((i, error::share("a p-value", *p)?))).collect();
    let mut order = checked?;
    order.sort_by(|a, b| a.1.total_cmp(&b.1));
    Ok(order)
}
