//! The simulated inference engine as a real-time HTTP server.
//!
//! [`Server`] plays the scripts of `gate-engine` on a socket: exact times, exact token counts and faults on request, in
//! each dialect the same. [`Truth`] says what it really sent and when, so that a client can be measured against it.
//! The HTTP and the dialects are written by hand: every write is one event (or all that are due at the same instant, or
//! one burst of a buffering proxy), every reset a real one, and no decoder is ever checked against its own encoder.
//!
//! | route | answer |
//! |---|---|
//! | `POST /v1/chat/completions`, `/v1/completions`, `/v1/responses` | OpenAI: a stream where `stream` is true, else one body |
//! | `POST /v1/embeddings` | OpenAI: one body, due when a first token would be |
//! | `POST /v1/messages` | Anthropic: a stream where `stream` is true |
//! | `POST …/models/M:streamGenerateContent`, `…/models/M:generateContent` | Gemini and Vertex AI: server-sent events with `alt=sse`, else an array in pieces; one body |
//! | `POST /model/M/converse-stream`, `/model/M/converse` | Bedrock: event-stream messages; one body |
//! | `POST /model/M/invoke-with-response-stream`, `/model/M/invoke` | Bedrock, with Anthropic's messages inside |
//! | `POST /v2/chat` | Cohere: a stream where `stream` is true |
//! | `POST /api/chat`, `/api/generate` | Ollama: one body where `stream` is false, else a stream |
//! | `POST /generate_stream`, `/generate` with `inputs` | TGI: a stream; one body |
//! | `POST /completion` | llama.cpp: a stream where `stream` is true |
//! | `POST /generate` with `text` or `input_ids` | SGLang: a stream where `stream` is true |
//! | `POST /v2/models/M/generate_stream`, `/v2/models/M/generate` | Triton: a stream; one body |
//! | `GET /v1/models`, `GET /api/tags` | the one model |
//! | `GET /health` | 200 |
//! | `GET /metrics` | what the engine reports of itself, in Prometheus' text format under vLLM's names |
//! | `GET /truth` | [`Truth`] as JSON |
//!
//! All but `/truth` answer 503 until `ready_after` has passed.
//!
//! - Streams of OpenAI's chat and completions have usage where `stream_options.include_usage` asks for it, TGI's answers
//!   where `parameters.details` does, and Triton's never; everything else always has. The event of `role_chunk` is what
//!   opens a stream before its content, in the dialects that have such a thing.
//! - SGLang's events repeat the text before them, unless the request has `incremental_streaming_output: true`: what a real
//!   one is started with.
//! - Any model's name will do. On OpenAI chat the model `wants-max-completion-tokens` refuses `max_tokens` as OpenAI's
//!   newer ones do, so that a client's switch to `max_completion_tokens` can be tested.
//! - A fault has the dialect's own words: a 429 comes with `retry-after: 1`, or what `retry_after` says, an error inside the stream ends it, an
//!   HTML page is the same for all. Asked for one body, faults in the middle happen in the middle of the body.
//! - `buffer_bytes` counts bytes of body and lets whole events go. What a proxy holds when the stream is reset, or
//!   falls silent, is lost; status, headers and whole bodies are not held back.
//! - `slots`, `prefill` and `prefix_cache` work as [`gate_engine::Engine`] says: a stream's head, and its role where it has
//!   one, come at once, its content when the request is served. A prompt is known by its text, in blocks of 4 characters a
//!   token; usage tells cached tokens in every dialect that has a word for them. Prompts have 1.3 tokens a word, images
//!   none.
//! - A short answer that is due at one instant, head included, goes in one write.
//! - With a `tpot` of 0 the server is as fast as it can be: everything after the first token is due at once, and goes in
//!   writes of up to 64 KiB. Otherwise events that are due within 200 µs of each other may share a wake-up of the server,
//!   and each still has its own write.

mod alarm;
mod ask;
mod connection;
mod dialect;
mod http;
mod ledger;
mod metrics;
mod playback;
mod queue;
mod server;
mod truth;

pub use server::{Server, SimError, StopHandle};
pub use truth::{Truth, TruthRequest, TruthWrite};
