//! No text from outside can break a report.

#[cfg(test)]
mod outside;
#[cfg(test)]
mod strangers;

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use gate_model::{
        Cause, CheckOutcome, EndReason, Finding, HttpVersion, Outcome, Override, Reached, Verdict, Waiver,
    };
    use gate_report::escape;
    use gate_report::{
        About, Style, annotations, check_summary, check_title, comment, comment_state, explain_check, junit,
        load_performance, openmetrics, summary, terminal, verdict_json,
    };
    use proptest::prelude::*;
    use quick_xml::Reader;
    use quick_xml::events::Event;

    use crate::strangers::{DECEIVING, hostile};

    fn verdict() -> Verdict {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/reports/violated.json");
        serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
    }

    /// The same verdict with one text in every place that takes a text from outside.
    fn filled(text: &str) -> Verdict {
        let mut verdict = verdict();
        let text = text.to_owned();
        verdict.name.clone_from(&text);
        verdict.spec_file.clone_from(&text);
        verdict.gate.clone_from(&text);
        verdict.run.run_id.clone_from(&text);
        verdict.run.started.clone_from(&text);
        verdict.run.target.clone_from(&text);
        verdict.run.model = Some(text.clone());
        verdict.run.scenarios = vec![text.clone()];
        verdict.overrides = vec![Override { flag: text.clone(), path: text.clone(), value: text.clone() }];
        verdict.run.reached = Some(Reached {
            addresses: vec![text.clone(), text.clone()],
            proxy: Some(text.clone()),
            http: HttpVersion::Http2,
            server: Some(text.clone()),
        });
        let answered = vec![(text.clone(), 2), (text.clone(), 1)];
        verdict.findings = vec![
            Finding::Failure { outcome: Outcome::StreamError, count: 2, message: text.clone() },
            Finding::Replicas { answered: answered.clone(), count: 2 },
            Finding::Models { answered: answered.clone(), count: 2 },
            Finding::Fingerprints { answered, count: 2 },
            Finding::UniformPrompts { scenario: text.clone() },
            Finding::Drifts { scenario: text.clone(), metric: "drift.tpot".parse().unwrap(), per_hour: 0.02 },
            Finding::ScrapesFailed { failed: 1, of: 2, message: text.clone() },
            Finding::EndedEarly(EndReason::Lost { check: text.clone() }),
            Finding::EndedEarly(EndReason::Unreachable { count: 5, message: text.clone() }),
            Finding::EndedEarly(EndReason::Quota(text.clone())),
            Finding::EndedEarly(EndReason::Unauthorized(text.clone())),
        ];
        for check in &mut verdict.checks {
            check.check.bound_text.clone_from(&text);
        }
        verdict.checks[2].check.waive = Some(Waiver { until: text.clone(), reason: text.clone() });
        verdict.checks[2].outcome = CheckOutcome::Waived { otherwise: Box::new(CheckOutcome::Violated) };
        crate::outside::compared(&mut verdict, &text);
        let unmeasured = Cause::NotRun(EndReason::Refused(text));
        verdict.checks[0].outcome = CheckOutcome::CouldNotMeasure { cause: unmeasured };
        verdict
    }

    /// Characters that XML 1.0 forbids.
    fn forbidden(symbol: char) -> bool {
        matches!(symbol, '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}')
    }

    /// Reads the whole file strictly, every attribute and reference resolved; gives the testcases' names.
    fn parse(xml: &str) -> Vec<String> {
        let mut reader = Reader::from_str(xml);
        reader.config_mut().enable_all_checks(true);
        let (mut names, mut depth) = (Vec::new(), 0);
        loop {
            let event = reader.read_event().unwrap();
            match &event {
                Event::Eof => break,
                Event::Start(tag) | Event::Empty(tag) => {
                    depth += i32::from(matches!(event, Event::Start(_)));
                    for attribute in tag.attributes() {
                        let attribute = attribute.unwrap();
                        let value = quick_xml::escape::unescape(&attribute.value).unwrap();
                        assert!(!value.contains(forbidden), "{value:?}");
                        if tag.name().as_ref() == "testcase" && attribute.key.as_ref() == "name" {
                            names.push(value.into_owned());
                        }
                    }
                }
                Event::End(_) => depth -= 1,
                Event::Text(text) => assert!(!text.contains(forbidden) && !text.contains("]]>")),
                Event::GeneralRef(reference) => {
                    let symbol = reference.resolve_char_ref().unwrap();
                    assert!(!symbol.is_some_and(forbidden));
                }
                Event::Decl(_) => {}
                other => panic!("unexpected {other:?}"),
            }
        }
        assert_eq!(depth, 0);
        names
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_text_gives_a_junit_file_that_reads_back(text in hostile()) {
            let verdict = filled(&text);
            let xml = junit(std::slice::from_ref(&verdict)).unwrap();
            prop_assert!(xml.is_ascii() && !xml.contains(forbidden));
            let deceiving = |symbol: &char| xml.contains(&format!("&#x{:X};", u32::from(*symbol)));
            prop_assert_eq!(DECEIVING.into_iter().find(deceiving), None);
            let names = parse(&xml);
            prop_assert_eq!(names.len(), verdict.checks.len());
            for (name, check) in names.iter().zip(&verdict.checks) {
                prop_assert!(name.starts_with(&check.check.metric.to_string()), "{}", name);
            }
        }

        #[test]
        fn any_text_stays_inside_its_line_on_a_terminal(text in hostile()) {
            let plain = terminal(&filled(&text), Style::Plain);
            prop_assert!(!plain.contains(|symbol: char| symbol.is_control() && symbol != '\n'));
            prop_assert!(plain.lines().skip(1).all(|line| line.chars().count() <= 80));
            prop_assert!(!plain.contains(DECEIVING) && !plain.contains("##["));
            prop_assert!(!plain.lines().any(|line| line.trim_start().starts_with("::error")));
        }

        #[test]
        fn any_text_stays_inside_its_line_in_the_steps_of_a_check(text in hostile()) {
            let verdict = filled(&text);
            for check in 0..verdict.checks.len() {
                let steps = explain_check(&verdict, check);
                prop_assert!(!steps.contains(|symbol: char| symbol.is_control() && symbol != '\n'));
                prop_assert!(steps.lines().all(|line| line.chars().count() <= 80));
            }
        }

        #[test]
        fn any_text_survives_json(text in hostile()) {
            let verdict = filled(&text);
            prop_assert_eq!(serde_json::from_str::<Verdict>(&verdict_json(&verdict).unwrap()).unwrap(), verdict);
        }

        #[test]
        fn any_text_comes_back_from_an_annotation(text in hostile()) {
            // A longer name is cut.
            let text: String = text.chars().take(200).collect();
            let verdict = filled(&text);
            let all = annotations(std::slice::from_ref(&verdict));
            prop_assert!(all.split('\n').count() <= 11 && !all.contains('\r'));
            let mut named = 0;
            for line in all.lines() {
                let (word, properties, message) = command(line);
                prop_assert!(["error", "warning", "notice"].contains(&word.as_str()), "{}", line);
                prop_assert!(properties.keys().all(|name| ["file", "line", "col", "title"].contains(&name.as_str())));
                let clean = |text: &str| !text.contains(DECEIVING) && !text.contains(|symbol: char| symbol.is_control());
                prop_assert!(clean(&message) && properties.values().all(|value| clean(value)), "{}", line);
                let name = escape::terminal(&format!("gate {text}: "));
                named += usize::from(properties["title"].starts_with(&name));
            }
            prop_assert!(named + 1 >= all.lines().count(), "{}", all);
        }

        #[test]
        fn any_text_is_data_in_a_workflow_command(text in hostile()) {
            let line = format!("::error file={},title=x::{}",
                escape::workflow_property(&text), escape::workflow_message(&text));
            prop_assert!(!line.contains(['\r', '\n']));
            let (_, properties, message) = command(&line);
            prop_assert_eq!(&properties["file"], &text);
            prop_assert_eq!(&message, &text);
        }

        #[test]
        fn any_text_is_one_line_of_text(text in hostile()) {
            let line = escape::terminal(&text);
            prop_assert!(!line.contains(|symbol: char| symbol.is_control()) && !line.contains(DECEIVING));
            let ends = ['\u{2028}', '\u{2029}'];
            prop_assert!(!line.contains(ends) && !line.contains("##["));
            prop_assert!(!line.split(' ').any(|word| word.starts_with("::error")));
            prop_assert_eq!(&escape::terminal(&line), &line);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_text_is_one_word_of_a_shell(text in hostile()) {
            let text = text.replace('\0', "");
            let script = format!("printf %s {}", escape::shell_word(&text));
            let output = std::process::Command::new("/bin/sh").args(["-c", &script]).output().unwrap();
            prop_assert!(output.status.success());
            prop_assert_eq!(String::from_utf8(output.stdout).unwrap(), text);
        }
    }

    /// A workflow command as GitHub's runner reads it: its name, its properties and its message.
    fn command(line: &str) -> (String, BTreeMap<String, String>, String) {
        let (head, message) = line.strip_prefix("::").unwrap().split_once("::").unwrap();
        let (name, properties) = head.split_once(' ').unwrap_or((head, ""));
        let read = |text: &str| text.replace("%0D", "\r").replace("%0A", "\n");
        let property = |pair: &str| {
            let (name, value) = pair.split_once('=').unwrap();
            let value = read(value).replace("%3A", ":").replace("%2C", ",").replace("%25", "%");
            (name.trim().to_owned(), value)
        };
        let properties = properties.split(',').filter(|pair| !pair.is_empty()).map(property).collect();
        (name.to_owned(), properties, read(message).replace("%25", "%"))
    }

    /// However long a stranger's texts are, a report is not: the bounds are those of texts of 600 characters.
    #[test]
    fn a_megabyte_in_every_place_makes_no_long_report() {
        let piece = "<b>@x `a|b` \u{202e}]]>::error::\u{1b}[31m%0A漢🔴\u{e0061}\\\"$&\n";
        for text in [piece.repeat(1_000_000 / piece.len()), "\u{202e}".repeat(350_000), "漢".repeat(350_000)] {
            let mut verdict = filled(&text);
            verdict.findings.truncate(24);
            let one = std::slice::from_ref(&verdict);
            let started = std::time::Instant::now();
            let about = About { job: Some("perf"), ..About::default() };
            let reports = [
                ("terminal", terminal(&verdict, Style::Plain), 120_000),
                ("junit", junit(one).unwrap(), 600_000),
                ("comment", comment(one, &about).unwrap(), 65_535),
                ("summary", summary(one).unwrap(), 200_000),
                ("check", check_summary(one).unwrap(), 65_535),
                ("title", check_title(one), 4 * 255),
                ("state", comment_state(one, Some(u64::MAX)), 80),
                ("annotations", annotations(one), 60_000),
                ("metrics", openmetrics(one), 600_000),
                ("load", load_performance(one), 20_000),
                ("steps", explain_check(&verdict, 0), 40_000),
                ("steps", explain_check(&verdict, 3), 40_000),
            ];
            for (name, report, most) in reports {
                assert!(report.len() <= most, "{name}: {} bytes", report.len());
            }
            // Far above what it takes: only what grows with the square of a text's length would get there.
            assert!(started.elapsed().as_secs() < 60);
        }
    }
}
