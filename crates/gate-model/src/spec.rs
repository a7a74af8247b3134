//! The resolved gate spec: every key with its value, defaults filled in, environment read, secrets in custody.

use serde::{Deserialize, Serialize};

use crate::{Arm, BaselineSpec, Check, Endpoint, Nanos, PerSecond, Shape, Target};

/// The distribution of times between arrivals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arrivals {
    /// Exponential: independent users.
    Poisson,
    /// Always the same.
    Constant,
}

/// How many requests are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Iterations {
    /// Exactly this many, judged once.
    Fixed(u32),
    /// Judged at `first` and at `last`, and at `extend` where a required check is then seen over its limit
    /// and not proven.
    Range {
        /// The first look.
        first: u32,
        /// The second look.
        last: u32,
        /// The third look.
        extend: Option<u32>,
    },
}

impl Iterations {
    /// The sizes at which the run is judged, ascending and distinct.
    #[must_use]
    pub fn looks(self) -> Vec<u32> {
        match self {
            Self::Fixed(count) => vec![count],
            Self::Range { first, last, extend } => {
                let mut looks = vec![first, last];
                looks.extend(extend);
                looks.dedup();
                looks
            }
        }
    }

    /// The same without the look that only a run seen over its limit reaches.
    #[must_use]
    pub fn without_extension(self) -> Self {
        match self {
            Self::Fixed(count) => Self::Fixed(count),
            Self::Range { first, last, .. } => Self::Range { first, last, extend: None },
        }
    }

    /// How many are measured before any extension.
    #[must_use]
    pub fn base(self) -> u32 {
        match self {
            Self::Fixed(count) => count,
            Self::Range { last, .. } => last,
        }
    }
}

/// What decides when a request is sent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pace {
    /// The plan's own times: an open loop.
    Open {
        /// Requests per second.
        rate: PerSecond,
        /// How many may be open at once; what waits for a slot goes on waiting, and the wait counts.
        cap: Option<u32>,
    },
    /// The end of an earlier request: a closed loop.
    Closed {
        /// How many are open at once.
        concurrency: u32,
    },
}

impl Pace {
    /// The rate of an open loop.
    #[must_use]
    pub fn rate(self) -> Option<PerSecond> {
        match self {
            Self::Open { rate, .. } => Some(rate),
            Self::Closed { .. } => None,
        }
    }

    /// How many requests may be open at once.
    #[must_use]
    pub fn cap(self) -> Option<u32> {
        match self {
            Self::Open { cap, .. } => cap,
            Self::Closed { concurrency } => Some(concurrency),
        }
    }
}

/// Which connections requests take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Connections {
    /// One at rest, opened by warm-up or by an earlier request; a new one where there is none.
    #[default]
    Pooled,
    /// A new one each.
    Fresh,
}

/// Which version of HTTP is spoken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Http {
    /// What the server chooses in the TLS handshake, and HTTP/1.1 without TLS.
    #[default]
    Auto,
    /// HTTP/1.1.
    One,
    /// HTTP/2, without TLS by prior knowledge.
    Two,
}

/// Which clock stamps what is received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Clock {
    /// The kernel's where it works, else this process's.
    #[default]
    Auto,
    /// The kernel's: when the network handed the bytes over.
    Kernel,
    /// This process's: when it read them.
    User,
}

/// The load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// What decides when a request is sent.
    pub pace: Pace,
    /// How many requests.
    pub iterations: Iterations,
    /// Warm-up requests, never scored.
    pub warmup: u32,
    /// When they arrive.
    pub arrivals: Arrivals,
    /// Which connections requests take.
    pub connections: Connections,
    /// Which version of HTTP is spoken.
    pub http: Http,
    /// Which clock stamps what is received.
    pub clock: Clock,
    /// Threads that send and receive.
    pub workers: u32,
    /// The seed of the plan.
    pub seed: u64,
}

impl Default for Load {
    /// Two requests per second with Poisson arrivals, after 5 for warm-up; judged at 30, at 50 and, where needed,
    /// at 100.
    fn default() -> Self {
        Self {
            pace: Pace::Open { rate: PerSecond(2.0), cap: None },
            iterations: Iterations::Range { first: 30, last: 50, extend: Some(100) },
            warmup: 5,
            arrivals: Arrivals::Poisson,
            connections: Connections::Pooled,
            http: Http::Auto,
            clock: Clock::Auto,
            workers: 1,
            seed: 0,
        }
    }
}

/// A distribution of lengths in tokens, redrawn (never clipped) outside `min..=max`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Length {
    /// The mean before truncation.
    pub mean: f64,
    /// The standard deviation before truncation; zero makes it constant.
    pub stddev: f64,
    /// The least.
    pub min: u32,
    /// The greatest.
    pub max: u32,
    /// The shape.
    pub shape: Shape,
}

/// What prompts do to the server's prefix cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cache {
    /// Every prompt starts with a nonce of its own: no prefix is ever shared.
    Bust,
    /// Prompts are sent as they are and may repeat, so the cache is warm: it is what is measured.
    Warm,
}

/// How long answers are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputLength {
    /// The model may stop before the planned length.
    #[default]
    AtMost,
    /// The server is asked to go on to the planned length (`ignore_eos` and `min_tokens`, where it knows them).
    Exact,
}

/// Which token counts a verdict may rest on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenPolicy {
    /// The server's usage, or a tokenizer's count.
    #[default]
    Usage,
    /// Also the number of events, where there is neither.
    AcceptEstimate,
}

/// The prompts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PromptSpec {
    /// Input lengths.
    pub input_tokens: Length,
    /// Output lengths: the most tokens a request asks for.
    pub output_tokens: Length,
    /// The prefix cache.
    pub cache: Cache,
    /// How long answers are.
    pub output: OutputLength,
    /// A system prompt, sent before every prompt.
    pub system: Option<String>,
    /// A JSON Lines file of prompts, one row a request, instead of built-in prose.
    pub file: Option<String>,
    /// A Hugging Face `tokenizer.json` that counts the tokens of answers without usage, after the run.
    pub tokenizer: Option<String>,
    /// Which token counts a verdict may rest on.
    pub tokens: TokenPolicy,
}

impl Default for PromptSpec {
    /// About 550 tokens in and 150 out, and no prefix shared.
    fn default() -> Self {
        Self {
            input_tokens: Length { mean: 550.0, stddev: 150.0, min: 50, max: 2000, shape: Shape::Normal },
            output_tokens: Length { mean: 150.0, stddev: 20.0, min: 10, max: 500, shape: Shape::Normal },
            cache: Cache::Bust,
            output: OutputLength::AtMost,
            system: None,
            file: None,
            tokenizer: None,
            tokens: TokenPolicy::Usage,
        }
    }
}

/// The service level objective of one request, for `attainment` and `goodput`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Slo {
    /// Time to first token, at most.
    pub ttft: Option<Nanos>,
    /// Time to first answer token, at most.
    pub ttfa: Option<Nanos>,
    /// Time per output token, at most.
    pub tpot: Option<Nanos>,
    /// Time to last token, at most.
    pub e2e: Option<Nanos>,
}

impl Slo {
    /// Whether any bound is given.
    #[must_use]
    pub fn is_given(&self) -> bool {
        *self != Self::default()
    }
}

/// Deadlines of each request, and of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timeouts {
    /// For a new connection.
    pub connect: Nanos,
    /// From the request's start to its first token.
    pub first_token: Nanos,
    /// From one event to the next, after the first token.
    pub stall: Nanos,
    /// From the request's start to its end.
    pub total: Nanos,
    /// For the whole run; by default the schedule + `total` + 60 s.
    pub run: Option<Nanos>,
}

impl Default for Timeouts {
    /// 5 s to connect, 60 s to the first token, 30 s between events, 300 s in all.
    fn default() -> Self {
        Self {
            connect: Nanos::from_secs(5),
            first_token: Nanos::from_secs(60),
            stall: Nanos::from_secs(30),
            total: Nanos::from_secs(300),
            run: None,
        }
    }
}

/// Whether something costs the build.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// It does not.
    Pass,
    /// It does.
    Fail,
}

/// What outcomes other than violated and met do to the exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcomes {
    /// A required check seen over its limit, but not proven: exit 4 where it fails.
    pub inconclusive: Policy,
    /// A required check without a baseline: exit 4 where it fails.
    pub no_baseline: Policy,
    /// A required check that could not be measured: exit 3 where it fails.
    pub invalid: Policy,
}

impl Default for Outcomes {
    /// Only what could not be measured costs the build.
    fn default() -> Self {
        Self { inconclusive: Policy::Pass, no_baseline: Policy::Pass, invalid: Policy::Fail }
    }
}

/// A value set by a flag over the spec's own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Override {
    /// The flag, such as `--set`.
    pub flag: String,
    /// The path, such as `load.rps`.
    pub path: String,
    /// The value, or [`crate::REDACTED`] where the path holds a credential.
    pub value: String,
}

/// A whole resolved gate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GateSpec {
    /// The spec format's version: 1.
    pub version: u32,
    /// The gate's name.
    pub name: String,
    /// The file as the person named it.
    pub file: String,
    /// The endpoint under test.
    pub target: Target,
    /// What it is compared with side by side.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<Target>,
    /// The load.
    pub load: Load,
    /// The prompts.
    pub prompts: PromptSpec,
    /// The service level objective.
    pub slo: Slo,
    /// Deadlines.
    pub timeouts: Timeouts,
    /// What outcomes cost.
    pub outcomes: Outcomes,
    /// Which stored runs it is compared with.
    #[serde(default)]
    pub baseline: BaselineSpec,
    /// The checks: required ones in the spec's order, implied ones, preferred ones.
    pub checks: Vec<Check>,
    /// What flags changed.
    pub overrides: Vec<Override>,
}

/// Whether a text can name a gate: 1 to 64 letters, digits, `.`, `_` and `-`, from a letter or digit on, since outputs
/// are kept in a folder of that name. `baselines` is reserved.
#[must_use]
pub fn is_gate_name(text: &str) -> bool {
    let allowed = |symbol: char| symbol.is_ascii_alphanumeric() || "._-".contains(symbol);
    text.len() <= 64
        && text.starts_with(|first: char| first.is_ascii_alphanumeric())
        && text.chars().all(allowed)
        && text != "baselines"
}

impl GateSpec {
    /// A gate as a spec would give it that names only itself and its endpoint: every other key has its default, and
    /// its file is `gates/NAME.yaml`. It has no check yet, not even an implied one.
    #[must_use]
    pub fn new(name: &str, endpoint: Endpoint) -> Self {
        Self {
            version: 1,
            name: name.to_owned(),
            file: format!("gates/{name}.yaml"),
            target: Target::new(endpoint),
            reference: None,
            load: Load::default(),
            prompts: PromptSpec::default(),
            slo: Slo::default(),
            timeouts: Timeouts::default(),
            outcomes: Outcomes::default(),
            baseline: BaselineSpec::default(),
            checks: Vec::new(),
            overrides: Vec::new(),
        }
    }

    /// Whether the target or the reference is the simulated engine.
    #[must_use]
    pub fn is_simulated(&self) -> bool {
        let mut targets = std::iter::once(&self.target).chain(&self.reference);
        targets.any(|target| matches!(target.endpoint, Endpoint::Sim(_)))
    }

    /// How many arms a run has: 2 side by side, else 1.
    #[must_use]
    pub fn arms(&self) -> u32 {
        if self.reference.is_some() { 2 } else { 1 }
    }

    /// The endpoint of an arm.
    #[must_use]
    pub fn of_arm(&self, arm: Arm) -> Option<&Target> {
        match arm {
            Arm::Target => Some(&self.target),
            Arm::Reference => self.reference.as_ref(),
        }
    }

    /// Whether a check compares with stored runs.
    #[must_use]
    pub fn needs_baseline(&self) -> bool {
        self.checks.iter().any(|check| check.bound.relative().is_some_and(|bound| bound.to == crate::Against::Baseline))
    }

    /// The run's time limit, given when its last arrival is due.
    #[must_use]
    pub fn run_limit(&self, last_arrival: Nanos) -> Nanos {
        self.timeouts.run.unwrap_or(last_arrival + self.timeouts.total + Nanos::from_secs(60))
    }
}
