//! Ollama's own chat: lines of JSON.

mod line;

use gate_model::{Delivery, Secret};
use serde_json::{Map, Value, json};
use url::Url;

use crate::framing::Ndjson;
use crate::reader::StreamDecoder;
use crate::request::{Draft, Route, bearer, chat, present};
use crate::whole::WholeDecoder;
use crate::{Ask, Decoder, Dialect, WireRequest};

const ROUTE: Route = Route { prefix: "/api", tail: "/chat", models: "/tags" };

/// The dialect. `options.num_predict` bounds an answer, and nothing makes a model go on to it: `OutputLength::Exact`
/// sends what `AtMost` sends. What `/api/generate` answers is decoded too.
pub(crate) struct Ollama;

impl Dialect for Ollama {
    fn request(&self, base: &Url, key: Option<&Secret>, ask: &Ask<'_>) -> WireRequest {
        let draft =
            Draft { route: &ROUTE, stream_type: "application/x-ndjson", headers: bearer(key), fields: fields(ask) };
        draft.finish(base, ask)
    }

    fn models_path(&self, base: &Url) -> String {
        ROUTE.models_path(base)
    }

    fn decoder(&self, delivery: Delivery) -> Box<dyn Decoder> {
        match delivery {
            Delivery::Streamed => Box::new(StreamDecoder::<Ndjson, line::Lines, line::Answer>::default()),
            Delivery::Whole => Box::new(WholeDecoder::<line::Answer>::default()),
        }
    }
}

/// The body's fields. Without `stream`, Ollama streams.
fn fields(ask: &Ask<'_>) -> Map<String, Value> {
    present([
        ("model", ask.model.map(Value::from)),
        ("messages", Some(chat(&ask.prompt.messages))),
        ("stream", Some((ask.delivery == Delivery::Streamed).into())),
        ("options", Some(json!({"num_predict": ask.max_output_tokens}))),
    ])
}
