//! Error messages out of JSON, HTML and plain text.

use serde_json::Value;

use crate::StreamError;

/// The longest message, in characters.
const LONGEST: usize = 300;

/// What a body says, in one line; `None` where it says nothing.
pub(crate) fn of_body(body: &[u8]) -> Option<String> {
    let body = body.trim_ascii();
    let said = match body.first()? {
        b'{' | b'[' => serde_json::from_slice(body).ok().and_then(|value| of_value(&value)),
        b'<' => of_page(body),
        _ => None,
    };
    said.or_else(|| one_line(body, LONGEST))
}

/// Whether a JSON object is an error rather than an event.
pub(crate) fn is_error(value: &Value) -> bool {
    let marked = |key: &str| value.get(key).and_then(Value::as_str) == Some("error");
    value.get("error").is_some_and(is_set) || marked("object") || marked("type")
}

/// Whether the value of an `error` field says that there is one.
pub(crate) fn is_set(error: &Value) -> bool {
    !matches!(error, Value::Null | Value::Bool(false)) && error.as_str() != Some("")
}

/// The error in a JSON value: its `error` field, or itself.
pub(crate) fn stream_error(value: &Value) -> StreamError {
    let inner = value.get("error").filter(|error| is_set(error)).unwrap_or(value);
    let field = |key: &str| inner.get(key).or_else(|| value.get(key)).and_then(scalar);
    let code = ["code", "status_code", "status"].into_iter().find_map(|key| field(key)?.parse::<u16>().ok());
    let message = of_value(inner).or_else(|| of_value(value)).unwrap_or_default();
    // `type: "error"` marks an envelope, and says nothing of the kind.
    let kind = field("type").filter(|kind| kind != "error");
    let kind = kind.or_else(|| field("status")).or_else(|| field("code")).or_else(|| field("error_type"));
    let server = code.is_some_and(|code| (500..=599).contains(&code))
        || ["type", "status", "code", "error_type"].into_iter().filter_map(field).any(|word| blames_server(&word))
        || (code.is_none() && blames_server(&message));
    StreamError { kind, message, server }
}

/// An error of which only a text is known.
pub(crate) fn text_error(text: &[u8]) -> StreamError {
    let message = one_line(text, LONGEST).unwrap_or_default();
    StreamError { kind: None, server: blames_server(&message), message }
}

/// Whether a type, code or message means that the server is at fault, whatever its spelling.
pub(crate) fn blames_server(text: &str) -> bool {
    const FAULTS: [&str; 10] = [
        "overloaded",
        "servererror",
        "internalerror",
        "internalserver",
        "unavailable",
        "badgateway",
        "gatewaytimeout",
        "enginedead",
        // Bedrock's: its model broke off, or took too long.
        "modelstreamerror",
        "modeltimeout",
    ];
    let text: String = text.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_ascii_lowercase();
    // Anthropic's names for statuses 500 and 504.
    let exact = ["internal", "apierror", "timeouterror"].contains(&text.as_str());
    exact || FAULTS.iter().any(|fault| text.contains(fault))
}

/// The message in a JSON document, wherever servers put it.
fn of_value(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => one_line(text.as_bytes(), LONGEST),
        Value::Array(items) => items.first().and_then(of_value),
        Value::Object(fields) => {
            ["error", "message", "detail", "details", "msg"].into_iter().find_map(|key| of_value(fields.get(key)?))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => one_line(text.as_bytes(), LONGEST),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// The title of an HTML page, else its text.
fn of_page(body: &[u8]) -> Option<String> {
    let page = String::from_utf8_lossy(body);
    // Lowering ASCII only keeps every offset.
    let lower = page.to_ascii_lowercase();
    let title = lower.find("<title").and_then(|start| {
        let start = start + lower.get(start..)?.find('>')? + 1;
        let end = start + lower.get(start..)?.find("</title")?;
        one_line(page.get(start..end)?.as_bytes(), LONGEST)
    });
    title.or_else(|| {
        let mut in_tag = false;
        let text: String = page
            .chars()
            .filter_map(|character| match character {
                '<' => {
                    in_tag = true;
                    Some(' ')
                }
                '>' if in_tag => {
                    in_tag = false;
                    None
                }
                _ => (!in_tag).then_some(character),
            })
            .collect();
        one_line(text.as_bytes(), LONGEST)
    })
}

/// The text in one line: blanks and control characters become single spaces; cut at `longest` characters.
pub(crate) fn one_line(text: &[u8], longest: usize) -> Option<String> {
    // Four bytes a character, and some for what collapses: a long body is not read to its end.
    let text = text.trim_ascii_start();
    let text = String::from_utf8_lossy(text.get(..longest * 16).unwrap_or(text));
    let mut words = text.split(|character: char| character.is_whitespace() || character.is_control());
    let line = words.by_ref().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    if line.chars().count() <= longest {
        return (!line.is_empty()).then_some(line);
    }
    Some(line.chars().take(longest - 1).chain(['…']).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_message_is_found_wherever_servers_put_it() {
        for (body, message) in [
            (r#"{"error":{"message":"no such model","code":404}}"#, Some("no such model")),
            (r#"{"error":"no such model"}"#, Some("no such model")),
            (r#"{"object":"error","message":"too\nlong","code":400}"#, Some("too long")),
            (r#"{"detail":[{"loc":["body",28],"msg":"JSON decode error"}]}"#, Some("JSON decode error")),
            (r#"[{"error":{"status":"NOT_FOUND","message":"gone"}}]"#, Some("gone")),
            ("<html><head><TITLE>502 Bad\nGateway</TITLE></head></html>", Some("502 Bad Gateway")),
            ("<!doctype html><p>Not <b>here</b></p>", Some("Not here")),
            ("  upstream connect error\r\n\tor timeout  ", Some("upstream connect error or timeout")),
            (r#"{"a":1}"#, Some(r#"{"a":1}"#)),
            ("{broken", Some("{broken")),
            (" \n", None),
        ] {
            assert_eq!(of_body(body.as_bytes()).as_deref(), message, "{body}");
        }
        let long = of_body("é".repeat(1000).as_bytes()).unwrap();
        assert_eq!(long.chars().count(), LONGEST);
        assert!(long.ends_with('…'));
    }

    #[test]
    fn who_is_to_blame() {
        for (error, kind, server) in [
            (json!({"error": {"message": "m", "type": null, "code": "500"}}), Some("500"), true),
            (
                json!({"error": {"message": "m", "type": "overloaded_error"}, "type": "error"}),
                Some("overloaded_error"),
                true,
            ),
            (
                json!({"error": {"message": "m", "type": "InternalServerError", "code": 500}}),
                Some("InternalServerError"),
                true,
            ),
            (json!({"error": {"message": "m", "type": "server_error", "code": null}}), Some("server_error"), true),
            (json!({"error": {"message": "m", "status": "UNAVAILABLE", "code": 503}}), Some("UNAVAILABLE"), true),
            (json!({"type": "error", "error": {"type": "api_error", "message": "m"}}), Some("api_error"), true),
            (json!({"error": {"message": "m", "type": "litellm.APIError: m"}}), Some("litellm.APIError: m"), false),
            (json!({"error": "Service Unavailable"}), None, true),
            (json!({"error": "e", "error_type": "overloaded"}), Some("overloaded"), true),
            (
                json!({"error": {"message": "m", "type": "rate_limit_exceeded", "code": "rate_limit_exceeded"}}),
                Some("rate_limit_exceeded"),
                false,
            ),
            (json!({"error": {"message": "the service unavailable in your country", "code": 403}}), Some("403"), false),
            (json!({"error": {"message": "m", "code": 400}}), Some("400"), false),
            (json!({}), None, false),
        ] {
            let seen = stream_error(&error);
            assert_eq!((seen.kind.as_deref(), seen.server), (kind, server), "{error}");
        }
    }
}
