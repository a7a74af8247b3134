//! Messages about a spec, with their place.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A place in a file: 1-based line and column (in characters).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Place {
    /// The file as the person named it.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The column in characters, from 1.
    pub column: u32,
}

impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// How bad a diagnostic is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Nothing runs.
    Error,
    /// Worth knowing; the gate runs.
    Warning,
}

/// The source line a diagnostic points at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snippet {
    /// The line's text, without its end.
    pub text: String,
    /// The column of the caret, in characters from 1.
    pub column: u32,
    /// How many characters the caret underlines, at least 1.
    pub length: u32,
}

/// One thing that is wrong or doubtful in a spec.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    /// Where it is; absent when it is about a flag or a whole file.
    pub place: Option<Place>,
    /// What is wrong: a lowercase fragment that names the thing.
    pub message: String,
    /// The source line.
    pub snippet: Option<Snippet>,
    /// What to do.
    pub hint: Option<String>,
    /// The environment variable that is needed and not set, where that is what is wrong.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<String>,
}
