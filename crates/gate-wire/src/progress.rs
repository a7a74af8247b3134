//! What a stream has said so far, as its events are read.

use gate_model::Usage;

use crate::pattern::Span;
use crate::piece::{Log, Merge, Piece};
use crate::shape::{Found, Kinds, Name};
use crate::{EventKind, StreamState};

/// What an event means, besides the content it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Means {
    /// Nothing more.
    More,
    /// The stream's end, by the terminator's name.
    End(&'static str),
    /// An error, which the event holds.
    Error,
}

/// The stream's state, and what is kept of it.
#[derive(Default)]
pub(crate) struct Progress<P: Piece> {
    pub(crate) state: StreamState,
    pub(crate) log: P::Log,
    /// The content of the event that is being read.
    kinds: Kinds,
    /// Where a piece of that content lies, where nothing of it is kept.
    span: Option<Span>,
    /// Whether the stream has begun.
    has_begun: bool,
    /// Whether it began again since its last terminator.
    past_end: bool,
}

impl<P: Piece> Progress<P> {
    /// An event begins.
    pub(crate) fn open(&mut self) {
        self.state.events += 1;
        self.kinds = Kinds::default();
        self.span = None;
    }

    /// The event carries what the one before it did, and says nothing new.
    pub(crate) fn repeat(&mut self) {
        self.state.content_events += 1;
    }

    /// Where a piece of the event's content lies, where nothing of it is kept.
    pub(crate) fn span(&self) -> Option<Span> {
        self.span
    }

    /// The number of the event that is being read, from 0.
    fn event(&self) -> u64 {
        self.state.events.saturating_sub(1)
    }

    /// Takes what the event carries of one choice.
    pub(crate) fn say(&mut self, choice: u64, found: Found<P>) {
        self.kinds.add(found.kinds());
        self.span = self.span.or(found.span());
        self.log.say(self.event(), choice, found);
    }

    /// Takes content that is no text.
    pub(crate) fn carry(&mut self, kinds: Kinds) {
        self.kinds.add(kinds);
    }

    /// Whether the event carries something the model generated.
    pub(crate) fn has_content(&self) -> bool {
        self.kinds.event().is_content()
    }

    /// Takes a report of usage, normalised and as it was sent.
    pub(crate) fn usage(&mut self, usage: Option<Usage>, reported: P::Raw, merge: Merge) {
        if usage.is_some() {
            self.state.usage = usage;
            self.log.usage(reported, merge);
        } else {
            self.state.usage_unread = true;
        }
    }

    /// Takes a report of usage whose fields stand among others.
    pub(crate) fn usage_fields<const N: usize>(&mut self, usage: Option<Usage>, fields: [(&str, P::Raw); N]) {
        if usage.is_some() {
            self.state.usage = usage;
            self.log.usage_fields(fields);
        }
    }

    /// Takes the finish reason of the stream's only choice, unless it is empty.
    pub(crate) fn finish(&mut self, reason: Option<String>) {
        if let Some(reason) = reason.filter(|reason| !reason.is_empty()) {
            self.log.finish(0, &reason);
            self.state.finish_reason = Some(reason);
        }
    }

    /// Takes the model's name.
    pub(crate) fn model(&mut self, model: &Name<'_>) {
        if self.state.model.is_none() {
            self.state.model = model.get().map(str::to_owned);
        }
    }

    /// Takes the fingerprint of the system.
    pub(crate) fn fingerprint(&mut self, fingerprint: &Name<'_>) {
        if self.state.fingerprint.is_none() {
            self.state.fingerprint = fingerprint.get().map(str::to_owned);
        }
    }

    /// The event is one that begins a stream.
    pub(crate) fn begin(&mut self) {
        if std::mem::replace(&mut self.has_begun, true) {
            self.restart();
        }
    }

    /// The stream begins again in its middle, or after its end.
    pub(crate) fn restart(&mut self) {
        self.state.restarts = self.state.restarts.saturating_add(1);
        self.past_end = true;
    }

    /// What ended the stream was seen.
    pub(crate) fn end(&mut self, terminator: &str) {
        self.state.ended = true;
        self.past_end = false;
        self.log.end(terminator);
    }

    /// The event is read: what it is, by what it carries and means.
    pub(crate) fn close(&mut self, means: Means) -> EventKind {
        if means == Means::Error {
            return EventKind::Error;
        }
        let kind = self.kinds.event();
        if kind.is_content() {
            self.state.content_events += 1;
            if self.state.ended && !self.past_end {
                self.restart();
            }
        }
        self.log.count(self.event(), self.kinds);
        match means {
            Means::End(terminator) => {
                self.end(terminator);
                if kind == EventKind::Bare { EventKind::End } else { kind }
            }
            Means::More | Means::Error => kind,
        }
    }
}
