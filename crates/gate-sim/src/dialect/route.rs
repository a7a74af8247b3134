//! Which dialect is spoken where.

use percent_encoding::percent_decode_str;

use super::bedrock_converse::BedrockConverse;
use super::bedrock_invoke::BedrockInvoke;
use super::gemini::Gemini;
use super::openai_completions::OpenaiCompletions;
use super::openai_embeddings::OpenaiEmbeddings;
use super::openai_responses::OpenaiResponses;
use super::tgi::Tgi;
use super::triton::Triton;
use super::{Dialect, Ollama, OpenaiChat, anthropic, cohere, llamacpp, sglang};
use crate::ask::{self, present};
use crate::http::Request;

/// The dialect that is spoken at a request's path, and the model where the path names it. TGI and SGLang share
/// `/generate`: there the body tells them apart.
pub(crate) fn at(request: &Request) -> Option<(&'static dyn Dialect, Option<String>)> {
    let dialect: &'static dyn Dialect = match request.path.as_str() {
        "/v1/chat/completions" => &OpenaiChat,
        "/v1/completions" => &OpenaiCompletions,
        "/v1/responses" => &OpenaiResponses,
        "/v1/embeddings" => &OpenaiEmbeddings,
        "/v1/messages" => &anthropic::Anthropic,
        "/v2/chat" => &cohere::Cohere,
        "/api/chat" => &Ollama::Chat,
        "/api/generate" => &Ollama::Generate,
        "/generate_stream" => &Tgi::Stream,
        "/generate" if ask::fields(&request.body).is_ok_and(|fields| present(&fields, "inputs").is_some()) => {
            &Tgi::Whole
        }
        "/generate" => &sglang::Sglang,
        "/completion" => &llamacpp::Llamacpp,
        path => return of_model(path, &request.query),
    };
    Some((dialect, None))
}

/// The dialects that have the model in their path.
fn of_model(path: &str, query: &str) -> Option<(&'static dyn Dialect, Option<String>)> {
    let (before, last) = path.rsplit_once('/')?;
    let (dialect, model): (&'static dyn Dialect, &str) = if let Some((model, verb)) = last.rsplit_once(':') {
        let is_model = ["/models", "/endpoints"].iter().any(|parent| before.ends_with(parent));
        let model = is_model.then_some(model)?;
        let is_sse = query.split('&').any(|pair| pair == "alt=sse");
        match verb {
            "generateContent" => (&Gemini::Whole, model),
            "streamGenerateContent" if is_sse => (&Gemini::Sse, model),
            "streamGenerateContent" => (&Gemini::Array, model),
            _ => return None,
        }
    } else if let Some(model) = before.strip_prefix("/model/") {
        match last {
            "converse" => (&BedrockConverse::Whole, model),
            "converse-stream" => (&BedrockConverse::Stream, model),
            "invoke" => (&BedrockInvoke::Whole, model),
            "invoke-with-response-stream" => (&BedrockInvoke::Stream, model),
            _ => return None,
        }
    } else {
        let model = before.strip_prefix("/v2/models/")?;
        let model = model.split_once("/versions/").map_or(model, |(model, _)| model);
        match last {
            "generate" => (&Triton::Whole, model),
            "generate_stream" => (&Triton::Stream, model),
            _ => return None,
        }
    };
    if model.is_empty() || model.contains('/') {
        return None;
    }
    Some((dialect, Some(percent_decode_str(model).decode_utf8_lossy().into_owned())))
}
