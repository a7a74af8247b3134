//! Reading a metric's name.

use std::str::FromStr;

use super::{Aggregate, Drifting, ErrorKind, Metric, MetricError, PerRun, Scalar, ServerAggregate};
use crate::{Series, ServerMetric};

impl FromStr for Metric {
    type Err = MetricError;

    fn from_str(text: &str) -> Result<Self, MetricError> {
        if text == "attainment" {
            return Ok(Self::Attainment);
        }
        if let Some(scalar) = Scalar::ALL.into_iter().find(|scalar| scalar.name() == text) {
            return Ok(Self::Scalar(scalar));
        }
        if let Some(rest) = text.strip_prefix("server.") {
            return server(text, rest);
        }
        if let Some(rest) = text.strip_prefix("drift.") {
            return drifting(text, rest).map(Self::Drift);
        }
        if let Some(rest) = text.strip_prefix("spike.") {
            return match rest.parse()? {
                Self::Series(series, aggregate) => Ok(PerRun::Series(series, aggregate)),
                Self::ErrorShare(kind) => Ok(PerRun::ErrorShare(kind)),
                Self::ErrorCount(kind) => Ok(PerRun::ErrorCount(kind)),
                Self::Attainment => Ok(PerRun::Attainment),
                Self::Scalar(
                    scalar @ (Scalar::ThroughputRequests
                    | Scalar::ThroughputOutputTokens
                    | Scalar::ThroughputTotalTokens
                    | Scalar::TpotEffective
                    | Scalar::Goodput
                    | Scalar::AchievedRate),
                ) => Ok(PerRun::Scalar(scalar)),
                _ => Err(MetricError::NotInSpikes(rest.to_owned())),
            }
            .map(Self::Spike);
        }
        if let Some(rest) = text.strip_prefix("errors.") {
            let (name, count) = rest.strip_suffix(".count").map_or((rest, false), |name| (name, true));
            let kind = ErrorKind::ALL.into_iter().find(|kind| kind.name() == name);
            let kind = kind.ok_or_else(|| Self::unknown(text))?;
            return Ok(if count { Self::ErrorCount(kind) } else { Self::ErrorShare(kind) });
        }
        let (name, summary) = text.split_once('.').map_or((text, None), |(name, summary)| (name, Some(summary)));
        let series = Series::ALL.into_iter().find(|series| series.name() == name);
        let series = series.ok_or_else(|| Self::unknown(text))?;
        let aggregate = match summary {
            None => return Err(MetricError::NeedsAggregate(series.name())),
            Some("max") => Aggregate::Max,
            Some("mean") => Aggregate::Mean,
            Some("min") => Aggregate::Min,
            Some("stddev") => Aggregate::Stddev,
            Some(summary) => {
                let digits = summary.strip_prefix('p').ok_or_else(|| Self::unknown(text))?;
                let (digits, of_all) = digits.strip_suffix(".all").map_or((digits, false), |digits| (digits, true));
                if !digits.starts_with(|first: char| first.is_ascii_digit()) {
                    return Err(Self::unknown(text));
                }
                let percentile =
                    digits.parse().map_err(|error| MetricError::Percentile { name: text.to_owned(), error })?;
                if of_all { Aggregate::PercentileOfAll(percentile) } else { Aggregate::Percentile(percentile) }
            }
        };
        if series.is_pooled() && !matches!(aggregate, Aggregate::Percentile(_) | Aggregate::Max) {
            return Err(MetricError::Pooled(series.name()));
        }
        Ok(Self::Series(series, aggregate))
    }
}

/// Reads what follows `server.`.
fn server(text: &str, rest: &str) -> Result<Metric, MetricError> {
    let (name, summary) = rest.rsplit_once('.').ok_or_else(|| MetricError::NeedsServerAggregate(text.to_owned()))?;
    let aggregate = ServerAggregate::ALL.into_iter().find(|aggregate| aggregate.name() == summary);
    let aggregate = aggregate.ok_or_else(|| Metric::unknown(text))?;
    let metric = ServerMetric::new(name).ok_or_else(|| MetricError::NoServerMetric(name.to_owned()))?;
    Ok(Metric::Server(metric, aggregate))
}

/// Reads what follows `drift.`.
fn drifting(text: &str, rest: &str) -> Result<Drifting, MetricError> {
    if let Some(name) = rest.strip_prefix("server.") {
        let metric = ServerMetric::new(name).ok_or_else(|| MetricError::NoServerMetric(name.to_owned()))?;
        return Ok(Drifting::Server(metric));
    }
    match Series::ALL.into_iter().find(|series| series.name() == rest) {
        Some(series) if !series.is_pooled() && series != Series::Dns => Ok(Drifting::Series(series)),
        Some(_) => Err(MetricError::NoDrift(rest.to_owned())),
        None if rest.contains('.') => Err(MetricError::NoDrift(rest.to_owned())),
        None => Err(Metric::unknown(text)),
    }
}

/// The longest name that is compared with those there are, in bytes; a longer one is cut to so many characters.
const LONGEST_NAME: usize = 200;

impl Metric {
    /// The error for a text that is no metric, with the nearest name.
    fn unknown(text: &str) -> MetricError {
        // A distance costs the product of the lengths, and nobody misspells a metric into a paragraph.
        if text.len() > LONGEST_NAME {
            let name = text.chars().take(LONGEST_NAME - 1).chain(['…']).collect();
            return MetricError::Unknown { name, nearest: None };
        }
        let lower = text.to_ascii_lowercase();
        let nearest = Self::common_names()
            .into_iter()
            .map(|name| (strsim::damerau_levenshtein(&lower, &name), name))
            .min_by(|left, right| left.0.cmp(&right.0))
            .filter(|(distance, name)| *distance <= (name.len() / 3).max(1))
            .map(|(_, name)| name);
        MetricError::Unknown { name: text.to_owned(), nearest }
    }
}
