//! The four dialects: requests written, answers read.

use gate_model::Api;
use serde_json::{Value, json};

use crate::client::{Answer, post_to};

pub(crate) fn path(api: Api) -> &'static str {
    match api {
        Api::OpenaiChat => "/v1/chat/completions",
        Api::OpenaiCompletions => "/v1/completions",
        Api::Anthropic => "/v1/messages",
        Api::Ollama => "/api/chat",
    }
}

/// Asks for so many tokens in reply to a prompt of 4; for usage too, where the dialect has it on request.
pub(crate) fn request(api: Api, tokens: u32, stream: bool) -> String {
    let messages = json!([{"role": "user", "content": "a b c"}]);
    let mut body = match api {
        Api::OpenaiChat | Api::Anthropic => json!({"model": "m", "messages": messages, "max_tokens": tokens}),
        Api::OpenaiCompletions => json!({"model": "m", "prompt": "a b c", "max_tokens": tokens}),
        Api::Ollama => json!({"model": "m", "messages": messages, "options": {"num_predict": tokens}}),
    };
    body["stream"] = json!(stream);
    if stream && matches!(api, Api::OpenaiChat | Api::OpenaiCompletions) {
        body["stream_options"] = json!({"include_usage": true});
    }
    post_to(path(api), &body.to_string())
}

/// What an answer says.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Said {
    /// The text of each event with content, or of the whole body.
    pub(crate) texts: Vec<String>,
    pub(crate) finish: Option<String>,
    /// Input and output tokens.
    pub(crate) usage: Option<(u64, u64)>,
    /// Whether the end mark came.
    pub(crate) ended: bool,
    pub(crate) error: Option<Value>,
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
        self.usage = input.zip(output.as_u64()).or(self.usage);
    }
}

/// The data of each event, each of Anthropic's under the name of its type.
pub(crate) fn events(api: Api, body: &str) -> Vec<&str> {
    match api {
        Api::Ollama => body.split_terminator('\n').collect(),
        Api::OpenaiChat | Api::OpenaiCompletions => {
            body.split_terminator("\n\n").map(|event| event.strip_prefix("data: ").unwrap()).collect()
        }
        Api::Anthropic => body
            .split_terminator("\n\n")
            .map(|event| {
                let (name, data) = event.strip_prefix("event: ").unwrap().split_once("\ndata: ").unwrap();
                assert_eq!(serde_json::from_str::<Value>(data).unwrap()["type"], name);
                data
            })
            .collect(),
    }
}

/// Reads a stream, or what there is of it.
pub(crate) fn streamed(api: Api, answer: &Answer) -> Said {
    let mut said = Said::default();
    for data in events(api, &answer.body) {
        assert!(!said.ended, "{data} after the end");
        if data == "[DONE]" {
            said.ended = true;
            continue;
        }
        let event: Value = serde_json::from_str(data).unwrap();
        said.error = event.get("error").cloned().or(said.error.take());
        match api {
            Api::OpenaiChat | Api::OpenaiCompletions => {
                let choice = &event["choices"][0];
                said.content(if api == Api::OpenaiChat { &choice["delta"]["content"] } else { &choice["text"] });
                said.finish(&choice["finish_reason"]);
                said.usage(&event["usage"]["prompt_tokens"], &event["usage"]["completion_tokens"]);
            }
            Api::Anthropic => {
                said.content(&event["delta"]["text"]);
                said.finish(&event["delta"]["stop_reason"]);
                let usage = event.pointer("/message/usage").unwrap_or(&event["usage"]);
                said.usage(&usage["input_tokens"], &usage["output_tokens"]);
                said.ended = event["type"] == "message_stop";
            }
            Api::Ollama => {
                said.content(&event["message"]["content"]);
                said.finish(&event["done_reason"]);
                said.usage(&event["prompt_eval_count"], &event["eval_count"]);
                said.ended = event["done"] == true;
            }
        }
    }
    said
}

/// Reads one body.
pub(crate) fn whole(api: Api, answer: &Answer) -> Said {
    let body = answer.json();
    let mut said = Said { error: body.get("error").cloned(), ..Said::default() };
    match api {
        Api::OpenaiChat | Api::OpenaiCompletions => {
            let choice = &body["choices"][0];
            said.content(if api == Api::OpenaiChat { &choice["message"]["content"] } else { &choice["text"] });
            said.finish(&choice["finish_reason"]);
            said.usage(&body["usage"]["prompt_tokens"], &body["usage"]["completion_tokens"]);
        }
        Api::Anthropic => {
            said.content(&body["content"][0]["text"]);
            said.finish(&body["stop_reason"]);
            said.usage(&body["usage"]["input_tokens"], &body["usage"]["output_tokens"]);
        }
        Api::Ollama => {
            said.content(&body["message"]["content"]);
            said.finish(&body["done_reason"]);
            said.usage(&body["prompt_eval_count"], &body["eval_count"]);
            said.ended = body["done"] == true;
        }
    }
    said
}

/// The finish reason where the limit was reached.
pub(crate) fn length(api: Api) -> Option<String> {
    Some(if api == Api::Anthropic { "max_tokens" } else { "length" }.to_owned())
}

/// The finish reason where the model ends by itself.
pub(crate) fn stop(api: Api) -> Option<String> {
    Some(if api == Api::Anthropic { "end_turn" } else { "stop" }.to_owned())
}

/// Whether an error, out of its envelope, has the dialect's own shape.
pub(crate) fn is_error(api: Api, error: &Value, kind: &str) -> bool {
    match api {
        Api::Ollama => error.as_str().is_some_and(|message| !message.is_empty()),
        _ => error["type"] == kind && error["message"].as_str().is_some_and(|message| !message.is_empty()),
    }
}
