//! The plan: every request, before any is sent.

use serde::{Deserialize, Serialize};

use crate::{GateSpec, Nanos};

/// The version of the plan's file format.
pub const PLAN_SCHEMA: u32 = 1;

/// Which of the two sides of a comparison a request goes to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arm {
    /// The endpoint under test.
    #[default]
    Target,
    /// What it is compared with.
    Reference,
}

/// One request of the plan.
///
/// The default is the first request of a run, due at its epoch, with no tokens either way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlannedRequest {
    /// Its place in the send order, from 0; warm-up requests count on their own.
    pub index: u32,
    /// The scenario (an index into [`Plan::scenarios`]).
    pub scenario: u16,
    /// The arm.
    pub arm: Arm,
    /// The pair it belongs to in a side-by-side run: one request of each arm, due at once, with the same prompt; in
    /// warm-up too.
    pub pair: Option<u32>,
    /// The turn within its conversation, from 0.
    pub turn: u16,
    /// When it is due, from the run's epoch; zero for warm-up requests, which go one after another.
    pub at: Nanos,
    /// How many input tokens its prompt aims at.
    pub input_tokens: u32,
    /// How many output tokens it asks for at most.
    pub output_tokens: u32,
}

/// What will be sent, and where it is judged. Equal spec and seed give an equal plan, byte for byte.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// [`PLAN_SCHEMA`].
    pub schema: u32,
    /// The seed everything was drawn from.
    pub seed: u64,
    /// The scenarios' names; a gate without scenarios has one, named as the gate.
    pub scenarios: Vec<String>,
    /// The sizes at which the run is judged, ascending, in requests of each arm; the last is how many there are.
    pub looks: Vec<u32>,
    /// Warm-up requests, sent one after another, never scored.
    pub warmup: Vec<PlannedRequest>,
    /// Measured requests, in send order.
    pub requests: Vec<PlannedRequest>,
}

impl Plan {
    /// A plan of these requests for `spec`: its seed, one scenario named as the gate, and no warm-up.
    #[must_use]
    pub fn new(spec: &GateSpec, looks: Vec<u32>, requests: Vec<PlannedRequest>) -> Self {
        Self {
            schema: PLAN_SCHEMA,
            seed: spec.load.seed,
            scenarios: vec![spec.name.clone()],
            looks,
            warmup: Vec::new(),
            requests,
        }
    }

    /// The time of the last arrival.
    #[must_use]
    pub fn duration(&self) -> Nanos {
        self.requests.last().map_or(Nanos::ZERO, |request| request.at)
    }
}
