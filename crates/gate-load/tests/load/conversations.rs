//! Conversations: turns that follow from answers.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use gate_load::Progress;
use gate_model::{Arm, EndReason, Nanos, Outcome, PlannedRequest, Run, Sample};
use serde_json::Value;

use crate::bench::Bench;
use crate::pace::{capped, closed};
use crate::server::*;

/// What a server was asked: by request, its messages.
type Heard = Arc<Mutex<Vec<(usize, Vec<(String, String)>)>>>;

/// A server that answers request 4 with `re 4`, where the script has nothing else to say.
fn echoing(script: impl Fn(usize) -> Option<Vec<Act>> + Send + Sync + 'static) -> (SocketAddr, Heard) {
    let heard = Heard::default();
    let noted = Arc::clone(&heard);
    let address = serve_measured(move |index, seen| {
        let body: Value = serde_json::from_str(&seen.body).unwrap();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let messages = body["messages"].as_array().unwrap().iter();
        let messages = messages.map(|message| (text(&message["role"]), text(&message["content"])));
        noted.lock().unwrap().push((index, messages.collect()));
        script(index).unwrap_or_else(|| stream(&["re ", &index.to_string()]))
    });
    (address, heard)
}

/// So many conversations of so many turns, with time to think between them.
fn turns(bench: Bench, conversations: u32, turns: u32, think: i64) -> Bench {
    let mut bench = bench;
    bench.spec.prompts.turns = gate_model::Turns { min: turns, max: turns };
    let one = |conversation: u32, turn: u32| PlannedRequest {
        index: conversation * turns + turn,
        turn: turn as u16,
        at: Nanos::from_millis(if turn == 0 { 10 * i64::from(conversation) } else { think }),
        ..bench.plan.requests[0]
    };
    let all = (0..conversations).flat_map(|conversation| (0..turns).map(move |turn| one(conversation, turn)));
    bench.plan.requests = all.collect();
    bench.plan.whole = conversations * turns;
    bench.plan.looks = vec![conversations * turns];
    bench
}

/// In an open loop, under a cap, and in a closed loop.
fn shapes(bench: impl Fn() -> Bench) -> [Bench; 3] {
    let in_turn = |mut bench: Bench| {
        for request in bench.plan.requests.iter_mut().filter(|request| request.turn == 0) {
            request.at = Nanos::ZERO;
        }
        bench
    };
    let thinking: Vec<_> = bench().plan.requests.iter().map(|request| request.at).collect();
    let mut third = closed(bench(), 2);
    third.plan.requests.iter_mut().zip(thinking).for_each(|(request, at)| request.at = at);
    [bench(), capped(bench(), 1), in_turn(third)]
}

fn assert_journal(journal: &str, run: &Run) {
    assert_eq!(&Run::from_journal(journal).unwrap(), run);
}

#[test]
fn a_later_turn_carries_the_history_with_the_real_answers() {
    let (address, heard) = echoing(|_| None);
    for (shape, mut bench) in shapes(|| turns(Bench::new(address, 1), 4, 3, 30)).into_iter().enumerate() {
        heard.lock().unwrap().clear();
        bench.spec.load.workers = 2;
        let report = bench.go();
        let run = report.run;
        assert_eq!(run.end.as_ref().unwrap().reason, EndReason::Completed);
        assert_eq!(run.samples.iter().map(|sample| sample.index).collect::<Vec<_>>(), (0..12).collect::<Vec<_>>());
        assert_journal(&report.journal, &run);
        for (index, messages) in &*heard.lock().unwrap() {
            let (first, turn) = (index - index % 3, index % 3);
            let mut expected = Vec::new();
            for before in 0..turn {
                expected.push(("user".to_owned(), format!("turn {before}")));
                expected.push(("assistant".to_owned(), format!("re {}", first + before)));
            }
            expected.push(("user".to_owned(), format!("measured-{index}.")));
            assert_eq!(*messages, expected);
        }
        for two in run.samples.windows(2).filter(|two| two[1].turn > 0) {
            let due = two[0].end.unwrap() + Nanos::from_millis(30);
            assert!(two[1].start.unwrap() >= due, "{two:?}");
            match shape {
                2 => assert_eq!(Some(two[1].intended), two[1].start),
                _ => assert_eq!(two[1].intended, due),
            }
            assert_eq!(two[1].cap_wait.is_some(), shape == 1);
        }
    }
}

#[test]
fn a_turn_that_fails_ends_its_conversation_and_leaves_holes() {
    // The second turn of the first conversation, and the first of the third one.
    let (address, _) = echoing(|index| match index {
        1 => Some(document("500 Oops", "text/plain", "no")),
        6 => Some(stream(&[])),
        _ => None,
    });
    for mut bench in shapes(|| turns(Bench::new(address, 1), 4, 3, 5)) {
        bench.plan.looks = vec![6, 12];
        let report = bench.go();
        let run = report.run;
        assert_eq!(run.samples.iter().map(|sample| sample.index).collect::<Vec<_>>(), [0, 1, 3, 4, 5, 6, 9, 10, 11]);
        let end = run.end.as_ref().unwrap();
        assert_eq!((end.reason.clone(), end.sent), (EndReason::Completed, 9));
        // A look counts what was planned: it has the requests of it that were sent.
        assert_eq!(report.looks, [5, 9]);
        assert_journal(&report.journal, &run);
    }
}

#[test]
fn each_arm_follows_its_own_answers() {
    let ((target, one), (reference, other)) = (echoing(|_| None), echoing(|_| Some(stream(&["else"]))));
    let bench = Bench::new(target, 2).beside(&format!("http://{reference}"));
    let request =
        |index: u32, arm, pair, turn| PlannedRequest { index, arm, pair: Some(pair), turn, ..bench.plan.requests[0] };
    let (target, reference) = (Arm::Target, Arm::Reference);
    let requests = vec![
        request(0, target, 0, 0),
        request(1, reference, 0, 0),
        request(2, target, 1, 1),
        request(3, reference, 1, 1),
    ];
    let mut bench = bench;
    (bench.plan.requests, bench.plan.whole, bench.plan.looks) = (requests, 4, vec![2]);
    bench.spec.prompts.turns = gate_model::Turns { min: 2, max: 2 };
    let run = bench.go().run;
    assert_eq!(run.samples.iter().map(|sample| sample.index).collect::<Vec<_>>(), [0, 1, 2, 3]);
    let answers = |heard: &Heard| heard.lock().unwrap().iter().map(|(_, said)| said.len()).collect::<Vec<_>>();
    assert_eq!((answers(&one), answers(&other)), (vec![1, 3], vec![1, 3]));
    assert_eq!(one.lock().unwrap()[1].1[1].1, "re 0");
    assert_eq!(other.lock().unwrap()[1].1[1].1, "else");
}

#[test]
fn an_interrupt_in_the_middle_of_a_conversation_ends_it() {
    let (address, _) = echoing(|_| None);
    // The second turn is due in an hour.
    for mut bench in shapes(|| turns(Bench::new(address, 1), 3, 2, 3_600_000)) {
        let (stop, mut ended) = (bench.stop.clone(), 0);
        bench.observe = Box::new(move |progress| {
            ended += u32::from(matches!(progress, Progress::Ended(_)));
            if ended == 3 {
                stop.trigger();
            }
        });
        let report = bench.go();
        let run = report.run;
        assert_eq!(run.end.as_ref().unwrap().reason, EndReason::Interrupted);
        assert_eq!(run.samples.iter().map(|sample| sample.index).collect::<Vec<_>>(), [0, 2, 4]);
        assert_journal(&report.journal, &run);
    }
}

#[test]
fn an_open_turn_is_cut_by_an_interrupt() {
    let (address, _) = echoing(|index| (index == 1).then(|| vec![stream_head(), chunk(&token("a")), Hold]));
    for bench in shapes(|| turns(Bench::new(address, 1), 1, 3, 1)) {
        let stop = bench.stop.clone();
        std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(1_500));
            stop.trigger();
        });
        let report = bench.go();
        assert_eq!(report.run.end.as_ref().unwrap().reason, EndReason::Interrupted);
        let outcomes = |sample: &Sample| (sample.index, sample.outcome);
        let outcomes: Vec<_> = report.run.samples.iter().map(outcomes).collect();
        assert_eq!(outcomes, [(0, Outcome::Ok), (1, Outcome::Cancelled)]);
        assert_journal(&report.journal, &report.run);
    }
}
