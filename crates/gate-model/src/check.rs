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
