//! What a verdict costs: waivers, `--strict`, `--decide point`, `--report-only`.

use gate_model::{CheckOutcome, ExitCode, Status};

use crate::harness::Place;

/// A gate whose P95 is seen over its limit and not proven: 3 of 30 requests are slow.
fn over(place: &Place, check: &str) {
    let spec = format!(
        "version: 1\nname: over\ntarget: {{sim: {{ttft: 5ms, tpot: 1ms, slow_headers: 900ms, script: {{5: slow_headers, 14: slow_headers, 23: slow_headers}}}}}}\nload: {{rps: 60, iterations: 30, warmup: 1}}\nprompts: {{output_tokens: 4}}\nrequire:\n  - {check}\n"
    );
    place.write("gate.yaml", &spec);
}

#[test]
fn over_passes_unless_something_makes_it_count() {
    let place = Place::new();
    over(&place, "ttft.p95 < 800ms");
    place.gate(&["check", "gate.yaml"]).expect_code(0).says("not proven").says("--strict");
    assert_eq!(place.verdict("over").status, Status::PassedWithWarnings);
    place.gate(&["check", "gate.yaml", "--strict"]).expect_code(4).says("INCONCLUSIVE");
    assert!(place.junit("over").contains("type=\"inconclusive\""));
    place.gate(&["check", "gate.yaml", "--decide", "point"]).expect_code(1).says("VIOLATED");
    place.gate(&["check", "gate.yaml", "--strict", "--report-only"]).expect_code(0);
    let verdict = place.verdict("over");
    assert!(verdict.report_only && verdict.exit == ExitCode::Passed && verdict.status == Status::Inconclusive);
    // The same flags on the finished run.
    place.gate(&["judge", ".gate/over/run.jsonl", "--decide", "point"]).expect_code(1);
}

#[test]
fn report_only_hides_nothing_but_the_exit_code() {
    let place = Place::new();
    over(&place, "ttft.p50 < 1ms");
    place.gate(&["check", "gate.yaml", "--report-only"]).expect_code(0).says("VIOLATED").says("--report-only");
    place
        .gate(&[
            "check",
            "gate.yaml",
            "--report-only",
            "--target",
            "http://127.0.0.1:9",
            "--set",
            "target.ready.within=1s",
        ])
        .expect_code(3);
}

#[test]
fn gaps_of_several_tokens_are_not_taken_for_single_ones() {
    let place = Place::new();
    place.write(
        "gate.yaml",
        "version: 1\nname: chunks\ntarget: {sim: {ttft: 5ms, tpot: 5ms, tokens_per_chunk: 4}}\nload: {rps: 60, iterations: 20, warmup: 1}\nprompts: {output_tokens: 20}\nrequire: [itl.p95 < 400ms, icl.p95 < 400ms]\n",
    );
    place.gate(&["check", "gate.yaml"]).expect_code(3).says("several tokens an event").says("icl");
}

#[test]
fn a_waiver_works_until_its_day_and_is_loud() {
    let place = Place::new();
    let waive = |until: &str| format!("{{check: ttft.p50 < 1ms, waive: {{until: {until}, reason: issue 412}}}}");
    over(&place, &waive("2999-01-31"));
    place.gate(&["check", "gate.yaml"]).expect_code(0).says("WAIVED").says("issue 412").says("2999-01-31");
    assert!(matches!(place.verdict("over").checks[0].outcome, CheckOutcome::Waived { .. }));
    assert!(place.junit("over").contains("<skipped"));
    over(&place, &waive("2020-01-31"));
    place.gate(&["check", "gate.yaml"]).expect_code(1).says("2020-01-31");
}
