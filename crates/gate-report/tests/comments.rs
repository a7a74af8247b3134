//! The comment and the summary: what they say, what they cut, and that no text from outside can be markup in them.

#[cfg(test)]
mod goldens;
#[cfg(test)]
mod outside;
#[cfg(test)]
mod strangers;

#[cfg(test)]
mod verdicts;

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use gate_model::{
        Cause, CheckOutcome, CheckVerdict, EndReason, Finding, HttpVersion, Outcome, Override, Policy, Reached, Side,
        Status, Verdict, Waiver,
    };
    use gate_report::{About, ReportError, Source, check_summary, check_title, comment_marker, comment_state, summary};
    use proptest::prelude::*;
    use pulldown_cmark::{Event, Options, Parser, Tag};
    use regex::Regex;

    use crate::goldens::expect;
    use crate::strangers::{DECEIVING, hostile};
    use crate::verdicts::verdict;

    /// The whole comment of a job of which nothing else is known.
    fn whole(verdicts: &[Verdict], job: Option<&str>) -> String {
        gate_report::comment(verdicts, &About { job, ..About::default() }).unwrap()
    }

    /// The same without its two hidden lines.
    fn comment(verdicts: &[Verdict], job: Option<&str>) -> Result<String, ReportError> {
        let text = whole(verdicts, job);
        let hidden = format!("{}\n{}\n\n", comment_marker(job), comment_state(verdicts, None));
        Ok(text.strip_prefix(&hidden).expect("what is hidden comes first").to_owned())
    }

    fn named(name: &str, fixture: &str) -> Verdict {
        Verdict { name: name.to_owned(), ..verdict(fixture) }
    }

    /// A job of several gates, each of which ended in its own way.
    fn several() -> Vec<Verdict> {
        vec![named("chat", "passed"), named("long", "violated"), named("own", "simulated"), named("rag", "over")]
    }

    #[test]
    fn several_gates_share_one_comment() {
        let text = whole(&several(), Some("perf / chat"));
        expect("several.md", &text);
        expect("several-summary.md", &summary(&several()).unwrap());
        assert_eq!(text.lines().next(), Some("<!-- gate:comment job=perf%20%2F%20chat -->"));
        assert_eq!(summary(&several()).unwrap().matches("<!--").count(), 0);
        assert!(!comment(&[], None).unwrap().is_empty());
    }

    #[test]
    fn the_first_line_is_the_verdict_and_names_what_is_not_proven() {
        let text = comment(&[verdict("over")], None).unwrap();
        let first = text.lines().next().unwrap();
        assert!(first.contains("**gate chat: PASSED WITH WARNINGS**"), "{first}");
        let words = "not proven with 100 requests: the build passes; `--strict` would fail it (exit 4).";
        assert!(first.contains(words), "{first}");
        let mut strict = verdict("over");
        strict.policy.inconclusive = Policy::Fail;
        assert!(!comment(&[strict], None).unwrap().contains("`--strict`"));
        let mut violated = verdict("violated");
        violated.checks[2].outcome = CheckOutcome::Inconclusive { side: Side::Over };
        let text = comment(&[violated], None).unwrap();
        let first = text.lines().next().unwrap();
        assert!(first.contains("Also seen beyond the limit and not proven: `tpot.p95 < 50ms`."), "{first}");
        assert!(comment(&[verdict("simulated")], None).unwrap().starts_with("> **SIMULATED ENGINE: "));
    }

    #[test]
    fn a_job_is_named_after_what_costs_the_build() {
        let gates = [named("trial", "mean-cluster"), named("down", "not-ready"), named("fine", "passed")];
        let text = comment(&gates, None).unwrap();
        let expected =
            "⚪ **3 gates: COULD NOT MEASURE (1 violated, 1 could not measure, 1 passed)** – down: Not ready";
        assert!(text.starts_with(expected), "{text}");
        assert!(text.contains("### 🔴 trial: VIOLATED (report only)"), "{text}");
        let text = comment(&[named("fine", "passed"), named("trial", "mean-cluster")], None).unwrap();
        assert!(text.lines().next().unwrap().contains("**REPORT ONLY: the build passes all the same"), "{text}");
    }

    #[test]
    fn a_waiver_is_said_once_in_the_first_line() {
        let text = comment(&[verdict("waived")], None).unwrap();
        let first = text.lines().next().unwrap();
        assert_eq!(first.matches("ttft.p95").count(), 1, "{first}");
        assert!(first.contains("WAIVED until 2027-01-31 (held up by a pipe") && first.contains("`tpot.p95"), "{first}");
    }

    #[test]
    fn failures_stand_where_a_check_on_errors_says_so() {
        let mut violated = verdict("violated");
        let failure = "- 1 request ended http\\_5xx";
        let folded = |text: &str| text.find("<details>").unwrap() < text.find(failure).unwrap();
        assert!(folded(&comment(std::slice::from_ref(&violated), None).unwrap()));
        violated.checks[3].outcome = CheckOutcome::Violated;
        let text = comment(&[violated], None).unwrap();
        assert!(!folded(&text) && text.matches(failure).count() == 1, "{text}");
        assert!(text.lines().next().unwrap().contains("1 more required check is violated."), "{text}");
    }

    /// A verdict with very many checks, each of which failed in its own long words.
    fn huge(checks: usize) -> Verdict {
        let mut huge = verdict("violated");
        let check = huge.checks[1].clone();
        let passed = huge.checks[0].clone();
        huge.checks = (0..checks)
            .map(|number| {
                let mut check = if number % 3 == 0 { passed.clone() } else { check.clone() };
                check.check.bound_text = format!("{number}ms");
                if number % 3 == 1 {
                    let reason = EndReason::Refused(format!("{number} {}", "a|<b>@c ".repeat(40)));
                    check.outcome = CheckOutcome::CouldNotMeasure { cause: Cause::NotRun(reason) };
                }
                check
            })
            .collect();
        huge.findings = (0..checks)
            .map(|count| Finding::Failure {
                outcome: Outcome::Decode,
                count: count as u32,
                message: "long ".repeat(60),
            })
            .collect();
        huge
    }

    #[test]
    fn a_huge_comment_loses_passed_rows_then_details_then_rows_then_gates_and_says_so() {
        let rows = |text: &str| text.lines().filter(|line| line.starts_with("| ") && line.contains(" | `")).count();
        let passed = |text: &str| text.matches("🟢").count();
        let all = comment(&[huge(60)], None).unwrap();
        assert!(rows(&all) == 60 && passed(&all) == 20 && !all.contains("left out, since"), "{}", all.len());

        let few = comment(&[huge(120)], None).unwrap();
        assert!((60_000..65_536).contains(&few.len()), "{} {} {}", few.len(), rows(&few), passed(&few));
        assert!(rows(&few) == 80 + passed(&few) && passed(&few) < 40, "{}", rows(&few));
        assert!(few.contains(&format!("{} more checks of this gate are left out", 120 - rows(&few))));

        let details = comment(&[huge(300)], None).unwrap();
        assert!((60_000..65_536).contains(&details.len()), "{}", details.len());
        assert_eq!((rows(&details), passed(&details)), (200, 0));
        assert!(details.contains("lines of detail are left out"));

        for checks in [1_000, 2_000] {
            let text = whole(&[huge(checks)], None);
            if checks == 1_000 {
                expect("huge.md", &text);
            }
            assert!((60_000..65_536).contains(&text.len()), "{}", text.len());
            assert!(text.contains("🔴 **gate chat: VIOLATED** – ttft.p95 is 1,040 ms"));
            let shown = rows(&text);
            assert!(text.contains(&format!("{} more checks of this gate are left out", checks - shown)));
            assert_eq!(text.matches("**VIOLATED**").count(), (checks / 3).min(shown), "what passed goes first");
        }

        let gates = 200;
        let many = whole(&vec![huge(3); gates], None);
        assert!(many.len() < 65_536 && many.contains("left out"), "{}", many.len());
        assert!(many.contains(&format!("🔴 **{gates} gates: VIOLATED ({gates} violated)**")));
        let shown = many.matches("### ").count();
        assert!(shown == gates || many.contains(&format!("{} more gates are left out", gates - shown)), "{many}");
        let more = summary(&[huge(1_000)]).unwrap();
        assert!(more.len() > 65_536 && more.len() < 1 << 20);
        let check = check_summary(&[huge(1_000)]).unwrap();
        assert!((60_000..=65_535).contains(&check.len()) && !check.contains("<!--"));
    }

    #[test]
    fn a_comment_says_which_job_and_commit_it_is_of() {
        let advice = ["This token can only read: _ask_ @owner".to_owned()];
        let about = About {
            job: Some("perf"),
            run: Some(7),
            commit: Some("0123456789abcdef0123"),
            page: Some("https://forge.example/a_b/runs/1?x=<y>)&z=é"),
            unjudged: None,
            artifact: None,
            source: Source::Elsewhere,
            advice: &advice,
        };
        let verdicts = [verdict("violated")];
        let text = gate_report::comment(&verdicts, &about).unwrap();
        let mut lines = text.lines();
        assert_eq!(lines.next(), Some("<!-- gate:comment job=perf -->"));
        assert_eq!(lines.next(), Some(comment_state(&verdicts, Some(7)).as_str()));
        assert!(lines.next() == Some("") && lines.next().unwrap().starts_with("🔴 **gate chat: VIOLATED**"));
        assert!(
            text.contains("\n> The numbers come from the pull request's own job, which can say anything"),
            "{text}"
        );
        assert!(text.contains("\n- This token can only read: \\_ask\\_ @&#8203;owner\n"), "{text}");
        assert!(!text.contains("report.html"), "{text}");
        let about = About { artifact: Some("https://forge.example/runs/1#artifacts"), ..about };
        let text = gate_report::comment(&verdicts, &about).unwrap();
        let link = "<sub>`report.html` and the requests are in [the job's artifacts](<https://forge.example/runs/1#artifacts>).</sub>";
        assert!(text.contains(link), "{text}");
        let last = "<sub>commit `0123456789ab` · [job](<https://forge.example/a_b/runs/1?x=%3Cy%3E%29&z=%C3%A9>)</sub>";
        assert_eq!(text.lines().last(), Some(last));
        for (page, commit) in [("javascript:alert(1)", ""), ("https://", ""), ("ftp://e.org", "")] {
            let about =
                About { page: Some(page), commit: Some(commit).filter(|id| !id.is_empty()), ..About::default() };
            let text = gate_report::comment(&verdicts, &about).unwrap();
            assert!(!text.contains("[job]") && !text.contains("<sub>commit"), "{page}");
        }
    }

    #[test]
    fn a_state_changes_with_what_is_said_and_not_with_numbers() {
        let state = |verdict: &Verdict| comment_state(std::slice::from_ref(verdict), None);
        let violated = verdict("violated");
        let shown = state(&violated);
        let digest = shown.strip_prefix("<!-- gate:state ").and_then(|rest| rest.strip_suffix(" -->")).unwrap();
        assert!(digest.len() == 16 && digest.chars().all(|digit| "0123456789abcdef".contains(digit)), "{digest}");
        assert_eq!(
            comment_state(std::slice::from_ref(&violated), Some(12)),
            format!("<!-- gate:state run=12 {digest} -->")
        );
        let mut again = violated.clone();
        again.checks[0].seen = Some(gate_model::Quantity::time(gate_model::Nanos::from_millis(313)));
        again.run.run_id = "another".to_owned();
        again.run.sent += 1;
        again.findings.clear();
        assert_eq!(state(&again), shown);
        let changed: [fn(&mut Verdict); 5] = [
            |verdict| verdict.name.push('x'),
            |verdict| verdict.status = Status::Passed,
            |verdict| verdict.checks[0].outcome = CheckOutcome::Violated,
            |verdict| verdict.checks[1].check.bound_text.push('0'),
            |verdict| drop(verdict.checks.pop()),
        ];
        for (number, change) in changed.into_iter().enumerate() {
            let mut verdict = violated.clone();
            change(&mut verdict);
            assert_ne!(state(&verdict), shown, "{number}");
        }
        let two = [named("a", "passed"), named("b", "violated")];
        let swapped = [named("b", "passed"), named("a", "violated")];
        assert_ne!(comment_state(&two, None), comment_state(&swapped, None));
    }

    #[test]
    fn a_check_run_has_a_title_of_one_plain_line() {
        let title = check_title(&[verdict("over")]);
        assert!(title.starts_with("gate chat: PASSED WITH WARNINGS – ttft.p95 is 902 ms, limit 800 ms"), "{title}");
        assert!(title.contains("--strict would fail it") && !title.contains(['`', '*']), "{title}");
        assert!(check_title(&[verdict("simulated")]).starts_with("SIMULATED ENGINE: gate "));
        assert!(check_title(&several()).starts_with("SIMULATED ENGINE: 4 gates: VIOLATED (1 violated"));
        assert_eq!(check_title(&[]), "No gate – Nothing was judged.");
        let long = check_title(&[filled(&"`x\n\u{1b}[31m漢".repeat(200))]);
        assert!(long.chars().count() <= 255 && !long.contains(|symbol: char| symbol.is_control()), "{long}");
        assert_eq!(check_summary(&several()).unwrap(), summary(&several()).unwrap());
    }

    #[test]
    fn sixty_relative_checks_fit_a_comment() {
        let relative = verdict("relative-violated");
        let checks = |place: usize| relative.checks.iter().map(move |check| (place, check));
        let checks = (0..10).flat_map(checks).map(|(place, check)| {
            let mut check = check.clone();
            check.check.bound_text = format!("{} or {place}ms", check.check.bound_text);
            check
        });
        let many = Verdict { checks: checks.collect(), ..relative.clone() };
        assert_eq!(many.checks.len(), 60);
        let text = comment(&[many], None).unwrap();
        assert!(text.len() < 65_536 && !text.contains("left out, since a comment"), "{}", text.len());
        assert_eq!(text.matches(" (5\u{a0}runs) |").count(), 40);
        let rows: Vec<&str> = text.lines().filter(|line| line.starts_with('|')).collect();
        assert!(rows.iter().all(|row| row.matches('|').count() == 8), "{text}");
    }

    #[test]
    fn a_change_that_loosens_its_gate_is_not_folded_away() {
        let place = |name: &str| {
            let text = comment(&[verdict(name)], None).unwrap();
            let details = text.find("<details>").unwrap();
            text.find("its own gate").unwrap() < details
        };
        assert!(place("spec-changed") && !place("spec-tightened"));
    }

    #[test]
    fn since_when_stands_above_the_fold_where_something_is_violated() {
        let parts = |name: &str| {
            let text = comment(&[verdict(name)], None).unwrap();
            let (above, below) = text.split_once("<details>").unwrap();
            (above.to_owned(), below.to_owned())
        };
        let since = "Since when: after `a1b2c3d` of 2026-11-26, the newest of the 5 stored runs it is compared with, 2 \
                     commits before the fork point `e4f5a6b`; this run measures `9c8b7a6`.";
        let (above, below) = parts("relative-violated");
        assert!(above.contains(since) && !below.contains("ince when"), "{above}");
        let again = "```text\ngit checkout 9c8b7a6f5e4d3c2b1a0f9e8d7c6b5a4f3e2d1c0b\ngate check gates/chat.yaml --baseline .gate/baselines\n```";
        assert!(below.contains(again), "{below}");
        assert!(parts("violated").0.contains("Since when is not known: no earlier run was compared with."));
        assert!(parts("side-by-side").0.contains("Compared side by side with the reference `"));
        let (above, below) = parts("passed");
        assert!(!above.contains("ince when") && !below.contains("ince when"));
        assert!(
            above.contains("ttft.p50 312 ms (\\< 400 ms)") || above.contains("ttft.p50 312 ms (&lt; 400 ms)"),
            "{above}"
        );
    }

    #[test]
    fn the_table_explains_its_words_and_only_its_own() {
        let legend = |name: &str| comment(&[verdict(name)], None).unwrap();
        assert!(legend("passed").contains("`holds, not proven`: keeps its limit here"));
        assert!(legend("over").contains("`not proven`: seen beyond its limit"));
        assert!(!legend("passed").contains("seen beyond its limit"));
        assert!(!legend("not-ready").contains("`holds, not proven`"));
        let sample = "50 requests judged. In 4 of 5 runs this finds 64 % of requests over in `ttft.p50 &lt; 400ms`";
        assert!(legend("violated").contains("50 requests judged. In 4 of 5 runs this finds"), "{sample}");
    }

    #[test]
    fn what_moved_has_its_causes_and_pictures() {
        let mut moved = verdict("relative-violated");
        let time = |millis: f64| gate_model::Quantity { value: millis * 1e6, unit: gate_model::Unit::Time };
        moved.suspects = vec![gate_model::Suspect {
            scenario: 0,
            phase: gate_model::Phase::Decode,
            against: Some(gate_model::Against::Baseline),
            cause: gate_model::LikelyCause::DecodeSlower {
                tpot: gate_model::Shift { from: time(10.0), to: time(14.0) },
            },
        }];
        let spread = |of, from: f64| gate_model::Spread {
            scenario: 0,
            series: gate_model::Series::Tpot,
            of,
            n: 50,
            quantiles: (0..50).map(|step| (from + f64::from(step) / 10.0) * 1e6).collect(),
        };
        moved.spreads = vec![spread(None, 12.0), spread(Some(gate_model::Against::Baseline), 8.0)];
        let text = comment(&[moved], None).unwrap();
        expect("causes.md", &text);
        assert!(text.contains("**What moved, and why**\n\n- Decode moved most"), "{text}");
        assert!(text.contains("each token takes longer"), "{text}");
        let lines: Vec<&str> =
            text.lines().filter(|line| line.ends_with("now (50)") || line.ends_with("baseline (50)")).collect();
        assert!(lines.len() == 2 && lines[0].starts_with("tpot  ") && lines[0].contains("12 … 16.9 ms"), "{lines:?}");
    }

    #[test]
    fn checks_that_see_nothing_are_named_apart() {
        let mut both = verdict("relative-violated");
        both.checks[1].outcome = CheckOutcome::Inconclusive { side: Side::Blind };
        let first = |verdict: &Verdict| {
            comment(std::slice::from_ref(verdict), None).unwrap().lines().next().unwrap().to_owned()
        };
        let text = first(&both);
        assert!(text.contains("Runs differ too much to judge: `tpot.p50 < baseline + 15%`."), "{text}");
        both.status = Status::PassedWithWarnings;
        let text = first(&both);
        assert_eq!(text.matches("tpot.p50").count(), 1, "the first sentence has it: {text}");
        assert!(text.contains("Also seen beyond the limit and not proven: `throughput"), "{text}");
    }

    /// The same verdict with one text in every place that takes a text from outside.
    fn filled(text: &str) -> Verdict {
        let mut verdict = verdict("waived");
        let text = text.to_owned();
        verdict.name.clone_from(&text);
        verdict.spec_file.clone_from(&text);
        verdict.gate.clone_from(&text);
        verdict.run.run_id.clone_from(&text);
        verdict.run.target.clone_from(&text);
        verdict.run.model = Some(text.clone());
        verdict.run.scenarios = vec![text.clone()];
        verdict.overrides = vec![Override { flag: text.clone(), path: text.clone(), value: text.clone() }];
        verdict.findings = vec![
            Finding::Failure { outcome: Outcome::StreamError, count: 2, message: text.clone() },
            Finding::WaiverEnded { check: text.clone(), until: text.clone() },
            Finding::Replicas { answered: vec![(text.clone(), 2), (text.clone(), 1)], count: 2 },
            Finding::Models { answered: vec![(text.clone(), 2), (text.clone(), 1)], count: 2 },
            Finding::Fingerprints { answered: vec![(text.clone(), 2), (text.clone(), 1)], count: 2 },
            Finding::NoReplicaHeader { header: text.clone() },
        ];
        verdict.run.reached = Some(Reached {
            addresses: vec![text.clone()],
            proxy: Some(text.clone()),
            http: HttpVersion::Http1,
            server: Some(text.clone()),
        });
        for check in &mut verdict.checks {
            check.check.bound_text.clone_from(&text);
        }
        verdict.checks[1].check.waive = Some(Waiver { until: text.clone(), reason: text.clone() });
        crate::outside::compared(&mut verdict, &text);
        unmeasured(&mut verdict.checks[0], &text);
        verdict
    }

    fn unmeasured(check: &mut CheckVerdict, text: &str) {
        let cause = Cause::NotRun(EndReason::Refused(text.to_owned()));
        check.outcome = CheckOutcome::CouldNotMeasure { cause };
    }

    /// What forges make mentions, references, links and signs of in a rendered text.
    static MADE: LazyLock<Vec<Regex>> = LazyLock::new(|| {
        let patterns = [
            r"[@#][\w\x22/]",
            r"(?i)\b(www\.|[a-z]+://|mailto:\S*@\w|GH-[0-9])",
            r"\w@\w",
            r"[!$&][0-9]",
            r#"[%~^*][A-Za-z0-9_"{]"#,
            r":[A-Za-z0-9_+-]+:",
            r"[\[{][^\s\x{200b}]",
        ];
        patterns.map(|pattern| Regex::new(pattern).unwrap()).to_vec()
    });

    /// How many rows, items, code blocks and headings a comment has; panics on any markup that is not its own.
    fn shape(markdown: &str) -> [usize; 4] {
        let mut shape = [0; 4];
        let options = Options::ENABLE_TABLES
            | Options::ENABLE_FOOTNOTES
            | Options::ENABLE_STRIKETHROUGH
            | Options::ENABLE_TASKLISTS
            | Options::ENABLE_MATH
            | Options::ENABLE_GFM;
        let mut prose = String::new();
        let mut in_code = false;
        for event in Parser::new_ext(markdown, options) {
            match event {
                Event::Start(Tag::TableRow) => shape[0] += 1,
                Event::Start(Tag::Item) => shape[1] += 1,
                Event::Start(Tag::CodeBlock(_)) => {
                    shape[2] += 1;
                    in_code = true;
                }
                Event::End(pulldown_cmark::TagEnd::CodeBlock) => in_code = false,
                Event::Start(Tag::Heading { .. }) => shape[3] += 1,
                Event::Start(
                    Tag::Paragraph
                    | Tag::Strong
                    | Tag::Table(_)
                    | Tag::TableHead
                    | Tag::TableCell
                    | Tag::List(None)
                    | Tag::HtmlBlock,
                ) => {}
                Event::Html(html) | Event::InlineHtml(html) => assert!(
                    [
                        "<details>",
                        "</details>",
                        "<sub>",
                        "</sub>",
                        "<summary>Why, what was run, and how to run it again</summary>"
                    ]
                    .contains(&html.trim())
                        || html.trim() == "<!-- gate:comment -->"
                        || (html.starts_with("<!-- gate:state ") && html.trim_end().len() == 36),
                    "{html}"
                ),
                Event::Text(text) if !in_code => prose.push_str(&text),
                Event::Code(_) | Event::Text(_) | Event::End(_) | Event::SoftBreak => prose.push(' '),
                other => panic!("{other:?} in\n{markdown}"),
            }
        }
        // What forges make of a rendered text: mentions, references, links, commands.
        for pattern in MADE.iter() {
            let found = pattern.find(&prose).map(|found| found.as_str().to_owned());
            assert_eq!(found, None, "{pattern} in {prose}");
        }
        assert!(!markdown.lines().any(|line| line.starts_with('/')), "{markdown}");
        // A break is the one that gate writes itself, as a reference; in code none can be one.
        let deceiving = |symbol: char| symbol != '\u{200b}' && DECEIVING.contains(&symbol);
        assert!(
            !markdown.contains(deceiving) && !markdown.replace("<!\u{200b}--", "").contains('\u{200b}'),
            "{markdown}"
        );
        shape
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 192, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn no_text_is_markup(text in hostile()) {
            let plain = whole(&[filled("plain")], None);
            let markdown = whole(&[filled(&text)], None);
            prop_assert!(markdown.len() < 65_536);
            let (expected, found) = (shape(&plain), shape(&markdown));
            prop_assert_eq!(expected, found, "{}", markdown);
            prop_assert_eq!(markdown.matches("<!--").count(), 2);
        }
    }

    #[test]
    fn statuses_have_the_words_of_their_gates() {
        for (status, word) in [(Status::Interrupted, "INTERRUPTED"), (Status::CouldNotMeasure, "COULD NOT MEASURE")] {
            let text = comment(&[Verdict { status, ..verdict("violated") }], None).unwrap();
            assert!(text.contains(&format!("⚪ **gate chat: {word}**")));
        }
    }
}
