//! A request as another tool's file has it, checked.

use gate_model::{Arm, Nanos, Outcome};

use crate::ImportError;
use crate::row::Row;

/// The largest time that is believed, in seconds.
const LARGEST: f64 = 9e9;

/// One request, in the tool's own order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    /// Seconds from any start, when it was sent.
    pub(crate) send_s: f64,
    pub(crate) outcome: Outcome,
    pub(crate) status: Option<u16>,
    /// Seconds to the first token; absent where the tool sees no stream.
    pub(crate) ttft_s: Option<f64>,
    /// Seconds to the last token, or to the end of the answer.
    pub(crate) e2e_s: Option<f64>,
    pub(crate) input_tokens: Option<u64>,
    pub(crate) output_tokens: Option<u64>,
}

/// Requests as rows, in send order, their times counted from the first.
///
/// # Errors
/// A time that is none, a last token before the first, or no request at all.
pub(crate) fn rows(mut seen: Vec<(usize, Seen)>) -> Result<Vec<(usize, Row)>, ImportError> {
    seen.iter().try_for_each(|(place, one)| one.check(*place))?;
    seen.sort_by(|(_, one), (_, other)| one.send_s.total_cmp(&other.send_s));
    let first = seen.first().ok_or(ImportError::NoRequest)?.1.send_s;
    let row = |(place, one): (usize, Seen)| {
        let time = |seconds: f64| Nanos::from_secs_f64(seconds);
        let row = Row {
            send_s: one.send_s - first,
            outcome: one.outcome,
            status: one.status,
            ttft: one.ttft_s.map(time),
            e2e: one.e2e_s.map(time),
            output_tokens: one.output_tokens,
            input_tokens: one.input_tokens,
            scenario: None,
            turn: 0,
            arm: Arm::Target,
            pair: None,
        };
        (place, row)
    };
    Ok(seen.into_iter().map(row).collect())
}

impl Seen {
    fn check(&self, request: usize) -> Result<(), ImportError> {
        let wrong = |what: &str| Err(ImportError::Request { request, what: what.to_owned() });
        let is_time = |seconds: f64| (0.0..=LARGEST).contains(&seconds);
        if !is_time(self.send_s.abs()) || !self.ttft_s.is_none_or(is_time) || !self.e2e_s.is_none_or(is_time) {
            return wrong("one of its times is no number of seconds from 0");
        }
        if self.ttft_s.zip(self.e2e_s).is_some_and(|(first, last)| last < first) {
            return wrong("its last token comes before its first");
        }
        if self.outcome == Outcome::Ok && self.e2e_s.is_none() {
            return wrong("it was answered, and does not say how long that took");
        }
        Ok(())
    }
}

/// An outcome by an HTTP status; `None` of one that is none.
pub(crate) fn by_status(status: u64) -> Option<(Outcome, Option<u16>)> {
    let outcome = match status {
        200..=299 => Outcome::Ok,
        429 => Outcome::Http429,
        300..=499 => Outcome::Http4xx,
        500..=599 => Outcome::Http5xx,
        _ => return None,
    };
    Some((outcome, u16::try_from(status).ok()))
}
