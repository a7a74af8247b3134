//! Gemini, and Gemini on Vertex AI.

mod chunk;

use gate_model::{Delivery, Message, Role, Secret};
use serde_json::{Map, Value, json};
use url::Url;

use crate::framing::SseOrArray;
use crate::reader::decoder;
use crate::request::{EVENT_STREAM, bearer, joined, present, segment, with_query, written};
use crate::{Ask, Decoder, Dialect, Keep, WireRequest, image};

/// What a path ends in, by how the answer comes.
const STREAMED: &str = ":streamGenerateContent";
const WHOLE: &str = ":generateContent";

/// The dialect. Nothing in it asks for an exact length: `OutputLength::Exact` sends what `AtMost` sends.
pub(crate) struct Gemini;

impl Dialect for Gemini {
    fn request(&self, base: &Url, key: Option<&Secret>, ask: &Ask<'_>) -> WireRequest {
        written(path_and_query(base, ask), EVENT_STREAM, auth(base, key), fields(ask), ask)
    }

    fn models_path(&self, base: &Url) -> String {
        let path = match base.path().trim_end_matches('/') {
            "" => "/v1beta/models".to_owned(),
            path => match path.rfind("/models") {
                Some(at) => path.get(..at).map(|parent| format!("{parent}/models")).unwrap_or_default(),
                None => format!("{path}/models"),
            },
        };
        with_query(base, path)
    }

    fn decoder(&self, delivery: Delivery, keep: Keep) -> Box<dyn Decoder> {
        decoder::<SseOrArray>(chunk::Chunks::default(), chunk::Chunks::default(), delivery, keep)
    }
}

/// Where the request goes: the model is part of the path, and only `alt=sse` makes a stream of events.
///
/// An empty path gets `/v1beta`, one of a Vertex location its publisher; one that names a model, or an endpoint of
/// Vertex, only lacks the method.
fn path_and_query(base: &Url, ask: &Ask<'_>) -> String {
    let method = match ask.delivery {
        Delivery::Streamed => STREAMED,
        Delivery::Whole => WHOLE,
    };
    let path = base.path().trim_end_matches('/');
    let path = path.strip_suffix(STREAMED).or(path.strip_suffix(WHOLE)).unwrap_or(path);
    let path = match (ask.model, path.strip_suffix("/models")) {
        _ if path.contains("/models/") || path.contains("/endpoints/") => format!("{path}{method}"),
        (None, _) => format!("{path}{method}"),
        (Some(model), _) if path.is_empty() => format!("/v1beta/{}{method}", resource("models", model)),
        (Some(model), Some(parent)) => format!("{parent}/{}{method}", resource("models", model)),
        (Some(model), None) if path.contains("/locations/") && !path.contains("/publishers/") => {
            format!("{path}/{}{method}", resource("publishers/google/models", model))
        }
        (Some(model), None) => format!("{path}/{}{method}", resource("models", model)),
    };
    let has_alt = base.query_pairs().any(|(name, _)| name == "alt");
    let alt = (ask.delivery == Delivery::Streamed && !has_alt).then_some("alt=sse");
    match (base.query(), alt) {
        (None, None) => path,
        (Some(query), None) | (None, Some(query)) => format!("{path}?{query}"),
        (Some(query), Some(alt)) => format!("{path}?{query}&{alt}"),
    }
}

/// A model in its collection, which is this one unless its name says another. The name is one segment.
fn resource(collection: &str, model: &str) -> String {
    let model = model.strip_prefix("models/").unwrap_or(model);
    match model.split('/').collect::<Vec<_>>().as_slice() {
        ["tunedModels", name] => format!("tunedModels/{}", segment(name)),
        ["publishers", publisher, "models", name] => {
            format!("publishers/{}/models/{}", segment(publisher), segment(name))
        }
        _ => format!("{collection}/{}", segment(model)),
    }
}

/// The header of the key. Vertex wants tokens, unless it is an API key of its express mode.
fn auth(base: &Url, key: Option<&Secret>) -> Vec<(&'static str, Secret)> {
    let is_vertex = base.host_str().unwrap_or_default().ends_with("aiplatform.googleapis.com")
        || base.path().contains("/projects/");
    let is_token = |key: &Secret| key.expose().starts_with("ya29.") || (is_vertex && !key.expose().starts_with("AIza"));
    match key {
        Some(key) if !is_token(key) => vec![("x-goog-api-key", key.clone())],
        key => bearer(key),
    }
}

/// The body's fields. A system prompt is one of them, not a content.
fn fields(ask: &Ask<'_>) -> Map<String, Value> {
    let (system, rest): (Vec<&Message>, Vec<_>) =
        ask.prompt.messages.iter().partition(|message| message.role == Role::System);
    let content = |message: &Message| {
        let role = if message.role == Role::Assistant { "model" } else { "user" };
        json!({"role": role, "parts": image::parts(message, image::gemini_part, |text| json!({"text": text}))})
    };
    present([
        ("systemInstruction", (!system.is_empty()).then(|| json!({"parts": [{"text": joined(system)}]}))),
        ("contents", Some(rest.into_iter().map(content).collect())),
        ("generationConfig", Some(json!({"maxOutputTokens": ask.max_output_tokens}))),
    ])
}
