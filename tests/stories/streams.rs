//! What can become of an answer in its middle: each has one outcome, nothing hangs, and memory stays flat.

use std::io::Write;
use std::net::{Shutdown, TcpStream};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use gate_model::{Outcome, Status};

use crate::harness::{Ended, Place, Sim, binary, quick_spec, serve, wait_until};

const TOKEN: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"word\"}}]}\n\n";
const FINISH: &str = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"length\"}]}\n\n";
const DONE: &str = "data: [DONE]\n\n";
const ERROR: &str = "data: {\"error\":{\"message\":\"upstream gone\",\"type\":\"server_error\",\"code\":502}}\n\n";

/// An answer: its head, its body's pieces, what follows.
struct Case {
    name: &'static str,
    head: &'static str,
    body: Vec<u8>,
    end: End,
    outcome: Outcome,
    /// Content events that are seen.
    tokens: u32,
}

#[derive(Clone, Copy)]
enum End {
    /// The last chunk, and the connection stays.
    Terminator,
    /// Closed without one.
    Close,
    /// Only the server's half is closed.
    HalfClose,
}

fn cases() -> Vec<Case> {
    let case = |name, body: &str, end, outcome, tokens| Case {
        name,
        head: "content-type: text/event-stream\r\n",
        body: body.as_bytes().to_vec(),
        end,
        outcome,
        tokens,
    };
    let large = TOKEN.replace("word", &"x".repeat(1 << 20));
    let too_large = TOKEN.replace("word", &"x".repeat(9 << 20));
    let mut cases = vec![
        case("whole", &format!("{TOKEN}{TOKEN}{FINISH}{DONE}"), End::Terminator, Outcome::Ok, 2),
        case("error, done", &format!("{TOKEN}{ERROR}{DONE}"), End::Terminator, Outcome::StreamError, 1),
        case("done alone", &format!("{TOKEN}{DONE}"), End::Terminator, Outcome::Ok, 1),
        case("closed", &format!("{TOKEN}{TOKEN}"), End::Close, Outcome::Truncated, 2),
        case("half closed", TOKEN, End::HalfClose, Outcome::Truncated, 1),
        case("no terminator", &format!("{TOKEN}{FINISH}{DONE}"), End::Close, Outcome::Ok, 1),
        case("ended in an event", &format!("{TOKEN}{}", &TOKEN[..30]), End::Terminator, Outcome::Truncated, 1),
        case("a large event", &format!("{large}{FINISH}{DONE}"), End::Terminator, Outcome::Ok, 1),
        case("an event too large", &format!("{too_large}{FINISH}{DONE}"), End::Terminator, Outcome::Decode, 0),
        case("tiny events", &format!("{}{FINISH}{DONE}", TOKEN.repeat(10_000)), End::Terminator, Outcome::Ok, 10_000),
        case("nothing", "", End::Terminator, Outcome::Truncated, 0),
        case("compressed in secret", "\x1f\u{8b}", End::Terminator, Outcome::Decode, 0),
    ];
    cases
        .push(Case { head: "content-encoding: gzip\r\n", ..case("compressed", TOKEN, End::Close, Outcome::Decode, 0) });
    if let Some(secret) = cases.iter_mut().find(|case| case.name == "compressed in secret") {
        secret.body = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3];
    }
    cases
}

/// Writes one answer, chunked.
fn write(case: &Case, stream: &mut TcpStream) -> std::io::Result<()> {
    write!(stream, "HTTP/1.1 200 OK\r\n{}transfer-encoding: chunked\r\n\r\n", case.head)?;
    if !case.body.is_empty() {
        write!(stream, "{:x}\r\n", case.body.len())?;
        stream.write_all(&case.body)?;
        stream.write_all(b"\r\n")?;
    }
    match case.end {
        End::Terminator => stream.write_all(b"0\r\n\r\n"),
        End::Close => stream.shutdown(Shutdown::Both),
        End::HalfClose => stream.shutdown(Shutdown::Write),
    }
}

#[test]
fn each_end_has_one_outcome() {
    let cases = Arc::new(cases());
    let answered = AtomicUsize::new(0);
    let (served, warmup) = (Arc::clone(&cases), cases.len());
    let address = serve(move |request, stream| {
        if request.starts_with("GET") {
            return crate::harness::answer(stream, "200 OK", "application/json", "{}");
        }
        // A client that has seen enough closes: what is left cannot be written.
        let number = answered.fetch_add(1, Ordering::SeqCst);
        drop(write(&served[number % served.len()], stream));
    });
    let place = Place::new();
    let count = u32::try_from(2 * cases.len()).unwrap();
    let spec = quick_spec("ends", &format!("http://{address}"), count)
        .replace("warmup: 1", &format!("warmup: {warmup}, arrivals: constant"))
        .replace("rps: 40", "rps: 10");
    place.write("gate.yaml", &spec);
    place.gate_once(&["check", "gate.yaml"]).expect_code(1);
    let run = place.run("ends");
    for sample in run.warmup.iter().chain(&run.samples) {
        let case = &cases[sample.index as usize % cases.len()];
        let seen = (sample.outcome, sample.content_events);
        assert_eq!(seen, (case.outcome, case.tokens), "{}: {:?}", case.name, sample.error);
    }
    assert_eq!(run.samples.len(), count as usize);
}

#[test]
fn an_engine_that_is_killed_in_its_streams_fails_them_and_no_more() {
    let place = Place::new();
    let mut sim = Sim::start(&place, "ttft: 10ms, tpot: 100ms");
    let spec = quick_spec("killed", &sim.url(), 60).replace("output_tokens: 8", "output_tokens: 30");
    place.write("gate.yaml", &spec.replace("rps: 40", "rps: 10"));
    let child = place.command(&["check", "gate.yaml"]).stderr(std::process::Stdio::piped()).spawn().unwrap();
    wait_until("streams are answered", || {
        let journal = std::fs::read_to_string(place.path(".gate/killed/run.jsonl")).unwrap_or_default();
        journal.lines().filter(|line| line.contains("\"type\":\"sample\"")).count() >= 3
    });
    sim.kill();
    Ended::of(child.wait_with_output().unwrap()).expect_code(1);
    let run = place.run("killed");
    assert_eq!(place.verdict("killed").status, Status::Violated);
    let of = |outcomes: &[Outcome]| run.samples.iter().filter(|one| outcomes.contains(&one.outcome)).count();
    let (ok, broken) = (of(&[Outcome::Ok]), of(&[Outcome::Reset, Outcome::Truncated]));
    assert!(ok >= 3 && broken >= 5, "{ok} ok, {broken} broken in their middle");
    assert_eq!(ok + broken + of(&[Outcome::Connect]), run.samples.len(), "and the rest found nobody");
}

/// A line without end, from a server that writes until nobody reads.
#[test]
fn an_answer_without_end_costs_no_memory() {
    let address = serve(|request, stream| {
        if request.starts_with("GET") {
            return crate::harness::answer(stream, "200 OK", "application/json", "{}");
        }
        drop(write!(stream, "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: "));
        let piece = vec![b'x'; 1 << 20];
        for _ in 0..300 {
            if stream.write_all(&piece).is_err() {
                break;
            }
        }
        drop(stream.shutdown(Shutdown::Both));
    });
    let place = Place::new();
    place.write("gate.yaml", &quick_spec("endless", &format!("http://{address}"), 20).replace("rps: 40", "rps: 5"));
    // 200 MB of data in all, far less than one of the answers.
    let script = format!("ulimit -d 200000; exec {} check gate.yaml", binary().display());
    let ended = Ended::of(Command::new("sh").args(["-c", &script]).current_dir(place.path("")).output().unwrap());
    ended.expect_code(1).says("longer than 8 MiB");
    assert!(place.run("endless").samples.iter().all(|sample| sample.outcome == Outcome::Decode));
}
