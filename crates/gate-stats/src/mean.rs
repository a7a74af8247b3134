//! A mean against a limit, by Student's t with a design effect.
//!
//! Neighbouring requests share the state of the server, so `n` values carry the
//! evidence of `n / D` independent ones: the error of their mean is `s √(D/n)`,
//! known with `n/D − 1` degrees of freedom.

use std::iter::Sum;

use crate::series::MAX_LAG;
use crate::{DesignEffect, Error, Limit, error, student, summary};

/// The fewest values a mean is tested with: as many as there are lags in `D`.
const LEAST: usize = MAX_LAG;

/// The mean of values in send order, with its error; all but the degrees of freedom in the values' unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Mean {
    value: f64,
    error: f64,
    freedom: f64,
    effect: DesignEffect,
}

impl Mean {
    /// The mean of values in send order; `None` of fewer than 5, from which nothing follows.
    ///
    /// # Errors
    /// [`Error::Sample`] for a value that is not finite.
    pub fn of(values: &[f64]) -> Result<Option<Self>, Error> {
        if values.len() < LEAST {
            return Ok(None);
        }
        let summary = summary::summarize(values)?;
        let Some(deviation) = summary.standard_deviation else { return Ok(None) };
        let effect = Resemblance::of(values).design_effect();
        let independent = effect.effective(values.len() as u64);
        Ok(Some(Self {
            value: summary.mean,
            error: deviation / independent.sqrt(),
            freedom: independent - 1.0,
            effect,
        }))
    }

    /// The mean of values that do not resemble one another, such as amounts of equal stretches of time; `None` of fewer
    /// than 5, from which nothing follows.
    ///
    /// # Errors
    /// [`Error::Sample`] for a value that is not finite.
    pub fn of_independent(values: &[f64]) -> Result<Option<Self>, Error> {
        if values.len() < LEAST {
            return Ok(None);
        }
        let summary = summary::summarize(values)?;
        let n = values.len() as f64;
        Ok(summary.standard_deviation.map(|deviation| Self {
            value: summary.mean,
            error: deviation / n.sqrt(),
            freedom: n - 1.0,
            effect: DesignEffect::NONE,
        }))
    }

    /// The arithmetic mean.
    #[must_use]
    pub fn value(self) -> f64 {
        self.value
    }

    /// How many neighbouring values carry the evidence of one independent value.
    #[must_use]
    pub fn design_effect(self) -> DesignEffect {
        self.effect
    }

    /// Evidence that the true mean is beyond the limit: `P[T ≥ t]` of `t = (x̄ − limit)/(s √(D/n))`, or `P[T ≤ t]`
    /// where values must be above it.
    ///
    /// Without any spread it is 0 for a mean beyond the limit, else 1. The limit itself counts as neither side,
    /// whether or not it is allowed: no sample can tell.
    #[must_use]
    pub fn p_fail(self, limit: Limit) -> f64 {
        match limit {
            Limit::Below(limit) | Limit::AtMost(limit) => self.p_above(limit),
            Limit::Above(limit) | Limit::AtLeast(limit) => self.p_under(limit),
        }
    }

    /// Evidence that the true mean keeps the limit: the other tail of [`p_fail`](Self::p_fail).
    ///
    /// Without any spread it is 0 for a mean that keeps it with something to spare, else 1.
    #[must_use]
    pub fn p_pass(self, limit: Limit) -> f64 {
        match limit {
            Limit::Below(limit) | Limit::AtMost(limit) => self.p_under(limit),
            Limit::Above(limit) | Limit::AtLeast(limit) => self.p_above(limit),
        }
    }

    /// One-sided lower bound of the true mean at `1 − alpha`.
    ///
    /// # Errors
    /// [`Error::Alpha`].
    pub fn lower(self, alpha: f64) -> Result<f64, Error> {
        Ok(self.value - self.margin(alpha)?)
    }

    /// One-sided upper bound of the true mean at `1 − alpha`.
    ///
    /// # Errors
    /// [`Error::Alpha`].
    pub fn upper(self, alpha: f64) -> Result<f64, Error> {
        Ok(self.value + self.margin(alpha)?)
    }

    /// How surprising so high a mean is if the true one is the limit.
    fn p_above(self, limit: f64) -> f64 {
        self.tail(self.value - limit)
    }

    /// How surprising so low a mean is if the true one is the limit.
    fn p_under(self, limit: f64) -> f64 {
        self.tail(limit - self.value)
    }

    fn tail(self, distance: f64) -> f64 {
        student::tail(distance, self.error, self.freedom)
    }

    /// What lies between the mean and its bound at `1 − alpha`.
    pub(crate) fn margin(self, alpha: f64) -> Result<f64, Error> {
        let alpha = error::alpha(alpha)?;
        // D is at most n/4, so there are at least 3 degrees of freedom.
        Ok(student::margin(alpha, self.error, self.freedom))
    }
}

/// How much values resemble those that follow them, in one series or, added up, in several of the same kind.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Resemblance {
    series: usize,
    values: usize,
    /// `Σ d_i²` of the centred values.
    squares: f64,
    /// `Σ_{j=1..5} (1 − j/n) Σ d_i d_{i+j}`.
    products: f64,
}

impl Resemblance {
    /// That of values in send order.
    #[must_use]
    pub fn of(values: &[f64]) -> Self {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let centred: Vec<f64> = values.iter().map(|value| value - mean).collect();
        let product = |lag: usize| -> f64 {
            let pairs = centred.iter().zip(centred.iter().skip(lag));
            (1.0 - lag as f64 / n) * pairs.map(|(earlier, later)| earlier * later).sum::<f64>()
        };
        Self {
            series: 1,
            values: values.len(),
            squares: centred.iter().map(|d| d * d).sum(),
            products: (1..=MAX_LAG).map(product).sum(),
        }
    }

    /// `D = 1 + 2 Σ_{j=1..5} (1 − j/n) r_j`, `r_j = Σ d_i d_{i+j} / Σ d_i²`, clipped to `[1, n/4]` of a series' usual n; 1
    /// for constant values.
    #[must_use]
    pub fn design_effect(self) -> DesignEffect {
        let most = self.values as f64 / self.series.max(1) as f64 / 4.0;
        let effect = 1.0 + 2.0 * self.products / self.squares;
        if effect.is_nan() {
            return DesignEffect::NONE;
        }
        DesignEffect::new(effect.min(most)).unwrap_or(DesignEffect::NONE)
    }
}

impl Sum for Resemblance {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, one| Self {
            series: sum.series + one.series,
            values: sum.values + one.values,
            squares: sum.squares + one.squares,
            products: sum.products + one.products,
        })
    }
}
