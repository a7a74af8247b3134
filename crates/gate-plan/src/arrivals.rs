//! When requests are due.

use gate_model::{Arrivals, Iterations, Load, Nanos, Pace, PerSecond, Stage};

use crate::draw::{Draws, Purpose, Stream};
use crate::error::PlanError;
use crate::trace::{Trace, TraceRow};

/// The latest a request may be due.
pub(crate) const LONGEST: Nanos = Nanos::from_secs(24 * 60 * 60);

/// One arrival: a request, or the first of a conversation.
#[derive(Clone, Copy)]
pub(crate) struct Arrival<'a> {
    /// When, from the epoch.
    pub(crate) at: Nanos,
    /// The row of a trace that it comes from.
    pub(crate) row: Option<&'a TraceRow>,
}

/// The arrivals of a load, in order: without end where a number of requests ends them, else those of its schedule.
pub(crate) type Arriving<'a> = Box<dyn Iterator<Item = Arrival<'a>> + 'a>;

/// When a load's requests arrive.
///
/// - By a number of requests: the first at zero, then by exponential (Poisson), gamma distributed or equal gaps; all at
///   zero in a closed loop.
/// - By a schedule of rates: an arrival process of rate 1 through the inverse of the integrated rate, which gives a
///   process of that rate (Çinlar, *Introduction to Stochastic Processes*, 1975). Where gaps are equal, an arrival
///   falls on every whole number of the integral, from 0 on.
/// - By a trace: its times, from the first row on, up to the end of `load.duration` where that is given and shorter
///   than a plan may be.
pub(crate) fn arriving<'a>(load: &'a Load, scenario: u16, trace: Option<&'a Trace>) -> Result<Arriving<'a>, PlanError> {
    let draws = Stream::new(load.seed, Purpose::Gaps, scenario).part(0);
    if let Arrivals::Gamma(shape) = load.arrivals
        && !(shape.is_finite() && shape > 0.0)
    {
        return Err(PlanError::GammaShape { shape });
    }
    if let Some(trace) = trace {
        let rows = trace.rows().iter();
        let arrivals = rows.map(|row| Arrival { at: row.at, row: Some(row) });
        return Ok(match load.iterations {
            Iterations::For(time) if time < LONGEST => Box::new(arrivals.take_while(move |arrival| arrival.at < time)),
            // A row after the longest time is none to drop in silence.
            _ => Box::new(arrivals),
        });
    }
    if let Some(stages) = load.stages() {
        let times = Schedule::new(stages)?.times(units(load.arrivals, draws));
        return Ok(Box::new(times.map(|at| Arrival { at, row: None })));
    }
    let rate = match load.pace {
        Pace::Closed { .. } => {
            return Ok(Box::new(std::iter::repeat(Arrival { at: Nanos::ZERO, row: None })));
        }
        Pace::Open { rate: PerSecond(rate), .. } => rate,
    };
    if !(rate.is_finite() && rate > 0.0) {
        return Err(PlanError::Rate { rate });
    }
    Ok(Box::new(steady(load.arrivals, rate, draws).map(|at| Arrival { at, row: None })))
}

/// Times at one rate, the first at zero, without end.
fn steady(arrivals: Arrivals, rate: f64, mut draws: Draws) -> Box<dyn Iterator<Item = Nanos>> {
    let mut at = Nanos::ZERO;
    Box::new((0_u32..).map(move |index| {
        if index > 0 {
            at = match arrivals {
                Arrivals::Poisson => at + Nanos::from_secs_f64(draws.exponential() / rate),
                Arrivals::Gamma(shape) => at + Nanos::from_secs_f64(draws.gamma(shape) / shape / rate),
                // From the index, so that rounding doesn't add up.
                Arrivals::Constant => Nanos::from_secs_f64(f64::from(index) / rate),
            };
        }
        at
    }))
}

/// The arrivals of a process of rate 1, without end.
fn units(arrivals: Arrivals, mut draws: Draws) -> impl Iterator<Item = f64> {
    let mut at = 0.0;
    (0_u32..).map(move |index| {
        match arrivals {
            Arrivals::Poisson => at += draws.exponential(),
            Arrivals::Gamma(shape) => at += draws.gamma(shape) / shape,
            Arrivals::Constant => at = f64::from(index),
        }
        at
    })
}

/// A rate over time, in straight lines.
struct Schedule {
    stages: Vec<Stage>,
}

impl Schedule {
    fn new(stages: Vec<Stage>) -> Result<Self, PlanError> {
        let mut lasts = Nanos::ZERO;
        for Stage { from: PerSecond(from), to: PerSecond(to), lasts: stage } in &stages {
            if let Some(rate) = [*from, *to].into_iter().find(|rate| !(rate.is_finite() && *rate >= 0.0)) {
                return Err(PlanError::StageRate { rate });
            }
            lasts = lasts + (*stage).max(Nanos::ZERO);
        }
        if lasts > LONGEST { Err(PlanError::ScheduleTooLong { lasts }) } else { Ok(Self { stages }) }
    }

    /// When the integral of the rate reaches each of these ascending numbers, until the schedule ends.
    fn times(self, units: impl Iterator<Item = f64>) -> impl Iterator<Item = Nanos> {
        let mut stages = self.stages.into_iter();
        let mut current = stages.next();
        // The integral, and the time, where the current stage starts.
        let (mut reached, mut start) = (0.0, Nanos::ZERO);
        units.map_while(move |unit| {
            loop {
                let stage = current?;
                let lasts = stage.lasts.as_secs_f64();
                let integral = (stage.from.0 + stage.to.0) / 2.0 * lasts;
                if unit - reached < integral {
                    return Some(start + within(&stage, unit - reached));
                }
                (reached, start) = (reached + integral, start + stage.lasts);
                current = stages.next();
            }
        })
    }
}

/// How long after a stage's start the integral of its rate is `area`: the root of `from t + slope t² / 2 = area`.
fn within(stage: &Stage, area: f64) -> Nanos {
    let (from, to, lasts) = (stage.from.0, stage.to.0, stage.lasts.as_secs_f64());
    let slope = (to - from) / lasts;
    let root = (from * from + 2.0 * slope * area).max(0.0).sqrt();
    if from + root <= 0.0 {
        return Nanos::ZERO;
    }
    Nanos::from_secs_f64(2.0 * area / (from + root)).min(stage.lasts)
}
