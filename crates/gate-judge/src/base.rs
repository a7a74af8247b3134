//! What stored runs say of each check's metric.

use std::collections::BTreeMap;

use gate_model::{
    Against, Aggregate, Baseline, Check, Metric, NoBaseline, Outcome, Percentile, Prior, Request, Rule, Series, Slo,
};
use gate_stats::mean::Resemblance;
use gate_stats::stored::{LogEstimate, RunNoise};
use gate_stats::{Quantile, Sorted, summary};

use crate::arms::Arms;
use crate::bill::Bill;
use crate::reach::parts;
use crate::requests::Requests;
use crate::rules::{over_all, point, rule};
use crate::scored::{Measured, Scored, Setting, count};
use crate::validity::LEAST_OK;
use crate::windowed::{self, Windowed};

/// What was measured before a run.
#[derive(Clone, Debug)]
pub(crate) struct Before<'a> {
    /// All of it.
    pub(crate) prior: &'a Prior,
    /// The stored runs that can be judged, newest first.
    pub(crate) kept: Vec<Kept<'a>>,
    /// The mean of their output tokens, by scenario.
    output: BTreeMap<u16, f64>,
}

impl<'a> Before<'a> {
    /// Looks into the stored runs.
    pub(crate) fn of(prior: &'a Prior) -> Self {
        let kept = Kept::of(&prior.baselines);
        let mut output: BTreeMap<u16, Vec<f64>> = BTreeMap::new();
        for one in kept.iter().flat_map(Kept::all).filter(|one| one.outcome() == Outcome::Ok) {
            output.entry(one.scenario()).or_default().extend(one.value(Series::OutputTokens));
        }
        let means = output.into_iter().filter_map(|(scenario, tokens)| Some((scenario, mean(tokens.into_iter())?)));
        Self { prior, output: means.collect(), kept }
    }
}

/// The judged requests of a stored run, of the scenarios that it answered enough of: everything that looks into stored
/// runs counts the same ones.
#[derive(Clone, Debug)]
pub(crate) struct Kept<'a> {
    /// Its judged requests of each scenario with what is known beside them. What it was compared with itself is of no
    /// interest.
    scenarios: BTreeMap<u16, (Arms<'a>, Setting<'a>)>,
}

impl<'a> Kept<'a> {
    /// Those of the runs that can be judged.
    pub(crate) fn of(baselines: &'a [Baseline]) -> Vec<Self> {
        let kept = |baseline: &'a Baseline| {
            let mut scenarios = scenarios(baseline)?;
            scenarios.retain(|_, (arms, _)| answered(arms) >= LEAST_OK);
            (!scenarios.is_empty()).then_some(Self { scenarios })
        };
        baselines.iter().filter_map(kept).collect()
    }

    /// All judged requests.
    pub(crate) fn all(&self) -> impl Iterator<Item = Request<'a>> + '_ {
        self.scenarios.values().flat_map(|(arms, _)| arms.target.iter().copied())
    }

    /// Those of one scenario.
    pub(crate) fn of_scenario(&self, scenario: u16) -> Requests<'a> {
        self.scenarios.get(&scenario).map(|(arms, _)| arms.target.clone()).unwrap_or_default()
    }

    /// What is known beside those of one scenario.
    pub(crate) fn setting(&self, scenario: u16) -> Setting<'a> {
        self.scenarios.get(&scenario).map(|(_, setting)| *setting).unwrap_or_default()
    }

    /// The same, by the objective of the run that is compared with them.
    pub(crate) fn scored<'s>(&self, scenario: u16, slo: &'s Slo) -> Scored<'s>
    where
        'a: 's,
    {
        Scored::new(self.of_scenario(scenario), slo).within(self.setting(scenario))
    }
}

/// The judged requests of a stored run's scenarios; `None` of one that cannot be judged.
fn scenarios(baseline: &Baseline) -> Option<BTreeMap<u16, (Arms<'_>, Setting<'_>)>> {
    let run = &baseline.run;
    let bill = Some(Bill::of(run));
    let mut scenarios = BTreeMap::new();
    for part in parts(run) {
        let Ok(reach) = &part.reach else { continue };
        let health = part.section.end.as_ref().map(|end| end.health);
        let target = Arms { reference: Requests::default(), ..reach.judged() };
        for (scenario, arms) in target.by_scenario() {
            let load = Some(run.header.spec.load_of(scenario));
            scenarios.insert(
                scenario,
                (arms, Setting { load, health, scrapes: part.scrapes, shards: part.section.shards, bill }),
            );
        }
    }
    (!scenarios.is_empty()).then_some(scenarios)
}

/// How many requests of the target are `ok`.
fn answered(arms: &Arms<'_>) -> u32 {
    count(arms.target.iter().filter(|one| one.outcome() == Outcome::Ok).count())
}

/// What a check against stored runs is compared with.
#[derive(Clone, Debug)]
pub(crate) enum Base {
    /// No stored run: its bound is fixed, or compares within the run.
    Unneeded,
    /// There is none.
    Missing(NoBaseline),
    /// Stored runs.
    Runs(StoredRuns),
}

/// What the stored runs have of a metric, as its check's rule needs it. It is the same at every look.
#[derive(Clone, Debug)]
pub(crate) struct StoredRuns {
    /// How many runs have it.
    pub(crate) runs: u32,
    /// How many requests it rests on.
    pub(crate) n: u32,
    /// The metric.
    pub(crate) values: Values,
    /// The mean of their output tokens.
    pub(crate) output: Option<f64>,
    /// How much runs are expected to differ.
    pub(crate) noise: RunNoise,
}

/// A metric in several runs.
#[derive(Clone, Debug)]
pub(crate) enum Values {
    /// One number each.
    Numbers(Vec<Number>),
    /// Amounts per second, which are numbers only beside those of the run that is compared with them.
    Windowed(Vec<Windowed>),
    /// All requests of all runs, with each run's median for the noise between them.
    Pooled {
        /// The values.
        values: Sorted,
        /// The medians above zero.
        medians: Vec<LogEstimate>,
    },
    /// Requests of a kind among all requests of all runs.
    Share(f64),
}

impl StoredRuns {
    /// How many of their requests a run is compared with of which so many are.
    pub(crate) fn requests(&self, here: u32) -> u32 {
        match &self.values {
            Values::Windowed(_) => self.runs.saturating_mul(here),
            _ => self.n,
        }
    }
}

impl Values {
    /// The numbers of a run and of the stored ones, and the requests of it that they rest on; `None` where there are none.
    pub(crate) fn numbers(&self, check: &Check, run: &Scored<'_>) -> Option<(Measured, Number, Vec<Number>)> {
        match self {
            Self::Numbers(numbers) => {
                let number = match rule(check) {
                    Rule::Stored => number(check.metric, run)?.0,
                    _ => Number::plain(point::seen(check, run)?.value),
                };
                Some((point::seen(check, run)?, number, numbers.clone()))
            }
            Self::Windowed(stored) => {
                let here = Windowed::of(check.metric, run)?;
                let all: Vec<&Windowed> = std::iter::once(&here).chain(stored).collect();
                let (n, numbers) = windowed::numbers(&all)?;
                let (number, stored) = numbers.split_first()?;
                Some((Measured { value: number.value, n }, *number, stored.to_vec()))
            }
            Self::Pooled { .. } | Self::Share(_) => None,
        }
    }
}

/// A metric in one run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Number {
    /// The estimate, in the metric's unit.
    pub(crate) value: f64,
    /// Its logarithm with the variance that the requests explain if they are independent; absent of zero.
    pub(crate) log: Option<LogEstimate>,
    /// How far they are not; nothing of what a run has once.
    pub(crate) resemblance: Resemblance,
}

impl Number {
    /// One of which nothing more is known.
    fn plain(value: f64) -> Self {
        Self { value, log: None, resemblance: Resemblance::default() }
    }
}

impl Base {
    /// What a check is compared with.
    pub(crate) fn of(check: &Check, before: &Before<'_>, slo: &Slo) -> Self {
        if check.bound.relative().is_none_or(|bound| bound.to != Against::Baseline) {
            return Self::Unneeded;
        }
        let prior = before.prior;
        if prior.baselines.is_empty() {
            return Self::Missing(why_none(prior));
        }
        let scored = before.kept.iter().map(|run| run.scored(check.scenario, slo));
        let scored = scored.map(|run| if let Metric::Spike(_) = check.metric { run.in_spike() } else { run });
        let scored: Vec<Scored<'_>> = scored.filter(|run| run.n() > 0).collect();
        let stored = stored(&over_all(check), &scored).map(|(runs, n, values)| StoredRuns {
            runs: count(runs),
            n,
            values,
            output: before.output.get(&check.scenario).copied(),
            noise: noise(check.metric, prior),
        });
        stored.map_or_else(|| Self::Missing(why_unused(check, prior)), Self::Runs)
    }
}

/// Why there is no baseline: for the last thing that was asked for.
fn why_none(prior: &Prior) -> NoBaseline {
    let Some(chosen) = &prior.chosen else { return NoBaseline::NotGiven };
    chosen.passed_over.last().map_or(NoBaseline::NoneSaved, |passed| passed.why.clone())
}

/// Why none of the stored runs says anything: all have too few answers, or no value of the metric.
fn why_unused(check: &Check, prior: &Prior) -> NoBaseline {
    let of_run = |baseline| Some(scenarios(baseline)?.get(&check.scenario).map_or(0, |(arms, _)| answered(arms)));
    match prior.baselines.iter().filter_map(of_run).max() {
        Some(ok) if ok < LEAST_OK => NoBaseline::TooFewOk { ok, needed: LEAST_OK },
        _ => NoBaseline::NotMeasured,
    }
}

/// What calibration found of a metric or, of a percentile, of its series' median; else what is usual.
pub(crate) fn noise(metric: Metric, prior: &Prior) -> RunNoise {
    let usual = RunNoise::default();
    let found = |metric: Metric| prior.noise.as_ref()?.tau.get(&metric.to_string()).copied();
    let median = match metric {
        Metric::Series(series, Aggregate::Percentile(_)) => {
            found(Metric::Series(series, Aggregate::Percentile(Percentile::P50)))
        }
        _ => None,
    };
    let tau = found(metric).or(median).filter(is_noise);
    RunNoise { tau: tau.unwrap_or(usual.tau), ..usual }
}

/// Whether a standard deviation from run to run is one that runs may have: with none nothing is uncertain, and beyond
/// 100 % nothing is ever found.
pub(crate) fn is_noise(tau: &f64) -> bool {
    *tau > 0.0 && *tau <= 1.0
}

/// The runs that have a check's metric, their requests, and what they have of it; `None` where none has it.
fn stored(check: &Check, runs: &[Scored<'_>]) -> Option<(usize, u32, Values)> {
    let windowed: Vec<Windowed> = runs.iter().filter_map(|run| Windowed::of(check.metric, run)).collect();
    if !windowed.is_empty() {
        let n = windowed.iter().map(Windowed::len).fold(0, u32::saturating_add);
        return Some((windowed.len(), n, Values::Windowed(windowed)));
    }
    match (rule(check), check.metric) {
        (Rule::Counted | Rule::Rate, metric) => {
            let shares: Vec<(u32, u32)> = runs.iter().filter_map(|run| share(metric, run)).collect();
            let n: u32 = shares.iter().map(|(_, n)| *n).fold(0, u32::saturating_add);
            let counted: f64 = shares.iter().map(|(counted, _)| f64::from(*counted)).sum();
            (n > 0).then(|| (shares.len(), n, Values::Share(counted / f64::from(n))))
        }
        (Rule::StoredTail, Metric::Series(series, _)) => {
            let each = runs.iter().map(|run| run.values(series));
            let each: Vec<Vec<f64>> = each.filter(|values| count(values.len()) >= LEAST_VALUES).collect();
            let median = Quantile::from_thousandths(Percentile::P50.thousandths()).ok()?;
            let medians =
                each.iter().filter_map(|values| LogEstimate::quantile(&Sorted::new(values.clone()).ok()?, median));
            let medians = medians.collect();
            let values = Sorted::new(each.concat()).ok()?;
            Some((each.len(), count(values.len()), Values::Pooled { values, medians }))
        }
        (rule, _) => {
            let number = |run: &Scored<'_>| match rule {
                Rule::Stored => number(check.metric, run),
                _ => {
                    let seen = point::seen(check, run).filter(|seen| seen.n >= LEAST_VALUES)?;
                    Some((Number::plain(seen.value), seen.n))
                }
            };
            let numbers: Vec<(Number, u32)> = runs.iter().filter_map(number).collect();
            let n = numbers.iter().map(|(_, n)| *n).fold(0, u32::saturating_add);
            let numbers: Vec<Number> = numbers.into_iter().map(|(number, _)| number).collect();
            (!numbers.is_empty()).then_some((numbers.len(), n, Values::Numbers(numbers)))
        }
    }
}

/// A metric in each of several runs that has it, as they can be compared with one another.
pub(crate) fn comparable(check: &Check, runs: &[Scored<'_>]) -> Vec<f64> {
    let windowed: Vec<Windowed> = runs.iter().filter_map(|run| Windowed::of(check.metric, run)).collect();
    match windowed::numbers(&windowed.iter().collect::<Vec<_>>()) {
        Some((_, numbers)) => numbers.into_iter().map(|number| number.value).collect(),
        None => runs.iter().filter_map(|run| point::seen(check, run)).map(|seen| seen.value).collect(),
    }
}

/// How many requests of a run are what a share counts, and of how many; `None` of none.
pub(crate) fn share(metric: Metric, run: &Scored<'_>) -> Option<(u32, u32)> {
    let counted = match metric {
        Metric::ErrorShare(kind) | Metric::ErrorCount(kind) => run.failed(kind),
        Metric::Attainment => count(run.good()?.filter(|good| *good).count()),
        _ => return None,
    };
    (run.n() > 0).then(|| (counted, run.n()))
}

/// The fewest values whose spread says anything.
const LEAST_VALUES: u32 = 5;

/// A run's estimate of a metric as it is compared with that of other runs, and the requests it rests on.
///
/// Percentiles are those of Harrell and Davis, who take all requests into account. What a run has once is taken as it
/// is, and nothing of it is the requests' own. `None` where there is no estimate, or one from too few values.
pub(crate) fn number(metric: Metric, run: &Scored<'_>) -> Option<(Number, u32)> {
    if let Metric::Spike(inner) = metric {
        return number(inner.metric(), &run.in_spike());
    }
    let measured = run.measure(metric).filter(|measured| measured.value.is_finite())?;
    let is_estimated = matches!(metric, Metric::Series(_, Aggregate::Percentile(_) | Aggregate::Mean));
    if is_estimated && measured.n < LEAST_VALUES {
        return None;
    }
    let (log, resemblance) = match metric {
        Metric::Series(series, Aggregate::Percentile(percentile)) if series != Series::SendLag => {
            let values = run.values(series);
            // Zero has no logarithm, and of nanoseconds and tokens 1 is as little.
            let resemblance = Resemblance::of(&values.iter().map(|value| value.max(1.0).ln()).collect::<Vec<f64>>());
            let quantile = Quantile::from_thousandths(percentile.thousandths()).ok()?;
            (LogEstimate::quantile(&Sorted::new(values).ok()?, quantile), resemblance)
        }
        Metric::Series(series, Aggregate::Mean) if series != Series::SendLag => {
            let values = run.values(series);
            (LogEstimate::mean(&values), Resemblance::of(&values))
        }
        _ => (LogEstimate::number(measured.value), Resemblance::default()),
    };
    let value = log.map_or(measured.value, |log| log.value.exp());
    Some((Number { value, log, resemblance }, measured.n))
}

/// The mean of some numbers; `None` of none.
pub(crate) fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    summary::summarize(&values.collect::<Vec<f64>>()).ok().map(|summary| summary.mean)
}

/// The median, between the middle two of an even number; `None` of none.
pub(crate) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let upper = values.get(values.len() / 2).copied()?;
    let lower = values.get(values.len().checked_sub(1)? / 2).copied()?;
    Some(f64::midpoint(lower, upper))
}
