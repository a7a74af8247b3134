//! Ollama's own chat, and its generate: lines of JSON.

mod line;

use gate_model::{Delivery, Secret};
use serde_json::{Map, Value, json};
use url::Url;

pub(crate) use line::{Answer, Lines};

use crate::framing::Ndjson;
use crate::reader::decoder;
use crate::request::{Draft, Route, bearer, chat, joined, parted, present};
use crate::{Ask, Decoder, Dialect, Keep, WireRequest};

const CHAT: Route<'static> = Route { prefix: "/api", tail: "/chat", models: "/tags" };
const GENERATE: Route<'static> = Route { tail: "/generate", ..CHAT };

/// The dialect. `options.num_predict` bounds an answer, and nothing makes a model go on to it: `OutputLength::Exact`
/// sends what `AtMost` sends. A URL that ends in `/generate` is sent a prompt instead of messages.
pub(crate) struct Ollama;

impl Dialect for Ollama {
    fn request(&self, base: &Url, key: Option<&Secret>, ask: &Ask<'_>) -> WireRequest {
        let route = route(base);
        let fields = fields(route, ask);
        Draft { route, stream_type: "application/x-ndjson", headers: bearer(key), fields }.finish(base, ask)
    }

    fn models_path(&self, base: &Url) -> String {
        route(base).models_path(base)
    }

    fn decoder(&self, delivery: Delivery, keep: Keep) -> Box<dyn Decoder> {
        decoder::<Ndjson>(Lines, Answer, delivery, keep)
    }
}

/// The route that a URL means.
fn route(base: &Url) -> &'static Route<'static> {
    match base.path().trim_end_matches('/').ends_with(GENERATE.tail) {
        true => &GENERATE,
        false => &CHAT,
    }
}

/// The body's fields. Without `stream`, Ollama streams.
fn fields(route: &Route<'_>, ask: &Ask<'_>) -> Map<String, Value> {
    let is_chat = route.tail == CHAT.tail;
    let (system, rest) = parted(ask.prompt);
    present([
        ("model", ask.model.map(Value::from)),
        ("messages", is_chat.then(|| chat(&ask.prompt.messages))),
        ("system", (!is_chat && !system.is_empty()).then(|| joined(system).into())),
        ("prompt", (!is_chat).then(|| joined(rest).into())),
        ("stream", Some((ask.delivery == Delivery::Streamed).into())),
        ("options", Some(json!({"num_predict": ask.max_output_tokens}))),
    ])
}
