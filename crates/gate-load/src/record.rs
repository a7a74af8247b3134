//! From what happens to a request to its sample.

use std::time::Instant;

use gate_model::{EndReason, MaxTokensField, Nanos, Outcome, PlannedRequest, Redactor, Sample};
use gate_wire::{EventKind, StreamState};
use tokio::sync::OwnedSemaphorePermit;

use crate::budget::Claim;
use crate::client::Terms;
use crate::exchange::Timing;
use crate::stamped::{Receipt, Sent, Stamps};
use crate::target::Phases;
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
    timing: Timing,
    held: Held,
    /// Before which index requests have the times of their tokens kept.
    with_times: u32,
    /// Of the request on the connection in use.
    sent: Option<Sent>,
    /// The last event of any kind.
    last_event: Option<Instant>,
    /// The field that the server's refusal wants for the length of answers.
    wanted: Option<MaxTokensField>,
    /// The text of the answer.
    text: Option<Text>,
    /// What the server says of a quota, in words.
    quota: Option<String>,
}

/// What a request holds while it is open.
pub(crate) struct Held {
    /// Its slot, where they are limited.
    pub(crate) slot: Option<OwnedSemaphorePermit>,
    /// Its claim on the budget.
    pub(crate) claim: Claim,
}

/// What an answer says.
pub(crate) struct Text {
    /// What a reader sees.
    pub(crate) visible: String,
    /// All that was generated, reasoning included.
    pub(crate) generated: String,
    /// Whether nobody else counts its tokens, and they can be counted.
    pub(crate) is_uncounted: bool,
}

/// What came of a request.
pub(crate) struct Measurement {
    pub(crate) sample: Sample,
    /// The field that the server's refusal wants for the length of answers.
    pub(crate) wanted: Option<MaxTokensField>,
    /// The text of the answer, where it is kept.
    pub(crate) text: Option<Text>,
    /// How many tokens its conversation has come to.
    pub(crate) context: u64,
    /// Where the server gives no more for a long time: why, in words.
    pub(crate) quota: Option<String>,
}

impl Record {
    /// A request that the schedule has taken up.
    pub(crate) fn new(planned: &PlannedRequest, timing: Timing, held: Held, with_times: u32) -> Self {
        let Timing { zero, intended, start, slot: since } = timing;
        let cap_wait = since.map(|since| since.saturating_duration_since(start).into());
        let sample = Sample { intended, start: Some(zero.point(start)), cap_wait, ..Sample::unsent(planned) };
        let (sent, last_event, wanted, text, quota) = (None, None, None, None, None);
        Self { sample, timing, held, with_times, sent, last_event, wanted, text, quota }
    }

    /// From when its time limits count.
    pub(crate) fn begun(&self) -> Instant {
        self.timing.begun()
    }

    /// Whether it has a slot.
    pub(crate) fn has_slot(&self) -> bool {
        self.held.slot.is_some()
    }

    /// Gives its slot back.
    pub(crate) fn free_slot(&mut self) {
        self.held.slot = None;
    }

    fn point(&self, at: Instant) -> Nanos {
        self.timing.zero.point(at)
    }

    /// A new connection stands.
    pub(crate) fn connected(&mut self, at: Instant, phases: Phases) {
        self.sample.connected = Some(self.point(at));
        self.sample.dns = phases.dns.map(Nanos::from);
        self.sample.connect = Some(phases.connect.into());
        self.sample.tls = phases.tls.map(Nanos::from);
    }

    /// A connection takes it up.
    pub(crate) fn writing(&mut self, at: Instant, sent: Sent) {
        self.sample.writing = Some(self.point(at));
        self.sent = Some(sent);
    }

    /// Status and headers came.
    pub(crate) fn headers(&mut self, status: u16, at: Instant) {
        self.sample.status = Some(status);
        self.sample.headers = Some(self.point(at));
    }

    /// This replica answers.
    pub(crate) fn replica(&mut self, name: &str, redactor: &Redactor) {
        self.sample.replica = Some(clean(name, redactor));
    }

    /// Bytes of the body came.
    pub(crate) fn bytes(&mut self, count: usize) {
        self.sample.body_bytes += count as u64;
    }

    /// A read of the connection with these stamps completed an event.
    pub(crate) fn event(&mut self, kind: EventKind, read: Receipt, stamps: &Stamps) {
        let point = self.point(read.at);
        let sample = &mut self.sample;
        self.last_event = Some(read.at);
        sample.events = sample.events.saturating_add(1);
        sample.first_event.get_or_insert(point);
        if kind == EventKind::End {
            sample.end.get_or_insert(point);
        }
        if kind.is_answer() {
            sample.first_answer.get_or_insert(point);
        }
        if kind.is_content() {
            sample.coalesced = sample.coalesced.saturating_add(stamps.content(read));
            sample.record_token(point, self.with_times);
        }
    }

    /// A whole body was complete. When its first token was there, nobody knows.
    pub(crate) fn whole(&mut self, kind: EventKind, at: Instant) {
        let point = self.point(at);
        let sample = &mut self.sample;
        sample.events = sample.events.saturating_add(1);
        if kind.is_content() {
            sample.content_events = 1;
            sample.last_token = Some(point);
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
        let point = self.point(at);
        self.sample.end.get_or_insert(point);
    }

    /// What the stream said about itself.
    pub(crate) fn stream(&mut self, state: &StreamState, redactor: &Redactor) {
        let said = |text: &Option<String>| text.as_deref().map(|text| clean(text, redactor));
        let sample = &mut self.sample;
        sample.usage = state.usage;
        sample.finish_reason = said(&state.finish_reason);
        sample.model = said(&state.model);
        sample.fingerprint = said(&state.fingerprint);
        sample.restarts = state.restarts;
        sample.embedded_server_error = state.error.as_ref().is_some_and(|error| error.server);
    }

    /// The text of the answer.
    pub(crate) fn text(&mut self, text: Text) {
        self.text = Some(text);
    }

    /// The server gives no more for a long time.
    pub(crate) fn quota(&mut self, words: Option<String>) {
        self.quota = words;
    }

    /// The answer has come to what it has come to, or to more by the server's own count so far. Gives the key of the
    /// budget that this passes, and the end of the run.
    pub(crate) fn goes_on(&mut self, counted: Option<u64>) -> Option<(&'static str, EndReason)> {
        let events = u64::from(self.sample.content_events);
        self.held.claim.comes_to(events.max(counted.unwrap_or(0)))
    }

    /// The sample, and what else there is to say.
    pub(crate) fn finish(mut self, ending: Ending, terms: &Terms) -> Measurement {
        let sent = self.sent.as_ref().and_then(Sent::at).map(|sent| self.point(sent));
        // A server may answer before it was told all.
        self.sample.sent = sent.filter(|sent| self.sample.headers.is_none_or(|headers| *sent <= headers));
        self.sample.outcome = ending.outcome;
        self.sample.error = ending.message.map(|message| terms.words(&message));
        if let Some(text) = self.text.as_ref().filter(|_| terms.keep_text) {
            self.sample.text = Some(terms.redactor.redact(&text.generated).into_owned());
        }
        let context = self.held.claim.settle(&self.sample);
        let Self { sample, wanted, text, quota, .. } = self;
        let status = sample.error.as_deref().unwrap_or_default();
        let quota = quota.map(|words| format!("{words}: {status}"));
        Measurement { sample, wanted, text, context, quota }
    }
}
