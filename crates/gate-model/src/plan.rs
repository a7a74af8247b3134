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
    /// The turn within its conversation, from 0. A later turn follows the one before it in the plan, of the same arm.
    pub turn: u16,
    /// Which of the shared prefixes its prompt has, from 0; of no meaning where there are none.
    #[serde(default)]
    pub group: u16,
    /// How many requests of its arm come before its conversation that are later turns or of other scenarios, so that
    /// [`PlannedRequest::conversation`] counts conversations of its own scenario alone; zero where there are neither.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub ahead: u32,
    /// When it is due: from the epoch of its section; of a later turn from the end of the answer before it; zero for
    /// warm-up requests, which go one after another.
    pub at: Nanos,
    /// How many input tokens its prompt aims at.
    pub input_tokens: u32,
    /// How many output tokens it asks for at most.
    pub output_tokens: u32,
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

impl PlannedRequest {
    /// Its number in the send order of its arm: that of its pair, or without one its index.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.pair.unwrap_or(self.index)
    }

    /// The number of the first turn of its conversation, as [`PlannedRequest::number`] counts.
    #[must_use]
    pub fn opening(&self) -> u32 {
        self.number().saturating_sub(u32::from(self.turn))
    }

    /// The number of its conversation among those of its scenario, from 0: what its texts are drawn by, whatever other
    /// scenarios send.
    #[must_use]
    pub fn conversation(&self) -> u32 {
        self.opening().saturating_sub(self.ahead)
    }
}

/// One machine's part of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shard {
    /// Which, from 1.
    pub index: u32,
    /// Of how many.
    pub of: u32,
}

/// What will be sent, and where it is judged. Equal spec and seed give an equal plan, byte for byte.
///
/// It is of one section: of all scenarios that share the endpoint at one time ([`GateSpec::sections`]). Requests are
/// numbered through all sections, so the first of a later one is not 0.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// [`PLAN_SCHEMA`].
    pub schema: u32,
    /// The seed everything was drawn from.
    pub seed: u64,
    /// The scenarios' names; a gate without scenarios has one, named as the gate.
    pub scenarios: Vec<String>,
    /// Which section it is of, from 0.
    #[serde(default)]
    pub section: u16,
    /// Which part of the section's plan it is; absent where it is the whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<Shard>,
    /// How many requests the section's whole plan has, those of both arms.
    #[serde(default)]
    pub whole: u32,
    /// The index of the section's first request.
    #[serde(default)]
    pub first: u32,
    /// SHA-256 of the section's whole plan, in hexadecimal, by which shards know each other; absent where nobody needs
    /// it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// The sizes at which the section is judged, ascending, in requests of each arm; the last is how many its whole plan
    /// has. Where scenarios run together, a look is where the rarest has its count.
    pub looks: Vec<u32>,
    /// At each look, how many requests of each arm each of the section's scenarios has; empty where it has one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_scenario: Vec<Vec<u32>>,
    /// Warm-up requests, sent one after another, never scored.
    pub warmup: Vec<PlannedRequest>,
    /// Measured requests, in send order.
    pub requests: Vec<PlannedRequest>,
}

impl Plan {
    /// A whole plan of these requests for `spec`: its seed, its scenarios' names, and no warm-up.
    #[must_use]
    pub fn new(spec: &GateSpec, looks: Vec<u32>, requests: Vec<PlannedRequest>) -> Self {
        Self {
            schema: PLAN_SCHEMA,
            seed: spec.load.seed,
            scenarios: spec.scenario_names(),
            section: 0,
            shard: None,
            whole: u32::try_from(requests.len()).unwrap_or(u32::MAX),
            first: requests.first().map_or(0, |request| request.index),
            digest: None,
            looks,
            by_scenario: Vec::new(),
            warmup: Vec::new(),
            requests,
        }
    }

    /// The time of the last arrival.
    #[must_use]
    pub fn duration(&self) -> Nanos {
        let arrivals = self.requests.iter().filter(|request| request.turn == 0);
        arrivals.map(|request| request.at).max().unwrap_or(Nanos::ZERO)
    }
}
