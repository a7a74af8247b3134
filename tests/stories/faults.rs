//! Engines that fail: outcome counts equal the engine's own truth, and no run hangs.

use std::collections::BTreeMap;

use gate_model::{Outcome, Status};

use crate::harness::{Place, Sim, quick_spec};

/// Runs 60 requests against an engine with these parameters, and returns both counts by outcome.
fn counts(params: &str) -> (BTreeMap<String, usize>, BTreeMap<String, usize>) {
    let place = Place::new();
    let sim = Sim::start(&place, params);
    // All 60 are sent: one look, no early stop.
    place.write("gate.yaml", &quick_spec("faulty", &sim.url(), 60));
    let ended = place.gate_once(&["check", "gate.yaml"]);
    ended.expect_code(1);
    let run = place.run("faulty");
    assert_eq!((run.samples.len(), run.warmup.len()), (60, 1), "every planned request ends once");
    let mut seen = BTreeMap::new();
    for sample in run.warmup.iter().chain(&run.samples) {
        *seen.entry(sample.outcome.name().to_owned()).or_insert(0) += 1;
    }
    let mut truth = BTreeMap::new();
    for request in sim.truth()["requests"].as_array().unwrap() {
        let fate = match request["fate"].as_str().unwrap() {
            "complete" => "ok",
            "http_500" => "http_5xx",
            "stream_error" => "stream_error",
            "stall" => "timeout_stall",
            "reset" => "reset",
            "truncate" => "truncated",
            other => panic!("{other}"),
        };
        *truth.entry(fate.to_owned()).or_insert(0) += 1;
    }
    (seen, truth)
}

/// One fault at 30 %: counts equal, and it did occur.
fn one_fault(fault: &str, outcome: Outcome) {
    let (seen, truth) = counts(&format!("ttft: 20ms, tpot: 2ms, faults: {{{fault}: 30%}}"));
    assert_eq!(seen, truth);
    assert!(seen.get(outcome.name()).is_some_and(|count| *count >= 5), "{seen:?}");
}

#[test]
fn status_500() {
    one_fault("http_500", Outcome::Http5xx);
}

#[test]
fn errors_inside_a_200_stream() {
    one_fault("stream_error", Outcome::StreamError);
}

#[test]
fn stalls() {
    one_fault("stall", Outcome::TimeoutStall);
}

#[test]
fn resets() {
    one_fault("reset", Outcome::Reset);
}

#[test]
fn truncations() {
    one_fault("truncate", Outcome::Truncated);
}

#[test]
fn all_at_once() {
    let faults = "http_500: 15%, stream_error: 15%, stall: 15%, reset: 15%, truncate: 15%";
    let (seen, truth) = counts(&format!("ttft: 20ms, tpot: 2ms, seed: 3, faults: {{{faults}}}"));
    assert_eq!(seen, truth);
    assert_eq!(seen.len(), 6, "{seen:?}");
}

#[test]
fn an_engine_that_dies_at_request_26_of_30_is_red_by_the_implied_check() {
    let place = Place::new();
    // After one warm-up request, it dies when the 26th measured one arrives.
    let sim = Sim::start(&place, "ttft: 10ms, tpot: 1ms, dies_after: 27");
    place.write("gate.yaml", &quick_spec("dying", &sim.url(), 30));
    place.gate_once(&["check", "gate.yaml"]).expect_code(1).says("errors.rate < 5%").says("implied");
    let verdict = place.verdict("dying");
    assert_eq!(verdict.status, Status::Violated);
    let failed = place.run("dying").samples.iter().filter(|sample| sample.outcome != Outcome::Ok).count();
    assert!((5..=7).contains(&failed), "the last five, and at most what was open: {failed}");
}
