//! OpenAI completions, the older route: a prompt instead of messages.

use gate_model::{Delivery, MaxTokensField, Secret};
use url::Url;

use crate::framing::Sse;
use crate::openai::{Choice, ChoiceShape, Openai, Tokens, auth, fields, models_path, route_on};
use crate::piece::{Piece, Reported};
use crate::reader::decoder;
use crate::request::{Draft, EVENT_STREAM, Route, joined};
use crate::shape::Found;
use crate::{Ask, Decoder, Dialect, Keep, WireRequest};

const ROUTE: Route<'_> = Route { prefix: "/v1", tail: "/completions", models: "/models" };

/// The dialect. The prompt is the messages' texts, joined by blank lines.
pub(crate) struct OpenaiCompletions;

impl Dialect for OpenaiCompletions {
    fn request(&self, base: &Url, key: Option<&Secret>, ask: &Ask<'_>) -> WireRequest {
        let prompt = ("prompt", joined(&ask.prompt.messages).into());
        let fields = fields(ask, prompt, MaxTokensField::MaxTokens.name());
        let route = route_on(base, ROUTE);
        Draft { route: &route, stream_type: EVENT_STREAM, headers: auth(base, key), fields }.finish(base, ask)
    }

    fn models_path(&self, base: &Url) -> String {
        models_path(base, ROUTE)
    }

    fn decoder(&self, delivery: Delivery, keep: Keep) -> Box<dyn Decoder> {
        let schema = Openai::<Texts>::default();
        decoder::<Sse>(schema.clone(), schema, delivery, keep)
    }
}

/// Choices of chunks, and of whole answers.
#[derive(Clone, Default)]
struct Texts;

impl ChoiceShape for Texts {
    type Choice<P: Piece> = TextChoice<P>;
}

/// A choice of a chunk, or of a whole answer.
#[derive(serde::Deserialize)]
#[serde(bound(deserialize = "P: Piece"))]
struct TextChoice<P: Piece> {
    index: Option<u64>,
    #[serde(default)]
    text: P,
    finish_reason: Option<String>,
    usage: Option<Reported<P, Tokens>>,
}

impl<P: Piece> From<TextChoice<P>> for Choice<P> {
    fn from(TextChoice { index, text, finish_reason, usage }: TextChoice<P>) -> Self {
        Self { index, has_role: false, found: Found { text, ..Found::default() }, finish_reason, usage }
    }
}
