//! The spec as written: typed, defaults filled in, not yet checked as a whole.

use gate_model::{
    Api, Arrivals, Cache, Clock, Connections, CustomFraming, Decide, Faults, MaxTokensField, Nanos, Outcomes,
    OutputLength, ScriptedFault, Shape, Slo, Tls, TokenPolicy,
};
use serde::Deserialize;

#[derive(Debug, Deserialize)]
pub(crate) struct RawSpec {
    pub(crate) version: Option<u32>,
    pub(crate) name: Option<String>,
    pub(crate) target: RawTarget,
    pub(crate) reference: Option<RawTarget>,
    pub(crate) load: RawLoad,
    pub(crate) prompts: RawPrompts,
    pub(crate) slo: Slo,
    pub(crate) timeouts: gate_model::Timeouts,
    pub(crate) outcomes: Outcomes,
    pub(crate) baseline: RawBaseline,
    #[serde(default)]
    pub(crate) require: Vec<RawCheck>,
    #[serde(default)]
    pub(crate) prefer: Vec<RawCheck>,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct RawTarget {
    pub(crate) url: Option<String>,
    pub(crate) sim: Option<RawSim>,
    pub(crate) api: Api,
    pub(crate) model: Option<String>,
    pub(crate) key: Option<String>,
    #[serde(default)]
    pub(crate) headers: serde_yaml::Mapping,
    #[serde(default)]
    pub(crate) extra_body: serde_json::Map<String, serde_json::Value>,
    pub(crate) custom: Option<RawCustom>,
    pub(crate) replica_header: Option<String>,
    pub(crate) stream: bool,
    pub(crate) max_tokens_field: MaxTokensField,
    pub(crate) tls: Tls,
    pub(crate) ready: RawReady,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct RawCustom {
    pub(crate) path: Option<String>,
    pub(crate) body: Option<serde_json::Map<String, serde_json::Value>>,
    pub(crate) text: Option<String>,
    pub(crate) usage: RawUsage,
    pub(crate) end: Option<String>,
    pub(crate) framing: CustomFraming,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct RawUsage {
    pub(crate) input: Option<String>,
    pub(crate) output: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct RawReady {
    pub(crate) within: Nanos,
    pub(crate) path: String,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct RawSim {
    pub(crate) ttft: RawLatency,
    pub(crate) tpot: RawLatency,
    pub(crate) tokens_per_chunk: u32,
    pub(crate) role_chunk: OrNone<Nanos>,
    pub(crate) faults: Faults,
    #[serde(default)]
    pub(crate) script: Vec<ScriptedFault>,
    pub(crate) slow_headers: Nanos,
    pub(crate) warming_up: Option<RawWarmingUp>,
    pub(crate) buffer: u32,
    pub(crate) dies_after: OrNone<u32>,
    pub(crate) ready_after: Nanos,
    pub(crate) seed: u64,
}

#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct RawWarmingUp {
    pub(crate) requests: Option<u32>,
    pub(crate) slowdown: Option<f64>,
}

/// `{}` is `none`; an absent key is no `OrNone` at all.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct OrNone<T> {
    pub(crate) value: Option<T>,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct RawLatency {
    pub(crate) mean: Option<Nanos>,
    pub(crate) stddev: Nanos,
    pub(crate) shape: Shape,
}

#[derive(Debug, Deserialize)]
pub(crate) struct RawLoad {
    pub(crate) rps: f64,
    pub(crate) concurrency: Option<u32>,
    pub(crate) iterations: RawIterations,
    pub(crate) extend: Option<OrNone<u32>>,
    pub(crate) warmup: u32,
    pub(crate) arrivals: Arrivals,
    pub(crate) connections: Connections,
    /// `auto`, `1` or `2`.
    pub(crate) http: String,
    pub(crate) clock: Clock,
    pub(crate) workers: u32,
    pub(crate) seed: u64,
}

#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct RawIterations {
    pub(crate) first: Option<u32>,
    pub(crate) last: u32,
}

#[derive(Debug, Deserialize)]
pub(crate) struct RawPrompts {
    pub(crate) input_tokens: RawLength,
    pub(crate) output_tokens: RawLength,
    pub(crate) cache: Cache,
    pub(crate) output: OutputLength,
    pub(crate) system: Option<String>,
    pub(crate) file: Option<String>,
    pub(crate) tokenizer: Option<String>,
    pub(crate) tokens: TokenPolicy,
}

#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct RawLength {
    pub(crate) mean: Option<f64>,
    pub(crate) stddev: f64,
    pub(crate) min: u32,
    pub(crate) max: Option<u32>,
    pub(crate) shape: Shape,
}

/// Its texts are those that `baseline.rs` reads.
#[derive(Debug, Deserialize)]
pub(crate) struct RawBaseline {
    pub(crate) from: String,
    pub(crate) runs: u32,
    pub(crate) store: String,
    pub(crate) class: Option<String>,
    #[serde(default)]
    pub(crate) fallback: Vec<String>,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct RawCheck {
    /// The check as text.
    pub(crate) check: String,
    /// Its index in the list.
    pub(crate) at: u32,
    pub(crate) confidence: Option<f64>,
    pub(crate) decide: Option<Decide>,
    pub(crate) waive: Option<RawWaiver>,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct RawWaiver {
    pub(crate) until: Option<String>,
    pub(crate) reason: Option<String>,
}
