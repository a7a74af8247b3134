//! Several kinds of traffic in one gate.

use serde::{Deserialize, Serialize};

use crate::{Load, PromptSpec, Slo};

/// Whether scenarios run one after another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunOrder {
    /// Each has the endpoint to itself, with its own load and warm-up.
    #[default]
    InTurn,
    /// All at once: one load, split by weight.
    Together,
}

/// One kind of traffic of a gate, with everything resolved that it may have of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scenario {
    /// Its name.
    pub name: String,
    /// Its load; under [`RunOrder::Together`] the gate's.
    pub load: Load,
    /// Its prompts.
    pub prompts: PromptSpec,
    /// Its service level objective.
    pub slo: Slo,
    /// The model it asks for, where it is not the target's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Fields merged into its requests' bodies over the target's.
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    pub extra_body: serde_json::Map<String, serde_json::Value>,
    /// Its share of the requests under [`RunOrder::Together`], relative to the others'.
    pub weight: f64,
}
