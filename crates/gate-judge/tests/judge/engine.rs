//! The simulated engine against what it was before, and against itself.

use gate_engine::simulate;
use gate_model::{
    Against, Arm, CheckOutcome, EndReason, EngineParams, Latency, Nanos, Phase, Plan, PlannedRequest, Prior, Run,
    Status, Target, Verdict,
};

use crate::support::{SPACING, gate, kept, run};

const CHECKS: [&str; 4] = ["ttft.p95 < 800ms", "tpot.p50 < BASE + 15%", "ttft.p50 < BASE + 40%", "errors.rate < 5%"];

fn params(seed: u64, slower: f64) -> EngineParams {
    let usual = EngineParams::default();
    let mean = Nanos((usual.tpot.mean.0 as f64 * slower) as i64);
    EngineParams { seed, tpot: Latency { mean, ..usual.tpot }, ..usual }
}

/// 50 requests of 60 tokens to an engine, or as many pairs.
fn played(base: &str, target: &EngineParams, reference: Option<&EngineParams>) -> Run {
    let checks = CHECKS.map(|check| check.replace("BASE", base));
    let mut spec = gate(&checks.each_ref().map(String::as_str), &[]);
    spec.load.iterations = gate_model::Iterations::Range { first: 30, last: 50, extend: None };
    spec.reference = reference.map(|params| Target::new(gate_model::Endpoint::Sim(Box::new(params.clone()))));
    let arms = spec.arms();
    let request = |index: u32| PlannedRequest {
        index,
        arm: if index.is_multiple_of(arms) { Arm::Target } else { Arm::Reference },
        pair: (arms == 2).then_some(index / 2),
        at: Nanos(SPACING.0 * i64::from(index / arms)),
        input_tokens: 100,
        output_tokens: 60,
        ..PlannedRequest::default()
    };
    let plan = Plan::new(&spec, vec![30, 50], (0..50 * arms).map(request).collect());
    simulate(target, reference, &plan, run(&spec, Vec::new(), EndReason::Completed).header)
}

fn is_slow_by_decode(verdict: &Verdict, against: Against) {
    assert_eq!((verdict.status, &verdict.checks[1].outcome), (Status::Violated, &CheckOutcome::Violated));
    let moved = verdict.moved.unwrap();
    assert_eq!((moved.phase, moved.against), (Phase::Decode, against));
    assert!(moved.to.0 as f64 > 1.3 * moved.from.0 as f64, "{moved:?}");
}

#[test]
fn twice_on_main_and_once_on_a_change() {
    let on_main = [1, 2].map(|seed| kept(played("baseline", &params(seed, 1.0), None)));
    let prior = Prior { baselines: on_main.to_vec(), ..Prior::default() };
    let verdict = |slower| gate_judge::judge(&played("baseline", &params(3, slower), None), &prior);
    let same = verdict(1.0);
    assert!(matches!(same.status, Status::Passed), "{:?}", same.findings);
    assert_eq!(same.moved, None);
    is_slow_by_decode(&verdict(1.4), Against::Baseline);
}

#[test]
fn side_by_side() {
    let verdict = |slower| {
        let run = played("reference", &params(3, slower), Some(&params(4, 1.0)));
        gate_judge::judge(&run, &Prior::default())
    };
    let same = verdict(1.0);
    assert!(matches!(same.status, Status::Passed), "{:?}", same.findings);
    is_slow_by_decode(&verdict(1.4), Against::Reference);
}
