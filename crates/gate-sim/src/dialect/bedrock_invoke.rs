//! Bedrock's `invoke`, with Anthropic's messages inside.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gate_model::Api;
use serde_json::{Value, json};

use super::bedrock_converse::{self as bedrock, STREAM_TYPE};
use super::{Dialect, Reply, anthropic, event_stream};
use crate::ask::Ask;
use crate::http::Refusal;

/// `POST /model/MODEL/invoke-with-response-stream` and `POST /model/MODEL/invoke`. Signatures are not checked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum BedrockInvoke {
    Stream,
    Whole,
}

impl Dialect for BedrockInvoke {
    fn api(&self) -> Api {
        Api::BedrockInvoke
    }

    /// The path decides on the stream.
    fn ask(&self, body: &[u8]) -> Result<Ask, Refusal> {
        Ok(Ask { stream: *self == Self::Stream, ..anthropic::Anthropic.ask(body)? })
    }

    fn stream_type(&self) -> &'static str {
        STREAM_TYPE
    }

    fn opening(&self, reply: &Reply<'_>, out: &mut Vec<u8>) {
        anthropic::opening(reply).iter().for_each(|data| chunk(out, data));
    }

    fn content(&self, reply: &Reply<'_>, out: &mut Vec<u8>) {
        self.opened(reply, out);
        chunk(out, &anthropic::delta(reply));
    }

    /// Anthropic's end, with Bedrock's own count in its last event.
    fn closing(&self, reply: &Reply<'_>, out: &mut Vec<u8>) {
        self.opened(reply, out);
        let mut events = anthropic::closing(reply);
        if let Some(Value::Object(last)) = events.last_mut() {
            let millis = |duration: gate_model::Nanos| duration.0 / 1_000_000;
            let metrics = json!({
                "inputTokenCount": reply.ask.prompt_tokens, "outputTokenCount": reply.tokens,
                "invocationLatency": millis(reply.at), "firstByteLatency": millis(reply.first_token),
            });
            last.insert("amazon-bedrock-invocationMetrics".to_owned(), metrics);
        }
        events.iter().for_each(|data| chunk(out, data));
    }

    fn body(&self, reply: &Reply<'_>) -> Value {
        anthropic::body(reply)
    }

    fn refusal(&self, refusal: &Refusal) -> Value {
        bedrock::body_of(refusal)
    }

    fn refusal_headers(&self, refusal: &Refusal) -> String {
        bedrock::error_header(refusal)
    }

    fn failure(&self) -> Refusal {
        bedrock::failure()
    }

    fn rate_limit(&self) -> Refusal {
        bedrock::rate_limit()
    }

    fn broken_stream(&self, _: &Reply<'_>, out: &mut Vec<u8>) {
        bedrock::broken_stream(out);
    }
}

fn chunk(out: &mut Vec<u8>, data: &Value) {
    let payload = json!({"bytes": STANDARD.encode(data.to_string())});
    event_stream::event(out, "chunk", payload.to_string().as_bytes());
}
