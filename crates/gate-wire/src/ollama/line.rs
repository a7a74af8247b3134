//! The shape of a line, of chat or of generate, and of a whole answer, which is one such line.

use gate_model::Usage;
use serde_json::Value;

use crate::message::is_set;
use crate::reader::Schema;
use crate::shape::{AnyOf, Carries, Count, Found, Text};
use crate::{EventKind, StreamState, Undecodable};

/// Reads the lines of a stream.
#[derive(Default)]
pub(super) struct Lines;

impl Schema for Lines {
    type Event = Line;

    fn take(&mut self, line: Line, state: &mut StreamState) -> Option<EventKind> {
        let kind = Answer.take(line, state);
        // A stream's last line comes after the content.
        if state.events == 1 && state.ended && kind.is_some_and(EventKind::is_content) {
            state.failure.get_or_insert(Undecodable::NotStreamed);
        }
        kind
    }
}

/// Reads a line by itself.
#[derive(Default)]
pub(super) struct Answer;

impl Schema for Answer {
    type Event = Line;

    fn take(&mut self, line: Line, state: &mut StreamState) -> Option<EventKind> {
        if line.is_foreign() {
            return None;
        }
        if let Some(usage) = line.usage() {
            state.usage = Some(usage);
        }
        if let Some(reason) = line.done_reason.filter(|reason| !reason.is_empty()) {
            state.finish_reason = Some(reason);
        }
        let done = line.done == Some(true);
        state.ended |= done;
        let message = line.message.unwrap_or_default();
        let found = Found {
            text: message.content.0 || line.response.is_some_and(|response| response.0),
            tool: message.tool_calls.sum,
            reasoning: message.thinking.0 || line.thinking.0,
        };
        Some(match found.kind() {
            _ if line.error.as_ref().is_some_and(is_set) => EventKind::Error,
            EventKind::Bare if done => EventKind::End,
            kind => kind,
        })
    }
}

/// One line.
#[derive(Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct Line {
    message: Option<Message>,
    /// Of generate.
    response: Option<Text>,
    /// Of generate.
    thinking: Text,
    done: Option<bool>,
    done_reason: Option<String>,
    prompt_eval_count: Count,
    prompt_eval_cached_count: Count,
    eval_count: Count,
    error: Option<Value>,
}

impl Line {
    /// Whether it has nothing that a line has.
    fn is_foreign(&self) -> bool {
        self.message.is_none() && self.response.is_none() && self.done.is_none() && self.error.is_none()
    }

    fn usage(&self) -> Option<Usage> {
        let usage = Usage {
            input: self.prompt_eval_count.0,
            output: self.eval_count.0,
            cached: self.prompt_eval_cached_count.0,
            reasoning: None,
        };
        (usage != Usage::default()).then_some(usage)
    }
}

#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct Message {
    content: Text,
    thinking: Text,
    tool_calls: AnyOf<ToolCall>,
}

#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct ToolCall {
    function: Option<Function>,
}

/// A tool call comes whole: its arguments are an object.
#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct Function {
    name: Text,
}

impl Carries for ToolCall {
    fn carries(&self) -> bool {
        self.function.as_ref().is_some_and(|function| function.name.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Decoder, framing::Ndjson, reader::StreamDecoder};

    fn decode(body: &str) -> (Vec<EventKind>, StreamState) {
        let mut decoder = StreamDecoder::<Ndjson, Lines, Answer>::default();
        let mut kinds = Vec::new();
        decoder.feed(body.as_bytes(), &mut |event| kinds.push(event.kind));
        decoder.finish(&mut |event| kinds.push(event.kind));
        (kinds, decoder.state().clone())
    }

    #[test]
    fn a_token_is_what_the_model_generated() {
        use EventKind::{Bare, End, Error, Reasoning, Text, ToolCall};
        for (json, kind) in [
            (r#"{"message":{"role":"assistant","content":" "},"done":false}"#, Text),
            (r#"{"message":{"role":"assistant","content":""},"done":false}"#, Bare),
            (r#"{"message":{"content":"","thinking":"a"}}"#, Reasoning),
            (r#"{"message":{"content":"","tool_calls":[{"function":{"name":"f","arguments":{}}}]}}"#, ToolCall),
            (r#"{"response":"a","done":false}"#, Text),
            (r#"{"response":"","thinking":"a","done":false}"#, Reasoning),
            (r#"{"message":{"content":""},"done":true,"done_reason":"stop"}"#, End),
            (r#"{"error":"m"}"#, Error),
            (r#"{"status":"pulling manifest"}"#, Bare),
        ] {
            assert_eq!(decode(&format!("{json}\n")).0, [kind], "{json}");
        }
        assert_eq!(decode("{\"status\":\"pulling manifest\"}\n").1.foreign_events, 1);
    }

    #[test]
    fn the_last_line_may_carry_content_but_not_all_of_it() {
        let token = "{\"message\":{\"content\":\"a\"},\"done\":false}\n";
        let last = "{\"message\":{\"content\":\"b\"},\"done\":true,\"done_reason\":\"stop\"}\n";
        let (kinds, state) = decode(&format!("{token}{last}"));
        assert_eq!(kinds, [EventKind::Text, EventKind::Text, EventKind::End]);
        assert_eq!((state.ended, state.failure), (true, None));
        assert_eq!(decode(last).1.failure, Some(Undecodable::NotStreamed));
    }

    #[test]
    fn usage_and_reason_come_with_the_end() {
        let last =
            r#"{"done":true,"done_reason":"length","prompt_eval_count":9,"prompt_eval_cached_count":8,"eval_count":2}"#;
        let state = decode(last).1;
        let usage = Usage { input: Some(9), output: Some(2), cached: Some(8), reasoning: None };
        assert_eq!((state.usage, state.finish_reason.as_deref()), (Some(usage), Some("length")));
    }
}
