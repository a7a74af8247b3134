//! Where a 0/1 series in send order changes for good: the maximum-likelihood step between two shares (STEP).
//!
//! Both segments are Bernoulli with a share of their own. Everything takes time linear in the series.

use crate::Mark;

/// Which way the share of exceedances goes at a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Turn {
    /// More exceed after it.
    Up,
    /// Fewer exceed after it.
    Down,
}

/// A part of a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// Its marks.
    pub n: usize,
    /// Of them exceedances.
    pub k: usize,
}

impl Segment {
    /// `k / n`; 0 of nothing.
    #[must_use]
    pub fn share(self) -> f64 {
        if self.n == 0 { 0.0 } else { self.k as f64 / self.n as f64 }
    }

    /// `k ln(k/n) + (n − k) ln(1 − k/n)`, the largest log-likelihood of its marks.
    fn log_likelihood(self) -> f64 {
        let part = |count: usize| if count == 0 { 0.0 } else { count as f64 * (count as f64 / self.n as f64).ln() };
        part(self.k) + part(self.n - self.k)
    }
}

/// The most likely step of a series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Step {
    /// The position of the first mark after it, from 0.
    pub at: usize,
    /// The marks before it.
    pub before: Segment,
    /// The marks from it on.
    pub after: Segment,
    /// `LR = 2 (ℓ₂ − ℓ₁)`, twice what it adds to the log-likelihood of no step.
    pub gain: f64,
}

/// The log-likelihood of every possible step of a series.
#[derive(Debug, Clone, PartialEq)]
pub struct Steps {
    whole: Segment,
    /// By position of the first mark after the step; at 0 that of no step, and −∞ where there can be none.
    profile: Vec<f64>,
    /// The position of the largest, the first of equals; 0 where no step is possible.
    best: usize,
    /// Exceedances before it.
    earlier: usize,
}

impl Steps {
    /// Every step of the marks that goes this way and leaves at least `least` marks (1 or more) on either side.
    #[must_use]
    pub fn of(marks: &[Mark], turn: Turn, least: usize) -> Self {
        let least = least.max(1);
        let k = marks.iter().filter(|mark| **mark == Mark::Exceeded).count();
        let whole = Segment { n: marks.len(), k };
        let mut steps = Self { whole, profile: Vec::with_capacity(marks.len()), best: 0, earlier: 0 };
        let mut highest = f64::NEG_INFINITY;
        let mut earlier = 0;
        for (at, mark) in marks.iter().enumerate() {
            let (before, after) = whole.cut(at, earlier);
            let goes = match turn {
                // k₁/n₁ < k₂/n₂, in whole numbers.
                Turn::Up => before.k * after.n < after.k * before.n,
                Turn::Down => before.k * after.n > after.k * before.n,
            };
            let is_possible = goes && before.n >= least && after.n >= least;
            let log_likelihood = match at {
                0 => whole.log_likelihood(),
                _ if is_possible => before.log_likelihood() + after.log_likelihood(),
                _ => f64::NEG_INFINITY,
            };
            if at > 0 && log_likelihood > highest {
                (highest, steps.best, steps.earlier) = (log_likelihood, at, earlier);
            }
            steps.profile.push(log_likelihood);
            earlier += usize::from(*mark == Mark::Exceeded);
        }
        steps
    }

    /// All marks.
    #[must_use]
    pub fn whole(&self) -> Segment {
        self.whole
    }

    /// The most likely step, the first of equals; `None` where none is possible.
    #[must_use]
    pub fn best(&self) -> Option<Step> {
        let log_likelihood = self.profile.get(self.best).filter(|_| self.best > 0)?;
        let (before, after) = self.whole.cut(self.best, self.earlier);
        let gain = 2.0 * (log_likelihood - self.whole.log_likelihood());
        Some(Step { at: self.best, before, after, gain: gain.max(0.0) })
    }

    /// The first and the last position whose log-likelihood is within `distance` of the best step's; `None` where none is
    /// possible. 0 is no step.
    #[must_use]
    pub fn within(&self, distance: f64) -> Option<(usize, usize)> {
        let least = self.profile.get(self.best).filter(|_| self.best > 0)? - distance;
        let near = |log_likelihood: &f64| *log_likelihood >= least;
        Some((self.profile.iter().position(near)?, self.profile.iter().rposition(near)?))
    }

    /// Evidence against every step at a position that is `allowed`, 0 being no step: `exp(ℓ − ℓ*)`, where ℓ is the
    /// largest log-likelihood of those and ℓ* of all.
    ///
    /// Of the true position, with known shares, the likelihood ratio of a later or of an earlier step is a martingale
    /// along the series, so that it comes to `1/p` or more with a probability of at most `p` (Ville's inequality). Where
    /// the most likely one is allowed it is 1, and where none is allowed 0. Of an empty series it is 1.
    #[must_use]
    pub fn p_value(&self, allowed: impl Fn(usize) -> bool) -> f64 {
        if self.profile.is_empty() {
            return 1.0;
        }
        let largest = |values: &mut dyn Iterator<Item = f64>| values.fold(f64::NEG_INFINITY, f64::max);
        let all = largest(&mut self.profile.iter().copied());
        let those = self.profile.iter().enumerate().filter(|(at, _)| allowed(*at));
        (largest(&mut those.map(|(_, log_likelihood)| *log_likelihood)) - all).exp()
    }
}

impl Segment {
    /// The two parts where `earlier` exceedances are before a position.
    fn cut(self, at: usize, earlier: usize) -> (Self, Self) {
        (Self { n: at, k: earlier }, Self { n: self.n - at, k: self.k - earlier })
    }
}
