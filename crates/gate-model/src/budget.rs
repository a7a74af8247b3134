//! What a run may use up, when it is given up, and what is kept of it.

use serde::{Deserialize, Serialize};

/// What a run may use up at most; checked before it against the plan's worst case, and kept during it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Budget {
    /// Requests, warm-up and both arms included.
    pub requests: Option<u64>,
    /// Input tokens.
    pub input_tokens: Option<u64>,
    /// Output tokens.
    pub output_tokens: Option<u64>,
    /// Dollars, by the spec's prices.
    pub cost: Option<f64>,
}

impl Budget {
    /// Whether anything is bounded.
    #[must_use]
    pub fn is_given(&self) -> bool {
        *self != Self::default()
    }
}

/// Prices in dollars per million tokens.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Prices {
    /// Of input tokens.
    pub input: f64,
    /// Of input tokens read from a cache; where absent they cost as much as others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_input: Option<f64>,
    /// Of output tokens, reasoning included.
    pub output: f64,
}

impl Prices {
    /// The cost of so many tokens, in dollars; cached ones are part of the input.
    #[must_use]
    pub fn cost(&self, input: u64, cached: u64, output: u64) -> f64 {
        let cached = cached.min(input);
        let of = |tokens: u64, price: f64| tokens as f64 * price / 1e6;
        of(input - cached, self.input) + of(cached, self.cached_input.unwrap_or(self.input)) + of(output, self.output)
    }
}

/// When a run is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Abort {
    /// After so many failures to connect one after another; 0: never.
    pub connection_failures: u32,
    /// Where a required check can no longer be kept, whatever is still to come.
    pub lost: bool,
}

impl Default for Abort {
    /// After five failures to connect, and where a required check is lost.
    fn default() -> Self {
        Self { connection_failures: 5, lost: true }
    }
}

/// What the journal keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalSpec {
    /// The requests, the first in send order, whose tokens' times are kept.
    pub tokens: u32,
    /// Whether the answers' texts are kept.
    pub keep_text: bool,
}

impl Default for JournalSpec {
    /// The times of the first 1,000 requests' tokens, and no text.
    fn default() -> Self {
        Self { tokens: 1_000, keep_text: false }
    }
}
