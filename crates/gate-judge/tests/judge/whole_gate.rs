//! Several checks together: looks, the shared error probability, importance, and the exit code.

use gate_model::{
    CheckOutcome, EndReason, ExitCode, Finding, Iterations, Outcome, Policy, Sample, Side, Status, Verdict,
};

use crate::support::{failed, gate, judge, ok, run, run_of, slow_at, streamed};

const WITHIN: CheckOutcome = CheckOutcome::Inconclusive { side: Side::Within };
const OVER: CheckOutcome = CheckOutcome::Inconclusive { side: Side::Over };

fn outcomes(verdict: &Verdict) -> Vec<CheckOutcome> {
    verdict.checks.iter().map(|one| one.outcome.clone()).collect()
}

/// Requests with a TTFT and a TPOT of 900 ms at the given places.
fn samples(n: u32, slow_ttft: &[u32], slow_tpot: &[u32]) -> Vec<Sample> {
    let millis = |slow: &[u32], index: u32| if slow.contains(&index) { 900.0 } else { 10.0 };
    (0..n).map(|index| ok(index, millis(slow_ttft, index), millis(slow_tpot, index))).collect()
}

#[test]
fn a_healthy_gate_stops_at_its_first_look() {
    let spec = gate(&["ttft.p50 < 400ms", "ttft.p95 < 800ms", "errors.rate < 5%"], &[]);
    let verdict = judge(&run_of(&spec, &slow_at(100, &[])));
    assert_eq!((verdict.status, verdict.exit), (Status::Passed, ExitCode::Passed));
    assert_eq!((verdict.run.decided_at, verdict.run.judged, verdict.run.planned), (Some(30), 30, 100));
    assert_eq!(outcomes(&verdict), [CheckOutcome::Met, WITHIN, CheckOutcome::Met]);
}

#[test]
fn a_gate_that_requires_nothing_is_never_green() {
    let prefer = ["ttft.p95 < 800ms"];
    assert_eq!(judge(&run_of(&gate(&[], &prefer), &slow_at(100, &[]))).exit, ExitCode::CouldNotMeasure);
    assert_eq!(judge(&run_of(&gate(&[], &[]), &slow_at(100, &[]))).exit, ExitCode::CouldNotMeasure);
}

#[test]
fn a_run_that_was_sent_in_full_is_judged_in_full() {
    // `gate run` has no referee: 20 failures after a healthy first look are not ignored.
    let spec = gate(&["ttft.p95 < 800ms", "errors.rate < 5%"], &[]);
    let samples: Vec<_> = (0..100)
        .map(|index| if index < 80 { ok(index, 100.0, 10.0) } else { failed(index, Outcome::Connect) })
        .collect();
    let mut whole = run(&spec, samples, EndReason::Interrupted);
    whole.end.as_mut().unwrap().reason = EndReason::Completed;
    let verdict = judge(&whole);
    assert_eq!(verdict.run.decided_at, Some(100));
    assert_eq!(verdict.checks[1].outcome, CheckOutcome::Violated);
    assert_eq!(verdict.exit, ExitCode::Violated);
}

#[test]
fn what_comes_after_the_deciding_look_is_not_scored() {
    let spec = gate(&["ttft.p95 < 800ms"], &[]);
    let verdict = judge(&run_of(&spec, &slow_at(100, &(30..100).collect::<Vec<_>>())));
    assert_eq!((outcomes(&verdict), verdict.run.decided_at), (vec![WITHIN], Some(30)));
    assert_eq!(verdict.checks[0].evidence.as_ref().unwrap().n, 30);
    assert_eq!(verdict.run.sent, 100);
}

#[test]
fn only_what_is_over_goes_on() {
    let spec = gate(&["ttft.p95 < 800ms"], &[]);
    let at = |slow: &[usize]| {
        let verdict = judge(&run_of(&spec, &slow_at(100, slow)));
        (verdict.checks[0].outcome.clone(), verdict.run.decided_at, verdict.status)
    };
    assert_eq!(at(&[3, 9]), (WITHIN, Some(50), Status::Passed));
    assert_eq!(at(&[3, 9, 35, 41]), (WITHIN, Some(100), Status::Passed));
    assert_eq!(at(&[3, 9, 35, 41, 66, 72]), (OVER, Some(100), Status::PassedWithWarnings));
    assert_eq!(at(&[1, 8, 14, 20, 27]), (CheckOutcome::Violated, Some(30), Status::Violated));
}

#[test]
fn no_order_of_checks_changes_an_outcome() {
    let texts = ["ttft.p95 < 800ms", "tpot.p95 < 800ms", "e2e.p50 < 10s", "ttft.max < 10s", "errors.rate < 5%"];
    let samples = samples(100, &[1, 7, 13, 19, 25, 28, 33, 40], &[2, 9, 30]);
    let mut by_text = Vec::new();
    for rotation in 0..texts.len() {
        let mut rotated = texts;
        rotated.rotate_left(rotation);
        let verdict = judge(&run(&gate(&rotated, &[]), samples.clone(), EndReason::Completed));
        let mut outcomes: Vec<_> =
            verdict.checks.iter().map(|one| (one.check.to_string(), one.outcome.clone())).collect();
        outcomes.sort_by(|left, right| left.0.cmp(&right.0));
        by_text.push((outcomes, verdict.run.decided_at));
    }
    assert!(by_text.windows(2).all(|pair| pair[0] == pair[1]));
    assert!(by_text[0].0.contains(&("ttft.p95 < 800ms".to_owned(), CheckOutcome::Violated)));
}

#[test]
fn the_error_probability_is_shared() {
    // Five of 30 violate one check alone, and no longer one of eight.
    let ttfts = slow_at(30, &[1, 8, 14, 20, 27]);
    let once = |texts: &[&str]| {
        let mut spec = gate(texts, &[]);
        spec.load.iterations = Iterations::Fixed(30);
        judge(&run_of(&spec, &ttfts)).checks[0].clone()
    };
    assert_eq!(once(&["ttft.p95 < 800ms"]).outcome, CheckOutcome::Violated);
    let many = [
        "ttft.p95 < 800ms",
        "e2e.p50 < 9s",
        "e2e.p90 < 9s",
        "e2e.p95 < 9s",
        "tpot.p50 < 9s",
        "tpot.p90 < 9s",
        "tpot.p95 < 9s",
        "ttft.p50 < 9s",
    ];
    let shared = once(&many);
    assert_eq!(shared.outcome, OVER);
    assert_eq!(shared.evidence.unwrap().needed, Some(6));
    // Counted and point checks have no share in it.
    assert_eq!(
        once(&["ttft.p95 < 800ms", "errors.rate < 5%", "throughput.requests > 1/s"]).outcome,
        CheckOutcome::Violated
    );
}

#[test]
fn once_red_the_step_down_names_further_culprits() {
    // With four checks left, it takes six of 30 to violate a P95; with three left, five.
    let slow = [1, 8, 14, 20, 27];
    let others = ["output_tokens.p50 >= 50", "ttft.p50 < 5s"];
    let mut spec = gate(&["tpot.p95 < 800ms", "ttft.p95 < 800ms", others[0], others[1]], &[]);
    spec.load.iterations = Iterations::Fixed(30);
    let verdict = |slow_tpot: &[u32]| judge(&run(&spec, samples(30, &slow, slow_tpot), EndReason::Completed));
    assert_eq!(outcomes(&verdict(&[])), [WITHIN, OVER, CheckOutcome::Met, CheckOutcome::Met]);
    let both = verdict(&[0, 4, 9, 13, 17, 22, 26, 29]);
    assert_eq!(outcomes(&both)[..2], [CheckOutcome::Violated, CheckOutcome::Violated]);
    assert_eq!(both.checks[0].evidence.as_ref().unwrap().needed, Some(6));
    assert_eq!(both.checks[1].evidence.as_ref().unwrap().needed, Some(5));
}

#[test]
fn a_preferred_check_never_extends_and_never_costs() {
    let slow: Vec<usize> = (0..100).step_by(3).collect();
    let spec = gate(&["ttft.p50 < 800ms"], &["ttft.p95 < 800ms", "errors.rate == 0%"]);
    let verdict = judge(&run_of(&spec, &slow_at(100, &slow)));
    assert_eq!(outcomes(&verdict)[1], CheckOutcome::Violated);
    assert_eq!((verdict.status, verdict.exit), (Status::PassedWithWarnings, ExitCode::Passed));
    assert_eq!(verdict.run.decided_at, Some(30));
    // It takes nothing from the required ones either.
    let ttfts = slow_at(30, &[1, 8, 14, 20, 27]);
    let prefer = ["e2e.p50 < 9s", "e2e.p90 < 9s", "tpot.p50 < 9s", "tpot.p90 < 9s"];
    let verdict = judge(&run_of(&gate(&["ttft.p95 < 800ms"], &prefer), &ttfts));
    assert_eq!(outcomes(&verdict)[0], CheckOutcome::Violated);
}

#[test]
fn a_counted_check_that_is_over_goes_on_and_is_decided_at_the_end() {
    let spec = gate(&["ttft.p95 < 800ms", "errors.rate < 5%"], &[]);
    let with_failures = |places: &[u32]| {
        let samples = (0..100)
            .map(|index| if places.contains(&index) { failed(index, Outcome::Http5xx) } else { ok(index, 100.0, 10.0) })
            .collect();
        judge(&run(&spec, samples, EndReason::Completed))
    };
    let recovered = with_failures(&[4, 19]);
    assert_eq!((recovered.run.decided_at, recovered.exit), (Some(50), ExitCode::Passed));
    assert_eq!(recovered.status, Status::Passed);
    assert!(matches!(recovered.findings[..], [Finding::Failure { outcome: Outcome::Http5xx, count: 2, .. }]));
    let red = with_failures(&[4, 19, 40, 44, 71]);
    assert_eq!((red.run.decided_at, red.exit), (Some(100), ExitCode::Violated));
    assert_eq!(outcomes(&red), [CheckOutcome::Met, CheckOutcome::Violated]);
}

#[test]
fn a_point_check_is_decided_beside_the_loop() {
    // Broken at every look, it asks for no more requests, and it breaks the build.
    let spec = gate(&["ttft.p95 < 800ms", "throughput.requests > 10/s"], &[]);
    let verdict = judge(&run_of(&spec, &slow_at(100, &[])));
    assert_eq!(outcomes(&verdict), [WITHIN, CheckOutcome::Violated]);
    assert_eq!((verdict.run.decided_at, verdict.exit), (Some(30), ExitCode::Violated));
}

#[test]
fn what_is_not_proven_costs_what_the_spec_says() {
    let mut spec = gate(&["ttft.p95 < 800ms"], &[]);
    let ttfts = slow_at(100, &[3, 9, 35, 41, 66, 72]);
    assert_eq!(judge(&run_of(&spec, &ttfts)).exit, ExitCode::Passed);
    spec.outcomes.inconclusive = Policy::Fail;
    let verdict = judge(&run_of(&spec, &ttfts));
    assert_eq!((verdict.status, verdict.exit), (Status::Inconclusive, ExitCode::Inconclusive));
    assert_eq!(judge(&run_of(&spec, &slow_at(100, &[]))).exit, ExitCode::Passed);
}

#[test]
fn an_engine_that_dies_at_request_26_is_red() {
    let mut spec = gate(&["ttft.p95 < 800ms", "errors.rate < 5%"], &[]);
    spec.load.iterations = Iterations::Fixed(30);
    let samples = (0..30)
        .map(|index| if index < 26 { ok(index, 100.0, 10.0) } else { failed(index, Outcome::Connect) })
        .collect();
    let verdict = judge(&run(&spec, samples, EndReason::Completed));
    assert_eq!(outcomes(&verdict), [WITHIN, CheckOutcome::Violated]);
    assert_eq!(verdict.exit, ExitCode::Violated);
}

#[test]
fn figures_and_facts_are_whole() {
    let mut spec = gate(&["ttft.p95 < 800ms"], &[]);
    spec.slo.ttft = Some(gate_model::Nanos::from_millis(800));
    let mut run = run_of(&spec, &slow_at(30, &[5]));
    let mut cold = ok(0, 2000.0, 10.0);
    cold.intended = gate_model::Nanos::from_secs(-99);
    run.warmup.push(cold);
    let verdict = judge(&run);
    let figures: Vec<String> = verdict
        .figures
        .iter()
        .map(|figure| format!("{} {} {}", figure.metric, figure.value.unwrap(), figure.n))
        .collect();
    assert_eq!(
        figures,
        [
            "ttft.p50 100 ms 30",
            "ttft.p95 100 ms 30",
            "tpot.p50 10 ms 30",
            "tpot.p95 10 ms 30",
            "tpot_e2e.p50 11.8 ms 30",
            "tpot.effective 9.8 ms 30",
            "e2e.p50 590 ms 30",
            "e2e.p95 590 ms 30",
            "errors.rate 0 % 30",
            "attainment 96.7 % 30",
            "goodput 1.92/s 30",
            "throughput.requests 1.99/s 30",
            "throughput.output_tokens 99.4 tok/s 30",
            "input_tokens.p50 100 30",
            "output_tokens.p50 50 30",
            "headers.p50 100 ms 30",
            "headers.p95 100 ms 30",
        ]
    );
    assert_eq!(verdict.run.cold_ttft, Some(gate_model::Nanos::from_millis(2000)));
    assert_eq!(verdict.run.rates, Some((2.0, 2.0)));
    assert_eq!(verdict.run.send_lag, Some((gate_model::Nanos::ZERO, gate_model::Nanos::ZERO)));
    assert_eq!(verdict.run.target, "sim");
    assert!(verdict.simulated);
}

#[test]
fn gaps_have_figures_where_they_are_known() {
    let spec = gate(&["ttft.p95 < 800ms"], &[]);
    let names = |spec: &gate_model::GateSpec, samples: Vec<Sample>| -> Vec<String> {
        let verdict = judge(&run(spec, samples, EndReason::Completed));
        let figure = |figure: &gate_model::Figure| match figure.value {
            Some(value) => format!("{} {value} {}", figure.metric, figure.n),
            None => figure.metric.to_string(),
        };
        verdict.figures.iter().map(figure).collect()
    };
    let gaps = |index: u32| if index.is_multiple_of(10) { vec![40.0; 20] } else { vec![10.0; 20] };
    let samples: Vec<Sample> = (0..30).map(|index| streamed(index, &gaps(index))).collect();
    let figures = names(&spec, samples.clone());
    for expected in ["itl.p50 10 ms 30", "itl.p95 40 ms 30", "icl.p95 40 ms 30"] {
        assert!(figures.iter().any(|figure| figure == expected), "{figures:?}");
    }
    // Without usage it is unknown how many tokens an event carried.
    let unknown = samples.iter().cloned().map(|sample| Sample { usage: None, ..sample });
    let figures = names(&spec, unknown.collect());
    assert!(!figures.iter().any(|figure| figure.starts_with("itl")), "{figures:?}");
    assert!(figures.contains(&"icl.p95 40 ms 30".to_owned()), "{figures:?}");
    // An answer that comes whole has only its end.
    let mut whole = spec;
    whole.target.delivery = gate_model::Delivery::Whole;
    assert_eq!(
        names(&whole, samples),
        [
            "e2e.p50 300 ms 30",
            "e2e.p95 900 ms 30",
            "errors.rate 0 % 30",
            "throughput.requests 2.03/s 30",
            "throughput.output_tokens 42.6 tok/s 30",
            "input_tokens.p50 100 30",
            "output_tokens.p50 21 30",
            "headers.p50 100 ms 30",
            "headers.p95 100 ms 30",
        ]
    );
}
