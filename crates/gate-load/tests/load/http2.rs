//! HTTP/2: one connection for all, and what becomes of its streams.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use gate_model::{Connections, EndReason, Http, HttpVersion, Nanos, Outcome};

use crate::bench::Bench;
use crate::server::{DONE, finish, token};

/// One step of an answer on a stream.
#[derive(Clone)]
pub(crate) enum Say {
    /// Status 200.
    Head,
    Data(String),
    /// Data that ends the stream.
    Last(String),
    /// Resets the stream, by this reason.
    Reset(u32),
    /// Takes no streams after this one any more.
    GoAway,
    /// Says no more on any stream, and takes requests up to this many milliseconds.
    Wait(u64),
    Close,
}

use Say::{Close, Data, GoAway, Head, Last, Reset, Wait};

/// How much of a body a client sends unasked.
const WINDOW: usize = 65_535;
/// How much more it may send later, and after how many milliseconds.
const MORE: u32 = 1 << 20;
const LATE_WINDOW: i64 = 100;

/// A request as the server saw it.
pub(crate) struct Asked {
    stream: u32,
    connection: u32,
    body: String,
}

impl Asked {
    fn measured(&self) -> Option<usize> {
        self.body.split_once("measured-")?.1.split('.').next()?.parse().ok()
    }
}

/// The server's end of a connection.
struct Peer {
    stream: TcpStream,
    connection: u32,
    bytes: Vec<u8>,
    bodies: BTreeMap<u32, String>,
    asked: VecDeque<Asked>,
}

impl Peer {
    fn say(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        let length = (payload.len() as u32).to_be_bytes();
        let frame = [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat();
        let _ = self.stream.write_all(&frame);
    }

    /// Reads what comes within a time, or where there is none, until a request is there; false at the end.
    fn read(&mut self, within: Option<Duration>) -> bool {
        let until = within.map(|within| Instant::now() + within);
        loop {
            while self.take() {}
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) || (until.is_none() && !self.asked.is_empty()) {
                return true;
            }
            self.stream.set_read_timeout(left).unwrap();
            let mut buffer = [0; 4096];
            match self.stream.read(&mut buffer) {
                Ok(0) => return false,
                Ok(count) => self.bytes.extend_from_slice(&buffer[..count]),
                Err(error) if matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut) => {
                }
                Err(_) => return false,
            }
        }
    }

    /// Takes one frame.
    fn take(&mut self) -> bool {
        let Some(head) = self.bytes.get(..9) else { return false };
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]) as usize;
        let (kind, flags, stream) = (head[3], head[4], u32::from_be_bytes(head[5..9].try_into().unwrap()));
        let Some(payload) = self.bytes.get(9..9 + length).map(<[u8]>::to_vec) else { return false };
        self.bytes.drain(..9 + length);
        match kind {
            0 => {
                let body = self.bodies.entry(stream).or_default();
                body.push_str(&String::from_utf8(payload).unwrap());
                if body.len() == WINDOW {
                    std::thread::sleep(Duration::from_millis(LATE_WINDOW as u64));
                    self.say(8, 0, 0, &MORE.to_be_bytes());
                    self.say(8, 0, stream, &MORE.to_be_bytes());
                }
            }
            1 => drop(self.bodies.entry(stream).or_default()),
            4 if flags & 1 == 0 => self.say(4, 1, 0, &[]),
            _ => {}
        }
        if kind < 2 && flags & 1 == 1 {
            let body = self.bodies.remove(&stream).unwrap();
            self.asked.push_back(Asked { stream, connection: self.connection, body });
        }
        true
    }
}

/// Serves a script over HTTP/2 without TLS; each connection takes so many requests at once.
fn serve(limit: u32, script: impl Fn(&Asked) -> Vec<Say> + Send + Sync + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let script = Arc::new(script);
    std::thread::spawn(move || {
        for (connection, stream) in (0..).zip(listener.incoming()) {
            let (stream, script) = (stream.unwrap(), Arc::clone(&script));
            std::thread::spawn(move || converse(stream, connection, limit, &*script));
        }
    });
    address
}

fn converse(mut stream: TcpStream, connection: u32, limit: u32, script: &dyn Fn(&Asked) -> Vec<Say>) {
    stream.set_nodelay(true).unwrap();
    let mut preface = [0; 24];
    if stream.read_exact(&mut preface).is_err() {
        return;
    }
    assert!(preface.starts_with(b"PRI * HTTP/2.0"));
    let mut peer = Peer { stream, connection, bytes: vec![], bodies: BTreeMap::new(), asked: VecDeque::new() };
    peer.say(4, 0, 0, &[&[0, 3][..], &limit.to_be_bytes()].concat());
    while peer.read(None) {
        while let Some(asked) = peer.asked.pop_front() {
            let stream = asked.stream;
            for say in script(&asked) {
                match say {
                    Say::Head => peer.say(1, 4, stream, &[0x88]),
                    Say::Data(text) => peer.say(0, 0, stream, text.as_bytes()),
                    Say::Last(text) => peer.say(0, 1, stream, text.as_bytes()),
                    Say::Reset(reason) => peer.say(3, 0, stream, &reason.to_be_bytes()),
                    Say::GoAway => peer.say(7, 0, 0, &[stream.to_be_bytes(), [0; 4]].concat()),
                    Say::Wait(millis) => {
                        let before = peer.asked.len();
                        peer.read(Some(Duration::from_millis(millis)));
                        assert!(limit != 1 || peer.asked.len() == before, "two streams where one is allowed");
                    }
                    Say::Close => return,
                }
            }
        }
    }
}

pub(crate) fn whole(tokens: &[&str]) -> Vec<Say> {
    let mut says = vec![Head];
    says.extend(tokens.iter().map(|text| Data(token(text))));
    says.push(Last(finish("stop") + DONE));
    says
}

pub(crate) fn measured(limit: u32, script: impl Fn(usize, &Asked) -> Vec<Say> + Send + Sync + 'static) -> SocketAddr {
    serve(limit, move |asked| match asked.measured() {
        Some(index) => script(index, asked),
        None => whole(&["warm"]),
    })
}

fn two(mut bench: Bench) -> Bench {
    bench.spec.load.http = Http::Two;
    bench
}

#[test]
fn all_requests_share_the_connection_that_warm_up_opened() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    let address = measured(100, move |index, asked| {
        log.lock().unwrap().push(asked.connection);
        // The first ends last.
        if index == 0 {
            vec![Head, Data(token("a")), Wait(150), Last(finish("stop") + DONE)]
        } else {
            whole(&["a", "b"])
        }
    });
    let run = two(Bench::new(address, 12).warmup(3)).go().run;
    assert!(run.samples.iter().chain(&run.warmup).all(|sample| sample.outcome == Outcome::Ok), "{run:?}");
    let opened: Vec<_> = run.warmup.iter().map(|sample| sample.connected.is_some()).collect();
    assert_eq!(opened, [true, false, false]);
    let seen = seen.lock().unwrap();
    assert!(seen.len() == 12 && seen.iter().all(|connection| *connection == seen[0]), "{seen:?}");
    for sample in &run.samples {
        let points = [sample.start, sample.writing, sample.sent, sample.headers, sample.first_token, sample.end];
        let reached: Vec<_> = points.into_iter().flatten().collect();
        assert!(reached.len() == 6 && reached.is_sorted() && sample.connected.is_none(), "{sample:?}");
    }
    let reached = run.end.unwrap().reached.unwrap();
    assert_eq!(reached.http, HttpVersion::Http2);
}

#[test]
fn what_the_server_ends_has_its_outcome_and_costs_the_others_nothing() {
    const REFUSED: u32 = 7;
    const INTERNAL: u32 = 2;
    let cases: Vec<(Vec<Say>, Outcome, &str)> = vec![
        (whole(&["a"]), Outcome::Ok, ""),
        (vec![Reset(REFUSED)], Outcome::Reset, "the server reset the stream (REFUSED_STREAM) before it answered"),
        (vec![Head, Data(token("a")), Reset(INTERNAL)], Outcome::Reset, "in the middle of the answer"),
        (vec![Head, Data(token("a")), Last(String::new())], Outcome::Truncated, "nor a finish reason"),
        (vec![Head, Data(token("a") + &finish("stop") + DONE), Reset(INTERNAL)], Outcome::Ok, ""),
        (vec![Head, Last("data: {oops\n\n".to_owned())], Outcome::Decode, "not JSON"),
        (whole(&["a"]), Outcome::Ok, ""),
    ];
    let says: Vec<_> = cases.iter().map(|(says, ..)| says.clone()).collect();
    let address = measured(100, move |index, _| says[index].clone());
    let run = two(Bench::new(address, cases.len() as u32).every(20)).go().run;
    for (sample, (_, outcome, words)) in run.samples.iter().zip(cases) {
        assert_eq!(sample.outcome, outcome, "{sample:?}");
        assert!(sample.error.as_deref().unwrap_or_default().contains(words), "{sample:?}");
        let is_refused = words.contains("REFUSED");
        assert_eq!(sample.connected.is_some(), is_refused, "the connection stands: {sample:?}");
    }
}

#[test]
fn after_goaway_and_after_a_close_a_new_connection_is_opened() {
    for end in [GoAway, Close] {
        let address = measured(100, move |index, _| {
            let mut says = whole(&["a"]);
            if index == 1 {
                says.push(end.clone());
            }
            says
        });
        let run = two(Bench::new(address, 4).every(150)).go().run;
        assert!(run.samples.iter().all(|sample| sample.outcome == Outcome::Ok), "{run:?}");
        let opened: Vec<_> = run.samples.iter().map(|sample| sample.connected.is_some()).collect();
        assert_eq!(opened, [false, false, true, false]);
    }
}

#[test]
fn a_connection_that_breaks_takes_its_streams_with_it() {
    let address = measured(100, |index, _| match index {
        0 => vec![Head, Data(token("a")), Wait(200), Close],
        _ => vec![Head, Data(token("a"))],
    });
    let run = two(Bench::new(address, 2).every(20)).go().run;
    for sample in &run.samples {
        assert!(matches!(sample.outcome, Outcome::Truncated | Outcome::Reset), "{sample:?}");
    }
}

#[test]
fn more_than_the_server_takes_at_once_open_another_connection() {
    const COUNT: usize = 5;
    let seen = Arc::new(Mutex::new(BTreeSet::new()));
    let address = measured(1, move |index, asked| {
        seen.lock().unwrap().insert((index, asked.connection));
        // The first is answered when the others are there.
        let until = Instant::now() + Duration::from_secs(20);
        while index == 0 && seen.lock().unwrap().len() < COUNT && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
        vec![Wait(10), Head, Data(token("a")), Last(finish("stop") + DONE)]
    });
    let run = two(Bench::new(address, COUNT as u32)).go().run;
    assert!(run.samples.iter().all(|sample| sample.outcome == Outcome::Ok), "{run:?}");
    assert!(run.samples[0].connected.is_none() && run.samples[1].connected.is_some(), "{run:?}");
    let ended = |index: usize| run.samples[index].end.unwrap();
    assert!((1..COUNT).all(|index| ended(index) < ended(0) + Nanos::from_secs(10)), "{run:?}");
    assert!(ended(0) < Nanos::from_secs(15), "the others did not come: {run:?}");
}

#[test]
fn a_request_that_the_server_has_not_looked_at_goes_to_another_connection() {
    let tries = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&tries);
    let address = measured(100, move |index, asked| {
        let mut tries = log.lock().unwrap();
        tries.push((index, asked.connection));
        let is_first = tries.iter().filter(|(other, _)| *other == index).count() == 1;
        if index == 1 && is_first { vec![Reset(7)] } else { whole(&["a"]) }
    });
    let run = two(Bench::new(address, 3).every(30)).go().run;
    assert!(run.samples.iter().all(|sample| sample.outcome == Outcome::Ok), "{run:?}");
    let tries: Vec<_> = tries.lock().unwrap().iter().filter(|(index, _)| *index == 1).copied().collect();
    assert!(tries.len() == 2 && tries[0].1 != tries[1].1, "{tries:?}");
}

#[test]
fn a_request_is_sent_when_the_last_of_it_is_written() {
    let address = measured(100, |_, _| whole(&["a"]));
    let mut bench = two(Bench::new(address, 2));
    bench.spec.target.extra_body.insert("padding".to_owned(), "x".repeat(100_000).into());
    for sample in bench.go().run.samples {
        let (writing, sent, headers) = (sample.writing.unwrap(), sample.sent.unwrap(), sample.headers.unwrap());
        assert!(sent - writing >= Nanos::from_millis(LATE_WINDOW) && sent <= headers, "{sample:?}");
    }
}

#[test]
fn fresh_connections_and_workers_work_here_too() {
    let address = measured(100, |_, _| whole(&["a"]));
    let mut bench = two(Bench::new(address, 10));
    bench.spec.load.connections = Connections::Fresh;
    bench.spec.load.workers = 2;
    let run = bench.go().run;
    assert!(run.samples.iter().all(|sample| sample.outcome == Outcome::Ok && sample.connected.is_some()), "{run:?}");
}

/// A server that says this once something has come, or before anything comes, on each connection.
fn saying(words: &'static [u8], is_first: bool) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            if !is_first {
                let _ = stream.read(&mut [0; 4096]);
            }
            let _ = stream.write_all(words);
            // A close before all was read would be a reset.
            let _ = stream.shutdown(std::net::Shutdown::Write);
            while stream.read(&mut [0; 4096]).is_ok_and(|count| count > 0) {}
        }
    });
    address
}

#[test]
fn a_server_of_the_other_version_is_no_measurement() {
    let one: [&[u8]; 3] = [
        b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
        // Of version 0.9, to a version it doesn't know.
        b"<!DOCTYPE HTML><p>Invalid HTTP version (2.0)",
        b"oops",
    ];
    // Settings; then a GOAWAY for a protocol error.
    let two: [&[u8]; 2] =
        [b"\0\0\x06\x04\0\0\0\0\0\0\x03\0\0\0\x64", b"\0\0\0\x04\0\0\0\0\0\0\0\x08\x07\0\0\0\0\0\0\0\0\0\0\0\0\x01"];
    let (no_two, use_two) = ("does not speak HTTP/2 without TLS: use `load.http: auto`", "use `load.http: 2`");
    let cases = one.map(|words| (words, Http::Two, no_two)).into_iter();
    let cases = cases.chain(two.map(|words| (words, Http::One, use_two)));
    let cases = cases.chain(two.map(|words| (words, Http::Auto, use_two)));
    for ((words, http, remedy), is_first) in cases.flat_map(|case| [(case, false), (case, true)]) {
        if is_first && http == Http::Two {
            continue;
        }
        let mut bench = Bench::new(saying(words, is_first), 3);
        bench.spec.load.http = http;
        let run = bench.go().run;
        let end = run.end.unwrap();
        let EndReason::NotReady(said) = end.reason else { panic!("{http:?}: {:?}", end.reason) };
        assert!(said.contains(remedy), "{http:?}: {said}");
        assert_eq!((end.reached, end.sent, run.samples.len()), (None, 0, 0), "{http:?}");
    }
}
