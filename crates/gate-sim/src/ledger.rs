//! Keeps the truth while the server runs.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use gate_engine::{EngineTruth, Fate, Script};
use gate_model::{Api, Nanos};

use crate::ask::Ask;
use crate::{Truth, TruthRequest, TruthWrite};

/// For how many writes of a request there is room from the start.
const MOST_RESERVED: usize = 4_096;

/// The truth so far, shared by the server's thread (which writes) and whoever asks.
#[derive(Debug)]
pub(crate) struct Ledger {
    started: Instant,
    truth: Mutex<Truth>,
}

impl Ledger {
    pub(crate) fn new() -> Self {
        Self {
            started: Instant::now(),
            truth: Mutex::new(Truth { started_unix: unix_now(), requests: Vec::new(), engine: EngineTruth::default() }),
        }
    }

    pub(crate) fn truth(&self) -> Truth {
        self.lock().clone()
    }

    /// When the server started.
    pub(crate) fn started(&self) -> Instant {
        self.started
    }

    /// How long the server has run.
    pub(crate) fn age(&self) -> Nanos {
        Nanos::from(self.started.elapsed())
    }

    /// Enters a request that arrived at this instant, and gives its number and its script. The script depends on
    /// that number and on when it arrived; there is none where the engine dies.
    pub(crate) fn enter(
        &self,
        api: Api,
        ask: &Ask,
        arrived: Instant,
        script_of: impl FnOnce(u32, Nanos) -> Option<Script>,
    ) -> (u32, Option<Script>) {
        let arrived_unix = unix_now() - Nanos::from(arrived.elapsed());
        let mut truth = self.lock();
        let number = u32::try_from(truth.requests.len()).unwrap_or(u32::MAX);
        let script = script_of(number, self.since_start(arrived));
        let writes = script.as_ref().map_or(0, |script| script.events.len()).min(MOST_RESERVED);
        truth.requests.push(TruthRequest {
            number,
            api,
            arrived: self.since_start(arrived),
            arrived_unix,
            fate: script.as_ref().map_or(Fate::Dead, |script| script.fate),
            status: None,
            streamed: ask.stream,
            prompt_tokens: ask.prompt_tokens,
            cached_tokens: None,
            waited: None,
            max_tokens: ask.max_tokens,
            output_tokens: 0,
            writes: Vec::with_capacity(writes),
            end: None,
            client_left: false,
        });
        (number, script)
    }

    /// Enters that a request is served, after so long a wait.
    pub(crate) fn served(&self, number: u32, waited: Nanos, cached: Option<u32>) {
        self.update(number, |request| (request.waited, request.cached_tokens) = (Some(waited), cached));
    }

    pub(crate) fn answered(&self, number: u32, status: u16) {
        self.update(number, |request| request.status = Some(status));
    }

    /// Enters events that are about to be written together, of so many tokens, and due at this instant.
    pub(crate) fn writing(&self, number: u32, due: Instant, at: Instant, events: u32, tokens: u32) {
        let write = TruthWrite { due: self.since_start(due), at: self.since_start(at), done: None, events, tokens };
        self.update(number, |request| {
            request.output_tokens += tokens;
            request.writes.push(write);
        });
    }

    /// Enters that the last write is done.
    pub(crate) fn wrote(&self, number: u32, at: Instant) {
        let at = self.since_start(at);
        self.update(number, |request| {
            if let Some(write) = request.writes.last_mut() {
                write.done = Some(at);
            }
        });
    }

    pub(crate) fn ended(&self, number: u32, at: Instant) {
        let at = self.since_start(at);
        self.update(number, |request| request.end = Some(at));
    }

    pub(crate) fn client_left(&self, number: u32) {
        self.update(number, |request| request.client_left = true);
        self.ended(number, Instant::now());
    }

    /// The engine dies with everything that is being served.
    pub(crate) fn died(&self) {
        let now = self.age();
        for request in self.lock().requests.iter_mut().filter(|request| request.end.is_none()) {
            request.fate = Fate::Dead;
            request.end = Some(now);
        }
    }

    fn update(&self, number: u32, change: impl FnOnce(&mut TruthRequest)) {
        if let Some(request) = self.lock().requests.get_mut(number as usize) {
            change(request);
        }
    }

    fn since_start(&self, at: Instant) -> Nanos {
        Nanos::from(at.saturating_duration_since(self.started))
    }

    fn lock(&self) -> MutexGuard<'_, Truth> {
        self.truth.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn unix_now() -> Nanos {
    SystemTime::now().duration_since(UNIX_EPOCH).map(Nanos::from).unwrap_or_default()
}
