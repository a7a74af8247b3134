//! What the server really did.

use gate_engine::{EngineTruth, Fate, Work, capacity};
use gate_model::{Api, EngineParams, Nanos};
use serde::{Deserialize, Serialize};

use crate::queue::Queue;

/// Everything the server did with its generation requests, in the order of their arrival.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Truth {
    /// When the server started, since the UNIX epoch, by the wall clock. All other times count from it, by the
    /// monotonic clock.
    pub started_unix: Nanos,
    /// Every generation request that was accepted: neither refused as malformed nor answered before readiness.
    pub requests: Vec<TruthRequest>,
    /// What is true of the engine: its capacity for the requests it answered so far, what drifts in it, and when
    /// requests waited, from which [`EngineTruth::recovery`] tells when a spike was over.
    #[serde(default)]
    pub engine: EngineTruth,
}

impl Truth {
    /// The same with what is true of the engine by now.
    pub(crate) fn of_engine(mut self, params: &EngineParams, queue: &Queue) -> Self {
        let work = self.work();
        self.engine = EngineTruth {
            work,
            capacity: capacity(params, params.slots, work),
            final_capacity: capacity(params, queue.slots(), work),
            drift: params.drift,
            backlogs: queue.backlogs(),
        };
        self
    }

    /// The mean work of the requests that were answered.
    fn work(&self) -> Work {
        let is_answered = |request: &&TruthRequest| {
            request.end.is_some() && matches!(request.fate, Fate::Complete | Fate::SlowHeaders)
        };
        let (mut count, mut read, mut output) = (0_u32, 0.0, 0.0);
        for request in self.requests.iter().filter(is_answered) {
            count += 1;
            read += f64::from(request.prompt_tokens.saturating_sub(request.cached_tokens.unwrap_or(0)));
            output += f64::from(request.output_tokens.max(1));
        }
        let mean = |sum: f64| if count == 0 { 0.0 } else { sum / f64::from(count) };
        Work { read: mean(read), output: mean(output) }
    }
}

/// What the server did with one request. It cannot know which requests are warm-up: they are the first ones.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TruthRequest {
    /// Its place in the order of arrival, from 0.
    pub number: u32,
    /// The dialect it came in.
    pub api: Api,
    /// When its last byte had been read.
    pub arrived: Nanos,
    /// The same since the UNIX epoch, by the wall clock.
    pub arrived_unix: Nanos,
    /// How it ends (or ended).
    pub fate: Fate,
    /// The status it was answered with; absent where the engine died first.
    pub status: Option<u16>,
    /// Whether it asked for a stream.
    pub streamed: bool,
    /// The prompt's tokens, as the server counts them.
    pub prompt_tokens: u32,
    /// Of them held by the prefix cache; absent where there is none, and until it is served.
    #[serde(default)]
    pub cached_tokens: Option<u32>,
    /// How long it waited for a slot; absent until it is served.
    #[serde(default)]
    pub waited: Option<Nanos>,
    /// How many tokens it asked for.
    pub max_tokens: u32,
    /// How many tokens were written.
    pub output_tokens: u32,
    /// Every write of events, or the one write of the whole body where no stream was asked for: one event each, or
    /// all that were due at the same instant, or all that a buffering proxy let go together; what is lost in it is
    /// not here. What only ends a stream is not here either.
    pub writes: Vec<TruthWrite>,
    /// When the server was done with it: its last write, its reset, or when the client was seen gone. Absent while
    /// it is being served.
    pub end: Option<Nanos>,
    /// Whether the client went away before the server was done; always so after a stall.
    pub client_left: bool,
}

/// One write call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TruthWrite {
    /// When the script wanted it.
    pub due: Nanos,
    /// Taken immediately before the write call.
    pub at: Nanos,
    /// Taken immediately after the call that handed over the last byte; absent before that.
    pub done: Option<Nanos>,
    /// The events it carried.
    pub events: u32,
    /// The tokens it carried; 0 for what opens a stream without content.
    pub tokens: u32,
}
