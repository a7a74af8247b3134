//! `errors.*`: the failures as they are counted, at the last look.

use gate_model::{Check, ErrorKind, Metric, Op, Quantity};
use gate_stats::binomial;

use super::{Reading, least_count, limit};
use crate::BOUNDS_ALPHA;
use crate::scored::Scored;

/// Reads a check on the share or the count of failures over all measured requests.
pub(crate) fn read(check: &Check, scored: &Scored<'_>) -> Option<Reading> {
    let (kind, share) = kind(check.metric)?;
    let seen = scored.measure(check.metric)?;
    let (n, k, limit) = (scored.n(), scored.failed(kind), limit(check));
    let value = |k: u32| if share { f64::from(k) / f64::from(n) } else { f64::from(k) };
    let breaks = |k: u32| !check.op.holds(value(k), limit);
    let can_be_too_many = matches!(check.op, Op::Less | Op::AtMost) || (check.op == Op::Equal && limit == 0.0);
    let bound = |bound: Result<f64, gate_stats::Error>| bound.ok().filter(|_| share);
    Some(Reading {
        seen: Quantity { value: seen.value, unit: check.metric.unit() },
        keeps: check.op.holds(seen.value, limit),
        n,
        k,
        allowed: if share { limit * f64::from(n) } else { limit },
        test: None,
        breaks_at: if can_be_too_many { least_count(n, breaks) } else { None },
        lower: bound(binomial::share_lower(u64::from(k), u64::from(n), BOUNDS_ALPHA)),
        upper: bound(binomial::share_upper(u64::from(k), u64::from(n), BOUNDS_ALPHA)),
    })
}

/// The failures that are counted, and whether their share is meant.
fn kind(metric: Metric) -> Option<(ErrorKind, bool)> {
    match metric {
        Metric::ErrorShare(kind) => Some((kind, true)),
        Metric::ErrorCount(kind) => Some((kind, false)),
        _ => None,
    }
}
