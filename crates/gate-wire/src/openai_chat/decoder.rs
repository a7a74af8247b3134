//! Decodes a stream of chat completion chunks.

use serde::de::IgnoredAny;
use serde_json::Value;

use super::chunk::{Chunk, Found};
use crate::message::{self, is_error, is_set, stream_error, text_error};
use crate::sse::{Closed, Frame, Place, Sse};
use crate::{Decoder, Event, EventKind, StreamError, StreamState, Undecodable};

/// How much of a malformed event is quoted, in characters.
const QUOTED: usize = 60;

/// The decoder of one response.
#[derive(Default)]
pub(super) struct ChatDecoder {
    sse: Sse,
    reader: Reader,
}

impl Decoder for ChatDecoder {
    fn feed(&mut self, bytes: &[u8], sink: &mut dyn FnMut(Event)) {
        let Self { sse, reader } = self;
        sse.feed(bytes, &mut |end, frame| reader.take(end, frame, sink));
    }

    fn finish(&mut self, sink: &mut dyn FnMut(Event)) {
        let Self { sse, reader } = self;
        sse.finish(&mut |end, frame| reader.take(end, frame, sink));
    }

    fn state(&self) -> &StreamState {
        &self.reader.state
    }
}

/// Reads frames into the stream's state.
#[derive(Default)]
struct Reader {
    state: StreamState,
    /// The index of the choice that gave the finish reason.
    finished_choice: u64,
}

impl Reader {
    fn take(&mut self, end: u64, frame: Frame<'_>, sink: &mut dyn FnMut(Event)) {
        let kind = match frame {
            Frame::Event { name, data, closed } => {
                self.state.events += 1;
                Some(self.event(name, data.trim_ascii(), closed))
            }
            Frame::Error(value) => Some(self.error(any_error(value))),
            Frame::Document { text, place } => self.document(text, place),
            Frame::Failed(failure) => {
                self.fail(failure);
                None
            }
        };
        if let Some(kind) = kind {
            self.state.content_events += u64::from(kind.is_content());
            sink(Event { end, kind });
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
                Ok(chunk) => self.chunk(chunk, data),
                Err(_) => self.unexpected(data, closed),
            },
        }
    }

    fn chunk(&mut self, chunk: Chunk, data: &[u8]) -> EventKind {
        let has_error = chunk.error.as_ref().is_some_and(is_set);
        if has_error {
            self.error(any_error(data));
        }
        if chunk.is_foreign() {
            return self.foreign(data);
        }
        if let Some(usage) = chunk.usage() {
            self.state.usage = Some(usage);
        }
        let choices = chunk.choices.unwrap_or_default();
        if let Some((index, reason)) = choices.finish
            && (self.state.finish_reason.is_none() || index <= self.finished_choice)
        {
            self.finished_choice = index;
            self.state.finish_reason = Some(reason);
        }
        match choices.found {
            _ if has_error => EventKind::Error,
            Found { text: true, .. } => EventKind::Text,
            Found { tool: true, .. } => EventKind::ToolCall,
            Found { reasoning: true, .. } => EventKind::Reasoning,
            Found { .. } => EventKind::Bare,
        }
    }

    /// Takes data that is no chunk as it stands.
    fn unexpected(&mut self, data: &[u8], closed: Closed) -> EventKind {
        if std::str::from_utf8(data).is_err() {
            let repaired = String::from_utf8_lossy(data);
            return match serde_json::from_str(&repaired) {
                Ok(chunk) => self.chunk(chunk, repaired.as_bytes()),
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

    /// Takes JSON that is no chunk: an error of another shape, or an event to be ignored.
    fn foreign(&mut self, data: &[u8]) -> EventKind {
        match serde_json::from_slice::<Value>(data) {
            Ok(value) if is_error(&value) => self.error(stream_error(&value)),
            _ => {
                self.state.foreign_events += 1;
                EventKind::Bare
            }
        }
    }

    /// Takes JSON outside any event: an error, or one whole completion.
    fn document(&mut self, text: &[u8], place: Place) -> Option<EventKind> {
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
            let whole = value.as_ref().and_then(|value| value.pointer("/choices/0/message")).is_some();
            self.fail(match whole {
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

    fn fail(&mut self, failure: Undecodable) {
        self.state.failure.get_or_insert(failure);
    }
}

/// The error in the data of an `error` event, or in an `error` field.
fn any_error(data: &[u8]) -> StreamError {
    match serde_json::from_str(&String::from_utf8_lossy(data)) {
        Ok(value) => stream_error(&value),
        Err(_) => text_error(data),
    }
}

#[cfg(test)]
mod tests {
    use gate_model::{Outcome, Usage};

    use super::*;
    use crate::{BodyEnd, conclude};

    fn decode(body: &str) -> (Vec<EventKind>, StreamState) {
        let (mut decoder, mut kinds) = (ChatDecoder::default(), Vec::new());
        decoder.feed(body.as_bytes(), &mut |event| kinds.push(event.kind));
        decoder.finish(&mut |event| kinds.push(event.kind));
        (kinds, decoder.state().clone())
    }

    /// The kind of one event with this delta.
    fn delta(delta: &str) -> EventKind {
        decode(&format!("data: {{\"choices\":[{{\"index\":0,\"delta\":{delta}}}]}}\n\n")).0[0]
    }

    fn outcome(body: &str, end: BodyEnd) -> (Outcome, String) {
        let (outcome, message) = conclude(&decode(body).1, Some("text/plain"), end);
        (outcome, message.unwrap_or_default())
    }

    const TOKEN: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n";
    const FINISH: &str = "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n";
    const DONE: &str = "data: [DONE]\n\n";

    #[test]
    fn a_token_is_what_the_model_generated() {
        use EventKind::{Bare, Reasoning, Text, ToolCall};
        for (json, kind) in [
            (r#"{"role":"assistant"}"#, Bare),
            (r#"{"role":"assistant","content":"","refusal":null,"tool_calls":null,"reasoning":""}"#, Bare),
            (r#"{"content":null}"#, Bare),
            (r#"{"content":[]}"#, Bare),
            ("null", Bare),
            (r#"{"content":" "}"#, Text),
            (r#"{"content":"\ud83d"}"#, Text),
            (r#"{"refusal":"no"}"#, Text),
            (r#"{"content":[{"type":"text","text":"a"}]}"#, Text),
            (r#"{"content":[{"type":"thinking","thinking":[{"type":"text","text":"a"}]}]}"#, Reasoning),
            (r#"{"content":[{"type":"reference","reference_ids":[1]}]}"#, Bare),
            (r#"{"content":"","reasoning_content":"a"}"#, Reasoning),
            (r#"{"reasoning":"a","reasoning_details":[{"text":"a"}]}"#, Reasoning),
            (r#"{"reasoning_details":[{"summary":"a"}]}"#, Reasoning),
            (r#"{"reasoning_details":[{"type":"reasoning.encrypted","data":"xx"}]}"#, Bare),
            (r#"{"content":"a","reasoning":"b"}"#, Text),
            (r#"{"tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":""}}]}"#, ToolCall),
            (r#"{"tool_calls":[{"index":0,"function":{"arguments":""}}]}"#, Bare),
            (r#"{"tool_calls":[{"index":0,"custom":{"name":"","input":"x"}}]}"#, ToolCall),
            (r#"{"function_call":{"arguments":"{"}}"#, ToolCall),
        ] {
            assert_eq!(delta(json), kind, "{json}");
        }
    }

    #[test]
    fn usage_is_the_last_report_normalised() {
        let usage = |json: &str| decode(&format!("data: {{\"choices\":[],\"usage\":{json}}}\n\n{DONE}")).1.usage;
        let counts = |input, output, cached, reasoning| Some(Usage { input, output, cached, reasoning });
        let xai = r#"{"prompt_tokens":12,"completion_tokens":1,"total_tokens":303,"completion_tokens_details":{"reasoning_tokens":290}}"#;
        assert_eq!(usage(xai), counts(Some(12), Some(291), None, Some(290)));
        let hit = r#"{"prompt_tokens":9,"completion_tokens":2.0,"prompt_cache_hit_tokens":8,"total_tokens":"11"}"#;
        assert_eq!(usage(hit), counts(Some(9), Some(2), Some(8), None));
        assert_eq!(usage(r#"{"prompt_tokens":-1,"completion_tokens":{}}"#), None);
        assert_eq!(usage("null"), None);

        let twice = r#"data: {"choices":[{"usage":{"completion_tokens":1}}],"usage":null}

data: {"choices":[],"x_groq":{"id":"r","usage":{"completion_tokens":2}}}

data: {"choices":[],"usage":{}}

"#;
        assert_eq!(decode(twice).1.usage, counts(None, Some(2), None, None));
    }

    #[test]
    fn the_finish_reason_is_the_first_choices_and_stays() {
        let body = r#"data: {"choices":[{"index":1,"finish_reason":"length"}]}

data: {"choices":[{"index":0,"finish_reason":"stop"},{"index":2,"finish_reason":"error"}]}

data: {"choices":[{"index":0,"finish_reason":null}]}

data: {"choices":[{"index":1,"finish_reason":"length"}]}

"#;
        assert_eq!(decode(body).1.finish_reason.as_deref(), Some("stop"));
    }

    #[test]
    fn every_ending_has_its_outcome() {
        let json = r#"{"object":"chat.completion","choices":[{"message":{"content":"a"}}]}"#;
        let anthropic = "event: ping\ndata: {\"type\":\"ping\"}\n\n";
        let pretty = "{\n  \"error\": {\n    \"code\": 503,\n    \"message\": \"busy\"\n  }\n}\n";
        for (body, clean, reset) in [
            (format!("{TOKEN}{FINISH}{DONE}"), Outcome::Ok, Outcome::Ok),
            (format!("{TOKEN}{DONE}"), Outcome::Ok, Outcome::Ok),
            (format!("{TOKEN}{FINISH}"), Outcome::Ok, Outcome::Reset),
            (TOKEN.to_owned(), Outcome::Truncated, Outcome::Reset),
            (format!("{TOKEN}data: {{\"choi"), Outcome::Truncated, Outcome::Reset),
            (String::new(), Outcome::Truncated, Outcome::Reset),
            (format!("{FINISH}{DONE}"), Outcome::Empty, Outcome::Empty),
            (format!("{TOKEN}{{\"error\":\"late\"}}\n\n{DONE}"), Outcome::StreamError, Outcome::StreamError),
            (format!("{TOKEN}{pretty}"), Outcome::StreamError, Outcome::StreamError),
            ("event: error\ndata: out of memory\n\n".to_owned(), Outcome::StreamError, Outcome::StreamError),
            (
                "data: {\"object\":\"error\",\"message\":\"m\"}\n\n".to_owned(),
                Outcome::StreamError,
                Outcome::StreamError,
            ),
            (format!("{TOKEN}data: {{\"choi\n\n{FINISH}{DONE}"), Outcome::Decode, Outcome::Decode),
            (format!("{TOKEN}{DONE}data: x\n\n"), Outcome::Ok, Outcome::Ok),
            (format!("{anthropic}{anthropic}"), Outcome::Decode, Outcome::Reset),
            (format!("{anthropic}{TOKEN}{DONE}"), Outcome::Ok, Outcome::Ok),
            ("Internal Server Error".to_owned(), Outcome::Decode, Outcome::Decode),
            ("{\"detail\":\"Not Found\"}".to_owned(), Outcome::Decode, Outcome::Decode),
            (json.to_owned(), Outcome::NotStreamed, Outcome::NotStreamed),
        ] {
            assert_eq!(outcome(&body, BodyEnd::Clean).0, clean, "{body}");
            assert_eq!(outcome(&body, BodyEnd::Reset).0, reset, "{body}");
        }
    }

    #[test]
    fn messages_say_what_came() {
        for (body, message) in [
            (
                "data: {\"error\":{\"type\":\"server_error\",\"message\":\"m\"}}\n\n",
                "the server reported an error in its answer: server_error: m",
            ),
            (
                "data: nope\n\n",
                "event 1 of the stream is not JSON: expected ident at line 1 column 2: `nope` (content type `text/plain`)",
            ),
            (
                "{\"detail\":\"Not Found\"}",
                "the answer is not a stream of this dialect: Not Found (content type `text/plain`)",
            ),
            (
                TOKEN,
                "the stream broke off after 1 event with content, with neither a terminal event nor a finish reason",
            ),
        ] {
            assert_eq!(outcome(body, BodyEnd::Clean).1, message);
        }
    }

    #[test]
    fn a_huge_event_is_one_token() {
        let body = TOKEN.replace("\"a\"", &format!("\"{}\"", "A".repeat(1 << 20))) + DONE;
        assert_eq!(decode(&body).0, [EventKind::Text, EventKind::End]);
    }
}
