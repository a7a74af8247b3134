//! SGLang's own dialect.

use gate_model::Api;
use serde::Serialize;
use serde_json::{Value, json};

use super::{DONE, Dialect, Reply, event};
use crate::ask::{self, Ask, present};
use crate::http::Refusal;

/// `POST /generate`. Each event repeats the text before it, as SGLang does unless started with
/// `--incremental-streaming-output`; here a request asks for that with a field of the same name
/// (`incremental_streaming_output`).
pub(crate) struct Sglang;

impl Dialect for Sglang {
    fn api(&self) -> Api {
        Api::Sglang
    }

    fn ask(&self, body: &[u8]) -> Result<Ask, Refusal> {
        let fields = ask::fields(body)?;
        let parameters = ask::parameters(&fields, "sampling_params")?;
        let prompt_tokens = match present(&fields, "input_ids") {
            Some(Value::Array(tokens)) => u32::try_from(tokens.len()).unwrap_or(u32::MAX),
            _ => ask::text_tokens(&fields, "text")?,
        };
        Ok(Ask {
            model: ask::MODEL.to_owned(),
            stream: ask::flag(&fields, "stream")?,
            include_usage: true,
            max_tokens: ask::limit(&parameters, "max_new_tokens")?,
            prompt_tokens,
            cumulative: !ask::flag(&fields, "incremental_streaming_output")?,
            ..Ask::default()
        })
    }

    /// The event of the last token has the reason as well.
    fn content(&self, reply: &Reply<'_>, out: &mut Vec<u8>) {
        let text = if reply.ask.cumulative { &reply.text } else { reply.delta() };
        event(out, &output(reply, text, reply.last));
    }

    fn closing(&self, reply: &Reply<'_>, out: &mut Vec<u8>) {
        if reply.tokens == 0 {
            event(out, &output(reply, "", true));
        }
        out.extend(DONE);
    }

    fn body(&self, reply: &Reply<'_>) -> Value {
        output(reply, &reply.text, true)
    }

    fn refusal(&self, refusal: &Refusal) -> Value {
        json!({"error": {"message": refusal.message}})
    }

    fn failure(&self) -> Refusal {
        Refusal::new(500, "Internal server error: the scheduler stopped.")
    }

    fn rate_limit(&self) -> Refusal {
        Refusal::new(429, "The request queue is full.")
    }

    fn broken_stream(&self, _: &Reply<'_>, out: &mut Vec<u8>) {
        event(out, &self.embedded_failure());
        out.extend(DONE);
    }
}

/// What is known of an answer so far.
#[derive(Serialize)]
struct Info {
    id: String,
    finish_reason: Option<Value>,
    prompt_tokens: u32,
    weight_version: &'static str,
    completion_tokens: u32,
    cached_tokens: u32,
    /// In seconds, once it has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    e2e_latency: Option<f64>,
}

fn output(reply: &Reply<'_>, text: &str, ended: bool) -> Value {
    let reason = || match reply.tokens {
        0 => json!({"type": "stop", "matched": 2}),
        tokens => json!({"type": "length", "length": tokens}),
    };
    let info = Info {
        id: format!("sim-{}", reply.number),
        finish_reason: ended.then(reason),
        prompt_tokens: reply.ask.prompt_tokens,
        weight_version: "default",
        completion_tokens: reply.tokens,
        cached_tokens: reply.cached.unwrap_or(0),
        e2e_latency: ended.then(|| Reply::millis(reply.at) / 1_000.0),
    };
    json!({"text": text, "output_ids": [], "meta_info": info})
}
