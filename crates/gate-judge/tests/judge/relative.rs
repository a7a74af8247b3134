//! Relative checks: which rule has which, and what bounds come to where there is nothing, or nothing moves.

use gate_judge::{power, rule};
use gate_model::{
    BaselineFrom, BaselineUse, Bound, Cause, CheckOutcome, CheckVerdict, Decide, EndReason, ExitCode, Finding,
    Importance, Iterations, Nanos, NoBaseline, Outcome, PassedOver, Policy, Prior, Quantity, Rule, Sample, Side,
    Status, Verdict, With,
};

use crate::support::{check, failed, gate, kept, ok, prior_of, run, run_of, section, side_by_side, slow_at};

const WITHIN: CheckOutcome = CheckOutcome::Inconclusive { side: Side::Within };
const OVER: CheckOutcome = CheckOutcome::Inconclusive { side: Side::Over };

/// The verdict on a run of 50 requests with these samples, against these stored runs.
fn against(checks: &[&str], samples: Vec<Sample>, prior: &Prior) -> Verdict {
    let mut spec = gate(checks, &[]);
    spec.load.iterations = Iterations::Fixed(samples.len() as u32);
    spec.slo.ttft = Some(Nanos::from_millis(800));
    gate_judge::judge(&run(&spec, samples, EndReason::Completed), prior)
}

fn first(verdict: &Verdict) -> &CheckVerdict {
    &verdict.checks[0]
}

/// Requests of which this many failed, the others with a TTFT of 100 ms.
fn failing(n: u32, bad: u32) -> Vec<Sample> {
    (0..n).map(|i| if i < bad { failed(i, Outcome::Http5xx) } else { ok(i, 100.0, 10.0) }).collect()
}

fn stored(samples: Vec<Sample>) -> Prior {
    let mut spec = gate(&["ttft.p95 < 800ms"], &[]);
    spec.load.iterations = Iterations::Fixed(samples.len() as u32);
    Prior { baselines: vec![kept(run(&spec, samples, EndReason::Completed))], ..Prior::default() }
}

#[test]
fn every_comparison_has_its_rule() {
    for (text, expected, by_point) in [
        ("ttft.p50 < reference + 10%", Rule::Paired, Rule::Point),
        ("ttft.mean < reference + 10%", Rule::Paired, Rule::Point),
        ("ttft.p95 < reference + 10%", Rule::PairedTail, Rule::Point),
        ("ttft.p75 < reference + 10%", Rule::PairedTail, Rule::Point),
        ("ttft.max < reference + 10%", Rule::Point, Rule::Point),
        ("throughput.requests > reference - 10%", Rule::Point, Rule::Point),
        ("ttft.p50 == reference", Rule::Point, Rule::Point),
        ("ttft.p95.all < reference + 10%", Rule::Point, Rule::Point),
        ("itl.p95 < baseline + 10%", Rule::Point, Rule::Point),
        ("ttft.p50 < baseline + 10%", Rule::Stored, Rule::Point),
        ("ttft.p89.999 < baseline + 10%", Rule::Stored, Rule::Point),
        ("ttft.p90 < baseline + 10%", Rule::StoredTail, Rule::Point),
        ("ttft.mean < baseline + 10%", Rule::Stored, Rule::Point),
        ("ttft.max < baseline + 10%", Rule::Point, Rule::Point),
        ("ttft.stddev < baseline + 10%", Rule::Point, Rule::Point),
        ("send_lag.p99 < baseline + 10%", Rule::Point, Rule::Point),
        ("throughput.requests > baseline - 10%", Rule::Stored, Rule::Point),
        ("errors.rate <= baseline + 2pp", Rule::Counted, Rule::Counted),
        ("attainment >= reference - 2pp", Rule::Counted, Rule::Counted),
        ("errors.rate.count <= baseline + 1", Rule::Counted, Rule::Counted),
        ("ttft.p95 < 40% of cold", Rule::Bounds, Rule::Point),
        ("ttft.mean < 40% of cold", Rule::Bounds, Rule::Point),
        ("ttft.max < 40% of cold", Rule::Point, Rule::Point),
        ("errors.rate < 40% of cold", Rule::Point, Rule::Point),
    ] {
        let mut check = check(text, Importance::Required);
        assert_eq!(rule(&check), expected, "{text}");
        check.decide = Some(Decide::Point);
        assert_eq!(rule(&check), by_point, "{text}");
    }
    let mut share = check("errors.rate <= baseline + 2pp", Importance::Required);
    share.decide = Some(Decide::Evidence);
    assert_eq!(rule(&share), Rule::Rate);
}

#[test]
fn no_count_of_a_relative_check_is_known_beforehand() {
    let checks = ["ttft.p50 < baseline + 10%", "ttft.p95 < reference + 10%", "errors.rate <= baseline + 1pp"];
    let mut spec = gate(&checks, &[]);
    spec.checks[2].decide = Some(Decide::Evidence);
    assert_eq!(power(&spec, &[section(&[30, 50])]), vec![None; 3]);
}

#[test]
fn without_a_baseline_absolute_checks_decide() {
    let checks = ["ttft.p95 < 800ms", "ttft.p50 < baseline + 10%"];
    let mut spec = gate(&checks, &[]);
    let run = run_of(&spec, &slow_at(100, &[]));
    let verdict = gate_judge::judge(&run, &Prior::default());
    let none = |why: NoBaseline| CheckOutcome::NoBaseline { why };
    assert_eq!(verdict.checks[1].outcome, none(NoBaseline::NotGiven));
    assert_eq!(verdict.checks[1].seen.unwrap().to_string(), "100 ms");
    assert_eq!((verdict.status, verdict.exit), (Status::PassedWithWarnings, ExitCode::Passed));
    assert_eq!(verdict.baseline, None);
    // It is known why, of the last thing asked for.
    let passed = |from, why| PassedOver { from, why };
    let chosen = BaselineUse {
        store: ".gate/baselines".to_owned(),
        by: None,
        fork: None,
        used: Vec::new(),
        passed_over: vec![
            passed(BaselineFrom::MergeBase, NoBaseline::NoHistory("no git".to_owned())),
            passed(BaselineFrom::Last(5), NoBaseline::NoneSaved),
        ],
        differences: Vec::new(),
    };
    let prior = Prior { chosen: Some(chosen.clone()), ..Prior::default() };
    let verdict = gate_judge::judge(&run, &prior);
    assert_eq!(verdict.checks[1].outcome, none(NoBaseline::NoneSaved));
    assert_eq!(verdict.baseline, Some(chosen));
    // It costs the build where the spec says so, and not where the check is only preferred.
    spec.outcomes.no_baseline = Policy::Fail;
    let verdict = gate_judge::judge(&run_of(&spec, &slow_at(100, &[])), &prior);
    assert_eq!((verdict.status, verdict.exit), (Status::Inconclusive, ExitCode::Inconclusive));
    spec.checks[1].importance = Importance::Preferred;
    assert_eq!(gate_judge::judge(&run_of(&spec, &slow_at(100, &[])), &prior).exit, ExitCode::Passed);
    // A broken limit is red all the same, and what could not be measured stays so.
    let slow = gate_judge::judge(&run_of(&spec, &vec![900.0; 100]), &prior);
    assert_eq!(slow.exit, ExitCode::Violated);
    let few = against(&["ttft.p50 < baseline + 10%"], failing(30, 15), &Prior::default());
    assert_eq!(first(&few).outcome, CheckOutcome::CouldNotMeasure { cause: Cause::TooFewOk { ok: 15, needed: 20 } });
}

#[test]
fn a_baseline_that_lacks_the_metric_is_none() {
    let verdict = against(&["cap_wait.p50 < baseline + 10%"], failing(50, 0), &stored(failing(50, 0)));
    assert_eq!(first(&verdict).outcome, CheckOutcome::CouldNotMeasure { cause: Cause::NoData });
    let waits = |index| Sample { cap_wait: Some(Nanos::from_millis(1)), ..ok(index, 100.0, 10.0) };
    let verdict = against(&["cap_wait.p50 < baseline + 10%"], (0..50).map(waits).collect(), &stored(failing(50, 0)));
    assert_eq!(first(&verdict).outcome, CheckOutcome::NoBaseline { why: NoBaseline::NotMeasured });
    // A baseline that cannot be judged has nothing.
    let mut prior = stored(failing(50, 0));
    prior.baselines[0].run.end = None;
    let verdict = against(&["ttft.p50 < baseline + 10%"], failing(50, 0), &prior);
    assert_eq!(first(&verdict).outcome, CheckOutcome::NoBaseline { why: NoBaseline::NotMeasured });
}

#[test]
fn shares_are_counted_against_the_pooled_share() {
    // 3 of 50 failed before: 6 %.
    let prior = stored(failing(50, 3));
    let outcome = |text: &str, bad: u32| {
        let verdict = against(&[text], failing(50, bad), &prior);
        let check = first(&verdict).clone();
        (check.outcome.clone(), check.evidence.unwrap())
    };
    let (met, evidence) = outcome("errors.rate <= baseline + 2pp", 4);
    assert_eq!((met, evidence.k, evidence.needed), (CheckOutcome::Met, 4, Some(5)));
    let comparison = evidence.comparison.unwrap();
    assert_eq!((comparison.base, comparison.limit), (Some(Quantity::share(0.06)), Some(Quantity::share(0.08))));
    assert_eq!((comparison.n, comparison.with, comparison.tolerance), (50, With::Baseline { runs: 1 }, None));
    assert!((comparison.change.unwrap() - 0.02).abs() < 1e-12, "in points");
    assert_eq!(outcome("errors.rate <= baseline + 2pp", 5).0, CheckOutcome::Violated);
    assert_eq!(outcome("errors.rate < baseline + 2pp", 4).0, CheckOutcome::Violated);
    assert_eq!(outcome("errors.rate.count <= baseline + 1", 4).0, CheckOutcome::Met);
    assert_eq!(outcome("errors.rate.count <= baseline + 1", 5).0, CheckOutcome::Violated);
    let (met, evidence) = outcome("attainment >= baseline - 2pp", 4);
    assert_eq!((met, evidence.k, evidence.needed), (CheckOutcome::Met, 4, Some(5)));
    assert!((evidence.allowed - 4.0).abs() < 1e-9);
    assert_eq!(outcome("attainment >= baseline - 2pp", 5).0, CheckOutcome::Violated);
}

#[test]
fn a_share_by_evidence_is_a_binomial_at_that_bound() {
    let prior = stored(failing(100, 3));
    let mut spec = gate(&["errors.rate <= baseline + 2pp"], &[]);
    spec.load.iterations = Iterations::Fixed(50);
    spec.checks[0].decide = Some(Decide::Evidence);
    let outcome = |bad: u32| {
        let samples =
            (0..50).map(|i| if i * bad % 50 < bad { failed(i, Outcome::Http5xx) } else { ok(i, 100.0, 10.0) });
        let verdict = gate_judge::judge(&run(&spec, samples.collect(), EndReason::Completed), &prior);
        (first(&verdict).outcome.clone(), first(&verdict).evidence.clone().unwrap())
    };
    // P[Bin(50, .05) ≥ 6] = .038, and of 5 .104.
    let (over, evidence) = outcome(5);
    assert_eq!((over, evidence.k, evidence.needed), (OVER, 5, Some(6)));
    assert!((evidence.p_fail.unwrap() - 0.103_616_9).abs() < 1e-5, "{:?}", evidence.p_fail);
    assert_eq!(outcome(6).0, CheckOutcome::Violated);
    assert_eq!(outcome(2).0, WITHIN);
}

#[test]
fn zero_stays_zero_and_grows_only_by_a_step() {
    let none = |text: &str, bad: u32| first(&against(&[text], failing(50, bad), &stored(failing(50, 0)))).clone();
    for (text, bad, expected) in [
        ("errors.rate < baseline", 0, CheckOutcome::Met),
        ("errors.rate <= baseline", 0, CheckOutcome::Met),
        ("errors.rate <= baseline + 2pp", 1, CheckOutcome::Met),
        ("errors.rate <= baseline + 2pp", 2, CheckOutcome::Violated),
        ("errors.rate <= baseline - 1pp", 0, CheckOutcome::Violated),
        ("errors.rate == baseline", 0, CheckOutcome::Met),
        ("errors.rate == baseline", 1, CheckOutcome::Violated),
        ("goodput > baseline - 10%", 0, WITHIN),
    ] {
        assert_eq!(none(text, bad).outcome, expected, "{text} {bad}");
    }
    let stalls = |millis: f64| -> Vec<Sample> {
        let stall = Some(Nanos::from_secs_f64(millis / 1e3));
        (0..50).map(|index| Sample { longest_gap: stall, ..ok(index, 100.0, 10.0) }).collect()
    };
    for (text, millis, expected) in [
        ("stall.p50 < baseline + 10%", 0.0, CheckOutcome::Met),
        ("stall.p50 < baseline", 0.0, CheckOutcome::Met),
        ("stall.p50 < baseline + 10%", 1.0, CheckOutcome::Violated),
        ("stall.p50 < baseline + 10% or 20ms", 1.0, CheckOutcome::Met),
        ("stall.p50 < baseline + 10% or 20ms", 20.0, CheckOutcome::Violated),
        ("stall.p95 < baseline + 20ms", 1.0, CheckOutcome::Met),
        ("stall.p95 < baseline + 10%", 1.0, CheckOutcome::Violated),
        ("stall.max < baseline + 20ms", 1.0, WITHIN),
        ("stall.p50 > baseline - 10%", 0.0, CheckOutcome::Met),
    ] {
        let check = first(&against(&[text], stalls(millis), &stored(stalls(0.0)))).clone();
        assert_eq!(check.outcome, expected, "{text} {millis}");
        let comparison = check.evidence.unwrap().comparison.unwrap();
        assert_eq!((comparison.tolerance, comparison.change), (None, None), "{text} {millis}");
        let mut spec = gate(&[&text.replace("baseline", "reference")], &[]);
        spec.load.iterations = Iterations::Fixed(50);
        let beside = side_by_side(&spec, stalls(millis), stalls(0.0), EndReason::Completed);
        let beside = gate_judge::judge(&beside, &Prior::default());
        assert_eq!(first(&beside).outcome, expected, "{text} {millis}, beside");
    }
    // All of it gone is for the better, of a latency; of zeros among the runs nothing is concluded.
    assert_eq!(
        first(&against(&["stall.p50 < baseline + 10%"], stalls(0.0), &stored(stalls(5.0)))).outcome,
        CheckOutcome::Met
    );
    let mut mixed = stored(stalls(0.0));
    mixed.baselines.extend(stored(stalls(5.0)).baselines);
    for (millis, expected) in [(1.0, WITHIN), (9.0, OVER)] {
        let verdict = against(&["stall.p50 < baseline + 10%"], stalls(millis), &mixed);
        assert_eq!(first(&verdict).outcome, expected, "{millis}");
    }
}

#[test]
fn what_is_measured_once_says_nothing_against_the_reference() {
    let mut spec = gate(&["throughput.requests > reference - 10%", "ttft.max < reference + 10%"], &[]);
    spec.load.iterations = Iterations::Fixed(50);
    let of = |ttft: f64| (0..50).map(|index| ok(index, ttft, 10.0)).collect::<Vec<_>>();
    let outcomes = |spec: &gate_model::GateSpec, ttft: f64| {
        let verdict =
            gate_judge::judge(&side_by_side(spec, of(ttft), of(100.0), EndReason::Completed), &Prior::default());
        verdict.checks.into_iter().map(|one| one.outcome).collect::<Vec<_>>()
    };
    assert_eq!(outcomes(&spec, 100.0), [WITHIN, WITHIN]);
    assert_eq!(outcomes(&spec, 30_000.0), [OVER, OVER]);
    for check in &mut spec.checks {
        check.decide = Some(Decide::Point);
    }
    assert_eq!(outcomes(&spec, 100.0), [CheckOutcome::Met, CheckOutcome::Met]);
    assert_eq!(outcomes(&spec, 30_000.0), [CheckOutcome::Violated, CheckOutcome::Violated]);
}

#[test]
fn decide_point_compares_the_printed_numbers() {
    let outcome = |text: &str, ttft: f64| {
        let mut spec = gate(&[text], &[]);
        spec.load.iterations = Iterations::Fixed(50);
        spec.checks[0].decide = Some(Decide::Point);
        let prior = prior_of(&[vec![100.0; 50], vec![104.0; 50], vec![300.0; 50]]);
        first(&gate_judge::judge(&run_of(&spec, &vec![ttft; 50]), &prior)).outcome.clone()
    };
    // The median of the three is 104 ms.
    for text in ["ttft.p50 < baseline + 10%", "ttft.p95 < baseline + 10%", "ttft.p95.all < baseline + 10%"] {
        assert_eq!(outcome(text, 114.0), CheckOutcome::Met, "{text}");
        assert_eq!(outcome(text, 115.0), CheckOutcome::Violated, "{text}");
    }
}

#[test]
fn gaps_and_failures_among_them_are_never_met() {
    let checks = ["icl.p95 < baseline + 10%", "ttft.p95.all < baseline + 10%"];
    let samples = || (0..50).map(|index| crate::support::streamed(index, &[10.0; 20])).collect::<Vec<_>>();
    let verdict = against(&checks, samples(), &stored(samples()));
    assert_eq!(verdict.checks.iter().map(|one| one.outcome.clone()).collect::<Vec<_>>(), [WITHIN, WITHIN]);
}

/// A run of two scenarios, 60 requests each, with these TTFTs in the first.
fn two_scenarios(text: &str, warm: f64, cold: f64, names: &[&str]) -> CheckVerdict {
    let mut spec = gate(&[text], &[]);
    spec.load.iterations = Iterations::Fixed(120);
    let samples = (0..120).map(|index| {
        let scenario = (index % 2) as u16;
        let jitter = f64::from(index / 2) / 10.0;
        Sample { scenario, ..ok(index, jitter + if scenario == 0 { warm } else { cold }, 10.0) }
    });
    let mut run = run(&spec, samples.collect(), EndReason::Completed);
    run.header.scenarios = names.iter().map(|name| (*name).to_owned()).collect();
    first(&gate_judge::judge(&run, &Prior::default())).clone()
}

#[test]
fn a_share_of_another_scenario_is_judged_by_bounds() {
    for text in ["ttft.p50 < 40% of cold", "ttft.mean < 40% of cold"] {
        let outcome = |warm: f64| two_scenarios(text, warm, 1000.0, &["warm", "cold"]).outcome;
        assert_eq!(outcome(300.0), CheckOutcome::Met, "{text}");
        assert_eq!(outcome(399.0), OVER, "{text}");
        assert_eq!(outcome(500.0), CheckOutcome::Violated, "{text}");
    }
    let check = two_scenarios("ttft.p50 < 40% of cold", 500.0, 1000.0, &["warm", "cold"]);
    let comparison = check.evidence.unwrap().comparison.unwrap();
    assert_eq!(comparison.with, With::Scenario("cold".to_owned()));
    assert_eq!(comparison.base.unwrap().to_string(), "1,003 ms");
    assert!((comparison.tolerance.unwrap() + 0.6).abs() < 1e-12 && comparison.n == 60);
    // An upper bound of a P95 needs 59 values; both scenarios have 60.
    let tail = two_scenarios("ttft.p95 < 40% of cold", 500.0, 1000.0, &["warm", "cold"]);
    assert_eq!((tail.outcome, tail.rule), (CheckOutcome::Violated, Rule::Bounds));
    let missing = two_scenarios("ttft.p95 < 40% of cold", 500.0, 1000.0, &["warm", "hot"]);
    assert_eq!(missing.outcome, CheckOutcome::CouldNotMeasure { cause: Cause::NoScenario("cold".to_owned()) });
}

#[test]
fn nothing_is_left_of_a_base_by_a_larger_step() {
    let slow = |text: &str| first(&against(&[text], failing(50, 0), &stored(failing(50, 0)))).outcome.clone();
    assert_eq!(slow("ttft.p50 < baseline - 200ms"), CheckOutcome::Violated);
    assert_eq!(slow("ttft.p50 < baseline - 120%"), CheckOutcome::Violated);
    assert_eq!(slow("ttft.p50 > baseline - 200ms"), CheckOutcome::Met);
    assert!(matches!(check("ttft.p50 < baseline - 120%", Importance::Required).bound, Bound::Relative(_)));
}

#[test]
fn shorter_answers_are_other_work() {
    let short = |tokens: u64| -> Vec<Sample> {
        let sample = |index| {
            let mut sample = ok(index, 100.0, 10.0);
            sample.usage.as_mut().unwrap().output = Some(tokens);
            sample
        };
        (0..50).map(sample).collect()
    };
    let checks = [
        "ttft.p50 < baseline + 50%",
        "throughput.output_tokens > baseline - 50%",
        "errors.rate <= baseline",
        "output_tokens.mean > baseline - 90%",
    ];
    let verdict = against(&checks, short(24), &stored(short(50)));
    let lost = CheckOutcome::CouldNotMeasure { cause: Cause::ShorterAnswers { base: 50.0, seen: 24.0 } };
    let outcomes: Vec<CheckOutcome> = verdict.checks.iter().map(|one| one.outcome.clone()).collect();
    assert_eq!(outcomes[..3], [lost.clone(), lost, CheckOutcome::Met]);
    assert!(!matches!(outcomes[3], CheckOutcome::CouldNotMeasure { .. }));
    let moved = |verdict: &Verdict| verdict.findings.iter().any(|one| matches!(one, Finding::LengthsMoved { .. }));
    assert!(moved(&verdict));
    assert!(!moved(&against(&checks, short(46), &stored(short(50)))));
    let at_half = against(&checks, short(25), &stored(short(50)));
    assert!(!matches!(first(&at_half).outcome, CheckOutcome::CouldNotMeasure { .. }));
}
