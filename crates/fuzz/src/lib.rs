//! What the fuzz targets check, each with one body.
//!
//! A body decodes to the same events, state and text in any split, whether or not the text is kept; events end where
//! the body has them, in order; the outcome is one that can be told. What panics, takes seconds, or grows beyond
//! what `cargo xtask fuzz` allows, the fuzzer reports by itself.
//!
//! Each function is one target, and has a file in `fuzz_targets/`. They are plain functions so that `cargo test`
//! runs the kept corpus through them, with neither fuzzer nor instrumentation.

mod decoding;
mod frames;

use gate_model::{Api, Custom, CustomFraming, Delivery};
use gate_wire::{by_name, decode_names, decode_saved, dialect};
use serde_json::{Map, Value};

use decoding::check;

/// OpenAI chat and completions: server-sent events.
pub fn openai_chat(body: &[u8]) {
    check(&*dialect(Api::OpenaiChat, None), Delivery::Streamed, body);
    check(&*dialect(Api::OpenaiCompletions, None), Delivery::Streamed, body);
}

/// OpenAI responses.
pub fn openai_responses(body: &[u8]) {
    check(&*dialect(Api::OpenaiResponses, None), Delivery::Streamed, body);
}

/// Anthropic messages.
pub fn anthropic(body: &[u8]) {
    check(&*dialect(Api::Anthropic, None), Delivery::Streamed, body);
}

/// Gemini: server-sent events, or a JSON array.
pub fn gemini(body: &[u8]) {
    check(&*dialect(Api::Gemini, None), Delivery::Streamed, body);
}

/// Cohere.
pub fn cohere(body: &[u8]) {
    check(&*dialect(Api::Cohere, None), Delivery::Streamed, body);
}

/// Ollama: lines of JSON.
pub fn ollama(body: &[u8]) {
    check(&*dialect(Api::Ollama, None), Delivery::Streamed, body);
}

/// Bedrock: AWS event streams. No mutation hits a checksum, so each body is decoded also with its checksums mended,
/// and as the payloads of sound frames, one a line.
pub fn event_stream(body: &[u8]) {
    for api in [Api::BedrockConverse, Api::BedrockInvoke] {
        let dialect = dialect(api, None);
        check(&*dialect, Delivery::Streamed, body);
        check(&*dialect, Delivery::Streamed, &frames::mended(body));
        check(&*dialect, Delivery::Streamed, &frames::framed(body, api == Api::BedrockInvoke));
    }
}

/// The servers' own routes: SGLang's texts, whole and new, and the others'.
pub fn native(body: &[u8]) {
    for name in ["sglang", "tgi", "llamacpp", "triton", "replicate"] {
        if let Some(dialect) = by_name(name) {
            check(&*dialect, Delivery::Streamed, body);
        }
    }
}

/// A stream that a spec describes, in both framings.
pub fn custom(body: &[u8]) {
    for framing in [CustomFraming::Sse, CustomFraming::Ndjson] {
        let custom = Custom {
            path: "/generate".to_owned(),
            body: Map::new(),
            text: "/output/0/text".to_owned(),
            input_tokens: Some("/usage/input".to_owned()),
            output_tokens: Some("/usage/output".to_owned()),
            end: Some("/done".to_owned()),
            framing,
        };
        check(&*dialect(Api::Custom, Some(&custom)), Delivery::Streamed, body);
    }
}

/// A whole answer, in every dialect.
pub fn whole(body: &[u8]) {
    for api in Api::ALL {
        check(&*dialect(api, None), Delivery::Whole, body);
    }
}

/// A saved body, as `gate decode` reads it, and the message of an error's body.
pub fn saved(body: &[u8]) {
    for name in decode_names() {
        let Some(dialect) = by_name(name) else { continue };
        let decoded = decode_saved(&*dialect, body);
        assert!(decoded.content_events <= decoded.events, "{name}: more events with content than events");
        assert!(serde_json::to_value(&decoded).is_ok_and(|value| value != Value::Null), "{name}: no JSON");
        let message = dialect.error_message(body).unwrap_or_default();
        assert!(message.chars().count() <= 300 && !message.contains('\n'), "{name}: not one short line: {message}");
    }
}
