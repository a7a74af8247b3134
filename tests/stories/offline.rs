//! What is done with a finished run: judged again, rendered again, exported and imported.

use crate::harness::{Place, quick_spec};

fn checked() -> (Place, String) {
    let place = Place::new();
    let spec = quick_spec("again", "http://127.0.0.1:9", 30).replace(
        "url: 'http://127.0.0.1:9', model: m, ready: {within: 2s}",
        "sim: {ttft: {mean: 20ms, stddev: 5ms}, tpot: 1ms, faults: {http_500: 20%}}",
    );
    place.write("gate.yaml", &spec);
    place.gate(&["check", "gate.yaml"]).expect_code(1).says("errors.rate");
    (place, spec)
}

#[test]
fn a_journal_is_judged_to_the_same_verdict() {
    let (place, _) = checked();
    let ended = place.gate(&["judge", ".gate/again/run.jsonl", "--json", "--out", "second"]);
    ended.expect_code(1);
    let first = place.verdict("again");
    let mut second: gate_model::Verdict = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(second.journals[0].path, "../../.gate/again/run.jsonl");
    second.journals.clone_from(&first.journals);
    assert_eq!(first, second);
}

#[test]
fn another_spec_judges_the_same_run_by_its_own_checks() {
    let (place, spec) = checked();
    place.write("loose.yaml", &spec.replace("require: [", "require: [errors.rate < 90%, "));
    place.gate(&["judge", ".gate/again/run.jsonl", "--spec", "loose.yaml"]).expect_code(0);
}

#[test]
fn a_report_is_rendered_again_byte_for_byte() {
    let (place, _) = checked();
    place.gate(&["report", ".gate/again/verdict.json", "--junit", "j.xml", "--json", "v.json"]).expect_code(0);
    assert_eq!(place.read("j.xml"), place.junit("again"));
    assert_eq!(place.read("v.json"), place.read(".gate/again/verdict.json"));
    let text = place.gate(&["report", ".gate/again/verdict.json"]);
    text.expect_code(0);
    assert!(text.stdout.contains("VIOLATED") && text.stdout.contains("SIMULATED ENGINE"), "{}", text.stdout);
}

#[test]
fn samples_go_out_and_come_in_as_the_same_numbers() {
    let (place, _) = checked();
    place.gate(&["report", ".gate/again/verdict.json", "--samples", "s.jsonl"]).expect_code(0);
    assert_eq!(place.read("s.jsonl").lines().count(), 30, "no warm-up rows");
    let ended = place.gate(&["judge", "s.jsonl", "--from", "samples", "--spec", "gate.yaml", "--json"]);
    ended.expect_code(1);
    let imported: gate_model::Verdict = serde_json::from_str(&ended.stdout).unwrap();
    let original = place.verdict("again");
    assert_eq!(imported.run.imported_from.as_deref(), Some("samples"));
    for (left, right) in original.checks.iter().zip(&imported.checks) {
        assert_eq!(left.check.metric, right.check.metric);
        assert_eq!(left.outcome, right.outcome);
        let (left, right) = (left.seen.unwrap().value, right.seen.unwrap().value);
        assert!((left - right).abs() <= left.abs() * 1e-6, "{left} and {right}");
    }
}

#[test]
fn what_is_no_journal_is_refused_with_its_line() {
    let (place, _) = checked();
    let journal = place.read(".gate/again/run.jsonl");
    place.write("twice.jsonl", &format!("{journal}{}\n", journal.lines().nth(5).unwrap()));
    place.gate(&["judge", "twice.jsonl"]).expect_code(2).says("twice");
    place.write("other.jsonl", "{\"hello\": 1}\n");
    place.gate(&["judge", "other.jsonl"]).expect_code(2).says("line 1");
    place.write("empty.jsonl", "");
    place.gate(&["judge", "empty.jsonl"]).expect_code(2).says("empty");
    place.write("changed/verdict.json", &place.read(".gate/again/verdict.json"));
    place.write("changed/run.jsonl", &format!("{journal}\n"));
    place.gate(&["report", "changed/verdict.json", "--samples", "-"]).expect_code(2).says("has changed");
}
