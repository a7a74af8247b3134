//! What a `samples` file becomes, and what is wrong with a bad one.

#[cfg(test)]
mod tests {
    use gate_import::{Format, FormatError, Import, ImportError, import};
    use gate_model::{EndReason, Endpoint, GateSpec, Nanos, Outcome, Run, Series, TokenSource};

    fn spec() -> GateSpec {
        GateSpec::new("chat", Endpoint::Url("http://127.0.0.1:8000/v1".to_owned()))
    }

    fn read(text: &str) -> Result<Run, ImportError> {
        let started = "2026-11-29T16:37:00Z";
        import(Format::Samples, Import { spec: spec(), text, gate: "0.1.0", run_id: "r", started })
    }

    /// A row of an ok request with some fields replaced; `None` takes a field out.
    fn row(changes: &[(&str, Option<&str>)]) -> String {
        let text = r#"{"send_s": 1.5, "status": 200, "ttft_ms": 300.25, "tpot_ms": 10, "e2e_ms": 1300.25,
            "output_tokens": 101, "input_tokens": 548, "scenario": "chat", "arm": "target", "pair": 4}"#;
        let mut row: serde_json::Map<String, serde_json::Value> = serde_json::from_str(text).unwrap();
        for (field, value) in changes {
            match value {
                Some(value) => row.insert((*field).to_owned(), serde_json::from_str(value).unwrap()),
                None => row.remove(*field),
            };
        }
        serde_json::Value::Object(row).to_string()
    }

    fn message(text: &str) -> String {
        read(text).expect_err(text).to_string()
    }

    #[test]
    fn rows_become_samples_as_gate_would_have_measured_them() {
        let failed = r#"{"send_s":2.0,"status":503,"ttft_ms":null,"tpot_ms":null,"e2e_ms":null,"output_tokens":null}"#;
        let text = format!("\u{feff}{}\r\n\n{failed}\n{}", row(&[]), row(&[("send_s", Some("2.0"))]));
        let run = read(&text).unwrap();
        assert_eq!(run.samples.len(), 3);
        let first = &run.samples[0];
        assert_eq!((first.index, first.outcome, first.status, first.pair), (0, Outcome::Ok, Some(200), Some(4)));
        assert_eq!(first.value(Series::Ttft), Some(300.25e6));
        assert_eq!(first.value(Series::Tpot), Some(10e6));
        assert_eq!(first.value(Series::E2e), Some(1300.25e6));
        assert_eq!(first.output_tokens(), Some((101, TokenSource::Usage)));
        assert_eq!(first.value(Series::InputTokens), Some(548.0));
        let second = &run.samples[1];
        assert_eq!((second.outcome, second.value(Series::Ttft)), (Outcome::Http5xx, None));
        // The first row's send time is the epoch.
        assert_eq!(run.header.schedule, [Nanos::ZERO, Nanos::from_millis(500), Nanos::from_millis(500)]);
        assert_eq!(run.header.imported_from.as_deref(), Some("samples"));
        assert_eq!(run.header.looks, [3], "a whole file is judged once");
        let end = run.end.unwrap();
        assert_eq!((end.reason, end.sent), (EndReason::Completed, 3));
        assert_eq!(end.at, Nanos::from_millis(500) + Nanos(1_300_250_000));
    }

    #[test]
    fn every_outcome_reads_back_by_its_name_and_every_status_by_its_class() {
        for outcome in Outcome::ALL {
            let run = read(&row(&[("status", Some(&format!("\"{}\"", outcome.name())))])).unwrap();
            assert_eq!(run.samples[0].outcome, outcome);
        }
        for (status, outcome) in [
            ("204", Outcome::Ok),
            ("302", Outcome::Http4xx),
            ("404", Outcome::Http4xx),
            ("429", Outcome::Http429),
            ("500", Outcome::Http5xx),
            ("599", Outcome::Http5xx),
        ] {
            assert_eq!(read(&row(&[("status", Some(status))])).unwrap().samples[0].outcome, outcome);
        }
    }

    #[test]
    fn tpot_places_the_last_token_only_where_e2e_does_not() {
        let run = read(&row(&[("e2e_ms", Some("null")), ("tpot_ms", Some("20"))])).unwrap();
        assert_eq!(run.samples[0].value(Series::Tpot), Some(20e6));
        assert_eq!(run.samples[0].value(Series::E2e), Some(2300.25e6));
        // A TPOT by another definition (here e2e ÷ tokens) does not move it.
        let run = read(&row(&[("tpot_ms", Some("12.87"))])).unwrap();
        assert_eq!(run.samples[0].value(Series::Tpot), Some(10e6));
        // One token has no TPOT.
        let one = [("output_tokens", Some("1")), ("tpot_ms", Some("null")), ("e2e_ms", Some("null"))];
        let run = read(&row(&one)).unwrap();
        assert_eq!(run.samples[0].value(Series::E2e), Some(300.25e6));
        assert_eq!(run.samples[0].value(Series::Tpot), None);
    }

    #[test]
    fn a_wrong_row_is_named_by_line_and_field() {
        for (wrong, words) in [
            ("", "the file holds no request"),
            (" \n\n", "the file holds no request"),
            ("{", "line 1 is not a JSON object: EOF while parsing an object at column 1"),
            ("[1]", "line 1 is not a JSON object: it is a list"),
            ("send_s,status", "line 1 is not a JSON object: expected value at column 1"),
        ] {
            assert!(message(wrong).starts_with(words), "{}", message(wrong));
        }
        for (field, value, words) in [
            ("send_s", None, "line 2: `send_s` is missing"),
            ("status", None, "line 2: `status` is missing"),
            ("ttft_ms", None, "line 2: `ttft_ms` is missing; a failed request has null there"),
            ("tpot_ms", None, "line 2: `tpot_ms` is missing"),
            ("e2e_ms", None, "line 2: `e2e_ms` is missing"),
            ("output_tokens", None, "line 2: `output_tokens` is missing"),
            ("send_s", Some("\"1\""), "line 2: `send_s` is \"1\", and must be a number of seconds, at least 0"),
            ("send_s", Some("null"), "line 2: `send_s` is null"),
            ("send_s", Some("-1"), "line 2: `send_s` is -1"),
            ("send_s", Some("1e300"), "line 2: `send_s` is 1e+300"),
            ("send_s", Some("1.25"), "line 2: `send_s` is 1.25, earlier than the row before: sort the rows"),
            ("ttft_ms", Some("-0.5"), "line 2: `ttft_ms` is -0.5, and must be a number of milliseconds"),
            ("ttft_ms", Some("[1]"), "line 2: `ttft_ms` is a list"),
            ("ttft_ms", Some("null"), "line 2: `ttft_ms` is null, and must be a number on the row of a request that"),
            ("ttft_ms", Some("2000"), "line 2: `e2e_ms` is 1300.25, less than `ttft_ms` with 2000"),
            ("output_tokens", Some("1.5"), "line 2: `output_tokens` is 1.5, and must be a whole number"),
            ("input_tokens", Some("-3"), "line 2: `input_tokens` is -3"),
            ("pair", Some("4294967296"), "line 2: `pair` is 4294967296"),
            ("status", Some("0"), "line 2: `status` is 0, and must be an HTTP status"),
            ("status", Some("\"200\""), "line 2: `status` is \"200\""),
            ("status", Some("\"exploded\""), "line 2: `status` is \"exploded\""),
            ("arm", Some("\"left\""), "line 2: `arm` is \"left\", and must be \"target\" or \"reference\""),
            ("arm", Some("\"reference\""), "line 2: rows with `arm` \"reference\" are not yet supported"),
            ("scenario", Some("7"), "line 2: `scenario` is 7, and must be a text"),
            ("scenario", Some("\"long\""), "line 2: the spec has no scenario `long`: its only one is `chat`"),
        ] {
            let found = message(&format!("{}\n{}\n", row(&[]), row(&[(field, value)])));
            assert!(found.starts_with(words), "{found}");
        }
        let neither = row(&[("e2e_ms", Some("null")), ("tpot_ms", Some("null"))]);
        assert!(message(&neither).starts_with("line 1: `e2e_ms` is null"));
        let long = row(&[("arm", Some(&format!("\"{}\"", "x".repeat(1000))))]);
        assert!(message(&long).chars().count() < 200);
    }

    #[test]
    fn a_format_that_is_not_there_yet_says_so() {
        assert_eq!("samples".parse(), Ok(Format::Samples));
        for name in ["guidellm", "aiperf", "genai-perf", "vllm", "llmperf", "inference-perf", "k6", "locust", "vegeta"]
        {
            let error = name.parse::<Format>().unwrap_err();
            assert_eq!(error, FormatError::NotYet(name.to_owned()));
            assert!(error.to_string().contains("not yet supported"));
        }
        let error = "csv".parse::<Format>().unwrap_err().to_string();
        assert!(error.contains("`samples`") && error.contains("vegeta"), "{error}");
    }

    #[test]
    fn what_gate_exports_it_imports_to_the_nanosecond() {
        // Values with nanoseconds that a double in milliseconds could lose.
        let rows = (0..200_u32).map(|index| {
            let index = f64::from(index);
            row(&[
                ("send_s", Some(&format!("{:.9}", index * 0.487_654_321))),
                ("ttft_ms", Some(&format!("{:.6}", 250.123_457 + index * 7.000_001))),
                ("e2e_ms", Some(&format!("{:.6}", 9_876.543_211 + index * 13.000_007))),
                ("output_tokens", Some(&format!("{}", 2.0 + index))),
            ])
        });
        let run = read(&rows.collect::<Vec<_>>().join("\n")).unwrap();
        let text = gate_report::samples(&run);
        let again = read(&text).unwrap();
        assert_eq!(again.samples.len(), 200);
        for (sample, same) in run.samples.iter().zip(&again.samples) {
            for series in [Series::Ttft, Series::Tpot, Series::E2e, Series::OutputTokens] {
                let (left, right) = (sample.value(series).unwrap(), same.value(series).unwrap());
                assert!((left - right).abs() < 1.0, "{} of {}: {left} {right}", series.name(), sample.index);
            }
            assert_eq!(sample.intended, same.intended);
        }
        assert_eq!(gate_report::samples(&again), text);
    }
}
