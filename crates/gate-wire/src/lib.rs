//! The client side of each dialect, without I/O: a request to bytes, and the bytes of a stream to events.
//!
//! [`dialect`] gives the [`Dialect`] of an API. It writes requests, and makes a [`Decoder`] for each response. The
//! decoder is fed the body as it arrives, cut anywhere, and calls a sink with an [`Event`] for each event of the
//! stream: where it ends in the body, and whether it carries something the model generated. What the stream says
//! about itself (usage, finish reason, end, error) is kept in [`StreamState`]; [`conclude`] makes the outcome of it.
//!
//! What counts as a generated token: non-empty text, reasoning, a tool call's name or arguments, a refusal. What
//! does not: chunks with a role only, empty content, pings, comments, usage, repeats of the whole answer.
//!
//! An answer that was not to be a stream is one event: its decoder collects the body, and decodes it at its end.
//!
//! With [`Keep::Text`] a decoder also keeps what was generated, as a [`Transcript`]; what counts is read in one place
//! either way. [`decode_saved`] makes a [`Decoded`] of a saved body, by a dialect that [`by_name`] gives.
//!
//! Memory is bounded: an event, a line or a whole answer is at most [`MAX_EVENT`] bytes. Time is linear in the body's length.

mod anthropic;
mod bedrock;
mod cohere;
mod conclude;
mod cumulative;
mod custom;
mod dialect;
mod framing;
mod gemini;
mod image;
mod llamacpp;
mod message;
mod names;
mod ollama;
mod openai;
mod openai_chat;
mod openai_completions;
mod openai_embeddings;
mod openai_responses;
mod pattern;
mod piece;
mod progress;
mod reader;
mod replicate;
mod request;
mod restarts;
mod saved;
mod sglang;
mod shape;
mod sigv4;
mod stream;
mod tgi;
mod transcript;
mod triton;
mod whole;

pub use conclude::{BodyEnd, conclude};
pub use dialect::{Ask, Dialect, WireRequest, dialect};
pub use names::{by_name, decode_names};
pub use saved::{Decoded, DecodedChoice, DecodedError, KindCounts, decode_saved};
pub use sigv4::{SignError, sign};
pub use stream::{Decoder, Event, EventKind, MAX_EVENT, StreamError, StreamState, Undecodable};
pub use transcript::{ChoiceText, Keep, Transcript};
