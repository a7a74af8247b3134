//! Pieces of JSON that the dialects share. Where only the presence of text is asked for, nothing allocates.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use crate::EventKind;
use crate::pattern::Span;
use crate::piece::Piece;

/// Which kinds of generated content there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Kinds {
    /// Visible text.
    pub(crate) text: bool,
    /// A refusal.
    pub(crate) refusal: bool,
    /// A tool call's name or arguments.
    pub(crate) tool: bool,
    /// Reasoning.
    pub(crate) reasoning: bool,
}

impl Kinds {
    /// These and those.
    pub(crate) fn add(&mut self, more: Self) {
        self.text |= more.text;
        self.refusal |= more.refusal;
        self.tool |= more.tool;
        self.reasoning |= more.reasoning;
    }

    /// What an event with this content is.
    pub(crate) fn event(self) -> EventKind {
        match self {
            Self { text: true, .. } | Self { refusal: true, .. } => EventKind::Text,
            Self { tool: true, .. } => EventKind::ToolCall,
            Self { reasoning: true, .. } => EventKind::Reasoning,
            Self { .. } => EventKind::Bare,
        }
    }
}

/// Generated content.
#[derive(Debug, Default)]
pub(crate) struct Found<P> {
    /// Visible text.
    pub(crate) text: P,
    /// A refusal.
    pub(crate) refusal: P,
    /// A tool call's name or arguments.
    pub(crate) tool: P,
    /// Reasoning.
    pub(crate) reasoning: P,
    /// Whether there is opaque data, such as a signature, which is not content.
    pub(crate) opaque: bool,
}

impl<P: Piece> Found<P> {
    /// A tool call.
    pub(crate) fn tool(name: P, arguments: P) -> Self {
        let mut tool = name;
        tool.join(arguments);
        Self { tool, ..Self::default() }
    }

    /// Which kinds there are.
    pub(crate) fn kinds(&self) -> Kinds {
        Kinds {
            text: !self.text.is_empty(),
            refusal: !self.refusal.is_empty(),
            tool: !self.tool.is_empty(),
            reasoning: !self.reasoning.is_empty(),
        }
    }

    /// Whether anything was generated.
    pub(crate) fn is_content(&self) -> bool {
        self.kinds() != Kinds::default()
    }

    /// Where a piece of it lies, where nothing of it is kept.
    pub(crate) fn span(&self) -> Option<Span> {
        [&self.text, &self.refusal, &self.tool, &self.reasoning].into_iter().find_map(P::span)
    }

    /// Appends what comes after it.
    pub(crate) fn join(&mut self, more: Self) {
        self.text.join(more.text);
        self.refusal.join(more.refusal);
        self.tool.join(more.tool);
        self.reasoning.join(more.reasoning);
        self.opaque |= more.opaque;
    }
}

/// An array, or null, of which only the content of its items is kept, joined.
pub(crate) struct Joined<P, T> {
    pub(crate) found: Found<P>,
    items: PhantomData<fn() -> T>,
}

impl<P: Piece, T> Default for Joined<P, T> {
    fn default() -> Self {
        Self { found: Found::default(), items: PhantomData }
    }
}

impl<'de, P: Piece, T: Deserialize<'de> + Into<Found<P>>> Deserialize<'de> for Joined<P, T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let mut joined = Self::default();
        let each = |item: T| joined.found.join(item.into());
        from.deserialize_option(Each { each, items: PhantomData })?;
        Ok(joined)
    }
}

/// An array, a single item, or null, of which only the content is kept, joined.
pub(crate) struct OneOrMany<P, T> {
    pub(crate) found: Found<P>,
    items: PhantomData<fn() -> T>,
}

impl<P: Piece, T> Default for OneOrMany<P, T> {
    fn default() -> Self {
        Self { found: Found::default(), items: PhantomData }
    }
}

impl<'de, P: Piece, T: Deserialize<'de> + Into<Found<P>>> Deserialize<'de> for OneOrMany<P, T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Self::default())
    }
}

impl<'de, P: Piece, T: Deserialize<'de> + Into<Found<P>>> Visitor<'de> for OneOrMany<P, T> {
    type Value = Self;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an array, an object, or null")
    }

    fn visit_unit<E: Error>(self) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<Self, A::Error> {
        while let Some(item) = items.next_element::<T>()? {
            self.found.join(item.into());
        }
        Ok(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<Self, A::Error> {
        let item = T::deserialize(MapAccessDeserializer::new(fields))?;
        Ok(Self { found: item.into(), items: PhantomData })
    }
}

/// An array, or null, that rarely has more than one item: one is kept without allocating.
pub(crate) struct Few<T> {
    first: Option<T>,
    more: Vec<T>,
}

impl<T> Default for Few<T> {
    fn default() -> Self {
        Self { first: None, more: Vec::new() }
    }
}

impl<T> IntoIterator for Few<T> {
    type Item = T;
    type IntoIter = std::iter::Chain<std::option::IntoIter<T>, std::vec::IntoIter<T>>;

    fn into_iter(self) -> Self::IntoIter {
        self.first.into_iter().chain(self.more)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Few<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let mut few = Self::default();
        let each = |item| match few.first {
            None => few.first = Some(item),
            Some(_) => few.more.push(item),
        };
        from.deserialize_option(Each { each, items: PhantomData })?;
        Ok(few)
    }
}

/// Visits the items of an array, or null.
struct Each<F, T> {
    each: F,
    items: PhantomData<fn() -> T>,
}

impl<'de, F: FnMut(T), T: Deserialize<'de>> Visitor<'de> for Each<F, T> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an array or null")
    }

    fn visit_none<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_some<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_seq(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<(), A::Error> {
        while let Some(item) = items.next_element()? {
            (self.each)(item);
        }
        Ok(())
    }
}

/// A part of a content array (Mistral).
#[derive(Default, serde::Deserialize)]
#[serde(default, bound(deserialize = "P: Piece"))]
struct Part<P> {
    text: P,
    thinking: P,
}

/// The text of a string, an array of parts, or null.
pub(crate) fn text_or_parts<'de, P: Piece, D: Deserializer<'de>>(from: D) -> Result<P, D::Error> {
    let content = Content::deserialize(from)?;
    let mut piece: P = content.text;
    piece.join(content.reasoning);
    Ok(piece)
}

/// What a string, an array of parts, or null holds. Read as bytes: text may be invalid UTF-8, or half a surrogate pair.
#[derive(Default)]
pub(crate) struct Content<P> {
    pub(crate) text: P,
    pub(crate) reasoning: P,
}

impl<'de, P: Piece> Deserialize<'de> for Content<P> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_option(TextOrParts(PhantomData))
    }
}

struct TextOrParts<P>(PhantomData<fn() -> P>);

impl<'de, P: Piece> Visitor<'de> for TextOrParts<P> {
    type Value = Content<P>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a string, an array of parts, or null")
    }

    fn visit_none<E: Error>(self) -> Result<Content<P>, E> {
        Ok(Content::default())
    }

    fn visit_some<D: Deserializer<'de>>(self, from: D) -> Result<Content<P>, D::Error> {
        from.deserialize_bytes(self)
    }

    fn visit_bytes<E: Error>(self, text: &[u8]) -> Result<Content<P>, E> {
        Ok(Content { text: P::of(text), reasoning: P::default() })
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Content<P>, A::Error> {
        let mut content = Content::<P>::default();
        while let Some(part) = parts.next_element::<Part<P>>()? {
            content.text.join(part.text);
            content.reasoning.join(part.thinking);
        }
        Ok(content)
    }
}

/// A name, such as a model's or an id; anything but a string counts as none.
#[derive(Default)]
pub(crate) struct Name<'a>(Option<Cow<'a, str>>);

impl Name<'_> {
    /// The name, unless it is empty.
    pub(crate) fn get(&self) -> Option<&str> {
        self.0.as_deref().filter(|name| !name.is_empty())
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Name<'a> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(AnyName)
    }
}

struct AnyName;

impl<'de> Visitor<'de> for AnyName {
    type Value = Name<'de>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a name")
    }

    fn visit_borrowed_str<E: Error>(self, name: &'de str) -> Result<Name<'de>, E> {
        Ok(Name(Some(Cow::Borrowed(name))))
    }

    fn visit_str<E: Error>(self, name: &str) -> Result<Name<'de>, E> {
        Ok(Name(Some(Cow::Owned(name.to_owned()))))
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<Name<'de>, E> {
        Ok(Name(None))
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<Name<'de>, E> {
        Ok(Name(None))
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<Name<'de>, E> {
        Ok(Name(None))
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<Name<'de>, E> {
        Ok(Name(None))
    }

    fn visit_unit<E: Error>(self) -> Result<Name<'de>, E> {
        Ok(Name(None))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<Name<'de>, A::Error> {
        IgnoredAny.visit_seq(items).map(|_| Name(None))
    }

    fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<Name<'de>, A::Error> {
        IgnoredAny.visit_map(fields).map(|_| Name(None))
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

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<Count, A::Error> {
        IgnoredAny.visit_seq(items).map(|_| Count(None))
    }

    fn visit_map<A: MapAccess<'de>>(self, fields: A) -> Result<Count, A::Error> {
        IgnoredAny.visit_map(fields).map(|_| Count(None))
    }
}
