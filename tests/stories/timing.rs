//! Timings against what the engine really sent.

use gate_model::{Sample, Series};
use serde_json::Value;

use crate::harness::{Place, Sim, quick_spec};

/// Runs 30 requests, and pairs each `ok` sample with the engine's truth of it.
fn pairs(params: &str, tokens: u32) -> Vec<(Sample, Value)> {
    let place = Place::new();
    let (sim, ended) = place.undisturbed(|| {
        let sim = Sim::start(&place, params);
        let spec = quick_spec("timed", &sim.url(), 30)
            .replace("output_tokens: 8", &format!("output_tokens: {tokens}"))
            .replace("rps: 40", "rps: 20, arrivals: constant");
        place.write("gate.yaml", &spec);
        (sim, place.gate_once(&["check", "gate.yaml"]))
    });
    ended.expect_code(0);
    let run = place.run("timed");
    let truth = sim.truth();
    let requests = truth["requests"].as_array().unwrap();
    // Constant arrivals, 50 ms apart: they arrive in the order they are sent.
    run.warmup.iter().chain(&run.samples).cloned().zip(requests.iter().cloned()).collect()
}

/// The truth's times of writes with tokens, in nanoseconds.
fn token_writes(truth: &Value) -> Vec<f64> {
    let writes = truth["writes"].as_array().unwrap().iter();
    writes.filter(|write| write["tokens"].as_u64().unwrap() > 0).map(|write| write["at"].as_f64().unwrap()).collect()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

#[test]
fn a_role_only_chunk_half_a_second_early_does_not_move_ttft() {
    let pairs = pairs("ttft: 700ms, tpot: 2ms, role_chunk: 200ms", 8);
    for (sample, _) in &pairs {
        let (ttft, first_event) = (sample.value(Series::Ttft).unwrap(), sample.value(Series::Ttfe).unwrap());
        assert!(ttft >= 700e6, "no token is seen before it is sent: {ttft}");
        assert!(first_event >= 200e6 && first_event <= ttft);
    }
    let first_event = median(pairs.iter().map(|(sample, _)| sample.value(Series::Ttfe).unwrap()).collect());
    let ttft = median(pairs.iter().map(|(sample, _)| sample.value(Series::Ttft).unwrap()).collect());
    assert!(ttft - first_event > 400e6, "the role came about half a second before: {first_event} {ttft}");
}

#[test]
fn four_tokens_in_a_chunk_leave_tpot_right() {
    let ratios = pairs("ttft: 50ms, tpot: 10ms, tokens_per_chunk: 4", 40).into_iter().map(|(sample, truth)| {
        let writes = token_writes(&truth);
        // The first carries one token, each of the others up to four.
        assert_eq!(writes.len(), 11);
        assert_eq!(sample.content_events, 11);
        assert_eq!(sample.output_tokens().unwrap().0, 40);
        let sent = (writes.last().unwrap() - writes[0]) / 39.0;
        let tpot = sample.value(Series::Tpot).unwrap();
        assert!(tpot >= 5e6, "about 10 ms a token, never a quarter or four times of it: {tpot}");
        tpot / sent
    });
    let ratio = median(ratios.collect());
    assert!((0.9..1.1).contains(&ratio), "seen ÷ sent: {ratio}");
}

#[test]
fn a_buffering_proxy_is_seen_through() {
    let place = Place::new();
    let sim = Sim::start(&place, "ttft: 20ms, tpot: 5ms, buffer: 1MiB");
    place.write("gate.yaml", &quick_spec("held", &sim.url(), 20).replace("output_tokens: 8", "output_tokens: 40"));
    place.gate(&["check", "gate.yaml"]).expect_code(0).says("PASSED WITH WARNINGS").says("burst");
}

#[test]
fn a_server_that_warms_up_is_slow_in_warm_up_only() {
    let place = Place::new();
    let ended = place.undisturbed(|| {
        let sim = Sim::start(&place, "ttft: 100ms, tpot: 1ms, warming_up: {requests: 5, slowdown: 6}");
        place.write("gate.yaml", &quick_spec("cold", &sim.url(), 20).replace("warmup: 1", "warmup: 5"));
        place.gate_once(&["check", "gate.yaml"])
    });
    ended.expect_code(0);
    let run = place.run("cold");
    let cold = run.warmup[0].first_token.unwrap() - run.warmup[0].start.unwrap();
    assert!(cold.0 >= 550_000_000, "the first request of all is six times slower: {cold}");
    assert_eq!(place.verdict("cold").run.cold_ttft, Some(cold));
    let slow = |sample: &Sample| sample.value(Series::Ttft).unwrap() >= 550e6;
    assert!(!run.samples.iter().all(slow), "what is measured is not");
}

#[test]
fn ttft_and_gaps_follow_the_truth() {
    let errors = pairs("ttft: {mean: 60ms, stddev: 20ms}, tpot: {mean: 4ms, stddev: 2ms}", 20).into_iter();
    let errors = errors.map(|(sample, truth)| {
        let writes = token_writes(&truth);
        let since_arrival = writes[0] - truth["arrived"].as_f64().unwrap();
        let seen = (sample.first_token.unwrap() - sample.sent.unwrap()).0 as f64;
        let whole =
            (writes.last().unwrap() - writes[0]) / (sample.last_token.unwrap() - sample.first_token.unwrap()).0 as f64;
        (seen / since_arrival, whole)
    });
    let (ttft, whole): (Vec<f64>, Vec<f64>) = errors.unzip();
    let (ttft, whole) = (median(ttft), median(whole));
    assert!((0.9..1.2).contains(&ttft) && (0.9..1.1).contains(&whole), "{ttft} {whole}");
}
