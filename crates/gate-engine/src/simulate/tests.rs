use gate_model::{
    Api, Delivery, Endpoint, Fault, Faults, GateSpec, Latency, Pace, PerSecond, PlannedRequest, ScriptedFault, Series,
    Timeouts, WarmingUp,
};

use super::*;
use crate::{EventKind, script};

mod drifting;
mod prompts;
mod queueing;

/// So many requests, the first due at the epoch and the others one after another.
fn requests(count: u32, apart: Nanos) -> Vec<PlannedRequest> {
    let request = |index| PlannedRequest {
        index,
        at: Nanos(apart.0 * i64::from(index)),
        input_tokens: 100 + index,
        output_tokens: 20,
        ..PlannedRequest::default()
    };
    (0..count).map(request).collect()
}

/// 100 ms to the first token, 10 ms to each of the 19 others: 290 ms in all.
fn steady() -> EngineParams {
    EngineParams {
        ttft: Latency::constant(Nanos::from_millis(100)),
        tpot: Latency::constant(Nanos::from_millis(10)),
        ..EngineParams::default()
    }
}

fn run(params: &EngineParams, count: u32, warmup: u32, timeouts: impl FnOnce(&mut Timeouts)) -> Run {
    run_of(params, count, warmup, |spec| timeouts(&mut spec.timeouts))
}

fn run_of(params: &EngineParams, count: u32, warmup: u32, change: impl FnOnce(&mut GateSpec)) -> Run {
    let mut spec = GateSpec::new("chat", Endpoint::Sim(Box::new(params.clone())));
    change(&mut spec);
    let measured = requests(count, Nanos::from_millis(100));
    let plan = Plan { warmup: requests(warmup, Nanos::ZERO), ..Plan::new(&spec, vec![count], measured) };
    let header = RunHeader::new(spec, &plan, "0.0.0", "run", "2026-01-01T00:00:00Z");
    simulate(params, None, &plan, header)
}

#[test]
fn a_healthy_run_has_exact_times() {
    let params = EngineParams { role_chunk: Some(Nanos::from_millis(5)), ..steady() };
    let run = run(&params, 30, 5, |_| ());
    assert_eq!((run.samples.len(), run.warmup.len()), (30, 5));
    for sample in run.samples.iter().chain(&run.warmup) {
        let start = sample.intended;
        let at = |millis| Some(start + Nanos::from_millis(millis));
        assert_eq!(sample.outcome, Outcome::Ok);
        assert_eq!((sample.start, sample.sent, sample.headers), (at(0), at(0), at(0)));
        assert_eq!((sample.first_event, sample.first_token, sample.first_answer), (at(5), at(100), at(100)));
        assert_eq!((sample.last_token, sample.end), (at(290), at(290)));
        assert_eq!(sample.value(Series::Tpot), Some(10e6));
        assert_eq!((sample.events, sample.content_events, sample.gaps.count()), (24, 20, 19));
        assert_eq!(sample.longest_gap, Some(Nanos::from_millis(10)));
        assert_eq!((sample.token_times.len(), sample.token_times.last().copied()), (20, at(290)));
        let usage = sample.usage.unwrap();
        assert_eq!((usage.input, usage.output), (Some(u64::from(sample.planned_input)), Some(20)));
        assert_eq!((sample.status, sample.finish_reason.as_deref()), (Some(200), Some("length")));
    }
    assert_eq!(run.samples[3].intended, Nanos::from_millis(300));
    let ends: Vec<i64> = run.warmup.iter().map(|sample| sample.end.unwrap().0 / 1_000_000).collect();
    assert_eq!(ends, [-1160, -870, -580, -290, 0]);
    let end = run.end.unwrap();
    assert_eq!((end.sent, end.at, end.reason), (30, Nanos::from_millis(2_900 + 290), EndReason::Completed));
}

#[test]
fn requests_are_numbered_with_the_warm_up() {
    let params = EngineParams::default();
    let run = run(&params, 3, 2, |_| ());
    for (number, sample) in run.warmup.iter().chain(&run.samples).enumerate() {
        let first = script(&params, number as u32, 20).events[1].at;
        assert_eq!(sample.first_token, Some(sample.intended + first));
    }
}

#[test]
fn every_fate_has_its_outcome() {
    let all = |fault: fn(&mut Faults)| {
        let mut params = steady();
        fault(&mut params.faults);
        run(&params, 40, 0, |_| ()).samples
    };
    for sample in all(|faults| faults.http_500 = 1.0) {
        assert_eq!((sample.outcome, sample.status), (Outcome::Http5xx, Some(500)));
        assert_eq!((sample.end, sample.events, sample.first_token), (Some(sample.intended), 0, None));
    }
    for sample in all(|faults| faults.http_401 = 1.0) {
        assert_eq!((sample.outcome, sample.status), (Outcome::Http4xx, Some(401)));
        assert_eq!((sample.end, sample.events, sample.first_token), (Some(sample.intended), 0, None));
    }
    for sample in all(|faults| faults.http_429 = 1.0) {
        assert_eq!((sample.outcome, sample.status), (Outcome::Http429, Some(429)));
        assert_eq!((sample.end, sample.events, sample.first_token), (Some(sample.intended), 0, None));
    }
    for sample in all(|faults| faults.html_200 = 1.0) {
        assert_eq!((sample.outcome, sample.status), (Outcome::Decode, Some(200)));
        assert_eq!((sample.end, sample.events, sample.first_token), (Some(sample.intended), 0, None));
    }
    for sample in all(|faults| faults.empty = 1.0) {
        assert_eq!((sample.outcome, sample.status), (Outcome::Empty, Some(200)));
        assert_eq!((sample.events, sample.content_events, sample.first_token), (4, 0, None));
        assert_eq!((sample.finish_reason.as_deref(), sample.usage.unwrap().output), (Some("stop"), Some(0)));
        assert_eq!(sample.end.unwrap() - sample.intended, Nanos::from_millis(100));
    }
    for sample in all(|faults| faults.slow_headers = 1.0) {
        assert_eq!((sample.outcome, sample.status), (Outcome::Ok, Some(200)));
        let at = |millis| Some(sample.intended + Nanos::from_millis(millis));
        assert_eq!((sample.headers, sample.first_event), (at(1_000), at(1_000)));
        assert_eq!((sample.first_token, sample.end), (at(1_100), at(1_290)));
    }
    for sample in all(|faults| faults.stream_error = 1.0) {
        assert_eq!(
            (sample.outcome, sample.status, sample.embedded_server_error),
            (Outcome::StreamError, Some(200), true)
        );
        assert_eq!(sample.end.unwrap() - sample.last_token.unwrap(), Nanos::from_millis(10));
    }
    for sample in all(|faults| faults.stall = 1.0) {
        assert_eq!(sample.outcome, Outcome::TimeoutStall);
        assert_eq!(sample.end.unwrap() - sample.last_token.unwrap(), Nanos::from_secs(30));
    }
    for (fault, outcome) in [
        ((|faults| faults.reset = 1.0) as fn(&mut Faults), Outcome::Reset),
        (|faults| faults.truncate = 1.0, Outcome::Truncated),
    ] {
        for sample in all(fault) {
            assert_eq!(sample.outcome, outcome);
            assert!((1..20).contains(&sample.content_events) && sample.usage.is_none() && sample.error.is_some());
            assert_eq!(sample.end.unwrap() - sample.last_token.unwrap(), Nanos::from_millis(10));
        }
    }
}

#[test]
fn it_dies_when_so_many_measured_requests_have_arrived() {
    // Request 24 arrives at 2.4 s; a request takes 290 ms, so 22 and 23 are open as well.
    let params = EngineParams { dies_after: Some(25), ..steady() };
    let run = run(&params, 30, 5, |_| ());
    let outcomes: Vec<Outcome> = run.samples.iter().map(|sample| sample.outcome).collect();
    assert!(run.warmup.iter().all(|sample| sample.outcome == Outcome::Ok));
    assert_eq!(outcomes[..22], [Outcome::Ok; 22]);
    assert_eq!(outcomes[22..25], [Outcome::Reset; 3]);
    assert_eq!(outcomes[25..], [Outcome::Connect; 5]);
    assert!(run.samples[22..25].iter().all(|sample| sample.end == Some(Nanos::from_millis(2_400))));
    assert_eq!((run.samples[22].content_events, run.samples[22].status), (10, Some(200)));
    assert_eq!((run.samples[24].content_events, run.samples[24].status), (0, None));
    assert_eq!((run.samples[29].end, run.samples[29].sent), (Some(Nanos::from_millis(2_900)), None));
}

#[test]
fn it_can_be_dead_from_the_start_or_outlive_the_plan() {
    let died_after = |count| {
        let params = EngineParams { dies_after: Some(count), ..steady() };
        run(&params, 3, 1, |_| ()).samples.iter().map(|sample| sample.outcome).collect::<Vec<_>>()
    };
    assert_eq!(died_after(0), [Outcome::Connect; 3]);
    assert_eq!(died_after(4), [Outcome::Ok; 3]);
    let faults = Faults { http_500: 1.0, ..Faults::default() };
    let sick = run(&EngineParams { dies_after: Some(1), faults, ..steady() }, 2, 0, |_| ());
    assert_eq!((sick.samples[0].outcome, sick.samples[0].status), (Outcome::Reset, None));
}

#[test]
fn the_clients_deadlines_apply() {
    let cut = |timeouts: fn(&mut Timeouts)| run(&steady(), 1, 0, timeouts).samples.remove(0);
    let millis = Nanos::from_millis;

    let late = cut(|timeouts| timeouts.first_token = Nanos::from_millis(99));
    assert_eq!((late.outcome, late.end, late.first_token), (Outcome::TimeoutFirstToken, Some(millis(99)), None));
    assert_eq!(cut(|timeouts| timeouts.first_token = Nanos::from_millis(100)).outcome, Outcome::Ok);

    let slow = cut(|timeouts| timeouts.stall = Nanos::from_millis(9));
    assert_eq!((slow.outcome, slow.end, slow.content_events), (Outcome::TimeoutStall, Some(millis(109)), 1));
    assert_eq!(cut(|timeouts| timeouts.stall = Nanos::from_millis(10)).outcome, Outcome::Ok);

    let long = cut(|timeouts| timeouts.total = Nanos::from_millis(205));
    assert_eq!((long.outcome, long.end, long.content_events), (Outcome::TimeoutTotal, Some(millis(205)), 11));
    assert_eq!(cut(|timeouts| timeouts.total = Nanos::from_millis(290)).outcome, Outcome::Ok);
}

#[test]
fn the_first_token_deadline_cuts_what_comes_late_or_never() {
    let cut = |fault: fn(&mut Faults), buffer_bytes| {
        let mut params = EngineParams { buffer_bytes, ..steady() };
        fault(&mut params.faults);
        run(&params, 1, 0, |timeouts| timeouts.first_token = Nanos::from_millis(90)).samples.remove(0)
    };
    let at_90 = |sample: &Sample| {
        assert_eq!((sample.outcome, sample.end), (Outcome::TimeoutFirstToken, Some(Nanos::from_millis(90))));
    };
    let slow = cut(|faults| faults.slow_headers = 1.0, 0);
    at_90(&slow);
    assert_eq!((slow.status, slow.headers), (None, None));
    at_90(&cut(|faults| faults.empty = 1.0, 0));
    let held = cut(|_| (), u32::MAX);
    at_90(&held);
    assert_eq!((held.status, held.events), (Some(200), 0));
    at_90(&cut(|faults| faults.stall = 1.0, u32::MAX));
}

#[test]
fn in_a_closed_loop_a_request_starts_when_one_has_ended() {
    let closed =
        |params: &EngineParams, concurrency| run_of(params, 6, 2, |spec| spec.load.pace = Pace::Closed { concurrency });
    let run = closed(&steady(), 2);
    let starts: Vec<i64> = run.samples.iter().map(|sample| sample.intended.0 / 1_000_000).collect();
    assert_eq!(starts, [0, 0, 290, 290, 580, 580]);
    for sample in &run.samples {
        assert_eq!((sample.start, sample.sent, sample.cap_wait), (Some(sample.intended), sample.start, None));
        assert_eq!((sample.outcome, sample.value(Series::Ttft)), (Outcome::Ok, Some(100e6)));
    }
    assert_eq!(run.end.unwrap().at, Nanos::from_millis(870));

    // What fails at once leaves its slot at once; what stalls keeps it until the client gives up.
    let script = vec![
        ScriptedFault { from: 1, to: 1, fault: Fault::Http500 },
        ScriptedFault { from: 2, to: 2, fault: Fault::Stall },
    ];
    let run = closed(&EngineParams { script, ..steady() }, 1);
    assert_eq!(run.samples[1].intended, Nanos::ZERO);
    assert_eq!((run.samples[1].outcome, Some(run.samples[2].intended)), (Outcome::TimeoutStall, run.samples[1].end));

    let run = closed(&EngineParams { dies_after: Some(3), ..steady() }, 2);
    let outcomes: Vec<Outcome> = run.samples.iter().map(|sample| sample.outcome).collect();
    let (reset, refused) = (Outcome::Reset, Outcome::Connect);
    assert_eq!(outcomes, [Outcome::Ok, Outcome::Ok, reset, refused, refused, refused]);
    assert!(run.samples[3..].iter().all(|sample| sample.end == Some(Nanos::from_millis(290))));
}

#[test]
fn under_a_cap_requests_wait_and_the_wait_counts() {
    // One request every 100 ms, each of which takes 290 ms.
    let capped = |cap| {
        let pace = Pace::Open { rate: PerSecond(10.0), cap };
        run_of(&steady(), 5, 0, |spec| spec.load.pace = pace)
    };
    for sample in capped(Some(1)).samples {
        let wait = Nanos::from_millis(190 * i64::from(sample.index));
        assert_eq!((sample.cap_wait, sample.start), (Some(wait), Some(sample.intended)));
        assert_eq!(sample.sent, Some(sample.intended + wait));
        assert_eq!(sample.value(Series::Ttft), Some((Nanos::from_millis(100) + wait).0 as f64));
        assert_eq!(sample.value(Series::CapWait), Some(wait.0 as f64));
    }
    let (free, uncapped) = (capped(Some(3)), capped(None));
    assert!(free.samples.iter().all(|sample| sample.cap_wait == Some(Nanos::ZERO)));
    assert!(uncapped.samples.iter().all(|sample| sample.cap_wait.is_none()));
    let ends = |run: &Run| run.samples.iter().map(|sample| sample.end).collect::<Vec<_>>();
    assert_eq!(ends(&free), ends(&uncapped));
}

#[test]
fn embeddings_are_one_body_when_a_first_token_would_be_due() {
    let run = run_of(&steady(), 3, 1, |spec| spec.target.api = Api::OpenaiEmbeddings);
    for sample in run.samples.iter().chain(&run.warmup) {
        let end = Some(sample.intended + Nanos::from_millis(100));
        assert_eq!((sample.outcome, sample.end, sample.first_token), (Outcome::Ok, end, None));
        let usage = sample.usage.unwrap();
        assert_eq!((usage.input.is_some(), usage.output, &sample.finish_reason), (true, None, &None));
    }
}

#[test]
fn scripted_faults_count_measured_requests() {
    let script = vec![ScriptedFault { from: 2, to: 3, fault: Fault::Http429 }];
    let run = run(&EngineParams { script, ..steady() }, 5, 4, |_| ());
    let outcomes: Vec<Outcome> = run.samples.iter().map(|sample| sample.outcome).collect();
    assert!(run.warmup.iter().all(|sample| sample.outcome == Outcome::Ok));
    assert_eq!(outcomes, [Outcome::Ok, Outcome::Http429, Outcome::Http429, Outcome::Ok, Outcome::Ok]);
}

#[test]
fn a_warming_server_gets_faster_over_warm_up_and_measured_requests() {
    let params = EngineParams { warming_up: Some(WarmingUp { requests: 8, slowdown: 5.0 }), ..steady() };
    let run = run(&params, 20, 3, |_| ());
    let all: Vec<f64> = run.warmup.iter().chain(&run.samples).filter_map(|sample| sample.value(Series::Ttft)).collect();
    assert_eq!((all.len(), all[0], all[4], all[8]), (23, 500e6, 300e6, 100e6));
    assert!(all.is_sorted_by(|left, right| left >= right));
    assert!(all[..=8].is_sorted_by(|left, right| left > right) && all[8..].iter().all(|ttft| *ttft == 100e6));
}

#[test]
fn a_buffering_proxy_makes_one_burst_of_a_stream() {
    let buffered = |buffer_bytes| run(&EngineParams { buffer_bytes, ..steady() }, 1, 0, |_| ()).samples.remove(0);
    let (plain, burst) = (buffered(0), buffered(u32::MAX));
    assert_eq!((burst.outcome, burst.first_token, burst.last_token), (Outcome::Ok, plain.end, plain.end));
    assert_eq!((burst.content_events, burst.longest_gap, burst.usage), (20, Some(Nanos::ZERO), plain.usage));
    let some = buffered(5 * EventKind::Tokens(1).nominal_bytes());
    assert!(some.first_token > plain.first_token && some.first_token < plain.end);
    assert_eq!((some.end, some.longest_gap), (plain.end, Some(Nanos::from_millis(50))));
}

#[test]
fn of_one_body_only_the_end_is_known() {
    let one = |fault: fn(&mut Faults), total| {
        let mut params = EngineParams { buffer_bytes: 1_000, ..steady() };
        fault(&mut params.faults);
        let change = |spec: &mut GateSpec| {
            spec.target.delivery = Delivery::Whole;
            // Neither is seen of one body.
            (spec.timeouts.first_token, spec.timeouts.stall) = (Nanos(1), Nanos(1));
            spec.timeouts.total = Nanos::from_millis(total);
        };
        run_of(&params, 1, 0, change).samples.remove(0)
    };
    let at = |millis| Some(Nanos::from_millis(millis));
    let whole = one(|_| (), 290);
    assert_eq!((whole.outcome, whole.headers, whole.last_token, whole.end), (Outcome::Ok, at(290), at(290), at(290)));
    assert_eq!((whole.first_event, whole.first_token, whole.first_answer), (None, None, None));
    assert_eq!((whole.events, whole.content_events, whole.usage.unwrap().output), (2, 1, Some(20)));
    assert_eq!(one(|faults| faults.slow_headers = 1.0, 60_000).end, at(1_290));

    let late = one(|_| (), 289);
    assert_eq!((late.outcome, late.end, late.status), (Outcome::TimeoutTotal, at(289), None));
    for (fault, outcome) in [
        ((|faults| faults.empty = 1.0) as fn(&mut Faults), Outcome::Empty),
        (|faults| faults.truncate = 1.0, Outcome::Truncated),
        (|faults| faults.reset = 1.0, Outcome::Reset),
        (|faults| faults.stream_error = 1.0, Outcome::StreamError),
        (|faults| faults.stall = 1.0, Outcome::TimeoutTotal),
    ] {
        let failed = one(fault, 60_000);
        assert_eq!((failed.outcome, failed.status, failed.last_token), (outcome, Some(200), None));
    }
}

#[test]
fn token_times_are_kept_for_the_first_thousand() {
    let run = run(&steady(), 1_002, 0, |_| ());
    assert!(run.samples.iter().all(|sample| sample.token_times.is_empty() == (sample.index >= 1_000)));
}

#[test]
fn a_run_is_a_function_of_its_arguments() {
    let params = EngineParams { faults: Faults { stall: 0.2, ..Faults::default() }, ..EngineParams::default() };
    assert_eq!(run(&params, 50, 5, |_| ()), run(&params, 50, 5, |_| ()));
}

/// The pairs of these requests; the reference's come first.
fn paired(requests: &[PlannedRequest]) -> Vec<PlannedRequest> {
    let pair = |request: &PlannedRequest| {
        [Arm::Reference, Arm::Target].map(|arm| PlannedRequest { arm, pair: Some(request.index), ..*request })
    };
    let requests = requests.iter().flat_map(pair);
    (0..).zip(requests).map(|(index, request)| PlannedRequest { index, ..request }).collect()
}

/// Forty pairs after three for warm-up, and the same of the target alone.
fn beside(target: &EngineParams, reference: &EngineParams, change: impl Fn(&mut GateSpec)) -> (Run, Run) {
    let mut spec = GateSpec::new("chat", Endpoint::Sim(Box::new(target.clone())));
    change(&mut spec);
    let mut both = spec.clone();
    both.reference.get_or_insert_with(|| gate_model::Target::new(Endpoint::Sim(Box::new(reference.clone()))));
    spec.reference = None;
    let (measured, warmup) = (requests(40, Nanos::from_millis(100)), requests(3, Nanos::ZERO));
    let pairs = Plan { warmup: paired(&warmup), ..Plan::new(&both, vec![40], paired(&measured)) };
    let plan = Plan { warmup, ..Plan::new(&spec, vec![40], measured) };
    let header = |spec, plan| RunHeader::new(spec, plan, "0.0.0", "run", "2026-01-01T00:00:00Z");
    let (both, alone) = (header(both, &pairs), header(spec, &plan));
    (simulate(target, Some(reference), &pairs, both), simulate(target, None, &plan, alone))
}

/// An arm's samples, as they stand in a run without another.
fn of(run: &Run, arm: Arm) -> Vec<Sample> {
    let own = run.samples.iter().filter(|sample| sample.arm == arm).cloned();
    own.map(|sample| Sample { index: sample.pair.unwrap(), arm: Arm::Target, pair: None, ..sample }).collect()
}

#[test]
fn the_target_does_what_it_does_alone() {
    let failing = EngineParams { dies_after: Some(7), ..EngineParams::default() };
    let paces = [
        Pace::Open { rate: PerSecond(10.0), cap: None },
        Pace::Open { rate: PerSecond(10.0), cap: Some(2) },
        Pace::Closed { concurrency: 3 },
    ];
    for pace in paces {
        let (both, alone) = beside(&EngineParams::default(), &failing, |spec| spec.load.pace = pace);
        assert_eq!(of(&both, Arm::Target), alone.samples);
        let dead = of(&both, Arm::Reference).iter().filter(|sample| sample.outcome == Outcome::Connect).count();
        assert_eq!(dead, 33);
        assert!(both.samples.iter().map(|sample| sample.index).eq(0..80));
        let end = both.end.unwrap();
        assert_eq!((end.sent, end.reference), (80, Some(ReferenceEnd::default())));
    }
}

#[test]
fn two_engines_of_one_seed_draw_apart() {
    let params = EngineParams::default();
    let (run, _) = beside(&params, &params, |_| ());
    let ttft = |arm| of(&run, arm).iter().map(|sample| sample.value(Series::Ttft).unwrap()).collect::<Vec<_>>();
    let (target, reference) = (ttft(Arm::Target), ttft(Arm::Reference));
    let faster = target.iter().zip(&reference).filter(|(target, reference)| target < reference).count();
    assert!((8..=32).contains(&faster), "{faster}");
    assert!(target.iter().zip(&reference).all(|(target, reference)| target != reference));
    assert_eq!(run, beside(&params, &params, |_| ()).0);
}

#[test]
fn a_slow_reference_takes_no_slot_of_the_target() {
    let slow = EngineParams { ttft: Latency::constant(Nanos::from_secs(10)), ..steady() };
    let (run, _) = beside(&steady(), &slow, |spec| spec.load.pace = Pace::Closed { concurrency: 4 });
    let last = |arm| of(&run, arm).iter().filter_map(|sample| sample.end).max().unwrap();
    assert_eq!(last(Arm::Target), Nanos::from_millis(10 * 290));
    assert_eq!(last(Arm::Reference), Nanos::from_millis(10 * 10_190));
}

#[test]
fn warm_up_of_both_arms_goes_one_after_another() {
    let slow = EngineParams { ttft: Latency::constant(Nanos::from_millis(200)), ..steady() };
    let (run, _) = beside(&steady(), &slow, |_| ());
    let ends = run.warmup.iter().map(|sample| (sample.arm, sample.end.unwrap().0 / 1_000_000));
    let (target, reference) = (Arm::Target, Arm::Reference);
    let expected =
        [(reference, -1_650), (target, -1_360), (reference, -970), (target, -680), (reference, -290), (target, 0)];
    assert_eq!(ends.collect::<Vec<_>>(), expected);
    assert!(run.warmup.windows(2).all(|two| Some(two[1].intended) == two[0].end));
}

#[test]
fn each_arm_answers_as_its_part_of_the_spec_says() {
    let whole = |spec: &mut GateSpec| {
        spec.reference = Some(gate_model::Target { delivery: Delivery::Whole, ..spec.target.clone() });
    };
    let (run, _) = beside(&steady(), &steady(), whole);
    assert!(of(&run, Arm::Target).iter().all(|sample| sample.first_token.is_some()));
    assert!(of(&run, Arm::Reference).iter().all(|sample| sample.first_token.is_none() && sample.last_token.is_some()));
}

#[test]
fn what_a_run_used_up_is_told() {
    let script = vec![ScriptedFault { from: 1, to: 2, fault: Fault::Truncate }];
    let run = run(&EngineParams { script, ..steady() }, 5, 2, |_| ());
    let spent = run.end.unwrap().spent.unwrap();
    let input = (100 + 101) + (102 + 103 + 104);
    let expected = Spent { requests: 7, input, cached: 0, output: 5 * 20, uncounted: 2 };
    assert_eq!(spent, expected);
}

#[test]
fn a_dead_engine_leaves_the_cap_and_the_loop_free() {
    let sent = |pace, dies_after| {
        let params = EngineParams { dies_after: Some(dies_after), ..steady() };
        let run = run_of(&params, 5, 0, |spec| spec.load.pace = pace);
        let millis = |time: Nanos| time.0 / 1_000_000;
        let went_out = |sample: &Sample| (millis(sample.intended), millis(sample.went_out().unwrap()));
        run.samples.iter().map(went_out).collect::<Vec<_>>()
    };
    let capped = Pace::Open { rate: PerSecond(10.0), cap: Some(1) };
    assert_eq!(sent(capped, 2), [(0, 0), (100, 290), (200, 290), (300, 300), (400, 400)]);
    assert_eq!(sent(capped, 0), [(0, 0), (100, 100), (200, 200), (300, 300), (400, 400)]);
    let closed = Pace::Closed { concurrency: 2 };
    assert_eq!(sent(closed, 3), [(0, 0), (0, 0), (290, 290), (290, 290), (290, 290)]);
    assert_eq!(sent(Pace::Closed { concurrency: 0 }, 9), [(0, 0), (290, 290), (580, 580), (870, 870), (1160, 1160)]);
}
