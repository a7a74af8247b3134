//! What a whole run used up, and what that cost.

use gate_model::{Cause, Metric, Prices, Request, Run, Scalar, Spent, TokenSource, Usage};

/// What all requests of a run used up: of all scenarios, of both arms, and of warm-up.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Bill {
    /// What they used up.
    pub(crate) spent: Spent,
    prices: Option<Prices>,
}

impl Bill {
    /// As the run itself counted or, where it did not, as its requests say.
    pub(crate) fn of(run: &Run) -> Self {
        let spent = run.end.as_ref().and_then(|end| end.spent);
        Self { spent: spent.unwrap_or_else(|| counted(run)), prices: run.header.spec.prices }
    }

    /// What it cost in dollars; `None` without prices.
    pub(crate) fn cost(&self) -> Option<f64> {
        let Spent { input, cached, output, .. } = self.spent;
        self.prices.map(|prices| prices.cost(input, cached, output))
    }

    /// Input and output tokens.
    pub(crate) fn tokens(&self) -> f64 {
        self.spent.input as f64 + self.spent.output as f64
    }

    /// Why its sums are too small, where they are.
    pub(crate) fn uncounted(&self) -> Option<Cause> {
        let requests = self.spent.uncounted;
        (requests > 0).then_some(Cause::Uncounted { requests })
    }
}

/// Whether a metric is of what the whole run used up.
pub(crate) fn is_of_bill(metric: Metric) -> bool {
    matches!(metric, Metric::Scalar(Scalar::Cost | Scalar::TokensSpent))
}

/// What the requests say that were sent.
fn counted(run: &Run) -> Spent {
    let generates = run.header.spec.target.api.generates();
    let all = run.warmup.iter().map(Request::Sample).chain(run.requests());
    all.filter(|one| one.sent().is_some()).fold(Spent::default(), |sum, one| sum.plus(of_request(one, generates)))
}

fn of_request(request: Request<'_>, generates: bool) -> Spent {
    let Usage { input, cached, output, .. } = usage(request);
    // A request that failed before its first token is not known to have cost anything.
    let is_answered = request.outcome() == gate_model::Outcome::Ok || request.first_token().is_some();
    let is_counted = input.is_some() && (output.is_some() || !generates);
    Spent {
        requests: 1,
        input: input.unwrap_or(0),
        cached: cached.unwrap_or(0),
        output: output.unwrap_or(0),
        uncounted: u64::from(is_answered && !is_counted),
    }
}

/// What the server counted.
fn usage(request: Request<'_>) -> Usage {
    if let Request::Sample(sample) = request {
        return sample.usage.unwrap_or_default();
    }
    let of = |series| request.value(series).map(|tokens| tokens as u64);
    Usage {
        input: of(gate_model::Series::InputTokens),
        cached: of(gate_model::Series::CachedTokens),
        reasoning: None,
        output: request.output_tokens().filter(|(_, source)| *source == TokenSource::Usage).map(|(tokens, _)| tokens),
    }
}
