//! What a generation request asks for, whatever its dialect.

use serde_json::{Map, Value};

use crate::http::Refusal;

/// Output tokens where the request names no limit.
pub(crate) const DEFAULT_MAX_TOKENS: u32 = 16;

/// The most output tokens a request may ask for.
pub(crate) const MOST_TOKENS: u32 = 131_072;

/// The model's name where the request has none.
pub(crate) const MODEL: &str = "gate-sim";

/// The fields of a request's body.
pub(crate) type Fields = Map<String, Value>;

/// What a request asks for; what the simulated engine has no use for is ignored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ask {
    pub(crate) model: String,
    pub(crate) stream: bool,
    /// Whether there is to be usage, where the dialect gives it on request.
    pub(crate) include_usage: bool,
    pub(crate) max_tokens: u32,
    pub(crate) prompt_tokens: u32,
    /// Whether each event repeats the text before it.
    pub(crate) cumulative: bool,
    /// The embeddings to be made, where it asks for some.
    pub(crate) embeddings: Embeddings,
}

/// What a request for embeddings asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Embeddings {
    /// How many texts there are.
    pub(crate) inputs: usize,
    /// How long each vector is.
    pub(crate) dimensions: u32,
    /// Whether vectors come as base64 of their bytes.
    pub(crate) base64: bool,
}

/// A field that is there and not null.
pub(crate) fn present<'a>(fields: &'a Fields, name: &str) -> Option<&'a Value> {
    fields.get(name).filter(|value| !value.is_null())
}

/// The model asked for.
pub(crate) fn model(fields: &Fields) -> String {
    fields.get("model").and_then(Value::as_str).unwrap_or(MODEL).to_owned()
}

/// The fields of a body, for a dialect without words of its own for one that is wrong.
pub(crate) fn fields(body: &[u8]) -> Result<Fields, Refusal> {
    serde_json::from_slice(body).map_err(|error| Refusal::bad_request(&format!("invalid JSON: {error}")))
}

/// A field that is true or false, false by default.
pub(crate) fn flag(fields: &Fields, name: &str) -> Result<bool, Refusal> {
    match present(fields, name) {
        None => Ok(false),
        Some(Value::Bool(flag)) => Ok(*flag),
        Some(_) => Err(wrong(name, "a boolean")),
    }
}

/// A limit of output tokens, at least 1; [`DEFAULT_MAX_TOKENS`] where there is none.
pub(crate) fn limit(fields: &Fields, name: &str) -> Result<u32, Refusal> {
    let Some(value) = present(fields, name) else { return Ok(DEFAULT_MAX_TOKENS) };
    let tokens = value.as_u64().and_then(|tokens| u32::try_from(tokens).ok());
    let tokens = tokens.filter(|tokens| (1..=MOST_TOKENS).contains(tokens));
    tokens.ok_or_else(|| wrong(name, &format!("an integer from 1 to {MOST_TOKENS}")))
}

/// A map of parameters; empty where there is none.
pub(crate) fn parameters(fields: &Fields, name: &str) -> Result<Fields, Refusal> {
    match present(fields, name) {
        None => Ok(Fields::new()),
        Some(Value::Object(parameters)) => Ok(parameters.clone()),
        Some(_) => Err(wrong(name, "an object")),
    }
}

/// The tokens of a prompt that is a text.
pub(crate) fn text_tokens(fields: &Fields, name: &str) -> Result<u32, Refusal> {
    match present(fields, name) {
        None => Err(Refusal::bad_request(&format!("{name}: missing field")).param(name)),
        Some(Value::String(text)) => Ok(prompt_tokens(text.split_whitespace().count())),
        Some(_) => Err(wrong(name, "a string")),
    }
}

/// A list that has something in it.
pub(crate) fn list<'a>(fields: &'a Fields, name: &str) -> Result<&'a [Value], Refusal> {
    match present(fields, name) {
        Some(Value::Array(items)) if !items.is_empty() => Ok(items),
        _ => Err(wrong(name, "a list that is not empty")),
    }
}

fn wrong(name: &str, expected: &str) -> Refusal {
    Refusal::bad_request(&format!("{name}: must be {expected}")).param(name)
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
