//! Anthropic messages.

use gate_model::Api;
use serde_json::{Value, json};

use super::{Dialect, Reply, named_event};
use crate::ask::{self, Ask, Fields, MOST_TOKENS, present};
use crate::http::Refusal;

/// `POST /v1/messages`. It asks for neither key nor version.
pub(crate) struct Anthropic;

impl Dialect for Anthropic {
    fn api(&self) -> Api {
        Api::Anthropic
    }

    fn ask(&self, body: &[u8]) -> Result<Ask, Refusal> {
        let fields: Fields = serde_json::from_slice(body)
            .map_err(|error| Refusal::bad_request(&format!("The request body is not valid JSON: {error}")))?;
        let stream = match present(&fields, "stream") {
            None => false,
            Some(Value::Bool(stream)) => *stream,
            Some(_) => return Err(Refusal::bad_request("stream: Input should be a valid boolean")),
        };
        let model = ask::model(&fields);
        let max_tokens = max_tokens(&fields, &model)?;
        let words = match present(&fields, "messages") {
            None => return Err(Refusal::bad_request("messages: Field required")),
            Some(Value::Array(messages)) if messages.is_empty() => {
                return Err(Refusal::bad_request("messages: at least one message is required"));
            }
            Some(Value::Array(messages)) => ask::words_of_messages(messages),
            Some(_) => return Err(Refusal::bad_request("messages: Input should be a valid list")),
        };
        let system = present(&fields, "system").map_or(0, ask::words);
        let prompt_tokens = ask::prompt_tokens(words + system);
        Ok(Ask { model, stream, include_usage: true, max_tokens, prompt_tokens, ..Ask::default() })
    }

    /// The message, its one block of text, and a ping, as Anthropic sends them together.
    fn opening(&self, reply: &Reply<'_>, out: &mut Vec<u8>) {
        opening(reply).iter().for_each(|data| event(out, data));
        event(out, &json!({"type": "ping"}));
    }

    fn content(&self, reply: &Reply<'_>, out: &mut Vec<u8>) {
        self.opened(reply, out);
        event(out, &delta(reply));
    }

    fn closing(&self, reply: &Reply<'_>, out: &mut Vec<u8>) {
        self.opened(reply, out);
        closing(reply).iter().for_each(|data| event(out, data));
    }

    fn body(&self, reply: &Reply<'_>) -> Value {
        body(reply)
    }

    fn refusal(&self, refusal: &Refusal) -> Value {
        let kind = match refusal.status {
            401 => "authentication_error",
            404 => "not_found_error",
            413 => "request_too_large",
            429 => "rate_limit_error",
            503 => "overloaded_error",
            500.. => "api_error",
            _ => "invalid_request_error",
        };
        json!({"type": "error", "error": {"type": kind, "message": refusal.message}})
    }

    fn failure(&self) -> Refusal {
        Refusal::new(500, "Internal server error")
    }

    fn rate_limit(&self) -> Refusal {
        Refusal::new(429, "Number of requests has exceeded your per-minute rate limit.")
    }

    fn broken_stream(&self, _: &Reply<'_>, out: &mut Vec<u8>) {
        event(out, &self.embedded_failure());
    }
}

/// The message and its one block of text. As at Anthropic's, the count of output tokens is 1 by then.
pub(super) fn opening(reply: &Reply<'_>) -> [Value; 2] {
    let mut message = message(reply, json!([]), None);
    message.insert("usage".to_owned(), json!({"input_tokens": reply.ask.prompt_tokens, "output_tokens": 1}));
    let block = json!({"type": "text", "text": ""});
    [
        json!({"type": "message_start", "message": message}),
        json!({"type": "content_block_start", "index": 0, "content_block": block}),
    ]
}

/// The text that is new.
pub(super) fn delta(reply: &Reply<'_>) -> Value {
    let delta = json!({"type": "text_delta", "text": reply.delta()});
    json!({"type": "content_block_delta", "index": 0, "delta": delta})
}

/// The ends of the block and of the message.
pub(super) fn closing(reply: &Reply<'_>) -> [Value; 3] {
    let delta = json!({"stop_reason": reason(reply), "stop_sequence": null});
    // The message may have begun before its prompt was looked up.
    let final_usage = match reply.cached {
        None => json!({"output_tokens": reply.tokens}),
        Some(_) => usage(reply),
    };
    [
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": delta, "usage": final_usage}),
        json!({"type": "message_stop"}),
    ]
}

/// The whole answer.
pub(super) fn body(reply: &Reply<'_>) -> Value {
    let content = if reply.text.is_empty() { json!([]) } else { json!([{"type": "text", "text": reply.text}]) };
    let mut message = message(reply, content, Some(reason(reply)));
    message.insert("usage".to_owned(), usage(reply));
    message.into()
}

/// The tokens of an answer that has ended; cached ones stand beside the input.
fn usage(reply: &Reply<'_>) -> Value {
    match reply.cached {
        None => json!({"input_tokens": reply.ask.prompt_tokens, "output_tokens": reply.tokens}),
        Some(cached) => json!({
            "input_tokens": reply.read_tokens(), "cache_read_input_tokens": cached, "output_tokens": reply.tokens,
        }),
    }
}

fn reason(reply: &Reply<'_>) -> &'static str {
    reply.reason("max_tokens", "end_turn")
}

/// A server-sent event, named by its type.
fn event(out: &mut Vec<u8>, data: &Value) {
    named_event(out, data.get("type").and_then(Value::as_str).unwrap_or_default(), data);
}

/// A message without its usage.
fn message(reply: &Reply<'_>, content: Value, reason: Option<&str>) -> Fields {
    let fields = [
        ("id", format!("msg_sim_{}", reply.number).into()),
        ("type", "message".into()),
        ("role", "assistant".into()),
        ("model", reply.ask.model.as_str().into()),
        ("content", content),
        ("stop_reason", reason.into()),
        ("stop_sequence", Value::Null),
    ];
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

fn max_tokens(fields: &Fields, model: &str) -> Result<u32, Refusal> {
    let refused = |message: &str| Err(Refusal::bad_request(message));
    let Some(value) = present(fields, "max_tokens") else { return refused("max_tokens: Field required") };
    match value.as_u64() {
        Some(tokens @ 1..) => match u32::try_from(tokens) {
            Ok(tokens) if tokens <= MOST_TOKENS => Ok(tokens),
            _ => refused(&format!(
                "max_tokens: {tokens} > {MOST_TOKENS}, which is the maximum allowed number of output tokens for {model}"
            )),
        },
        Some(0) => refused("max_tokens: Input should be greater than or equal to 1"),
        None if value.is_i64() => refused("max_tokens: Input should be greater than or equal to 1"),
        None => refused("max_tokens: Input should be a valid integer"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(body: &str) -> Result<Ask, String> {
        Anthropic.ask(body.as_bytes()).map_err(|refusal| refusal.message)
    }

    #[test]
    fn reads_what_matters_and_ignores_the_rest() {
        let body = r#"{"model":"m","max_tokens":7,"stream":true,"system":[{"type":"text","text":"one two"}],
            "messages":[{"role":"user","content":"three"},{"role":"user","content":[{"type":"text","text":"4 5"}]}]}"#;
        let expected = Ask {
            model: "m".into(),
            stream: true,
            include_usage: true,
            max_tokens: 7,
            prompt_tokens: 7,
            ..Ask::default()
        };
        assert_eq!(parse(body), Ok(expected));
        let plain = parse(r#"{"max_tokens":131072,"messages":[{}],"system":"one two three"}"#).unwrap();
        assert_eq!((plain.stream, plain.max_tokens, plain.prompt_tokens), (false, 131_072, 4));
    }

    #[test]
    fn refuses_in_the_words_of_the_dialect() {
        for (body, message) in [
            ("", "The request body is not valid JSON"),
            ("[]", "The request body is not valid JSON"),
            (r#"{"messages":[{}]}"#, "max_tokens: Field required"),
            (r#"{"max_tokens":0}"#, "max_tokens: Input should be greater than or equal to 1"),
            (r#"{"max_tokens":-1}"#, "max_tokens: Input should be greater than or equal to 1"),
            (r#"{"max_tokens":"1"}"#, "max_tokens: Input should be a valid integer"),
            (r#"{"max_tokens":1.5}"#, "max_tokens: Input should be a valid integer"),
            (r#"{"max_tokens":131073,"model":"m"}"#, "max_tokens: 131073 > 131072, which is the maximum"),
            (r#"{"max_tokens":1}"#, "messages: Field required"),
            (r#"{"max_tokens":1,"messages":[]}"#, "messages: at least one message is required"),
            (r#"{"max_tokens":1,"messages":"hi"}"#, "messages: Input should be a valid list"),
            (r#"{"max_tokens":1,"messages":[{}],"stream":1}"#, "stream: Input should be a valid boolean"),
        ] {
            let refusal = parse(body).unwrap_err();
            assert!(refusal.contains(message), "{body}: {refusal}");
        }
    }
}
