//! The shape of a line, of chat or of generate, and of a whole answer, which is one such line.

use gate_model::Usage;
use serde_json::Value;

use crate::Undecodable;
use crate::message::is_set;
use crate::piece::{Piece, Reported};
use crate::progress::{Means, Progress};
use crate::reader::Schema;
use crate::shape::{Count, Found, Joined, Name};

/// Reads the lines of a stream.
#[derive(Clone)]
pub(crate) struct Lines;

impl Schema for Lines {
    type Event<'a, P: Piece> = Line<'a, P>;

    fn take<P: Piece>(&mut self, line: Line<'_, P>, progress: &mut Progress<P>) -> Option<Means> {
        let means = Answer.take(line, progress);
        // A stream's last line comes after the content.
        if progress.state.events == 1 && matches!(means, Some(Means::End(_))) && progress.has_content() {
            progress.state.failure.get_or_insert(Undecodable::NotStreamed);
        }
        means
    }
}

/// Reads a line by itself.
#[derive(Clone)]
pub(crate) struct Answer;

impl Schema for Answer {
    type Event<'a, P: Piece> = Line<'a, P>;

    fn take<P: Piece>(&mut self, line: Line<'_, P>, progress: &mut Progress<P>) -> Option<Means> {
        if line.is_foreign() {
            return None;
        }
        progress.model(&line.model);
        let usage = line.usage();
        progress.usage_fields(
            usage,
            [
                ("total_duration", line.total_duration),
                ("load_duration", line.load_duration),
                ("prompt_eval_count", line.prompt_eval_count.raw),
                ("prompt_eval_cached_count", line.prompt_eval_cached_count.raw),
                ("prompt_eval_duration", line.prompt_eval_duration),
                ("eval_count", line.eval_count.raw),
                ("eval_duration", line.eval_duration),
            ],
        );
        progress.finish(line.done_reason);
        let message = line.message.unwrap_or_default();
        let mut found = message.tool_calls.found;
        found.text = message.content;
        found.text.join(line.response.unwrap_or_default());
        found.reasoning = message.thinking;
        found.reasoning.join(line.thinking);
        progress.say(0, found);
        Some(match line.error.as_ref().is_some_and(is_set) {
            true => Means::Error,
            false if line.done == Some(true) => Means::End("done:true"),
            false => Means::More,
        })
    }
}

/// One line.
#[derive(Default, serde::Deserialize)]
#[serde(default, bound(deserialize = "P: Piece"))]
pub(crate) struct Line<'a, P: Piece> {
    #[serde(borrow)]
    model: Name<'a>,
    message: Option<Message<P>>,
    /// Of generate.
    response: Option<P>,
    /// Of generate.
    thinking: P,
    done: Option<bool>,
    done_reason: Option<String>,
    prompt_eval_count: Reported<P, Count>,
    prompt_eval_cached_count: Reported<P, Count>,
    eval_count: Reported<P, Count>,
    total_duration: P::Raw,
    load_duration: P::Raw,
    prompt_eval_duration: P::Raw,
    eval_duration: P::Raw,
    error: Option<Value>,
}

impl<P: Piece> Line<'_, P> {
    /// Whether it has nothing that a line has.
    fn is_foreign(&self) -> bool {
        self.message.is_none() && self.response.is_none() && self.done.is_none() && self.error.is_none()
    }

    fn usage(&self) -> Option<Usage> {
        let usage = Usage {
            input: self.prompt_eval_count.value.0,
            output: self.eval_count.value.0,
            cached: self.prompt_eval_cached_count.value.0,
            reasoning: None,
        };
        (usage != Usage::default()).then_some(usage)
    }
}

#[derive(Default, serde::Deserialize)]
#[serde(default, bound(deserialize = "P: Piece"))]
struct Message<P: Piece> {
    content: P,
    thinking: P,
    tool_calls: Joined<P, ToolCall<P>>,
}

#[derive(serde::Deserialize)]
#[serde(bound(deserialize = "P: Piece"))]
struct ToolCall<P: Piece> {
    function: Option<Function<P>>,
}

/// A tool call comes whole: its arguments are an object.
#[derive(Default, serde::Deserialize)]
#[serde(default, bound(deserialize = "P: Piece"))]
struct Function<P: Piece> {
    name: P,
    arguments: P::Raw,
}

impl<P: Piece> From<ToolCall<P>> for Found<P> {
    fn from(call: ToolCall<P>) -> Self {
        let Function { name, arguments } = call.function.unwrap_or_default();
        if name.is_empty() { Self::default() } else { Self::tool(name, P::json(arguments)) }
    }
}

#[cfg(test)]
mod tests {
    use gate_model::Delivery;

    use super::*;
    use crate::framing::Ndjson;
    use crate::reader::decoder;
    use crate::{EventKind, Keep, StreamState};

    fn decode(body: &str) -> (Vec<EventKind>, StreamState) {
        let mut decoder = decoder::<Ndjson>(Lines, Answer, Delivery::Streamed, Keep::Nothing);
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
