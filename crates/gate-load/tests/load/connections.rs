//! Which connections requests take, and what becomes of those that cannot be had.

use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};

use gate_model::{EndReason, Header, Nanos, Outcome};

use crate::bench::{Bench, secret};
use crate::server::*;

#[test]
fn warm_up_opens_the_pool_and_the_last_used_connection_is_used_first() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    let address = serve_measured(move |_, request| {
        log.lock().unwrap().push(request.connection);
        stream(&["a"])
    });
    let report = Bench::new(address, 4).warmup(2).every(150).go();
    assert!(report.run.warmup.iter().all(|sample| sample.connected.is_some()));
    assert!(report.run.samples.iter().all(|sample| sample.connected.is_none()));
    // The health check had connection 0, warm-up 1 and 2.
    assert_eq!(*seen.lock().unwrap(), [2; 4]);
    assert!(report.run.samples.iter().all(|sample| sample.outcome == Outcome::Ok));
}

#[test]
fn a_connection_closed_at_rest_is_no_error() {
    let address = serve_measured(|_, _| [stream(&["a"]), vec![Close]].concat());
    let report = Bench::new(address, 4).every(150).go();
    let outcomes: Vec<_> = report.run.samples.iter().map(|sample| sample.outcome).collect();
    assert_eq!(outcomes, [Outcome::Ok; 4]);
    // The first took the warm-up's connection, which was then closed; each later one needed its own.
    let is_new: Vec<_> = report.run.samples.iter().map(|sample| sample.connected.is_some()).collect();
    assert_eq!(is_new, [false, true, true, true]);
}

#[test]
fn a_server_that_stops_listening_refuses() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    // The health check and the warm-up are served, then the listener is gone and every connection with it.
    std::thread::spawn(move || {
        let script: Script = Arc::new(|_| [stream(&["a"]), vec![Close]].concat());
        for connection in 0..2 {
            let (stream, _) = listener.accept().unwrap();
            converse(&stream, connection, &script);
        }
    });
    let report = Bench::new(address, 3).every(100).go();
    assert_eq!(report.run.warmup[0].outcome, Outcome::Ok);
    assert_eq!(report.run.end.as_ref().unwrap().reason, EndReason::Completed);
    let last = report.run.samples.last().unwrap();
    assert_eq!(last.outcome, Outcome::Connect);
    assert!(last.error.as_ref().unwrap().contains(&format!("connection refused by {address}")));
    assert!(last.sent.is_none() && last.connected.is_none() && last.start.is_some());
}

/// A listener whose queue takes one connection; Linux drops the handshakes of any more.
#[cfg(target_os = "linux")]
fn narrow_listener() -> TcpListener {
    use rustix::net::{AddressFamily, SocketType, bind, listen, socket};
    let fd = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    bind(&fd, &SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    listen(&fd, 0).unwrap();
    fd.into()
}

#[cfg(target_os = "linux")]
#[test]
fn a_server_that_does_not_accept_times_out() {
    let listener = narrow_listener();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let script: Script = Arc::new(|_| [stream(&["a"]), vec![Close]].concat());
        let (health, _) = listener.accept().unwrap();
        converse(&health, 0, &script);
        let (warmup, _) = listener.accept().unwrap();
        // The queue is full before the warm-up request is answered.
        let fillers: Vec<_> = (0..3)
            .map(|_| {
                std::thread::spawn(move || {
                    std::net::TcpStream::connect_timeout(&address, std::time::Duration::from_secs(2))
                })
            })
            .collect();
        std::thread::sleep(std::time::Duration::from_millis(300));
        converse(&warmup, 1, &script);
        drop(warmup);
        let _held: Vec<_> = fillers.into_iter().map(|filler| filler.join()).collect();
        std::thread::sleep(std::time::Duration::from_secs(60));
    });
    let mut bench = Bench::new(address, 2).every(50);
    bench.spec.timeouts.connect = Nanos::from_millis(1_500);
    let report = bench.go();
    assert_eq!(report.run.warmup[0].outcome, Outcome::Ok);
    for sample in &report.run.samples {
        assert_eq!(sample.outcome, Outcome::TimeoutConnect, "{sample:?}");
        assert!(sample.error.as_ref().unwrap().contains("no connection within"), "{sample:?}");
    }
}

#[test]
fn requests_are_as_the_spec_says() {
    let seen = Arc::new(Mutex::new(None));
    let log = Arc::clone(&seen);
    let address = serve_measured(move |_, request| {
        *log.lock().unwrap() = Some(request.clone());
        stream(&["a"])
    });
    let mut bench = Bench::at(&format!("http://localhost:{}/v1", address.port()), 1);
    bench.spec.target.key = Some(secret("sk-0123456789"));
    bench.spec.target.headers = vec![Header { name: "X-Team".to_owned(), value: secret("blue-team") }];
    let report = bench.go();
    assert_eq!(report.run.samples[0].outcome, Outcome::Ok, "{report:?}");
    let seen = seen.lock().unwrap().clone().unwrap();
    assert_eq!(seen.line, "POST /v1/chat/completions HTTP/1.1");
    for line in
        ["authorization: bearer sk-0123456789", "x-team: blue-team", &format!("host: localhost:{}", address.port())]
    {
        assert!(seen.head.contains(line), "{line} is missing: {}", seen.head);
    }
    assert!(seen.body.contains("\"model\":\"m\""), "{}", seen.body);
}

#[test]
fn an_ipv6_literal_is_an_address() {
    let Ok(listener) = TcpListener::bind("[::1]:0") else {
        println!("skipped: no IPv6 here");
        return;
    };
    let address = serve_on(listener, |_| stream(&["a"]));
    assert_eq!(Bench::new(address, 1).go().run.samples[0].outcome, Outcome::Ok);
}

#[test]
fn what_cannot_be_sent_is_no_run() {
    let refused = |base: &str, shape: fn(&mut Bench)| {
        let mut bench = Bench::at(base, 1);
        shape(&mut bench);
        let (result, journal, _) = bench.try_go();
        assert!(journal.is_empty());
        result.unwrap_err().to_string()
    };
    assert!(refused("ftp://localhost/v1", |_| {}).contains("`ftp:` URLs: not supported; use `http://` or `https://`"));
    let words = refused("http://localhost/v1", |bench| bench.spec.target.key = Some(secret("line\nbreak-secret")));
    assert!(words.contains("send header `authorization`") && !words.contains("break-secret"), "{words}");
}
