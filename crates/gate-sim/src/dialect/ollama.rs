//! Ollama's own chat and generate: a line of JSON an event.

use gate_model::Api;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Dialect, Reply, line};
use crate::ask::{self, Ask, DEFAULT_MAX_TOKENS, Fields, MOST_TOKENS, present};
use crate::http::Refusal;

/// `POST /api/chat` and `POST /api/generate`. No messages or no prompt at all, which makes a real Ollama only load the
/// model, are refused.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ollama {
    Chat,
    Generate,
}

impl Dialect for Ollama {
    fn api(&self) -> Api {
        Api::Ollama
    }

    fn ask(&self, body: &[u8]) -> Result<Ask, Refusal> {
        let fields: Fields = serde_json::from_slice(body).map_err(|error| Refusal::bad_request(&error.to_string()))?;
        let stream = match present(&fields, "stream") {
            None => true,
            Some(Value::Bool(stream)) => *stream,
            Some(other) => return Err(wrong_type("stream", "bool", other)),
        };
        let words = match self {
            Self::Chat => match present(&fields, "messages") {
                Some(Value::Array(messages)) if !messages.is_empty() => ask::words_of_messages(messages),
                None | Some(Value::Array(_)) => return Err(Refusal::bad_request("messages is required")),
                Some(other) => return Err(wrong_type("messages", "[]api.Message", other)),
            },
            Self::Generate => match present(&fields, "prompt") {
                Some(prompt @ Value::String(text)) if !text.is_empty() => {
                    ask::words(prompt) + present(&fields, "system").map_or(0, ask::words)
                }
                None | Some(Value::String(_)) => return Err(Refusal::bad_request("prompt is required")),
                Some(other) => return Err(wrong_type("prompt", "string", other)),
            },
        };
        Ok(Ask {
            model: ask::model(&fields),
            stream,
            include_usage: true,
            max_tokens: max_tokens(&fields)?,
            prompt_tokens: ask::prompt_tokens(words),
            ..Ask::default()
        })
    }

    fn stream_type(&self) -> &'static str {
        "application/x-ndjson"
    }

    fn content(&self, reply: &Reply<'_>, out: &mut Vec<u8>) {
        let mut fields = self.object(reply, reply.delta());
        fields.insert("done".to_owned(), false.into());
        line(out, &fields);
    }

    fn closing(&self, reply: &Reply<'_>, out: &mut Vec<u8>) {
        line(out, &self.done(reply, ""));
    }

    fn body(&self, reply: &Reply<'_>) -> Value {
        self.done(reply, &reply.text)
    }

    fn refusal(&self, refusal: &Refusal) -> Value {
        json!({"error": refusal.message})
    }

    fn failure(&self) -> Refusal {
        let message = "model runner has unexpectedly stopped, this may be due to resource limitations or an internal \
                       error, check ollama server logs for details";
        Refusal::new(500, message)
    }

    fn rate_limit(&self) -> Refusal {
        Refusal::new(429, "too many concurrent requests")
    }

    fn broken_stream(&self, _: &Reply<'_>, out: &mut Vec<u8>) {
        line(out, &self.embedded_failure());
    }
}

impl Ollama {
    fn object(self, reply: &Reply<'_>, text: &str) -> Fields {
        let at = reply.arrived.checked_add(reply.at.to_duration()).unwrap_or(reply.arrived);
        let created_at = Timestamp::try_from(at).unwrap_or_default().to_string();
        let content = match self {
            Self::Chat => ("message", json!({"role": "assistant", "content": text})),
            Self::Generate => ("response", text.into()),
        };
        let fields = [("model", reply.ask.model.as_str().into()), ("created_at", created_at.into()), content];
        fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// The last line, or the whole answer: durations in nanoseconds, that of the prompt until the first token.
    fn done(self, reply: &Reply<'_>, text: &str) -> Value {
        let mut line = self.object(reply, text);
        // Some tokens; a client that sends them back gets what it would get without.
        let context = (self == Self::Generate).then(|| ("context", (1..=reply.total_tokens().min(8)).collect()));
        let counts = [
            ("total_duration", reply.at.0.into()),
            ("load_duration", 0.into()),
            ("prompt_eval_count", reply.ask.prompt_tokens.into()),
            ("prompt_eval_duration", reply.first_token.0.into()),
            ("eval_count", reply.tokens.into()),
            ("eval_duration", (reply.at - reply.first_token).0.into()),
        ];
        let cached = reply.cached.map(|cached| ("prompt_eval_cached_count", cached.into()));
        let ends = [("done", true.into()), ("done_reason", reply.reason("length", "stop").into())];
        let fields = ends.into_iter().chain(context).chain(counts).chain(cached);
        line.extend(fields.map(|(name, value)| (name.to_owned(), value)));
        line.into()
    }
}

/// The body of `GET /api/tags`: the one model.
pub(crate) fn tags() -> Value {
    let details = json!({"format": "gguf", "family": ask::MODEL, "parameter_size": "0B", "quantization_level": "F16"});
    let model = json!({
        "name": ask::MODEL, "model": ask::MODEL, "modified_at": Timestamp::UNIX_EPOCH.to_string(), "size": 0,
        "digest": "0".repeat(64), "details": details,
    });
    json!({"models": [model]})
}

/// `options.num_predict`; zero or less is no limit, and gets the default as no option does.
fn max_tokens(fields: &Fields) -> Result<u32, Refusal> {
    let option = match present(fields, "options") {
        None => None,
        Some(Value::Object(options)) => present(options, "num_predict"),
        Some(other) => return Err(wrong_type("options", "map[string]interface {}", other)),
    };
    let Some(value) = option else { return Ok(DEFAULT_MAX_TOKENS) };
    if value.as_i64().is_some_and(|tokens| tokens <= 0) {
        return Ok(DEFAULT_MAX_TOKENS);
    }
    let tokens =
        value.as_u64().ok_or_else(|| Refusal::bad_request("option \"num_predict\" must be of type integer"))?;
    Ok(u32::try_from(tokens).unwrap_or(u32::MAX).min(MOST_TOKENS))
}

fn wrong_type(name: &str, expected: &str, value: &Value) -> Refusal {
    let found = match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    let message = format!("json: cannot unmarshal {found} into Go struct field ChatRequest.{name} of type {expected}");
    Refusal::bad_request(&message)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(body: &str) -> Result<Ask, String> {
        Ollama::Chat.ask(body.as_bytes()).map_err(|refusal| refusal.message)
    }

    #[test]
    fn reads_what_matters_and_ignores_the_rest() {
        let body = r#"{"model":"m","messages":[{"role":"system","content":"one two"},{"role":"user","content":"3"}],
            "options":{"num_predict":7,"temperature":0},"keep_alive":"5m"}"#;
        let expected = Ask {
            model: "m".into(),
            stream: true,
            include_usage: true,
            max_tokens: 7,
            prompt_tokens: 4,
            ..Ask::default()
        };
        assert_eq!(parse(body), Ok(expected));
        for (options, tokens) in [("{}", 16), (r#"{"num_predict":-1}"#, 16), (r#"{"num_predict":9999999999}"#, 131_072)]
        {
            let ask = parse(&format!(r#"{{"messages":[{{}}],"stream":false,"options":{options}}}"#)).unwrap();
            assert_eq!((ask.stream, ask.max_tokens), (false, tokens), "{options}");
        }
    }

    #[test]
    fn refuses_in_the_words_of_the_dialect() {
        for (body, message) in [
            ("", "EOF while parsing"),
            ("{}", "messages is required"),
            (r#"{"messages":[]}"#, "messages is required"),
            (r#"{"messages":"hi"}"#, "cannot unmarshal string into Go struct field ChatRequest.messages"),
            (r#"{"messages":[{}],"stream":"no"}"#, "cannot unmarshal string into Go struct field ChatRequest.stream"),
            (r#"{"messages":[{}],"options":[]}"#, "cannot unmarshal array into Go struct field ChatRequest.options"),
            (r#"{"messages":[{}],"options":{"num_predict":"7"}}"#, "option \"num_predict\" must be of type integer"),
        ] {
            let refusal = parse(body).unwrap_err();
            assert!(refusal.contains(message), "{body}: {refusal}");
        }
    }
}
