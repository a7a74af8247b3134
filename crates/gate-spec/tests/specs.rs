//! Specs from `fixtures/specs`: good ones with what they become, bad ones with every word they answer with.
//!
//! `UPDATE_FIXTURES=1` writes the expected texts anew: read the difference before you keep it.

#[cfg(test)]
mod support {
    use std::collections::BTreeMap;
    use std::path::{Path, PathBuf};

    use gate_model::{Diagnostic, Severity};
    use gate_spec::{Overlay, Resolved, resolve};

    pub(crate) fn folder(name: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/specs").join(name)
    }

    /// The environment every fixture sees.
    pub(crate) fn environment() -> BTreeMap<String, String> {
        let variables = [
            ("EMPTY", ""),
            ("NOT_A_NUMBER", "hunter2-from-env"),
            ("SIM_IN_ENV", "sim"),
            ("GATE_TARGET_IN_ENV", "http://127.0.0.1:9"),
            ("KEY_IN_ENV", "sk-from-the-environment"),
        ];
        variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
    }

    pub(crate) fn overlays(pairs: &[(&str, &str)]) -> Vec<Overlay> {
        let overlay = |(path, value): &(&str, &str)| Overlay {
            flag: "--set".to_owned(),
            path: (*path).to_owned(),
            value: (*value).to_owned(),
        };
        pairs.iter().map(overlay).collect()
    }

    pub(crate) fn good(name: &str, pairs: &[(&str, &str)]) -> Resolved {
        let text = std::fs::read_to_string(folder("good").join(name)).unwrap();
        match resolve(name, &text, &environment(), &overlays(pairs)) {
            Ok(resolved) => resolved,
            Err(diagnostics) => panic!("{name} is refused:\n{}", render(&diagnostics)),
        }
    }

    /// What a file holds that an answer has to be equal to, but for the blanks at its end.
    pub(crate) fn expected(path: &Path, actual: &str) -> String {
        if std::env::var_os("UPDATE_FIXTURES").is_some() {
            std::fs::write(path, format!("{}\n", actual.trim_end())).unwrap();
        }
        std::fs::read_to_string(path).unwrap_or_default()
    }

    pub(crate) fn render(diagnostics: &[Diagnostic]) -> String {
        diagnostics.iter().map(render_one).collect()
    }

    fn render_one(diagnostic: &Diagnostic) -> String {
        let Diagnostic { severity, place, message, snippet, hint, .. } = diagnostic;
        let severity = if *severity == Severity::Error { "error" } else { "warning" };
        let mut text = place.as_ref().map_or_else(String::new, |place| format!("{place}: "));
        text.push_str(&format!("{severity}: {message}\n"));
        if let Some(snippet) = snippet {
            let blanks = " ".repeat(snippet.column as usize - 1);
            text.push_str(&format!("  | {}\n  | {blanks}{}\n", snippet.text, "^".repeat(snippet.length as usize)));
        }
        if let Some(hint) = hint {
            text.push_str(&format!("  hint: {hint}\n"));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use gate_model::{
        Abort, Against, Api, Arrivals, BaselineFrom, BaselineSpec, BaselineStore, Bound, Budget, Cache, Check, Custom,
        CustomFraming, Decide, Delivery, Drift, Endpoint, EngineParams, Fault, Faults, GateSpec, Http, Importance,
        Iterations, JournalSpec, Latency, Length, Nanos, Op, Origin, Pace, Pattern, PerSecond, Place, Policy,
        PrefixCache, Prices, PromptFormat, PromptSpec, Quantity, ReadyPath, Relative, Roots, RunOrder, Scaling,
        ScriptedFault, Shape, SharedPrefix, Stage, Tls, Turns, Unit, Waiver, WarmingUp,
    };
    use gate_spec::{Overlay, Resolved, resolve};

    use super::support::*;

    #[test]
    fn every_bad_spec_says_what_is_expected() {
        let mut seen = 0;
        let mut wrong = String::new();
        for entry in std::fs::read_dir(folder("bad")).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|extension| extension != "yaml") {
                continue;
            }
            seen += 1;
            let name = path.file_name().unwrap().to_str().unwrap();
            let text = std::fs::read_to_string(&path).unwrap();
            let Err(diagnostics) = resolve(name, &text, &environment(), &[]) else { panic!("{name} is accepted") };
            let actual = render(&diagnostics);
            assert!(
                !diagnostics.is_empty() && diagnostics.iter().all(|diagnostic| diagnostic.hint.is_some()),
                "{actual}"
            );
            for secret in ["sk-literal-key", "passw0rd", "abcdef123", "hunter2"] {
                assert!(!actual.contains(secret), "{name} leaks {secret}:\n{actual}");
            }
            let expected = expected(&path.with_extension("expected"), &actual);
            if actual != expected {
                wrong.push_str(&format!("=== {name}\n{actual}"));
            }
        }
        assert!(seen >= 100, "only {seen} bad specs found");
        assert!(wrong.is_empty(), "these answers differ from their .expected files:\n{wrong}");
    }

    #[test]
    fn the_wall_is_shown_whole_and_in_order() {
        let text = std::fs::read_to_string(folder("bad").join("wall.yaml")).unwrap();
        let diagnostics = resolve("wall.yaml", &text, &environment(), &[]).unwrap_err();
        let places: Vec<_> = diagnostics.iter().map(|diagnostic| diagnostic.place.clone().unwrap()).collect();
        assert!(places.len() >= 20, "{}", places.len());
        assert!(places.is_sorted());
    }

    fn length(mean: f64, stddev: f64, min: u32, max: u32, shape: Shape) -> Length {
        Length { mean, stddev, min, max, shape }
    }

    fn refused(text: &str, pairs: &[(&str, &str)]) -> String {
        render(&resolve("gate.yaml", text, &environment(), &overlays(pairs)).unwrap_err())
    }

    const SIM: &str = "version: 1\nname: x\ntarget: {sim: {ttft: 100ms}}\nrequire: [ttft.p95 < 800ms]\n";

    #[test]
    fn defaults_are_those_of_the_product_page() {
        let resolved = good("minimal.yaml", &[]);
        let spec = &resolved.spec;
        assert_eq!((spec.version, spec.name.as_str(), spec.file.as_str()), (1, "minimal", "minimal.yaml"));
        assert_eq!(spec.target.endpoint, Endpoint::Url("http://127.0.0.1:8000/v1".to_owned()));
        assert_eq!(spec.target.api.name(), "openai-chat");
        assert_eq!((spec.target.ready.within, &spec.target.ready.path), (Nanos::from_secs(10), &ReadyPath::Auto));
        assert_eq!(spec.load.pace, Pace::Open { rate: PerSecond(2.0), cap: None });
        assert_eq!(spec.load.iterations, Iterations::Range { first: 30, last: 50, extend: Some(100) });
        assert_eq!((spec.load.warmup, spec.load.arrivals, spec.load.seed), (5, Arrivals::Poisson, 0));
        assert_eq!(spec.prompts.input_tokens, length(550.0, 150.0, 50, 2000, Shape::Normal));
        assert_eq!(spec.prompts.output_tokens, length(150.0, 20.0, 10, 500, Shape::Normal));
        assert!(!spec.slo.is_given());
        let timeouts = spec.timeouts;
        let seconds = [timeouts.connect, timeouts.first_token, timeouts.stall, timeouts.total];
        assert_eq!(seconds, [5, 60, 30, 300].map(Nanos::from_secs));
        assert_eq!(timeouts.run, None);
        assert_eq!(spec.outcomes.inconclusive, Policy::Pass);
        assert_eq!(spec.outcomes.no_baseline, Policy::Pass);
        assert_eq!(spec.outcomes.invalid, Policy::Fail);
        let checks: Vec<_> = spec.checks.iter().map(ToString::to_string).collect();
        assert_eq!(checks, ["ttft.p95 < 800ms", "errors.rate < 5%"]);
        assert!(matches!(&spec.checks[0].origin, Origin::Declared(place) if place.to_string() == "minimal.yaml:5:5"));
        assert_eq!(spec.checks[1].origin, Origin::Implied);
        assert!(resolved.warnings.is_empty() && resolved.secrets.is_empty() && spec.overrides.is_empty());
    }

    #[test]
    fn the_field_table_has_the_defaults_of_a_new_gate() {
        let text = std::fs::read_to_string(folder("good").join("minimal.yaml")).unwrap();
        let file = "gates/minimal.yaml";
        let check = |metric: &str, op, bound: &str, origin| Check {
            scenario: 0,
            metric: metric.parse().unwrap(),
            op,
            bound: Bound::Absolute(bound.parse().unwrap()),
            bound_text: bound.to_owned(),
            importance: Importance::Required,
            origin,
            decide: None,
            confidence: Check::CONFIDENCE,
            waive: None,
        };
        let declared = Origin::Declared(Place { file: file.to_owned(), line: 5, column: 5 });
        let expected = GateSpec {
            checks: vec![
                check("ttft.p95", Op::Less, "800ms", declared),
                check("errors.rate", Op::Less, "5%", Origin::Implied),
            ],
            ..GateSpec::new("minimal", Endpoint::Url("http://127.0.0.1:8000/v1".to_owned()))
        };
        assert_eq!(resolve(file, &text, &environment(), &[]).unwrap().spec, expected);
    }

    #[test]
    fn a_full_spec_is_read_to_the_letter() {
        let resolved = good("full.yaml", &[]);
        let actual = serde_json::to_string_pretty(&resolved.spec).unwrap();
        let expected = expected(&folder("good").join("full.json"), &actual);
        assert!(actual.trim() == expected.trim(), "differs from full.json:\n{actual}");
        assert!(resolved.warnings.is_empty(), "{}", render(&resolved.warnings));
        let importance =
            |importance| resolved.spec.checks.iter().filter(|check| check.importance == importance).count();
        assert_eq!((importance(Importance::Required), importance(Importance::Preferred)), (15, 5));
        // Headers that are named like no credential and are not from the environment blank out no common word.
        assert!(resolved.secrets.is_empty());
    }

    #[test]
    fn a_simulated_engine_is_read_to_the_letter() {
        let spec = good("sim.yaml", &[]).spec;
        assert_eq!(
            spec.target.endpoint,
            Endpoint::Sim(Box::new(EngineParams {
                ttft: Latency::constant(Nanos::from_millis(100)),
                tpot: Latency { mean: Nanos::from_millis(10), stddev: Nanos::from_millis(1), shape: Shape::Normal },
                tokens_per_chunk: 4,
                role_chunk: None,
                faults: Faults {
                    http_500: 0.3,
                    stall: 0.005,
                    http_429: 0.01,
                    empty: 0.02,
                    html_200: 0.03,
                    slow_headers: 0.04,
                    ..Faults::default()
                },
                script: vec![
                    ScriptedFault { from: 26, to: 26, fault: Fault::Http500 },
                    ScriptedFault { from: 20, to: 40, fault: Fault::Stall },
                    ScriptedFault { from: 7, to: 7, fault: Fault::SlowHeaders },
                ],
                slow_headers: Nanos::from_millis(300),
                warming_up: Some(WarmingUp { requests: 20, slowdown: 2.5 }),
                buffer_bytes: 16 * 1024,
                dies_after: Some(26),
                ready_after: Nanos::from_secs(5),
                seed: 3,
                ..EngineParams::default()
            }))
        );
        assert_eq!(spec.load.iterations, Iterations::Range { first: 30, last: 30, extend: None });
    }

    #[test]
    fn a_hosted_gate_is_read_to_the_letter() {
        let resolved = good("hosted.yaml", &[]);
        let GateSpec { target, prompts, checks, .. } = &resolved.spec;
        assert_eq!((target.api, target.delivery), (Api::Anthropic, Delivery::Whole));
        let tls = Tls { ca: Some("certs/ours.pem".to_owned()), roots: Roots::System, ..Tls::default() };
        assert_eq!(target.tls, tls);
        assert_eq!((prompts.cache, prompts.file.as_deref()), (Cache::Warm, Some("prompts/support.jsonl")));
        assert_eq!(prompts.system.as_deref(), Some("You answer in one sentence.\nYou never guess."));
        let decided: Vec<_> = checks.iter().map(|check| check.decide).collect();
        assert_eq!(decided, [Some(Decide::Point), None, None, None]);
        let waiver = Waiver { until: "2028-02-29".to_owned(), reason: "issue 412".to_owned() };
        assert_eq!(checks[1].waive, Some(waiver));
        assert!(resolved.warnings.is_empty());
    }

    /// Checks of one scenario, as they read.
    fn checks_in(spec: &GateSpec, scenario: u16) -> Vec<String> {
        spec.checks.iter().filter(|check| check.scenario == scenario).map(Check::to_string).collect()
    }

    #[test]
    fn a_nightly_gate_of_all_patterns_is_read_to_the_letter() {
        let resolved = good("patterns.yaml", &[]);
        assert_eq!(render(&resolved.warnings), "");
        let spec = resolved.spec;
        assert_eq!(spec.order, RunOrder::InTurn);
        assert_eq!(spec.scenario_names(), ["ramp", "spike", "soak", "steady", "warm"]);
        let minutes = |minutes: i64| Nanos::from_secs(60 * minutes);
        let open = |rate: f64| Pace::Open { rate: PerSecond(rate), cap: None };
        let ramp = Pattern::Ramp { from: PerSecond(1.0), to: PerSecond(24.0), over: minutes(10) };
        let spike = Pattern::Spike { times: 5.0, hold: minutes(2), before: minutes(2), after: minutes(5) };
        let all = [
            (ramp, Iterations::For(minutes(10)), open(24.0)),
            (spike, Iterations::For(minutes(9)), open(4.0)),
            (Pattern::Soak, Iterations::For(minutes(360)), open(2.0)),
            (Pattern::Steady, Iterations::Range { first: 40, last: 60, extend: Some(120) }, open(4.0)),
            (Pattern::Steady, Iterations::For(minutes(20)), open(4.0)),
        ];
        for (scenario, (pattern, iterations, pace)) in spec.scenarios.iter().zip(all) {
            let name = &scenario.name;
            assert_eq!((&scenario.load.pattern, scenario.load.iterations), (&pattern, iterations), "{name}");
            assert_eq!((scenario.load.pace, scenario.load.warmup), (pace, 3), "{name}");
            let arrivals = if name == "soak" { Arrivals::Constant } else { Arrivals::Gamma(0.5) };
            assert_eq!(scenario.load.arrivals, arrivals, "{name}");
            assert_eq!(scenario.prompts.shared_prefix, Some(SharedPrefix { tokens: 300, groups: 4 }), "{name}");
            assert_eq!(scenario.prompts.input_tokens, length(600.0, 50.0, 400, 800, Shape::Normal), "{name}");
            assert_eq!(scenario.slo.ttft, Some(Nanos::from_millis(800)), "{name}");
        }
        let PromptSpec { turns, think, cache, .. } = &spec.scenarios[4].prompts;
        assert_eq!((*turns, *cache), (Turns { min: 2, max: 4 }, Cache::Natural));
        let [mean, stddev] = [3, 1].map(Nanos::from_secs);
        assert_eq!(*think, Latency { mean, stddev, shape: Shape::Normal });
        let kept = "server.kv_cache_usage.max < 85%";
        let implied = "errors.rate < 5%";
        assert_eq!(checks_in(&spec, 0), ["ttft.p50 < 1s", kept, "knee.rate >= 12/s", implied]);
        let own = ["recovery < 1m", "spike.errors.rate < 10%", "spike.goodput >= 2/s", "ttft.p50 < 2s"];
        let spiked = [&[kept][..], &own, &[implied, "spike.ttft.p95 < 3s"]].concat();
        assert_eq!(checks_in(&spec, 1), spiked, "its own check of ttft.p50 replaces the gate's");
        let soaked =
            ["drift.tpot < 1%/h", "drift.server.gpu_memory < 2%/h", implied, "cost < $90", "tokens.spent < 9000000"];
        assert_eq!(checks_in(&spec, 2), [&["ttft.p50 < 1s", kept][..], &soaked].concat());
        assert_eq!(checks_in(&spec, 3), [kept, "ttft.p50 < 150% of warm", implied]);
        let Endpoint::Sim(engine) = &spec.target.endpoint else { panic!("{:?}", spec.target.endpoint) };
        let scaling = Scaling { max_slots: 64, step: 8, queue: 10, cold_start: Nanos::from_secs(30) };
        assert_eq!((engine.slots, engine.prefill, engine.scaling), (Some(16), Some(2000.0), Some(scaling)));
        assert_eq!(engine.prefix_cache, Some(PrefixCache { blocks: 4096, block_tokens: 32 }));
        assert_eq!(engine.drift, Drift { ttft: 0.0, tpot: 0.02, memory: 0.05 });
        assert_eq!((engine.retry_after, engine.faults.http_401), (Some(Nanos::from_secs(60)), 0.01));
        assert_eq!(spec.target.metrics.as_deref(), Some("/metrics"));
        let budget = Budget {
            requests: Some(200_000),
            input_tokens: Some(5_000_000_000),
            output_tokens: Some(90_000_000),
            cost: Some(400.0),
        };
        assert_eq!(spec.budget, budget);
        assert_eq!(spec.prices, Some(Prices { input: 2.5, cached_input: Some(1.25), output: 10.0 }));
        assert_eq!(spec.abort, Abort { connection_failures: 9, lost: false });
        assert_eq!(spec.journal, JournalSpec { tokens: 50, keep_text: true });
    }

    #[test]
    fn scenarios_together_share_the_load_and_keep_the_rest_apart() {
        let resolved = good("together.yaml", &[]);
        let spec = &resolved.spec;
        assert_eq!((spec.order, spec.sections()), (RunOrder::Together, vec![vec![0, 1]]));
        let [chat, batch] = spec.scenarios.as_slice() else { panic!("{:?}", spec.scenarios) };
        assert_eq!((&chat.load, &batch.load), (&spec.load, &spec.load));
        assert_eq!(spec.load.pace, Pace::Open { rate: PerSecond(4.0), cap: Some(64) });
        let stage = |from, to, minutes: i64| Stage {
            from: PerSecond(from),
            to: PerSecond(to),
            lasts: Nanos::from_secs(60 * minutes),
        };
        assert_eq!(spec.load.pattern, Pattern::Stages(vec![stage(1.0, 1.0, 2), stage(1.0, 4.0, 3)]));
        assert_eq!((chat.weight, batch.weight), (3.0, 1.0));
        assert_eq!((chat.model.as_deref(), batch.model.as_deref()), (None, Some("large")));
        assert_eq!(serde_json::to_string(&batch.extra_body).unwrap(), r#"{"priority":1}"#);
        assert_eq!(chat.prompts.input_tokens.mean, 300.0);
        assert_eq!(chat.prompts.images.len(), 2);
        assert_eq!(batch.prompts.output_empirical.as_deref(), Some("lengths/out.txt"));
        assert_eq!(
            (batch.prompts.file.as_deref(), batch.prompts.format),
            (Some("prompts.json"), PromptFormat::Sharegpt)
        );
        assert_eq!(checks_in(spec, 0), ["ttft.p95 < 2s", "attainment >= 95%", "errors.rate < 5%"]);
        assert_eq!(checks_in(spec, 1), ["ttft.p95 < 9s", "errors.rate < 5%", "e2e.p95 < 60s"]);
        assert_eq!(spec.target.metrics.as_deref(), Some("https://h/metrics?token=metrics-secret"));
        for secret in ["metrics-secret", "image-secret"] {
            assert!(resolved.secrets.iter().any(|kept| kept.expose() == secret), "{secret} is in custody");
        }
    }

    #[test]
    fn a_trace_goes_on_to_its_end_or_for_so_many_rows() {
        let load = |keys: &str| {
            let text =
                format!("version: 1\nname: x\ntarget: {{url: sim}}\nload: {{{keys}}}\nrequire: [e2e.p50 < 1s]\n");
            resolve("x", &text, &environment(), &[]).unwrap_or_else(|found| panic!("{}", render(&found))).spec.load
        };
        let trace = Pattern::Trace("azure.csv".to_owned());
        let whole = load("trace: azure.csv");
        assert_eq!((whole.pattern, whole.iterations), (trace.clone(), Iterations::For(Nanos::from_secs(86_400))));
        let some = load("trace: azure.csv, iterations: 300");
        assert_eq!((some.pattern, some.iterations), (trace, Iterations::Fixed(300)));
        assert_eq!(load("pattern: steady").iterations, Iterations::For(Nanos::from_secs(1800)));
        assert_eq!(load("pattern: soak").iterations, Iterations::For(Nanos::from_secs(4 * 3600)));
        assert_eq!(load("pattern: {spike: {}}"), load("pattern: spike"));
    }

    #[test]
    fn flags_reach_into_patterns_and_scenarios() {
        let pairs = [
            ("scenarios.spike.load.rps", "9"),
            ("scenarios.ramp.load.pattern.ramp.to", "30"),
            ("scenarios.spike.load.pattern.spike.hold", "1m"),
            ("scenarios.soak.load.pattern.steady", "15m"),
            ("scenarios.warm.target.extra_body", "{token: abcdef123}"),
        ];
        let spec = good("patterns.yaml", &pairs).spec;
        assert_eq!(spec.scenarios[1].load.pace.rate(), Some(PerSecond(9.0)));
        let Pattern::Ramp { from, to, .. } = spec.scenarios[0].load.pattern else { panic!() };
        assert_eq!((from, to), (PerSecond(1.0), PerSecond(30.0)));
        let Pattern::Spike { hold, after, .. } = spec.scenarios[1].load.pattern else { panic!() };
        assert_eq!((hold, after), (Nanos::from_secs(60), Nanos::from_secs(300)), "the word's other defaults stay");
        let soak = &spec.scenarios[2].load;
        assert_eq!((&soak.pattern, soak.iterations), (&Pattern::Steady, Iterations::For(Nanos::from_secs(900))));
        assert_eq!(spec.overrides[4].value, "***");
        let load = good("minimal.yaml", &[("load.pattern.ramp.to", "9")]).spec.load;
        assert_eq!(load.pattern.name(), "ramp");
        let text = "version: 1\nname: x\ntarget: {url: sim}\nscenarios: {chat: {}}\nrequire: [e2e.p50 < 1s]\n";
        let answer = refused(text, &[("scenarios.chta.load.rps", "5")]);
        assert!(answer.contains("there is no scenario `chta`") && answer.contains("did you mean `chat`?"), "{answer}");
    }

    #[test]
    fn a_gate_has_at_most_64_scenarios() {
        let text = |count: usize| {
            let names: Vec<_> = (0..count).map(|at| format!("s{at}: {{}}")).collect();
            let head = "version: 1\nname: x\ntarget: {url: sim}\nrequire: [e2e.p50 < 1s]\n";
            format!("{head}scenarios: {{{}}}\n", names.join(", "))
        };
        let most = resolve("x", &text(64), &environment(), &[]).unwrap().spec;
        assert_eq!((most.scenarios.len(), most.checks.len()), (64, 128));
        assert!(refused(&text(65), &[]).contains("`scenarios` has more than 64"));
    }

    #[test]
    fn a_pattern_too_short_for_its_metric_and_a_slip_in_a_name_are_warned_of() {
        let warnings = render(&good("warned-patterns.yaml", &[]).warnings);
        let expected = expected(&folder("good").join("warned-patterns.expected"), &warnings);
        assert_eq!(warnings.trim(), expected.trim());
    }

    #[test]
    fn every_dialect_is_read() {
        let custom = "{path: /x, body: {q: '{{prompt}}'}, text: /t}";
        for api in Api::ALL {
            let mut pairs = vec![("target.api", api.name()), ("target.model", "small"), ("target.key", "sk-typed")];
            match api {
                Api::Custom => pairs.push(("target.custom", custom)),
                Api::OpenaiEmbeddings => pairs.push(("require", "[e2e.p95 < 800ms]")),
                _ => {}
            }
            let target = good("minimal.yaml", &pairs).spec.target;
            assert_eq!((target.api, target.aws), (api, None));
        }
    }

    #[test]
    fn a_whole_route_needs_no_model() {
        for (api, url) in [
            ("gemini", "https://h/v1beta/models/m:streamGenerateContent?alt=sse"),
            ("gemini", "https://h/v1/projects/p/locations/l/endpoints/e"),
            ("bedrock-converse", "https://h/model/m/converse-stream"),
            ("bedrock-invoke", "https://h/model/m/invoke/"),
            ("triton", "unix:/run/s.sock:/v2/models/m/generate_stream"),
        ] {
            let pairs = [("target.url", url), ("target.api", api), ("target.key", "sk-typed")];
            assert_eq!(good("minimal.yaml", &pairs).spec.target.model, None, "{url}");
        }
    }

    #[test]
    fn a_dialect_of_ones_own_is_read_to_the_letter() {
        let spec = good("custom.yaml", &[]).spec;
        let serde_json::Value::Object(body) = serde_json::json!({
            "inputs": "<user> {{prompt}}",
            "model": "{{model}}",
            "options": {"limit": "{{max_tokens}}", "history": ["{{messages}}"], "depth": 3},
        }) else {
            panic!()
        };
        let expected = Custom {
            path: "/generate".to_owned(),
            body,
            text: "/outputs/0/text".to_owned(),
            input_tokens: Some("/usage/in".to_owned()),
            output_tokens: Some("/usage/out".to_owned()),
            end: Some("/done".to_owned()),
            framing: CustomFraming::Ndjson,
        };
        assert_eq!(spec.target.custom, Some(expected));
        assert_eq!(spec.target.endpoint, Endpoint::Url("unix:/run/server.sock:/api".to_owned()));
        assert_eq!((spec.load.pace, spec.load.http), (Pace::Closed { concurrency: 4 }, Http::One));
        let short = good("custom.yaml", &[("target.custom.usage", "/n"), ("target.custom.framing", "sse")]).spec;
        let short = short.target.custom.unwrap();
        assert_eq!((short.input_tokens, short.output_tokens), (None, Some("/n".to_owned())));
        assert_eq!(short.framing, CustomFraming::Sse);
        let pairs = [("target.custom.usage", "/n"), ("target.custom.usage.input", "/i")];
        let both = good("custom.yaml", &pairs).spec.target.custom.unwrap();
        assert_eq!((both.input_tokens.as_deref(), both.output_tokens.as_deref()), (Some("/i"), Some("/n")));
        let spec = std::fs::read_to_string(folder("good").join("custom.yaml")).unwrap();
        for path in ["target.custom.text", "target.custom.end", "target.custom.usage"] {
            let shown = refused(&spec, &[(path, "")]);
            assert!(
                shown.contains("must be a JSON pointer, but is empty") && shown.contains("leave the key out"),
                "{shown}"
            );
        }
    }

    #[test]
    fn embeddings_are_whole_answers() {
        let spec = good("embeddings.yaml", &[("target.stream", "false")]).spec;
        assert_eq!((spec.target.api, spec.target.delivery), (Api::OpenaiEmbeddings, Delivery::Whole));
        assert_eq!(good("embeddings.yaml", &[]).spec.target.delivery, Delivery::Whole);
    }

    #[test]
    fn rate_and_concurrency_decide_the_mode() {
        let open = |rate, cap| Pace::Open { rate: PerSecond(rate), cap };
        for (load, pace) in [
            ("{}", open(2.0, None)),
            ("{rps: 5}", open(5.0, None)),
            ("{concurrency: 8}", Pace::Closed { concurrency: 8 }),
            ("{rps: 5, concurrency: 8, arrivals: constant}", open(5.0, Some(8))),
        ] {
            assert_eq!(good("minimal.yaml", &[("load", load)]).spec.load.pace, pace, "{load}");
        }
    }

    #[test]
    fn bedrock_takes_its_credentials_from_the_environment() {
        const ID: (&str, &str) = ("AWS_ACCESS_KEY_ID", "AKIA-from-env");
        const SECRET: (&str, &str) = ("AWS_SECRET_ACCESS_KEY", "aws-secret-from-env\n");
        const TOKEN: (&str, &str) = ("AWS_SESSION_TOKEN", "aws-session-from-env");
        const BEARER: (&str, &str) = ("AWS_BEARER_TOKEN_BEDROCK", "bearer-from-env");
        const HOST: &str = "url: https://bedrock-runtime.eu-west-1.amazonaws.com";
        let resolved = |target: &str, variables: &[(&str, &str)]| {
            let text = format!(
                "version: 1\nname: x\nrequire: [ttft.p95 < 1s]\ntarget: {{api: bedrock-converse, model: m, {target}}}\n"
            );
            let environment = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            resolve("gate.yaml", &text, &environment, &[])
        };
        let shown = |target: &str, variables: &[(&str, &str)]| {
            let Resolved { spec, secrets, .. } = resolved(target, variables).unwrap();
            let expose = |secret: gate_model::Secret| secret.expose().to_owned();
            let aws = spec.target.aws.map(|aws| {
                let secrets = [Some(aws.access_key_id), Some(aws.secret_access_key), aws.session_token];
                (secrets.map(|secret| secret.map_or_else(String::new, expose)).join(" "), aws.region)
            });
            let custody: Vec<_> = secrets.into_iter().map(expose).collect();
            (spec.target.key.map(expose), aws, custody)
        };
        let aws = |secrets: &str, region: &str| Some((secrets.to_owned(), region.to_owned()));
        let whole = "AKIA-from-env aws-secret-from-env aws-session-from-env";

        let (key, signed, custody) = shown(HOST, &[ID, SECRET, TOKEN, ("AWS_REGION", "us-east-1")]);
        assert_eq!((key, signed), (None, aws(whole, "eu-west-1")), "the host's region is the only one it takes");
        assert_eq!(custody.join(" "), whole);
        for region in ["AWS_REGION", "AWS_DEFAULT_REGION"] {
            let (_, signed, _) = shown("url: http://127.0.0.1:1", &[ID, SECRET, (region, "us-east-1")]);
            assert_eq!(signed, aws("AKIA-from-env aws-secret-from-env ", "us-east-1"));
        }
        let (key, signed, custody) = shown(HOST, &[ID, SECRET, BEARER]);
        assert_eq!((key.as_deref(), signed, custody.join(" ")), (Some(BEARER.1), None, BEARER.1.to_owned()));
        let (key, signed, _) = shown(&format!("{HOST}, key: sk-own-key"), &[ID, SECRET, BEARER]);
        assert_eq!((key.as_deref(), signed), (Some("sk-own-key"), None), "a key of the spec's own comes first");
        for target in ["url: sim", "url: http://h, headers: {authorization: Bearer own}"] {
            let (key, signed, _) = shown(target, &[ID, SECRET, BEARER]);
            assert_eq!((key, signed), (None, None), "{target} needs none");
        }

        for (target, variables, expected) in [
            (HOST, &[ID, ("AWS_SECRET_ACCESS_KEY", " ")][..], "`AWS_SECRET_ACCESS_KEY` is not set\n"),
            ("url: http://h", &[ID, SECRET], "`AWS_REGION` is not set\n"),
            ("url: http://h", &[ID], "`AWS_SECRET_ACCESS_KEY` and `AWS_REGION` are not set\n"),
            (
                HOST,
                &[ID, ("AWS_SECRET_ACCESS_KEY", "hunter2\u{7}")],
                "holds a line break or another control character\n",
            ),
        ] {
            let refused = render(&resolved(target, variables).unwrap_err());
            assert!(refused.contains(expected) && refused.matches("error: ").count() == 1, "{refused}");
            assert!(!refused.contains("hunter2") && !refused.contains("set the secret again"), "{refused}");
            assert!(refused.contains("  hint: "), "{refused}");
        }
    }

    #[test]
    fn the_word_sim_is_the_engine_with_its_defaults() {
        let resolved = good("sim-word.yaml", &[]);
        assert_eq!(resolved.spec.target.endpoint, Endpoint::Sim(Box::default()));
        assert_eq!(resolved.spec.load.iterations, Iterations::Fixed(10));
        let empty = good("sim-word.yaml", &[("target.sim", "{}")]).spec;
        assert_eq!(
            empty.target.endpoint, resolved.spec.target.endpoint,
            "the field table has the engine's own defaults"
        );
    }

    #[test]
    fn aliases_are_copies() {
        let spec = good("aliases.yaml", &[]).spec;
        assert_eq!(spec.prompts.input_tokens, spec.prompts.output_tokens);
        assert_eq!(spec.prompts.input_tokens, length(100.0, 10.0, 50, 150, Shape::Normal));
    }

    #[test]
    fn what_is_doubtful_is_warned_about() {
        let warnings = render(&good("warned.yaml", &[]).warnings);
        let expected = expected(&folder("good").join("warned.expected"), &warnings);
        assert!(warnings == expected, "differs from warned.expected:\n{warnings}");
    }

    fn checks_of(spec: &GateSpec) -> Vec<String> {
        spec.checks.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn relative_checks_are_read_to_the_letter() {
        let resolved = good("relative.yaml", &[]);
        assert!(resolved.warnings.is_empty(), "{}", render(&resolved.warnings));
        let spec = resolved.spec;
        assert_eq!(
            checks_of(&spec),
            [
                "ttft.p50 < baseline + 15%",
                "ttft.p95 < baseline + 25% or 20ms",
                "e2e.p50 < baseline + 10% or 1.5s",
                "tpot.p50 < reference + 5%",
                "ttft.p95 < reference + 30%",
                "tpot.mean <= reference",
                "errors.rate <= baseline + 2pp",
                "errors.rate < 10%",
                "attainment >= baseline - 2pp",
                "throughput.requests >= baseline - 10%",
                "throughput.requests >= reference - 10%",
                "e2e.p90 <= baseline - 10%",
                "output_tokens.mean >= reference - 20",
            ]
        );
        let bound = |at: usize| spec.checks[at].bound.relative().unwrap();
        let millis = |millis: f64| Some(Quantity { value: millis * 1e6, unit: Unit::Time });
        assert_eq!(bound(1), Relative { to: Against::Baseline, change: Some(0.25), step: millis(20.0) });
        assert_eq!(bound(2), Relative { to: Against::Baseline, change: Some(0.1), step: millis(1500.0) });
        assert_eq!(bound(5), Relative { to: Against::Reference, change: None, step: None });
        let points = Some(Quantity::share(-0.02));
        assert_eq!(bound(8), Relative { to: Against::Baseline, change: None, step: points });
        assert_eq!(bound(11).change, Some(-0.1));
        assert_eq!((spec.checks[4].confidence, spec.checks[4].waive.is_some()), (0.99, true));
        assert!(spec.needs_baseline() && spec.arms() == 2);
    }

    #[test]
    fn a_reference_takes_from_the_target_what_it_leaves_out() {
        let resolved = good("reference.yaml", &[]);
        assert!(resolved.warnings.is_empty(), "{}", render(&resolved.warnings));
        let GateSpec { target, reference, .. } = resolved.spec;
        let reference = reference.unwrap();
        let expected = gate_model::Target {
            endpoint: Endpoint::Url("https://llm.example.com:8443/v1".to_owned()),
            model: Some("old".to_owned()),
            ready: gate_model::Ready { within: Nanos::from_secs(30), path: ReadyPath::Auto },
            ..target
        };
        assert_eq!(reference, expected, "another port is the same host, so that its key is the target's too");
    }

    #[test]
    fn no_credential_goes_to_another_host_unasked() {
        let text = |reference: &str| {
            format!(
                "version: 1\nname: x\nrequire: [tpot.p50 < reference + 5%]\ntarget:\n  url: https://new.example.com/v1\n  \
                 key: sk-one\n  headers: {{X-Auth: sk-two}}\n  extra_body: {{temperature: 0, access_token: sk-three}}\n  \
                 tls: {{ca: ca.pem}}\nreference: {{{reference}}}\n"
            )
        };
        let sent = |reference: &str| {
            let resolved = resolve("gate.yaml", &text(reference), &environment(), &[]).unwrap();
            let target = resolved.spec.reference.unwrap();
            let key = target.key.map_or(0, |key| key.expose().len());
            let warnings: Vec<_> = resolved.warnings.into_iter().map(|warning| warning.message).collect();
            ((key, target.headers.len(), target.extra_body.len(), target.tls.ca.is_some()), warnings)
        };
        for url in ["https://old.example.com/v1", "http://new.example.com/v1", "https://new.example.com.evil.org"] {
            let (credentials, warnings) = sent(&format!("url: '{url}'"));
            assert_eq!(credentials, (0, 0, 0, url.starts_with("https")), "{url}");
            let withheld = |key: &str| format!("`target.{key}` is not sent to the reference, which is another host");
            assert_eq!(warnings, ["key", "headers", "extra_body"].map(withheld), "{url}");
        }
        for reference in ["url: 'https://new.example.com:1/v2'", "url: 'https://NEW.example.com/?x=1'"] {
            assert_eq!(sent(reference), ((6, 1, 2, true), vec![]), "{reference}");
        }
        let own = "url: 'https://old.example.com', key: sk-of-its-own, headers: {}, extra_body: {temperature: 0}";
        assert_eq!(sent(own), ((13, 0, 1, true), vec![]));
        assert_eq!(sent("url: sim"), ((0, 0, 0, false), vec![]));
        let resolved = resolve("gate.yaml", &text(own), &environment(), &[]).unwrap();
        assert!(resolved.secrets.iter().any(|secret| secret.expose() == "sk-of-its-own"));
    }

    #[test]
    fn another_socket_is_another_server() {
        let key = |reference: &str| {
            let text = format!(
                "version: 1\nname: x\nrequire: [tpot.p50 < reference + 5%]\n\
                 target: {{url: 'unix:/run/a.sock:/v1', key: sk-one}}\nreference: {{url: '{reference}'}}\n"
            );
            resolve("gate.yaml", &text, &environment(), &[]).unwrap().spec.reference.unwrap().key
        };
        assert!(key("unix:/run/a.sock:/v2").is_some());
        assert!(key("unix:/run/b.sock:/v1").is_none());
    }

    #[test]
    fn a_reference_on_bedrock_is_signed_for_where_it_may_be() {
        let aws = [
            ("AWS_ACCESS_KEY_ID", "AKIA-from-env"),
            ("AWS_SECRET_ACCESS_KEY", "aws-secret"),
            ("AWS_REGION", "us-east-1"),
        ];
        let environment = aws.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let region = |reference: &str| {
            let text = format!(
                "version: 1\nname: x\nrequire: [tpot.p50 < reference + 5%]\n\
                 target: {{url: 'http://h', api: bedrock-converse, model: m}}\nreference: {{{reference}}}\n"
            );
            let resolved = resolve("gate.yaml", &text, &environment, &[]);
            resolved.map(|resolved| resolved.spec.reference.unwrap().aws.map(|aws| aws.region))
        };
        for (reference, signed) in [
            ("url: 'http://h:1'", Some("us-east-1")),
            ("url: 'https://bedrock-runtime.eu-west-1.amazonaws.com'", Some("eu-west-1")),
            ("url: 'http://other', api: bedrock-converse", Some("us-east-1")),
            ("url: 'http://other', key: sk-own", None),
        ] {
            assert_eq!(region(reference).unwrap().as_deref(), signed, "{reference}");
        }
        let shown = render(&region("url: 'http://other'").unwrap_err());
        assert!(shown.contains("credentials of AWS go to no other host unasked"), "{shown}");
    }

    #[test]
    fn a_dialects_own_keys_stay_with_it() {
        let text = "version: 1\nname: x\nrequire: [tpot.p50 < reference + 5%]\ntarget: {url: 'http://h', model: m, \
                    extra_body: {top_k: 1}, max_tokens_field: max_completion_tokens}\n\
                    reference: {url: 'http://h:1', api: ollama}\n";
        let reference = resolve("gate.yaml", text, &environment(), &[]).unwrap().spec.reference.unwrap();
        assert_eq!((reference.api, reference.model.as_deref()), (Api::Ollama, Some("m")));
        assert!(reference.extra_body.is_empty());
        assert_eq!(reference.max_tokens_field, gate_model::MaxTokensField::MaxTokens);
        let own = "{custom: {path: /h, body: {q: '{{prompt}}'}, text: /u}}";
        for (reference, path) in [("{}", "/generate"), (own, "/h")] {
            let pairs = [("reference", reference), ("reference.url", "http://127.0.0.1:1")];
            let reference = good("custom.yaml", &pairs).spec.reference.unwrap();
            assert_eq!(reference.custom.unwrap().path, path);
        }
    }

    #[test]
    fn a_reference_comes_by_flag() {
        let flag = |value: &str| Overlay {
            flag: "--reference".to_owned(),
            path: "reference.url".to_owned(),
            value: value.to_owned(),
        };
        let text = "version: 1\nname: x\ntarget: {sim: {seed: 1}}\nrequire: [tpot.p50 < reference + 5%]\n";
        let read = |text: &str, value: &str| resolve("gate.yaml", text, &environment(), &[flag(value)]);
        let url = Endpoint::Url("http://127.0.0.1:9".to_owned());
        let resolved = read(text, "http://127.0.0.1:9").unwrap();
        assert_eq!(resolved.spec.reference.unwrap().endpoint, url);
        assert_eq!(resolved.spec.overrides[0].flag, "--reference");
        let with_sim = text.replace("require", "reference: {sim: {}}\nrequire");
        assert_eq!(read(&with_sim, "http://127.0.0.1:9").unwrap().spec.reference.unwrap().endpoint, url);
        assert_eq!(read(text, "sim").unwrap().spec.reference.unwrap().endpoint, Endpoint::Sim(Box::default()));
        let shown = render(&read(text, "127.0.0.1").unwrap_err());
        assert!(shown.contains("error: `--reference`: `reference.url` has no scheme"), "{shown}");
        let hidden = read(text, "http://h/?api_key=abcdef123").unwrap();
        assert_eq!(hidden.spec.overrides[0].value, "***");
        let spec =
            good("reference.yaml", &[("reference.key", "X"), ("reference.headers.A", "X"), ("reference.model", "m")]);
        let values: Vec<_> = spec.spec.overrides.iter().map(|one| one.value.as_str()).collect();
        assert_eq!(values, ["***", "***", "m"]);
    }

    #[test]
    fn errors_bounded_by_what_they_were_alone_are_warned_about() {
        let warnings = |checks: &str| good("minimal.yaml", &[("require", checks)]).warnings;
        let shown = render(&warnings("[errors.rate <= baseline + 2pp]"));
        assert!(
            shown.contains("`errors.rate` has no fixed bound: ") && shown.contains("such as `errors.rate < 5%`"),
            "{shown}"
        );
        assert!(warnings("[errors.rate <= baseline + 2pp, errors.rate < 10%]").is_empty());
        assert!(warnings("[errors.5xx <= baseline + 2pp]").is_empty(), "the implied check stays");
    }

    #[test]
    fn what_is_the_client_s_own_is_not_proven() {
        let warnings = |check: &str| render(&good("minimal.yaml", &[("require", check)]).warnings);
        let shown = warnings("[send_lag.p95 < baseline + 10%]");
        assert!(shown.contains("`send_lag.p95` is the client's own") && shown.contains("`decide: point`"), "{shown}");
        assert_eq!(warnings("[{check: send_lag.p95 < baseline + 10%, decide: point}]"), "");
        assert_eq!(warnings("[throughput.requests > baseline - 10%]"), "", "stored runs tell how much it varies");
    }

    #[test]
    fn a_reference_that_no_check_needs_is_warned_about() {
        let shown = render(&good("minimal.yaml", &[("reference.url", "sim")]).warnings);
        assert!(shown.contains("warning: `--set reference.url`: no check compares with `reference`"), "{shown}");
        let once = [("reference.url", "sim"), ("require", "[throughput.requests > reference - 5%]")];
        let shown = render(&good("minimal.yaml", &once).warnings);
        assert!(shown.contains("measured once in each arm") && shown.contains("`decide: point`"), "{shown}");
    }

    #[test]
    fn baselines_are_read_to_the_letter() {
        let spec = good("baseline.yaml", &[]).spec;
        let expected = BaselineSpec {
            from: BaselineFrom::Branch("release/1.2".to_owned()),
            runs: 8,
            store: BaselineStore::Git("refs/gate/baselines".to_owned()),
            class: Some("h100".to_owned()),
            fallback: vec![
                BaselineFrom::MergeBase,
                BaselineFrom::Last(3),
                BaselineFrom::Pin("01a229bf86ab".to_owned()),
                BaselineFrom::File("./baselines/main.json".to_owned()),
            ],
        };
        assert_eq!(spec.baseline, expected);
        assert_eq!(spec.outcomes.no_baseline, Policy::Fail);
        let pairs = [("baseline.store", "kept"), ("baseline.fallback", "[]"), ("baseline.class", "")];
        let spec = good("baseline.yaml", &pairs).spec;
        assert_eq!(spec.baseline.store, BaselineStore::Folder("kept".to_owned()));
        assert_eq!((spec.baseline.class, spec.baseline.fallback), (None, vec![]));
    }

    #[test]
    fn the_gate_of_the_product_page_is_read() {
        let text = std::fs::read_to_string(folder("bad").join("product-page.yaml")).unwrap();
        let environment = [("GATE_TARGET".to_owned(), "http://127.0.0.1:8000".to_owned())].into();
        let resolved = resolve("product-page.yaml", &text, &environment, &[]).unwrap();
        assert_eq!(
            checks_of(&resolved.spec)[4..],
            ["ttft.p50 < baseline + 15%", "errors.rate < 5%", "attainment >= 95%", "ttft.p95 < baseline + 25%",]
        );
        assert!(resolved.warnings.is_empty());
    }

    #[test]
    fn overlays_win_and_are_recorded() {
        let pairs = [
            ("load.rps", "5"),
            ("load.iterations", "40..60"),
            ("target.sim.ttft.stddev", "20ms"),
            ("target.sim.tpot", "{mean: 20ms, shape: uniform}"),
            ("slo.ttft", "1s"),
            ("prompts.output_tokens", "32"),
            ("target.key", "sk-typed-on-the-line # not a comment"),
            ("target.headers.X-Auth", "Bearer sk-another-one"),
            ("target.extra_body.top_k", "4"),
            ("require", "[ttft.p50 < 100ms, tpot.p50 < 1s]"),
        ];
        let resolved = good("sim.yaml", &pairs);
        let spec = &resolved.spec;
        let Endpoint::Sim(engine) = &spec.target.endpoint else { panic!() };
        assert_eq!((engine.ttft.mean, engine.ttft.stddev), (Nanos::from_millis(100), Nanos::from_millis(20)));
        assert_eq!((engine.tpot.mean, engine.tpot.shape), (Nanos::from_millis(20), Shape::Uniform));
        assert_eq!(spec.load.pace, Pace::Open { rate: PerSecond(5.0), cap: None });
        assert_eq!(spec.load.iterations, Iterations::Range { first: 40, last: 60, extend: None });
        assert_eq!(spec.slo.ttft, Some(Nanos::from_secs(1)));
        assert_eq!(spec.prompts.output_tokens.mean, 32.0);
        assert_eq!(spec.target.key.as_ref().unwrap().expose(), "sk-typed-on-the-line # not a comment");
        assert_eq!(serde_json::Value::from(spec.target.extra_body.clone()), serde_json::json!({"top_k": 4}));
        assert_eq!(spec.checks.len(), 3);
        let Origin::Declared(place) = &spec.checks[0].origin else { panic!() };
        assert_eq!(place.file, "--set require");
        let values: Vec<_> = spec.overrides.iter().map(|one| one.value.as_str()).collect();
        assert_eq!(values[..2], ["5", "40..60"]);
        assert_eq!(values[6..9], ["***"; 3]);
        let secrets: Vec<_> = resolved.secrets.iter().map(gate_model::Secret::expose).collect();
        assert!(secrets.contains(&"sk-another-one") && secrets.contains(&"sk-typed-on-the-line # not a comment"));
    }

    #[test]
    fn a_target_url_replaces_the_engine() {
        let spec = good("sim.yaml", &[("target.url", "http://127.0.0.1:9")]).spec;
        assert_eq!(spec.target.endpoint, Endpoint::Url("http://127.0.0.1:9".to_owned()));
        let spec = good("minimal.yaml", &[("target.url", "sim")]).spec;
        assert_eq!(spec.target.endpoint, Endpoint::Sim(Box::default()));
        let spec = good("minimal.yaml", &[("target.url", "http://h/?api_key=abcdef123")]).spec;
        assert_eq!(spec.overrides[0].value, "***");
    }

    #[test]
    fn wrong_overlays_name_their_flag() {
        for (pair, expected) in [
            (
                ("load.rp", "5"),
                "error: `--set load.rp`: no key of a gate spec has this path\n  hint: did you mean `load.rps`?\n",
            ),
            (
                ("load.rps", "five"),
                "error: `--set load.rps`: `load.rps` must be a number of requests per second above 0, at most 100000, not `five`\n  hint: without a unit, such as `rps: 2` or `rps: 0.5`\n",
            ),
            (
                ("scenarios.chat.load.rps", "5"),
                "error: `--set scenarios.chat.load.rps`: there is no scenario `chat`\n  hint: the spec has no scenarios\n",
            ),
            (("load", "{rps: 1, rps: 2}"), "error: `--set load`: duplicate key `rps`\n  hint: keep one of the two\n"),
            (
                ("target.url", "${GATE_TARGET_IN_ENV}"),
                "error: `--set target.url`: `target.url` has no scheme\n  hint: write it with its scheme, `http://` or `https://`: such as `http://127.0.0.1:8000/v1`; a socket's is `unix:/run/server.sock`\n",
            ),
            (
                ("target.key", "sk-secret\u{7}bell"),
                "error: `--set target.key`: `target.key` holds a line break or another control character\n  hint: set the secret again, as one line\n",
            ),
            (
                ("require", "[ttft.p95 < 800]"),
                "error: `--set require`: the bound `800` needs a unit\n  hint: write `ttft.p95 < 800ms`\n",
            ),
        ] {
            assert_eq!(refused(SIM, &[pair]), expected);
        }
    }

    #[test]
    fn credentials_are_collected() {
        let text = "version: 1\nname: x\nrequire: [ttft.p95 < 800ms]\ntarget:\n  url: http://h/v1?api_key=in-the-query&v=1\n  \
                    key: ${KEY_IN_ENV}\n  headers: {X-Auth: 'Bearer ${KEY_IN_ENV}', X-Empty: '${EMPTY:-}', Cookie: 'sid=of-a-session; b=other'}\n  \
                    extra_body: {nested: ['a ${KEY_IN_ENV}'], user: '${EMPTY:-someone}', access_token: in-the-body}\n";
        let resolved = resolve("gate.yaml", text, &environment(), &[]).unwrap();
        let mut secrets: Vec<_> = resolved.secrets.iter().map(gate_model::Secret::expose).collect();
        secrets.sort_unstable();
        secrets.dedup();
        assert_eq!(
            secrets,
            [
                "1",
                "Bearer sk-from-the-environment",
                "b=other",
                "in-the-body",
                "in-the-query",
                "of-a-session",
                "other",
                "sid=of-a-session; b=other",
                "sk-from-the-environment"
            ]
        );
        assert_eq!(resolved.spec.target.headers.len(), 2, "an empty header is not sent");
        assert_eq!(resolved.spec.target.extra_body["user"], "someone");
    }

    #[test]
    fn the_query_of_a_custom_path_is_in_custody() {
        let text = std::fs::read_to_string(folder("good").join("custom.yaml")).unwrap();
        let text = text.replace("path: /generate", "path: '/generate?key=${KEY_IN_ENV}&sig=a%20long%20one&alt=sse'");
        let resolved = resolve("gate.yaml", &text, &environment(), &[]).unwrap();
        let secrets: Vec<_> = resolved.secrets.iter().map(gate_model::Secret::expose).collect();
        assert_eq!(secrets, ["sk-from-the-environment", "a long one", "sk-from-the-environment", "a%20long%20one"]);
        for (path, value) in [
            ("target.custom.path", "/g?api_key=X"),
            ("target.custom", "{path: '/g?api_key=X', body: {q: '{{prompt}}'}, text: /t}"),
            ("target.custom.body.token", "X"),
        ] {
            assert_eq!(good("custom.yaml", &[(path, value)]).spec.overrides[0].value, "***", "{path}");
        }
        assert_eq!(good("custom.yaml", &[("target.custom.path", "/g?v=1")]).spec.overrides[0].value, "/g?v=1");
    }

    #[test]
    fn a_file_may_be_left_open_by_a_variable() {
        let read = |name: &str| {
            let text = format!(
                "version: 1\nname: x\nrequire: [ttft.p95 < 1s]\ntarget: {{url: 'https://h', tls: {{ca: {name}}}}}\n"
            );
            resolve("gate.yaml", &text, &environment(), &[])
        };
        assert_eq!(read("'${EMPTY:-}'").unwrap().spec.target.tls.ca, None);
        assert!(render(&read("''").unwrap_err()).contains("`target.tls.ca` must be the name of a file, but is empty"));
    }

    #[test]
    fn new_connections_are_warned_about_where_they_are_kept() {
        for (load, warnings) in [("{connections: fresh}", 0), ("{}", 1)] {
            let pairs = [("load", load), ("require", "[ttft.p95 < 1s, connect.p95 < 1s]")];
            assert_eq!(good("minimal.yaml", &pairs).warnings.len(), warnings, "{load}");
        }
        let open = [("load", "{rps: 3, concurrency: 4}"), ("require", "[ttft.p95 < 1s, achieved_rate > 1/s]")];
        assert_eq!(good("minimal.yaml", &open).spec.checks.len(), 3);
    }

    #[test]
    fn a_blank_key_is_not_set_and_a_line_end_is_no_part_of_one() {
        let resolved = |key: &str, value: &str| {
            let text = format!(
                "version: 1\nname: x\nrequire: [ttft.p95 < 1s]\ntarget:\n  url: sim\n  key: {key}\n  headers: {{X-Key: \"a ${{LINE}} b\"}}\n"
            );
            let variables = [("KEY", value), ("LINE", "one\r\n")];
            let environment = variables.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
            resolve("gate.yaml", &text, &environment, &[])
        };
        for (key, value, read) in [
            ("${KEY:-}", " \n", None),
            ("${KEY:-sk-other}", "  ", Some("sk-other")),
            ("${KEY}", "sk-one\n", Some("sk-one")),
            ("' '", "", None),
        ] {
            let target = resolved(key, value).unwrap().spec.target;
            assert_eq!(target.key.as_ref().map(gate_model::Secret::expose), read, "{key}");
            assert_eq!(target.headers[0].value.expose(), "a one b");
        }
        let shown = render(&resolved("${KEY}", " \n").unwrap_err());
        assert!(shown.contains("`target.key` needs the environment variable `KEY`, which is empty"), "{shown}");
    }

    #[test]
    fn a_key_in_a_block_of_text_is_masked_and_nothing_else() {
        let text = "version: 1\nname: x\ntarget:\n  url: sim\n  key: |\n    sk-one\n    sk-two\n  modle: y\nrequire: [ttft.p95 < 1s]\n";
        let shown = refused(text, &[]);
        assert!(shown.contains("  |     ***\n") && shown.contains("  |   modle: y\n"), "{shown}");
        assert!(!shown.contains("sk-"), "{shown}");
    }

    #[test]
    fn scalars_keep_their_source_text() {
        let spec = |model: &str| {
            let text =
                format!("version: 1\nname: on\nrequire: [ttft.p95 < 1s]\ntarget: {{url: sim, model: {model}}}\n");
            resolve("gate.yaml", &text, &environment(), &[]).unwrap().spec
        };
        for (written, read) in
            [("1.10", "1.10"), ("yes", "yes"), ("0755", "0755"), ("'null'", "null"), ("$${X}", "${X}")]
        {
            // A `{` in flow style needs quotes.
            let written = if written.contains('{') { format!("\"{written}\"") } else { written.to_owned() };
            assert_eq!(spec(&written).target.model.as_deref(), Some(read));
        }
        assert_eq!(spec("'${EMPTY:-}'").target.model, None);
        assert_eq!(spec("x").name, "on");
    }

    #[test]
    fn line_ends_and_byte_order_marks_do_not_matter() {
        let plain = resolve("x", SIM, &environment(), &[]).unwrap().spec;
        for text in [format!("\u{feff}{SIM}"), SIM.replace('\n', "\r\n")] {
            assert_eq!(resolve("x", &text, &environment(), &[]).unwrap().spec, plain);
        }
    }
}
