//! Metrics: the names a check can use, their units, directions and definitions.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{Percentile, PercentileError, Series, Unit};

/// How a series becomes one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Aggregate {
    /// A percentile over `ok` requests, by nearest rank.
    Percentile(Percentile),
    /// A percentile over all measured requests, failures as +∞.
    PercentileOfAll(Percentile),
    /// The largest over `ok` requests.
    Max,
    /// The smallest over `ok` requests.
    Min,
    /// The mean over `ok` requests.
    Mean,
    /// The sample standard deviation over `ok` requests.
    Stddev,
}

/// A class of failed requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ErrorKind {
    /// Any failure.
    Any,
    /// 4xx answers except 429.
    Http4xx,
    /// 429 answers.
    Http429,
    /// 5xx answers, and error events in a stream that carry a 5xx, overloaded or server error.
    Http5xx,
    /// Connection or TLS failures.
    Connect,
    /// Any of the four timeouts.
    Timeout,
    /// Connections reset.
    Reset,
    /// Error events inside a stream.
    Stream,
    /// Streams that closed without an end.
    Truncated,
    /// Streams that ended well without a token.
    Empty,
    /// Answers that are not the dialect's format.
    Decode,
    /// One body instead of a stream.
    NotStreamed,
}

impl ErrorKind {
    /// Every kind, in the order reports show them.
    pub const ALL: [Self; 12] = [
        Self::Any,
        Self::Http4xx,
        Self::Http429,
        Self::Http5xx,
        Self::Connect,
        Self::Timeout,
        Self::Reset,
        Self::Stream,
        Self::Truncated,
        Self::Empty,
        Self::Decode,
        Self::NotStreamed,
    ];

    /// The name as written after `errors.`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Any => "rate",
            Self::Http4xx => "4xx",
            Self::Http429 => "429",
            Self::Http5xx => "5xx",
            Self::Connect => "connect",
            Self::Timeout => "timeout",
            Self::Reset => "reset",
            Self::Stream => "stream",
            Self::Truncated => "truncated",
            Self::Empty => "empty",
            Self::Decode => "decode",
            Self::NotStreamed => "not_streamed",
        }
    }
}

/// A number that a run has once.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scalar {
    /// Finished requests per second.
    ThroughputRequests,
    /// Output tokens per second.
    ThroughputOutputTokens,
    /// Input and output tokens per second.
    ThroughputTotalTokens,
    /// Σ (last token − first token) ÷ Σ output tokens, over `ok` requests.
    TpotEffective,
    /// Requests per second that were `ok` and within every `slo:` bound.
    Goodput,
    /// Requests per second that were really sent.
    AchievedRate,
    /// The client's CPU share of what it has.
    ClientCpu,
}

impl Scalar {
    /// Every scalar.
    pub const ALL: [Self; 7] = [
        Self::ThroughputRequests,
        Self::ThroughputOutputTokens,
        Self::ThroughputTotalTokens,
        Self::TpotEffective,
        Self::Goodput,
        Self::AchievedRate,
        Self::ClientCpu,
    ];

    /// The name as written in a check.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ThroughputRequests => "throughput.requests",
            Self::ThroughputOutputTokens => "throughput.output_tokens",
            Self::ThroughputTotalTokens => "throughput.total_tokens",
            Self::TpotEffective => "tpot.effective",
            Self::Goodput => "goodput",
            Self::AchievedRate => "achieved_rate",
            Self::ClientCpu => "client.cpu",
        }
    }
}

/// Which way a metric is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// Less is better.
    Lower,
    /// More is better.
    Higher,
    /// Neither.
    Neutral,
}

/// A metric: what one check is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Metric {
    /// A series summarised, such as `ttft.p95`.
    Series(Series, Aggregate),
    /// A share of failed requests, such as `errors.5xx`.
    ErrorShare(ErrorKind),
    /// A count of failed requests, such as `errors.5xx.count`.
    ErrorCount(ErrorKind),
    /// The share of measured requests that are `ok` and within every `slo:` bound.
    Attainment,
    /// A number the run has once.
    Scalar(Scalar),
}

/// Why a text is not a metric that can be checked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MetricError {
    /// No metric has this name.
    #[error("unknown metric `{name}`")]
    Unknown {
        /// The text as written.
        name: String,
        /// The nearest metric name, if one is near.
        nearest: Option<String>,
    },
    /// A series without a way to summarise it.
    #[error("`{0}` is measured per request: say which summary, such as `{0}.p95`")]
    NeedsAggregate(&'static str),
    /// Gaps summarised in a way that has no meaning for pooled measurements.
    #[error("`{0}` is pooled over requests: it has percentiles and a maximum, such as `{0}.p95`")]
    Pooled(&'static str),
    /// A bad percentile.
    #[error("`{name}`: {error}")]
    Percentile {
        /// The text as written.
        name: String,
        /// What is wrong.
        error: PercentileError,
    },
    /// A metric that is defined but not implemented in this version.
    #[error("`{0}` is not yet supported")]
    NotYet(String),
}

/// Metrics that are defined, whose rules come in a later version; a trailing dot means a prefix.
const NOT_YET: [&str; 7] = ["server.", "drift.", "spike.", "cost", "tokens.spent", "knee.rate", "recovery"];

impl Metric {
    /// The unit a bound on this metric is written in.
    #[must_use]
    pub fn unit(self) -> Unit {
        match self {
            Self::Series(series, _) => series.unit(),
            Self::ErrorShare(_) | Self::Attainment | Self::Scalar(Scalar::ClientCpu) => Unit::Share,
            Self::ErrorCount(_) => Unit::Count,
            Self::Scalar(Scalar::ThroughputOutputTokens | Scalar::ThroughputTotalTokens) => Unit::TokensPerSecond,
            Self::Scalar(Scalar::TpotEffective) => Unit::Time,
            Self::Scalar(_) => Unit::PerSecond,
        }
    }

    /// Which way the metric is better.
    #[must_use]
    pub fn direction(self) -> Direction {
        match self {
            Self::Series(series, _) if series.unit() == Unit::Count => Direction::Neutral,
            Self::Series(..)
            | Self::ErrorShare(_)
            | Self::ErrorCount(_)
            | Self::Scalar(Scalar::ClientCpu | Scalar::TpotEffective) => Direction::Lower,
            Self::Attainment | Self::Scalar(_) => Direction::Higher,
        }
    }

    /// The definition, in one sentence.
    #[must_use]
    pub fn doc(self) -> &'static str {
        match self {
            Self::Series(series, _) => series.doc(),
            Self::ErrorShare(_) => "requests with this outcome ÷ all measured requests",
            Self::ErrorCount(_) => "requests with this outcome",
            Self::Attainment => "the share of all measured requests that are ok and within every `slo:` bound at once",
            Self::Scalar(Scalar::ThroughputRequests) => "ok requests ÷ (last end − first send)",
            Self::Scalar(Scalar::ThroughputOutputTokens) => "output tokens of ok requests ÷ (last end − first send)",
            Self::Scalar(Scalar::ThroughputTotalTokens) => {
                "input and output tokens of ok requests ÷ (last end − first send)"
            }
            Self::Scalar(Scalar::TpotEffective) => {
                "Σ (last token − first token) ÷ Σ output tokens, over ok requests: a ratio of sums"
            }
            Self::Scalar(Scalar::Goodput) => "requests that are ok and within every `slo:` bound, per second",
            Self::Scalar(Scalar::AchievedRate) => {
                "requests that went out per second, against the plan's own times; under `load.concurrency` they go out \
                 when they have a slot"
            }
            Self::Scalar(Scalar::ClientCpu) => "CPU time of this process ÷ (elapsed × cores it may use)",
        }
    }

    /// Whether the metric depends on token counts, so that their source matters.
    #[must_use]
    pub fn needs_tokens(self) -> bool {
        match self {
            Self::Series(series, _) => series.needs_tokens(),
            Self::Scalar(scalar) => {
                matches!(scalar, Scalar::ThroughputOutputTokens | Scalar::ThroughputTotalTokens | Scalar::TpotEffective)
            }
            _ => false,
        }
    }

    /// Whether the metric is a latency of the server, which a slow client can falsify.
    #[must_use]
    pub fn is_latency(self) -> bool {
        match self {
            Self::Series(series, _) => {
                series.unit() == Unit::Time && !matches!(series, Series::SendLag | Series::CapWait)
            }
            Self::Attainment | Self::Scalar(Scalar::Goodput | Scalar::TpotEffective) => true,
            _ => false,
        }
    }

    /// The names that are offered to a person: every series with its common summaries, every error kind, every scalar.
    /// A host's name is looked up once, before the load: no check can be on that.
    #[must_use]
    pub fn common_names() -> Vec<String> {
        let mut names = Vec::new();
        for series in Series::ALL.into_iter().filter(|series| *series != Series::Dns) {
            for summary in ["p50", "p90", "p95", "p99", "max"] {
                names.push(format!("{}.{summary}", series.name()));
            }
            // Gaps are pooled: their mean and spread, and failed requests, have no meaning there.
            if !series.is_pooled() {
                for summary in ["mean", "min", "stddev", "p50.all", "p95.all", "p99.all"] {
                    names.push(format!("{}.{summary}", series.name()));
                }
            }
        }
        for kind in ErrorKind::ALL {
            names.push(format!("errors.{}", kind.name()));
            names.push(format!("errors.{}.count", kind.name()));
        }
        names.extend(Scalar::ALL.map(|scalar| scalar.name().to_owned()));
        names.push("attainment".to_owned());
        names
    }

    /// The error for a text that is no metric, with the nearest name.
    fn unknown(text: &str) -> MetricError {
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

impl FromStr for Metric {
    type Err = MetricError;

    fn from_str(text: &str) -> Result<Self, MetricError> {
        if text == "attainment" {
            return Ok(Self::Attainment);
        }
        if let Some(scalar) = Scalar::ALL.into_iter().find(|scalar| scalar.name() == text) {
            return Ok(Self::Scalar(scalar));
        }
        if NOT_YET.iter().any(|name| text == *name || (name.ends_with('.') && text.starts_with(name))) {
            return Err(MetricError::NotYet(text.to_owned()));
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

impl fmt::Display for Metric {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Series(series, aggregate) => {
                out.write_str(series.name())?;
                match aggregate {
                    Aggregate::Percentile(percentile) => write!(out, ".{percentile}"),
                    Aggregate::PercentileOfAll(percentile) => write!(out, ".{percentile}.all"),
                    Aggregate::Max => out.write_str(".max"),
                    Aggregate::Min => out.write_str(".min"),
                    Aggregate::Mean => out.write_str(".mean"),
                    Aggregate::Stddev => out.write_str(".stddev"),
                }
            }
            Self::ErrorShare(kind) => write!(out, "errors.{}", kind.name()),
            Self::ErrorCount(kind) => write!(out, "errors.{}.count", kind.name()),
            Self::Attainment => out.write_str("attainment"),
            Self::Scalar(scalar) => out.write_str(scalar.name()),
        }
    }
}

impl TryFrom<String> for Metric {
    type Error = MetricError;
    fn try_from(text: String) -> Result<Self, MetricError> {
        text.parse()
    }
}

impl From<Metric> for String {
    fn from(metric: Metric) -> Self {
        metric.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_common_name_reads_back() {
        for name in Metric::common_names() {
            assert_eq!(name.parse::<Metric>().unwrap().to_string(), name);
        }
        assert_eq!("ttft.p99.9".parse::<Metric>().unwrap().to_string(), "ttft.p99.9");
        assert_eq!("ttft.p99.9.all".parse::<Metric>().unwrap().to_string(), "ttft.p99.9.all");
    }

    #[test]
    fn a_misspelt_name_gets_the_nearest() {
        for (wrong, right) in [
            ("tfft.p95", "ttft.p95"),
            ("ttft.95", "ttft.p95"),
            ("errors.5x", "errors.5xx"),
            ("atainment", "attainment"),
            ("TTFT.p50", "ttft.p50"),
        ] {
            let Err(MetricError::Unknown { nearest, .. }) = wrong.parse::<Metric>() else { panic!("{wrong}") };
            assert_eq!(nearest.as_deref(), Some(right), "{wrong}");
        }
        assert_eq!("zzzzzzz".parse::<Metric>(), Err(MetricError::Unknown { name: "zzzzzzz".into(), nearest: None }));
    }

    #[test]
    fn what_is_not_there_yet_says_so() {
        for name in ["knee.rate", "server.queue.max", "drift.ttft"] {
            assert_eq!(name.parse::<Metric>(), Err(MetricError::NotYet(name.into())));
        }
        assert_eq!("ttft".parse::<Metric>(), Err(MetricError::NeedsAggregate("ttft")));
        assert_eq!("itl.mean".parse::<Metric>(), Err(MetricError::Pooled("itl")));
        assert!(matches!("ttft.p100".parse::<Metric>(), Err(MetricError::Percentile { .. })));
    }
}
