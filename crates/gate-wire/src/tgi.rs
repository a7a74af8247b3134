//! Text Generation Inference's own routes.

use gate_model::{Delivery, Secret, Usage};
use serde_json::{Map, Value, json};
use url::Url;

use crate::framing::Sse;
use crate::message::is_set;
use crate::piece::{Merge, Piece, Reported};
use crate::progress::{Means, Progress};
use crate::reader::{Schema, decoder};
use crate::request::{EVENT_STREAM, Ends, joined};
use crate::shape::{Count, Found};
use crate::{Ask, Decoder, Dialect, Keep, WireRequest};

const ENDS: Ends = Ends { prefix: "", streamed: "/generate_stream", whole: "/generate", stream_type: EVENT_STREAM };

/// The dialect. The prompt is the messages' texts, joined by blank lines; a server has one model. Nothing in it asks
/// for an exact length: `OutputLength::Exact` sends what `AtMost` sends.
pub(crate) struct Tgi;

impl Dialect for Tgi {
    fn request(&self, base: &Url, key: Option<&Secret>, ask: &Ask<'_>) -> WireRequest {
        ENDS.request(base, "", key, fields(ask), ask)
    }

    /// What a server says of itself, its one model included.
    fn models_path(&self, base: &Url) -> String {
        ENDS.beside(base, "/info", "/info")
    }

    fn decoder(&self, delivery: Delivery, keep: Keep) -> Box<dyn Decoder> {
        decoder::<Sse>(Events, Answer, delivery, keep)
    }
}

/// The body's fields. Without `details` there is no usage.
fn fields(ask: &Ask<'_>) -> Map<String, Value> {
    let parameters = json!({"max_new_tokens": ask.max_output_tokens, "details": true});
    Map::from_iter([("inputs".to_owned(), joined(&ask.prompt.messages).into()), ("parameters".to_owned(), parameters)])
}

/// Reads the events of a stream.
#[derive(Clone)]
struct Events;

impl Schema for Events {
    type Event<'a, P: Piece> = Event<P>;

    fn take<P: Piece>(&mut self, event: Event<P>, progress: &mut Progress<P>) -> Option<Means> {
        if event.error.as_ref().is_some_and(is_set) {
            return Some(Means::Error);
        }
        let token = event.token?;
        // A special token is generated, but is no text. `generated_text` repeats it all.
        progress.say(0, Found { text: token.text.only_if(!token.special), ..Found::default() });
        report(event.details, progress);
        Some(if event.generated_text.is_some() { Means::End("generated_text") } else { Means::More })
    }
}

/// Reads a whole answer.
#[derive(Clone)]
struct Answer;

impl Schema for Answer {
    type Event<'a, P: Piece> = Whole<P>;

    fn take<P: Piece>(&mut self, answer: Whole<P>, progress: &mut Progress<P>) -> Option<Means> {
        progress.say(0, Found { text: answer.generated_text?, ..Found::default() });
        report(answer.details, progress);
        Some(Means::More)
    }
}

fn report<P: Piece>(details: Option<Reported<P, Details>>, progress: &mut Progress<P>) {
    if let Some(Reported { value, raw }) = details {
        let usage = Usage { input: value.input_length.0, output: value.generated_tokens.0, ..Usage::default() };
        progress.usage((usage != Usage::default()).then_some(usage), raw, Merge::Whole);
        progress.finish(value.finish_reason);
    }
}

/// One event of a stream.
#[derive(serde::Deserialize)]
#[serde(bound(deserialize = "P: Piece"))]
struct Event<P: Piece> {
    token: Option<Token<P>>,
    generated_text: Option<serde::de::IgnoredAny>,
    details: Option<Reported<P, Details>>,
    error: Option<Value>,
}

#[derive(serde::Deserialize)]
#[serde(bound(deserialize = "P: Piece"))]
struct Token<P> {
    #[serde(default)]
    text: P,
    #[serde(default)]
    special: bool,
}

/// One whole answer.
#[derive(serde::Deserialize)]
#[serde(bound(deserialize = "P: Piece"))]
struct Whole<P: Piece> {
    generated_text: Option<P>,
    details: Option<Reported<P, Details>>,
}

#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct Details {
    finish_reason: Option<String>,
    generated_tokens: Count,
    input_length: Count,
}
