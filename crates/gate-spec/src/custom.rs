//! A dialect of the spec's own.

use gate_model::{Api, Custom};
use serde_json::{Map, Value};

use crate::context::Context;
use crate::problem::{Problem, nearest};
use crate::raw::RawCustom;
use crate::walk::join;

/// What is filled in inside any text, and what only stands for a whole value.
const INSIDE: [&str; 2] = ["prompt", "model"];
const WHOLE: [(&str, &str); 2] = [("messages", "the list of messages"), ("max_tokens", "a number")];

/// The dialect, where the target's `api` is `custom`, and only there.
pub(crate) fn custom(context: &mut Context, api: Api, model: Option<&str>, raw: Option<RawCustom>) -> Option<Custom> {
    let is_custom = api == Api::Custom;
    let Some(raw) = raw else {
        if is_custom && context.is_sound("target.custom") {
            let message = "`target.api` is `custom`, and `target.custom` is missing";
            let hint = "describe the dialect, such as `custom: {path: /generate, body: {prompt: \"{{prompt}}\"}, text: /text}`";
            context.error("target.api", message.to_owned(), hint);
        }
        return None;
    };
    if !is_custom {
        if context.is_sound("target.api") {
            let message = format!("`target.custom` is for `api: custom`, and `target.api` is `{}`", api.name());
            let problem = Problem::error(context.key("target.custom"), message);
            context.problems.push(problem.hint("write `api: custom`, or remove `custom`"));
        }
        return None;
    }
    let body = raw.body.map(|body| Map::from_iter(body.into_iter().map(|(name, value)| (name, tidied(value)))));
    if let Some(body) = &body
        && context.is_sound("target.custom.body")
    {
        check_body(context, model, body);
    }
    Some(Custom {
        path: raw.path?,
        body: body?,
        text: raw.text?,
        input_tokens: raw.usage.input,
        output_tokens: raw.usage.output,
        end: raw.end,
        framing: raw.framing,
    })
}

fn placeholder(name: &str) -> String {
    format!("{{{{{name}}}}}")
}

/// The value with every placeholder in its one spelling: `{{ prompt }}`, also as YAML reads an unquoted `{{prompt}}`,
/// is `{{prompt}}`.
fn tidied(value: Value) -> Value {
    match value {
        Value::String(mut text) => {
            for name in INSIDE.into_iter().chain(WHOLE.map(|(name, _)| name)) {
                text = text.replace(&format!("{{{{ {name} }}}}"), &placeholder(name));
            }
            Value::String(text)
        }
        Value::Array(items) => items.into_iter().map(tidied).collect(),
        Value::Object(fields) => fields.into_iter().map(|(name, value)| (name, tidied(value))).collect(),
        other => other,
    }
}

fn check_body(context: &mut Context, model: Option<&str>, body: &Map<String, Value>) {
    let mut texts = Vec::new();
    let root = "target.custom.body";
    body.iter().for_each(|(name, value)| collect(value, join(root, name), &mut texts));

    for (name, becomes) in WHOLE {
        let name = placeholder(name);
        for (path, _) in texts.iter().filter(|(_, text)| text.contains(&name) && *text != name) {
            let message = format!("`{path}`: `{name}` becomes {becomes}, and cannot stand inside a text");
            context.error(path, message, &format!("make it a value of its own: `\"{name}\"`"));
        }
    }
    let slips = texts.iter().filter_map(|(path, text)| Some((path, text.split("{{").skip(1).find_map(misspelt)?)));
    let slips: Vec<_> = slips.collect();
    for (path, (written, name)) in &slips {
        let message = format!("`{path}` holds `{{{{{written}}}}}`, which nothing fills in");
        context.error(path, message, &format!("did you mean `{}`?", placeholder(name)));
    }
    let (prompt, messages, named) = (placeholder("prompt"), placeholder("messages"), placeholder("model"));
    if slips.is_empty() && !texts.iter().any(|(_, text)| text.contains(&prompt) || text.contains(&messages)) {
        let message = format!("`{root}` holds neither `{prompt}` nor `{messages}`: every request would ask the same");
        let problem = Problem::error(context.key(root), message);
        let hint = format!("put one where the endpoint takes the prompt, such as `prompt: \"{prompt}\"`");
        context.problems.push(problem.hint(hint));
    }
    if let (Some((path, _)), None) = (texts.iter().find(|(_, text)| text.contains(&named)), model)
        && context.is_sound("target.model")
    {
        let message = format!("`{path}` holds `{named}`, and `target.model` is missing");
        context.error(path, message, "add `model: …` to `target`, or write the name here");
    }
}

/// The word before a `}}` with the placeholder that it nearly is.
fn misspelt(text: &str) -> Option<(&str, &'static str)> {
    let (written, _) = text.split_once("}}")?;
    let names = || INSIDE.into_iter().chain(WHOLE.map(|(name, _)| name));
    let name = nearest(written.trim(), names())?;
    (!names().any(|known| known == written)).then_some((written, name))
}

/// Every text of a value, with its path.
fn collect<'a>(value: &'a Value, path: String, texts: &mut Vec<(String, &'a str)>) {
    match value {
        Value::String(text) => texts.push((path, text)),
        Value::Array(items) => {
            (0_usize..).zip(items).for_each(|(at, item)| collect(item, format!("{path}[{at}]"), texts));
        }
        Value::Object(fields) => fields.iter().for_each(|(name, value)| collect(value, join(&path, name), texts)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
