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
    /// Answered with status 429.
    pub http_429: f64,
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
    /// The stream ends well, with no token.
    pub empty: f64,
    /// An HTML page with status 200.
    pub html_200: f64,
    /// Status and headers come late, by [`EngineParams::slow_headers`].
    pub slow_headers: f64,
}

impl Faults {
    /// The share of requests that this happens to.
    #[must_use]
    pub fn rate(&self, fault: Fault) -> f64 {
        match fault {
            Fault::Http429 => self.http_429,
            Fault::Http500 => self.http_500,
            Fault::StreamError => self.stream_error,
            Fault::Stall => self.stall,
            Fault::Reset => self.reset,
            Fault::Truncate => self.truncate,
            Fault::Empty => self.empty,
            Fault::Html200 => self.html_200,
            Fault::SlowHeaders => self.slow_headers,
        }
    }
}

/// One way a request fails, for faults by script.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// Answered with status 429.
    #[serde(rename = "http_429")]
    Http429,
    /// Answered with status 500.
    #[serde(rename = "http_500")]
    Http500,
    /// An error event inside a 200 stream.
    StreamError,
    /// The stream stops in the middle and stays open.
    Stall,
    /// The connection is reset in the middle of the stream.
    Reset,
    /// The stream is closed in the middle.
    Truncate,
    /// The stream ends well, with no token.
    Empty,
    /// An HTML page with status 200.
    #[serde(rename = "html_200")]
    Html200,
    /// Status and headers come late.
    SlowHeaders,
}

impl Fault {
    /// Every fault, in the order of [`Faults`].
    pub const ALL: [Self; 9] = [
        Self::Http429,
        Self::Http500,
        Self::StreamError,
        Self::Stall,
        Self::Reset,
        Self::Truncate,
        Self::Empty,
        Self::Html200,
        Self::SlowHeaders,
    ];

    /// The name, as written in a spec.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Http429 => "http_429",
            Self::Http500 => "http_500",
            Self::StreamError => "stream_error",
            Self::Stall => "stall",
            Self::Reset => "reset",
            Self::Truncate => "truncate",
            Self::Empty => "empty",
            Self::Html200 => "html_200",
            Self::SlowHeaders => "slow_headers",
        }
    }
}

/// A fault that a script gives to chosen requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScriptedFault {
    /// The first request it happens to, from 1: of the measured ones, as `dies_after` counts.
    pub from: u32,
    /// The last one.
    pub to: u32,
    /// What happens.
    pub fault: Fault,
}

/// A server that is slow at first: its latencies fall from `slowdown` times to normal over its first requests.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct WarmingUp {
    /// How many requests it takes, at least 1.
    pub requests: u32,
    /// How many times slower the first one is, at least 1.
    pub slowdown: f64,
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
    /// Faults by script, which win over those by rate; the first that fits a request happens.
    pub script: Vec<ScriptedFault>,
    /// How late slow headers come.
    pub slow_headers: Nanos,
    /// Slow first requests.
    pub warming_up: Option<WarmingUp>,
    /// A proxy in front holds the stream back until it has this many bytes, or the stream ends; 0: there is none.
    pub buffer_bytes: u32,
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
            script: Vec::new(),
            slow_headers: Nanos::from_secs(1),
            warming_up: None,
            buffer_bytes: 0,
            dies_after: None,
            ready_after: Nanos::ZERO,
            seed: 0,
        }
    }
}
