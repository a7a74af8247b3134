//! The dialects, as a server speaks them: requests read, answers and errors written.

use std::time::{SystemTime, UNIX_EPOCH};

use gate_engine::{EventKind, Fate, Script, ScriptEvent};
use gate_model::{Api, Nanos};
use serde::Serialize;
use serde_json::Value;

use crate::ask::Ask;
use crate::http::Refusal;

mod anthropic;
mod bedrock_converse;
mod bedrock_invoke;
mod cohere;
mod event_stream;
mod gemini;
mod llamacpp;
mod ollama;
mod openai;
mod openai_chat;
mod openai_completions;
mod openai_embeddings;
mod openai_responses;
mod route;
mod sglang;
mod tgi;
mod triton;

pub(crate) use ollama::{Ollama, tags};
pub(crate) use openai_chat::OpenaiChat;
pub(crate) use route::at;

/// What the engine says, one word a token, over and over (Herman Melville, Moby-Dick, 1851).
const PROSE: &str = "Call me Ishmael. Some years ago, never mind how long precisely, having little or no money in my \
    purse, and nothing particular to interest me on shore, I thought I would sail about a little and see the watery \
    part of the world. It is a way I have of driving off the spleen and regulating the circulation. Whenever I find \
    myself growing grim about the mouth; whenever it is a damp, drizzly November in my soul; whenever I find myself \
    involuntarily pausing before coffin warehouses, and bringing up the rear of every funeral I meet; then, I account \
    it high time to get to sea as soon as I can.";

/// One API, seen from the server. Errors are OpenAI's, as with most servers, where the dialect has none of its own.
///
/// What belongs to a stream is appended to the bytes given.
pub(crate) trait Dialect: Send + Sync {
    /// Its name.
    fn api(&self) -> Api;

    /// Reads a request's body.
    fn ask(&self, body: &[u8]) -> Result<Ask, Refusal>;

    /// The content type of a stream.
    fn stream_type(&self) -> &'static str {
        "text/event-stream"
    }

    /// What a stream sends before any content; nothing where the dialect has nothing of the kind.
    fn opening(&self, _reply: &Reply<'_>, _out: &mut Vec<u8>) {}

    /// The opening, where it is still to come.
    fn opened(&self, reply: &Reply<'_>, out: &mut Vec<u8>) {
        if !reply.opened {
            self.opening(reply, out);
        }
    }

    /// The event of the text that is new. Where nothing was sent before, it opens the stream as well.
    fn content(&self, reply: &Reply<'_>, out: &mut Vec<u8>);

    /// What follows the last token: the finish reason, the usage where it is due, the end mark.
    fn closing(&self, reply: &Reply<'_>, out: &mut Vec<u8>);

    /// The whole answer as one body.
    fn body(&self, reply: &Reply<'_>) -> Value;

    /// The body of an answer that refuses.
    fn refusal(&self, refusal: &Refusal) -> Value {
        openai::refusal(refusal)
    }

    /// Header lines of an answer that refuses.
    fn refusal_headers(&self, _refusal: &Refusal) -> String {
        String::new()
    }

    /// The engine's own failure.
    fn failure(&self) -> Refusal {
        Refusal::new(500, openai::FAILURE)
    }

    /// Too many requests.
    fn rate_limit(&self) -> Refusal {
        Refusal::new(429, openai::RATE_LIMIT)
    }

    /// Credentials that are not taken.
    fn unauthorised(&self) -> Refusal {
        Refusal::new(401, openai::UNAUTHORISED).code("invalid_api_key")
    }

    /// The engine's own failure as the body of a 200 answer.
    fn embedded_failure(&self) -> Value {
        self.refusal(&self.failure())
    }

    /// The engine's own failure inside a stream that has begun, which it ends.
    fn broken_stream(&self, _reply: &Reply<'_>, out: &mut Vec<u8>) {
        event(out, &self.embedded_failure());
    }
}

/// A server-sent event.
fn event(out: &mut Vec<u8>, data: &impl Serialize) {
    out.extend(b"data: ");
    json(out, data);
    out.extend(b"\n\n");
}

/// A server-sent event with a name.
fn named_event(out: &mut Vec<u8>, name: &str, data: &impl Serialize) {
    out.extend([b"event: ", name.as_bytes(), b"\n"].concat());
    event(out, data);
}

/// A line of JSON.
fn line(out: &mut Vec<u8>, data: &impl Serialize) {
    json(out, data);
    out.push(b'\n');
}

fn json(out: &mut Vec<u8>, data: &impl Serialize) {
    // What is written here has no map with keys that are no texts, and a vector takes everything.
    let _ = serde_json::to_writer(out, data);
}

/// The end mark of several dialects.
const DONE: &[u8] = b"data: [DONE]\n\n";

/// What an encoder knows of the answer that it writes.
pub(crate) struct Reply<'a> {
    pub(crate) ask: &'a Ask,
    /// The request's number.
    pub(crate) number: u32,
    /// When the request arrived.
    pub(crate) arrived: SystemTime,
    /// When the first token is due, from the arrival; the end where there is none.
    pub(crate) first_token: Nanos,
    /// The prompt's tokens that a prefix cache held; absent where there is none.
    pub(crate) cached: Option<u32>,
    /// When that which is being written is due, from the arrival.
    pub(crate) at: Nanos,
    /// The tokens so far, those being written included.
    pub(crate) tokens: u32,
    /// The content events so far, the one being written left out.
    pub(crate) events: u32,
    /// Whether the stream has begun.
    pub(crate) opened: bool,
    /// Whether the answer ends well with the tokens that are being written.
    pub(crate) last: bool,
    /// The text so far, what is being written included.
    pub(crate) text: String,
    /// Where the text that is new begins.
    new_from: usize,
}

impl Reply<'_> {
    /// The text that is new.
    fn delta(&self) -> &str {
        self.text.get(self.new_from..).unwrap_or_default()
    }

    /// When the request arrived, in seconds since the UNIX epoch.
    fn created(&self) -> u64 {
        self.arrived.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
    }

    /// The finish reason in the dialect's words: the limit was reached, or the model had nothing to say.
    fn reason(&self, length: &'static str, stop: &'static str) -> &'static str {
        if self.tokens > 0 { length } else { stop }
    }

    /// The prompt's tokens that were read, where a cache's are counted beside them.
    fn read_tokens(&self) -> u32 {
        self.ask.prompt_tokens.saturating_sub(self.cached.unwrap_or(0))
    }

    /// Input and output tokens together.
    fn total_tokens(&self) -> u64 {
        u64::from(self.ask.prompt_tokens) + u64::from(self.tokens)
    }

    /// A duration in milliseconds.
    fn millis(duration: Nanos) -> f64 {
        duration.0 as f64 / 1e6
    }
}

/// Writes one answer, piece by piece.
pub(crate) struct Answer<'a> {
    dialect: &'static dyn Dialect,
    reply: Reply<'a>,
    /// How many tokens a good end comes after; `None` where there is none.
    complete_at: Option<u32>,
    words: std::iter::Cycle<std::str::SplitWhitespace<'static>>,
}

impl<'a> Answer<'a> {
    /// The answer to a request that arrived at this time, and is to be served by this script.
    pub(crate) fn new(
        dialect: &'static dyn Dialect,
        ask: &'a Ask,
        number: u32,
        arrived: SystemTime,
        script: &Script,
    ) -> Self {
        let content = script.events.iter().find(|event| event.kind != EventKind::Role);
        let reply = Reply {
            ask,
            number,
            arrived,
            first_token: content.map_or(script.end, |event| event.at),
            cached: None,
            at: Nanos::ZERO,
            tokens: 0,
            events: 0,
            opened: false,
            last: false,
            text: String::new(),
            new_from: 0,
        };
        let ends_well = matches!(script.fate, Fate::Complete | Fate::SlowHeaders);
        let complete_at = ends_well.then(|| script.tokens());
        Self { dialect, reply, complete_at, words: PROSE.split_whitespace().cycle() }
    }

    /// The request is served from now on, by this script: what its prompt had in a prefix cache is known.
    pub(crate) fn served(&mut self, script: &Script, cached: Option<u32>) {
        let content = script.events.iter().find(|event| event.kind != EventKind::Role);
        self.reply.first_token = content.map_or(script.end, |event| event.at);
        self.reply.cached = cached;
    }

    /// The answer's text so far.
    pub(crate) fn text(&self) -> &str {
        &self.reply.text
    }

    /// Appends the next event of the stream; nothing where the dialect has none of this kind.
    pub(crate) fn next(&mut self, event: ScriptEvent, out: &mut Vec<u8>) {
        self.reply.at = event.at;
        let before = out.len();
        match event.kind {
            EventKind::Role => self.dialect.opening(&self.reply, out),
            EventKind::Tokens(tokens) => {
                self.say(tokens);
                self.dialect.content(&self.reply, out);
                self.reply.events += 1;
            }
        }
        self.reply.opened |= out.len() > before;
    }

    /// Appends the events after the last token, due at this time.
    pub(crate) fn closing(&mut self, at: Nanos, out: &mut Vec<u8>) {
        self.reply.at = at;
        self.dialect.closing(&self.reply, out);
    }

    /// Appends the engine's own failure, which ends the stream, due at this time.
    pub(crate) fn broken(&mut self, at: Nanos, out: &mut Vec<u8>) {
        self.reply.at = at;
        self.dialect.broken_stream(&self.reply, out);
    }

    /// The whole answer of so many tokens as one body, due at this time.
    pub(crate) fn body(&mut self, at: Nanos, tokens: u32) -> Vec<u8> {
        self.reply.at = at;
        self.say(tokens);
        let mut body = Vec::new();
        json(&mut body, &self.dialect.body(&self.reply));
        body
    }

    fn say(&mut self, tokens: u32) {
        let reply = &mut self.reply;
        reply.new_from = reply.text.len();
        for word in self.words.by_ref().take(tokens as usize) {
            if reply.tokens > 0 {
                reply.text.push(' ');
            }
            reply.text.push_str(word);
            reply.tokens += 1;
        }
        reply.last = self.complete_at == Some(reply.tokens);
    }
}

#[cfg(test)]
mod tests;
