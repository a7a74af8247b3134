//! `itl.pQ`, `icl.pQ` against a limit: gaps beyond it, request by request.
//!
//! The gaps of one request hang together, so a binomial over all of them takes too much for evidence (it is red
//! 28–38 % of the time at the limit). Each request counts as one: its gaps beyond the limit less those that the
//! percentile allows it, and the mean of that over requests is tested against 0.
//!
//! Where all slow gaps are in a few requests, the surpluses are skewed: a check is then seldom falsely violated, but
//! more often than 5 % of the time falsely met, as a sample without one of those requests looks certain.

use gate_model::{Aggregate, Check, Metric, Quantity};
use gate_stats::{Limit, Mark, Mean};

use super::quantile::{allowed_thousandths, as_limit};
use super::{Reading, Test, limit};
use crate::scored::{Scored, count, nearest_rank};

/// Thousandths of a percent in a whole.
const WHOLE: f64 = 100_000.0;

/// Reads a check on a percentile of the gaps of all `ok` requests; `None` where fewer than 5 have any.
///
/// The estimate is the nearest rank over all gaps. Of the evidence, `n` are the requests with gaps, and `k` those
/// of them with more gaps beyond the limit than the percentile allows of theirs. How many such requests a check at
/// its limit has depends on how its gaps hang together, so none are stated as allowed or needed (0, `None`).
pub(crate) fn read(check: &Check, scored: &Scored<'_>) -> Option<Reading> {
    let Metric::Series(series, Aggregate::Percentile(percentile)) = check.metric else { return None };
    let limit = limit(check);
    let bound = as_limit(check.op, limit);
    let allowed = f64::from(allowed_thousandths(percentile, check.op));
    let (mut gaps, mut surpluses) = (Vec::new(), Vec::new());
    for of_request in scored.gaps(series) {
        let beyond = of_request.iter().filter(|gap| bound.mark(**gap) == Mark::Exceeded).count();
        // In thousandths of a percent of a gap everything is whole, so that requests exactly at the limit give 0.
        surpluses.push(beyond as f64 * WHOLE - of_request.len() as f64 * allowed);
        gaps.extend(of_request);
    }
    let mean = Mean::of(&surpluses).ok().flatten()?;
    let seen = nearest_rank(gaps, percentile)?;
    Some(Reading {
        seen: Quantity { value: seen, unit: check.metric.unit() },
        keeps: check.op.holds(seen, limit),
        n: count(surpluses.len()),
        k: count(surpluses.iter().filter(|surplus| **surplus > 0.0).count()),
        allowed: 0.0,
        test: Some(Test::of_mean(mean, Limit::AtMost(0.0))),
        breaks_at: None,
        lower: None,
        upper: None,
    })
}
