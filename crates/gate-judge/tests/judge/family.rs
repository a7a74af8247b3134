//! The one error probability of a gate, shared by absolute and relative checks.

use gate_model::{
    CheckOutcome, Decide, EndReason, GateSpec, Importance, Iterations, Nanos, Prior, Sample, Verdict, Waiver,
};
use proptest::prelude::*;

use crate::support::{check, gate, ok, prior_of, side_by_side};

/// Checks of every rule, with the place of their number.
const CHECKS: [&str; 14] = [
    "ttft.p50 < Xms",
    "ttft.p95 < Xms",
    "ttft.max < 4Xms",
    "ttft.mean < Xms",
    "e2e.p50 < 9Xms",
    "attainment >= 9X%",
    "errors.rate < X%",
    "ttft.p50 < reference + X%",
    "ttft.mean < reference + X%",
    "ttft.p95 < reference + X%",
    "ttft.p50 < baseline + X%",
    "ttft.p95 < baseline + X%",
    "throughput.requests > baseline - X%",
    "attainment >= baseline - Xpp",
];

/// A check of some rule on some number.
fn any_check() -> impl Strategy<Value = (String, bool)> {
    let number = (0..CHECKS.len(), 0_u32..100, any::<bool>());
    number.prop_map(|(rule, number, waived)| {
        let number = if rule < 4 { 90 + number / 4 } else { number % 10 };
        (CHECKS[rule].replace('X', &number.to_string()), waived)
    })
}

fn spec(checks: &[(String, bool)]) -> GateSpec {
    let mut spec = gate(&[], &[]);
    spec.slo.ttft = Some(Nanos::from_millis(120));
    spec.load.iterations = Iterations::Range { first: 30, last: 50, extend: None };
    spec.checks = checks.iter().map(|(text, _)| check(text, Importance::Required)).collect();
    for (check, (text, waived)) in spec.checks.iter_mut().zip(checks) {
        check.waive = waived.then(|| Waiver { until: "2026-01-02".to_owned(), reason: "issue 412".to_owned() });
        check.decide = text.contains("pp").then_some(Decide::Evidence);
    }
    spec
}

/// The verdict at 50 pairs, however the load may have stopped.
fn judged(checks: &[(String, bool)], target: &[Sample], reference: &[Sample], prior: &Prior) -> Verdict {
    let mut run = side_by_side(&spec(checks), target.to_vec(), reference.to_vec(), EndReason::Completed);
    run.end.as_mut().unwrap().reason = EndReason::Completed;
    gate_judge::judge(&run, prior)
}

fn is_violated(outcome: &CheckOutcome) -> bool {
    *outcome == CheckOutcome::Violated
}

fn times(n: usize) -> impl Strategy<Value = Vec<f64>> {
    (0.8_f64..1.3).prop_flat_map(move |slower| {
        proptest::collection::vec((80.0_f64..120.0).prop_map(move |ttft| ttft * slower), n)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// On the same final look.
    #[test]
    fn adding_or_waiving_a_check_never_turns_another_red(
        checks in proptest::collection::vec(any_check(), 1..60),
        added in any_check(),
        place in any::<prop::sample::Index>(),
        target in times(50),
        reference in times(50),
        stored in proptest::collection::vec(times(40), 0..5),
    ) {
        let samples = |ttfts: &[f64]| (0..).zip(ttfts).map(|(index, ttft)| ok(index, *ttft, 10.0)).collect::<Vec<_>>();
        let (target, reference, prior) = (samples(&target), samples(&reference), prior_of(&stored));
        let before = judged(&checks, &target, &reference, &prior);
        prop_assert_eq!(before.checks.len(), checks.len());

        let more: Vec<_> = checks.iter().cloned().chain([added]).collect();
        let with_more = judged(&more, &target, &reference, &prior);
        for (before, after) in before.checks.iter().zip(&with_more.checks) {
            prop_assert!(!is_violated(&after.outcome) || is_violated(&before.outcome), "{}", after.check);
        }

        let mut waived = checks.clone();
        let place = place.index(waived.len());
        waived[place].1 = true;
        let with_waiver = judged(&waived, &target, &reference, &prior);
        for (before, after) in before.checks.iter().zip(&with_waiver.checks) {
            prop_assert!(!is_violated(&after.outcome) || is_violated(&before.outcome), "{}", after.check);
        }
    }
}

#[test]
fn relative_checks_share_with_the_others_even_without_a_baseline() {
    let level = |checks: &[&str]| {
        let mut spec = gate(checks, &[]);
        spec.load.iterations = Iterations::Fixed(50);
        let samples = || (0..50).map(|index| ok(index, 100.0 + f64::from(index), 10.0)).collect::<Vec<_>>();
        let run = side_by_side(&spec, samples(), samples(), EndReason::Completed);
        gate_judge::judge(&run, &Prior::default()).checks[0].evidence.as_ref().unwrap().level.unwrap()
    };
    let paired = "ttft.p50 < reference + 10%";
    assert!((level(&[paired]) - 0.05).abs() < 1e-12);
    assert!((level(&[paired, "ttft.p50 < baseline + 10%"]) - 0.025).abs() < 1e-12);
    // Counted and point checks have no share.
    assert!((level(&[paired, "errors.rate <= baseline", "ttft.max < reference + 10%"]) - 0.05).abs() < 1e-12);
}

#[test]
fn stored_runs_are_asked_once_and_pairs_at_every_look() {
    let checks = ["ttft.p50 < reference + 10%", "ttft.p50 < baseline + 10%", "ttft.p95 < 115ms"]
        .map(|text| (text.to_owned(), false));
    let ttfts: Vec<f64> = (0..50).map(|index| 100.0 + f64::from(index % 10)).collect();
    let samples: Vec<Sample> = (0..).zip(&ttfts).map(|(index, ttft)| ok(index, *ttft, 10.0)).collect();
    let verdict = judged(&checks, &samples, &samples, &prior_of(&[ttfts.clone(), ttfts]));
    let [paired, stored, quantile] = &verdict.checks[..] else { panic!() };
    let levels =
        |check: &gate_model::CheckVerdict| check.looks.iter().map(|look| (look.at, look.level)).collect::<Vec<_>>();
    let sixth = 0.05 / 6.0;
    assert_eq!(levels(paired).iter().map(|(at, _)| *at).collect::<Vec<_>>(), [30, 50]);
    assert!(levels(paired).iter().all(|(_, level)| (level.unwrap() - sixth).abs() < 1e-12));
    assert_eq!(stored.looks[0].level, None);
    assert_eq!(stored.looks[0].p_fail, None);
    assert!((stored.looks[1].level.unwrap() - 0.05 / 3.0).abs() < 1e-12 && stored.looks[1].p_fail.is_some());
    assert_eq!(quantile.looks.iter().map(|look| look.n).collect::<Vec<_>>(), [30, 50]);
    assert_eq!(quantile.looks[1].p_fail, quantile.evidence.as_ref().unwrap().p_fail);
}
