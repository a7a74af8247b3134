use gate_model::{Endpoint, GateSpec, Iterations, Length, Prices, Shape, SharedPrefix, Target, Turns};
use gate_plan::{Extent, Totals, over_budget, totals};

use crate::support::{mixed, spec};

fn constant(tokens: u32) -> Length {
    Length { mean: tokens.into(), stddev: 0.0, min: 1, max: 1000, shape: Shape::Normal }
}

fn worst(spec: &GateSpec) -> Totals {
    totals(&gate_plan::plans(spec, Extent::Base, &[]).unwrap(), spec)
}

#[test]
fn a_later_turn_carries_everything_before_it() {
    let mut spec = spec(0);
    (spec.prompts.input_tokens, spec.prompts.output_tokens) = (constant(100), constant(30));
    (spec.load.iterations, spec.load.warmup) = (Iterations::Fixed(6), 2);
    spec.prompts.turns = Turns { min: 3, max: 3 };
    // Of a conversation: 100, 100 + 30 + 100, and 230 + 30 + 100.
    let conversation = 100 + 230 + 360;
    let alone = worst(&spec);
    let expected = Totals { requests: 8, input_tokens: 2 * conversation + 200, output_tokens: 240, cost: None };
    assert_eq!(alone, expected);
    // A system prompt of three tokens comes with each request, a shared prefix is part of the first turn.
    spec.prompts.system = Some("You are terse".to_owned());
    spec.prompts.shared_prefix = Some(SharedPrefix { tokens: 50, groups: 1 });
    assert_eq!(worst(&spec).input_tokens, expected.input_tokens + 8 * 3);
    spec.reference = Some(Target::new(Endpoint::Url("http://127.0.0.1:9000/v1".to_owned())));
    spec.prices = Some(Prices { input: 2.0, cached_input: Some(1.0), output: 10.0 });
    let both = worst(&spec);
    assert_eq!((both.requests, both.input_tokens, both.output_tokens), (16, 2 * (expected.input_tokens + 24), 480));
    let dollars = (both.input_tokens as f64 * 2.0 + 4_800.0) / 1e6;
    assert!((both.cost.unwrap() - dollars).abs() < 1e-12);
}

#[test]
fn all_sections_count() {
    let one = worst(&mixed(0, &[1.0]));
    let two = worst(&mixed(0, &[1.0, 1.0]));
    assert_eq!((one.requests, two.requests), (55, 110));
    assert!(two.output_tokens > one.output_tokens);
}

#[test]
fn a_budget_that_could_be_overspent_is_named() {
    let mut spec = spec(0);
    let totals = Totals { requests: 55, input_tokens: 30_000, output_tokens: 8_000, cost: Some(0.5) };
    assert_eq!(over_budget(&spec, &totals), Ok(()));
    let fails = |spec: &GateSpec, totals: &Totals| over_budget(spec, totals).unwrap_err().to_string();
    spec.budget.cost = Some(0.4);
    assert_eq!(
        fails(&spec, &totals),
        "`budget.cost` is $0.4, and the plan could use $0.5 at worst: raise it, or lower `prompts.input_tokens`, \
         `prompts.output_tokens`, or the number of requests"
    );
    assert_eq!(
        fails(&spec, &Totals { cost: None, ..totals }),
        "`budget.cost` is given, and what tokens cost is not: give `prices.input` and `prices.output`"
    );
    spec.budget.output_tokens = Some(7_999);
    assert!(
        fails(&spec, &totals).starts_with("`budget.output_tokens` is 7,999, and the plan could use 8,000 at worst")
    );
    spec.budget.input_tokens = Some(29_999);
    assert!(fails(&spec, &totals).starts_with("`budget.input_tokens` is 29,999, and the plan could use 30,000 at"));
    spec.budget.requests = Some(54);
    assert!(fails(&spec, &totals).starts_with("`budget.requests` is 54, and the plan could use 55 at worst: raise it"));
    spec.budget = gate_model::Budget {
        requests: Some(55),
        input_tokens: Some(30_000),
        output_tokens: Some(8_000),
        cost: Some(0.5),
    };
    assert_eq!(over_budget(&spec, &totals), Ok(()));
}
