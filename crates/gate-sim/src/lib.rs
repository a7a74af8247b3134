//! The simulated inference engine as a real-time HTTP server.
//!
//! [`Server`] plays the scripts of `gate-engine` on a socket: OpenAI chat completions with exact times, exact token
//! counts and faults on request. [`Truth`] says what it really sent and when, so that a client can be measured
//! against it. The HTTP and the dialect are written by hand: every write is one event, every reset a real one, and
//! no decoder is ever checked against its own encoder.
//!
//! | route | answer |
//! |---|---|
//! | `POST /v1/chat/completions` | a stream, or one body where `stream` is not `true` |
//! | `GET /v1/models` | the one model |
//! | `GET /health` | 200 |
//! | `GET /truth` | [`Truth`] as JSON |
//!
//! All but `/truth` answer 503 until `ready_after` has passed.

mod chat;
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
