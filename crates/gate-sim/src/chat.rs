//! Requests of the dialect: OpenAI chat completions.

use serde_json::{Map, Value};

use crate::http::Refusal;

/// Output tokens where the request names no limit.
const DEFAULT_MAX_TOKENS: u32 = 16;

/// The most output tokens a request may ask for.
const MOST_TOKENS: u32 = 131_072;

/// What a request asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChatRequest {
    pub(crate) model: String,
    pub(crate) stream: bool,
    pub(crate) include_usage: bool,
    pub(crate) max_tokens: u32,
    pub(crate) prompt_tokens: u32,
}

impl ChatRequest {
    /// Reads a body; what the simulated engine has no use for is ignored.
    pub(crate) fn parse(body: &[u8]) -> Result<Self, Refusal> {
        let Ok(Value::Object(fields)) = serde_json::from_slice(body) else {
            let message = "We could not parse the JSON body of your request. (HINT: This likely means you aren't using \
                           your HTTP library correctly. The OpenAI API expects a JSON payload, but what was sent was \
                           not valid JSON.)";
            return Err(Refusal::bad_request(message));
        };
        let stream = flag(&fields, "stream", "stream")?;
        let include_usage = match present(&fields, "stream_options") {
            None => false,
            Some(_) if !stream => {
                let message = "The 'stream_options' parameter is only allowed when 'stream' is enabled.";
                return Err(Refusal::bad_request(message).param("stream_options"));
            }
            Some(Value::Object(options)) => flag(options, "include_usage", "stream_options.include_usage")?,
            Some(other) => return Err(wrong_type("stream_options", "an object", other)),
        };
        let max_tokens = match limit(&fields, "max_completion_tokens")? {
            Some(limit) => limit,
            None => limit(&fields, "max_tokens")?.unwrap_or(DEFAULT_MAX_TOKENS),
        };
        Ok(Self {
            model: fields.get("model").and_then(Value::as_str).unwrap_or("gate-sim").to_owned(),
            stream,
            include_usage,
            max_tokens,
            prompt_tokens: prompt_tokens(&fields)?,
        })
    }
}

/// A field that is there and not null.
fn present<'a>(fields: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    fields.get(name).filter(|value| !value.is_null())
}

fn flag(fields: &Map<String, Value>, name: &str, path: &str) -> Result<bool, Refusal> {
    match present(fields, name) {
        None => Ok(false),
        Some(Value::Bool(flag)) => Ok(*flag),
        Some(other) => Err(wrong_type(path, "a boolean", other)),
    }
}

fn limit(fields: &Map<String, Value>, name: &str) -> Result<Option<u32>, Refusal> {
    let Some(value) = present(fields, name) else { return Ok(None) };
    let refused = |message: String| Err(Refusal::bad_request(&message).param(name));
    match value.as_u64() {
        Some(0) => {
            refused(format!("Invalid '{name}': integer below minimum value. Expected a value >= 1, but got 0 instead."))
        }
        Some(tokens) => match u32::try_from(tokens) {
            Ok(tokens) if tokens <= MOST_TOKENS => Ok(Some(tokens)),
            _ => refused(format!(
                "{name} is too large: {tokens}. This model supports at most {MOST_TOKENS} completion tokens, whereas \
                 you provided {tokens}."
            )),
        },
        None if value.as_i64().is_some() => refused(format!(
            "Invalid '{name}': integer below minimum value. Expected a value >= 1, but got {value} instead."
        )),
        None => Err(wrong_type(name, "an integer", value)),
    }
}

/// About 1.3 tokens a word, as English has with the usual vocabularies.
fn prompt_tokens(fields: &Map<String, Value>) -> Result<u32, Refusal> {
    let messages = match present(fields, "messages") {
        None => return Err(Refusal::bad_request("Missing required parameter: 'messages'.").param("messages")),
        Some(Value::Array(messages)) if messages.is_empty() => {
            let message = "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty \
                           array instead.";
            return Err(Refusal::bad_request(message).param("messages"));
        }
        Some(Value::Array(messages)) => messages,
        Some(other) => return Err(wrong_type("messages", "an array of objects", other)),
    };
    let mut words = 0;
    for (position, message) in messages.iter().enumerate() {
        let Value::Object(message) = message else {
            return Err(wrong_type(&format!("messages[{position}]"), "an object", message));
        };
        words += match message.get("content") {
            Some(Value::String(text)) => text.split_whitespace().count(),
            Some(Value::Array(parts)) => parts
                .iter()
                .filter_map(|part| part.get("text")?.as_str())
                .map(|text| text.split_whitespace().count())
                .sum(),
            _ => 0,
        };
    }
    Ok(u32::try_from(words.saturating_mul(13).div_ceil(10)).unwrap_or(u32::MAX))
}

fn wrong_type(name: &str, expected: &str, value: &Value) -> Refusal {
    let found = match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(number) if number.is_f64() => "a decimal number",
        Value::Number(_) => "an integer",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    };
    Refusal::bad_request(&format!("Invalid type for '{name}': expected {expected}, but got {found} instead."))
        .param(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(body: &str) -> Result<ChatRequest, String> {
        ChatRequest::parse(body.as_bytes()).map_err(|refusal| refusal.message)
    }

    #[test]
    fn reads_what_matters_and_ignores_the_rest() {
        let body = r#"{"model":"m","messages":[{"role":"system","content":"one two three"},
            {"role":"user","content":[{"type":"text","text":"four five"},{"type":"image_url"}]}],
            "stream":true,"stream_options":{"include_usage":true},"max_tokens":7,"temperature":0.5}"#;
        let expected =
            ChatRequest { model: "m".into(), stream: true, include_usage: true, max_tokens: 7, prompt_tokens: 7 };
        assert_eq!(parse(body), Ok(expected));
        let plain = parse(r#"{"messages":[{"role":"user"}],"stream":null}"#).unwrap();
        assert_eq!((plain.stream, plain.include_usage, plain.max_tokens, plain.prompt_tokens), (false, false, 16, 0));
        let both = parse(r#"{"messages":[{}],"max_completion_tokens":3,"max_tokens":9}"#).unwrap();
        assert_eq!(both.max_tokens, 3);
    }

    #[test]
    fn refuses_in_the_words_of_the_dialect() {
        for (body, message) in [
            ("", "We could not parse the JSON body"),
            ("[]", "We could not parse the JSON body"),
            ("{}", "Missing required parameter: 'messages'."),
            (r#"{"messages":"hi"}"#, "expected an array of objects, but got a string"),
            (r#"{"messages":[]}"#, "Invalid 'messages': empty array."),
            (r#"{"messages":["hi"]}"#, "Invalid type for 'messages[0]': expected an object, but got a string"),
            (r#"{"messages":[{}],"max_tokens":0}"#, "Expected a value >= 1, but got 0"),
            (r#"{"messages":[{}],"max_tokens":-4}"#, "Expected a value >= 1, but got -4"),
            (r#"{"messages":[{}],"max_tokens":1.5}"#, "expected an integer, but got a decimal number"),
            (r#"{"messages":[{}],"max_tokens":99999999999}"#, "max_tokens is too large: 99999999999."),
            (r#"{"messages":[{}],"stream":"yes"}"#, "Invalid type for 'stream': expected a boolean"),
            (r#"{"messages":[{}],"stream_options":{}}"#, "only allowed when 'stream' is enabled"),
        ] {
            let refusal = parse(body).unwrap_err();
            assert!(refusal.contains(message), "{body}: {refusal}");
        }
    }
}
