//! llama.cpp's own `completion`.

use gate_model::{Delivery, OutputLength, Secret, Usage};
use serde_json::{Map, Value};
use url::Url;

use crate::framing::Sse;
use crate::message::is_set;
use crate::piece::{Piece, Reported};
use crate::progress::{Means, Progress};
use crate::reader::{Schema, decoder};
use crate::request::{Draft, EVENT_STREAM, Route, bearer, joined, present};
use crate::shape::{Count, Found, Name};
use crate::{Ask, Decoder, Dialect, Keep, WireRequest};

const ROUTE: Route = Route { prefix: "", tail: "/completion", models: "/v1/models" };

/// The dialect. The prompt is the messages' texts, joined by blank lines.
pub(crate) struct Llamacpp;

impl Dialect for Llamacpp {
    fn request(&self, base: &Url, key: Option<&Secret>, ask: &Ask<'_>) -> WireRequest {
        let draft = Draft { route: &ROUTE, stream_type: EVENT_STREAM, headers: bearer(key), fields: fields(ask) };
        draft.finish(base, ask)
    }

    fn models_path(&self, base: &Url) -> String {
        ROUTE.models_path(base)
    }

    fn decoder(&self, delivery: Delivery, keep: Keep) -> Box<dyn Decoder> {
        decoder::<Sse>(Events, Events, delivery, keep)
    }
}

fn fields(ask: &Ask<'_>) -> Map<String, Value> {
    present([
        ("model", ask.model.map(Value::from)),
        ("prompt", Some(joined(&ask.prompt.messages).into())),
        ("n_predict", Some(ask.max_output_tokens.into())),
        ("stream", Some((ask.delivery == Delivery::Streamed).into())),
        ("ignore_eos", (ask.output == OutputLength::Exact).then_some(true.into())),
    ])
}

/// Reads the events of a stream, or a whole answer: an event that has all of the text, and the end.
#[derive(Clone)]
struct Events;

impl Schema for Events {
    type Event<'a, P: Piece> = Event<'a, P>;

    fn take<P: Piece>(&mut self, event: Event<'_, P>, progress: &mut Progress<P>) -> Option<Means> {
        if event.error.as_ref().is_some_and(is_set) {
            return Some(Means::Error);
        }
        if event.content.is_none() && event.stop.is_none() {
            return None;
        }
        progress.model(&event.model);
        progress.say(0, Found { text: event.content.unwrap_or_default(), ..Found::default() });
        let usage = Usage {
            input: event.tokens_evaluated.value.0,
            output: event.tokens_predicted.value.0,
            cached: event.timings.value.and_then(|timings| timings.cache_n.0),
            reasoning: None,
        };
        progress.usage_fields(
            (usage != Usage::default()).then_some(usage),
            [
                ("tokens_predicted", event.tokens_predicted.raw),
                ("tokens_evaluated", event.tokens_evaluated.raw),
                ("timings", event.timings.raw),
            ],
        );
        if event.stop != Some(true) {
            return Some(Means::More);
        }
        progress.finish(event.stop_type);
        Some(Means::End("stop:true"))
    }
}

/// One event of a stream, or one whole answer.
#[derive(Default, serde::Deserialize)]
#[serde(default, bound(deserialize = "P: Piece"))]
struct Event<'a, P: Piece> {
    content: Option<P>,
    stop: Option<bool>,
    stop_type: Option<String>,
    #[serde(borrow)]
    model: Name<'a>,
    tokens_predicted: Reported<P, Count>,
    tokens_evaluated: Reported<P, Count>,
    timings: Reported<P, Option<Timings>>,
    error: Option<Value>,
}

#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct Timings {
    cache_n: Count,
}
