//! What a pattern of load brought to light.

use gate_model::{CheckVerdict, Drifting, Metric, Nanos, PatternFacts, PatternFound, PerSecond, Quantity, Unit};

use super::number::split;
use super::{figure, grouped, percent};
use crate::facts::long_time;

/// What a pattern brought to light: `the knee is at 9.8/s (9.5 … 10.1)`.
pub(crate) fn pattern_sentence(found: &PatternFound) -> String {
    let between = interval(found.lower, found.upper);
    let how = how(&found.facts);
    let how = if how.is_empty() { how } else { format!(": {how}") };
    match found.facts {
        PatternFacts::Knee { at: None, to, .. } => no_knee(to),
        PatternFacts::Knee { .. } => {
            let value = found.value.map(figure).unwrap_or_else(|| "an unknown rate".to_owned());
            format!("the knee is at {value}{between}{how}")
        }
        PatternFacts::Recovery { settled: false, slow, .. } => not_settled(slow),
        PatternFacts::Recovery { slow, .. } => match found.value {
            Some(value) if value.value > 0.0 => {
                format!("TTFT was back {} after the spike's end{between}{how}", times(value))
            }
            _ => at_once(slow),
        },
        PatternFacts::Drift { per_hour, .. } => {
            let what = drifting(found.metric);
            let drifts = match (found.lower, found.upper) {
                (Some(lower), Some(upper)) if lower.value <= 0.0 && upper.value >= 0.0 => "shows no drift:",
                _ if per_hour < 0.0 => "falls:",
                _ => "drifts by",
            };
            format!("{what} {drifts} {}{between}", signed(per_hour))
        }
    }
}

/// What is said instead of a number that there is none of, or that hides what happened.
pub(super) fn instead(verdict: &CheckVerdict) -> Option<String> {
    let evidence = verdict.evidence.as_ref().filter(|evidence| evidence.comparison.is_none())?;
    match evidence.pattern? {
        PatternFacts::Knee { at: None, to, .. } => Some(no_knee(to)),
        PatternFacts::Recovery { settled: false, slow, .. } => Some(not_settled(slow)),
        _ => None,
    }
}

/// How it was found, as it stands after the number.
pub(super) fn how(facts: &PatternFacts) -> String {
    match facts {
        PatternFacts::Knee { at: Some(at), onset, bad_after, .. } => {
            let bad = bad_after.map(|bad| format!("{} of the requests were not good", percent(bad)));
            let onset = onset.map(|onset| format!(", when {} were sent", rate(onset)));
            let bad = bad.unwrap_or_else(|| "requests were not good".to_owned());
            format!("from {} on{}, {bad}", span(*at), onset.unwrap_or_default())
        }
        PatternFacts::Recovery { settled: true, slow, slow_after, .. } => {
            let slow_after = slow_after.map(|share| format!("; {} of those after that are slow", percent(share)));
            format!("to {}, its P95 before the spike{}", time(*slow), slow_after.unwrap_or_default())
        }
        PatternFacts::Drift { bins, .. } => format!("over {} stretches of time", grouped(*bins)),
        PatternFacts::Knee { at: None, .. } | PatternFacts::Recovery { settled: false, .. } => String::new(),
    }
}

/// How sure the search was, for a report with room for it.
pub(crate) fn likelihood(facts: &PatternFacts) -> String {
    match facts {
        PatternFacts::Knee { likelihood, .. } | PatternFacts::Recovery { likelihood, .. } => {
            super::reckoned(*likelihood)
        }
        PatternFacts::Drift { z, .. } => super::reckoned(*z),
    }
}

fn no_knee(to: PerSecond) -> String {
    format!("no knee up to {}", rate(to))
}

fn not_settled(slow: Nanos) -> String {
    format!("TTFT did not come back within the run: to {}, its P95 before the spike, and stay", time(slow))
}

fn at_once(slow: Nanos) -> String {
    format!("TTFT was back by the end of the spike: within {}, its P95 before it", time(slow))
}

/// What drifts, as people call it: `TPOT`, `the server's memory`.
pub(crate) fn drifting(metric: Metric) -> String {
    match metric {
        Metric::Drift(Drifting::Series(series)) if series.name().len() <= 4 => series.name().to_uppercase(),
        Metric::Drift(Drifting::Series(series)) => series.name().to_owned(),
        Metric::Drift(Drifting::Server(metric)) => format!("the server's {metric}"),
        other => other.to_string(),
    }
}

/// Growth per hour, a fall with its sign.
pub(crate) fn signed(per_hour: f64) -> String {
    figure(Quantity { value: per_hour, unit: Unit::PerHour })
}

/// The two bounds in brackets, the unit said once before them: ` (9.5 … 10.1)`; nothing where there are none.
fn interval(lower: Option<Quantity>, upper: Option<Quantity>) -> String {
    match (lower.map(times), upper.map(times)) {
        (Some(lower), Some(upper)) => match (split(&lower), split(&upper)) {
            ((number, unit), (other, same)) if unit == same => format!(" ({number} … {other})"),
            _ => format!(" ({lower} … {upper})"),
        },
        (Some(lower), None) => format!(" (at least {lower})"),
        (None, Some(upper)) => format!(" (at most {upper})"),
        (None, None) => String::new(),
    }
}

/// A quantity; a time from a second on in seconds.
fn times(quantity: Quantity) -> String {
    match quantity.unit {
        Unit::Time if quantity.value.is_finite() => time(Nanos(quantity.value as i64)),
        _ => figure(quantity),
    }
}

fn time(time: Nanos) -> String {
    if time.as_secs_f64() < 1.0 { figure(Quantity::time(time)) } else { long_time(time) }
}

/// A rate.
pub(crate) fn rate(rate: PerSecond) -> String {
    figure(Quantity { value: rate.0, unit: Unit::PerSecond })
}

/// A stretch of time as a person writes it: `90 s`, `15 min`, `4 h`.
pub(crate) fn span(time: Nanos) -> String {
    const MINUTE: i64 = 60_000_000_000;
    match time.0 {
        whole if whole >= 2 * 60 * MINUTE && whole % (60 * MINUTE) == 0 => format!("{} h", whole / (60 * MINUTE)),
        whole if whole >= 2 * MINUTE && whole % MINUTE == 0 => format!("{} min", whole / MINUTE),
        _ => self::time(time),
    }
}
