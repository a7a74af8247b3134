//! Secrets: a type that never prints itself, and a filter for everything that leaves the process.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// What stands in a secret's place.
pub const REDACTED: &str = "***";

/// A text that is never printed, logged or serialised; [`Secret::expose`] is the only way to it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Takes a text into custody.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself, for the one place that sends it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(REDACTED)
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(REDACTED)
    }
}

impl<'de> Deserialize<'de> for Secret {
    /// Reads any text: a journal holds [`REDACTED`], which is enough to judge.
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from).map(Self)
    }
}

/// Replaces known secrets in text, in the forms they take in JSON, URLs, XML, HTML and Base64, in upper and lower
/// case. A peer that was sent a secret and sets out to disguise it can always do so; this is for those that echo it.
#[derive(Clone, Default)]
pub struct Redactor {
    /// In lower case, longest first, so that no part of a longer secret is left standing.
    forms: Vec<String>,
}

impl fmt::Debug for Redactor {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Redactor({} forms)", self.forms.len())
    }
}

impl Redactor {
    /// Secrets shorter than this are not searched for: they would blank out ordinary text.
    pub const SHORTEST: usize = 6;

    /// A filter for these secrets.
    #[must_use]
    pub fn new<'a>(secrets: impl IntoIterator<Item = &'a Secret>) -> Self {
        let mut redactor = Self::default();
        redactor.add(secrets);
        redactor
    }

    /// Adds secrets to the filter.
    pub fn add<'a>(&mut self, secrets: impl IntoIterator<Item = &'a Secret>) {
        for Secret(text) in secrets {
            if text.len() < Self::SHORTEST || text == REDACTED {
                continue;
            }
            let json = serde_json::Value::from(text.as_str()).to_string();
            let json = json.trim_start_matches('"').trim_end_matches('"').to_owned();
            let markup = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;");
            let with_apostrophes = markup.replace('\'', "&#x27;");
            let numbered = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&#34;");
            self.forms.extend([numbered.replace('\'', "&#39;"), numbered]);
            let one_line = text.split_whitespace().collect::<Vec<_>>().join(" ");
            self.forms.extend([text.clone(), json, percent(text), markup, with_apostrophes, one_line]);
            let encoded = (0..3).map(|offset| base64(text, offset));
            self.forms.extend(encoded.flat_map(|form| [form.replace('+', "-").replace('/', "_"), form]));
        }
        self.forms.iter_mut().for_each(|form| form.make_ascii_lowercase());
        self.forms.retain(|form| form.len() >= Self::SHORTEST);
        self.forms.sort_by(|left, right| right.len().cmp(&left.len()).then_with(|| left.cmp(right)));
        self.forms.dedup();
    }

    /// The text with every known secret replaced by [`REDACTED`].
    #[must_use]
    pub fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut text = Cow::Borrowed(text);
        for form in &self.forms {
            if let Some(clean) = without(&text, form) {
                text = Cow::Owned(clean);
            }
        }
        self.redact_cut(text)
    }

    /// A text that was shortened may end in a part of a secret, right before its `…`.
    fn redact_cut<'t>(&self, text: Cow<'t, str>) -> Cow<'t, str> {
        const CUT: char = '…';
        if !text.contains(CUT) {
            return text;
        }
        let mut clean = String::with_capacity(text.len());
        let mut pieces = text.split(CUT).peekable();
        while let Some(piece) = pieces.next() {
            if pieces.peek().is_none() {
                clean.push_str(piece);
                break;
            }
            let lower = piece.to_ascii_lowercase();
            let part = self.forms.iter().filter_map(|form| longest_start(form, &lower)).max();
            let kept = piece.len() - part.unwrap_or(0);
            clean.push_str(piece.get(..kept).unwrap_or_default());
            if part.is_some() {
                clean.push_str(REDACTED);
            }
            clean.push(CUT);
        }
        if clean == text { text } else { Cow::Owned(clean) }
    }
}

/// The text with every occurrence of a form (in lower case) replaced; `None` where there is none. Folding ASCII alone
/// keeps every byte's place.
fn without(text: &str, form: &str) -> Option<String> {
    let lower = text.to_ascii_lowercase();
    let mut found = lower.match_indices(form).map(|(at, _)| at).peekable();
    found.peek()?;
    let mut clean = String::with_capacity(text.len());
    let mut rest = 0;
    for at in found {
        clean.push_str(text.get(rest..at).unwrap_or_default());
        clean.push_str(REDACTED);
        rest = at + form.len();
    }
    clean.push_str(text.get(rest..).unwrap_or_default());
    Some(clean)
}

/// How many bytes at the end of `text` are the start of a secret: at least [`Redactor::SHORTEST`].
fn longest_start(secret: &str, text: &str) -> Option<usize> {
    let starts = secret.char_indices().map(|(at, _)| at).rev();
    starts
        .take_while(|at| *at >= Redactor::SHORTEST)
        .find(|at| secret.get(..*at).is_some_and(|start| text.ends_with(start)))
}

impl Redactor {
    /// The same in every string of a JSON value, keys included; numbers stay numbers.
    pub fn redact_json(&self, value: &mut serde_json::Value) {
        use serde_json::Value;
        match value {
            Value::String(text) => {
                if let Cow::Owned(clean) = self.redact(text) {
                    *text = clean;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.redact_json(item)),
            Value::Object(fields) => {
                let entries = std::mem::take(fields).into_iter();
                fields.extend(entries.map(|(key, mut item)| {
                    self.redact_json(&mut item);
                    (self.redact(&key).into_owned(), item)
                }));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

fn percent(text: &str) -> String {
    text.bytes().fold(String::new(), |mut encoded, byte| {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.push_str(&format!("%{byte:02X}"));
        }
        encoded
    })
}

/// What Base64 makes of the text where it stands `offset` bytes (0 to 2) past a group's start: the digits that no
/// neighbour changes. Empty where they are too few to tell from chance.
fn base64(text: &str, offset: usize) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let bytes: Vec<u8> = std::iter::repeat_n(0, offset).chain(text.bytes()).collect();
    let digits: String = bytes
        .chunks_exact(3)
        .flat_map(|group| {
            let bits = group.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte));
            [18, 12, 6, 0].map(|shift| DIGITS.get((bits >> shift & 63) as usize).copied().unwrap_or(b'='))
        })
        .skip(if offset == 0 { 0 } else { offset + 1 })
        .map(char::from)
        .collect();
    if digits.len() >= 8 { digits } else { String::new() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_never_prints_itself() {
        let secret = Secret::new("sk-live-1234");
        assert_eq!(format!("{secret:?}"), "***");
        assert_eq!(serde_json::to_string(&secret).unwrap(), "\"***\"");
    }

    #[test]
    fn every_form_is_replaced() {
        let redactor =
            Redactor::new(&[Secret::new("a\"b<c>&'d/é-long-enough"), Secret::new("sk-123"), Secret::new("x")]);
        for text in [
            "raw a\"b<c>&'d/é-long-enough",
            "json a\\\"b<c>&'d/é-long-enough",
            "url a%22b%3Cc%3E%26%27d%2F%C3%A9-long-enough",
            "xml a&quot;b&lt;c&gt;&amp;'d/é-long-enough",
            "html a&quot;b&lt;c&gt;&amp;&#x27;d/é-long-enough",
            "short sk-123",
        ] {
            let word = text.split(' ').next().unwrap();
            assert_eq!(redactor.redact(text), format!("{word} ***"));
        }
        assert_eq!(redactor.redact("x is too short to search for"), "x is too short to search for");
        assert!(matches!(redactor.redact("nothing here"), Cow::Borrowed(_)));
        assert!(!format!("{redactor:?}").contains("sk-123"));
    }

    #[test]
    fn a_secret_that_was_cut_is_replaced_too() {
        let redactor = Redactor::new(&[Secret::new("sk-planted-secret")]);
        assert_eq!(redactor.redact("echo sk-planted-s…"), "echo ***…");
        assert_eq!(redactor.redact("a sk-pla… b sk-planted-secret… c"), "a ***… b ***… c");
        assert_eq!(redactor.redact("sk-p… is too short to tell"), "sk-p… is too short to tell");
        assert_eq!(redactor.redact("nothing… here…"), "nothing… here…");
    }

    #[test]
    fn disguises_of_a_common_kind_are_seen_through() {
        let redactor = Redactor::new(&[Secret::new("sk-Planted/Secret")]);
        for text in [
            "SK-PLANTED/SECRET",
            "sk-planted%2fsecret",
            "sk-Planted%2FSecret",
            "c2stUGxhbnRlZC9TZWNyZXQ=",         // of the secret alone
            "dXNlcjpzay1QbGFudGVkL1NlY3JldA==", // of `user:` and the secret
            "YTpzay1QbGFudGVkL1NlY3JldA==",     // of `a:` and the secret
        ] {
            let clean = redactor.redact(text);
            assert!(clean.contains(REDACTED) && clean.len() < 18, "{text} became {clean}");
        }
    }

    #[test]
    fn json_keeps_its_numbers() {
        let redactor = Redactor::new(&[Secret::new("123456")]);
        let mut value = serde_json::json!({"a 123456": ["b 123456", 123456, null]});
        redactor.redact_json(&mut value);
        assert_eq!(value, serde_json::json!({"a ***": ["b ***", 123456, null]}));
    }

    #[test]
    fn the_longer_secret_goes_first() {
        let redactor = Redactor::new(&[Secret::new("abcdef"), Secret::new("abcdefgh")]);
        assert_eq!(redactor.redact("abcdefgh abcdef"), "*** ***");
    }
}
