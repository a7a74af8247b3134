//! What the server's own metrics said in a section, as one number.

use gate_model::{Nanos, Scrape, ServerAggregate, ServerMetric};
use gate_stats::summary;

/// How the names of counters end: they grow by what they are.
const COUNTERS: [&str; 4] = ["_total", "_count", "_sum", "_bucket"];

/// Whether a server's metric is what there is at a time, not what there has been so far.
pub(crate) fn is_gauge(metric: &ServerMetric) -> bool {
    let name = metric.as_str();
    let is_common_counter = matches!(name, "prefix_cache_queries" | "prefix_cache_hits" | "preemptions");
    !is_common_counter && !COUNTERS.iter().any(|ending| name.ends_with(ending))
}

/// Those within the load: warm-up comes before its epoch.
pub(crate) fn in_load(scrapes: &[Scrape]) -> impl Iterator<Item = &Scrape> {
    scrapes.iter().filter(|scrape| scrape.at >= Nanos::ZERO)
}

/// A metric's value in a scrape.
pub(crate) fn value(scrape: &Scrape, metric: ServerMetric) -> Option<f64> {
    scrape.values.iter().find(|(name, _)| *name == metric).map(|(_, value)| *value)
}

/// A metric over the load, as one number; `None` where it has no value there.
pub(crate) fn summed_up(
    scrapes: &[Scrape],
    shards: u32,
    metric: ServerMetric,
    aggregate: ServerAggregate,
) -> Option<f64> {
    let values: Vec<f64> = in_load(scrapes).filter_map(|scrape| value(scrape, metric)).collect();
    match aggregate {
        ServerAggregate::Max => values.iter().copied().reduce(f64::max),
        ServerAggregate::Mean => summary::summarize(&values).ok().map(|summary| summary.mean),
        ServerAggregate::Last => values.last().copied(),
        ServerAggregate::Delta => delta(scrapes, shards, metric),
    }
}

/// The change of a metric over the load, from the last scrape before it or, without one, from the first in it.
///
/// A gauge's is the last value less the first. A counter's is the sum of its steps as Prometheus takes an increase: one
/// that falls was started again, and counts from 0; so does one that comes later, since servers tell of many counters
/// only when they have counted something. Clocks of several shards differ a little, so that between them only a fall to
/// less than half is a new start.
pub(crate) fn delta(scrapes: &[Scrape], shards: u32, metric: ServerMetric) -> Option<f64> {
    in_load(scrapes).find_map(|scrape| value(scrape, metric))?;
    let base = scrapes.iter().rev().find(|scrape| scrape.at < Nanos::ZERO && scrape.error.is_none());
    let was_read = base.into_iter().chain(in_load(scrapes).filter(|scrape| scrape.error.is_none()));
    let values: Vec<Option<f64>> = was_read.map(|scrape| value(scrape, metric)).collect();
    let mut known = values.iter().copied().flatten();
    if is_gauge(&metric) {
        let first = known.next()?;
        return Some(known.last().map_or(0.0, |last| last - first));
    }
    let first = values.first().copied().flatten();
    let from = first.unwrap_or(0.0);
    let step = |(sum, before): (f64, f64), now: f64| match now {
        now if now >= before => (sum + (now - before), now),
        now if shards > 1 && now >= before / 2.0 => (sum, before),
        now => (sum + now, now),
    };
    let (sum, _) = known.fold((0.0, from), step);
    Some(sum)
}

/// Why the scrapes of a load say too little: more than half of them failed. The first failure's words.
pub(crate) fn mostly_failed(scrapes: &[Scrape]) -> Option<String> {
    let failed = in_load(scrapes).filter(|scrape| scrape.error.is_some()).count();
    let is_most = 2 * failed > in_load(scrapes).count();
    in_load(scrapes).find_map(|scrape| scrape.error.clone()).filter(|_| is_most)
}
