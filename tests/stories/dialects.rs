//! The same gate in every dialect: the same verdicts from the same engine.

use gate_model::{Api, CheckOutcome, Outcome, Run, Verdict};

use crate::harness::{Ended, Place, Sim};

/// The dialects that the engine has encoders for and that generate; Ollama's other route is told by the URL.
fn dialects() -> impl Iterator<Item = (Api, &'static str)> {
    let apis = Api::ALL.into_iter().filter(|api| api.generates() && *api != Api::Custom);
    apis.map(|api| (api, "")).chain([(Api::Ollama, "/api/generate")])
}

/// What a check gives in each of them, a few at a time.
fn in_all<T: Send>(check: impl Fn(Api, &str) -> T + Sync) -> Vec<(Api, T)> {
    let all: Vec<_> = dialects().collect();
    let mut given = Vec::new();
    for some in all.chunks(3) {
        std::thread::scope(|threads| {
            let check = &check;
            let running: Vec<_> = some.iter().map(|(api, path)| threads.spawn(move || check(*api, path))).collect();
            given.extend(some.iter().map(|(api, _)| *api).zip(running.into_iter().map(|one| one.join().unwrap())));
        });
    }
    given
}

/// A check of 30 requests in a dialect, each against an engine of its own with the same seed.
fn check(api: Api, path: &str, params: &str, extra: &str) -> (Ended, Verdict, Run) {
    let place = Place::new();
    // An engine counts its requests, so a repeated run needs a new one.
    let ended = place.undisturbed(|| {
    let sim = Sim::start(&place, params);
    let spec = format!(
        "version: 1\nname: same\ntarget: {{url: '{}{path}', api: {}, key: test-key, model: m{extra}}}\nload: {{rps: 30, iterations: 30, arrivals: constant, warmup: 2}}\nprompts: {{input_tokens: 50, output_tokens: 12, tokens: accept_estimate}}\ntimeouts: {{stall: 1s}}\nrequire: [e2e.p50 < 5s, throughput.output_tokens > 1tok/s, errors.rate < 50%]\n",
        sim.url(),
        api.name()
    );
    place.write("gate.yaml", &spec);
    place.gate_once(&["check", "gate.yaml"])
    });
    (ended, place.verdict("same"), place.run("same"))
}

fn outcomes(verdict: &Verdict) -> Vec<CheckOutcome> {
    verdict.checks.iter().map(|check| check.outcome.clone()).collect()
}

#[test]
fn a_healthy_engine_is_the_same_in_all() {
    let runs = in_all(|api, path| check(api, path, "ttft: {mean: 30ms, stddev: 10ms}, tpot: 2ms", ""));
    let (_, (_, first, _)) = &runs[0];
    for (api, (ended, verdict, run)) in &runs {
        let api = api.name();
        ended.expect_code(0);
        assert_eq!(outcomes(verdict), outcomes(first), "{api}");
        for sample in &run.samples {
            assert_eq!(sample.outcome, Outcome::Ok, "{api}");
            assert_eq!(sample.output_tokens().unwrap().0, 12, "{api}");
            assert_eq!(sample.content_events, 12, "{api}");
            let counted = sample.usage.and_then(|usage| usage.input).is_some();
            assert!(sample.first_token.is_some() && counted == (api != "triton"), "{api}: {:?}", sample.usage);
        }
    }
}

#[test]
fn faults_are_the_same_in_all() {
    let faults =
        "http_500: 10%, http_429: 5%, stream_error: 10%, stall: 5%, reset: 5%, truncate: 10%, empty: 10%, html_200: 5%";
    let params = format!("ttft: 10ms, tpot: 1ms, seed: 5, faults: {{{faults}}}");
    let runs = in_all(|api, path| check(api, path, &params, ""));
    let ended = |run: &Run| run.samples.iter().map(|sample| sample.outcome).collect::<Vec<_>>();
    let first = ended(&runs[0].1.2);
    let kinds: std::collections::BTreeSet<_> = first.iter().map(|outcome| outcome.name()).collect();
    assert!(kinds.len() >= 6, "{kinds:?}");
    for (api, (_, _, run)) in &runs {
        assert_eq!(ended(run), first, "{}", api.name());
    }
}

#[test]
fn whole_bodies_are_the_same_in_all() {
    for (api, (ended, verdict, run)) in in_all(|api, path| check(api, path, "ttft: 10ms, tpot: 1ms", ", stream: false"))
    {
        let api = api.name();
        ended.expect_code(0);
        assert_eq!(verdict.checks.len(), 3, "{api}");
        for sample in &run.samples {
            assert_eq!((sample.outcome, sample.first_token), (Outcome::Ok, None), "{api}");
            let tokens = if api == "triton" { 1 } else { 12 };
            assert!(sample.last_token.is_some() && sample.output_tokens().unwrap().0 == tokens, "{api}");
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
fn embeddings_have_no_tokens_of_their_own() {
    let place = Place::new();
    let sim = Sim::start(&place, "ttft: 10ms, tpot: 1ms");
    place.write(
        "gate.yaml",
        &format!(
            "version: 1\nname: embeddings\ntarget: {{url: '{}', api: openai-embeddings, model: m}}\nload: {{rps: 30, iterations: 20}}\nprompts: {{input_tokens: 50}}\nrequire: [e2e.p50 < 5s]\n",
            sim.url()
        ),
    );
    place.gate(&["check", "gate.yaml"]).expect_code(0);
    for sample in &place.run("embeddings").samples {
        assert_eq!((sample.outcome, sample.first_token), (Outcome::Ok, None));
        assert!(sample.usage.unwrap().input.is_some());
    }
}

/// The engine's chat stream, read by JSON pointers.
#[test]
fn a_dialect_of_ones_own_reads_by_pointers() {
    let place = Place::new();
    let sim = Sim::start(&place, "ttft: 10ms, tpot: 1ms");
    place.write(
        "gate.yaml",
        &format!(
            r#"version: 1
name: own
target:
  url: {}
  api: custom
  model: m
  custom:
    path: /v1/chat/completions
    body:
      model: "{{{{model}}}}"
      messages: "{{{{messages}}}}"
      max_tokens: "{{{{max_tokens}}}}"
      stream: true
      stream_options: {{include_usage: true}}
    text: /choices/0/delta/content
    usage: {{input: /usage/prompt_tokens, output: /usage/completion_tokens}}
    end: /usage
load: {{rps: 30, iterations: 20}}
prompts: {{input_tokens: 50, output_tokens: 12}}
require: [ttft.p50 < 5s, tpot.p50 < 5s]
"#,
            sim.url()
        ),
    );
    place.gate(&["check", "gate.yaml"]).expect_code(0);
    for sample in &place.run("own").samples {
        assert_eq!((sample.outcome, sample.content_events), (Outcome::Ok, 12));
        assert_eq!(sample.usage.unwrap().output, Some(12));
    }
}
