//! Numbers that a run has once, compared as they are: no sampling error is claimed.

use gate_model::{Check, Quantity};

use super::{Reading, limit};
use crate::scored::Scored;

/// Reads a check on such a number. Nothing is beyond or allowed: only `n` is evidence.
pub(crate) fn read(check: &Check, scored: &Scored<'_>) -> Option<Reading> {
    let seen = scored.measure(check.metric)?;
    Some(Reading {
        seen: Quantity { value: seen.value, unit: check.metric.unit() },
        keeps: check.op.holds(seen.value, limit(check)),
        n: seen.n,
        k: 0,
        allowed: 0.0,
        test: None,
        breaks_at: None,
        lower: None,
        upper: None,
    })
}
