//! `X.max` and `X.min`: one request beyond the bound violates.

use gate_model::{Check, Metric};
use gate_stats::{Indicators, Limit, Mark};

use super::quantile::as_limit;
use super::{Reading, Test, exceedances, limit};
use crate::scored::Scored;

/// Reads a check on the largest or smallest value over `ok` requests. Gaps count by request: one is beyond the
/// bound if any gap of it is.
pub(crate) fn read(check: &Check, scored: &Scored<'_>) -> Option<Reading> {
    let Metric::Series(series, _) = check.metric else { return None };
    let seen = scored.measure(check.metric)?;
    let limit = limit(check)?;
    let bound = as_limit(check.op, limit);
    let marks: Indicators = if series.is_pooled() {
        scored.gaps(series).map(|gaps| worst_mark(bound, &gaps)).collect()
    } else {
        scored.values(series).into_iter().map(|value| bound.mark(value)).collect()
    };
    Some(Reading {
        k: exceedances(&marks),
        test: Some(Test::of(&marks, 0.0)?),
        ..Reading::of(check, seen, check.op.holds(seen.value, limit))
    })
}

/// The mark of a request with many values.
fn worst_mark(bound: Limit, values: &[f64]) -> Mark {
    let exceeded = values.iter().any(|value| bound.mark(*value) == Mark::Exceeded);
    if exceeded { Mark::Exceeded } else { Mark::Kept }
}
