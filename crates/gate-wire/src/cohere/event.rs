//! The shape of a chat's events, and of a whole answer.

use gate_model::Usage;
use serde_json::Value;

use crate::message::{is_set, stream_error};
use crate::piece::{Merge, Piece, Reported};
use crate::progress::{Means, Progress};
use crate::reader::Schema;
use crate::shape::{Count, Found, OneOrMany};

/// Reads the events of a stream.
#[derive(Clone)]
pub(super) struct Events;

impl Schema for Events {
    type Event<'a, P: Piece> = Event<P>;

    const STEADY: bool = true;

    fn take<P: Piece>(&mut self, event: Event<P>, progress: &mut Progress<P>) -> Option<Means> {
        let means = match event.kind {
            Kind::Unknown => return None,
            Kind::MessageEnd => Means::End("message-end"),
            Kind::MessageStart => {
                progress.begin();
                Means::More
            }
            _ => Means::More,
        };
        event.delta.unwrap_or_default().take(progress);
        Some(means)
    }
}

/// Reads a whole answer.
#[derive(Clone)]
pub(super) struct Answer;

impl Schema for Answer {
    type Event<'a, P: Piece> = Delta<P>;

    fn take<P: Piece>(&mut self, answer: Delta<P>, progress: &mut Progress<P>) -> Option<Means> {
        answer.message.as_ref()?;
        answer.take(progress);
        Some(Means::More)
    }
}

/// One event of a stream.
#[derive(serde::Deserialize)]
#[serde(bound(deserialize = "P: Piece"))]
pub(super) struct Event<P: Piece> {
    #[serde(rename = "type", default)]
    kind: Kind,
    delta: Option<Delta<P>>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    MessageStart,
    ContentStart,
    ContentDelta,
    ContentEnd,
    ToolPlanDelta,
    ToolCallStart,
    ToolCallDelta,
    ToolCallEnd,
    CitationStart,
    CitationEnd,
    MessageEnd,
    Debug,
    #[default]
    #[serde(other)]
    Unknown,
}

/// A whole answer, or what is added to it.
#[derive(Default, serde::Deserialize)]
#[serde(default, bound(deserialize = "P: Piece"))]
pub(super) struct Delta<P: Piece> {
    message: Option<Message<P>>,
    finish_reason: Option<String>,
    usage: Option<Reported<P, Tokens>>,
    error: Option<Value>,
}

impl<P: Piece> Delta<P> {
    fn take(self, progress: &mut Progress<P>) {
        let message = self.message.unwrap_or_default();
        let mut found = message.tool_calls.found;
        found.join(message.content.found);
        found.reasoning.join(message.tool_plan);
        progress.say(0, found);
        progress.finish(self.finish_reason);
        if let Some(usage) = self.usage {
            progress.usage(usage.value.normalised(), usage.raw, Merge::Whole);
        }
        if let Some(error) = self.error.filter(is_set) {
            progress.state.error.get_or_insert_with(|| stream_error(&error));
        }
    }
}

/// A message. What is a list in a whole one is a single item in an event. Citations are another field: no token of
/// the model's stands for them.
#[derive(Default, serde::Deserialize)]
#[serde(default, bound(deserialize = "P: Piece"))]
struct Message<P: Piece> {
    content: OneOrMany<P, Content<P>>,
    tool_plan: P,
    tool_calls: OneOrMany<P, ToolCall<P>>,
}

#[derive(Default, serde::Deserialize)]
#[serde(default, bound(deserialize = "P: Piece"))]
struct Content<P: Piece> {
    text: P,
    thinking: P,
}

impl<P: Piece> From<Content<P>> for Found<P> {
    fn from(Content { text, thinking }: Content<P>) -> Self {
        Self { text, reasoning: thinking, ..Self::default() }
    }
}

#[derive(serde::Deserialize)]
#[serde(bound(deserialize = "P: Piece"))]
struct ToolCall<P: Piece> {
    function: Option<Function<P>>,
}

#[derive(Default, serde::Deserialize)]
#[serde(default, bound(deserialize = "P: Piece"))]
struct Function<P: Piece> {
    name: P,
    arguments: P,
}

impl<P: Piece> From<ToolCall<P>> for Found<P> {
    fn from(call: ToolCall<P>) -> Self {
        let Function { name, arguments } = call.function.unwrap_or_default();
        Self::tool(name, arguments)
    }
}

/// Token counts: the true ones, or else the billed ones, which are fewer.
#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct Tokens {
    tokens: Option<Counts>,
    billed_units: Option<Counts>,
    cached_tokens: Count,
}

#[derive(Clone, Copy, Default, serde::Deserialize)]
#[serde(default)]
struct Counts {
    input_tokens: Count,
    output_tokens: Count,
    reasoning_tokens: Count,
}

impl Tokens {
    fn normalised(&self) -> Option<Usage> {
        let counts = self.tokens.or(self.billed_units).unwrap_or_default();
        let usage = Usage {
            input: counts.input_tokens.0,
            output: counts.output_tokens.0,
            cached: self.cached_tokens.0,
            reasoning: counts.reasoning_tokens.0,
        };
        (usage != Usage::default()).then_some(usage)
    }
}
