//! OpenAI chat completions, with the variants of the servers that speak it.

mod chunk;
mod decoder;

use gate_model::{Role, Secret};
use serde_json::{Map, Value, json};
use url::Url;

use crate::{Ask, Decoder, Dialect, WireRequest};

/// What a path that is empty gets before the route.
const PREFIX: &str = "/v1";
/// The route's tail.
const ROUTE: &str = "/chat/completions";

/// The dialect.
pub(crate) struct OpenaiChat;

impl Dialect for OpenaiChat {
    fn request(&self, base: &Url, key: Option<&Secret>, ask: &Ask<'_>) -> WireRequest {
        let mut headers = vec![
            ("content-type", Secret::new("application/json")),
            ("accept", Secret::new("text/event-stream")),
            ("accept-encoding", Secret::new("identity")),
            ("user-agent", Secret::new(concat!("gate/", env!("CARGO_PKG_VERSION")))),
        ];
        headers.extend(key.map(|key| ("authorization", Secret::new(format!("Bearer {}", key.expose())))));
        WireRequest { path: with_query(base, route(base.path())), headers, body: body(ask) }
    }

    fn models_path(&self, base: &Url) -> String {
        let route = route(base.path());
        let parent = route.trim_end_matches('/').strip_suffix(ROUTE).unwrap_or_default();
        with_query(base, format!("{parent}/models"))
    }

    fn decoder(&self) -> Box<dyn Decoder> {
        Box::new(decoder::ChatDecoder::default())
    }
}

fn route(path: &str) -> String {
    match path.trim_end_matches('/') {
        "" => format!("{PREFIX}{ROUTE}"),
        whole if whole.ends_with(ROUTE) => path.to_owned(),
        parent => format!("{parent}{ROUTE}"),
    }
}

fn with_query(base: &Url, path: String) -> String {
    match base.query() {
        Some(query) => format!("{path}?{query}"),
        None => path,
    }
}

fn body(ask: &Ask<'_>) -> Vec<u8> {
    let messages = ask.prompt.messages.iter().map(|message| {
        let role = match message.role {
            Role::System => "system",
            Role::User => "user",
            Role::Assistant => "assistant",
        };
        json!({"role": role, "content": message.text})
    });
    let mut fields = Map::new();
    fields.extend(ask.model.map(|model| ("model".to_owned(), Value::from(model))));
    fields.insert("messages".to_owned(), messages.collect());
    fields.insert("stream".to_owned(), Value::Bool(true));
    fields.insert("stream_options".to_owned(), json!({"include_usage": true}));
    fields.insert("max_tokens".to_owned(), ask.max_output_tokens.into());
    merge(&mut fields, ask.extra_body);
    Value::Object(fields).to_string().into_bytes()
}

/// Merges `top` into `fields`; where both have an object, field by field, else `top` wins.
fn merge(fields: &mut Map<String, Value>, top: &Map<String, Value>) {
    for (key, value) in top {
        match (fields.get_mut(key), value) {
            (Some(Value::Object(fields)), Value::Object(top)) => merge(fields, top),
            _ => {
                fields.insert(key.clone(), value.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use gate_model::{Message, Prompt};

    use super::*;

    fn request(url: &str, extra_body: Value) -> WireRequest {
        let messages = vec![
            Message { role: Role::System, text: "be brief".into() },
            Message { role: Role::User, text: "hi".into() },
        ];
        let Value::Object(extra_body) = extra_body else { panic!("an object") };
        let prompt = Prompt { messages };
        let ask = Ask { model: Some("m"), prompt: &prompt, max_output_tokens: 20, extra_body: &extra_body };
        OpenaiChat.request(&Url::parse(url).unwrap(), Some(&Secret::new("sk-1")), &ask)
    }

    #[test]
    fn the_route_is_joined() {
        for (url, path, models) in [
            ("http://h", "/v1/chat/completions", "/v1/models"),
            ("http://h/", "/v1/chat/completions", "/v1/models"),
            ("http://h/v1", "/v1/chat/completions", "/v1/models"),
            ("http://h/v1/", "/v1/chat/completions", "/v1/models"),
            ("http://h/api/paas/v4", "/api/paas/v4/chat/completions", "/api/paas/v4/models"),
            ("http://h/v1/chat/completions", "/v1/chat/completions", "/v1/models"),
            ("http://h/chat/completions", "/chat/completions", "/models"),
            ("http://h/d/gpt?api-version=1", "/d/gpt/chat/completions?api-version=1", "/d/gpt/models?api-version=1"),
        ] {
            assert_eq!(request(url, json!({})).path, path, "{url}");
            assert_eq!(OpenaiChat.models_path(&Url::parse(url).unwrap()), models, "{url}");
        }
    }

    #[test]
    fn the_body_asks_for_a_stream_with_usage() {
        let body = String::from_utf8(request("http://h", json!({})).body).unwrap();
        assert_eq!(
            body,
            r#"{"model":"m","messages":[{"role":"system","content":"be brief"},{"role":"user","content":"hi"}],"#
                .to_owned()
                + r#""stream":true,"stream_options":{"include_usage":true},"max_tokens":20}"#
        );
    }

    #[test]
    fn extra_fields_win() {
        let extra = json!({"stream_options": {"continuous_usage_stats": true}, "max_tokens": 5, "x": {"y": [1]}});
        let body: Value = serde_json::from_slice(&request("http://h", extra).body).unwrap();
        assert_eq!(body["stream_options"], json!({"include_usage": true, "continuous_usage_stats": true}));
        assert_eq!((&body["max_tokens"], &body["x"]), (&json!(5), &json!({"y": [1]})));
    }

    #[test]
    fn the_key_is_a_bearer_token_in_custody() {
        let request = request("http://h", json!({}));
        let header = |wanted| request.headers.iter().find(|(name, _)| *name == wanted).map(|(_, value)| value.expose());
        assert_eq!(header("authorization"), Some("Bearer sk-1"));
        assert_eq!(header("accept-encoding"), Some("identity"));
        assert!(!format!("{request:?}").contains("sk-1"));
    }
}
