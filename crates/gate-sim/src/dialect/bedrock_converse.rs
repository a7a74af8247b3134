//! Bedrock's `converse`, and the errors of all of Bedrock.

use gate_model::Api;
use serde_json::{Value, json};

use super::{Dialect, Reply, event_stream};
use crate::ask::{self, Ask, present};
use crate::http::Refusal;

/// `POST /model/MODEL/converse-stream` and `POST /model/MODEL/converse`. Signatures are not checked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum BedrockConverse {
    Stream,
    Whole,
}

/// The content type of Bedrock's streams.
pub(super) const STREAM_TYPE: &str = "application/vnd.amazon.eventstream";

impl Dialect for BedrockConverse {
    fn api(&self) -> Api {
        Api::BedrockConverse
    }

    fn ask(&self, body: &[u8]) -> Result<Ask, Refusal> {
        let fields = ask::fields(body)?;
        let words = ask::words_of_messages(ask::list(&fields, "messages")?);
        let system = present(&fields, "system").map_or(0, ask::words);
        let config = ask::parameters(&fields, "inferenceConfig")?;
        Ok(Ask {
            stream: *self == Self::Stream,
            include_usage: true,
            max_tokens: ask::limit(&config, "maxTokens")?,
            prompt_tokens: ask::prompt_tokens(words + system),
            ..Ask::default()
        })
    }

    fn stream_type(&self) -> &'static str {
        STREAM_TYPE
    }

    fn opening(&self, _: &Reply<'_>, out: &mut Vec<u8>) {
        event(out, "messageStart", json!({"role": "assistant"}));
    }

    fn content(&self, reply: &Reply<'_>, out: &mut Vec<u8>) {
        self.opened(reply, out);
        event(out, "contentBlockDelta", json!({"contentBlockIndex": 0, "delta": {"text": reply.delta()}}));
    }

    fn closing(&self, reply: &Reply<'_>, out: &mut Vec<u8>) {
        self.opened(reply, out);
        if reply.tokens > 0 {
            event(out, "contentBlockStop", json!({"contentBlockIndex": 0}));
        }
        event(out, "messageStop", json!({"stopReason": reply.reason("max_tokens", "end_turn")}));
        event(out, "metadata", json!({"metrics": metrics(reply), "usage": usage(reply)}));
    }

    fn body(&self, reply: &Reply<'_>) -> Value {
        let content = if reply.text.is_empty() { json!([]) } else { json!([{"text": reply.text}]) };
        json!({
            "metrics": metrics(reply), "output": {"message": {"content": content, "role": "assistant"}},
            "stopReason": reply.reason("max_tokens", "end_turn"), "usage": usage(reply),
        })
    }

    fn refusal(&self, refusal: &Refusal) -> Value {
        body_of(refusal)
    }

    fn refusal_headers(&self, refusal: &Refusal) -> String {
        error_header(refusal)
    }

    fn failure(&self) -> Refusal {
        failure()
    }

    fn rate_limit(&self) -> Refusal {
        rate_limit()
    }

    fn broken_stream(&self, _: &Reply<'_>, out: &mut Vec<u8>) {
        broken_stream(out);
    }
}

fn event(out: &mut Vec<u8>, kind: &str, payload: Value) {
    event_stream::event(out, kind, payload.to_string().as_bytes());
}

fn metrics(reply: &Reply<'_>) -> Value {
    json!({"latencyMs": reply.at.0 / 1_000_000})
}

fn usage(reply: &Reply<'_>) -> Value {
    let mut usage = json!({
        "inputTokens": reply.read_tokens(), "outputTokens": reply.tokens, "totalTokens": reply.total_tokens(),
    });
    if let (Some(cached), Some(usage)) = (reply.cached, usage.as_object_mut()) {
        usage.insert("cacheReadInputTokens".to_owned(), cached.into());
    }
    usage
}

/// An error's body, whose kind stands in a header.
pub(super) fn body_of(refusal: &Refusal) -> Value {
    json!({"message": refusal.message})
}

/// The header line with an error's kind.
pub(super) fn error_header(refusal: &Refusal) -> String {
    let kind = match refusal.status {
        401 => "UnrecognizedClientException",
        404 => "ResourceNotFoundException",
        429 => "ThrottlingException",
        503 => "ServiceUnavailableException",
        500.. => "InternalServerException",
        _ => "ValidationException",
    };
    format!("x-amzn-errortype: {kind}\r\n")
}

/// The engine's own failure.
pub(super) fn failure() -> Refusal {
    Refusal::new(500, "The system encountered an unexpected error during processing. Try your request again.")
}

/// Too many requests.
pub(super) fn rate_limit() -> Refusal {
    Refusal::new(429, "Too many requests, please wait before trying again.")
}

/// The engine's own failure inside a stream.
pub(super) fn broken_stream(out: &mut Vec<u8>) {
    event_stream::exception(out, "internalServerException", body_of(&failure()).to_string().as_bytes());
}
