//! The block of a running gate at every width: `fixtures/reports/live.txt` was read and approved.

#[cfg(test)]
mod goldens;

#[cfg(test)]
mod tests {
    use gate_model::{Nanos, PerSecond};
    use gate_report::{
        LiveBlock, LiveLook, LiveScenario, LiveStage, Style, escape, live_block, live_columns, live_end,
    };

    use super::goldens::expect;

    const WIDTHS: [usize; 5] = [120, 80, 60, 40, 20];

    fn ms(millis: i64) -> Nanos {
        Nanos::from_millis(millis)
    }

    fn chat() -> LiveBlock {
        LiveBlock {
            name: "chat".to_owned(),
            section: (1, 1),
            stage: LiveStage::Measuring { elapsed: ms(12_400), left: Some(ms(13_900)) },
            sent: 27,
            in_flight: 5,
            rate: Some(PerSecond(2.04)),
            look: Some(LiveLook::Next { number: 1, of: 2, at: 30 }),
            scenarios: vec![LiveScenario {
                done: 22,
                planned: 50,
                looks: vec![30],
                ttft: Some((ms(310), ms(520))),
                tpot: Some((Nanos(22_100_000), Nanos(31_200_000))),
                ..LiveScenario::default()
            }],
            ..LiveBlock::default()
        }
    }

    fn beyond() -> LiveBlock {
        let mut block = chat();
        block.look = Some(LiveLook::GoesOn { to: 100, over: Some("ttft.p50".to_owned()) });
        block.last_error = Some("timeout_first_token".to_owned());
        let scenario = &mut block.scenarios[0];
        (scenario.done, scenario.planned, scenario.looks, scenario.errors) = (71, 100, vec![30, 50], 12);
        block
    }

    fn together() -> LiveBlock {
        let mut block = beyond();
        let one = block.scenarios.remove(0);
        let named = |name: &str| LiveScenario { name: Some(name.to_owned()), ..one.clone() };
        block.scenarios = vec![named("chat"), named("batch-summaries"), named("rag")];
        block
    }

    fn hostile() -> LiveBlock {
        let name = format!("a\u{1b}[31m\nb\u{202e}{}", "漢字".repeat(60));
        let mut block = together();
        block.scenarios.iter_mut().for_each(|scenario| scenario.name = Some(name.clone()));
        let error = Some(format!("x\r\n\u{7}{}", "y".repeat(500)));
        LiveBlock { scenario: Some(name.clone()), name, section: (65_535, 65_535), last_error: error, ..block }
    }

    fn huge() -> LiveBlock {
        let mut block = chat();
        let most = (Nanos(i64::MAX), Nanos(i64::MAX));
        block.scenarios = vec![LiveScenario {
            done: u32::MAX,
            planned: u32::MAX,
            looks: vec![0, u32::MAX],
            errors: u32::MAX,
            ttft: Some(most),
            tpot: Some(most),
            ..LiveScenario::default()
        }];
        LiveBlock {
            stage: LiveStage::Measuring { elapsed: Nanos(i64::MAX), left: Some(Nanos(i64::MAX)) },
            sent: u32::MAX,
            in_flight: u32::MAX,
            rate: Some(PerSecond(f64::MAX)),
            look: Some(LiveLook::Next { number: usize::MAX, of: usize::MAX, at: u32::MAX }),
            ..block
        }
    }

    fn blocks() -> Vec<(&'static str, LiveBlock)> {
        let idle = LiveBlock {
            rate: None,
            sent: 0,
            in_flight: 0,
            scenarios: vec![LiveScenario { planned: 50, looks: vec![30], ..LiveScenario::default() }],
            ..chat()
        };
        let last = "GET /health answered 503 Service Unavailable".to_owned();
        let waiting = LiveStage::Waiting { elapsed: ms(4_000), last };
        let ramp = LiveBlock {
            name: "nightly".to_owned(),
            scenario: Some("ramp".to_owned()),
            section: (2, 3),
            stage: LiveStage::Measuring { elapsed: ms(3_725_000), left: None },
            look: None,
            ..chat()
        };
        vec![
            ("starting", LiveBlock { stage: LiveStage::Starting, ..idle.clone() }),
            ("waiting", LiveBlock { stage: waiting, ..idle.clone() }),
            ("warming up", LiveBlock { stage: LiveStage::Warmup { done: 1, of: 5 }, ..idle.clone() }),
            ("measuring", chat()),
            ("beyond its looks", beyond()),
            ("decided", LiveBlock { look: Some(LiveLook::Decided { at: 30 }), ..chat() }),
            ("a section", ramp),
            ("together", together()),
            ("hostile", hostile()),
            ("huge", huge()),
        ]
    }

    #[test]
    fn blocks_are_as_they_were_read_and_approved() {
        let mut text = String::new();
        for (name, block) in blocks() {
            for columns in WIDTHS {
                text += &format!("{name}, {columns} columns:\n");
                let lines = live_block(&block, columns, 24, Style::Plain);
                lines.iter().for_each(|line| text += &format!("|{line}\n"));
            }
            text += &format!("at the end:\n|{}\n\n", live_end(&block));
        }
        expect("live.txt", &text);
    }

    #[test]
    fn no_line_is_wider_than_the_terminal_and_no_block_higher() {
        for (name, block) in blocks() {
            for columns in 1..130 {
                for rows in [1, 4, 5, 6, 8, 24] {
                    let lines = live_block(&block, columns, rows, Style::Colour);
                    let most = if rows < 5 { 1 } else { rows - 1 };
                    assert!((1..=most).contains(&lines.len()), "{name} in {rows} rows: {}", lines.len());
                    for line in &lines {
                        assert!(live_columns(line) <= columns, "{name} at {columns}: {line}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_block_has_as_many_lines_in_every_stage() {
        for columns in [40, 60, 80, 120] {
            let counts = blocks().into_iter().filter(|(_, block)| block.scenarios.len() == 1);
            let counts = counts.map(|(_, block)| live_block(&block, columns, 24, Style::Plain).len());
            assert!(counts.into_iter().all(|count| count == 4), "{columns}");
        }
    }

    #[test]
    fn colour_adds_escape_codes_only() {
        for (name, block) in blocks() {
            for columns in WIDTHS {
                let plain = live_block(&block, columns, 24, Style::Plain);
                let coloured = live_block(&block, columns, 24, Style::Colour);
                assert!(plain.iter().all(|line| !line.contains(char::is_control)), "{name}");
                let bare: Vec<String> = coloured.iter().map(|line| escape::terminal(line)).collect();
                assert_eq!(bare, plain, "{name}");
            }
        }
    }

    #[test]
    fn scenarios_that_do_not_fit_the_terminal_are_counted() {
        let mut block = together();
        let one = block.scenarios[0].clone();
        block.scenarios = vec![one; 30];
        let lines = live_block(&block, 80, 12, Style::Plain);
        assert_eq!(lines.len(), 11);
        assert_eq!(lines[9], "  and 22 more scenarios");
    }
}
