//! The verdict: computed once, as one value; every report only renders it.

use serde::{Deserialize, Serialize};

use crate::{
    Arm, BaselineUse, Check, EndReason, Evidence, ExitCode, Finding, Importance, Metric, Moved, Nanos, NoBaseline,
    Outcome, Outcomes, Override, Power, Quantity, Rule, RunFacts, Spread, Suspect,
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
    /// The estimate keeps it, but runs differ so much among themselves that the check cannot see its own tolerance.
    Blind,
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
    /// The reference did not answer enough requests to be compared with.
    ReferenceTooFewOk {
        /// How many it answered; pairs both arms answered, where those are compared.
        ok: u32,
        /// How many are needed.
        needed: u32,
    },
    /// Answers are less than half as long as the baseline's or the reference's: other work was done.
    ShorterAnswers {
        /// Mean output tokens there.
        base: f64,
        /// Mean output tokens here.
        seen: f64,
    },
    /// The scenario that the bound is a share of is not in the run.
    NoScenario(String),
    /// The server's own metrics could not be read, or do not have this one.
    NotScraped {
        /// What was seen, in words; absent where it was read and the metric is not in it.
        message: Option<String>,
    },
    /// A pattern was too short, or had too few requests, for what is looked for in it.
    PatternTooShort {
        /// Which part of it: `before the spike`, `of the ramp`.
        phase: String,
        /// Requests, or stretches of time, there were.
        seen: u32,
        /// How many are needed.
        needed: u32,
    },
    /// The server did not count the tokens of some requests, so what they cost is not known.
    Uncounted {
        /// How many requests.
        requests: u64,
    },
    /// A run of this length keeps no times between tokens.
    NotKept,
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
    /// There is nothing to compare with.
    NoBaseline {
        /// Why.
        why: NoBaseline,
    },
    /// It is waived: nothing follows from it.
    Waived {
        /// What became of it otherwise.
        otherwise: Box<CheckOutcome>,
    },
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
    /// What each look saw, the deciding one last; empty for rules without a test, and where there was one look only.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub looks: Vec<Look>,
}

/// What a rule saw at one look.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Look {
    /// The look: the requests of each arm it scores.
    pub at: u32,
    /// Requests or pairs the check rests on there.
    pub n: u32,
    /// Of them beyond the bound.
    pub k: u32,
    /// The probability of as much beyond it or more if it holds exactly; absent where the rule was not asked.
    pub p_fail: Option<f64>,
    /// The level that `p_fail` was compared with.
    pub level: Option<f64>,
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

/// A number of the run that is shown whether or not a check names it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// The scenario.
    pub scenario: u16,
    /// The arm.
    #[serde(default)]
    pub arm: Arm,
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
    /// Whether the run is one to compare later ones with: its load was sent as planned, by a client that kept up, and
    /// was answered.
    #[serde(default)]
    pub valid: bool,
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
    /// Which stored runs it was compared with; absent where no check asks for any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<BaselineUse>,
    /// The part of a request that moved most since the baseline or the reference, where a check against it is broken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved: Option<Moved>,
    /// Likely causes of what is violated or seen over its bound, the one that explains most first; empty without evidence
    /// for any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suspects: Vec<Suspect>,
    /// How the main series are distributed here and in what they are compared with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub spreads: Vec<Spread>,
    /// What flags changed.
    pub overrides: Vec<Override>,
    /// The journals it rests on.
    pub journals: Vec<JournalRef>,
}

impl Verdict {
    /// The first kind of its parts of which there are more than so many, and how many: a file from outside may have any
    /// number, and every one of them takes its place in every report.
    #[must_use]
    pub fn crowd(&self, most: usize) -> Option<(&'static str, usize)> {
        let quantiles = self.spreads.iter().map(|spread| spread.quantiles.len()).sum::<usize>() / Spread::MOST;
        let parts = [
            ("checks", self.checks.len()),
            ("findings", self.findings.len()),
            ("figures", self.figures.len()),
            ("scenarios", self.run.scenarios.len()),
            ("suspects", self.suspects.len()),
            ("spreads", self.spreads.len().max(quantiles)),
            ("overrides", self.overrides.len()),
            ("journals", self.journals.len()),
        ];
        parts.into_iter().find(|(_, count)| *count > most)
    }

    /// Whether its exit code is one that its status may have, and its status one that its checks may have: a file from
    /// outside may claim anything.
    #[must_use]
    pub fn is_consistent(&self) -> bool {
        let is_broken = |check: &CheckVerdict| {
            check.check.importance == Importance::Required && check.outcome == CheckOutcome::Violated
        };
        let is_broken = self.checks.iter().any(is_broken);
        match (self.status, self.exit) {
            (Status::Passed | Status::PassedWithWarnings, exit) => {
                let is_required = |check: &CheckVerdict| check.check.importance == Importance::Required;
                exit == ExitCode::Passed && !is_broken && self.checks.iter().any(is_required)
            }
            (Status::Violated, ExitCode::Passed) => is_broken && self.report_only,
            (Status::Violated, exit) => is_broken && exit == ExitCode::Violated,
            (Status::CouldNotMeasure, exit) => matches!(exit, ExitCode::Passed | ExitCode::CouldNotMeasure),
            (Status::Inconclusive, ExitCode::Passed) => self.report_only,
            (Status::Inconclusive, exit) => exit == ExitCode::Inconclusive,
            (Status::Interrupted, exit) => exit == ExitCode::Interrupted,
        }
    }
}
