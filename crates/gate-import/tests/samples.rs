//! What a `samples` file becomes, and what is wrong with a bad one.

#[cfg(test)]
mod tests {
    use gate_import::{
        Format, FormatError, Import, ImportError, Spot, as_baseline, has_reference, import, with_reference,
    };
    use gate_model::{
        Arm, EndReason, Endpoint, GateSpec, JournalLine, Nanos, Outcome, Run, Series, Target, TokenSource,
    };

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
            (
                "send_s",
                Some("\"1\""),
                "line 2: `send_s` is \"1\", and must be a number of seconds from 0 to 9000000000",
            ),
            ("send_s", Some("null"), "line 2: `send_s` is null"),
            ("send_s", Some("-1"), "line 2: `send_s` is -1"),
            ("send_s", Some("1e300"), "line 2: `send_s` is 1e+300"),
            (
                "ttft_ms",
                Some("1e12"),
                "line 2: `ttft_ms` is 1000000000000.0, and must be a number of milliseconds from 0 to 9000000000, or null",
            ),
            ("send_s", Some("1.25"), "line 2: `send_s` is 1.25, earlier than the row before: sort the rows"),
            ("ttft_ms", Some("-0.5"), "line 2: `ttft_ms` is -0.5, and must be a number of milliseconds"),
            ("ttft_ms", Some("[1]"), "line 2: `ttft_ms` is a list"),
            ("ttft_ms", Some("null"), "line 2: `ttft_ms` is null, and must be a number on the row of a request that"),
            ("ttft_ms", Some("2000"), "line 2: `e2e_ms` is 1300.25, less than `ttft_ms` with 2000"),
            (
                "output_tokens",
                Some("1.5"),
                "line 2: `output_tokens` is 1.5, and must be a whole number from 0 to 1000000000000000",
            ),
            ("input_tokens", Some("-3"), "line 2: `input_tokens` is -3"),
            ("output_tokens", Some("1000000000000001"), "line 2: `output_tokens` is 1000000000000001, and must be"),
            (
                "pair",
                Some("4294967296"),
                "line 2: `pair` is 4294967296, and must be a whole number from 0 to 4294967295",
            ),
            ("pair", Some("-1"), "line 2: `pair` is -1, and must be a whole number from 0 to 4294967295"),
            ("status", Some("0"), "line 2: `status` is 0, and must be an HTTP status"),
            ("status", Some("\"200\""), "line 2: `status` is \"200\""),
            ("status", Some("\"exploded\""), "line 2: `status` is \"exploded\""),
            ("arm", Some("\"left\""), "line 2: `arm` is \"left\", and must be \"target\" or \"reference\""),
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
    fn a_field_that_is_there_twice_is_refused() {
        let twice = row(&[]).replacen('{', "{\"ttft_ms\": 1, ", 1);
        assert_eq!(
            message(&format!("{}\n{twice}", row(&[]))),
            "line 2: `ttft_ms` is there twice: remove one of the two"
        );
        let same = row(&[]).replacen('{', "{\"pair\": 4, ", 1);
        assert_eq!(read(&same), Err(ImportError::FieldTwice { line: 1, field: "pair".to_owned() }));
        let unknown = row(&[]).replacen('{', &format!("{{\"a\\n{0}\": 1, \"a\\n{0}\": 1, ", "b".repeat(1000)), 1);
        assert!(
            message(&unknown).starts_with("line 1: `a\\nbbb") && message(&unknown).len() < 200,
            "{}",
            message(&unknown)
        );
        let nested = row(&[]).replacen('{', "{\"extra\": {\"ttft_ms\": 1}, ", 1);
        assert!(read(&nested).is_ok(), "what the format does not have is nobody's");
    }

    /// A row of one arm: sent at `send_s`, its first token after `ttft_ms`.
    fn of(arm: &str, send_s: f64, ttft_ms: f64, pair: Option<u32>) -> String {
        let pair = pair.map(|pair| pair.to_string());
        let values = [("send_s", send_s.to_string()), ("ttft_ms", ttft_ms.to_string()), ("arm", format!("\"{arm}\""))];
        let values = values.iter().map(|(field, value)| (*field, Some(value.as_str())));
        row(&values.chain([("pair", pair.as_deref())]).collect::<Vec<_>>())
    }

    fn target(send_s: f64, ttft_ms: f64, pair: Option<u32>) -> String {
        of("target", send_s, ttft_ms, pair)
    }

    fn reference(send_s: f64, ttft_ms: f64, pair: Option<u32>) -> String {
        of("reference", send_s, ttft_ms, pair)
    }

    /// Each sample's arm, pair and TTFT in milliseconds, in the run's order.
    fn shown(run: &Run) -> Vec<(Arm, u32, f64)> {
        let samples = run.samples.iter();
        samples.map(|one| (one.arm, one.pair.unwrap(), one.value(Series::Ttft).unwrap() / 1e6)).collect()
    }

    /// What every reader of a run counts on: it is a journal that reads back.
    fn is_consistent(run: &Run) {
        let mut lines = vec![JournalLine::Header(Box::new(run.header.clone()))];
        lines.extend(run.samples.iter().cloned().map(|sample| JournalLine::Sample(Box::new(sample))));
        lines.push(JournalLine::End(Box::new(run.end.clone().unwrap())));
        let text: String = lines.iter().map(|line| serde_json::to_string(line).unwrap() + "\n").collect();
        let read = Run::from_journal(&text).unwrap();
        assert_eq!(read.samples, run.samples);
        assert!(run.samples.iter().enumerate().all(|(at, sample)| sample.index as usize == at));
        assert_eq!(run.header.spec.arms() == 2, run.samples.iter().any(|sample| sample.arm == Arm::Reference));
    }

    #[test]
    fn both_arms_of_a_file_are_paired_by_order() {
        // The reference's rows come last, and the second goes out before the target's second.
        let rows =
            [target(10.0, 1.0, None), target(12.0, 2.0, None), reference(9.0, 3.0, None), reference(11.0, 4.0, None)];
        let run = read(&rows.join("\n")).unwrap();
        is_consistent(&run);
        let (one, other) = (Arm::Target, Arm::Reference);
        assert_eq!(shown(&run), [(other, 0, 3.0), (one, 0, 1.0), (other, 1, 4.0), (one, 1, 2.0)]);
        assert_eq!(run.header.looks, [2], "in requests of each arm");
        assert_eq!(run.header.schedule, [0, 1, 2, 3].map(Nanos::from_secs));
        assert_eq!((run.planned(), run.end.as_ref().unwrap().sent), (4, 4));
        assert_eq!(run.header.spec.reference.as_ref(), Some(&run.header.spec.target), "the file says no other");
        assert!(run.end.unwrap().reference.is_some());
    }

    #[test]
    fn a_pair_of_its_own_goes_before_the_order() {
        let rows = [
            target(1.0, 1.0, Some(7)),
            reference(1.0, 2.0, Some(9)),
            reference(2.0, 3.0, Some(7)),
            target(2.0, 4.0, Some(9)),
        ];
        let run = read(&rows.join("\n")).unwrap();
        is_consistent(&run);
        let (one, other) = (Arm::Target, Arm::Reference);
        assert_eq!(shown(&run), [(one, 7, 1.0), (other, 9, 2.0), (other, 7, 3.0), (one, 9, 4.0)]);
    }

    #[test]
    fn a_side_by_side_run_reads_back_as_it_was_sent() {
        let rows = [
            reference(1.0, 3.0, Some(0)),
            target(1.0, 1.0, Some(0)),
            target(2.0, 2.0, Some(1)),
            reference(2.0, 4.0, Some(1)),
        ];
        let run = read(&rows.join("\n")).unwrap();
        let again = read(&gate_report::samples(&run)).unwrap();
        is_consistent(&again);
        assert_eq!(again.samples, run.samples, "the order within a pair is kept");
        assert_eq!(run.samples[0].arm, Arm::Reference);
    }

    #[test]
    fn arms_that_do_not_pair_are_refused() {
        let both = |pairs: [Option<u32>; 4]| {
            let [a, b, c, d] = pairs;
            [target(1.0, 1.0, a), target(2.0, 1.0, b), reference(1.0, 1.0, c), reference(2.0, 1.0, d)].join("\n")
        };
        for (pairs, words) in [
            ([Some(1), Some(2), Some(1), None], "line 4: `pair` is missing"),
            ([None, Some(2), Some(1), Some(2)], "line 1: `pair` is missing"),
            ([Some(1), Some(1), Some(1), Some(2)], "line 2: an earlier row of the same arm has `pair` 1 too"),
            ([Some(1), Some(2), Some(2), Some(2)], "line 4: an earlier row of the same arm has `pair` 2 too"),
            ([Some(1), Some(2), Some(2), Some(3)], "line 1: no row of the other arm has `pair` 1"),
        ] {
            let found = message(&both(pairs));
            assert!(found.starts_with(words), "{found}");
        }
        let more = [target(1.0, 1.0, None), reference(1.0, 1.0, None), reference(2.0, 1.0, None)].join("\n");
        assert!(message(&more).starts_with("there are 1 requests of the target and 2 of the reference"));
        let alone = format!("\n{}", reference(1.0, 1.0, None));
        assert!(message(&alone).starts_with("line 2: every row has `arm` \"reference\""));
        let unsorted = [target(1.0, 1.0, None), reference(3.0, 1.0, None), reference(2.0, 1.0, None)].join("\n");
        assert!(message(&unsorted).starts_with("line 3: `send_s` is 2, earlier than the row before"));
    }

    #[test]
    fn a_run_has_the_arms_of_its_file() {
        let mut both = spec();
        both.reference = Some(Target::new(Endpoint::Url("http://old:8000/v1".to_owned())));
        let started = "2026-11-29T16:37:00Z";
        let read = |text: &str| {
            import(Format::Samples, Import { spec: both.clone(), text, gate: "0.1.0", run_id: "r", started }).unwrap()
        };
        let run = read(&target(1.0, 1.0, None));
        is_consistent(&run);
        assert_eq!(run.header.spec.reference, None);
        let run = read(&[target(1.0, 1.0, None), reference(1.0, 1.0, None)].join("\n"));
        is_consistent(&run);
        assert_eq!(run.header.spec.reference, both.reference);
    }

    #[test]
    fn another_file_is_laid_beside_as_the_reference() {
        let run = read(&[target(1.0, 1.0, None), target(3.0, 2.0, None)].join("\n")).unwrap();
        let old = GateSpec { target: Target::new(Endpoint::Url("http://old:8000/v1".to_owned())), ..spec() };
        let text = [target(700.0, 3.0, None), target(701.0, 4.0, None)].join("\n");
        let beside = import(
            Format::Samples,
            Import { spec: old.clone(), text: &text, gate: "0.1.0", run_id: "old", started: "2026-11-28T00:00:00Z" },
        );
        let beside = beside.unwrap();
        let both = with_reference(run.clone(), beside.clone()).unwrap();
        is_consistent(&both);
        let (one, other) = (Arm::Target, Arm::Reference);
        assert_eq!(shown(&both), [(one, 0, 1.0), (other, 0, 3.0), (other, 1, 4.0), (one, 1, 2.0)]);
        assert_eq!(both.header.schedule, [0, 0, 1, 2].map(Nanos::from_secs));
        assert_eq!((both.header.run_id.as_str(), both.header.looks.as_slice()), ("r", [2].as_slice()));
        assert_eq!(both.header.spec.reference, Some(old.target));
        assert_eq!(both.end.as_ref().unwrap().at, run.end.as_ref().unwrap().at.max(beside.end.as_ref().unwrap().at));

        assert_eq!(with_reference(both.clone(), beside.clone()), Err(ImportError::HasReference));
        assert_eq!(with_reference(beside, both), Err(ImportError::HasReference));
        let short = read(&target(1.0, 1.0, None)).unwrap();
        assert_eq!(with_reference(run, short), Err(ImportError::Unpaired { target: 2, reference: 1 }));
    }

    #[test]
    fn a_file_laid_beside_is_paired_by_its_pairs() {
        let file = |rows: &[(f64, Option<u32>)]| {
            let rows = rows.iter().zip(1_u8..).map(|((ttft, pair), send)| target(f64::from(send), *ttft, *pair));
            read(&rows.collect::<Vec<_>>().join("\n")).unwrap()
        };
        // Every pair is equal; by their order they would be as far apart as can be.
        let run = file(&[(20.0, Some(0)), (21.0, Some(1)), (22.0, Some(2))]);
        let both = with_reference(run.clone(), file(&[(22.0, Some(2)), (21.0, Some(1)), (20.0, Some(0))])).unwrap();
        is_consistent(&both);
        let of = |arm: Arm| {
            let mut pairs: Vec<_> =
                shown(&both).into_iter().filter(|(one, ..)| *one == arm).map(|row| (row.1, row.2)).collect();
            pairs.sort_by_key(|(pair, _)| *pair);
            pairs
        };
        assert_eq!(of(Arm::Target), [(0, 20.0), (1, 21.0), (2, 22.0)]);
        assert_eq!(of(Arm::Reference), of(Arm::Target));

        let refused =
            |pairs: [Option<u32>; 3]| with_reference(run.clone(), file(&pairs.map(|pair| (20.0, pair)))).unwrap_err();
        let row = |row| Spot::Row { arm: Arm::Reference, row };
        assert_eq!(refused([None; 3]), ImportError::NoPair { at: row(1) }, "one file has pairs, and the other none");
        assert_eq!(refused([Some(0), None, Some(2)]), ImportError::NoPair { at: row(2) });
        assert_eq!(refused([Some(0); 3]), ImportError::PairTwice { at: row(2), pair: 0 });
        let alone = refused([Some(0), Some(1), Some(9)]);
        assert_eq!(alone, ImportError::PairAlone { at: Spot::Row { arm: Arm::Target, row: 3 }, pair: 2 });
        assert_eq!(alone.to_string(), "row 3 of the target's file: no row of the other arm has `pair` 2");
        let none = file(&[(1.0, None), (1.0, None), (1.0, None)]);
        let beside = with_reference(none, run.clone()).unwrap_err();
        assert_eq!(beside, ImportError::NoPair { at: Spot::Row { arm: Arm::Target, row: 1 } });
    }

    #[test]
    fn a_file_says_whether_it_has_a_reference() {
        let has = |text: &str| has_reference(Format::Samples, text);
        assert!(has(&[target(1.0, 1.0, None), reference(1.0, 1.0, None)].join("\n")));
        assert!(has(&format!("\u{feff}{}", reference(1.0, 1.0, None))));
        assert!(!has(&target(1.0, 1.0, None)));
        for none in ["", "\n", r#"{"arm": "reference""#, r#"{"scenario": "reference"}"#, r#"["reference"]"#] {
            assert!(!has(none), "{none}");
        }
    }

    #[test]
    fn an_imported_baseline_has_no_key() {
        let run = read(&row(&[])).unwrap();
        let baseline = as_baseline(run.clone());
        assert!(baseline.key.hash.is_empty() && baseline.key.parts.is_empty());
        assert_eq!((baseline.id(), baseline.saved.as_str()), ("r", run.header.started.as_str()));
        assert_eq!(baseline.run.header.imported_from.as_deref(), Some("samples"));
    }

    #[test]
    fn a_format_that_is_not_there_yet_says_so() {
        assert_eq!("samples".parse(), Ok(Format::Samples));
        for name in ["guidellm", "aiperf", "genai-perf", "llmperf", "inference-perf", "locust"] {
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
