//! What every dialect can do.

use std::sync::Arc;

use gate_model::{Api, Custom, Delivery, MaxTokensField, OutputLength, Prompt, Secret};
use serde_json::{Map, Value};
use url::Url;

use crate::anthropic::Anthropic;
use crate::bedrock::{BedrockConverse, BedrockInvoke};
use crate::cohere::Cohere;
use crate::custom::Described;
use crate::gemini::Gemini;
use crate::llamacpp::Llamacpp;
use crate::ollama::Ollama;
use crate::openai_chat::OpenaiChat;
use crate::openai_completions::OpenaiCompletions;
use crate::openai_embeddings::OpenaiEmbeddings;
use crate::openai_responses::OpenaiResponses;
use crate::sglang::Sglang;
use crate::tgi::Tgi;
use crate::triton::Triton;
use crate::{Decoder, Keep, message};

/// What one request asks.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// The model's name; absent where the server has only one.
    pub model: Option<&'a str>,
    /// The messages.
    pub prompt: &'a Prompt,
    /// How many tokens the answer has at most.
    pub max_output_tokens: u32,
    /// The field that says so, in the chat dialect of OpenAI; the others have one.
    pub max_tokens_field: MaxTokensField,
    /// Whether the answer is to be that long exactly: what asks for it in the dialect is then sent too, such as
    /// `ignore_eos` and `min_tokens`. Some dialects have nothing of the kind.
    pub output: OutputLength,
    /// How the answer comes.
    pub delivery: Delivery,
    /// Fields merged into the body, objects deeply; they win over what the dialect writes.
    pub extra_body: &'a Map<String, Value>,
}

/// A request as it is sent, by POST.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WireRequest {
    /// Path and query.
    pub path: String,
    /// Headers, names in lower case; neither `host` nor `content-length` is among them.
    pub headers: Vec<(&'static str, Secret)>,
    /// The body.
    pub body: Vec<u8>,
}

/// One API, seen from the client.
pub trait Dialect: Send + Sync {
    /// The request for a target. An empty path of `base` gets the dialect's prefix and route; a path that ends in
    /// the route is used as it is; to any other the route's tail is appended. The query is kept.
    fn request(&self, base: &Url, key: Option<&Secret>, ask: &Ask<'_>) -> WireRequest;

    /// The path and query of the list of models beside the route, such as `/v1/models`.
    fn models_path(&self, base: &Url) -> String;

    /// A decoder for one response with a 2xx status, delivered as the request asked, which keeps this much of it.
    fn decoder(&self, delivery: Delivery, keep: Keep) -> Box<dyn Decoder>;

    /// The field that the server wants for the length of answers, where its refusal of a request names one. It may
    /// be the one that was sent.
    fn wants_field(&self, _status: u16, _body: &[u8]) -> Option<MaxTokensField> {
        None
    }

    /// What a body that is not a stream says, in one line of at most 300 characters: the error message of a JSON
    /// document, the title of an HTML page, else its beginning. `None` where it says nothing.
    fn error_message(&self, body: &[u8]) -> Option<String> {
        message::of_body(body)
    }
}

/// The dialect of an API, which `custom` describes where it is a spec's own. Without a description, nothing in an
/// answer counts.
#[must_use]
pub fn dialect(api: Api, custom: Option<&Custom>) -> Arc<dyn Dialect> {
    match api {
        Api::OpenaiChat => Arc::new(OpenaiChat),
        Api::OpenaiCompletions => Arc::new(OpenaiCompletions),
        Api::OpenaiResponses => Arc::new(OpenaiResponses),
        Api::OpenaiEmbeddings => Arc::new(OpenaiEmbeddings),
        Api::Anthropic => Arc::new(Anthropic),
        Api::Gemini => Arc::new(Gemini),
        Api::Cohere => Arc::new(Cohere),
        Api::Ollama => Arc::new(Ollama),
        Api::BedrockConverse => Arc::new(BedrockConverse),
        Api::BedrockInvoke => Arc::new(BedrockInvoke),
        Api::Tgi => Arc::new(Tgi),
        Api::Llamacpp => Arc::new(Llamacpp),
        Api::Sglang => Arc::new(Sglang),
        Api::Triton => Arc::new(Triton),
        Api::Custom => Arc::new(Described::new(custom)),
    }
}
