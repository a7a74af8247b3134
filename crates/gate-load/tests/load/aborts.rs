//! Runs that their own rules end, each in an open and in a closed loop.

use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use gate_model::{Api, Budget, EndReason, Nanos, Outcome, Prices, Run, Spent};

use crate::bench::{Bench, Report};
use crate::pace::closed;
use crate::server::*;

/// The same requests one after another: as they are due, and as answers end.
fn both(bench: impl Fn() -> Bench) -> [Bench; 2] {
    [bench().every(60), closed(bench(), 1)]
}

fn reason(report: &Report) -> EndReason {
    assert_eq!(Run::from_journal(&report.journal).unwrap(), report.run, "the journal ends well");
    report.run.end.as_ref().unwrap().reason.clone()
}

fn spent(report: &Report) -> Spent {
    report.run.end.as_ref().unwrap().spent.unwrap()
}

/// A chat chunk with so much usage.
fn usage(input: u32, output: u32) -> String {
    format!("data: {{\"choices\":[],\"usage\":{{\"prompt_tokens\":{input},\"completion_tokens\":{output}}}}}\n\n")
}

/// An answer that the server counts.
fn counted(input: u32, output: u32) -> Vec<Act> {
    let mut acts = stream(&["a", "b"]);
    acts.insert(acts.len() - 2, chunk(&usage(input, output)));
    acts
}

/// A server that counts how many measured requests it is asked.
fn asked(script: impl Fn(usize) -> Vec<Act> + Send + Sync + 'static) -> (SocketAddr, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&count);
    let address = serve_measured(move |index, _| {
        seen.fetch_add(1, Ordering::SeqCst);
        script(index)
    });
    (address, count)
}

fn budget_of(key: &str, limit: &str) -> EndReason {
    EndReason::BudgetSpent { key: key.to_owned(), limit: limit.to_owned() }
}

#[test]
fn a_budget_stops_before_the_request_that_could_overspend_it() {
    // Each may have 8 output tokens, and has 5.
    let (address, count) = asked(|_| counted(3, 5));
    let budget = Budget { output_tokens: Some(30), ..Budget::default() };
    for mut bench in both(|| Bench::new(address, 50).warmup(0)) {
        count.store(0, Ordering::SeqCst);
        bench.spec.budget = budget;
        let report = bench.go();
        assert_eq!(reason(&report), budget_of("budget.output_tokens", "30 output tokens"));
        assert!(report.run.samples.iter().all(|sample| sample.outcome == Outcome::Ok));
        // After 5 that is 25, and another 8 would be too many.
        let spent = spent(&report);
        assert_eq!((count.load(Ordering::SeqCst), spent.output, spent.input, spent.uncounted), (5, 25, 15, 0));
        assert_eq!(report.run.end.unwrap().sent, 5);
    }
}

#[test]
fn warm_up_and_earlier_sections_count() {
    let (address, count) = asked(|_| counted(3, 5));
    for mut bench in both(|| Bench::new(address, 50).warmup(2)) {
        count.store(0, Ordering::SeqCst);
        bench.spec.budget.requests = Some(10);
        bench.spent = Spent { requests: 5, ..Spent::default() };
        let report = bench.go();
        assert_eq!(reason(&report), budget_of("budget.requests", "10 requests"));
        assert_eq!((count.load(Ordering::SeqCst), spent(&report).requests), (3, 5));
        assert_eq!(spent(&report).uncounted, 2, "the warm-up answers have no usage");
    }
}

#[test]
fn a_budget_that_warm_up_spends_ends_the_run_before_it_is_measured() {
    let (address, count) = asked(|_| counted(3, 5));
    let mut bench = Bench::new(address, 5).warmup(4);
    bench.spec.budget.requests = Some(2);
    let report = bench.go();
    assert_eq!(reason(&report), budget_of("budget.requests", "2 requests"));
    assert_eq!((report.run.warmup.len(), report.run.samples.len(), count.load(Ordering::SeqCst)), (2, 0, 0));
}

#[test]
fn a_runaway_server_is_cut_off() {
    let endless = |_| vec![stream_head(), Flood(b"1000\r\n".iter().copied().chain(filler()).collect())];
    let (address, count) = asked(endless);
    for mut bench in both(|| Bench::new(address, 50).warmup(0)) {
        count.store(0, Ordering::SeqCst);
        bench.spec.budget.cost = Some(2.0);
        bench.spec.prices = Some(Prices { input: 0.0, cached_input: None, output: 10_000.0 });
        let report = bench.go();
        let EndReason::BudgetSpent { key, limit } = reason(&report) else { panic!("{:?}", reason(&report)) };
        let is_told = limit.starts_with("$2.00 (an answer came to ") && limit.ends_with(" where 8 were asked for)");
        assert!(key == "budget.cost" && is_told, "{limit}");
        let first = &report.run.samples[0];
        assert_eq!(first.outcome, Outcome::Cancelled);
        assert!(first.error.as_ref().unwrap().contains("`budget.cost` is spent"), "{first:?}");
        // One cent a token.
        assert!(first.content_events >= 200, "{first:?}");
        assert!(report.run.samples.len() < 50 && spent(&report).uncounted >= 1);
        let came: u64 = report.run.samples.iter().map(|sample| u64::from(sample.content_events)).sum();
        assert_eq!(spent(&report).output, came, "what came is told");
    }
}

/// A chunk's rest of tokens, 4,096 bytes and the line's end.
fn filler() -> Vec<u8> {
    let mut text = String::new();
    while text.len() + token("a").len() <= 4_096 - 2 {
        text.push_str(&token("a"));
    }
    while text.len() < 4_096 {
        text.push('\n');
    }
    (text + "\r\n").into_bytes()
}

/// What is embedded has no output, and its input is counted.
#[test]
fn embeddings_take_no_output() {
    let body = r#"{"data":[{"embedding":[0.5]}],"usage":{"prompt_tokens":7,"total_tokens":7}}"#;
    let address = serve(move |_| document("200 OK", "application/json", body));
    for mut bench in both(|| Bench::new(address, 20).warmup(2)) {
        bench.spec.target.api = Api::OpenaiEmbeddings;
        let (warmup, requests) = (&mut bench.plan.warmup, &mut bench.plan.requests);
        warmup.iter_mut().chain(requests).for_each(|request| request.output_tokens = 0);
        bench.spec.budget.output_tokens = Some(10);
        let report = bench.go();
        assert_eq!(reason(&report), EndReason::Completed);
        assert!(report.run.samples.iter().all(|sample| sample.outcome == Outcome::Ok));
        assert_eq!(spent(&report), Spent { requests: 22, input: 22 * 7, ..Spent::default() });
    }
}

#[test]
fn a_used_up_quota_stops_at_once() {
    let refused = |headers: &'static [&'static str], body: &'static str| {
        move |index: usize| match index {
            0 => stream(&["a"]),
            _ => {
                let length = format!("content-length: {}", body.len());
                let headers: Vec<&str> = headers.iter().copied().chain([length.as_str()]).collect();
                vec![head("429 Too Many Requests", &headers), Put(body.into())]
            }
        }
    };
    for (headers, body) in [
        (&["retry-after: 3600"][..], "{\"error\":{\"message\":\"slow down\"}}"),
        (&["retry-after: 99999999999999999999999"][..], "{\"error\":{\"message\":\"slow down\"}}"),
        (&[][..], "{\"error\":{\"message\":\"You exceeded your quota\",\"code\":\"insufficient_quota\"}}"),
    ] {
        let (address, count) = asked(refused(headers, body));
        for bench in both(|| Bench::new(address, 50)) {
            count.store(0, Ordering::SeqCst);
            let report = bench.go();
            let EndReason::Quota(words) = reason(&report) else { panic!("{:?}", report.run.end) };
            assert!(words.contains("429 Too Many Requests"), "{words}");
            assert!((2..=5).contains(&count.load(Ordering::SeqCst)), "{count:?}");
        }
    }
}

#[test]
fn a_quota_in_warm_up_ends_the_run() {
    let address = serve(|seen| match seen.is_warmup() {
        true => vec![head("429 Too Many Requests", &["retry-after: 86400", "content-length: 0"])],
        false => stream(&["a"]),
    });
    let report = Bench::new(address, 3).warmup(5).go();
    let EndReason::Quota(words) = reason(&report) else { panic!("{:?}", report.run.end) };
    assert!(words.starts_with("the server says to come back in"), "{words}");
    assert_eq!(report.run.warmup.len(), 1);
}

#[test]
fn a_limit_that_passes_is_an_error_like_others() {
    let address = serve_measured(|index, _| match index % 2 {
        0 => vec![head("429 Too Many Requests", &["retry-after: 2", "content-length: 0"])],
        _ => stream(&["a"]),
    });
    assert_eq!(reason(&Bench::new(address, 10).go()), EndReason::Completed);
}

#[test]
fn credentials_that_are_refused_stop_within_five_requests() {
    let (address, count) = asked(|index| match index {
        0..3 => stream(&["a"]),
        _ => document("401 Unauthorized", "application/json", "{\"error\":{\"message\":\"expired\"}}"),
    });
    for bench in both(|| Bench::new(address, 50)) {
        count.store(0, Ordering::SeqCst);
        let report = bench.go();
        let EndReason::Unauthorized(words) = reason(&report) else { panic!("{:?}", report.run.end) };
        assert!(words.contains("expired") && words.contains("`target.key`"), "{words}");
        assert!(count.load(Ordering::SeqCst) <= 3 + 5, "{count:?}");
    }
    // In warm-up too, however long it is.
    let all = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&all);
    let address = serve(move |request| {
        seen.fetch_add(usize::from(request.is_warmup()), Ordering::SeqCst);
        vec![head("401 Unauthorized", &["content-length: 0"])]
    });
    let EndReason::NoCredentials(words) = reason(&Bench::new(address, 5).warmup(20).go()) else { panic!() };
    assert!(words.starts_with("the first 4 of 20 warm-up requests failed"), "{words}");
    assert_eq!(all.load(Ordering::SeqCst), 4);
}

#[test]
fn a_target_that_is_gone_is_given_up() {
    for shape in 0..2 {
        // It answers once, and then nothing listens there any more.
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            let script: Script = Arc::new(well(|_, _| stream(&["a"])));
            for connection in 0..2 {
                let (stream, _) = listener.accept().unwrap();
                // The health check, then warm-up: each has a connection of its own, closed after its answer.
                let closing: Script = {
                    let script = Arc::clone(&script);
                    Arc::new(move |seen: &Seen| script(seen).into_iter().chain([Close]).collect())
                };
                converse(&stream, connection, &closing);
            }
        });
        let bench = both(|| Bench::new(address, 50)).into_iter().nth(shape).unwrap();
        let report = bench.go();
        let EndReason::Unreachable { count, message } = reason(&report) else { panic!("{:?}", report.run.end) };
        assert_eq!(count, 5);
        assert!(!message.is_empty());
        let sent = report.run.samples.len();
        assert!((5..=12).contains(&sent), "{sent}");
        assert!(report.run.samples.iter().all(|sample| sample.outcome == Outcome::Connect));
        assert_eq!(spent(&report).requests, 1, "only warm-up was sent");
    }
}

#[test]
fn a_gate_may_go_on_however_many_fail_to_connect() {
    let address = serve_measured(|_, _| stream(&["a"]));
    let mut bench = Bench::new(address, 8);
    bench.spec.abort.connection_failures = 0;
    bench.spec.load.connections = gate_model::Connections::Fresh;
    assert_eq!(reason(&bench.go()), EndReason::Completed);
}

#[test]
fn a_lost_check_ends_the_run_and_open_streams_finish() {
    let (address, _) = asked(|_| stream(&["a"]));
    for lost in [true, false] {
        for mut bench in both(|| Bench::new(address, 40)) {
            bench.spec.abort.lost = lost;
            let told = Arc::new(Mutex::new(Vec::new()));
            let noted = Arc::clone(&told);
            bench.lost = Box::new(move |sample| {
                noted.lock().unwrap().push(sample.index);
                (sample.index == 3).then(|| "errors < 1%".to_owned())
            });
            let report = bench.go();
            let told = told.lock().unwrap().clone();
            assert_eq!(told, (0..told.len() as u32).collect::<Vec<_>>(), "in send order");
            assert!(report.run.samples.iter().all(|sample| sample.outcome == Outcome::Ok));
            if lost {
                assert_eq!(reason(&report), EndReason::Lost { check: "errors < 1%".to_owned() });
                assert!((4..40).contains(&report.run.samples.len()));
            } else {
                assert_eq!((reason(&report), told.len()), (EndReason::Completed, 40));
            }
        }
    }
}

#[test]
fn what_is_lost_when_all_was_sent_ends_nothing() {
    let (address, _) = asked(|_| stream(&["a"]));
    let mut bench = Bench::new(address, 3);
    bench.lost = Box::new(|sample| (sample.index == 2).then(|| "errors < 1%".to_owned()));
    bench.plan.requests[2].at = Nanos::from_millis(10);
    assert_eq!(reason(&bench.go()), EndReason::Completed);
}
