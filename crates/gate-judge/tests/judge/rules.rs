//! Each rule on examples small enough to check by hand, and on the shared vectors.

use gate_judge::{plan_notes, power, rule};
use gate_model::{
    Cause, CheckOutcome, CheckVerdict, Decide, Delivery, Finding, Importance, Nanos, Outcome, Quantity, Rule, Side,
    Usage,
};
use serde_json::Value;

use crate::support::{alone, check, failed, gate, judge, ok, run_of, section, slow_at};

const WITHIN: CheckOutcome = CheckOutcome::Inconclusive { side: Side::Within };
const OVER: CheckOutcome = CheckOutcome::Inconclusive { side: Side::Over };

fn with_ttfts(text: &str, ttfts: &[f64]) -> CheckVerdict {
    alone(text, (0..).zip(ttfts).map(|(index, ttft)| ok(index, *ttft, 10.0)).collect())
}

#[test]
fn every_metric_has_its_rule() {
    for (text, expected) in [
        ("ttft.p95 < 800ms", Rule::Quantile),
        ("ttft.p95.all < 800ms", Rule::Quantile),
        ("output_tokens.p50 >= 10", Rule::Quantile),
        ("output_tokens.p50 == 10", Rule::Point),
        ("ttft.max < 1s", Rule::Extreme),
        ("ttft.max > 1s", Rule::Point),
        ("output_tokens.min >= 1", Rule::Extreme),
        ("ttft.stddev < 1s", Rule::Point),
        ("ttft.mean < 1s", Rule::Mean),
        ("output_tokens.mean >= 10", Rule::Mean),
        ("output_tokens.mean == 10", Rule::Point),
        ("send_lag.mean < 5ms", Rule::Point),
        ("itl.p95 < 50ms", Rule::Cluster),
        ("icl.p99 > 1ms", Rule::Cluster),
        ("icl.p99 == 1ms", Rule::Point),
        ("icl.max < 1s", Rule::Extreme),
        ("tpot.effective < 50ms", Rule::Point),
        ("send_lag.p99 < 5ms", Rule::Point),
        ("throughput.requests > 1/s", Rule::Point),
        ("attainment >= 95%", Rule::Rate),
        ("errors.5xx < 5%", Rule::Counted),
        ("errors.rate.count == 0", Rule::Counted),
    ] {
        assert_eq!(rule(&check(text, Importance::Required)), expected, "{text}");
    }
}

#[test]
fn decide_takes_a_test_away_or_gives_one() {
    for (text, by_point, by_evidence) in [
        ("ttft.p95 < 800ms", Rule::Point, Rule::Quantile),
        ("ttft.p95.all < 800ms", Rule::Point, Rule::Quantile),
        ("ttft.max < 1s", Rule::Point, Rule::Extreme),
        ("ttft.mean < 1s", Rule::Point, Rule::Mean),
        ("icl.p95 < 50ms", Rule::Point, Rule::Cluster),
        ("attainment >= 95%", Rule::Point, Rule::Rate),
        ("errors.rate < 5%", Rule::Counted, Rule::Rate),
        ("errors.rate.count <= 3", Rule::Counted, Rule::Counted),
        ("throughput.requests > 1/s", Rule::Point, Rule::Point),
    ] {
        let mut check = check(text, Importance::Required);
        check.decide = Some(Decide::Point);
        assert_eq!(rule(&check), by_point, "{text}");
        check.decide = Some(Decide::Evidence);
        assert_eq!(rule(&check), by_evidence, "{text}");
    }
}

#[test]
fn a_percentile_is_decided_by_its_exceedances() {
    // Critical counts of a P95 at n = 100: fails at 10, proven at 1 or fewer.
    let spread = |k: usize| slow_at(100, &(0..k).map(|place| place * 10 + place % 3).collect::<Vec<_>>());
    for (k, expected) in
        [(0, CheckOutcome::Met), (1, CheckOutcome::Met), (2, WITHIN), (5, WITHIN), (6, OVER), (9, OVER)]
    {
        assert_eq!(with_ttfts("ttft.p95 < 800ms", &spread(k)).outcome, expected, "{k}");
    }
    let verdict = with_ttfts("ttft.p95 < 800ms", &spread(10));
    assert_eq!(verdict.outcome, CheckOutcome::Violated);
    assert_eq!(verdict.seen, Some(Quantity::time(Nanos::from_millis(900))));
    let evidence = verdict.evidence.unwrap();
    assert_eq!((evidence.n, evidence.k, evidence.needed), (100, 10, Some(10)));
    assert_eq!(evidence.allowed, 5.0);
    assert!((evidence.p_fail.unwrap() - 0.028_188).abs() < 1e-6);
    assert_eq!(evidence.level, evidence.p_fail);
    assert_eq!(evidence.design_effect, 1.0);
    // Ranks 91 and 99 bound the P95 of 100: 90 fast ones, then 10 slow ones.
    assert_eq!(evidence.lower, Some(Quantity::time(Nanos::from_millis(900))));
    assert_eq!(evidence.upper, Some(Quantity::time(Nanos::from_millis(900))));
}

#[test]
fn a_bound_that_does_not_exist_is_absent() {
    let evidence = with_ttfts("ttft.p95 < 800ms", &slow_at(50, &[])).evidence.unwrap();
    assert!(evidence.lower.is_some());
    assert_eq!(evidence.upper, None);
    assert_eq!(evidence.needed, Some(6));
}

#[test]
fn equal_to_the_limit_is_over_less_and_within_at_most() {
    let at_limit = vec![800.0; 30];
    assert_eq!(with_ttfts("ttft.p50 < 800ms", &at_limit).outcome, CheckOutcome::Violated);
    assert_eq!(with_ttfts("ttft.p50 <= 800ms", &at_limit).outcome, CheckOutcome::Met);
    assert_eq!(with_ttfts("ttft.p50 > 800ms", &at_limit).outcome, CheckOutcome::Violated);
    assert_eq!(with_ttfts("ttft.p50 >= 800ms", &at_limit).outcome, CheckOutcome::Met);
    assert_eq!(with_ttfts("ttft.p50 == 800ms", &at_limit).outcome, CheckOutcome::Met);
    assert_eq!(with_ttfts("ttft.p50 == 801ms", &at_limit).outcome, CheckOutcome::Violated);
}

#[test]
fn a_lower_bound_is_mirrored() {
    // At most Q of the requests may lie at or under the limit: 20 of 30 violate a median, 10 prove it.
    let low = |k: usize| -> Vec<f64> { (0..30).map(|place| if place % 3 < k { 100.0 } else { 900.0 }).collect() };
    assert_eq!(with_ttfts("ttft.p50 > 500ms", &low(2)).outcome, CheckOutcome::Violated);
    let met = with_ttfts("ttft.p50 > 500ms", &low(1));
    assert_eq!(met.outcome, CheckOutcome::Met);
    assert_eq!(met.evidence.unwrap().k, 10);
}

#[test]
fn failures_count_only_where_all_do() {
    let samples: Vec<_> = (0..40)
        .map(|index| if index % 4 == 1 { failed(index, Outcome::Http5xx) } else { ok(index, 100.0, 10.0) })
        .collect();
    let of_ok = alone("ttft.p95 < 800ms", samples.clone());
    assert_eq!((of_ok.outcome, of_ok.evidence.map(|one| (one.n, one.k))), (WITHIN, Some((30, 0))));
    let of_all = alone("ttft.p95.all < 800ms", samples.clone());
    assert_eq!((of_all.outcome, of_all.evidence.map(|one| (one.n, one.k))), (CheckOutcome::Violated, Some((40, 10))));
    assert_eq!(of_all.seen.unwrap().value, f64::INFINITY);
    // A failed request is no long answer either.
    let mirrored = alone("output_tokens.p5.all >= 10", samples);
    assert_eq!((mirrored.outcome, mirrored.seen.unwrap().value), (CheckOutcome::Violated, 0.0));
}

#[test]
fn a_burst_of_exceedances_is_less_evidence() {
    let burst = with_ttfts("ttft.p95 < 800ms", &slow_at(100, &(40..50).collect::<Vec<_>>()));
    assert_eq!(burst.outcome, OVER);
    let evidence = burst.evidence.unwrap();
    assert!(evidence.design_effect > 4.0);
    assert!(evidence.needed.unwrap() > 20);
}

#[test]
fn one_request_violates_an_extreme() {
    let verdict = with_ttfts("ttft.max < 800ms", &slow_at(30, &[7]));
    assert_eq!((verdict.outcome, verdict.evidence.unwrap().needed), (CheckOutcome::Violated, Some(1)));
    assert_eq!(with_ttfts("ttft.max < 800ms", &slow_at(30, &[])).outcome, WITHIN);
    assert_eq!(with_ttfts("ttft.min > 100ms", &slow_at(30, &[])).outcome, CheckOutcome::Violated);
    assert_eq!(with_ttfts("ttft.min >= 100ms", &slow_at(30, &[])).outcome, WITHIN);
}

#[test]
fn attainment_is_decided_by_its_bad_requests() {
    // Bad requests of 50 at 95 %: 6 violate; nothing proves.
    let bad = |k: usize| slow_at(50, &(0..k).map(|place| place * 8).collect::<Vec<_>>());
    let verdict = with_ttfts("attainment >= 95%", &bad(6));
    assert_eq!(verdict.outcome, CheckOutcome::Violated);
    assert_eq!(verdict.seen, Some(Quantity::share(0.88)));
    let evidence = verdict.evidence.unwrap();
    assert_eq!((evidence.n, evidence.k, evidence.needed, evidence.allowed), (50, 6, Some(6), 2.5));
    let (lower, upper) = (evidence.lower.unwrap().value, evidence.upper.unwrap().value);
    assert!(lower < 0.88 && 0.88 < upper && lower > 0.75 && upper < 0.96, "{lower} {upper}");
    assert_eq!(with_ttfts("attainment >= 95%", &bad(5)).outcome, OVER);
    assert_eq!(with_ttfts("attainment >= 95%", &bad(2)).outcome, WITHIN);
    assert_eq!(with_ttfts("attainment >= 100%", &bad(1)).outcome, CheckOutcome::Violated);
    assert_eq!(with_ttfts("attainment == 100%", &bad(0)).outcome, WITHIN);
    // A failed request is bad, however fast.
    let samples = (0..50).map(|index| failed(index, Outcome::Http5xx)).collect();
    assert_eq!(alone("attainment >= 95%", samples).outcome, CheckOutcome::Violated);
}

#[test]
fn errors_are_counted_as_they_are() {
    let with_failures = |k: u32| -> Vec<_> {
        (0..40).map(|index| if index < k { failed(index, Outcome::Http5xx) } else { ok(index, 100.0, 10.0) }).collect()
    };
    let verdict = alone("errors.5xx < 5%", with_failures(2));
    assert_eq!((verdict.outcome, verdict.seen), (CheckOutcome::Violated, Some(Quantity::share(0.05))));
    let evidence = verdict.evidence.unwrap();
    assert_eq!((evidence.k, evidence.needed, evidence.allowed, evidence.p_fail), (2, Some(2), 2.0, None));
    assert!(evidence.lower.is_some() && evidence.upper.is_some());
    assert_eq!(alone("errors.5xx <= 5%", with_failures(2)).outcome, CheckOutcome::Met);
    assert_eq!(alone("errors.rate.count == 0", with_failures(1)).outcome, CheckOutcome::Violated);
    assert_eq!(alone("errors.429 == 0%", with_failures(5)).outcome, CheckOutcome::Met);
    assert_eq!(alone("errors.5xx.count <= 3", with_failures(3)).evidence.unwrap().needed, Some(4));
    let cancelled =
        (0..40).map(|index| if index < 4 { failed(index, Outcome::Cancelled) } else { ok(index, 1.0, 1.0) });
    assert_eq!(alone("errors.rate == 0%", cancelled.collect()).evidence.unwrap().n, 36);
}

#[test]
fn points_are_compared_as_they_are() {
    let ttfts = slow_at(41, &[]);
    // 41 requests, two a second, the last of which ends after 20 s + 590 ms.
    let verdict = with_ttfts("throughput.requests >= 1.9/s", &ttfts);
    assert_eq!(verdict.outcome, CheckOutcome::Met);
    assert!((verdict.seen.unwrap().value - 41.0 / 20.59).abs() < 1e-9);
    assert_eq!(verdict.evidence.map(|one| (one.n, one.level)), Some((41, None)));
    for (text, expected) in [
        ("throughput.output_tokens >= 100tok/s", CheckOutcome::Violated),
        ("throughput.total_tokens >= 290tok/s", CheckOutcome::Met),
        ("goodput > 1.9/s", CheckOutcome::Met),
        ("achieved_rate >= 2/s", CheckOutcome::Met),
        ("send_lag.p99 < 1ms", CheckOutcome::Met),
        ("ttft.stddev <= 0ms", CheckOutcome::Met),
        ("client.cpu < 90%", CheckOutcome::CouldNotMeasure { cause: Cause::NoData }),
    ] {
        assert_eq!(with_ttfts(text, &ttfts).outcome, expected, "{text}");
    }
}

#[test]
fn tpot_is_absent_under_two_tokens() {
    let samples: Vec<_> = (0..40)
        .map(|index| {
            let mut sample = ok(index, 100.0, 10.0);
            sample.usage = Some(Usage { output: Some(if index < 10 { 1 } else { 50 }), ..Usage::default() });
            sample
        })
        .collect();
    assert_eq!(alone("tpot.p50 < 50ms", samples).evidence.unwrap().n, 30);
}

#[test]
fn only_counts_have_a_power() {
    let spec = gate(&["ttft.mean < 800ms", "icl.p95 < 50ms", "ttft.p95 < 800ms"], &["tpot.mean < 1s"]);
    let found = power(&spec, &[section(&spec.load.iterations.looks())]);
    assert_eq!(found.iter().map(Option::is_some).collect::<Vec<_>>(), [false, false, true, false]);
    // Three checks share the error probability, whatever their rules.
    assert_eq!(found[2].as_ref().unwrap().violates_at, [(30, Some(6)), (50, Some(8)), (100, Some(11))]);
}

#[test]
fn power_gives_the_counts_and_what_they_find() {
    let spec = gate(&["ttft.p95 < 800ms", "errors.rate < 5%"], &["ttft.p50 < 100ms"]);
    let found = power(&spec, &[section(&spec.load.iterations.looks())]);
    let tail = found[0].as_ref().unwrap();
    assert_eq!(tail.violates_at, [(30, Some(5)), (50, Some(7)), (100, Some(10))]);
    assert_eq!(tail.proves_at_most, Some(1));
    assert!((tail.allowed_share - 0.05).abs() < 1e-12);
    assert!((0.1..0.2).contains(&tail.detects_share), "{}", tail.detects_share);
    assert_eq!(found[1], None);
    // A preferred check is judged once, where the run ends: each look is by itself.
    assert_eq!(found[2].as_ref().unwrap().violates_at, [(30, Some(20)), (50, Some(32)), (100, Some(59))]);
}

#[test]
fn a_plan_says_what_it_cannot_prove() {
    let spec = gate(&["e2e.p95 < 3s", "e2e.p50 < 2s"], &[]);
    let needs = |check: &str, n| Finding::CannotProve { check: check.to_owned(), n, needed: 59 };
    assert_eq!(plan_notes(&spec, &[section(&[30, 50])]), [needs("e2e.p95 < 3s", 50), Finding::OnlyEndToEnd]);
    assert_eq!(plan_notes(&spec, &[section(&[30, 59])]), [Finding::OnlyEndToEnd]);
    assert_eq!(plan_notes(&gate(&["e2e.p50 < 3s", "ttft.p50 < 1s"], &[]), &[section(&[30])]), []);
    assert_eq!(plan_notes(&gate(&["errors.rate < 5%"], &[]), &[section(&[30])]), []);
    assert_eq!(plan_notes(&gate(&["e2e.p50 < 3s", "tpot.effective < 1s"], &[]), &[section(&[30])]), []);
    let mut whole = gate(&["e2e.p50 < 3s"], &[]);
    assert_eq!(plan_notes(&whole, &[section(&[30])]), [Finding::OnlyEndToEnd]);
    whole.target.delivery = Delivery::Whole;
    assert_eq!(plan_notes(&whole, &[section(&[30])]), []);
}

#[test]
fn adaptive_vectors() {
    let file: Value = serde_json::from_str(include_str!("../../../../fixtures/stats/vectors.json")).unwrap();
    let mut seen = 0;
    for vector in file["vectors"].as_array().unwrap() {
        let params = &vector["params"];
        let (p0, series): (f64, Vec<f64>) = match vector["kind"].as_str().unwrap() {
            "judge_adaptive_series" => {
                let series = vector["input"]["series"].as_array().unwrap();
                (1.0 - params["q"].as_f64().unwrap(), series.iter().map(|one| one.as_f64().unwrap()).collect())
            }
            // Only counts are given: spread them out, so that the design effect is 1.
            "judge_adaptive" => {
                let counts = vector["input"]["cumulative_k"].as_array().unwrap();
                let looks = params["looks"].as_array().unwrap();
                let (mut series, mut before) = (Vec::new(), 0);
                for (count, look) in counts.iter().zip(looks) {
                    let count = count.as_u64().unwrap() as usize;
                    let (from, to) = (series.len(), look.as_u64().unwrap() as usize);
                    let step = if count > before { (to - from) / (count - before) } else { to };
                    let slow = |place: usize| place.is_multiple_of(step) && place / step < count - before;
                    series.extend((0..to - from).map(|place| if slow(place) { 900.0 } else { 300.0 }));
                    before = count;
                }
                (params["p0"].as_f64().unwrap(), series)
            }
            _ => continue,
        };
        seen += 1;
        let spec = gate(&[&format!("ttft.p{} < 800ms", (100.0 * (1.0 - p0)).round())], &[]);
        let verdict = judge(&run_of(&spec, &series));
        let outcome = match vector["expect"]["verdict"].as_str().unwrap() {
            "fail" => CheckOutcome::Violated,
            "pass" => CheckOutcome::Met,
            _ if vector["expect"]["side"] == "over" => OVER,
            _ => WITHIN,
        };
        assert_eq!(verdict.checks[0].outcome, outcome, "{}", vector["id"]);
        assert_eq!(verdict.run.decided_at.map(u64::from), vector["expect"]["n_used"].as_u64(), "{}", vector["id"]);
    }
    assert_eq!(seen, 5);
}
