//! The shape of a message's events, and of a whole message.

use gate_model::Usage;

use crate::piece::{Merge, Piece, Presence, Reported};
use crate::progress::{Means, Progress};
use crate::reader::Schema;
use crate::shape::{Count, Found, Joined, Name};

/// Reads the events of a stream.
#[derive(Clone, Default)]
pub(crate) struct Events {
    usage: Tokens,
}

impl Schema for Events {
    type Event<'a, P: Piece> = Event<'a, P>;

    const STEADY: bool = true;

    fn take<P: Piece>(&mut self, event: Event<'_, P>, progress: &mut Progress<P>) -> Option<Means> {
        let delta = event.delta.unwrap_or_default();
        let means = match event.kind {
            Kind::Unknown => return None,
            Kind::Error => Means::Error,
            Kind::MessageStop => Means::End("message_stop"),
            _ => Means::More,
        };
        match event.kind {
            Kind::MessageStart => progress.begin(),
            Kind::ContentBlockStart => progress.say(0, event.content_block.map(Found::from).unwrap_or_default()),
            Kind::ContentBlockDelta => progress.say(
                0,
                Found {
                    text: delta.text,
                    tool: delta.partial_json,
                    reasoning: delta.thinking,
                    opaque: !delta.signature.is_empty(),
                    ..Found::default()
                },
            ),
            _ => {}
        }
        let message = event.message.unwrap_or_default();
        progress.model(&message.model);
        for reported in [message.usage, event.usage].into_iter().flatten() {
            self.usage.update(&reported.value);
            progress.usage(self.usage.normalised(), reported.raw, Merge::Fields);
        }
        progress.finish(delta.stop_reason);
        Some(means)
    }
}

/// Reads a whole message.
#[derive(Clone, Default)]
pub(crate) struct Answer;

impl Schema for Answer {
    type Event<'a, P: Piece> = Message<'a, P>;

    fn take<P: Piece>(&mut self, message: Message<'_, P>, progress: &mut Progress<P>) -> Option<Means> {
        if message.kind != MessageKind::Message {
            return None;
        }
        progress.model(&message.model);
        if let Some(reported) = message.usage {
            progress.usage(reported.value.normalised(), reported.raw, Merge::Whole);
        }
        progress.finish(message.stop_reason);
        progress.say(0, message.content.found);
        Some(Means::More)
    }
}

/// One event of a stream.
#[derive(serde::Deserialize)]
#[serde(bound(deserialize = "P: Piece"))]
pub(crate) struct Event<'a, P: Piece> {
    #[serde(rename = "type", default)]
    kind: Kind,
    #[serde(borrow)]
    message: Option<Start<'a, P>>,
    content_block: Option<Block<P>>,
    delta: Option<Delta<P>>,
    usage: Option<Reported<P, Tokens>>,
}

#[derive(Clone, Copy, Default, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
enum Kind {
    MessageStart,
    ContentBlockStart,
    ContentBlockDelta,
    ContentBlockStop,
    MessageDelta,
    MessageStop,
    Ping,
    Error,
    #[default]
    #[serde(other)]
    Unknown,
}

/// The message as it starts: without content.
#[derive(Default, serde::Deserialize)]
#[serde(default, bound(deserialize = "P: Piece"))]
struct Start<'a, P: Piece> {
    #[serde(borrow)]
    model: Name<'a>,
    usage: Option<Reported<P, Tokens>>,
}

/// What is added to a block, or to the message. Citations, which no model's token stands for, are another field.
#[derive(Default, serde::Deserialize)]
#[serde(default, bound(deserialize = "P: Piece"))]
struct Delta<P: Piece> {
    text: P,
    thinking: P,
    partial_json: P,
    signature: Presence,
    stop_reason: Option<String>,
}

/// One whole message.
#[derive(serde::Deserialize)]
#[serde(bound(deserialize = "P: Piece"))]
pub(crate) struct Message<'a, P: Piece> {
    #[serde(rename = "type", default)]
    kind: MessageKind,
    #[serde(borrow, default)]
    model: Name<'a>,
    #[serde(default)]
    content: Joined<P, Block<P>>,
    stop_reason: Option<String>,
    usage: Option<Reported<P, Tokens>>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
enum MessageKind {
    Message,
    #[default]
    #[serde(other)]
    Unknown,
}

/// A block, whole or as it starts.
#[derive(Default, serde::Deserialize)]
#[serde(default, bound(deserialize = "P: Piece"))]
struct Block<P: Piece> {
    #[serde(rename = "type")]
    kind: BlockKind,
    text: P,
    thinking: P,
    name: P,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
enum BlockKind {
    Text,
    Thinking,
    RedactedThinking,
    #[serde(alias = "server_tool_use", alias = "mcp_tool_use")]
    ToolUse,
    /// A tool's result, which the model did not write.
    #[default]
    #[serde(other)]
    Other,
}

impl<P: Piece> From<Block<P>> for Found<P> {
    fn from(block: Block<P>) -> Self {
        Self {
            text: block.text.only_if(block.kind == BlockKind::Text),
            tool: block.name.only_if(block.kind == BlockKind::ToolUse),
            reasoning: block.thinking.only_if(block.kind == BlockKind::Thinking),
            opaque: block.kind == BlockKind::RedactedThinking,
            ..Self::default()
        }
    }
}

/// Token counts. They are cumulative, and later events report only some of them.
#[derive(Clone, Default, serde::Deserialize)]
#[serde(default)]
struct Tokens {
    input_tokens: Count,
    cache_creation_input_tokens: Count,
    cache_read_input_tokens: Count,
    output_tokens: Count,
    output_tokens_details: Option<Details>,
}

#[derive(Clone, Copy, Default, serde::Deserialize)]
#[serde(default)]
struct Details {
    thinking_tokens: Count,
}

impl Tokens {
    /// Takes over what a later report says.
    fn update(&mut self, later: &Self) {
        for (count, later) in [
            (&mut self.input_tokens, later.input_tokens),
            (&mut self.cache_creation_input_tokens, later.cache_creation_input_tokens),
            (&mut self.cache_read_input_tokens, later.cache_read_input_tokens),
            (&mut self.output_tokens, later.output_tokens),
        ] {
            *count = Count(later.0.or(count.0));
        }
        self.output_tokens_details = later.output_tokens_details.or(self.output_tokens_details);
    }

    /// Input with what was written to the cache and read from it, which `input_tokens` excludes.
    fn normalised(&self) -> Option<Usage> {
        let cached = self.cache_read_input_tokens.0;
        let beside = self.cache_creation_input_tokens.0.unwrap_or(0).saturating_add(cached.unwrap_or(0));
        let usage = Usage {
            input: self.input_tokens.0.map(|input| input.saturating_add(beside)),
            output: self.output_tokens.0,
            cached,
            reasoning: self.output_tokens_details.and_then(|details| details.thinking_tokens.0),
        };
        (usage != Usage::default()).then_some(usage)
    }
}

#[cfg(test)]
mod tests {
    use gate_model::Delivery;

    use super::*;
    use crate::framing::Sse;
    use crate::reader::decoder;
    use crate::{EventKind, Keep, StreamState};

    fn decode(body: &str) -> (Vec<EventKind>, StreamState) {
        let mut decoder = decoder::<Sse>(Events::default(), Answer, Delivery::Streamed, Keep::Nothing);
        let mut kinds = Vec::new();
        decoder.feed(body.as_bytes(), &mut |event| kinds.push(event.kind));
        decoder.finish(&mut |event| kinds.push(event.kind));
        (kinds, decoder.state().clone())
    }

    #[test]
    fn a_token_is_what_the_model_generated() {
        use EventKind::{Bare, End, Error, Reasoning, Text, ToolCall};
        let delta = |delta: &str| format!(r#"{{"type":"content_block_delta","index":0,"delta":{delta}}}"#);
        let block = |block: &str| format!(r#"{{"type":"content_block_start","index":0,"content_block":{block}}}"#);
        for (json, kind) in [
            (delta(r#"{"type":"text_delta","text":" "}"#), Text),
            (delta(r#"{"type":"text_delta","text":""}"#), Bare),
            (delta(r#"{"type":"thinking_delta","thinking":"a"}"#), Reasoning),
            (delta(r#"{"type":"input_json_delta","partial_json":"{"}"#), ToolCall),
            (delta(r#"{"type":"input_json_delta","partial_json":""}"#), Bare),
            (delta(r#"{"type":"signature_delta","signature":"xx"}"#), Bare),
            (delta(r#"{"type":"citations_delta","citation":{"cited_text":"a"}}"#), Bare),
            (block(r#"{"type":"text","text":""}"#), Bare),
            (block(r#"{"type":"text","text":"a"}"#), Text),
            (block(r#"{"type":"tool_use","id":"t","name":"f","input":{}}"#), ToolCall),
            (block(r#"{"type":"mcp_tool_use","name":"f"}"#), ToolCall),
            (block(r#"{"type":"redacted_thinking","data":"xx"}"#), Bare),
            (block(r#"{"type":"web_search_tool_result","content":[{"title":"a"}]}"#), Bare),
            (r#"{"type":"ping"}"#.to_owned(), Bare),
            (r#"{"type":"message_start","message":{"content":[],"usage":{"output_tokens":1}}}"#.to_owned(), Bare),
            (r#"{"type":"message_stop"}"#.to_owned(), End),
            (r#"{"type":"error","error":{"message":"m"}}"#.to_owned(), Error),
        ] {
            assert_eq!(decode(&format!("data: {json}\n\n")).0, [kind], "{json}");
        }
    }

    #[test]
    fn usage_is_cumulative_and_input_includes_the_cache() {
        let usage = |reports: [&str; 2]| {
            let [start, delta] = reports;
            let start = format!(r#"{{"type":"message_start","message":{{"usage":{start}}}}}"#);
            decode(&format!("data: {start}\n\ndata: {{\"type\":\"message_delta\",\"usage\":{delta}}}\n\n")).1.usage
        };
        let counts = |input, output, cached, reasoning| Some(Usage { input, output, cached, reasoning });
        let start =
            r#"{"input_tokens":2,"cache_creation_input_tokens":30,"cache_read_input_tokens":400,"output_tokens":1}"#;
        assert_eq!(usage([start, r#"{"output_tokens":9}"#]), counts(Some(432), Some(9), Some(400), None));
        let later =
            r#"{"input_tokens":5,"cache_read_input_tokens":null,"output_tokens_details":{"thinking_tokens":3}}"#;
        assert_eq!(usage([start, later]), counts(Some(435), Some(1), Some(400), Some(3)));
        assert_eq!(usage(["null", "{}"]), None);
    }

    #[test]
    fn an_error_event_blames_the_server_where_it_is_to_blame() {
        for (kind, server) in [("overloaded_error", true), ("api_error", true), ("invalid_request_error", false)] {
            let body = format!("event: error\ndata: {{\"type\":\"error\",\"error\":{{\"type\":\"{kind}\"}}}}\n\n");
            let error = decode(&body).1.error.unwrap();
            assert_eq!((error.kind.as_deref(), error.server), (Some(kind), server));
        }
    }

    #[test]
    fn another_apis_events_are_foreign() {
        let body = "data: {\"type\":\"response.output_text.delta\",\"delta\":\"a\"}\n\ndata: {\"choices\":[]}\n\n";
        let state = decode(body).1;
        assert_eq!((state.foreign_events, state.content_events, state.failure), (2, 0, None));
    }
}
