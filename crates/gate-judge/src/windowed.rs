//! Amounts per second and the rate of requests, compared over as many requests as all runs have.
//!
//! A run of 30 requests has another throughput than one of 100 on the same server: the answer to the last request counts
//! to the time in both, and the gaps between arrivals are not the same. So only the first requests of each run are
//! compared, as many as the shortest has.

use gate_model::{Metric, Nanos, Outcome, Request, Scalar, Series};
use gate_stats::mean::Resemblance;
use gate_stats::stored::LogEstimate;

use crate::base::Number;
use crate::scored::{Scored, count, kept_rate};

/// What each request of a run adds, in send order.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Windowed {
    per: Per,
    /// Whether answers decided when requests were sent: then they are what is measured, and no chance of the plan's.
    is_closed_loop: bool,
    requests: Vec<Part>,
}

/// By what the amounts are divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Per {
    /// The time from the first request to the last answer.
    Time,
    /// The time in which the requests went out.
    Sending,
}

/// What a request adds, and when.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Part {
    intended: Nanos,
    went_out: Option<Nanos>,
    sent: Option<Nanos>,
    end: Option<Nanos>,
    amount: f64,
}

impl Windowed {
    /// The parts of a metric; `None` of one that is no amount per second, and of goodput without an objective.
    pub(crate) fn of(metric: Metric, run: &Scored<'_>) -> Option<Self> {
        if let Metric::Spike(inner) = metric {
            return Self::of(inner.metric(), &run.in_spike());
        }
        let ok = |one: Request<'_>, amount: f64| if one.outcome() == Outcome::Ok { amount } else { 0.0 };
        let tokens = |one: Request<'_>, series| ok(one, one.value(series).unwrap_or(0.0));
        let amounts: Vec<f64> = match metric {
            Metric::Scalar(Scalar::ThroughputRequests) => run.all().map(|one| ok(one, 1.0)).collect(),
            Metric::Scalar(Scalar::ThroughputOutputTokens) => {
                run.all().map(|one| tokens(one, Series::OutputTokens)).collect()
            }
            Metric::Scalar(Scalar::ThroughputTotalTokens) => {
                run.all().map(|one| tokens(one, Series::OutputTokens) + tokens(one, Series::InputTokens)).collect()
            }
            Metric::Scalar(Scalar::Goodput) => run.good()?.map(|good| f64::from(u8::from(good))).collect(),
            Metric::Scalar(Scalar::AchievedRate) => run.all().map(|_| 1.0).collect(),
            _ => return None,
        };
        let per = if metric == Metric::Scalar(Scalar::AchievedRate) { Per::Sending } else { Per::Time };
        let part = |(one, amount): (Request<'_>, f64)| Part {
            intended: one.intended(),
            went_out: one.went_out(),
            sent: one.sent(),
            end: one.end(),
            amount,
        };
        let requests = run.all().zip(amounts).map(part).collect();
        Some(Self { per, is_closed_loop: run.is_closed_loop(), requests })
    }

    /// How many requests there are.
    pub(crate) fn len(&self) -> u32 {
        count(self.requests.len())
    }

    /// The amount per second over the first requests, with the variance of its logarithm that the amounts explain and, if
    /// they count, the gaps between the requests; `None` where they took no time.
    fn number(&self, first: usize, arrivals: Arrivals) -> Option<Number> {
        let parts = || self.requests.iter().take(first);
        let amounts: Vec<f64> = parts().map(|part| part.amount).collect();
        let value = match self.per {
            Per::Time => {
                let sent = parts().filter_map(|part| part.sent).min()?;
                let end = parts().filter_map(|part| part.end).max()?;
                let seconds = Some((end - sent).as_secs_f64()).filter(|seconds| *seconds > 0.0)?;
                amounts.iter().fold(0.0, |sum, amount| sum + amount) / seconds
            }
            Per::Sending => kept_rate(&parts().map(|part| (part.intended, part.went_out)).collect::<Vec<_>>())?,
        };
        let variance = |values: &[f64]| LogEstimate::mean(values).map_or(0.0, |log| log.variance);
        let arrivals = match arrivals {
            Arrivals::Alike => 0.0,
            Arrivals::Differ => variance(&self.gaps(first)),
        };
        let variance = variance(&amounts) + arrivals;
        let log = LogEstimate::number(value).map(|log| LogEstimate { variance, ..log });
        Some(Number { value, log, resemblance: Resemblance::default() })
    }

    /// The times between the first requests' planned arrivals, in nanoseconds.
    fn gaps(&self, first: usize) -> Vec<f64> {
        let parts = || self.requests.iter().take(first);
        parts().zip(parts().skip(1)).map(|(one, next)| (next.intended - one.intended).0 as f64).collect()
    }
}

/// Whether requests came at the same times in all runs, as they do by one seed, or no times were planned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Arrivals {
    Alike,
    Differ,
}

/// The number of each run over as many requests as all of them have, and how many those are; `None` where one has none.
pub(crate) fn numbers(runs: &[&Windowed]) -> Option<(u32, Vec<Number>)> {
    let n = runs.iter().map(|run| run.len()).min()?;
    let first = usize::try_from(n).ok()?;
    let gaps = runs.first()?.gaps(first);
    let is_closed_loop = runs.iter().any(|run| run.is_closed_loop);
    let alike = is_closed_loop || runs.iter().all(|run| run.gaps(first) == gaps);
    let arrivals = if alike { Arrivals::Alike } else { Arrivals::Differ };
    let numbers: Option<Vec<Number>> = runs.iter().map(|run| run.number(first, arrivals)).collect();
    Some((n, numbers?))
}
