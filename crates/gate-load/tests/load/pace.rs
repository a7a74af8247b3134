//! What decides when a request is sent, which connections it takes, and which thread sends it.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use gate_model::{Connections, Decision, EndReason, Nanos, Outcome, Pace, PerSecond, Run, Sample};

use crate::bench::{Bench, Report};
use crate::server::*;

/// How many requests were open at once, at most.
#[derive(Clone, Default)]
pub(crate) struct Crowd(Arc<(AtomicU32, AtomicU32)>);

impl Crowd {
    fn enter(&self) {
        let open = self.0.0.fetch_add(1, Ordering::SeqCst) + 1;
        self.0.1.fetch_max(open, Ordering::SeqCst);
    }

    fn leave(&self) {
        self.0.0.fetch_sub(1, Ordering::SeqCst);
    }

    pub(crate) fn most(&self) -> u32 {
        self.0.1.load(Ordering::SeqCst)
    }
}

/// A server whose answers take so long, and how many are open there at once.
pub(crate) fn slow(millis: u64) -> (std::net::SocketAddr, Crowd) {
    let crowd = Crowd::default();
    let inside = crowd.clone();
    let address = serve_measured(move |_, _| {
        inside.enter();
        std::thread::sleep(std::time::Duration::from_millis(millis));
        // Before the answer, after which the client may send the next.
        inside.leave();
        stream(&["a"])
    });
    (address, crowd)
}

pub(crate) fn closed(mut bench: Bench, concurrency: u32) -> Bench {
    bench.spec.load.pace = Pace::Closed { concurrency };
    for request in &mut bench.plan.requests {
        request.at = Nanos::ZERO;
    }
    bench
}

pub(crate) fn capped(mut bench: Bench, cap: u32) -> Bench {
    bench.spec.load.pace = Pace::Open { rate: PerSecond(200.0), cap: Some(cap) };
    bench
}

fn assert_each_once(run: &Run, count: u32) {
    assert_eq!(run.samples.iter().map(|sample| sample.index).collect::<Vec<_>>(), (0..count).collect::<Vec<_>>());
    assert!(run.samples.iter().all(|sample| sample.outcome == Outcome::Ok), "{run:?}");
    assert_eq!(run.end.as_ref().unwrap().sent, count);
}

#[test]
fn a_closed_loop_keeps_so_many_open() {
    let (address, crowd) = slow(40);
    let Report { run, journal, .. } = closed(Bench::new(address, 12), 3).go();
    assert_each_once(&run, 12);
    assert_eq!(crowd.most(), 3);
    for sample in &run.samples {
        assert_eq!((Some(sample.intended), sample.cap_wait), (sample.start, None));
    }
    // The fourth is sent when one of the first three has ended.
    let ended = run.samples[..3].iter().map(|sample| sample.end.unwrap()).min().unwrap();
    assert!(run.samples[3].start.unwrap() >= ended);
    assert_eq!(Run::from_journal(&journal).unwrap(), run);
}

#[test]
fn a_look_stops_a_closed_loop() {
    let (address, _) = slow(20);
    let mut bench = closed(Bench::new(address, 2_000), 2);
    bench.plan.looks = vec![4, 2_000];
    bench.decisions = vec![Decision::Stop];
    let report = bench.go();
    assert_eq!(report.run.end.as_ref().unwrap().reason, EndReason::StoppedAtLook(4));
    let sent = report.run.samples.len();
    assert!((4..2_000).contains(&sent), "{sent}");
    assert!(report.run.samples.iter().all(|sample| sample.outcome == Outcome::Ok));
}

#[test]
fn waiting_under_a_cap_counts_and_is_not_the_servers_time() {
    let (address, crowd) = slow(60);
    let mut bench = capped(Bench::new(address, 20), 1);
    // Twenty in a row take longer than that; each of them does not.
    bench.spec.timeouts.first_token = Nanos::from_millis(900);
    let run = bench.go().run;
    assert_each_once(&run, 20);
    assert_eq!(crowd.most(), 1);
    let waits: Vec<_> = run.samples.iter().map(|sample| sample.cap_wait.unwrap()).collect();
    assert!(waits.is_sorted() && waits[19] > Nanos::from_millis(900), "{waits:?}");
    for sample in &run.samples {
        assert_eq!(sample.intended, Nanos::from_millis(5 * i64::from(sample.index)));
        let (start, wait) = (sample.start.unwrap(), sample.cap_wait.unwrap());
        assert!(start + wait <= sample.writing.unwrap() && sample.writing <= sample.sent, "{sample:?}");
        assert!(sample.first_token.unwrap() - sample.intended > wait);
    }
}

#[test]
fn what_waits_for_a_slot_is_not_sent_once_a_look_has_stopped_the_load() {
    let (address, _) = slow(300);
    let mut bench = capped(Bench::new(address, 6), 1);
    bench.plan.looks = vec![1, 6];
    bench.decisions = vec![Decision::Stop];
    let report = bench.go();
    assert_eq!(report.run.end.as_ref().unwrap().reason, EndReason::StoppedAtLook(1));
    assert!(report.run.samples.len() <= 3, "{:?}", report.run);
    assert!(report.run.samples.iter().all(|sample| sample.outcome == Outcome::Ok));
}

#[test]
fn what_waits_for_a_slot_when_the_runs_time_is_over_has_timed_out() {
    let address = serve_measured(|_, _| vec![Hold]);
    let mut bench = capped(Bench::new(address, 3), 1);
    bench.spec.timeouts.run = Some(Nanos::from_secs(1));
    let run = bench.go().run;
    let outcomes: Vec<_> = run.samples.iter().map(|sample| (sample.outcome, sample.sent.is_some())).collect();
    let timeout = |sent| (Outcome::TimeoutTotal, sent);
    assert_eq!(outcomes, [timeout(true), timeout(false), timeout(false)]);
}

#[test]
fn fresh_connections_are_new_and_their_phases_known() {
    let seen = Arc::new(Mutex::new(BTreeSet::new()));
    let log = Arc::clone(&seen);
    let address = serve_measured(move |_, request| {
        log.lock().unwrap().insert(request.connection);
        stream(&["a"])
    });
    let mut bench = Bench::new(address, 8).every(40);
    bench.spec.load.connections = Connections::Fresh;
    let run = bench.go().run;
    assert_each_once(&run, 8);
    assert_eq!(seen.lock().unwrap().len(), 8);
    for sample in &run.samples {
        let (start, connected) = (sample.start.unwrap(), sample.connected.unwrap());
        assert!(sample.connect.unwrap() <= connected - start && sample.tls.is_none(), "{sample:?}");
        assert!(connected <= sample.writing.unwrap());
    }
}

#[test]
fn workers_share_the_requests() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    let address = serve_measured(move |index, request| {
        log.lock().unwrap().push((index as u32, request.connection));
        stream(&["a", "b"])
    });
    for shape in [|bench| bench, |bench| closed(bench, 3), |bench| capped(bench, 2)] {
        seen.lock().unwrap().clear();
        let mut bench = shape(Bench::new(address, 60).warmup(2));
        bench.spec.load.workers = 2;
        let Report { run, journal, .. } = bench.go();
        assert_each_once(&run, 60);
        let mut seen = seen.lock().unwrap().clone();
        seen.sort_unstable();
        assert_eq!(seen.iter().map(|(index, _)| *index).collect::<Vec<_>>(), (0..60).collect::<Vec<_>>());
        // Requests are dealt in turn, and no connection is used by two threads.
        let of = |thread: u32| -> BTreeSet<_> {
            seen.iter().filter(|(index, _)| index % 2 == thread).map(|(_, connection)| *connection).collect()
        };
        assert!(of(0).is_disjoint(&of(1)));
        assert_eq!(Run::from_journal(&journal).unwrap(), run);
        let is_opened = |sample: &Sample| sample.connected.is_some();
        assert!(!is_opened(&run.samples[0]) && !is_opened(&run.samples[1]), "warm-up opened one for each thread");
    }
}

#[test]
fn a_run_of_several_workers_ends_when_it_is_stopped() {
    let address = serve_measured(|_, _| vec![stream_head(), chunk(&token("a")), Hold]);
    let mut bench = Bench::new(address, 6);
    bench.spec.load.workers = 3;
    bench.plan.requests[5].at = Nanos::from_secs(3_600);
    let stop = bench.stop.clone();
    bench.observe = Box::new(move |progress| {
        if let gate_load::Progress::Tick { sent: 5, .. } = progress {
            stop.trigger();
        }
    });
    let run = bench.go().run;
    assert_eq!(run.end.as_ref().unwrap().reason, EndReason::Interrupted);
    assert_eq!(run.samples.iter().map(|sample| sample.outcome).collect::<Vec<_>>(), [Outcome::Cancelled; 5]);
}

#[test]
fn a_body_that_stays_open_after_the_answer_holds_no_slot() {
    let open = || vec![stream_head(), chunk(&token("a")), chunk(&finish("stop")), chunk(DONE), Hold];
    for limit in [closed, capped] {
        let run = limit(Bench::new(serve_measured(move |_, _| open()), 10), 1).go().run;
        assert_each_once(&run, 10);
        // The end of each body is waited for, a second long.
        let last = run.samples[9].start.unwrap() + run.samples[9].cap_wait.unwrap_or_default();
        assert!(last < Nanos::from_secs(5), "{run:?}");
    }
}
