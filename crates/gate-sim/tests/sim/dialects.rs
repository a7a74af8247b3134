//! Every dialect, as a stream and as one body.

use gate_engine::{Fate, script};
use gate_model::{Api, EngineParams, Latency, Nanos, WarmingUp};
use serde_json::{Value, json};

use crate::client::*;
use crate::speech::{self, length, path, request};

const TEXT: &str = "Call me Ishmael. Some years ago, never";

fn with_role(params: EngineParams) -> EngineParams {
    EngineParams { role_chunk: Some(Nanos::ZERO), ..params }
}

/// The events of an answer of 2 tokens.
fn events(api: Api, params: EngineParams) -> Vec<Value> {
    let answer = ask(&start(params), &request(api, 2, true));
    let events = speech::events(api, &answer.body).into_iter().filter(|data| *data != "[DONE]");
    events.map(|data| serde_json::from_str(data).unwrap()).collect()
}

#[test]
fn a_stream() {
    for api in Api::ALL {
        for params in [fast(), with_role(fast())] {
            let server = start(params);
            let mut stream = connect(&server);
            let answer = exchange(&mut stream, &request(api, 7, true));
            assert_eq!((answer.status, answer.broken), (200, None));
            let kind = if api == Api::Ollama { "application/x-ndjson" } else { "text/event-stream" };
            assert!(answer.head.contains(&format!("content-type: {kind}\n")), "{}", answer.head);
            let said = speech::streamed(api, &answer);
            assert_eq!((said.text().as_str(), said.texts.len()), (TEXT, 7));
            assert_eq!((said.finish, said.usage, said.ended), (length(api), Some((4, 7)), true), "{api:?}");

            let truth = only(&server);
            assert_eq!((truth.api, truth.fate, truth.status, truth.streamed), (api, Fate::Complete, Some(200), true));
            assert_eq!((truth.prompt_tokens, truth.max_tokens, truth.output_tokens), (4, 7, 7));
            // The connection lives on.
            assert_eq!(speech::streamed(api, &exchange(&mut stream, &request(api, 3, true))).words(), 3);
        }
    }
}

#[test]
fn one_body() {
    for api in Api::ALL {
        let server = start(with_role(fast()));
        let answer = ask(&server, &request(api, 7, false));
        assert_eq!((answer.status, answer.broken, answer.chunks.len()), (200, None, 0));
        assert!(answer.head.contains("content-type: application/json\n"), "{}", answer.head);
        let said = speech::whole(api, &answer);
        assert_eq!((said.text().as_str(), said.usage, said.finish), (TEXT, Some((4, 7)), length(api)), "{api:?}");
        assert_eq!(answer.json()["model"], "m");
        let truth = only(&server);
        assert_eq!((truth.api, truth.streamed, truth.output_tokens, truth.writes.len()), (api, false, 7, 1));
    }
}

#[test]
fn every_dialect_has_the_same_times_and_none_is_early() {
    let params = EngineParams {
        seed: 9,
        ttft: Latency { mean: Nanos::from_millis(5), ..EngineParams::default().ttft },
        tpot: Latency { mean: Nanos::from_millis(1), ..EngineParams::default().tpot },
        tokens_per_chunk: 3,
        warming_up: Some(WarmingUp { requests: 3, slowdown: 2.0 }),
        ..EngineParams::default()
    };
    for api in Api::ALL {
        let server = start(params.clone());
        let mut stream = connect(&server);
        for _ in 0..4 {
            exchange(&mut stream, &request(api, 10, true));
        }
        for (request, number) in settled(&server).requests.iter().zip(0..) {
            let script = script(&params, number, 10);
            let due = script.events.iter().filter(|event| event.kind.tokens() > 0);
            let written: Vec<_> = request.writes.iter().filter(|write| write.tokens > 0).collect();
            assert_eq!(written.len(), due.clone().count());
            for (write, event) in written.into_iter().zip(due) {
                assert_eq!(write.tokens, event.kind.tokens());
                assert!(write.at >= request.arrived + event.at, "{api:?}");
            }
        }
    }
}

#[test]
fn openai_completions_have_a_text_and_usage_on_request() {
    let api = Api::OpenaiCompletions;
    let events = events(api, with_role(fast()));
    let choice = json!({"index": 0, "text": "Call", "logprobs": null, "finish_reason": null});
    assert_eq!((&events[0]["object"], &events[0]["choices"]), (&json!("text_completion"), &json!([choice])));
    assert_eq!((&events[0]["usage"], &events[3]["choices"]), (&Value::Null, &json!([])));
    assert_eq!(events.len(), 2 + 2);
    let plain = post_to(path(api), r#"{"prompt":"a","max_tokens":2,"stream":true}"#);
    let answer = ask(&start(fast()), &plain);
    assert!(!answer.body.contains("usage") && answer.events().len() == 2 + 2, "{}", answer.body);
}

#[test]
fn anthropic_has_its_events_in_order() {
    let names = |params| {
        let events = events(Api::Anthropic, params);
        events.iter().map(|event| event["type"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let expected = [
        "message_start",
        "content_block_start",
        "ping",
        "content_block_delta",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ];
    assert_eq!(names(fast()), expected);
    assert_eq!(names(with_role(fast())), expected);

    let events = events(Api::Anthropic, fast());
    let message = &events[0]["message"];
    assert_eq!((&message["role"], &message["content"]), (&json!("assistant"), &json!([])));
    assert_eq!(message["usage"], json!({"input_tokens": 4, "output_tokens": 1}));
    assert_eq!(events[3]["delta"], json!({"type": "text_delta", "text": "Call"}));
    assert_eq!(events[6]["delta"], json!({"stop_reason": "max_tokens", "stop_sequence": null}));
    assert_eq!(events[6]["usage"], json!({"output_tokens": 2}));
}

#[test]
fn what_opens_a_stream_is_written_alone_where_it_has_its_time() {
    let writes = |api, params| {
        let server = start(params);
        ask(&server, &request(api, 2, true));
        only(&server).writes.iter().map(|write| write.tokens).collect::<Vec<_>>()
    };
    for api in Api::ALL {
        let opens = matches!(api, Api::OpenaiChat | Api::Anthropic);
        assert_eq!(writes(api, with_role(fast())), if opens { vec![0, 1, 1] } else { vec![1, 1] });
        assert_eq!(writes(api, fast()), [1, 1]);
    }
}

#[test]
fn ollama_counts_and_times_in_its_last_line() {
    let params = EngineParams {
        ttft: Latency::constant(Nanos::from_millis(2)),
        tpot: Latency::constant(Nanos::from_millis(1)),
        ..fast()
    };
    let lines = events(Api::Ollama, params.clone());
    assert_eq!(lines.len(), 2 + 1);
    assert_eq!(
        (&lines[0]["message"], &lines[0]["done"]),
        (&json!({"role": "assistant", "content": "Call"}), &json!(false))
    );
    assert!(lines[0]["created_at"].as_str().unwrap().ends_with('Z') && lines[0].get("eval_count").is_none());
    let of_whole = ask(&start(params), &request(Api::Ollama, 2, false)).json();
    for last in [&lines[2], &of_whole] {
        assert_eq!((&last["done_reason"], &last["load_duration"]), (&json!("length"), &json!(0)));
        assert_eq!((&last["prompt_eval_count"], &last["eval_count"]), (&json!(4), &json!(2)));
        assert_eq!((&last["prompt_eval_duration"], &last["eval_duration"]), (&json!(2_000_000), &json!(1_000_000)));
        assert_eq!(last["total_duration"], json!(3_000_000));
    }
}

#[test]
fn a_model_may_want_the_newer_field() {
    let asked = |model: &str, field: &str| {
        let body = json!({"model": model, "messages": [{"role": "user", "content": "a"}], field: 3});
        ask(&start(fast()), &post(&body.to_string()))
    };
    let refused = asked("wants-max-completion-tokens", "max_tokens");
    let error = json!({
        "message": "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
        "type": "invalid_request_error", "param": "max_tokens", "code": "unsupported_parameter",
    });
    assert_eq!((refused.status, &refused.json()["error"]), (400, &error));
    for (model, field) in [("wants-max-completion-tokens", "max_completion_tokens"), ("m", "max_tokens")] {
        assert_eq!(asked(model, field).json()["usage"]["completion_tokens"], 3);
    }
}

#[test]
fn refusals_have_the_dialects_own_words() {
    for api in Api::ALL {
        let server = start(fast());
        let mut stream = connect(&server);
        let malformed = exchange(&mut stream, &post_to(path(api), "{"));
        assert_eq!(malformed.status, 400);
        assert!(speech::is_error(api, &malformed.json()["error"], "invalid_request_error"), "{malformed:?}");
        let wrong = exchange(&mut stream, &get(path(api)));
        assert!(wrong.status == 405 && wrong.head.contains("allow: POST"), "{wrong:?}");
        assert!(speech::is_error(api, &wrong.json()["error"], "invalid_request_error"), "{wrong:?}");

        let early = start(EngineParams { ready_after: Nanos::from_secs(3_600), ..fast() });
        let early = ask(&early, &request(api, 2, true));
        let kind = if api == Api::Anthropic { "overloaded_error" } else { "server_error" };
        assert!(early.status == 503 && speech::is_error(api, &early.json()["error"], kind), "{early:?}");
    }
}

#[test]
fn ollama_lists_its_model() {
    let tags = ask(&start(fast()), &get("/api/tags")).json();
    assert_eq!((&tags["models"][0]["name"], tags["models"].as_array().unwrap().len()), (&json!("gate-sim"), 1));
}
