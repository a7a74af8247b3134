//! The regularised incomplete beta function, total and good for large counts.

use statrs::function::beta::checked_beta_reg;
use statrs::function::gamma::ln_gamma;

/// Up to this `a + b` the library function is used. It stops its continued
/// fraction after 140 steps and takes its factor from differences of log gammas,
/// both of which lose digits for counts far above this.
const LIBRARY_UP_TO: f64 = 3000.0;

/// `I_x(a, b)`, where `I_x(0, b) = 1` and `I_x(a, 0) = 0`.
///
/// Arguments outside its domain give NaN, which proves nothing in any comparison.
pub(crate) fn regularized(a: f64, b: f64, x: f64) -> f64 {
    if a.is_nan() || b.is_nan() || !(0.0..=1.0).contains(&x) || a < 0.0 || b < 0.0 {
        f64::NAN
    } else if a == 0.0 || x == 1.0 {
        1.0
    } else if b == 0.0 || x == 0.0 {
        0.0
    } else if a + b <= LIBRARY_UP_TO {
        checked_beta_reg(a, b, x).map_or(f64::NAN, |value| value.clamp(0.0, 1.0))
    } else {
        large(a, b, x).clamp(0.0, 1.0)
    }
}

/// Continued fraction (DLMF 8.17.22, modified Lentz) on the side where it
/// converges quickly; needs about `sqrt(max(a, b))` steps.
fn large(a: f64, b: f64, x: f64) -> f64 {
    let y = 1.0 - x;
    let front = density_factor(a, b, x, y);
    if x < (a + 1.0) / (a + b + 2.0) { front * fraction(a, b, x) / a } else { 1.0 - front * fraction(b, a, y) / b }
}

/// `x^a y^b / B(a, b)` without cancelling large logarithms (Loader's saddle point).
fn density_factor(a: f64, b: f64, x: f64, y: f64) -> f64 {
    let n = a + b;
    let deviance = a * ((a - n * x) / (n * x)).ln_1p() + b * ((b - n * y) / (n * y)).ln_1p();
    let correction = stirling_error(n) - stirling_error(a) - stirling_error(b);
    (a * (b / n) / std::f64::consts::TAU).sqrt() * (correction - deviance).exp()
}

/// `ln Γ(z)` minus Stirling's `(z - 1/2) ln z - z + ln(2π)/2`.
fn stirling_error(z: f64) -> f64 {
    if z < 16.0 {
        ln_gamma(z) - ((z - 0.5) * z.ln() - z + 0.5 * std::f64::consts::TAU.ln())
    } else {
        let s = 1.0 / (z * z);
        (1.0 / 12.0 - s * (1.0 / 360.0 - s * (1.0 / 1260.0 - s * (1.0 / 1680.0)))) / z
    }
}

fn fraction(a: f64, b: f64, x: f64) -> f64 {
    const STEPS: u32 = 200_000;
    let away_from_zero = |v: f64| if v.abs() < 1e-300 { 1e-300 } else { v };
    let mut c = 1.0;
    let mut d = 1.0 / away_from_zero(1.0 - (a + b) * x / (a + 1.0));
    let mut value = d;
    for m in 1..=STEPS {
        let m = f64::from(m);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut step = 1.0;
        for term in [even, odd] {
            d = 1.0 / away_from_zero(1.0 + term * d);
            c = away_from_zero(1.0 + term / c);
            step = c * d;
            value *= step;
        }
        if (step - 1.0).abs() <= 2.0 * f64::EPSILON {
            break;
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_agree_where_they_meet() {
        for (a, b) in [(1.0, 2999.0), (7.5, 2900.0), (150.0, 2850.0), (1500.0, 1500.0), (2999.0, 1.0)] {
            for shift in [-3.0, -1.0, 0.0, 1.0, 3.0] {
                let mean: f64 = a / (a + b);
                let x = (mean + shift * (mean * (1.0 - mean) / (a + b)).sqrt()).clamp(1e-9, 1.0 - 1e-9);
                let (ours, theirs) = (large(a, b, x), checked_beta_reg(a, b, x).unwrap());
                assert!((ours - theirs).abs() <= 1e-9 * theirs, "I_{x}({a}, {b}): {ours} {theirs}");
            }
        }
    }

    #[test]
    fn outside_its_domain_it_is_not_a_number() {
        for (a, b, x) in [(-1.0, 1.0, 0.5), (1.0, f64::NAN, 0.5), (1.0, 1.0, 1.5), (1.0, 1.0, f64::NAN)] {
            assert!(regularized(a, b, x).is_nan());
        }
    }
}
