//! The samples of requests.

use gate_model::{Delivery, Nanos, Outcome, PlannedRequest, Sample, Usage};

use super::ending::Ending;
use crate::script::{EventKind, Script};

/// When one request has its turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Turn {
    /// When it is due, and taken up.
    pub(super) intended: Nanos,
    /// How long it then waits for one of the client's places; absent without a cap.
    pub(super) cap_wait: Option<Nanos>,
    /// When it is sent.
    pub(super) sent: Nanos,
}

impl Turn {
    /// Taken up and sent at this time.
    pub(super) fn at(time: Nanos) -> Self {
        Self { intended: time, cap_wait: None, sent: time }
    }
}

/// What the engine counts of a prompt.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counted {
    /// All input tokens, history included.
    pub(super) input: u32,
    /// Of them held by the prefix cache; absent where there is none.
    pub(super) cached: Option<u32>,
}

/// How an arm's requests are told.
#[derive(Clone, Copy)]
pub(super) struct Teller {
    pub(super) delivery: Delivery,
    /// Whether answers are generated; embeddings are not.
    pub(super) generates: bool,
    /// The times of tokens are kept of requests with an index under this.
    pub(super) with_times: u32,
}

impl Teller {
    /// The sample of a request that is served.
    pub(super) fn sample(
        &self,
        request: &PlannedRequest,
        script: &Script,
        turn: Turn,
        ending: Ending,
        counted: Counted,
    ) -> Sample {
        let mut sample = self.played(request, script, turn, ending, counted);
        if !self.generates {
            // Embeddings have no output: neither tokens nor their count nor a reason to end.
            sample.finish_reason = None;
            if let Some(usage) = &mut sample.usage {
                usage.output = None;
            }
        }
        sample
    }

    fn played(
        &self,
        request: &PlannedRequest,
        script: &Script,
        turn: Turn,
        ending: Ending,
        counted: Counted,
    ) -> Sample {
        let start = turn.sent;
        let mut sample = with_outcome(request, turn, ending.outcome);
        sample.writing = Some(start);
        sample.sent = Some(start);
        sample.end = Some(start + ending.at);
        if ending.answered {
            sample.headers = Some(start + script.headers);
            sample.status = Some(match ending.outcome {
                Outcome::Http4xx => 401,
                Outcome::Http429 => 429,
                Outcome::Http5xx => 500,
                _ => 200,
            });
        }

        let events = script.events.get(..ending.events).unwrap_or_default();
        let tokens: u64 = events.iter().map(|event| u64::from(event.kind.tokens())).sum();
        sample.events = u32::try_from(events.len()).unwrap_or(u32::MAX);
        match self.delivery {
            Delivery::Streamed => {
                sample.first_event = events.first().map(|event| start + event.at);
                let content = events.iter().filter(|event| event.kind != EventKind::Role);
                content.for_each(|event| sample.record_token(start + event.at, self.with_times));
                sample.first_answer = sample.first_token;
            }
            Delivery::Whole => {
                sample.content_events = sample.events;
                sample.last_token = events.last().map(|event| start + event.at);
            }
        }

        match ending.outcome {
            Outcome::Ok | Outcome::Empty => {
                sample.finish_reason = Some(if tokens > 0 { "length" } else { "stop" }.to_owned());
                sample.events = match self.delivery {
                    // The finish reason, the usage and the end mark.
                    Delivery::Streamed => sample.events.saturating_add(3),
                    // The body, and its end.
                    Delivery::Whole => 2,
                };
                sample.usage = Some(Usage {
                    input: Some(u64::from(counted.input)),
                    output: Some(tokens),
                    cached: counted.cached.map(u64::from),
                    reasoning: None,
                });
            }
            Outcome::StreamError => {
                sample.events += 1;
                sample.embedded_server_error = true;
            }
            _ => {}
        }
        sample
    }
}

/// The sample of a request after the engine's death.
pub(super) fn refused(request: &PlannedRequest, turn: Turn) -> Sample {
    Sample { end: Some(turn.sent), ..with_outcome(request, turn, Outcome::Connect) }
}

/// A sample with nothing in it but the plan, its start, the outcome and its words.
fn with_outcome(request: &PlannedRequest, turn: Turn, outcome: Outcome) -> Sample {
    let error = match outcome {
        Outcome::Http4xx => Some("simulated refusal of the credentials"),
        Outcome::Http429 => Some("simulated rate limit of the engine"),
        Outcome::Http5xx => Some("simulated failure of the engine"),
        Outcome::StreamError => Some("simulated failure inside the stream"),
        Outcome::TimeoutFirstToken => Some("no token within timeouts.first_token"),
        Outcome::TimeoutStall => Some("no further event within timeouts.stall"),
        Outcome::TimeoutTotal => Some("not ended within timeouts.total"),
        Outcome::Reset => Some("connection reset"),
        Outcome::Truncated => Some("the stream ended with neither an end mark nor a finish reason"),
        Outcome::Empty => Some("the stream ended without a token"),
        Outcome::Decode => Some("the answer is an HTML page"),
        Outcome::Connect => Some("connection refused"),
        _ => None,
    };
    Sample {
        intended: turn.intended,
        start: Some(turn.intended),
        cap_wait: turn.cap_wait,
        outcome,
        error: error.map(str::to_owned),
        ..Sample::unsent(request)
    }
}
