//! Checks: `METRIC OP BOUND`, the condition that passes.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Metric, Place, Quantity};

/// The comparison of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Op {
    /// `<`
    #[serde(rename = "<")]
    Less,
    /// `<=`
    #[serde(rename = "<=")]
    AtMost,
    /// `>`
    #[serde(rename = ">")]
    Greater,
    /// `>=`
    #[serde(rename = ">=")]
    AtLeast,
    /// `==`
    #[serde(rename = "==")]
    Equal,
}

impl Op {
    /// Whether `value OP bound` holds; NaN holds nothing.
    #[must_use]
    pub fn holds(self, value: f64, bound: f64) -> bool {
        match self {
            Self::Less => value < bound,
            Self::AtMost => value <= bound,
            Self::Greater => value > bound,
            Self::AtLeast => value >= bound,
            Self::Equal => value == bound,
        }
    }

    /// Whether values must be large: `>` and `>=`.
    #[must_use]
    pub fn wants_more(self) -> bool {
        matches!(self, Self::Greater | Self::AtLeast)
    }

    /// The symbol as written.
    #[must_use]
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Less => "<",
            Self::AtMost => "<=",
            Self::Greater => ">",
            Self::AtLeast => ">=",
            Self::Equal => "==",
        }
    }
}

/// What a check compares with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// A fixed quantity in the metric's unit.
    Absolute(Quantity),
    /// What the same metric is in a baseline or the reference, and how far from it.
    Relative(Relative),
    /// A share of what the same metric is in another scenario of the run.
    ShareOf {
        /// The share: `.4` for `40% of cold`.
        share: f64,
        /// The scenario's name.
        scenario: String,
    },
}

impl Bound {
    /// The fixed quantity, where it is one.
    #[must_use]
    pub fn absolute(&self) -> Option<Quantity> {
        match self {
            Self::Absolute(quantity) => Some(*quantity),
            _ => None,
        }
    }

    /// What is allowed relative to something else that was measured, where it is that.
    #[must_use]
    pub fn relative(&self) -> Option<Relative> {
        match self {
            Self::Relative(relative) => Some(*relative),
            _ => None,
        }
    }
}

/// What a relative bound compares with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Against {
    /// Stored runs.
    Baseline,
    /// The run's own second arm.
    Reference,
}

impl Against {
    /// The word in a check.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Baseline => "baseline",
            Self::Reference => "reference",
        }
    }
}

/// A bound relative to something measured, such as `baseline + 15% or 20ms`; whichever allows more counts, and with
/// neither the two must be equal.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Relative {
    /// What it compares with.
    pub to: Against,
    /// The change, signed, as a share of the base: `.15` for `+ 15%`. Never of a metric that is itself a share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<f64>,
    /// The change, signed, in the metric's own unit; of shares, in points (`-.02` for `- 2pp`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<Quantity>,
}

impl Relative {
    /// The bound on a value, given the base's: the one that allows more of `base · (1 + change)` and `base + step`.
    #[must_use]
    pub fn limit(self, base: f64, op: Op) -> f64 {
        let by_change = self.change.map(|change| base * (1.0 + change));
        let by_step = self.step.map(|step| base + step.value);
        match (by_change, by_step) {
            (Some(change), Some(step)) if op.wants_more() => change.min(step),
            (Some(change), Some(step)) => change.max(step),
            (change, step) => change.or(step).unwrap_or(base),
        }
    }

    /// The same as a share of the base, `limit ÷ base − 1`; `None` where the base is not above zero.
    #[must_use]
    pub fn tolerance(self, base: f64, op: Op) -> Option<f64> {
        if !(base.is_finite() && base > 0.0) {
            return None;
        }
        match (self.change, self.step) {
            // Without a step it does not depend on the base, to the last bit.
            (change, None) => Some(change.unwrap_or(0.0)),
            _ => Some(self.limit(base, op) / base - 1.0),
        }
    }
}

/// Whether a violated check breaks the build.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Importance {
    /// From `require`: a violation breaks the build.
    Required,
    /// From `prefer`: a violation is a warning.
    Preferred,
}

/// How a check is decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decide {
    /// By what its requests prove.
    Evidence,
    /// By comparing the number seen, as it is.
    Point,
}

/// A check that is let through for a time, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiver {
    /// The last day it works, as `YYYY-MM-DD` in UTC.
    pub until: String,
    /// Why.
    pub reason: String,
}

/// Where a check comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// Written in the spec, at this place.
    Declared(Place),
    /// Every gate has it unless the spec names its metric.
    Implied,
}

/// One check.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Check {
    /// The scenario it belongs to (an index into the plan's scenario names).
    pub scenario: u16,
    /// The metric.
    pub metric: Metric,
    /// The comparison.
    pub op: Op,
    /// What it compares with.
    pub bound: Bound,
    /// The bound as the person wrote it, such as `800ms`.
    pub bound_text: String,
    /// Whether a violation breaks the build.
    pub importance: Importance,
    /// Where it comes from.
    pub origin: Origin,
    /// How it is decided, where the spec or a flag says so; else its rule decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decide: Option<Decide>,
    /// How sure a verdict by evidence has to be: 1 − α.
    #[serde(default = "default_confidence")]
    pub confidence: f64,
    /// Lets it through until a day.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waive: Option<Waiver>,
}

fn default_confidence() -> f64 {
    Check::CONFIDENCE
}

impl Check {
    /// How sure a verdict by evidence is unless the spec says otherwise.
    pub const CONFIDENCE: f64 = 0.95;

    /// The place in the spec, if it was written there.
    #[must_use]
    pub fn place(&self) -> Option<&Place> {
        match &self.origin {
            Origin::Declared(place) => Some(place),
            Origin::Implied => None,
        }
    }
}

impl fmt::Display for Check {
    /// The check in its canonical spelling, such as `ttft.p95 < 800ms`.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {} {}", self.metric, self.op.symbol(), self.bound_text)
    }
}
