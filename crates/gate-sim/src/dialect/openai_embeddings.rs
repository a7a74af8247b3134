//! OpenAI embeddings: one body, and nothing is generated.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use gate_model::Api;
use serde_json::{Value, json};

use super::{Dialect, Reply, openai};
use crate::ask::{self, Ask, Embeddings, present};
use crate::http::Refusal;

/// How long a vector is where the request doesn't say.
const DIMENSIONS: u32 = 64;

/// The longest vector.
const MOST_DIMENSIONS: u32 = 4_096;

/// The most texts of one request, as at OpenAI's.
const MOST_INPUTS: usize = 2_048;

/// `POST /v1/embeddings`. The answer is due when the first token of a generation would be.
pub(crate) struct OpenaiEmbeddings;

impl Dialect for OpenaiEmbeddings {
    fn api(&self) -> Api {
        Api::OpenaiEmbeddings
    }

    fn ask(&self, body: &[u8]) -> Result<Ask, Refusal> {
        let fields = openai::fields(body)?;
        let (inputs, tokens) = match present(&fields, "input") {
            None => return Err(openai::missing("input")),
            Some(text @ Value::String(_)) => (1, ask::prompt_tokens(ask::words(text))),
            Some(Value::Array(items)) if (1..=MOST_INPUTS).contains(&items.len()) => inputs(items)?,
            Some(other) => return Err(openai::wrong_type("input", "a string or an array", other)),
        };
        let dimensions = match present(&fields, "dimensions") {
            None => DIMENSIONS,
            Some(value) => {
                let dimensions = value.as_u64().and_then(|value| u32::try_from(value).ok());
                let dimensions = dimensions.filter(|dimensions| (1..=MOST_DIMENSIONS).contains(dimensions));
                dimensions.ok_or_else(|| {
                    let message = format!("Invalid value for 'dimensions': must be from 1 to {MOST_DIMENSIONS}.");
                    Refusal::bad_request(&message).param("dimensions")
                })?
            }
        };
        let base64 = present(&fields, "encoding_format").is_some_and(|format| format == "base64");
        Ok(Ask {
            model: ask::model(&fields),
            include_usage: true,
            // The script of a generation whose only token is its first.
            max_tokens: 1,
            prompt_tokens: tokens,
            embeddings: Embeddings { inputs, dimensions, base64 },
            ..Ask::default()
        })
    }

    /// There is no stream.
    fn content(&self, _: &Reply<'_>, _: &mut Vec<u8>) {}

    fn closing(&self, _: &Reply<'_>, _: &mut Vec<u8>) {}

    fn body(&self, reply: &Reply<'_>) -> Value {
        let Embeddings { inputs, dimensions, base64 } = reply.ask.embeddings;
        let inputs = if reply.tokens > 0 { inputs } else { 0 };
        let data: Vec<Value> = (0..inputs)
            .map(|index| {
                let vector: Vec<f32> = vector(index, dimensions).collect();
                let embedding = match base64 {
                    true => {
                        STANDARD.encode(vector.iter().flat_map(|value| value.to_le_bytes()).collect::<Vec<_>>()).into()
                    }
                    false => json!(vector),
                };
                json!({"object": "embedding", "index": index, "embedding": embedding})
            })
            .collect();
        let tokens = reply.ask.prompt_tokens;
        let usage = json!({"prompt_tokens": tokens, "total_tokens": tokens});
        json!({"object": "list", "data": data, "model": reply.ask.model, "usage": usage})
    }

    fn embedded_failure(&self) -> Value {
        openai::embedded_failure()
    }
}

/// How many texts there are, and their tokens: a list of texts, of lists of tokens, or of the tokens of one text.
fn inputs(items: &[Value]) -> Result<(usize, u32), Refusal> {
    let count = |items: usize| u32::try_from(items).unwrap_or(u32::MAX);
    if items.iter().all(Value::is_u64) {
        return Ok((1, count(items.len())));
    }
    let (mut words, mut tokens) = (0, 0);
    for (position, item) in items.iter().enumerate() {
        match item {
            Value::String(_) => words += ask::words(item),
            Value::Array(ids) if !ids.is_empty() && ids.iter().all(Value::is_u64) => tokens += ids.len(),
            other => return Err(openai::wrong_type(&format!("input[{position}]"), "a string or token IDs", other)),
        }
    }
    Ok((items.len(), ask::prompt_tokens(words).saturating_add(count(tokens))))
}

/// A vector of length about 1, the same for the same position.
fn vector(index: usize, dimensions: u32) -> impl Iterator<Item = f32> {
    let scale = (2.0 / f64::from(dimensions)).sqrt();
    (0..dimensions).map(move |dimension| ((f64::from(dimension) + index as f64).sin() * scale) as f32)
}
