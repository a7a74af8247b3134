//! Whether a quantity grows over time, and how fast (TREND).
//!
//! Theil and Sen's slope, and Mann and Kendall's test of it with the variance of Hamed and Rao (J. Hydrology 204,
//! 1998), which allows for values that resemble those before them.

use crate::paired::ROUNDING;
use crate::{Error, error, normal, ranks};

/// Lags whose autocorrelation enters the variance.
const LAGS: usize = 10;

/// The fewest points that a trend is told from.
const LEAST: usize = 4;

/// The trend of values at times.
#[derive(Debug, Clone, PartialEq)]
pub struct Trend {
    points: Vec<(f64, f64)>,
    /// The slope between each two points, ascending.
    slopes: Vec<f64>,
    slope: f64,
    /// By how much the values' own resemblance raises the variance; at least 1.
    factor: f64,
}

impl Trend {
    /// The trend of (time, value) in order of time; `None` of fewer than 4 points, from which nothing follows, and where
    /// all are of one time.
    ///
    /// # Errors
    /// [`Error::Sample`] for a time or a value that is not finite.
    pub fn of(points: &[(f64, f64)]) -> Result<Option<Self>, Error> {
        let is_finite = |(time, value): &(f64, f64)| time.is_finite() && value.is_finite();
        if let Some((position, (_, value))) = points.iter().enumerate().find(|(_, point)| !is_finite(point)) {
            return Err(Error::Sample { position, value: *value });
        }
        let mut slopes: Vec<f64> = pairs(points)
            .filter(|((earlier, _), (later, _))| later > earlier)
            .map(|((earlier, before), (later, after))| (after - before) / (later - earlier))
            .collect();
        if points.len() < LEAST || slopes.is_empty() {
            return Ok(None);
        }
        slopes.sort_unstable_by(f64::total_cmp);
        let slope = median(&slopes);
        let rest: Vec<f64> = points.iter().map(|(time, value)| value - slope * time).collect();
        Ok(Some(Self { points: points.to_vec(), slopes, slope, factor: factor(&rest) }))
    }

    /// Points.
    #[must_use]
    pub fn n(&self) -> usize {
        self.points.len()
    }

    /// Theil and Sen's slope, the median of those between each two points, in values per unit of time.
    #[must_use]
    pub fn slope(&self) -> f64 {
        self.slope
    }

    /// By how much the resemblance of neighbouring values raises the variance of the test:
    /// `1 + 2/(n(n−1)(n−2)) Σ_{j=1..10} (n−j)(n−j−1)(n−j−2) ρ_j` of the ranks of what the slope leaves, at least 1.
    #[must_use]
    pub fn factor(&self) -> f64 {
        self.factor
    }

    /// Mann and Kendall's statistic against a slope, standardised: `(S ∓ 1)/√V`, 0 where `S` is 0 or nothing varies.
    #[must_use]
    pub fn z(&self, slope: f64) -> f64 {
        let (statistic, deviation) = self.kendall(slope);
        if deviation > 0.0 { (statistic - statistic.signum() * statistic.abs().min(1.0)) / deviation } else { 0.0 }
    }

    /// Evidence that it grows faster than a slope: `1 − Φ((S − 1)/√V)`, 1 where nothing varies about it.
    #[must_use]
    pub fn p_faster(&self, slope: f64) -> f64 {
        let (statistic, deviation) = self.kendall(slope);
        if deviation > 0.0 { normal::tail((statistic - 1.0) / deviation) } else { 1.0 }
    }

    /// Evidence that it grows more slowly than a slope: `Φ((S + 1)/√V)`, 1 where nothing varies about it.
    #[must_use]
    pub fn p_slower(&self, slope: f64) -> f64 {
        let (statistic, deviation) = self.kendall(slope);
        if deviation > 0.0 { normal::tail(-(statistic + 1.0) / deviation) } else { 1.0 }
    }

    /// One-sided lower and upper bounds of the slope at `1 − alpha` (Sen, 1968): the slopes between two points whose
    /// ranks are `(N ∓ z √V)/2`. `None` where the points are too few for one.
    ///
    /// # Errors
    /// [`Error::Alpha`].
    pub fn bounds(&self, alpha: f64) -> Result<(Option<f64>, Option<f64>), Error> {
        let alpha = error::alpha(alpha)?;
        let count = self.slopes.len() as f64;
        let reach = normal::quantile(alpha).unwrap_or(f64::INFINITY) * self.variance(0.0).sqrt();
        let below = ((count - reach) / 2.0).floor();
        if below < 1.0 {
            return Ok((None, None));
        }
        let place = below as usize - 1;
        let upper = self.slopes.len().checked_sub(place + 1);
        Ok((self.slopes.get(place).copied(), upper.and_then(|place| self.slopes.get(place).copied())))
    }

    /// `S` against a slope, and `√V`.
    fn kendall(&self, slope: f64) -> (f64, f64) {
        let beyond = |((earlier, before), (later, after)): (&(f64, f64), &(f64, f64))| {
            let distance = (after - before) - slope * (later - earlier);
            if distance.abs() <= ROUNDING { 0.0 } else { distance.signum() }
        };
        let statistic = pairs(&self.points).map(|((t1, y1), (t2, y2))| beyond((&(t1, y1), &(t2, y2)))).sum();
        let rest: Vec<f64> = self.points.iter().map(|(time, value)| value - slope * time).collect();
        (statistic, self.variance(ties(rest)).sqrt())
    }

    /// `factor · (n(n−1)(2n+5) − Σ t(t−1)(2t+5))/18`.
    fn variance(&self, ties: f64) -> f64 {
        let n = self.points.len() as f64;
        self.factor * (weight(n) - ties).max(0.0) / 18.0
    }
}

/// Each two points, the earlier one first.
fn pairs(points: &[(f64, f64)]) -> impl Iterator<Item = ((f64, f64), (f64, f64))> {
    let rest = |place: usize| points.iter().skip(place + 1).copied();
    points.iter().copied().enumerate().flat_map(move |(place, earlier)| rest(place).map(move |later| (earlier, later)))
}

/// `n(n−1)(2n+5)`.
fn weight(n: f64) -> f64 {
    n * (n - 1.0) * (2.0 * n + 5.0)
}

/// `Σ t(t−1)(2t+5)` over groups of `t` equal values.
fn ties(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    let groups = values.chunk_by(|a, b| (b - a).abs() <= ROUNDING);
    groups.map(|tied| weight(tied.len() as f64)).sum()
}

/// The middle of ascending values.
fn median(sorted: &[f64]) -> f64 {
    let at = |place: usize| sorted.get(place).copied().unwrap_or(f64::NAN);
    f64::midpoint(at(sorted.len().saturating_sub(1) / 2), at(sorted.len() / 2))
}

/// Hamed and Rao's factor on the variance, by the ranks of values without their trend.
fn factor(values: &[f64]) -> f64 {
    let ranks = ranks::midranks(values);
    let n = ranks.len() as f64;
    let middle = (n + 1.0) / 2.0;
    let centred: Vec<f64> = ranks.iter().map(|rank| rank - middle).collect();
    let squares: f64 = centred.iter().map(|d| d * d).sum();
    let part = |lag: usize| -> f64 {
        let left = n - lag as f64;
        let products = centred.iter().zip(centred.iter().skip(lag)).map(|(earlier, later)| earlier * later);
        left.max(0.0) * (left - 1.0).max(0.0) * (left - 2.0).max(0.0) * products.sum::<f64>() / squares
    };
    let sum: f64 = (1..=LAGS).map(part).sum();
    let factor = 1.0 + 2.0 * sum / (n * (n - 1.0) * (n - 2.0));
    // NaN where nothing varies.
    factor.max(1.0)
}
