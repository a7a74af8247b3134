//! How runs end: interrupts, looks, the run's own limit.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use gate_load::{Progress, Stop};
use gate_model::{Decision, EndReason, Nanos, Outcome, Run};

use crate::bench::Bench;
use crate::server::*;

fn reason(run: &Run) -> EndReason {
    run.end.as_ref().unwrap().reason.clone()
}

/// Triggers a switch a while later, and gives the instant it did.
fn trigger_later(stop: &Stop, millis: u64) -> Arc<Mutex<Option<Instant>>> {
    let (stop, at) = (stop.clone(), Arc::new(Mutex::new(None)));
    let triggered = Arc::clone(&at);
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(millis));
        *triggered.lock().unwrap() = Some(Instant::now());
        stop.trigger();
    });
    at
}

/// Runs a bench whose every deadline is far off, interrupts it, and checks that it ends.
fn interrupt(mut bench: Bench) -> Run {
    let hour = Nanos::from_secs(3600);
    bench.spec.target.ready.within = hour;
    bench.spec.timeouts =
        gate_model::Timeouts { connect: hour, first_token: hour, stall: hour, total: hour, run: Some(hour) };
    let at = trigger_later(&bench.stop, 400);
    let report = bench.go();
    assert!(at.lock().unwrap().is_some_and(|at| at.elapsed() < Duration::from_secs(30)));
    assert_eq!(reason(&report.run), EndReason::Interrupted);
    let read = Run::from_journal(&report.journal).unwrap();
    assert_eq!(read.end, report.run.end);
    report.run
}

#[test]
fn an_interrupt_ends_the_wait_for_readiness() {
    let address = serve(|_| vec![head("503 Service Unavailable", &["content-length: 0"])]);
    let run = interrupt(Bench::new(address, 3));
    assert!(run.samples.is_empty() && run.warmup.is_empty());
    let silent = serve(|_| vec![Hold]);
    assert!(interrupt(Bench::new(silent, 3)).samples.is_empty());
}

#[test]
fn an_interrupt_ends_warm_up() {
    let address = serve(|seen| if seen.is_warmup() { vec![Hold] } else { stream(&["a"]) });
    let run = interrupt(Bench::new(address, 3).warmup(3));
    assert_eq!(run.warmup.iter().map(|sample| sample.outcome).collect::<Vec<_>>(), [Outcome::Cancelled]);
    assert!(run.samples.is_empty());
}

#[test]
fn an_interrupt_ends_open_streams_and_sends_nothing_more() {
    let address = serve_measured(|_, _| vec![stream_head(), chunk(&token("a")), Hold]);
    // The third request is due in three hours.
    let mut bench = Bench::new(address, 3);
    bench.plan.requests[2].at = Nanos::from_secs(3 * 3600);
    let run = interrupt(bench);
    assert_eq!(run.samples.iter().map(|sample| sample.outcome).collect::<Vec<_>>(), [Outcome::Cancelled; 2]);
    assert_eq!(run.end.unwrap().sent, 2);
}

#[test]
fn a_load_stopped_before_it_starts_sends_nothing() {
    let asked = Arc::new(Mutex::new(0));
    let count = Arc::clone(&asked);
    let address = serve_measured(move |_, _| {
        *count.lock().unwrap() += 1;
        stream(&["a"])
    });
    let bench = Bench::new(address, 3);
    bench.stop.trigger();
    assert!(bench.stop.is_triggered());
    assert_eq!(reason(&bench.go().run), EndReason::Interrupted);
    assert_eq!(*asked.lock().unwrap(), 0);
}

#[test]
fn the_referee_stops_the_load_and_open_streams_finish() {
    // Request 3 is open while the look at 2 stops the load; request 4 is due too late.
    let address = serve_measured(|index, _| match index {
        0..2 => stream(&["a"]),
        _ => {
            let mut acts = stream(&["a"]);
            acts.insert(1, Pause(1_500));
            acts
        }
    });
    let mut bench = Bench::new(address, 5);
    bench.plan.looks = vec![1, 2, 5];
    bench.plan.requests[4].at = Nanos::from_secs(3600);
    bench.decisions = vec![Decision::GoOn, Decision::Stop];
    let looks = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&looks);
    bench.observe = Box::new(move |progress| {
        if let Progress::Look { n, decision } = progress {
            heard.lock().unwrap().push((*n, *decision));
        }
    });
    let report = bench.go();
    assert_eq!(reason(&report.run), EndReason::StoppedAtLook(2));
    assert_eq!(report.looks, [1, 2]);
    assert_eq!(*looks.lock().unwrap(), [(1, Decision::GoOn), (2, Decision::Stop)]);
    assert!(report.run.samples.len() <= 4 && report.run.samples.len() >= 2);
    assert!(report.run.samples.iter().all(|sample| sample.outcome == Outcome::Ok));
}

#[test]
fn a_look_waits_for_every_earlier_request_and_the_last_one_completes() {
    let address = serve_measured(|index, _| {
        let mut acts = stream(&["a"]);
        if index == 0 {
            acts.insert(0, Pause(300));
        }
        acts
    });
    let mut bench = Bench::new(address, 4);
    bench.plan.looks = vec![2, 4];
    bench.decisions = vec![Decision::GoOn, Decision::Stop];
    let ended = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&ended);
    bench.observe = Box::new(move |progress| match progress {
        Progress::Ended(sample) => heard.lock().unwrap().push(format!("ended {}", sample.index)),
        Progress::Look { n, .. } => heard.lock().unwrap().push(format!("look {n}")),
        _ => {}
    });
    let report = bench.go();
    assert_eq!(reason(&report.run), EndReason::Completed);
    assert_eq!(report.looks, [2, 4]);
    let ended = ended.lock().unwrap().clone();
    let place = |what: &str| ended.iter().position(|word| word == what).unwrap();
    assert!(place("look 2") > place("ended 0") && place("look 2") > place("ended 1"), "{ended:?}");
    assert_eq!(report.run.samples.iter().map(|sample| sample.index).collect::<Vec<_>>(), [0, 1, 2, 3]);
}

#[test]
fn the_runs_own_limit_ends_what_is_open() {
    let address = serve_measured(|index, _| if index == 0 { stream(&["a"]) } else { vec![Hold] });
    let mut bench = Bench::new(address, 3);
    bench.spec.timeouts.run = Some(Nanos::from_secs(1));
    bench.plan.requests[2].at = Nanos::from_secs(3600);
    let run = bench.go().run;
    assert_eq!(reason(&run), EndReason::RunTimeout);
    let outcomes: Vec<_> = run.samples.iter().map(|sample| sample.outcome).collect();
    assert_eq!(outcomes, [Outcome::Ok, Outcome::TimeoutTotal]);
    assert!(run.samples[1].error.as_ref().unwrap().contains("timeouts.run"));
}
