//! The verdict: computed once, as one value; every report only renders it.

use serde::{Deserialize, Serialize};

use crate::{
    Check, EndReason, ExitCode, Health, MaxTokensField, Metric, Nanos, Outcome, Outcomes, Override, Pace, Quantity,
    Reached, TokenSource,
};

/// The version of the verdict's file format.
pub const VERDICT_SCHEMA: u32 = 1;

/// Which side of its bound an undecided estimate lies on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Side {
    /// The printed estimate keeps the bound.
    Within,
    /// The printed estimate breaks it.
    Over,
}

/// Why a check could not be measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The run ended before it was judged: why.
    NotRun(EndReason),
    /// The process was killed: the journal has no end.
    Killed {
        /// Requests recorded.
        recorded: u32,
        /// Requests planned.
        planned: u32,
    },
    /// Not one request was `ok`, and all failed in ways that say nothing of performance.
    NothingReached {
        /// How the requests failed, most frequent first.
        outcomes: Vec<OutcomeCount>,
        /// The first message.
        message: Option<String>,
    },
    /// Fewer `ok` requests than a verdict by evidence needs.
    TooFewOk {
        /// How many there were.
        ok: u32,
        /// How many are needed.
        needed: u32,
    },
    /// The metric has no value in this run.
    NoData,
    /// Some requests' events carry several tokens, so their gaps are of no single token, and leaving them out would
    /// leave out the slow ones: a busy server sends tokens together.
    SeveralTokensAnEvent {
        /// How many requests.
        requests: u32,
        /// Of how many.
        of: u32,
    },
    /// Too many 429 answers to say anything about latency.
    RateLimited {
        /// The share of 429 answers.
        share: f64,
    },
    /// The client was late, and the check would otherwise be violated or over.
    ClientLate {
        /// The share of requests later than the limit.
        share: f64,
        /// The limit.
        limit: Nanos,
    },
    /// The client's I/O thread was late, and the check would otherwise be violated or over.
    LoopDelay {
        /// The 95th percentile of the delay.
        p95: Nanos,
        /// The limit.
        limit: Nanos,
    },
    /// The client's CPU was used up, and the check would otherwise be violated or over.
    ClientCpu {
        /// The share used.
        share: f64,
    },
    /// Fewer requests were sent per second than planned.
    RateShort {
        /// Requests per second planned.
        planned: f64,
        /// Requests per second sent.
        achieved: f64,
    },
    /// The output tokens are estimated from events, and the spec does not accept that.
    EstimatedTokens,
    /// Most streams arrived in one burst, so the times between their tokens say nothing.
    Buffered {
        /// The share of streams.
        share: f64,
    },
    /// The run was interrupted before its first look.
    Interrupted,
}

/// What became of one check.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum CheckOutcome {
    /// Evidence that it is broken (or, for counted and point checks, it is).
    Violated,
    /// Evidence that it holds (or, for counted and point checks, it does).
    Met,
    /// Neither.
    Inconclusive {
        /// The side the estimate lies on.
        side: Side,
    },
    /// No statement is possible.
    CouldNotMeasure {
        /// Why.
        cause: Cause,
    },
    /// It is waived: nothing follows from it.
    Waived {
        /// What became of it otherwise.
        otherwise: Box<CheckOutcome>,
    },
}

/// The rule that decided a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// A percentile against a limit: exact binomial on exceedances, with a design effect.
    Quantile,
    /// A share against a limit by evidence: exact binomial with a design effect.
    Rate,
    /// A share or count compared as it is, at the last look.
    Counted,
    /// Largest or smallest: one request violates.
    Extreme,
    /// A number compared as it is: the run has it once, or `decide: point` asks for it.
    Point,
    /// A mean against a limit: Student's t with a design effect.
    Mean,
    /// A percentile of pooled gaps: the mean, over requests, of gaps beyond the limit less those it allows.
    Cluster,
}

/// What a check's rule saw.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// Requests it rests on.
    pub n: u32,
    /// Requests beyond the bound (bad requests, for a share).
    pub k: u32,
    /// How many beyond the bound a check exactly at its limit has: n · p0.
    pub allowed: f64,
    /// The count at which it is violated at this look; `None` where none is enough.
    pub needed: Option<u32>,
    /// The probability of as many or more beyond the bound if it holds exactly; absent without a test.
    pub p_fail: Option<f64>,
    /// The probability of as few or fewer; absent without a test.
    pub p_pass: Option<f64>,
    /// The level `p_fail` was compared with.
    pub level: Option<f64>,
    /// The design effect of the exceedances: 1 where they are independent.
    pub design_effect: f64,
    /// One-sided 95 % lower bound of the estimate; absent where none exists.
    pub lower: Option<Quantity>,
    /// One-sided 95 % upper bound of the estimate; absent where none exists.
    pub upper: Option<Quantity>,
}

/// One check with what became of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CheckVerdict {
    /// The check.
    pub check: Check,
    /// Its rule.
    pub rule: Rule,
    /// What became of it.
    pub outcome: CheckOutcome,
    /// The number seen; absent where there is none.
    pub seen: Option<Quantity>,
    /// What the rule saw; absent where it saw nothing.
    pub evidence: Option<Evidence>,
    /// What it could have found; absent for rules without a test.
    pub power: Option<Power>,
}

/// What a check can find at this size.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Power {
    /// At each look, how many requests beyond the bound violate it; `None` where none is enough.
    pub violates_at: Vec<(u32, Option<u32>)>,
    /// At the last look, how many at most prove that it holds; `None` where nothing can.
    pub proves_at_most: Option<u32>,
    /// The share of requests beyond the bound when it holds exactly.
    pub allowed_share: f64,
    /// The share of requests beyond the bound that is found with 80 % power.
    pub detects_share: f64,
}

/// How the whole gate ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Every check passed.
    Passed,
    /// Passed, with something worth reading.
    PassedWithWarnings,
    /// A required check is violated.
    Violated,
    /// Could not measure.
    CouldNotMeasure,
    /// Not proven where that costs the build.
    Inconclusive,
    /// Interrupted.
    Interrupted,
}

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
    /// Some prompts were sent more than once.
    RepeatedPrompts {
        /// How many requests repeated an earlier prompt.
        count: u32,
    },
}

/// A number of the run that is shown whether or not a check names it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// The scenario.
    pub scenario: u16,
    /// The metric.
    pub metric: Metric,
    /// The value; absent where the run has none.
    pub value: Option<Quantity>,
    /// Requests it rests on.
    pub n: u32,
}

/// How many requests ended in one way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutcomeCount {
    /// The outcome.
    pub outcome: Outcome,
    /// How many.
    pub count: u32,
}

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
}

/// A journal the verdict rests on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalRef {
    /// Its path, relative to the verdict file.
    pub path: String,
    /// SHA-256 of its bytes, in hexadecimal.
    pub sha256: String,
}

/// A whole verdict.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// [`VERDICT_SCHEMA`].
    pub schema: u32,
    /// [`crate::DEFINITIONS`].
    pub definitions: u32,
    /// The version of `gate`.
    pub gate: String,
    /// The gate's name.
    pub name: String,
    /// The spec's file.
    pub spec_file: String,
    /// Whether the target is the simulated engine: every report says so in its heading.
    pub simulated: bool,
    /// How it ended.
    pub status: Status,
    /// The exit code of a job with this gate alone.
    pub exit: ExitCode,
    /// What outcomes other than violated and met cost the build.
    pub policy: Outcomes,
    /// Whether `--report-only` turned the exit code of a violated or inconclusive gate into 0.
    #[serde(default)]
    pub report_only: bool,
    /// Every declared and implied check.
    pub checks: Vec<CheckVerdict>,
    /// What a reader should know.
    pub findings: Vec<Finding>,
    /// Figures of the run.
    pub figures: Vec<Figure>,
    /// Facts of the run.
    pub run: RunFacts,
    /// What flags changed.
    pub overrides: Vec<Override>,
    /// The journals it rests on.
    pub journals: Vec<JournalRef>,
}
