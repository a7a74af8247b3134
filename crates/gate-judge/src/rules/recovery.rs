//! `recovery` from a spike: when TTFT is back inside its band from before the spike, and stays (RECOVERY).
//!
//! A request is slow where its TTFT is over the P95 of those before the spike, or where it failed. The recovery is the
//! most likely step from many slow requests to few among those due after the spike.

use gate_model::{
    Cause, Check, Load, Metric, Nanos, Outcome, PatternFacts, PatternFound, Percentile, Quantity, Request, Scalar,
    Series,
};
use gate_stats::step::{Steps, Turn};
use gate_stats::{DesignEffect, Indicators, Mark, series};

use super::{Reading, Test, limit};
use crate::scope::Scope;
use crate::scored::{Measured, Scored, count, nearest_rank};

/// Requests with a TTFT before the spike, at least.
const LEAST_BEFORE: u32 = 60;
/// Requests after the spike, at least.
const LEAST_AFTER: u32 = 20;
/// Requests on either side of the step, at least.
const LEAST_SIDE: usize = 5;
/// Twice the gain in log-likelihood from which a step is believed.
const LIKELIHOOD: f64 = 12.0;
/// The share of slow requests after the step up to which TTFT is back.
const SLOW: f64 = 0.2;
/// How much less likely than the most likely step those are that the interval holds, as a log.
const WITHIN: f64 = 4.0;

/// What a spike brought to light.
#[derive(Clone, Debug)]
pub(crate) struct Spike {
    /// When each request after the spike was due, from the spike's end, in time's order.
    due: Vec<Nanos>,
    /// Whether each was slow.
    marks: Vec<Mark>,
    /// Every step among them.
    steps: Steps,
    /// From the spike's end to when TTFT was back; `None` where it was not within the run.
    recovery: Option<Nanos>,
    /// The least and the longest that it may have taken.
    between: Option<(Nanos, Nanos)>,
    /// How it was found.
    facts: PatternFacts,
}

impl Spike {
    /// Looks for when TTFT was back after a spike.
    ///
    /// # Errors
    /// [`Cause::PatternTooShort`], and [`Cause::NoData`] of any other pattern.
    pub(crate) fn of(scored: &Scored<'_>) -> Result<Self, Cause> {
        let (start, end) = scored.setting().load.and_then(Load::spike).ok_or(Cause::NoData)?;
        let before: Vec<f64> = scored
            .ok()
            .filter(|request| request.intended() < start)
            .filter_map(|request| request.value(Series::Ttft))
            .collect();
        let enough = |seen: usize, needed: u32, phase: &str| match count(seen) {
            seen if seen < needed => Err(Cause::PatternTooShort { phase: phase.to_owned(), seen, needed }),
            _ => Ok(()),
        };
        enough(before.len(), LEAST_BEFORE, "before the spike, in answered requests,")?;
        let slow = nearest_rank(before, Percentile::P95).ok_or(Cause::NoData)?;
        let mut after: Vec<Request<'_>> = scored.all().filter(|request| request.intended() >= end).collect();
        enough(after.len(), LEAST_AFTER, "after the spike, in requests,")?;
        after.sort_by_key(|request| request.intended());
        let is_slow = |request: &Request<'_>| {
            request.outcome() != Outcome::Ok || request.value(Series::Ttft).is_none_or(|ttft| ttft > slow)
        };
        let mark = |request| if is_slow(request) { Mark::Exceeded } else { Mark::Kept };
        let marks: Vec<Mark> = after.iter().map(mark).collect();
        let due: Vec<Nanos> = after.iter().map(|request| request.intended() - end).collect();
        let steps = Steps::of(&marks, Turn::Down, LEAST_SIDE);
        let step = steps.best();
        let likelihood = step.map_or(0.0, |step| step.gain);
        let step = step.filter(|_| likelihood >= LIKELIHOOD);
        let slow_after = step.map_or(steps.whole(), |step| step.after).share();
        let settled = slow_after <= SLOW;
        let at = |position: usize| time_of(&due, position);
        let between = steps.within(WITHIN).filter(|_| step.is_some() && settled);
        Ok(Self {
            recovery: settled.then(|| step.map_or(Nanos::ZERO, |step| at(step.at))),
            between: between.map(|(first, last)| (at(first), at(last))),
            facts: PatternFacts::Recovery {
                slow: Nanos(slow as i64),
                slow_after: Some(slow_after),
                settled,
                likelihood,
            },
            due,
            marks,
            steps,
        })
    }

    /// From the spike's end to the last request: what a recovery that is not within the run takes at least.
    fn seen(&self) -> Nanos {
        self.due.last().copied().unwrap_or_default()
    }

    /// The test of a bound that some recoveries keep.
    ///
    /// Of a step that is believed: how much likelier it is than every one that keeps the bound, and than every one that
    /// breaks it ([`Steps::p_value`]). Without one it is asked of the requests that were due when TTFT should have been
    /// back how surprising so many slow ones are, if only so many are slow as may be, and so few; where TTFT was not back
    /// nothing shows that the bound is kept, and where it was back at once nothing that it is broken.
    fn test(&self, keeps: impl Fn(f64) -> bool) -> Test {
        let is_kept = |position: usize| keeps(time_of(&self.due, position).0 as f64);
        let late = || -> Indicators {
            let late = self.due.iter().zip(&self.marks).filter(|(due, _)| !keeps(due.0 as f64));
            late.map(|(_, mark)| *mark).collect()
        };
        let (p_fail, p_pass) = match self.recovery {
            Some(_) if self.between.is_some() => {
                (self.steps.p_value(is_kept), self.steps.p_value(|position| !is_kept(position)))
            }
            Some(_) => {
                let late = late();
                (1.0, series::p_pass(late.k(), late.n(), late.design_effect(), SLOW).unwrap_or(1.0))
            }
            None => {
                let late = late();
                (series::p_fail(late.k(), late.n(), late.design_effect(), SLOW).unwrap_or(1.0), 1.0)
            }
        };
        Test::plain(DesignEffect::NONE, p_fail, p_pass)
    }
}

/// When a step at a position is, from the spike's end: with the first request after it; at once where there is none.
fn time_of(due: &[Nanos], position: usize) -> Nanos {
    if position == 0 { Nanos::ZERO } else { due.get(position).copied().unwrap_or_default() }
}

/// Reads a check on the recovery from a spike. Where TTFT was not back, the least it takes is shown, and no bound is
/// kept.
pub(crate) fn read(check: &Check, scope: &Scope<'_>) -> Result<Reading, Cause> {
    let spike = Spike::of(&scope.scored)?;
    let limit = limit(check).ok_or(Cause::NoData)?;
    let seen = spike.recovery.unwrap_or_else(|| spike.seen());
    let measured = Measured { value: seen.0 as f64, n: count(spike.due.len()) };
    let keeps = spike.recovery.is_some() && check.op.holds(measured.value, limit);
    let nanos = |time: Nanos| time.0 as f64;
    Ok(Reading {
        test: Some(spike.test(|time| check.op.holds(time, limit))),
        lower: spike.between.map(|(least, _)| nanos(least)).or(spike.recovery.is_none().then_some(measured.value)),
        upper: spike.between.map(|(_, longest)| nanos(longest)),
        pattern: Some(spike.facts),
        ..Reading::of(check, measured, keeps)
    })
}

/// What a spike brought to light, whether or not a check asks for it.
pub(crate) fn found(scored: &Scored<'_>) -> Option<PatternFound> {
    let spike = Spike::of(scored).ok()?;
    let lower = spike.between.map(|(least, _)| least).or(spike.recovery.is_none().then(|| spike.seen()));
    Some(PatternFound {
        metric: Metric::Scalar(Scalar::Recovery),
        value: spike.recovery.map(Quantity::time),
        lower: lower.map(Quantity::time),
        upper: spike.between.map(|(_, longest)| Quantity::time(longest)),
        facts: spike.facts,
    })
}
