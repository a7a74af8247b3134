//! What a check rests on: its rule, what the rule saw, and what it could have found.

use serde::{Deserialize, Serialize};

use crate::{Against, Nanos, PerSecond, Quantity};

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
    /// A median or mean against the reference: Wilcoxon's signed ranks of the pairs' log ratios (PAIR).
    Paired,
    /// Any other percentile against the reference: exceedances of its order statistic, beta-binomial (EXC).
    PairedTail,
    /// A number against that of stored runs: Student's t with the noise from run to run (STORED).
    Stored,
    /// A high percentile against stored runs: exceedances of their pooled order statistic, with a margin for the noise
    /// from run to run (STORED-TAIL).
    StoredTail,
    /// A percentile or mean against a share of another scenario's: their order-statistic bounds (BOUNDS).
    Bounds,
    /// The rate past the capacity knee of a ramp: the change point of good requests (KNEE).
    Knee,
    /// The time to recover from a spike: the change point of slow requests (RECOVERY).
    Recovery,
    /// Growth per hour: Mann and Kendall's test on the medians of equal stretches of time (TREND).
    Trend,
}

/// What a pattern of load brought to light.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum PatternFacts {
    /// Of a ramp.
    Knee {
        /// When requests stopped being good; absent where they never did.
        at: Option<Nanos>,
        /// The rate that was sent then, which misses the capacity often; shown, never judged.
        onset: Option<PerSecond>,
        /// The share of requests after it that were not good.
        bad_after: Option<f64>,
        /// The rate that the ramp went to.
        to: PerSecond,
        /// Twice the gain in log-likelihood by the change point.
        likelihood: f64,
    },
    /// Of a spike.
    Recovery {
        /// Requests slower than this are slow: P95 of TTFT before the spike.
        slow: Nanos,
        /// The share of requests after the step that are slow.
        slow_after: Option<f64>,
        /// Whether TTFT came back within the run.
        settled: bool,
        /// Twice the gain in log-likelihood by the change point.
        likelihood: f64,
    },
    /// Of a soak.
    Drift {
        /// Growth per hour.
        per_hour: f64,
        /// Stretches of time compared.
        bins: u32,
        /// The standardised statistic of Mann and Kendall's test against no growth, with Hamed and Rao's variance.
        z: f64,
    },
}

/// What a check's rule saw.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// Requests it rests on.
    ///
    /// Of rules that test a number and count nothing (MEAN, CLUSTER, STORED), `k` and `allowed` are 0.
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
    /// What it was compared with, for relative bounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comparison: Option<Comparison>,
    /// What the pattern of load brought to light, for the rules that look for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pattern: Option<PatternFacts>,
    /// What the level is a part of; absent where nothing was tested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared: Option<Shared>,
}

/// An error probability that checks share.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Shared {
    /// All of it: 5 %, or one less the check's own `confidence`.
    pub alpha: f64,
    /// The checks that it was divided among when this one was decided: all of its family, less those that were found
    /// violated before it.
    pub checks: u32,
    /// The looks that a check's part is spent over: 1 where it is asked once.
    pub looks: u32,
}

/// What a number was compared with, and what came of it.
///
/// Rates (`throughput.*`, `goodput`) against stored runs are over the first requests of each run, as many as all of
/// them have: base, change and `seen` alike.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// With what.
    pub with: With,
    /// What the same metric is there, by the rule's own estimate; absent where it has no value.
    pub base: Option<Quantity>,
    /// What the bound comes to on that base.
    pub limit: Option<Quantity>,
    /// The change that is allowed, as a share of the base; absent where that is zero, and of shares.
    pub tolerance: Option<f64>,
    /// The change seen, as a share of the base (`.1` for 10 % more), by the rule's own estimate; of shares, in points.
    /// Absent where the base is zero.
    pub change: Option<f64>,
    /// One-sided 95 % lower bound of the change; absent where none is claimed.
    pub lower: Option<f64>,
    /// One-sided 95 % upper bound of the change; absent where none is claimed.
    pub upper: Option<f64>,
    /// Requests, or pairs, of the base.
    pub n: u32,
    /// Pairs that were dropped since an arm has no value in them.
    #[serde(default)]
    pub dropped: u32,
    /// The test's own number, larger the worse it looks, whichever way the bound: W of the signed ranks, t of Student's.
    ///
    /// Where more is worse, W is the sum of the ranks of pairs over the tolerance less that of pairs within it, and
    /// t = (ln(this) − mean of ln(stored) − ln(1 + tolerance)) ÷ deviation. Where less is worse, the sign is turned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub statistic: Option<f64>,
    /// What the statistic is divided by, its standard deviation if the bound holds exactly: √V of the signed ranks, design
    /// effect and all; of Student's t, s√(1 + 1/N), by which it is divided already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deviation: Option<f64>,
    /// Degrees of freedom, of Student's t.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub freedom: Option<f64>,
    /// The value whose exceedances were counted, of tail rules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<Quantity>,
    /// The standard deviation of the metric's logarithm from run to run that was reckoned with (`s`, of tails `τ`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise: Option<f64>,
    /// The smallest change that is found with 80 % power, as a share of the base.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detects: Option<f64>,
}

/// What a number is compared with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum With {
    /// So many stored runs.
    Baseline {
        /// How many.
        runs: u32,
    },
    /// The run's reference.
    Reference,
    /// Another scenario of the run.
    Scenario(String),
}

/// A part of a request's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// From when it was due to when it had its connection: the client's lateness, a cap's wait, connecting.
    Connect,
    /// From there to the first token: the request's way, queueing, prefill.
    FirstToken,
    /// From the first token to the last: decode.
    Decode,
}

/// The part of a request that moved most.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Moved {
    /// Which.
    pub phase: Phase,
    /// Since what.
    pub against: Against,
    /// Its median there; of decode, per token.
    pub from: Nanos,
    /// Its median here; of decode, per token.
    pub to: Nanos,
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
