//! What a sequential procedure finds: its probability to violate, exactly.
//!
//! The procedure: at each look, `k` of the first `n` requests exceed. It
//! violates if `k` reaches the look's count, stops if `k <= n p0` (within), and
//! otherwise goes on to the next look. Requests are taken as independent.

use crate::binomial::{allowed, at_least};
use crate::error;
use crate::mass::Mass;
use crate::{Error, sequential};

/// Probability that the procedure violates when the true share of exceedances is `p1`.
///
/// `counts` are the exceedances that violate at each look, as from
/// [`boundaries`](sequential::boundaries) or [`Levels::counts`](sequential::Levels::counts).
/// At `p1 = p0` it is the probability of a false alarm.
///
/// # Errors
/// [`Error::Looks`], [`Error::LookTooLate`] beyond [`LATEST_LOOK`](sequential::LATEST_LOOK),
/// [`Error::Lengths`], [`Error::Probability`].
pub fn violation_probability(looks: &[u32], counts: &[u32], p0: f64, p1: f64) -> Result<f64, Error> {
    let steps = checked(looks, counts)?;
    let p0 = error::share("p0", p0)?;
    Ok(walk(looks, &steps, counts, p0, error::share("p1", p1)?))
}

/// Least true share of exceedances, at least `p0`, that violates with probability
/// `power` (0.8 by custom), to 1e-9; `None` if no share does.
///
/// # Errors
/// Those of [`violation_probability`].
pub fn detectable_share(looks: &[u32], counts: &[u32], p0: f64, power: f64) -> Result<Option<f64>, Error> {
    let steps = checked(looks, counts)?;
    let (p0, power) = (error::share("p0", p0)?, error::share("power", power)?);
    let found = |p1: f64| walk(looks, &steps, counts, p0, p1) >= power;
    if !found(1.0) {
        return Ok(None);
    }
    if found(p0) {
        return Ok(Some(p0));
    }
    // More exceedances never undo a violation, so the probability rises with p1.
    let (mut low, mut high) = (p0, 1.0);
    while high - low > 1e-9 {
        let middle = 0.5 * (low + high);
        if found(middle) {
            high = middle;
        } else {
            low = middle;
        }
    }
    Ok(Some(high))
}

fn checked(looks: &[u32], counts: &[u32]) -> Result<Vec<u32>, Error> {
    if looks.len() != counts.len() {
        return Err(Error::Lengths { looks: looks.len(), counts: counts.len() });
    }
    sequential::steps(looks)
}

fn walk(looks: &[u32], steps: &[u32], counts: &[u32], p0: f64, p1: f64) -> f64 {
    if let ([n], [count]) = (looks, counts) {
        return at_least(u64::from(*count), u64::from(*n), p1);
    }
    let mut running = Mass::point(0);
    let mut violated = 0.0;
    for ((n, step), count) in looks.iter().zip(steps).zip(counts) {
        running = running.plus(&Mass::binomial(*step, p1));
        violated += running.take_from(u64::from(*count));
        running.drop_up_to(allowed(u64::from(*n), p0));
    }
    violated.min(1.0)
}
