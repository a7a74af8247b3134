//! The shape of a response's events, and of a whole response.

use gate_model::Usage;
use serde_json::Value;

use crate::message::{is_set, stream_error};
use crate::piece::{Merge, Piece, Reported};
use crate::progress::{Means, Progress};
use crate::reader::Schema;
use crate::shape::{Count, Found, Joined, Name};

/// Reads the events of a stream. What repeats a text as a whole (`….done`, the response itself) does not count.
#[derive(Clone)]
pub(super) struct Events;

impl Schema for Events {
    type Event<'a, P: Piece> = Event<'a, P>;

    const STEADY: bool = true;

    fn take<P: Piece>(&mut self, event: Event<'_, P>, progress: &mut Progress<P>) -> Option<Means> {
        let kind = event.kind.get()?;
        let delta = event.delta;
        match kind {
            "error" => return Some(Means::Error),
            "response.created" => progress.begin(),
            "response.output_item.added" => {
                let item = event.item.unwrap_or_default();
                let is_call = item.is_call();
                progress.say(0, Found { tool: item.name.only_if(is_call), ..Found::default() });
            }
            "response.output_text.delta" => progress.say(0, Found { text: delta, ..Found::default() }),
            "response.refusal.delta" => progress.say(0, Found { refusal: delta, ..Found::default() }),
            "response.reasoning_text.delta"
            | "response.reasoning_summary_text.delta"
            | "response.reasoning.delta"
            | "response.reasoning_summary.delta" => progress.say(0, Found { reasoning: delta, ..Found::default() }),
            "response.function_call_arguments.delta"
            | "response.mcp_call_arguments.delta"
            | "response.mcp_call.arguments.delta"
            | "response.custom_tool_call_input.delta"
            | "response.code_interpreter_call_code.delta"
            | "response.code_interpreter_call.code.delta" => {
                progress.say(0, Found { tool: delta, ..Found::default() });
            }
            _ if !kind.starts_with("response.") => return None,
            _ => {}
        }
        let means = match kind {
            "response.completed" => Means::End("response.completed"),
            "response.incomplete" => Means::End("response.incomplete"),
            "response.failed" => Means::End("response.failed"),
            _ => Means::More,
        };
        if let Some(response) = event.response {
            response.take_facts(progress, means != Means::More);
        }
        Some(means)
    }
}

/// Reads a whole response.
#[derive(Clone)]
pub(super) struct Answer;

impl Schema for Answer {
    type Event<'a, P: Piece> = Whole<'a, P>;

    fn take<P: Piece>(&mut self, whole: Whole<'_, P>, progress: &mut Progress<P>) -> Option<Means> {
        progress.say(0, whole.output?.found);
        let Whole { model, status, incomplete_details, usage, error, .. } = whole;
        Response { model, status, incomplete_details, usage, error }.take_facts(progress, true);
        Some(Means::More)
    }
}

/// One event.
#[derive(serde::Deserialize)]
#[serde(bound(deserialize = "P: Piece"))]
pub(super) struct Event<'a, P: Piece> {
    #[serde(rename = "type", borrow, default)]
    kind: Name<'a>,
    #[serde(default)]
    delta: P,
    #[serde(borrow)]
    item: Option<NewItem<'a, P>>,
    #[serde(borrow)]
    response: Option<Response<'a, P>>,
}

/// The response as it stands, without its output.
#[derive(serde::Deserialize)]
#[serde(bound(deserialize = "P: Piece"))]
pub(super) struct Response<'a, P: Piece> {
    #[serde(borrow, default)]
    model: Name<'a>,
    status: Option<String>,
    incomplete_details: Option<Incomplete>,
    usage: Option<Reported<P, Tokens>>,
    error: Option<Value>,
}

impl<P: Piece> Response<'_, P> {
    /// What it says of the stream; its status is the finish reason once it is done.
    fn take_facts(self, progress: &mut Progress<P>, is_done: bool) {
        progress.model(&self.model);
        if let Some(usage) = self.usage {
            progress.usage(usage.value.normalised(), usage.raw, Merge::Whole);
        }
        if is_done {
            progress.finish(self.incomplete_details.and_then(|details| details.reason).or(self.status));
        }
        if let Some(error) = self.error.filter(is_set) {
            progress.state.error.get_or_insert_with(|| stream_error(&error));
        }
    }
}

#[derive(serde::Deserialize)]
struct Incomplete {
    reason: Option<String>,
}

/// One whole response.
#[derive(serde::Deserialize)]
#[serde(bound(deserialize = "P: Piece"))]
pub(super) struct Whole<'a, P: Piece> {
    #[serde(borrow, default)]
    model: Name<'a>,
    status: Option<String>,
    incomplete_details: Option<Incomplete>,
    usage: Option<Reported<P, Tokens>>,
    error: Option<Value>,
    #[serde(bound(deserialize = "P: Piece"))]
    output: Option<Joined<P, Item<P>>>,
}

/// An item as it is added: of a call, its name.
#[derive(Default, serde::Deserialize)]
#[serde(default, bound(deserialize = "P: Piece"))]
struct NewItem<'a, P: Piece> {
    #[serde(rename = "type", borrow)]
    kind: Name<'a>,
    name: P,
}

impl<P: Piece> NewItem<'_, P> {
    fn is_call(&self) -> bool {
        matches!(self.kind.get(), Some("function_call" | "custom_tool_call" | "mcp_call"))
    }
}

/// A whole item: a message, reasoning, or a call.
#[derive(Default, serde::Deserialize)]
#[serde(default, bound(deserialize = "P: Piece"))]
struct Item<P: Piece> {
    #[serde(rename = "type")]
    kind: ItemKind,
    content: Joined<P, Part<P>>,
    summary: Joined<P, Part<P>>,
    name: P,
    #[serde(alias = "input")]
    arguments: P,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
enum ItemKind {
    Message,
    Reasoning,
    #[serde(alias = "custom_tool_call", alias = "mcp_call")]
    FunctionCall,
    #[default]
    #[serde(other)]
    Other,
}

impl<P: Piece> From<Item<P>> for Found<P> {
    fn from(item: Item<P>) -> Self {
        match item.kind {
            ItemKind::Message => item.content.found,
            ItemKind::Reasoning => {
                // A summary repeats what the content says.
                let told = |found: Self| found.text.or(found.reasoning);
                Self { reasoning: told(item.content.found).or(told(item.summary.found)), ..Self::default() }
            }
            ItemKind::FunctionCall => Self::tool(item.name, item.arguments),
            ItemKind::Other => Self::default(),
        }
    }
}

/// A part of a message, or of reasoning.
#[derive(Default, serde::Deserialize)]
#[serde(default, bound(deserialize = "P: Piece"))]
struct Part<P: Piece> {
    text: P,
    refusal: P,
}

impl<P: Piece> From<Part<P>> for Found<P> {
    fn from(Part { text, refusal }: Part<P>) -> Self {
        Self { text, refusal, ..Self::default() }
    }
}

/// Token counts. Reasoning is among the output's, with every vendor.
#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct Tokens {
    input_tokens: Count,
    output_tokens: Count,
    input_tokens_details: Option<InputDetails>,
    output_tokens_details: Option<OutputDetails>,
}

#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct InputDetails {
    cached_tokens: Count,
}

#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct OutputDetails {
    reasoning_tokens: Count,
}

impl Tokens {
    fn normalised(&self) -> Option<Usage> {
        let usage = Usage {
            input: self.input_tokens.0,
            output: self.output_tokens.0,
            cached: self.input_tokens_details.as_ref().and_then(|details| details.cached_tokens.0),
            reasoning: self.output_tokens_details.as_ref().and_then(|details| details.reasoning_tokens.0),
        };
        (usage != Usage::default()).then_some(usage)
    }
}
