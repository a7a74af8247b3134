//! What machines read: annotations and OpenMetrics.

#[cfg(test)]
mod goldens;
#[cfg(test)]
mod outside;

#[cfg(test)]
mod verdicts;

#[cfg(test)]
mod tests {
    use std::collections::{HashMap, HashSet};

    use gate_model::{CheckOutcome, Side, Verdict};
    use gate_report::{annotations, openmetrics};
    use proptest::prelude::*;

    use crate::goldens::expect;
    use crate::verdicts::verdict;

    fn all() -> Vec<Verdict> {
        let names = ["violated", "over", "over-strict", "waived", "mean-cluster", "not-ready", "simulated", "hostile"];
        names.map(verdict).to_vec()
    }

    #[test]
    fn every_check_that_did_not_pass_is_annotated_on_its_line() {
        let text: String = all().iter().map(|verdict| annotations(std::slice::from_ref(verdict))).collect();
        expect("annotations.txt", &text);
        let passes = |outcome: &CheckOutcome| {
            matches!(outcome, CheckOutcome::Met | CheckOutcome::Inconclusive { side: Side::Within })
        };
        let checks = all().into_iter().flat_map(|verdict| verdict.checks);
        // One cause kept all checks of `not-ready` from being measured.
        let same = verdict("not-ready").checks.len() - 1;
        assert_eq!(text.lines().count(), checks.filter(|check| !passes(&check.outcome)).count() - same);
        assert_eq!(text.matches("not ready within").count(), 1);
        let report_only = annotations(&[verdict("mean-cluster")]);
        assert!(report_only.lines().count() > 1 && report_only.lines().all(|line| line.starts_with("::warning ")));
        let together = annotations(&all());
        let levels: Vec<bool> = together.lines().map(|line| line.starts_with("::error file=")).collect();
        assert!(levels.is_sorted_by_key(|error| !error) && levels.contains(&true), "errors come first");
        assert!(text.lines().all(|line| line.starts_with("::error file=") || line.starts_with("::warning file=")));
        assert_eq!(annotations(&[verdict("passed")]), "");
    }

    #[test]
    fn metrics_are_as_they_were_read_and_approved() {
        expect("metrics.txt", &openmetrics(&all()));
        let families = parse(&openmetrics(&all())).unwrap();
        let seen: Vec<_> =
            families["gate_seen_seconds"].iter().filter(|sample| sample.label("gate") == "chat").collect();
        assert!(seen.iter().any(|sample| sample.label("check") == "ttft.p95 < 800ms" && sample.value == 1.0402));
        let outcomes = &families["gate_check_outcome"];
        let one: f64 = outcomes.iter().map(|sample| sample.value).sum();
        assert_eq!(one as usize, all().iter().map(|verdict| verdict.checks.len()).sum::<usize>());
        assert!(families["gate_seen_seconds"].iter().any(|sample| sample.value == f64::INFINITY));
        assert_eq!(parse(&openmetrics(&[])).unwrap().len(), 0);
    }

    #[test]
    fn what_was_compared_is_in_both() {
        let compared = ["relative-violated", "side-by-side", "no-baseline", "no-baseline-strict", "blind"].map(verdict);
        let each = compared.iter().map(|verdict| annotations(std::slice::from_ref(verdict)));
        expect("annotations-compared.txt", &each.collect::<String>());
        let text = openmetrics(&compared);
        expect("metrics-compared.txt", &text);
        let families = parse(&text).unwrap();
        assert!(families["gate_base_seconds"].iter().any(|sample| sample.value == 0.01));
        assert!(families["gate_change_ratio"].iter().any(|sample| sample.value == 0.41));
        assert!(families["gate_figure_seconds"].iter().any(|sample| sample.label("arm") == "reference"));
        let one: f64 = families["gate_check_outcome"].iter().map(|sample| sample.value).sum();
        assert_eq!(one as usize, compared.iter().map(|verdict| verdict.checks.len()).sum::<usize>());
    }

    #[test]
    fn nine_are_annotated_and_the_others_are_counted() {
        let mut many = verdict("violated");
        let violated = many.checks[1].clone();
        for count in [9, 10, 300] {
            many.checks = vec![violated.clone(); count];
            let text = annotations(&[many.clone(), verdict("over")]);
            let (shown, last) = text.trim_end().rsplit_once('\n').unwrap();
            assert!(
                shown.lines().count() == 9 && shown.lines().all(|line| line.starts_with("::error file=")),
                "{text}"
            );
            let expected = format!("::notice title=gate%3A {} more::the job's summary has all of them", count - 9 + 2);
            assert_eq!(last, expected);
        }
        many.checks.truncate(9);
        assert_eq!(annotations(&[many]).lines().count(), 9);
    }

    #[test]
    fn no_baseline_is_a_notice_once_unless_it_costs_the_build() {
        let once = annotations(&[verdict("no-baseline")]);
        assert_eq!(once.lines().count(), 1, "{once}");
        assert!(once.starts_with("::notice ") && once.contains(" and 1 more::no baseline"), "{once}");
        let strict = annotations(&[verdict("no-baseline-strict")]);
        assert!(strict.lines().count() == 3 && strict.lines().all(|line| line.starts_with("::error ")), "{strict}");
    }

    type Labels = Vec<(String, String)>;

    #[derive(Debug)]
    struct Sample {
        labels: Labels,
        value: f64,
    }

    impl Sample {
        fn label(&self, name: &str) -> &str {
            self.labels.iter().find(|(label, _)| label == name).map_or("", |(_, value)| value.as_str())
        }
    }

    /// A strict reader of what OpenMetrics 1.0 allows a gauge or an info to be.
    fn parse(text: &str) -> Result<HashMap<String, Vec<Sample>>, String> {
        let body = text.strip_suffix("# EOF\n").ok_or("no end")?;
        let mut families: HashMap<String, Vec<Sample>> = HashMap::new();
        let (mut family, mut kind, mut seen) = (String::new(), String::new(), HashSet::new());
        for line in body.split_terminator('\n') {
            if let Some(declaration) = line.strip_prefix("# ") {
                let mut words = declaration.splitn(3, ' ');
                let mut next = || words.next().ok_or(format!("short: {line}"));
                let (what, name, rest) = (next()?, next()?, next()?);
                match what {
                    "TYPE" => {
                        if !["gauge", "info"].contains(&rest) || families.insert(name.to_owned(), Vec::new()).is_some()
                        {
                            return Err(format!("twice, or of no known type: {line}"));
                        }
                        (family, kind) = (name.to_owned(), rest.to_owned());
                    }
                    "UNIT" if name == family && family.ends_with(&format!("_{rest}")) && kind == "gauge" => {}
                    "HELP" if name == family => {}
                    _ => return Err(format!("out of place: {line}")),
                }
                continue;
            }
            let name = if kind == "info" { format!("{family}_info") } else { family.clone() };
            let rest = line.strip_prefix(&format!("{name}{{")).ok_or(format!("not of {name}: {line}"))?;
            let (labels, value) = labels(rest)?;
            if !seen.insert((name, labels.clone())) {
                return Err(format!("twice: {line}"));
            }
            let value = match value.strip_prefix(' ').ok_or(format!("no value: {line}"))? {
                "+Inf" => f64::INFINITY,
                number if number.contains(|symbol: char| !(symbol.is_ascii_digit() || "-.".contains(symbol))) => {
                    return Err(format!("no number: {line}"));
                }
                number => number.parse().map_err(|error| format!("{error}: {line}"))?,
            };
            if kind == "info" && value != 1.0 {
                return Err(format!("an info is 1: {line}"));
            }
            families.get_mut(&family).ok_or("no type")?.push(Sample { labels, value });
        }
        Ok(families)
    }

    /// The labels up to `}`, and what follows.
    fn labels(text: &str) -> Result<(Labels, &str), String> {
        let (mut labels, mut rest) = (Vec::new(), text);
        loop {
            let (name, after) = rest.split_once("=\"").ok_or(format!("no label: {rest}"))?;
            if !name.chars().all(|symbol| symbol.is_ascii_lowercase() || symbol == '_') {
                return Err(format!("no label's name: {name}"));
            }
            let (mut value, mut symbols) = (String::new(), after.char_indices());
            let end = loop {
                match symbols.next().ok_or("open label")? {
                    (at, '"') => break at + 1,
                    (_, '\\') => match symbols.next().ok_or("open escape")?.1 {
                        'n' => value.push('\n'),
                        symbol @ ('\\' | '"') => value.push(symbol),
                        other => return Err(format!("\\{other}")),
                    },
                    (_, symbol) => value.push(symbol),
                }
            };
            labels.push((name.to_owned(), value));
            let after = &after[end..];
            match after.chars().next() {
                Some(',') => rest = &after[1..],
                Some('}') => return Ok((labels, &after[1..])),
                other => return Err(format!("{other:?} after a label")),
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_text_stays_inside_its_label_and_its_command(
            text in prop_oneof![any::<String>(), "[\\\\\"n\n\r%:,;{}# \u{1b}a]{0,12}"],
        ) {
            let mut hostile = verdict("violated");
            hostile.name.clone_from(&text);
            hostile.run.target.clone_from(&text);
            hostile.run.model = Some(text.clone());
            hostile.run.scenarios = vec![text.clone()];
            hostile.checks[1].check.bound_text.clone_from(&text);
            hostile.checks[2].check.bound_text.clone_from(&text);
            let mut compared = hostile.clone();
            crate::outside::compared(&mut compared, &text);
            parse(&openmetrics(&[compared.clone(), compared])).unwrap();
            let twice = [hostile.clone(), hostile];
            parse(&openmetrics(&twice)).unwrap();
            let text = annotations(&twice);
            prop_assert_eq!(text.lines().count(), 4);
            for line in text.lines() {
                let command = line.strip_prefix("::error ").or(line.strip_prefix("::warning ")).unwrap();
                let (properties, _) = command.split_once("::").unwrap();
                let names: Vec<&str> = properties.split(',').map(|pair| pair.split_once('=').unwrap().0).collect();
                prop_assert_eq!(names, ["file", "line", "col", "title"]);
                prop_assert!(!properties.contains(':'));
            }
        }
    }
}
