//! `errors.*`, and shares against what others have: the requests as they are counted, at the last look.

use gate_model::{Check, Metric, Op, Unit};
use gate_stats::binomial;

use super::{Reading, least_count};
use crate::scored::{Scored, complement};
use crate::{BOUNDS_ALPHA, base};

/// Reads a check on the share or the count of failures, or the share of good requests, over all measured ones.
///
/// Beyond the bound, whichever side it is on, are the failures and those that are not good.
pub(crate) fn read(check: &Check, scored: &Scored<'_>, limit: f64) -> Option<Reading> {
    let seen = scored.measure(check.metric)?;
    let (counted, n) = base::share(check.metric, scored)?;
    let of_good = check.metric == Metric::Attainment;
    let k = if of_good { n - counted } else { counted };
    let value = |k: u32| match check.metric {
        Metric::ErrorCount(_) => f64::from(k),
        _ if of_good => f64::from(n - k) / f64::from(n),
        _ => f64::from(k) / f64::from(n),
    };
    let breaks = |k: u32| !check.op.holds(value(k), limit);
    let can_be_too_many = match check.op {
        Op::Less | Op::AtMost => !of_good,
        Op::Greater | Op::AtLeast => of_good,
        Op::Equal => limit == if of_good { 1.0 } else { 0.0 },
    };
    let is_share = check.metric.unit() == Unit::Share;
    let bound = |bound: Result<f64, gate_stats::Error>| bound.ok().filter(|_| is_share);
    let allowed = if of_good { complement(limit) } else { limit };
    Some(Reading {
        k,
        allowed: if is_share { allowed * f64::from(n) } else { allowed },
        breaks_at: if can_be_too_many { least_count(n, breaks) } else { None },
        lower: bound(binomial::share_lower(u64::from(counted), u64::from(n), BOUNDS_ALPHA)),
        upper: bound(binomial::share_upper(u64::from(counted), u64::from(n), BOUNDS_ALPHA)),
        ..Reading::of(check, seen, check.op.holds(seen.value, limit))
    })
}
