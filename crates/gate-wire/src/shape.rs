//! Pieces of JSON that the dialects share, read without allocating: of generated text only whether there is any.

use std::fmt;
use std::marker::PhantomData;

use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::EventKind;

/// Which kinds of generated content there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Found {
    /// Visible text or a refusal.
    pub(crate) text: bool,
    /// A tool call's name or arguments.
    pub(crate) tool: bool,
    /// Reasoning.
    pub(crate) reasoning: bool,
}

impl Found {
    /// What an event with this content is.
    pub(crate) fn kind(self) -> EventKind {
        match self {
            Self { text: true, .. } => EventKind::Text,
            Self { tool: true, .. } => EventKind::ToolCall,
            Self { reasoning: true, .. } => EventKind::Reasoning,
            Self { .. } => EventKind::Bare,
        }
    }
}

/// Something that may carry generated content.
pub(crate) trait Carries {
    fn carries(&self) -> bool;
}

/// What the items of an array add up to.
pub(crate) trait Absorb<T>: Default {
    fn absorb(&mut self, item: T);
}

impl<T: Carries> Absorb<T> for bool {
    fn absorb(&mut self, item: T) {
        *self |= item.carries();
    }
}

impl<T: Into<Found>> Absorb<T> for Found {
    fn absorb(&mut self, item: T) {
        let found = item.into();
        self.text |= found.text;
        self.tool |= found.tool;
        self.reasoning |= found.reasoning;
    }
}

/// An array, or null, of which only the sum of its items is kept.
pub(crate) struct Fold<S, T> {
    pub(crate) sum: S,
    items: PhantomData<T>,
}

/// Whether any item of an array, or null, carries content.
pub(crate) type AnyOf<T> = Fold<bool, T>;

impl<S: Default, T> Default for Fold<S, T> {
    fn default() -> Self {
        Self { sum: S::default(), items: PhantomData }
    }
}

impl<'de, S: Absorb<T>, T: Deserialize<'de>> Deserialize<'de> for Fold<S, T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_option(Self::default())
    }
}

impl<'de, S: Absorb<T>, T: Deserialize<'de>> Visitor<'de> for Fold<S, T> {
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
        while let Some(item) = items.next_element()? {
            self.sum.absorb(item);
        }
        Ok(self)
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
pub(crate) struct Text(pub(crate) bool);

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_option(TextOrParts).map(|content| Self(content.text || content.reasoning))
    }
}

/// What a string, an array of parts, or null holds.
#[derive(Clone, Copy, Default)]
pub(crate) struct Content {
    pub(crate) text: bool,
    pub(crate) reasoning: bool,
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

/// A count; anything but a number that is one counts as not reported.
#[derive(Clone, Copy, Default)]
pub(crate) struct Count(pub(crate) Option<u64>);

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
