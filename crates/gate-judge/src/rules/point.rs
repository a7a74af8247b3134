//! Numbers compared as they are, without a claim on their sampling error: a run has them once, or `decide: point`
//! asks for it.

use gate_model::{Aggregate, Check, Metric};

use super::Reading;
use super::quantile::worst;
use crate::scored::{Measured, Scored};

/// Reads a check on such a number. Nothing is beyond or allowed: only `n` is evidence.
pub(crate) fn read(check: &Check, scored: &Scored<'_>, limit: f64) -> Option<Reading> {
    let seen = seen(check, scored)?;
    Some(Reading::of(check, seen, check.op.holds(seen.value, limit)))
}

/// The metric's value; a failed request has the worst one for this bound.
pub(crate) fn seen(check: &Check, scored: &Scored<'_>) -> Option<Measured> {
    match check.metric {
        Metric::Series(series, Aggregate::PercentileOfAll(percentile)) => {
            scored.percentile_of_all(series, percentile, worst(check.op))
        }
        metric => scored.measure(metric),
    }
}
