//! From frames to events: what is the same in every dialect.

use std::marker::PhantomData;

use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::Value;

use crate::framing::{Closed, Frame, Framing, Place};
use crate::message::{self, is_error, stream_error, text_error};
use crate::{Decoder, Event, EventKind, StreamError, StreamState, Undecodable};

/// How much of a malformed event is quoted, in characters.
const QUOTED: usize = 60;

/// How a dialect reads the JSON of an event, or of a whole answer.
pub(crate) trait Schema: Default + Send {
    /// The event's shape.
    type Event: DeserializeOwned;

    /// Takes what the event says of the stream into `state`, and tells what it carries: `Error` where it reports one,
    /// `None` where it has nothing that an event of this dialect has.
    fn take(&mut self, event: Self::Event, state: &mut StreamState) -> Option<EventKind>;
}

/// Decodes a stream with framing `F` and events `S`; `W` tells a whole answer that came instead.
#[derive(Default)]
pub(crate) struct StreamDecoder<F, S, W> {
    framing: F,
    reader: Reader<S>,
    whole: PhantomData<fn() -> W>,
}

impl<F: Framing, S: Schema, W: Schema> Decoder for StreamDecoder<F, S, W> {
    fn feed(&mut self, bytes: &[u8], sink: &mut dyn FnMut(Event)) {
        let Self { framing, reader, .. } = self;
        framing.feed(bytes, &mut |end, frame| reader.take::<W>(end, frame, sink));
    }

    fn finish(&mut self, sink: &mut dyn FnMut(Event)) {
        let Self { framing, reader, .. } = self;
        framing.finish(&mut |end, frame| reader.take::<W>(end, frame, sink));
    }

    fn state(&self) -> &StreamState {
        &self.reader.state
    }
}

/// Reads frames into the stream's state.
#[derive(Default)]
pub(crate) struct Reader<S> {
    pub(crate) state: StreamState,
    schema: S,
}

impl<S: Schema> Reader<S> {
    /// Takes a frame that ends at `end`; `W` tells a whole answer that stands where events should.
    pub(crate) fn take<W: Schema>(&mut self, end: u64, frame: Frame<'_>, sink: &mut dyn FnMut(Event)) {
        let had_ended = self.state.ended;
        let kind = match frame {
            Frame::Event { name, data, closed } => {
                self.state.events += 1;
                Some(self.event(name, data.trim_ascii(), closed))
            }
            Frame::Error(value) => Some(self.error(any_error(value))),
            Frame::Document { text, place } => self.document::<W>(text, place),
            Frame::Failed(failure) => {
                self.fail(failure);
                None
            }
        };
        if let Some(kind) = kind {
            self.state.content_events += u64::from(kind.is_content());
            sink(Event { end, kind });
            // A terminal event that carries more than that it is one.
            if self.state.ended && !had_ended && kind != EventKind::End {
                sink(Event { end, kind: EventKind::End });
            }
        }
    }

    fn event(&mut self, name: &[u8], data: &[u8], closed: Closed) -> EventKind {
        match data {
            b"[DONE]" => {
                self.state.ended = true;
                EventKind::End
            }
            _ if name == b"error" => self.error(any_error(data)),
            b"" => EventKind::Bare,
            _ => match serde_json::from_slice(data) {
                Ok(event) => self.parsed(event, data),
                Err(_) => self.unexpected(data, closed),
            },
        }
    }

    fn parsed(&mut self, event: S::Event, data: &[u8]) -> EventKind {
        match self.schema.take(event, &mut self.state) {
            Some(EventKind::Error) => self.error(any_error(data)),
            Some(kind) => {
                self.state.ended |= kind == EventKind::End;
                kind
            }
            None => self.foreign(data),
        }
    }

    /// Takes data that is no event of the dialect as it stands.
    fn unexpected(&mut self, data: &[u8], closed: Closed) -> EventKind {
        if std::str::from_utf8(data).is_err() {
            let repaired = String::from_utf8_lossy(data);
            return match serde_json::from_str(&repaired) {
                Ok(event) => self.parsed(event, repaired.as_bytes()),
                Err(_) => self.unexpected(repaired.as_bytes(), closed),
            };
        }
        let Err(error) = serde_json::from_slice::<IgnoredAny>(data) else {
            return self.foreign(data);
        };
        // What the end of the body has cut makes the stream truncated, not wrong; after the end nothing matters.
        if closed == Closed::Blank && !self.state.ended {
            let quoted = message::one_line(data, QUOTED).unwrap_or_default();
            self.fail(Undecodable::Malformed { event: self.state.events, message: format!("{error}: `{quoted}`") });
        }
        EventKind::Bare
    }

    /// Takes JSON that is no event of the dialect: an error of another shape, or an event to be ignored.
    fn foreign(&mut self, data: &[u8]) -> EventKind {
        match serde_json::from_slice::<Value>(data) {
            Ok(value) if is_error(&value) => self.error(stream_error(&value)),
            _ => {
                self.state.foreign_events += 1;
                EventKind::Bare
            }
        }
    }

    /// Takes what stands outside any event: an error, or one whole answer.
    fn document<W: Schema>(&mut self, text: &[u8], place: Place) -> Option<EventKind> {
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
            self.fail(match is_whole::<W>(&text) {
                true => Undecodable::NotStreamed,
                false => Undecodable::Foreign { message: message::of_body(text.as_bytes()) },
            });
        }
        None
    }

    fn error(&mut self, error: StreamError) -> EventKind {
        self.state.error.get_or_insert(error);
        EventKind::Error
    }

    pub(crate) fn fail(&mut self, failure: Undecodable) {
        self.state.failure.get_or_insert(failure);
    }
}

/// Whether a document is one whole answer of the dialect.
fn is_whole<W: Schema>(text: &str) -> bool {
    let mut state = StreamState::default();
    let answer = serde_json::Deserializer::from_str(text).into_iter().next().and_then(Result::ok);
    let kind = answer.and_then(|answer| W::default().take(answer, &mut state));
    kind.is_some_and(EventKind::is_content) || (kind.is_some() && state.finish_reason.is_some())
}

/// The error in the data of an `error` event, or in an `error` field.
fn any_error(data: &[u8]) -> StreamError {
    match serde_json::from_str(&String::from_utf8_lossy(data)) {
        Ok(value) => stream_error(&value),
        Err(_) => text_error(data),
    }
}
