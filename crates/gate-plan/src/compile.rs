//! A spec to its plan.

use gate_model::{Arm, Arrivals, GateSpec, Load, Nanos, PLAN_SCHEMA, Plan, PlannedRequest};

use crate::draw::{Draws, Purpose};
use crate::error::PlanError;
use crate::lengths::Truncated;

/// The most requests a plan holds, warm-up and measured each.
const MOST_REQUESTS: u32 = 1_000_000;

/// The most input tokens of a request: its text must fit in memory.
const MOST_INPUT_TOKENS: u32 = 10_000_000;

/// The latest a request may be due.
const LONGEST: Nanos = Nanos::from_secs(24 * 60 * 60);

/// Compiles a spec into its plan: every request, before any is sent.
///
/// `looks` are the sizes at which the run is judged, ascending; the last is the number of measured requests.
/// `gate check` gives all of [`gate_model::Iterations::looks`], `gate run` leaves out the extension. A request
/// depends on the spec and its own index alone, never on how many follow it, so the shorter plan is a prefix
/// of the longer one.
///
/// # Errors
///
/// [`PlanError`] where the spec's numbers allow no plan.
pub fn plan(spec: &GateSpec, looks: &[u32]) -> Result<Plan, PlanError> {
    let count = last_look(looks)?;
    at_most("load.iterations", count)?;
    at_most("load.warmup", spec.load.warmup)?;

    let seed = spec.load.seed;
    let inputs = Truncated::new("prompts.input_tokens", &spec.prompts.input_tokens)?;
    let outputs = Truncated::new("prompts.output_tokens", &spec.prompts.output_tokens)?;
    let warmup_lengths = inputs.draw(seed, Purpose::WarmupInputLengths, spec.load.warmup).zip(outputs.draw(
        seed,
        Purpose::WarmupOutputLengths,
        spec.load.warmup,
    ));
    let lengths =
        inputs.draw(seed, Purpose::InputLengths, count).zip(outputs.draw(seed, Purpose::OutputLengths, count));

    let plan = Plan {
        schema: PLAN_SCHEMA,
        seed,
        scenarios: vec![spec.name.clone()],
        looks: looks.to_vec(),
        warmup: (0..).zip(warmup_lengths).map(|(index, lengths)| request(index, Nanos::ZERO, lengths)).collect(),
        requests: (0..)
            .zip(arrivals(&spec.load, count)?)
            .zip(lengths)
            .map(|((index, at), lengths)| request(index, at, lengths))
            .collect(),
    };
    match plan.warmup.iter().chain(&plan.requests).find(|request| request.input_tokens > MOST_INPUT_TOKENS) {
        Some(&PlannedRequest { index, input_tokens: tokens, .. }) => {
            Err(PlanError::TooLarge { key: "prompts.input_tokens", index, tokens, limit: MOST_INPUT_TOKENS })
        }
        None => Ok(plan),
    }
}

fn request(index: u32, at: Nanos, (input_tokens, output_tokens): (u32, u32)) -> PlannedRequest {
    PlannedRequest { index, scenario: 0, arm: Arm::Target, pair: None, turn: 0, at, input_tokens, output_tokens }
}

fn last_look(looks: &[u32]) -> Result<u32, PlanError> {
    let ascending = looks.is_sorted_by(|earlier, later| earlier < later);
    match (looks.first(), looks.last()) {
        (Some(&first), Some(&last)) if first > 0 && ascending => Ok(last),
        _ => Err(PlanError::Looks { looks: looks.to_vec() }),
    }
}

fn at_most(key: &'static str, count: u32) -> Result<(), PlanError> {
    if count > MOST_REQUESTS {
        return Err(PlanError::TooMany { key, count, limit: MOST_REQUESTS });
    }
    Ok(())
}

/// When each request is due: the first at zero, then by exponential (Poisson arrivals) or equal gaps.
fn arrivals(load: &Load, count: u32) -> Result<Vec<Nanos>, PlanError> {
    let rate = load.rate.0;
    if !(rate.is_finite() && rate > 0.0) {
        return Err(PlanError::Rate { rate });
    }
    let mut draws = Draws::new(load.seed, Purpose::Gaps, 0);
    let mut at = Nanos::ZERO;
    (0..count)
        .map(|index| {
            if index > 0 {
                at = match load.arrivals {
                    // The inverse of the exponential distribution function; 1 - u is never 0.
                    Arrivals::Poisson => at + Nanos::from_secs_f64(-(1.0 - draws.unit()).ln() / rate),
                    // From the index, so that rounding doesn't add up.
                    Arrivals::Constant => Nanos::from_secs_f64(f64::from(index) / rate),
                };
            }
            if at > LONGEST { Err(PlanError::TooLong { index, at }) } else { Ok(at) }
        })
        .collect()
}
