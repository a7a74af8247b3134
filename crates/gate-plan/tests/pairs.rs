//! Plans of two arms, and what is said in their pairs.

#[cfg(test)]
mod support {
    use gate_model::{Arm, Endpoint, GateSpec, Iterations, Plan, PlannedRequest, Target};
    use gate_plan::{Extent, Files, PlanError, PromptFile};

    pub(crate) fn spec(seed: u64) -> GateSpec {
        let mut spec = GateSpec::new("chat", Endpoint::Url("http://127.0.0.1:8000/v1".to_owned()));
        spec.load.seed = seed;
        spec.load.iterations = Iterations::Fixed(100);
        spec
    }

    /// The same gate with a reference.
    pub(crate) fn beside(mut spec: GateSpec) -> GateSpec {
        spec.reference = Some(Target::new(Endpoint::Url("http://127.0.0.1:9000/v1".to_owned())));
        spec
    }

    pub(crate) fn plan(spec: &GateSpec) -> Plan {
        gate_plan::plans(spec, Extent::Extended, &[]).unwrap().remove(0)
    }

    /// The plan judged at these sizes.
    pub(crate) fn at(spec: &GateSpec, looks: &[u32], files: &[Files]) -> Result<Plan, PlanError> {
        let mut spec = spec.clone();
        spec.load.iterations = match *looks {
            [first, last] => Iterations::Range { first, last, extend: None },
            [first, last, extend] => Iterations::Range { first, last, extend: Some(extend) },
            _ => Iterations::Fixed(looks[0]),
        };
        gate_plan::plans(&spec, Extent::Extended, files).map(|mut plans| plans.remove(0))
    }

    /// A prompt file alone.
    pub(crate) fn only(file: &PromptFile) -> [Files; 1] {
        [Files { prompts: Some(file.clone()), ..Files::default() }]
    }

    /// An arm's requests, as they stand in a plan without another.
    pub(crate) fn of(requests: &[PlannedRequest], arm: Arm) -> Vec<PlannedRequest> {
        let own = requests.iter().filter(|request| request.arm == arm);
        let alone = |request: &PlannedRequest| PlannedRequest {
            index: request.pair.unwrap(),
            arm: Arm::Target,
            pair: None,
            ..*request
        };
        own.map(alone).collect()
    }
}

#[cfg(test)]
mod plans {
    use gate_model::{Arm, Arrivals, Nanos, Pace, PerSecond, Plan, PromptFormat};
    use gate_plan::{PlanError, PromptFile};

    use crate::support::{at, beside, of, only, plan, spec};

    fn totals(plan: &Plan) -> gate_plan::Totals {
        gate_plan::totals(std::slice::from_ref(plan), &spec(0))
    }

    /// Which arm comes first in each pair.
    fn order(plan: &Plan) -> Vec<Arm> {
        plan.requests.iter().step_by(2).map(|request| request.arm).collect()
    }

    #[test]
    fn each_arm_gets_what_it_would_get_alone() {
        for seed in 0..5 {
            let (mut alone, mut paced) = (spec(seed), spec(seed));
            paced.load.arrivals = Arrivals::Constant;
            alone.load.pace = Pace::Open { rate: PerSecond(5.0), cap: Some(3) };
            for spec in [alone, paced] {
                let (alone, both) = (plan(&spec), plan(&beside(spec)));
                for arm in [Arm::Target, Arm::Reference] {
                    assert_eq!(of(&both.requests, arm), alone.requests);
                    assert_eq!(of(&both.warmup, arm), alone.warmup);
                }
                assert_eq!((&both.looks, both.duration()), (&alone.looks, alone.duration()));
            }
        }
    }

    #[test]
    fn the_two_of_a_pair_lie_side_by_side_and_indices_count_both() {
        let plan = plan(&beside(spec(3)));
        for requests in [&plan.requests, &plan.warmup] {
            for (place, request) in (0_u32..).zip(requests) {
                assert_eq!((request.index, request.pair), (place, Some(place / 2)));
            }
            assert!(requests.chunks(2).all(|two| two[0].arm != two[1].arm && two[0].at == two[1].at));
        }
        assert_eq!((plan.requests.len(), plan.warmup.len()), (200, 10));
        assert!(plan.warmup.iter().step_by(2).all(|request| request.arm == Arm::Target));
    }

    #[test]
    fn which_comes_first_is_drawn_from_the_seed() {
        let drawn = order(&plan(&beside(spec(3))));
        assert_eq!(drawn, order(&plan(&beside(spec(3)))));
        assert_ne!(drawn, order(&plan(&beside(spec(4)))));
        let first: String = drawn.iter().take(16).map(|arm| if *arm == Arm::Target { 't' } else { 'r' }).collect();
        assert_eq!(first, "rtrrttrrtrtttttr", "for ever");
        let mut changes = 0;
        for seed in 0..40 {
            let drawn = order(&plan(&beside(spec(seed))));
            // 99.99 % of fair draws lie within.
            let targets = drawn.iter().filter(|arm| **arm == Arm::Target).count();
            assert!((30..=70).contains(&targets), "{seed}: {targets}");
            changes += drawn.windows(2).filter(|two| two[0] != two[1]).count();
        }
        assert!((1_800..2_160).contains(&changes), "of 3,960: {changes}");
    }

    #[test]
    fn a_longer_plan_begins_as_the_shorter_one() {
        let spec = beside(spec(7));
        let long = at(&spec, &[30, 50, 100], &[]).unwrap();
        let short = at(&spec, &[30, 50], &[]).unwrap();
        assert_eq!((short.warmup, &short.requests[..]), (long.warmup, &long.requests[..100]));
    }

    #[test]
    fn a_closed_loop_has_pairs_without_times() {
        let mut spec = beside(spec(5));
        let open = order(&plan(&spec));
        spec.load.pace = Pace::Closed { concurrency: 8 };
        let closed = plan(&spec);
        assert!(closed.requests.iter().all(|request| request.at == Nanos::ZERO));
        assert_eq!(order(&closed), open);
    }

    #[test]
    fn the_worst_case_is_that_of_both() {
        let (alone, both) = (totals(&plan(&spec(1))), totals(&plan(&beside(spec(1)))));
        assert_eq!((alone.requests, both.requests), (105, 210));
        assert_eq!((both.input_tokens, both.output_tokens), (2 * alone.input_tokens, 2 * alone.output_tokens));
    }

    #[test]
    fn a_pair_takes_one_row_of_a_file() {
        let mut spec = beside(spec(0));
        spec.load.warmup = 2;
        let rows = |count: u32| {
            let row = |number| format!("{{\"prompt\": \"{}\"}}\n", "a ".repeat(number as usize + 1));
            PromptFile::parse(&(0..count).map(row).collect::<String>(), PromptFormat::Rows).unwrap()
        };
        let plan = at(&spec, &[4], &only(&rows(6))).unwrap();
        let inputs =
            |requests: &[gate_model::PlannedRequest]| requests.iter().map(|r| r.input_tokens).collect::<Vec<_>>();
        assert_eq!(inputs(&plan.requests), [1, 1, 2, 2, 3, 3, 4, 4]);
        assert_eq!(inputs(&plan.warmup), [5, 5, 6, 6]);
        let error = at(&spec, &[4], &only(&rows(5))).unwrap_err();
        assert_eq!(error, PlanError::TooFewRows { rows: 5, measured: 4, warmup: 2 });
    }
}

#[cfg(test)]
mod prompts {
    use std::collections::HashSet;

    use gate_model::{Arm, Cache, Plan, PlannedRequest, Prompt, PromptFormat, Prompts};
    use gate_plan::{PromptFile, SpecPrompts};

    use crate::support::{at, beside, only, plan, spec};

    type Say = fn(&SpecPrompts, &PlannedRequest) -> Prompt;

    /// Asserts that the two of each pair say the same, and no two pairs do; gives what is said.
    fn said(prompts: &SpecPrompts, plan: &Plan) -> Vec<Prompt> {
        let (measured, warmup): (Say, Say) = (|prompts, request| prompts.measured(request, &[]), SpecPrompts::warmup);
        let mut said = Vec::new();
        for (requests, say) in [(&plan.requests, measured), (&plan.warmup, warmup)] {
            for two in requests.chunks(2) {
                assert_eq!(say(prompts, &two[0]), say(prompts, &two[1]));
                said.push(say(prompts, &two[0]));
            }
        }
        let distinct: HashSet<_> = said.iter().map(|prompt| prompt.messages.last().unwrap().text.clone()).collect();
        assert_eq!(distinct.len(), said.len());
        said
    }

    #[test]
    fn a_pair_says_what_its_request_alone_would_say() {
        let (alone, both) = (spec(4), beside(spec(4)));
        let prompts = SpecPrompts::new(&both, "run", &[]);
        let (alone, plan) = (plan(&alone), plan(&both));
        let said_alone: Vec<_> = {
            let measured = alone.requests.iter().map(|request| prompts.measured(request, &[]));
            measured.chain(alone.warmup.iter().map(|request| prompts.warmup(request))).collect()
        };
        assert_eq!(said(&prompts, &plan), said_alone);
        // Fitted or not, and whoever is asked first.
        prompts.fit(&[(400, 500), (700, 850)]);
        assert_ne!(said(&prompts, &plan), said_alone);
    }

    #[test]
    fn a_pair_says_the_same_from_a_file_too() {
        let mut spec = beside(spec(4));
        spec.load.warmup = 3;
        let rows: String = (0..20).map(|row| format!("{{\"prompt\": \"row {row}\"}}\n")).collect();
        let file = PromptFile::parse(&rows, PromptFormat::Rows).unwrap();
        let plan = at(&spec, &[8], &only(&file)).unwrap();
        for cache in [Cache::Bust, Cache::Warm] {
            spec.prompts.cache = cache;
            said(&SpecPrompts::new(&spec, "run", &only(&file)), &plan);
        }
        let rows = |arm: Arm| {
            let prompts = SpecPrompts::new(&spec, "run", &only(&file));
            let own = plan.requests.iter().filter(|request| request.arm == arm);
            own.map(|request| prompts.measured(request, &[]).messages[0].text.clone()).collect::<Vec<_>>()
        };
        assert_eq!(rows(Arm::Target), (0..8).map(|row| format!("row {row}")).collect::<Vec<_>>());
        assert_eq!(rows(Arm::Target), rows(Arm::Reference));
    }
}
