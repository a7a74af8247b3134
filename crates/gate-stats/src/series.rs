//! A 0/1 series in send order: its design effect, and p-values that respect it.
//!
//! Neighbouring requests share the state of the server, so `n` of them carry
//! the evidence of `n / D` independent ones.

use crate::Error;
use crate::beta::regularized;
use crate::error;

/// Lags whose autocorrelation enters the design effect.
pub const MAX_LAG: usize = 5;

/// Whether one request kept its bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mark {
    /// It kept the bound.
    Kept,
    /// It exceeded the bound.
    Exceeded,
}

/// A bound on one measured value, in that value's unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Limit {
    /// Values must be `<` this.
    Below(f64),
    /// Values must be `<=` this.
    AtMost(f64),
    /// Values must be `>` this.
    Above(f64),
    /// Values must be `>=` this.
    AtLeast(f64),
}

impl Limit {
    /// Marks a value; NaN keeps no bound.
    #[must_use]
    pub fn mark(self, value: f64) -> Mark {
        let kept = match self {
            Self::Below(limit) => value < limit,
            Self::AtMost(limit) => value <= limit,
            Self::Above(limit) => value > limit,
            Self::AtLeast(limit) => value >= limit,
        };
        if kept { Mark::Kept } else { Mark::Exceeded }
    }
}

/// What a verdict needs of a series of marks, in memory that does not grow.
///
/// Fed in send order; everything is counted in integers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Indicators {
    n: u64,
    k: u64,
    /// Exceedances both at `i` and at `i + lag`, for lags 1, 2, ….
    together: [u64; MAX_LAG],
    /// The first marks, oldest first; 1 is an exceedance.
    head: [u64; MAX_LAG],
    /// The last marks, newest first.
    tail: [u64; MAX_LAG],
}

impl Indicators {
    /// Adds the next request in send order.
    pub fn push(&mut self, mark: Mark) {
        let one = u64::from(mark == Mark::Exceeded);
        for (pairs, earlier) in self.together.iter_mut().zip(self.tail) {
            *pairs += one * earlier;
        }
        self.tail.rotate_right(1);
        if let Some(newest) = self.tail.first_mut() {
            *newest = one;
        }
        if let Some(slot) = usize::try_from(self.n).ok().and_then(|i| self.head.get_mut(i)) {
            *slot = one;
        }
        self.n += 1;
        self.k += one;
    }

    /// Requests seen.
    #[must_use]
    pub fn n(&self) -> u64 {
        self.n
    }

    /// Exceedances seen.
    #[must_use]
    pub fn k(&self) -> u64 {
        self.k
    }

    /// `D = 1 + 2 Σ_{j=1..5} (1 − j/n) r_j`, `r_j = Σ d_i d_{i+j} / Σ d_i²` of the
    /// centred marks, clipped to `[1, n/4]`; 1 for a constant series and for `n < 5`.
    #[must_use]
    pub fn design_effect(&self) -> DesignEffect {
        let (n, k) = (i128::from(self.n), i128::from(self.k));
        let spread = n * k * (n - k);
        if spread == 0 {
            return DesignEffect::NONE;
        }
        // Everything below is n² times the centred sum, so it stays exact.
        let (mut at_head, mut at_tail) = (0, 0);
        let mut sum = 0.0;
        let lags = (1..).zip(self.together).zip(self.head).zip(self.tail);
        for (((lag, together), head), tail) in lags {
            if lag >= n {
                break;
            }
            at_head += i128::from(head);
            at_tail += i128::from(tail);
            let centred = n * n * i128::from(together) - n * k * (2 * k - at_head - at_tail) + (n - lag) * k * k;
            sum += (1.0 - lag as f64 / n as f64) * (centred as f64 / spread as f64);
        }
        DesignEffect((1.0 + 2.0 * sum).min(n as f64 / 4.0).max(1.0))
    }
}

impl Extend<Mark> for Indicators {
    fn extend<I: IntoIterator<Item = Mark>>(&mut self, marks: I) {
        marks.into_iter().for_each(|mark| self.push(mark));
    }
}

impl FromIterator<Mark> for Indicators {
    fn from_iter<I: IntoIterator<Item = Mark>>(marks: I) -> Self {
        let mut all = Self::default();
        all.extend(marks);
        all
    }
}

/// How many correlated requests carry the evidence of one independent request; at least 1.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct DesignEffect(f64);

impl DesignEffect {
    /// Independent requests.
    pub const NONE: Self = Self(1.0);

    /// A known design effect.
    ///
    /// # Errors
    /// [`Error::DesignEffect`] if it is below 1 or not finite.
    pub fn new(value: f64) -> Result<Self, Error> {
        if value.is_finite() && value >= 1.0 { Ok(Self(value)) } else { Err(Error::DesignEffect(value)) }
    }

    /// The number itself, dimensionless.
    #[must_use]
    pub fn value(self) -> f64 {
        self.0
    }

    /// `n / D`, the independent requests that `n` are worth.
    #[must_use]
    pub fn effective(self, n: u64) -> f64 {
        n as f64 / self.0
    }
}

/// Evidence that more than `p0` of the requests exceed: `I_{p0}(k/D, n/D − k/D + 1)`, 1 for `k = 0`.
///
/// With `D = 1` it is exactly `P[Bin(n, p0) ≥ k]`, bit for bit
/// [`upper_tail`](crate::binomial::upper_tail). With `p0 = 0` a single exceedance gives 0.
///
/// # Errors
/// [`Error::Empty`] if `n` is 0, [`Error::Count`] if `k > n`, [`Error::Probability`].
pub fn p_fail(k: u64, n: u64, effect: DesignEffect, p0: f64) -> Result<f64, Error> {
    error::count(k, n)?;
    let p0 = error::share("p0", p0)?;
    Ok(regularized(effect.effective(k), effect.effective(n - k) + 1.0, p0))
}

/// Evidence that at most `p0` of the requests exceed: `1 − I_{p0}(k/D + 1, n/D − k/D)`, 1 for `k = n`.
///
/// With `D = 1` it is exactly `P[Bin(n, p0) ≤ k]`.
///
/// # Errors
/// [`Error::Empty`] if `n` is 0, [`Error::Count`] if `k > n`, [`Error::Probability`].
pub fn p_pass(k: u64, n: u64, effect: DesignEffect, p0: f64) -> Result<f64, Error> {
    error::count(k, n)?;
    let p0 = error::share("p0", p0)?;
    Ok(regularized(effect.effective(n - k), effect.effective(k) + 1.0, 1.0 - p0))
}
