//! The laws of queues, and what the queue does to a run.

use gate_model::Scaling;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;

/// Poisson arrivals, in send order.
fn poisson(count: u32, per_second: f64, seed: u64) -> Vec<PlannedRequest> {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut at = 0.0;
    let request = |index| {
        let uniform: f64 = random.random();
        at -= (1.0 - uniform).ln() / per_second;
        PlannedRequest { index, at: Nanos::from_secs_f64(at), output_tokens: 1, ..PlannedRequest::default() }
    };
    (0..count).map(request).collect()
}

/// A service of exactly 100 ms.
fn served(slots: u32) -> EngineParams {
    EngineParams { slots: Some(slots), ttft: Latency::constant(Nanos::from_millis(100)), ..steady() }
}

fn played(
    params: &EngineParams,
    requests: Vec<PlannedRequest>,
    change: impl FnOnce(&mut GateSpec),
) -> (Run, EngineTruth) {
    let mut spec = GateSpec::new("chat", Endpoint::Sim(Box::new(params.clone())));
    change(&mut spec);
    let plan = Plan::new(&spec, vec![requests.len() as u32], requests);
    let header = RunHeader::new(spec, &plan, "0.0.0", "run", "2026-01-01T00:00:00Z");
    simulate_with_truth(params, None, &plan, header)
}

fn value_of(scrape: &gate_model::Scrape, name: &str) -> f64 {
    scrape.values.iter().find(|(metric, _)| metric.as_str() == name).unwrap().1
}

fn patient(spec: &mut GateSpec) {
    let long = Nanos::from_secs(100_000);
    (spec.timeouts.first_token, spec.timeouts.total) = (long, long);
}

#[test]
fn the_mean_wait_is_that_of_an_m_d_1_queue() {
    // Pollaczek-Khinchine for a constant service: ρ / (2 (1 − ρ)) services. Over 50,000 requests the standard error of
    // the mean is some 4 % at ρ = .8, by the autocorrelation of waits.
    for (load, tolerance) in [(0.3, 0.04), (0.5, 0.04), (0.8, 0.1)] {
        let (run, _) = played(&served(1), poisson(50_000, load * 10.0, 7), patient);
        let waits = run.samples.iter().map(|sample| sample.value(Series::Ttft).unwrap() - 100e6);
        let mean = waits.sum::<f64>() / 50_000.0;
        let expected = 100e6 * load / (2.0 * (1.0 - load));
        assert!((mean / expected - 1.0).abs() < tolerance, "at {load}: {mean} instead of {expected}");
    }
}

#[test]
fn littles_law_holds() {
    let (run, _) = played(&served(4), poisson(30_000, 30.0, 3), patient);
    assert_eq!(run.samples.len(), 30_000);
    let mean =
        |name: &str| run.scrapes.iter().map(|scrape| value_of(scrape, name)).sum::<f64>() / run.scrapes.len() as f64;
    let stay = run.samples.iter().map(|sample| sample.value(Series::Ttft).unwrap() / 1e9).sum::<f64>() / 30_000.0;
    let rate = 30_000.0 / run.end.as_ref().unwrap().at.as_secs_f64();
    let inside = mean("running") + mean("waiting");
    assert!((inside / (rate * stay) - 1.0).abs() < 0.05, "{inside} inside, {rate}/s for {stay} s");
    assert!((mean("running") / (rate * 0.1) - 1.0).abs() < 0.05, "those served alone");
    assert!((mean("kv_cache_usage") - mean("running") / 4.0).abs() < 1e-9);
}

#[test]
fn who_came_first_is_served_first() {
    let (run, truth) = played(&served(2), poisson(2_000, 25.0, 5), patient);
    assert!(run.samples.is_sorted_by_key(|sample| sample.first_token));
    let ends: Vec<i64> = run.samples.iter().map(|sample| sample.end.unwrap().0).collect();
    // Never more than two at once: the end two before is no later than the beginning.
    assert!(ends.windows(3).all(|three| three[2] - 100_000_000 >= three[0]));
    assert_eq!(truth.capacity, Some(PerSecond(20.0)));
    let rate = 2_000.0 / run.end.unwrap().at.as_secs_f64();
    assert!((rate / 20.0 - 1.0).abs() < 0.01, "what is overloaded serves at its capacity, not {rate}/s");
}

#[test]
fn a_first_token_comes_after_wait_and_prefill_and_the_slot_is_held_to_the_last() {
    // 100 tokens at 1,000 a second, 100 ms to the first token, 19 times 10 ms: 390 ms with a slot.
    let params = EngineParams { slots: Some(1), prefill: Some(1_000.0), ..steady() };
    let request = |index: u32| PlannedRequest { index, input_tokens: 100, output_tokens: 20, ..Default::default() };
    let (run, truth) = played(&params, (0..3).map(request).collect(), |_| ());
    for (sample, waits) in run.samples.iter().zip([0, 390, 780]) {
        let at = |millis: i64| Some(Nanos::from_millis(waits + millis));
        assert_eq!((sample.first_event, sample.headers), (Some(Nanos::ZERO), Some(Nanos::ZERO)));
        assert_eq!((sample.first_token, sample.last_token, sample.end), (at(200), at(390), at(390)));
    }
    let slow = capacity(&params, Some(1), Work { read: 100.0, output: 20.0 }).unwrap();
    assert_eq!((truth.work, truth.capacity), (Work { read: 100.0, output: 20.0 }, Some(slow)));
    assert!((slow.0 - 1.0 / 0.39).abs() < 1e-9);
}

#[test]
fn a_client_that_gives_up_leaves_the_queue() {
    // One is served for 100 ms, three wait; those that wait longer than 150 ms leave.
    let requests = vec![PlannedRequest { output_tokens: 1, ..Default::default() }; 4];
    let requests = (0..).zip(requests).map(|(index, request)| PlannedRequest { index, ..request }).collect();
    let first_token = |spec: &mut GateSpec| spec.timeouts.first_token = Nanos::from_millis(150);
    let late = PlannedRequest { index: 4, at: Nanos::from_millis(160), output_tokens: 1, ..Default::default() };
    let (run, _) = played(&served(1), [requests, vec![late]].concat(), first_token);
    let seen = run.samples.iter().map(|sample| (sample.outcome, sample.end.unwrap().0 / 1_000_000));
    let (ok, late) = (Outcome::Ok, Outcome::TimeoutFirstToken);
    // The second has its slot from 100 on and gives up at 150, so that nobody is before the last.
    assert_eq!(seen.collect::<Vec<_>>(), [(ok, 100), (late, 150), (late, 150), (late, 150), (ok, 260)]);
}

#[test]
fn what_is_refused_at_once_takes_no_slot() {
    let script = vec![ScriptedFault { from: 2, to: 3, fault: Fault::Http429 }];
    let requests = (0..4).map(|index| PlannedRequest { index, output_tokens: 1, ..Default::default() }).collect();
    let (run, _) = played(&EngineParams { script, ..served(1) }, requests, |_| ());
    let ends: Vec<i64> = run.samples.iter().map(|sample| sample.end.unwrap().0 / 1_000_000).collect();
    assert_eq!(ends, [100, 0, 0, 200]);
}

#[test]
fn a_dead_engine_resets_who_waits_too() {
    let requests = (0..5).map(|index| PlannedRequest { index, output_tokens: 1, ..Default::default() }).collect();
    let (run, _) = played(&EngineParams { dies_after: Some(4), ..served(1) }, requests, |_| ());
    let outcomes: Vec<_> = run.samples.iter().map(|sample| sample.outcome).collect();
    assert_eq!(outcomes, [Outcome::Reset, Outcome::Reset, Outcome::Reset, Outcome::Reset, Outcome::Connect]);
}

#[test]
fn slots_come_after_the_cold_start() {
    let scaling = Scaling { max_slots: 4, step: 1, queue: 5, cold_start: Nanos::from_secs(20) };
    let params = EngineParams { scaling: Some(scaling), ..served(1) };
    // Twice what one slot can do, so half of what comes waits; two would do.
    let even = |index: u32| PlannedRequest {
        index,
        at: Nanos::from_millis(i64::from(index) * 50),
        output_tokens: 1,
        ..Default::default()
    };
    let (run, truth) = played(&params, (0..2_000).map(even).collect(), patient);
    // The sixth that finds the slot taken makes five wait: those at 50, 100, … of which every other is served.
    let at = |secs: usize| &run.scrapes[secs];
    let slots = |secs| value_of(at(secs), "running");
    assert_eq!((slots(10), slots(20), slots(30)), (1.0, 1.0, 2.0));
    let worst = run.scrapes.iter().map(|scrape| value_of(scrape, "waiting")).fold(0.0, f64::max);
    assert!((195.0..=215.0).contains(&worst), "ten a second gather for some 20 s: {worst}");
    assert!(slots(45) >= 3.0, "a queue that stays asks again");
    assert_eq!(truth.final_capacity, Some(PerSecond(40.0)));
    let last = run.samples.last().unwrap();
    assert_eq!(last.value(Series::Ttft), Some(100e6), "by the end nobody waits");
}

#[test]
fn the_recovery_of_a_spike_is_told() {
    // 5 a second of 10 that can be served; 30 a second for 10 s, so 200 wait at its end; 5 a second drain at the net
    // rate of 5: 40 s.
    let stage = |from: f64, count: i64, rate: f64| {
        (0..count).map(move |place| Nanos::from_secs_f64(from + place as f64 / rate))
    };
    let arrivals = stage(0.0, 100, 5.0).chain(stage(20.0, 300, 30.0)).chain(stage(30.0, 400, 5.0));
    let request = |(index, at)| PlannedRequest { index, at, output_tokens: 1, ..Default::default() };
    let (run, truth) = played(&served(1), (0..).zip(arrivals).map(request).collect(), patient);
    let end = Nanos::from_secs(30);
    let recovery = truth.recovery(end).unwrap();
    assert!((recovery.as_secs_f64() - 40.0).abs() < 0.5, "{recovery:?}");
    let at_once = |sample: &&Sample| sample.intended > end && sample.value(Series::Ttft) == Some(100e6);
    let first = run.samples.iter().find(at_once).unwrap().intended;
    assert!(first >= end + recovery && first <= end + recovery + Nanos::from_millis(600), "{first:?}");
    assert_eq!(truth.recovery(Nanos::from_secs(19)), Some(Nanos::ZERO));
}

#[test]
fn a_long_run_is_kept_in_short_and_in_order() {
    let (run, _) = played(&served(100), poisson(100_001, 500.0, 9), |spec| spec.journal.tokens = 10);
    assert_eq!((run.briefs.len(), run.samples.len(), run.recorded()), (100_001, 10, 100_001));
    assert!(run.briefs.iter().map(|brief| brief.index).eq(0..100_001));
    assert!(run.samples.iter().map(|sample| sample.index).eq(0..10));
    assert_eq!(run.end.unwrap().sent, 100_001);
    assert!((200..=202).contains(&run.scrapes.len()), "{}", run.scrapes.len());
}
