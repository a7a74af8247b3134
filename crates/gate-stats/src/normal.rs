//! The normal distribution, accurate far out.

use statrs::distribution::{ContinuousCDF, Normal};
use statrs::function::erf::erfc;

/// `P[Z ≥ z]` of the standard normal distribution, accurate far out.
pub(crate) fn tail(z: f64) -> f64 {
    0.5 * erfc(z * std::f64::consts::FRAC_1_SQRT_2)
}

/// The `z` whose upper tail is `alpha`.
pub(crate) fn quantile(alpha: f64) -> Option<f64> {
    Some(-Normal::new(0.0, 1.0).ok()?.inverse_cdf(alpha))
}
