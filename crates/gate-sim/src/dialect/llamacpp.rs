//! llama.cpp's own dialect.

use gate_model::{Api, Nanos};
use serde_json::{Value, json};

use super::{Dialect, Reply, event};
use crate::ask::{self, Ask, DEFAULT_MAX_TOKENS, Fields, MOST_TOKENS, present};
use crate::http::Refusal;

/// `POST /completion`.
pub(crate) struct Llamacpp;

impl Dialect for Llamacpp {
    fn api(&self) -> Api {
        Api::Llamacpp
    }

    fn ask(&self, body: &[u8]) -> Result<Ask, Refusal> {
        let fields = ask::fields(body)?;
        Ok(Ask {
            model: ask::model(&fields),
            stream: ask::flag(&fields, "stream")?,
            include_usage: true,
            max_tokens: max_tokens(&fields)?,
            prompt_tokens: ask::text_tokens(&fields, "prompt")?,
            ..Ask::default()
        })
    }

    fn content(&self, reply: &Reply<'_>, out: &mut Vec<u8>) {
        let data = json!({
            "index": 0, "content": reply.delta(), "tokens": [], "stop": false, "id_slot": -1,
            "tokens_predicted": reply.tokens, "tokens_evaluated": reply.ask.prompt_tokens,
        });
        event(out, &data);
    }

    fn closing(&self, reply: &Reply<'_>, out: &mut Vec<u8>) {
        event(out, &last(reply, ""));
    }

    fn body(&self, reply: &Reply<'_>) -> Value {
        last(reply, &reply.text)
    }

    fn refusal(&self, refusal: &Refusal) -> Value {
        let kind = match refusal.status {
            404 => "not_found_error",
            429 | 503 => "unavailable_error",
            500.. => "server_error",
            _ => "invalid_request_error",
        };
        json!({"error": {"code": refusal.status, "message": refusal.message, "type": kind}})
    }

    fn failure(&self) -> Refusal {
        Refusal::new(500, "Compute error.")
    }

    fn rate_limit(&self) -> Refusal {
        Refusal::new(429, "All slots are busy.")
    }
}

/// The last event, or the whole answer.
fn last(reply: &Reply<'_>, text: &str) -> Value {
    let (prompt, predicted) = (reply.ask.prompt_tokens, reply.tokens);
    json!({
        "index": 0, "content": text, "tokens": [], "id_slot": 0, "stop": true, "model": reply.ask.model,
        "tokens_predicted": predicted, "tokens_evaluated": prompt, "has_new_line": false, "truncated": false,
        "stop_type": reply.reason("limit", "eos"), "stopping_word": "",
        "tokens_cached": reply.total_tokens().saturating_sub(1), "timings": timings(reply),
    })
}

fn timings(reply: &Reply<'_>) -> Value {
    let (prompt, predicted) = (reply.ask.prompt_tokens, reply.tokens);
    let (prompt_time, predicted_time) = (reply.first_token, reply.at - reply.first_token);
    json!({
        "cache_n": reply.cached.unwrap_or(0),
        "prompt_n": prompt, "prompt_ms": Reply::millis(prompt_time),
        "prompt_per_token_ms": per(prompt_time, prompt), "prompt_per_second": rate(prompt, prompt_time),
        "predicted_n": predicted, "predicted_ms": Reply::millis(predicted_time),
        "predicted_per_token_ms": per(predicted_time, predicted), "predicted_per_second": rate(predicted, predicted_time),
    })
}

/// Milliseconds a token; null where there is none.
fn per(time: Nanos, tokens: u32) -> Option<f64> {
    (tokens > 0).then(|| Reply::millis(time) / f64::from(tokens))
}

/// Tokens a second; null where no time has passed.
fn rate(tokens: u32, time: Nanos) -> Option<f64> {
    (time > Nanos::ZERO).then(|| f64::from(tokens) * 1_000.0 / Reply::millis(time))
}

/// `n_predict`; less than zero is no limit, and gets the default as no option does.
fn max_tokens(fields: &Fields) -> Result<u32, Refusal> {
    match present(fields, "n_predict").map(Value::as_i64) {
        Some(Some(..0)) => Ok(DEFAULT_MAX_TOKENS),
        Some(Some(tokens)) => Ok(u32::try_from(tokens).unwrap_or(u32::MAX).clamp(1, MOST_TOKENS)),
        None | Some(None) => ask::limit(fields, "n_predict"),
    }
}
