//! Reading variables and events: what is not as it should be is absent.

use serde_json::Value;
use url::Url;

use super::{JobError, Variables};

/// The longest branch name that is used, in bytes: git's own limit is a file name's.
const LONGEST_BRANCH: usize = 255;

/// The longest key of a job, in characters: it stands in a comment's marker.
const LONGEST_KEY: usize = 200;

pub(super) fn is_true(variables: &Variables, name: &str) -> bool {
    variables.get(name).is_some_and(|value| value == "true")
}

/// A variable that is set and not empty.
pub(super) fn text<'v>(variables: &'v Variables, name: &str) -> Option<&'v str> {
    variables.get(name).map(|value| value.trim()).filter(|value| !value.is_empty())
}

/// A variable that the forge always sets.
pub(super) fn required<'v>(variables: &'v Variables, name: &str) -> Result<&'v str, JobError> {
    text(variables, name).ok_or_else(|| unusable(name, "it is not set, and this CI system always sets it"))
}

/// A number above 0.
pub(super) fn number(text: &str) -> Option<u64> {
    text.parse().ok().filter(|number| *number > 0)
}

/// A commit's id; one of zeros alone stands for none.
pub(super) fn commit(text: &str) -> Option<String> {
    let is_id = matches!(text.len(), 40 | 64) && text.bytes().all(|digit| digit.is_ascii_hexdigit());
    (is_id && text.bytes().any(|digit| digit != b'0')).then(|| text.to_ascii_lowercase())
}

/// A branch's name, under git's rules as far as they keep it from being something else.
pub(super) fn branch(text: &str) -> Option<&str> {
    let is_odd = |symbol: char| symbol.is_control() || symbol.is_whitespace() || "~^:?*[\\".contains(symbol);
    let is_name = !text.is_empty() && text.len() <= LONGEST_BRANCH && !text.starts_with('-') && !text.contains(is_odd);
    is_name.then_some(text)
}

/// A URL's text as it was given, without slashes at its end.
pub(super) fn url(name: &str, text: &str) -> Result<String, JobError> {
    let url = Url::parse(text).map_err(|error| unusable(name, &format!("it is no URL ({error})")))?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err(unusable(name, "it is no http:// or https:// URL"));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(unusable(name, "it holds a user or a password, and nothing may be sent there; take them out"));
    }
    if url.query().is_some() || url.fragment().is_some() || text.contains(|symbol: char| symbol.is_control()) {
        return Err(unusable(name, "it goes on with `?` or `#`, and an address to build on does not"));
    }
    Ok(text.trim_end_matches('/').to_owned())
}

/// What tells a job's comment from another's: these texts, and what `GATE_JOB` adds.
pub(super) fn key(parts: &[&str], variables: &Variables) -> String {
    let key = parts.join("/");
    let key = match text(variables, "GATE_JOB") {
        Some(values) => format!("{key} ({values})"),
        None => key,
    };
    let words: Vec<_> = key.split(|symbol: char| symbol.is_whitespace() || symbol.is_control()).collect();
    let line = words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
    line.chars().take(LONGEST_KEY).collect()
}

pub(super) fn unusable(name: &str, why: &str) -> JobError {
    JobError::Variable { name: name.to_owned(), why: why.to_owned() }
}

/// A part of an event, by its JSON pointer.
#[derive(Clone, Copy)]
pub(super) struct Event<'e>(pub(super) Option<&'e Value>);

impl<'e> Event<'e> {
    pub(super) fn at(self, pointer: &str) -> Self {
        Self(self.0.and_then(|value| value.pointer(pointer)))
    }

    pub(super) fn is_object(self) -> bool {
        self.0.is_some_and(Value::is_object)
    }

    pub(super) fn items(self) -> impl Iterator<Item = Self> {
        self.0.and_then(Value::as_array).into_iter().flatten().map(|item| Self(Some(item)))
    }

    pub(super) fn text(self, pointer: &str) -> Option<&'e str> {
        self.at(pointer).0.and_then(Value::as_str).filter(|text| !text.is_empty())
    }

    pub(super) fn number(self, pointer: &str) -> Option<u64> {
        self.at(pointer).0.and_then(Value::as_u64).filter(|number| *number > 0)
    }

    pub(super) fn commit(self, pointer: &str) -> Option<String> {
        self.text(pointer).and_then(commit)
    }

    pub(super) fn branch(self, pointer: &str) -> Option<&'e str> {
        self.text(pointer).and_then(branch)
    }
}
