//! Every encoder under every fault, without a socket.

use std::time::UNIX_EPOCH;

use gate_engine::script;
use gate_model::{EngineParams, Fault, ScriptedFault};

use super::*;
use crate::http::Request;

/// A request to each route with a stream, and the piece that only a good end of its answer has.
const STREAMS: [(&str, &str, &str); 16] = [
    ("/v1/chat/completions", r#"{"messages":[{}],"max_tokens":9,"stream":true}"#, r#""finish_reason":"length""#),
    ("/v1/completions", r#"{"prompt":"a","max_tokens":9,"stream":true}"#, r#""finish_reason":"length""#),
    ("/v1/responses", r#"{"input":"a","max_output_tokens":9,"stream":true}"#, "event: response.incomplete\n"),
    ("/v1/messages", r#"{"messages":[{}],"max_tokens":9,"stream":true}"#, "event: message_stop\n"),
    ("/v1beta/models/m:streamGenerateContent?alt=sse", GEMINI, r#""finishReason":"MAX_TOKENS""#),
    ("/v1beta/models/m:streamGenerateContent", GEMINI, r#""finishReason":"MAX_TOKENS""#),
    ("/model/m/converse-stream", r#"{"messages":[{}],"inferenceConfig":{"maxTokens":9}}"#, "messageStop"),
    // `{"type":"message_stop"` in base64.
    ("/model/m/invoke-with-response-stream", r#"{"messages":[{}],"max_tokens":9}"#, "eyJ0eXBlIjoibWVzc2FnZV9zdG9wIi"),
    ("/v2/chat", r#"{"messages":[{}],"max_tokens":9,"stream":true}"#, r#""finish_reason":"MAX_TOKENS""#),
    ("/api/chat", r#"{"messages":[{}],"options":{"num_predict":9}}"#, r#""done":true"#),
    ("/api/generate", r#"{"prompt":"a","options":{"num_predict":9}}"#, r#""done":true"#),
    ("/generate_stream", r#"{"inputs":"a","parameters":{"max_new_tokens":9}}"#, r#""generated_text":"Call"#),
    ("/completion", r#"{"prompt":"a","n_predict":9,"stream":true}"#, r#""stop":true"#),
    ("/generate", r#"{"text":"a","sampling_params":{"max_new_tokens":9},"stream":true}"#, r#"{"type":"length""#),
    (
        "/generate",
        r#"{"text":"a","sampling_params":{"max_new_tokens":9},"stream":true,"incremental_streaming_output":true}"#,
        r#"{"type":"length""#,
    ),
    ("/v2/models/m/generate_stream", r#"{"text_input":"a","max_tokens":9}"#, r#""text_output":"""#),
];

const GEMINI: &str = r#"{"contents":[{"parts":[{"text":"a"}]}],"generationConfig":{"maxOutputTokens":9}}"#;

fn spoken(target: &str, body: &str) -> (&'static dyn Dialect, Ask) {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let request = Request {
        method: "POST".to_owned(),
        path: path.to_owned(),
        query: query.to_owned(),
        body: body.as_bytes().to_vec(),
        keep_alive: true,
    };
    let (dialect, _) = at(&request).unwrap();
    (dialect, dialect.ask(body.as_bytes()).unwrap())
}

/// What the encoder makes of an answer of 9 tokens with this fault: the text before its end, and the end.
fn encoded(dialect: &'static dyn Dialect, ask: &Ask, fault: Option<Fault>) -> (String, String) {
    let faults = fault.map(|fault| ScriptedFault { from: 1, to: 1, fault });
    let params = EngineParams { script: faults.into_iter().collect(), ..EngineParams::default() };
    let script = script(&params, 0, ask.max_tokens);
    let mut answer = Answer::new(dialect, ask, 0, UNIX_EPOCH, &script);
    let (mut content, mut end) = (Vec::new(), Vec::new());
    script.events.iter().for_each(|event| answer.next(*event, &mut content));
    match script.fate {
        Fate::Complete | Fate::Empty | Fate::SlowHeaders => answer.closing(script.end, &mut end),
        Fate::StreamError => answer.broken(script.end, &mut end),
        _ => {}
    }
    (String::from_utf8_lossy(&content).into_owned(), String::from_utf8_lossy(&end).into_owned())
}

#[test]
fn every_fault_of_every_dialect_ends_as_it_should() {
    for (target, body, mark) in STREAMS {
        let (dialect, ask) = spoken(target, body);
        assert!(ask.stream && ask.max_tokens == 9, "{target}");
        let (whole, whole_end) = encoded(dialect, &ask, None);
        assert!((whole.clone() + &whole_end).contains(mark), "{target}: {whole}{whole_end}");

        let failure = dialect.failure().message;
        for fault in Fault::ALL {
            let (content, end) = encoded(dialect, &ask, Some(fault));
            let all = content.clone() + &end;
            match fault {
                Fault::SlowHeaders => assert!(all.contains(mark), "{target}: {all}"),
                Fault::Empty => assert!(!end.is_empty() && !all.contains("Call"), "{target}: {all}"),
                Fault::Stall | Fault::Reset | Fault::Truncate => {
                    assert!(end.is_empty() && !all.contains(mark) && !all.contains(&failure), "{target}: {all}");
                    assert!(whole.starts_with(&content) || target == "/api/chat" || target == "/api/generate");
                }
                Fault::StreamError => {
                    assert!(!all.contains(mark), "{target}: {all}");
                    assert!(
                        end.contains(&failure) || end.contains("Request failed during generation"),
                        "{target}: {end}"
                    );
                }
                Fault::Http401 | Fault::Http429 | Fault::Http500 | Fault::Html200 => {
                    assert!(all.is_empty(), "{target}: {all}")
                }
            }
        }
    }
}

#[test]
fn every_dialect_refuses_with_a_message() {
    let others = [("/v1/embeddings", r#"{"input":"a"}"#, "")];
    for (target, body, _) in STREAMS.into_iter().chain(others) {
        let (dialect, _) = spoken(target, body);
        for refusal in [dialect.failure(), dialect.rate_limit(), dialect.unauthorised(), Refusal::new(503, "not yet")] {
            assert!(dialect.refusal(&refusal).to_string().contains(&refusal.message), "{target}");
        }
        assert_eq!((dialect.failure().status, dialect.rate_limit().status), (500, 429), "{target}");
        for malformed in ["", "[]", "{}"] {
            let refusal = dialect.ask(malformed.as_bytes()).unwrap_err();
            assert!(refusal.status == 400 && !refusal.message.is_empty(), "{target}: {malformed}");
        }
    }
}
