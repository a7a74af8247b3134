//! Every verdict of `fixtures/reports` gives exactly the text and the JUnit file that lie beside it.
//!
//! `UPDATE_FIXTURES=1` writes them anew: read the difference before you keep it.

#[cfg(test)]
mod goldens;

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use gate_model::{
        Against, Cause, CheckOutcome, EndReason, HttpVersion, LikelyCause, Nanos, Phase, Policy, Quantity, Reached,
        Shift, Side, Status, Suspect, Verdict,
    };
    use gate_report::{About, More, Style, comment, junit, terminal, terminal_with, verdict_json};
    use quick_xml::events::Event;

    use crate::goldens::{expect, folder};

    /// Each verdict with its name.
    fn verdicts() -> Vec<(String, Verdict)> {
        let mut paths: Vec<PathBuf> = fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()).collect();
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
        paths.sort();
        let named = paths.into_iter().map(|path| {
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            let text = fs::read_to_string(&path).unwrap();
            (name.clone(), serde_json::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}")))
        });
        let named: Vec<_> = named.collect();
        assert!(named.len() >= 10);
        named
    }

    #[test]
    fn texts_are_as_they_were_read_and_approved() {
        for (name, verdict) in verdicts() {
            expect(&format!("{name}.txt"), &terminal(&verdict, Style::Plain));
            expect(&format!("{name}.xml"), &junit(std::slice::from_ref(&verdict)).unwrap());
            expect(&format!("{name}.md"), &comment(std::slice::from_ref(&verdict), &About::default()).unwrap());
        }
    }

    #[test]
    fn a_text_fits_80_columns_and_names_every_check() {
        for (name, verdict) in verdicts() {
            let text = terminal(&verdict, Style::Plain);
            for line in text.lines() {
                assert!(line.chars().count() <= 80, "{name}: {line}");
                assert_eq!(line, line.trim_end(), "{name}");
            }
            assert!(!text.contains(|symbol: char| symbol.is_control() && symbol != '\n'), "{name}");
            let heading = "SIMULATED ENGINE";
            assert_eq!(text.starts_with(heading), verdict.simulated, "{name}");
            for check in &verdict.checks {
                assert!(text.contains(&check.check.metric.to_string()), "{name}");
            }
        }
    }

    #[test]
    fn colour_adds_escape_codes_only() {
        for (name, verdict) in verdicts() {
            let coloured = terminal(&verdict, Style::Colour);
            assert!(coloured.contains('\u{1b}'), "{name}");
            let lines = coloured.lines().map(gate_report::escape::terminal).map(|line| line + "\n");
            assert_eq!(lines.collect::<String>(), terminal(&verdict, Style::Plain), "{name}");
        }
    }

    /// What stands at the end of a verdict's text where its report and its journal are known.
    fn ending(name: &str, change: impl FnOnce(&mut Verdict)) -> String {
        let (_, mut verdict) = verdicts().into_iter().find(|(known, _)| known == name).unwrap();
        change(&mut verdict);
        let more = More { report: Some(".gate/chat/report.html"), run: Some(".gate/chat/run.jsonl") };
        let text = terminal_with(&verdict, Style::Plain, more);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        let plain = terminal(&verdict, Style::Plain);
        text.strip_prefix(&plain).unwrap_or_else(|| panic!("the text, and then more: {text}")).to_owned()
    }

    #[test]
    fn a_text_ends_with_how_to_see_more() {
        let report = "report        .gate/chat/report.html\n";
        assert_eq!(ending("passed", |_| {}), report);
        let explain = "explain       gate explain 'ttft.p95 < 800ms' --run .gate/chat/run.jsonl\n";
        assert_eq!(ending("violated", |_| {}), format!("{report}{explain}"));
        let long = ending("relative-violated", |verdict| drop(verdict.checks.remove(1)));
        let broken = "explain       gate explain 'throughput.output_tokens >= baseline - 10%' \\\n                --run \
                      .gate/chat/run.jsonl\n";
        assert_eq!(long, format!("{report}{broken}"));
        // Cut or cleaned it would be another command.
        for bound in ["8".repeat(100), "800ms\u{1b}[31m".to_owned()] {
            let hostile = ending("violated", |verdict| {
                verdict.checks.retain(|check| check.outcome == CheckOutcome::Violated);
                verdict.checks.iter_mut().for_each(|check| check.check.bound_text = bound.clone());
            });
            assert!(!hostile.contains('\u{1b}') && !hostile.contains("888…"), "{hostile}");
        }
    }

    #[test]
    fn a_likely_cause_stands_before_the_conclusion() {
        let (_, mut verdict) = verdicts().into_iter().find(|(name, _)| name == "relative-violated").unwrap();
        let shift = Shift { from: Quantity::time(Nanos::from_millis(10)), to: Quantity::time(Nanos::from_millis(14)) };
        let cause = LikelyCause::DecodeSlower { tpot: shift };
        verdict.suspects = vec![Suspect { scenario: 0, phase: Phase::Decode, against: Some(Against::Baseline), cause }];
        let text = terminal(&verdict, Style::Plain);
        let (_, cause) = text.split_once("\nLikely cause:\n").unwrap();
        let (cause, _) = cause.split_once("\n\ngate chat: VIOLATED\n").unwrap();
        assert!(
            cause.starts_with("  - each token takes longer: ") && cause.contains("against the baseline"),
            "{cause}"
        );
    }

    #[test]
    fn json_is_the_verdict() {
        for (name, verdict) in verdicts() {
            let text = verdict_json(&verdict).unwrap();
            assert_eq!(serde_json::from_str::<Verdict>(&text).unwrap(), verdict, "{name}");
            assert!(text.ends_with("}\n"), "{name}");
        }
    }

    /// What a report says of a verdict whose first check could not be measured for this cause.
    fn unmeasured(cause: Cause) -> String {
        let (_, mut verdict) = verdicts().into_iter().find(|(name, _)| name == "passed").unwrap();
        verdict.status = Status::CouldNotMeasure;
        verdict.checks[0].outcome = CheckOutcome::CouldNotMeasure { cause };
        (verdict.checks[0].seen, verdict.checks[0].evidence) = (None, None);
        terminal(&verdict, Style::Plain).split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn the_first_sentence_names_the_metric_without_a_value_and_ends_once() {
        let (_, verdict) = verdicts().into_iter().find(|(name, _)| name == "passed").unwrap();
        let expected = format!("No request had a value for `{}`.", verdict.checks[0].check.metric);
        assert!(unmeasured(Cause::NoData).contains(&expected), "{}", unmeasured(Cause::NoData));
        let question = "is `target.url` `http://`, not `https://`?".to_owned();
        let asked = unmeasured(Cause::NotRun(EndReason::NotReady(question)));
        assert!(asked.contains("not `https://`?") && !asked.contains("?."), "{asked}");
    }

    #[test]
    fn the_first_sentence_is_about_what_costs_the_build() {
        let (_, mut verdict) = verdicts().into_iter().find(|(name, _)| name == "no-baseline-strict").unwrap();
        verdict.checks[0].outcome = CheckOutcome::Inconclusive { side: Side::Over };
        let first = |verdict: &Verdict| {
            let text = terminal(verdict, Style::Plain);
            let (_, conclusion) = text.rsplit_once(&format!("gate {}: ", verdict.name)).unwrap();
            conclusion.lines().nth(1).unwrap().to_owned()
        };
        assert!(first(&verdict).starts_with("ttft.p95 is 521 ms, limit 800 ms"), "{}", first(&verdict));
        verdict.policy.inconclusive = Policy::Pass;
        assert!(first(&verdict).starts_with("3 checks have no baseline; of the first, "), "{}", first(&verdict));
    }

    #[test]
    fn the_way_to_the_target_is_said_where_it_is_news() {
        let said = |http: HttpVersion, address: &str, proxy: Option<&str>| {
            let (_, mut verdict) = verdicts().into_iter().find(|(name, _)| name == "passed").unwrap();
            let proxy = proxy.map(str::to_owned);
            verdict.run.reached = Some(Reached { addresses: vec![address.to_owned()], proxy, http, server: None });
            let text = terminal(&verdict, Style::Plain);
            let (_, target) = text.split_once("\ntarget ").unwrap();
            target.split("\nrequests").next().unwrap().split_whitespace().collect::<Vec<_>>().join(" ")
        };
        let plain = "http://127.0.0.1:8000/v1, model llama-3.1-8b-instruct";
        assert_eq!(said(HttpVersion::Http1, "127.0.0.1", None), plain);
        assert_eq!(said(HttpVersion::Http2, "127.0.0.1", None), format!("{plain}; HTTP/2"));
        assert_eq!(said(HttpVersion::Http1, "203.0.113.7", None), format!("{plain}; HTTP/1.1 at 203.0.113.7"));
        let through = format!("{plain}; HTTP/1.1 through the proxy http://p:1 at 203.0.113.7");
        assert_eq!(said(HttpVersion::Http1, "203.0.113.7", Some("http://p:1")), through);
    }

    #[test]
    fn no_check_is_lost_where_scenarios_are() {
        let (_, mut verdict) = verdicts().remove(0);
        verdict.checks[0].check.scenario = 7;
        verdict.checks[1].check.scenario = 1;
        for scenarios in [vec![], vec!["chat".to_owned()], vec!["chat".to_owned(), "long".to_owned()]] {
            verdict.run.scenarios = scenarios;
            let text = junit(std::slice::from_ref(&verdict)).unwrap();
            assert_eq!(text.matches("<testcase ").count(), verdict.checks.len());
        }
        assert!(junit(&[]).unwrap().contains("<testsuites"));
    }

    #[test]
    fn several_gates_share_one_file_with_unique_testcases() {
        let twice: Vec<Verdict> = verdicts().into_iter().flat_map(|(_, verdict)| [verdict.clone(), verdict]).collect();
        let text = junit(&twice).unwrap();
        let mut reader = quick_xml::Reader::from_str(&text);
        let (mut seen, mut cases) = (std::collections::HashSet::new(), 0);
        loop {
            match reader.read_event().unwrap() {
                Event::Eof => break,
                Event::Start(tag) | Event::Empty(tag) if tag.name().as_ref() == "testcase" => {
                    cases += 1;
                    let value = |name| tag.try_get_attribute(name).unwrap().unwrap().value.into_owned();
                    assert!(seen.insert((value("classname"), value("name"))));
                }
                _ => {}
            }
        }
        assert_eq!(cases, twice.iter().map(|verdict| verdict.checks.len()).sum::<usize>());
        expect("all.xml", &junit(&twice).unwrap());
    }
}
