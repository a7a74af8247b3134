//! `drift.X` of a soak: growth per hour of the medians of equal stretches of time (TREND).
//!
//! The logarithms of the medians less the growth that the bound allows, by Mann and Kendall's test; the estimate is Theil
//! and Sen's slope.

use gate_model::{
    Cause, Check, Drifting, Metric, Nanos, Op, PatternFacts, PatternFound, Quantity, Request, ServerMetric,
};
use gate_stats::DesignEffect;
use gate_stats::trend::Trend;

use super::{Reading, Test, limit};
use crate::BOUNDS_ALPHA;
use crate::scope::Scope;
use crate::scored::{Measured, Scored, count};

/// Stretches of time.
const BINS: u32 = 60;
/// Of them with a value, at least.
const LEAST_BINS: u32 = 20;
/// The time from the first value to the last, at least, in minutes.
const LEAST_MINUTES: u32 = 10;

/// How something grows over a run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Growth {
    /// What is measured of it: requests, or times that the server was asked.
    n: u32,
    /// Of the logarithms of the medians, per hour.
    trend: Trend,
}

impl Growth {
    /// How the medians of a series, or of a metric of the server's, grow.
    ///
    /// # Errors
    /// [`Cause::PatternTooShort`]; [`Cause::NotScraped`] where the server did not tell; [`Cause::NoData`] where a median is
    /// not above 0, so that it is no share of what it was.
    pub(crate) fn of(scored: &Scored<'_>, what: Drifting) -> Result<Self, Cause> {
        let values: Vec<(Nanos, f64)> = match what {
            Drifting::Series(series) => {
                let value = |request: Request<'_>| Some((request.intended(), request.value(series)?));
                scored.ok().filter_map(value).collect()
            }
            Drifting::Server(metric) => scraped(scored, metric)?,
        };
        let first = values.iter().map(|(at, _)| *at).min().unwrap_or_default();
        let last = values.iter().map(|(at, _)| *at).max().unwrap_or_default();
        let too_short = |seen: u32, needed: u32, phase: &str| {
            if seen < needed { Err(Cause::PatternTooShort { phase: phase.to_owned(), seen, needed }) } else { Ok(()) }
        };
        // The last request of ten minutes is due a little before they are over.
        let minutes = ((last - first).as_secs_f64() / 60.0).round() as u32;
        too_short(minutes, LEAST_MINUTES, "of the run, in minutes,")?;
        let medians = medians(&values, first, last);
        too_short(count(medians.len()), LEAST_BINS, "of the run, in stretches of time with a value,")?;
        let trend = Trend::of(&logs(&medians)?).ok().flatten().ok_or(Cause::NoData)?;
        Ok(Self { n: count(values.len()), trend })
    }

    /// The estimate, as a share per hour.
    pub(crate) fn per_hour(&self) -> f64 {
        self.trend.slope().exp_m1()
    }

    /// Evidence that it grows by more than a share per hour.
    pub(crate) fn p_faster(&self, per_hour: f64) -> f64 {
        self.trend.p_faster(slope(per_hour))
    }

    /// Evidence that it grows by less.
    fn p_slower(&self, per_hour: f64) -> f64 {
        self.trend.p_slower(slope(per_hour))
    }

    /// One-sided 95 % bounds.
    fn bounds(&self) -> (Option<f64>, Option<f64>) {
        let (lower, upper) = self.trend.bounds(BOUNDS_ALPHA).unwrap_or_default();
        (lower.map(f64::exp_m1), upper.map(f64::exp_m1))
    }

    fn facts(&self) -> PatternFacts {
        PatternFacts::Drift { per_hour: self.per_hour(), bins: count(self.trend.n()), z: self.trend.z(0.0) }
    }
}

/// `ln(1 + L)`; nothing loses all of itself, or more.
fn slope(per_hour: f64) -> f64 {
    per_hour.max(-1.0).ln_1p().max(f64::MIN)
}

/// What the server said of a metric.
fn scraped(scored: &Scored<'_>, metric: ServerMetric) -> Result<Vec<(Nanos, f64)>, Cause> {
    let values: Vec<(Nanos, f64)> = scored.scraped(metric).filter(|(_, value)| value.is_finite()).collect();
    if values.is_empty() {
        let scrapes = scored.setting().scrapes;
        let message = scrapes.iter().find_map(|scrape| scrape.error.clone());
        let was_read = scrapes.iter().any(|scrape| scrape.error.is_none());
        let never = || "it was never asked for them".to_owned();
        return Err(Cause::NotScraped { message: if was_read { None } else { message.or_else(|| Some(never())) } });
    }
    Ok(values)
}

/// The middle of each stretch of time that has values, in hours from the first, and their median.
fn medians(values: &[(Nanos, f64)], first: Nanos, last: Nanos) -> Vec<(f64, f64)> {
    let width = (last - first).as_secs_f64() / f64::from(BINS);
    let mut bins = vec![Vec::new(); BINS as usize];
    for (at, value) in values {
        let place = ((*at - first).as_secs_f64() / width) as usize;
        if let Some(bin) = bins.get_mut(place.min(BINS as usize - 1)) {
            bin.push(*value);
        }
    }
    let medians = bins.into_iter().enumerate().filter_map(|(place, bin)| {
        let hours = (place as f64 + 0.5) * width / 3600.0;
        Some((hours, median(bin)?))
    });
    medians.collect()
}

/// The middle one, or of an even number the middle between two.
fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    let lower = values.get(values.len().checked_sub(1)? / 2)?;
    Some(f64::midpoint(*lower, *values.get(values.len() / 2)?))
}

/// The logarithms of medians. What stays the same does not grow, even at 0.
fn logs(medians: &[(f64, f64)]) -> Result<Vec<(f64, f64)>, Cause> {
    let is_constant = medians.windows(2).all(|two| matches!(two, [(_, one), (_, other)] if one == other));
    let log = |(hours, median): &(f64, f64)| match *median {
        _ if is_constant => Ok((*hours, 0.0)),
        median if median > 0.0 => Ok((*hours, median.ln())),
        _ => Err(Cause::NoData),
    };
    medians.iter().map(log).collect()
}

/// Reads a check on growth per hour.
pub(crate) fn read(check: &Check, scope: &Scope<'_>) -> Result<Reading, Cause> {
    let Metric::Drift(what) = check.metric else { return Err(Cause::NoData) };
    let growth = Growth::of(&scope.scored, what)?;
    let limit = limit(check).ok_or(Cause::NoData)?;
    let (faster, slower) = (growth.p_faster(limit), growth.p_slower(limit));
    let (p_fail, p_pass) = match check.op {
        Op::Less | Op::AtMost | Op::Equal => (faster, slower),
        Op::Greater | Op::AtLeast => (slower, faster),
    };
    let measured = Measured { value: growth.per_hour(), n: growth.n };
    let (lower, upper) = growth.bounds();
    Ok(Reading {
        test: Some(Test::plain(DesignEffect::NONE, p_fail, p_pass)),
        lower,
        upper,
        pattern: Some(growth.facts()),
        ..Reading::of(check, measured, check.op.holds(measured.value, limit))
    })
}

/// How something grows over a soak, whether or not a check asks for it.
pub(crate) fn found(scored: &Scored<'_>, what: Drifting) -> Option<PatternFound> {
    let growth = Growth::of(scored, what).ok()?;
    let metric = Metric::Drift(what);
    let quantity = |value: f64| Quantity { value, unit: metric.unit() };
    let (lower, upper) = growth.bounds();
    Some(PatternFound {
        metric,
        value: Some(quantity(growth.per_hour())),
        lower: lower.map(quantity),
        upper: upper.map(quantity),
        facts: growth.facts(),
    })
}
