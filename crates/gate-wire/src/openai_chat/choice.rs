//! What a choice of a chat completion carries: a delta in a stream, a message in a whole answer.

use crate::openai::{Choice, ChoiceShape, Tokens};
use crate::piece::{Piece, Presence, Reported};
use crate::shape::{Content, Found, Joined};

/// Choices of chunks.
#[derive(Clone, Default)]
pub(super) struct Streamed;

impl ChoiceShape for Streamed {
    type Choice<P: Piece> = DeltaChoice<P>;
}

/// Choices of whole answers.
#[derive(Clone, Default)]
pub(super) struct Whole;

impl ChoiceShape for Whole {
    type Choice<P: Piece> = MessageChoice<P>;
}

/// A choice of a chunk.
#[derive(serde::Deserialize)]
#[serde(bound(deserialize = "P: Piece"))]
pub(super) struct DeltaChoice<P: Piece> {
    index: Option<u64>,
    delta: Option<Message<P>>,
    finish_reason: Option<String>,
    usage: Option<Reported<P, Tokens>>,
}

impl<P: Piece> From<DeltaChoice<P>> for Choice<P> {
    fn from(DeltaChoice { index, delta, finish_reason, usage }: DeltaChoice<P>) -> Self {
        delta.unwrap_or_default().choice(index, finish_reason, usage)
    }
}

/// A choice of a whole answer.
#[derive(serde::Deserialize)]
#[serde(bound(deserialize = "P: Piece"))]
pub(super) struct MessageChoice<P: Piece> {
    index: Option<u64>,
    message: Option<Message<P>>,
    finish_reason: Option<String>,
    usage: Option<Reported<P, Tokens>>,
}

impl<P: Piece> From<MessageChoice<P>> for Choice<P> {
    fn from(MessageChoice { index, message, finish_reason, usage }: MessageChoice<P>) -> Self {
        message.unwrap_or_default().choice(index, finish_reason, usage)
    }
}

/// A message, or what a delta adds to it.
#[derive(Default, serde::Deserialize)]
#[serde(default, bound(deserialize = "P: Piece"))]
struct Message<P: Piece> {
    role: Presence,
    content: Content<P>,
    refusal: P,
    tool_calls: Joined<P, ToolCall<P>>,
    function_call: Option<Function<P>>,
    reasoning_content: P,
    reasoning: P,
    reasoning_details: Joined<P, Detail<P>>,
}

impl<P: Piece> Message<P> {
    fn choice(
        self,
        index: Option<u64>,
        finish_reason: Option<String>,
        usage: Option<Reported<P, Tokens>>,
    ) -> Choice<P> {
        let mut found = self.tool_calls.found;
        if let Some(call) = self.function_call {
            found.join(call.into());
        }
        // The same reasoning under several names (OpenRouter).
        let named = self.reasoning_content.or(self.reasoning).or(self.reasoning_details.found.reasoning);
        found.text = self.content.text;
        found.reasoning = self.content.reasoning;
        found.reasoning.join(named);
        found.refusal = self.refusal;
        Choice { index, has_role: !self.role.is_empty(), found, finish_reason, usage }
    }
}

#[derive(serde::Deserialize)]
#[serde(bound(deserialize = "P: Piece"))]
struct ToolCall<P: Piece> {
    #[serde(alias = "custom")]
    function: Option<Function<P>>,
}

impl<P: Piece> From<ToolCall<P>> for Found<P> {
    fn from(call: ToolCall<P>) -> Self {
        call.function.map(Self::from).unwrap_or_default()
    }
}

#[derive(Default, serde::Deserialize)]
#[serde(default, bound(deserialize = "P: Piece"))]
struct Function<P: Piece> {
    name: P,
    #[serde(alias = "input")]
    arguments: P,
}

impl<P: Piece> From<Function<P>> for Found<P> {
    fn from(Function { name, arguments }: Function<P>) -> Self {
        Self::tool(name, arguments)
    }
}

#[derive(Default, serde::Deserialize)]
#[serde(default, bound(deserialize = "P: Piece"))]
struct Detail<P: Piece> {
    text: P,
    summary: P,
}

impl<P: Piece> From<Detail<P>> for Found<P> {
    fn from(Detail { text, summary }: Detail<P>) -> Self {
        Self { reasoning: text.or(summary), ..Self::default() }
    }
}
