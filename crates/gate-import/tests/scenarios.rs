//! What a `samples` file becomes where the spec has scenarios or conversations.

#[cfg(test)]
mod scenarios {
    use gate_import::{Format, Import, ImportError, import, with_reference};
    use gate_model::{
        Arm, Endpoint, GateSpec, JournalLine, Load, Nanos, PromptSpec, Run, RunOrder, Scenario, Slo, Turns,
    };

    fn spec(order: RunOrder) -> GateSpec {
        let scenario = |name: &str| Scenario {
            name: name.to_owned(),
            load: Load::default(),
            prompts: PromptSpec::default(),
            slo: Slo::default(),
            model: None,
            extra_body: serde_json::Map::new(),
            weight: 1.0,
        };
        let plain = GateSpec::new("mixed", Endpoint::Url("http://127.0.0.1:8000/v1".to_owned()));
        GateSpec { scenarios: vec![scenario("chat"), scenario("batch")], order, ..plain }
    }

    fn read_by(spec: GateSpec, text: &str) -> Result<Run, ImportError> {
        let started = "2026-11-29T16:37:00Z";
        import(Format::Samples, Import { spec, text, gate: "0.1.0", run_id: "r", started })
    }

    fn row_of(more: &str, send_s: f64, ttft_ms: u32) -> String {
        format!(
            "{{\"send_s\":{send_s},\"status\":200,\"ttft_ms\":{ttft_ms},\"tpot_ms\":null,\"e2e_ms\":1000,\
             \"output_tokens\":3{more}}}\n"
        )
    }

    fn row(scenario: &str, send_s: f64, ttft_ms: u32) -> String {
        row_of(&format!(",\"scenario\":\"{scenario}\""), send_s, ttft_ms)
    }

    fn two(scenario: &str, arm: &str, send_s: f64, ttft_ms: u32) -> String {
        row_of(&format!(",\"scenario\":\"{scenario}\",\"arm\":\"{arm}\""), send_s, ttft_ms)
    }

    /// Index, scenario, time due in seconds, and TTFT in milliseconds.
    fn shown(run: &Run) -> Vec<(u32, u16, f64, i64)> {
        let shown = run.samples.iter().map(|sample| {
            let ttft = sample.first_token.unwrap() - sample.intended;
            (sample.index, sample.scenario, sample.intended.as_secs_f64(), ttft.0 / 1_000_000)
        });
        shown.collect()
    }

    /// A journal of it, one header for each section, is the same run.
    fn reads_back(run: &Run) {
        let mut lines = Vec::new();
        let mut first = 0;
        for section in run.sections() {
            let own = |samples: &[gate_model::Sample]| -> Vec<_> {
                samples.iter().filter(|sample| section.scenarios.contains(&sample.scenario)).cloned().collect()
            };
            let samples = own(&run.samples);
            let mut header = run.header.clone();
            (header.section, header.first, header.looks) = (section.number, first, section.looks.clone());
            (header.planned, header.whole) = (section.planned, section.planned);
            header.by_scenario = section.by_scenario.clone();
            if !header.schedule.is_empty() {
                header.schedule = samples.iter().map(|sample| sample.intended).collect();
            }
            lines.push(JournalLine::Header(Box::new(header)));
            lines.extend(samples.into_iter().map(|sample| JournalLine::Sample(Box::new(sample))));
            lines.extend(section.end.clone().map(|end| JournalLine::End(Box::new(end))));
            first += section.planned;
        }
        let text: String = lines.iter().map(|line| serde_json::to_string(line).unwrap() + "\n").collect();
        assert_eq!(Run::from_journal(&text).unwrap(), *run);
    }

    #[test]
    fn those_that_run_in_turn_are_sections() {
        // Each begins anew, and rows of both may stand among each other.
        let text =
            [row("batch", 5.0, 30), row("chat", 100.0, 10), row("batch", 6.5, 40), row("chat", 101.0, 20)].concat();
        let text = text + &row("batch", 7.0, 50);
        let run = read_by(spec(RunOrder::InTurn), &text).unwrap();
        assert_eq!(shown(&run), [(0, 0, 0.0, 10), (1, 0, 1.0, 20), (2, 1, 0.0, 30), (3, 1, 1.5, 40), (4, 1, 2.0, 50)]);
        let facts = run.sections.iter().map(|section| {
            let end = section.end.as_ref().unwrap();
            (section.number, section.scenarios.clone(), section.looks.clone(), section.planned, end.sent, end.at)
        });
        assert_eq!(
            facts.collect::<Vec<_>>(),
            [(0, vec![0], vec![2], 2, 2, Nanos::from_secs(2)), (1, vec![1], vec![3], 3, 3, Nanos::from_secs(3)),]
        );
        assert_eq!((run.planned(), run.recorded(), run.end.as_ref().unwrap().sent), (5, 5, 5));
        reads_back(&run);
    }

    #[test]
    fn those_that_run_together_are_one_section() {
        let text = [row("chat", 0.0, 10), row("batch", 0.5, 30), row("chat", 1.0, 20)].concat();
        let run = read_by(spec(RunOrder::Together), &text).unwrap();
        assert_eq!(shown(&run), [(0, 0, 0.0, 10), (1, 1, 0.5, 30), (2, 0, 1.0, 20)]);
        assert_eq!((run.header.looks.clone(), run.header.by_scenario.clone()), (vec![3], vec![vec![2, 1]]));
        assert_eq!((run.sections.len(), run.sections()[0].looks_of(1)), (0, vec![1]));
        reads_back(&run);
        let error = read_by(spec(RunOrder::Together), &(row("chat", 1.0, 10) + &row("batch", 0.5, 30))).unwrap_err();
        assert_eq!(error, ImportError::Unsorted { line: 2, send_s: "0.5".to_owned() });
    }

    #[test]
    fn every_row_is_of_a_scenario_and_every_scenario_has_rows() {
        for order in [RunOrder::InTurn, RunOrder::Together] {
            let message = |text: &str| read_by(spec(order), text).unwrap_err().to_string();
            assert_eq!(
                message(&(row("chat", 0.0, 1) + &row("mixed", 1.0, 1))),
                "line 2: the spec has no scenario `mixed`: its scenarios are `chat`, `batch`"
            );
            assert_eq!(
                message(&row_of("", 0.0, 1)),
                "line 1: `scenario` is missing, and the spec has several: its scenarios are `chat`, `batch`"
            );
            assert!(message(&row("chat", 0.0, 1)).starts_with("no row of the target has `scenario` \"batch\""));
            let beside = [row("chat", 0.0, 1), two("batch", "reference", 0.0, 1)].concat();
            assert!(message(&beside).starts_with("no row of the target has `scenario` \"batch\""));
            assert!(message("").starts_with("the file holds no request"));
        }
        let mut only = spec(RunOrder::InTurn);
        only.scenarios.truncate(1);
        let run = read_by(only, &(row_of("", 0.0, 1) + &row("chat", 1.0, 1))).unwrap();
        assert_eq!(shown(&run), [(0, 0, 0.0, 1), (1, 0, 1.0, 1)]);
        assert_eq!(run.sections, []);
    }

    /// Scenario, arm and pair in send order.
    fn pairs(run: &Run) -> Vec<(u16, Arm, Option<u32>)> {
        run.samples.iter().map(|sample| (sample.scenario, sample.arm, sample.pair)).collect()
    }

    #[test]
    fn a_pair_is_of_one_scenario() {
        use Arm::{Reference, Target};
        let text = [
            two("chat", "target", 0.0, 1),
            two("batch", "reference", 0.1, 2),
            two("batch", "target", 0.2, 3),
            two("chat", "reference", 0.3, 4),
        ];
        let together = read_by(spec(RunOrder::Together), &text.concat()).unwrap();
        let expected = [(0, Target, Some(0)), (1, Reference, Some(1)), (1, Target, Some(1)), (0, Reference, Some(0))];
        assert_eq!(pairs(&together), expected);
        assert_eq!((together.header.looks.clone(), together.header.by_scenario.clone()), (vec![2], vec![vec![1, 1]]));
        reads_back(&together);

        let in_turn = read_by(spec(RunOrder::InTurn), &text.concat()).unwrap();
        let expected = [(0, Target, Some(0)), (0, Reference, Some(0)), (1, Reference, Some(1)), (1, Target, Some(1))];
        assert_eq!(pairs(&in_turn), expected);
        assert_eq!(in_turn.sections.iter().map(|section| section.planned).collect::<Vec<_>>(), [2, 2]);
        assert!(in_turn.header.spec.reference.is_some());
        reads_back(&in_turn);

        // Two scenarios may name their pairs alike.
        let named = |scenario: &str, arm: &str, send_s: f64| {
            row_of(&format!(",\"scenario\":\"{scenario}\",\"arm\":\"{arm}\",\"pair\":7"), send_s, 1)
        };
        let text = [named("chat", "target", 0.0), named("chat", "reference", 0.0)].concat()
            + &[named("batch", "target", 1.0), named("batch", "reference", 1.0)].concat();
        let run = read_by(spec(RunOrder::InTurn), &text).unwrap();
        assert_eq!(run.samples.iter().map(|sample| sample.pair).collect::<Vec<_>>(), [0, 0, 1, 1].map(Some));
        let alone = [two("chat", "target", 0.0, 1), two("chat", "reference", 0.0, 1), two("batch", "target", 1.0, 1)];
        let error = read_by(spec(RunOrder::InTurn), &alone.concat()).unwrap_err();
        assert_eq!(error, ImportError::Unpaired { target: 1, reference: 0 });
    }

    #[test]
    fn another_file_is_laid_beside_section_by_section() {
        for order in [RunOrder::InTurn, RunOrder::Together] {
            let target = [row("chat", 0.0, 10), row("batch", 1.0, 20), row("chat", 2.0, 30)].concat();
            let beside = [row("batch", 0.0, 21), row("chat", 1.0, 11), row("chat", 2.0, 31)].concat();
            let run = with_reference(read_by(spec(order), &target).unwrap(), read_by(spec(order), &beside).unwrap());
            let run = run.unwrap();
            // TTFT of the two of each pair differ by one.
            for sample in &run.samples {
                let other =
                    run.samples.iter().find(|other| other.pair == sample.pair && other.arm != sample.arm).unwrap();
                assert_eq!(other.scenario, sample.scenario);
                let ttft = |sample: &gate_model::Sample| (sample.first_token.unwrap() - sample.intended).0 / 1_000_000;
                assert_eq!((ttft(sample) - ttft(other)).abs(), 1);
            }
            let indexes: Vec<u32> = run.samples.iter().map(|sample| sample.index).collect();
            assert_eq!(indexes, [0, 1, 2, 3, 4, 5]);
            let planned: Vec<u32> = run.sections().iter().map(|section| section.planned).collect();
            assert_eq!(planned, if order == RunOrder::InTurn { vec![4, 2] } else { vec![6] });
            assert!(run.header.spec.reference.is_some());
            reads_back(&run);

            let few = [row("chat", 0.0, 10), row("batch", 1.0, 20)].concat();
            let error = with_reference(read_by(spec(order), &target).unwrap(), read_by(spec(order), &few).unwrap())
                .unwrap_err();
            assert_eq!(error, ImportError::Unpaired { target: 2, reference: 1 });
        }
    }

    #[test]
    fn turns_are_those_of_the_specs_conversations() {
        let turn = |turn: &str, send_s: f64| row_of(&format!(",\"turn\":{turn}"), send_s, 1);
        let mut spec = GateSpec::new("mixed", Endpoint::Url("http://127.0.0.1:8000/v1".to_owned()));
        let read = |spec: &GateSpec, text: &str| read_by(spec.clone(), text);
        let message = |spec: &GateSpec, text: &str| read(spec, text).unwrap_err().to_string();
        assert_eq!(read(&spec, &turn("0", 0.0)).unwrap().samples[0].turn, 0);
        assert_eq!(read(&spec, &turn("null", 0.0)).unwrap().samples[0].turn, 0);
        assert_eq!(
            message(&spec, &turn("1", 0.0)),
            "line 1: `turn` is 1, and counts from 0, but conversations of the spec have at most 1 turn: check `prompts.turns`"
        );
        spec.prompts.turns = Turns { min: 1, max: 3 };
        let run = read(&spec, &[turn("0", 0.0), turn("0", 0.5), turn("1", 1.0), turn("2", 2.0)].concat()).unwrap();
        assert_eq!(run.samples.iter().map(|sample| sample.turn).collect::<Vec<_>>(), [0, 0, 1, 2]);
        assert_eq!(run.samples[3].intended, Nanos::from_secs(2));
        assert_eq!(run.header.schedule, [], "later turns are due when an answer has ended");
        reads_back(&run);
        assert!(message(&spec, &turn("3", 0.0)).contains("at most 3 turns"));
        for wrong in ["-1", "1.5", "70000", "\"1\""] {
            assert!(message(&spec, &turn(wrong, 0.0)).starts_with("line 1: `turn` is "), "{wrong}");
        }
    }
}
