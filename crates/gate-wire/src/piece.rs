//! How much of generated text is kept: that it is there, or all of it. The shapes of every dialect are written once,
//! over a [`Piece`], so that what counts is read in one place.

use serde::de::{Deserialize, DeserializeOwned, Deserializer, Error, IgnoredAny};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::Transcript;
use crate::pattern::Span;
use crate::shape::{Found, Kinds, text_or_parts};

/// A piece of generated text.
pub(crate) trait Piece: DeserializeOwned + Default + Send + 'static {
    /// A value as the server sent it, for what is reported only with the text.
    type Raw: DeserializeOwned + Default;
    /// Where pieces go.
    type Log: Log<Self>;

    /// The piece that a string is, which may be invalid UTF-8.
    fn of(text: &[u8]) -> Self;

    /// Whether nothing was generated.
    fn is_empty(&self) -> bool;

    /// Appends what comes after it.
    fn join(&mut self, more: Self);

    /// Where it lies, where nothing of it is kept.
    fn span(&self) -> Option<Span> {
        None
    }

    /// The piece that a value is by its JSON; none where only presence is kept, since an object may be empty.
    fn json(raw: Self::Raw) -> Self;

    /// Reads a value, and keeps it as it was sent.
    fn reported<'de, T: DeserializeOwned, D: Deserializer<'de>>(from: D) -> Result<(T, Self::Raw), D::Error>;

    /// This piece, or the other where it is empty.
    #[must_use]
    fn or(self, other: Self) -> Self {
        if self.is_empty() { other } else { self }
    }

    /// This piece, or none where it does not count.
    #[must_use]
    fn only_if(self, counts: bool) -> Self {
        if counts { self } else { Self::default() }
    }
}

/// Where pieces go, and what else is told of a stream with its text. Events are counted from 0.
pub(crate) trait Log<P: Piece>: Default + Send {
    /// Takes what an event carries of one choice.
    fn say(&mut self, event: u64, choice: u64, found: Found<P>);

    /// Takes which kinds of content an event has, of all its choices.
    fn count(&mut self, event: u64, kinds: Kinds);

    /// Takes a choice's finish reason.
    fn finish(&mut self, choice: u64, reason: &str);

    /// Takes a report of usage. `Merge::Fields`: its fields that are not null replace the earlier report's.
    fn usage(&mut self, reported: P::Raw, merge: Merge);

    /// Takes a report of usage whose fields stand among others.
    fn usage_fields<const N: usize>(&mut self, fields: [(&str, P::Raw); N]);

    /// Takes the name of what ended the stream.
    fn end(&mut self, terminator: &str);

    /// Takes something about the framing, or about an event as a whole.
    fn note(&mut self, note: Note);

    /// What was kept.
    fn transcript(&self) -> Option<&Transcript>;
}

/// How a report of usage relates to an earlier one.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Merge {
    /// It replaces it.
    Whole,
    /// It adds to it.
    Fields,
}

/// What is told of a stream besides its text.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Note {
    /// A comment line.
    Comment,
    /// An event that is not JSON.
    Unparseable,
    /// The end of the body gave an event that had not ended.
    Pending,
}

/// Only whether there is any text, and where: of several, the first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Presence(Span);

impl<'de> Deserialize<'de> for Presence {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        text_or_parts(from)
    }
}

impl Piece for Presence {
    type Raw = Unread;
    type Log = ();

    fn of(text: &[u8]) -> Self {
        Self(Span::of(text))
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn join(&mut self, more: Self) {
        *self = self.or(more);
    }

    fn span(&self) -> Option<Span> {
        (!self.0.is_empty()).then_some(self.0)
    }

    fn json(_: Unread) -> Self {
        Self::default()
    }

    fn reported<'de, T: DeserializeOwned, D: Deserializer<'de>>(from: D) -> Result<(T, Unread), D::Error> {
        T::deserialize(from).map(|value| (value, Unread))
    }
}

/// A value that is skipped.
#[derive(Default)]
pub(crate) struct Unread;

impl<'de> Deserialize<'de> for Unread {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        IgnoredAny::deserialize(from).map(|_| Self)
    }
}

impl Log<Presence> for () {
    fn say(&mut self, _: u64, _: u64, _: Found<Presence>) {}

    fn count(&mut self, _: u64, _: Kinds) {}

    fn finish(&mut self, _: u64, _: &str) {}

    fn usage(&mut self, _: Unread, _: Merge) {}

    fn usage_fields<const N: usize>(&mut self, _: [(&str, Unread); N]) {}

    fn end(&mut self, _: &str) {}

    fn note(&mut self, _: Note) {}

    fn transcript(&self) -> Option<&Transcript> {
        None
    }
}

/// The text itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Kept(pub(crate) String);

impl<'de> Deserialize<'de> for Kept {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        text_or_parts(from)
    }
}

impl Piece for Kept {
    type Raw = Raw;
    type Log = Transcript;

    fn of(text: &[u8]) -> Self {
        Self(String::from_utf8_lossy(text).into_owned())
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn join(&mut self, more: Self) {
        if self.0.is_empty() {
            *self = more;
        } else {
            self.0.push_str(&more.0);
        }
    }

    fn json(raw: Raw) -> Self {
        Self(raw.0.map(|raw| raw.get().to_owned()).unwrap_or_default())
    }

    fn reported<'de, T: DeserializeOwned, D: Deserializer<'de>>(from: D) -> Result<(T, Raw), D::Error> {
        let raw = Box::<RawValue>::deserialize(from)?;
        let value = serde_json::from_str(raw.get()).map_err(D::Error::custom)?;
        Ok((value, Raw(Some(raw))))
    }
}

/// A value as it was sent.
#[derive(Default)]
pub(crate) struct Raw(Option<Box<RawValue>>);

impl<'de> Deserialize<'de> for Raw {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        Box::<RawValue>::deserialize(from).map(|raw| Self(Some(raw)))
    }
}

impl Raw {
    /// The value; absent where it is absent or null, or holds what no JSON value can, such as `1e999`.
    pub(crate) fn value(&self) -> Option<Value> {
        let value = serde_json::from_str(self.0.as_ref()?.get()).ok()?;
        (value != Value::Null).then_some(value)
    }
}

/// A value that is read, and reported as it was sent.
#[derive(Default)]
pub(crate) struct Reported<P: Piece, T> {
    pub(crate) value: T,
    pub(crate) raw: P::Raw,
}

impl<'de, P: Piece, T: DeserializeOwned> Deserialize<'de> for Reported<P, T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        P::reported(from).map(|(value, raw)| Self { value, raw })
    }
}
