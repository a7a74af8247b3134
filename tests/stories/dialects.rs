//! The same gate in every dialect: the same verdicts from the same engine.

use gate_model::{CheckOutcome, Outcome, Run, TokenSource, Verdict};

use crate::harness::{Ended, Place, Sim, root};

const APIS: [&str; 4] = ["openai-chat", "openai-completions", "anthropic", "ollama"];

/// A check of 30 requests in a dialect, each against an engine of its own with the same seed.
fn check(api: &str, params: &str, extra: &str) -> (Ended, Verdict, Run) {
    let place = Place::new();
    let sim = Sim::start(&place, params);
    let spec = format!(
        "version: 1\nname: same\ntarget: {{url: '{}', api: {api}, model: m{extra}}}\nload: {{rps: 30, iterations: 30, arrivals: constant, warmup: 2}}\nprompts: {{input_tokens: 50, output_tokens: 12}}\ntimeouts: {{stall: 1s}}\nrequire: [e2e.p50 < 5s, throughput.output_tokens > 1tok/s, errors.rate < 50%]\n",
        sim.url()
    );
    place.write("gate.yaml", &spec);
    let ended = place.gate(&["check", "gate.yaml"]);
    (ended, place.verdict("same"), place.run("same"))
}

fn outcomes(verdict: &Verdict) -> Vec<CheckOutcome> {
    verdict.checks.iter().map(|check| check.outcome.clone()).collect()
}

#[test]
fn a_healthy_engine_is_the_same_in_all() {
    let runs = APIS.map(|api| check(api, "ttft: {mean: 30ms, stddev: 10ms}, tpot: 2ms", ""));
    let (_, first, _) = &runs[0];
    for ((ended, verdict, run), api) in runs.iter().zip(APIS) {
        ended.expect_code(0);
        assert_eq!(outcomes(verdict), outcomes(first), "{api}");
        for sample in &run.samples {
            assert_eq!(sample.outcome, Outcome::Ok, "{api}");
            assert_eq!(sample.output_tokens().unwrap().0, 12, "{api}");
            assert_eq!(sample.content_events, 12, "{api}");
            assert!(sample.first_token.is_some() && sample.usage.and_then(|usage| usage.input).is_some(), "{api}");
        }
    }
}

#[test]
fn faults_are_the_same_in_all() {
    let faults =
        "http_500: 10%, http_429: 5%, stream_error: 10%, stall: 5%, reset: 5%, truncate: 10%, empty: 10%, html_200: 5%";
    let runs = APIS.map(|api| check(api, &format!("ttft: 10ms, tpot: 1ms, seed: 5, faults: {{{faults}}}"), ""));
    let ended = |run: &Run| run.samples.iter().map(|sample| sample.outcome).collect::<Vec<_>>();
    let first = ended(&runs[0].2);
    let kinds: std::collections::BTreeSet<_> = first.iter().map(|outcome| outcome.name()).collect();
    assert!(kinds.len() >= 6, "{kinds:?}");
    for ((_, _, run), api) in runs.iter().zip(APIS) {
        assert_eq!(ended(run), first, "{api}");
    }
}

#[test]
fn whole_bodies_are_the_same_in_all() {
    for api in APIS {
        let (ended, verdict, run) = check(api, "ttft: 10ms, tpot: 1ms", ", stream: false");
        ended.expect_code(0);
        assert_eq!(verdict.checks.len(), 3, "{api}");
        for sample in &run.samples {
            assert_eq!((sample.outcome, sample.first_token), (Outcome::Ok, None), "{api}");
            assert!(sample.last_token.is_some() && sample.output_tokens().unwrap().0 == 12, "{api}");
        }
    }
}

#[test]
fn a_server_that_wants_the_other_field_gets_it() {
    let place = Place::new();
    let sim = Sim::start(&place, "ttft: 10ms, tpot: 1ms");
    let spec =
        crate::harness::quick_spec("field", &sim.url(), 20).replace("model: m", "model: wants-max-completion-tokens");
    place.write("gate.yaml", &spec);
    place.gate(&["check", "gate.yaml"]).expect_code(0).says("max_completion_tokens");
    assert!(place.run("field").samples.iter().all(|sample| sample.outcome == Outcome::Ok));
}

#[test]
fn the_real_server_speaks_two_more_of_them() {
    let Ok(url) = std::env::var("GATE_LLAMA_URL") else {
        println!("skipped: GATE_LLAMA_URL is not set (`cargo xtask engine llama` starts a server)");
        return;
    };
    let spec = root().join("gates/servers/llama.yaml").display().to_string();
    for api in ["openai-completions", "anthropic"] {
        let place = Place::new();
        let set = format!("target.api={api}");
        let words = ["check", &spec, "--set", &set, "--set", "load.warmup=1", "--set", "load.rps=1"];
        let mut command = place.command(&words);
        let ended = Ended::of(command.env("GATE_LLAMA_URL", &url).output().unwrap());
        ended.expect_code(0);
        let run = place.run("llama");
        assert!(run.samples.iter().all(|sample| sample.outcome == Outcome::Ok), "{api}");
        for sample in &run.samples {
            let (tokens, source) = sample.output_tokens().unwrap();
            assert_eq!(source, TokenSource::Usage, "{api}");
            // Its messages route knows no `ignore_eos`: an answer may end by itself, but one that is cut has all tokens.
            let cut = sample.finish_reason.as_deref() != Some("end_turn");
            assert!(if cut { tokens == 16 } else { (1..=16).contains(&tokens) }, "{api}: {tokens}");
        }
    }
}
