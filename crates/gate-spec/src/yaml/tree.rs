//! The tree: nodes with their places.

use serde_yaml::{Number, Value};

/// A stretch of the source; lines and columns from 1, in characters, the end exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Span {
    pub(crate) line: u32,
    pub(crate) column: u32,
    pub(crate) end_line: u32,
    pub(crate) end_column: u32,
}

impl Span {
    /// The part of a one-line span that starts `offset` characters in.
    pub(crate) fn part(self, offset: u32, length: u32) -> Self {
        let column = self.column.saturating_add(offset);
        Self { column, end_line: self.line, end_column: column.saturating_add(length), ..self }
    }
}

/// Where something was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Site {
    /// Nowhere: it is about the whole file.
    Whole,
    /// In the file.
    Text(Span),
    /// In the overlay of this index.
    Flag(usize),
}

/// How a scalar was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    /// Without quotes.
    Plain,
    /// In single or double quotes.
    Quoted,
    /// As a block of text.
    Block,
}

/// A scalar's text, not yet of any type.
#[derive(Clone, Debug)]
pub(crate) struct Scalar {
    pub(crate) text: String,
    pub(crate) style: Style,
}

/// A key of a mapping.
#[derive(Clone, Debug)]
pub(crate) struct Key {
    pub(crate) text: String,
    pub(crate) site: Site,
    /// Whether its value has an anchor.
    pub(crate) anchored: bool,
}

/// A key with its value.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: Key,
    pub(crate) value: Node,
}

/// What a node holds.
#[derive(Clone, Debug)]
pub(crate) enum Content {
    Scalar(Scalar),
    Sequence(Vec<Node>),
    /// Keys are distinct: the reader reports and drops repeated ones.
    Mapping(Vec<Entry>),
}

/// A node with its place.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) site: Site,
    pub(crate) content: Content,
}

impl Node {
    /// A scalar written without quotes.
    pub(crate) fn plain(text: impl Into<String>, site: Site) -> Self {
        Self { site, content: Content::Scalar(Scalar { text: text.into(), style: Style::Plain }) }
    }

    /// Whether nothing, `~` or `null` was written.
    pub(crate) fn is_null(&self) -> bool {
        matches!(&self.content, Content::Scalar(Scalar { text, style: Style::Plain })
            if matches!(text.as_str(), "" | "~" | "null" | "Null" | "NULL"))
    }

    /// What the node is, for messages.
    pub(crate) fn noun(&self) -> &'static str {
        match self.content {
            Content::Scalar(_) => "a single value",
            Content::Sequence(_) => "a list",
            Content::Mapping(_) => "a map",
        }
    }

    /// How many nodes and bytes of text a copy costs.
    pub(crate) fn weight(&self) -> (usize, usize) {
        let sum = |left: (usize, usize), right: (usize, usize)| (left.0 + right.0, left.1 + right.1);
        match &self.content {
            Content::Scalar(scalar) => (1, scalar.text.len()),
            Content::Sequence(items) => items.iter().map(Self::weight).fold((1, 0), sum),
            Content::Mapping(entries) => {
                entries.iter().map(|entry| sum(entry.value.weight(), (1, entry.key.text.len()))).fold((1, 0), sum)
            }
        }
    }

    /// How many levels of lists and maps it holds, itself included.
    pub(crate) fn height(&self) -> usize {
        match &self.content {
            Content::Scalar(_) => 0,
            Content::Sequence(items) => 1 + items.iter().map(Self::height).max().unwrap_or(0),
            Content::Mapping(entries) => 1 + entries.iter().map(|entry| entry.value.height()).max().unwrap_or(0),
        }
    }
}

/// A plain scalar's value by YAML 1.2's core schema: null, true and false, integers, floats, else text.
pub(crate) fn core_value(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" => return Value::Bool(true),
        "false" | "False" | "FALSE" => return Value::Bool(false),
        _ => {}
    }
    let prefixed =
        |prefix: &str, radix| text.strip_prefix(prefix).and_then(|digits| u64::from_str_radix(digits, radix).ok());
    if let Some(number) = prefixed("0x", 16).or_else(|| prefixed("0o", 8)) {
        return Value::from(number);
    }
    let starts_as_number = text.starts_with(|first: char| first.is_ascii_digit() || "+-.".contains(first));
    let digits = text.bytes().any(|byte| byte.is_ascii_digit());
    let numeric = text.bytes().all(|byte| byte.is_ascii_digit() || b"+-.eE".contains(&byte));
    if !(starts_as_number && digits && numeric) {
        return Value::from(text);
    }
    if let Ok(number) = text.parse::<i64>() {
        return Value::from(number);
    }
    if let Ok(number) = text.parse::<u64>() {
        return Value::from(number);
    }
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() => Value::Number(Number::from(number)),
        _ => Value::from(text),
    }
}
