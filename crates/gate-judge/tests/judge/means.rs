//! Means, and percentiles of gaps: numbers that are tested by Student's t.

use gate_judge::plan_notes;
use gate_model::{
    Cause, CheckOutcome, CheckVerdict, EndReason, Finding, Histogram, Nanos, Outcome, Quantity, Rule, Sample, Side,
    Usage,
};

use crate::support::{alone, failed, gate, judge, ok, run, section, streamed};

const WITHIN: CheckOutcome = CheckOutcome::Inconclusive { side: Side::Within };
const OVER: CheckOutcome = CheckOutcome::Inconclusive { side: Side::Over };

#[track_caller]
fn close(computed: Option<f64>, expected: f64) {
    let computed = computed.unwrap();
    assert!((computed - expected).abs() < 1e-8 * expected.abs(), "computed {computed}, expected {expected}");
}

/// 30 requests whose TTFT is 90 and 110 ms in turn.
fn alternating(text: &str) -> CheckVerdict {
    alone(text, (0..30).map(|index| ok(index, if index.is_multiple_of(2) { 90.0 } else { 110.0 }, 10.0)).collect())
}

#[test]
fn a_mean_is_decided_by_its_error() {
    // t = 3.5 ms / 1.857 ms at 29 degrees of freedom; computed with scipy.
    let verdict = alternating("ttft.mean < 96.5ms");
    assert_eq!((verdict.rule, verdict.outcome), (Rule::Mean, CheckOutcome::Violated));
    assert_eq!(verdict.seen, Some(Quantity::time(Nanos::from_millis(100))));
    let evidence = verdict.evidence.unwrap();
    assert_eq!((evidence.n, evidence.k, evidence.allowed, evidence.needed), (30, 0, 0.0, None));
    close(evidence.p_fail, 0.034_756_661_018_619_815);
    close(evidence.p_pass, 0.965_243_338_981_380_2);
    assert!((evidence.level.unwrap() - 0.05).abs() < 1e-15);
    assert_eq!(evidence.design_effect, 1.0);
    close(evidence.lower.map(|bound| bound.value), 96.844_800_322_020_93e6);
    close(evidence.upper.map(|bound| bound.value), 103.155_199_677_979_07e6);
    for (text, expected) in [
        ("ttft.mean < 97ms", OVER),
        ("ttft.mean < 103ms", WITHIN),
        ("ttft.mean < 103.5ms", CheckOutcome::Met),
        ("ttft.mean > 103.5ms", CheckOutcome::Violated),
        ("ttft.mean > 103ms", OVER),
        ("ttft.mean > 97ms", WITHIN),
        ("ttft.mean > 96.5ms", CheckOutcome::Met),
        ("ttft.mean == 100ms", CheckOutcome::Met),
    ] {
        assert_eq!(alternating(text).outcome, expected, "{text}");
    }
}

#[test]
fn neighbours_that_are_alike_are_less_evidence() {
    // The same values, 15 low ones first.
    let sorted = (0..30).map(|index| ok(index, if index < 15 { 90.0 } else { 110.0 }, 10.0)).collect();
    let verdict = alone("ttft.mean < 96.5ms", sorted);
    assert_eq!(verdict.outcome, OVER);
    assert!(verdict.evidence.unwrap().design_effect > 5.0);
}

#[test]
fn a_mean_without_spread_is_decided_by_its_side() {
    let constant = |text: &str| alone(text, (0..30).map(|index| ok(index, 100.0, 10.0)).collect()).outcome;
    assert_eq!(constant("ttft.mean < 99ms"), CheckOutcome::Violated);
    assert_eq!(constant("ttft.mean < 101ms"), CheckOutcome::Met);
    assert_eq!(constant("ttft.mean < 100ms"), OVER);
    assert_eq!(constant("ttft.mean <= 100ms"), WITHIN);
    assert_eq!(constant("output_tokens.mean >= 49"), CheckOutcome::Met);
}

#[test]
fn no_time_is_below_zero() {
    let spread = |index: u32| ok(index, if index == 3 { 30_000.0 } else { 1.0 }, 10.0);
    let evidence = alone("ttft.mean < 90s", (0..30).map(spread).collect()).evidence.unwrap();
    assert_eq!(evidence.lower.unwrap().value, 0.0);
    assert!(evidence.upper.unwrap().value > 1e9);
}

#[test]
fn few_values_prove_no_mean() {
    let few = |n: u32| {
        let samples = (0..40).map(|index| {
            let cached = (index < n).then_some(64);
            let usage = Usage { input: Some(100), output: Some(50), cached, ..Usage::default() };
            Sample { usage: Some(usage), ..ok(index, 100.0, 10.0) }
        });
        alone("cached_tokens.mean >= 32", samples.collect()).outcome
    };
    let too_few = |ok| CheckOutcome::CouldNotMeasure { cause: Cause::TooFewOk { ok, needed: 20 } };
    assert_eq!(few(4), CheckOutcome::CouldNotMeasure { cause: Cause::NoData });
    assert_eq!(few(19), too_few(19));
    assert_eq!(few(20), CheckOutcome::Met);
    let failing: Vec<_> = (0..30)
        .map(
            |index: u32| if index.is_multiple_of(3) { ok(index, 900.0, 10.0) } else { failed(index, Outcome::Http5xx) },
        )
        .collect();
    assert_eq!(alone("ttft.mean < 1s", failing.clone()).outcome, too_few(10));
    assert_eq!(alone("ttft.mean < 800ms", failing).outcome, CheckOutcome::Violated);
}

/// So many requests of 20 gaps: so many of them, by request, take 60 ms, the others 10 ms.
fn gaps_of(requests: u32, text: &str, slow: impl Fn(u32) -> usize) -> CheckVerdict {
    let gaps = |index: u32| -> Vec<f64> { (0..20).map(|gap| if gap < slow(index) { 60.0 } else { 10.0 }).collect() };
    alone(text, (0..requests).map(|index| streamed(index, &gaps(index))).collect())
}

fn slow_gaps(text: &str, slow: impl Fn(u32) -> usize) -> CheckVerdict {
    gaps_of(30, text, slow)
}

#[test]
fn gaps_count_by_request() {
    // A P95 allows each request one of its 20 gaps; five have two beyond 50 ms. Computed with scipy.
    let verdict = slow_gaps("itl.p95 < 50ms", |index| if index.is_multiple_of(6) { 2 } else { 1 });
    assert_eq!((verdict.rule, verdict.outcome), (Rule::Cluster, CheckOutcome::Violated));
    assert_eq!(verdict.seen, Some(Quantity::time(Nanos::from_millis(60))));
    let evidence = verdict.evidence.unwrap();
    assert_eq!((evidence.n, evidence.k, evidence.allowed, evidence.needed), (30, 5, 0.0, None));
    close(evidence.p_fail, 0.011_304_189_698_396_293);
    close(evidence.p_pass, 0.988_695_810_301_603_7);
    assert_eq!((evidence.lower, evidence.upper), (None, None));
}

#[test]
fn requests_exactly_at_the_limit_prove_nothing() {
    for metric in ["itl", "icl"] {
        let verdict = slow_gaps(&format!("{metric}.p95 < 50ms"), |_| 1);
        assert_eq!((verdict.outcome, verdict.seen), (WITHIN, Some(Quantity::time(Nanos::from_millis(10)))));
    }
    // In doubles 7 % of 100 gaps are more than 7.
    let gaps: Vec<f64> = (0..100).map(|gap| if gap < 7 { 60.0 } else { 10.0 }).collect();
    let verdict = alone("icl.p93 < 50ms", (0..30).map(|index| streamed(index, &gaps)).collect());
    assert_eq!((verdict.outcome, verdict.evidence.unwrap().k), (WITHIN, 0));
}

#[test]
fn gaps_are_proven_by_no_fewer_requests_than_other_percentiles() {
    // A slow request may just not have been seen: .95^58 is above .05.
    for metric in ["itl", "icl"] {
        let proven = |requests: u32| gaps_of(requests, &format!("{metric}.p95 < 50ms"), |_| 0).outcome;
        assert_eq!([30, 58, 59].map(proven), [WITHIN, WITHIN, CheckOutcome::Met]);
        let check = format!("{metric}.p95 < 50ms");
        let notes = |requests| plan_notes(&gate(&[&check, "ttft.p50 < 1s"], &[]), &[section(&[requests])]);
        assert_eq!(notes(58), [Finding::CannotProve { check: check.clone(), n: 58, needed: 59 }]);
        assert_eq!(notes(59), []);
    }
    assert_eq!(slow_gaps("icl.p90 < 50ms", |_| 0).outcome, CheckOutcome::Met);
    // With 100 requests a P95 may have 1 that is slow as a whole, as a P95 of requests may; not 2.
    let slow = |requests: u32| gaps_of(100, "icl.p95 < 50ms", |index| if index < requests { 20 } else { 0 }).outcome;
    assert_eq!([1, 2].map(slow), [CheckOutcome::Met, WITHIN]);
    // Slow gaps that are spread evenly leave less to doubt.
    assert_eq!(gaps_of(100, "icl.p90 < 50ms", |_| 1).outcome, CheckOutcome::Met);
}

#[test]
fn gaps_of_few_slow_requests_are_little_evidence() {
    // 60 of 600 gaps are twice what is allowed, but all in three requests.
    let verdict = slow_gaps("itl.p95 < 50ms", |index| if index % 10 == 3 { 20 } else { 0 });
    assert_eq!((verdict.outcome, verdict.evidence.unwrap().k), (OVER, 3));
}

#[test]
fn a_lower_bound_on_gaps_is_mirrored() {
    // At most 5 % of the gaps may lie at or under 5 ms.
    let outcome = |text: &str| gaps_of(60, text, |_| 3).outcome;
    assert_eq!(outcome("icl.p5 > 5ms"), CheckOutcome::Met);
    assert_eq!(outcome("icl.p5 > 10ms"), CheckOutcome::Violated);
    assert_eq!(outcome("icl.p5 >= 10ms"), CheckOutcome::Met);
}

#[test]
fn one_gap_violates_a_largest_gap() {
    let verdict = slow_gaps("icl.max < 50ms", |index| if index == 7 { 2 } else { 0 });
    assert_eq!((verdict.rule, verdict.outcome), (Rule::Extreme, CheckOutcome::Violated));
    assert_eq!(verdict.seen, Some(Quantity::time(Nanos::from_millis(60))));
    let evidence = verdict.evidence.unwrap();
    assert_eq!((evidence.n, evidence.k, evidence.needed), (30, 1, Some(1)));
    assert_eq!(slow_gaps("itl.max <= 60ms", |_| 2).outcome, WITHIN);
}

#[test]
fn only_ok_requests_have_gaps_and_only_single_tokens_an_itl() {
    let none = CheckOutcome::CouldNotMeasure { cause: Cause::NoData };
    let two_tokens_each = |index: u32| {
        let usage = Usage { input: Some(100), output: Some(42), ..Usage::default() };
        Sample { usage: Some(usage), ..streamed(index, &[10.0; 20]) }
    };
    assert_eq!(alone("itl.p95 < 50ms", (0..60).map(two_tokens_each).collect()).outcome, none);
    assert_eq!(alone("icl.p95 < 50ms", (0..60).map(two_tokens_each).collect()).outcome, CheckOutcome::Met);
    let failing = |index: u32| {
        let sample = streamed(index, &[if index.is_multiple_of(4) { 90.0 } else { 10.0 }; 20]);
        if index.is_multiple_of(4) { Sample { outcome: Outcome::TimeoutStall, ..sample } } else { sample }
    };
    let verdict = alone("icl.p95 < 50ms", (0..80).map(failing).collect());
    assert_eq!((verdict.outcome, verdict.evidence.unwrap().n), (CheckOutcome::Met, 60));
    let unknown = |index: u32| Sample { usage: None, ..streamed(index, &[10.0; 20]) };
    let verdict = alone("itl.p95 < 50ms", (0..60).map(unknown).collect());
    assert_eq!(verdict.outcome, CheckOutcome::CouldNotMeasure { cause: Cause::EstimatedTokens });
}

#[test]
fn past_the_token_times_gaps_come_from_the_histogram() {
    let samples = (0..30).map(|index| {
        let mut gaps = Histogram::default();
        (0..20).for_each(|gap| gaps.record(Nanos::from_millis(if gap < 2 { 60 } else { 10 })));
        Sample { token_times: Vec::new(), gaps, ..streamed(index, &[10.0; 20]) }
    });
    let verdict = alone("icl.p95 < 50ms", samples.collect());
    assert_eq!(verdict.outcome, CheckOutcome::Violated);
    let seen = verdict.seen.unwrap().value;
    assert!((58e6..=60e6).contains(&seen), "{seen}");
}

#[test]
fn effective_time_per_token_is_a_ratio_of_sums() {
    // 10 of 30 requests: 9 gaps of 100 ms over 10 tokens; the others: 19 gaps of 10 ms over 20.
    let samples: Vec<Sample> = (0..30)
        .map(|index| if index < 10 { streamed(index, &[100.0; 9]) } else { streamed(index, &[10.0; 19]) })
        .collect();
    let verdict = alone("tpot.effective < 26ms", samples.clone());
    assert_eq!((verdict.rule, verdict.outcome), (Rule::Point, CheckOutcome::Met));
    let expected = (10.0 * 900.0 + 20.0 * 190.0) / (10.0 * 10.0 + 20.0 * 20.0);
    assert!((verdict.seen.unwrap().value / 1e6 - expected).abs() < 1e-9);
    assert_eq!(alone("tpot.effective < 25.5ms", samples.clone()).outcome, CheckOutcome::Violated);
    let unknown = samples.into_iter().map(|sample| Sample { usage: None, ..sample });
    let cause = Cause::EstimatedTokens;
    assert_eq!(alone("tpot.effective < 1s", unknown.collect()).outcome, CheckOutcome::CouldNotMeasure { cause });
}

#[test]
fn the_error_probability_is_divided_among_looks_and_checks() {
    let samples: Vec<Sample> = (0..100).map(|index| streamed(index, &[10.0; 20])).collect();
    let level = |require: &[&str]| {
        let verdict = judge(&run(&gate(require, &[]), samples.clone(), EndReason::Completed));
        verdict.checks[0].evidence.as_ref().unwrap().level.unwrap()
    };
    let close = |level: f64, expected: f64| assert!((level - expected).abs() < 1e-15, "{level} {expected}");
    close(level(&["e2e.mean < 1s"]), 0.05 / 3.0);
    close(level(&["icl.p95 < 1s", "e2e.mean < 1s", "ttft.p95 < 1s", "errors.rate < 5%"]), 0.05 / 9.0);
    // Preferred ones are judged once.
    let verdict = judge(&run(&gate(&["ttft.p95 < 1s"], &["e2e.mean < 1s"]), samples, EndReason::Completed));
    close(verdict.checks[1].evidence.as_ref().unwrap().level.unwrap(), 0.05);
}

#[test]
fn means_and_gaps_never_ask_for_more_requests() {
    let slow = |index: u32| streamed(index, &[if index.is_multiple_of(2) { 10.0 } else { 12.0 }; 20]);
    let decided = |require: &[&str]| {
        let verdict = judge(&run(&gate(require, &[]), (0..100).map(slow).collect(), EndReason::Completed));
        (verdict.checks.iter().map(|one| one.outcome.clone()).collect::<Vec<_>>(), verdict.run.decided_at)
    };
    // Seen over, and not proven.
    assert_eq!(decided(&["e2e.mean < 319ms"]), (vec![OVER], Some(30)));
    assert_eq!(decided(&["icl.p45 < 12ms"]).1, Some(30));
    // What another check asks for is evidence for them too.
    let (outcomes, at) = decided(&["e2e.mean < 315ms", "e2e.p52 < 301ms"]);
    assert_eq!((outcomes[0].clone(), at), (CheckOutcome::Violated, Some(100)));
}
