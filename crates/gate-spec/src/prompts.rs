//! The prompts: what is sent, and which of it goes together.

use gate_model::{Api, Cache, Latency, Length, PromptFormat, PromptSpec, Secret, SharedPrefix};

use crate::context::Context;
use crate::endpoint::query_secrets;
use crate::length::{LEAST_MASS, mass};
use crate::problem::Problem;
use crate::raw::{RawLength, RawPrompts, RawTarget};
use crate::scope::Scope;
use crate::table::LONGEST;

/// The prompts of a scope, as the target is asked them; credentials in the URLs of images are added to `secrets`.
pub(crate) fn prompts(
    context: &mut Context,
    scope: &Scope,
    raw: &RawPrompts,
    target: &RawTarget,
    secrets: &mut Vec<Secret>,
) -> PromptSpec {
    let api = target.api;
    let shared =
        raw.shared_prefix.and_then(|raw| Some(SharedPrefix { tokens: raw.tokens?, groups: raw.groups.unwrap_or(1) }));
    if raw.file.is_some() && scope.is_written(context, "prompts.input_tokens") {
        let message = "`prompts` has both `input_tokens` and `file`";
        beside_file(context, scope, "prompts.input_tokens", message, "the rows of a file are as long as they are");
    }
    if raw.file.is_some() && shared.is_some() {
        let message = "`prompts` has both `shared_prefix` and `file`";
        beside_file(context, scope, "prompts.shared_prefix", message, "the rows of a file share what they share");
    }
    if raw.file.is_none() && raw.format != PromptFormat::Rows && scope.is_sound(context, "prompts.file") {
        let path = scope.path(context, "prompts.format");
        let problem = Problem::error(context.key(&path), format!("`{path}` says what a file is, and there is none"));
        context.problems.push(problem.hint("add `file: …`, or remove it"));
    }
    for key in ["prompts.output_tokens", "prompts.output", "prompts.tokenizer"] {
        let path = scope.path(context, key);
        if !api.generates() && context.is_written(&path) {
            let message = format!("`{path}` is about generated tokens, and `{}` generates none", api.name());
            context.problems.push(Problem::error(context.key(&path), message).hint("remove it"));
        }
    }
    check_turns(context, scope, raw, target);
    check_cache(context, scope, raw, shared);
    if !raw.images.is_empty() && !api.takes_images() && context.is_sound("target.api") {
        let path = scope.path(context, "prompts.images");
        let takers: Vec<_> = Api::ALL.into_iter().filter(|api| api.takes_images()).map(Api::name).collect();
        let message = format!("`{path}` needs a dialect with images, and `{}` has none", api.name());
        let problem = Problem::error(context.key(&path), message);
        context.problems.push(problem.hint(format!("those with images are {}; or remove it", takers.join(", "))));
    }
    let queries = raw.images.iter().filter(|image| image.contains("://")).filter_map(|image| image.split_once('?'));
    secrets.extend(queries.flat_map(|(_, query)| query_secrets(query)));
    let usual = PromptSpec::default();
    let spec = PromptSpec {
        input_tokens: length(
            context,
            &scope.path(context, "prompts.input_tokens"),
            &raw.input_tokens,
            usual.input_tokens,
        ),
        input_empirical: raw.input_tokens.empirical.clone(),
        output_tokens: length(
            context,
            &scope.path(context, "prompts.output_tokens"),
            &raw.output_tokens,
            usual.output_tokens,
        ),
        output_empirical: raw.output_tokens.empirical.clone(),
        turns: raw.turns,
        think: Latency { mean: raw.think.mean.unwrap_or_default(), stddev: raw.think.stddev, shape: raw.think.shape },
        shared_prefix: shared,
        cache: raw.cache,
        output: raw.output,
        system: raw.system.clone(),
        file: raw.file.clone(),
        format: raw.format,
        images: raw.images.clone(),
        tokenizer: raw.tokenizer.clone(),
        tokens: raw.tokens,
    };
    check_prefix(context, scope, &spec);
    spec
}

fn beside_file(context: &mut Context, scope: &Scope, key: &str, message: &str, why: &str) {
    let path = scope.path(context, key);
    let problem = Problem::error(context.key(&path), message);
    context.problems.push(problem.hint(format!("keep one of the two: {why}")));
}

/// A conversation is a list of messages, which not every dialect is sent.
fn check_turns(context: &mut Context, scope: &Scope, raw: &RawPrompts, target: &RawTarget) {
    let path = scope.path(context, "prompts.turns");
    if raw.turns.max == 1 {
        let think = scope.path(context, "prompts.think");
        if context.is_written(&think) && scope.is_sound(context, "prompts.turns") {
            let message = format!("`{think}` is the time between turns, and `{path}` is 1");
            let problem = Problem::error(context.key(&think), message);
            context.problems.push(problem.hint("add `turns: 3..5`, or remove it"));
        }
        return;
    }
    if !context.is_sound("target") {
        return;
    }
    let holds_messages = |body: &serde_json::Map<String, serde_json::Value>| {
        serde_json::to_string(body).is_ok_and(|text| text.contains("{{messages}}"))
    };
    let url = target.url.as_deref().unwrap_or("");
    let route = url.split(['?', '#']).next().unwrap_or("").trim_end_matches('/');
    let (what, hint) = match target.api {
        Api::Ollama if route.ends_with("/generate") => {
            ("Ollama's `generate`".to_owned(), "remove `/generate` from the URL: its chat has messages")
        }
        Api::Custom => match target.custom.as_ref().and_then(|custom| custom.body.as_ref()) {
            Some(body) if !holds_messages(body) => (
                "the body of `target.custom`".to_owned(),
                "put the text `{{messages}}` where the list of messages goes, or remove `turns`",
            ),
            _ => return,
        },
        api if !api.takes_turns() => {
            (format!("`{}`", api.name()), "use the server's chat, such as `api: openai-chat`, or remove `turns`")
        }
        _ => return,
    };
    let message = format!("`{path}` needs a request with messages, and {what} is one text");
    context.problems.push(Problem::error(context.key(&path), message).hint(hint));
}

/// A warm cache is one of prompts that repeat, so nothing can be learnt of what else they share.
fn check_cache(context: &mut Context, scope: &Scope, raw: &RawPrompts, shared: Option<SharedPrefix>) {
    if raw.cache != Cache::Warm {
        return;
    }
    for (key, is_given) in [("prompts.shared_prefix", shared.is_some()), ("prompts.turns", raw.turns.max > 1)] {
        if !is_given {
            continue;
        }
        let (path, cache) = (scope.path(context, key), scope.path(context, "prompts.cache"));
        let message = format!("`{path}` has no meaning where `{cache}` is `warm`: whole prompts are cached");
        let hint = "write `cache: natural`, or leave it at `bust`, under which what the spec shares is shared";
        context.error(&cache, message, hint);
    }
}

/// The shared beginning leaves room for something of a prompt's own.
fn check_prefix(context: &mut Context, scope: &Scope, spec: &PromptSpec) {
    let Some(prefix) = spec.shared_prefix else { return };
    let is_sound = scope.is_sound(context, "prompts.input_tokens") && scope.is_sound(context, "prompts.shared_prefix");
    if spec.input_empirical.is_some() || spec.file.is_some() || !is_sound {
        return;
    }
    let mean = spec.input_tokens.mean;
    if f64::from(prefix.tokens) < mean {
        return;
    }
    let [path, input] = ["prompts.shared_prefix", "prompts.input_tokens"].map(|key| scope.path(context, key));
    let message = format!("`{path}` has {} tokens, and prompts have {mean} on average by `{input}`", prefix.tokens);
    context.error(&path, message, "it is part of them: shorten it, or lengthen the prompts");
}

/// A distribution; of lengths from a file, the usual one, which is not drawn from.
fn length(context: &mut Context, path: &str, raw: &RawLength, usual: Length) -> Length {
    if raw.empirical.is_some() {
        let others = ["mean", "stddev", "min", "max", "shape"].map(|key| format!("{path}.{key}"));
        if let Some(other) = others.iter().find(|path| context.is_written(path)) {
            let problem =
                Problem::error(context.key(other), format!("`{path}` has both `empirical` and a distribution"));
            context.problems.push(problem.hint("keep one of the two: the lengths of a file are drawn as they are"));
        }
        return usual;
    }
    let Some(mean) = raw.mean else {
        if context.is_sound(path) {
            let missing = format!("{path}.mean");
            let problem = Problem::error(context.key(path), format!("`{missing}` is missing"));
            context.problems.push(problem.hint("add `mean: …`, or draw from a file of lengths: `empirical: FILE`"));
        }
        return usual;
    };
    let reach = (mean + 5.0 * raw.stddev).ceil().min(f64::from(LONGEST)) as u32;
    let max = raw.max.unwrap_or(reach.max(raw.min));
    let length = Length { mean, stddev: raw.stddev, min: raw.min, max, shape: raw.shape };
    if !context.is_sound(path) {
        return length;
    }
    let (min, largest) = (length.min, f64::from(length.max));
    if min > max {
        context.error(path, format!("`{path}` has `min` {min} above `max` {max}"), "swap them");
    } else if mean < f64::from(min) || mean > largest {
        let message = format!("`{path}` has its `mean` {mean} outside `min` {min} to `max` {max}");
        context.error(path, message, "choose a mean between them: draws outside are redrawn");
    } else if mass(&length) < LEAST_MASS {
        let message = format!("`{path}`: almost no draw falls between {min} and {max}");
        context.error(path, message, "widen `min` to `max`, or lower `stddev`");
    }
    length
}
