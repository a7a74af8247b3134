//! The shape of a message's events, and of a whole message.

use gate_model::Usage;

use crate::reader::Schema;
use crate::shape::{Count, Fold, Found, Text};
use crate::{EventKind, StreamState};

/// Reads the events of a stream.
#[derive(Default)]
pub(super) struct Events {
    usage: Tokens,
}

impl Schema for Events {
    type Event = Event;

    fn take(&mut self, event: Event, state: &mut StreamState) -> Option<EventKind> {
        let delta = event.delta.unwrap_or_default();
        let kind = match event.kind {
            Kind::Unknown => return None,
            Kind::Error => EventKind::Error,
            Kind::MessageStop => EventKind::End,
            Kind::ContentBlockStart => event.content_block.map(Found::from).unwrap_or_default().kind(),
            Kind::ContentBlockDelta => {
                Found { text: delta.text.0, tool: delta.partial_json.0, reasoning: delta.thinking.0 }.kind()
            }
            Kind::MessageStart | Kind::ContentBlockStop | Kind::MessageDelta | Kind::Ping => EventKind::Bare,
        };
        let started = event.message.and_then(|message| message.usage);
        for tokens in [started, event.usage].into_iter().flatten() {
            self.usage.update(&tokens);
            state.usage = self.usage.normalised();
        }
        if let Some(reason) = delta.stop_reason.filter(|reason| !reason.is_empty()) {
            state.finish_reason = Some(reason);
        }
        Some(kind)
    }
}

/// Reads a whole message.
#[derive(Default)]
pub(super) struct Answer;

impl Schema for Answer {
    type Event = Message;

    fn take(&mut self, message: Message, state: &mut StreamState) -> Option<EventKind> {
        if message.kind != MessageKind::Message {
            return None;
        }
        state.usage = message.usage.as_ref().and_then(Tokens::normalised);
        state.finish_reason = message.stop_reason.filter(|reason| !reason.is_empty());
        Some(message.content.sum.kind())
    }
}

/// One event of a stream.
#[derive(Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct Event {
    #[serde(rename = "type")]
    kind: Kind,
    message: Option<Start>,
    content_block: Option<Block>,
    delta: Option<Delta>,
    usage: Option<Tokens>,
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
#[serde(default)]
struct Start {
    usage: Option<Tokens>,
}

/// What is added to a block, or to the message. Signatures and citations, which no model's token stands for, are
/// other fields.
#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct Delta {
    text: Text,
    thinking: Text,
    partial_json: Text,
    stop_reason: Option<String>,
}

/// One whole message.
#[derive(Default, serde::Deserialize)]
#[serde(default)]
pub(super) struct Message {
    #[serde(rename = "type")]
    kind: MessageKind,
    content: Fold<Found, Block>,
    stop_reason: Option<String>,
    usage: Option<Tokens>,
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
#[serde(default)]
struct Block {
    #[serde(rename = "type")]
    kind: BlockKind,
    text: Text,
    thinking: Text,
    name: Text,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
enum BlockKind {
    Text,
    Thinking,
    #[serde(alias = "server_tool_use", alias = "mcp_tool_use")]
    ToolUse,
    /// A tool's result, which the model did not write, or redacted thinking, which is opaque.
    #[default]
    #[serde(other)]
    Other,
}

impl From<Block> for Found {
    fn from(block: Block) -> Self {
        Self {
            text: block.kind == BlockKind::Text && block.text.0,
            tool: block.kind == BlockKind::ToolUse && block.name.0,
            reasoning: block.kind == BlockKind::Thinking && block.thinking.0,
        }
    }
}

/// Token counts. They are cumulative, and later events report only some of them.
#[derive(Default, serde::Deserialize)]
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
    use super::*;
    use crate::{Decoder, framing::Sse, reader::StreamDecoder};

    fn decode(body: &str) -> (Vec<EventKind>, StreamState) {
        let mut decoder = StreamDecoder::<Sse, Events, Answer>::default();
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
