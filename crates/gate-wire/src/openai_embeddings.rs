//! OpenAI embeddings: one body, and nothing is generated. An embedding counts as its one content event.

use std::fmt;

use gate_model::{Delivery, Secret};
use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, SeqAccess, Visitor};
use serde_json::Value;
use url::Url;

use crate::framing::Sse;
use crate::message::is_set;
use crate::openai::{Tokens, auth, models_path, route_on};
use crate::piece::{Merge, Piece, Reported};
use crate::progress::{Means, Progress};
use crate::reader::{Schema, decoder};
use crate::request::{Draft, Route, joined, present};
use crate::shape::{Few, Kinds, Name};
use crate::{Ask, Decoder, Dialect, Keep, WireRequest};

const ROUTE: Route<'_> = Route { prefix: "/v1", tail: "/embeddings", models: "/models" };

/// The dialect. The input is the messages' texts, joined by blank lines; the length of an answer is the model's.
pub(crate) struct OpenaiEmbeddings;

impl Dialect for OpenaiEmbeddings {
    fn request(&self, base: &Url, key: Option<&Secret>, ask: &Ask<'_>) -> WireRequest {
        let ask = Ask { delivery: Delivery::Whole, ..*ask };
        let input = joined(&ask.prompt.messages).into();
        let fields = present([("model", ask.model.map(Value::from)), ("input", Some(input))]);
        let route = route_on(base, ROUTE);
        Draft { route: &route, stream_type: "application/json", headers: auth(base, key), fields }.finish(base, &ask)
    }

    fn models_path(&self, base: &Url) -> String {
        models_path(base, ROUTE)
    }

    /// There are no streams of embeddings.
    fn decoder(&self, _: Delivery, keep: Keep) -> Box<dyn Decoder> {
        decoder::<Sse>(Answer, Answer, Delivery::Whole, keep)
    }
}

/// Reads a whole answer.
#[derive(Clone)]
struct Answer;

impl Schema for Answer {
    type Event<'a, P: Piece> = List<'a, P>;

    fn take<P: Piece>(&mut self, list: List<'_, P>, progress: &mut Progress<P>) -> Option<Means> {
        if list.error.as_ref().is_some_and(is_set) {
            return Some(Means::Error);
        }
        let is_embedded = list.data?.into_iter().any(|item| item.embedding.0);
        progress.carry(Kinds { text: is_embedded, ..Kinds::default() });
        progress.model(&list.model);
        if let Some(usage) = list.usage {
            progress.usage(usage.value.normalised(), usage.raw, Merge::Whole);
        }
        Some(Means::More)
    }
}

/// A list of embeddings.
#[derive(serde::Deserialize)]
#[serde(bound(deserialize = "P: Piece"))]
struct List<'a, P: Piece> {
    #[serde(borrow, default)]
    model: Name<'a>,
    data: Option<Few<Item>>,
    usage: Option<Reported<P, Tokens>>,
    error: Option<Value>,
}

#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct Item {
    embedding: Filled,
}

/// Whether an array, or a base64 string, has anything in it.
#[derive(Default)]
struct Filled(bool);

impl<'de> Deserialize<'de> for Filled {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct AnyFilled;

        impl<'de> Visitor<'de> for AnyFilled {
            type Value = Filled;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("an embedding")
            }

            fn visit_unit<E: Error>(self) -> Result<Filled, E> {
                Ok(Filled(false))
            }

            fn visit_str<E: Error>(self, base64: &str) -> Result<Filled, E> {
                Ok(Filled(!base64.is_empty()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut numbers: A) -> Result<Filled, A::Error> {
                let mut filled = Filled(false);
                while numbers.next_element::<IgnoredAny>()?.is_some() {
                    filled.0 = true;
                }
                Ok(filled)
            }
        }

        from.deserialize_any(AnyFilled)
    }
}
