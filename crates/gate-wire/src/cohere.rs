//! Cohere's chat, version 2.

mod event;

use gate_model::{Delivery, Secret};
use serde_json::{Map, Value};
use url::Url;

use crate::framing::Sse;
use crate::reader::decoder;
use crate::request::{Draft, EVENT_STREAM, Route, bearer, chat, present};
use crate::{Ask, Decoder, Dialect, Keep, WireRequest};

const ROUTE: Route<'_> = Route { prefix: "/v2", tail: "/chat", models: "/models" };

/// The dialect. Nothing in it asks for an exact length: `OutputLength::Exact` sends what `AtMost` sends.
pub(crate) struct Cohere;

impl Dialect for Cohere {
    fn request(&self, base: &Url, key: Option<&Secret>, ask: &Ask<'_>) -> WireRequest {
        let draft = Draft { route: &ROUTE, stream_type: EVENT_STREAM, headers: bearer(key), fields: fields(ask) };
        draft.finish(base, ask)
    }

    /// The list is of the first version.
    fn models_path(&self, base: &Url) -> String {
        ROUTE.models_path(base).replacen("/v2/models", "/v1/models", 1)
    }

    fn decoder(&self, delivery: Delivery, keep: Keep) -> Box<dyn Decoder> {
        decoder::<Sse>(event::Events, event::Answer, delivery, keep)
    }
}

fn fields(ask: &Ask<'_>) -> Map<String, Value> {
    present([
        ("model", ask.model.map(Value::from)),
        ("messages", Some(chat(&ask.prompt.messages))),
        ("stream", Some((ask.delivery == Delivery::Streamed).into())),
        ("max_tokens", Some(ask.max_output_tokens.into())),
    ])
}
