//! Prompts from a JSON Lines file.

use std::collections::HashSet;
use std::mem::{Discriminant, discriminant};
use std::sync::Arc;

use gate_model::{Message, Role};
use serde_json::{Map, Value};

/// How much of a wrong value is shown, in characters.
const SHOWN: usize = 60;

const TEXT: &str = "a text";

/// One row: the prompt of one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptRow {
    /// The messages, at least one of them the user's.
    pub messages: Vec<Message>,
    /// The most output tokens its request asks for, where the row says so.
    pub output_tokens: Option<u32>,
}

/// The rows of a `prompts.file`. A clone shares them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PromptFile {
    rows: Arc<[PromptRow]>,
}

/// Why a text is not a prompt file. Every error names the line, and the field where one is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PromptFileError {
    /// No row at all.
    #[error("the file holds no prompt: it has one JSON object a line, such as `{{\"prompt\": \"…\"}}`")]
    Empty,
    /// A line that is not a JSON object.
    #[error("line {line} is not a JSON object: {message}; write each prompt on one line, as `{{\"prompt\": \"…\"}}`")]
    NotAnObject {
        /// The line, from 1.
        line: usize,
        /// What is wrong.
        message: String,
    },
    /// A row without a prompt.
    #[error("line {line} has no prompt: give it one of `prompt`, `text` and `messages`")]
    NoPrompt {
        /// The line, from 1.
        line: usize,
    },
    /// A row with two prompts.
    #[error("line {line} has both `{first}` and `{second}`: keep the one to send")]
    TwoPrompts {
        /// The line, from 1.
        line: usize,
        /// One field.
        first: &'static str,
        /// The other.
        second: &'static str,
    },
    /// A field that is missing, of the wrong kind or out of range.
    #[error("line {line}: `{field}` is {found}, and must be {expected}")]
    Wrong {
        /// The line, from 1.
        line: usize,
        /// The field, such as `messages[0].role`.
        field: String,
        /// What stands there, shortened.
        found: String,
        /// What it must be.
        expected: &'static str,
    },
    /// A text of nothing but blanks.
    #[error("line {line}: `{field}` is blank: give it a text, or take the line out")]
    Blank {
        /// The line, from 1.
        line: usize,
        /// The field, such as `messages[0].content`.
        field: String,
    },
    /// Messages that ask nothing.
    #[error("line {line}: `messages` has none with the role \"user\": add what is asked")]
    NoUser {
        /// The line, from 1.
        line: usize,
    },
}

impl PromptRow {
    /// How many input tokens its messages have by [`gate_tokens::estimate`], without a nonce and a template.
    #[must_use]
    pub fn input_tokens(&self) -> u32 {
        let texts: Vec<&str> = self.messages.iter().map(|message| message.text.as_str()).collect();
        gate_tokens::estimate(&texts.join(" "))
    }
}

impl PromptFile {
    /// Reads a JSON Lines text: one object a line, blank lines skipped. A row is `{"prompt": "…"}`,
    /// `{"text": "…"}` or `{"messages": [{"role": "system|user|assistant", "content": "…"}, …]}`, and may have
    /// `"output_tokens": N`. Other fields are ignored, and null counts as absent.
    ///
    /// # Errors
    ///
    /// [`PromptFileError`] for the first row that is wrong, also past those a plan needs.
    pub fn parse(text: &str) -> Result<Self, PromptFileError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
        let rows: Arc<[PromptRow]> = lines.map(|(line, text)| row(line, text)).collect::<Result<_, _>>()?;
        if rows.is_empty() { Err(PromptFileError::Empty) } else { Ok(Self { rows }) }
    }

    /// The rows, in the file's order.
    #[must_use]
    pub fn rows(&self) -> &[PromptRow] {
        &self.rows
    }

    /// How many of the first `count` rows have the same messages as an earlier one.
    #[must_use]
    pub fn repeats(&self, count: u32) -> u32 {
        let rows = self.measured(count);
        let distinct: HashSet<_> = rows.iter().map(identity).collect();
        u32::try_from(rows.len() - distinct.len()).unwrap_or(u32::MAX)
    }

    /// The first `count` rows, or all there are.
    pub(crate) fn measured(&self, count: u32) -> &[PromptRow] {
        self.rows.get(..count as usize).unwrap_or(&self.rows)
    }

    /// The last `count` rows, or all there are. Taken from the end, they are the same for any number of measured ones.
    pub(crate) fn warmup(&self, count: u32) -> &[PromptRow] {
        let start = self.rows.len().saturating_sub(count as usize);
        self.rows.get(start..).unwrap_or_default()
    }
}

/// What makes two rows the same prompt.
fn identity(row: &PromptRow) -> Vec<(Discriminant<Role>, &str)> {
    row.messages.iter().map(|message| (discriminant(&message.role), message.text.as_str())).collect()
}

/// Reads one line.
fn row(line: usize, text: &str) -> Result<PromptRow, PromptFileError> {
    let not_an_object = |message: String| PromptFileError::NotAnObject { line, message };
    let fields = match serde_json::from_str(text) {
        Ok(Value::Object(fields)) => fields,
        Ok(other) => return Err(not_an_object(format!("it is {}", shown(Some(&other))))),
        Err(error) => return Err(not_an_object(without_line(&error))),
    };
    let mut prompts = ["prompt", "text", "messages"].into_iter().filter(|field| get(&fields, field).is_some());
    let messages = match (prompts.next(), prompts.next()) {
        (None, _) => return Err(PromptFileError::NoPrompt { line }),
        (Some(first), Some(second)) => return Err(PromptFileError::TwoPrompts { line, first, second }),
        (Some("messages"), None) => messages(line, get(&fields, "messages"))?,
        (Some(field), None) => {
            vec![Message { role: Role::User, text: nonblank(line, field, get(&fields, field))? }]
        }
    };
    Ok(PromptRow { messages, output_tokens: output_tokens(line, &fields)? })
}

fn messages(line: usize, value: Option<&Value>) -> Result<Vec<Message>, PromptFileError> {
    let list = value.and_then(Value::as_array).filter(|list| !list.is_empty());
    let list = list.ok_or_else(|| wrong(line, "messages", value, "a list of one message or more"))?;
    let messages: Vec<Message> = list
        .iter()
        .enumerate()
        .map(|(position, value)| message(line, &format!("messages[{position}]"), value))
        .collect::<Result<_, _>>()?;
    let asks = messages.iter().any(|message| message.role == Role::User);
    if asks { Ok(messages) } else { Err(PromptFileError::NoUser { line }) }
}

fn message(line: usize, place: &str, value: &Value) -> Result<Message, PromptFileError> {
    let object = "an object with `role` and `content`";
    let fields = value.as_object().ok_or_else(|| wrong(line, place, Some(value), object))?;
    let role = get(fields, "role");
    let role = match role.and_then(Value::as_str) {
        Some("system") => Role::System,
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        _ => {
            let roles = "\"system\", \"user\" or \"assistant\"";
            return Err(wrong(line, &format!("{place}.role"), role, roles));
        }
    };
    Ok(Message { role, text: nonblank(line, &format!("{place}.content"), get(fields, "content"))? })
}

fn nonblank(line: usize, field: &str, value: Option<&Value>) -> Result<String, PromptFileError> {
    let text = value.and_then(Value::as_str).ok_or_else(|| wrong(line, field, value, TEXT))?;
    if text.trim().is_empty() {
        return Err(PromptFileError::Blank { line, field: field.to_owned() });
    }
    Ok(text.to_owned())
}

fn output_tokens(line: usize, fields: &Map<String, Value>) -> Result<Option<u32>, PromptFileError> {
    let field = "output_tokens";
    let Some(value) = get(fields, field) else { return Ok(None) };
    let tokens = value.as_u64().and_then(|tokens| u32::try_from(tokens).ok()).filter(|tokens| *tokens > 0);
    tokens.map(Some).ok_or_else(|| wrong(line, field, Some(value), "a whole number of tokens, at least 1"))
}

/// The field's value; `None` where it is absent or null.
fn get<'a>(fields: &'a Map<String, Value>, field: &str) -> Option<&'a Value> {
    fields.get(field).filter(|value| !value.is_null())
}

fn wrong(line: usize, field: &str, found: Option<&Value>, expected: &'static str) -> PromptFileError {
    PromptFileError::Wrong { line, field: field.to_owned(), found: shown(found), expected }
}

/// A value as a message shows it, shortened.
fn shown(value: Option<&Value>) -> String {
    match value {
        None => "missing".to_owned(),
        Some(Value::Array(list)) if list.is_empty() => "an empty list".to_owned(),
        Some(Value::Array(_)) => "a list".to_owned(),
        Some(Value::Object(_)) => "an object".to_owned(),
        Some(other) => {
            let text = other.to_string();
            if text.chars().count() <= SHOWN { text } else { text.chars().take(SHOWN).chain(['…']).collect() }
        }
    }
}

/// The error with its column alone: serde_json sees this one line, and calls it line 1.
fn without_line(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rfind(" at line ").map_or(text.clone(), |end| format!("{} at column {}", &text[..end], error.column()))
}
