//! The nouns and units of `gate`: what a spec asks, what a plan sends, what a run saw, what a verdict says.
//!
//! Every type here is plain, serialisable data; nothing in this crate reads a file, a clock, a socket, the
//! environment or a source of randomness. Each file format carries a schema version: [`RUN_SCHEMA`],
//! [`PLAN_SCHEMA`], [`VERDICT_SCHEMA`], [`BASELINE_SCHEMA`], and [`DEFINITIONS`] for the meaning of the metrics.
//!
//! Times are [`Nanos`]: durations, or points relative to the run's epoch, which is the instant the first
//! measured request is due.

mod api;
mod baseline;
mod brief;
mod budget;
mod calibration;
mod check;
mod diagnostic;
mod engine;
mod evidence;
mod exit;
mod facts;
mod finding;
mod float;
mod histogram;
mod journal;
mod load;
mod metric;
mod outcome;
mod percentile;
mod plan;
mod prompts;
mod quantity;
mod referee;
mod run;
mod sample;
mod scenario;
mod secret;
mod section;
mod series;
mod server;
mod spec;
mod spread;
mod suspect;
mod target;
mod verdict;

pub use api::{Api, Custom, CustomFraming};
pub use baseline::{
    BASELINE_SCHEMA, Baseline, BaselineFrom, BaselineKey, BaselineRef, BaselineSpec, BaselineStore, BaselineUse,
    Commit, Difference, NoBaseline, Noise, PassedOver, Prior,
};
pub use brief::{Brief, RAW_LIMIT, Request};
pub use budget::{Abort, Budget, JournalSpec, Prices};
pub use calibration::{Calibration, CheckCalibration, FalseAlarms};
pub use check::{Against, Bound, Check, Decide, Importance, Op, Origin, Relative, Waiver};
pub use diagnostic::{Diagnostic, Place, Severity, Snippet};
pub use engine::{Drift, EngineParams, Fault, Faults, Latency, PrefixCache, Scaling, ScriptedFault, Shape, WarmingUp};
pub use evidence::{Comparison, Evidence, Moved, PatternFacts, Phase, Power, Rule, Shared, With};
pub use exit::ExitCode;
pub use facts::{PatternFound, PromptFacts, ReferenceFacts, RunFacts, ScenarioFacts, ServerFacts, TtftBy};
pub use finding::{Finding, SpecChange};
pub use histogram::Histogram;
pub use journal::{JournalError, JournalReader, LastLine};
pub use load::{Arrivals, Clock, Connections, Http, Iterations, Load, Pace, Pattern, Stage};
pub use metric::{Aggregate, Direction, Drifting, ErrorKind, Metric, MetricError, PerRun, Scalar, ServerAggregate};
pub use outcome::Outcome;
pub use percentile::{Percentile, PercentileError};
pub use plan::{Arm, PLAN_SCHEMA, Plan, PlannedRequest, Shard};
pub use prompts::{Cache, Length, OutputLength, PromptFormat, PromptSpec, SharedPrefix, TokenPolicy, Turns};
pub use quantity::{Nanos, PerSecond, Quantity, QuantityError, Unit};
pub use referee::{CountTokens, Decision, Image, Message, Prompt, Prompts, Referee, Role};
pub use run::{
    DEFINITIONS, EndReason, Footprint, Health, Host, HttpVersion, JournalLine, RUN_SCHEMA, Reached, ReferenceEnd, Run,
    RunEnd, RunHeader, Spent, Stamping,
};
pub use sample::{MOST_TOKEN_TIMES, Sample, TokenSource, Usage};
pub use scenario::{RunOrder, Scenario};
pub use secret::{REDACTED, Redactor, Secret};
pub use section::{AssembleError, Section};
pub use series::Series;
pub use server::{Scrape, ServerMetric};
pub use spec::{GateSpec, Outcomes, Override, Policy, Slo, Timeouts, is_gate_name};
pub use spread::Spread;
pub use suspect::{LikelyCause, Shift, Suspect};
pub use target::{
    AwsCredentials, Delivery, Endpoint, Header, MaxTokensField, Ready, ReadyPath, Roots, Target, Tls, UnixUrl,
};
pub use verdict::{
    Cause, CheckOutcome, CheckVerdict, Figure, JournalRef, Look, OutcomeCount, Side, Status, VERDICT_SCHEMA, Verdict,
};
