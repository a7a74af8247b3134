use gate_model::{Latency, Shape};

use super::*;

fn content(script: &Script) -> Vec<ScriptEvent> {
    script.events.iter().copied().filter(|event| event.kind != EventKind::Role).collect()
}

fn faulty(rate: f64) -> Faults {
    Faults { http_500: rate, stream_error: rate, stall: rate, reset: rate, truncate: rate }
}

#[test]
fn a_script_depends_on_seed_and_number_alone() {
    let params = EngineParams::default();
    let scripts: Vec<Script> = (0..20).map(|number| script(&params, number, 50)).collect();
    let backwards: Vec<Script> = (0..20).rev().map(|number| script(&params, number, 50)).collect();
    assert!(scripts.iter().eq(backwards.iter().rev()));
    for (position, left) in scripts.iter().enumerate() {
        assert!(scripts[position + 1..].iter().all(|right| left != right));
    }
    let other = EngineParams { seed: 1, ..params };
    assert_ne!(scripts[0], script(&other, 0, 50));
}

#[test]
fn faults_and_lengths_leave_the_times_before_them_alone() {
    let healthy = EngineParams::default();
    let sick = EngineParams { faults: faulty(0.2), ..healthy.clone() };
    for number in 0..200 {
        let (whole, cut) = (script(&healthy, number, 30), script(&sick, number, 30));
        assert!(whole.events.starts_with(&cut.events), "request {number}");
        let next = whole.events.get(cut.events.len()).map(|event| event.at);
        match cut.fate {
            Fate::StreamError | Fate::Reset | Fate::Truncate => assert_eq!(Some(cut.end), next),
            Fate::Http500 => assert!(cut.events.is_empty() && cut.end == Nanos::ZERO),
            _ => assert_eq!(Some(cut.end), cut.events.last().map(|event| event.at)),
        }
        assert!(whole.events.starts_with(&script(&healthy, number, 10).events));
    }
}

#[test]
fn fates_come_at_their_rates() {
    const N: u32 = 20_000;
    let faults = Faults { http_500: 0.05, stream_error: 0.1, stall: 0.15, reset: 0.2, truncate: 0.25 };
    let params = EngineParams { faults, ..EngineParams::default() };
    let fates: Vec<Fate> = (0..N).map(|number| script(&params, number, 2).fate).collect();
    let rates = [
        (Fate::Http500, 0.05),
        (Fate::StreamError, 0.1),
        (Fate::Stall, 0.15),
        (Fate::Reset, 0.2),
        (Fate::Truncate, 0.25),
        (Fate::Complete, 0.25),
    ];
    for (fate, rate) in rates {
        let seen = fates.iter().filter(|seen| **seen == fate).count() as f64 / f64::from(N);
        let standard_error = (rate * (1.0 - rate) / f64::from(N)).sqrt();
        assert!((seen - rate).abs() < 4.0 * standard_error, "{fate:?}: {seen} for {rate}");
    }
    let certain = EngineParams { faults: Faults { stall: 1.0, ..Faults::default() }, ..EngineParams::default() };
    assert!((0..200).all(|number| script(&certain, number, 2).fate == Fate::Stall));
}

#[test]
fn a_fault_comes_after_the_first_content_event_and_before_the_last() {
    let faults = Faults { reset: 1.0, ..Faults::default() };
    let params = EngineParams { faults, ..EngineParams::default() };
    let counts: Vec<usize> = (0..500).map(|number| content(&script(&params, number, 4)).len()).collect();
    for count in 1..=3 {
        assert!(counts.contains(&count), "{count} content events");
    }
    assert!(counts.iter().all(|count| (1..=3).contains(count)));
    assert_eq!(content(&script(&params, 0, 1)).len(), 1);
}

#[test]
fn tokens_are_exact_and_grouping_leaves_the_time_per_token_right() {
    let constant = Latency::constant;
    for per_event in [0, 1, 4, 7] {
        for asked in [0, 1, 2, 4, 5, 8, 150] {
            let params = EngineParams {
                ttft: constant(Nanos::from_millis(100)),
                tpot: constant(Nanos::from_millis(10)),
                tokens_per_chunk: per_event,
                ..EngineParams::default()
            };
            let script = script(&params, 3, asked);
            let events = content(&script);
            let tokens = asked.max(1);
            assert_eq!(script.tokens(), tokens);
            assert!(events.iter().all(|event| (1..=per_event.max(1)).contains(&event.kind.tokens())));
            assert_eq!(events[0].at, Nanos::from_millis(100));
            let between = events[events.len() - 1].at - events[0].at;
            assert_eq!(between, Nanos::from_millis(10 * i64::from(tokens - 1)), "{asked} by {per_event}");
        }
    }
}

#[test]
fn the_role_comes_when_it_should_but_never_after_the_content() {
    let ttft = Latency { mean: Nanos::from_millis(100), stddev: Nanos::from_millis(50), shape: Shape::Lognormal };
    for role_chunk in [None, Some(Nanos::ZERO), Some(Nanos::from_millis(80))] {
        let params = EngineParams { ttft, role_chunk, ..EngineParams::default() };
        for number in 0..100 {
            let script = script(&params, number, 3);
            assert!(script.events.is_sorted_by_key(|event| event.at));
            let first = content(&script)[0].at;
            let role = script.events.iter().find(|event| event.kind == EventKind::Role).map(|event| event.at);
            assert_eq!(role, role_chunk.map(|due| due.min(first)));
        }
    }
}
