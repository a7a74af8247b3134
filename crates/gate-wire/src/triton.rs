//! Triton's generate extension, as TensorRT-LLM's models take it.

use gate_model::{Delivery, OutputLength, Secret};
use serde_json::{Map, Value};
use url::Url;

use crate::cumulative::Cumulative;
use crate::framing::Sse;
use crate::message::is_set;
use crate::piece::{Kept, Piece};
use crate::progress::{Means, Progress};
use crate::reader::{Schema, decoder};
use crate::request::{EVENT_STREAM, Ends, joined, present, segment};
use crate::shape::{Found, Name};
use crate::{Ask, Decoder, Dialect, Keep, WireRequest};

const ENDS: Ends = Ends { prefix: "/v2", streamed: "/generate_stream", whole: "/generate", stream_type: EVENT_STREAM };

/// The dialect. The prompt is the messages' texts, joined by blank lines. Answers report no usage.
pub(crate) struct Triton;

impl Dialect for Triton {
    fn request(&self, base: &Url, key: Option<&Secret>, ask: &Ask<'_>) -> WireRequest {
        let stem = format!("/models/{}", segment(ask.model.unwrap_or_default()));
        ENDS.request(base, &stem, key, fields(ask), ask)
    }

    /// Whether the model is ready where the path names it, else the server.
    fn models_path(&self, base: &Url) -> String {
        ENDS.beside(base, "/ready", "/health/ready")
    }

    fn decoder(&self, delivery: Delivery, keep: Keep) -> Box<dyn Decoder> {
        decoder::<Sse>(Events::default(), Events::default(), delivery, keep)
    }
}

/// The body's fields. Older models call `min_tokens` `min_length`; what a model has no input for is ignored.
fn fields(ask: &Ask<'_>) -> Map<String, Value> {
    let least = (ask.output == OutputLength::Exact).then(|| Value::from(ask.max_output_tokens));
    present([
        ("text_input", Some(joined(&ask.prompt.messages).into())),
        ("max_tokens", Some(ask.max_output_tokens.into())),
        ("min_tokens", least.clone()),
        ("min_length", least),
        ("stream", (ask.delivery == Delivery::Streamed).then_some(true.into())),
    ])
}

/// Reads the events of a stream, or a whole answer, which looks like one. The end of the body is the only end there
/// is. With `accumulate_tokens` each text is the whole so far.
#[derive(Clone, Default)]
struct Events {
    texts: Cumulative,
    /// Whether the latest event was not JSON: the end of the body has cut it.
    is_cut: bool,
}

impl Schema for Events {
    type Event<'a, P: Piece> = Event<'a>;

    fn take<P: Piece>(&mut self, event: Event<'_>, progress: &mut Progress<P>) -> Option<Means> {
        if event.error.as_ref().is_some_and(is_set) {
            return Some(Means::Error);
        }
        let Kept(text) = event.text_output?;
        progress.model(&event.model_name);
        let added = self.texts.added(&text, None);
        progress.say(0, Found { text: P::of(added.as_bytes()), ..Found::default() });
        Some(Means::More)
    }

    fn read<P: Piece>(
        &mut self,
        _: &[u8],
        data: &[u8],
        progress: &mut Progress<P>,
    ) -> Result<Option<Means>, serde_json::Error> {
        let event = serde_json::from_slice(data);
        self.is_cut = event.is_err();
        Ok(self.take(event?, progress))
    }

    fn close<P: Piece>(&mut self, progress: &mut Progress<P>) {
        let state = &progress.state;
        if state.events > 0 && !self.is_cut && state.error.is_none() && state.failure.is_none() {
            progress.end("eof");
        }
    }
}

/// One event of a stream, or one whole answer.
#[derive(serde::Deserialize)]
struct Event<'a> {
    text_output: Option<Kept>,
    #[serde(borrow, default)]
    model_name: Name<'a>,
    error: Option<Value>,
}
