//! What a plan costs at most.

use gate_model::{Plan, PlannedRequest};

/// The worst case of a plan, both arms together: every request sent, every answer as long as it may be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Measured requests.
    pub requests: u64,
    /// Warm-up requests.
    pub warmup: u64,
    /// Input tokens as planned, warm-up included. The server counts by its own tokenizer; its template and
    /// `prompts.system` come on top.
    pub input_tokens: u64,
    /// Output tokens at most, warm-up included.
    pub output_tokens: u64,
}

/// Adds up the worst case of a plan.
#[must_use]
pub fn totals(plan: &Plan) -> Totals {
    let sum = |tokens: fn(&PlannedRequest) -> u32| {
        plan.warmup.iter().chain(&plan.requests).map(|request| u64::from(tokens(request))).sum()
    };
    Totals {
        requests: plan.requests.len() as u64,
        warmup: plan.warmup.len() as u64,
        input_tokens: sum(|request| request.input_tokens),
        output_tokens: sum(|request| request.output_tokens),
    }
}
