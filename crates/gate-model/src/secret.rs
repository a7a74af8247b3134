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

/// Replaces known secrets in text, in the forms they take in JSON, URLs, XML and HTML.
#[derive(Clone, Default)]
pub struct Redactor {
    /// Longest first, so that no part of a longer secret is left standing.
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
            self.forms.extend([text.clone(), json, percent(text), markup, with_apostrophes]);
        }
        self.forms.retain(|form| form.len() >= Self::SHORTEST);
        self.forms.sort_by(|left, right| right.len().cmp(&left.len()).then_with(|| left.cmp(right)));
        self.forms.dedup();
    }

    /// The text with every known secret replaced by [`REDACTED`].
    #[must_use]
    pub fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut text = Cow::Borrowed(text);
        for form in &self.forms {
            if text.contains(form.as_str()) {
                text = Cow::Owned(text.replace(form.as_str(), REDACTED));
            }
        }
        text
    }
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
