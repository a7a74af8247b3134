//! Parameters of the simulated inference engine.

use serde::{Deserialize, Serialize};

use crate::Nanos;

/// The shape of a distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shape {
    /// Normal.
    Normal,
    /// Lognormal with the given mean and standard deviation.
    Lognormal,
    /// Uniform with the given mean and standard deviation.
    Uniform,
}

/// A distribution of a latency; never drawn below zero.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// The mean.
    pub mean: Nanos,
    /// The standard deviation; zero makes it constant.
    pub stddev: Nanos,
    /// The shape.
    pub shape: Shape,
}

impl Latency {
    /// Always the same.
    #[must_use]
    pub fn constant(mean: Nanos) -> Self {
        Self { mean, stddev: Nanos::ZERO, shape: Shape::Lognormal }
    }
}

/// Faults by rate: the share of requests that end each way (0 to 1, together at most 1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Faults {
    /// Answered with status 500.
    pub http_500: f64,
    /// An error event inside a 200 stream, after the first token.
    pub stream_error: f64,
    /// The stream stops in the middle and stays open.
    pub stall: f64,
    /// The connection is reset in the middle of the stream.
    pub reset: f64,
    /// The stream is closed in the middle, with no end and no finish reason.
    pub truncate: f64,
}

/// What the simulated engine does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct EngineParams {
    /// Time from a request's arrival to its first token.
    pub ttft: Latency,
    /// Time between tokens.
    pub tpot: Latency,
    /// Tokens carried by one event, at least 1.
    pub tokens_per_chunk: u32,
    /// When a role-only chunk is sent after the request's arrival; `None`: there is none.
    pub role_chunk: Option<Nanos>,
    /// Faults by rate.
    pub faults: Faults,
    /// The engine stops serving, open streams included, when this many measured requests have arrived.
    pub dies_after: Option<u32>,
    /// How long after its start the engine answers 503.
    pub ready_after: Nanos,
    /// The seed of everything random in it.
    pub seed: u64,
}

impl Default for EngineParams {
    fn default() -> Self {
        Self {
            ttft: Latency { mean: Nanos::from_millis(120), stddev: Nanos::from_millis(30), shape: Shape::Lognormal },
            tpot: Latency { mean: Nanos::from_millis(10), stddev: Nanos::from_millis(1), shape: Shape::Lognormal },
            tokens_per_chunk: 1,
            role_chunk: Some(Nanos::ZERO),
            faults: Faults::default(),
            dies_after: None,
            ready_after: Nanos::ZERO,
            seed: 0,
        }
    }
}
