//! What a forge says, in one short line that holds no secret.

use gate_model::Redactor;
use http::StatusCode;
use serde_json::Value;

use crate::http::Answer;

/// The most characters of a forge's words.
const LONGEST: usize = 300;
/// The most bytes of an answer that are read for its words.
const READ: usize = 64 << 10;

/// The words in an error's body: GitHub's `message` and `errors`, GitLab's `message`, `error` or
/// `error_description`; else its text; else the status's name.
pub(super) fn message(answer: &Answer, redactor: &Redactor) -> String {
    let read = answer.body.get(..READ).unwrap_or(&answer.body);
    let words = match serde_json::from_slice::<Value>(read) {
        Ok(Value::Object(object)) => {
            let mut words = Vec::new();
            for name in ["message", "error", "error_description", "errors"] {
                object.get(name).into_iter().for_each(|value| gather(value, &mut words));
            }
            words.join("; ")
        }
        Ok(Value::String(text)) => text,
        Ok(_) => String::new(),
        Err(_) => String::from_utf8_lossy(read).trim_start().to_owned(),
    };
    let is_markup = words.starts_with('<');
    let line = one_line(&redactor.redact(&words));
    if line.is_empty() || is_markup {
        let status = StatusCode::from_u16(answer.status).ok();
        return status.and_then(|status| status.canonical_reason()).unwrap_or_default().to_lowercase();
    }
    line
}

/// One line of at most [`LONGEST`] characters, without characters that move a cursor or turn text around.
pub(super) fn one_line(text: &str) -> String {
    let is_blank = |c: char| c.is_whitespace() || c.is_control();
    let is_turning = |c: char| matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let line = text.split(is_blank).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    let mut line: String = line.chars().filter(|c| !is_turning(*c)).collect();
    if let Some((cut, _)) = line.char_indices().nth(LONGEST) {
        let kept = line.char_indices().nth(LONGEST - 1).map_or(cut, |(at, _)| at);
        line.truncate(kept);
        line.push('…');
    }
    line
}

/// All the texts in a value, such as `{"note": ["is too long"]}`, except what only names a place in the request.
fn gather(value: &Value, words: &mut Vec<String>) {
    match value {
        Value::String(text) if !text.is_empty() => words.push(text.clone()),
        Value::Array(items) => items.iter().for_each(|item| gather(item, words)),
        Value::Object(object) => match object.get("message") {
            Some(message) => gather(message, words),
            None => object
                .iter()
                .filter(|(name, _)| !matches!(name.as_str(), "resource" | "field"))
                .for_each(|(_, value)| gather(value, words)),
        },
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use gate_model::Secret;
    use http::HeaderMap;

    use super::*;

    fn said(status: u16, body: &str) -> String {
        let redactor = Redactor::new(&[Secret::new("ghs_hunter22")]);
        message(&Answer { status, headers: HeaderMap::new(), body: Bytes::copy_from_slice(body.as_bytes()) }, &redactor)
    }

    #[test]
    fn the_forges_own_words_are_found() {
        assert_eq!(said(403, r#"{"message":"Resource not accessible","status":"403"}"#), "Resource not accessible");
        let github = r#"{"message":"Validation Failed","errors":[{"resource":"IssueComment","code":"unprocessable",
            "field":"data","message":"Body is too long"}]}"#;
        assert_eq!(said(422, github), "Validation Failed; Body is too long");
        assert_eq!(said(400, r#"{"message":{"note":["is too long"]}}"#), "is too long");
        assert_eq!(said(401, r#"{"error":"invalid_token","error_description":"Expired"}"#), "invalid_token; Expired");
        assert_eq!(said(502, "<html><h1>Bad Gateway</h1></html>"), "bad gateway");
        assert_eq!(said(502, ""), "bad gateway");
        assert_eq!(said(500, "[1]"), "internal server error");
        assert_eq!(said(503, "upstream\r\n\tis  down"), "upstream is down");
    }

    #[test]
    fn they_hold_no_secret_no_escape_and_are_short() {
        assert_eq!(said(400, r#"{"message":"bad token ghs_hunter22"}"#), "bad token ***");
        assert_eq!(said(400, "\u{1b}[31mred\u{202e}der"), "[31mredder");
        let long = said(400, &"ä".repeat(1000));
        assert_eq!(long.chars().count(), LONGEST);
        assert!(long.ends_with('…'));
        // Words that are cut do not end in the first part of a secret.
        let cut = said(400, &format!("{}ghs_hunter22", "x".repeat(LONGEST - 5)));
        assert!(!cut.contains("ghs"), "{cut}");
    }
}
