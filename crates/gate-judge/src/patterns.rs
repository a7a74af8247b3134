//! What a pattern of load brings to light, whether or not a check asks for it.

use std::collections::BTreeSet;

use gate_model::{Check, Drifting, Finding, Metric, Nanos, Pattern, PatternFound, Percentile, Series, ServerMetric};
use gate_stats::ranks;

use crate::rules::trend::Growth;
use crate::rules::{knee, recovery, trend};
use crate::scored::{Scored, count, nearest_rank};
use crate::scraped::is_gauge;

/// The growth per hour from which a drift is told of.
const DRIFTS: f64 = 0.01;
/// The error probability of telling of a drift that is smaller.
const DRIFT_LEVEL: f64 = 0.01;
/// How many of the first requests may be slow from too short a warm-up.
const FIRST: [usize; 2] = [5, 10];
/// How many of those after them they are compared with: soon after, so that the load is the same.
const NEXT: usize = 100;
/// Of them at least.
const LEAST_NEXT: usize = 20;
/// How many times slower they are at least.
const SLOWER: f64 = 1.5;
/// The error probability of telling of a warm-up that was long enough, shared by the two numbers of first requests.
const WARMUP_LEVEL: f64 = 0.001;

/// What the pattern of a scenario's load brought to light: the knee of a ramp, the recovery from a spike, and of a soak
/// the drift of TTFT, of TPOT and of each gauge of the server's own. Nothing where the pattern is too short for it.
pub(crate) fn found(scored: &Scored<'_>) -> Vec<PatternFound> {
    match scored.setting().load.map(|load| &load.pattern) {
        Some(Pattern::Ramp { .. }) => knee::found(scored).into_iter().collect(),
        Some(Pattern::Spike { .. }) => recovery::found(scored).into_iter().collect(),
        Some(Pattern::Soak) => drifting(scored).into_iter().filter_map(|what| trend::found(scored, what)).collect(),
        _ => Vec::new(),
    }
}

/// What a reader should know of a scenario's pattern that no check of it asks for.
pub(crate) fn findings(scored: &Scored<'_>, scenario: u16, name: &str, checks: &[Check]) -> Vec<Finding> {
    match scored.setting().load.map(|load| &load.pattern) {
        Some(Pattern::Soak) => {
            let is_asked = |metric: Metric| checks.iter().any(|one| one.scenario == scenario && one.metric == metric);
            let what = drifting(scored).into_iter().filter(|what| !is_asked(Metric::Drift(*what)));
            what.filter_map(|what| drifts(scored, what, name)).collect()
        }
        Some(Pattern::Ramp { .. } | Pattern::Steady) => warmup(scored, name).into_iter().collect(),
        _ => Vec::new(),
    }
}

/// What is looked at in a soak.
fn drifting(scored: &Scored<'_>) -> Vec<Drifting> {
    let told = scored.setting().scrapes.iter().flat_map(|scrape| scrape.values.iter().map(|(metric, _)| *metric));
    let told: BTreeSet<ServerMetric> = told.filter(is_gauge).collect();
    let series = [Series::Ttft, Series::Tpot].map(Drifting::Series);
    series.into_iter().chain(told.into_iter().map(Drifting::Server)).collect()
}

/// Whether something surely grows by more than it may unasked.
fn drifts(scored: &Scored<'_>, what: Drifting, name: &str) -> Option<Finding> {
    let growth = Growth::of(scored, what).ok().filter(|growth| growth.p_faster(DRIFTS) <= DRIFT_LEVEL)?;
    let per_hour = growth.per_hour();
    Some(Finding::Drifts { scenario: name.to_owned(), metric: Metric::Drift(what), per_hour })
}

/// Whether the first measured requests were slower than those soon after them.
fn warmup(scored: &Scored<'_>, name: &str) -> Option<Finding> {
    let most = FIRST.into_iter().max().unwrap_or_default() + NEXT;
    let ttft: Vec<f64> = scored.ok().filter_map(|request| request.value(Series::Ttft)).take(most).collect();
    let slow = FIRST.into_iter().filter_map(|first| {
        let (first, next) = ttft.split_at_checked(first)?;
        let next = next.get(..NEXT.min(next.len())).filter(|next| next.len() >= LEAST_NEXT)?;
        let p_value = ranks::p_larger(first, next).ok()?;
        let middle = |values: &[f64]| nearest_rank(values.to_vec(), Percentile::P50);
        let (slow, rest) = (middle(first)?, middle(next)?);
        let is_slow = p_value <= WARMUP_LEVEL / FIRST.len() as f64 && slow >= SLOWER * rest;
        is_slow.then_some((p_value, count(first.len()), slow, rest))
    });
    let (_, requests, first, rest) = slow.min_by(|one, other| one.0.total_cmp(&other.0))?;
    let (first, rest) = (Nanos(first as i64), Nanos(rest as i64));
    Some(Finding::WarmupAnomaly { scenario: name.to_owned(), requests, first, rest })
}
