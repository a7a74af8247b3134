//! Every dialect, as a stream and as one body.

use gate_engine::{Fate, script};
use gate_model::{EngineParams, Latency, Nanos, WarmingUp};
use serde_json::{Value, json};

use crate::client::*;
use crate::speech::{self, Tongue, length, request};

const TEXT: &str = "Call me Ishmael. Some years ago, never";

fn with_role(params: EngineParams) -> EngineParams {
    EngineParams { role_chunk: Some(Nanos::ZERO), ..params }
}

/// The events of an answer of 2 tokens.
fn events(api: Tongue, params: EngineParams) -> Vec<Value> {
    let answer = ask(&start(params), &request(api, 2, true));
    speech::events(api, &answer).into_iter().filter(Value::is_object).collect()
}

#[test]
fn a_stream() {
    for api in Tongue::STREAMED {
        for params in [fast(), with_role(fast())] {
            let server = start(params);
            let mut stream = connect(&server);
            let answer = exchange(&mut stream, &request(api, 7, true));
            assert_eq!((answer.status, answer.broken), (200, None));
            let kind = api.stream_type();
            assert!(answer.head.contains(&format!("content-type: {kind}\n")), "{}", answer.head);
            let said = speech::streamed(api, &answer);
            assert_eq!((said.text().as_str(), said.texts.len()), (TEXT, 7), "{api:?}");
            assert_eq!((said.finish, said.usage, said.ended), (length(api), api.usage(7), true), "{api:?}");
            assert_eq!(said.error, None);

            let truth = only(&server);
            assert_eq!(
                (truth.api, truth.fate, truth.status, truth.streamed),
                (api.api(), Fate::Complete, Some(200), true)
            );
            assert_eq!((truth.prompt_tokens, truth.max_tokens, truth.output_tokens), (4, 7, 7));
            // The connection lives on.
            assert_eq!(speech::streamed(api, &exchange(&mut stream, &request(api, 3, true))).words(), 3);
        }
    }
}

#[test]
fn one_body() {
    for api in Tongue::STREAMED {
        let server = start(with_role(fast()));
        let answer = ask(&server, &request(api, 7, false));
        assert_eq!((answer.status, answer.broken, answer.chunks.len()), (200, None, 0));
        assert!(answer.head.contains("content-type: application/json\n"), "{}", answer.head);
        let said = speech::whole(api, &answer);
        assert_eq!((said.text().as_str(), said.usage, said.finish), (TEXT, api.usage(7), length(api)), "{api:?}");
        let truth = only(&server);
        assert_eq!((truth.api, truth.streamed, truth.output_tokens, truth.writes.len()), (api.api(), false, 7, 1));
    }
}

#[test]
fn the_model_is_the_one_asked_for() {
    for (api, stream) in Tongue::all() {
        let answer = ask(&start(with_role(fast())), &request(api, 2, stream));
        let first = if stream { speech::events(api, &answer).remove(0) } else { answer.json() };
        let pointer = match api {
            Tongue::OpenaiResponses if stream => "/response/model",
            Tongue::Anthropic | Tongue::BedrockInvoke if stream => "/message/model",
            Tongue::GeminiSse | Tongue::GeminiArray => "/modelVersion",
            Tongue::Triton => "/model_name",
            // Only its last event has it.
            Tongue::Llamacpp if stream => continue,
            Tongue::BedrockConverse | Tongue::Cohere | Tongue::Tgi => continue,
            Tongue::SglangCumulative | Tongue::SglangIncremental => continue,
            _ => "/model",
        };
        assert_eq!(first.pointer(pointer), Some(&json!("m")), "{api:?} {first}");
        let has_fingerprint = matches!(api, Tongue::OpenaiChat | Tongue::OpenaiCompletions);
        assert_eq!(first.get("system_fingerprint").is_some(), has_fingerprint);
    }
}

#[test]
fn embeddings_are_one_body_and_nothing_is_generated() {
    let server = start(fast());
    let answer = ask(&server, &request(Tongue::OpenaiEmbeddings, 0, false));
    let body = answer.json();
    assert_eq!((answer.status, body["data"].as_array().unwrap().len()), (200, 2));
    let vector = |index: usize| body["data"][index]["embedding"].as_array().unwrap().clone();
    assert_eq!((vector(0).len(), &body["data"][1]["index"]), (8, &json!(1)));
    assert_ne!(vector(0), vector(1));
    assert_eq!(body["usage"], json!({"prompt_tokens": 4, "total_tokens": 4}));
    let truth = only(&server);
    assert_eq!((truth.api, truth.output_tokens, truth.writes.len()), (Tongue::OpenaiEmbeddings.api(), 0, 1));
    // When a first token would be due.
    assert!(truth.writes[0].at >= truth.arrived + Nanos::from_millis(2));

    let asked = |body: &str| ask(&start(fast()), &post_to("/v1/embeddings", body)).json();
    let encoded = asked(r#"{"input":[1,2,3],"encoding_format":"base64","dimensions":3}"#);
    assert_eq!(
        (encoded["data"][0]["embedding"].as_str().unwrap().len(), &encoded["usage"]["prompt_tokens"]),
        (16, &json!(3))
    );
    for wrong in ["{}", r#"{"input":[]}"#, r#"{"input":[{}]}"#, r#"{"input":"a","dimensions":0}"#] {
        assert_eq!(asked(wrong)["error"]["type"], "invalid_request_error", "{wrong}");
    }
}

#[test]
fn events_due_together_are_written_together() {
    let params = EngineParams { tpot: Latency::constant(Nanos::ZERO), ..fast() };
    for api in Tongue::STREAMED {
        let server = start(params.clone());
        let answer = ask(&server, &request(api, 40, true));
        assert_eq!(speech::streamed(api, &answer).texts.len(), 40, "{api:?}");
        let writes: Vec<_> = only(&server).writes.iter().map(|write| (write.events, write.tokens)).collect();
        assert_eq!(writes, [(40, 40)], "{api:?}");
    }
    let server = start(params);
    assert_eq!(ask(&server, &streamed(5_000)).words(), 5_000);
    let writes = only(&server).writes;
    assert!(writes.len() > 5 && writes.iter().all(|write| write.events < 1_000), "{writes:?}");
}

#[test]
fn the_truth_has_both_sides_of_every_write() {
    let server = start(with_role(fast()));
    ask(&server, &streamed(9));
    let truth = only(&server);
    let mut before = truth.arrived;
    for write in &truth.writes {
        assert!(before <= write.at && write.due <= write.at && write.at <= write.done.unwrap(), "{truth:?}");
        before = write.done.unwrap();
    }
    assert_eq!(truth.writes[1].due, truth.arrived + Nanos::from_millis(2));
    assert!(truth.end.unwrap() >= before);
}

#[test]
fn gemini_writes_an_array_in_pieces() {
    let answer = ask(&start(fast()), &request(Tongue::GeminiArray, 2, true));
    let whole: Vec<Value> = serde_json::from_str(&answer.body).unwrap();
    assert_eq!((whole.len(), answer.chunks.len()), (3, 3));
    assert!(answer.body.starts_with("[{") && answer.body.contains("}\n,\r\n{") && answer.body.ends_with("}\n]"));
    let parts = |index: usize| whole[index]["candidates"][0]["content"]["parts"].clone();
    assert_eq!((parts(0), parts(1)), (json!([{"text": "Call"}]), json!([{"text": " me"}])));
    let usage = &whole[1]["usageMetadata"];
    assert_eq!((&usage["candidatesTokenCount"], &usage["totalTokenCount"]), (&json!(2), &json!(6)));

    let body = r#"{"contents":[]}"#;
    let refused = ask(&start(fast()), &post_to(Tongue::GeminiArray.path(true), body)).json();
    assert_eq!(refused[0]["error"]["status"], "INVALID_ARGUMENT");
}

#[test]
fn openai_responses_number_their_events_and_repeat_the_text_at_the_end() {
    for params in [fast(), with_role(fast())] {
        let events = events(Tongue::OpenaiResponses, params);
        let names: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
        let expected = [
            "response.created",
            "response.in_progress",
            "response.output_item.added",
            "response.content_part.added",
            "response.output_text.delta",
            "response.output_text.delta",
            "response.output_text.done",
            "response.content_part.done",
            "response.output_item.done",
            "response.incomplete",
        ];
        assert_eq!(names, expected);
        assert!(events.iter().zip(0..).all(|(event, number)| event["sequence_number"] == number));
        assert_eq!(
            (&events[6]["text"], &events[9]["response"]["output"][0]["content"][0]["text"]),
            (&json!("Call me"), &json!("Call me"))
        );
    }
}

#[test]
fn a_path_names_the_model() {
    for path in ["/model/arn%3Aa%2Fclaude%3A0/invoke", "/v1beta/models/arn%3Aa%2Fclaude%3A0:generateContent"] {
        let body = json!({
            "messages": [{"role": "user", "content": "a"}], "max_tokens": 1,
            "contents": [{"parts": [{"text": "a"}]}],
        });
        let answer = ask(&start(fast()), &post_to(path, &body.to_string())).json();
        let model = answer.get("model").or(answer.get("modelVersion"));
        assert_eq!(model, Some(&json!("arn:a/claude:0")), "{path}");
    }
    for path in
        ["/model/m/fly", "/v1beta/models/m:count", "/v2/models/m/infer", "/model//invoke", "/v1beta/m:generateContent"]
    {
        assert_eq!(ask(&start(fast()), &post_to(path, "{}")).status, 404, "{path}");
    }
}

#[test]
fn text_generation_inference_counts_where_asked() {
    let plain = post_to("/generate_stream", r#"{"inputs":"a b c","parameters":{"max_new_tokens":2}}"#);
    let answer = ask(&start(fast()), &plain);
    let said = speech::streamed(Tongue::Tgi, &answer);
    assert_eq!((said.words(), said.usage, said.finish, said.ended), (2, None, None, true));
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
    for api in Tongue::STREAMED {
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
    let api = Tongue::OpenaiCompletions;
    let events = events(api, with_role(fast()));
    let choice = json!({"index": 0, "text": "Call", "logprobs": null, "finish_reason": null});
    assert_eq!((&events[0]["object"], &events[0]["choices"]), (&json!("text_completion"), &json!([choice])));
    assert_eq!((&events[0]["usage"], &events[3]["choices"]), (&Value::Null, &json!([])));
    assert_eq!(events.len(), 2 + 2);
    let plain = post_to(api.path(true), r#"{"prompt":"a","max_tokens":2,"stream":true}"#);
    let answer = ask(&start(fast()), &plain);
    assert!(!answer.body.contains("usage") && answer.events().len() == 2 + 2, "{}", answer.body);
}

#[test]
fn anthropic_has_its_events_in_order() {
    let names = |params| {
        let events = events(Tongue::Anthropic, params);
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

    let events = events(Tongue::Anthropic, fast());
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
    for api in Tongue::STREAMED {
        assert_eq!(writes(api, with_role(fast())), if api.opens() { vec![0, 1, 1] } else { vec![1, 1] });
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
    let lines = events(Tongue::OllamaChat, params.clone());
    assert_eq!(lines.len(), 2 + 1);
    assert_eq!(
        (&lines[0]["message"], &lines[0]["done"]),
        (&json!({"role": "assistant", "content": "Call"}), &json!(false))
    );
    assert!(lines[0]["created_at"].as_str().unwrap().ends_with('Z') && lines[0].get("eval_count").is_none());
    let of_whole = ask(&start(params), &request(Tongue::OllamaChat, 2, false)).json();
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
    for api in Tongue::STREAMED {
        let server = start(fast());
        let mut stream = connect(&server);
        let refused = |answer: &Answer| speech::refused(api, answer);
        let malformed = exchange(&mut stream, &post_to(api.path(true), "{"));
        assert_eq!((malformed.status, refused(&malformed).as_deref()), (400, Some(api.kind(400))), "{malformed:?}");
        let wrong = exchange(&mut stream, &get(api.path(true)));
        assert!(wrong.status == 405 && wrong.head.contains("allow: POST"), "{wrong:?}");
        assert_eq!(refused(&wrong).as_deref(), Some(api.kind(405)), "{wrong:?}");

        let early = start(EngineParams { ready_after: Nanos::from_secs(3_600), ..fast() });
        let early = ask(&early, &request(api, 2, true));
        assert_eq!((early.status, refused(&early).as_deref()), (503, Some(api.kind(503))), "{early:?}");
    }
}

#[test]
fn ollama_lists_its_model() {
    let tags = ask(&start(fast()), &get("/api/tags")).json();
    assert_eq!((&tags["models"][0]["name"], tags["models"].as_array().unwrap().len()), (&json!("gate-sim"), 1));
}
