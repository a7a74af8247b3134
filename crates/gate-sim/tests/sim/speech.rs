//! The dialects, and the forms some of them have: requests written, answers read. Nothing here is shared with the
//! encoders.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gate_model::Api;
use serde_json::{Value, json};

use crate::client::{Answer, post_to};

/// A dialect, in one of its forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tongue {
    OpenaiChat,
    OpenaiCompletions,
    OpenaiResponses,
    OpenaiEmbeddings,
    Anthropic,
    GeminiSse,
    GeminiArray,
    BedrockConverse,
    BedrockInvoke,
    Cohere,
    OllamaChat,
    OllamaGenerate,
    Tgi,
    Llamacpp,
    SglangCumulative,
    SglangIncremental,
    Triton,
}

use Tongue::*;

impl Tongue {
    pub(crate) const STREAMED: [Self; 16] = [
        OpenaiChat,
        OpenaiCompletions,
        OpenaiResponses,
        Anthropic,
        GeminiSse,
        GeminiArray,
        BedrockConverse,
        BedrockInvoke,
        Cohere,
        OllamaChat,
        OllamaGenerate,
        Tgi,
        Llamacpp,
        SglangCumulative,
        SglangIncremental,
        Triton,
    ];

    /// Each with a stream, and each with one body.
    pub(crate) fn all() -> impl Iterator<Item = (Self, bool)> {
        let streamed = Self::STREAMED.into_iter().flat_map(|tongue| [(tongue, true), (tongue, false)]);
        streamed.chain([(OpenaiEmbeddings, false)])
    }

    pub(crate) fn api(self) -> Api {
        match self {
            OpenaiChat => Api::OpenaiChat,
            OpenaiCompletions => Api::OpenaiCompletions,
            OpenaiResponses => Api::OpenaiResponses,
            OpenaiEmbeddings => Api::OpenaiEmbeddings,
            Anthropic => Api::Anthropic,
            GeminiSse | GeminiArray => Api::Gemini,
            BedrockConverse => Api::BedrockConverse,
            BedrockInvoke => Api::BedrockInvoke,
            Cohere => Api::Cohere,
            OllamaChat | OllamaGenerate => Api::Ollama,
            Tgi => Api::Tgi,
            Llamacpp => Api::Llamacpp,
            SglangCumulative | SglangIncremental => Api::Sglang,
            Triton => Api::Triton,
        }
    }

    pub(crate) fn path(self, stream: bool) -> &'static str {
        match (self, stream) {
            (OpenaiChat, _) => "/v1/chat/completions",
            (OpenaiCompletions, _) => "/v1/completions",
            (OpenaiResponses, _) => "/v1/responses",
            (OpenaiEmbeddings, _) => "/v1/embeddings",
            (Anthropic, _) => "/v1/messages",
            (GeminiSse, true) => "/v1beta/models/m:streamGenerateContent?key=k&alt=sse",
            (GeminiArray, true) => "/v1/projects/p/locations/l/publishers/google/models/m:streamGenerateContent",
            (GeminiSse | GeminiArray, false) => "/v1beta/models/m:generateContent",
            (BedrockConverse, true) => "/model/m/converse-stream",
            (BedrockConverse, false) => "/model/m/converse",
            (BedrockInvoke, true) => "/model/m/invoke-with-response-stream",
            (BedrockInvoke, false) => "/model/m/invoke",
            (Cohere, _) => "/v2/chat",
            (OllamaChat, _) => "/api/chat",
            (OllamaGenerate, _) => "/api/generate",
            (Tgi, true) => "/generate_stream",
            (Tgi, false) | (SglangCumulative | SglangIncremental, _) => "/generate",
            (Llamacpp, _) => "/completion",
            (Triton, true) => "/v2/models/m/versions/1/generate_stream",
            (Triton, false) => "/v2/models/m/generate",
        }
    }

    pub(crate) fn stream_type(self) -> &'static str {
        match self {
            GeminiArray => "application/json; charset=UTF-8",
            BedrockConverse | BedrockInvoke => "application/vnd.amazon.eventstream",
            OllamaChat | OllamaGenerate => "application/x-ndjson",
            _ => "text/event-stream",
        }
    }

    /// The finish reasons: the limit was reached, or the model ended by itself.
    fn reasons(self) -> Option<(&'static str, &'static str)> {
        match self {
            OpenaiChat | OpenaiCompletions | OllamaChat | OllamaGenerate => Some(("length", "stop")),
            OpenaiResponses => Some(("max_output_tokens", "completed")),
            Anthropic | BedrockConverse | BedrockInvoke => Some(("max_tokens", "end_turn")),
            GeminiSse | GeminiArray => Some(("MAX_TOKENS", "STOP")),
            Cohere => Some(("MAX_TOKENS", "COMPLETE")),
            Tgi => Some(("length", "eos_token")),
            Llamacpp => Some(("limit", "eos")),
            SglangCumulative | SglangIncremental => Some(("length", "stop")),
            OpenaiEmbeddings | Triton => None,
        }
    }

    /// Whether the start of a stream may be written alone.
    pub(crate) fn opens(self) -> bool {
        matches!(self, OpenaiChat | OpenaiResponses | Anthropic | BedrockConverse | BedrockInvoke | Cohere)
    }

    /// Input and output tokens, as the dialect would give them.
    pub(crate) fn usage(self, output: u64) -> Option<(u64, Option<u64>)> {
        match self {
            Triton => None,
            OpenaiEmbeddings => Some((4, None)),
            // A zero is left out.
            GeminiSse | GeminiArray => Some((4, Some(output).filter(|output| *output > 0))),
            _ => Some((4, Some(output))),
        }
    }

    /// The kind of an error with this status; empty where the dialect has none.
    pub(crate) fn kind(self, status: u16) -> &'static str {
        let of = |kinds: [&'static str; 4]| match status {
            429 => kinds[1],
            503 => kinds[3],
            500.. => kinds[2],
            _ => kinds[0],
        };
        match self {
            OpenaiChat | OpenaiCompletions | OpenaiResponses | OpenaiEmbeddings => {
                of(["invalid_request_error", "requests", "server_error", "server_error"])
            }
            Anthropic => of(["invalid_request_error", "rate_limit_error", "api_error", "overloaded_error"]),
            GeminiSse | GeminiArray if status == 405 => "FAILED_PRECONDITION",
            GeminiSse | GeminiArray => of(["INVALID_ARGUMENT", "RESOURCE_EXHAUSTED", "INTERNAL", "UNAVAILABLE"]),
            Tgi => of(["validation", "overloaded", "incomplete_generation", "healthcheck"]),
            Llamacpp => of(["invalid_request_error", "unavailable_error", "server_error", "unavailable_error"]),
            BedrockConverse | BedrockInvoke => of([
                "ValidationException",
                "ThrottlingException",
                "InternalServerException",
                "ServiceUnavailableException",
            ]),
            Cohere | OllamaChat | OllamaGenerate | SglangCumulative | SglangIncremental | Triton => "",
        }
    }

    /// The kind of the engine's own failure inside a stream.
    pub(crate) fn kind_in_stream(self) -> &'static str {
        match self {
            BedrockConverse | BedrockInvoke => "internalServerException",
            Tgi => "generation",
            other => other.kind(500),
        }
    }
}

/// Asks for so many tokens in reply to a prompt of 4; for usage too, where the dialect has it on request.
pub(crate) fn request(tongue: Tongue, tokens: u32, stream: bool) -> String {
    let messages = json!([{"role": "user", "content": "a b c"}]);
    let parts = json!([{"role": "user", "parts": [{"text": "a b c"}]}]);
    let typed = json!([{"role": "user", "content": [{"text": "a b c"}]}]);
    let mut body = match tongue {
        OpenaiChat | Anthropic | Cohere => json!({"model": "m", "messages": messages, "max_tokens": tokens}),
        OpenaiCompletions => json!({"model": "m", "prompt": "a b c", "max_tokens": tokens}),
        OpenaiResponses => json!({"model": "m", "input": messages, "max_output_tokens": tokens}),
        OpenaiEmbeddings => json!({"model": "m", "input": ["a", "b c"], "dimensions": 8}),
        GeminiSse | GeminiArray => json!({"contents": parts, "generationConfig": {"maxOutputTokens": tokens}}),
        BedrockConverse => json!({"messages": typed, "inferenceConfig": {"maxTokens": tokens}}),
        BedrockInvoke => {
            json!({"anthropic_version": "bedrock-2023-05-31", "messages": messages, "max_tokens": tokens})
        }
        OllamaChat => json!({"model": "m", "messages": messages, "options": {"num_predict": tokens}}),
        OllamaGenerate => json!({"model": "m", "prompt": "a b c", "options": {"num_predict": tokens}}),
        Tgi => json!({"inputs": "a b c", "parameters": {"max_new_tokens": tokens, "details": true}}),
        Llamacpp => json!({"model": "m", "prompt": "a b c", "n_predict": tokens}),
        SglangCumulative => json!({"text": "a b c", "sampling_params": {"max_new_tokens": tokens}}),
        SglangIncremental => {
            json!({"input_ids": [1, 2, 3, 4], "sampling_params": {"max_new_tokens": tokens},
                "incremental_streaming_output": true})
        }
        Triton => json!({"text_input": "a b c", "max_tokens": tokens}),
    };
    let by_path =
        matches!(tongue, GeminiSse | GeminiArray | BedrockConverse | BedrockInvoke | Tgi | Triton | OpenaiEmbeddings);
    if !by_path {
        body["stream"] = json!(stream);
    }
    if stream && matches!(tongue, OpenaiChat | OpenaiCompletions) {
        body["stream_options"] = json!({"include_usage": true});
    }
    post_to(tongue.path(stream), &body.to_string())
}

/// What an answer says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Said {
    /// The text of each event with content, or of the whole body.
    pub(crate) texts: Vec<String>,
    pub(crate) finish: Option<String>,
    /// Input and output tokens.
    pub(crate) usage: Option<(u64, Option<u64>)>,
    /// Whether the end came, as the dialect marks it.
    pub(crate) ended: bool,
    /// The kind of an error; empty where the dialect has none.
    pub(crate) error: Option<String>,
}

impl Said {
    pub(crate) fn text(&self) -> String {
        self.texts.concat()
    }

    pub(crate) fn words(&self) -> usize {
        self.text().split_whitespace().count()
    }

    fn content(&mut self, text: &Value) {
        self.texts.extend(text.as_str().filter(|text| !text.is_empty()).map(str::to_owned));
    }

    fn finish(&mut self, reason: &Value) {
        self.finish = reason.as_str().map(str::to_owned).or(self.finish.take());
    }

    fn usage(&mut self, input: &Value, output: &Value) {
        let input = input.as_u64().or(self.usage.map(|(input, _)| input));
        let output = output.as_u64().or(self.usage.and_then(|(_, output)| output));
        self.usage = input.map(|input| (input, output));
    }
}

/// The data of each event; `[DONE]` is a text.
pub(crate) fn events(tongue: Tongue, answer: &Answer) -> Vec<Value> {
    let body = answer.body.as_str();
    let parse = |data: &str| match data {
        "[DONE]" => json!("[DONE]"),
        data => serde_json::from_str(data).unwrap(),
    };
    match tongue {
        OllamaChat | OllamaGenerate => body.split_terminator('\n').map(parse).collect(),
        GeminiArray => elements(body),
        BedrockConverse | BedrockInvoke => frames(&answer.bytes),
        GeminiSse => {
            let events = body.split_terminator("\r\n\r\n");
            // An error is a bare document after the events.
            events.map(|event| parse(event.strip_prefix("data: ").unwrap_or(event))).collect()
        }
        OpenaiResponses | Anthropic | Cohere => {
            let named = |event: &str| match event.strip_prefix("event: ") {
                None => parse(event.strip_prefix("data: ").unwrap()),
                Some(event) => {
                    let (name, data) = event.split_once("\ndata: ").unwrap();
                    let data = parse(data);
                    assert_eq!(data["type"], name);
                    data
                }
            };
            body.split_terminator("\n\n").map(named).collect()
        }
        _ => body.split_terminator("\n\n").map(|event| parse(event.strip_prefix("data: ").unwrap())).collect(),
    }
}

/// The elements of an array of which the end may be missing; the closing bracket is a text.
fn elements(mut body: &str) -> Vec<Value> {
    let mut elements = Vec::new();
    loop {
        body = body.trim_start_matches(['[', ',', '\r', '\n']);
        if matches!(body, "" | "]") {
            elements.extend((body == "]").then(|| json!("]")));
            return elements;
        }
        let mut values = serde_json::Deserializer::from_str(body).into_iter::<Value>();
        elements.push(values.next().unwrap().unwrap());
        let read = values.byte_offset();
        body = &body[read..];
    }
}

/// Event-stream messages, both sums of each checked: the payload in an object under the event's name.
fn frames(mut bytes: &[u8]) -> Vec<Value> {
    let number = |bytes: &[u8]| u32::from_be_bytes(bytes[..4].try_into().unwrap());
    let mut frames = Vec::new();
    while !bytes.is_empty() {
        let (length, headers) = (number(bytes) as usize, number(&bytes[4..]) as usize);
        let (frame, rest) = bytes.split_at(length);
        assert_eq!(number(&frame[8..]), crc32fast::hash(&frame[..8]));
        assert_eq!(number(&frame[length - 4..]), crc32fast::hash(&frame[..length - 4]));
        let payload: Value = serde_json::from_slice(&frame[12 + headers..length - 4]).unwrap();
        let (mut names, mut left) = (Vec::new(), &frame[12..12 + headers]);
        while !left.is_empty() {
            let name = 1 + left[0] as usize;
            assert_eq!(left[name], 7);
            let value = u16::from_be_bytes(left[name + 1..name + 3].try_into().unwrap()) as usize;
            let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
            names.push((text(&left[1..name]), text(&left[name + 3..][..value])));
            left = &left[name + 3 + value..];
        }
        let (kind, name) = names[0].clone();
        let of = kind.strip_prefix(':').unwrap().strip_suffix("-type").unwrap();
        assert_eq!(names[1], (":content-type".to_owned(), "application/json".to_owned()));
        assert_eq!(names[2], (":message-type".to_owned(), of.to_owned()));
        frames.push(match (of, name.as_str()) {
            ("exception", name) => json!({"exception": name, "message": payload["message"]}),
            (_, "chunk") => {
                serde_json::from_slice(&STANDARD.decode(payload["bytes"].as_str().unwrap()).unwrap()).unwrap()
            }
            (_, name) => json!({name: payload}),
        });
        bytes = rest;
    }
    frames
}

/// Reads a stream, or what there is of it.
pub(crate) fn streamed(tongue: Tongue, answer: &Answer) -> Said {
    let mut said = Said::default();
    for event in events(tongue, answer) {
        assert!(!said.ended, "{event} after the end");
        if event.is_string() {
            said.ended = true;
            continue;
        }
        said.error = error(tongue, &event).or(said.error.take());
        match tongue {
            OpenaiChat | OpenaiCompletions => {
                let choice = &event["choices"][0];
                said.content(if tongue == OpenaiChat { &choice["delta"]["content"] } else { &choice["text"] });
                said.finish(&choice["finish_reason"]);
                said.usage(&event["usage"]["prompt_tokens"], &event["usage"]["completion_tokens"]);
            }
            OpenaiResponses => {
                if event["type"] == "response.output_text.delta" {
                    said.content(&event["delta"]);
                }
                response(&mut said, &event["response"]);
                said.ended = matches!(
                    event["type"].as_str(),
                    Some("response.completed" | "response.incomplete" | "response.failed")
                );
            }
            Anthropic | BedrockInvoke => {
                said.content(&event["delta"]["text"]);
                said.finish(&event["delta"]["stop_reason"]);
                let usage = event.pointer("/message/usage").unwrap_or(&event["usage"]);
                said.usage(&usage["input_tokens"], &usage["output_tokens"]);
                said.ended = event["type"] == "message_stop";
            }
            GeminiSse | GeminiArray => {
                gemini(&mut said, &event);
                said.ended = tongue == GeminiSse && said.finish.is_some();
            }
            BedrockConverse => {
                said.content(&event["contentBlockDelta"]["delta"]["text"]);
                said.finish(&event["messageStop"]["stopReason"]);
                let usage = &event["metadata"]["usage"];
                said.usage(&usage["inputTokens"], &usage["outputTokens"]);
                said.ended = event.get("metadata").is_some();
            }
            Cohere => {
                if event["type"] == "content-delta" {
                    said.content(&event["delta"]["message"]["content"]["text"]);
                }
                if said.error.is_none() {
                    said.finish(&event["delta"]["finish_reason"]);
                }
                let tokens = &event["delta"]["usage"]["tokens"];
                said.usage(&tokens["input_tokens"], &tokens["output_tokens"]);
            }
            OllamaChat | OllamaGenerate => {
                ollama(&mut said, &event);
                said.ended = event["done"] == true;
            }
            Tgi => {
                if event["token"]["special"] == false {
                    said.content(&event["token"]["text"]);
                }
                details(&mut said, &event["details"]);
                said.ended = event["generated_text"].is_string();
                assert!(!said.ended || event["generated_text"] == said.text());
            }
            Llamacpp => {
                llamacpp(&mut said, &event);
                said.ended = event["stop"] == true;
            }
            SglangCumulative | SglangIncremental => {
                let text = event["text"].as_str().unwrap_or_default();
                let so_far = if tongue == SglangCumulative { said.text() } else { String::new() };
                said.content(&text.strip_prefix(&so_far).unwrap_or_default().into());
                info(&mut said, &event["meta_info"]);
            }
            Triton => {
                said.content(&event["text_output"]);
                said.ended = event["text_output"] == "";
            }
            OpenaiEmbeddings => unreachable!(),
        }
    }
    said
}

/// Reads one body.
pub(crate) fn whole(tongue: Tongue, answer: &Answer) -> Said {
    let body = answer.json();
    let mut said = Said { error: error(tongue, &body), ..Said::default() };
    match tongue {
        OpenaiChat | OpenaiCompletions => {
            let choice = &body["choices"][0];
            said.content(if tongue == OpenaiChat { &choice["message"]["content"] } else { &choice["text"] });
            said.finish(&choice["finish_reason"]);
            said.usage(&body["usage"]["prompt_tokens"], &body["usage"]["completion_tokens"]);
        }
        OpenaiResponses => {
            said.content(&body["output"][0]["content"][0]["text"]);
            response(&mut said, &body);
        }
        OpenaiEmbeddings => said.usage(&body["usage"]["prompt_tokens"], &Value::Null),
        Anthropic | BedrockInvoke => {
            said.content(&body["content"][0]["text"]);
            said.finish(&body["stop_reason"]);
            said.usage(&body["usage"]["input_tokens"], &body["usage"]["output_tokens"]);
        }
        GeminiSse | GeminiArray => gemini(&mut said, &body),
        BedrockConverse => {
            said.content(&body["output"]["message"]["content"][0]["text"]);
            said.finish(&body["stopReason"]);
            said.usage(&body["usage"]["inputTokens"], &body["usage"]["outputTokens"]);
        }
        Cohere => {
            said.content(&body["message"]["content"][0]["text"]);
            said.finish(&body["finish_reason"]);
            said.usage(&body["usage"]["tokens"]["input_tokens"], &body["usage"]["tokens"]["output_tokens"]);
        }
        OllamaChat | OllamaGenerate => ollama(&mut said, &body),
        Tgi => {
            said.content(&body["generated_text"]);
            details(&mut said, &body["details"]);
        }
        Llamacpp => llamacpp(&mut said, &body),
        SglangCumulative | SglangIncremental => {
            said.content(&body["text"]);
            info(&mut said, &body["meta_info"]);
        }
        Triton => said.content(&body["text_output"]),
    }
    said
}

fn response(said: &mut Said, response: &Value) {
    said.finish(&response["incomplete_details"]["reason"]);
    if response["status"] == "completed" {
        said.finish(&response["status"]);
    }
    said.usage(&response["usage"]["input_tokens"], &response["usage"]["output_tokens"]);
}

fn gemini(said: &mut Said, response: &Value) {
    let candidate = &response["candidates"][0];
    said.content(&candidate["content"]["parts"][0]["text"]);
    said.finish(&candidate["finishReason"]);
    let usage = &response["usageMetadata"];
    said.usage(&usage["promptTokenCount"], &usage["candidatesTokenCount"]);
}

fn ollama(said: &mut Said, line: &Value) {
    said.content(line.get("response").unwrap_or(&line["message"]["content"]));
    said.finish(&line["done_reason"]);
    said.usage(&line["prompt_eval_count"], &line["eval_count"]);
}

fn details(said: &mut Said, details: &Value) {
    said.finish(&details["finish_reason"]);
    said.usage(&details["input_length"], &details["generated_tokens"]);
}

fn llamacpp(said: &mut Said, event: &Value) {
    said.content(&event["content"]);
    said.finish(&event["stop_type"]);
    said.usage(&event["tokens_evaluated"], &event["tokens_predicted"]);
}

fn info(said: &mut Said, info: &Value) {
    said.finish(&info["finish_reason"]["type"]);
    said.usage(&info["prompt_tokens"], &info["completion_tokens"]);
}

/// The finish reason where the limit was reached.
pub(crate) fn length(tongue: Tongue) -> Option<String> {
    tongue.reasons().map(|(length, _)| length.to_owned())
}

/// The finish reason where the model ends by itself.
pub(crate) fn stop(tongue: Tongue) -> Option<String> {
    tongue.reasons().map(|(_, stop)| stop.to_owned())
}

/// The kind of a document's error, in the dialect's own shape; `None` where there is none.
pub(crate) fn error(tongue: Tongue, document: &Value) -> Option<String> {
    let error = &document["error"];
    let (message, kind) = match tongue {
        // One error in an array, where the answer would have been one.
        GeminiArray if document.is_array() => (&document[0]["error"]["message"], &document[0]["error"]["status"]),
        GeminiSse | GeminiArray => (&error["message"], &error["status"]),
        // A status that is refused has its kind in a header.
        BedrockConverse | BedrockInvoke => (&document["message"], &document["exception"]),
        Cohere => {
            (if document["type"] == "message-end" { &document["delta"]["error"] } else { &document["message"] }, error)
        }
        OllamaChat | OllamaGenerate | Triton => (error, &Value::Null),
        Tgi => (error, &document["error_type"]),
        SglangCumulative | SglangIncremental => (&error["message"], &Value::Null),
        _ => (&error["message"], &error["type"]),
    };
    let message = message.as_str()?;
    assert!(!message.is_empty());
    Some(kind.as_str().unwrap_or_default().to_owned())
}

/// The kind of the error that an answer with another status than 200 has.
pub(crate) fn refused(tongue: Tongue, answer: &Answer) -> Option<String> {
    let kind = error(tongue, &answer.json())?;
    let header = answer.head.lines().find_map(|line| line.strip_prefix("x-amzn-errortype: "));
    assert_eq!(header.is_some(), matches!(tongue, BedrockConverse | BedrockInvoke));
    Some(header.map_or(kind, str::to_owned))
}
