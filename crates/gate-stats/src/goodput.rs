//! Goodput: requests per second that were answered and met every bound.

use std::time::Duration;

/// Whether the request was answered completely and without an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Answer {
    /// Answered completely.
    Complete,
    /// Failed, refused or cut off.
    Failed,
}

/// What was measured of one request for one bound.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Reading {
    /// A measured value, in the bound's unit.
    Value(f64),
    /// The metric is not defined for this request (TPOT under two tokens): the bound holds.
    Undefined,
    /// The metric is defined but was not measured: the bound does not hold.
    Missing,
}

impl Reading {
    /// Whether the bound `<= limit` holds; NaN holds none.
    fn holds(self, limit: f64) -> bool {
        match self {
            Self::Value(value) => value <= limit,
            Self::Undefined => true,
            Self::Missing => false,
        }
    }
}

/// Whether a request counts towards goodput.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Quality {
    /// Answered, within every bound.
    Good,
    /// Anything else.
    Bad,
}

/// Judges one request by its readings, each paired with its upper limit in the same unit.
///
/// Equal to a limit is within it.
pub fn quality(answer: Answer, bounds: impl IntoIterator<Item = (Reading, f64)>) -> Quality {
    let holds = answer == Answer::Complete && bounds.into_iter().all(|(reading, limit)| reading.holds(limit));
    if holds { Quality::Good } else { Quality::Bad }
}

/// Good requests among all measured ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Attainment {
    /// Good requests.
    pub good: u64,
    /// All measured requests.
    pub total: u64,
}

impl Attainment {
    /// The good share of all, `None` if there are none.
    #[must_use]
    pub fn share(self) -> Option<f64> {
        (self.total > 0).then(|| self.good as f64 / self.total as f64)
    }

    /// Good requests per second of a measured window, `None` if it has no length.
    #[must_use]
    pub fn per_second(self, window: Duration) -> Option<f64> {
        (!window.is_zero()).then(|| self.good as f64 / window.as_secs_f64())
    }
}

impl FromIterator<Quality> for Attainment {
    fn from_iter<I: IntoIterator<Item = Quality>>(requests: I) -> Self {
        requests.into_iter().fold(Self::default(), |sum, quality| Self {
            good: sum.good + u64::from(quality == Quality::Good),
            total: sum.total + 1,
        })
    }
}
