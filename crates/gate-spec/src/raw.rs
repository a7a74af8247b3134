//! The spec as written: typed, defaults filled in, not yet checked as a whole.

use gate_model::{
    Abort, Api, Budget, Cache, Clock, Connections, CustomFraming, Decide, Drift, Faults, JournalSpec, MaxTokensField,
    Nanos, Outcomes, OutputLength, PromptFormat, RunOrder, ScriptedFault, Shape, Slo, Tls, TokenPolicy, Turns,
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
    pub(crate) scenarios: Vec<RawScenario>,
    pub(crate) run: RunOrder,
    pub(crate) budget: Budget,
    pub(crate) prices: Option<RawPrices>,
    pub(crate) abort: Abort,
    pub(crate) journal: JournalSpec,
    #[serde(default)]
    pub(crate) require: Vec<RawCheck>,
    #[serde(default)]
    pub(crate) prefer: Vec<RawCheck>,
}

/// What it leaves out is filled in with the gate's, but for `target` and the checks.
#[derive(Debug, Deserialize)]
pub(crate) struct RawScenario {
    pub(crate) name: String,
    pub(crate) load: RawLoad,
    pub(crate) prompts: RawPrompts,
    pub(crate) slo: Slo,
    #[serde(default)]
    pub(crate) require: Vec<RawCheck>,
    #[serde(default)]
    pub(crate) prefer: Vec<RawCheck>,
    #[serde(default)]
    pub(crate) target: RawScenarioTarget,
    pub(crate) weight: f64,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct RawScenarioTarget {
    pub(crate) model: Option<String>,
    pub(crate) extra_body: serde_json::Map<String, serde_json::Value>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct RawPrices {
    pub(crate) input: Option<f64>,
    pub(crate) cached_input: Option<f64>,
    pub(crate) output: Option<f64>,
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
    pub(crate) metrics: Option<String>,
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
    pub(crate) retry_after: Option<Nanos>,
    pub(crate) warming_up: Option<RawWarmingUp>,
    pub(crate) buffer: u32,
    pub(crate) dies_after: OrNone<u32>,
    pub(crate) ready_after: Nanos,
    pub(crate) slots: Option<u32>,
    pub(crate) prefill: Option<f64>,
    pub(crate) prefix_cache: Option<RawPrefixCache>,
    pub(crate) scaling: Option<RawScaling>,
    pub(crate) drift: Drift,
    pub(crate) seed: u64,
}

#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct RawPrefixCache {
    pub(crate) blocks: Option<u32>,
    pub(crate) block_tokens: u32,
}

#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct RawScaling {
    pub(crate) max_slots: Option<u32>,
    pub(crate) step: u32,
    pub(crate) queue: Option<u32>,
    pub(crate) cold_start: Option<Nanos>,
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
    pub(crate) duration: Option<Nanos>,
    pub(crate) pattern: Option<RawPattern>,
    pub(crate) stages: Option<Vec<RawStage>>,
    pub(crate) trace: Option<String>,
    pub(crate) warmup: u32,
    /// A text that `leaf::arrivals` reads.
    pub(crate) arrivals: String,
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

/// One of its keys, where it is sound.
#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct RawPattern {
    pub(crate) steady: Option<Nanos>,
    pub(crate) ramp: Option<RawRamp>,
    pub(crate) spike: Option<RawSpike>,
    pub(crate) soak: Option<Nanos>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct RawRamp {
    pub(crate) from: f64,
    pub(crate) to: Option<f64>,
    pub(crate) over: Nanos,
}

#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct RawSpike {
    pub(crate) times: f64,
    pub(crate) hold: Nanos,
    pub(crate) before: Nanos,
    pub(crate) after: Nanos,
}

#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct RawStage {
    pub(crate) rps: RawRates,
    #[serde(rename = "for")]
    pub(crate) lasts: Nanos,
}

#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct RawRates {
    pub(crate) from: f64,
    pub(crate) to: f64,
}

#[derive(Debug, Deserialize)]
pub(crate) struct RawPrompts {
    pub(crate) input_tokens: RawLength,
    pub(crate) output_tokens: RawLength,
    pub(crate) format: PromptFormat,
    pub(crate) turns: Turns,
    pub(crate) think: RawLatency,
    pub(crate) shared_prefix: Option<RawSharedPrefix>,
    #[serde(default)]
    pub(crate) images: Vec<String>,
    pub(crate) cache: Cache,
    pub(crate) output: OutputLength,
    pub(crate) system: Option<String>,
    pub(crate) file: Option<String>,
    pub(crate) tokenizer: Option<String>,
    pub(crate) tokens: TokenPolicy,
}

#[derive(Clone, Copy, Debug, Deserialize)]
pub(crate) struct RawSharedPrefix {
    pub(crate) tokens: Option<u32>,
    pub(crate) groups: Option<u16>,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct RawLength {
    pub(crate) empirical: Option<String>,
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
