//! What a choice of a chat completion carries: a delta in a stream, a message in a whole answer.

use crate::openai::{Choice, Tokens};
use crate::shape::{AnyOf, Carries, Content, Found, Text};

/// A choice of a chunk.
#[derive(Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct Streamed {
    index: Option<u64>,
    delta: Option<Message>,
    finish_reason: Option<String>,
    usage: Option<Tokens>,
}

impl From<Streamed> for Choice {
    fn from(Streamed { index, delta, finish_reason, usage }: Streamed) -> Self {
        Self { index, found: delta.unwrap_or_default().found(), finish_reason, usage }
    }
}

/// A choice of a whole answer.
#[derive(Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct Whole {
    index: Option<u64>,
    message: Option<Message>,
    finish_reason: Option<String>,
    usage: Option<Tokens>,
}

impl From<Whole> for Choice {
    fn from(Whole { index, message, finish_reason, usage }: Whole) -> Self {
        Self { index, found: message.unwrap_or_default().found(), finish_reason, usage }
    }
}

/// A message, or what a delta adds to it.
#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct Message {
    content: Content,
    refusal: Text,
    tool_calls: AnyOf<ToolCall>,
    function_call: Option<Function>,
    reasoning_content: Text,
    reasoning: Text,
    reasoning_details: AnyOf<Detail>,
}

impl Message {
    fn found(&self) -> Found {
        let reasoning = self.reasoning_content.0 || self.reasoning.0 || self.reasoning_details.sum;
        Found {
            text: self.content.text || self.refusal.0,
            tool: self.tool_calls.sum || self.function_call.as_ref().is_some_and(Carries::carries),
            reasoning: self.content.reasoning || reasoning,
        }
    }
}

#[derive(serde::Deserialize)]
struct ToolCall {
    #[serde(alias = "custom")]
    function: Option<Function>,
}

impl Carries for ToolCall {
    fn carries(&self) -> bool {
        self.function.as_ref().is_some_and(Carries::carries)
    }
}

#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct Function {
    name: Text,
    #[serde(alias = "input")]
    arguments: Text,
}

impl Carries for Function {
    fn carries(&self) -> bool {
        self.name.0 || self.arguments.0
    }
}

#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct Detail {
    text: Text,
    summary: Text,
}

impl Carries for Detail {
    fn carries(&self) -> bool {
        self.text.0 || self.summary.0
    }
}
