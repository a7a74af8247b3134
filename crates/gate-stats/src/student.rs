//! Student's t: how far a value is from where it should be, in units of its own error.

use crate::beta::regularized;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// Degrees of freedom beyond which quantiles change by less than a ten-thousandth.
const MOST_FREEDOM: f64 = 1e5;

/// `P[T ≥ distance / error]`: half of `I_{ν/(ν+t²)}(ν/2, 1/2)` for a positive distance.
///
/// Without any error it is 0 for a positive distance, else 1.
pub(crate) fn tail(distance: f64, error: f64, freedom: f64) -> f64 {
    if error == 0.0 {
        return if distance > 0.0 { 0.0 } else { 1.0 };
    }
    let t = distance / error;
    let half = 0.5 * regularized(0.5 * freedom, 0.5, freedom / (freedom + t * t));
    if t > 0.0 { half } else { 1.0 - half }
}

/// The distance whose [`tail`] is `alpha`; without any error 0, without degrees of freedom endless.
pub(crate) fn margin(alpha: f64, error: f64, freedom: f64) -> f64 {
    if error == 0.0 {
        return 0.0;
    }
    // Far beyond it the inverse is wrong, or does not end.
    let student = StudentsT::new(0.0, 1.0, freedom.min(MOST_FREEDOM));
    student.map_or(f64::INFINITY, |student| -student.inverse_cdf(alpha) * error)
}
