//! Metrics: the names a check can use, their units, directions and definitions.

mod read;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::{Percentile, PercentileError, Series, ServerMetric, Unit};

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
    /// What the tokens of all requests cost, by the spec's prices.
    Cost,
    /// Input and output tokens of all requests.
    TokensSpent,
    /// The goodput past the capacity knee of a ramp.
    KneeRate,
    /// From the end of a spike to when TTFT is back where it was, and stays.
    Recovery,
}

impl Scalar {
    /// Every scalar.
    pub const ALL: [Self; 11] = [
        Self::ThroughputRequests,
        Self::ThroughputOutputTokens,
        Self::ThroughputTotalTokens,
        Self::TpotEffective,
        Self::Goodput,
        Self::AchievedRate,
        Self::ClientCpu,
        Self::Cost,
        Self::TokensSpent,
        Self::KneeRate,
        Self::Recovery,
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
            Self::Cost => "cost",
            Self::TokensSpent => "tokens.spent",
            Self::KneeRate => "knee.rate",
            Self::Recovery => "recovery",
        }
    }
}

/// A per-run metric that can also be taken over the requests due inside the spikes alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PerRun {
    /// A series summarised.
    Series(Series, Aggregate),
    /// A share of failed requests.
    ErrorShare(ErrorKind),
    /// A count of failed requests.
    ErrorCount(ErrorKind),
    /// The share of requests that are `ok` and within every `slo:` bound.
    Attainment,
    /// A number that requests have once together.
    Scalar(Scalar),
}

impl PerRun {
    /// The metric over the whole run.
    #[must_use]
    pub fn metric(self) -> Metric {
        match self {
            Self::Series(series, aggregate) => Metric::Series(series, aggregate),
            Self::ErrorShare(kind) => Metric::ErrorShare(kind),
            Self::ErrorCount(kind) => Metric::ErrorCount(kind),
            Self::Attainment => Metric::Attainment,
            Self::Scalar(scalar) => Metric::Scalar(scalar),
        }
    }
}

/// What may grow over a long run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Drifting {
    /// A series: its median over time.
    Series(Series),
    /// A metric of the server's own.
    Server(ServerMetric),
}

/// How the values of a server's metric over a run become one number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ServerAggregate {
    /// The largest.
    Max,
    /// The mean over the scrapes.
    Mean,
    /// The last.
    Last,
    /// The last less the first: what a counter counted.
    Delta,
}

impl ServerAggregate {
    /// Every one.
    pub const ALL: [Self; 4] = [Self::Max, Self::Mean, Self::Last, Self::Delta];

    /// The name as written in a check.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Max => "max",
            Self::Mean => "mean",
            Self::Last => "last",
            Self::Delta => "delta",
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
    /// The same over the requests due inside the spikes, such as `spike.ttft.p95`.
    Spike(PerRun),
    /// Growth per hour, such as `drift.tpot`.
    Drift(Drifting),
    /// A metric of the server's own, such as `server.kv_cache_usage.max`.
    Server(ServerMetric, ServerAggregate),
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
    /// A metric of the server's without a way to summarise it.
    #[error("`{0}` is read many times in a run: say which summary, `{0}.max`, `.mean`, `.last` or `.delta`")]
    NeedsServerAggregate(String),
    /// A name that no server's metric can have.
    #[error("`{0}` is no name of a server's metric: letters, digits, `_` and `:`, at most {most}", most = ServerMetric::LONGEST)]
    NoServerMetric(String),
    /// Something that has no drift.
    #[error(
        "`{0}` has no drift: `drift.ttft`, `drift.tpot` and the other series measured once a request do, and `drift.server.NAME`"
    )]
    NoDrift(String),
    /// Something that has no value inside a spike.
    #[error("`{0}` is of the whole run: it has no value inside the spikes")]
    NotInSpikes(String),
}

impl Metric {
    /// The unit a bound on this metric is written in.
    #[must_use]
    pub fn unit(self) -> Unit {
        match self {
            Self::Series(series, _) => series.unit(),
            Self::Spike(inner) => inner.metric().unit(),
            Self::Drift(_) => Unit::PerHour,
            Self::Server(metric, _) => metric.unit(),
            Self::ErrorShare(_) | Self::Attainment | Self::Scalar(Scalar::ClientCpu) => Unit::Share,
            Self::ErrorCount(_) | Self::Scalar(Scalar::TokensSpent) => Unit::Count,
            Self::Scalar(Scalar::Cost) => Unit::Dollars,
            Self::Scalar(Scalar::Recovery) => Unit::Time,
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
            | Self::Drift(_)
            | Self::Scalar(
                Scalar::ClientCpu | Scalar::TpotEffective | Scalar::Cost | Scalar::TokensSpent | Scalar::Recovery,
            ) => Direction::Lower,
            Self::Attainment | Self::Scalar(_) => Direction::Higher,
            Self::Spike(inner) => inner.metric().direction(),
            Self::Server(metric, _) => metric.direction(),
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
            Self::Scalar(Scalar::Cost) => {
                "what the tokens of all requests cost, warm-up and both arms included, by the server's usage and the \
                 spec's `prices`"
            }
            Self::Scalar(Scalar::TokensSpent) => {
                "input and output tokens of all requests, warm-up and both arms included, by the server's usage"
            }
            Self::Scalar(Scalar::KneeRate) => {
                "ok requests per second from where a ramp's requests stop being good, to its end"
            }
            Self::Scalar(Scalar::Recovery) => {
                "from the end of a spike to the first request from which TTFT stays at or below its P95 before the spike"
            }
            Self::Spike(_) => "the same metric over the requests due inside the spikes",
            Self::Drift(_) => {
                "growth per hour of the medians of equal stretches of the run, by the slope of Theil and Sen"
            }
            Self::Server(metric, _) => metric.doc(),
        }
    }

    /// Whether the metric depends on token counts, so that their source matters.
    #[must_use]
    pub fn needs_tokens(self) -> bool {
        match self {
            Self::Series(series, _) => series.needs_tokens(),
            Self::Scalar(scalar) => matches!(
                scalar,
                Scalar::ThroughputOutputTokens
                    | Scalar::ThroughputTotalTokens
                    | Scalar::TpotEffective
                    | Scalar::Cost
                    | Scalar::TokensSpent
            ),
            Self::Spike(inner) => inner.metric().needs_tokens(),
            Self::Drift(Drifting::Series(series)) => series.needs_tokens(),
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
            Self::Attainment
            | Self::Scalar(Scalar::Goodput | Scalar::TpotEffective | Scalar::KneeRate | Scalar::Recovery) => true,
            Self::Spike(inner) => inner.metric().is_latency(),
            Self::Drift(Drifting::Series(series)) => series.unit() == Unit::Time && series != Series::SendLag,
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
        names.extend(
            ["ttft.p50", "ttft.p95", "errors.rate", "attainment", "goodput"].map(|name| format!("spike.{name}")),
        );
        names.extend([Series::Ttft, Series::Tpot, Series::E2e].map(|series| format!("drift.{}", series.name())));
        for metric in ServerMetric::COMMON {
            names.extend(ServerAggregate::ALL.map(|summary| format!("server.{metric}.{}", summary.name())));
            names.push(format!("drift.server.{metric}"));
        }
        names
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
            Self::Spike(inner) => write!(out, "spike.{}", inner.metric()),
            Self::Drift(Drifting::Series(series)) => write!(out, "drift.{}", series.name()),
            Self::Drift(Drifting::Server(metric)) => write!(out, "drift.server.{metric}"),
            Self::Server(metric, aggregate) => write!(out, "server.{metric}.{}", aggregate.name()),
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
    fn what_is_no_metric_says_what_would_be() {
        for name in ["knee.rate", "server.queue.max", "server.vllm:num_requests_running.delta", "drift.server.memory"] {
            assert_eq!(name.parse::<Metric>().unwrap().to_string(), name);
        }
        let error = |name: &str| name.parse::<Metric>().unwrap_err().to_string();
        assert!(error("server.running").contains("server.running.max"));
        assert!(error("server.a-b.max").contains("no name of a server's metric"));
        assert!(error("drift.errors.rate").contains("no drift"));
        assert!(error("drift.itl").contains("no drift"));
        assert!(error("spike.client.cpu").contains("inside the spikes"));
        assert!(error("spike.recovery").contains("inside the spikes"));
        assert_eq!("ttft".parse::<Metric>(), Err(MetricError::NeedsAggregate("ttft")));
        assert_eq!("itl.mean".parse::<Metric>(), Err(MetricError::Pooled("itl")));
        assert!(matches!("ttft.p100".parse::<Metric>(), Err(MetricError::Percentile { .. })));
    }
}
