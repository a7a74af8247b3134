//! What a run could use up at most.

use gate_model::{Arm, GateSpec, Plan, PlannedRequest, Quantity, Unit};

use crate::error::PlanError;

/// The worst case of all sections, both arms and warm-up together: every request sent, and every answer as long as it
/// may be.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Totals {
    /// Requests, those of warm-up included.
    pub requests: u64,
    /// Input tokens as planned, the system prompt and the history of earlier turns included. The server counts by its
    /// own tokenizer; its template and images come on top.
    pub input_tokens: u64,
    /// Output tokens.
    pub output_tokens: u64,
    /// Dollars by the spec's prices, with nothing read from a cache; `None` without prices.
    pub cost: Option<f64>,
}

/// Adds up the worst case of a run's plans.
///
/// A later turn carries its whole history: every earlier message, and every earlier answer at its full length.
#[must_use]
pub fn totals(plans: &[Plan], spec: &GateSpec) -> Totals {
    let systems: Vec<u64> = (0..u16::try_from(spec.scenarios.len().max(1)).unwrap_or(u16::MAX))
        .map(|scenario| {
            spec.prompts_of(scenario).system.as_deref().map_or(0, |text| gate_tokens::estimate(text).into())
        })
        .collect();
    let system = |request: &PlannedRequest| systems.get(usize::from(request.scenario)).copied().unwrap_or(0);
    let mut totals = Totals::default();
    for plan in plans {
        // What each arm's conversation has come to so far.
        let mut history = [0_u64; 2];
        for request in plan.warmup.iter().chain(&plan.requests) {
            let [target, reference] = &mut history;
            let before = match request.arm {
                Arm::Target => target,
                Arm::Reference => reference,
            };
            if request.turn == 0 {
                *before = system(request);
            }
            let (input, output) = (*before + u64::from(request.input_tokens), u64::from(request.output_tokens));
            *before = input + output;
            totals.requests += 1;
            totals.input_tokens += input;
            totals.output_tokens += output;
        }
    }
    totals.cost = spec.prices.map(|prices| prices.cost(totals.input_tokens, 0, totals.output_tokens));
    totals
}

/// Whether the worst case is within the spec's budget.
///
/// # Errors
///
/// [`PlanError::OverBudget`] for the first bound that it exceeds, and [`PlanError::NoPrices`] where dollars are bounded
/// and tokens have no price.
pub fn over_budget(spec: &GateSpec, totals: &Totals) -> Result<(), PlanError> {
    let budget = &spec.budget;
    let counted = |key: &'static str, most: Option<u64>, worst: u64, instead: &'static str| match most {
        Some(most) if worst > most => {
            let (budget, worst) = (Quantity::count(most as f64), Quantity::count(worst as f64));
            Err(PlanError::OverBudget { key, budget, worst, instead })
        }
        _ => Ok(()),
    };
    counted(
        "budget.requests",
        budget.requests,
        totals.requests,
        "`load.iterations`, `load.extend` or `load.warmup`, or the schedule of `load.pattern`",
    )?;
    counted(
        "budget.input_tokens",
        budget.input_tokens,
        totals.input_tokens,
        "`prompts.input_tokens`, `prompts.turns`, or the number of requests",
    )?;
    counted(
        "budget.output_tokens",
        budget.output_tokens,
        totals.output_tokens,
        "`prompts.output_tokens`, or the number of requests",
    )?;
    let Some(most) = budget.cost else { return Ok(()) };
    let worst = totals.cost.ok_or(PlanError::NoPrices)?;
    if worst <= most {
        return Ok(());
    }
    let dollars = |value: f64| Quantity { value, unit: Unit::Dollars };
    Err(PlanError::OverBudget {
        key: "budget.cost",
        budget: dollars(most),
        worst: dollars(worst),
        instead: "`prompts.input_tokens`, `prompts.output_tokens`, or the number of requests",
    })
}
