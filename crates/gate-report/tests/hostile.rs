//! No text from outside can break a report.

#[cfg(test)]
mod outside;

#[cfg(test)]
mod tests {
    use gate_model::{CheckOutcome, EndReason, Finding, HttpVersion, Outcome, Override, Reached, Verdict, Waiver};
    use gate_report::{Style, explain_check, junit, terminal, verdict_json};
    use proptest::prelude::*;
    use quick_xml::Reader;
    use quick_xml::events::Event;

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
        let unmeasured = gate_model::Cause::NotRun(gate_model::EndReason::Refused(text));
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

    fn hostile() -> impl Strategy<Value = String> {
        let pieces = prop::sample::select(vec![
            "]]>",
            "]]",
            ">",
            "<![CDATA[",
            "<",
            "&",
            "&#0;",
            "\"",
            "'",
            "\u{1b}[31m",
            "\u{1b}]0;",
            "\u{7}",
            "\0",
            "\n",
            "\r\n",
            "\t",
            "\u{9b}",
            "\u{fffe}",
            "\u{202e}",
            "-->",
            "<?",
            "é",
            "漢",
            "a",
            " ",
        ]);
        prop_oneof![any::<String>(), prop::collection::vec(pieces, 0..12).prop_map(|pieces| pieces.concat())]
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_text_gives_a_junit_file_that_reads_back(text in hostile()) {
            let verdict = filled(&text);
            let xml = junit(std::slice::from_ref(&verdict)).unwrap();
            prop_assert!(xml.is_ascii() && !xml.contains(forbidden));
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
    }
}
