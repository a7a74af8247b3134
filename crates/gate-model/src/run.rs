//! A run: what the load saw, as data and as a journal.

use serde::{Deserialize, Serialize};

use crate::{Arm, Commit, GateSpec, MaxTokensField, Nanos, Plan, Sample};

/// The version of the run journal's format.
pub const RUN_SCHEMA: u32 = 1;

/// The version of the metrics' definitions.
pub const DEFINITIONS: u32 = 1;

/// The machine that sent the load.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// Operating system and architecture, such as `linux-x86_64`.
    pub system: String,
    /// Cores the process may use.
    pub cores: u32,
    /// The CPU's name, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<String>,
    /// The kernel's release.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// The CI runner's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runner: Option<String>,
    /// The region, where the environment gives one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub region: Option<String>,
}

/// The journal's first line: everything known before the first byte is sent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunHeader {
    /// [`RUN_SCHEMA`].
    pub schema: u32,
    /// [`DEFINITIONS`].
    pub definitions: u32,
    /// The version of `gate`.
    pub gate: String,
    /// Identifies the run; part of every prompt's nonce.
    pub run_id: String,
    /// When it started, RFC 3339 in UTC.
    pub started: String,
    /// The resolved spec, secrets out.
    pub spec: GateSpec,
    /// The scenarios' names.
    pub scenarios: Vec<String>,
    /// The sizes at which the run is judged, in requests of each arm; the last is the number planned.
    pub looks: Vec<u32>,
    /// When each planned request is due, in send order, those of both arms.
    pub schedule: Vec<Nanos>,
    /// Whether the target is the simulated engine.
    pub simulated: bool,
    /// How percentiles are taken.
    pub percentiles: String,
    /// The machine; absent in a simulation.
    pub host: Option<Host>,
    /// The commit that is measured; absent outside a git repository, and in a simulation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<Commit>,
    /// How many requests repeat an earlier prompt.
    #[serde(default)]
    pub repeated_prompts: u32,
    /// The other tool's format this run was imported from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub imported_from: Option<String>,
}

impl RunHeader {
    /// The header of a run of `plan`, started by this version of `gate` at this time (RFC 3339 in UTC): percentiles
    /// by nearest rank, no host, nothing imported.
    #[must_use]
    pub fn new(spec: GateSpec, plan: &Plan, gate: &str, run_id: &str, started: &str) -> Self {
        Self {
            schema: RUN_SCHEMA,
            definitions: DEFINITIONS,
            gate: gate.to_owned(),
            run_id: run_id.to_owned(),
            started: started.to_owned(),
            scenarios: plan.scenarios.clone(),
            looks: plan.looks.clone(),
            schedule: plan.requests.iter().map(|request| request.at).collect(),
            simulated: spec.is_simulated(),
            spec,
            percentiles: "nearest rank".to_owned(),
            host: None,
            commit: None,
            repeated_prompts: 0,
            imported_from: None,
        }
    }
}

/// Why a run ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndReason {
    /// Every planned request ended.
    Completed,
    /// The referee stopped it at this many requests of each arm.
    StoppedAtLook(u32),
    /// SIGINT or SIGTERM.
    Interrupted,
    /// The run's own time limit.
    RunTimeout,
    /// The target never became ready: what was last seen, in words.
    NotReady(String),
    /// The client itself ran out of something it needs to connect (descriptors, ports, memory): what, in words.
    ClientExhausted(String),
    /// Every warm-up request was refused in a way no later one can change (no connection, 401, 403, 404,
    /// 429): what was seen, in words.
    Refused(String),
}

/// Which clock stamped what was received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stamping {
    /// The kernel's, when the network handed the bytes over.
    Kernel,
    /// This process's, when it read them.
    #[default]
    User,
    /// That of a simulation.
    Virtual,
}

impl Stamping {
    /// The name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Kernel => "kernel",
            Self::User => "user",
            Self::Virtual => "virtual",
        }
    }
}

/// The version of HTTP that was spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HttpVersion {
    /// HTTP/1.1.
    Http1,
    /// HTTP/2.
    Http2,
}

/// How the target was reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reached {
    /// The addresses its name was found to have before the first request, the one in use first; no other is looked up
    /// later. The proxy's where there is one; a socket's path where it is one.
    pub addresses: Vec<String>,
    /// The proxy, as `http://host:port`, credentials out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proxy: Option<String>,
    /// The version of HTTP.
    pub http: HttpVersion,
    /// What the server calls itself: the `server` header of its first answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
}

/// The client's own health over the measured phase.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Health {
    /// Which clock stamped what was received.
    pub clock: Stamping,
    /// The 95th percentile of how long received bytes lay in the kernel before they were read; absent where the
    /// kernel's clock was not used.
    pub read_delay_p95: Option<Nanos>,
    /// The share of content events that came in one read with later ones, so that their stamp is an upper bound.
    pub coalesced_share: Option<f64>,
    /// CPU time used ÷ (elapsed × cores the process may use), 0 to 1; absent where it cannot be measured.
    pub cpu_share: Option<f64>,
    /// The 95th percentile of how late the I/O thread woke for a timer of its own; absent where not measured.
    pub loop_delay_p95: Option<Nanos>,
}

impl Health {
    /// Whether anything of it was recorded: a journal may have left it out.
    #[must_use]
    pub fn is_recorded(&self) -> bool {
        *self != Self::default()
    }
}

/// The journal's last line. A journal without it was cut.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunEnd {
    /// Why it ended.
    pub reason: EndReason,
    /// How many measured requests were sent.
    pub sent: u32,
    /// When the last of them ended.
    pub at: Nanos,
    /// The epoch by the machine's clock, since the UNIX epoch, so that other records can be laid beside the run's;
    /// absent where nothing was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch_unix: Option<Nanos>,
    /// The client's health.
    pub health: Health,
    /// The field for the length of answers that the server wanted in warm-up, where it was not the spec's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switched_to: Option<MaxTokensField>,
    /// How the target was reached; absent where it never was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reached: Option<Reached>,
    /// The same of the reference, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<ReferenceEnd>,
}

/// What a run learnt of its reference.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReferenceEnd {
    /// The field for the length of answers that it wanted in warm-up, where it was not the spec's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switched_to: Option<MaxTokensField>,
    /// How it was reached; absent where it never was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reached: Option<Reached>,
}

/// One line of a journal.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum JournalLine {
    /// The first line.
    Header(Box<RunHeader>),
    /// A warm-up request that ended.
    Warmup(Box<Sample>),
    /// A measured request that ended.
    Sample(Box<Sample>),
    /// What the spec's tokenizer counted of one measured request's answer, after the load.
    Counted {
        /// The request.
        index: u32,
        /// Its output tokens.
        output: u64,
    },
    /// The last line.
    End(Box<RunEnd>),
}

/// A whole run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// What was known before it.
    pub header: RunHeader,
    /// Warm-up requests, in send order.
    pub warmup: Vec<Sample>,
    /// Measured requests, in send order. Those never sent are absent.
    pub samples: Vec<Sample>,
    /// How it ended; absent when the process was killed.
    pub end: Option<RunEnd>,
}

impl Run {
    /// The measured samples of one scenario and arm, in send order.
    pub fn samples_of(&self, scenario: u16, arm: Arm) -> impl Iterator<Item = &Sample> {
        self.samples.iter().filter(move |sample| sample.scenario == scenario && sample.arm == arm)
    }

    /// How many measured requests were planned, those of both arms.
    #[must_use]
    pub fn planned(&self) -> u32 {
        u32::try_from(self.header.schedule.len()).unwrap_or(u32::MAX)
    }
}
