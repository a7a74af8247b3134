//! The shape of a chunk, which a whole answer has too.

use gate_model::Usage;
use serde_json::Value;

use crate::StreamError;
use crate::message::is_set;
use crate::piece::{Log, Merge, Piece, Presence, Reported};
use crate::progress::{Means, Progress};
use crate::reader::Schema;
use crate::restarts::{Restarts, Seen};
use crate::shape::{Count, Few, Found, Joined, Name};

/// Reads chunks. There is no terminator: a stream has ended where the body ends, and the last chunk with a candidate
/// gave a finish reason. Some servers give one in every chunk.
#[derive(Clone, Default)]
pub(super) struct Chunks {
    has_finished: bool,
    restarts: Restarts,
}

impl Schema for Chunks {
    type Event<'a, P: Piece> = Chunk<'a, P>;

    const STEADY: bool = true;

    fn take<P: Piece>(&mut self, chunk: Chunk<'_, P>, progress: &mut Progress<P>) -> Option<Means> {
        if chunk.is_foreign() {
            return None;
        }
        progress.model(&chunk.model_version);
        for (place, candidate) in (0..).zip(chunk.candidates.unwrap_or_default()) {
            let index = candidate.index.0.unwrap_or(place);
            let found = candidate.content.unwrap_or_default().parts.found;
            let seen = Seen { id: chunk.response_id.get(), has_content: found.is_content(), ..Seen::default() };
            if self.restarts.chunk(index, seen) {
                progress.restart();
            }
            progress.say(index, found);
            let reason = candidate.finish_reason.filter(|reason| !reason.is_empty());
            self.has_finished = reason.is_some();
            if let Some(reason) = reason {
                progress.log.end("finishReason");
                progress.log.finish(index, &reason);
                if index == 0 || progress.state.finish_reason.is_none() {
                    progress.state.finish_reason = Some(reason);
                }
            }
        }
        if let Some(usage) = chunk.usage_metadata {
            progress.usage(usage.value.normalised(), usage.raw, Merge::Whole);
        }
        if chunk.error.as_ref().is_some_and(is_set) {
            return Some(Means::Error);
        }
        if let Some(reason) = chunk.prompt_feedback.and_then(|feedback| feedback.block_reason) {
            let error = StreamError { kind: Some("prompt_blocked".to_owned()), message: reason, server: false };
            progress.state.error.get_or_insert(error);
            return Some(Means::Error);
        }
        Some(Means::More)
    }

    fn close<P: Piece>(&mut self, progress: &mut Progress<P>) {
        if self.has_finished && progress.state.error.is_none() && progress.state.failure.is_none() {
            progress.end("finishReason");
        }
    }
}

/// One chunk, or a whole answer.
#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase", bound(deserialize = "P: Piece"))]
pub(super) struct Chunk<'a, P: Piece> {
    candidates: Option<Few<Candidate<P>>>,
    prompt_feedback: Option<Feedback>,
    usage_metadata: Option<Reported<P, Tokens>>,
    #[serde(borrow, default)]
    model_version: Name<'a>,
    #[serde(borrow, default)]
    response_id: Name<'a>,
    error: Option<Value>,
}

impl<P: Piece> Chunk<'_, P> {
    /// Whether it has nothing that a chunk has.
    fn is_foreign(&self) -> bool {
        self.candidates.is_none()
            && self.prompt_feedback.is_none()
            && self.usage_metadata.is_none()
            && self.error.is_none()
    }
}

#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct Feedback {
    block_reason: Option<String>,
}

#[derive(Default, serde::Deserialize)]
#[serde(default, rename_all = "camelCase", bound(deserialize = "P: Piece"))]
struct Candidate<P: Piece> {
    index: Count,
    content: Option<Content<P>>,
    finish_reason: Option<String>,
}

#[derive(Default, serde::Deserialize)]
#[serde(default, bound(deserialize = "P: Piece"))]
struct Content<P: Piece> {
    parts: Joined<P, Part<P>>,
}

/// A part. Pictures and the results of executed code are other fields: no text of the model's.
#[derive(Default, serde::Deserialize)]
#[serde(default, rename_all = "camelCase", bound(deserialize = "P: Piece"))]
struct Part<P: Piece> {
    text: P,
    thought: Option<bool>,
    thought_signature: Presence,
    function_call: Option<Call<P>>,
    executable_code: Option<Code<P>>,
}

#[derive(Default, serde::Deserialize)]
#[serde(default, bound(deserialize = "P: Piece"))]
struct Call<P: Piece> {
    name: P,
    args: P::Raw,
}

#[derive(Default, serde::Deserialize)]
#[serde(default, bound(deserialize = "P: Piece"))]
struct Code<P: Piece> {
    code: P,
}

impl<P: Piece> From<Part<P>> for Found<P> {
    fn from(part: Part<P>) -> Self {
        let is_thought = part.thought == Some(true);
        let mut tool = part.executable_code.unwrap_or_default().code;
        let call = part.function_call.unwrap_or_default();
        if !call.name.is_empty() {
            tool.join(call.name);
            tool.join(P::json(call.args));
        }
        let (text, reasoning) = match is_thought {
            true => (P::default(), part.text),
            false => (part.text, P::default()),
        };
        Self { text, reasoning, tool, opaque: !part.thought_signature.is_empty(), ..Self::default() }
    }
}

/// Token counts.
#[derive(Default, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Tokens {
    prompt_token_count: Count,
    candidates_token_count: Count,
    thoughts_token_count: Count,
    cached_content_token_count: Count,
    total_token_count: Count,
}

impl Tokens {
    /// Thoughts are not among the candidates' tokens, unless the total shows that they are.
    fn normalised(&self) -> Option<Usage> {
        let (input, candidates, thoughts) =
            (self.prompt_token_count.0, self.candidates_token_count.0, self.thoughts_token_count.0);
        let apart = match (input, candidates, self.total_token_count.0) {
            (Some(input), Some(candidates), Some(total)) => input.saturating_add(candidates) != total,
            _ => true,
        };
        let output = match (candidates, thoughts) {
            (Some(candidates), Some(thoughts)) if apart => Some(candidates.saturating_add(thoughts)),
            (Some(candidates), _) => Some(candidates),
            (None, thoughts) => thoughts,
        };
        let usage = Usage { input, output, cached: self.cached_content_token_count.0, reasoning: thoughts };
        (usage != Usage::default()).then_some(usage)
    }
}
