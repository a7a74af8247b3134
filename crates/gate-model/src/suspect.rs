//! Likely causes: what else changed together with the part of a request that moved.

use serde::{Deserialize, Serialize};

use crate::{Against, Phase, Quantity};

/// A likely cause of a check that is violated, or seen over its bound, with the evidence for it.
///
/// There is none without evidence: a number that changed by more than chance makes it change, in the direction that
/// explains the check.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Suspect {
    /// The scenario.
    pub scenario: u16,
    /// The part of a request that it lengthens.
    pub phase: Phase,
    /// What the numbers are compared with; absent where the run alone shows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub against: Option<Against>,
    /// What it is.
    pub cause: LikelyCause,
}

/// A number there and here.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Shift {
    /// In the baseline or the reference.
    pub from: Quantity,
    /// In this run.
    pub to: Quantity,
}

/// What makes requests slower than before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "is", rename_all = "snake_case")]
pub enum LikelyCause {
    /// The machine that sends was busy: it took requests up, or read answers, late.
    ClientBusy {
        /// The 95th percentile of how late requests were taken up.
        lag: Quantity,
        /// The 95th percentile of how late the thread that reads answers woke; absent where not measured.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        loop_delay: Option<Quantity>,
        /// The share of its CPU that was used; absent where not measured.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cpu: Option<Quantity>,
    },
    /// Answers have more tokens, so the same speed takes longer, and others wait for longer.
    LongerOutputs {
        /// Mean output tokens.
        tokens: Shift,
    },
    /// Prompts have more tokens to read.
    LongerPrompts {
        /// Mean input tokens.
        tokens: Shift,
    },
    /// Less of the prompts is found in the server's prefix cache.
    CacheLost {
        /// The share of input tokens read from the cache.
        cached: Shift,
    },
    /// Each token takes longer.
    DecodeSlower {
        /// Median TPOT.
        tpot: Shift,
    },
    /// More requests wait in the server for others: those that met few others are as fast as before, the more they met
    /// the slower they are.
    QueueGrew {
        /// Median wait for the first token of requests that met others.
        wait: Shift,
        /// The same of those that met the fewest.
        alone: Shift,
        /// The mean of the server's own count of waiting requests; absent where it was not read.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        waiting: Option<Shift>,
        /// Median wait for the first token in the first and in the last third of this run, where it rose from request to
        /// request: the load is more than the server can serve. Absent where it settled.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rising: Option<Shift>,
    },
    /// Prompts are read more slowly: the first token comes later also for requests that met few others.
    PrefillSlower {
        /// Median wait for the first token of the requests that met the fewest others.
        alone: Shift,
    },
    /// Connecting takes longer.
    SlowerConnect {
        /// Median time to connect.
        connect: Shift,
    },
}
