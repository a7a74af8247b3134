//! From what happens to a request to its sample.

use std::sync::Arc;
use std::time::Instant;

use gate_model::{MaxTokensField, Nanos, Outcome, PlannedRequest, Redactor, Sample};
use gate_wire::{EventKind, StreamState};

use crate::clock::Zero;
use crate::stamped::Stamps;
use crate::words::clean;

/// How a request ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ending {
    pub(crate) outcome: Outcome,
    /// What went wrong, in words.
    pub(crate) message: Option<String>,
}

impl Ending {
    pub(crate) fn new(outcome: Outcome, message: impl Into<String>) -> Self {
        Self { outcome, message: Some(message.into()) }
    }
}

/// A sample in the making.
pub(crate) struct Record {
    sample: Sample,
    zero: Zero,
    start: Instant,
    /// Of the connection in use.
    stamps: Option<Arc<Stamps>>,
    /// The last event of any kind.
    last_event: Option<Instant>,
    /// The field that the server's refusal wants for the length of answers.
    wanted: Option<MaxTokensField>,
}

/// What came of a request.
pub(crate) struct Measurement {
    pub(crate) sample: Sample,
    /// The field that the server's refusal wants for the length of answers.
    pub(crate) wanted: Option<MaxTokensField>,
}

impl Record {
    /// A request that the schedule takes up at `start`.
    pub(crate) fn new(planned: &PlannedRequest, intended: Nanos, start: Instant, zero: Zero) -> Self {
        let sample = Sample { intended, start: Some(zero.point(start)), ..Sample::unsent(planned) };
        Self { sample, zero, start, stamps: None, last_event: None, wanted: None }
    }

    /// When the schedule took it up.
    pub(crate) fn start(&self) -> Instant {
        self.start
    }

    /// A new connection stands.
    pub(crate) fn connected(&mut self, at: Instant) {
        self.sample.connected = Some(self.zero.point(at));
    }

    /// It is sent on a connection with these stamps.
    pub(crate) fn sent_on(&mut self, stamps: &Arc<Stamps>) {
        stamps.begin();
        self.stamps = Some(Arc::clone(stamps));
    }

    /// Status and headers came.
    pub(crate) fn headers(&mut self, status: u16, at: Instant) {
        self.sample.status = Some(status);
        self.sample.headers = Some(self.zero.point(at));
    }

    /// Bytes of the body came.
    pub(crate) fn bytes(&mut self, count: usize) {
        self.sample.body_bytes += count as u64;
    }

    /// A read completed an event.
    pub(crate) fn event(&mut self, kind: EventKind, at: Instant) {
        let point = self.zero.point(at);
        let sample = &mut self.sample;
        self.last_event = Some(at);
        sample.events = sample.events.saturating_add(1);
        sample.first_event.get_or_insert(point);
        if kind == EventKind::End {
            sample.end.get_or_insert(point);
        }
        if kind.is_answer() {
            sample.first_answer.get_or_insert(point);
        }
        if kind.is_content() {
            sample.record_token(point);
        }
    }

    /// A whole body was complete. When its first token was there, nobody knows.
    pub(crate) fn whole(&mut self, kind: EventKind, at: Instant) {
        let sample = &mut self.sample;
        sample.events = sample.events.saturating_add(1);
        if kind.is_content() {
            sample.content_events = 1;
            sample.last_token = Some(self.zero.point(at));
        }
    }

    /// The server refused it, and wants this field for the length of answers.
    pub(crate) fn wants(&mut self, field: Option<MaxTokensField>) {
        self.wanted = field;
    }

    /// The last event, once the first token has come.
    pub(crate) fn last_event_since_token(&self) -> Option<Instant> {
        self.sample.first_token.and(self.last_event)
    }

    /// The body ended; a terminal event before it stands.
    pub(crate) fn ended(&mut self, at: Instant) {
        self.sample.end.get_or_insert(self.zero.point(at));
    }

    /// What the stream said about itself.
    pub(crate) fn stream(&mut self, state: &StreamState, redactor: &Redactor) {
        self.sample.usage = state.usage;
        self.sample.finish_reason = state.finish_reason.as_deref().map(|reason| clean(reason, redactor));
        self.sample.embedded_server_error = state.error.as_ref().is_some_and(|error| error.server);
    }

    /// The sample, and what else there is to say.
    pub(crate) fn finish(mut self, ending: Ending, redactor: &Redactor) -> Measurement {
        self.sample.sent = self.stamps.and_then(|stamps| stamps.sent()).map(|sent| self.zero.point(sent));
        self.sample.outcome = ending.outcome;
        self.sample.error = ending.message.map(|message| clean(&message, redactor));
        Measurement { sample: self.sample, wanted: self.wanted }
    }
}
