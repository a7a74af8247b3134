use std::collections::HashSet;

use gate_model::{Endpoint, GateSpec, Iterations, Plan, PlannedRequest, Prompts, RunOrder, Target, Turns};
use gate_plan::{Extent, SpecPrompts};

use crate::support::{mixed, plan, spec};

fn plans(spec: &GateSpec) -> Vec<Plan> {
    gate_plan::plans(spec, Extent::Extended, &[]).unwrap()
}

#[test]
fn in_turn_each_scenario_has_its_own_plan_and_indexes_run_through() {
    let mut spec = mixed(9, &[1.0, 1.0, 1.0]);
    spec.scenarios[1].load.iterations = Iterations::Fixed(7);
    spec.reference = Some(Target::new(Endpoint::Url("http://127.0.0.1:9000/v1".to_owned())));
    let plans = plans(&spec);
    assert_eq!(plans.iter().map(|plan| plan.requests.len()).collect::<Vec<_>>(), [200, 14, 200]);
    assert_eq!(
        plans.iter().map(|plan| (plan.first, plan.whole)).collect::<Vec<_>>(),
        [(0, 200), (200, 14), (214, 200)]
    );
    assert_eq!(
        plans.iter().map(|plan| plan.looks.clone()).collect::<Vec<_>>(),
        [vec![30, 50, 100], vec![7], vec![30, 50, 100]]
    );
    let indexes: Vec<u32> = plans.iter().flat_map(|plan| plan.requests.iter().map(|r| r.index)).collect();
    assert_eq!(indexes, (0..414).collect::<Vec<_>>());
    assert!(plans.iter().flat_map(|plan| &plan.requests).all(|r| r.pair == Some(r.index / 2)));
    for (scenario, plan) in (0..).zip(&plans) {
        assert_eq!(plan.section, scenario);
        assert!(plan.by_scenario.is_empty());
        assert!(plan.requests.iter().chain(&plan.warmup).all(|request| request.scenario == scenario));
        assert_eq!(plan.warmup.len(), 10);
        let conversations: Vec<u32> = plan.requests.iter().step_by(2).map(PlannedRequest::conversation).collect();
        assert_eq!(conversations, (0..plan.whole / 2).collect::<Vec<_>>());
    }
    assert_eq!(plans.iter().map(|plan| plan.digest.clone()).collect::<HashSet<_>>().len(), 3);
    // Scenarios of one seed do not copy each other.
    assert_ne!(plans[0].requests[10].input_tokens, plans[2].requests[10].input_tokens);
}

#[test]
fn the_first_scenario_draws_as_a_gate_without_any() {
    let alone = plan(&spec(9));
    for order in [RunOrder::InTurn, RunOrder::Together] {
        let mut spec = mixed(9, &[1.0]);
        spec.order = order;
        assert_eq!(plans(&spec)[0].requests, alone.requests);
    }
}

#[test]
fn a_later_scenario_says_the_same_however_long_an_earlier_one_is() {
    let long = mixed(9, &[1.0, 1.0]);
    let mut short = long.clone();
    short.scenarios[0].load.iterations = Iterations::Fixed(3);
    let said = |spec: &GateSpec| -> Vec<String> {
        let prompts = SpecPrompts::new(spec, "run", &[]);
        let plan = plans(spec).remove(1);
        let text = |request| prompts.measured(request, &[]).messages[0].text.split_once('\n').unwrap().1.to_owned();
        plan.requests.iter().map(text).collect()
    };
    assert_eq!(said(&long), said(&short));
}

#[test]
fn together_counts_follow_the_weights_and_the_rarest_decides() {
    for seed in 0..10 {
        for weights in [&[3.0, 1.0][..], &[1.0, 1.0, 1.0], &[0.95, 0.05]] {
            let mut spec = mixed(seed, weights);
            spec.order = RunOrder::Together;
            let plan = plans(&spec).remove(0);
            let shares: Vec<f64> = weights.iter().map(|weight| weight / weights.iter().sum::<f64>()).collect();
            assert_eq!(plan.by_scenario.len(), 3);
            for ((look, counts), least) in plan.looks.iter().zip(&plan.by_scenario).zip([30, 50, 100]) {
                let prefix = &plan.requests[..*look as usize];
                let of = |scenario| prefix.iter().filter(|r| usize::from(r.scenario) == scenario).count() as u32;
                assert_eq!(*counts, (0..weights.len()).map(of).collect::<Vec<_>>());
                // The last request was the one that the rarest still lacked.
                assert_eq!(*counts.iter().min().unwrap(), least);
                let last = usize::from(prefix.last().unwrap().scenario);
                assert_eq!(counts[last], least);
                for (count, share) in counts.iter().zip(&shares) {
                    let expected = share * f64::from(*look);
                    assert!((f64::from(*count) - expected).abs() < 6.0 + 0.1 * expected, "{weights:?}: {counts:?}");
                }
            }
            assert_eq!(plan.requests.len() as u32, *plan.looks.last().unwrap());
            assert_eq!(plan.warmup.len(), 5 * weights.len());
            for scenario in 0..weights.len() as u16 {
                let own = plan.requests.iter().filter(|request| request.scenario == scenario);
                assert!((0..).zip(own).all(|(number, request)| request.conversation() == number));
                let own = plan.warmup.iter().filter(|request| request.scenario == scenario);
                assert!((0..).zip(own).all(|(number, request)| request.conversation() == number));
            }
            // A run without the extension begins the same.
            let base = gate_plan::plans(&spec, Extent::Base, &[]).unwrap().remove(0);
            assert_eq!(
                (base.looks.as_slice(), &base.requests[..]),
                (&plan.looks[..2], &plan.requests[..base.requests.len()])
            );
        }
    }
}

#[test]
fn together_nobody_says_what_another_says_and_turns_stay_in_one_piece() {
    let mut spec = mixed(4, &[2.0, 1.0]);
    spec.order = RunOrder::Together;
    spec.scenarios[1].prompts.turns = Turns { min: 3, max: 3 };
    let plan = plans(&spec).remove(0);
    let prompts = SpecPrompts::new(&spec, "run", &[]);
    let mut openings = HashSet::new();
    let mut before: Option<PlannedRequest> = None;
    for request in &plan.requests {
        let answers = vec!["a".to_owned(); request.turn.into()];
        let messages = prompts.measured(request, &answers).messages;
        if request.turn == 0 {
            assert!(openings.insert(messages[0].text.clone()));
            assert!(gate_tokens::estimate(&messages[0].text).abs_diff(request.input_tokens) <= 1);
        } else {
            let before = before.unwrap();
            assert_eq!((before.scenario, before.turn + 1), (request.scenario, request.turn));
            assert!(openings.contains(&messages[0].text));
        }
        before = Some(*request);
    }
    let counts = plan.by_scenario.last().unwrap();
    assert!(counts.iter().min() == Some(&100) && counts[1] > counts[0], "{counts:?}");
    let warmup: HashSet<String> = plan.warmup.iter().map(|r| prompts.warmup(r).messages[0].text.clone()).collect();
    assert_eq!(warmup.len(), 10);
}

#[test]
fn fits_belong_to_the_scenarios_that_were_warmed_up() {
    let mut spec = mixed(4, &[1.0, 1.0]);
    spec.scenarios[1].model = Some("other".to_owned());
    let plans = plans(&spec);
    let prompts = SpecPrompts::new(&spec, "run", &[]);
    let estimates = || -> Vec<u32> {
        let first = plans.iter().map(|plan| &plan.requests[0]);
        first.map(|r| gate_tokens::estimate(&prompts.measured(r, &[]).messages[0].text)).collect()
    };
    let planned: Vec<u32> = plans.iter().map(|plan| plan.requests[0].input_tokens).collect();
    prompts.warmup(&plans[0].warmup[0]);
    prompts.fit(&[(400, 480), (800, 960)]);
    let now = estimates();
    assert!(now[0].abs_diff((f64::from(planned[0]) / 1.2).round() as u32) <= 2 && now[1].abs_diff(planned[1]) <= 1);
    prompts.warmup(&plans[1].warmup[0]);
    prompts.fit(&[(400, 600), (800, 1200)]);
    let then = estimates();
    assert!(then[0] == now[0] && then[1].abs_diff((f64::from(planned[1]) / 1.5).round() as u32) <= 2);
}

#[test]
fn what_is_wrong_in_a_scenario_names_it() {
    let mut spec = mixed(0, &[1.0, 1.0]);
    spec.scenarios[1].prompts.output_tokens.min = 600;
    let fails = |spec: &GateSpec| gate_plan::plans(spec, Extent::Base, &[]).unwrap_err().to_string();
    let words =
        "scenario `s1`: `prompts.output_tokens`: min 600 and max 500: `min` must be at least 1 and at most `max`";
    assert_eq!(fails(&spec), words);
    spec.order = RunOrder::Together;
    assert_eq!(fails(&spec), words);
    let mut spec = mixed(0, &[1.0, 0.0]);
    spec.order = RunOrder::Together;
    assert_eq!(fails(&spec), "scenario `s1` has `weight` 0: it must be above 0");
}
