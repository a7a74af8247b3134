//! The HTML report: whole, bounded, and the same document whatever text comes from outside.

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
    use gate_model::{
        EndReason, Endpoint, GateSpec, Nanos, Outcome, Plan, PlannedRequest, Run, RunEnd, RunHeader, Sample, Series,
        Usage, Verdict,
    };
    use gate_report::{Page, html, html_versus, requests_csv};
    use proptest::prelude::*;
    use regex::Regex;
    use serde_json::Value;

    use crate::goldens::expect;
    use crate::strangers::hostile;
    use crate::verdicts::verdict;

    /// A request that got this many tokens, 10 ms apart, or failed with this message.
    fn sample(index: u32, tokens: u32, failure: Option<&str>) -> Sample {
        let due = Nanos::from_millis(i64::from(index) * 20);
        let planned = PlannedRequest { index, at: due, input_tokens: 500, output_tokens: tokens, ..Default::default() };
        let mut sample = Sample { start: Some(due), writing: Some(due), ..Sample::unsent(&planned) };
        if let Some(message) = failure {
            return Sample { outcome: Outcome::Http5xx, status: Some(500), error: Some(message.to_owned()), ..sample };
        }
        let first = due + Nanos::from_millis(100 + i64::from(index % 7) * 10);
        for token in 0..tokens {
            sample.record_token(first + Nanos::from_millis(10 * i64::from(token)), 1_000);
        }
        let usage = Usage { output: Some(u64::from(tokens)), input: Some(510), ..Usage::default() };
        Sample { outcome: Outcome::Ok, status: Some(200), usage: Some(usage), end: sample.last_token, ..sample }
    }

    fn run(samples: Vec<Sample>) -> Run {
        let spec = GateSpec::new("chat", Endpoint::Url("http://h".to_owned()));
        let plan = Plan { scenarios: vec!["chat".to_owned()], ..Plan::new(&spec, Vec::new(), Vec::new()) };
        let header = RunHeader::new(spec, &plan, "0.0.0", "run", "2026-12-01T00:00:00Z");
        let sent = u32::try_from(samples.len()).unwrap();
        Run::new(header, Vec::new(), samples, Some(RunEnd::new(EndReason::Completed, sent, Nanos::from_secs(9))))
    }

    fn fifty(message: &str) -> Run {
        run((0..50).map(|index| sample(index, 150, (index % 10 == 3).then_some(message))).collect())
    }

    fn page(verdict: &Verdict, run: Option<&Run>) -> String {
        html(&[Page { verdict, run }]).unwrap()
    }

    fn data(page: &str) -> Value {
        let (_, after) = page.split_once("id=\"gate-data\">").unwrap();
        serde_json::from_str(after.split_once("</script>").unwrap().0).unwrap()
    }

    /// The elements of a document in order, with the names of their attributes.
    fn skeleton(page: &str) -> Vec<String> {
        let tag = Regex::new(r#"<[a-zA-Z/!](?:[^>"]|"[^"]*")*>"#).unwrap();
        let value = Regex::new(r#""[^"]*""#).unwrap();
        let (document, _) = page.split_once("<script type=\"application/json\"").unwrap();
        let body = document.split_once("<body>").unwrap().1;
        tag.find_iter(body).map(|tag| value.replace_all(tag.as_str(), "").into_owned()).collect()
    }

    #[test]
    fn every_verdict_has_a_page() {
        for name in ["passed", "violated", "over", "simulated", "killed", "interrupted", "waived", "answers", "blind"] {
            let verdict = verdict(name);
            let run = fifty("oops");
            for run in [None, Some(&run)] {
                let page = page(&verdict, run);
                assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"), "{name}");
                assert!(page.contains(gate_report::words::status_word(verdict.status)), "{name}");
                let (document, _) = page.split_once("<script type=\"application/json\"").unwrap();
                for wrong in ["NaN", ">inf", "\"inf", "undefined", ">none<", "None"] {
                    assert!(!document.contains(wrong), "{name}: {wrong}");
                }
                let first = &verdict.checks[0].check;
                assert!(document.contains(&format!("<code>{}</code>", first.metric)), "{name}");
                assert_eq!(document.contains("journal was not there"), run.is_none(), "{name}");
            }
        }
    }

    #[test]
    fn a_page_has_the_numbers_of_its_requests() {
        let run = fifty("upstream, timed out");
        let data = data(&page(&verdict("violated"), Some(&run)));
        let requests = &data["gates"][0]["requests"];
        assert_eq!((&data["gates"][0]["total"], &data["gates"][0]["kept"]), (&Value::from(50), &Value::from(50)));
        for (place, sample) in run.samples.iter().enumerate() {
            let cell = |column: &str| &requests[column][place];
            let millis = |series: Series| sample.value(series).map(|nanos| (nanos / 1e3).round() / 1e3);
            assert_eq!(cell("ttft").as_f64(), millis(Series::Ttft));
            assert_eq!(cell("tpot").as_f64(), millis(Series::Tpot));
            assert_eq!(cell("due").as_f64(), Some(sample.intended.as_millis_f64()));
            let outcome = cell("outcome").as_u64().unwrap() as usize;
            assert_eq!(data["gates"][0]["outcomes"][outcome], sample.outcome.name());
            let message = cell("message").as_i64().unwrap();
            assert_eq!(message, if sample.error.is_some() { 0 } else { -1 });
        }
        assert_eq!(data["gates"][0]["messages"][0], "upstream, timed out");
        let tokens = &data["gates"][0]["tokens"]["0"];
        assert_eq!((tokens.as_array().unwrap().len(), &tokens[0], &tokens[1]), (150, &100.into(), &110.into()));
    }

    #[test]
    fn fifty_requests_fit_in_two_megabytes() {
        let page = page(&verdict("violated"), Some(&fifty("no")));
        assert!(page.len() < 2 << 20, "{}", page.len());
    }

    #[test]
    fn of_more_requests_than_a_page_has_room_for_the_failed_and_the_slowest_are_kept() {
        let count: u32 = 100_500;
        let bad = [17, 77_777];
        let mut samples: Vec<Sample> =
            (0..count).map(|index| sample(index, 2, bad.contains(&index).then_some("no"))).collect();
        let slow = &mut samples[55_555];
        slow.first_token = Some(slow.intended + Nanos::from_secs(99));
        slow.last_token = slow.first_token;
        let run = run(samples);
        let page = page(&verdict("violated"), Some(&run));
        let data = data(&page);
        let gate = &data["gates"][0];
        let kept = gate["kept"].as_u64().unwrap();
        assert_eq!(gate["total"].as_u64(), Some(u64::from(count)));
        assert!((10_000..=20_000).contains(&kept), "{kept}");
        let index: Vec<u64> =
            gate["requests"]["index"].as_array().unwrap().iter().map(|one| one.as_u64().unwrap()).collect();
        assert!(index.len() as u64 == kept && index.is_sorted());
        for one in [17, 77_777, 55_555] {
            assert!(index.contains(&one), "{one}");
        }
        assert!(page.contains("of 100,500 requests are in this page"));
        assert_eq!(requests_csv(&run).lines().count(), count as usize + 1, "the table has all of them");
    }

    #[test]
    fn what_was_sent_and_not_judged_is_said() {
        let mut verdict = verdict("violated");
        (verdict.run.sent, verdict.run.judged, verdict.run.decided_at) = (42, 30, Some(30));
        assert!(page(&verdict, Some(&fifty("no"))).contains("42 requests were sent and 30 judged"));
        verdict.run.judged = 42;
        assert!(!page(&verdict, Some(&fifty("no"))).contains("requests were sent and"));
    }

    #[test]
    fn a_run_without_requests_has_a_page() {
        let page = page(&verdict("killed"), Some(&run(Vec::new())));
        assert_eq!(data(&page)["gates"][0]["requests"]["index"], Value::Array(Vec::new()));
    }

    #[test]
    fn gates_have_a_section_each() {
        let (one, two) = (verdict("passed"), Verdict { name: "other".to_owned(), ..verdict("violated") });
        let pages = [Page { verdict: &one, run: None }, Page { verdict: &two, run: None }];
        let page = html(&pages).unwrap();
        let order = [">VIOLATED</span> other", ">PASSED</span> "].map(|heading| page.find(heading).unwrap());
        assert!(order.is_sorted(), "the worst is first");
        for part in ["href=\"#gate-0\"", "href=\"#gate-1\"", "id=\"gate-0\"", "id=\"gate-1\"", "<h1>2 gates</h1>"] {
            assert!(page.contains(part), "{part}");
        }
    }

    #[test]
    fn two_runs_stand_side_by_side() {
        let (before, after) = (verdict("passed"), verdict("violated"));
        let run = fifty("no");
        let page =
            html_versus(&Page { verdict: &before, run: Some(&run) }, &Page { verdict: &after, run: None }).unwrap();
        for words in ["What changed", "before", "after", "ttft", "Nothing is judged here"] {
            assert!(page.contains(words), "{words}");
        }
        assert_eq!(data(&page)["gates"].as_array().unwrap().len(), 2);
    }

    #[test]
    fn requests_are_rows_of_a_table() {
        let samples = vec![sample(0, 3, None), sample(1, 3, Some("=busy, \"later\"")), sample(2, 1, None)];
        expect("requests.csv", &requests_csv(&run(samples)).replace("\r\n", "\n"));
    }

    /// A verdict and a run that have this text wherever something comes from outside.
    fn filled(text: &str) -> (Verdict, Run) {
        let (mut run, mut verdict) = (fifty(text), verdict("violated"));
        crate::outside::compared(&mut verdict, text);
        verdict.name = text.to_owned();
        run.header.scenarios = vec![text.to_owned()];
        run.header.spec.name = text.to_owned();
        run.header.spec.target.model = Some(text.to_owned());
        verdict.run.scenarios = vec![text.to_owned()];
        (verdict, run)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

        #[test]
        fn no_text_is_markup(text in hostile()) {
            let (verdict, run) = filled("plain text");
            let plain = skeleton(&page(&verdict, Some(&run)));
            let (verdict, run) = filled(&text);
            let page = page(&verdict, Some(&run));
            let code = |tag: &&String| !["<code>", "</code>"].contains(&tag.as_str());
            let (is, was): (Vec<_>, Vec<_>) = (skeleton(&page), plain);
            let (is, was): (Vec<_>, Vec<_>) = (is.iter().filter(code).collect(), was.iter().filter(code).collect());
            prop_assert_eq!(is, was);
            prop_assert_eq!(page.matches("</script").count(), 2);
            prop_assert!(data(&page)["gates"][0]["name"].is_string());
            let deceives = page.contains(['\u{1b}', '\u{202e}']);
            prop_assert!(!deceives);
        }
    }
}
