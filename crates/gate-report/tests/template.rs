//! A comment by a user's own template: what it is given, what it may not do, and what its mistakes are told as.

#[cfg(test)]
mod goldens;
#[cfg(test)]
mod verdicts;

#[cfg(test)]
mod tests {
    use gate_model::Verdict;
    use gate_report::{About, CommentTemplate, comment_by, comment_marker, comment_state};

    use crate::goldens::{expect, folder};
    use crate::verdicts::verdict;

    fn rendered(text: &str, verdicts: &[Verdict]) -> Result<String, String> {
        let template = CommentTemplate::parse("own.md.j2", text).map_err(|error| error.to_string())?;
        comment_by(&template, verdicts, &About::default()).map_err(|error| error.to_string())
    }

    fn by(text: &str) -> Result<String, String> {
        rendered(text, &[verdict("relative-violated")])
    }

    #[test]
    fn the_example_of_the_docs_runs_on_every_verdict() {
        let docs = std::fs::read_to_string(folder().join("../../docs/template.md")).unwrap();
        let example = docs.split("```jinja\n").nth(1).unwrap().split("```\n").next().unwrap();
        for name in ["passed", "violated", "relative-violated", "not-ready", "together", "hostile"] {
            let text = rendered(example, &[verdict(name)]).unwrap();
            assert!(text.contains("**gate ") && text.contains("\n- "), "{name}: {text}");
        }
        let text = rendered(example, &[verdict("relative-violated")]).unwrap();
        expect("template.md", &text);
        assert!(text.contains("\n- 🔴 `tpot.p50` `< baseline + 15%`: 14.1"), "{text}");
        assert!(text.contains("Since when: after `a1b2c3d`"), "{text}");
    }

    #[test]
    fn the_hidden_lines_are_not_in_its_hands() {
        let verdicts = [verdict("violated")];
        let text = rendered("<!-- gate:comment job=other -->\n<!-- gate:state 0 -->\nhello", &verdicts).unwrap();
        let hidden = format!("{}\n{}\n\n", comment_marker(None), comment_state(&verdicts, None));
        assert!(text.starts_with(&hidden) && text.matches("<!-- gate:").count() == 2, "{text}");
        assert!(text.ends_with("hello\n"));
    }

    #[test]
    fn mistakes_name_the_file_the_line_and_what_is_wrong() {
        for (text, words) in [
            ("a\n{% if %}\nb", "render the comment by own.md.j2, line 2: syntax error: "),
            (
                "a\n\n{% for gate in gates %}{{ gate.naem }}{% endfor %}",
                "own.md.j2, line 3: there is no `gate.naem`; is it `name`",
            ),
            ("{{ titel }}", "own.md.j2, line 1: there is no `titel`; is it `title`"),
            ("{{ gates[0].verdict.run.modle }}", "line 1: there is no `gates[0].verdict.run.modle`; is it `model`"),
            ("{% for row in rwos %}{% endfor %}", "there is no `rwos`; is it `rows`"),
            ("x\n{{ title | shout }}", "own.md.j2, line 2: unknown filter: filter shout is unknown"),
            ("{{ title | safe }}", "unknown filter"),
            ("{% include 'other' %}", "own.md.j2, line 1: "),
            ("{{ 1 / 0 }}", "own.md.j2, line 1: "),
        ] {
            let error = by(text).unwrap_err();
            assert!(error.contains(words), "{text}: {error}");
            assert!(error.chars().count() < 900 && !error.contains('\n'), "{error}");
        }
    }

    #[test]
    fn a_template_is_bounded() {
        let long = "x".repeat((64 << 10) + 1);
        assert_eq!(
            by(&long).unwrap_err(),
            "read the template own.md.j2: it has 65537 bytes, and a template has at most 65536"
        );
        let endless = "{% for a in range(10000) %}{% for b in range(10000) %}{% set c = a %}{% endfor %}{% endfor %}";
        let error = by(endless).unwrap_err();
        assert_eq!(
            error,
            "render the comment by own.md.j2: it takes more than 5000000 steps: does each of its loops end?"
        );
        for text in [
            "{% for a in range(9000) %}{{ title }} {{ a }}\n{% endfor %}",
            "{% for a in range(9999) %}````\nsome words of a line that is rather long, and repeated\n{% endfor %}",
            "<details>\n{% for a in range(9999) %}<!-- some words of a line that is rather long\n{% endfor %}",
        ] {
            let text = by(text).unwrap();
            assert!((60_000..65_536).contains(&text.len()), "{}", text.len());
            assert!(text.ends_with("writes more than there is room for.\n"), "{}", &text[text.len() - 300..]);
        }
        // Longer than any forge takes: it is stopped, and cut.
        let page = "x".repeat(60_000) + "\n";
        let text = by(&format!("{{% for a in range(9999) %}}{page}{{% endfor %}}")).unwrap();
        assert!(text.len() < 65_536 && text.ends_with("room for.\n"), "{}", text.len());
    }

    #[test]
    fn a_template_may_be_as_deep_as_its_text_is_long() {
        for (before, deeper, after) in [
            ("{{ ", "not ", "title }}"),
            ("{{ ", "-", "1 }}"),
            ("{{ 1", "+1", " }}"),
            ("{{ title", "|upper", " }}"),
            ("{% if title %}", "{% elif title %}", "{% endif %}"),
            ("{{ ", "[", "1 }}"),
        ] {
            let times = ((64 << 10) - before.len() - after.len()) / deeper.len();
            // It works, or says what is wrong; what counts is that it ends.
            let ended = by(&format!("{before}{}{after}", deeper.repeat(times)));
            assert!(ended.as_ref().is_ok_and(|text| text.len() < 65_536) || ended.is_err(), "{deeper}");
        }
        let nested =
            "{% set all = namespace(of=[]) %}{% for a in range(90000) %}{% set all.of = [all.of] %}{% endfor %}x";
        assert!(by(nested).unwrap().ends_with("\nx\n"));
    }

    #[test]
    fn what_it_prints_is_escaped() {
        let mut hostile = verdict("violated");
        hostile.name = "<script>@owner [x](y) `z` | **b**".to_owned();
        let text =
            rendered("{{ gates[0].name }}\n{{ gates[0].verdict.name }}\n{{ gates[0].name ~ '<b>' }}", &[hostile])
                .unwrap();
        assert!(!text.contains("<script>") && !text.contains("@owner") && !text.contains("<b>"), "{text}");
        assert!(!text.contains("**b**"), "{text}");
    }
}
