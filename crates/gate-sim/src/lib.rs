//! The simulated inference engine as a real-time HTTP server.
//!
//! [`Server`] plays the scripts of `gate-engine` on a socket: exact times, exact token counts and faults on request, in
//! each dialect the same. [`Truth`] says what it really sent and when, so that a client can be measured against it.
//! The HTTP and the dialects are written by hand: every write is one event (or one burst of a buffering proxy), every
//! reset a real one, and no decoder is ever checked against its own encoder.
//!
//! | route | answer |
//! |---|---|
//! | `POST /v1/chat/completions` | OpenAI chat: a stream where `stream` is true, else one body |
//! | `POST /v1/completions` | OpenAI completions, likewise |
//! | `POST /v1/messages` | Anthropic messages, likewise |
//! | `POST /api/chat` | Ollama chat: one body where `stream` is false, else a stream |
//! | `GET /v1/models`, `GET /api/tags` | the one model |
//! | `GET /health` | 200 |
//! | `GET /truth` | [`Truth`] as JSON |
//!
//! All but `/truth` answer 503 until `ready_after` has passed.
//!
//! - Streams of OpenAI's dialects have usage where `stream_options.include_usage` asks for it; everything else always
//!   has. The event of `role_chunk` is the role in OpenAI chat and the message's start in Anthropic's dialect; the
//!   others have none.
//! - Any model's name will do. On OpenAI chat the model `wants-max-completion-tokens` refuses `max_tokens` as OpenAI's
//!   newer ones do, so that a client's switch to `max_completion_tokens` can be tested.
//! - A fault has the dialect's own words: a 429 comes with `retry-after: 1`, an error inside the stream ends it, an
//!   HTML page is the same for all. Asked for one body, faults in the middle happen in the middle of the body.
//! - `buffer_bytes` counts bytes of body and lets whole events go. What a proxy holds when the stream is reset, or
//!   falls silent, is lost; status, headers and whole bodies are not held back.

mod ask;
mod connection;
mod dialect;
mod http;
mod ledger;
mod playback;
mod server;
mod timer;
mod truth;

pub use server::{Server, SimError, StopHandle};
pub use truth::{Truth, TruthRequest, TruthWrite};
