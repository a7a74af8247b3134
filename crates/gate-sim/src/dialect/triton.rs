//! Triton's generate extension.

use gate_model::Api;
use serde_json::{Value, json};

use super::{Dialect, Reply, event};
use crate::ask::{self, Ask};
use crate::http::Refusal;

/// `POST /v2/models/MODEL/generate_stream` and `POST /v2/models/MODEL/generate`. It gives neither usage nor a reason,
/// and its stream has no end mark but an event without text.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Triton {
    Stream,
    Whole,
}

impl Dialect for Triton {
    fn api(&self) -> Api {
        Api::Triton
    }

    fn ask(&self, body: &[u8]) -> Result<Ask, Refusal> {
        let fields = ask::fields(body)?;
        Ok(Ask {
            stream: *self == Self::Stream,
            max_tokens: ask::limit(&fields, "max_tokens")?,
            prompt_tokens: ask::text_tokens(&fields, "text_input")?,
            ..Ask::default()
        })
    }

    fn content(&self, reply: &Reply<'_>, out: &mut Vec<u8>) {
        event(out, &output(reply, reply.delta()));
    }

    fn closing(&self, reply: &Reply<'_>, out: &mut Vec<u8>) {
        event(out, &output(reply, ""));
    }

    fn body(&self, reply: &Reply<'_>) -> Value {
        output(reply, &reply.text)
    }

    fn refusal(&self, refusal: &Refusal) -> Value {
        json!({"error": refusal.message})
    }

    fn failure(&self) -> Refusal {
        Refusal::new(500, "Internal server error: failed to infer")
    }

    fn rate_limit(&self) -> Refusal {
        Refusal::new(429, "Exceeds maximum queue size")
    }
}

fn output(reply: &Reply<'_>, text: &str) -> Value {
    json!({
        "model_name": reply.ask.model, "model_version": "1", "sequence_end": false, "sequence_id": 0,
        "sequence_start": false, "text_output": text,
    })
}
