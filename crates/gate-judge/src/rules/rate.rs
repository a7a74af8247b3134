//! Shares of requests against a limit, by an exact binomial with a design effect: `attainment`, and `errors.*` with
//! `decide: evidence`.

use gate_model::{Check, Metric, Op};
use gate_stats::{Indicators, Mark, binomial};

use super::{Reading, Test, exceedances};
use crate::BOUNDS_ALPHA;
use crate::scored::{Measured, Scored, complement};

/// The share of requests beyond the bound that it allows: `1 − G` that are not what is counted for `>= G`, `G` that
/// are for `<= G`; none for `== 100%` and `== 0%`.
pub(crate) fn allowed_share(op: Op, limit: f64) -> f64 {
    let allowed = if wants_many(op, limit) { complement(limit) } else { limit };
    allowed.clamp(0.0, 1.0)
}

/// Reads a check on the share of requests that are good, or that failed in some way.
pub(crate) fn read(check: &Check, scored: &Scored<'_>, limit: f64) -> Option<Reading> {
    let wants_many = wants_many(check.op, limit);
    let mark = |counts: bool| if counts == wants_many { Mark::Kept } else { Mark::Exceeded };
    let marks: Indicators = match check.metric {
        Metric::Attainment => scored.good()?.map(mark).collect(),
        Metric::ErrorShare(kind) => scored.failures(kind).map(mark).collect(),
        _ => return None,
    };
    let p0 = allowed_share(check.op, limit);
    let test = Test::of(&marks, p0)?;
    let many = if wants_many { marks.n() - marks.k() } else { marks.k() };
    let seen = many as f64 / marks.n() as f64;
    Some(Reading {
        k: exceedances(&marks),
        allowed: f64::from(scored.n()) * p0,
        test: Some(test),
        lower: binomial::share_lower(many, marks.n(), BOUNDS_ALPHA).ok(),
        upper: binomial::share_upper(many, marks.n(), BOUNDS_ALPHA).ok(),
        ..Reading::of(check, Measured { value: seen, n: scored.n() }, check.op.holds(seen, limit))
    })
}

/// Whether the bound asks for many of the requests that are counted, rather than for few.
pub(crate) fn wants_many(op: Op, limit: f64) -> bool {
    match op {
        Op::Greater | Op::AtLeast => true,
        Op::Less | Op::AtMost => false,
        Op::Equal => limit > 0.5,
    }
}
