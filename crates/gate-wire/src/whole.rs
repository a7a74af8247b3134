//! Decodes a whole answer: one JSON document instead of a stream.

use serde::de::IgnoredAny;

use crate::framing::{Closed, Frame, compressed};
use crate::piece::{Log, Piece};
use crate::reader::{Reader, Schema};
use crate::{Decoder, Event, EventKind, MAX_EVENT, StreamState, Transcript, Undecodable, message};

/// Collects the body, and decodes it at its end.
pub(crate) struct WholeDecoder<S, P: Piece> {
    reader: Reader<S, P>,
    schema: S,
    body: Vec<u8>,
    /// Bytes so far.
    length: u64,
}

impl<S: Schema, P: Piece> WholeDecoder<S, P> {
    pub(crate) fn new(schema: S) -> Self {
        Self { reader: Reader::new(schema.clone()), schema, body: Vec::new(), length: 0 }
    }
}

impl<S: Schema, P: Piece> Decoder for WholeDecoder<S, P> {
    fn feed(&mut self, bytes: &[u8], _: &mut dyn FnMut(Event)) {
        self.length += bytes.len() as u64;
        if self.reader.progress.state.failure.is_some() {
            return;
        }
        if self.body.len() + bytes.len() > MAX_EVENT {
            self.body = Vec::new();
            return self.reader.fail(Undecodable::TooLong);
        }
        self.body.extend_from_slice(bytes);
    }

    fn finish(&mut self, sink: &mut dyn FnMut(Event)) {
        if self.reader.progress.state.failure.is_some() {
            return;
        }
        let body = std::mem::take(&mut self.body);
        let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&body).trim_ascii();
        if let Some(failure) = unfit(body) {
            return self.reader.fail(failure);
        }
        let end = self.length;
        let document = Frame::Event { name: b"", data: body, closed: Closed::Blank };
        self.reader.take(end, document, &self.schema, sink);
        let state = &mut self.reader.progress.state;
        if state.foreign_events > 0 {
            return self.reader.fail(Undecodable::Foreign { message: message::of_body(body) });
        }
        if state.error.is_none() && !state.ended {
            state.ended = true;
            sink(Event { end, kind: EventKind::End });
        }
    }

    fn state(&self) -> &StreamState {
        &self.reader.progress.state
    }

    fn transcript(&self) -> Option<&Transcript> {
        self.reader.progress.log.transcript()
    }
}

/// Why a body is not one JSON document, if it is not.
fn unfit(body: &[u8]) -> Option<Undecodable> {
    let foreign = || Undecodable::Foreign { message: message::of_body(body) };
    if let Some(encoding) = compressed(body) {
        return Some(Undecodable::Compressed { encoding });
    }
    match body.first() {
        None => return Some(Undecodable::Cut),
        Some(b'<') => return Some(Undecodable::Html { message: message::of_body(body) }),
        Some(b'{') => {}
        Some(_) if [&b":"[..], b"data:", b"event:", b"id:", b"retry:"].iter().any(|field| body.starts_with(field)) => {
            return Some(Undecodable::Streamed);
        }
        Some(_) => return Some(foreign()),
    }
    let mut documents = serde_json::Deserializer::from_slice(body).into_iter::<IgnoredAny>();
    let (first, second) = (documents.next()?, documents.next());
    match (first, second) {
        (Ok(_), None) => None,
        (Ok(_), Some(Ok(_))) => Some(Undecodable::Streamed),
        (Ok(_), Some(Err(error))) if error.is_eof() => Some(Undecodable::Streamed),
        (Err(error), _) if error.is_eof() => Some(Undecodable::Cut),
        (Ok(_) | Err(_), _) => Some(foreign()),
    }
}

#[cfg(test)]
mod tests {
    use gate_model::{Api, Delivery, Outcome};

    use super::*;
    use crate::{BodyEnd, Keep, conclude, dialect};

    fn decode(api: Api, parts: &[&[u8]], end: BodyEnd) -> (Vec<Event>, Outcome, String) {
        let (mut decoder, mut events) = (dialect(api, None).decoder(Delivery::Whole, Keep::Nothing), Vec::new());
        for part in parts {
            decoder.feed(part, &mut |event| events.push(event));
        }
        if end == BodyEnd::Clean {
            decoder.finish(&mut |event| events.push(event));
        }
        let (outcome, message) = conclude(decoder.state(), None, end);
        (events, outcome, message.unwrap_or_default())
    }

    const CHAT: &str = r#"{"choices":[{"message":{"content":"a"},"finish_reason":"stop"}]}"#;

    #[test]
    fn an_answer_is_one_event_and_the_end() {
        for (api, body, kind) in [
            (Api::OpenaiChat, CHAT, EventKind::Text),
            (Api::OpenaiChat, r#"{"choices":[{"message":{"reasoning":"a","content":null}}]}"#, EventKind::Reasoning),
            (Api::OpenaiChat, r#"{"choices":[{"message":{"content":""}}]}"#, EventKind::Bare),
            (Api::OpenaiCompletions, r#"{"choices":[{"text":"a"}]}"#, EventKind::Text),
            (
                Api::Anthropic,
                r#"{"type":"message","content":[{"type":"tool_use","name":"f","input":{}}]}"#,
                EventKind::ToolCall,
            ),
            (Api::Ollama, r#"{"message":{"content":"a"},"done":true}"#, EventKind::Text),
            (Api::Ollama, r#"{"response":"a","done":true}"#, EventKind::Text),
        ] {
            let end = body.len() as u64 + 1;
            let parts = [body.as_bytes(), b"\n"];
            let seen = decode(api, &parts, BodyEnd::Clean);
            assert_eq!(seen.0, [Event { end, kind }, Event { end, kind: EventKind::End }], "{body}");
            let outcome = if kind == EventKind::Bare { Outcome::Empty } else { Outcome::Ok };
            assert_eq!(seen.1, outcome, "{body}");
        }
    }

    #[test]
    fn every_ending_has_its_outcome_and_its_words() {
        let cut = "the server closed the answer before its end";
        let streamed = "the server sent a stream, though one whole answer was asked for (`target.stream: false`)";
        for (body, outcome, message) in [
            ("", Outcome::Truncated, cut),
            ("{\"choices\":[", Outcome::Truncated, cut),
            ("data: {}\n\n", Outcome::Decode, streamed),
            (": ping\n\ndata: {}\n\n", Outcome::Decode, streamed),
            ("{\"choices\":[]}\n{\"choices\":[]}\n", Outcome::Decode, streamed),
            ("{\"detail\":\"Not Found\"}", Outcome::Decode, "the answer is not of this dialect: Not Found"),
            ("upstream is gone", Outcome::Decode, "the answer is not of this dialect: upstream is gone"),
            ("{\"choices\":[]} or so", Outcome::Decode, "the answer is not of this dialect: {\"choices\":[]} or so"),
            ("{\"choices\":[]}", Outcome::Empty, "the answer ended without a token (finish reason: none)"),
            (
                "{\"error\":{\"type\":\"server_error\",\"message\":\"m\"}}",
                Outcome::StreamError,
                "the server reported an error in its answer: server_error: m",
            ),
        ] {
            let seen = decode(Api::OpenaiChat, &[body.as_bytes()], BodyEnd::Clean);
            assert_eq!((seen.1, seen.2.as_str()), (outcome, message), "{body}");
        }
        let reset = decode(Api::OpenaiChat, &[CHAT.as_bytes()], BodyEnd::Reset);
        assert_eq!((reset.0.len(), reset.1), (0, Outcome::Reset));
    }

    #[test]
    fn memory_is_bounded() {
        let block = vec![b' '; 1 << 20];
        let seen = decode(Api::OpenaiChat, &[&block[..]; 64], BodyEnd::Clean);
        assert_eq!((seen.0.len(), seen.1), (0, Outcome::Decode));
        assert_eq!(seen.2, "the answer, or an event of it, is longer than 8 MiB");
    }
}
