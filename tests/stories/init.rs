//! `gate init`: from an endpoint and answers to files that run as they are.

use std::sync::{Arc, Mutex};

use crate::harness::{Ended, Place, Sim, answer, serve};

/// `gate init` where nobody can be asked.
fn init(place: &Place, words: &[&str]) -> Ended {
    place.gate(&[&["init"], words].concat())
}

const ENGINE: &str = "ttft: {mean: 40ms, stddev: 5ms}, tpot: 1ms";

#[test]
fn an_endpoint_that_answers_is_measured_as_it_is_found() {
    let place = Place::new();
    let sim = Sim::start(&place, ENGINE);
    std::fs::create_dir(place.path(".github")).unwrap();
    let ended = init(&place, &["--target", &sim.url(), "--workload", "code", "--name", "typing", "--rps", "20"]);
    ended.expect_code(0).says("found: gate's built-in engine, model gate-sim, streams, says its tokens");
    let gate = place.read("gates/typing.yaml");
    assert!(gate.contains("model: 'gate-sim'") && gate.contains("rps: 20\n") && gate.contains("ttft.p95 < 400ms"));
    for file in ["gates/typing.yaml", "gates/nightly/typing.yaml"] {
        place.gate(&["plan", file]).expect_code(0);
    }
    place.gate(&["check", "gates/typing.yaml"]).expect_code(0);
    assert_eq!(place.verdict("typing").run.model.as_deref(), Some("gate-sim"));
    let workflow: serde_yaml::Value = serde_yaml::from_str(&place.read(".github/workflows/gate.yml")).unwrap();
    assert_eq!(workflow["jobs"]["gate"]["steps"][1]["with"]["spec"], "gates/typing.yaml");
    assert_eq!(workflow["jobs"]["nightly"]["steps"][1]["with"]["args"], "--long");
    let page = place.read("gates/typing.md");
    for words in [
        "## Which pattern catches which failure",
        "an 80 % chance to catch it",
        "400 runs a month",
        "gate capacity host",
    ] {
        assert!(page.contains(words), "{words}: {page}");
    }
}

#[test]
fn an_endpoint_that_does_not_answer_is_told_and_measured_once_it_is_there() {
    let place = Place::new();
    let ended = init(&place, &["--target", "http://127.0.0.1:9/v1", "--forge", "gitlab", "--key-env", "LLM_KEY"]);
    ended
        .expect_code(0)
        .says("nothing is known of the endpoint: connection refused")
        .says("which model is asked for is not known");
    assert!(place.read("gates/chat.yaml").contains("key: ${LLM_KEY}"));
    let included: serde_yaml::Value = serde_yaml::from_str(&place.read(".gitlab/gate.yml")).unwrap();
    assert_eq!(included["include"][0]["inputs"]["spec"], "gates/chat.yaml");
    // What is missing is said by the check.
    place.gate(&["check", "gates/chat.yaml"]).expect_code(2).says("LLM_KEY");
    let with_key = |url: &str| {
        let mut command =
            place.command(&["check", "gates/chat.yaml", "--set", "load.rps=20", "--set", "target.ready.within=1s"]);
        Ended::of(command.env("LLM_KEY", "a-key-of-a-test").env("GATE_TARGET", url).output().unwrap())
    };
    with_key("http://127.0.0.1:9/v1").expect_code(3).says("connection refused");
    let sim = Sim::start(&place, ENGINE);
    place.undisturbed(|| with_key(&sim.url())).expect_code(0);
}

#[test]
fn an_endpoint_that_refuses_says_what_would_help() {
    let refused = serve(|_, stream| {
        answer(stream, "401 Unauthorized", "application/json", "{\"error\": {\"message\": \"who are you\"}}")
    });
    let place = Place::new();
    let ended = init(&place, &["--target", &format!("http://{refused}/v1"), "--model", "m", "--forge", "none"]);
    ended.expect_code(0).says("(HTTP 401)").says("--key-env");
    assert!(place.read("gates/chat.yaml").contains("# Nothing is known of it: a first request ended as"));
    place.gate(&["plan", "gates/chat.yaml"]).expect_code(0);

    let whole = serve(|request, stream| {
        let body = match request.starts_with("GET") {
            true => "{\"data\": [{\"id\": \"m\"}]}",
            false => {
                "{\"choices\": [{\"message\": {\"content\": \"a b\"}, \"finish_reason\": \"stop\"}], \"usage\": {\"prompt_tokens\": 3, \"completion_tokens\": 2}}"
            }
        };
        answer(stream, "200 OK", "application/json", body);
    });
    let ended = init(&place, &["--target", &format!("http://{whole}/v1"), "--name", "whole", "--forge", "none"]);
    ended.expect_code(0).says("answers whole");
    let gate = place.read("gates/whole.yaml");
    assert!(gate.contains("stream: false") && gate.contains("e2e.p95") && !gate.contains("ttft"), "{gate}");
    place.gate(&["plan", "gates/nightly/whole.yaml"]).expect_code(0);
}

#[test]
fn a_server_that_calls_its_model_by_a_variable_is_not_sent_what_is_in_it() {
    let asked = Arc::new(Mutex::new(String::new()));
    let log = asked.clone();
    let server = serve(move |request, stream| {
        log.lock().unwrap().push_str(request);
        answer(
            stream,
            "200 OK",
            "application/json",
            "{\"data\": [{\"id\": \"${A_SECRET}\", \"owned_by\": \"vllm\"}], \"version\": \"1](http://x)\"}",
        );
    });
    let place = Place::new();
    let mut command = place.command(&["init", "--target", &format!("http://{server}/v1"), "--forge", "github"]);
    Ended::of(command.env("A_SECRET", "not-for-anybody").output().unwrap()).expect_code(0).says("found: vLLM");
    assert!(!asked.lock().unwrap().contains("not-for-anybody"), "the secret was sent");
    for file in ["gates/chat.yaml", "gates/nightly/chat.yaml", "gates/chat.md", ".github/workflows/gate.yml"] {
        let text = place.read(file);
        assert!(!text.contains("A_SECRET") && !text.contains("](http"), "{file}: {text}");
    }
    // Who names it so by hand means the letters.
    let words = [
        "init",
        "--target",
        &format!("http://{server}/v1"),
        "--model",
        "${A_SECRET}",
        "--name",
        "other",
        "--forge",
        "none",
    ];
    let mut command = place.command(&words);
    Ended::of(command.env("A_SECRET", "not-for-anybody").output().unwrap()).expect_code(0);
    assert!(place.read("gates/other.yaml").contains("model: '$${A_SECRET}'"));
    assert!(!asked.lock().unwrap().contains("not-for-anybody"), "the secret was sent");
}

#[test]
fn a_sample_of_traffic_gives_its_lengths() {
    let place = Place::new();
    let rows =
        (1..=40).map(|row| format!("{{\"input_tokens\": {}, \"output_tokens\": {}}}\n", 100 + row, 20 + row % 2));
    place.write("traffic.jsonl", &rows.collect::<String>());
    init(&place, &["--target", "sim", "--from-dataset", "traffic.jsonl", "--forge", "none"]).expect_code(0);
    let gate = place.read("gates/chat.yaml");
    // 101 … 140: mean 120.5, standard deviation √(40 × 41 ÷ 12) = 11.7.
    assert!(gate.contains("fitted to 40 rows of traffic.jsonl"), "{gate}");
    assert!(gate.contains("input_tokens: {mean: 121, stddev: 12, min: 101, max: 140, shape: lognormal}"), "{gate}");
    place.gate(&["check", "gates/chat.yaml", "--set", "load.rps=20", "--set", "target.sim.tpot=1ms"]).expect_code(0);
}

#[test]
fn nothing_is_lost_and_nothing_is_waited_for() {
    let place = Place::new();
    init(&place, &[]).expect_code(2).says("--target URL is missing");
    init(&place, &["--target", "sim", "--forge", "none"]).expect_code(0);
    place.write("gates/chat.yaml", "mine\n");
    std::fs::remove_file(place.path("gates/chat.md")).unwrap();
    init(&place, &["--target", "sim", "--forge", "none"])
        .expect_code(2)
        .says("there already: gates/chat.yaml, gates/nightly/chat.yaml");
    assert!(place.read("gates/chat.yaml") == "mine\n" && !place.path("gates/chat.md").exists());
    let shown = init(&place, &["--target", "sim", "--forge", "github", "--dry-run"]);
    shown.expect_code(0);
    assert!(shown.stdout.contains("# .github/workflows/gate.yml\n") && !place.path(".github").exists());
    init(&place, &["--target", "sim", "--forge", "none", "--force"]).expect_code(0);
    assert!(place.read("gates/chat.yaml").contains("version: 1"));

    place.write("bad.jsonl", "{\"prompt\": \"a\"}\n[]\n");
    for (words, said) in [
        (&["--target", "sim", "--from-dataset", "bad.jsonl"][..], "bad.jsonl: line 2 is no JSON object"),
        (&["--target", "no-scheme"], "has no scheme"),
        (&["--target", "sim", "--name", "../up"], "it names no gate"),
        (&["--target", "sim", "--ttft-p95", "5"], "--ttft-p95"),
        (&["--target", "sim", "--workload", "poetry"], "chat, code, rag, batch"),
        (&["--target", "sim", "--api", "triton"], "written by hand"),
        (&["--target", "sim", "--errors", "100%"], "--errors"),
        (&["--target", "sim", "--errors", "0.00000001%"], "--errors"),
        (&["--target", "sim", "--rps", "300"], "--rps 300"),
    ] {
        init(&place, words).expect_code(2).says(said);
    }
    // Whoever gives a key where its variable's name belongs does not find it in the log.
    let ended = init(&place, &["--target", "sim", "--key-env", "sk-do-not-show"]);
    ended.expect_code(2).says("no name of a variable");
    assert!(!ended.stderr.contains("do-not-show") && !ended.stdout.contains("do-not-show"));
    for url in ["http://127.0.0.1:9/v1?api_key=do-not-show", "http://me:do-not-show@127.0.0.1:9/v1"] {
        let ended = init(&place, &["--target", url, "--name", "keyed"]);
        ended.expect_code(2).says("--key-env");
        assert!(!ended.stderr.contains("do-not-show") && !ended.stdout.contains("do-not-show"), "{}", ended.stderr);
    }
}
