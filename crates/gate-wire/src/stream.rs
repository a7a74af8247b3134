//! What a decoder makes of a stream.

use gate_model::Usage;

use crate::Transcript;

/// The longest event, line, or whole answer that is decoded: 8 MiB.
pub const MAX_EVENT: usize = 8 << 20;

/// What one event of a stream carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// Nothing generated: a role, usage, a ping, an annotation, empty content.
    Bare,
    /// Generated reasoning, and nothing else.
    Reasoning,
    /// A tool call's name or arguments, and no text.
    ToolCall,
    /// Visible text, a refusal, or an embedding.
    Text,
    /// The terminal event.
    End,
    /// An error.
    Error,
}

impl EventKind {
    /// Whether the event carries something the model generated: it can be the first token.
    #[must_use]
    pub fn is_content(self) -> bool {
        matches!(self, Self::Reasoning | Self::ToolCall | Self::Text)
    }

    /// Whether the event carries visible text, a refusal or a tool call: it can be the first answer.
    #[must_use]
    pub fn is_answer(self) -> bool {
        matches!(self, Self::ToolCall | Self::Text)
    }
}

/// One decoded event of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The offset in the body just past the byte that completed it: the blank line's first, where lines end in CRLF.
    /// A whole answer ends with the body.
    pub end: u64,
    /// What it carries.
    pub kind: EventKind,
}

/// Decodes one response body.
pub trait Decoder: Send {
    /// Takes the next bytes of the body, cut anywhere, and gives every event they complete to `sink`.
    fn feed(&mut self, bytes: &[u8], sink: &mut dyn FnMut(Event));

    /// Says that the body ended as its length or framing promised: an event without its final blank line is still
    /// given, and so is a whole answer: as one event and, unless it is an error, the end. Not to be called after a reset. Nothing may be fed afterwards.
    fn finish(&mut self, sink: &mut dyn FnMut(Event));

    /// What the stream has said so far.
    fn state(&self) -> &StreamState;

    /// What it has generated so far, where that is kept.
    fn transcript(&self) -> Option<&Transcript>;
}

/// An error that a server reports inside a response with a 2xx status.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamError {
    /// The error's type, else its status, else its code, as the server spells it.
    pub kind: Option<String>,
    /// The message in one line of at most 300 characters; empty where there is none.
    pub message: String,
    /// Whether the server blames itself: a 5xx code, overloaded, a server or internal error, unavailable.
    pub server: bool,
}

/// Why a body could not be decoded as the dialect's stream, or as its whole answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Undecodable {
    /// A compressed body, though none was asked for.
    Compressed {
        /// The encoding, such as `gzip`.
        encoding: &'static str,
    },
    /// An HTML page.
    Html {
        /// What it says.
        message: Option<String>,
    },
    /// Neither a stream nor a whole answer of the dialect.
    Foreign {
        /// How it begins.
        message: Option<String>,
    },
    /// An event that is not JSON.
    Malformed {
        /// Its number in the stream, from 1.
        event: u64,
        /// What is wrong with it.
        message: String,
    },
    /// A frame of an event stream that is not as it was sent.
    Damaged {
        /// Its number in the stream, from 1.
        frame: u64,
        /// What is wrong with it.
        message: String,
    },
    /// An event, a line, or a whole answer longer than [`MAX_EVENT`].
    TooLong,
    /// A whole answer that is empty, or ends before its end.
    Cut,
    /// A stream instead of one whole answer.
    Streamed,
    /// One whole completion instead of a stream.
    NotStreamed,
}

/// What a stream has said about itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamState {
    /// Token counts, normalised; of several reports the last one.
    pub usage: Option<Usage>,
    /// Whether a report of usage came without any count that is a whole number, such as a negative one or a text.
    pub usage_unread: bool,
    /// The finish reason as the server spells it; of several choices the first one's.
    pub finish_reason: Option<String>,
    /// The model as the server first names it.
    pub model: Option<String>,
    /// The first `system_fingerprint`.
    pub fingerprint: Option<String>,
    /// How often the stream began again, in its middle or after its end: another one was spliced in, or it came twice.
    pub restarts: u32,
    /// Whether the terminal event was seen, or a whole answer.
    pub ended: bool,
    /// The first error.
    pub error: Option<StreamError>,
    /// The first thing that could not be decoded.
    pub failure: Option<Undecodable>,
    /// Data events of any kind, the terminal one included; an error outside a data event is not one. A whole answer
    /// is one.
    pub events: u64,
    /// Events with generated content.
    pub content_events: u64,
    /// Events that are JSON, but not of this dialect; they are ignored.
    pub foreign_events: u64,
    /// Where a custom dialect looks for an event's text, as long as no event has had one there.
    pub no_text_at: Option<String>,
}

impl StreamState {
    /// A sentence about usage that was reported and could not be read, where there is no other.
    #[must_use]
    pub fn unread_usage(&self) -> Option<&'static str> {
        let is_unread = self.usage_unread && self.usage.is_none();
        is_unread.then_some("its usage has no count that is a whole number, so its tokens are not counted")
    }
}
