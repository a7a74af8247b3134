//! Waiting for the target, and warm-up that is refused.

use std::net::TcpListener;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use gate_load::Progress;
use gate_model::{EndReason, Nanos, Outcome, ReadyPath};

use crate::bench::{Bench, Report};
use crate::server::*;

fn empty(status: &str) -> Vec<Act> {
    vec![head(status, &["content-length: 0"])]
}

/// Serves GETs by `get`, and everything else well; gives what was asked, too.
fn serve_gets(
    get: impl Fn(&str, u32) -> Vec<Act> + Send + Sync + 'static,
) -> (std::net::SocketAddr, Arc<Mutex<Vec<String>>>) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let lines = Arc::clone(&asked);
    let count = AtomicU32::new(0);
    let address = serve(move |seen| {
        lines.lock().unwrap().push(seen.line.clone());
        if seen.line.starts_with("GET") {
            get(&seen.line, count.fetch_add(1, Ordering::SeqCst))
        } else {
            stream(&["a"])
        }
    });
    (address, asked)
}

fn reason(report: &Report) -> EndReason {
    report.run.end.as_ref().unwrap().reason.clone()
}

#[test]
fn a_server_that_is_not_ready_is_waited_for() {
    let (address, asked) = serve_gets(|_, count| match count {
        0 => empty("503 Service Unavailable"),
        1 => vec![Close],
        _ => empty("200 OK"),
    });
    let said = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&said);
    let mut bench = Bench::new(address, 1);
    bench.observe = Box::new(move |progress| {
        if let Progress::Waiting { last, .. } = progress {
            heard.lock().unwrap().push((*last).to_owned());
        }
    });
    let report = bench.go();
    assert_eq!(reason(&report), EndReason::Completed);
    assert_eq!(report.run.samples[0].outcome, Outcome::Ok);
    let said = said.lock().unwrap().clone();
    assert_eq!(said.len(), 2, "{said:?}");
    assert!(said[0].contains("GET /health answered 503"), "{said:?}");
    assert_eq!(asked.lock().unwrap()[..3], ["GET /health HTTP/1.1"; 3]);
}

#[test]
fn a_server_that_does_not_listen_yet_is_waited_for() {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(600));
        serve_on(TcpListener::bind(address).unwrap(), |_| stream(&["a"]));
    });
    assert_eq!(reason(&Bench::new(address, 1).go()), EndReason::Completed);
}

#[test]
fn without_a_health_check_the_models_and_then_a_request_are_asked() {
    let (address, asked) =
        serve_gets(|_, count| empty(if count == 0 { "404 Not Found" } else { "405 Method Not Allowed" }));
    assert_eq!(reason(&Bench::new(address, 1).warmup(0).go()), EndReason::Completed);
    let asked = asked.lock().unwrap().clone();
    let post = "POST /v1/chat/completions HTTP/1.1";
    assert_eq!(asked, ["GET /health HTTP/1.1", "GET /v1/models HTTP/1.1", post, post]);
}

#[test]
fn a_path_of_its_own_is_the_only_one_asked() {
    let (address, asked) = serve_gets(|_, _| empty("404 Not Found"));
    let mut bench = Bench::new(address, 1);
    bench.spec.target.ready.path = ReadyPath::Path("/up".to_owned());
    bench.spec.target.ready.within = Nanos::from_millis(400);
    let report = bench.go();
    let EndReason::NotReady(words) = reason(&report) else { panic!("{report:?}") };
    assert!(words.contains("not ready within 400 ms") && words.contains("GET /up answered 404"), "{words}");
    assert!(report.run.samples.is_empty() && report.run.warmup.is_empty());
    assert!(asked.lock().unwrap().iter().all(|line| line == "GET /up HTTP/1.1"));
}

#[test]
fn a_target_that_never_listens_is_not_ready() {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut bench = Bench::new(address, 3);
    bench.spec.target.ready.within = Nanos::from_millis(400);
    let report = bench.go();
    let EndReason::NotReady(words) = reason(&report) else { panic!("{report:?}") };
    assert!(words.contains(&format!("connection refused by {address}")), "{words}");
    assert!(words.contains("target.ready.within"), "{words}");
}

#[test]
fn an_unknown_host_ends_at_once() {
    let mut bench = Bench::at("http://no-such-host.invalid/v1", 3);
    bench.spec.target.ready.within = Nanos::from_secs(3600);
    let report = bench.go();
    let EndReason::NotReady(words) = reason(&report) else { panic!("{report:?}") };
    assert!(words.contains("cannot resolve host `no-such-host.invalid`"), "{words}");
}

#[test]
fn warm_up_that_is_refused_ends_the_run() {
    let address = serve_measured(|_, _| stream(&["a"]));
    let refusing = serve(|seen| if seen.line.starts_with("GET") { empty("200 OK") } else { empty("401 Unauthorized") });
    let report = Bench::new(refusing, 3).warmup(2).go();
    let EndReason::NoCredentials(words) = reason(&report) else { panic!("{report:?}") };
    assert!(words.contains("all 2 warm-up requests failed") && words.contains("401"), "{words}");
    assert_eq!((report.run.warmup.len(), report.run.samples.len()), (2, 0));
    assert_eq!(reason(&Bench::new(address, 3).warmup(2).go()), EndReason::Completed);
}

#[test]
fn warm_up_that_fails_otherwise_does_not_end_the_run() {
    let failing = serve(|seen| match seen.measured() {
        Some(_) => stream(&["a"]),
        None if seen.is_warmup() => empty("500 Internal Server Error"),
        None => empty("200 OK"),
    });
    let report = Bench::new(failing, 3).warmup(2).go();
    assert_eq!(reason(&report), EndReason::Completed);
    assert!(report.run.warmup.iter().all(|sample| sample.outcome == Outcome::Http5xx));
}
