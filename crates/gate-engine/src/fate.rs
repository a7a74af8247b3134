//! How the engine ends a request, and which requests it happens to.

use gate_model::{Arm, EngineParams, Fault, Faults, ScriptedFault};
use serde::{Deserialize, Serialize};

/// How the engine ends a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fate {
    /// All tokens, a finish reason, the end.
    Complete,
    /// Status 401 at once.
    #[serde(rename = "http_401")]
    Http401,
    /// Status 429 at once.
    #[serde(rename = "http_429")]
    Http429,
    /// Status 500 at once.
    #[serde(rename = "http_500")]
    Http500,
    /// Some tokens, then an error event inside the 200 stream.
    StreamError,
    /// Some tokens, then silence on an open connection.
    Stall,
    /// Some tokens, then the connection is reset.
    Reset,
    /// Some tokens, then the stream is closed with neither end nor finish reason.
    Truncate,
    /// A finish reason and the end, without a token.
    Empty,
    /// An HTML page with status 200 at once.
    #[serde(rename = "html_200")]
    Html200,
    /// Status and headers come late, and so does everything; then all goes on as in [`Fate::Complete`].
    SlowHeaders,
    /// The engine died before or while it served this request. [`crate::script`] never says so: dying depends on
    /// the other requests.
    Dead,
}

impl Fate {
    /// Whether the answer comes at once and whole, before the engine has anything to do: it takes no slot.
    #[must_use]
    pub fn is_at_once(self) -> bool {
        matches!(self, Self::Http401 | Self::Http429 | Self::Http500 | Self::Html200)
    }
}

impl From<Fault> for Fate {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Http401 => Self::Http401,
            Fault::Http429 => Self::Http429,
            Fault::Http500 => Self::Http500,
            Fault::StreamError => Self::StreamError,
            Fault::Stall => Self::Stall,
            Fault::Reset => Self::Reset,
            Fault::Truncate => Self::Truncate,
            Fault::Empty => Self::Empty,
            Fault::Html200 => Self::Html200,
            Fault::SlowHeaders => Self::SlowHeaders,
        }
    }
}

/// The parameters for an engine that counts this many warm-up requests among all its requests, where `params` count
/// measured ones only: the faults by script, and `dies_after`, come that much later.
#[must_use]
pub fn after_warmup(params: &EngineParams, warmup: u32) -> EngineParams {
    let later = |count: u32| count.saturating_add(warmup);
    let shifted = |fault: &ScriptedFault| ScriptedFault { from: later(fault.from), to: later(fault.to), ..*fault };
    EngineParams {
        script: params.script.iter().map(shifted).collect(),
        dies_after: params.dies_after.map(later),
        ..params.clone()
    }
}

/// The parameters of an arm's engine: the reference's has other randomness, so that two engines of one seed do not make
/// equal draws for the two requests of a pair.
#[must_use]
pub fn of_arm(params: &EngineParams, arm: Arm) -> EngineParams {
    let seed = match arm {
        Arm::Target => params.seed,
        Arm::Reference => params.seed ^ u64::from_be_bytes(*b"referenc"),
    };
    EngineParams { seed, ..params.clone() }
}

/// The fate of the `number`-th request, from 0: the first scripted fault that fits it, else what a uniform number in
/// 0..1 means.
pub(crate) fn fate(params: &EngineParams, number: u32, uniform: f64) -> Fate {
    let place = number.saturating_add(1);
    let scripted = params.script.iter().find(|scripted| (scripted.from..=scripted.to).contains(&place));
    let fault = scripted.map(|scripted| scripted.fault).or_else(|| drawn(&params.faults, uniform));
    fault.map_or(Fate::Complete, Fate::from)
}

fn drawn(faults: &Faults, uniform: f64) -> Option<Fault> {
    let mut below = 0.0;
    Fault::ALL.into_iter().find(|fault| {
        below += faults.rate(*fault);
        uniform < below
    })
}
