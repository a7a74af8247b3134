//! The shape of a chunk, read without allocating: of generated text only whether there is any.

use std::fmt;
use std::marker::PhantomData;

use gate_model::Usage;
use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

/// One chunk.
#[derive(Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct Chunk {
    pub(super) choices: Option<Choices>,
    usage: Option<Tokens>,
    x_groq: Option<Groq>,
    pub(super) error: Option<Value>,
}

impl Chunk {
    /// Whether it has nothing that a chunk has.
    pub(super) fn is_foreign(&self) -> bool {
        self.choices.is_none() && self.usage.is_none() && self.x_groq.is_none() && self.error.is_none()
    }

    /// The usage it reports, at the top, in a choice (Moonshot) or in an extension (Groq).
    pub(super) fn usage(&self) -> Option<Usage> {
        let top = self.usage.as_ref();
        let choice = || self.choices.as_ref()?.usage.as_ref();
        let groq = || self.x_groq.as_ref()?.usage.as_ref();
        top.or_else(choice).or_else(groq).and_then(Tokens::normalised)
    }
}

#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct Groq {
    usage: Option<Tokens>,
}

/// Which kinds of generated content there are.
#[derive(Clone, Copy, Default)]
pub(super) struct Found {
    /// Visible text or a refusal.
    pub(super) text: bool,
    /// A tool call's name or arguments.
    pub(super) tool: bool,
    /// Reasoning.
    pub(super) reasoning: bool,
}

/// All choices of a chunk together.
#[derive(Default)]
pub(super) struct Choices {
    pub(super) found: Found,
    /// The finish reason of the lowest choice that has one, with its index.
    pub(super) finish: Option<(u64, String)>,
    usage: Option<Tokens>,
}

impl Choices {
    fn add(&mut self, choice: Choice) {
        let delta = choice.delta.unwrap_or_default();
        self.found.text |= delta.content.text || delta.refusal.0;
        self.found.tool |= delta.tool_calls.0 || delta.function_call.is_some_and(|call| call.carries());
        self.found.reasoning |=
            delta.content.reasoning || delta.reasoning_content.0 || delta.reasoning.0 || delta.reasoning_details.0;
        let index = choice.index.unwrap_or(0);
        if let Some(reason) = choice.finish_reason.filter(|reason| !reason.is_empty())
            && self.finish.as_ref().is_none_or(|(lowest, _)| index <= *lowest)
        {
            self.finish = Some((index, reason));
        }
        self.usage = choice.usage.or(self.usage.take());
    }
}

impl<'de> Deserialize<'de> for Choices {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Sum;
        impl<'de> Visitor<'de> for Sum {
            type Value = Choices;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("an array of choices")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Choices, A::Error> {
                let mut choices = Choices::default();
                while let Some(choice) = items.next_element()? {
                    choices.add(choice);
                }
                Ok(choices)
            }
        }
        from.deserialize_seq(Sum)
    }
}

#[derive(serde::Deserialize)]
struct Choice {
    index: Option<u64>,
    delta: Option<Delta>,
    finish_reason: Option<String>,
    usage: Option<Tokens>,
}

#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct Delta {
    content: Content,
    refusal: Text,
    tool_calls: AnyOf<ToolCall>,
    function_call: Option<Function>,
    reasoning_content: Text,
    reasoning: Text,
    reasoning_details: AnyOf<Detail>,
}

/// Something that may carry generated content.
trait Carries {
    fn carries(&self) -> bool;
}

#[derive(serde::Deserialize)]
struct ToolCall {
    #[serde(alias = "custom")]
    function: Option<Function>,
}

impl Carries for ToolCall {
    fn carries(&self) -> bool {
        self.function.as_ref().is_some_and(Function::carries)
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

/// A part of a content array (Mistral).
#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct Part {
    text: Text,
    thinking: Content,
}

/// Whether a string, or null, has any text. Read as bytes: text may be invalid UTF-8, or half a surrogate pair.
#[derive(Default)]
struct Text(bool);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_option(TextOrParts).map(|content| Self(content.text || content.reasoning))
    }
}

/// What a string, an array of parts, or null holds.
#[derive(Clone, Copy, Default)]
struct Content {
    text: bool,
    reasoning: bool,
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_option(TextOrParts)
    }
}

struct TextOrParts;

impl<'de> Visitor<'de> for TextOrParts {
    type Value = Content;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a string, an array of parts, or null")
    }

    fn visit_none<E: Error>(self) -> Result<Content, E> {
        Ok(Content::default())
    }

    fn visit_some<D: Deserializer<'de>>(self, from: D) -> Result<Content, D::Error> {
        from.deserialize_bytes(self)
    }

    fn visit_bytes<E: Error>(self, text: &[u8]) -> Result<Content, E> {
        Ok(Content { text: !text.is_empty(), reasoning: false })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Content, A::Error> {
        let mut content = Content::default();
        while let Some(part) = parts.next_element::<Part>()? {
            content.text |= part.text.0;
            content.reasoning |= part.thinking.text || part.thinking.reasoning;
        }
        Ok(content)
    }
}

/// Whether any element of an array, or null, carries content.
struct AnyOf<T>(bool, PhantomData<T>);

impl<T> Default for AnyOf<T> {
    fn default() -> Self {
        Self(false, PhantomData)
    }
}

impl<'de, T: Deserialize<'de> + Carries> Deserialize<'de> for AnyOf<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_option(Self::default())
    }
}

impl<'de, T: Deserialize<'de> + Carries> Visitor<'de> for AnyOf<T> {
    type Value = Self;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an array or null")
    }

    fn visit_none<E: Error>(self) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_some<D: Deserializer<'de>>(self, from: D) -> Result<Self, D::Error> {
        from.deserialize_seq(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<Self, A::Error> {
        while let Some(item) = items.next_element::<T>()? {
            self.0 |= item.carries();
        }
        Ok(self)
    }
}

/// Token counts as servers spell them.
#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct Tokens {
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

/// A count; anything but a number that is one counts as not reported.
#[derive(Clone, Copy, Default)]
struct Count(Option<u64>);

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(AnyCount)
    }
}

struct AnyCount;

impl<'de> Visitor<'de> for AnyCount {
    type Value = Count;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a count")
    }

    fn visit_u64<E: Error>(self, count: u64) -> Result<Count, E> {
        Ok(Count(Some(count)))
    }

    fn visit_i64<E: Error>(self, count: i64) -> Result<Count, E> {
        Ok(Count(u64::try_from(count).ok()))
    }

    fn visit_f64<E: Error>(self, count: f64) -> Result<Count, E> {
        // Exact integers only: 2^53 is far beyond any count of tokens.
        let whole = (0.0..=9_007_199_254_740_992.0).contains(&count) && count.fract() == 0.0;
        Ok(Count(whole.then_some(count as u64)))
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Count, E> {
        Ok(Count(None))
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<Count, E> {
        Ok(Count(None))
    }

    fn visit_unit<E: Error>(self) -> Result<Count, E> {
        Ok(Count(None))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Count, A::Error> {
        while items.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Count(None))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<Count, A::Error> {
        while fields.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
        Ok(Count(None))
    }
}
