//! From frames to events: what is the same in every dialect.

use gate_model::Delivery;
use serde::de::{Deserialize, IgnoredAny};
use serde_json::Value;

use crate::framing::{Closed, Frame, Framing, Place};
use crate::message::{self, blames_server, is_error, stream_error, text_error};
use crate::pattern::Pattern;
use crate::piece::{Kept, Log, Note, Piece, Presence};
use crate::progress::{Means, Progress};
use crate::whole::WholeDecoder;
use crate::{Decoder, Event, EventKind, Keep, StreamError, StreamState, Transcript, Undecodable};

/// How much of a malformed event is quoted, in characters.
const QUOTED: usize = 60;

/// How a dialect reads the events of a stream, or a whole answer. What it learns between events is its own state.
pub(crate) trait Schema: Clone + Send + 'static {
    /// The event's shape.
    type Event<'a, P: Piece>: Deserialize<'a>;

    /// Whether the data of an event is plain text; else it is JSON.
    const PLAIN: bool = false;

    /// Whether an event that comes twice in a row means nothing more when it comes again, whatever its text.
    const STEADY: bool = false;

    /// Takes what the event says of the stream into `progress`, and tells what it means; `None` where it has nothing
    /// that an event of this dialect has.
    fn take<P: Piece>(&mut self, event: Self::Event<'_, P>, progress: &mut Progress<P>) -> Option<Means>;

    /// Reads an event of this name with this data; an error where the data is not of the event's shape.
    fn read<P: Piece>(
        &mut self,
        _name: &[u8],
        data: &[u8],
        progress: &mut Progress<P>,
    ) -> Result<Option<Means>, serde_json::Error> {
        // Checking all of it for UTF-8 at once is faster than string by string.
        let event = match std::str::from_utf8(data) {
            Ok(text) => serde_json::from_str(text)?,
            Err(_) => serde_json::from_slice(data)?,
        };
        Ok(self.take(event, progress))
    }

    /// The body ended as it should. For dialects in which that is the only end there is.
    fn close<P: Piece>(&mut self, _progress: &mut Progress<P>) {}
}

/// A decoder of streams with framing `F` and events `stream`, where `whole` tells a whole answer that came instead;
/// or of such whole answers.
pub(crate) fn decoder<F: Framing + 'static>(
    stream: impl Schema,
    whole: impl Schema,
    delivery: Delivery,
    keep: Keep,
) -> Box<dyn Decoder> {
    match (delivery, keep) {
        (Delivery::Streamed, Keep::Nothing) => Box::new(StreamDecoder::<F, _, _, Presence>::new(stream, whole)),
        (Delivery::Streamed, Keep::Text) => Box::new(StreamDecoder::<F, _, _, Kept>::new(stream, whole)),
        (Delivery::Whole, Keep::Nothing) => Box::new(WholeDecoder::<_, Presence>::new(whole)),
        (Delivery::Whole, Keep::Text) => Box::new(WholeDecoder::<_, Kept>::new(whole)),
    }
}

/// Decodes a stream.
struct StreamDecoder<F, S, W, P: Piece> {
    framing: F,
    reader: Reader<S, P>,
    whole: W,
}

impl<F: Framing, S: Schema, W: Schema, P: Piece> StreamDecoder<F, S, W, P> {
    fn new(stream: S, whole: W) -> Self {
        Self { framing: F::default(), reader: Reader::new(stream), whole }
    }
}

impl<F: Framing, S: Schema, W: Schema, P: Piece> Decoder for StreamDecoder<F, S, W, P> {
    fn feed(&mut self, bytes: &[u8], sink: &mut dyn FnMut(Event)) {
        let Self { framing, reader, whole } = self;
        framing.feed(bytes, &mut |end, frame| reader.take(end, frame, whole, sink));
    }

    fn finish(&mut self, sink: &mut dyn FnMut(Event)) {
        let Self { framing, reader, whole } = self;
        framing.finish(&mut |end, frame| reader.take(end, frame, whole, sink));
        reader.close(framing.offset(), sink);
    }

    fn state(&self) -> &StreamState {
        &self.reader.progress.state
    }

    fn transcript(&self) -> Option<&Transcript> {
        self.reader.progress.log.transcript()
    }
}

/// Reads frames into the stream's state.
pub(crate) struct Reader<S, P: Piece> {
    pub(crate) progress: Progress<P>,
    schema: S,
    pattern: Pattern,
}

impl<S: Schema, P: Piece> Reader<S, P> {
    pub(crate) fn new(schema: S) -> Self {
        Self { progress: Progress::default(), schema, pattern: Pattern::default() }
    }

    /// Takes a frame that ends at `end`; `whole` tells a whole answer that stands where events should.
    pub(crate) fn take(&mut self, end: u64, frame: Frame<'_>, whole: &impl Schema, sink: &mut dyn FnMut(Event)) {
        let had_ended = self.progress.state.ended;
        let kind = match frame {
            Frame::Event { name, data, closed } => {
                self.progress.open();
                if closed == Closed::Body {
                    self.progress.log.note(Note::Pending);
                }
                Some(self.event(name, data, closed))
            }
            Frame::Exception { kind, data } => {
                self.progress.open();
                let error = any_error(data);
                let server = error.server || blames_server(kind);
                Some(self.error(StreamError { kind: Some(kind.to_owned()), server, ..error }))
            }
            Frame::Error(value) => Some(self.error(any_error(value))),
            Frame::Comment => {
                self.progress.log.note(Note::Comment);
                None
            }
            Frame::Document { text, place } => self.document(text, place, whole),
            Frame::Failed(failure) => {
                self.fail(failure);
                None
            }
        };
        if let Some(kind) = kind {
            sink(Event { end, kind });
            // A terminal event that carries more than that it is one.
            if self.progress.state.ended && !had_ended && kind != EventKind::End {
                sink(Event { end, kind: EventKind::End });
            }
        }
    }

    /// Takes the end of the body, after `end` bytes.
    fn close(&mut self, end: u64, sink: &mut dyn FnMut(Event)) {
        if self.progress.state.ended {
            return;
        }
        self.schema.close(&mut self.progress);
        if self.progress.state.ended {
            sink(Event { end, kind: EventKind::End });
        }
    }

    fn event(&mut self, name: &[u8], data: &[u8], closed: Closed) -> EventKind {
        if let Some(kind) = self.pattern.repeated(name, data) {
            self.progress.repeat();
            return kind;
        }
        let kind = self.new_event(name, data, closed);
        match self.progress.span().filter(|_| S::STEADY) {
            Some(span) => self.pattern.remember(name, data, span, kind),
            None => self.pattern.forget(),
        }
        kind
    }

    fn new_event(&mut self, name: &[u8], data: &[u8], closed: Closed) -> EventKind {
        match data.trim_ascii() {
            b"[DONE]" => self.progress.close(Means::End("[DONE]")),
            trimmed if name == b"error" => self.error(any_error(trimmed)),
            b"" if !S::PLAIN => EventKind::Bare,
            trimmed => match self.schema.read(name, data, &mut self.progress) {
                Ok(means) => self.parsed(means, trimmed),
                Err(_) => self.unexpected(name, trimmed, closed),
            },
        }
    }

    fn parsed(&mut self, means: Option<Means>, data: &[u8]) -> EventKind {
        match means {
            Some(Means::Error) => self.error(any_error(data)),
            Some(means) => self.progress.close(means),
            None => self.foreign(data),
        }
    }

    /// Takes data that is no event of the dialect as it stands.
    fn unexpected(&mut self, name: &[u8], data: &[u8], closed: Closed) -> EventKind {
        if std::str::from_utf8(data).is_err() {
            let repaired = String::from_utf8_lossy(data);
            return match self.schema.read(name, repaired.as_bytes(), &mut self.progress) {
                Ok(means) => self.parsed(means, repaired.as_bytes()),
                Err(_) => self.unexpected(name, repaired.as_bytes(), closed),
            };
        }
        let Err(error) = serde_json::from_slice::<IgnoredAny>(data) else {
            return self.foreign(data);
        };
        self.progress.log.note(Note::Unparseable);
        // What the end of the body has cut makes the stream truncated, not wrong; after the end nothing matters.
        if closed == Closed::Blank && !self.progress.state.ended {
            let event = self.progress.state.events;
            let quoted = message::one_line(data, QUOTED).unwrap_or_default();
            self.fail(Undecodable::Malformed { event, message: format!("{error}: `{quoted}`") });
        }
        EventKind::Bare
    }

    /// Takes JSON that is no event of the dialect: an error of another shape, or an event to be ignored.
    fn foreign(&mut self, data: &[u8]) -> EventKind {
        match serde_json::from_slice::<Value>(data) {
            Ok(value) if is_error(&value) => self.error(stream_error(&value)),
            _ => {
                self.progress.state.foreign_events += 1;
                EventKind::Bare
            }
        }
    }

    /// Takes what stands outside any event: an error, or one whole answer.
    fn document(&mut self, text: &[u8], place: Place, whole: &impl Schema) -> Option<EventKind> {
        let text = String::from_utf8_lossy(text);
        let value = serde_json::Deserializer::from_str(&text).into_iter::<Value>().next().and_then(Result::ok);
        let value = match value {
            Some(Value::Array(items)) => items.into_iter().next(),
            value => value,
        };
        if let Some(error) = value.as_ref().filter(|value| is_error(value)) {
            return Some(self.error(stream_error(error)));
        }
        if place == Place::Alone {
            self.fail(match is_whole(whole.clone(), &text) {
                true => Undecodable::NotStreamed,
                false => Undecodable::Foreign { message: message::of_body(text.as_bytes()) },
            });
        }
        None
    }

    fn error(&mut self, error: StreamError) -> EventKind {
        self.progress.state.error.get_or_insert(error);
        self.progress.close(Means::Error)
    }

    pub(crate) fn fail(&mut self, failure: Undecodable) {
        self.progress.state.failure.get_or_insert(failure);
    }
}

/// Whether a document is one whole answer of the dialect.
fn is_whole<W: Schema>(mut whole: W, text: &str) -> bool {
    let mut progress = Progress::<Presence>::default();
    progress.open();
    let answer = serde_json::Deserializer::from_str(text).into_iter::<W::Event<'_, Presence>>().next();
    let means = answer.and_then(Result::ok).and_then(|answer| whole.take(answer, &mut progress));
    means.is_some_and(|means| progress.close(means).is_content() || progress.state.finish_reason.is_some())
}

/// The error in the data of an `error` event, or in an `error` field.
fn any_error(data: &[u8]) -> StreamError {
    match serde_json::from_str(&String::from_utf8_lossy(data)) {
        Ok(value) => stream_error(&value),
        Err(_) => text_error(data),
    }
}
