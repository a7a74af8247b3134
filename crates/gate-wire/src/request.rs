//! What requests of every dialect have in common.

use std::borrow::Cow;

use gate_model::{Delivery, Image, Message, Prompt, Role, Secret};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value, json};
use url::Url;

use crate::{Ask, WireRequest, image};

/// The media type of server-sent events.
pub(crate) const EVENT_STREAM: &str = "text/event-stream";

/// Where a dialect's route lies.
#[derive(Clone, Copy)]
pub(crate) struct Route<'a> {
    /// What a path that is empty gets before the route.
    pub(crate) prefix: &'a str,
    /// The route's tail.
    pub(crate) tail: &'a str,
    /// The list of models, beside it.
    pub(crate) models: &'a str,
}

impl Route<'_> {
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

/// What stays as it is in a path's segment: unreserved characters, and those of names such as `claude@001` or `m:7b`.
const ESCAPED: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b':').remove(b'@');

/// A name as one segment of a path, whatever is in it.
pub(crate) fn segment(name: &str) -> String {
    utf8_percent_encode(name, ESCAPED).to_string()
}

/// A path with the query of the target's URL.
pub(crate) fn with_query(base: &Url, path: String) -> String {
    match base.query() {
        Some(query) => format!("{path}?{query}"),
        None => path,
    }
}

/// What a dialect writes into a request.
pub(crate) struct Draft<'a> {
    pub(crate) route: &'a Route<'a>,
    /// The media type of its streams.
    pub(crate) stream_type: &'static str,
    /// Its own headers, the key's among them.
    pub(crate) headers: Vec<(&'static str, Secret)>,
    /// The body's fields.
    pub(crate) fields: Map<String, Value>,
}

impl Draft<'_> {
    /// The request, with the headers that all have and the fields that were asked for besides.
    pub(crate) fn finish(self, base: &Url, ask: &Ask<'_>) -> WireRequest {
        let path = with_query(base, self.route.path(base.path()));
        written(path, self.stream_type, self.headers, self.fields, ask)
    }
}

/// The request to a path, with a dialect's own headers and fields, those that all have, and those that were asked for
/// besides.
pub(crate) fn written(
    path: String,
    stream_type: &'static str,
    mut own: Vec<(&'static str, Secret)>,
    mut fields: Map<String, Value>,
    ask: &Ask<'_>,
) -> WireRequest {
    let accept = match ask.delivery {
        Delivery::Streamed => stream_type,
        Delivery::Whole => "application/json",
    };
    let mut headers = vec![
        ("content-type", Secret::new("application/json")),
        ("accept", Secret::new(accept)),
        ("accept-encoding", Secret::new("identity")),
        ("user-agent", Secret::new(concat!("gate/", env!("CARGO_PKG_VERSION")))),
    ];
    headers.append(&mut own);
    merge(&mut fields, ask.extra_body);
    WireRequest { path, headers, body: Value::Object(fields).to_string().into_bytes() }
}

/// Where a route lies whose last segment says how the answer comes.
pub(crate) struct Ends {
    /// What a path that is empty gets before it.
    pub(crate) prefix: &'static str,
    /// The last segment for a stream.
    pub(crate) streamed: &'static str,
    /// The last segment for a whole answer.
    pub(crate) whole: &'static str,
    /// The media type of its streams.
    pub(crate) stream_type: &'static str,
}

impl Ends {
    /// The request; `stem` is what stands before the last segment, where the path doesn't end in either already.
    pub(crate) fn request(
        &self,
        base: &Url,
        stem: &str,
        key: Option<&Secret>,
        fields: Map<String, Value>,
        ask: &Ask<'_>,
    ) -> WireRequest {
        let end = match ask.delivery {
            Delivery::Streamed => self.streamed,
            Delivery::Whole => self.whole,
        };
        let path = match (self.parent(base), base.path().trim_end_matches('/')) {
            (Some(parent), _) => format!("{parent}{end}"),
            (None, "") => format!("{}{stem}{end}", self.prefix),
            (None, path) => format!("{path}{stem}{end}"),
        };
        written(with_query(base, path), self.stream_type, bearer(key), fields, ask)
    }

    /// The path before the last segment, where that is one of the route's.
    fn parent<'a>(&self, base: &'a Url) -> Option<&'a str> {
        let path = base.path().trim_end_matches('/');
        path.strip_suffix(self.streamed).or_else(|| path.strip_suffix(self.whole))
    }

    /// A path beside the route: `beside` in place of its last segment, or `alone` where the path has none.
    pub(crate) fn beside(&self, base: &Url, beside: &str, alone: &str) -> String {
        let path = match (self.parent(base), base.path().trim_end_matches('/')) {
            (Some(parent), _) => format!("{parent}{beside}"),
            (None, "") => format!("{}{alone}", self.prefix),
            (None, path) => format!("{path}{alone}"),
        };
        with_query(base, path)
    }
}

/// The header of a key that is sent as a bearer token.
pub(crate) fn bearer(key: Option<&Secret>) -> Vec<(&'static str, Secret)> {
    key.map(|key| ("authorization", Secret::new(format!("Bearer {}", key.expose())))).into_iter().collect()
}

/// Messages as objects with a role and a content, as OpenAI has them: the text alone, or a list of parts where there are
/// images.
pub(crate) fn chat<'a>(messages: impl IntoIterator<Item = &'a Message>) -> Value {
    chat_with(messages, image::openai_part, |text| json!({"type": "text", "text": text}))
}

/// The same with a dialect's own parts.
pub(crate) fn chat_with<'a>(
    messages: impl IntoIterator<Item = &'a Message>,
    of_image: fn(&Image) -> Value,
    of_text: fn(&str) -> Value,
) -> Value {
    let message = |message: &Message| {
        let role = match message.role {
            Role::System => "system",
            Role::User => "user",
            Role::Assistant => "assistant",
        };
        let content = match message.images.as_slice() {
            [] => message.text.as_str().into(),
            _ => image::parts(message, of_image, of_text),
        };
        json!({"role": role, "content": content})
    };
    messages.into_iter().map(message).collect()
}

/// The system messages, and the others.
pub(crate) fn parted(prompt: &Prompt) -> (Vec<&Message>, Vec<&Message>) {
    prompt.messages.iter().partition(|message| message.role == Role::System)
}

/// The messages' texts, joined by blank lines; what has no place for an image is sent its URL after its text.
pub(crate) fn joined<'a>(messages: impl IntoIterator<Item = &'a Message>) -> String {
    let texts = |message: &'a Message| {
        let images = message.images.iter().map(|image| image::url(image).into());
        std::iter::once(Cow::Borrowed(message.text.as_str())).chain(images)
    };
    messages.into_iter().flat_map(texts).collect::<Vec<Cow<'_, str>>>().join("\n\n")
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
