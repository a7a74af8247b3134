//! Looking more than once: group-sequential boundaries of a binomial count.
//!
//! Lan–DeMets error spending, solved by the exact recursion over cumulative
//! counts instead of a normal approximation.

use crate::binomial::at_least;
use crate::error;
use crate::mass::Mass;
use crate::{Error, binomial};
use statrs::function::erf::{erfc, erfc_inv};

/// Latest look, in requests, for which more than one look can be computed.
pub const LATEST_LOOK: u32 = 1_000_000;

/// How alpha is spent as the share `t` of the last look's requests arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Spending {
    /// `alpha ln(1 + (e − 1) t)`: about the same evidence at each look.
    Pocock,
    /// `2 − 2 Φ(z_{alpha/2} / √t)`: little early, nearly all at the end.
    OBrienFleming,
}

impl Spending {
    /// Alpha spent at the share `t` of the information; all of it from 1 on, none at 0.
    fn spent(self, alpha: f64, t: f64) -> f64 {
        if t >= 1.0 {
            return alpha;
        }
        match self {
            Self::Pocock => alpha * ((std::f64::consts::E - 1.0) * t).ln_1p(),
            Self::OBrienFleming => erfc(erfc_inv(alpha) / t.sqrt()),
        }
    }
}

/// Cumulative exceedances that violate at each look, in the order of the looks.
///
/// `looks` are cumulative requests. The count at a look is the least `c` whose
/// probability at `p0`, not having violated before, fits what may be spent by
/// then and has not been spent; `n + 1` where no count does. Never below 1.
/// For one look it is [`fail_count`](binomial::fail_count).
///
/// # Errors
/// [`Error::Looks`] unless they increase from above 0, [`Error::LookTooLate`]
/// beyond [`LATEST_LOOK`], [`Error::Probability`], [`Error::Alpha`].
pub fn boundaries(looks: &[u32], p0: f64, alpha: f64, spending: Spending) -> Result<Vec<u32>, Error> {
    let p0 = error::share("p0", p0)?;
    let steps = steps(looks)?;
    if let [only] = looks {
        let count = binomial::fail_count(u64::from(*only), p0, alpha)?;
        return Ok(vec![u32::try_from(count).unwrap_or(u32::MAX)]);
    }
    let arrivals: Vec<Mass> = steps.iter().map(|n| Mass::binomial(*n, p0)).collect();
    solve(looks, &arrivals, error::alpha(alpha)?, spending)
}

/// What decides a check at one look.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Boundary {
    /// Exceedances that violate; one more than the requests where none can.
    pub count: u32,
    /// `P[Bin(n, p0) >= count]`: violated when `p_fail` is at most this.
    pub level: f64,
}

/// The boundaries of one check for every number of checks not yet violated.
#[derive(Debug, Clone, PartialEq)]
pub struct Levels {
    rows: Vec<Vec<Boundary>>,
}

impl Levels {
    /// The boundary with `remaining` checks not yet violated (from 1) at a look
    /// (from 0); `None` outside what was computed.
    #[must_use]
    pub fn at(&self, remaining: usize, look: usize) -> Option<Boundary> {
        self.row(remaining)?.get(look).copied()
    }

    /// The boundaries at all looks with `remaining` checks not yet violated (from 1).
    #[must_use]
    pub fn row(&self, remaining: usize) -> Option<&[Boundary]> {
        self.rows.get(remaining.checked_sub(1)?).map(Vec::as_slice)
    }

    /// The counts of [`row`](Self::row) alone, as [`power`](crate::power) takes them.
    #[must_use]
    pub fn counts(&self, remaining: usize) -> Option<Vec<u32>> {
        Some(self.row(remaining)?.iter().map(|boundary| boundary.count).collect())
    }
}

/// Boundaries for `r = 1..=checks` checks not yet violated, nested in `r`.
///
/// The count for `r` is the largest of [`boundaries`] at `alpha / r'` over
/// `r' = 1..=r`: raw boundaries are not nested in alpha, and Holm's step-down
/// needs that a check violated among more stays so among fewer. Compute once
/// per distinct `(p0, alpha)`.
///
/// # Errors
/// Those of [`boundaries`]; [`Error::NoChecks`] if `checks` is 0.
pub fn nested_levels(looks: &[u32], p0: f64, alpha: f64, checks: usize, spending: Spending) -> Result<Levels, Error> {
    if checks == 0 {
        return Err(Error::NoChecks);
    }
    let p0 = error::share("p0", p0)?;
    let steps = steps(looks)?;
    let arrivals: Vec<Mass> = match looks {
        [_] => Vec::new(),
        _ => steps.iter().map(|n| Mass::binomial(*n, p0)).collect(),
    };
    let mut highest = vec![0_u32; looks.len()];
    let mut rows = Vec::new();
    for r in 1..=checks {
        let share = error::alpha(alpha / r as f64)?;
        let counts = match looks {
            [_] => boundaries(looks, p0, share, spending)?,
            _ => solve(looks, &arrivals, share, spending)?,
        };
        let row = looks.iter().zip(highest.iter_mut().zip(counts)).map(|(n, (top, count))| {
            *top = count.max(*top);
            Boundary { count: *top, level: at_least(u64::from(*top), u64::from(*n), p0) }
        });
        rows.push(row.collect());
    }
    Ok(Levels { rows })
}

/// The requests that arrive before each look, since the one before.
pub(crate) fn steps(looks: &[u32]) -> Result<Vec<u32>, Error> {
    let mut before = 0;
    let mut steps = Vec::with_capacity(looks.len());
    for n in looks {
        let step = n.checked_sub(before).filter(|step| *step > 0);
        steps.push(step.ok_or_else(|| Error::Looks(looks.to_vec()))?);
        before = *n;
    }
    match looks {
        [] => Err(Error::Looks(Vec::new())),
        [u32::MAX] => Err(Error::LookTooLate { requests: u32::MAX, most: u32::MAX - 1 }),
        [_] => Ok(steps),
        [.., last] if *last > LATEST_LOOK => Err(Error::LookTooLate { requests: *last, most: LATEST_LOOK }),
        _ => Ok(steps),
    }
}

fn solve(looks: &[u32], arrivals: &[Mass], alpha: f64, spending: Spending) -> Result<Vec<u32>, Error> {
    let Some(last) = looks.last() else { return Err(Error::Looks(Vec::new())) };
    let mut running = Mass::point(0);
    let mut spent = 0.0;
    let mut counts = Vec::with_capacity(looks.len());
    for (n, arriving) in looks.iter().zip(arrivals) {
        running = running.plus(arriving);
        let budget = spending.spent(alpha, f64::from(*n) / f64::from(*last)) - spent;
        let count = running.least_count_within(budget).max(1);
        spent += running.take_from(count);
        counts.push(u32::try_from(count).unwrap_or(u32::MAX));
    }
    Ok(counts)
}
