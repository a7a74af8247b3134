//! Cohere's chat, version 2.

use gate_model::Api;
use serde_json::{Value, json};

use super::{DONE, Dialect, Reply, named_event};
use crate::ask::{self, Ask};
use crate::http::Refusal;

/// `POST /v2/chat`.
pub(crate) struct Cohere;

impl Dialect for Cohere {
    fn api(&self) -> Api {
        Api::Cohere
    }

    fn ask(&self, body: &[u8]) -> Result<Ask, Refusal> {
        let fields = ask::fields(body)?;
        let words = ask::words_of_messages(ask::list(&fields, "messages")?);
        Ok(Ask {
            model: ask::model(&fields),
            stream: ask::flag(&fields, "stream")?,
            include_usage: true,
            max_tokens: ask::limit(&fields, "max_tokens")?,
            prompt_tokens: ask::prompt_tokens(words),
            ..Ask::default()
        })
    }

    /// The message and its one content.
    fn opening(&self, reply: &Reply<'_>, out: &mut Vec<u8>) {
        let message = json!({"role": "assistant", "content": [], "tool_plan": "", "tool_calls": [], "citations": []});
        let start = json!({"id": id(reply), "type": "message-start", "delta": {"message": message}});
        let content = json!({"type": "text", "text": ""});
        event(out, &start);
        event(out, &json!({"type": "content-start", "index": 0, "delta": {"message": {"content": content}}}));
    }

    fn content(&self, reply: &Reply<'_>, out: &mut Vec<u8>) {
        self.opened(reply, out);
        let content = json!({"text": reply.delta()});
        event(out, &json!({"type": "content-delta", "index": 0, "delta": {"message": {"content": content}}}));
    }

    fn closing(&self, reply: &Reply<'_>, out: &mut Vec<u8>) {
        self.opened(reply, out);
        let delta = json!({"finish_reason": reply.reason("MAX_TOKENS", "COMPLETE"), "usage": usage(reply)});
        event(out, &json!({"type": "content-end", "index": 0}));
        event(out, &json!({"type": "message-end", "delta": delta}));
        out.extend(DONE);
    }

    fn body(&self, reply: &Reply<'_>) -> Value {
        let content = if reply.text.is_empty() { json!([]) } else { json!([{"type": "text", "text": reply.text}]) };
        json!({
            "id": id(reply), "message": {"role": "assistant", "content": content},
            "finish_reason": reply.reason("MAX_TOKENS", "COMPLETE"), "usage": usage(reply),
        })
    }

    fn refusal(&self, refusal: &Refusal) -> Value {
        json!({"id": "00000000-0000-4000-8000-000000000000", "message": refusal.message})
    }

    fn failure(&self) -> Refusal {
        Refusal::new(500, "internal server error, this has been reported to our developers")
    }

    fn rate_limit(&self) -> Refusal {
        Refusal::new(429, "You have reached your rate limit. Please wait and try again later.")
    }

    /// A message's end whose reason is the error.
    fn broken_stream(&self, reply: &Reply<'_>, out: &mut Vec<u8>) {
        let error = self.failure().message;
        let delta = json!({"error": error, "finish_reason": "ERROR", "usage": usage(reply)});
        event(out, &json!({"type": "message-end", "delta": delta}));
        out.extend(DONE);
    }
}

/// An event under the name of its type.
fn event(out: &mut Vec<u8>, data: &Value) {
    named_event(out, data.get("type").and_then(Value::as_str).unwrap_or_default(), data);
}

fn id(reply: &Reply<'_>) -> String {
    format!("00000000-0000-4000-8000-{:012x}", reply.number)
}

fn usage(reply: &Reply<'_>) -> Value {
    let tokens = json!({"input_tokens": reply.ask.prompt_tokens, "output_tokens": reply.tokens});
    json!({"billed_units": tokens, "tokens": tokens, "cached_tokens": reply.cached.unwrap_or(0)})
}
