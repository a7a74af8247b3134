//! Everything that was asked.

use gate_model::{Nanos, PerSecond};

use crate::{Endpoint, Kind, Workload};

/// What users are owed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sla {
    /// The 95th percentile of the time to the first token.
    pub ttft: Nanos,
    /// The 95th percentile of the time of a token after it.
    pub tpot: Nanos,
    /// The share of requests that may fail.
    pub errors: f64,
    /// Requests a second, as usual.
    pub rps: PerSecond,
}

impl Sla {
    /// What such work is often owed.
    #[must_use]
    pub fn usual(kind: Kind) -> Self {
        let (ttft, tpot, rps) = match kind {
            Kind::Chat => (800, 50, 2.0),
            Kind::Code => (400, 30, 4.0),
            Kind::Rag => (1_500, 50, 1.0),
            Kind::Batch => (10_000, 200, 1.0),
        };
        Self { ttft: Nanos::from_millis(ttft), tpot: Nanos::from_millis(tpot), errors: 0.05, rps: PerSecond(rps) }
    }
}

/// The forge whose CI runs the gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forge {
    /// GitHub Actions.
    GitHub,
    /// GitLab CI.
    GitLab,
}

/// Dollars per million tokens.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prices {
    /// Input tokens.
    pub input: f64,
    /// Output tokens.
    pub output: f64,
}

/// What the files are made from.
#[derive(Clone, Debug, PartialEq)]
pub struct Answers {
    /// The gate's name: one of [`gate_model::is_gate_name`].
    pub name: String,
    /// What is measured.
    pub endpoint: Endpoint,
    /// What is sent.
    pub workload: Workload,
    /// What users are owed.
    pub sla: Sla,
    /// Whose CI runs it; absent where none does.
    pub forge: Option<Forge>,
    /// What tokens cost.
    pub prices: Option<Prices>,
    /// How often the gate of pull requests runs in a month.
    pub runs_a_month: u32,
}
