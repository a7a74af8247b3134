//! What running a gate against an unchanged target says of the gate itself.

use serde::{Deserialize, Serialize};

use crate::{Check, Noise, Quantity};

/// What A/A runs say of a gate.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// The gate's name.
    pub name: String,
    /// Runs that could be judged.
    pub runs: u32,
    /// Runs that could not, and are left out.
    #[serde(default)]
    pub left_out: u32,
    /// How often the gate would have been red for nothing.
    pub false_alarms: FalseAlarms,
    /// Each check, in the spec's order.
    pub checks: Vec<CheckCalibration>,
    /// The noise from run to run of each metric, to be kept beside the baselines.
    pub noise: Noise,
}

/// How often a gate is red, or warns, while nothing changed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct FalseAlarms {
    /// Runs in which it was red.
    pub red: u32,
    /// Further runs in which it warned that something is not proven.
    pub warned: u32,
    /// Of how many.
    pub of: u32,
    /// One-sided 95 % lower bound of the share that is red (Clopper–Pearson).
    pub lower: f64,
    /// One-sided 95 % upper bound of it.
    pub upper: f64,
}

/// What A/A runs say of one check.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CheckCalibration {
    /// The check.
    pub check: Check,
    /// Runs in which it was violated.
    pub red: u32,
    /// Further runs in which it was seen over its bound.
    pub over: u32,
    /// What was seen in each run that has a value, in the order of the runs.
    pub seen: Vec<Quantity>,
    /// The standard deviation of the metric's logarithm from run to run, sampling error out; absent of shares and
    /// counts, and where a run saw zero.
    pub noise: Option<f64>,
    /// The smallest worsening from what was seen that this check finds with 80 % power, as a share of it (`.2` for
    /// 20 % worse); absent where none is found or none can be told.
    pub detects: Option<f64>,
    /// A fixed bound that the runs keep with the headroom a quiet gate needs; absent where none can be told.
    pub limit: Option<Quantity>,
    /// A tolerance against stored runs that the noise lets be seen, as a share; absent where none can be told.
    pub tolerance: Option<f64>,
}
