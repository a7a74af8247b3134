//! What OpenAI's two dialects share: fields, errors, chunks.

use serde::{Serialize, Serializer};
use serde_json::{Value, json};

use super::{DONE, Reply, event};
use crate::ask::{DEFAULT_MAX_TOKENS, Fields, MOST_TOKENS, present};
use crate::http::Refusal;

/// The words of the engine's own failure.
pub(super) const FAILURE: &str = "The server had an error while processing your request. Sorry about that!";

/// What names the engine behind the model.
const FINGERPRINT: &str = "fp_gate_sim";

/// The words of credentials that are not taken.
pub(super) const UNAUTHORISED: &str = "Incorrect API key provided.";

/// The words of too many requests.
pub(super) const RATE_LIMIT: &str = "Rate limit reached for requests. Please try again in 1s.";

pub(super) fn refusal(refusal: &Refusal) -> Value {
    let (kind, code) = match refusal.status {
        429 => ("requests", Some("rate_limit_exceeded")),
        500.. => ("server_error", None),
        _ => ("invalid_request_error", refusal.code),
    };
    json!({"error": {"message": refusal.message, "type": kind, "param": refusal.param, "code": code}})
}

pub(super) fn embedded_failure() -> Value {
    json!({"error": {"message": FAILURE, "type": "server_error", "param": null, "code": 500}})
}

/// The fields of a body.
pub(super) fn fields(body: &[u8]) -> Result<Fields, Refusal> {
    let message = "We could not parse the JSON body of your request. (HINT: This likely means you aren't using your \
                   HTTP library correctly. The OpenAI API expects a JSON payload, but what was sent was not valid \
                   JSON.)";
    serde_json::from_slice(body).map_err(|_| Refusal::bad_request(message))
}

/// Whether a stream is asked for, and whether it is to have usage.
pub(super) fn delivery(fields: &Fields) -> Result<(bool, bool), Refusal> {
    let stream = flag(fields, "stream", "stream")?;
    let include_usage = match present(fields, "stream_options") {
        None => false,
        Some(_) if !stream => {
            let message = "The 'stream_options' parameter is only allowed when 'stream' is enabled.";
            return Err(Refusal::bad_request(message).param("stream_options"));
        }
        Some(Value::Object(options)) => flag(options, "include_usage", "stream_options.include_usage")?,
        Some(other) => return Err(wrong_type("stream_options", "an object", other)),
    };
    Ok((stream, include_usage))
}

/// A field that is true or false, false by default; `path` names it in an error.
pub(super) fn flag(fields: &Fields, name: &str, path: &str) -> Result<bool, Refusal> {
    match present(fields, name) {
        None => Ok(false),
        Some(Value::Bool(flag)) => Ok(*flag),
        Some(other) => Err(wrong_type(path, "a boolean", other)),
    }
}

/// The first of these limits that is given.
pub(super) fn max_tokens(fields: &Fields, names: &[&str]) -> Result<u32, Refusal> {
    for name in names {
        if let Some(limit) = limit(fields, name)? {
            return Ok(limit);
        }
    }
    Ok(DEFAULT_MAX_TOKENS)
}

fn limit(fields: &Fields, name: &str) -> Result<Option<u32>, Refusal> {
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

pub(super) fn missing(name: &str) -> Refusal {
    Refusal::bad_request(&format!("Missing required parameter: '{name}'.")).param(name)
}

pub(super) fn wrong_type(name: &str, expected: &str, value: &Value) -> Refusal {
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

/// How the two dialects name their objects.
#[derive(Clone, Copy)]
pub(super) struct Names {
    /// What an id begins with.
    pub(super) id: &'static str,
    /// The object of a stream.
    pub(super) chunk: &'static str,
    /// The object of one body.
    pub(super) whole: &'static str,
}

/// A chunk, or the whole answer.
#[derive(Serialize)]
struct Object<'a, C> {
    id: Id,
    object: &'static str,
    created: u64,
    model: &'a str,
    system_fingerprint: &'static str,
    choices: C,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<Value>,
}

/// An id, from its beginning and the request's number.
struct Id(&'static str, u32);

impl Serialize for Id {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{}-sim-{}", self.0, self.1))
    }
}

/// A chunk of the stream; only with `include_usage` does it have a usage, null in all but the last.
pub(super) fn chunk(reply: &Reply<'_>, names: Names, choice: impl Serialize, out: &mut Vec<u8>) {
    let usage = reply.ask.include_usage.then_some(Value::Null);
    event(out, &object(reply, names.id, names.chunk, [choice], usage));
}

/// The last choice, the usage where it was asked for, the end mark.
pub(super) fn closing(reply: &Reply<'_>, names: Names, last: impl Serialize, out: &mut Vec<u8>) {
    chunk(reply, names, last, out);
    if reply.ask.include_usage {
        event(out, &object(reply, names.id, names.chunk, [(); 0], Some(usage(reply))));
    }
    out.extend(DONE);
}

/// The engine's own failure inside a stream, and the end mark.
pub(super) fn broken_stream(out: &mut Vec<u8>) {
    event(out, &embedded_failure());
    out.extend(DONE);
}

/// The whole answer.
pub(super) fn whole(reply: &Reply<'_>, names: Names, choice: Value) -> Value {
    let usage = Some(usage(reply));
    json!(object(reply, names.id, names.whole, [choice], usage))
}

fn object<'a, C>(
    reply: &'a Reply<'_>,
    id: &'static str,
    object: &'static str,
    choices: C,
    usage: Option<Value>,
) -> Object<'a, C> {
    Object {
        id: Id(id, reply.number),
        object,
        created: reply.created(),
        model: &reply.ask.model,
        system_fingerprint: FINGERPRINT,
        choices,
        usage,
    }
}

fn usage(reply: &Reply<'_>) -> Value {
    let mut usage = json!({
        "prompt_tokens": reply.ask.prompt_tokens,
        "completion_tokens": reply.tokens,
        "total_tokens": reply.total_tokens(),
    });
    if let (Some(cached), Some(usage)) = (reply.cached, usage.as_object_mut()) {
        usage.insert("prompt_tokens_details".to_owned(), json!({"cached_tokens": cached}));
    }
    usage
}
