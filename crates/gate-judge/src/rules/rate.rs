//! `attainment` against a limit: the bad requests, by an exact binomial with a design effect.

use gate_model::{Check, Op, Quantity};
use gate_stats::{Indicators, Mark, binomial};

use super::{Reading, Test, exceedances, limit};
use crate::BOUNDS_ALPHA;
use crate::scored::Scored;

/// The share of requests beyond the bound that it allows: `1 − G` bad ones for `>= G`, `G` good ones for
/// `<= G`; none for `== 100%` and `== 0%`.
pub(crate) fn allowed_share(op: Op, limit: f64) -> f64 {
    // In hundredths the difference is exact: 1 − .95 is not .05.
    let allowed = if wants_good(op, limit) { (100.0 - 100.0 * limit) / 100.0 } else { limit };
    allowed.clamp(0.0, 1.0)
}

/// Reads a check on the share of good requests.
pub(crate) fn read(check: &Check, scored: &Scored<'_>) -> Option<Reading> {
    let limit = limit(check);
    let wants_good = wants_good(check.op, limit);
    let mark = |good: bool| if good == wants_good { Mark::Kept } else { Mark::Exceeded };
    let marks: Indicators = scored.good()?.map(mark).collect();
    let p0 = allowed_share(check.op, limit);
    let test = Test::of(&marks, p0)?;
    let good = if wants_good { marks.n() - marks.k() } else { marks.k() };
    let seen = good as f64 / marks.n() as f64;
    Some(Reading {
        seen: Quantity { value: seen, unit: check.metric.unit() },
        keeps: check.op.holds(seen, limit),
        n: scored.n(),
        k: exceedances(&marks),
        allowed: f64::from(scored.n()) * p0,
        test: Some(test),
        breaks_at: None,
        lower: binomial::share_lower(good, marks.n(), BOUNDS_ALPHA).ok(),
        upper: binomial::share_upper(good, marks.n(), BOUNDS_ALPHA).ok(),
    })
}

/// Whether the bound asks for good requests, rather than for few of them.
fn wants_good(op: Op, limit: f64) -> bool {
    match op {
        Op::Greater | Op::AtLeast => true,
        Op::Less | Op::AtMost => false,
        Op::Equal => limit > 0.5,
    }
}
