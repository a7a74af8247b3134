//! SGLang's own `generate`.

use gate_model::{Delivery, OutputLength, Secret, Usage};
use serde_json::{Map, Value};
use url::Url;

use crate::cumulative::Cumulative;
use crate::framing::Sse;
use crate::message::is_set;
use crate::piece::{Kept, Piece, Reported};
use crate::progress::{Means, Progress};
use crate::reader::{Schema, decoder};
use crate::request::{Draft, EVENT_STREAM, Route, bearer, joined, present};
use crate::shape::{Count, Found};
use crate::{Ask, Decoder, Dialect, Keep, WireRequest};

const ROUTE: Route = Route { prefix: "", tail: "/generate", models: "/v1/models" };

/// The dialect. The prompt is the messages' texts, joined by blank lines; a server has one model.
pub(crate) struct Sglang;

impl Dialect for Sglang {
    fn request(&self, base: &Url, key: Option<&Secret>, ask: &Ask<'_>) -> WireRequest {
        let draft = Draft { route: &ROUTE, stream_type: EVENT_STREAM, headers: bearer(key), fields: fields(ask) };
        draft.finish(base, ask)
    }

    fn models_path(&self, base: &Url) -> String {
        ROUTE.models_path(base)
    }

    fn decoder(&self, delivery: Delivery, keep: Keep) -> Box<dyn Decoder> {
        decoder::<Sse>(Events::default(), Events::default(), delivery, keep)
    }
}

fn fields(ask: &Ask<'_>) -> Map<String, Value> {
    let exact = ask.output == OutputLength::Exact;
    let sampling = present([
        ("max_new_tokens", Some(ask.max_output_tokens.into())),
        ("ignore_eos", exact.then_some(true.into())),
        ("min_new_tokens", exact.then_some(ask.max_output_tokens.into())),
    ]);
    present([
        ("text", Some(joined(&ask.prompt.messages).into())),
        ("sampling_params", Some(sampling.into())),
        ("stream", Some((ask.delivery == Delivery::Streamed).into())),
    ])
}

/// Reads the events of a stream, or a whole answer, which looks like the last of them. A flag of the server's makes
/// their texts the whole so far, or only what is new.
#[derive(Clone, Default)]
struct Events {
    texts: Cumulative,
}

impl Schema for Events {
    type Event<'a, P: Piece> = Event<P>;

    fn take<P: Piece>(&mut self, event: Event<P>, progress: &mut Progress<P>) -> Option<Means> {
        if event.error.as_ref().is_some_and(is_set) {
            return Some(Means::Error);
        }
        if event.text.is_none() && event.meta_info.is_none() {
            return None;
        }
        let meta = event.meta_info.unwrap_or_default();
        let Kept(text) = event.text.unwrap_or_default();
        let added = self.texts.added(&text, meta.completion_tokens.value.0);
        progress.say(0, Found { text: P::of(added.as_bytes()), ..Found::default() });
        let usage = Usage {
            input: meta.prompt_tokens.value.0,
            output: meta.completion_tokens.value.0,
            cached: meta.cached_tokens.value.0,
            reasoning: None,
        };
        progress.usage_fields(
            (usage != Usage::default()).then_some(usage),
            [
                ("prompt_tokens", meta.prompt_tokens.raw),
                ("completion_tokens", meta.completion_tokens.raw),
                ("cached_tokens", meta.cached_tokens.raw),
            ],
        );
        progress.finish(meta.finish_reason.as_ref().and_then(reason));
        Some(Means::More)
    }
}

/// The reason's type; older servers send it alone.
fn reason(reason: &Value) -> Option<String> {
    reason.get("type").unwrap_or(reason).as_str().map(str::to_owned)
}

/// One event of a stream, or one whole answer.
#[derive(serde::Deserialize)]
#[serde(bound(deserialize = "P: Piece"))]
struct Event<P: Piece> {
    text: Option<Kept>,
    meta_info: Option<Meta<P>>,
    error: Option<Value>,
}

#[derive(Default, serde::Deserialize)]
#[serde(default, bound(deserialize = "P: Piece"))]
struct Meta<P: Piece> {
    finish_reason: Option<Value>,
    prompt_tokens: Reported<P, Count>,
    completion_tokens: Reported<P, Count>,
    cached_tokens: Reported<P, Count>,
}
