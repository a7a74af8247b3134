//! Answers of the dialect: OpenAI chat completions, as a stream and as one body.

use std::time::{SystemTime, UNIX_EPOCH};

use gate_engine::EventKind;
use serde_json::{Value, json};

use crate::chat::ChatRequest;

/// What the engine says, one word a token, over and over (Herman Melville, Moby-Dick, 1851).
const PROSE: &str = "Call me Ishmael. Some years ago, never mind how long precisely, having little or no money in my \
    purse, and nothing particular to interest me on shore, I thought I would sail about a little and see the watery \
    part of the world. It is a way I have of driving off the spleen and regulating the circulation. Whenever I find \
    myself growing grim about the mouth; whenever it is a damp, drizzly November in my soul; whenever I find myself \
    involuntarily pausing before coffin warehouses, and bringing up the rear of every funeral I meet; then, I account \
    it high time to get to sea as soon as I can.";

/// The error object of a failure inside a 200 answer.
pub(crate) fn embedded_error() -> Value {
    let message = "The server had an error while processing your request. Sorry about that!";
    json!({"error": {"message": message, "type": "server_error", "param": null, "code": 500}})
}

/// One server-sent event.
pub(crate) fn event(data: &impl std::fmt::Display) -> String {
    format!("data: {data}\n\n")
}

/// Writes one answer, event by event.
pub(crate) struct Answer<'a> {
    request: &'a ChatRequest,
    id: String,
    created: u64,
    words: std::iter::Cycle<std::str::SplitWhitespace<'static>>,
    tokens: u32,
    role_sent: bool,
}

impl<'a> Answer<'a> {
    pub(crate) fn new(request: &'a ChatRequest, number: u32) -> Self {
        let created = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        Self {
            request,
            id: format!("chatcmpl-sim-{number}"),
            created,
            words: PROSE.split_whitespace().cycle(),
            tokens: 0,
            role_sent: false,
        }
    }

    /// The next event of the stream. The role stands in the first one, whatever it carries.
    pub(crate) fn next(&mut self, kind: EventKind) -> String {
        let content = self.text(kind.tokens());
        let delta = if std::mem::replace(&mut self.role_sent, true) {
            json!({"content": content})
        } else {
            json!({"role": "assistant", "content": content})
        };
        event(&self.chunk(json!([{"index": 0, "delta": delta, "logprobs": null, "finish_reason": null}]), Value::Null))
    }

    /// The events after the last token: the finish reason, the usage where it was asked for, the end mark.
    pub(crate) fn closing(&self) -> Vec<String> {
        let finish = json!([{"index": 0, "delta": {}, "logprobs": null, "finish_reason": "length"}]);
        let mut events = vec![event(&self.chunk(finish, Value::Null))];
        if self.request.include_usage {
            events.push(event(&self.chunk(json!([]), self.usage())));
        }
        events.push(event(&"[DONE]"));
        events
    }

    /// The whole answer as one body.
    pub(crate) fn body(&mut self, tokens: u32) -> String {
        let message = json!({"role": "assistant", "content": self.text(tokens), "refusal": null});
        let choice = json!({"index": 0, "message": message, "logprobs": null, "finish_reason": "length"});
        json!({
            "id": self.id, "object": "chat.completion", "created": self.created, "model": self.request.model,
            "choices": [choice], "usage": self.usage(),
        })
        .to_string()
    }

    /// A chunk; only with `include_usage` does it have a usage, null in all but the last.
    fn chunk(&self, choices: Value, usage: Value) -> Value {
        let mut chunk = json!({
            "id": self.id, "object": "chat.completion.chunk", "created": self.created, "model": self.request.model,
            "choices": choices,
        });
        if let (true, Some(fields)) = (self.request.include_usage, chunk.as_object_mut()) {
            fields.insert("usage".to_owned(), usage);
        }
        chunk
    }

    fn usage(&self) -> Value {
        let (prompt, completion) = (self.request.prompt_tokens, self.tokens);
        let total = u64::from(prompt) + u64::from(completion);
        json!({"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": total})
    }

    fn text(&mut self, tokens: u32) -> String {
        let mut text = String::new();
        for word in self.words.by_ref().take(tokens as usize) {
            if self.tokens > 0 {
                text.push(' ');
            }
            text.push_str(word);
            self.tokens += 1;
        }
        text
    }
}
