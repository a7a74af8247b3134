//! What a reader of a verdict should know of the run as a whole.

use serde::{Deserialize, Serialize};

use crate::{Cause, Difference, EndReason, MaxTokensField, Metric, Nanos, Outcome, Quantity};

/// Something about the run as a whole that a reader should know.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finding {
    /// The run ended early.
    EndedEarly(EndReason),
    /// The run has no end: the process was killed.
    Killed {
        /// Requests recorded.
        recorded: u32,
        /// Requests planned.
        planned: u32,
    },
    /// The client was slow in some way.
    ClientSlow(Cause),
    /// Exceedances of a check came in bursts.
    DesignEffect {
        /// The metric.
        metric: Metric,
        /// The design effect.
        design_effect: f64,
        /// Whether requests waited for slots under a concurrency cap, which alone brings it about.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        capped: bool,
    },
    /// Requests waited long for a slot under the spec's concurrency cap.
    CapWait {
        /// The median wait.
        p50: Nanos,
        /// The requests per second that went out, where the cap kept the planned rate from being reached.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        held_at: Option<f64>,
    },
    /// All tokens of most streams arrive in one burst: a buffering proxy, so TPOT is meaningless.
    Buffered {
        /// The share of streams.
        share: f64,
    },
    /// Output tokens are estimated from events.
    EstimatedTokens {
        /// The share of requests.
        share: f64,
    },
    /// Output lengths differ from the plan's by more than 10 %.
    ShortOutputs {
        /// The mean planned.
        planned: f64,
        /// The mean seen.
        seen: f64,
    },
    /// More than 10 % of answers were 429.
    RateLimited {
        /// The share.
        share: f64,
    },
    /// The first failure of each outcome, in words.
    Failure {
        /// The outcome.
        outcome: Outcome,
        /// How many requests.
        count: u32,
        /// The first message.
        message: String,
    },
    /// A percentile check whose sample is too small to prove that it holds.
    CannotProve {
        /// The check, as written.
        check: String,
        /// The requests it has at most.
        n: u32,
        /// The requests it needs with none beyond.
        needed: u32,
    },
    /// The gate's only latency checks are end to end.
    OnlyEndToEnd,
    /// The server wanted the other field for the length of answers, and got it.
    MaxTokensFieldSwitched {
        /// The field it got.
        to: MaxTokensField,
    },
    /// The server's certificate was not checked.
    InsecureTls,
    /// A check's waiver has ended, so it counts again.
    WaiverEnded {
        /// The check, as written.
        check: String,
        /// The last day it worked.
        until: String,
    },
    /// The replicas that answered, as the spec's `replica_header` names them; one too.
    Replicas {
        /// Each with its requests, most frequent first; at most ten.
        answered: Vec<(String, u32)>,
        /// How many there are.
        count: u32,
    },
    /// No answer had the header that the spec's `replica_header` names.
    NoReplicaHeader {
        /// The header.
        header: String,
    },
    /// More than one model answered, as the server names it.
    Models {
        /// Each with its requests, most frequent first; at most ten.
        answered: Vec<(String, u32)>,
        /// How many there are.
        #[serde(default)]
        count: u32,
    },
    /// More than one `system_fingerprint` was given.
    Fingerprints {
        /// Each with its requests, most frequent first; at most ten.
        answered: Vec<(String, u32)>,
        /// How many there are.
        #[serde(default)]
        count: u32,
    },
    /// Streams began again in their middle: another stream was spliced in, or the same one repeated.
    Restarted {
        /// How many requests.
        requests: u32,
    },
    /// Many tokens came in one read with later ones, so that their times are upper bounds.
    Coalesced {
        /// The share of content events.
        share: f64,
    },
    /// `clock: auto` found no clock of the kernel's: this process's was used.
    NoKernelClock,
    /// A latency objective under a closed loop, in which a slow server is asked less.
    ClosedLoop,
    /// A check against stored runs cannot see its own tolerance for the noise between them.
    NoisyBaseline {
        /// The check, as written.
        check: String,
        /// The standard deviation of the metric's logarithm from run to run.
        noise: f64,
        /// The change it allows.
        tolerance: f64,
    },
    /// The two arms' values are spread so differently that a tail cannot be compared exactly.
    ShapesDiffer {
        /// The metric.
        metric: Metric,
        /// The smaller log-interquartile range ÷ the larger.
        ratio: f64,
    },
    /// Both arms are one server, so each loads the other.
    SharedServer {
        /// Its address.
        address: String,
    },
    /// The first failure of each outcome in the reference, in words.
    ReferenceFailure {
        /// The outcome.
        outcome: Outcome,
        /// How many requests.
        count: u32,
        /// The first message.
        message: String,
    },
    /// The newest baselines creep away from the older ones by more than the tolerance.
    Creep {
        /// The metric.
        metric: Metric,
        /// The median of the oldest.
        from: Quantity,
        /// The median of the newest.
        to: Quantity,
        /// Over how many runs.
        runs: u32,
        /// The change that the check allows.
        tolerance: f64,
    },
    /// A metric improved by more than 60 %: more likely another kind of answer than a faster server.
    Improved {
        /// The check, as written.
        check: String,
        /// The change.
        change: f64,
    },
    /// Lengths, or tokens read from a cache, differ from the baseline's or the reference's by more than 10 %.
    LengthsMoved {
        /// Of what: `output_tokens.mean`, `input_tokens.mean` or `cached_tokens.mean`.
        metric: Metric,
        /// The mean there.
        base: f64,
        /// The mean here.
        seen: f64,
    },
    /// Another model or another build of it answers than in the baseline.
    ModelMoved(Difference),
    /// The spec's checks differ from those at the base commit, by which the run is judged.
    SpecChanged {
        /// The base commit.
        base: String,
        /// Each change.
        changes: Vec<SpecChange>,
    },
    /// The spec does not exist at the base commit, so its own checks judge the run.
    NotAtBase {
        /// The base commit.
        base: String,
    },
    /// Prompts of one length, or with nothing in common, where real traffic has neither: the load is more even than what
    /// it stands for.
    UniformPrompts {
        /// The scenario.
        scenario: String,
    },
    /// Something grows over a soak, and no check asks for it.
    Drifts {
        /// The scenario.
        scenario: String,
        /// What, such as `drift.ttft`.
        metric: Metric,
        /// By how much of itself per hour.
        per_hour: f64,
    },
    /// The first measured requests were slower than the rest, so warm-up was too short.
    WarmupAnomaly {
        /// The scenario.
        scenario: String,
        /// How many.
        requests: u32,
        /// Their median TTFT.
        first: Nanos,
        /// That of the rest.
        rest: Nanos,
    },
    /// Connections were opened anew over a long run.
    Reopened {
        /// How many.
        connections: u32,
        /// Per hour.
        per_hour: f64,
    },
    /// The client's own descriptors or memory grew over a long run.
    ClientGrows {
        /// Descriptors per hour.
        descriptors: Option<f64>,
        /// Memory per hour, in bytes.
        memory: Option<f64>,
    },
    /// The server's own metrics could not be read at times.
    ScrapesFailed {
        /// How often.
        failed: u32,
        /// Of how many times.
        of: u32,
        /// What was seen first, in words.
        message: String,
    },
    /// The server did not count the tokens of some requests: what they cost is not in `cost`.
    UncountedCost {
        /// How many.
        requests: u64,
    },
    /// Conversations ended early, since a turn failed: their later turns were not sent.
    ConversationsCut {
        /// How many.
        conversations: u32,
    },
    /// Some prompts were sent more than once.
    RepeatedPrompts {
        /// How many requests repeated an earlier prompt.
        count: u32,
    },
}

/// One thing of a spec that is not what it is at the base commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpecChange {
    /// What: a metric with its operator (`ttft.p95 <`), or a path of the spec (`outcomes.inconclusive`).
    pub what: String,
    /// At the base; absent where it is not there.
    pub base: Option<String>,
    /// In the change; absent where it is removed.
    pub head: Option<String>,
    /// Whether less is demanded than at the base.
    pub loosens: bool,
}
