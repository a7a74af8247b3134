//! What the two OpenAI dialects share: the fields of a request, and the shape of a chunk, which differ only in what a
//! choice carries.

use std::marker::PhantomData;

use gate_model::{Delivery, OutputLength, Secret, Usage};
use serde::de::{Deserialize, DeserializeOwned};
use serde_json::{Map, Value, json};
use url::Url;

use crate::Ask;
use crate::message::is_set;
use crate::piece::{Log, Merge, Piece, Reported};
use crate::progress::{Means, Progress};
use crate::reader::Schema;
use crate::request::{Route, bearer, present, with_query};
use crate::restarts::{Restarts, Seen};
use crate::shape::{Count, Few, Found, Name};

/// Whether a URL is of Azure's, where keys have a header of their own.
fn is_azure(base: &Url) -> bool {
    const HOSTS: [&str; 4] =
        [".openai.azure.com", ".cognitiveservices.azure.com", ".services.ai.azure.com", ".azure-api.net"];
    let host = base.host_str().unwrap_or_default();
    HOSTS.iter().any(|azure| host.ends_with(azure)) || base.path().starts_with(DEPLOYMENTS)
}

/// Where Azure's deployments lie.
const DEPLOYMENTS: &str = "/openai/deployments/";

/// The route on a host.
pub(crate) fn route_on(base: &Url, route: Route<'static>) -> Route<'static> {
    match is_azure(base) {
        true => Route { prefix: "/openai/v1", ..route },
        false => route,
    }
}

/// The path and query of the list of models. Azure's is not beside a deployment's route.
pub(crate) fn models_path(base: &Url, route: Route<'static>) -> String {
    if base.path().starts_with(DEPLOYMENTS) {
        return with_query(base, "/openai/models".to_owned());
    }
    route_on(base, route).models_path(base)
}

/// The header of the key: a bearer token, but `api-key` with Azure, unless it is one of its directory's tokens.
pub(crate) fn auth(base: &Url, key: Option<&Secret>) -> Vec<(&'static str, Secret)> {
    match key {
        Some(key) if is_azure(base) && !key.expose().starts_with("eyJ") => vec![("api-key", key.clone())],
        key => bearer(key),
    }
}

/// The fields of a request's body. `ignore_eos` and `min_tokens` are what vLLM, SGLang and llama.cpp know.
pub(crate) fn fields(ask: &Ask<'_>, (prompt, value): (&str, Value), max_tokens: &str) -> Map<String, Value> {
    let streamed = ask.delivery == Delivery::Streamed;
    let exact = ask.output == OutputLength::Exact;
    present([
        ("model", ask.model.map(Value::from)),
        (prompt, Some(value)),
        ("stream", streamed.then_some(true.into())),
        ("stream_options", streamed.then(|| json!({"include_usage": true}))),
        (max_tokens, Some(ask.max_output_tokens.into())),
        ("ignore_eos", exact.then_some(true.into())),
        ("min_tokens", exact.then_some(ask.max_output_tokens.into())),
    ])
}

/// What a choice looks like: the one thing in which the dialects' chunks and whole answers differ.
pub(crate) trait ChoiceShape: Clone + Default + Send + 'static {
    /// The choice.
    type Choice<P: Piece>: DeserializeOwned + Into<Choice<P>>;
}

/// Reads chunks, or whole answers, with choices of shape `C`.
#[derive(Clone, Default)]
pub(crate) struct Openai<C> {
    /// The index of the choice that gave the finish reason.
    finished_choice: u64,
    restarts: Restarts,
    choices: PhantomData<fn() -> C>,
}

impl<C: ChoiceShape> Schema for Openai<C> {
    type Event<'a, P: Piece> = Chunk<'a, P, C::Choice<P>>;

    const STEADY: bool = true;

    fn take<P: Piece>(&mut self, chunk: Chunk<'_, P, C::Choice<P>>, progress: &mut Progress<P>) -> Option<Means> {
        if chunk.is_foreign() {
            return None;
        }
        progress.model(&chunk.model);
        progress.fingerprint(&chunk.system_fingerprint);
        let mut usage = chunk.usage;
        for choice in chunk.choices.unwrap_or_default() {
            let choice: Choice<P> = choice.into();
            let index = choice.index.unwrap_or(0);
            let reason = choice.finish_reason.filter(|reason| !reason.is_empty());
            let seen = Seen {
                id: chunk.id.get(),
                has_role: choice.has_role,
                has_content: choice.found.is_content(),
                has_finished: reason.is_some(),
            };
            if self.restarts.chunk(index, seen) {
                progress.restart();
            }
            progress.say(index, choice.found);
            if let Some(reason) = reason {
                progress.log.finish(index, &reason);
                if progress.state.finish_reason.is_none() || index <= self.finished_choice {
                    self.finished_choice = index;
                    progress.state.finish_reason = Some(reason);
                }
            }
            usage = usage.or(choice.usage);
        }
        if let Some(usage) = usage.or(chunk.x_groq.and_then(|groq| groq.usage)) {
            progress.usage(usage.value.normalised(), usage.raw, Merge::Whole);
        }
        let has_error = chunk.error.as_ref().is_some_and(is_set);
        Some(if has_error { Means::Error } else { Means::More })
    }
}

/// One chunk, or one whole answer. Its usage is at the top, in a choice (Moonshot) or in an extension (Groq).
#[derive(serde::Deserialize)]
#[serde(bound(deserialize = "P: Piece, C: Deserialize<'de>"))]
pub(crate) struct Chunk<'a, P: Piece, C> {
    #[serde(borrow, default)]
    id: Name<'a>,
    #[serde(borrow, default)]
    model: Name<'a>,
    #[serde(borrow, default)]
    system_fingerprint: Name<'a>,
    choices: Option<Few<C>>,
    usage: Option<Reported<P, Tokens>>,
    x_groq: Option<Groq<P>>,
    error: Option<Value>,
}

impl<P: Piece, C> Chunk<'_, P, C> {
    /// Whether it has nothing that a chunk has.
    fn is_foreign(&self) -> bool {
        self.choices.is_none() && self.usage.is_none() && self.x_groq.is_none() && self.error.is_none()
    }
}

#[derive(serde::Deserialize)]
#[serde(bound(deserialize = "P: Piece"))]
struct Groq<P: Piece> {
    usage: Option<Reported<P, Tokens>>,
}

/// What a choice says, whatever carries its content.
pub(crate) struct Choice<P: Piece> {
    pub(crate) index: Option<u64>,
    pub(crate) has_role: bool,
    pub(crate) found: Found<P>,
    pub(crate) finish_reason: Option<String>,
    pub(crate) usage: Option<Reported<P, Tokens>>,
}

/// Token counts as servers spell them.
#[derive(Default, serde::Deserialize)]
#[serde(default)]
pub(crate) struct Tokens {
    prompt_tokens: Count,
    completion_tokens: Count,
    total_tokens: Count,
    prompt_tokens_details: Option<PromptDetails>,
    completion_tokens_details: Option<CompletionDetails>,
    /// DeepSeek.
    prompt_cache_hit_tokens: Count,
    /// Moonshot.
    cached_tokens: Count,
}

#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct PromptDetails {
    cached_tokens: Count,
}

#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct CompletionDetails {
    reasoning_tokens: Count,
}

impl Tokens {
    /// Input with cached, output with reasoning; `None` where nothing is reported.
    pub(crate) fn normalised(&self) -> Option<Usage> {
        let in_details = self.prompt_tokens_details.as_ref().and_then(|details| details.cached_tokens.0);
        let cached = in_details.or(self.prompt_cache_hit_tokens.0).or(self.cached_tokens.0);
        let reasoning = self.completion_tokens_details.as_ref().and_then(|details| details.reasoning_tokens.0);
        let (input, completion) = (self.prompt_tokens.0, self.completion_tokens.0);
        let output = match (input, completion, reasoning, self.total_tokens.0) {
            // xAI leaves reasoning out of the completion's tokens, as its total shows.
            (Some(input), Some(completion), Some(reasoning), Some(total))
                if total == input.saturating_add(completion).saturating_add(reasoning) =>
            {
                Some(completion.saturating_add(reasoning))
            }
            _ => completion,
        };
        let usage = Usage { input, output, cached, reasoning };
        (usage != Usage::default()).then_some(usage)
    }
}
