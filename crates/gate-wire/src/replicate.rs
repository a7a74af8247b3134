//! Replicate's streams, whose events are plain text.

use gate_model::{Delivery, Secret};
use serde::de::IgnoredAny;
use serde_json::{Map, Value, json};
use url::Url;

use crate::framing::Sse;
use crate::piece::Piece;
use crate::progress::{Means, Progress};
use crate::reader::{Schema, decoder};
use crate::request::{Draft, EVENT_STREAM, Route, bearer, joined, present};
use crate::shape::Found;
use crate::{Ask, Decoder, Dialect, Keep, WireRequest};

const ROUTE: Route = Route { prefix: "/v1", tail: "/predictions", models: "/models" };

/// The dialect. No spec can name it: what the request is answered with is only the address of a stream. It exists to
/// decode streams that were saved.
pub(crate) struct Replicate;

impl Dialect for Replicate {
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
        ("version", ask.model.map(Value::from)),
        ("input", Some(json!({"prompt": joined(&ask.prompt.messages), "max_tokens": ask.max_output_tokens}))),
        ("stream", (ask.delivery == Delivery::Streamed).then_some(true.into())),
    ])
}

/// Reads the events of a stream.
#[derive(Clone)]
struct Events;

/// What ends a stream; `reason` is absent where all went well.
#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct Done {
    reason: Option<String>,
}

impl Schema for Events {
    type Event<'a, P: Piece> = IgnoredAny;

    const PLAIN: bool = true;

    /// No event is JSON, and no whole answer is in this dialect.
    fn take<P: Piece>(&mut self, _: IgnoredAny, _: &mut Progress<P>) -> Option<Means> {
        None
    }

    fn read<P: Piece>(
        &mut self,
        name: &[u8],
        data: &[u8],
        progress: &mut Progress<P>,
    ) -> Result<Option<Means>, serde_json::Error> {
        Ok(match name {
            b"output" => {
                progress.say(0, Found { text: P::of(data), ..Found::default() });
                Some(Means::More)
            }
            b"done" => {
                let done: Done = serde_json::from_slice(data).unwrap_or_default();
                progress.finish(done.reason);
                Some(Means::End("event: done"))
            }
            // Lines of the model's log.
            b"logs" => Some(Means::More),
            _ => None,
        })
    }
}
