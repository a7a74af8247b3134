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
mod calibration;
mod check;
mod diagnostic;
mod engine;
mod evidence;
mod exit;
mod finding;
mod float;
mod histogram;
mod journal;
mod metric;
mod outcome;
mod percentile;
mod plan;
mod quantity;
mod referee;
mod run;
mod sample;
mod secret;
mod series;
mod spec;
mod target;
mod verdict;

pub use api::{Api, Custom, CustomFraming};
pub use baseline::{
    BASELINE_SCHEMA, Baseline, BaselineFrom, BaselineKey, BaselineRef, BaselineSpec, BaselineStore, BaselineUse,
    Commit, Difference, NoBaseline, Noise, PassedOver, Prior,
};
pub use calibration::{Calibration, CheckCalibration, FalseAlarms};
pub use check::{Against, Bound, Check, Decide, Importance, Op, Origin, Relative, Waiver};
pub use diagnostic::{Diagnostic, Place, Severity, Snippet};
pub use engine::{EngineParams, Fault, Faults, Latency, ScriptedFault, Shape, WarmingUp};
pub use evidence::{Comparison, Evidence, Moved, Phase, Power, Rule, Shared, With};
pub use exit::ExitCode;
pub use finding::{Finding, SpecChange};
pub use histogram::Histogram;
pub use journal::JournalError;
pub use metric::{Aggregate, Direction, ErrorKind, Metric, MetricError, Scalar};
pub use outcome::Outcome;
pub use percentile::{Percentile, PercentileError};
pub use plan::{Arm, PLAN_SCHEMA, Plan, PlannedRequest};
pub use quantity::{Nanos, PerSecond, Quantity, QuantityError, Unit};
pub use referee::{CountTokens, Decision, Message, Prompt, Prompts, Referee, Role};
pub use run::{
    DEFINITIONS, EndReason, Health, Host, HttpVersion, JournalLine, RUN_SCHEMA, Reached, ReferenceEnd, Run, RunEnd,
    RunHeader, Stamping,
};
pub use sample::{MOST_TOKEN_TIMES, Sample, TokenSource, Usage, WITH_TOKEN_TIMES};
pub use secret::{REDACTED, Redactor, Secret};
pub use series::Series;
pub use spec::{
    Arrivals, Cache, Clock, Connections, GateSpec, Http, Iterations, Length, Load, Outcomes, OutputLength, Override,
    Pace, Policy, PromptSpec, Slo, Timeouts, TokenPolicy, is_gate_name,
};
pub use target::{
    AwsCredentials, Delivery, Endpoint, Header, MaxTokensField, Ready, ReadyPath, Roots, Target, Tls, UnixUrl,
};
pub use verdict::{
    Cause, CheckOutcome, CheckVerdict, Figure, JournalRef, Look, OutcomeCount, ReferenceFacts, RunFacts, Side, Status,
    VERDICT_SCHEMA, Verdict,
};
