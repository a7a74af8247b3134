//! `gate doctor`: what works here, told without changing anything.

use serde_json::Value;

use crate::forge_double::{Forge, TOKEN, pull_request};
use crate::harness::{Ended, Place, Sim, answer, quick_spec, serve};

/// What is said of something: its state, what is told, and what to do.
fn said(ended: &Ended, what: &str) -> (String, String) {
    let findings: Vec<Value> = serde_json::from_str(&ended.stdout).unwrap();
    let found = findings.iter().find(|one| one["what"] == what).unwrap_or_else(|| panic!("{what}: {}", ended.stdout));
    let text = |key: &str| found[key].as_str().unwrap_or_default().to_owned();
    (text("state"), format!("{}; {}", text("said"), text("remedy")))
}

#[track_caller]
fn expect(ended: &Ended, what: &str, state: &str, words: &str) {
    let (is, told) = said(ended, what);
    assert!(is == state && told.contains(words), "{what} is {is}: {told}");
}

#[test]
fn what_works_is_told_of_machine_and_target() {
    let place = Place::new();
    let sim = Sim::start(&place, "ttft: 5ms");
    std::fs::remove_file(place.path("engine.yaml")).unwrap();
    let spec = |model: &str| quick_spec("chat", &sim.url(), 20).replace("model: m,", &format!("model: {model},"));
    place.write("gates/chat.yaml", &spec("gate-sim"));
    let ended = place.gate(&["doctor", "--json"]);
    ended.expect_code(0);
    expect(&ended, "clock", "works", "the kernel stamps");
    expect(&ended, "gate", "works", "chat (gates/chat.yaml)");
    expect(&ended, "target", "works", "lists the model gate-sim");
    expect(&ended, "forge", "absent", "nothing is published");
    expect(&ended, "git", "absent", "no history");
    expect(&ended, "baselines", "absent", "none in .gate/baselines");
    let truth = sim.truth();
    assert!(truth["requests"].as_array().is_none_or(Vec::is_empty), "no load was sent: {truth}");

    place.write("gates/chat.yaml", &spec("other"));
    expect(&place.gate(&["doctor", "--json"]), "target", "doubtful", "it lists gate-sim");
    let text = place.gate(&["doctor"]);
    assert!(text.stdout.contains("warn  target ") && text.stdout.ends_with("could be better.\n"), "{}", text.stdout);
}

#[test]
fn what_fails_says_what_to_do() {
    let place = Place::new();
    expect(&place.gate(&["doctor", "--json"]), "gates", "absent", "`gate init` makes one");
    place.gate(&["doctor", "absent.yaml"]).expect_code(2).says("absent.yaml");
    place.write("gates/dead.yaml", &quick_spec("dead", "http://127.0.0.1:9", 20));
    expect(&place.gate(&["doctor", "--json"]), "target", "fails", "connection refused");
    std::fs::remove_file(place.path("gates/dead.yaml")).unwrap();

    let refuses = serve(|_, stream| {
        answer(stream, "401 Unauthorized", "application/json", "{\"error\": \"the key sk-abcdef-of-mine is wrong\"}")
    });
    let spec = quick_spec("keyed", &format!("http://{refuses}"), 20).replace("model: m,", "model: m, key: '${A_KEY}',");
    place.write("gates/keyed.yaml", &spec);
    let ended = place.gate(&["doctor", "--json"]);
    expect(&ended, "gate", "fails", "A_KEY");
    let mut command = place.command(&["doctor", "--json"]);
    let ended = Ended::of(
        command
            .env("A_KEY", "sk-abcdef-of-mine")
            .env("https_proxy", "http://me:secret-word@127.0.0.1:9")
            .output()
            .unwrap(),
    );
    expect(&ended, "target", "fails", "refuses the key (HTTP 401)");
    expect(&ended, "proxy", "works", "named by https_proxy");
    for secret in ["sk-abcdef-of-mine", "secret-word"] {
        assert!(!ended.stdout.contains(secret) && !ended.stderr.contains(secret), "{}{}", ended.stdout, ended.stderr);
    }
}

#[test]
fn a_jobs_token_is_tried_and_nothing_is_written() {
    let place = Place::new();
    let forge = Forge::start();
    forge.state().post("octocat", "hello");
    let mut job = forge.github(&place, "pull_request", &pull_request("o/r"));
    let in_job = |job: &[(&str, String)]| {
        let mut command = place.command(&["doctor", "--json"]);
        Ended::of(command.env_remove("CI").envs(job.iter().map(|(name, value)| (name, value))).output().unwrap())
    };
    let ended = in_job(&job);
    expect(&ended, "forge", "works", "GitHub o/r, request");
    expect(&ended, "token", "works", "reads the request's 1 comments");
    assert!(!ended.stdout.contains(TOKEN));
    assert_eq!(forge.state().posts.len(), 1);
    assert!(forge.state().log.iter().all(|request| request.starts_with("GET ")), "{:?}", forge.state().log);
    job.retain(|(name, _)| *name != "GITHUB_TOKEN");
    expect(&in_job(&job), "token", "fails", "GITHUB_TOKEN");
}
