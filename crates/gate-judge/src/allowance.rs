//! What a relative bound comes to on a base.

use gate_model::{Bound, Check, Comparison, Op, Quantity, Unit, With};
use gate_stats::Worse;

use crate::rules::{is_evidence, rule};

/// What rounding alone can make of two equal values, as a share of them.
const ROUNDING: f64 = 1e-12;

/// A relative bound on a base that was measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Allowance {
    op: Op,
    unit: Unit,
    /// Whether its rule is one of evidence, of which there is none at the limit itself, whether that is `<` or `<=`; what
    /// is compared as it is goes by the sign.
    by_evidence: bool,
    /// What the metric is there.
    pub(crate) base: f64,
    /// The bound on a value.
    pub(crate) limit: f64,
    /// The same as a share of the base, less one; absent where the base is not above zero.
    tolerance: Option<f64>,
}

impl Allowance {
    /// What a check's bound comes to; `None` where it is a fixed one, and on a base that is no number.
    pub(crate) fn of(check: &Check, base: f64) -> Option<Self> {
        let (op, unit) = (check.op, check.metric.unit());
        let (limit, tolerance) = match &check.bound {
            Bound::Absolute(_) => return None,
            Bound::Relative(bound) => (bound.limit(base, op), bound.tolerance(base, op)),
            Bound::ShareOf { share, .. } => (share * base, (base > 0.0).then(|| share - 1.0)),
        };
        let tolerance = tolerance.filter(|tolerance| tolerance.is_finite());
        (!base.is_nan() && !limit.is_nan()).then_some(Self {
            op,
            unit,
            by_evidence: is_evidence(rule(check)),
            base,
            limit,
            tolerance,
        })
    }

    /// The tolerance, where it has a logarithm: something is left of the base.
    pub(crate) fn ratio_less_one(&self) -> Option<f64> {
        self.tolerance.filter(|tolerance| *tolerance > -1.0)
    }

    /// Which way a value is worse.
    pub(crate) fn worse(&self) -> Worse {
        if self.op.wants_more() { Worse::Smaller } else { Worse::Larger }
    }

    /// Whether a value keeps the bound. From zero to zero nothing moved, which any tolerance allows that asks for no
    /// improvement.
    pub(crate) fn keeps(&self, value: f64) -> bool {
        if self.base == 0.0 && value == 0.0 {
            return match self.worse() {
                Worse::Larger => self.limit >= 0.0,
                Worse::Smaller => self.limit <= 0.0,
            };
        }
        let is_tested = self.by_evidence && self.ratio_less_one().is_some();
        self.op.holds(value, self.limit) || (is_tested && !is_beyond(value, self.limit, self.worse()))
    }

    /// With the limit at the share nearest to it that so many requests can have, where rounding alone tells them
    /// apart.
    pub(crate) fn among(self, n: u32) -> Self {
        let n = f64::from(n);
        let whole = (self.limit * n).round();
        let is_whole = (self.limit * n - whole).abs() <= 1e-9 && n > 0.0;
        Self { limit: if is_whole { whole / n } else { self.limit }, ..self }
    }

    /// The change to so many times the base: as a share of it, and of shares in points.
    pub(crate) fn change(&self, ratio: f64) -> Option<f64> {
        let change = if self.unit == Unit::Share { (ratio - 1.0) * self.base } else { ratio - 1.0 };
        Some(change).filter(|change| change.is_finite())
    }

    /// The comparison of a value with it, which rests on so many requests of the base.
    pub(crate) fn comparison(&self, with: With, value: f64, n: u32) -> Comparison {
        let quantity = |value: f64| Some(Quantity { value, unit: self.unit });
        let is_share = self.unit == Unit::Share;
        let change = if is_share { Some(value - self.base) } else { self.change(value / self.base) };
        Comparison {
            with,
            base: quantity(self.base),
            limit: quantity(self.limit),
            tolerance: self.tolerance.filter(|_| !is_share),
            change: change.filter(|change| change.is_finite()),
            lower: None,
            upper: None,
            n,
            dropped: 0,
            statistic: None,
            deviation: None,
            freedom: None,
            cut: None,
            noise: None,
            detects: None,
        }
    }
}

/// Whether a value is worse than a limit by more than rounding.
pub(crate) fn is_beyond(value: f64, limit: f64, worse: Worse) -> bool {
    let beyond = match worse {
        Worse::Larger => value - limit,
        Worse::Smaller => limit - value,
    };
    beyond > ROUNDING * limit.abs() || beyond.is_nan()
}
