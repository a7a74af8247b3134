//! Anthropic messages.

mod event;

use gate_model::{Delivery, Secret};
use serde_json::{Map, Value, json};
use url::Url;

pub(crate) use event::{Answer, Events};

use crate::framing::Sse;
use crate::reader::decoder;
use crate::request::{Draft, EVENT_STREAM, Route, chat_with, joined, parted, present};
use crate::{Ask, Decoder, Dialect, Keep, WireRequest, image};

const ROUTE: Route = Route { prefix: "/v1", tail: "/messages", models: "/models" };

/// The dialect. Nothing in it asks for an exact length: `OutputLength::Exact` sends what `AtMost` sends.
pub(crate) struct Anthropic;

impl Dialect for Anthropic {
    fn request(&self, base: &Url, key: Option<&Secret>, ask: &Ask<'_>) -> WireRequest {
        let mut headers = vec![("anthropic-version", Secret::new("2023-06-01"))];
        headers.extend(key.map(|key| ("x-api-key", key.clone())));
        Draft { route: &ROUTE, stream_type: EVENT_STREAM, headers, fields: fields(ask) }.finish(base, ask)
    }

    fn models_path(&self, base: &Url) -> String {
        ROUTE.models_path(base)
    }

    fn decoder(&self, delivery: Delivery, keep: Keep) -> Box<dyn Decoder> {
        decoder::<Sse>(Events::default(), Answer, delivery, keep)
    }
}

/// The body's fields. A system prompt is one of them, not a message.
pub(crate) fn fields(ask: &Ask<'_>) -> Map<String, Value> {
    let (system, rest) = parted(ask.prompt);
    present([
        ("model", ask.model.map(Value::from)),
        ("max_tokens", Some(ask.max_output_tokens.into())),
        ("system", (!system.is_empty()).then(|| joined(system).into())),
        ("messages", Some(chat_with(rest, image::anthropic_part, |text| json!({"type": "text", "text": text})))),
        ("stream", (ask.delivery == Delivery::Streamed).then_some(true.into())),
    ])
}
