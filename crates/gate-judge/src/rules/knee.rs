//! `knee.rate` of a ramp: the rate of answers past the point where requests stop being good (KNEE).
//!
//! The rate that was sent at that point misses the capacity often: a queue takes its time to show. What is answered past
//! it is what the target can do.
//!
//! Below its capacity too an engine has queues now and then, and requests in one are bad together. A step is a knee only
//! where its likelihood ratio, over the design effect of the marks on either side of it, is that of a step among
//! independent requests, where it leaves a tenth of the requests on either side, and where most requests past it are
//! bad. Of ramps to .6 of the capacity of engines with 1 to 16 slots these leave a false knee in about one of fifty
//! (least requests a side 10, a bad share of .5 and no design effect: in up to twenty of fifty), and past a true one
//! all of them hold.

use gate_model::{
    Cause, Check, Load, Metric, Nanos, Op, Outcome, Pattern, PatternFacts, PatternFound, PerSecond, Quantity, Request,
    Scalar,
};
use gate_stats::mean::Resemblance;
use gate_stats::step::{Step, Steps, Turn};
use gate_stats::{DesignEffect, Mark, Mean};

use super::quantile::as_limit;
use super::{Reading, Test, limit};
use crate::BOUNDS_ALPHA;
use crate::scope::Scope;
use crate::scored::{Measured, Scored};

/// How long a ramp must be.
const LEAST_TIME: Nanos = Nanos::from_secs(120);
/// How many requests it must have.
const LEAST_REQUESTS: u32 = 300;
/// The part of the requests that must be on either side of the step, one in so many.
const LEAST_PART: usize = 10;
/// Twice the gain in log-likelihood, over the design effect, from which a step is believed.
const LIKELIHOOD: f64 = 20.0;
/// The share of bad requests past a knee, at least.
const BAD: f64 = 0.7;
/// The share of bad requests in the last fifth up to which a ramp without a knee proves anything.
const BAD_WITHOUT: f64 = 0.3;
/// Stretches of time in which answers are counted past the knee.
const BLOCKS: u32 = 8;

/// What a ramp brought to light.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ramp {
    /// Its requests.
    n: u32,
    /// The rate it went to.
    to: PerSecond,
    /// The rate of answers past the knee, where there is one.
    rate: Option<Mean>,
    /// Whether nearly all requests were good to its end.
    is_good: bool,
    /// The rate that each request was due at, and whether it was good, in order of time.
    marks: Vec<(PerSecond, Mark)>,
    /// How it was found.
    facts: PatternFacts,
}

impl Ramp {
    /// Whether nearly all requests were good up to a rate; not where none was due at it or below.
    fn is_good_up_to(&self, rate: f64) -> bool {
        let below: Vec<Mark> = self.marks.iter().filter(|(due, _)| due.0 <= rate).map(|(_, mark)| *mark).collect();
        !below.is_empty() && is_good_to_its_end(&below)
    }

    /// Looks for the knee of a ramp.
    ///
    /// # Errors
    /// [`Cause::PatternTooShort`], and [`Cause::NoData`] of any other pattern.
    pub(crate) fn of(scored: &Scored<'_>) -> Result<Self, Cause> {
        let pattern = scored.setting().load.map(|load: &Load| &load.pattern);
        let Some(Pattern::Ramp { from, to, over }) = pattern else { return Err(Cause::NoData) };
        if *over < LEAST_TIME {
            let seconds = |time: Nanos| time.as_secs_f64() as u32;
            let (seen, needed) = (seconds(*over), seconds(LEAST_TIME));
            return Err(Cause::PatternTooShort { phase: "of the ramp, in seconds,".to_owned(), seen, needed });
        }
        let n = scored.n();
        if n < LEAST_REQUESTS {
            let phase = "of the ramp, in requests,".to_owned();
            return Err(Cause::PatternTooShort { phase, seen: n, needed: LEAST_REQUESTS });
        }
        let mut requests: Vec<Request<'_>> = scored.all().collect();
        requests.sort_by_key(|request| request.intended());
        let is_good = |request: &Request<'_>| request.is_good(scored.slo());
        let mark = |request| if is_good(request) { Mark::Kept } else { Mark::Exceeded };
        let marks: Vec<Mark> = requests.iter().map(mark).collect();
        let step = Steps::of(&marks, Turn::Up, marks.len().div_ceil(LEAST_PART)).best();
        let likelihood = step.map_or(0.0, |step| step.gain / resemblance(&marks, &step));
        let knee = step.filter(|step| likelihood >= LIKELIHOOD && step.after.share() >= BAD);
        let at = knee.and_then(|step| requests.get(step.at)).map(|request| request.intended());
        let planned = |at: Nanos| PerSecond(from.0 + (to.0 - from.0) * (at.as_secs_f64() / over.as_secs_f64()));
        let onset = at.map(planned);
        let rate = at.map(|at| answered(&requests, at, *over)).transpose()?;
        let is_good = is_good_to_its_end(&marks);
        Ok(Self {
            n,
            to: *to,
            rate,
            is_good,
            marks: requests.iter().map(|request| planned(request.intended())).zip(marks).collect(),
            facts: PatternFacts::Knee {
                at,
                onset,
                bad_after: knee.map(|step| step.after.share()),
                to: *to,
                likelihood,
            },
        })
    }
}

/// Whether nearly all of the last fifth were good.
fn is_good_to_its_end(marks: &[Mark]) -> bool {
    let last = marks.len().div_ceil(5);
    let bad = marks.iter().rev().take(last).filter(|mark| **mark == Mark::Exceeded).count();
    bad as f64 <= BAD_WITHOUT * last as f64
}

/// The design effect of the marks on either side of a step, each about its own side's share.
fn resemblance(marks: &[Mark], step: &Step) -> f64 {
    let centred = marks.iter().enumerate().map(|(place, mark)| {
        let share = if place < step.at { step.before.share() } else { step.after.share() };
        if *mark == Mark::Exceeded { 1.0 - share } else { -share }
    });
    Resemblance::of(&centred.collect::<Vec<f64>>()).design_effect().value()
}

/// The `ok` answers per second of equal stretches of time between two points.
fn answered(requests: &[Request<'_>], from: Nanos, to: Nanos) -> Result<Mean, Cause> {
    let ends = requests.iter().filter(|request| request.outcome() == Outcome::Ok).filter_map(|request| request.end());
    let seconds = (to - from).as_secs_f64() / f64::from(BLOCKS);
    let mut blocks = vec![0.0; BLOCKS as usize];
    for end in ends.filter(|end| from < *end && *end < to) {
        let place = ((end - from).as_secs_f64() / seconds) as usize;
        if let Some(block) = blocks.get_mut(place) {
            *block += 1.0 / seconds;
        }
    }
    Mean::of_independent(&blocks).ok().flatten().ok_or(Cause::NoData)
}

/// Reads a check on the knee of a ramp. Without a knee the capacity is at least the rate that the ramp went to, which
/// shows that a lower bound is kept where nearly all requests were good to the end, and that an upper one is not. Where
/// they were good only up to the lower bound, it is seen to be kept, and not proven.
pub(crate) fn read(check: &Check, scope: &Scope<'_>) -> Result<Reading, Cause> {
    let ramp = Ramp::of(&scope.scored)?;
    let limit = limit(check).ok_or(Cause::NoData)?;
    let reading = match ramp.rate {
        Some(rate) => {
            let measured = Measured { value: rate.value(), n: ramp.n };
            Reading {
                test: Some(Test::of_mean(rate, as_limit(check.op, limit))),
                lower: rate.lower(BOUNDS_ALPHA).ok().map(|lower| lower.max(0.0)),
                upper: rate.upper(BOUNDS_ALPHA).ok(),
                ..Reading::of(check, measured, check.op.holds(measured.value, limit))
            }
        }
        None => {
            let holds = check.op.holds(ramp.to.0, limit);
            let is_proven = |proven: bool| if proven { 0.0 } else { 1.0 };
            let (p_fail, p_pass, keeps) = match check.op {
                Op::Greater | Op::AtLeast => {
                    (1.0, is_proven(holds && ramp.is_good), holds && (ramp.is_good || ramp.is_good_up_to(limit)))
                }
                Op::Less | Op::AtMost | Op::Equal => (is_proven(!holds && ramp.is_good), 1.0, holds),
            };
            Reading {
                test: Some(Test::plain(DesignEffect::NONE, p_fail, p_pass)),
                ..Reading::of(check, Measured { value: ramp.to.0, n: ramp.n }, keeps)
            }
        }
    };
    Ok(Reading { pattern: Some(ramp.facts), ..reading })
}

/// What a ramp brought to light, whether or not a check asks for it.
pub(crate) fn found(scored: &Scored<'_>) -> Option<PatternFound> {
    let ramp = Ramp::of(scored).ok()?;
    let metric = Metric::Scalar(Scalar::KneeRate);
    let quantity = |value: f64| Quantity { value, unit: metric.unit() };
    Some(PatternFound {
        metric,
        value: ramp.rate.map(|rate| quantity(rate.value())),
        lower: match ramp.rate {
            Some(rate) => rate.lower(BOUNDS_ALPHA).ok().map(|lower| quantity(lower.max(0.0))),
            None => ramp.is_good.then(|| quantity(ramp.to.0)),
        },
        upper: ramp.rate.and_then(|rate| rate.upper(BOUNDS_ALPHA).ok()).map(quantity),
        facts: ramp.facts,
    })
}
