//! Plans, diagnostics and samples as text.

#[cfg(test)]
mod goldens;

#[cfg(test)]
mod tests {

    use gate_model::{
        Against, Api, Arm, BaselineFrom, BaselineSpec, Bound, Brief, Cache, Check, Clock, Connections, Decide,
        Delivery, Diagnostic, EndReason, Endpoint, EngineParams, Fault, Finding, GateSpec, Http, Importance, Load,
        Metric, Nanos, Op, Origin, Outcome, OutputLength, Override, Pace, PerSecond, Place, Plan, PlannedRequest,
        Power, PromptSpec, Quantity, Relative, Roots, Rule, Run, RunEnd, RunHeader, Sample, ScriptedFault, Secret,
        Series, Severity, Snippet, Target, Tls, TokenPolicy, Usage, Waiver, WarmingUp,
    };
    use gate_report::{
        PlanTotals, PlanView, Style, diagnostics, explain, explain_errors, explain_series, plan_json, plan_text,
        samples,
    };
    use serde_json::json;

    use crate::goldens::expect;

    const TODAY: &str = "2026-11-29";

    fn check(text: &str, importance: Importance, line: Option<u32>) -> Check {
        let parts: Vec<&str> = text.split(' ').collect();
        let op = if parts[1] == "<" { Op::Less } else { Op::AtLeast };
        Check {
            scenario: 0,
            metric: parts[0].parse().unwrap(),
            op,
            bound: Bound::Absolute(parts[2].parse().unwrap()),
            bound_text: parts[2].to_owned(),
            importance,
            origin: line.map_or(Origin::Implied, |line| {
                Origin::Declared(Place { file: "gates/chat.yaml".to_owned(), line, column: 5 })
            }),
            decide: None,
            confidence: Check::CONFIDENCE,
            waive: None,
        }
    }

    fn spec() -> GateSpec {
        let mut spec = GateSpec::new("chat", Endpoint::Url("http://127.0.0.1:8000/v1".to_owned()));
        spec.target.model = Some("llama-3.1-8b-instruct".to_owned());
        spec.target.key = Some(Secret::new("sk-never-printed"));
        spec.load.seed = 7;
        GateSpec {
            checks: vec![
                check("ttft.p50 < 400ms", Importance::Required, Some(14)),
                check("ttft.p99 < 800ms", Importance::Required, Some(15)),
                check("ttft.max < 5s", Importance::Required, Some(16)),
                check("errors.rate < 5%", Importance::Required, None),
                check("attainment >= 95%", Importance::Preferred, Some(19)),
                check("throughput.output_tokens >= 100tok/s", Importance::Preferred, Some(20)),
            ],
            overrides: vec![Override { flag: "--set".to_owned(), path: "load.seed".to_owned(), value: "7".to_owned() }],
            ..spec
        }
    }

    fn request(index: u32) -> PlannedRequest {
        PlannedRequest {
            index,
            at: Nanos::from_millis(i64::from(index) * 497),
            input_tokens: 550,
            output_tokens: 150,
            ..PlannedRequest::default()
        }
    }

    /// A plan in full size for people, and a small one whose JSON can be read.
    fn plan(looks: &[u32], warmup: u32) -> Plan {
        let requests = (0..*looks.last().unwrap()).map(request).collect();
        Plan { warmup: (0..warmup).map(request).collect(), ..Plan::new(&spec(), looks.to_vec(), requests) }
    }

    fn powers() -> Vec<(Rule, Option<Power>)> {
        let power = |violates_at: &[(u32, Option<u32>)], proves_at_most, allowed_share, detects_share| {
            Some(Power { violates_at: violates_at.to_vec(), proves_at_most, allowed_share, detects_share })
        };
        vec![
            (Rule::Quantile, power(&[(30, Some(21)), (50, Some(33)), (100, Some(60))], Some(41), 0.5, 0.641)),
            (Rule::Quantile, power(&[(30, None), (50, Some(4)), (100, Some(5))], None, 0.01, 0.067)),
            (Rule::Extreme, None),
            (Rule::Counted, None),
            (Rule::Rate, power(&[(100, Some(10))], Some(1), 0.05, 0.122)),
            (Rule::Point, None),
        ]
    }

    #[test]
    fn a_plan_says_what_is_sent_and_what_can_be_found() {
        let (spec, plan, checks) = (spec(), plan(&[30, 50, 100], 5), powers());
        let warnings = [Finding::CannotProve { check: "ttft.p99 < 800ms".to_owned(), n: 100, needed: 299 }];
        let view = PlanView {
            spec: &spec,
            plans: std::slice::from_ref(&plan),
            checks: &checks,
            warnings: &warnings,
            stored: &[],
            today: TODAY,
            totals: PlanTotals::default(),
        };
        let text = plan_text(&view, Style::Plain);
        assert!(text.lines().all(|line| line.chars().count() <= 80 && line == line.trim_end()), "{text}");
        let coloured = plan_text(&view, Style::Colour);
        let plain = coloured.lines().map(gate_report::escape::terminal).map(|line| line + "\n");
        assert_eq!(plain.collect::<String>(), text);
        expect("plan.txt", &text);
    }

    fn relative(text: &str, bound: Bound, line: u32) -> Check {
        let (metric, rest) = text.split_once(' ').unwrap();
        let (symbol, bound_text) = rest.split_once(' ').unwrap();
        let op = if symbol == "<" { Op::Less } else { Op::AtLeast };
        let declared = check("ttft.p50 < 1s", Importance::Required, Some(line));
        Check { metric: metric.parse().unwrap(), op, bound, bound_text: bound_text.to_owned(), ..declared }
    }

    #[test]
    fn a_plan_of_a_comparison_says_what_it_is_compared_with() {
        let to = |to, change| Bound::Relative(Relative { to, change: Some(change), step: None });
        let mut spec = spec();
        spec.reference = Some(Target {
            model: Some("llama-3.1-8b-instruct".to_owned()),
            ..Target::new(Endpoint::Url("http://main.internal:8000/v1".to_owned()))
        });
        spec.baseline = BaselineSpec {
            class: Some("h100".to_owned()),
            fallback: vec![BaselineFrom::Branch("main".to_owned()), BaselineFrom::Last(5)],
            ..BaselineSpec::default()
        };
        let points = Relative { to: Against::Baseline, change: None, step: Some("2%".parse().unwrap()) };
        spec.checks = vec![
            relative("tpot.p50 < baseline + 15%", to(Against::Baseline, 0.15), 14),
            relative("ttft.p95 < baseline + 25%", to(Against::Baseline, 0.25), 15),
            relative("goodput >= baseline - 10%", to(Against::Baseline, -0.1), 16),
            relative("attainment >= baseline - 2pp", Bound::Relative(points), 17),
            relative("ttft.p50 < reference + 10%", to(Against::Reference, 0.1), 18),
            relative("ttft.p95 < reference + 10%", to(Against::Reference, 0.1), 19),
            relative("ttft.p95 < 40% of cold", Bound::ShareOf { share: 0.4, scenario: "cold".to_owned() }, 20),
        ];
        let rules =
            [Rule::Stored, Rule::StoredTail, Rule::Stored, Rule::Counted, Rule::Paired, Rule::PairedTail, Rule::Bounds];
        let checks = rules.map(|rule| (rule, None));
        let requests = (0..200).map(request).collect();
        let warmup = (0..10).map(request).collect();
        let plan = Plan { warmup, ..Plan::new(&spec, vec![30, 50, 100], requests) };
        let stored = [Some(0.382), None, Some(-0.215)];
        let view = PlanView {
            spec: &spec,
            plans: std::slice::from_ref(&plan),
            checks: &checks,
            warnings: &[],
            stored: &stored,
            today: TODAY,
            totals: PlanTotals::default(),
        };
        let text = plan_text(&view, Style::Plain);
        assert!(text.lines().all(|line| line.chars().count() <= 80 && line == line.trim_end()), "{text}");
        expect("plan-compared.txt", &text);
        let one = BaselineSpec { from: BaselineFrom::Pin("0193a6c8".to_owned()), ..BaselineSpec::default() };
        let spec = GateSpec { baseline: one, ..spec.clone() };
        let text = plan_text(&PlanView { spec: &spec, ..view }, Style::Plain);
        assert!(
            text.contains("with 1 stored run, and the usual noise between runs, it finds +38.2 % and more"),
            "{text}"
        );
        let json: serde_json::Value = serde_json::from_str(&plan_json(&view).unwrap()).unwrap();
        assert_eq!(json["reference"], "http://main.internal:8000/v1");
    }

    #[test]
    fn a_plan_as_json_holds_every_request_and_no_key() {
        let (spec, plan, checks) = (spec(), plan(&[2], 1), powers());
        let warnings = [Finding::OnlyEndToEnd];
        let view = PlanView {
            spec: &spec,
            plans: std::slice::from_ref(&plan),
            checks: &checks,
            warnings: &warnings,
            stored: &[],
            today: TODAY,
            totals: PlanTotals::default(),
        };
        let text = plan_json(&view).unwrap();
        assert!(!text.contains("sk-never-printed"));
        expect("plan.json.txt", &text);
    }

    #[test]
    fn the_simulated_engine_is_named_before_the_run() {
        let mut spec = spec();
        spec.target.endpoint = Endpoint::Sim(Box::default());
        let (plan, checks) = (plan(&[2], 1), powers());
        let view = PlanView {
            spec: &spec,
            plans: std::slice::from_ref(&plan),
            checks: &checks,
            warnings: &[],
            stored: &[],
            today: TODAY,
            totals: PlanTotals::default(),
        };
        assert!(plan_text(&view, Style::Plain).starts_with("SIMULATED ENGINE"));
        assert!(plan_json(&view).unwrap().contains("\"simulated\": true"));
    }

    #[test]
    fn a_plan_says_all_that_is_unusual() {
        let mut engine = EngineParams::default();
        engine.faults.http_429 = 0.02;
        engine.faults.stall = 0.005;
        engine.script = vec![
            ScriptedFault { from: 3, to: 3, fault: Fault::Reset },
            ScriptedFault { from: 10, to: 12, fault: Fault::Http500 },
        ];
        engine.warming_up = Some(WarmingUp { requests: 20, slowdown: 3.0 });
        engine.buffer_bytes = 4096;
        engine.dies_after = Some(90);
        let mut spec = GateSpec::new("unusual", Endpoint::Sim(Box::new(engine)));
        spec.target.api = Api::Anthropic;
        spec.target.delivery = Delivery::Whole;
        spec.target.tls = Tls {
            ca: Some("ca.pem".to_owned()),
            roots: Roots::System,
            cert: Some("own.pem".to_owned()),
            ..Tls::default()
        };
        spec.prompts = PromptSpec {
            file: Some("prompts.jsonl".to_owned()),
            system: Some("Answer briefly.".to_owned()),
            cache: Cache::Warm,
            output: OutputLength::Exact,
            ..PromptSpec::default()
        };
        let required = |text, line| check(text, Importance::Required, Some(line));
        spec.checks = vec![
            required("e2e.mean < 2s", 14),
            required("itl.p95 < 50ms", 15),
            Check { decide: Some(Decide::Point), ..required("ttft.p95 < 800ms", 16) },
            Check { confidence: 0.99, ..required("e2e.p50 < 2s", 17) },
            Check {
                waive: Some(Waiver { until: "2027-01-31".to_owned(), reason: "issue 412".to_owned() }),
                ..required("e2e.max < 9s", 18)
            },
        ];
        let plan = plan(&[50], 0);
        let power = Power {
            violates_at: vec![(50, Some(36))],
            proves_at_most: Some(14),
            allowed_share: 0.5,
            detects_share: 0.76,
        };
        spec.target.replica_header = Some("x-served-by".to_owned());
        spec.prompts.tokenizer = Some("tokenizer.json".to_owned());
        spec.prompts.tokens = TokenPolicy::AcceptEstimate;
        spec.load = Load {
            pace: Pace::Closed { concurrency: 4 },
            connections: Connections::Fresh,
            http: Http::Two,
            clock: Clock::User,
            workers: 2,
            ..spec.load
        };
        let rules = [Rule::Mean, Rule::Cluster, Rule::Point, Rule::Quantile, Rule::Extreme];
        let checks = rules.map(|rule| (rule, (rule == Rule::Quantile).then(|| power.clone())));
        let view = PlanView {
            spec: &spec,
            plans: std::slice::from_ref(&plan),
            checks: &checks,
            warnings: &[],
            stored: &[],
            today: TODAY,
            totals: PlanTotals::default(),
        };
        let text = plan_text(&view, Style::Plain);
        assert!(text.lines().all(|line| line.chars().count() <= 80 && line == line.trim_end()), "{text}");
        expect("plan-unusual.txt", &text);
        let ended = PlanView { today: "2027-02-01", ..view };
        let text = plan_text(&ended, Style::Plain);
        assert!(text.contains("  waiver ended 2027-01-31: it counts\n") && !text.contains("WAIVED"), "{text}");
        let last_day = PlanView { today: "2027-01-31T23:59:59Z", ..view };
        assert!(plan_text(&last_day, Style::Plain).contains("  WAIVED until 2027-01-31 (issue 412)\n"));
        spec.target.tls.insecure = true;
        let view = PlanView {
            spec: &spec,
            plans: std::slice::from_ref(&plan),
            checks: &checks,
            warnings: &[],
            stored: &[],
            today: TODAY,
            totals: PlanTotals::default(),
        };
        assert!(plan_text(&view, Style::Plain).contains("NOT CHECKED (`target.tls.insecure`)"));
        let json: serde_json::Value = serde_json::from_str(&plan_json(&view).unwrap()).unwrap();
        assert_eq!((&json["last_arrival_s"], &json["load"]["workers"]), (&json!(null), &json!(2)));
    }

    #[test]
    fn a_cap_is_part_of_the_load() {
        let mut spec = spec();
        spec.load.pace = Pace::Open { rate: PerSecond(2.0), cap: Some(8) };
        spec.load.clock = Clock::Kernel;
        spec.load.http = Http::One;
        let (plan, checks) = (plan(&[2], 1), powers());
        let text = plan_text(
            &PlanView {
                spec: &spec,
                plans: std::slice::from_ref(&plan),
                checks: &checks,
                warnings: &[],
                stored: &[],
                today: TODAY,
                totals: PlanTotals::default(),
            },
            Style::Plain,
        );
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let cap = "open loop, 2/s, Poisson arrivals, at most 8 at once, and waiting for a slot counts";
        assert!(words.contains(cap), "{text}");
        assert!(words.contains("HTTP/1.1, the kernel's clock"), "{text}");
    }

    #[test]
    fn a_closed_loop_wider_than_its_requests_says_so() {
        let loaded = |concurrency: u32| {
            let mut spec = spec();
            spec.load.pace = Pace::Closed { concurrency };
            let (plan, checks) = (plan(&[30, 50], 1), powers());
            let text = plan_text(
                &PlanView {
                    spec: &spec,
                    plans: std::slice::from_ref(&plan),
                    checks: &checks,
                    warnings: &[],
                    stored: &[],
                    today: TODAY,
                    totals: PlanTotals::default(),
                },
                Style::Plain,
            );
            text.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        assert!(loaded(50).contains("closed loop, 50 at once, seed"), "{}", loaded(50));
        let wide = "closed loop, 200 at once (at most 50 are ever open: all of them from the start), seed";
        assert!(loaded(200).contains(wide), "{}", loaded(200));
    }

    #[test]
    fn every_metric_is_explained() {
        let rules = [
            ("tpot.p95", Rule::Quantile),
            ("ttft.mean", Rule::Mean),
            ("itl.p95", Rule::Cluster),
            ("ttft.p95.all", Rule::Quantile),
            ("tpot.effective", Rule::Point),
            ("errors.5xx", Rule::Counted),
            ("errors.5xx.count", Rule::Counted),
            ("attainment", Rule::Rate),
            ("output_tokens.min", Rule::Extreme),
            ("client.cpu", Rule::Point),
        ];
        let texts = rules.map(|(name, rule)| explain(name.parse().unwrap(), rule));
        expect("explain.txt", &texts.join("\n---\n\n"));
        let series = [Series::Tpot, Series::Icl, Series::Ttft, Series::CapWait, Series::Headers].map(explain_series);
        expect("explain-series.txt", &series.join("\n---\n\n"));
        let send_lag = explain("send_lag.p95".parse().unwrap(), Rule::Quantile);
        assert!(send_lag.contains("`send_lag.p95 < 5ms`"), "{send_lag}");
        let errors = explain_errors();
        assert!(errors.lines().all(|line| line.chars().count() <= 80 && line == line.trim_end()), "{errors}");
        expect("explain-errors.txt", &errors);
        for name in Metric::common_names() {
            let text = explain(name.parse().unwrap(), Rule::Point);
            assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
            let mut pieces = text.split('`').filter(|piece| piece.starts_with(&format!("{name} ")));
            let example = pieces.next_back().unwrap();
            let bound = example.rsplit(' ').next().unwrap().parse::<Quantity>().unwrap();
            assert_eq!(bound.unit, name.parse::<Metric>().unwrap().unit(), "{example}");
        }
    }

    fn at(line: u32, column: u32) -> Option<Place> {
        Some(Place { file: "gates/chat.yaml".to_owned(), line, column })
    }

    #[test]
    fn diagnostics_point_at_the_spec() {
        let long = format!("  name: {} end", "é".repeat(300));
        let list = [
            Diagnostic {
                severity: Severity::Error,
                place: at(14, 5),
                message: "unknown metric `tfft.p95`".to_owned(),
                snippet: Some(Snippet { text: "  - tfft.p95 < 800ms".to_owned(), column: 5, length: 8 }),
                hint: Some("did you mean `ttft.p95`?".to_owned()),
                missing: None,
            },
            Diagnostic {
                severity: Severity::Warning,
                place: at(9, 3),
                message: "a tab\tand \u{1b}[31man escape\u{1b}[0m in the message".to_owned(),
                snippet: Some(Snippet { text: "\t\trps:\t2 \u{1b}".to_owned(), column: 3, length: 4 }),
                hint: None,
                missing: None,
            },
            Diagnostic {
                severity: Severity::Error,
                place: at(100, 309),
                message: "a line too long to show".to_owned(),
                snippet: Some(Snippet { text: long, column: 309, length: 99 }),
                hint: None,
                missing: None,
            },
            Diagnostic {
                severity: Severity::Error,
                place: at(3, 90),
                message: "a caret past the end".to_owned(),
                snippet: Some(Snippet { text: "key:".to_owned(), column: 90, length: 0 }),
                hint: None,
                missing: None,
            },
            Diagnostic {
                severity: Severity::Error,
                place: None,
                message: "`--set load.rsp=3`: no such key".to_owned(),
                snippet: None,
                hint: Some("did you mean `load.rps`?".to_owned()),
                missing: None,
            },
        ];
        let text = diagnostics(&list, Style::Plain);
        expect("diagnostics.txt", &text);
        let coloured = diagnostics(&list, Style::Colour);
        let plain = coloured.lines().map(gate_report::escape::terminal).map(|line| line + "\n");
        assert_eq!(plain.collect::<String>(), text);
        assert!(!diagnostics(&list[..1], Style::Plain).contains("1 error"));
        assert_eq!(diagnostics(&[], Style::Plain), "");
    }

    fn sample(index: u32, outcome: Outcome, status: Option<u16>) -> Sample {
        let sent = Nanos(i64::from(index) * 500_000_123);
        let reached = |millis: i64| (outcome == Outcome::Ok).then(|| sent + Nanos::from_millis(millis) + Nanos(1));
        Sample {
            intended: sent,
            start: Some(sent),
            sent: Some(sent),
            first_event: reached(200),
            first_token: reached(312),
            first_answer: reached(312),
            last_token: reached(1312),
            end: reached(1320),
            outcome,
            status,
            usage: (outcome == Outcome::Ok).then_some(Usage {
                input: Some(548),
                output: Some(101),
                ..Usage::default()
            }),
            ..Sample::unsent(&request(index))
        }
    }

    #[test]
    fn samples_are_one_row_for_each_measured_request() {
        let header = RunHeader::new(spec(), &plan(&[4], 1), "0.1.0", "r", "2026-11-29T16:37:00Z");
        let measured = vec![
            sample(0, Outcome::Ok, Some(200)),
            sample(1, Outcome::Http5xx, Some(503)),
            sample(2, Outcome::StreamError, Some(200)),
            sample(3, Outcome::Connect, None),
        ];
        let end = RunEnd::new(EndReason::Completed, 4, Nanos::ZERO);
        let mut run = Run::new(header, vec![sample(0, Outcome::Ok, Some(200))], measured, Some(end));

        let failed = |send_s: &str, status: &str| {
            format!(
                "{{\"send_s\":{send_s},\"status\":{status},\"ttft_ms\":null,\"tpot_ms\":null,\"e2e_ms\":null,\
                 \"output_tokens\":null,\"input_tokens\":null,\"arm\":\"target\"}}\n"
            )
        };
        let ok = "{\"send_s\":0.0,\"status\":200,\"ttft_ms\":312.000001,\"tpot_ms\":10.0,\"e2e_ms\":1312.000001,\
                  \"output_tokens\":101,\"input_tokens\":548,\"arm\":\"target\"}\n";
        let expected = [
            ok.to_owned(),
            failed("0.500000123", "503"),
            failed("1.000000246", "\"stream_error\""),
            failed("1.500000369", "\"connect\""),
        ];
        assert_eq!(samples(&run), expected.concat());

        run.header.scenarios.push("long".to_owned());
        run.samples.truncate(1);
        run.samples[0].scenario = 1;
        run.samples[0].arm = Arm::Reference;
        run.samples[0].pair = Some(3);
        assert!(samples(&run).ends_with("\"scenario\":\"long\",\"arm\":\"reference\",\"pair\":3}\n"));
        run.samples[0].turn = 2;
        assert!(samples(&run).contains("\"scenario\":\"long\",\"turn\":2,\"arm\":\"reference\""));
        // Of a long run the requests are kept in short, and all of them are rows.
        run.briefs = [&run.samples[0], &sample(1, Outcome::Http5xx, Some(503))].map(Brief::from).to_vec();
        let long = samples(&run);
        assert_eq!(long.lines().count(), 2);
        assert!(long.starts_with("{\"send_s\":0.0,\"status\":\"ok\",\"ttft_ms\":312.0"), "{long}");
        assert!(long.contains("\"turn\":2") && long.contains("\"status\":\"http_5xx\""), "{long}");
    }
}
