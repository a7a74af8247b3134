//! Exact binomial tails, one-sided Clopper–Pearson bounds and critical counts.

use crate::Error;
use crate::beta::regularized;
use crate::error;

/// `P[Bin(n, p) >= k]`, accurate in both tails; 1 for `k = 0`, 0 for `k > n`.
///
/// Computed as `I_p(k, n - k + 1)`.
///
/// # Errors
/// [`Error::Probability`] if `p` is not within 0..=1.
pub fn upper_tail(k: u64, n: u64, p: f64) -> Result<f64, Error> {
    Ok(at_least(k, n, error::share("p", p)?))
}

/// `P[Bin(n, p) <= k]`, accurate in both tails; 1 for `k >= n`.
///
/// Computed as `I_{1-p}(n - k, k + 1)`.
///
/// # Errors
/// [`Error::Probability`] if `p` is not within 0..=1.
pub fn lower_tail(k: u64, n: u64, p: f64) -> Result<f64, Error> {
    Ok(at_most(k, n, error::share("p", p)?))
}

/// Least `k` with `P[Bin(n, p0) >= k] <= alpha`: so many exceedances violate.
///
/// It is `n + 1` where even `n` of `n` would not be enough.
///
/// # Errors
/// [`Error::Empty`] if `n` is 0, [`Error::Probability`], [`Error::Alpha`].
pub fn fail_count(n: u64, p0: f64, alpha: f64) -> Result<u64, Error> {
    error::count(0, n)?;
    let (p0, alpha) = (error::share("p0", p0)?, error::alpha(alpha)?);
    let (mut too_few, mut enough) = (0, n.saturating_add(1));
    while enough - too_few > 1 {
        let k = too_few + (enough - too_few) / 2;
        if at_least(k, n, p0) <= alpha {
            enough = k;
        } else {
            too_few = k;
        }
    }
    Ok(enough)
}

/// Greatest `k` with `P[Bin(n, p0) <= k] <= alpha`: up to so many exceedances
/// prove the bound; `None` where not even zero would.
///
/// # Errors
/// [`Error::Empty`] if `n` is 0, [`Error::Probability`], [`Error::Alpha`].
pub fn pass_count(n: u64, p0: f64, alpha: f64) -> Result<Option<u64>, Error> {
    error::count(0, n)?;
    let (p0, alpha) = (error::share("p0", p0)?, error::alpha(alpha)?);
    // `passes_below` counts the values 0, 1, … that are known to pass.
    let (mut passes_below, mut too_many) = (0, n);
    while passes_below < too_many {
        let k = passes_below + (too_many - passes_below) / 2;
        if at_most(k, n, p0) <= alpha {
            passes_below = k + 1;
        } else {
            too_many = k;
        }
    }
    Ok(passes_below.checked_sub(1))
}

/// One-sided lower Clopper–Pearson bound of the true share at `1 - alpha`; 0 for `k = 0`.
///
/// # Errors
/// [`Error::Empty`], [`Error::Count`] if `k > n`, [`Error::Alpha`].
pub fn share_lower(k: u64, n: u64, alpha: f64) -> Result<f64, Error> {
    error::count(k, n)?;
    let alpha = error::alpha(alpha)?;
    if k == 0 {
        return Ok(0.0);
    }
    Ok(crossing(|p| at_least(k, n, p) < alpha))
}

/// One-sided upper Clopper–Pearson bound of the true share at `1 - alpha`; 1 for `k = n`.
///
/// # Errors
/// [`Error::Empty`], [`Error::Count`] if `k > n`, [`Error::Alpha`].
pub fn share_upper(k: u64, n: u64, alpha: f64) -> Result<f64, Error> {
    error::count(k, n)?;
    let alpha = error::alpha(alpha)?;
    if k == n {
        return Ok(1.0);
    }
    Ok(crossing(|p| at_most(k, n, p) > alpha))
}

/// Greatest count that keeps a share of `p0` among `n`: `⌊n p0⌋`.
///
/// A product that misses a whole number only by rounding (100 × 0.29) is that number.
///
/// # Errors
/// [`Error::Probability`] if `p0` is not within 0..=1.
pub fn allowed_count(n: u64, p0: f64) -> Result<u64, Error> {
    Ok(allowed(n, error::share("p0", p0)?))
}

pub(crate) fn allowed(n: u64, p0: f64) -> u64 {
    let product = n as f64 * p0;
    let whole = product.round();
    if (product - whole).abs() <= 1e-12 * whole.max(1.0) { whole as u64 } else { product.floor() as u64 }
}

pub(crate) fn at_least(k: u64, n: u64, p: f64) -> f64 {
    if k > n { 0.0 } else { regularized(k as f64, (n - k) as f64 + 1.0, p) }
}

pub(crate) fn at_most(k: u64, n: u64, p: f64) -> f64 {
    if k >= n { 1.0 } else { regularized((n - k) as f64, k as f64 + 1.0, 1.0 - p) }
}

/// The point of 0..=1 where `before` turns from true to false.
fn crossing(before: impl Fn(f64) -> bool) -> f64 {
    const HALVINGS: u32 = 200;
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..HALVINGS {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            break;
        }
        if before(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    0.5 * (low + high)
}
