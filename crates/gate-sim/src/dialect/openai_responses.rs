//! OpenAI responses.

use gate_model::Api;
use serde_json::{Value, json};

use super::{Dialect, Reply, named_event, openai};
use crate::ask::{self, Ask, Fields, present};
use crate::http::Refusal;

/// `POST /v1/responses`.
pub(crate) struct OpenaiResponses;

impl Dialect for OpenaiResponses {
    fn api(&self) -> Api {
        Api::OpenaiResponses
    }

    fn ask(&self, body: &[u8]) -> Result<Ask, Refusal> {
        let fields = openai::fields(body)?;
        let input = match present(&fields, "input") {
            None => return Err(openai::missing("input")),
            Some(text @ Value::String(_)) => ask::words(text),
            Some(Value::Array(items)) => ask::words_of_messages(items),
            Some(other) => return Err(openai::wrong_type("input", "a string or an array", other)),
        };
        let instructions = present(&fields, "instructions").map_or(0, ask::words);
        Ok(Ask {
            model: ask::model(&fields),
            stream: openai::flag(&fields, "stream", "stream")?,
            include_usage: true,
            max_tokens: openai::max_tokens(&fields, &["max_output_tokens"])?,
            prompt_tokens: ask::prompt_tokens(input + instructions),
            ..Ask::default()
        })
    }

    /// The response, its one message, and the one part of that.
    fn opening(&self, reply: &Reply<'_>, out: &mut Vec<u8>) {
        let response = response(reply, "in_progress", json!([]));
        let item = message(reply, "in_progress", json!([]));
        let mut part = placed(reply);
        part.insert("part".to_owned(), text_part(""));
        let events = [
            ("response.created", fields(json!({"response": response}))),
            ("response.in_progress", fields(json!({"response": response}))),
            ("response.output_item.added", fields(json!({"output_index": 0, "item": item}))),
            ("response.content_part.added", part),
        ];
        numbered(0, events, out);
    }

    fn content(&self, reply: &Reply<'_>, out: &mut Vec<u8>) {
        self.opened(reply, out);
        let mut delta = placed(reply);
        delta.extend(fields(json!({"delta": reply.delta(), "logprobs": []})));
        numbered(OPENING + reply.events, [("response.output_text.delta", delta)], out);
    }

    /// The text again, whole, in each of its wrappings.
    fn closing(&self, reply: &Reply<'_>, out: &mut Vec<u8>) {
        self.opened(reply, out);
        let status = reply.reason("incomplete", "completed");
        let (mut text, mut part) = (placed(reply), placed(reply));
        text.extend(fields(json!({"text": reply.text, "logprobs": []})));
        part.insert("part".to_owned(), text_part(&reply.text));
        let item = message(reply, status, json!([text_part(&reply.text)]));
        let response = response(reply, status, json!([item]));
        let end = reply.reason("response.incomplete", "response.completed");
        let events = [
            ("response.output_text.done", text),
            ("response.content_part.done", part),
            ("response.output_item.done", fields(json!({"output_index": 0, "item": item}))),
            (end, fields(json!({"response": response}))),
        ];
        numbered(OPENING + reply.events, events, out);
    }

    fn body(&self, reply: &Reply<'_>) -> Value {
        let status = reply.reason("incomplete", "completed");
        let content = if reply.text.is_empty() { json!([]) } else { json!([text_part(&reply.text)]) };
        response(reply, status, json!([message(reply, status, content)]))
    }

    fn embedded_failure(&self) -> Value {
        openai::embedded_failure()
    }

    /// The error, then the response that failed of it.
    fn broken_stream(&self, reply: &Reply<'_>, out: &mut Vec<u8>) {
        let error = json!({"type": "server_error", "code": "server_error", "message": openai::FAILURE, "param": null});
        let mut failed = response(reply, "failed", json!([]));
        if let Some(response) = failed.as_object_mut() {
            response.insert("error".to_owned(), json!({"code": "server_error", "message": openai::FAILURE}));
        }
        let events =
            [("error", fields(json!({"error": error}))), ("response.failed", fields(json!({"response": failed})))];
        numbered(OPENING + reply.events, events, out);
    }
}

/// How many events open a stream.
const OPENING: u32 = 4;

/// Events under their names, numbered from here on.
fn numbered<const N: usize>(first: u32, events: [(&str, Fields); N], out: &mut Vec<u8>) {
    for (number, (name, fields)) in (first..).zip(events) {
        let mut data = Fields::new();
        data.insert("type".to_owned(), name.into());
        data.insert("sequence_number".to_owned(), number.into());
        data.extend(fields);
        named_event(out, name, &data);
    }
}

fn fields(object: Value) -> Fields {
    match object {
        Value::Object(fields) => fields,
        _ => Fields::new(),
    }
}

/// Where the text stands.
fn placed(reply: &Reply<'_>) -> Fields {
    fields(json!({"item_id": item_id(reply), "output_index": 0, "content_index": 0}))
}

fn item_id(reply: &Reply<'_>) -> String {
    format!("msg_sim_{}", reply.number)
}

fn text_part(text: &str) -> Value {
    json!({"type": "output_text", "annotations": [], "logprobs": [], "text": text})
}

fn message(reply: &Reply<'_>, status: &str, content: Value) -> Value {
    json!({"id": item_id(reply), "type": "message", "status": status, "content": content, "role": "assistant"})
}

/// The response, with usage once it has ended.
fn response(reply: &Reply<'_>, status: &str, output: Value) -> Value {
    let ended = matches!(status, "incomplete" | "completed");
    let usage = ended.then(|| {
        json!({
            "input_tokens": reply.ask.prompt_tokens, "input_tokens_details": {"cached_tokens": reply.cached.unwrap_or(0)},
            "output_tokens": reply.tokens, "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": reply.total_tokens(),
        })
    });
    let incomplete = (status == "incomplete").then(|| json!({"reason": "max_output_tokens"}));
    json!({
        "id": format!("resp_sim_{}", reply.number), "object": "response", "created_at": reply.created(),
        "status": status, "background": false, "error": null, "incomplete_details": incomplete, "instructions": null,
        "max_output_tokens": reply.ask.max_tokens, "model": reply.ask.model, "output": output,
        "parallel_tool_calls": true, "previous_response_id": null, "store": false, "temperature": 1.0,
        "text": {"format": {"type": "text"}}, "tool_choice": "auto", "tools": [], "top_p": 1.0,
        "truncation": "disabled", "usage": usage, "user": null, "metadata": {},
    })
}
