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
fn a_journal_that_contradicts_itself_is_refused() {
    let (place, _) = checked();
    let journal = place.read(".gate/again/run.jsonl");
    let line = |number: usize| journal.lines().nth(number).unwrap().to_owned();
    let judge = |name: &str, text: &str| {
        place.write(name, text);
        place.gate(&["judge", name, "--out", "out"])
    };
    // A name that would lead out of the output folder.
    let escaping = journal.replacen("\"name\":\"again\"", "\"name\":\"../../escaped\"", 1);
    judge("name.jsonl", &escaping).expect_code(2).says("name");
    assert!(!place.path("../escaped").exists() && !place.path("out").exists());
    // Requests that were sent and are missing.
    judge("short.jsonl", &journal.replacen(&format!("{}\n", line(8)), "", 1)).expect_code(2).says("recorded");
    // A line after the end.
    judge("after.jsonl", &format!("{journal}{}\n", line(1))).expect_code(2).says("after the run's end");
    // Times out of order.
    let first_token = line(8).split("\"first_token\":").nth(1).unwrap().split(',').next().unwrap().to_owned();
    let early = line(8).replace(&format!("\"first_token\":{first_token}"), "\"first_token\":-5");
    judge("early.jsonl", &journal.replacen(&line(8), &early, 1)).expect_code(2).says("out of order");
    // The run is not replaced by its own report.
    place.gate(&["judge", ".gate/again/run.jsonl", "--junit", ".gate/again/run.jsonl"]).expect_code(2).says("replace");
    assert_eq!(place.read(".gate/again/run.jsonl"), journal);
}

#[test]
fn what_was_sent_in_full_is_judged_in_full() {
    let place = Place::new();
    let spec = quick_spec("full", "http://127.0.0.1:9", 20).replace("iterations: 20", "iterations: 30..50").replace(
        "url: 'http://127.0.0.1:9', model: m, ready: {within: 2s}",
        "sim: {ttft: 10ms, tpot: 1ms, dies_after: 36}",
    );
    place.write("gate.yaml", &spec);
    place.gate(&["run", "gate.yaml", "-o", "run.jsonl"]).expect_code(0);
    // The first look, at 30, is healthy; the engine died after it.
    place.gate(&["judge", "run.jsonl"]).expect_code(1).says("errors.rate");
}

#[test]
fn an_earlier_runs_reports_do_not_outlive_a_kill() {
    let (place, spec) = checked();
    place.write("gate.yaml", &spec.replace("rps: 40", "rps: 2"));
    let mut child = place.command(&["check", "gate.yaml", "--quiet"]).spawn().unwrap();
    crate::harness::wait_until("the first request", || {
        let journal = place.read(".gate/again/run.jsonl");
        // The earlier run's journal has an end.
        journal.contains("\"type\":\"sample\"") && !journal.contains("\"type\":\"end\"")
    });
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!place.path(".gate/again/verdict.json").exists() && !place.path(".gate/again/junit.xml").exists());
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
