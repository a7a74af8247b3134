//! Plans of scenarios, patterns and conversations, and the manifest for a cluster.

#[cfg(test)]
mod goldens;

#[cfg(test)]
mod strangers;

#[cfg(test)]
mod verdicts;

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::process::{Command, Stdio};

    use gate_model::{
        Arrivals, Bound, Budget, Cache, Cause, Check, CheckOutcome, EndReason, Endpoint, Finding, GateSpec, Importance,
        Iterations, Latency, Length, Load, Metric, Nanos, Op, Origin, Outcome, OutcomeCount, Pace, Pattern, PerSecond,
        Plan, PlannedRequest, Power, Prices, PromptFormat, PromptSpec, Rule, RunOrder, Scenario, ScenarioFacts, Secret,
        SharedPrefix, Stage, Status, Turns, Verdict,
    };
    use gate_report::{
        About, PlanTotals, PlanView, Style, annotations, comment, explain, explain_check, junit, kubernetes,
        openmetrics, plan_json, plan_text, terminal,
    };

    use proptest::prelude::*;

    use crate::goldens::expect;
    use crate::strangers::{DECEIVING, hostile};
    use crate::verdicts::verdict;

    /// A check's rule with what it can find.
    type Rules = (Rule, Option<Power>);

    fn check(scenario: u16, text: &str) -> Check {
        let parts: Vec<&str> = text.split(' ').collect();
        Check {
            scenario,
            metric: parts[0].parse().unwrap(),
            op: if parts[1] == "<" { Op::Less } else { Op::AtLeast },
            bound: Bound::Absolute(parts[2].parse().unwrap()),
            bound_text: parts[2].to_owned(),
            importance: Importance::Required,
            origin: Origin::Implied,
            decide: None,
            confidence: Check::CONFIDENCE,
            waive: None,
        }
    }

    fn scenario(name: &str, load: Load, prompts: PromptSpec) -> Scenario {
        Scenario {
            name: name.to_owned(),
            load,
            prompts,
            slo: Default::default(),
            model: None,
            extra_body: Default::default(),
            weight: 1.0,
        }
    }

    fn rate(rate: f64, pattern: Pattern) -> Load {
        let iterations = match pattern {
            Pattern::Steady => Iterations::Fixed(100),
            _ => Iterations::For(Nanos::from_secs(60)),
        };
        Load { pace: Pace::Open { rate: PerSecond(rate), cap: None }, pattern, iterations, ..Load::default() }
    }

    /// A plan of so many arrivals, one every so many milliseconds, of conversations of so many turns.
    fn plan(spec: &GateSpec, section: u16, arrivals: u32, millis: i64, turns: u16, scenarios: u16) -> Plan {
        let requests = (0..arrivals).flat_map(|arrival| {
            (0..turns).map(move |turn| PlannedRequest {
                index: arrival * u32::from(turns) + u32::from(turn),
                scenario: if scenarios > 1 { (arrival % 4 / 3) as u16 } else { section },
                turn,
                at: if turn == 0 { Nanos::from_millis(i64::from(arrival) * millis) } else { Nanos::from_secs(2) },
                input_tokens: 550,
                output_tokens: 150,
                ..PlannedRequest::default()
            })
        });
        let requests: Vec<PlannedRequest> = requests.collect();
        let count = requests.len() as u32;
        Plan { section, warmup: vec![PlannedRequest::default(); 5], ..Plan::new(spec, vec![count], requests) }
    }

    fn nightly() -> (GateSpec, Vec<Plan>, Vec<Rules>) {
        let mut spec = GateSpec::new("nightly", Endpoint::Url("http://127.0.0.1:8000/v1".to_owned()));
        spec.target.metrics = Some("http://127.0.0.1:8000/metrics".to_owned());
        let ramp = Pattern::Ramp { from: PerSecond(0.0), to: PerSecond(12.0), over: Nanos::from_secs(900) };
        let spike = Pattern::Spike {
            times: 5.0,
            hold: Nanos::from_secs(120),
            before: Nanos::from_secs(120),
            after: Nanos::from_secs(300),
        };
        let chat = PromptSpec {
            turns: Turns { min: 3, max: 5 },
            think: Latency { stddev: Nanos::from_millis(500), ..Latency::constant(Nanos::from_secs(2)) },
            shared_prefix: Some(SharedPrefix { tokens: 500, groups: 4 }),
            cache: Cache::Natural,
            file: Some("sharegpt.json".to_owned()),
            format: PromptFormat::Sharegpt,
            ..PromptSpec::default()
        };
        let pictures = PromptSpec {
            images: vec!["cat.png".to_owned(), "https://images.example.net/dog.jpg".to_owned()],
            output_empirical: Some("lengths.txt".to_owned()),
            ..PromptSpec::default()
        };
        let soak = Load {
            iterations: Iterations::For(Nanos::from_secs(4 * 3_600)),
            arrivals: Arrivals::Gamma(0.5),
            ..rate(1.0, Pattern::Soak)
        };
        let stages = Pattern::Stages(vec![
            Stage { from: PerSecond(1.0), to: PerSecond(1.0), lasts: Nanos::from_secs(60) },
            Stage { from: PerSecond(1.0), to: PerSecond(4.0), lasts: Nanos::from_secs(90) },
        ]);
        spec.scenarios = vec![
            scenario("ramp", rate(12.0, ramp), PromptSpec::default()),
            scenario("spike", rate(2.0, spike), chat),
            scenario("soak", soak, pictures),
            scenario("steps", rate(4.0, stages), PromptSpec::default()),
            scenario("replay", rate(3.0, Pattern::Trace("azure.csv".to_owned())), PromptSpec::default()),
        ];
        spec.budget = Budget { requests: Some(50_000), cost: Some(12.0), ..Budget::default() };
        spec.prices = Some(Prices { input: 0.15, cached_input: Some(0.075), output: 0.6 });
        spec.checks = vec![
            check(0, "knee.rate >= 8/s"),
            check(1, "recovery < 60s"),
            check(2, "drift.tpot < 1%/h"),
            check(2, "cost < $0.40"),
        ];
        let plans = vec![
            plan(&spec, 0, 5_400, 166, 1, 1),
            plan(&spec, 1, 400, 1_340, 4, 1),
            plan(&spec, 2, 14_400, 1_000, 1, 1),
            plan(&spec, 3, 285, 520, 1, 1),
            plan(&spec, 4, 300, 333, 1, 1),
        ];
        let rules = [Rule::Knee, Rule::Recovery, Rule::Trend, Rule::Point];
        (spec, plans, rules.map(|rule| (rule, None)).to_vec())
    }

    fn view<'a>(spec: &'a GateSpec, plans: &'a [Plan], checks: &'a [Rules]) -> PlanView<'a> {
        let totals =
            PlanTotals { requests: 22_010, input_tokens: 12_105_500, output_tokens: 3_301_500, cost: Some(3.796_725) };
        PlanView { spec, plans, checks, stored: &[], today: "2026-11-29", warnings: &[], totals }
    }

    #[test]
    fn a_plan_of_several_sections_says_each() {
        let (spec, plans, checks) = nightly();
        let text = plan_text(&view(&spec, &plans, &checks), Style::Plain);
        assert!(text.lines().all(|line| line.chars().count() <= 80 && line == line.trim_end()), "{text}");
        expect("plan-sections.txt", &text);
        let json: serde_json::Value = serde_json::from_str(&plan_json(&view(&spec, &plans, &checks)).unwrap()).unwrap();
        assert_eq!(json["plans"].as_array().unwrap().len(), 5);
        assert!(json.get("plan").is_none());
        assert_eq!(json["sections"][1]["conversations"], 400);
        assert_eq!(json["sections"][1]["requests"], 1_600);
        assert_eq!(json["sections"][0]["lasts_s"], 900.0);
        assert_eq!(json["totals"]["cost"], 3.796_725);
        assert_eq!(json["budget"]["requests"], 50_000);
    }

    #[test]
    fn a_plan_of_scenarios_together_says_their_shares() {
        let mut spec = GateSpec::new("mixed", Endpoint::Url("http://127.0.0.1:8000/v1".to_owned()));
        let batch = PromptSpec {
            input_tokens: Length { mean: 2_000.0, ..PromptSpec::default().input_tokens },
            ..PromptSpec::default()
        };
        spec.scenarios = vec![
            scenario("chat", Load::default(), PromptSpec::default()),
            Scenario { model: Some("big".to_owned()), ..scenario("batch", Load::default(), batch) },
        ];
        spec.order = RunOrder::Together;
        spec.checks = vec![check(0, "ttft.p95 < 800ms"), check(1, "e2e.p95 < 20s")];
        let mut plan = plan(&spec, 0, 400, 500, 1, 2);
        (plan.looks, plan.by_scenario) = (vec![120, 200, 400], vec![vec![90, 30], vec![150, 50], vec![300, 100]]);
        let checks = [(Rule::Point, None), (Rule::Point, None)];
        let plans = [plan];
        let text = plan_text(&PlanView { totals: PlanTotals::default(), ..view(&spec, &plans, &checks) }, Style::Plain);
        assert!(text.lines().all(|line| line.chars().count() <= 80 && line == line.trim_end()), "{text}");
        expect("plan-together.txt", &text);
    }

    /// Text of a spec that no plain block of YAML can hold, too.
    const SPEC: &str = "version: 1\nname: nightly\ntarget:\n  url: ${GATE_TARGET}\n  key: sk-written-in-clear\n";

    #[test]
    fn a_manifest_holds_the_spec_and_no_secret() {
        let (mut spec, plans, checks) = nightly();
        spec.target.key = Some(Secret::new("sk-written-in-clear"));
        let text = kubernetes(&view(&spec, &plans, &checks), 4, SPEC);
        assert!(!text.contains("sk-written-in-clear"));
        assert!(text.contains("A credential in gates/nightly.yaml is left out here"));
        for file in ["sharegpt.json", "cat.png", "lengths.txt", "azure.csv"] {
            assert!(text.contains(&format!("#   {file}\n")), "{file}");
        }
        assert!(!text.contains("dog.jpg"));
        assert_eq!(text.matches("\n---\n").count(), 3);
        expect("kubernetes.yaml", &text);
        // One that is no block of its own, and no shards at all.
        let odd = kubernetes(&view(&spec, &plans, &checks), 0, "\tname: \"x\"\r\n");
        assert!(odd.contains("  gate.yaml: \"\\tname: \\\"x\\\"\\r\\n\"\n"), "{odd}");
        assert!(odd.contains("completions: 1\n"));
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_spec_comes_back_from_a_manifest(text in hostile()) {
            let (mut spec, plans, checks) = nightly();
            spec.name.clone_from(&text);
            spec.file.clone_from(&text);
            let manifest = kubernetes(&view(&spec, &plans, &checks), 4, &text);
            prop_assert!(!manifest.contains(DECEIVING));
            let parts: Vec<serde_yaml::Value> = serde_yaml::Deserializer::from_str(&manifest)
                .map(|part| serde::Deserialize::deserialize(part).unwrap())
                .collect();
            prop_assert_eq!(parts.len(), 4);
            let read = parts[0]["data"]["gate.yaml"].as_str().unwrap();
            prop_assert_eq!(read, text.strip_prefix('\u{feff}').unwrap_or(&text));
        }
    }

    #[test]
    fn the_scripts_of_a_manifest_are_shell() {
        let (spec, plans, checks) = nightly();
        let text = kubernetes(&view(&spec, &plans, &checks), 4, SPEC);
        let scripts: Vec<String> = text
            .split("args:\n            - |\n")
            .skip(1)
            .map(|rest| {
                let lines = rest.lines().take_while(|line| line.starts_with("              "));
                lines.map(|line| format!("{}\n", &line[14..])).collect()
            })
            .collect();
        assert_eq!(scripts.len(), 2);
        let folder = std::env::temp_dir().join(format!("gate-k8s-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("bin")).unwrap();
        let journals = folder.join("journals");
        std::fs::create_dir_all(&journals).unwrap();
        // A gate that writes down how it was called, and fails in the third shard.
        let gate = folder.join("bin/gate");
        let stand_in = "#!/bin/sh\necho \"$*\" >>\"$CALLS\"\ncase \"$*\" in *3/4*) exit 3;; esac\n\
                        while [ $# -gt 0 ]; do [ \"$1\" = -o ] && echo run >\"$2\"; shift; done\nexit 0\n";
        std::fs::write(&gate, stand_in).unwrap();
        assert!(Command::new("chmod").arg("+x").arg(&gate).status().unwrap().success());
        let run = |script: &str, index: &str| {
            let script = script.replace("/journals", journals.to_str().unwrap());
            let path = format!("{}:{}", folder.join("bin").display(), std::env::var("PATH").unwrap());
            let mut shell = Command::new("/bin/sh");
            shell.args(["-s"]).env("PATH", path).env("JOB_COMPLETION_INDEX", index).stdin(Stdio::piped());
            shell.env("START_AT", "2027-01-01T00:00:00Z").env("CALLS", folder.join("calls"));
            let mut child = shell.spawn().unwrap();
            child.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
            child.wait().unwrap().code()
        };
        let codes = ["0", "1", "2", "3"].map(|index| run(&scripts[0], index));
        assert_eq!(codes, [Some(0), Some(0), Some(3), Some(0)]);
        assert_eq!(run(&scripts[1], "0"), Some(0));
        let calls = std::fs::read_to_string(folder.join("calls")).unwrap();
        let at = "2027-01-01T00:00:00Z";
        let shard = |number: u32| {
            let journal = journals.join(at).join(format!("run-{number}.jsonl"));
            format!("run /spec/gate.yaml --shard {number}/4 --start-at {at} -o {}\n", journal.display())
        };
        let shards: String = (1..=4).map(shard).collect();
        let judged = [1, 2, 4].map(|number| format!("{at}/run-{number}.jsonl")).join(" ");
        assert_eq!(calls, format!("{shards}judge {judged} --out {at}/out\n"));
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn the_rules_of_patterns_are_told_step_by_step() {
        let steps = ["ramp", "ramp-flat", "spike", "soak"].map(|name| {
            let verdict = verdict(name);
            let checks = (0..verdict.checks.len()).map(|check| explain_check(&verdict, check));
            checks.take(3).collect::<Vec<_>>().join("\n")
        });
        let text = steps.join("\n---\n\n");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        expect("steps-patterns.txt", &text);
    }

    #[test]
    fn what_is_known_of_workloads_is_for_machines_too() {
        let verdicts = ["together", "ramp", "spike", "soak", "budget"].map(verdict);
        let text = openmetrics(&verdicts);
        for line in [
            "gate_found_per_second{gate=\"ramp\",scenario=\"ramp\",metric=\"knee.rate\",bound=\"value\"} 7.9\n",
            "gate_found_seconds{gate=\"spike\",scenario=\"spike\",metric=\"recovery\",bound=\"upper\"} 44\n",
            "gate_server_bytes{gate=\"mixed\",metric=\"memory\",summary=\"delta\"} 134217728\n",
            "gate_ttft_by_turn_seconds{gate=\"mixed\",scenario=\"chat\",turn=\"2\",quantile=\"0.5\"} 0.29\n",
            "gate_seen_ratio_per_hour{gate=\"soak\",scenario=\"soak\",check=\"drift.tpot < 1%/h\"} 0.021\n",
            "gate_limit_dollars{gate=\"spike\",scenario=\"spike\",check=\"cost < $0.40\"} 0.4\n",
            "gate_spent_dollars{gate=\"mixed\"} 0.0578\n",
        ] {
            assert!(text.contains(line), "{line}");
        }
        // A family is declared once, before its first sample, and no sample stands twice.
        let mut families = std::collections::HashSet::new();
        let mut samples = std::collections::HashSet::new();
        for line in text.lines() {
            match line.strip_prefix("# TYPE ") {
                Some(family) => assert!(families.insert(family.to_owned()), "{line}"),
                None if line.starts_with('#') => {}
                None => assert!(samples.insert(line.rsplit_once(' ').unwrap().0.to_owned()), "{line}"),
            }
        }
    }

    #[test]
    fn only_the_violated_scenario_is_red() {
        let verdict = verdict("together");
        let xml = junit(std::slice::from_ref(&verdict)).unwrap();
        let suites: Vec<&str> = xml.split("<testsuite ").skip(1).collect();
        assert_eq!(suites.len(), 2);
        assert!(suites[0].contains("gate.mixed.chat") && suites[0].contains("failures=\"0\""), "{}", suites[0]);
        assert!(suites[1].contains("gate.mixed.batch") && suites[1].contains("failures=\"1\""), "{}", suites[1]);
        let lines = annotations(std::slice::from_ref(&verdict));
        assert_eq!(lines.lines().count(), 1);
        assert!(lines.contains("title=gate mixed%3A batch%3A e2e.p95 < 20s"), "{lines}");
    }

    #[test]
    fn a_run_that_was_given_up_says_so_where_it_is_read_first() {
        let mut verdict = verdict("budget");
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let stopped =
            "- stopped early after 112 of at most 900 requests: the next request could have used up more than";
        let text = words(&terminal(&verdict, Style::Plain));
        assert!(text.rsplit("gate nightly: ").next().unwrap().contains(stopped), "{text}");
        let text = comment(std::slice::from_ref(&verdict), &About::default()).unwrap();
        assert!(text.split("| scenario |").next().unwrap().contains(stopped), "{text}");
        // What became of each section stands in its own line.
        verdict.run.parts[1].reason = Some(EndReason::Quota("daily limit reached".to_owned()));
        let text = words(&terminal(&verdict, Style::Plain));
        assert!(text.contains("ended early: stopped early: the server gives no more for a long time"), "{text}");
    }

    #[test]
    fn a_run_that_the_server_refused_to_go_on_with_says_how_far_it_came() {
        let mut verdict = verdict("not-ready");
        let seen = "the server says to come back in 60 s: the server answered 429 Too Many Requests: slow down; lower \
                    `load.rps`, or raise the quota";
        let refused = "the server answered 401 Unauthorized: no such key; check `target.key`";
        for (reason, golden) in [
            (EndReason::Quota(seen.to_owned()), "quota.txt"),
            (EndReason::Unauthorized(refused.to_owned()), "unauthorised-midway.txt"),
        ] {
            verdict.findings = vec![Finding::EndedEarly(reason.clone())];
            (verdict.run.sent, verdict.run.planned) = (29, 100);
            for check in &mut verdict.checks {
                check.outcome = CheckOutcome::CouldNotMeasure { cause: Cause::NotRun(reason.clone()) };
            }
            let text = terminal(&verdict, Style::Plain);
            // The lead says it, and each check why: not a third time between the two.
            assert!(!text.contains("\n  - "), "{text}");
            expect(golden, &text);
            let text = comment(std::slice::from_ref(&verdict), &About::default()).unwrap();
            assert!(text.contains("Stopped early after 29 of at most 100 requests: the server"), "{text}");
        }
    }

    #[test]
    fn an_interrupted_run_of_sections_says_which_were_begun() {
        let mut verdict = verdict("budget");
        verdict.status = Status::Interrupted;
        verdict.findings.clear();
        for check in &mut verdict.checks {
            if check.check.scenario > 0 {
                check.outcome = CheckOutcome::CouldNotMeasure { cause: Cause::Interrupted };
            }
        }
        let [_, batch, burst] = verdict.run.parts.as_mut_slice() else { panic!("three parts") };
        (batch.judged, batch.reason) = (0, Some(EndReason::Interrupted));
        batch.outcomes.clear();
        (burst.reason, burst.planned) = (None, 700);
        expect("interrupted-sections.txt", &terminal(&verdict, Style::Plain));
        // A process that was killed in it had begun it.
        verdict.run.parts[1].reason = None;
        let text = terminal(&verdict, Style::Plain);
        assert!(text.contains("batch, steady: none of 100 judged; 11 s; its process was killed"), "{text}");
    }

    #[test]
    fn very_many_scenarios_fit_a_comment() {
        let mut verdict: Verdict = verdict("together");
        let (part, check) = (verdict.run.parts[1].clone(), verdict.checks[2].clone());
        verdict.run.scenarios = (0..400).map(|number| format!("scenario-{number}-with-a-long-name")).collect();
        verdict.run.parts = (0..400).map(|scenario| ScenarioFacts { scenario, ..part.clone() }).collect();
        verdict.run.parts[7].outcomes = vec![OutcomeCount { outcome: Outcome::Ok, count: 3 }];
        verdict.checks = (0..400)
            .map(|scenario| {
                let mut check = check.clone();
                check.check.scenario = scenario;
                if scenario != 3 {
                    check.outcome = CheckOutcome::Met;
                }
                check
            })
            .collect();
        let text = comment(&[verdict], &About::default()).unwrap();
        assert!(text.len() < 65_536, "{}", text.len());
        assert!(text.contains("scenario-3-with-a-long-name: e2e.p95 is 31.4 s"), "{text}");
    }

    #[test]
    fn metrics_of_patterns_and_of_the_server_are_explained() {
        let metrics = [
            ("knee.rate", Rule::Knee),
            ("recovery", Rule::Recovery),
            ("drift.tpot", Rule::Trend),
            ("drift.server.memory", Rule::Trend),
            ("spike.ttft.p95", Rule::Quantile),
            ("spike.errors.rate", Rule::Counted),
            ("server.kv_cache_usage.max", Rule::Point),
            ("server.prefix_cache_hits.delta", Rule::Point),
            ("cost", Rule::Point),
            ("tokens.spent", Rule::Point),
        ];
        let texts = metrics.map(|(name, rule)| explain(name.parse::<Metric>().unwrap(), rule));
        expect("explain-patterns.txt", &texts.join("\n---\n\n"));
    }
}
