//! Runs kept on the main branch, and pull requests judged against them.

use gate_model::{CheckOutcome, Finding, NoBaseline, Phase, Status, Verdict};

use crate::harness::{Place, Sim};

/// A gate of 40 requests against the simulated engine.
fn spec(more: &str) -> String {
    format!(
        "version: 1
name: chat
target: {{sim: {{ttft: {{mean: 30ms, stddev: 6ms}}, tpot: {{mean: 4ms, stddev: 400us}}}}}}
load: {{rps: 40, iterations: 40, warmup: 1}}
prompts: {{input_tokens: 50, output_tokens: {{mean: 20, stddev: 2, min: 15, max: 25}}}}
timeouts: {{total: 20s}}
{more}
require: [ttft.p50 < 400ms, tpot.p50 < baseline + 15%, ttft.p50 < baseline + 100%]
"
    )
}

/// The engine 40 % slower per token.
const SLOWER: &[&str] = &["--set", "target.sim.tpot=5.6ms"];

/// Twice as slow per token, which one stored run is enough to see.
const MUCH_SLOWER: &[&str] = &["--set", "target.sim.tpot=8ms"];

/// A repository on `main` with a gate in it.
fn repository(more: &str) -> Place {
    let place = Place::new();
    place.git(&["init", "--quiet"]);
    place.write("gates/chat.yaml", &spec(more));
    place.write(".gitignore", ".gate/\n");
    place.commit("the gate");
    place
}

fn checked(place: &Place, words: &[&str], code: i32) -> Verdict {
    place.gate_in_quiet(&[&["check", "gates/chat.yaml"], words].concat()).expect_code(code);
    place.verdict("chat")
}

fn outcome<'a>(verdict: &'a Verdict, check: &str) -> &'a CheckOutcome {
    let found = verdict.checks.iter().find(|one| one.check.to_string().starts_with(check));
    &found.unwrap_or_else(|| panic!("no check {check}")).outcome
}

#[test]
fn twice_on_main_and_once_on_a_pull_request() {
    let place = repository("");
    let first = checked(&place, &["--save-baseline"], 0);
    assert!(matches!(outcome(&first, "tpot.p50 <"), CheckOutcome::NoBaseline { why: NoBaseline::NoneSaved }));
    assert!(place.read(".gate/chat/comment.md").contains("--save-baseline"), "it says how to make one");
    place.commit("more of main");
    let second = checked(&place, &["--save-baseline"], 0);
    assert_eq!(second.baseline.unwrap().used.len(), 1);

    place.git(&["checkout", "--quiet", "-b", "change"]);
    place.commit("a change");
    let third = checked(&place, &[], 0);
    let used = third.baseline.as_ref().unwrap();
    assert_eq!(used.used.len(), 2);
    assert_eq!(used.used[0].behind, Some(0), "the fork point itself");
    assert!(matches!(third.status, Status::Passed | Status::PassedWithWarnings));
    assert!(third.moved.is_none());

    let ended = place.gate_in_quiet(&[&["check", "gates/chat.yaml"], SLOWER].concat());
    ended.expect_code(1).says("tpot.p50").says("Decode moved most");
    let fourth = place.verdict("chat");
    assert_eq!(*outcome(&fourth, "tpot.p50 <"), CheckOutcome::Violated);
    assert_eq!(fourth.moved.unwrap().phase, Phase::Decode);
    assert!(place.read(".gate/chat/comment.md").contains("ecode moved most"));
    assert!(place.junit("chat").contains("<failure"));

    // The same journal is judged to the same verdict.
    place.gate(&["judge", ".gate/chat/run.jsonl"]).expect_code(1).says("Decode moved most");
}

#[test]
fn a_violated_run_is_not_kept_unless_asked_for_by_hand() {
    let place = repository("");
    place
        .gate_in_quiet(&["check", "gates/chat.yaml", "--save-baseline", "--set", "target.sim.ttft=600ms"])
        .expect_code(1)
        .says("not kept as a baseline");
    place.gate(&["baseline", "list"]).expect_code(0).says("no baseline");
    place.gate(&["baseline", "save", ".gate/chat/verdict.json"]).expect_code(0).says("kept");
    let listed = place.gate(&["baseline", "list"]);
    assert!(listed.expect_code(0).stdout.contains("violated"), "{}", listed.stdout);
}

#[test]
fn a_waived_violation_does_not_become_what_later_runs_are_held_against() {
    let place = repository("");
    checked(&place, &["--save-baseline"], 0);
    let waived = "{check: tpot.p50 < baseline + 15%, waive: {until: 2999-12-31, reason: issue 412}}";
    place.write("gates/chat.yaml", &spec("").replace("tpot.p50 < baseline + 15%", waived));
    place.commit("waive");
    let ended = place.gate_in_quiet(&[&["check", "gates/chat.yaml", "--save-baseline"], MUCH_SLOWER].concat());
    ended.expect_code(0).says("not kept as a baseline: a required check is violated");
}

#[test]
fn another_load_has_no_baseline_and_says_what_differs() {
    let place = repository("");
    checked(&place, &["--save-baseline"], 0);
    let verdict = checked(&place, &["--set", "load.rps=50"], 0);
    match outcome(&verdict, "tpot.p50 <") {
        CheckOutcome::NoBaseline { why: NoBaseline::Differs(differences) } => {
            assert!(differences.iter().any(|one| one.what.starts_with("load.pace")), "{differences:?}");
        }
        other => panic!("{other:?}"),
    }
    checked(&place, &["--set", "load.rps=50", "--strict"], 4);
    let seed = checked(&place, &["--set", "load.seed=7"], 0);
    assert_eq!(seed.baseline.unwrap().used.len(), 1, "the seed is no part of the key");
}

#[test]
fn baselines_in_the_repository_itself_reach_other_clones() {
    let remote = Place::new();
    remote.git(&["init", "--quiet", "--bare"]);
    let place = repository("baseline: {store: 'git:refs/gate/baselines'}");
    place.git(&["remote", "add", "origin", remote.path("").to_str().unwrap()]);
    place.git(&["push", "--quiet", "origin", "main"]);
    checked(&place, &["--save-baseline"], 0);
    let status = place.git(&["status", "--porcelain"]);
    assert_eq!(status, "", "neither the checkout nor the index is touched");

    let clone = Place::new();
    clone.git(&["clone", "--quiet", remote.path("").to_str().unwrap(), "."]);
    clone.git(&["checkout", "--quiet", "-b", "change"]);
    clone.commit("a change");
    let verdict = checked(&clone, &[], 0);
    assert_eq!(verdict.baseline.unwrap().used.len(), 1);
    checked(&clone, MUCH_SLOWER, 1);
}

#[test]
fn a_change_does_not_loosen_its_own_gate() {
    let place = repository("");
    checked(&place, &["--save-baseline"], 0);
    place.git(&["checkout", "--quiet", "-b", "change"]);
    let loose = spec("").replace("ttft.p50 < 400ms", "ttft.p50 < 900ms").replace("+ 15%", "+ 80%");
    place.write("gates/chat.yaml", &loose);
    place.commit("loosen");
    checked(&place, MUCH_SLOWER, 0);
    let ended = place.gate_in_quiet(&[&["check", "gates/chat.yaml", "--trust", "base"], MUCH_SLOWER].concat());
    ended.expect_code(1).says("400ms → 900ms");
    let verdict = place.verdict("chat");
    let changes = verdict.findings.iter().find_map(|finding| match finding {
        Finding::SpecChanged { changes, .. } => Some(changes),
        _ => None,
    });
    assert!(changes.unwrap().iter().all(|change| change.loosens), "{changes:?}");
    assert_eq!(*outcome(&verdict, "tpot.p50 <"), CheckOutcome::Violated);
}

#[test]
fn a_gate_is_found_at_the_base_by_name_and_a_removed_one_is_told() {
    let place = repository("");
    place.write(
        "gates/other.yaml",
        &spec("").replace("name: chat", "name: other").replace("iterations: 40", "iterations: 20"),
    );
    place.commit("another gate");
    checked(&place, &["--save-baseline"], 0);
    place.git(&["checkout", "--quiet", "-b", "change"]);
    std::fs::remove_file(place.path("gates/chat.yaml")).unwrap();
    std::fs::remove_file(place.path("gates/other.yaml")).unwrap();
    place.write("gates/moved.yaml", &spec("").replace("+ 15%", "+ 400%"));
    place.commit("move, loosen, remove");
    let ended = place.gate_in_quiet(&[&["check", "--trust", "base", "--junit", "j.xml"], MUCH_SLOWER].concat());
    ended.expect_code(1).says("loosens its own gate");
    let comment = place.read(".gate/chat/comment.md");
    assert!(comment.contains("baseline + 15% → baseline + 400%") && comment.contains("other"), "{comment}");
    assert!(place.read("j.xml").contains("gates/moved.yaml"), "places are those of the checkout");
    assert!(!place.read(".gate/chat/annotations.txt").contains(" at "), "and name files that are there");
}

#[test]
fn a_gate_is_found_at_the_base_wherever_it_was_moved() {
    let place = repository("");
    checked(&place, &["--save-baseline"], 0);
    place.git(&["checkout", "--quiet", "-b", "change"]);
    place.write("nightly/deep/moved.yaml", &spec("").replace("+ 15%", "+ 900%"));
    std::fs::remove_file(place.path("gates/chat.yaml")).unwrap();
    place.commit("move far");
    let words = [&["check", "nightly/deep/moved.yaml", "--trust", "base"], MUCH_SLOWER].concat();
    place.gate_in_quiet(&words).expect_code(1).says("loosens its own gate");

    // The same path, through a link.
    place.git(&["reset", "--quiet", "--hard", "main"]);
    place.write("other/chat.yaml", &spec("").replace("+ 15%", "+ 900%").replace("name: chat", "name: tchat"));
    std::fs::remove_dir_all(place.path("gates")).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink("other", place.path("gates")).unwrap();
    place.commit("link");
    let ended = place.gate_in_quiet(&["check", "gates/chat.yaml", "--trust", "base"]);
    ended.expect_code(0).says("loosens its own gate");
}

#[test]
fn a_change_brings_no_baselines_of_its_own() {
    let place = repository("");
    checked(&place, &["--save-baseline"], 0);
    place.git(&["checkout", "--quiet", "-b", "change"]);
    let judged = || place.gate_in_quiet(&[&["check", "gates/chat.yaml", "--trust", "base"], MUCH_SLOWER].concat());
    judged().expect_code(1);
    place.git(&["add", "--force", ".gate/baselines"]);
    place.commit("a baseline of its own");
    judged().expect_code(2).says("alters the baselines in .gate/baselines").says("take these files out");

    // Through a link, the files stand elsewhere.
    place.git(&["rm", "--quiet", "-r", "--cached", ".gate"]);
    std::fs::rename(place.path(".gate"), place.path("elsewhere")).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink("elsewhere", place.path(".gate")).unwrap();
    place.commit("by a link");
    judged().expect_code(2).says("alters the baselines in .gate/baselines: elsewhere/baselines");
}

#[test]
fn a_change_does_not_rewrite_the_file_it_is_compared_with() {
    let place = repository("baseline: {from: kept/main.jsonl}");
    place.gate_in_quiet(&["run", "gates/chat.yaml", "-o", "kept/main.jsonl"]).expect_code(0);
    place.commit("main's run");
    let judged = || place.gate_in_quiet(&[&["check", "gates/chat.yaml", "--trust", "base"], MUCH_SLOWER].concat());
    place.git(&["checkout", "--quiet", "-b", "change"]);
    judged().expect_code(1);
    let slow = [&["run", "gates/chat.yaml", "-o", "kept/main.jsonl"], MUCH_SLOWER].concat();
    place.gate_in_quiet(&slow).expect_code(0);
    place.commit("a run of its own");
    judged().expect_code(2).says("alters the baselines in kept/main.jsonl");
}

#[test]
fn a_run_that_says_nothing_is_no_baseline() {
    let place = repository("");
    place.gate_in_quiet(&[
        "check",
        "gates/chat.yaml",
        "--set",
        "target.sim.faults={http_429: 40%}",
        "--set",
        "abort.lost=false",
    ]);
    std::fs::rename(place.path(".gate/chat/run.jsonl"), place.path("limited.jsonl")).unwrap();
    let ended = place.gate_in_quiet(&["check", "gates/chat.yaml", "--baseline", "limited.jsonl"]);
    ended.expect_code(2).says("not a valid run").says("gate judge limited.jsonl");
}

#[test]
fn two_gates_do_not_write_into_one_journal() {
    let place = repository("");
    let slow = ["check", "gates/chat.yaml", "--set", "load.rps=10"];
    let mut first = place.command(&slow).stderr(std::process::Stdio::null()).spawn().unwrap();
    crate::harness::wait_until("the first writes its journal", || place.path(".gate/chat/run.jsonl").exists());
    place.gate_once(&slow).expect_code(2).says("another gate is writing").says("--out");
    assert!(first.wait().unwrap().code().is_some_and(|code| code != 2));
    place.gate(&["judge", ".gate/chat/run.jsonl"]).expect_code(0);
}

#[test]
fn a_run_that_cannot_be_kept_says_how_to_keep_it_later() {
    let place = repository("baseline: {store: 'git:refs/gate/baselines'}");
    let remote = Place::new();
    remote.git(&["init", "--quiet", "--bare"]);
    remote.write("hooks/pre-receive", "#!/bin/sh\necho nobody may push >&2\nexit 1\n");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let executable = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(remote.path("hooks/pre-receive"), executable).unwrap();
    }
    place.git(&["remote", "add", "origin", remote.path("").to_str().unwrap()]);
    let ended = place.gate_in_quiet(&["check", "gates/chat.yaml", "--save-baseline"]);
    ended.expect_code(3).says("PASSED").says("not kept").says("gate baseline save .gate/chat/verdict.json");
    std::fs::remove_file(remote.path("hooks/pre-receive")).unwrap();
    place.gate(&["baseline", "save", ".gate/chat/verdict.json"]).expect_code(0).says("kept");
}

#[test]
fn baselines_are_listed_shown_pinned_and_pruned() {
    let place = repository("");
    for _ in 0..3 {
        checked(&place, &["--save-baseline"], 0);
        place.commit("next");
    }
    let listed = place.gate(&["baseline", "list", "--metric", "tpot.p50"]);
    listed.expect_code(0);
    assert!(listed.stdout.contains("ms"), "{}", listed.stdout);
    let newest = place.verdict("chat").run.run_id;
    let listed = place.gate(&["baseline", "list"]);
    assert!(listed.expect_code(0).stdout.contains(&newest), "{}", listed.stdout);
    let shown = place.gate(&["baseline", "show", &newest, "--json"]);
    let baseline: gate_model::Baseline = serde_json::from_str(&shown.expect_code(0).stdout).unwrap();
    assert_eq!((baseline.id(), baseline.run.samples.len()), (newest.as_str(), 40));
    let stored = std::fs::read_dir(place.path(".gate/baselines/chat")).unwrap().count();
    assert_eq!(stored, 1, "one key");
    place.gate(&["baseline", "prune", "--keep", "1"]).expect_code(0).says("2");
    place.gate(&["baseline", "show", &newest]).expect_code(0);
    place.gate(&["baseline", "pin", &newest]).expect_code(0);
    place.gate(&["baseline", "prune", "--keep", "0"]).expect_code(0);
    place.gate(&["baseline", "show", &newest]).expect_code(0);
    place.gate(&["baseline", "show", "0000"]).expect_code(2).says("0000");
    place.gate(&["baseline", "show", ""]).expect_code(2).says("id");
    let pinned = format!("baseline.from=pin:{newest}");
    assert_eq!(checked(&place, &["--set", &pinned], 0).baseline.unwrap().used.len(), 1);
    place.gate(&["baseline", "pin", &newest, "--remove"]).expect_code(0);
    place.gate(&["baseline", "prune", "--keep", "0"]).expect_code(0);
    place.gate(&["baseline", "list", "--gate", "chat"]).expect_code(0).says("of gate chat");
}

#[test]
fn a_damaged_baseline_is_named_and_the_others_are_used() {
    let place = repository("");
    checked(&place, &["--save-baseline"], 0);
    let key = std::fs::read_dir(place.path(".gate/baselines/chat")).unwrap().next().unwrap().unwrap().path();
    std::fs::write(key.join("0123456789abcdef0123456789abcdef.json"), "{ not a baseline").unwrap();
    let ended = place.gate_in_quiet(&["check", "gates/chat.yaml"]);
    ended.expect_code(0).says("0123456789abcdef0123456789abcdef.json");
    assert_eq!(place.verdict("chat").baseline.unwrap().used.len(), 1);
}

#[test]
fn calibration_proposes_checks_the_spec_takes_and_keeps_the_noise() {
    let place = repository("");
    let ended = place.undisturbed(|| place.gate_once(&["calibrate", "gates/chat.yaml", "--runs", "3"]));
    ended.expect_code(0).says("3 runs");
    assert!(ended.stdout.contains("require:"), "{}", ended.stdout);
    let head = spec("").split_once("require:").unwrap().0.to_owned();
    place.write("proposed.yaml", &format!("{head}{}", ended.stdout));
    place.gate(&["plan", "proposed.yaml"]).expect_code(0);
    let key = std::fs::read_dir(place.path(".gate/baselines/chat")).unwrap().next().unwrap().unwrap().path();
    let noise: gate_model::Noise =
        serde_json::from_str(&std::fs::read_to_string(key.join("noise.json")).unwrap()).unwrap();
    assert_eq!(noise.runs, 3);
    assert!(noise.tau.contains_key("tpot.p50"), "{noise:?}");
}

#[test]
fn a_check_is_explained_on_a_run_step_by_step() {
    let place = repository("");
    checked(&place, &["--save-baseline"], 0);
    checked(&place, MUCH_SLOWER, 1);
    for run in [".gate/chat/run.jsonl", ".gate/chat/verdict.json"] {
        let ended = place.gate(&["explain", "tpot.p50 < baseline + 15%", "--run", run]);
        ended.expect_code(0);
        assert!(ended.stdout.contains("STORED") && ended.stdout.contains("p ="), "{}", ended.stdout);
        let ended = place.gate(&["explain", "ttft.p50", "--run", run]);
        assert!(ended.expect_code(0).stdout.contains("ttft.p50 < 400ms"), "{}", ended.stdout);
    }
    // Both conventions of one run: with the time to the first token, and without.
    let ended = place.gate(&["explain", "tpot", "--run", ".gate/chat/verdict.json"]);
    ended.expect_code(0);
    for words in ["- tpot.p50: ", "- tpot_e2e.p50: ", "as GuideLLM's TPOT and LLMPerf count", "- tpot.effective: "] {
        assert!(ended.stdout.contains(words), "{words}: {}", ended.stdout);
    }
    place.gate(&["explain", "e2e.p99", "--run", ".gate/chat/run.jsonl"]).expect_code(2).says("tpot.p50");
}

#[test]
fn two_arms_are_judged_in_pairs() {
    let place = Place::new();
    let reference = Sim::start(&place, "ttft: {mean: 30ms, stddev: 6ms}, tpot: {mean: 4ms, stddev: 400us}");
    let spec = spec("").replace("baseline + 15%", "reference + 10%").replace("baseline + 100%", "reference + 100%");
    place.write("gates/chat.yaml", &spec);
    place.gate_in_quiet(&["check", "gates/chat.yaml"]).expect_code(2).says("reference");
    let url = reference.url();
    let equal = checked(&place, &["--reference", &url], 0);
    assert_eq!(equal.run.sent, 80, "40 requests an arm");
    assert!(equal.run.reference.is_some());
    let slower = checked(&place, &[&["--reference", &url], MUCH_SLOWER].concat(), 1);
    assert_eq!(*outcome(&slower, "tpot.p50 <"), CheckOutcome::Violated);
    assert_eq!(slower.moved.unwrap().phase, Phase::Decode);
    let run = place.run("chat");
    let pairs: std::collections::BTreeSet<_> = run.samples.iter().map(|sample| sample.pair).collect();
    assert_eq!(pairs.len(), 40);
}

#[test]
fn anyone_s_data_drives_the_rules() {
    let place = Place::new();
    let row = |second: usize, factor: f64| {
        let jitter = 1.0 + 0.02 * ((second * 7) % 11) as f64 / 11.0;
        let (ttft, tpot) = (100.0 * jitter, 10.0 * jitter * factor);
        format!(
            "{{\"send_s\": {second}, \"status\": 200, \"ttft_ms\": {ttft}, \"tpot_ms\": {tpot}, \"e2e_ms\": {}, \
             \"output_tokens\": 21}}\n",
            ttft + 20.0 * tpot
        )
    };
    let file = |factor: f64| (0..40).map(|second| row(second, factor)).collect::<String>();
    place.write("before.jsonl", &file(1.0));
    place.write("same.jsonl", &file(1.01));
    place.write("slow.jsonl", &file(1.4));
    let gate = "version: 1\nname: theirs\ntarget: {url: 'http://theirs', model: m}\nload: {rps: 1, iterations: 40}\n";
    place.write("stored.yaml", &format!("{gate}require: [tpot.p50 < baseline + 15%]\n"));
    place.write("paired.yaml", &format!("{gate}require: [tpot.p50 < reference + 15%]\n"));
    let judge = |file: &str, spec: &str, flag: &str, code: i32| {
        let words = ["judge", file, "--from", "samples", "--spec", spec, flag, "before.jsonl"];
        place.gate_in_quiet(&words).expect_code(code);
    };
    judge("same.jsonl", "stored.yaml", "--baseline", 0);
    judge("slow.jsonl", "stored.yaml", "--baseline", 1);
    judge("same.jsonl", "paired.yaml", "--reference", 0);
    judge("slow.jsonl", "paired.yaml", "--reference", 1);

    // Both arms in one file need no `reference` in the spec.
    let arm = |text: &str, arm: &str| text.replace("{\"send_s\"", &format!("{{\"arm\": \"{arm}\", \"send_s\""));
    place.write("both.jsonl", &(arm(&file(1.4), "target") + &arm(&file(1.0), "reference")));
    place.gate(&["judge", "both.jsonl", "--from", "samples", "--spec", "paired.yaml"]).expect_code(1);
    place.gate(&["judge", "same.jsonl", "--from", "samples", "--spec", "paired.yaml"]).expect_code(2).says("reference");
}
