//! What the two OpenAI dialects share: the fields of a request, and the shape of a chunk, which differ only in what a
//! choice carries.

use std::marker::PhantomData;

use gate_model::{Delivery, OutputLength, Usage};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::message::is_set;
use crate::reader::Schema;
use crate::request::present;
use crate::shape::{Absorb, Count, Fold, Found};
use crate::{Ask, EventKind, StreamState};

/// The fields of a request's body. `ignore_eos` and `min_tokens` are what vLLM, SGLang and llama.cpp know.
pub(crate) fn fields(ask: &Ask<'_>, (prompt, value): (&str, Value), max_tokens: &str) -> Map<String, Value> {
    let streamed = ask.delivery == Delivery::Streamed;
    let exact = ask.output == OutputLength::Exact;
    present([
        ("model", ask.model.map(Value::from)),
        (prompt, Some(value)),
        ("stream", streamed.then_some(true.into())),
        ("stream_options", streamed.then(|| json!({"include_usage": true}))),
        (max_tokens, Some(ask.max_output_tokens.into())),
        ("ignore_eos", exact.then_some(true.into())),
        ("min_tokens", exact.then_some(ask.max_output_tokens.into())),
    ])
}

/// Reads chunks, or whole answers, with choices of one kind.
#[derive(Default)]
pub(crate) struct Openai<C> {
    /// The index of the choice that gave the finish reason.
    finished_choice: u64,
    choices: PhantomData<fn() -> C>,
}

impl<C: Default + DeserializeOwned + Into<Choice>> Schema for Openai<C> {
    type Event = Chunk<C>;

    fn take(&mut self, chunk: Chunk<C>, state: &mut StreamState) -> Option<EventKind> {
        if chunk.is_foreign() {
            return None;
        }
        if let Some(usage) = chunk.usage() {
            state.usage = Some(usage);
        }
        let choices = chunk.choices.unwrap_or_default().sum;
        if let Some((index, reason)) = choices.finish
            && (state.finish_reason.is_none() || index <= self.finished_choice)
        {
            self.finished_choice = index;
            state.finish_reason = Some(reason);
        }
        let has_error = chunk.error.as_ref().is_some_and(is_set);
        Some(if has_error { EventKind::Error } else { choices.found.kind() })
    }
}

/// One chunk, or one whole answer.
#[derive(serde::Deserialize)]
#[serde(bound(deserialize = "C: DeserializeOwned + Into<Choice>"))]
pub(crate) struct Chunk<C> {
    choices: Option<Fold<Choices, C>>,
    usage: Option<Tokens>,
    x_groq: Option<Groq>,
    error: Option<Value>,
}

impl<C> Chunk<C> {
    /// Whether it has nothing that a chunk has.
    fn is_foreign(&self) -> bool {
        self.choices.is_none() && self.usage.is_none() && self.x_groq.is_none() && self.error.is_none()
    }

    /// The usage it reports, at the top, in a choice (Moonshot) or in an extension (Groq).
    fn usage(&self) -> Option<Usage> {
        let top = self.usage.as_ref();
        let choice = || self.choices.as_ref()?.sum.usage.as_ref();
        let groq = || self.x_groq.as_ref()?.usage.as_ref();
        top.or_else(choice).or_else(groq).and_then(Tokens::normalised)
    }
}

#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct Groq {
    usage: Option<Tokens>,
}

/// What a choice says, whatever carries its content.
pub(crate) struct Choice {
    pub(crate) index: Option<u64>,
    pub(crate) found: Found,
    pub(crate) finish_reason: Option<String>,
    pub(crate) usage: Option<Tokens>,
}

/// All choices of a chunk together.
#[derive(Default)]
struct Choices {
    found: Found,
    /// The finish reason of the lowest choice that has one, with its index.
    finish: Option<(u64, String)>,
    usage: Option<Tokens>,
}

impl<C: Into<Choice>> Absorb<C> for Choices {
    fn absorb(&mut self, choice: C) {
        let choice = choice.into();
        self.found.absorb(choice.found);
        let index = choice.index.unwrap_or(0);
        if let Some(reason) = choice.finish_reason.filter(|reason| !reason.is_empty())
            && self.finish.as_ref().is_none_or(|(lowest, _)| index <= *lowest)
        {
            self.finish = Some((index, reason));
        }
        self.usage = choice.usage.or(self.usage.take());
    }
}

/// Token counts as servers spell them.
#[derive(Default, serde::Deserialize)]
#[serde(default)]
pub(crate) struct Tokens {
    prompt_tokens: Count,
    completion_tokens: Count,
    total_tokens: Count,
    prompt_tokens_details: Option<PromptDetails>,
    completion_tokens_details: Option<CompletionDetails>,
    /// DeepSeek.
    prompt_cache_hit_tokens: Count,
    /// Moonshot.
    cached_tokens: Count,
}

#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct PromptDetails {
    cached_tokens: Count,
}

#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct CompletionDetails {
    reasoning_tokens: Count,
}

impl Tokens {
    /// Input with cached, output with reasoning; `None` where nothing is reported.
    fn normalised(&self) -> Option<Usage> {
        let in_details = self.prompt_tokens_details.as_ref().and_then(|details| details.cached_tokens.0);
        let cached = in_details.or(self.prompt_cache_hit_tokens.0).or(self.cached_tokens.0);
        let reasoning = self.completion_tokens_details.as_ref().and_then(|details| details.reasoning_tokens.0);
        let (input, completion) = (self.prompt_tokens.0, self.completion_tokens.0);
        let output = match (input, completion, reasoning, self.total_tokens.0) {
            // xAI leaves reasoning out of the completion's tokens, as its total shows.
            (Some(input), Some(completion), Some(reasoning), Some(total))
                if total == input.saturating_add(completion).saturating_add(reasoning) =>
            {
                Some(completion.saturating_add(reasoning))
            }
            _ => completion,
        };
        let usage = Usage { input, output, cached, reasoning };
        (usage != Usage::default()).then_some(usage)
    }
}
