//! Text Generation Inference's own dialect.

use gate_model::Api;
use serde_json::{Value, json};

use super::{Dialect, Reply, event};
use crate::ask::{self, Ask};
use crate::http::Refusal;

/// `POST /generate_stream` and, with `inputs`, `POST /generate`. Counts come where `parameters.details` asks for them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tgi {
    Stream,
    Whole,
}

/// What ends a text where the model does; it is generated, but no text.
const END_OF_TEXT: &str = "</s>";

impl Dialect for Tgi {
    fn api(&self) -> Api {
        Api::Tgi
    }

    fn ask(&self, body: &[u8]) -> Result<Ask, Refusal> {
        let fields = ask::fields(body)?;
        let parameters = ask::parameters(&fields, "parameters")?;
        Ok(Ask {
            model: ask::MODEL.to_owned(),
            stream: *self == Self::Stream,
            include_usage: ask::flag(&parameters, "details")?,
            max_tokens: ask::limit(&parameters, "max_new_tokens")?,
            prompt_tokens: ask::text_tokens(&fields, "inputs")?,
            ..Ask::default()
        })
    }

    /// The whole text, and the counts, stand in the event of the last token.
    fn content(&self, reply: &Reply<'_>, out: &mut Vec<u8>) {
        event(out, &token(reply, reply.delta(), reply.last));
    }

    /// An answer without text still has the token that ends it.
    fn closing(&self, reply: &Reply<'_>, out: &mut Vec<u8>) {
        if reply.tokens == 0 {
            event(out, &token(reply, END_OF_TEXT, true));
        }
    }

    fn body(&self, reply: &Reply<'_>) -> Value {
        match reply.ask.include_usage {
            true => json!({"generated_text": reply.text, "details": details(reply)}),
            false => json!({"generated_text": reply.text}),
        }
    }

    fn refusal(&self, refusal: &Refusal) -> Value {
        let kind = match refusal.status {
            429 => "overloaded",
            503 => "healthcheck",
            500.. => "incomplete_generation",
            _ => "validation",
        };
        json!({"error": refusal.message, "error_type": kind})
    }

    fn failure(&self) -> Refusal {
        Refusal::new(500, "Incomplete generation")
    }

    fn rate_limit(&self) -> Refusal {
        Refusal::new(429, "Model is overloaded")
    }

    /// After the status went out it has other words.
    fn embedded_failure(&self) -> Value {
        let error = "Request failed during generation: Server error: the engine stopped";
        json!({"error": error, "error_type": "generation"})
    }
}

fn token(reply: &Reply<'_>, text: &str, last: bool) -> Value {
    let token = json!({"id": reply.tokens, "text": text, "logprob": -0.5, "special": text == END_OF_TEXT});
    let details = (last && reply.ask.include_usage).then(|| details(reply));
    let generated = last.then_some(&reply.text);
    json!({"index": reply.tokens.max(1), "token": token, "generated_text": generated, "details": details})
}

fn details(reply: &Reply<'_>) -> Value {
    json!({
        "finish_reason": reply.reason("length", "eos_token"), "generated_tokens": reply.tokens, "seed": null,
        "input_length": reply.ask.prompt_tokens,
    })
}
