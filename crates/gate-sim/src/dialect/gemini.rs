//! Gemini, at Google's own API and at Vertex AI.

use gate_model::Api;
use serde::Serialize;
use serde_json::{Value, json};

use super::{Dialect, Reply, json};
use crate::ask::{self, Ask, present};
use crate::http::Refusal;

/// `POST …/models/MODEL:streamGenerateContent`, with and without `alt=sse`, and `:generateContent`.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gemini {
    /// Server-sent events.
    Sse,
    /// One array, written piece by piece.
    Array,
    /// One answer.
    Whole,
}

impl Dialect for Gemini {
    fn api(&self) -> Api {
        Api::Gemini
    }

    fn ask(&self, body: &[u8]) -> Result<Ask, Refusal> {
        let fields = ask::fields(body)?;
        let contents = ask::list(&fields, "contents")?;
        let system = present(&fields, "systemInstruction").and_then(|system| system.get("parts"));
        let words = contents.iter().filter_map(|content| content.get("parts")).chain(system).map(ask::words).sum();
        let config = ask::parameters(&fields, "generationConfig")?;
        Ok(Ask {
            stream: *self != Self::Whole,
            include_usage: true,
            max_tokens: ask::limit(&config, "maxOutputTokens")?,
            prompt_tokens: ask::prompt_tokens(words),
            ..Ask::default()
        })
    }

    fn stream_type(&self) -> &'static str {
        if *self == Self::Sse { "text/event-stream" } else { "application/json; charset=UTF-8" }
    }

    fn content(&self, reply: &Reply<'_>, out: &mut Vec<u8>) {
        self.piece(reply, &response(reply, reply.delta(), None), out);
    }

    /// An event without text; no end mark but the array's.
    fn closing(&self, reply: &Reply<'_>, out: &mut Vec<u8>) {
        self.piece(reply, &response(reply, "", Some(reply.reason("MAX_TOKENS", "STOP"))), out);
        self.end(out);
    }

    fn body(&self, reply: &Reply<'_>) -> Value {
        response(reply, &reply.text, Some(reply.reason("MAX_TOKENS", "STOP")))
    }

    /// An array of one error where the answer would have been an array.
    fn refusal(&self, refusal: &Refusal) -> Value {
        let status = match refusal.status {
            400 => "INVALID_ARGUMENT",
            401 => "UNAUTHENTICATED",
            404 => "NOT_FOUND",
            429 => "RESOURCE_EXHAUSTED",
            503 => "UNAVAILABLE",
            500.. => "INTERNAL",
            _ => "FAILED_PRECONDITION",
        };
        let error = json!({"error": {"code": refusal.status, "message": refusal.message, "status": status}});
        if *self == Self::Array { json!([error]) } else { error }
    }

    fn failure(&self) -> Refusal {
        Refusal::new(500, "An internal error has occurred. Please retry.")
    }

    fn rate_limit(&self) -> Refusal {
        Refusal::new(429, "Resource has been exhausted (e.g. check quota).")
    }

    /// The error as an element of the array; after server-sent events it is a bare document.
    fn broken_stream(&self, reply: &Reply<'_>, out: &mut Vec<u8>) {
        let error = Self::Whole.refusal(&self.failure());
        match self {
            Self::Array => self.piece(reply, &error, out),
            _ => json(out, &error),
        }
        self.end(out);
    }
}

impl Gemini {
    /// A response of the stream.
    fn piece(self, reply: &Reply<'_>, data: &Value, out: &mut Vec<u8>) {
        let (before, after): (&[u8], &[u8]) = match (self, reply.opened) {
            (Self::Array, false) => (b"[", b"\n"),
            (Self::Array, true) => (b",\r\n", b"\n"),
            _ => (b"data: ", b"\r\n\r\n"),
        };
        out.extend(before);
        json(out, data);
        out.extend(after);
    }

    fn end(self, out: &mut Vec<u8>) {
        if self == Self::Array {
            out.extend(b"]");
        }
    }
}

/// What a response holds. As in all of Google's JSON, what is absent or zero is left out.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Candidate<'a> {
    content: Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    finish_reason: Option<&'a str>,
    index: u32,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Usage {
    prompt_token_count: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    candidates_token_count: Option<u32>,
    total_token_count: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    cached_content_token_count: Option<u32>,
    prompt_tokens_details: Value,
}

/// A response with the usage so far.
fn response(reply: &Reply<'_>, text: &str, finish_reason: Option<&str>) -> Value {
    let content = json!({"parts": [{"text": text}], "role": "model"});
    let prompt = reply.ask.prompt_tokens;
    let usage = Usage {
        prompt_token_count: prompt,
        candidates_token_count: Some(reply.tokens).filter(|tokens| *tokens > 0),
        total_token_count: reply.total_tokens(),
        cached_content_token_count: reply.cached,
        prompt_tokens_details: json!([{"modality": "TEXT", "tokenCount": prompt}]),
    };
    json!({
        "candidates": [Candidate { content, finish_reason, index: 0 }], "usageMetadata": usage,
        "modelVersion": reply.ask.model, "responseId": format!("sim-{}", reply.number),
    })
}
