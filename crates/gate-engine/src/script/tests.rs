use gate_model::{Fault, Faults, Latency, ScriptedFault, Shape};

use super::*;
use crate::after_warmup;

fn content(script: &Script) -> Vec<ScriptEvent> {
    script.events.iter().copied().filter(|event| event.kind != EventKind::Role).collect()
}

fn faulty(rate: f64) -> Faults {
    Faults { http_500: rate, stream_error: rate, stall: rate, reset: rate, truncate: rate, ..Faults::default() }
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
    let faults = Faults {
        http_401: 0.02,
        http_429: 0.03,
        http_500: 0.05,
        stream_error: 0.1,
        stall: 0.12,
        reset: 0.15,
        truncate: 0.18,
        empty: 0.06,
        html_200: 0.04,
        slow_headers: 0.07,
    };
    let params = EngineParams { faults, ..EngineParams::default() };
    let fates: Vec<Fate> = (0..N).map(|number| script(&params, number, 2).fate).collect();
    let rates = [
        (Fate::Http401, 0.02),
        (Fate::Http429, 0.03),
        (Fate::Http500, 0.05),
        (Fate::StreamError, 0.1),
        (Fate::Stall, 0.12),
        (Fate::Reset, 0.15),
        (Fate::Truncate, 0.18),
        (Fate::Empty, 0.06),
        (Fate::Html200, 0.04),
        (Fate::SlowHeaders, 0.07),
        (Fate::Complete, 0.18),
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

#[test]
fn scripted_faults_win_over_rates_and_the_first_that_fits_happens() {
    let scripted = |from, to, fault| ScriptedFault { from, to, fault };
    let params = EngineParams {
        faults: Faults { stall: 1.0, ..Faults::default() },
        script: vec![scripted(2, 3, Fault::Html200), scripted(3, 5, Fault::Http429), scripted(9, 8, Fault::Reset)],
        ..EngineParams::default()
    };
    let fates = |params: &EngineParams| (0..9).map(|number| script(params, number, 5).fate).collect::<Vec<_>>();
    let (stall, html, limited) = (Fate::Stall, Fate::Html200, Fate::Http429);
    assert_eq!(fates(&params), [stall, html, html, limited, limited, stall, stall, stall, stall]);

    let shifted = after_warmup(&EngineParams { dies_after: Some(3), ..params }, 2);
    assert_eq!(fates(&shifted), [stall, stall, stall, html, html, limited, limited, stall, stall]);
    assert_eq!(shifted.dies_after, Some(5));
}

#[test]
fn every_fault_can_be_scripted() {
    for fault in Fault::ALL {
        let params = EngineParams { script: vec![ScriptedFault { from: 1, to: 1, fault }], ..EngineParams::default() };
        let fate = script(&params, 0, 5).fate;
        assert_eq!(serde_json_name(fate), fault.name());
        assert_eq!(script(&params, 1, 5).fate, Fate::Complete);
    }
}

/// The name as serde writes it.
fn serde_json_name(fate: Fate) -> String {
    serde_json::to_value(fate).unwrap().as_str().unwrap().to_owned()
}

#[test]
fn an_empty_stream_ends_when_its_first_token_was_due() {
    let healthy = EngineParams { role_chunk: Some(Nanos::from_millis(5)), ..EngineParams::default() };
    let params = EngineParams { faults: Faults { empty: 1.0, ..Faults::default() }, ..healthy.clone() };
    for number in 0..50 {
        let (empty, whole) = (script(&params, number, 5), script(&healthy, number, 5));
        assert_eq!((empty.tokens(), empty.events.as_slice()), (0, &whole.events[..1]));
        assert_eq!(empty.end, whole.events[1].at);
    }
}

#[test]
fn slow_headers_make_everything_late_and_change_nothing_else() {
    let healthy = EngineParams::default();
    let faults = Faults { slow_headers: 1.0, ..Faults::default() };
    let params = EngineParams { faults, slow_headers: Nanos::from_millis(700), ..healthy.clone() };
    let (late, whole) = (script(&params, 3, 9), script(&healthy, 3, 9));
    assert_eq!((whole.headers, late.headers), (Nanos::ZERO, params.slow_headers));
    assert_eq!(late.end - whole.end, params.slow_headers);
    for (late, event) in late.events.iter().zip(&whole.events) {
        assert_eq!((late.kind, late.at - event.at), (event.kind, params.slow_headers));
    }
    assert_eq!(late.events.len(), whole.events.len());
}

#[test]
fn a_server_warms_up_linearly() {
    let params = EngineParams {
        ttft: Latency::constant(Nanos::from_millis(100)),
        tpot: Latency::constant(Nanos::from_millis(10)),
        warming_up: Some(WarmingUp { requests: 10, slowdown: 3.0 }),
        ..EngineParams::default()
    };
    let of =
        |number| content(&script(&params, number, 2)).iter().map(|event| event.at.0 / 1_000_000).collect::<Vec<_>>();
    assert_eq!(of(0), [300, 330]);
    assert_eq!(of(5), [200, 220]);
    assert_eq!(of(9), [120, 132]);
    for number in [10, 11, u32::MAX] {
        assert_eq!(of(number), [100, 110]);
    }
    assert!((0..12).map(|number| script(&params, number, 9).end).is_sorted_by(|left, right| left >= right));

    // A spec refuses such values; the engine has a meaning for them all the same.
    for (requests, slowdown) in [(0, 5.0), (10, 0.5), (10, f64::NAN)] {
        assert_eq!(slowness(WarmingUp { requests, slowdown }, 0), 1.0, "{requests} {slowdown}");
    }
}

#[test]
fn warming_up_scales_the_draws_and_keeps_them() {
    let warm = EngineParams::default();
    let cold = EngineParams { warming_up: Some(WarmingUp { requests: 4, slowdown: 2.0 }), ..warm.clone() };
    let (slow, normal) = (content(&script(&cold, 0, 20)), content(&script(&warm, 0, 20)));
    for (slow, normal) in slow.iter().zip(&normal) {
        assert!((slow.at.0 - 2 * normal.at.0).abs() <= 40, "{slow:?} {normal:?}");
    }
    assert_eq!(script(&cold, 4, 20), script(&warm, 4, 20));
}
