//! HTTP, and OpenAI chat with its faults.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use gate_engine::{Fate, script};
use gate_model::{EngineParams, Faults, Latency, Nanos};
use gate_sim::{Server, SimError, Truth};
use serde_json::{Value, json};

use crate::client::*;

#[test]
fn a_stream_without_usage() {
    let server = start(fast());
    let answer = ask(&server, &streamed(7));
    assert_eq!((answer.status, answer.broken), (200, None));
    assert!(answer.head.contains("content-type: text/event-stream"), "{}", answer.head);
    let events = answer.events();
    assert_eq!(events.len(), 7 + 2);
    assert_eq!(answer.text(), "Call me Ishmael. Some years ago, never");
    assert_eq!(events.last(), Some(&"[DONE]"));
    let finish: Value = serde_json::from_str(events[7]).unwrap();
    assert_eq!(finish["choices"][0]["finish_reason"], "length");
    assert!(!answer.body.contains("usage"), "{}", answer.body);
    let first: Value = serde_json::from_str(events[0]).unwrap();
    assert_eq!(first["choices"][0]["delta"], json!({"role": "assistant", "content": "Call"}));
    assert_eq!((&first["object"], &first["model"]), (&json!("chat.completion.chunk"), &json!("m")));

    let truth = only(&server);
    assert_eq!((truth.number, truth.fate, truth.status, truth.streamed), (0, Fate::Complete, Some(200), true));
    assert_eq!((truth.prompt_tokens, truth.max_tokens, truth.output_tokens), (4, 7, 7));
    assert_eq!(truth.writes.len(), 7);
    assert!(!truth.client_left);
}

#[test]
fn usage_comes_only_when_asked_for() {
    let server = start(fast());
    let answer = ask(&server, &chat(5, r#","stream":true,"stream_options":{"include_usage":true}"#));
    let events = answer.events();
    assert_eq!(events.len(), 5 + 3);
    let usage: Value = serde_json::from_str(events[6]).unwrap();
    assert_eq!(usage["choices"], json!([]));
    assert_eq!(usage["usage"], json!({"prompt_tokens": 4, "completion_tokens": 5, "total_tokens": 9}));
    let before: Value = serde_json::from_str(events[2]).unwrap();
    assert_eq!(before.get("usage"), Some(&Value::Null));
}

#[test]
fn one_body_where_no_stream_is_asked_for() {
    let server = start(fast());
    let answer = ask(&server, &post(r#"{"messages":[{"role":"user","content":"hi"}]}"#));
    let body = answer.json();
    assert_eq!(body["choices"][0]["message"]["content"].as_str().unwrap().split(' ').count(), 16);
    assert_eq!(body["choices"][0]["finish_reason"], "length");
    assert_eq!(body["usage"], json!({"prompt_tokens": 2, "completion_tokens": 16, "total_tokens": 18}));
    assert_eq!((only(&server).streamed, only(&server).output_tokens), (false, 16));
}

#[test]
fn a_role_only_event_comes_first() {
    let server = start(EngineParams { role_chunk: Some(Nanos::ZERO), ..fast() });
    let answer = ask(&server, &streamed(3));
    let first: Value = serde_json::from_str(answer.events()[0]).unwrap();
    assert_eq!(first["choices"][0]["delta"], json!({"role": "assistant", "content": ""}));
    let second: Value = serde_json::from_str(answer.events()[1]).unwrap();
    assert_eq!(second["choices"][0]["delta"], json!({"content": "Call"}));
    let tokens: Vec<u32> = only(&server).writes.iter().map(|write| write.tokens).collect();
    assert_eq!(tokens, [0, 1, 1, 1]);
}

#[test]
fn an_event_carries_several_tokens() {
    let server = start(EngineParams { tokens_per_chunk: 4, ..fast() });
    let answer = ask(&server, &streamed(11));
    assert_eq!(answer.words(), 11);
    let tokens: Vec<u32> = only(&server).writes.iter().map(|write| write.tokens).collect();
    assert_eq!(tokens, [1, 4, 4, 2]);
}

#[test]
fn it_plays_the_engines_scripts_and_never_early() {
    let params = EngineParams { seed: 9, tpot: Latency::constant(Nanos::from_millis(1)), ..EngineParams::default() };
    let params = EngineParams { ttft: Latency { mean: Nanos::from_millis(20), ..params.ttft }, ..params };
    let server = start(params.clone());
    let mut stream = connect(&server);
    for _ in 0..4 {
        assert_eq!(exchange(&mut stream, &streamed(10)).words(), 10);
    }
    for (request, number) in settled(&server).requests.iter().zip(0..) {
        let script = script(&params, number, 10);
        assert_eq!(request.number, number);
        assert_eq!(request.writes.len(), script.events.len());
        for (write, event) in request.writes.iter().zip(&script.events) {
            assert_eq!(write.tokens, event.kind.tokens());
            assert!(write.at >= request.arrived + event.at);
        }
        assert!(request.end.unwrap() >= request.arrived + script.end);
    }
}

#[test]
fn many_streams_at_once_have_every_token() {
    let server = start(EngineParams { tpot: Latency::constant(Nanos::from_millis(10)), ..fast() });
    let answers: Vec<Answer> = std::thread::scope(|scope| {
        let clients: Vec<_> = (0..64).map(|_| scope.spawn(|| ask(&server, &streamed(20)))).collect();
        clients.into_iter().map(|client| client.join().unwrap()).collect()
    });
    assert!(answers.iter().all(|answer| answer.words() == 20));
    let truth = settled(&server);
    assert_eq!(truth.requests.len(), 64);
    assert!(truth.requests.iter().all(|request| request.output_tokens == 20 && request.fate == Fate::Complete));
}

#[test]
fn http_500() {
    let server = start(faulty(|faults| faults.http_500 = 1.0));
    let mut stream = connect(&server);
    for _ in 0..2 {
        let answer = exchange(&mut stream, &streamed(5));
        assert_eq!((answer.status, &answer.json()["error"]["type"]), (500, &json!("server_error")));
    }
    let truth = settled(&server);
    assert!(truth.requests.iter().all(|request| (request.fate, request.status) == (Fate::Http500, Some(500))));
    assert_eq!(truth.requests.len(), 2);
}

#[test]
fn an_error_inside_the_stream() {
    let server = start(faulty(|faults| faults.stream_error = 1.0));
    let mut stream = connect(&server);
    let answer = exchange(&mut stream, &streamed(20));
    assert_eq!((answer.status, answer.broken), (200, None));
    let events = answer.events();
    assert_eq!(events[events.len() - 1], "[DONE]");
    let error: Value = serde_json::from_str(events[events.len() - 2]).unwrap();
    assert_eq!((&error["error"]["code"], &error["error"]["type"]), (&json!(500), &json!("server_error")));
    assert_eq!(byte(&mut stream), Err(ErrorKind::UnexpectedEof));
    let truth = only(&server);
    assert_eq!((truth.fate, truth.output_tokens as usize), (Fate::StreamError, answer.words()));
    assert!((1..20).contains(&truth.output_tokens) && events.len() == truth.writes.len() + 2);
}

#[test]
fn a_stall_lasts_until_the_client_leaves() {
    let params = faulty(|faults| faults.stall = 1.0);
    let server = start(params.clone());
    let answer = read_stalled(&server, &streamed(20), script(&params, 0, 20).events.len());
    let truth = only(&server);
    assert_eq!((truth.fate, truth.client_left), (Fate::Stall, true));
    assert_eq!(truth.output_tokens as usize, answer.words());
    assert!((1..20).contains(&truth.output_tokens));
}

#[test]
fn a_reset_in_the_middle() {
    let server = start(faulty(|faults| faults.reset = 1.0));
    let answer = ask(&server, &streamed(20));
    assert_eq!((answer.status, answer.broken), (200, Some(ErrorKind::ConnectionReset)));
    let truth = only(&server);
    assert_eq!((truth.fate, truth.output_tokens as usize), (Fate::Reset, answer.words()));
    assert!((1..20).contains(&truth.output_tokens) && !answer.body.contains("[DONE]"));
}

#[test]
fn a_truncated_stream_ends_cleanly_with_nothing_said() {
    let server = start(faulty(|faults| faults.truncate = 1.0));
    let mut stream = connect(&server);
    let answer = exchange(&mut stream, &streamed(20));
    assert_eq!((answer.status, answer.broken), (200, None));
    assert!(!answer.body.contains("[DONE]") && !answer.body.contains("length"));
    assert_eq!(byte(&mut stream), Err(ErrorKind::UnexpectedEof));
    let truth = only(&server);
    assert_eq!((truth.fate, truth.output_tokens as usize), (Fate::Truncate, answer.words()));
    assert!((1..20).contains(&truth.output_tokens));
}

#[test]
fn faults_of_an_answer_in_one_body() {
    let answer_of = |set: fn(&mut Faults)| {
        let server = start(faulty(set));
        let answer = ask(&server, &chat(20, ""));
        assert_eq!(only(&server).output_tokens, 0);
        answer
    };
    let reset = answer_of(|faults| faults.reset = 1.0);
    assert!(!reset.body.is_empty());
    assert_eq!(reset.broken, Some(ErrorKind::ConnectionReset));
    assert_eq!(answer_of(|faults| faults.truncate = 1.0).broken, Some(ErrorKind::UnexpectedEof));
    let server = start(faulty(|faults| faults.stall = 1.0));
    read_stalled(&server, &chat(20, ""), 1);
    assert!(only(&server).client_left);
    let failed = answer_of(|faults| faults.stream_error = 1.0);
    assert_eq!((failed.status, &failed.json()["error"]["code"]), (200, &json!(500)));
}

#[test]
fn fates_are_counted_as_clients_see_them() {
    let faults = Faults { http_500: 0.2, stream_error: 0.2, reset: 0.2, truncate: 0.2, ..Faults::default() };
    let server = start(EngineParams { faults, ..fast() });
    let seen: Vec<Fate> = (0..60)
        .map(|_| {
            let answer = ask(&server, &streamed(8));
            match (answer.status, answer.broken, answer.body.contains("\"error\""), answer.body.contains("[DONE]")) {
                (500, ..) => Fate::Http500,
                (_, Some(_), ..) => Fate::Reset,
                (_, _, true, _) => Fate::StreamError,
                (_, _, _, true) => Fate::Complete,
                _ => Fate::Truncate,
            }
        })
        .collect();
    let truth: Vec<Fate> = settled(&server).requests.iter().map(|request| request.fate).collect();
    assert_eq!(seen, truth);
    for fate in [Fate::Http500, Fate::StreamError, Fate::Reset, Fate::Truncate, Fate::Complete] {
        assert!(truth.contains(&fate), "{fate:?}");
    }
}

#[test]
fn when_it_dies_all_is_reset_and_the_port_refuses() {
    let slow = Latency::constant(Nanos::from_secs(60));
    let server = start(EngineParams { dies_after: Some(3), ttft: slow, role_chunk: Some(Nanos::ZERO), ..fast() });
    let mut idle = connect(&server);
    let mut open: Vec<TcpStream> = (0..2).map(|_| connect(&server)).collect();
    for stream in &mut open {
        stream.write_all(streamed(5).as_bytes()).unwrap();
        assert_eq!(line(stream).unwrap(), "HTTP/1.1 200 OK");
    }
    let mut last = connect(&server);
    last.write_all(streamed(5).as_bytes()).unwrap();
    assert_eq!(byte(&mut last), Err(ErrorKind::ConnectionReset));
    assert_eq!(TcpStream::connect(server.address()).unwrap_err().kind(), ErrorKind::ConnectionRefused);
    assert_eq!(byte(&mut idle), Err(ErrorKind::ConnectionReset));
    for mut stream in open {
        let mut rest = Vec::new();
        assert_eq!(stream.read_to_end(&mut rest).unwrap_err().kind(), ErrorKind::ConnectionReset);
    }
    let truth = settled(&server);
    let fates: Vec<_> = truth.requests.iter().map(|request| (request.fate, request.status)).collect();
    assert_eq!(fates, [(Fate::Dead, Some(200)), (Fate::Dead, Some(200)), (Fate::Dead, None)]);
    server.wait();
}

#[test]
fn it_can_be_dead_from_the_start() {
    let server = start(EngineParams { dies_after: Some(0), ..fast() });
    let address = server.address();
    server.wait();
    assert_eq!(TcpStream::connect(address).unwrap_err().kind(), ErrorKind::ConnectionRefused);
}

#[test]
fn it_is_not_ready_at_first() {
    let server = start(EngineParams { ready_after: Nanos::from_secs(3_600), ..fast() });
    let mut stream = connect(&server);
    for request in [get("/health"), get("/v1/models"), streamed(5)] {
        let answer = exchange(&mut stream, &request);
        assert_eq!((answer.status, &answer.json()["error"]["type"]), (503, &json!("server_error")));
    }
    assert!(server.truth().requests.is_empty());

    let before = Instant::now();
    let server = start(EngineParams { ready_after: Nanos::from_millis(300), ..fast() });
    while ask(&server, &get("/health")).status == 503 {
        assert!(before.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(before.elapsed() >= Duration::from_millis(300));
    assert_eq!(ask(&server, &get("/health")).status, 200);
    assert_eq!(ask(&server, &streamed(5)).status, 200);
}

#[test]
fn the_other_routes() {
    let server = start(fast());
    let mut stream = connect(&server);
    assert_eq!(exchange(&mut stream, &get("/v1/models?limit=1")).json()["data"][0]["id"], "gate-sim");
    assert_eq!(exchange(&mut stream, &streamed(5)).words(), 5);
    // The answer's end is written just after it is entered, so the truth is complete by now.
    let truth = exchange(&mut stream, &get("/truth")).body;
    assert_eq!(serde_json::from_str::<Truth>(&truth).unwrap(), server.truth());

    let missing = exchange(&mut stream, &get("/v1/moderations"));
    assert_eq!((missing.status, &missing.json()["error"]["type"]), (404, &json!("invalid_request_error")));
    let wrong = exchange(&mut stream, &get("/v1/chat/completions"));
    assert_eq!(wrong.status, 405);
    assert!(wrong.head.contains("allow: POST"), "{}", wrong.head);
}

#[test]
fn a_malformed_body_is_refused_and_the_connection_lives_on() {
    let server = start(fast());
    let mut stream = connect(&server);
    let answer = exchange(&mut stream, &post("{\"messages\": ["));
    assert_eq!((answer.status, &answer.json()["error"]["type"]), (400, &json!("invalid_request_error")));
    let answer = exchange(&mut stream, &post(r#"{"messages":[{}],"max_tokens":"many"}"#));
    assert_eq!((answer.status, &answer.json()["error"]["param"]), (400, &json!("max_tokens")));
    assert_eq!(exchange(&mut stream, &streamed(3)).words(), 3);
    assert_eq!(only(&server).number, 0);
}

#[test]
fn garbage_is_refused_and_the_connection_closed() {
    let server = start(fast());
    let long = format!("GET / HTTP/1.1\r\nx: {}", "y".repeat(70_000));
    let many = format!("GET / HTTP/1.1\r\n{}\r\n", "x: y\r\n".repeat(200));
    let post = |headers: &str| format!("POST /v1/chat/completions HTTP/1.1\r\n{headers}\r\n");
    for (request, status) in [
        ("\u{16}\u{3}\u{1} what is this\r\n\r\n", 400),
        ("GET / HTTP/1.0\r\n\r\n", 505),
        (&long, 431),
        (&many, 431),
        (&post("content-length: -1\r\n"), 400),
        (&post("content-length: 5\r\ncontent-length: 6\r\n"), 400),
        (&post("content-length: 5\r\ntransfer-encoding: chunked\r\n"), 400),
        (&post("content-length: 99999999999999999999999\r\n"), 413),
        (&post("content-length: 99999999\r\n"), 413),
        (&post("transfer-encoding: gzip\r\n"), 501),
        (&(post("transfer-encoding: chunked\r\n") + "what\r\n"), 400),
        (&(post("transfer-encoding: chunked\r\n") + "1\r\n{garbage"), 400),
        (&(post("transfer-encoding: chunked\r\n") + "fffffff\r\n"), 413),
    ] {
        let mut stream = connect(&server);
        let answer = exchange(&mut stream, request);
        assert_eq!(answer.status, status, "{request:.80}");
        assert!(answer.json()["error"]["message"].is_string());
        assert_eq!(byte(&mut stream), Err(ErrorKind::UnexpectedEof), "{request:.80}");
    }
    assert!(server.truth().requests.is_empty());
    assert_eq!(ask(&server, &get("/health")).status, 200);
}

#[test]
fn a_body_may_be_announced_and_may_come_in_chunks() {
    let server = start(fast());
    let mut stream = connect(&server);
    let body = r#"{"messages":[{}],"stream":true,"max_tokens":2}"#;
    let head = "POST /v1/chat/completions HTTP/1.1\r\nexpect: 100-continue\r\n";
    stream.write_all(format!("{head}content-length: {}\r\n\r\n", body.len()).as_bytes()).unwrap();
    assert_eq!(line(&mut stream).unwrap(), "HTTP/1.1 100 Continue");
    assert_eq!(line(&mut stream).unwrap(), "");
    assert_eq!(exchange(&mut stream, body).words(), 2);

    let head = "POST /v1/chat/completions HTTP/1.1\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n";
    let (left, right) = body.split_at(10);
    let chunks = format!("a\r\n{left}\r\n{:x};ext=1\r\n{right}\r\n0\r\n\r\n", right.len());
    // A byte at a time, so that every partial read happens.
    for byte in (head.to_owned() + &chunks).bytes() {
        stream.write_all(&[byte]).unwrap();
    }
    assert_eq!(read(&mut stream).unwrap().words(), 2);
    assert_eq!(byte(&mut stream), Err(ErrorKind::UnexpectedEof));
}

#[test]
fn it_stops_when_told_or_dropped() {
    let server = start(fast());
    let (address, stop) = (server.address(), server.stop_handle());
    let waiting = std::thread::spawn(move || server.wait());
    assert!(TcpStream::connect(address).is_ok());
    stop.stop();
    waiting.join().unwrap();
    assert!(TcpStream::connect(address).is_err());

    let server = start(EngineParams { ttft: Latency::constant(Nanos::from_secs(60)), ..fast() });
    let mut stream = connect(&server);
    stream.write_all(streamed(5).as_bytes()).unwrap();
    assert_eq!(line(&mut stream).unwrap(), "HTTP/1.1 200 OK");
    drop(server);
    assert!(stream.read_to_end(&mut Vec::new()).is_ok());
}

#[test]
fn a_taken_address_is_an_error_with_a_remedy() {
    let server = start(fast());
    let error = Server::start(server.address(), fast()).unwrap_err();
    assert!(matches!(error, SimError::Listen { .. }));
    assert!(error.to_string().contains("port 0"), "{error}");
}
