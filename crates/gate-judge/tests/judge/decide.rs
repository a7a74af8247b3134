//! How a check is decided where the spec says so: by point or by evidence, how surely, and not at all for a time.

use gate_judge::power;
use gate_model::{
    Check, CheckOutcome, Decide, EndReason, ExitCode, Finding, GateSpec, Importance, Iterations, Outcome, Quantity,
    Rule, Sample, Side, Status, Verdict, Waiver,
};

use crate::support::{check, failed, gate, judge, ok, run, run_of, section, slow_at};

const WITHIN: CheckOutcome = CheckOutcome::Inconclusive { side: Side::Within };
const OVER: CheckOutcome = CheckOutcome::Inconclusive { side: Side::Over };
/// Runs start on 2026-01-01.
const WORKS: &str = "2026-01-01";
const ENDED: &str = "2025-12-31";
/// With four checks left it takes six of 30 to violate a P95; with one to three left, five.
const FIVE: [usize; 5] = [1, 8, 14, 20, 27];
const EIGHT: [usize; 8] = [1, 7, 13, 17, 19, 22, 25, 28];
const OTHERS: [&str; 3] = ["e2e.p50 < 9s", "e2e.p90 < 9s", "tpot.p50 < 9s"];

fn outcomes(verdict: &Verdict) -> Vec<CheckOutcome> {
    verdict.checks.iter().map(|one| one.outcome.clone()).collect()
}

/// A gate of these checks, judged once at 30 requests.
fn once(checks: Vec<Check>) -> GateSpec {
    let mut spec = GateSpec { checks, ..gate(&[], &[]) };
    spec.load.iterations = Iterations::Fixed(30);
    spec
}

fn required(texts: &[&str]) -> Vec<Check> {
    texts.iter().map(|text| check(text, Importance::Required)).collect()
}

fn waived(check: Check, until: &str) -> Check {
    Check { waive: Some(Waiver { until: until.to_owned(), reason: "issue 412".to_owned() }), ..check }
}

fn otherwise(outcome: CheckOutcome) -> CheckOutcome {
    CheckOutcome::Waived { otherwise: Box::new(outcome) }
}

/// `ok` requests, except those at the given places, which failed with 500.
fn failing(n: u32, places: &[u32]) -> Vec<Sample> {
    let sample = |index| if places.contains(&index) { failed(index, Outcome::Http5xx) } else { ok(index, 100.0, 10.0) };
    (0..n).map(sample).collect()
}

#[test]
fn confidence_changes_only_its_own_share() {
    let texts = ["ttft.p95 < 800ms", "tpot.p95 < 800ms", "ttft.mean < 5s"];
    let verdict = |confidence: f64| {
        let mut checks = required(&texts);
        checks[0].confidence = confidence;
        let samples = (0..30).map(|index| {
            let slow = |places: &[usize]| if places.contains(&(index as usize)) { 900.0 } else { 100.0 };
            ok(index, slow(&FIVE), slow(&FIVE))
        });
        judge(&run(&once(checks), samples.collect(), EndReason::Completed))
    };
    let (usual, sure) = (verdict(Check::CONFIDENCE), verdict(0.99));
    let needed = |verdict: &Verdict, check: usize| verdict.checks[check].evidence.as_ref().unwrap().needed;
    assert_eq!((needed(&usual, 0), needed(&sure, 0)), (Some(5), Some(6)));
    assert_eq!(outcomes(&sure), [OVER, CheckOutcome::Violated, CheckOutcome::Met]);
    // The second check has a third of 5 % as before; the mean has what is left, after two or after one.
    assert_eq!(usual.checks[1], sure.checks[1]);
    let level = |verdict: &Verdict| verdict.checks[2].evidence.as_ref().unwrap().level.unwrap();
    assert!((level(&usual) - 0.05).abs() < 1e-15 && (level(&sure) - 0.025).abs() < 1e-15);

    let mut mean = required(&["ttft.mean < 5s", "e2e.mean < 5s"]);
    mean[0].confidence = 0.99;
    let verdict = judge(&run_of(&once(mean), &slow_at(30, &FIVE)));
    let level = |check: usize| verdict.checks[check].evidence.as_ref().unwrap().level.unwrap();
    assert!((level(0) - 0.005).abs() < 1e-15 && (level(1) - 0.025).abs() < 1e-15);
}

#[test]
fn confidence_changes_what_is_needed_in_the_plan() {
    let mut spec = once(required(&["ttft.p95 < 800ms", "e2e.p95 < 9s"]));
    let needed = |spec: &GateSpec| -> Vec<Option<u32>> {
        power(spec, &[section(&[30])]).iter().map(|found| found.as_ref().unwrap().violates_at[0].1).collect()
    };
    assert_eq!(needed(&spec), [Some(5), Some(5)]);
    spec.checks[0].confidence = 0.99;
    assert_eq!(needed(&spec), [Some(6), Some(5)]);
    spec.checks[0].confidence = 0.5;
    assert_eq!(needed(&spec), [Some(3), Some(5)]);
}

#[test]
fn decide_point_compares_what_is_seen_outside_the_family() {
    let mut checks = required(&["ttft.p95 < 800ms", "ttft.p90 < 800ms", "e2e.p50 < 9s", "tpot.p50 < 9s"]);
    checks[1].decide = Some(Decide::Point);
    let verdict = judge(&run_of(&once(checks.clone()), &slow_at(30, &FIVE)));
    // Five are enough with three left in the family; of four it would take six.
    assert_eq!(outcomes(&verdict)[..2], [CheckOutcome::Violated, CheckOutcome::Violated]);
    let point = &verdict.checks[1];
    assert_eq!((point.rule, point.seen), (Rule::Point, Some(Quantity::time(gate_model::Nanos::from_millis(900)))));
    let evidence = point.evidence.as_ref().unwrap();
    assert_eq!((evidence.n, evidence.k, evidence.level, evidence.p_fail), (30, 0, None, None));
    assert_eq!((&point.power, evidence.lower), (&None, None));
    checks[1].decide = None;
    assert_eq!(outcomes(&judge(&run_of(&once(checks), &slow_at(30, &FIVE))))[..2], [OVER, OVER]);
}

#[test]
fn decide_point_is_decided_beside_the_loop() {
    // Over at every look, it asks for no more requests and stops nothing: it is decided where the others end.
    let mut spec = gate(&["ttft.p95 < 800ms", "ttft.p99 < 800ms"], &[]);
    spec.checks[1].decide = Some(Decide::Point);
    let at = |slow: &[usize]| {
        let verdict = judge(&run_of(&spec, &slow_at(100, slow)));
        (outcomes(&verdict), verdict.run.decided_at, verdict.exit)
    };
    assert_eq!(at(&[3]), (vec![WITHIN, CheckOutcome::Violated], Some(30), ExitCode::Violated));
    assert_eq!(at(&[3, 9]), (vec![WITHIN, CheckOutcome::Violated], Some(50), ExitCode::Violated));
    // Whatever it was at an earlier look.
    spec.checks[0] = check("ttft.p90 < 800ms", Importance::Required);
    let verdict = judge(&run_of(&spec, &slow_at(100, &[3, 9, 14, 20])));
    assert_eq!((verdict.checks[1].outcome.clone(), verdict.run.decided_at), (CheckOutcome::Violated, Some(50)));
    // A mean that is seen under its limit is met, however unsure.
    let mut spec = once(required(&["ttft.mean < 240ms"]));
    spec.checks[0].decide = Some(Decide::Point);
    let verdict = judge(&run_of(&spec, &slow_at(30, &FIVE)));
    assert_eq!((outcomes(&verdict), verdict.status), (vec![CheckOutcome::Met], Status::Passed));
}

#[test]
fn decide_point_needs_no_number_of_requests() {
    let mut spec = gate(&["ttft.p50 < 800ms", "ttft.mean < 800ms", "output_tokens.p5.all >= 10"], &[]);
    spec.load.iterations = Iterations::Fixed(2);
    spec.checks.iter_mut().for_each(|check| check.decide = Some(Decide::Point));
    let met = CheckOutcome::Met;
    assert_eq!(outcomes(&judge(&run_of(&spec, &[100.0, 120.0]))), [met.clone(), met.clone(), met.clone()]);
    // A failed request is no long answer, by point either.
    let samples = vec![ok(0, 100.0, 10.0), failed(1, Outcome::Http5xx)];
    let verdict = judge(&run(&spec, samples, EndReason::Completed));
    assert_eq!(outcomes(&verdict), [met.clone(), met, CheckOutcome::Violated]);
}

#[test]
fn errors_by_evidence_are_a_rate() {
    let decided = |k: u32| {
        let mut spec = once(required(&["errors.5xx < 5%"]));
        spec.checks[0].decide = Some(Decide::Evidence);
        let places: Vec<u32> = (0..k).map(|place| place * 6).collect();
        judge(&run(&spec, failing(30, &places), EndReason::Completed)).checks.remove(0)
    };
    // Two of 30 are over 5 %; five are needed.
    assert_eq!(decided(1).outcome, WITHIN);
    assert_eq!(decided(2).outcome, OVER);
    let verdict = decided(5);
    assert_eq!((verdict.rule, verdict.outcome), (Rule::Rate, CheckOutcome::Violated));
    assert_eq!(verdict.seen, Some(Quantity::share(5.0 / 30.0)));
    let evidence = verdict.evidence.unwrap();
    assert_eq!((evidence.n, evidence.k, evidence.allowed, evidence.needed), (30, 5, 1.5, Some(5)));
    // P[Bin(30, .05) >= 5].
    assert!((evidence.p_fail.unwrap() - 0.015_635_6).abs() < 1e-6, "{:?}", evidence.p_fail);
    assert!(evidence.lower.is_some_and(|bound| bound.value < 5.0 / 30.0));
    assert!(verdict.power.is_some());

    let mut none = once(required(&["errors.rate == 0%"]));
    none.checks[0].decide = Some(Decide::Evidence);
    assert_eq!(outcomes(&judge(&run(&none, failing(30, &[7]), EndReason::Completed))), [CheckOutcome::Violated]);
    assert_eq!(outcomes(&judge(&run(&none, failing(30, &[]), EndReason::Completed))), [WITHIN]);
}

#[test]
fn errors_by_evidence_have_a_share_and_ask_for_more() {
    let mut checks = required(&["ttft.p95 < 800ms", "errors.rate < 5%", OTHERS[0], OTHERS[2]]);
    let first =
        |checks: &[Check]| judge(&run_of(&once(checks.to_vec()), &slow_at(30, &FIVE))).checks[0].outcome.clone();
    assert_eq!(first(&checks), CheckOutcome::Violated);
    checks[1].decide = Some(Decide::Evidence);
    assert_eq!(first(&checks), OVER);

    let mut spec = gate(&["errors.rate < 5%"], &[]);
    spec.checks[0].decide = Some(Decide::Evidence);
    let verdict = judge(&run(&spec, failing(100, &[4, 19]), EndReason::Completed));
    assert_eq!((outcomes(&verdict), verdict.run.decided_at), (vec![WITHIN], Some(50)));
    let red = judge(&run(&spec, failing(100, &[1, 7, 13, 19, 25]), EndReason::Completed));
    assert_eq!((outcomes(&red), red.run.decided_at), (vec![CheckOutcome::Violated], Some(30)));
}

#[test]
fn a_waived_check_says_what_it_would_have_been() {
    let verdict = |until: &str, slow: &[usize]| {
        let mut checks = required(&["ttft.p95 < 800ms", "errors.rate < 5%"]);
        checks[0] = waived(checks[0].clone(), until);
        judge(&run_of(&once(checks), &slow_at(30, slow)))
    };
    for (slow, expected) in [(&EIGHT[..], CheckOutcome::Violated), (&[3, 9], OVER), (&[], WITHIN)] {
        let verdict = verdict(WORKS, slow);
        assert_eq!(outcomes(&verdict), [otherwise(expected), CheckOutcome::Met]);
        assert_eq!((verdict.status, verdict.exit), (Status::PassedWithWarnings, ExitCode::Passed));
        assert!(!verdict.findings.iter().any(|finding| matches!(finding, Finding::WaiverEnded { .. })));
    }
    let ended = verdict(ENDED, &EIGHT);
    assert_eq!((outcomes(&ended)[0].clone(), ended.exit), (CheckOutcome::Violated, ExitCode::Violated));
    let finding = Finding::WaiverEnded { check: "ttft.p95 < 800ms".to_owned(), until: ENDED.to_owned() };
    assert!(ended.findings.contains(&finding));
    // It is a warning even where the check holds again, and a day that cannot be read lets nothing through.
    assert_eq!(verdict(ENDED, &[]).status, Status::PassedWithWarnings);
    assert_eq!(verdict("soon", &EIGHT).exit, ExitCode::Violated);
    assert_eq!(verdict("2030", &EIGHT).exit, ExitCode::Violated);
}

#[test]
fn any_kind_of_check_can_be_waived() {
    let texts = ["errors.rate < 5%", "throughput.requests > 99/s", "ttft.mean < 1ms", "ttft.max < 1ms"];
    let mut checks: Vec<Check> = required(&texts).into_iter().map(|check| waived(check, WORKS)).collect();
    checks.push(waived(check("ttft.p50 < 1ms", Importance::Preferred), WORKS));
    let verdict = judge(&run(&once(checks.clone()), failing(30, &[3, 5, 7]), EndReason::Completed));
    assert_eq!(outcomes(&verdict), vec![otherwise(CheckOutcome::Violated); 5]);
    assert_eq!((verdict.status, verdict.exit), (Status::PassedWithWarnings, ExitCode::Passed));
    // What could not be measured is let through as well.
    let verdict = judge(&run(&once(checks), Vec::new(), EndReason::NotReady("503".to_owned())));
    assert!(outcomes(&verdict).iter().all(|one| matches!(one, CheckOutcome::Waived { .. })));
    assert_eq!(verdict.exit, ExitCode::Passed);
}

#[test]
fn waiving_turns_nothing_else_red_where_removing_may() {
    // Eight of 30 violate the first of four; then five are enough for the second of three. Without it, they are
    // five of three as well; while it is waived, they are five of four, which six would violate.
    let judged = |checks: Vec<Check>| {
        let slow = |places: &[usize], index: u32| if places.contains(&(index as usize)) { 900.0 } else { 10.0 };
        let samples = (0..30).map(|index| ok(index, slow(&FIVE, index), slow(&EIGHT, index))).collect();
        judge(&run(&once(checks), samples, EndReason::Completed))
    };
    let checks = required(&["tpot.p95 < 800ms", "ttft.p95 < 800ms", "output_tokens.p50 >= 50", "ttft.p50 < 5s"]);
    let red = CheckOutcome::Violated;
    assert_eq!(outcomes(&judged(checks.clone()))[..2], [red.clone(), red.clone()]);
    assert_eq!(outcomes(&judged(checks[1..].to_vec()))[0], red);
    let mut waiving = checks;
    waiving[0] = waived(waiving[0].clone(), WORKS);
    let verdict = judged(waiving);
    assert_eq!(outcomes(&verdict)[..2], [otherwise(red), OVER]);
    assert_eq!((verdict.status, verdict.exit), (Status::PassedWithWarnings, ExitCode::Passed));
}

#[test]
fn a_waived_check_neither_stops_nor_prolongs_the_run() {
    let mut spec = gate(&["ttft.p95 < 800ms", "e2e.p50 < 9s"], &[]);
    spec.checks[0] = waived(spec.checks[0].clone(), WORKS);
    let at = |spec: &GateSpec, slow: &[usize]| judge(&run_of(spec, &slow_at(100, slow))).run.decided_at;
    assert_eq!(at(&spec, &[3, 9]), Some(30));
    // Another check that is over goes on past the look at which the waived one would have stopped.
    spec.checks[1] = check("ttft.p90 < 850ms", Importance::Required);
    assert_eq!(at(&spec, &FIVE), Some(50));
    spec.checks[0].waive = None;
    assert_eq!(at(&spec, &EIGHT), Some(30));
}
