//! The load: how many requests, and when.

use serde::{Deserialize, Serialize};

use crate::{Nanos, PerSecond};

/// The distribution of times between arrivals.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arrivals {
    /// Exponential: independent users.
    Poisson,
    /// Always the same.
    Constant,
    /// Gamma distributed with this shape, above 0: burstier than independent users below 1, more even above.
    Gamma(f64),
}

/// How many requests are measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Iterations {
    /// Exactly this many, judged once.
    Fixed(u32),
    /// Judged at `first` and at `last`, and at `extend` where a required check is then seen over its limit
    /// and not proven.
    Range {
        /// The first look.
        first: u32,
        /// The second look.
        last: u32,
        /// The third look.
        extend: Option<u32>,
    },
    /// As many as are due within this time of the schedule, judged once at the end.
    For(Nanos),
}

impl Iterations {
    /// The sizes at which the run is judged, ascending and distinct; none where only the plan knows how many are due.
    #[must_use]
    pub fn looks(self) -> Vec<u32> {
        match self {
            Self::For(_) => Vec::new(),
            Self::Fixed(count) => vec![count],
            Self::Range { first, last, extend } => {
                let mut looks = vec![first, last];
                looks.extend(extend);
                looks.dedup();
                looks
            }
        }
    }

    /// The same without the look that only a run seen over its limit reaches.
    #[must_use]
    pub fn without_extension(self) -> Self {
        match self {
            Self::Fixed(count) => Self::Fixed(count),
            Self::Range { first, last, .. } => Self::Range { first, last, extend: None },
            Self::For(time) => Self::For(time),
        }
    }

    /// How many are measured before any extension; `None` where only the plan knows.
    #[must_use]
    pub fn base(self) -> Option<u32> {
        match self {
            Self::Fixed(count) => Some(count),
            Self::Range { last, .. } => Some(last),
            Self::For(_) => None,
        }
    }
}

/// A stretch of time over which the rate goes from one value to another in a straight line.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stage {
    /// The rate at its start.
    pub from: PerSecond,
    /// The rate at its end.
    pub to: PerSecond,
    /// How long it takes.
    #[serde(rename = "for")]
    pub lasts: Nanos,
}

/// The shape of the load in time, and so what can be learnt from it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pattern {
    /// One rate throughout: regressions.
    #[default]
    Steady,
    /// A rate that grows in a straight line: the capacity (`knee.rate`).
    Ramp {
        /// The rate at the start.
        from: PerSecond,
        /// The rate at the end.
        to: PerSecond,
        /// How long it takes.
        over: Nanos,
    },
    /// A sudden rate, and the base rate before and after it: queueing, scaling, `recovery`.
    Spike {
        /// How many times the base rate.
        times: f64,
        /// How long it lasts.
        hold: Nanos,
        /// How long the base rate lasts before it.
        before: Nanos,
        /// How long the base rate lasts after it.
        after: Nanos,
    },
    /// One rate for a long time: leaks and `drift`.
    Soak,
    /// Stretches of rates.
    Stages(Vec<Stage>),
    /// The times and lengths of a file.
    Trace(String),
}

impl Pattern {
    /// The name in reports.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Steady => "steady",
            Self::Ramp { .. } => "ramp",
            Self::Spike { .. } => "spike",
            Self::Soak => "soak",
            Self::Stages(_) => "stages",
            Self::Trace(_) => "trace",
        }
    }
}

/// What decides when a request is sent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pace {
    /// The plan's own times: an open loop.
    Open {
        /// Requests per second.
        rate: PerSecond,
        /// How many may be open at once; what waits for a slot goes on waiting, and the wait counts.
        cap: Option<u32>,
    },
    /// The end of an earlier request: a closed loop.
    Closed {
        /// How many are open at once.
        concurrency: u32,
    },
}

impl Pace {
    /// The rate of an open loop.
    #[must_use]
    pub fn rate(self) -> Option<PerSecond> {
        match self {
            Self::Open { rate, .. } => Some(rate),
            Self::Closed { .. } => None,
        }
    }

    /// How many requests may be open at once.
    #[must_use]
    pub fn cap(self) -> Option<u32> {
        match self {
            Self::Open { cap, .. } => cap,
            Self::Closed { concurrency } => Some(concurrency),
        }
    }
}

/// Which connections requests take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Connections {
    /// One at rest, opened by warm-up or by an earlier request; a new one where there is none.
    #[default]
    Pooled,
    /// A new one each.
    Fresh,
}

/// Which version of HTTP is spoken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Http {
    /// What the server chooses in the TLS handshake, and HTTP/1.1 without TLS.
    #[default]
    Auto,
    /// HTTP/1.1.
    One,
    /// HTTP/2, without TLS by prior knowledge.
    Two,
}

/// Which clock stamps what is received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Clock {
    /// The kernel's where it works, else this process's.
    #[default]
    Auto,
    /// The kernel's: when the network handed the bytes over.
    Kernel,
    /// This process's: when it read them.
    User,
}

/// The load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// What decides when a request is sent. Under a pattern its rate is the base rate: of a ramp the one it goes to, of
    /// stages the highest, of a trace its mean.
    pub pace: Pace,
    /// The shape of the load in time.
    #[serde(default)]
    pub pattern: Pattern,
    /// How many requests.
    pub iterations: Iterations,
    /// Warm-up requests, never scored.
    pub warmup: u32,
    /// When they arrive.
    pub arrivals: Arrivals,
    /// Which connections requests take.
    pub connections: Connections,
    /// Which version of HTTP is spoken.
    pub http: Http,
    /// Which clock stamps what is received.
    pub clock: Clock,
    /// Threads that send and receive.
    pub workers: u32,
    /// The seed of the plan.
    pub seed: u64,
}

impl Default for Load {
    /// Two requests per second with Poisson arrivals, after 5 for warm-up; judged at 30, at 50 and, where needed,
    /// at 100.
    fn default() -> Self {
        Self {
            pace: Pace::Open { rate: PerSecond(2.0), cap: None },
            pattern: Pattern::Steady,
            iterations: Iterations::Range { first: 30, last: 50, extend: Some(100) },
            warmup: 5,
            arrivals: Arrivals::Poisson,
            connections: Connections::Pooled,
            http: Http::Auto,
            clock: Clock::Auto,
            workers: 1,
            seed: 0,
        }
    }
}

impl Load {
    /// The rate over the time of the schedule; `None` of a closed loop, of a trace, and of a number of requests at one
    /// rate, which lasts as long as they take.
    #[must_use]
    pub fn stages(&self) -> Option<Vec<Stage>> {
        let rate = self.pace.rate()?;
        let flat = |times: f64, lasts| {
            let rate = PerSecond(rate.0 * times);
            Stage { from: rate, to: rate, lasts }
        };
        match (&self.pattern, self.iterations) {
            (Pattern::Ramp { from, to, over }, _) => Some(vec![Stage { from: *from, to: *to, lasts: *over }]),
            (Pattern::Spike { times, hold, before, after }, _) => {
                Some(vec![flat(1.0, *before), flat(*times, *hold), flat(1.0, *after)])
            }
            (Pattern::Stages(stages), _) => Some(stages.clone()),
            (Pattern::Trace(_), _) => None,
            (Pattern::Steady | Pattern::Soak, Iterations::For(time)) => Some(vec![flat(1.0, time)]),
            (Pattern::Steady | Pattern::Soak, _) => None,
        }
    }

    /// When the spike begins and ends, from the epoch.
    #[must_use]
    pub fn spike(&self) -> Option<(Nanos, Nanos)> {
        match self.pattern {
            Pattern::Spike { hold, before, .. } => Some((before, before + hold)),
            _ => None,
        }
    }
}
