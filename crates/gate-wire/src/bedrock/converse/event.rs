//! The shape of a conversation's events, and of a whole answer.

use gate_model::Usage;
use serde::de::{Deserialize, IgnoredAny};

use crate::piece::{Merge, Piece, Reported};
use crate::progress::{Means, Progress};
use crate::reader::Schema;
use crate::shape::{Count, Found, Joined, Name};

/// Reads the events of a stream. Each has fields that no other has: their types, which the frames name, tell no more.
#[derive(Clone, Default)]
pub(super) struct Events;

impl Schema for Events {
    type Event<'a, P: Piece> = Event<'a, P>;

    fn take<P: Piece>(&mut self, event: Event<'_, P>, progress: &mut Progress<P>) -> Option<Means> {
        if event.is_foreign() {
            return None;
        }
        if event.role.get().is_some() {
            progress.begin();
        }
        for block in [event.start, event.delta].into_iter().flatten() {
            progress.say(0, block.into());
        }
        if let Some(usage) = event.usage {
            progress.usage(usage.value.normalised(), usage.raw, Merge::Whole);
        }
        let has_ended = event.stop_reason.is_some();
        progress.finish(event.stop_reason);
        Some(if has_ended { Means::End("messageStop") } else { Means::More })
    }
}

/// Reads a whole answer.
#[derive(Clone, Default)]
pub(super) struct Answer;

impl Schema for Answer {
    type Event<'a, P: Piece> = Whole<P>;

    fn take<P: Piece>(&mut self, answer: Whole<P>, progress: &mut Progress<P>) -> Option<Means> {
        progress.say(0, answer.output?.message.unwrap_or_default().content.found);
        if let Some(usage) = answer.usage {
            progress.usage(usage.value.normalised(), usage.raw, Merge::Whole);
        }
        progress.finish(answer.stop_reason);
        Some(Means::More)
    }
}

/// One event of a stream.
#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "P: Piece"))]
pub(super) struct Event<'a, P: Piece> {
    #[serde(borrow, default)]
    role: Name<'a>,
    content_block_index: Option<IgnoredAny>,
    start: Option<Block<P, Call<P>>>,
    delta: Option<Block<P, Call<P>>>,
    stop_reason: Option<String>,
    usage: Option<Reported<P, Tokens>>,
    metrics: Option<IgnoredAny>,
}

impl<P: Piece> Event<'_, P> {
    /// Whether it has nothing that an event has.
    fn is_foreign(&self) -> bool {
        self.role.get().is_none()
            && self.content_block_index.is_none()
            && self.stop_reason.is_none()
            && self.usage.is_none()
            && self.metrics.is_none()
    }
}

/// One whole answer.
#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "P: Piece"))]
pub(super) struct Whole<P: Piece> {
    output: Option<Output<P>>,
    stop_reason: Option<String>,
    usage: Option<Reported<P, Tokens>>,
}

#[derive(serde::Deserialize)]
#[serde(bound(deserialize = "P: Piece"))]
struct Output<P: Piece> {
    message: Option<Message<P>>,
}

#[derive(Default, serde::Deserialize)]
#[serde(default, bound(deserialize = "P: Piece"))]
struct Message<P: Piece> {
    content: Joined<P, Block<P, WholeCall<P>>>,
}

/// A block, whole, as it starts, or what is added to it.
#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "P: Piece, C: Deserialize<'de>"))]
struct Block<P, C> {
    #[serde(default)]
    text: P,
    tool_use: Option<C>,
    reasoning_content: Option<Reasoning<P>>,
}

impl<P: Piece, C: Into<Self>> From<Block<P, C>> for Found<P> {
    fn from(block: Block<P, C>) -> Self {
        let tool = block.tool_use.map(C::into).unwrap_or_default();
        let reasoning = block.reasoning_content.unwrap_or_default();
        let whole = reasoning.reasoning_text.unwrap_or_default();
        let opaque = [reasoning.signature, reasoning.redacted_content, whole.signature];
        Self {
            text: block.text,
            reasoning: reasoning.text.or(whole.text),
            opaque: opaque.iter().any(Option::is_some),
            ..tool
        }
    }
}

/// A tool call as it starts, or a fragment of its arguments.
#[derive(serde::Deserialize)]
#[serde(bound(deserialize = "P: Piece"))]
struct Call<P> {
    #[serde(default)]
    name: P,
    #[serde(default)]
    input: P,
}

impl<P: Piece> From<Call<P>> for Found<P> {
    fn from(call: Call<P>) -> Self {
        Self::tool(call.name, call.input)
    }
}

/// A whole tool call: its arguments are an object.
#[derive(serde::Deserialize)]
#[serde(bound(deserialize = "P: Piece"))]
struct WholeCall<P: Piece> {
    #[serde(default)]
    name: P,
    #[serde(default)]
    input: P::Raw,
}

impl<P: Piece> From<WholeCall<P>> for Found<P> {
    fn from(call: WholeCall<P>) -> Self {
        Self::tool(call.name, P::json(call.input))
    }
}

/// What is added to reasoning, or a whole answer's.
#[derive(Default, serde::Deserialize)]
#[serde(default, rename_all = "camelCase", bound(deserialize = "P: Piece"))]
struct Reasoning<P> {
    text: P,
    signature: Option<IgnoredAny>,
    redacted_content: Option<IgnoredAny>,
    reasoning_text: Option<ReasoningText<P>>,
}

#[derive(Default, serde::Deserialize)]
#[serde(default, bound(deserialize = "P: Piece"))]
struct ReasoningText<P> {
    text: P,
    signature: Option<IgnoredAny>,
}

/// Token counts. Input leaves out what was read from the cache and written to it.
#[derive(Default, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Tokens {
    input_tokens: Count,
    output_tokens: Count,
    cache_read_input_tokens: Count,
    cache_write_input_tokens: Count,
}

impl Tokens {
    fn normalised(&self) -> Option<Usage> {
        let cached = self.cache_read_input_tokens.0;
        let beside = self.cache_write_input_tokens.0.unwrap_or(0).saturating_add(cached.unwrap_or(0));
        let usage = Usage {
            input: self.input_tokens.0.map(|input| input.saturating_add(beside)),
            output: self.output_tokens.0,
            cached,
            reasoning: None,
        };
        (usage != Usage::default()).then_some(usage)
    }
}
