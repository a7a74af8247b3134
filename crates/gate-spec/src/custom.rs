//! A dialect of the spec's own.

use gate_model::{Api, Custom, Secret};
use serde_json::{Map, Value};

use crate::context::Context;
use crate::endpoint::query_secrets;
use crate::problem::{Problem, nearest};
use crate::raw::{RawCustom, RawTarget};
use crate::target::Block;
use crate::walk::join;

/// What is filled in inside any text, and what only stands for a whole value.
const INSIDE: [&str; 2] = ["prompt", "model"];
const WHOLE: [(&str, &str); 2] = [("messages", "the list of messages"), ("max_tokens", "a number")];

/// The dialect, where the target's `api` is `custom`, and only there; what its path's query holds is added to `secrets`.
pub(crate) fn custom(
    context: &mut Context,
    block: &Block,
    raw: Option<RawCustom>,
    target: &RawTarget,
    secrets: &mut Vec<Secret>,
) -> Option<Custom> {
    let (api, model) = (target.api, target.model.as_deref());
    let is_custom = api == Api::Custom;
    let (api_path, at) = (block.path("api"), block.path("custom"));
    let Some(raw) = raw else {
        if is_custom && context.is_sound(&at) {
            let message = format!("`{api_path}` is `custom`, and `{at}` is missing");
            let hint = "describe the dialect, such as `custom: {path: /generate, body: {prompt: \"{{prompt}}\"}, text: /text}`";
            context.error(&api_path, message, hint);
        }
        return None;
    };
    if !is_custom {
        if context.is_sound(&api_path) {
            let message = format!("`{at}` is for `api: custom`, and `{api_path}` is `{}`", api.name());
            let problem = Problem::error(context.key(&at), message);
            context.problems.push(problem.hint("write `api: custom`, or remove `custom`"));
        }
        return None;
    }
    let body = raw.body.map(|body| Map::from_iter(body.into_iter().map(|(name, value)| (name, tidied(value)))));
    if let Some(body) = &body
        && context.is_sound(&format!("{at}.body"))
    {
        check_body(context, block, model, body);
        if let Some(path) = overwritten(body, &target.extra_body, &block.path("extra_body")) {
            let message = format!("`{path}` replaces what holds the prompt in `{at}.body`");
            context.error(&path, message, "remove it");
        }
    }
    let query = raw.path.as_deref().and_then(|path| path.split_once('?'));
    secrets.extend(query.map(|(_, query)| query_secrets(query)).unwrap_or_default());
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

/// The first field of `top` that stands in the place of one which holds the prompt: objects are merged, all else is
/// replaced.
fn overwritten(body: &Map<String, Value>, top: &Map<String, Value>, path: &str) -> Option<String> {
    top.iter().find_map(|(name, value)| {
        let path = join(path, name);
        match (body.get(name)?, value) {
            (Value::Object(body), Value::Object(top)) => overwritten(body, top, &path),
            (replaced, _) => {
                let mut texts = Vec::new();
                collect(replaced, String::new(), &mut texts);
                texts.iter().any(|(_, text)| holds_prompt(text)).then_some(path)
            }
        }
    })
}

fn holds_prompt(text: &str) -> bool {
    ["prompt", "messages"].into_iter().any(|name| text.contains(&placeholder(name)))
}

fn placeholder(name: &str) -> String {
    format!("{{{{{name}}}}}")
}

/// The value with every placeholder in its one spelling: `{{ prompt }}`, also as YAML reads an unquoted `{{prompt}}`,
/// is `{{prompt}}`.
fn tidied(value: Value) -> Value {
    match value {
        Value::String(mut text) => {
            for name in names() {
                text = text.replace(&format!("{{{{ {name} }}}}"), &placeholder(name));
            }
            Value::String(text)
        }
        Value::Array(items) => items.into_iter().map(tidied).collect(),
        Value::Object(fields) => fields.into_iter().map(|(name, value)| (name, tidied(value))).collect(),
        other => other,
    }
}

fn check_body(context: &mut Context, block: &Block, model: Option<&str>, body: &Map<String, Value>) {
    let (at, model_path) = (block.path("custom.body"), block.path("model"));
    let (mut texts, mut keys) = (Vec::new(), Vec::new());
    for (name, value) in body {
        let path = join(&at, name);
        collect(value, path.clone(), &mut texts);
        collect_keys(value, &path, &mut keys);
        keys.push((path, name));
    }
    let placeholder_in = |key: &str| {
        let mut written = key.split("{{").skip(1).filter_map(|rest| rest.split_once("}}"));
        written.find_map(|(written, _)| nearest(written.trim(), names()))
    };
    for (path, name) in keys.iter().filter_map(|(path, key)| Some((path, placeholder_in(key)?))) {
        let message = format!("`{path}` has `{}` in its key: only values are filled in", placeholder(name));
        context.error(path, message, "give the key its own name, and put this in a value");
    }

    for (name, becomes) in WHOLE {
        let name = placeholder(name);
        for (path, _) in texts.iter().filter(|(_, text)| text.contains(&name) && *text != name) {
            let message = format!("`{path}`: `{name}` becomes {becomes}, and cannot stand inside a text");
            context.error(path, message, &format!("make it a value of its own: `\"{name}\"`"));
        }
    }
    let slips = texts.iter().filter_map(|(path, text)| Some((path, text.split("{{").skip(1).find_map(slip)?)));
    let slips: Vec<_> = slips.collect();
    for (path, (problem, hint)) in &slips {
        context.error(path, format!("`{path}` {problem}"), hint);
    }
    let (prompt, messages, named) = (placeholder("prompt"), placeholder("messages"), placeholder("model"));
    if slips.is_empty() && !texts.iter().any(|(_, text)| holds_prompt(text)) {
        let message = format!("`{at}` holds neither `{prompt}` nor `{messages}`: every request would ask the same");
        let problem = Problem::error(context.key(&at), message);
        let hint = format!("put one where the endpoint takes the prompt, such as `prompt: \"{prompt}\"`");
        context.problems.push(problem.hint(hint));
    }
    if let (Some((path, _)), None) = (texts.iter().find(|(_, text)| text.contains(&named)), model)
        && context.is_sound(&model_path)
    {
        let message = format!("`{path}` holds `{named}`, and `{model_path}` is missing");
        context.error(path, message, "add `model: …` to `target`, or write the name here");
    }
}

fn names() -> impl Iterator<Item = &'static str> {
    INSIDE.into_iter().chain(WHOLE.map(|(name, _)| name))
}

/// What is wrong with what follows a `{{`, where it is nearly a placeholder, and what to do.
fn slip(text: &str) -> Option<(String, String)> {
    let Some((written, _)) = text.split_once("}}") else {
        let word = text.trim_start().split(|symbol: char| !(symbol.is_alphanumeric() || symbol == '_')).next()?;
        let name = nearest(word, names())?;
        return Some((format!("has a `{{{{{word}` without its `}}}}`"), format!("write `{}`", placeholder(name))));
    };
    let name = nearest(written.trim(), names())?;
    let problem = format!("holds `{{{{{written}}}}}`, which nothing fills in");
    (!names().any(|known| known == written)).then(|| (problem, format!("did you mean `{}`?", placeholder(name))))
}

/// Every key below a value, with its path.
fn collect_keys<'a>(value: &'a Value, path: &str, keys: &mut Vec<(String, &'a str)>) {
    match value {
        Value::Array(items) => {
            (0_usize..).zip(items).for_each(|(at, item)| collect_keys(item, &format!("{path}[{at}]"), keys));
        }
        Value::Object(fields) => {
            for (name, value) in fields {
                let path = join(path, name);
                collect_keys(value, &path, keys);
                keys.push((path, name));
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
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
