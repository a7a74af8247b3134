//! Prompts from a file.

use std::mem::{Discriminant, discriminant};
use std::sync::Arc;

use gate_model::{Image, Message, PromptFormat, Role};
use serde_json::{Map, Value};

use crate::dataset;
use crate::lengths::most;

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
    format: PromptFormat,
}

/// Why a text is not a prompt file. Every error names the line (of a JSON list the item), and the field where one is
/// wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PromptFileError {
    /// No row at all.
    #[error("the file holds no prompt: it has one JSON object a line, such as `{{\"prompt\": \"…\"}}`")]
    Empty,
    /// A data set without a prompt.
    #[error("the file holds no prompt: {expected}")]
    NoPrompts {
        /// What it must hold.
        expected: &'static str,
    },
    /// A text that is not JSON, or not of the list that is needed.
    #[error("the file is not {expected}: {message}")]
    NotAList {
        /// What it must be.
        expected: &'static str,
        /// What is wrong.
        message: String,
    },
    /// An item of a list that has a field of the wrong kind.
    #[error("conversation {item}: `{field}` is {found}, and must be {expected}")]
    WrongItem {
        /// The item, from 1.
        item: usize,
        /// The field, such as `conversations[0].value`.
        field: String,
        /// What stands there, shortened.
        found: String,
        /// What it must be.
        expected: &'static str,
    },
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
    /// Reads a text of a format:
    ///
    /// - [`PromptFormat::Rows`]: one JSON object a line, blank lines skipped: `{"prompt": "…"}`, `{"text": "…"}` or
    ///   `{"messages": [{"role": "system|user|assistant", "content": "…"}, …]}`, and may have `"output_tokens": N`.
    ///   Other fields are ignored, and null counts as absent.
    /// - [`PromptFormat::Sharegpt`]: a JSON list of `{"conversations": [{"from": "human|gpt|…", "value": "…"}, …]}`, or
    ///   such objects one after another. One in which nobody asks anything is left out.
    /// - [`PromptFormat::Openai`]: a JSON object a line with `messages`, alone or under `body`, and `max_tokens` (or
    ///   `max_completion_tokens`) for its output tokens. Texts and images are kept; tool calls and their results are
    ///   left out, and so are answers at the end, which are what training is to teach.
    /// - [`PromptFormat::Humaneval`]: a JSON object a line with `prompt`.
    /// - [`PromptFormat::Text`]: paragraphs with blank lines between them.
    ///
    /// # Errors
    ///
    /// [`PromptFileError`] for the first row that is wrong, also past those a plan needs.
    pub fn parse(text: &str, format: PromptFormat) -> Result<Self, PromptFileError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let rows: Arc<[PromptRow]> = match format {
            PromptFormat::Rows => lines(text).map(|(line, text)| row(line, text)).collect::<Result<_, _>>()?,
            PromptFormat::Sharegpt => dataset::sharegpt(text)?.into(),
            PromptFormat::Openai => dataset::openai(text)?.into(),
            PromptFormat::Humaneval => dataset::humaneval(text)?.into(),
            PromptFormat::Text => dataset::paragraphs(text).into(),
        };
        if !rows.is_empty() {
            return Ok(Self { rows, format });
        }
        Err(match dataset::expected(format) {
            None => PromptFileError::Empty,
            Some(expected) => PromptFileError::NoPrompts { expected },
        })
    }

    /// What the file is.
    #[must_use]
    pub fn format(&self) -> PromptFormat {
        self.format
    }

    /// The rows, in the file's order.
    #[must_use]
    pub fn rows(&self) -> &[PromptRow] {
        &self.rows
    }
}

/// What makes two rows the same prompt.
pub(crate) fn identity(row: &PromptRow) -> Vec<(Discriminant<Role>, &str, Vec<&str>)> {
    row.messages
        .iter()
        .map(|message| {
            let images = message.images.iter().map(content).collect();
            (discriminant(&message.role), message.text.as_str(), images)
        })
        .collect()
}

fn content(image: &Image) -> &str {
    match image {
        Image::Url(url) => url,
        Image::Inline { base64, .. } => base64,
    }
}

/// The lines with something on them, each with its number from 1.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty())
}

/// The fields of a line's JSON object.
pub(crate) fn fields(line: usize, text: &str) -> Result<Map<String, Value>, PromptFileError> {
    let not_an_object = |message: String| PromptFileError::NotAnObject { line, message };
    match serde_json::from_str(text) {
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(other) => Err(not_an_object(format!("it is {}", shown(Some(&other))))),
        Err(error) => Err(not_an_object(without_line(&error))),
    }
}

/// Reads one line.
fn row(line: usize, text: &str) -> Result<PromptRow, PromptFileError> {
    let fields = fields(line, text)?;
    let mut prompts = ["prompt", "text", "messages"].into_iter().filter(|field| get(&fields, field).is_some());
    let messages = match (prompts.next(), prompts.next()) {
        (None, _) => return Err(PromptFileError::NoPrompt { line }),
        (Some(first), Some(second)) => return Err(PromptFileError::TwoPrompts { line, first, second }),
        (Some("messages"), None) => messages(line, get(&fields, "messages"))?,
        (Some(field), None) => {
            vec![Message::new(Role::User, nonblank(line, field, get(&fields, field))?)]
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
    Ok(Message::new(role, nonblank(line, &format!("{place}.content"), get(fields, "content"))?))
}

pub(crate) fn nonblank(line: usize, field: &str, value: Option<&Value>) -> Result<String, PromptFileError> {
    let text = value.and_then(Value::as_str).ok_or_else(|| wrong(line, field, value, TEXT))?;
    if text.trim().is_empty() {
        return Err(PromptFileError::Blank { line, field: field.to_owned() });
    }
    Ok(text.to_owned())
}

fn output_tokens(line: usize, fields: &Map<String, Value>) -> Result<Option<u32>, PromptFileError> {
    let field = "output_tokens";
    let Some(value) = get(fields, field) else { return Ok(None) };
    let tokens = value.as_u64().and_then(most).filter(|tokens| *tokens > 0);
    tokens.map(Some).ok_or_else(|| wrong(line, field, Some(value), "a whole number of tokens, from 1 to 10,000,000"))
}

/// The field's value; `None` where it is absent or null.
pub(crate) fn get<'a>(fields: &'a Map<String, Value>, field: &str) -> Option<&'a Value> {
    fields.get(field).filter(|value| !value.is_null())
}

pub(crate) fn wrong(line: usize, field: &str, found: Option<&Value>, expected: &'static str) -> PromptFileError {
    PromptFileError::Wrong { line, field: field.to_owned(), found: shown(found), expected }
}

/// A value as a message shows it, shortened.
pub(crate) fn shown(value: Option<&Value>) -> String {
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
