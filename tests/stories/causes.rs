//! What makes a run slow is named with its evidence, and nothing is of a run like those before it.

use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use gate_model::{Against, LikelyCause, Phase, Verdict};

use crate::harness::{Ended, Place, Sim};

/// The engine: an answer of 20 tokens takes 120 ms, and the reading of a prompt that is not cached 100 ms.
const ENGINE: &str = "ttft: {mean: 40ms, stddev: 8ms}, tpot: {mean: 4ms, stddev: 400us}, slots: 8, prefill: 4000, prefix_cache: {blocks: 4096}";

/// A gate that every server passes, with a preferred check that none does, so that there is always something to explain.
fn gate(target: &str) -> String {
    format!(
        "version: 1
name: chat
target: {{{target}}}
load: {{rps: 12, iterations: 40, warmup: 2}}
prompts: {{input_tokens: 400, output_tokens: 20, cache: warm}}
timeouts: {{total: 20s}}
require: [ttft.p95 < 10s, throughput.requests >= baseline - 95%]
prefer: [throughput.requests > 1000/s]
"
    )
}

fn checked(place: &Place, words: &[&str]) -> Verdict {
    place.gate_in_quiet(&[&["check", "gates/chat.yaml"], words].concat()).expect_code(0);
    place.verdict("chat")
}

#[test]
fn each_cause_is_named_against_a_stored_run() {
    let place = Place::new();
    place.git(&["init", "--quiet"]);
    place.write("gates/chat.yaml", &gate(&format!("sim: {{{ENGINE}}}")));
    place.write(".gitignore", ".gate/\n");
    place.commit("the gate");
    checked(&place, &["--save-baseline"]);
    let same = checked(&place, &[]);
    assert_eq!((&same.suspects[..], same.moved), (&[][..], None));
    assert!(same.spreads.iter().any(|spread| spread.of == Some(Against::Baseline)), "{:?}", same.spreads);

    type Is = fn(&LikelyCause) -> bool;
    let cases: [(&str, Phase, Is); 4] = [
        ("target.sim.tpot=16ms", Phase::Decode, |cause| matches!(cause, LikelyCause::DecodeSlower { .. })),
        ("target.sim.slots=1", Phase::FirstToken, |cause| matches!(cause, LikelyCause::QueueGrew { .. })),
        ("target.sim.prefix_cache.blocks=1", Phase::FirstToken, |cause| matches!(cause, LikelyCause::CacheLost { .. })),
        ("target.extra_body.max_tokens=80", Phase::Decode, |cause| matches!(cause, LikelyCause::LongerOutputs { .. })),
    ];
    for (set, phase, is) in cases {
        let verdict = checked(&place, &["--set", set]);
        let first = verdict.suspects.first().unwrap_or_else(|| panic!("{set}: no cause"));
        assert!(is(&first.cause), "{set}: {:?}", verdict.suspects);
        assert_eq!((first.phase, first.against), (phase, Some(Against::Baseline)), "{set}");
        let is_explained = |phase: Phase| verdict.suspects.iter().any(|one| one.phase == phase);
        assert!(verdict.moved.is_none_or(|moved| is_explained(moved.phase)), "{set}: {:?}", verdict.moved);
    }
}

/// The sending process is stopped for 300 of every 600 ms, as a machine does with one that it has no time for.
#[test]
fn a_client_that_is_held_up_is_the_cause_itself() {
    let place = Place::new();
    let engine = Sim::start(&place, ENGINE);
    let spec = gate(&format!("url: '{}', model: m", engine.url()));
    place.write("gate.yaml", &spec.replace("ttft.p95 < 10s, throughput.requests >= baseline - 95%", "ttft.p50 < 20ms"));
    let mut command = place.command(&["check", "gate.yaml"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let pid = child.id().to_string();
    let signal = |name: &str| Command::new("kill").args([name, &pid]).status().unwrap();
    while child.try_wait().unwrap().is_none() {
        signal("-STOP");
        sleep(Duration::from_millis(300));
        signal("-CONT");
        sleep(Duration::from_millis(300));
    }
    Ended::of(child.wait_with_output().unwrap()).expect_code(3);
    let verdict = place.verdict("chat");
    let [suspect] = &verdict.suspects[..] else { panic!("{:?}", verdict.suspects) };
    let LikelyCause::ClientBusy { lag, .. } = suspect.cause else { panic!("{suspect:?}") };
    assert_eq!((suspect.phase, suspect.against, verdict.moved), (Phase::Connect, None, None));
    assert!(lag.value > 20e6, "{lag:?}");
}
