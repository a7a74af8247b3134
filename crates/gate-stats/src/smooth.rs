//! Smooth goodput: tokens delivered, less what readers waited for them. Experimental.
//!
//! After Wang et al., arXiv:2410.14257. The paper leaves the idle cost and the
//! schedule open; the defaults here are our own and unchecked against its text.

use crate::Error;
use std::time::Duration;

/// When tokens are due, and what a late one costs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pace {
    /// Time a reader takes for one token (50 ms by default of the design).
    pub per_token: Duration,
    /// When the first token is due after the request; `None`: after one `per_token`.
    pub first: Option<Duration>,
    /// Tokens charged for a second of idling; `None`: one per `per_token`.
    pub idle_cost: Option<f64>,
}

/// One streamed answer, as times since its request was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream<'a> {
    /// Arrival of each token, in order.
    Tokens(&'a [Duration]),
    /// It ended at this time without a token.
    Nothing(Duration),
}

/// What one answer was worth to its reader.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Benefit {
    /// Longest lateness of a token behind its due time.
    pub idle: Duration,
    /// Tokens delivered, less the cost of idling, in tokens.
    pub tokens: f64,
}

/// Benefit of one answer: `n − alpha · max(0, max_i (t_i − d_i))`, where token
/// `i` is due at `d_i = first + (i − 1) · per_token`.
///
/// An answer without a token is charged from the first due time to its end.
///
/// # Errors
/// [`Error::Empty`] for [`Stream::Tokens`] without tokens,
/// [`Error::ZeroDuration`] if the idle cost is to come from a pace of 0,
/// [`Error::IdleCost`].
pub fn benefit(stream: Stream<'_>, pace: Pace) -> Result<Benefit, Error> {
    let cost = match pace.idle_cost {
        Some(cost) if cost.is_finite() && cost >= 0.0 => cost,
        Some(cost) => return Err(Error::IdleCost(cost)),
        None if pace.per_token.is_zero() => return Err(Error::ZeroDuration("the pace per token")),
        None => 1.0 / pace.per_token.as_secs_f64(),
    };
    let first = pace.first.unwrap_or(pace.per_token);
    let (count, idle) = match stream {
        Stream::Tokens([]) => return Err(Error::Empty),
        Stream::Tokens(times) => (times.len(), longest_lateness(times, first, pace.per_token)),
        Stream::Nothing(end) => (0, end.saturating_sub(first)),
    };
    Ok(Benefit { idle, tokens: count as f64 - cost * idle.as_secs_f64() })
}

/// Smooth goodput in tokens per second: the benefits summed over a measured window.
///
/// # Errors
/// [`Error::Empty`] without benefits, [`Error::ZeroDuration`] for an empty window.
pub fn smooth_goodput(benefits: &[Benefit], window: Duration) -> Result<f64, Error> {
    if benefits.is_empty() {
        return Err(Error::Empty);
    }
    if window.is_zero() {
        return Err(Error::ZeroDuration("the measured window"));
    }
    Ok(benefits.iter().map(|b| b.tokens).sum::<f64>() / window.as_secs_f64())
}

fn longest_lateness(times: &[Duration], first: Duration, per_token: Duration) -> Duration {
    let mut due = first;
    let mut longest = Duration::ZERO;
    for time in times {
        longest = longest.max(time.saturating_sub(due));
        due = due.saturating_add(per_token);
    }
    longest
}
