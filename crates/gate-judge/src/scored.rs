//! The requests that are scored, and what a metric's value over them is.

use gate_model::{
    Aggregate, ErrorKind, Health, Load, Metric, Nanos, Outcome, Pace, Percentile, Quantity, Request, Scalar, Scrape,
    Series, ServerMetric, Slo,
};
use gate_stats::{Quantile, summary};

use crate::bill::Bill;
use crate::requests::Requests;
use crate::rules::{knee, recovery, trend};
use crate::scraped;

/// The share of the planned rate that a run may be short of.
const RATE_SHORT: f64 = 0.05;

/// What is known of requests beside themselves.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Setting<'a> {
    /// The load they were part of, where it matters.
    pub(crate) load: Option<&'a Load>,
    /// The client's health; unknown while the load still runs.
    pub(crate) health: Option<Health>,
    /// What the server's own metrics said in their section.
    pub(crate) scrapes: &'a [Scrape],
    /// How many shards asked it.
    pub(crate) shards: u32,
    /// What the whole run used up; unknown while it still goes on.
    pub(crate) bill: Option<Bill>,
}

/// The measured requests of one arm that are judged together, in send order; none of them `cancelled`.
#[derive(Clone, Debug)]
pub(crate) struct Scored<'a> {
    requests: Requests<'a>,
    slo: &'a Slo,
    setting: Setting<'a>,
}

/// A metric's value with the requests it rests on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Measured {
    /// The value, in the metric's unit.
    pub(crate) value: f64,
    /// The requests.
    pub(crate) n: u32,
}

impl<'a> Scored<'a> {
    /// These requests, of which nothing else is known.
    pub(crate) fn new(requests: Requests<'a>, slo: &'a Slo) -> Self {
        Self { requests, slo, setting: Setting::default() }
    }

    /// The same, with what is known beside them.
    pub(crate) fn within(self, setting: Setting<'a>) -> Self {
        Self { setting, ..self }
    }

    /// What is known beside them.
    pub(crate) fn setting(&self) -> Setting<'a> {
        self.setting
    }

    /// The objective of each.
    pub(crate) fn slo(&self) -> &'a Slo {
        self.slo
    }

    /// Those that were due inside the spike.
    pub(crate) fn in_spike(&self) -> Self {
        let spike = self.setting.load.and_then(Load::spike);
        let is_inside = |due: Nanos| spike.is_some_and(|(from, to)| from <= due && due < to);
        let requests = self.all().filter(|request| is_inside(request.intended())).collect();
        Self { requests, ..self.clone() }
    }

    /// Whether answers decided when requests were sent.
    pub(crate) fn is_closed_loop(&self) -> bool {
        self.setting.load.is_some_and(|load| matches!(load.pace, Pace::Closed { .. }))
    }

    /// All of them.
    pub(crate) fn all(&self) -> impl Iterator<Item = Request<'a>> + Clone {
        self.requests.iter().copied()
    }

    /// How many.
    pub(crate) fn n(&self) -> u32 {
        count(self.requests.len())
    }

    /// Those that were answered completely.
    pub(crate) fn ok(&self) -> impl Iterator<Item = Request<'a>> {
        self.all().filter(|request| request.outcome() == Outcome::Ok)
    }

    /// Whether each failed in this way.
    pub(crate) fn failures(&self, kind: ErrorKind) -> impl Iterator<Item = bool> {
        self.all().map(move |request| request.outcome().is(kind, request.embedded_server_error()))
    }

    /// How many failed in this way.
    pub(crate) fn failed(&self, kind: ErrorKind) -> u32 {
        count(self.failures(kind).filter(|failed| *failed).count())
    }

    /// The share that failed in this way; `None` of nothing.
    pub(crate) fn share(&self, kind: ErrorKind) -> Option<f64> {
        (self.n() > 0).then(|| f64::from(self.failed(kind)) / f64::from(self.n()))
    }

    /// Whether each request was ok and within every `slo:` bound; `None` without such a bound.
    pub(crate) fn good(&self) -> Option<impl Iterator<Item = bool>> {
        let slo = self.slo;
        slo.is_given().then(|| self.all().map(move |request| request.is_good(slo)))
    }

    /// A series over `ok` requests, in send order. How late the client was is known of failed ones too.
    pub(crate) fn values(&self, series: Series) -> Vec<f64> {
        let of_all = series == Series::SendLag;
        self.all()
            .filter(|request| of_all || request.outcome() == Outcome::Ok)
            .filter_map(|request| request.value(series))
            .collect()
    }

    /// The values of a pooled series in each `ok` request that has any, in send order.
    pub(crate) fn gaps(&self, series: Series) -> impl Iterator<Item = Vec<f64>> {
        self.ok().map(move |request| request.gap_values(series)).filter(|gaps| !gaps.is_empty())
    }

    /// A percentile over all requests, failed ones with the `worst` value; `None` where there is none.
    pub(crate) fn percentile_of_all(&self, series: Series, percentile: Percentile, worst: f64) -> Option<Measured> {
        let values: Vec<f64> = self.all().filter_map(|request| of_all(request, series, worst)).collect();
        let n = count(values.len());
        Some(Measured { value: nearest_rank(values, percentile)?, n })
    }

    /// A metric's value; `None` where the run has none.
    pub(crate) fn measure(&self, metric: Metric) -> Option<Measured> {
        match metric {
            Metric::Series(series, aggregate) => self.aggregate(series, aggregate),
            Metric::ErrorShare(kind) => self.share(kind).map(|value| Measured { value, n: self.n() }),
            Metric::ErrorCount(kind) => {
                (self.n() > 0).then(|| Measured { value: f64::from(self.failed(kind)), n: self.n() })
            }
            Metric::Attainment => {
                let good = self.good()?.filter(|good| *good).count();
                (self.n() > 0).then(|| Measured { value: good as f64 / f64::from(self.n()), n: self.n() })
            }
            Metric::Scalar(scalar) => self.scalar(scalar).map(|value| Measured { value, n: self.n() }),
            Metric::Spike(inner) => self.in_spike().measure(inner.metric()),
            Metric::Server(metric, aggregate) => {
                let value = scraped::summed_up(self.setting.scrapes, self.setting.shards, metric, aggregate)?;
                Some(Measured { value, n: count(self.scraped(metric).count()) })
            }
            Metric::Drift(what) => {
                trend::found(self, what)?.value.map(|value| Measured { value: value.value, n: self.n() })
            }
        }
    }

    /// A metric's value with its unit.
    pub(crate) fn quantity(&self, metric: Metric) -> Option<Quantity> {
        self.measure(metric).map(|measured| Quantity { value: measured.value, unit: metric.unit() })
    }

    /// What the server said of a metric in their section, and when, in order of time; not what it said in warm-up.
    pub(crate) fn scraped(&self, metric: ServerMetric) -> impl Iterator<Item = (Nanos, f64)> + 'a {
        let value = move |scrape: &Scrape| Some((scrape.at, scraped::value(scrape, metric)?));
        scraped::in_load(self.setting.scrapes).filter_map(value)
    }

    fn aggregate(&self, series: Series, aggregate: Aggregate) -> Option<Measured> {
        let (n, values) = if series.is_pooled() {
            let gaps: Vec<Vec<f64>> = self.gaps(series).collect();
            (gaps.len(), gaps.concat())
        } else {
            let values = self.values(series);
            (values.len(), values)
        };
        let value = match aggregate {
            Aggregate::Percentile(percentile) => nearest_rank(values, percentile)?,
            Aggregate::PercentileOfAll(percentile) => {
                return self.percentile_of_all(series, percentile, f64::INFINITY);
            }
            Aggregate::Max => summary::summarize(&values).ok()?.max,
            Aggregate::Min => summary::summarize(&values).ok()?.min,
            Aggregate::Mean => summary::summarize(&values).ok()?.mean,
            Aggregate::Stddev => summary::summarize(&values).ok()?.standard_deviation?,
        };
        Some(Measured { value, n: count(n) })
    }

    fn scalar(&self, scalar: Scalar) -> Option<f64> {
        let per_second = |amount: f64| self.window_secs().map(|seconds| amount / seconds);
        // Adding from +0: the sum of nothing is -0 otherwise, and is printed so.
        let sum = |series| self.values(series).iter().fold(0.0, |sum, value| sum + value);
        let output = || sum(Series::OutputTokens);
        match scalar {
            Scalar::ThroughputRequests => per_second(self.ok().count() as f64),
            Scalar::ThroughputOutputTokens => per_second(output()),
            Scalar::ThroughputTotalTokens => per_second(output() + sum(Series::InputTokens)),
            Scalar::TpotEffective => self.tpot_effective(),
            Scalar::Goodput => per_second(self.good()?.filter(|good| *good).count() as f64),
            Scalar::AchievedRate => self.rates().map(|rates| rates.achieved),
            Scalar::ClientCpu => self.setting.health?.cpu_share,
            Scalar::Cost => self.setting.bill?.cost(),
            Scalar::TokensSpent => self.setting.bill.map(|bill| bill.tokens()),
            Scalar::KneeRate => knee::found(self)?.value.map(|value| value.value),
            Scalar::Recovery => recovery::found(self)?.value.map(|value| value.value),
        }
    }

    /// Σ (last token − first token) ÷ Σ output tokens, over `ok` requests; `None` without tokens.
    fn tpot_effective(&self) -> Option<f64> {
        let (mut time, mut tokens) = (0.0, 0.0);
        for request in self.ok() {
            if let (Some(first), Some(last), Some((output, _))) =
                (request.first_token(), request.last_token(), request.output_tokens())
            {
                time += (last - first).0 as f64;
                tokens += output as f64;
            }
        }
        (tokens > 0.0).then(|| time / tokens)
    }

    /// From the first `sent` to the last `end`, in seconds; `None` where that is no time at all.
    fn window_secs(&self) -> Option<f64> {
        let first = self.all().filter_map(Request::sent).min()?;
        let last = self.all().filter_map(Request::end).max()?;
        Some((last - first).as_secs_f64()).filter(|seconds| *seconds > 0.0)
    }

    /// The rate of the plan's own times, and how much of it was kept; `None` where the plan spans no time. Later turns are
    /// due when an answer has ended, which is no time of the plan's.
    pub(crate) fn rates(&self) -> Option<Rates> {
        let times = |point: fn(Request<'a>) -> Option<Nanos>| -> Vec<Times> {
            let arrivals = self.all().filter(|request| request.turn() == 0);
            arrivals.map(|request| (request.intended(), point(request))).collect()
        };
        let taken_up = times(Request::start);
        let behind = tail(&taken_up).filter_map(|(intended, start)| Some(((*start)? - *intended).as_secs_f64()));
        Some(Rates {
            planned: planned_rate(&taken_up)?,
            taken_up: kept_rate(&taken_up)?,
            achieved: kept_rate(&times(Request::went_out))?,
            behind_secs: behind.reduce(f64::min)?.max(0.0),
        })
    }
}

/// When a request was due, and when it came to some point.
pub(crate) type Times = (Nanos, Option<Nanos>);

/// The rate at which requests, in send order, were due; `None` where that spans no time.
fn planned_rate(times: &[Times]) -> Option<f64> {
    let ((first, _), (last, _)) = (times.first()?, times.last()?);
    let given = (*last - *first).as_secs_f64();
    let spaces = times.len().checked_sub(1).filter(|_| given > 0.0)? as f64;
    Some(spaces / given)
}

/// The rate at which they came to the point, from when the first was due.
///
/// What can't keep the rate falls further and further behind, so the best of the last requests counts: one pause
/// at the end is no short rate.
pub(crate) fn kept_rate(times: &[Times]) -> Option<f64> {
    let (first, _) = times.first()?;
    let shares = tail(times).filter_map(|(intended, point)| {
        let (given, taken) = (*intended - *first, (*point)? - *first);
        (given > Nanos::ZERO).then(|| given.as_secs_f64() / taken.max(given).as_secs_f64())
    });
    Some(planned_rate(times)? * shares.reduce(f64::max)?)
}

/// The last fifth of the requests, and at least five.
fn tail(times: &[Times]) -> impl Iterator<Item = &Times> {
    times.iter().rev().take(times.len().div_ceil(5).max(5))
}

/// Requests per second, planned and achieved.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rates {
    /// By the plan's own times.
    pub(crate) planned: f64,
    /// As the client took them up.
    pub(crate) taken_up: f64,
    /// As they went out: a concurrency cap holds them back.
    pub(crate) achieved: f64,
    /// How far the client was behind the plan at the end, in seconds.
    pub(crate) behind_secs: f64,
}

impl Rates {
    /// Whether a rate falls short of the planned one.
    pub(crate) fn is_short(&self, rate: f64) -> bool {
        rate < (1.0 - RATE_SHORT) * self.planned
    }
}

/// A request's value where failures count: they have the `worst` value; `None` where it is undefined.
pub(crate) fn of_all(request: Request<'_>, series: Series, worst: f64) -> Option<f64> {
    if request.outcome() == Outcome::Ok { request.value(series) } else { Some(worst) }
}

/// The nearest-rank estimate; `None` of nothing, and where a value has no rank.
pub(crate) fn nearest_rank(mut values: Vec<f64>, percentile: Percentile) -> Option<f64> {
    let quantile = Quantile::from_thousandths(percentile.thousandths()).ok()?;
    if values.iter().any(|value| value.is_nan()) {
        return None;
    }
    let place = quantile.rank(values.len()).checked_sub(1)?;
    // Only one value is asked for, so the others need no order.
    let (_, value, _) = values.select_nth_unstable_by(place, f64::total_cmp);
    Some(*value)
}

/// A count as the file formats hold it.
pub(crate) fn count(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// `1 − share`. In hundredths the difference is exact: in doubles 1 − .95 is not .05.
pub(crate) fn complement(share: f64) -> f64 {
    (100.0 - 100.0 * share) / 100.0
}
