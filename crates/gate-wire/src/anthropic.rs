//! Anthropic messages.

mod event;

use gate_model::{Delivery, Message, Role, Secret};
use serde_json::{Map, Value};
use url::Url;

use crate::framing::Sse;
use crate::reader::StreamDecoder;
use crate::request::{Draft, EVENT_STREAM, Route, chat, joined, present};
use crate::whole::WholeDecoder;
use crate::{Ask, Decoder, Dialect, WireRequest};

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

    fn decoder(&self, delivery: Delivery) -> Box<dyn Decoder> {
        match delivery {
            Delivery::Streamed => Box::new(StreamDecoder::<Sse, event::Events, event::Answer>::default()),
            Delivery::Whole => Box::new(WholeDecoder::<event::Answer>::default()),
        }
    }
}

/// The body's fields. A system prompt is one of them, not a message.
fn fields(ask: &Ask<'_>) -> Map<String, Value> {
    let (system, rest): (Vec<&Message>, Vec<_>) =
        ask.prompt.messages.iter().partition(|message| message.role == Role::System);
    present([
        ("model", ask.model.map(Value::from)),
        ("max_tokens", Some(ask.max_output_tokens.into())),
        ("system", (!system.is_empty()).then(|| joined(system).into())),
        ("messages", Some(chat(rest))),
        ("stream", (ask.delivery == Delivery::Streamed).then_some(true.into())),
    ])
}
