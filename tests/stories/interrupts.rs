//! A run that is stopped or killed: what it had is written, and can be judged.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use gate_model::Status;

use crate::harness::{Ended, Place, Sim, quick_spec, wait_until};

/// Starts a check of 50 slow requests against an engine, and waits until some are in the journal.
fn start(place: &Place, sim: &Sim) -> Child {
    let spec = quick_spec("slow", &sim.url(), 50).replace("rps: 40", "rps: 5");
    place.write("gate.yaml", &spec);
    let child = place.command(&["check", "gate.yaml"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let journal = place.path(".gate/slow/run.jsonl");
    let recorded = || std::fs::read_to_string(&journal).unwrap_or_default().lines().count();
    wait_until("five lines in the journal", || recorded() >= 5);
    child
}

fn signal(child: &Child, name: &str) {
    assert!(Command::new("kill").args([name, &child.id().to_string()]).status().unwrap().success());
}

#[test]
fn an_interrupt_writes_every_report_and_exits_130() {
    for name in ["-INT", "-TERM"] {
        let place = Place::new();
        let sim = Sim::start(&place, "ttft: 50ms, tpot: 5ms");
        let child = start(&place, &sim);
        let signalled = Instant::now();
        signal(&child, name);
        let ended = Ended::of(child.wait_with_output().unwrap());
        ended.expect_code(130).says("INTERRUPTED");
        assert!(signalled.elapsed() < Duration::from_secs(10), "it ends at once, not with the schedule");
        assert_eq!(place.verdict("slow").status, Status::Interrupted);
        let mut reader = quick_xml::Reader::from_reader(std::io::Cursor::new(place.junit("slow")));
        let mut buffer = Vec::new();
        while !matches!(reader.read_event_into(&mut buffer).unwrap(), quick_xml::events::Event::Eof) {}
        assert!(place.run("slow").end.is_some(), "the journal has its end");
    }
}

#[test]
fn an_interrupt_while_waiting_for_the_target_ends_too() {
    let place = Place::new();
    place.write("gate.yaml", &quick_spec("slow", "http://127.0.0.1:9", 50).replace("within: 2s", "within: 5m"));
    let child = place.command(&["check", "gate.yaml"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_until("the journal", || place.path(".gate/slow/run.jsonl").exists());
    signal(&child, "-INT");
    Ended::of(child.wait_with_output().unwrap()).expect_code(130);
    assert_eq!(place.verdict("slow").status, Status::Interrupted);
}

#[test]
fn a_killed_run_leaves_a_journal_that_says_how_far_it_came() {
    let place = Place::new();
    let sim = Sim::start(&place, "ttft: 50ms, tpot: 5ms");
    let mut child = start(&place, &sim);
    child.kill().unwrap();
    child.wait().unwrap();
    let run = place.run("slow");
    assert!(run.end.is_none());
    let recorded = run.samples.len();
    let ended = place.gate(&["judge", ".gate/slow/run.jsonl"]);
    ended.expect_code(3).says("COULD NOT MEASURE").says(&format!("{recorded} of 50"));
}
