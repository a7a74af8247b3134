//! OpenAI completions, the older route: a prompt instead of messages.

use gate_model::{Delivery, MaxTokensField, Secret};
use url::Url;

use crate::framing::Sse;
use crate::openai::{self, Openai, Tokens, fields};
use crate::reader::StreamDecoder;
use crate::request::{Draft, EVENT_STREAM, Route, bearer, joined};
use crate::shape::{Found, Text};
use crate::whole::WholeDecoder;
use crate::{Ask, Decoder, Dialect, WireRequest};

const ROUTE: Route = Route { prefix: "/v1", tail: "/completions", models: "/models" };

/// The dialect. The prompt is the messages' texts, joined by blank lines.
pub(crate) struct OpenaiCompletions;

impl Dialect for OpenaiCompletions {
    fn request(&self, base: &Url, key: Option<&Secret>, ask: &Ask<'_>) -> WireRequest {
        let prompt = ("prompt", joined(&ask.prompt.messages).into());
        let fields = fields(ask, prompt, MaxTokensField::MaxTokens.name());
        Draft { route: &ROUTE, stream_type: EVENT_STREAM, headers: bearer(key), fields }.finish(base, ask)
    }

    fn models_path(&self, base: &Url) -> String {
        ROUTE.models_path(base)
    }

    fn decoder(&self, delivery: Delivery) -> Box<dyn Decoder> {
        match delivery {
            Delivery::Streamed => Box::new(StreamDecoder::<Sse, Openai<Choice>, Openai<Choice>>::default()),
            Delivery::Whole => Box::new(WholeDecoder::<Openai<Choice>>::default()),
        }
    }
}

/// A choice of a chunk, or of a whole answer.
#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct Choice {
    index: Option<u64>,
    text: Text,
    finish_reason: Option<String>,
    usage: Option<Tokens>,
}

impl From<Choice> for openai::Choice {
    fn from(Choice { index, text, finish_reason, usage }: Choice) -> Self {
        Self { index, found: Found { text: text.0, ..Found::default() }, finish_reason, usage }
    }
}
