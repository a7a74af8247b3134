//! Worked steps, calibrations and lists of baselines.

#[cfg(test)]
mod goldens;
#[cfg(test)]
mod strangers;

#[cfg(test)]
mod verdicts;

#[cfg(test)]
mod tests {

    use gate_model::{
        Against, Baseline, BaselineFrom, BaselineKey, Bound, Calibration, Check, CheckCalibration, CheckOutcome,
        Commit, Endpoint, FalseAlarms, GateSpec, Host, Importance, Look, NoBaseline, Noise, Op, Origin, Outcome,
        PassedOver, Place, Plan, PlannedRequest, Relative, Rule, Run, RunHeader, Sample, Side, Status, Verdict, Waiver,
        With,
    };
    use gate_report::{
        About, BaselineRow, Style, annotations, baseline_list, baseline_show, calibration_text, calibration_yaml,
        comment, explain_check, junit, terminal,
    };

    use proptest::prelude::*;

    use crate::goldens::expect;
    use crate::strangers::{DECEIVING, hostile};
    use crate::verdicts::verdict;

    fn fits(text: &str) {
        for line in text.lines() {
            assert!(line.chars().count() <= 80 && line == line.trim_end(), "{line}");
        }
    }

    fn all_steps(name: &str) -> String {
        all_steps_of(&verdict(name))
    }

    fn all_steps_of(verdict: &Verdict) -> String {
        let texts = (0..verdict.checks.len()).map(|check| explain_check(verdict, check));
        texts.collect::<Vec<_>>().join("\n---\n\n")
    }

    #[test]
    fn every_step_of_a_check_is_worked() {
        for name in ["relative-violated", "side-by-side", "relative-edges", "violated", "mean-cluster", "blind"] {
            let text = all_steps(name);
            fits(&text);
            expect(&format!("steps-{name}.txt"), &text);
        }
        for name in ["waived", "hostile", "no-baseline", "not-ready", "answers", "over"] {
            fits(&all_steps(name));
        }
        assert!(explain_check(&verdict("passed"), 99).contains("none of number 99"));
    }

    #[test]
    fn rounding_never_hides_why() {
        let mut verdict = verdict("relative-violated");
        let check = &mut verdict.checks[1];
        check.seen = Some("11.504ms".parse().unwrap());
        let comparison = check.evidence.as_mut().unwrap().comparison.as_mut().unwrap();
        comparison.change = Some(0.1504);
        let said = "11.504 ms seen against 10 ms in 5 stored runs, +15.04 %";
        let limit = "limit 11.5 ms (+15 %)";
        let unwrapped = |text: String| text.replace('\u{a0}', " ").split_whitespace().collect::<Vec<_>>().join(" ");
        let verdicts = std::slice::from_ref(&verdict);
        for text in
            [terminal(&verdict, Style::Plain), comment(verdicts, &About::default()).unwrap(), junit(verdicts).unwrap()]
        {
            let text = unwrapped(text);
            assert!(text.contains(said) && text.contains(limit), "{text}");
        }
        assert!(annotations(verdicts).replace("%25", "%").contains(said));
        assert!(
            terminal(&verdict, Style::Plain).lines().any(|line| line.contains("15%  ") && line.contains("11.504 ms"))
        );
        assert!(junit(verdicts).unwrap().contains("seen:      11.504 ms"));
        assert!(comment(verdicts, &About::default()).unwrap().contains("| 11.504\u{a0}ms |"));

        // What is just at the limit does not keep `<`.
        verdict.checks[1].seen = Some("11.5ms".parse().unwrap());
        assert!(unwrapped(terminal(&verdict, Style::Plain)).contains("under 11.5 ms required (+15 %)"));
    }

    #[test]
    fn medians_that_alone_break_a_bound_are_told() {
        let mut verdict = verdict("side-by-side");
        let check = &mut verdict.checks[1];
        check.outcome = CheckOutcome::Inconclusive { side: Side::Over };
        check.evidence.as_mut().unwrap().comparison.as_mut().unwrap().change = Some(0.016);
        let text = terminal(&verdict, Style::Plain).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains("(+10 %), the arms' own numbers break it, and a typical pair does not"), "{text}");
    }

    #[test]
    fn a_waiver_hides_no_missing_baseline() {
        let mut verdict = verdict("no-baseline");
        verdict.status = Status::PassedWithWarnings;
        let waived = verdict.checks.iter_mut().find(|check| matches!(check.outcome, CheckOutcome::NoBaseline { .. }));
        let waived = waived.unwrap();
        waived.check.waive = Some(Waiver { until: "2027-01-01".to_owned(), reason: "issue 412".to_owned() });
        waived.outcome = CheckOutcome::Waived { otherwise: Box::new(waived.outcome.clone()) };
        let text = terminal(&verdict, Style::Plain).split_whitespace().collect::<Vec<_>>().join(" ");
        let lead =
            "tpot.p50 is waived until 2027-01-01 (issue 412), and has no baseline. 1 check has no baseline: none";
        assert!(text.contains(lead), "{text}");
    }

    #[test]
    fn a_share_that_was_tested_is_not_compared_as_it_is() {
        let mut verdict = verdict("relative-violated");
        let check = &mut verdict.checks[5];
        check.rule = Rule::Rate;
        check.outcome = CheckOutcome::Inconclusive { side: Side::Over };
        let evidence = check.evidence.as_mut().unwrap();
        (evidence.p_fail, evidence.level) = (Some(0.3527), Some(0.0056));
        let text = comment(std::slice::from_ref(&verdict), &About::default()).unwrap();
        assert!(text.contains("−6.2 pp, p = 0.3527, above the level 0.0056, by an exact binomial"), "{text}");
        assert!(text.contains("A share is judged by how many requests are bad"), "{text}");
    }

    #[test]
    fn a_file_that_is_not_there_has_its_name() {
        let mut verdict = verdict("no-baseline");
        for check in &mut verdict.checks {
            if let CheckOutcome::NoBaseline { why } = &mut check.outcome {
                *why = NoBaseline::NoSuchFile;
            }
        }
        let from = BaselineFrom::File("old.json".to_owned());
        verdict.baseline.as_mut().unwrap().passed_over = vec![PassedOver { from, why: NoBaseline::NoSuchFile }];
        let text = terminal(&verdict, Style::Plain).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains("2 checks have no baseline: old.json is not there: check the path"), "{text}");
        assert!(text.contains("old.json gave none: the file is not there"), "{text}");
    }

    #[test]
    fn one_stored_run_shows_no_noise() {
        let mut verdict = verdict("blind");
        let comparison = verdict.checks[1].evidence.as_mut().unwrap().comparison.as_mut().unwrap();
        comparison.with = With::Baseline { runs: 1 };
        let texts = [
            explain_check(&verdict, 1),
            terminal(&verdict, Style::Plain),
            junit(std::slice::from_ref(&verdict)).unwrap(),
        ];
        for text in texts {
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(text.contains("taken to differ by") && !text.to_lowercase().contains("runs differ by"), "{text}");
        }
    }

    #[test]
    fn a_wide_table_stays_within_80_columns() {
        let mut verdict = verdict("relative-violated");
        for check in &mut verdict.checks {
            check.check.bound_text = "baseline + 12.345% or 1234.567ms".to_owned();
            check.outcome = CheckOutcome::Inconclusive { side: Side::Blind };
            check.seen = Some("123456789.0123ms".parse().unwrap());
            let evidence = check.evidence.as_mut().unwrap();
            evidence.n = u32::MAX;
            evidence.lower = Some("123456789.01ms".parse().unwrap());
            evidence.upper = Some("123456789.03ms".parse().unwrap());
            if let Some(comparison) = &mut evidence.comparison {
                comparison.limit = Some("123456789.0124ms".parse().unwrap());
                comparison.base = Some("123456789.0122ms".parse().unwrap());
                comparison.change = Some(123_456.789);
            }
        }
        fits(&terminal(&verdict, Style::Plain));
        fits(&all_steps_of(&verdict));
    }

    #[test]
    fn the_looks_are_a_table() {
        let mut verdict = verdict("violated");
        let look = |at, k, p_fail, level| Look { at, n: at, k, p_fail, level };
        verdict.checks[1].looks =
            vec![look(30, 3, Some(0.061), Some(0.0118)), look(50, 9, Some(0.00076), Some(0.0118))];
        let text = explain_check(&verdict, 1);
        expect("steps-looks.txt", &text);
        assert_eq!(text.lines().filter(|line| line.ends_with("0.0118  violated")).count(), 1, "{text}");
        fits(&text);
    }

    fn check(metric: &str, op: Op, bound: Bound, bound_text: &str) -> Check {
        Check {
            scenario: 0,
            metric: metric.parse().unwrap(),
            op,
            bound,
            bound_text: bound_text.to_owned(),
            importance: Importance::Required,
            origin: Origin::Declared(Place { file: "gates/chat.yaml".to_owned(), line: 3, column: 5 }),
            decide: None,
            confidence: Check::CONFIDENCE,
            waive: None,
        }
    }

    fn fixed(metric: &str, op: Op, bound: &str) -> Check {
        check(metric, op, Bound::Absolute(bound.parse().unwrap()), bound)
    }

    fn calibrated(check: Check, seen: &[&str], limit: Option<&str>) -> CheckCalibration {
        CheckCalibration {
            check,
            red: 0,
            over: 0,
            seen: seen.iter().map(|seen| seen.parse().unwrap()).collect(),
            noise: None,
            detects: None,
            limit: limit.map(|limit| limit.parse().unwrap()),
            tolerance: None,
        }
    }

    fn calibration() -> Calibration {
        let relative = |to, change| Bound::Relative(Relative { to, change, step: None });
        let step = Relative { to: Against::Baseline, change: Some(0.1), step: Some("20ms".parse().unwrap()) };
        let implied = Check { origin: Origin::Implied, ..fixed("errors.rate", Op::Less, "5%") };
        let waived = Check {
            confidence: 0.99,
            waive: Some(Waiver { until: "2027-01-31".to_owned(), reason: "issue 412: \"slow\" disk # 2".to_owned() }),
            ..fixed("e2e.p95", Op::Less, "5s")
        };
        let preferred = Check { importance: Importance::Preferred, ..fixed("goodput", Op::AtLeast, "1.5/s") };
        let baseline = || check("tpot.p50", Op::Less, relative(Against::Baseline, Some(0.05)), "baseline + 5%");
        let with = |calibration: CheckCalibration, noise, detects, tolerance| CheckCalibration {
            noise,
            detects,
            tolerance,
            ..calibration
        };
        let seen = ["341.3ms", "352ms", "368.4ms"];
        Calibration {
            name: "chat".to_owned(),
            runs: 10,
            left_out: 1,
            false_alarms: FalseAlarms { red: 0, warned: 1, of: 10, lower: 0.0, upper: 0.2589 },
            checks: vec![
                with(
                    calibrated(fixed("ttft.p50", Op::Less, "400ms"), &seen, Some("441234us")),
                    Some(0.032),
                    Some(0.18),
                    Some(0.1234),
                ),
                CheckCalibration { over: 1, ..calibrated(fixed("ttft.p95", Op::AtMost, "800ms"), &["780ms"], None) },
                with(calibrated(baseline(), &["10ms", "10.4ms"], None), Some(0.021), Some(0.12), Some(0.081)),
                with(
                    calibrated(
                        check("ttft.p95", Op::Less, Bound::Relative(step), "baseline + 10% or 20ms"),
                        &["780ms"],
                        None,
                    ),
                    Some(0.06),
                    None,
                    Some(0.2),
                ),
                calibrated(
                    check("ttft.p50", Op::Less, relative(Against::Reference, Some(0.1)), "reference + 10%"),
                    &["350ms"],
                    None,
                ),
                calibrated(waived, &["3.2s", "3.4s"], Some("4.0731s")),
                calibrated(fixed("attainment", Op::AtLeast, "95%"), &["96%", "100%"], Some("91.26%")),
                calibrated(fixed("errors.5xx.count", Op::Equal, "0"), &["0"], Some("1")),
                calibrated(implied, &["0%", "1%"], Some("4%")),
                with(calibrated(preferred, &["1.94/s"], Some("1.7777/s")), Some(0.01), Some(0.05), Some(0.05)),
            ],
            noise: Noise {
                runs: 10,
                found: "2026-11-29T16:37:00Z".to_owned(),
                tau: [("ttft.p50", 0.032), ("tpot.p50", 0.021), ("ttft.p95", 0.06)]
                    .map(|(metric, tau)| (metric.to_owned(), tau))
                    .into(),
            },
        }
    }

    #[test]
    fn a_calibration_is_text_and_a_block_to_paste() {
        let calibration = calibration();
        let text = calibration_text(&calibration, Style::Plain);
        fits(&text);
        expect("calibration.txt", &text);
        let coloured = calibration_text(&calibration, Style::Colour);
        let plain = coloured.lines().map(gate_report::escape::terminal).map(|line| line + "\n");
        assert_eq!(plain.collect::<String>(), text);
        expect("calibration.yaml", &calibration_yaml(&calibration));
    }

    #[test]
    fn a_proposed_block_is_one_that_a_spec_takes() {
        let block = calibration_yaml(&calibration());
        // What is only offered has to be right too.
        let all: String = block.lines().map(|line| line.replacen("  # - ", "  - ", 1) + "\n").collect();
        for block in [block, all] {
            let text = format!(
                "version: 1\nname: chat\ntarget: {{url: \"http://h/v1\", model: m}}\n\
                 reference: {{url: \"http://r/v1\", model: m}}\nslo: {{ttft: 800ms}}\n{block}"
            );
            let resolved = gate_spec::resolve("gates/chat.yaml", &text, &Default::default(), &[]);
            let spec = resolved.unwrap_or_else(|problems| panic!("{problems:#?}\n{text}")).spec;
            let checks: Vec<String> = spec.checks.iter().map(ToString::to_string).collect();
            assert!(checks.contains(&"ttft.p50 < 442ms".to_owned()), "{checks:?}");
            assert!(checks.contains(&"ttft.p95 < baseline + 20% or 20ms".to_owned()), "{checks:?}");
            assert!(spec.checks.iter().any(|check| check.waive.is_some() && check.confidence == 0.99));
        }
    }

    #[test]
    fn false_alarms_are_told_as_they_are() {
        let told = |red, of, lower, upper| {
            let false_alarms = FalseAlarms { red, warned: 0, of, lower, upper };
            let calibration = Calibration { false_alarms, runs: of, left_out: 0, ..calibration() };
            let text = calibration_text(&calibration, Style::Plain);
            text.lines().skip(2).take(2).collect::<Vec<_>>().join(" ")
        };
        assert!(told(2, 10, 0.0368, 0.5069).contains("2 of 10 runs red, and nothing had changed"));
        assert!(told(2, 10, 0.0368, 0.5069).contains("between 3.68 % and 50.7 %"));
        assert!(told(3, 3, 0.368, 1.0).contains("at least 36.8 %"));
        assert!(told(0, 0, 0.0, 1.0).starts_with("No run could be judged"));
    }

    #[test]
    fn limits_are_spelled_as_a_spec_has_them_and_never_tighter() {
        let line = |metric: &str, op: Op, was: &str, limit: &str| {
            let mut calibration = calibration();
            calibration.checks = vec![calibrated(fixed(metric, op, was), &[], Some(limit))];
            let yaml = calibration_yaml(&calibration);
            let line = yaml.lines().nth(2).unwrap().to_owned();
            line.trim().trim_start_matches("- ").split("  #").next().unwrap().to_owned()
        };
        assert_eq!(line("ttft.p50", Op::Less, "400ms", "400ms"), "ttft.p50 < 400ms");
        assert_eq!(line("ttft.p50", Op::Less, "400ms", "12.3411ms"), "ttft.p50 < 12.4ms");
        assert_eq!(line("write.p50", Op::Less, "1ms", "21.01us"), "write.p50 < 21.1us");
        assert_eq!(line("e2e.p95", Op::Less, "5s", "4.0731s"), "e2e.p95 < 4.08s");
        assert_eq!(line("ttft.p50", Op::Less, "400ms", "0ms"), "ttft.p50 < 0us");
        assert_eq!(line("errors.rate", Op::Less, "5%", "3.001%"), "errors.rate < 3.01%");
        assert_eq!(line("goodput", Op::AtLeast, "1.5/s", "1.7777/s"), "goodput >= 1.77/s");
        assert_eq!(line("errors.5xx.count", Op::AtMost, "2", "2.3"), "errors.5xx.count <= 3");
        let tokens = line("throughput.output_tokens", Op::AtLeast, "100tok/s", "1234.5tok/s");
        assert_eq!(tokens, "throughput.output_tokens >= 1234tok/s");
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_text_comes_back_from_a_proposed_block(text in hostile()) {
            let mut calibration = calibration();
            (calibration.name, calibration.noise.found) = (text.clone(), text.clone());
            for check in &mut calibration.checks {
                check.check.bound_text.clone_from(&text);
                (check.limit, check.tolerance) = (None, None);
                if let Some(waiver) = &mut check.check.waive {
                    waiver.reason.clone_from(&text);
                }
            }
            let yaml = calibration_yaml(&calibration);
            prop_assert!(!yaml.contains(DECEIVING) && !yaml.contains(|symbol: char| symbol.is_control() && symbol != '\n'));
            let read: serde_yaml::Value = serde_yaml::from_str(&yaml).unwrap();
            let clean = gate_report::escape::terminal(&text);
            let is_written = |check: &CheckCalibration| check.check.origin != Origin::Implied;
            let required = |check: &&CheckCalibration| check.check.importance == Importance::Required && is_written(check);
            let checks = calibration.checks.iter().filter(required);
            let entries = read["require"].as_sequence().unwrap();
            prop_assert_eq!(entries.len(), checks.clone().count());
            for (entry, check) in entries.iter().zip(checks) {
                let written = entry.get("check").unwrap_or(entry).as_str().unwrap();
                prop_assert_eq!(written, gate_report::escape::terminal(&check.check.to_string()));
                if check.check.waive.is_some() {
                    prop_assert_eq!(entry["waive"]["reason"].as_str().unwrap(), clean.as_str());
                }
            }
        }
    }

    #[test]
    fn no_text_ends_its_line_in_a_proposed_block() {
        let hostile = "a\n  - x: \"y\" # z\u{1b}[31m' }";
        let mut calibration = calibration();
        calibration.name = hostile.to_owned();
        calibration.noise.found = hostile.to_owned();
        calibration.noise.tau = [(hostile.to_owned(), 0.1)].into();
        for check in &mut calibration.checks {
            check.check.bound_text = hostile.to_owned();
            (check.limit, check.tolerance) = (None, None);
        }
        let yaml = calibration_yaml(&calibration);
        assert_eq!(yaml.lines().count(), 1 + 2 + calibration.checks.len(), "{yaml}");
        let starts = ["# Proposed", "require:", "prefer:", "  - \"", "  - {check: \"", "  # - "];
        assert!(yaml.lines().all(|line| starts.iter().any(|start| line.starts_with(start))), "{yaml}");
        fits(&calibration_text(&calibration, Style::Plain));
    }

    fn row(id: u32, value: Option<&str>) -> BaselineRow {
        BaselineRow {
            id: format!("0193a6c81f2b7e4d9c3a5f60718293{id:02}"),
            started: format!("2026-11-{:02}T09:12:44Z", 10 + id),
            commit: (id != 3).then(|| format!("{id:x}1b2c3d4e5f6")),
            dirty: id == 5,
            key: if id == 4 { "77ffee0011223344".to_owned() } else { "3fa9c1d2e3f40516".to_owned() },
            status: if id == 2 { Status::Violated } else { Status::Passed },
            pinned: id == 1,
            requests: 50,
            value: value.map(|value| ("tpot.p50".parse().unwrap(), value.parse().unwrap())),
        }
    }

    #[test]
    fn baselines_are_a_list_and_a_trend() {
        let plain: Vec<BaselineRow> = (1..=7).map(|id| row(id, None)).collect();
        let text = baseline_list(&plain, Style::Plain);
        fits(&text);
        expect("baselines.txt", &text);
        let values = [Some("9.1ms"), Some("9.4ms"), None, Some("12ms"), Some("9.9ms"), Some("10.2ms"), Some("0ms")];
        let trend: Vec<BaselineRow> = (1..=7).zip(values).map(|(id, value)| row(id, value)).collect();
        let text = baseline_list(&trend, Style::Plain);
        fits(&text);
        expect("baselines-trend.txt", &text);
        let coloured = baseline_list(&trend, Style::Colour);
        let without = coloured.lines().map(gate_report::escape::terminal).map(|line| line + "\n");
        assert_eq!(without.collect::<String>(), text);
        assert!(baseline_list(&[], Style::Plain).contains("`gate check --save-baseline`"));
        let hostile = "\u{1b}[31m\n::error::x".to_owned();
        let hostile = BaselineRow {
            id: hostile.repeat(20),
            started: hostile.clone(),
            commit: Some(hostile.clone()),
            key: hostile,
            ..row(1, None)
        };
        let text = baseline_list(&[hostile], Style::Plain);
        fits(&text);
        assert!(!text.contains('\u{1b}') && text.lines().count() == 4, "{text}");
    }

    fn baseline() -> Baseline {
        let mut spec = GateSpec::new("chat", Endpoint::Url("http://127.0.0.1:8000/v1".to_owned()));
        spec.target.model = Some("llama-3.1-8b-instruct".to_owned());
        let requests: Vec<PlannedRequest> =
            (0..4).map(|index| PlannedRequest { index, ..PlannedRequest::default() }).collect();
        let plan = Plan::new(&spec, vec![4], requests.clone());
        let outcomes = [Outcome::Ok, Outcome::Http5xx, Outcome::Ok, Outcome::Ok];
        let samples = requests.iter().zip(outcomes);
        let samples = samples.map(|(request, outcome)| Sample { outcome, ..Sample::unsent(request) }).collect();
        let header = RunHeader {
            host: Some(Host {
                system: "linux/x86_64".to_owned(),
                cores: 8,
                cpu: Some("AMD EPYC 7763".to_owned()),
                kernel: Some("6.8.0".to_owned()),
                runner: Some("perf-1".to_owned()),
                region: None,
            }),
            commit: Some(Commit {
                id: "a1b2c3d4e5f60718293a4b5c6d7e8f9012345678".to_owned(),
                parents: vec!["0f".to_owned(), "1e".to_owned()],
                branch: Some("main".to_owned()),
                dirty: true,
            }),
            ..RunHeader::new(spec, &plan, "0.1.0", "0193a6c81f2b7e4d9c3a5f6071829301", "2026-11-11T09:12:44Z")
        };
        let parts = [("load.pace", "{\"open\":{\"rate\":2.0,\"cap\":null}}"), ("target.model", "\"llama\"")];
        let parts = parts.map(|(path, value)| (path.to_owned(), value.to_owned()));
        Baseline {
            schema: 1,
            key: BaselineKey { hash: "3fa9c1d2e3f40516".to_owned(), parts: parts.into() },
            saved: "2026-11-11T09:13:20Z".to_owned(),
            status: Status::PassedWithWarnings,
            run: Run::new(header, Vec::new(), samples, None),
        }
    }

    #[test]
    fn a_baseline_shows_all_it_notes() {
        let text = baseline_show(&row(1, Some("9.1ms")), &baseline());
        fits(&text);
        expect("baseline.txt", &text);
        let mut hostile = baseline();
        let text = "\u{1b}[31m\n::error::x".repeat(20);
        hostile.saved.clone_from(&text);
        hostile.key.parts = [(text.clone(), text.clone())].into();
        hostile.run.header.commit = Some(Commit { id: text.clone(), branch: Some(text), ..Commit::default() });
        let shown = baseline_show(&row(1, None), &hostile);
        fits(&shown);
        assert!(!shown.contains('\u{1b}') && !shown.contains("\n::"), "{shown}");
    }
}
