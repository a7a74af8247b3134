//! What a reader should know of what a run is compared with.

use std::collections::BTreeSet;

use gate_model::{
    Against, Aggregate, Arm, CheckVerdict, Difference, Endpoint, Finding, Metric, OutcomeCount, Prior, Quantity,
    Request, Rule, Run, Sample, Series,
};
use gate_stats::stored::is_blind;

use super::{failures, samples, tally};
use crate::base::{self, Before, Kept};
use crate::judge::Decided;
use crate::rules::paired::{Pairs, likeness};
use crate::scored::{Scored, count};
use crate::validity::is_of_work;

/// The share by which lengths may differ.
const LENGTH_DRIFT: f64 = 0.10;
/// The change for the better that no server makes over night.
const IMPROVED: f64 = 0.60;
/// Spreads less alike than this are of different shapes.
const UNLIKE: f64 = 0.6;
/// The fewest runs in which creep can be told from noise.
const CREEP_RUNS: usize = 10;

/// Everything worth saying of a comparison.
pub(crate) fn of_run(run: &Run, decided: &Decided<'_>, checks: &[CheckVerdict], before: &Before<'_>) -> Vec<Finding> {
    let spec = &run.header.spec;
    let arms = &decided.arms;
    let mut findings = Vec::new();
    findings.extend(shared_server(run));
    findings.extend(checks.iter().filter_map(noisy));
    if decided.is_judged() {
        findings.extend(checks.iter().filter_map(|verdict| shapes(verdict, run, decided)));
    }
    findings.extend(checks.iter().filter_map(improved));
    let target = Scored::new(arms.target.clone(), &spec.slo);
    if spec.needs_baseline() {
        let kept = &before.kept;
        let stored = kept.iter().flat_map(Kept::all).collect();
        findings.extend(lengths(&target, &Scored::new(stored, &spec.slo)));
        let here = samples(run, &arms.target, Arm::Target);
        let of_newest = |newest: &Kept<'_>| {
            let there: Vec<&Sample> = newest.all().filter_map(Request::sample).collect();
            models(&here, &there)
        };
        findings.extend(kept.first().into_iter().flat_map(of_newest));
        findings.extend(creep(run, before.prior));
    }
    let reference = Scored::new(arms.reference.clone(), &spec.slo);
    findings.extend(lengths(&target, &reference));
    let told = samples(run, &arms.reference, Arm::Reference);
    let failed = failures(&arms.reference, &told);
    findings.extend(failed.map(|(OutcomeCount { outcome, count }, message)| Finding::ReferenceFailure {
        outcome,
        count,
        message,
    }));
    findings
}

/// Whether both arms are one server: the same URL, or the same address without a proxy between.
fn shared_server(run: &Run) -> Option<Finding> {
    // Another tool's file says nothing of where the reference was.
    if run.header.imported_from.is_some() {
        return None;
    }
    let spec = &run.header.spec;
    let url = |endpoint: &Endpoint| match endpoint {
        Endpoint::Url(url) => Some(url.trim_end_matches('/').to_owned()),
        Endpoint::Sim(_) => None,
    };
    let (target, reference) = (url(&spec.target.endpoint)?, url(&spec.reference.as_ref()?.endpoint)?);
    if target == reference {
        return Some(Finding::SharedServer { address: target });
    }
    let end = run.end.as_ref()?;
    let (target, reference) = (end.reached.as_ref()?, end.reference.as_ref()?.reached.as_ref()?);
    let address = target.addresses.first()?;
    let is_shared = target.proxy.is_none() && reference.proxy.is_none() && reference.addresses.first() == Some(address);
    is_shared.then(|| Finding::SharedServer { address: address.clone() })
}

/// Whether a check against stored runs cannot see its own tolerance.
fn noisy(verdict: &CheckVerdict) -> Option<Finding> {
    let comparison = verdict.evidence.as_ref()?.comparison.as_ref()?;
    let (noise, tolerance) = (comparison.noise?, comparison.tolerance?);
    is_blind(noise, tolerance).then(|| Finding::NoisyBaseline { check: verdict.check.to_string(), noise, tolerance })
}

/// Whether the arms' values are spread so differently that their tails cannot be compared exactly.
fn shapes(verdict: &CheckVerdict, run: &Run, decided: &Decided<'_>) -> Option<Finding> {
    let (Rule::PairedTail, Metric::Series(series, _)) = (verdict.rule, verdict.check.metric) else { return None };
    verdict.evidence.as_ref()?;
    let arms = decided.arms.of_scenario(verdict.check.scenario);
    let slo = &run.header.spec.slo;
    let pairs = Pairs::of(series, &Scored::new(arms.target, slo), &Scored::new(arms.reference, slo));
    let ratio = likeness(&pairs)?;
    (ratio < UNLIKE).then_some(Finding::ShapesDiffer { metric: verdict.check.metric, ratio })
}

/// Whether a metric became better than a server does.
fn improved(verdict: &CheckVerdict) -> Option<Finding> {
    let comparison = verdict.evidence.as_ref()?.comparison.as_ref()?;
    let change = comparison.change.filter(|_| is_of_work(verdict.check.metric) && !is_share(verdict.check.metric))?;
    let against = verdict.check.bound.relative()?;
    let better = if verdict.check.op.wants_more() { change } else { -change };
    let is_told = matches!(against.to, Against::Baseline | Against::Reference);
    (is_told && better > IMPROVED).then(|| Finding::Improved { check: verdict.check.to_string(), change })
}

fn is_share(metric: Metric) -> bool {
    metric.unit() == gate_model::Unit::Share
}

/// Lengths, and tokens read from a cache, against those they are compared with.
fn lengths(here: &Scored<'_>, there: &Scored<'_>) -> Vec<Finding> {
    let drift = |series: Series| {
        let mean = |scored: &Scored<'_>| base::mean(scored.values(series).into_iter());
        let (base, seen) = (mean(there)?, mean(here)?);
        let metric = Metric::Series(series, Aggregate::Mean);
        ((seen - base).abs() > LENGTH_DRIFT * base.abs()).then_some(Finding::LengthsMoved { metric, base, seen })
    };
    [Series::InputTokens, Series::OutputTokens, Series::CachedTokens].into_iter().filter_map(drift).collect()
}

/// Models and builds of them that answer, against those of the newest baseline.
fn models(here: &[&Sample], newest: &[&Sample]) -> Vec<Finding> {
    let moved = |what: &str, name: fn(&Sample) -> Option<&str>| {
        let names = |samples: &[&Sample]| {
            let (named, _) = tally(samples, name);
            named.into_iter().map(|(name, _)| name).collect::<BTreeSet<String>>()
        };
        let (baseline, run) = (names(newest), names(here));
        let join = |names: BTreeSet<String>| names.into_iter().collect::<Vec<_>>().join(", ");
        let is_told = !baseline.is_empty() && !run.is_empty() && baseline != run;
        is_told.then(|| {
            Finding::ModelMoved(Difference { what: what.to_owned(), baseline: join(baseline), run: join(run) })
        })
    };
    let model = moved("model", |sample| sample.model.as_deref());
    let fingerprint = moved("system_fingerprint", |sample| sample.fingerprint.as_deref());
    [model, fingerprint].into_iter().flatten().collect()
}

/// Metrics whose newest stored runs are beyond what the check allows from the oldest: each change was small enough to
/// pass.
fn creep(run: &Run, prior: &Prior) -> Vec<Finding> {
    if prior.history.len() < CREEP_RUNS {
        return Vec::new();
    }
    let spec = &run.header.spec;
    let kept = Kept::of(&prior.history);
    let mut told = BTreeSet::new();
    let crept = spec.checks.iter().filter_map(|check| {
        let bound = check.bound.relative().filter(|bound| bound.to == Against::Baseline)?;
        let scored: Vec<Scored<'_>> =
            kept.iter().map(|run| run.scored(check.scenario, spec.slo_of(check.scenario))).collect();
        let newest_first = base::comparable(check, &scored);
        let third = newest_first.len() / 3;
        if newest_first.len() < CREEP_RUNS || !told.insert((check.scenario, check.metric)) {
            return None;
        }
        let newest = newest_first.iter().take(third).copied().collect();
        let oldest = newest_first.iter().rev().take(third).copied().collect();
        let (from, to) = (base::median(oldest)?, base::median(newest)?);
        let limit = bound.limit(from, check.op);
        let keeps = from == to || check.op.holds(to, limit);
        let tolerance = bound.tolerance(from, check.op).filter(|_| !is_share(check.metric)).unwrap_or(limit - from);
        let quantity = |value| Quantity { value, unit: check.metric.unit() };
        (!keeps && tolerance.is_finite()).then(|| Finding::Creep {
            metric: check.metric,
            from: quantity(from),
            to: quantity(to),
            runs: count(newest_first.len()),
            tolerance,
        })
    });
    crept.collect()
}
