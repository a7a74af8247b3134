//! Servers as they are met in the wild: each ends in a clear sentence, the right exit code, and reports.

use std::io::Write;
use std::net::TcpStream;
use std::time::Duration;

use gate_model::{Outcome, Status};

use crate::harness::{Ended, Place, answer, quick_spec, serve};

/// Checks a gate of 20 quick requests against a scripted server.
fn check(place: &Place, script: impl Fn(&str, &mut TcpStream) + Send + Sync + 'static) -> Ended {
    let address = serve(move |request, stream| {
        if request.starts_with("GET /health") {
            answer(stream, "200 OK", "application/json", "{}");
        } else {
            script(request, stream);
        }
    });
    place.write("gate.yaml", &quick_spec("quick", &format!("http://{address}"), 20));
    let ended = place.gate(&["check", "gate.yaml"]);
    assert!(place.path(".gate/quick/junit.xml").exists(), "reports are written: {}", ended.stderr);
    ended
}

/// A stream of openai-chat events.
fn stream(stream: &mut TcpStream, events: &[&str]) {
    drop(write!(stream, "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n"));
    for event in events {
        drop(write!(stream, "data: {event}\n\n"));
    }
    drop(stream.shutdown(std::net::Shutdown::Both));
}

const TOKEN: &str = r#"{"choices":[{"index":0,"delta":{"content":"word"}}]}"#;
const FINISH: &str = r#"{"choices":[{"index":0,"delta":{},"finish_reason":"length"}],"usage":{"prompt_tokens":50,"completion_tokens":2}}"#;

fn outcomes(place: &Place) -> Vec<Outcome> {
    place.run("quick").samples.iter().map(|sample| sample.outcome).collect()
}

#[test]
fn a_server_that_works_passes() {
    let place = Place::new();
    check(&place, |_, socket| stream(socket, &[TOKEN, TOKEN, FINISH, "[DONE]"])).expect_code(0);
}

#[test]
fn unauthorised_could_not_be_measured() {
    let place = Place::new();
    let body = r#"{"error":{"message":"Incorrect API key provided","type":"invalid_request_error"}}"#;
    let ended = check(&place, move |_, socket| answer(socket, "401 Unauthorized", "application/json", body));
    ended.expect_code(3).says("401").says("Incorrect API key provided").says("target.key");
    assert!(place.run("quick").samples.is_empty(), "nothing more is sent after a refused warm-up");
}

#[test]
fn a_wrong_model_could_not_be_measured() {
    let place = Place::new();
    let body = r#"{"error":{"message":"The model `m` does not exist","type":"NotFoundError","code":404}}"#;
    let ended = check(&place, move |_, socket| answer(socket, "404 Not Found", "application/json", body));
    ended.expect_code(3).says("404").says("The model `m` does not exist").says("target.model");
}

#[test]
fn a_server_that_never_answers_is_red_by_its_timeouts() {
    let place = Place::new();
    let ended = check(&place, |_, _| std::thread::sleep(Duration::from_secs(60)));
    ended.expect_code(1).says("errors.rate");
    assert!(outcomes(&place).iter().all(|outcome| *outcome == Outcome::TimeoutFirstToken));
}

#[test]
fn html_with_200_is_red_and_says_what_it_is() {
    let place = Place::new();
    let page = "<html><head><title>Corporate login</title></head><body>Please sign in</body></html>";
    let ended = check(&place, move |_, socket| answer(socket, "200 OK", "text/html", page));
    ended.expect_code(1).says("HTML");
    assert!(outcomes(&place).iter().all(|outcome| *outcome == Outcome::Decode));
}

#[test]
fn one_json_body_instead_of_a_stream_is_red_and_says_so() {
    let place = Place::new();
    let body =
        r#"{"object":"chat.completion","choices":[{"message":{"content":"all at once"},"finish_reason":"stop"}]}"#;
    let ended = check(&place, move |_, socket| answer(socket, "200 OK", "application/json", body));
    ended.expect_code(1).says("not_streamed");
    assert!(outcomes(&place).iter().all(|outcome| *outcome == Outcome::NotStreamed));
}

#[test]
fn garbage_in_a_stream_is_red() {
    let place = Place::new();
    check(&place, |_, socket| stream(socket, &["{\"choices\": [}", "\u{1b}[31mred"])).expect_code(1).says("decode");
    assert!(outcomes(&place).iter().all(|outcome| *outcome == Outcome::Decode));
}

#[test]
fn bytes_that_are_not_http_are_red() {
    let place = Place::new();
    let ended = check(&place, |_, socket| {
        drop(socket.write_all(b"\x00\x01SSH-2.0-OpenSSH\r\n\r\n"));
        drop(socket.shutdown(std::net::Shutdown::Both));
    });
    ended.expect_code(1);
    assert!(outcomes(&place).iter().all(|outcome| *outcome == Outcome::Decode));
}

#[test]
fn a_stream_that_closes_early_is_red_however_many_tokens_came() {
    let place = Place::new();
    check(&place, |_, socket| stream(socket, &[TOKEN, TOKEN])).expect_code(1).says("truncated");
    assert!(outcomes(&place).iter().all(|outcome| *outcome == Outcome::Truncated));
}

#[test]
fn an_overloaded_server_violates_errors_5xx() {
    let place = Place::new();
    let body = r#"{"error":{"message":"engine overloaded"}}"#;
    let ended = check(&place, move |_, socket| answer(socket, "500 Internal Server Error", "application/json", body));
    ended.expect_code(1).says("engine overloaded");
    assert_eq!(place.verdict("quick").status, Status::Violated);
}

#[test]
fn rate_limits_are_never_a_violation_of_latency() {
    let place = Place::new();
    let body = r#"{"error":{"message":"Rate limit reached for requests"}}"#;
    let ended = check(&place, move |_, socket| answer(socket, "429 Too Many Requests", "application/json", body));
    ended.expect_code(3).says("429").says("Rate limit reached");
}

#[test]
fn a_server_that_becomes_ready_is_waited_for() {
    let place = Place::new();
    let sim = crate::harness::Sim::start(&place, "ttft: 20ms, tpot: 2ms, ready_after: 5s");
    let spec = quick_spec("quick", &sim.url(), 20).replace("within: 2s", "within: 20s");
    place.write("gate.yaml", &spec);
    place.gate(&["check", "gate.yaml"]).expect_code(0).says("waiting for the target").says("503");

    let sim = crate::harness::Sim::start(&place, "ttft: 20ms, tpot: 2ms, ready_after: 60s");
    place.write("gate.yaml", &quick_spec("quick", &sim.url(), 20).replace("within: 2s", "within: 1s"));
    place.gate(&["check", "gate.yaml"]).expect_code(3).says("503").says("ready.within");
}

#[test]
fn a_client_without_descriptors_says_nothing_of_the_server() {
    let place = Place::new();
    let address = serve(|request, socket| {
        if request.starts_with("GET") {
            answer(socket, "200 OK", "application/json", "{}");
        } else {
            std::thread::sleep(Duration::from_millis(1500));
            stream(socket, &[TOKEN, TOKEN, FINISH, "[DONE]"]);
        }
    });
    place.write("gate.yaml", &quick_spec("quick", &format!("http://{address}"), 60).replace("rps: 40", "rps: 200"));
    let words = format!("ulimit -n 24; exec '{}' check gate.yaml", crate::harness::binary().display());
    let mut shell = std::process::Command::new("sh");
    let ended = Ended::of(shell.args(["-c", &words]).current_dir(place.path("")).output().unwrap());
    ended.expect_code(3).says("COULD NOT MEASURE").says("descriptors");
}

#[test]
fn a_run_limit_counts_warm_up_too() {
    let place = Place::new();
    let address = serve(|request, socket| {
        if request.starts_with("GET") {
            answer(socket, "200 OK", "application/json", "{}");
        } else {
            std::thread::sleep(Duration::from_secs(60));
        }
    });
    let spec = quick_spec("quick", &format!("http://{address}"), 20).replace("warmup: 1", "warmup: 50");
    place.write("gate.yaml", &spec.replace("total: 20s", "total: 20s, run: 3s"));
    place.gate(&["check", "gate.yaml"]).expect_code(3).says("timeouts.run");
    assert!(place.run("quick").warmup.len() < 5, "it did not go through all of warm-up");
}

#[test]
fn a_wrong_route_is_the_urls_fault_not_readiness() {
    let place = Place::new();
    let address = serve(|_, socket| answer(socket, "404 Not Found", "text/plain", "no such page"));
    place.write("gate.yaml", &quick_spec("quick", &format!("http://{address}/wrong"), 20));
    place.gate(&["check", "gate.yaml"]).expect_code(3).says("404").says("target.url");
}

#[test]
fn a_name_that_does_not_resolve_is_said_at_once() {
    let place = Place::new();
    place.write("gate.yaml", &quick_spec("quick", "http://no-such-host.invalid", 20));
    place.gate(&["check", "gate.yaml"]).expect_code(3).says("no-such-host.invalid").says("resolve");
}

#[test]
fn a_servers_words_are_no_commands_to_the_runner() {
    let place = Place::new();
    let body = r#"{"error":{"message":"no ::error::forged ::add-mask::e ##[error]forged ::stop-commands::x"}}"#;
    let ended = check(&place, move |_, socket| answer(socket, "401 Unauthorized", "application/json", body));
    ended.expect_code(3).says("forged");
    let is_command = |line: &str| line.trim_start().starts_with("::") || line.contains("##[");
    assert!(!ended.stderr.lines().any(is_command), "{}", ended.stderr);
}

#[test]
fn control_codes_of_a_server_never_reach_the_terminal() {
    let place = Place::new();
    let body = "{\"error\":{\"message\":\"\\u001b[31mboo\\u0007 ]]> <b>&amp;\"}}";
    let ended = check(&place, move |_, socket| answer(socket, "500 Internal Server Error", "application/json", body));
    ended.expect_code(1);
    assert!(!ended.stderr.contains(['\u{1b}', '\u{7}']), "{:?}", ended.stderr);
    let junit = place.junit("quick");
    assert!(!junit.contains(['\u{1b}', '\u{7}']), "{junit:?}");
    let mut reader = quick_xml::Reader::from_str(&junit);
    while !matches!(reader.read_event().unwrap(), quick_xml::events::Event::Eof) {}
}
