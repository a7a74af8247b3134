//! The engine's slots, in real time.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use gate_engine::{Backlog, Engine, Reading, mixed};
use gate_model::{EngineParams, Nanos};
use serde_json::Value;
use tokio::sync::{Notify, oneshot};

use crate::alarm::Alarm;

/// About how many characters a token has.
const CHARACTERS: usize = 4;

/// The state that requests share, driven by the clock.
pub(crate) struct Queue {
    started: Instant,
    floor: Mutex<Floor>,
    /// Told when the engine is to grow at another time than before.
    growth: Notify,
    /// Whether requests may have to wait.
    is_limited: bool,
}

struct Floor {
    engine: Engine,
    /// Those that wait, by number.
    waiting: HashMap<u32, Waiting>,
}

struct Waiting {
    prompt: Prompt,
    call: oneshot::Sender<Service>,
}

/// A prompt, as the prefix cache sees it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Prompt {
    /// All its text; empty where there is no cache.
    text: Arc<str>,
    tokens: u32,
}

/// That a request is served.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Service {
    /// Since when, from the server's start; absent where it did not wait.
    from: Option<Nanos>,
    pub(crate) reading: Reading,
}

/// A request's place, in the queue and then in a slot; given up when it is dropped.
pub(crate) struct Place<'a> {
    queue: &'a Queue,
    number: u32,
    prompt: Prompt,
    now: Option<Service>,
    call: Option<oneshot::Receiver<Service>>,
}

impl Queue {
    /// The epoch is when the server started.
    pub(crate) fn new(params: &EngineParams, started: Instant) -> Self {
        let floor = Floor { engine: Engine::new(params), waiting: HashMap::new() };
        Self { started, floor: Mutex::new(floor), growth: Notify::new(), is_limited: params.slots.is_some() }
    }

    /// Whether requests may have to wait, so that it matters when a client leaves.
    pub(crate) fn is_limited(&self) -> bool {
        self.is_limited
    }

    /// The prompt of a request's body, which has so many tokens.
    pub(crate) fn prompt(&self, body: &[u8], tokens: u32) -> Prompt {
        let is_cached = self.floor().engine.block_tokens().is_some();
        let text = if is_cached { text_of(body) } else { String::new() };
        Prompt { text: text.into(), tokens }
    }

    /// A request arrives. Numbers ascend.
    pub(crate) fn arrive(&self, number: u32, prompt: Prompt) -> Place<'_> {
        let mut floor = self.floor();
        let now = self.since_start(Instant::now());
        floor.engine.arrive(now, u64::from(number));
        let mut place = Place { queue: self, number, prompt, now: None, call: None };
        match self.serve(&mut floor, now, Some((number, &place.prompt))) {
            Some(reading) => place.now = Some(Service { from: None, reading }),
            None => {
                let (call, called) = oneshot::channel();
                place.call = Some(called);
                floor.waiting.insert(number, Waiting { prompt: place.prompt.clone(), call });
            }
        }
        place
    }

    /// Serves whoever has a slot now; where that is the one who just came, the reading of its prompt.
    fn serve(&self, floor: &mut Floor, now: Nanos, newcomer: Option<(u32, &Prompt)>) -> Option<Reading> {
        let mut own = None;
        while let Some(number) = floor.engine.start(now).and_then(|ticket| u32::try_from(ticket).ok()) {
            if let Some((newcomer, prompt)) = newcomer
                && newcomer == number
            {
                own = Some(read(&mut floor.engine, prompt));
            } else if let Some(waiting) = floor.waiting.remove(&number) {
                let reading = read(&mut floor.engine, &waiting.prompt);
                // One whose client is leaving just now gives its slot back when its place is dropped.
                let _ = waiting.call.send(Service { from: Some(now), reading });
            }
        }
        if floor.engine.next_event().is_some() {
            self.growth.notify_one();
        }
        own
    }

    fn leave(&self, number: u32) {
        let mut floor = self.floor();
        let now = self.since_start(Instant::now());
        floor.engine.leave(now, u64::from(number));
        floor.waiting.remove(&number);
        self.serve(&mut floor, now, None);
    }

    /// Lets the engine grow when that is due, for ever.
    pub(crate) async fn grow(&self, alarm: &Alarm) -> std::convert::Infallible {
        loop {
            let due = self.floor().engine.next_event();
            let due = due.and_then(|due| self.started.checked_add(due.to_duration()));
            match due {
                None => self.growth.notified().await,
                Some(due) => {
                    alarm.wait_until(due).await;
                    let mut floor = self.floor();
                    let now = self.since_start(Instant::now());
                    floor.engine.grow(now);
                    self.serve(&mut floor, now, None);
                }
            }
        }
    }

    pub(crate) fn gauges(&self) -> Vec<(&'static str, f64)> {
        self.floor().engine.gauges(self.since_start(Instant::now()))
    }

    pub(crate) fn backlogs(&self) -> Vec<Backlog> {
        self.floor().engine.backlogs()
    }

    pub(crate) fn slots(&self) -> Option<u32> {
        self.floor().engine.slots()
    }

    fn since_start(&self, at: Instant) -> Nanos {
        Nanos::from(at.saturating_duration_since(self.started))
    }

    fn floor(&self) -> MutexGuard<'_, Floor> {
        self.floor.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place<'_> {
    /// Where it is served from its arrival on: that.
    pub(crate) fn at_once(&self) -> Option<Service> {
        self.now
    }

    /// Returns when it is served; for ever where it never will be.
    pub(crate) async fn service(&mut self) -> Service {
        if let Some(service) = self.now {
            return service;
        }
        let called = match &mut self.call {
            Some(call) => call.await.ok(),
            None => None,
        };
        let Some(service) = called else { return std::future::pending().await };
        self.now = Some(service);
        service
    }

    /// How long a request that arrived at this time waited for its service.
    pub(crate) fn waited(&self, service: Service, arrived: Instant) -> Nanos {
        service.from.map_or(Nanos::ZERO, |from| (from - self.queue.since_start(arrived)).max(Nanos::ZERO))
    }

    /// The answer is whole, and this is its text: it gives its slot back, and what it leaves in the cache stays.
    pub(crate) fn answered(self, text: &str) {
        if !self.prompt.text.is_empty() {
            let mut floor = self.queue.floor();
            let size = floor.engine.block_tokens().unwrap_or(1);
            floor.engine.remember(&blocks(&joined(&self.prompt.text, text), size));
        }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.queue.leave(self.number);
    }
}

fn read(engine: &mut Engine, prompt: &Prompt) -> Reading {
    let blocks = engine.block_tokens().map_or_else(Vec::new, |size| blocks(&prompt.text, size));
    engine.read(&blocks, prompt.tokens)
}

/// The numbers of a text's whole blocks, each of all the text up to its end.
fn blocks(text: &str, block_tokens: u32) -> Vec<u64> {
    let size = (block_tokens as usize).saturating_mul(CHARACTERS).max(1);
    let chunks = text.as_bytes().chunks_exact(size);
    let chained = chunks.scan(0_u64, |before, chunk| {
        let mut hasher = DefaultHasher::new();
        chunk.hash(&mut hasher);
        *before = mixed(*before, hasher.finish());
        Some(*before)
    });
    chained.collect()
}

/// A prompt with what follows it.
fn joined(text: &str, more: &str) -> String {
    format!("{text}\n{more}")
}

/// What of a body comes before the rest, in any dialect.
const FIRST: [&str; 4] = ["system", "instructions", "systemInstruction", "system_instruction"];

/// What of a body is its prompt, in any dialect.
const PROMPTS: [&str; 8] = ["messages", "contents", "input", "prompt", "inputs", "text", "text_input", "input_ids"];

/// What of a message is no text of it.
const NO_TEXT: [&str; 5] = ["role", "type", "id", "tool_call_id", "detail"];

/// All the text of a body's prompt, in order: what a conversation adds comes after what it had. Images count by their
/// address.
fn text_of(body: &[u8]) -> String {
    let Ok(Value::Object(fields)) = serde_json::from_slice(body) else { return String::new() };
    let mut texts = Vec::new();
    for name in FIRST.iter().chain(&PROMPTS) {
        if let Some(value) = fields.get(*name) {
            gather(value, &mut texts);
        }
    }
    texts.join("\n")
}

fn gather(value: &Value, texts: &mut Vec<String>) {
    match value {
        Value::String(text) => texts.push(text.clone()),
        Value::Number(number) => texts.push(number.to_string()),
        Value::Array(items) => items.iter().for_each(|item| gather(item, texts)),
        Value::Object(fields) => {
            let parts = fields.iter().filter(|(name, _)| !NO_TEXT.contains(&name.as_str()));
            parts.for_each(|(_, part)| gather(part, texts));
        }
        Value::Null | Value::Bool(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conversation_begins_as_it_did_before() {
        let first = text_of(
            br#"{"model":"m","messages":[{"role":"system","content":"Be kind."},
            {"role":"user","content":[{"type":"text","text":"Hello?"}]}]}"#,
        );
        assert_eq!(first, "Be kind.\nHello?");
        let later = text_of(
            br#"{"messages":[{"role":"system","content":"Be kind."},{"role":"user","content":"Hello?"},
            {"role":"assistant","content":"Call me"},{"role":"user","content":"Who?"}]}"#,
        );
        assert!(later.starts_with(&joined(&first, "Call me")), "{later}");
        assert_eq!(text_of(br#"{"system":"a","messages":[{"content":[{"text":"b"}]}]}"#), "a\nb");
        assert_eq!(text_of(br#"{"messages":[{"content":null,"tool_calls":[]}]}"#), "");
        assert_eq!(text_of(b"?"), "");
    }

    #[test]
    fn equal_beginnings_have_equal_blocks() {
        let common = |left: &str, right: &str| {
            let (left, right) = (blocks(left, 2), blocks(right, 2));
            left.iter().zip(&right).take_while(|(left, right)| left == right).count()
        };
        assert_eq!(blocks("0123456789abcdef", 2).len(), 2);
        assert_eq!(common("0123456789abcdef", "0123456789abcdef01234567"), 2);
        assert_eq!(common("0123456789abcdef", "0123456789abcdeF"), 1);
        assert_eq!(common("x123456789abcdef", "0123456789abcdef"), 0, "an equal end is no equal beginning");
    }
}
