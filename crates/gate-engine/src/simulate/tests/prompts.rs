//! Conversations, scenarios, and the prefix cache by what the plan says of prompts.

use gate_model::{Cache, PrefixCache, PromptSpec, RunOrder, Scenario, SharedPrefix};

use super::*;

fn caching() -> EngineParams {
    let prefix_cache = Some(PrefixCache { blocks: 10_000, block_tokens: 16 });
    EngineParams { prefix_cache, prefill: Some(1_000.0), ..steady() }
}

fn of_plan(params: &EngineParams, requests: Vec<PlannedRequest>, change: impl FnOnce(&mut GateSpec)) -> Run {
    let mut spec = GateSpec::new("chat", Endpoint::Sim(Box::new(params.clone())));
    change(&mut spec);
    let plan = Plan::new(&spec, vec![requests.len() as u32], requests);
    let header = RunHeader::new(spec, &plan, "0.0.0", "run", "2026-01-01T00:00:00Z");
    simulate(params, None, &plan, header)
}

fn cached(run: &Run) -> Vec<u64> {
    run.samples.iter().map(|sample| sample.usage.unwrap().cached.unwrap()).collect()
}

/// Conversations a second apart, of three turns each, half a second of thought between them.
fn conversations(count: u32) -> Vec<PlannedRequest> {
    let request = |index: u32| {
        let (conversation, turn) = (index / 3, (index % 3) as u16);
        let at = if turn == 0 { Nanos::from_secs(i64::from(conversation)) } else { Nanos::from_millis(500) };
        PlannedRequest { index, turn, at, input_tokens: 100, output_tokens: 20, ..PlannedRequest::default() }
    };
    (0..count * 3).map(request).collect()
}

#[test]
fn shared_prefixes_are_cached_by_group() {
    let shared = |spec: &mut GateSpec| spec.prompts.shared_prefix = Some(SharedPrefix { tokens: 64, groups: 2 });
    let request = |index: u32| PlannedRequest {
        index,
        group: (index % 2) as u16,
        at: Nanos::from_secs(i64::from(index)),
        input_tokens: 100,
        output_tokens: 20,
        ..PlannedRequest::default()
    };
    let run = of_plan(&caching(), (0..6).map(request).collect(), shared);
    assert_eq!(cached(&run), [0, 0, 64, 64, 64, 64]);
    // 36 tokens are read at 1,000 a second instead of 100.
    let ttft: Vec<_> = run.samples.iter().map(|sample| sample.value(Series::Ttft).unwrap() / 1e6).collect();
    assert_eq!(ttft, [200.0, 200.0, 136.0, 136.0, 136.0, 136.0]);
    let spent = run.end.unwrap().spent.unwrap();
    assert_eq!((spent.input, spent.cached), (600, 256));

    let alone = of_plan(&caching(), (0..6).map(request).collect(), |_| ());
    assert_eq!(cached(&alone), [0; 6]);
    let warm = of_plan(&caching(), (0..6).map(request).collect(), |spec| spec.prompts.cache = Cache::Warm);
    assert_eq!(cached(&warm), [0, 0, 96, 96, 96, 96]);
}

#[test]
fn a_later_turn_follows_the_answer_before_it_and_finds_its_history_cached() {
    let run = of_plan(&caching(), conversations(2), |_| ());
    let usage = |sample: &Sample| {
        let usage = sample.usage.unwrap();
        (usage.input.unwrap(), usage.cached.unwrap())
    };
    // 100 and 20, then 100 more and 20, then 100 more: of the 120 before, 112 are in whole blocks; of 240 all.
    let expected = [(100, 0), (220, 112), (340, 240)];
    assert_eq!(run.samples.iter().map(usage).collect::<Vec<_>>(), [expected, expected].concat());
    for turns in run.samples.chunks(3) {
        for two in turns.windows(2) {
            assert_eq!(two[1].intended, two[0].end.unwrap() + Nanos::from_millis(500));
            assert_eq!((two[1].start, two[1].planned_input), (Some(two[1].intended), 100));
        }
    }
    // The second turn of the first conversation: due at .2 + .19 + .5 s, and 108 tokens are read.
    assert_eq!(run.samples[1].intended, Nanos::from_millis(890));
    assert_eq!(run.samples[1].value(Series::Ttft), Some(208e6));
}

#[test]
fn a_turn_that_fails_ends_its_conversation() {
    // Requests are numbered as they arrive: the second conversation's first is the third.
    let script = vec![ScriptedFault { from: 3, to: 3, fault: Fault::Http500 }];
    let run = of_plan(&EngineParams { script, ..caching() }, conversations(3), |_| ());
    let indexes: Vec<u32> = run.samples.iter().map(|sample| sample.index).collect();
    assert_eq!(indexes, [0, 1, 2, 3, 6, 7, 8]);
    let end = run.end.unwrap();
    assert_eq!((end.sent, end.reason), (7, EndReason::Completed));
}

#[test]
fn in_a_closed_loop_turns_ask_for_places_in_order() {
    let run = of_plan(&steady(), conversations(3), |spec| spec.load.pace = Pace::Closed { concurrency: 1 });
    let millis: Vec<i64> = run.samples.iter().map(|sample| sample.intended.0 / 1_000_000).collect();
    // Each takes 290 ms, and half a second of thought before a later turn. The third conversation has asked for the one
    // place since 290, the first one's second turn since 790.
    assert_eq!(millis, [0, 870, 1_740, 290, 1_160, 2_030, 580, 1_450, 2_320]);
    assert!(run.samples.iter().all(|sample| sample.cap_wait.is_none()));
}

#[test]
fn under_a_cap_a_later_turn_waits_as_others_do() {
    let capped = |spec: &mut GateSpec| spec.load.pace = Pace::Open { rate: PerSecond(1.0), cap: Some(1) };
    let requests = conversations(1);
    let other = PlannedRequest { index: 3, at: Nanos::from_millis(600), output_tokens: 20, ..Default::default() };
    let run = of_plan(&steady(), [requests, vec![other]].concat(), capped);
    let waits: Vec<_> = run.samples.iter().map(|sample| sample.cap_wait.unwrap().0 / 1_000_000).collect();
    // Turn 1 is due at 790 while the other is served until 890.
    assert_eq!(waits, [0, 100, 0, 0]);
}

#[test]
fn each_arm_has_its_own_conversations_and_cache() {
    let turns = conversations(2);
    let both = |request: &PlannedRequest| {
        [Arm::Target, Arm::Reference].map(|arm| PlannedRequest { arm, pair: Some(request.index), ..*request })
    };
    let requests: Vec<_> = turns.iter().flat_map(both).collect();
    let requests: Vec<_> = (0..).zip(requests).map(|(index, request)| PlannedRequest { index, ..request }).collect();
    let mut spec = GateSpec::new("chat", Endpoint::Sim(Box::new(caching())));
    spec.reference = Some(gate_model::Target::new(Endpoint::Sim(Box::new(caching()))));
    let plan = Plan::new(&spec, vec![6], requests);
    let header = RunHeader::new(spec, &plan, "0.0.0", "run", "2026-01-01T00:00:00Z");
    let run = simulate(&caching(), Some(&caching()), &plan, header);
    assert_eq!(run.samples.len(), 12);
    for pair in run.samples.chunks(2) {
        assert_eq!(pair[0].usage, pair[1].usage);
        assert_eq!((pair[0].intended, pair[0].end), (pair[1].intended, pair[1].end));
    }
}

#[test]
fn a_section_has_its_scenarios_own_load_and_prompts() {
    let request = |index: u32| PlannedRequest {
        index: 50 + index,
        scenario: 1,
        input_tokens: 100,
        output_tokens: 20,
        ..PlannedRequest::default()
    };
    let change = |spec: &mut GateSpec| {
        let scenario = |name: &str| Scenario {
            name: name.to_owned(),
            load: spec.load.clone(),
            prompts: PromptSpec::default(),
            slo: spec.slo,
            model: None,
            extra_body: serde_json::Map::new(),
            weight: 1.0,
        };
        let mut batch = scenario("batch");
        batch.load.pace = Pace::Closed { concurrency: 2 };
        batch.prompts.cache = Cache::Warm;
        (spec.scenarios, spec.order) = (vec![scenario("chat"), batch], RunOrder::InTurn);
        spec.journal.tokens = 3;
    };
    let run = of_plan(&caching(), (0..6).map(request).collect(), change);
    assert_eq!(cached(&run), [0, 96, 96, 96, 96, 96]);
    assert_eq!(run.samples.iter().filter(|sample| sample.intended == Nanos::ZERO).count(), 2);
    let with_times: Vec<_> = run.samples.iter().filter(|sample| !sample.token_times.is_empty()).collect();
    assert_eq!(with_times.iter().map(|sample| sample.index).collect::<Vec<_>>(), [50, 51, 52]);
}
