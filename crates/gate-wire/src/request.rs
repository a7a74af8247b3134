//! What requests of every dialect have in common.

use gate_model::{Delivery, Message, Role, Secret};
use serde_json::{Map, Value, json};
use url::Url;

use crate::{Ask, WireRequest};

/// The media type of server-sent events.
pub(crate) const EVENT_STREAM: &str = "text/event-stream";

/// Where a dialect's route lies.
pub(crate) struct Route {
    /// What a path that is empty gets before the route.
    pub(crate) prefix: &'static str,
    /// The route's tail.
    pub(crate) tail: &'static str,
    /// The list of models, beside it.
    pub(crate) models: &'static str,
}

impl Route {
    fn path(&self, path: &str) -> String {
        match path.trim_end_matches('/') {
            "" => format!("{}{}", self.prefix, self.tail),
            whole if whole.ends_with(self.tail) => path.to_owned(),
            parent => format!("{parent}{}", self.tail),
        }
    }

    /// The path and query of the list of models.
    pub(crate) fn models_path(&self, base: &Url) -> String {
        let route = self.path(base.path());
        let parent = route.trim_end_matches('/').strip_suffix(self.tail).unwrap_or_default();
        with_query(base, format!("{parent}{}", self.models))
    }
}

fn with_query(base: &Url, path: String) -> String {
    match base.query() {
        Some(query) => format!("{path}?{query}"),
        None => path,
    }
}

/// What a dialect writes into a request.
pub(crate) struct Draft<'a> {
    pub(crate) route: &'a Route,
    /// The media type of its streams.
    pub(crate) stream_type: &'static str,
    /// Its own headers, the key's among them.
    pub(crate) headers: Vec<(&'static str, Secret)>,
    /// The body's fields.
    pub(crate) fields: Map<String, Value>,
}

impl Draft<'_> {
    /// The request, with the headers that all have and the fields that were asked for besides.
    pub(crate) fn finish(mut self, base: &Url, ask: &Ask<'_>) -> WireRequest {
        let accept = match ask.delivery {
            Delivery::Streamed => self.stream_type,
            Delivery::Whole => "application/json",
        };
        let mut headers = vec![
            ("content-type", Secret::new("application/json")),
            ("accept", Secret::new(accept)),
            ("accept-encoding", Secret::new("identity")),
            ("user-agent", Secret::new(concat!("gate/", env!("CARGO_PKG_VERSION")))),
        ];
        headers.append(&mut self.headers);
        merge(&mut self.fields, ask.extra_body);
        WireRequest {
            path: with_query(base, self.route.path(base.path())),
            headers,
            body: Value::Object(self.fields).to_string().into_bytes(),
        }
    }
}

/// The header of a key that is sent as a bearer token.
pub(crate) fn bearer(key: Option<&Secret>) -> Vec<(&'static str, Secret)> {
    key.map(|key| ("authorization", Secret::new(format!("Bearer {}", key.expose())))).into_iter().collect()
}

/// Messages as objects with a role and a content.
pub(crate) fn chat<'a>(messages: impl IntoIterator<Item = &'a Message>) -> Value {
    let message = |message: &Message| {
        let role = match message.role {
            Role::System => "system",
            Role::User => "user",
            Role::Assistant => "assistant",
        };
        json!({"role": role, "content": message.text})
    };
    messages.into_iter().map(message).collect()
}

/// The messages' texts, joined by blank lines.
pub(crate) fn joined<'a>(messages: impl IntoIterator<Item = &'a Message>) -> String {
    messages.into_iter().map(|message| message.text.as_str()).collect::<Vec<_>>().join("\n\n")
}

/// A body's fields, in order, without the absent ones.
pub(crate) fn present<const N: usize>(fields: [(&str, Option<Value>); N]) -> Map<String, Value> {
    fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
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
