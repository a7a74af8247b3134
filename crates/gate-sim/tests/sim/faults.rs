//! Every fault in every dialect, as a stream and as one body.

use std::io::{ErrorKind, Write};
use std::time::Instant;

use gate_engine::Fate;
use gate_model::{EngineParams, Fault, Faults, Nanos, ScriptedFault};
use gate_sim::Server;

use crate::client::*;
use crate::speech::{self, Tongue, refused, request, stop};

/// An engine whose every request fails this way.
fn failing(fault: Fault) -> EngineParams {
    EngineParams { script: vec![ScriptedFault { from: 1, to: u32::MAX, fault }], ..fast() }
}

fn fates(server: &Server) -> Vec<Fate> {
    settled(server).requests.iter().map(|request| request.fate).collect()
}

/// Asks twice on one connection in every dialect, for a stream and for one body.
fn twice_each(fault: Fault, check: impl Fn(Tongue, bool, &Answer)) {
    for (api, stream) in Tongue::all() {
        let server = start(failing(fault));
        let mut connection = connect(&server);
        for _ in 0..2 {
            let answer = exchange(&mut connection, &request(api, 20, stream));
            assert_eq!(answer.broken, None);
            check(api, stream, &answer);
        }
        assert_eq!(fates(&server), [Fate::from(fault); 2]);
    }
}

#[test]
fn http_429() {
    twice_each(Fault::Http429, |api, _, answer| {
        assert_eq!(answer.status, 429);
        assert!(answer.head.contains("Too Many Requests\n") && answer.head.contains("retry-after: 1\n"), "{answer:?}");
        assert_eq!(refused(api, answer).as_deref(), Some(api.kind(429)), "{answer:?}");
    });
}

#[test]
fn an_answer_429_says_when_to_come_back() {
    for (retry_after, seconds) in [(Nanos::from_secs(86_400), 86_400), (Nanos::from_millis(1_200), 2), (Nanos::ZERO, 0)]
    {
        let server = start(EngineParams { retry_after: Some(retry_after), ..failing(Fault::Http429) });
        let answer = ask(&server, &streamed(5));
        assert!(answer.head.contains(&format!("retry-after: {seconds}\n")), "{answer:?}");
    }
}

#[test]
fn http_401() {
    twice_each(Fault::Http401, |api, _, answer| {
        assert_eq!(answer.status, 401);
        assert!(answer.head.contains("401 Unauthorized\n"), "{answer:?}");
        assert!(refused(api, answer).is_some(), "{answer:?}");
    });
}

#[test]
fn http_500() {
    twice_each(Fault::Http500, |api, _, answer| {
        assert_eq!(answer.status, 500);
        assert_eq!(refused(api, answer).as_deref(), Some(api.kind(500)), "{answer:?}");
        assert_eq!(answer.json()["type"] == "error", api == Tongue::Anthropic);
    });
}

#[test]
fn html_200() {
    twice_each(Fault::Html200, |_, _, answer| {
        assert!(answer.status == 200 && answer.head.contains("content-type: text/html"), "{answer:?}");
        assert!(answer.body.starts_with("<!DOCTYPE html>") && answer.body.ends_with("</html>\n"), "{answer:?}");
    });
}

#[test]
fn empty() {
    twice_each(Fault::Empty, |api, stream, answer| {
        let said = if stream { speech::streamed(api, answer) } else { speech::whole(api, answer) };
        assert_eq!((answer.status, said.texts.len(), said.error), (200, 0, None), "{answer:?}");
        assert_eq!((said.finish, said.usage), (stop(api), api.usage(0)), "{answer:?}");
        assert!(said.ended || !stream, "{answer:?}");
    });
}

#[test]
fn slow_headers_come_late_and_all_goes_on() {
    let late = Nanos::from_millis(60);
    {
        for (api, stream) in Tongue::all() {
            let server = start(EngineParams { slow_headers: late, ..failing(Fault::SlowHeaders) });
            let (mut connection, before) = (connect(&server), Instant::now());
            connection.write_all(request(api, 5, stream).as_bytes()).unwrap();
            assert_eq!(line(&mut connection).unwrap(), "HTTP/1.1 200 OK");
            assert!(before.elapsed() >= late.to_duration());
            drop(connection);

            let answer = ask(&server, &request(api, 5, stream));
            let said = if stream { speech::streamed(api, &answer) } else { speech::whole(api, &answer) };
            let words = if api == Tongue::OpenaiEmbeddings { 0 } else { 5 };
            assert_eq!((answer.status, said.words(), said.error), (200, words, None), "{answer:?}");
            let truth = &settled(&server).requests[1];
            assert_eq!((truth.fate, truth.status), (Fate::SlowHeaders, Some(200)));
            assert_eq!(truth.output_tokens as usize, words);
            assert!(truth.writes.iter().all(|write| write.at >= truth.arrived + late));
        }
    }
}

#[test]
fn an_error_inside_the_stream_ends_it() {
    for api in Tongue::STREAMED {
        let server = start(failing(Fault::StreamError));
        let mut connection = connect(&server);
        let answer = exchange(&mut connection, &request(api, 20, true));
        assert_eq!((answer.status, answer.broken), (200, None));
        let said = speech::streamed(api, &answer);
        assert_eq!(said.error.as_deref(), Some(api.kind_in_stream()), "{answer:?}");
        assert_eq!((said.finish.as_ref(), (1..20).contains(&said.words())), (None, true), "{answer:?}");
        let ends_all_the_same = matches!(
            api,
            Tongue::OpenaiChat
                | Tongue::OpenaiCompletions
                | Tongue::OpenaiResponses
                | Tongue::GeminiArray
                | Tongue::Cohere
                | Tongue::SglangCumulative
                | Tongue::SglangIncremental
        );
        assert_eq!(said.ended, ends_all_the_same, "{answer:?}");
        assert_eq!(only(&server).output_tokens as usize, said.words());
        assert_eq!(byte(&mut connection), Err(ErrorKind::UnexpectedEof));
    }
}

#[test]
fn an_error_in_one_body_is_the_body() {
    for (api, _) in Tongue::all().filter(|(_, stream)| !stream) {
        let server = start(failing(Fault::StreamError));
        let answer = ask(&server, &request(api, 20, false));
        let said = speech::whole(api, &answer);
        assert!(said.error.is_some(), "{answer:?}");
        assert_eq!((answer.status, said.texts.len(), only(&server).output_tokens), (200, 0, 0));
    }
}

#[test]
fn a_stream_is_truncated_or_reset_in_the_middle() {
    for (api, stream) in Tongue::all() {
        for (fault, broken) in [(Fault::Truncate, None), (Fault::Reset, Some(ErrorKind::ConnectionReset))] {
            let server = start(failing(fault));
            let answer = ask(&server, &request(api, 20, stream));
            if stream {
                assert_eq!((answer.status, answer.broken), (200, broken));
                let said = speech::streamed(api, &answer);
                assert_eq!((&said.finish, said.ended, &said.error), (&None, false, &None), "{answer:?}");
                assert_eq!(only(&server).output_tokens as usize, said.words());
                assert!((1..20).contains(&said.words()));
            } else {
                let broken = broken.unwrap_or(ErrorKind::UnexpectedEof);
                assert_eq!((answer.status, answer.broken, answer.body.is_empty()), (200, Some(broken), false));
            }
        }
    }
}

#[test]
fn a_stream_or_a_body_stalls_until_the_client_leaves() {
    // One after another they take a while, each until its client is sure that nothing more comes.
    std::thread::scope(|scope| {
        for (api, stream) in Tongue::all() {
            scope.spawn(move || {
                let params = failing(Fault::Stall);
                let events = if stream { gate_engine::script(&params, 0, 20).events.len() } else { 1 };
                let server = start(params);
                let answer = read_stalled(&server, &request(api, 20, stream), events);
                let truth = only(&server);
                assert_eq!((truth.fate, truth.client_left), (Fate::Stall, true));
                if stream {
                    assert_eq!(truth.output_tokens as usize, speech::streamed(api, &answer).words());
                }
            });
        }
    });
}

#[test]
fn scripted_faults_happen_to_the_requests_they_name_whatever_the_dialect() {
    let script = vec![
        ScriptedFault { from: 2, to: 3, fault: Fault::Http429 },
        ScriptedFault { from: 3, to: 4, fault: Fault::Html200 },
    ];
    let server = start(EngineParams { script, faults: Faults { empty: 1.0, ..Faults::default() }, ..fast() });
    let mut connection = connect(&server);
    for api in Tongue::STREAMED {
        exchange(&mut connection, &request(api, 2, true));
    }
    let fates = fates(&server);
    assert_eq!(fates[..4], [Fate::Empty, Fate::Http429, Fate::Http429, Fate::Html200]);
    assert_eq!(fates[4..], [Fate::Empty; 12]);
}
