//! Two verdicts side by side: what is said first, what is beside what, and that no text from outside is more than text.

#[cfg(test)]
mod goldens;
#[cfg(test)]
mod verdicts;

#[cfg(test)]
mod tests {
    use gate_model::{Series, Spread, Verdict};
    use gate_report::{Style, versus_markdown, versus_text};
    use pulldown_cmark::{Event, Options, Parser};

    use crate::goldens::{expect, folder};
    use crate::verdicts::verdict;

    fn spread(series: Series, from: f64) -> Spread {
        let quantiles = (0..50).map(|step| (from * (1.0 + f64::from(step) / 25.0)).round()).collect();
        Spread { scenario: 0, series, of: None, n: 50, quantiles }
    }

    /// A run, and a later one that is slower.
    fn both() -> [Verdict; 2] {
        let mut before = verdict("no-baseline");
        let mut after = verdict("relative-violated");
        before.valid = true;
        after.valid = true;
        before.spreads =
            vec![spread(Series::Ttft, 210e6), spread(Series::Tpot, 8e6), spread(Series::OutputTokens, 100.0)];
        after.spreads =
            vec![spread(Series::Ttft, 220e6), spread(Series::Tpot, 12e6), spread(Series::OutputTokens, 100.0)];
        [before, after]
    }

    #[test]
    fn texts_are_as_they_were_read_and_approved() {
        let [before, after] = both();
        expect("versus.txt", &versus_text(&before, &after, Style::Plain));
        expect("versus.md", &versus_markdown(&before, &after));
    }

    #[test]
    fn numbers_stand_side_by_side_with_their_change() {
        let [before, after] = both();
        let text = versus_text(&before, &after, Style::Plain);
        let line = |name: &str| text.lines().find(|line| line.starts_with(name)).unwrap_or_default().to_owned();
        let cells = |name: &str| {
            line(name)
                .split("  ")
                .filter(|cell| !cell.is_empty())
                .map(|cell| cell.trim().to_owned())
                .collect::<Vec<_>>()
        };
        // The 25th of 50 values: 8 × (1 + 24 ÷ 25) ms, and half as much again.
        assert_eq!(cells("tpot.p50"), ["tpot.p50", "15.7 ms", "23.5 ms", "+50 %"]);
        assert_eq!(cells("output_tokens.p50"), ["output_tokens.p50", "196", "196", "0 %"]);
        assert!(text.contains("Nothing is judged here"));
        let [ended, alike] = ["Checks that ended in another way:", "Checks that ended alike:"]
            .map(|heading| text.find(heading).unwrap());
        assert!(
            ended < alike
                && text[ended..alike]
                    .contains("tpot.p50 < baseline + 15%\n      no baseline (10.1 ms) → VIOLATED (14.1 ms)"),
            "{text}"
        );
        assert!(text.contains(" before (50)\n") && text.contains(" after (50)\n"), "{text}");
    }

    #[test]
    fn what_makes_them_hard_to_compare_is_said_first() {
        let [before, mut after] = both();
        let apart = "What differs beside the numbers";
        let alike = versus_text(&before, &before, Style::Plain);
        assert!(!alike.contains(apart) && !alike.contains("another way"), "{alike}");
        after.run.model = Some("another".to_owned());
        after.run.scenarios = vec!["other".to_owned()];
        after.definitions += 1;
        after.valid = false;
        let text = versus_text(&before, &after, Style::Plain);
        let first = text.find(apart).unwrap();
        for words in [
            "model: llama-3.1-8b-instruct before, another after",
            "scenarios: chat before, other after",
            "definitions of metrics: ",
            "the run after is not one to compare with",
        ] {
            let place = text.find(words).unwrap_or_else(|| panic!("{words}: {text}"));
            assert!(first < place && place < text.find("number ").unwrap(), "{text}");
        }
        let is_swapped =
            |before: &Verdict, after: &Verdict| versus_text(before, after, Style::Plain).contains("was started after");
        let mut later = before.clone();
        later.run.started = "2099-01-01T00:00:00Z".to_owned();
        assert!(is_swapped(&later, &before) && !is_swapped(&before, &later));
        // A scenario that only one has stands alone.
        let lines: Vec<&str> = text.lines().filter(|line| line.contains("ttft.p50 ")).collect();
        assert!(lines.iter().any(|line| line.starts_with("chat: ttft.p50") && line.ends_with('–')), "{text}");
        assert!(text.contains("not checked"), "{text}");
    }

    #[test]
    fn any_two_verdicts_fit_80_columns_and_are_plain_text() {
        let names =
            ["passed", "violated", "hostile", "together", "side-by-side", "not-ready", "soak", "ramp", "interrupted"];
        for one in names {
            for other in names {
                let text = versus_text(&verdict(one), &verdict(other), Style::Plain);
                for line in text.lines() {
                    assert!(line.chars().count() <= 80 && line == line.trim_end(), "{one} {other}: {line:?}");
                }
                assert!(!text.contains(|symbol: char| symbol.is_control() && symbol != '\n'), "{one} {other}");
                let coloured = versus_text(&verdict(one), &verdict(other), Style::Colour);
                let plain: String = coloured.lines().map(|line| gate_report::escape::terminal(line) + "\n").collect();
                assert_eq!(plain, text, "{one} {other}");
                let markdown = versus_markdown(&verdict(one), &verdict(other));
                let is_html = |event: &Event<'_>| matches!(event, Event::Html(_) | Event::InlineHtml(_));
                let made = Parser::new_ext(&markdown, Options::ENABLE_TABLES).find(is_html);
                assert_eq!(made, None, "{one} {other}: {markdown}");
                assert!(!markdown.contains('\u{1b}'), "{markdown}");
            }
        }
    }

    #[test]
    fn very_many_checks_and_long_texts_are_bounded() {
        let mut huge = verdict("violated");
        huge.checks = (0..5_000)
            .map(|number| {
                let mut check = huge.checks[number % 5].clone();
                check.check.bound_text = format!("{number}{}", "漢".repeat(3_000));
                check
            })
            .collect();
        huge.run.target = "t".repeat(1_000_000);
        let text = versus_markdown(&huge, &verdict("passed"));
        assert!(text.len() < 1 << 20 && text.contains("more lines are left out"), "{}", text.len());
        assert!(folder().exists());
    }
}
