//! What GitLab reads beside the note, and gates that never ran.

#[cfg(test)]
mod goldens;

#[cfg(test)]
mod verdicts;

#[cfg(test)]
mod tests {
    use gate_model::{Nanos, Quantity, Verdict};
    use gate_report::{gitlab_annotations, junit_unresolved, load_performance};
    use serde_json::{Value, json};

    use crate::goldens::expect;
    use crate::verdicts::verdict;

    fn metrics(verdicts: &[Verdict]) -> Value {
        let report: Value = serde_json::from_str(&load_performance(verdicts)).unwrap();
        report["metrics"].clone()
    }

    /// The verdict with these percentiles of its TTFT among its figures, in milliseconds.
    fn with_ttft(mut verdict: Verdict, of: &[(&str, i64)]) -> Verdict {
        let mut figure = verdict.figures[0].clone();
        verdict.figures.retain(|figure| !figure.metric.to_string().starts_with("ttft"));
        verdict.checks.retain(|check| !check.check.metric.to_string().starts_with("ttft"));
        for (metric, millis) in of {
            figure.metric = metric.parse().unwrap();
            figure.value = Some(Quantity::time(Nanos::from_millis(*millis)));
            verdict.figures.push(figure.clone());
        }
        verdict
    }

    #[test]
    fn a_merge_request_compares_what_it_knows() {
        let slow = with_ttft(verdict("violated"), &[("ttft.p50", 300), ("ttft.p90", 700), ("ttft.p95", 800)]);
        let found = metrics(std::slice::from_ref(&slow));
        assert_eq!(found["http_req_waiting"], json!({"med": 300.0, "p(90)": 700.0, "p(95)": 800.0}));
        assert_eq!(found["http_req_duration"]["p(95)"], json!(4_890.0));
        assert_eq!(found["http_reqs"]["count"], json!(slow.run.sent));
        assert!((found["http_reqs"]["rate"].as_f64().unwrap() - slow.run.rates.unwrap().1).abs() < 1e-9);
        let holds = slow.checks.iter().filter(|check| {
            use gate_model::{CheckOutcome, Side};
            matches!(check.outcome, CheckOutcome::Met | CheckOutcome::Inconclusive { side: Side::Within })
        });
        let holds = holds.count();
        assert_eq!(found["checks"]["passes"], json!(holds));
        assert_eq!(found["checks"]["fails"], json!(slow.checks.len() - holds));
        expect("load-performance.txt", &load_performance(&[slow.clone(), verdict("passed")]));

        let fast = Verdict {
            name: "fa:st,{x}".to_owned(),
            ..with_ttft(verdict("passed"), &[("ttft.p90", 710), ("ttft.p95", 720)])
        };
        let both = metrics(&[slow.clone(), fast.clone()]);
        assert_eq!(both["http_req_waiting"], json!({"med": 300.0, "p(90)": 710.0, "p(95)": 800.0}));
        assert_eq!(both["http_req_waiting{gate:fa_st__x_,scenario:chat}"]["p(90)"], json!(710.0));
        assert_eq!(both["http_reqs"]["count"], json!(slow.run.sent + fast.run.sent));
    }

    #[test]
    fn what_is_not_known_is_left_out_and_never_no_number() {
        let half = with_ttft(verdict("violated"), &[("ttft.p95", 800)]);
        assert!(metrics(std::slice::from_ref(&half)).get("http_req_waiting").is_none());
        let mut endless = with_ttft(verdict("violated"), &[("ttft.p90", 700), ("ttft.p95", 800)]);
        for figure in &mut endless.figures {
            figure.value = Some(Quantity::time(Nanos(1))).map(|value| Quantity { value: f64::INFINITY, ..value });
        }
        assert!(metrics(&[endless]).get("http_req_waiting").is_none());
        for (name, rates, millis) in
            [("none", None, 0), ("nan", Some((1.0, f64::NAN)), 0), ("zero", Some((0.0, 0.0)), 0)]
        {
            let mut idle = verdict("not-ready");
            (idle.run.rates, idle.run.duration) = (rates, Nanos::from_millis(millis));
            assert!(metrics(&[idle.clone()]).get("http_reqs").is_none(), "{name}");
            idle.checks.clear();
            let text = load_performance(&[idle]);
            assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), json!({"metrics": {}}), "{name}");
        }
        assert_eq!(serde_json::from_str::<Value>(&load_performance(&[])).unwrap(), json!({"metrics": {}}));
    }

    #[test]
    fn links_of_a_job_are_few_and_of_the_web() {
        let link = |label: &str, url: &str| (label.to_owned(), url.to_owned());
        let long = "x".repeat(300);
        let mut links = vec![
            link("Report\u{202e}\n", "https://forge.example/a b\"/<é>"),
            link(&long, "http://forge.example/"),
            link("no", "javascript:alert(1)"),
            link("no", "file:///etc/passwd"),
            link("no", &format!("https://e.org/{}", "x".repeat(2_000))),
        ];
        let report: Value = serde_json::from_str(&gitlab_annotations(&links)).unwrap();
        let shown = report["gate"].as_array().unwrap();
        assert_eq!(shown.len(), 2);
        let first = json!({"external_link": {"label": "Report", "url": "https://forge.example/a%20b%22/%3C%C3%A9%3E"}});
        assert_eq!(shown[0], first);
        assert_eq!(shown[1]["external_link"]["label"].as_str().unwrap().chars().count(), 200);
        links = vec![link("a", "https://e.org/"); 30];
        let report: Value = serde_json::from_str(&gitlab_annotations(&links)).unwrap();
        assert_eq!(report["gate"].as_array().unwrap().len(), 20);
        assert_eq!(serde_json::from_str::<Value>(&gitlab_annotations(&[])).unwrap(), json!({"gate": []}));
    }

    #[test]
    fn a_gate_that_never_ran_is_an_error() {
        let gates = [
            ("chat".to_owned(), "`OPENAI_API_KEY` is not set: the endpoint's key".to_owned()),
            ("gates/long.yaml".to_owned(), "<b>\u{0}]]>\n\u{1b}[31m::error::x\u{202e}".to_owned()),
            ("chat".to_owned(), String::new()),
        ];
        let text = junit_unresolved(&gates).unwrap();
        expect("unresolved.xml", &text);
        assert_eq!(text.matches("<testsuite ").count(), 3);
        assert_eq!(text.matches("<error type=\"could_not_measure\"").count(), 3);
        assert_eq!(text.matches("errors=\"1\"").count(), 3);
        assert!(!text.contains("timestamp") && text.is_ascii());
        let long = junit_unresolved(&[("é".repeat(1_000_000), "é".repeat(1_000_000))]).unwrap();
        assert!(long.len() < 20_000, "{}", long.len());
        assert!(junit_unresolved(&[]).unwrap().contains("<testsuites"));
    }
}
