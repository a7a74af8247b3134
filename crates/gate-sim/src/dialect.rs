//! The dialects, as a server speaks them: requests read, answers and errors written.

use std::time::{SystemTime, UNIX_EPOCH};

use gate_engine::{EventKind, Script, ScriptEvent};
use gate_model::{Api, Nanos};
use serde_json::Value;

use crate::ask::Ask;
use crate::http::Refusal;

mod anthropic;
mod ollama;
mod openai;
mod openai_chat;
mod openai_completions;

pub(crate) use ollama::{Ollama, tags};
pub(crate) use openai_chat::OpenaiChat;

/// What the engine says, one word a token, over and over (Herman Melville, Moby-Dick, 1851).
const PROSE: &str = "Call me Ishmael. Some years ago, never mind how long precisely, having little or no money in my \
    purse, and nothing particular to interest me on shore, I thought I would sail about a little and see the watery \
    part of the world. It is a way I have of driving off the spleen and regulating the circulation. Whenever I find \
    myself growing grim about the mouth; whenever it is a damp, drizzly November in my soul; whenever I find myself \
    involuntarily pausing before coffin warehouses, and bringing up the rear of every funeral I meet; then, I account \
    it high time to get to sea as soon as I can.";

/// One API, seen from the server. Errors are OpenAI's, as with most servers, where the dialect has none of its own.
pub(crate) trait Dialect: Send + Sync {
    /// Its name.
    fn api(&self) -> Api;

    /// Reads a request's body.
    fn ask(&self, body: &[u8]) -> Result<Ask, Refusal>;

    /// The content type of a stream.
    fn stream_type(&self) -> &'static str {
        "text/event-stream"
    }

    /// What a stream sends before any content; empty where the dialect has nothing of the kind.
    fn opening(&self, reply: &Reply<'_>) -> String;

    /// The event of this text. Where nothing was sent before, it opens the stream as well.
    fn content(&self, reply: &Reply<'_>, text: &str) -> String;

    /// What follows the last token: the finish reason, the usage where it is due, the end mark.
    fn closing(&self, reply: &Reply<'_>) -> String;

    /// The whole answer as one body.
    fn body(&self, reply: &Reply<'_>, text: &str) -> Value;

    /// The body of an answer that refuses.
    fn refusal(&self, refusal: &Refusal) -> Value {
        openai::refusal(refusal)
    }

    /// The engine's own failure.
    fn failure(&self) -> Refusal {
        Refusal::new(500, openai::FAILURE)
    }

    /// Too many requests.
    fn rate_limit(&self) -> Refusal {
        Refusal::new(429, openai::RATE_LIMIT)
    }

    /// The engine's own failure as the body of a 200 answer.
    fn embedded_failure(&self) -> Value {
        openai::embedded_failure()
    }

    /// The engine's own failure inside a stream, which it ends.
    fn broken_stream(&self) -> String {
        openai::event(&self.embedded_failure()) + openai::DONE
    }
}

/// The dialect that is spoken at this path.
pub(crate) fn at(path: &str) -> Option<&'static dyn Dialect> {
    match path {
        "/v1/chat/completions" => Some(&OpenaiChat),
        "/v1/completions" => Some(&openai_completions::OpenaiCompletions),
        "/v1/messages" => Some(&anthropic::Anthropic),
        "/api/chat" => Some(&Ollama),
        _ => None,
    }
}

/// What an encoder knows of the answer that it writes.
pub(crate) struct Reply<'a> {
    pub(crate) ask: &'a Ask,
    /// The request's number.
    pub(crate) number: u32,
    /// When the request arrived.
    pub(crate) arrived: SystemTime,
    /// When the first token is due, from the arrival; the end where there is none.
    pub(crate) first_token: Nanos,
    /// When that which is being written is due, from the arrival.
    pub(crate) at: Nanos,
    /// The tokens so far, those being written included.
    pub(crate) tokens: u32,
    /// Whether the stream has begun.
    pub(crate) opened: bool,
}

impl Reply<'_> {
    /// When the request arrived, in seconds since the UNIX epoch.
    fn created(&self) -> u64 {
        self.arrived.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
    }

    /// The finish reason in the dialect's words: the limit was reached, or the model had nothing to say.
    fn reason(&self, length: &'static str, stop: &'static str) -> &'static str {
        if self.tokens > 0 { length } else { stop }
    }
}

/// Writes one answer, piece by piece.
pub(crate) struct Answer<'a> {
    dialect: &'static dyn Dialect,
    reply: Reply<'a>,
    words: std::iter::Cycle<std::str::SplitWhitespace<'static>>,
}

impl<'a> Answer<'a> {
    /// The answer to a request that arrived just now, and is to be served by this script.
    pub(crate) fn new(dialect: &'static dyn Dialect, ask: &'a Ask, number: u32, script: &Script) -> Self {
        let content = script.events.iter().find(|event| event.kind != EventKind::Role);
        let reply = Reply {
            ask,
            number,
            arrived: SystemTime::now(),
            first_token: content.map_or(script.end, |event| event.at),
            at: Nanos::ZERO,
            tokens: 0,
            opened: false,
        };
        Self { dialect, reply, words: PROSE.split_whitespace().cycle() }
    }

    /// The next event of the stream; empty where the dialect has none of this kind.
    pub(crate) fn next(&mut self, event: ScriptEvent) -> String {
        self.reply.at = event.at;
        let encoded = match event.kind {
            EventKind::Role => self.dialect.opening(&self.reply),
            EventKind::Tokens(tokens) => {
                let text = self.text(tokens);
                self.dialect.content(&self.reply, &text)
            }
        };
        self.reply.opened |= !encoded.is_empty();
        encoded
    }

    /// The events after the last token, due at this time.
    pub(crate) fn closing(&mut self, at: Nanos) -> String {
        self.reply.at = at;
        self.dialect.closing(&self.reply)
    }

    /// The whole answer of so many tokens as one body, due at this time.
    pub(crate) fn body(&mut self, at: Nanos, tokens: u32) -> String {
        self.reply.at = at;
        let text = self.text(tokens);
        self.dialect.body(&self.reply, &text).to_string()
    }

    fn text(&mut self, tokens: u32) -> String {
        let mut text = String::new();
        for word in self.words.by_ref().take(tokens as usize) {
            if self.reply.tokens > 0 {
                text.push(' ');
            }
            text.push_str(word);
            self.reply.tokens += 1;
        }
        text
    }
}
