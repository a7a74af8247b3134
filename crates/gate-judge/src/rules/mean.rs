//! `X.mean` against a limit: Student's t with the design effect of the values.

use gate_model::{Check, Metric};
use gate_stats::Mean;

use super::quantile::as_limit;
use super::{Reading, Test, limit};
use crate::BOUNDS_ALPHA;
use crate::scored::{Measured, Scored, count};

/// Reads a check on the mean over `ok` requests; `None` of fewer than 5 values.
///
/// A mean has no requests beyond it and allows none: its evidence is `n` and the bounds, and `k` and `allowed` are 0.
pub(crate) fn read(check: &Check, scored: &Scored<'_>) -> Option<Reading> {
    let Metric::Series(series, _) = check.metric else { return None };
    let values = scored.values(series);
    let mean = Mean::of(&values).ok().flatten()?;
    let limit = limit(check)?;
    let measured = Measured { value: mean.value(), n: count(values.len()) };
    Some(Reading {
        test: Some(Test::of_mean(mean, as_limit(check.op, limit))),
        // Neither a time nor a count is below 0, whatever the t distribution says.
        lower: mean.lower(BOUNDS_ALPHA).ok().map(|lower| lower.max(0.0)),
        upper: mean.upper(BOUNDS_ALPHA).ok(),
        ..Reading::of(check, measured, check.op.holds(measured.value, limit))
    })
}
