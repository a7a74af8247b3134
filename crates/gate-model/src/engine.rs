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
    /// Answered with status 401, as when credentials expire.
    #[serde(skip_serializing_if = "is_none")]
    pub http_401: f64,
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

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes fields by reference")]
fn is_none(share: &f64) -> bool {
    *share == 0.0
}

impl Faults {
    /// The share of requests that this happens to.
    #[must_use]
    pub fn rate(&self, fault: Fault) -> f64 {
        match fault {
            Fault::Http401 => self.http_401,
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
    /// Answered with status 401, as when credentials expire.
    #[serde(rename = "http_401")]
    Http401,
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
    pub const ALL: [Self; 10] = [
        Self::Http401,
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
            Self::Http401 => "http_401",
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
    /// When an answer with status 429 says to come back, in whole seconds; `None`: after one second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after: Option<Nanos>,
    /// Slow first requests.
    pub warming_up: Option<WarmingUp>,
    /// A proxy in front holds the stream back until it has this many bytes, or the stream ends; 0: there is none.
    pub buffer_bytes: u32,
    /// The engine stops serving, open streams included, when this many measured requests have arrived.
    pub dies_after: Option<u32>,
    /// How long after its start the engine answers 503.
    pub ready_after: Nanos,
    /// How many requests are served at once; what comes beyond waits in order of arrival. `None`: as many as come.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slots: Option<u32>,
    /// How fast prompts are read: a request's first token comes later by its input tokens that are not cached ÷ this,
    /// in tokens per second. `None`: at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefill: Option<f64>,
    /// The prefix cache; `None`: there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix_cache: Option<PrefixCache>,
    /// More slots where the queue grows; `None`: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scaling: Option<Scaling>,
    /// What grows while it runs.
    #[serde(default)]
    pub drift: Drift,
    /// The seed of everything random in it.
    pub seed: u64,
}

/// A prefix cache: blocks of a prompt's tokens that were seen before, from its start on, are not read again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PrefixCache {
    /// How many blocks it holds; the least recently used goes first.
    pub blocks: u32,
    /// Tokens of a block, at least 1.
    pub block_tokens: u32,
}

/// An engine that is given more slots when its queue grows, as replicas are added to a deployment.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scaling {
    /// The most slots it gets.
    pub max_slots: u32,
    /// Slots added at a time, at least 1.
    pub step: u32,
    /// How many requests must wait for it to be asked for.
    pub queue: u32,
    /// From then to when the slots serve: the cold start.
    pub cold_start: Nanos,
}

/// What grows in an engine that is not stable, as a share of its value at the start per hour: `.02` for 2 % per hour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Drift {
    /// The time to the first token.
    pub ttft: f64,
    /// The time between tokens.
    pub tpot: f64,
    /// The memory it reports.
    pub memory: f64,
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
            retry_after: None,
            warming_up: None,
            buffer_bytes: 0,
            dies_after: None,
            ready_after: Nanos::ZERO,
            slots: None,
            prefill: None,
            prefix_cache: None,
            scaling: None,
            drift: Drift::default(),
            seed: 0,
        }
    }
}
