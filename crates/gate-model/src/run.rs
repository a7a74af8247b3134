//! A run: what the load saw, as data and as a journal.

use serde::{Deserialize, Serialize};

use crate::{Brief, Commit, GateSpec, MaxTokensField, Nanos, Plan, RAW_LIMIT, Request, Sample, Scrape, Section, Shard};

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
    /// Which section of the plan was sent, from 0.
    #[serde(default)]
    pub section: u16,
    /// Which part of its plan; absent where it is the whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<Shard>,
    /// How many requests the section's whole plan has, those of both arms.
    #[serde(default)]
    pub whole: u32,
    /// SHA-256 of the section's whole plan, by which shards know each other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// The index of the section's first request.
    #[serde(default)]
    pub first: u32,
    /// How many requests are planned here, those of both arms.
    #[serde(default)]
    pub planned: u32,
    /// The sizes at which the section is judged, in requests of each arm; the last is the number its whole plan has.
    pub looks: Vec<u32>,
    /// At each look, how many requests of each arm each of the section's scenarios has; empty where it has one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_scenario: Vec<Vec<u32>>,
    /// When each planned request is due, in send order, those of both arms. Empty of a shard, of more than
    /// [`RAW_LIMIT`] requests, and of conversations, whose later turns are due when an answer has ended.
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
            section: plan.section,
            shard: plan.shard,
            whole: plan.whole,
            digest: plan.digest.clone(),
            first: plan.first,
            planned: u32::try_from(plan.requests.len()).unwrap_or(u32::MAX),
            looks: plan.looks.clone(),
            by_scenario: plan.by_scenario.clone(),
            schedule: schedule(plan),
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

/// When the requests of a plan are due, where that is known and short enough to be written down.
fn schedule(plan: &Plan) -> Vec<Nanos> {
    let is_known = plan.shard.is_none() && plan.whole <= RAW_LIMIT && plan.requests.iter().all(|one| one.turn == 0);
    if is_known { plan.requests.iter().map(|request| request.at).collect() } else { Vec::new() }
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
    /// Every warm-up request was refused for want of credentials (401 or 403): what was seen, in words.
    NoCredentials(String),
    /// The next request could have used up more than the spec's budget allows.
    BudgetSpent {
        /// The key, such as `budget.output_tokens`.
        key: String,
        /// What it allows, in words.
        limit: String,
    },
    /// A required check could no longer be kept.
    Lost {
        /// The check, as written.
        check: String,
    },
    /// So many requests one after another found no connection.
    Unreachable {
        /// How many.
        count: u32,
        /// What was seen last, in words.
        message: String,
    },
    /// The server gives no more for a long time: a daily quota, or a 429 that says to come back much later; in words.
    Quota(String),
    /// The server took no credentials any more (401 or 403), request after request; in words.
    Unauthorized(String),
}

impl EndReason {
    /// Whether the run's own rules ended it: it is judged on what was sent.
    #[must_use]
    pub fn is_abort(&self) -> bool {
        matches!(
            self,
            Self::BudgetSpent { .. }
                | Self::Lost { .. }
                | Self::Unreachable { .. }
                | Self::Quota(_)
                | Self::Unauthorized(_)
        )
    }
}

/// What a run used up, warm-up and both arms included.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Spent {
    /// Requests.
    pub requests: u64,
    /// Input tokens by the server's usage, cached ones included.
    pub input: u64,
    /// Of them read from a cache.
    pub cached: u64,
    /// Output tokens by the server's usage; of an answer that broke off or was cut, and was not counted, its content
    /// events: at least so many came.
    pub output: u64,
    /// Answers whose tokens the server did not count; what they cost is not known.
    pub uncounted: u64,
}

impl Spent {
    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            requests: self.requests.saturating_add(other.requests),
            input: self.input.saturating_add(other.input),
            cached: self.cached.saturating_add(other.cached),
            output: self.output.saturating_add(other.output),
            uncounted: self.uncounted.saturating_add(other.uncounted),
        }
    }
}

/// What a run took of the client's machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Footprint {
    /// Connections opened in the measured phase.
    pub connections: u32,
    /// Open descriptors at its start and at its end; absent where the system does not tell.
    pub descriptors: Option<(u32, u32)>,
    /// Resident memory at its start and at its end, in bytes; absent where the system does not tell.
    pub memory: Option<(u64, u64)>,
    /// Bytes of the journal.
    pub journal_bytes: u64,
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
    /// What it used up; absent where nothing was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spent: Option<Spent>,
    /// What it took of the client's machine; absent in a simulation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub footprint: Option<Footprint>,
}

impl RunEnd {
    /// An end with nothing known but why, how many requests were sent, and when the last of them ended.
    #[must_use]
    pub fn new(reason: EndReason, sent: u32, at: Nanos) -> Self {
        Self {
            reason,
            sent,
            at,
            epoch_unix: None,
            health: Health::default(),
            switched_to: None,
            reached: None,
            reference: None,
            spent: None,
            footprint: None,
        }
    }
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
    /// What the target's own metrics said.
    Scrape(Scrape),
    /// The last line. Where scenarios run one after another, the next section's header follows.
    End(Box<RunEnd>),
}

/// A whole run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// What was known before it.
    pub header: RunHeader,
    /// Warm-up requests, in send order.
    pub warmup: Vec<Sample>,
    /// Measured requests, in send order. Those never sent are absent. Of a long run, the first ones only.
    pub samples: Vec<Sample>,
    /// All measured requests of a long run, in send order; else empty.
    #[serde(skip)]
    pub briefs: Vec<Brief>,
    /// What the target's own metrics said, in order of time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scrapes: Vec<Scrape>,
    /// How it ended; absent when the process was killed. Of several sections or shards, what they come to together.
    pub end: Option<RunEnd>,
    /// Its sections, where it was put together of several parts; else empty, and header and end are those of the one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sections: Vec<Section>,
}

impl Run {
    /// A run of one section whose samples are all kept.
    #[must_use]
    pub fn new(header: RunHeader, warmup: Vec<Sample>, samples: Vec<Sample>, end: Option<RunEnd>) -> Self {
        Self { header, warmup, samples, briefs: Vec::new(), scrapes: Vec::new(), end, sections: Vec::new() }
    }

    /// Whether requests are kept in short.
    #[must_use]
    pub fn is_long(&self) -> bool {
        !self.briefs.is_empty()
    }

    /// Every measured request, in send order.
    pub fn requests(&self) -> impl Iterator<Item = Request<'_>> {
        let samples: &[Sample] = if self.is_long() { &[] } else { &self.samples };
        samples.iter().map(Request::Sample).chain(self.briefs.iter().map(Request::Brief))
    }

    /// Keeps a measured request: in a long run in short, and the first ones whole as well. Indexes count from the
    /// section's first.
    pub fn keep(&mut self, sample: Sample) {
        let is_first = sample.index.saturating_sub(self.header.first) < self.header.spec.journal.tokens;
        if self.header.whole > RAW_LIMIT {
            self.briefs.push(Brief::from(&sample));
            if !is_first {
                return;
            }
        }
        self.samples.push(sample);
    }

    /// How many measured requests are recorded.
    #[must_use]
    pub fn recorded(&self) -> u32 {
        u32::try_from(if self.is_long() { self.briefs.len() } else { self.samples.len() }).unwrap_or(u32::MAX)
    }

    /// Its sections, in order.
    #[must_use]
    pub fn sections(&self) -> Vec<Section> {
        if self.sections.is_empty() { vec![Section::of(self)] } else { self.sections.clone() }
    }

    /// How many measured requests were planned, those of both arms.
    #[must_use]
    pub fn planned(&self) -> u32 {
        match self.sections.is_empty() {
            true => self.header.planned,
            false => self.sections.iter().fold(0, |sum, section| sum.saturating_add(section.planned)),
        }
    }
}
