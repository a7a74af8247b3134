//! Facts of the run that a verdict is about.

use serde::{Deserialize, Serialize};

use crate::{
    Commit, EndReason, Footprint, Health, Metric, Nanos, OutcomeCount, Pace, PatternFacts, Quantity, Reached,
    ServerMetric, Spent, TokenSource,
};

/// Facts of the run the verdict is about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunFacts {
    /// The run.
    pub run_id: String,
    /// When it started, RFC 3339 in UTC.
    pub started: String,
    /// The endpoint, such as `http://127.0.0.1:8000/v1` or `sim`.
    pub target: String,
    /// The model asked for.
    pub model: Option<String>,
    /// The scenarios' names.
    pub scenarios: Vec<String>,
    /// The sizes at which the run is judged.
    pub looks: Vec<u32>,
    /// The look it was decided at; absent where there was none.
    pub decided_at: Option<u32>,
    /// Requests planned.
    pub planned: u32,
    /// Requests sent.
    pub sent: u32,
    /// Requests judged.
    pub judged: u32,
    /// How the judged requests ended, most frequent first.
    pub outcomes: Vec<OutcomeCount>,
    /// From the epoch to the last end.
    pub duration: Nanos,
    /// What decided when requests were sent; absent in imported runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pace: Option<Pace>,
    /// Where the output tokens of the judged `ok` requests come from, and of how many, most frequent first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub token_sources: Vec<(TokenSource, u32)>,
    /// The planned rate and the achieved rate, in requests per second; absent in a closed loop.
    pub rates: Option<(f64, f64)>,
    /// TTFT of the first warm-up request: the cold start.
    pub cold_ttft: Option<Nanos>,
    /// How late the client was: p50 and p99 of `send_lag`.
    pub send_lag: Option<(Nanos, Nanos)>,
    /// The client's health.
    pub health: Health,
    /// How the target was reached; absent where it never was, and for imported runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reached: Option<Reached>,
    /// How percentiles were taken.
    pub percentiles: String,
    /// The other tool's format this run was imported from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported_from: Option<String>,
    /// The commit that was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<Commit>,
    /// The reference of a side-by-side run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<ReferenceFacts>,
    /// Each scenario, where there are several or the load has a pattern.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<ScenarioFacts>,
    /// TTFT by turn, where conversations have several.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub turns: Vec<TtftBy>,
    /// TTFT by the length of the context, where conversations have several turns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contexts: Vec<TtftBy>,
    /// What prompts had in common.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prompts: Vec<PromptFacts>,
    /// The server's own metrics.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub server: Vec<ServerFacts>,
    /// What it used up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spent: Option<Spent>,
    /// What that cost in dollars, by the spec's prices.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
    /// What it took of the client's machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub footprint: Option<Footprint>,
    /// How many shards sent it.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub shards: u32,
}

fn one() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes fields by reference")]
fn is_one(count: &u32) -> bool {
    *count == 1
}

/// Facts of one scenario.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScenarioFacts {
    /// The scenario.
    pub scenario: u16,
    /// The shape of its load, such as `ramp`.
    pub pattern: String,
    /// The sizes at which its section is judged.
    pub looks: Vec<u32>,
    /// The look it was decided at; absent where there was none.
    pub decided_at: Option<u32>,
    /// Requests planned, those of both arms.
    pub planned: u32,
    /// Its requests judged.
    pub judged: u32,
    /// How they ended, most frequent first.
    pub outcomes: Vec<OutcomeCount>,
    /// From its section's epoch to the last end.
    pub duration: Nanos,
    /// Why its section ended; absent where a process was killed, and where it was never begun.
    pub reason: Option<EndReason>,
    /// What its pattern brought to light, whether or not a check asks for it: the metric, its value and bounds.
    pub found: Vec<PatternFound>,
}

/// What a pattern brought to light.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PatternFound {
    /// The metric.
    pub metric: Metric,
    /// Its value; absent where there is none, as of a ramp without a knee.
    pub value: Option<Quantity>,
    /// One-sided 95 % lower bound.
    pub lower: Option<Quantity>,
    /// One-sided 95 % upper bound.
    pub upper: Option<Quantity>,
    /// How it was found.
    pub facts: PatternFacts,
}

/// TTFT of some of a scenario's `ok` requests.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TtftBy {
    /// The scenario.
    pub scenario: u16,
    /// The turn, from 0; or the least input tokens.
    pub from: u64,
    /// The turn again; or the most input tokens.
    pub to: u64,
    /// Requests.
    pub n: u32,
    /// The median.
    pub p50: Nanos,
    /// The 95th percentile.
    pub p95: Nanos,
    /// Mean input tokens; absent where the server does not count them.
    pub input: Option<f64>,
}

/// What the prompts of a scenario had in common.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PromptFacts {
    /// The scenario.
    pub scenario: u16,
    /// Requests.
    pub requests: u32,
    /// Different prompts among them.
    pub unique: u32,
    /// The share of planned input tokens that a shared prefix or the turns before have in common with another request.
    pub overlap: f64,
    /// The share of input tokens that the server read from a cache; absent where it does not say.
    pub cached: Option<f64>,
}

/// A metric of the server's own over the run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServerFacts {
    /// The metric.
    pub metric: ServerMetric,
    /// The largest.
    pub max: f64,
    /// The mean.
    pub mean: f64,
    /// The last.
    pub last: f64,
    /// The last less the first.
    pub delta: f64,
    /// Scrapes that have it.
    pub scrapes: u32,
}

/// Facts of the reference of a side-by-side run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReferenceFacts {
    /// The endpoint.
    pub target: String,
    /// The model asked for.
    pub model: Option<String>,
    /// How its judged requests ended, most frequent first.
    pub outcomes: Vec<OutcomeCount>,
    /// TTFT of its first warm-up request.
    pub cold_ttft: Option<Nanos>,
    /// How it was reached; absent where it never was, and for imported runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reached: Option<Reached>,
}
