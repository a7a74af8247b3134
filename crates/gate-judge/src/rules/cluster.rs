//! `itl.pQ`, `icl.pQ` against a limit: gaps beyond it, request by request.
//!
//! The gaps of one request hang together, so a binomial over all of them takes too much for evidence (it is red
//! 28–38 % of the time at the limit). Each request counts as one: its gaps beyond the limit less those that the
//! percentile allows it, and the mean of that over requests is tested against 0.
//!
//! Where all slow gaps are in a few requests, a sample without one of those looks certain: by t alone 21, 16 and 12 %
//! of checks on a P95 at its limit are falsely met with 30, 50 and 100 requests. So a check is met only where one more
//! request, all of whose gaps are beyond the limit, would leave it so, and by no fewer requests than prove a percentile
//! of requests (59 for a P95): falsely by at most 5 % then.

use gate_model::{Aggregate, Check, Metric};
use gate_stats::{Limit, Mark, Mean, binomial};

use super::quantile::{allowed_thousandths, as_limit};
use super::{Reading, Test, limit};
use crate::scored::{Measured, Scored, count, nearest_rank};

/// Thousandths of a percent in a whole.
const WHOLE: f64 = 100_000.0;

/// Reads a check on a percentile of the gaps of all `ok` requests; `None` where fewer than 5 have any.
///
/// The estimate is the nearest rank over all gaps. Of the evidence, `n` are the requests with gaps, and `k` those
/// of them with more gaps beyond the limit than the percentile allows of theirs. How many such requests a check at
/// its limit has depends on how its gaps hang together, so none are stated as allowed or needed (0, `None`).
pub(crate) fn read(check: &Check, scored: &Scored<'_>) -> Option<Reading> {
    let Metric::Series(series, Aggregate::Percentile(percentile)) = check.metric else { return None };
    let limit = limit(check)?;
    let bound = as_limit(check.op, limit);
    let allowed = f64::from(allowed_thousandths(percentile, check.op));
    let (mut gaps, mut surpluses, mut squares) = (Vec::new(), Vec::new(), 0.0);
    for of_request in scored.gaps(series) {
        squares += (of_request.len() as f64).powi(2);
        let beyond = of_request.iter().filter(|gap| bound.mark(**gap) == Mark::Exceeded).count();
        // In thousandths of a percent of a gap everything is whole, so that requests exactly at the limit give 0.
        surpluses.push(beyond as f64 * WHOLE - of_request.len() as f64 * allowed);
        gaps.extend(of_request);
    }
    let k = surpluses.iter().filter(|surplus| **surplus > 0.0).count();
    // As long as the request of a gap drawn at random is on average.
    let one_more = squares / gaps.len() as f64 * (WHOLE - allowed);
    let test = test(&surpluses, one_more, allowed / WHOLE)?;
    let seen = nearest_rank(gaps, percentile)?;
    let n = count(surpluses.len());
    Some(Reading {
        k: count(k),
        test: Some(test),
        ..Reading::of(check, Measured { value: seen, n }, check.op.holds(seen, limit))
    })
}

/// Tests surpluses in send order against 0: they are believed to be under it only as far as they are with `one_more`,
/// and as so many requests without any gap beyond the limit can show.
fn test(surpluses: &[f64], one_more: f64, allowed: f64) -> Option<Test> {
    let limit = Limit::AtMost(0.0);
    let test = Test::of_mean(Mean::of(surpluses).ok().flatten()?, limit);
    let with_one_more: Vec<f64> = surpluses.iter().copied().chain([one_more]).collect();
    let with_one_more = Mean::of(&with_one_more).ok().flatten()?.p_pass(limit);
    let without_any = binomial::lower_tail(0, surpluses.len() as u64, allowed).ok()?;
    Some(Test { p_pass: test.p_pass.max(with_one_more).max(without_any), ..test })
}
