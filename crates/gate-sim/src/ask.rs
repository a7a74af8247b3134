//! What a generation request asks for, whatever its dialect.

use serde_json::{Map, Value};

/// Output tokens where the request names no limit.
pub(crate) const DEFAULT_MAX_TOKENS: u32 = 16;

/// The most output tokens a request may ask for.
pub(crate) const MOST_TOKENS: u32 = 131_072;

/// The model's name where the request has none.
pub(crate) const MODEL: &str = "gate-sim";

/// The fields of a request's body.
pub(crate) type Fields = Map<String, Value>;

/// What a request asks for; what the simulated engine has no use for is ignored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ask {
    pub(crate) model: String,
    pub(crate) stream: bool,
    /// Whether a stream is to have usage; bodies always have it.
    pub(crate) include_usage: bool,
    pub(crate) max_tokens: u32,
    pub(crate) prompt_tokens: u32,
}

/// A field that is there and not null.
pub(crate) fn present<'a>(fields: &'a Fields, name: &str) -> Option<&'a Value> {
    fields.get(name).filter(|value| !value.is_null())
}

/// The model asked for.
pub(crate) fn model(fields: &Fields) -> String {
    fields.get("model").and_then(Value::as_str).unwrap_or(MODEL).to_owned()
}

/// The words of a content: a text, or a list of parts of which some have a text.
pub(crate) fn words(content: &Value) -> usize {
    match content {
        Value::String(text) => text.split_whitespace().count(),
        Value::Array(parts) => parts.iter().filter_map(|part| part.get("text")).map(words).sum(),
        _ => 0,
    }
}

/// The words of all messages.
pub(crate) fn words_of_messages(messages: &[Value]) -> usize {
    messages.iter().filter_map(|message| message.get("content")).map(words).sum()
}

/// About 1.3 tokens a word, as English has with the usual vocabularies.
pub(crate) fn prompt_tokens(words: usize) -> u32 {
    u32::try_from(words.saturating_mul(13).div_ceil(10)).unwrap_or(u32::MAX)
}
