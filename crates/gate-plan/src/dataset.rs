//! Prompts from data sets that people have.

use gate_model::{Image, Message, PromptFormat, Role};
use serde_json::{Deserializer, Map, Value};

use crate::lengths::most;
use crate::prompt_file::{PromptFileError, PromptRow, fields, get, lines, nonblank, shown, wrong};

const SHAREGPT: &str = "a list of objects with `conversations`";

/// What a file of this format must hold; `None` of plain rows, which say it themselves.
pub(crate) fn expected(format: PromptFormat) -> Option<&'static str> {
    match format {
        PromptFormat::Rows => None,
        PromptFormat::Sharegpt => {
            Some("it has a JSON list of objects with `conversations`, in which a `human` says something")
        }
        PromptFormat::Openai => Some("it has one JSON object a line, with `messages`, alone or under `body`"),
        PromptFormat::Humaneval => Some("it has one JSON object a line, with `prompt`"),
        PromptFormat::Text => Some("it has paragraphs with blank lines between them"),
    }
}

/// Conversations of a ShareGPT export: what the system and the user say, and the recorded answers between them.
pub(crate) fn sharegpt(text: &str) -> Result<Vec<PromptRow>, PromptFileError> {
    let not_a_list = |message: String| PromptFileError::NotAList { expected: SHAREGPT, message };
    let items: Vec<Value> = if text.trim_start().starts_with('{') {
        let items = Deserializer::from_str(text).into_iter::<Value>();
        items.collect::<Result<_, _>>().map_err(|error| not_a_list(error.to_string()))?
    } else if text.trim().is_empty() {
        Vec::new()
    } else {
        serde_json::from_str(text).map_err(|error| not_a_list(error.to_string()))?
    };
    let rows = (1..).zip(&items).map(|(item, value)| conversation(item, value)).filter_map(Result::transpose);
    rows.collect()
}

/// One conversation, or `None` where the user says nothing.
fn conversation(item: usize, value: &Value) -> Result<Option<PromptRow>, PromptFileError> {
    let wrong = |field: String, found: Option<&Value>, expected: &'static str| PromptFileError::WrongItem {
        item,
        field,
        found: shown(found),
        expected,
    };
    let said = value.get("conversations");
    let list = said.and_then(Value::as_array);
    let list = list.ok_or_else(|| wrong("conversations".to_owned(), said, "a list of what was said"))?;
    let mut messages: Vec<Message> = Vec::new();
    for (place, said) in list.iter().enumerate() {
        let text = |field: &str| {
            let value = said.get(field);
            let text = value.and_then(Value::as_str);
            text.ok_or_else(|| wrong(format!("conversations[{place}].{field}"), value, "a text"))
        };
        let role = match text("from")? {
            "human" | "user" => Role::User,
            "system" => Role::System,
            "gpt" | "assistant" | "chatgpt" | "bing" | "bard" | "model" => Role::Assistant,
            // Tools and their results.
            _ => continue,
        };
        let text = text("value")?;
        if !text.trim().is_empty() {
            messages.push(Message::new(role, text));
        }
    }
    let asks = messages.iter().any(|message| message.role == Role::User);
    Ok(asks.then_some(PromptRow { messages, output_tokens: None }))
}

/// Lines of OpenAI's batches and of its fine-tuning.
pub(crate) fn openai(text: &str) -> Result<Vec<PromptRow>, PromptFileError> {
    lines(text).map(|(line, text)| openai_row(line, text)).collect()
}

fn openai_row(line: usize, text: &str) -> Result<PromptRow, PromptFileError> {
    let whole = fields(line, text)?;
    let body = match get(&whole, "body") {
        None => &whole,
        Some(body) => body.as_object().ok_or_else(|| wrong(line, "body", Some(body), "an object with `messages`"))?,
    };
    let value = get(body, "messages");
    let list = value.and_then(Value::as_array).filter(|list| !list.is_empty());
    let list = list.ok_or_else(|| wrong(line, "messages", value, "a list of one message or more"))?;
    let mut messages = Vec::with_capacity(list.len());
    for (place, value) in list.iter().enumerate() {
        messages.extend(openai_message(line, &format!("messages[{place}]"), value)?);
    }
    while messages.last().is_some_and(|message| message.role == Role::Assistant) {
        messages.pop();
    }
    if !messages.iter().any(|message| message.role == Role::User) {
        return Err(PromptFileError::NoUser { line });
    }
    let output_tokens = ["max_completion_tokens", "max_tokens"].into_iter().find_map(|field| get(body, field));
    let output_tokens = output_tokens.and_then(Value::as_u64).and_then(most);
    Ok(PromptRow { messages, output_tokens: output_tokens.filter(|tokens| *tokens > 0) })
}

/// One message; `None` of a tool's, and of an answer without a text.
fn openai_message(line: usize, place: &str, value: &Value) -> Result<Option<Message>, PromptFileError> {
    let object = "an object with `role` and `content`";
    let fields = value.as_object().ok_or_else(|| wrong(line, place, Some(value), object))?;
    let role = match get(fields, "role").and_then(Value::as_str) {
        Some("system" | "developer") => Role::System,
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        Some("tool" | "function") => return Ok(None),
        _ => {
            let roles = "\"system\", \"developer\", \"user\", \"assistant\" or \"tool\"";
            return Err(wrong(line, &format!("{place}.role"), get(fields, "role"), roles));
        }
    };
    let field = format!("{place}.content");
    match get(fields, "content") {
        None if role == Role::Assistant => Ok(None),
        Some(Value::Array(parts)) => {
            let mut message = Message::new(role, "");
            for (at, part) in parts.iter().enumerate() {
                add_part(&mut message, line, &format!("{field}[{at}]"), part)?;
            }
            if message.text.trim().is_empty() && message.images.is_empty() {
                return Err(PromptFileError::Blank { line, field });
            }
            Ok(Some(message))
        }
        content => Ok(Some(Message::new(role, nonblank(line, &field, content)?))),
    }
}

/// Adds a part of a message's content: a text or an image.
fn add_part(message: &mut Message, line: usize, place: &str, part: &Value) -> Result<(), PromptFileError> {
    let fields = part.as_object().ok_or_else(|| wrong(line, place, Some(part), "an object with `type`"))?;
    match get(fields, "type").and_then(Value::as_str) {
        Some("text" | "input_text" | "output_text") => {
            let text = get(fields, "text");
            let text =
                text.and_then(Value::as_str).ok_or_else(|| wrong(line, &format!("{place}.text"), text, "a text"))?;
            if !message.text.is_empty() {
                message.text.push('\n');
            }
            message.text.push_str(text);
        }
        Some("image_url" | "input_image") => message.images.push(image(line, place, fields)?),
        _ => {
            let types = "\"text\" or \"image_url\"";
            return Err(wrong(line, &format!("{place}.type"), get(fields, "type"), types));
        }
    }
    Ok(())
}

fn image(line: usize, place: &str, fields: &Map<String, Value>) -> Result<Image, PromptFileError> {
    let value = get(fields, "image_url");
    let url = value.and_then(|value| value.get("url").unwrap_or(value).as_str());
    let url = url.ok_or_else(|| wrong(line, &format!("{place}.image_url"), value, "a URL, or an object with `url`"))?;
    // An image that the line itself carries.
    let inline = url.strip_prefix("data:").and_then(|data| data.split_once(";base64,"));
    Ok(match inline {
        Some((media_type, base64)) => Image::Inline { media_type: media_type.to_owned(), base64: base64.into() },
        None => Image::Url(url.to_owned()),
    })
}

/// HumanEval's problems.
pub(crate) fn humaneval(text: &str) -> Result<Vec<PromptRow>, PromptFileError> {
    let row = |(line, text)| {
        let text = nonblank(line, "prompt", get(&fields(line, text)?, "prompt"))?;
        Ok(PromptRow { messages: vec![Message::new(Role::User, text)], output_tokens: None })
    };
    lines(text).map(row).collect()
}

/// The paragraphs of a text.
pub(crate) fn paragraphs(text: &str) -> Vec<PromptRow> {
    let lines: Vec<&str> = text.lines().collect();
    let paragraphs = lines.split(|line| line.trim().is_empty()).filter(|lines| !lines.is_empty());
    let row =
        |lines: &[&str]| PromptRow { messages: vec![Message::new(Role::User, lines.join("\n"))], output_tokens: None };
    paragraphs.map(row).collect()
}
