//! What a reader should know of a run as a whole, and of a plan before it runs.

pub(crate) mod compared;

use std::collections::BTreeMap;

use gate_model::{
    Aggregate, Cache, Check, CheckVerdict, Clock, EndReason, Endpoint, Finding, GateSpec, Metric, Nanos, Outcome,
    OutcomeCount, OutputLength, Percentile, Rule, Run, Sample, Scalar, Series, Stamping, Target, TokenPolicy,
    TokenSource,
};
use gate_stats::binomial;

use crate::course::ordered;
use crate::facts::{is_streamed, shown};
use crate::judge::Decided;
use crate::rules::quantile::allowed_share;
use crate::rules::rule;
use crate::scored::{Scored, count, nearest_rank};
use crate::validity::{COALESCED, ClientFaults, Lateness, buffered, outcomes, rate_limited};
use crate::{BOUNDS_ALPHA, waiver};

/// The design effect from which a small sample is not safe.
const BURSTS: f64 = 2.0;
/// The share by which output lengths may differ from the plan's.
const LENGTH_DRIFT: f64 = 0.10;
/// How many of those who answered are named.
const NAMED: usize = 10;

/// Whether a finding turns a passing gate yellow.
///
/// Failures count in `errors.*`. A server that stops earlier than the plan's length does nothing wrong, unless it was
/// asked to go on; prompts may repeat where a warm cache is what is measured. What a plan cannot prove was known
/// before, and a field that was switched works. Replicas are no news to who names the header that tells them; where
/// they differ, their models or fingerprints do. A cap that keeps requests waiting was asked for, but not that the
/// planned rate is never reached. What coalesced reads and a late clock may have done is for validity to say.
pub(crate) fn is_warning(finding: &Finding, spec: &GateSpec) -> bool {
    match finding {
        // More than was asked for cannot be: the server's counts are wrong, and TPOT looks better than it is.
        Finding::ShortOutputs { planned, seen } => seen > planned || spec.prompts.output == OutputLength::Exact,
        Finding::RepeatedPrompts { .. } => spec.prompts.cache != Cache::Warm,
        Finding::EstimatedTokens { .. } => spec.prompts.tokens == TokenPolicy::Usage,
        Finding::EndedEarly(_)
        | Finding::Killed { .. }
        | Finding::ClientSlow(_)
        | Finding::DesignEffect { .. }
        | Finding::Buffered { .. }
        | Finding::CapWait { held_at: Some(_), .. }
        | Finding::RateLimited { .. }
        | Finding::NoReplicaHeader { .. }
        | Finding::Models { .. }
        | Finding::Fingerprints { .. }
        | Finding::Restarted { .. }
        | Finding::InsecureTls
        | Finding::WaiverEnded { .. }
        | Finding::NoisyBaseline { .. }
        | Finding::ShapesDiffer { .. }
        | Finding::SharedServer { .. }
        | Finding::Creep { .. }
        | Finding::Improved { .. }
        | Finding::LengthsMoved { .. }
        | Finding::ModelMoved(_)
        | Finding::NotAtBase { .. } => true,
        Finding::SpecChanged { changes, .. } => changes.iter().any(|change| change.loosens),
        Finding::Failure { .. }
        | Finding::ReferenceFailure { .. }
        | Finding::CannotProve { .. }
        | Finding::CapWait { held_at: None, .. }
        | Finding::MaxTokensFieldSwitched { .. }
        | Finding::Replicas { .. }
        | Finding::Coalesced { .. }
        | Finding::NoKernelClock
        | Finding::ClosedLoop
        | Finding::OnlyEndToEnd => false,
    }
}

/// Everything worth saying of a run, and of its plan.
pub(crate) fn of_run(
    run: &Run,
    decided: Option<&Decided<'_>>,
    checks: &[CheckVerdict],
    faults: &ClientFaults,
) -> Vec<Finding> {
    let spec = &run.header.spec;
    let samples = shown(run, decided).target;
    let scored = Scored::new(samples.clone(), &spec.slo, None);
    let lateness = decided.map_or_else(|| Lateness::of(spec, |_| None), |decided| decided.lateness);
    let mut findings = Vec::new();
    findings.extend(end(run));
    findings.extend(waiver::ended(spec, &run.header.started));
    findings.extend(insecure(spec));
    findings.extend(faults.short.iter().chain(&faults.slow).cloned().map(Finding::ClientSlow));
    let cap_wait = cap_wait(spec, &scored, lateness);
    findings.extend(checks.iter().filter_map(|check| bursts(check, cap_wait.is_some())));
    findings.extend(cap_wait);
    // Of a stream that was held back whole, every event was read with later ones.
    let buffered = buffered(&scored).map(|share| Finding::Buffered { share });
    findings.extend(buffered.or_else(|| coalesced(run)));
    findings.extend(restarted(&samples));
    findings.extend(no_kernel_clock(run));
    findings.extend(estimated(&scored).filter(|_| spec.target.api.generates()));
    findings.extend(lengths(&scored));
    findings.extend(rate_limited(&scored).map(|share| Finding::RateLimited { share }));
    findings.extend(replicas(run, &samples));
    findings.extend(models_and_fingerprints(&samples));
    findings.extend(repeated(run));
    findings.extend(switched(run));
    findings.extend(failures(&samples).map(|(OutcomeCount { outcome, count }, message)| Finding::Failure {
        outcome,
        count,
        message,
    }));
    findings.extend(plan_notes(spec, &run.header.looks));
    findings
}

/// What a plan cannot show: percentile checks that can be violated but not proven, a gate that only looks at whole
/// answers, and objectives that a closed loop flatters.
#[must_use]
pub fn plan_notes(spec: &GateSpec, looks: &[u32]) -> Vec<Finding> {
    let n = ordered(looks).last().copied().unwrap_or(0);
    let mut notes: Vec<Finding> = spec.checks.iter().filter_map(|check| cannot_prove(check, n)).collect();
    let is_whole = |check: &Check| match check.metric {
        Metric::Series(series, _) if check.metric.is_latency() => Some(matches!(series, Series::E2e | Series::TpotE2e)),
        Metric::Scalar(Scalar::TpotEffective) => Some(false),
        _ => None,
    };
    let whole: Vec<bool> = spec.checks.iter().filter_map(is_whole).collect();
    // Of an answer that comes whole there is nothing else to look at.
    if is_streamed(spec) && !whole.is_empty() && whole.into_iter().all(|whole| whole) {
        notes.push(Finding::OnlyEndToEnd);
    }
    let of_slo = |check: &Check| matches!(check.metric, Metric::Attainment | Metric::Scalar(Scalar::Goodput));
    if spec.load.pace.rate().is_none() && spec.checks.iter().any(of_slo) {
        notes.push(Finding::ClosedLoop);
    }
    notes
}

/// A percentile check for which even no exceedance at all is no proof.
fn cannot_prove(check: &Check, n: u32) -> Option<Finding> {
    let (Rule::Quantile | Rule::Cluster, Metric::Series(_, aggregate)) = (rule(check), check.metric) else {
        return None;
    };
    let (Aggregate::Percentile(percentile) | Aggregate::PercentileOfAll(percentile)) = aggregate else { return None };
    let p0 = allowed_share(percentile, check.op)?;
    let proves = |n: u32| binomial::lower_tail(0, u64::from(n), p0).is_ok_and(|p_pass| p_pass <= BOUNDS_ALPHA);
    if proves(n) {
        return None;
    }
    let needed = (BOUNDS_ALPHA.ln() / (-p0).ln_1p()).ceil();
    Some(Finding::CannotProve { check: check.to_string(), n, needed: needed as u32 })
}

fn end(run: &Run) -> Option<Finding> {
    match &run.end {
        None => Some(Finding::Killed { recorded: count(run.samples.len()), planned: run.planned() }),
        Some(end) => match &end.reason {
            EndReason::Completed | EndReason::StoppedAtLook(_) => None,
            reason => Some(Finding::EndedEarly(reason.clone())),
        },
    }
}

/// Whether no one vouched for the server that was measured.
fn insecure(spec: &GateSpec) -> Option<Finding> {
    let is_insecure = |target: &Target| {
        let Endpoint::Url(url) = &target.endpoint else { return false };
        let is_https = url.get(..8).is_some_and(|scheme| scheme.eq_ignore_ascii_case("https://"));
        target.tls.insecure && is_https
    };
    std::iter::once(&spec.target).chain(&spec.reference).any(is_insecure).then_some(Finding::InsecureTls)
}

fn repeated(run: &Run) -> Option<Finding> {
    let count = run.header.repeated_prompts;
    (count > 0).then_some(Finding::RepeatedPrompts { count })
}

fn switched(run: &Run) -> Option<Finding> {
    let to = run.end.as_ref()?.switched_to?;
    Some(Finding::MaxTokensFieldSwitched { to })
}

fn bursts(verdict: &CheckVerdict, capped: bool) -> Option<Finding> {
    let design_effect = verdict.evidence.as_ref()?.design_effect;
    (design_effect > BURSTS).then_some(Finding::DesignEffect { metric: verdict.check.metric, design_effect, capped })
}

/// Whether the cap, not the server's first token, is what most requests waited for.
fn cap_wait(spec: &GateSpec, scored: &Scored<'_>, lateness: Lateness) -> Option<Finding> {
    let p50 = Nanos(nearest_rank(scored.values(Series::CapWait), Percentile::P50)? as i64);
    let rates = scored.rates().filter(|rates| spec.load.pace.rate().is_some() && rates.is_short(rates.achieved));
    (p50 > lateness.ttft).then_some(Finding::CapWait { p50, held_at: rates.map(|rates| rates.achieved) })
}

/// Whether many events have the stamp of later ones.
fn coalesced(run: &Run) -> Option<Finding> {
    let share = run.end.as_ref()?.health.coalesced_share?;
    (share > COALESCED).then_some(Finding::Coalesced { share })
}

/// Whether the kernel's clock was wanted where there usually is one, and had nothing to say of what was received.
fn no_kernel_clock(run: &Run) -> Option<Finding> {
    let health = run.end.as_ref()?.health;
    let on_linux = run.header.host.as_ref()?.system.starts_with("linux");
    let received = run.samples.iter().any(|sample| sample.headers.is_some());
    let fell_back = run.header.spec.load.clock == Clock::Auto && health.clock == Stamping::User && health.is_recorded();
    (on_linux && received && fell_back).then_some(Finding::NoKernelClock)
}

fn restarted(samples: &[&Sample]) -> Option<Finding> {
    let requests = count(samples.iter().filter(|sample| sample.restarts > 0).count());
    (requests > 0).then_some(Finding::Restarted { requests })
}

/// The replicas that answered, or that no answer had the header which tells them.
fn replicas(run: &Run, samples: &[&Sample]) -> Option<Finding> {
    let (answered, count) = tally(samples, |sample| sample.replica.as_deref());
    if count > 0 {
        return Some(Finding::Replicas { answered, count });
    }
    let header = run.header.spec.target.replica_header.clone()?;
    // Another tool's file says nothing of headers, and the engine sends none.
    let is_told = run.header.imported_from.is_none() && !run.header.simulated;
    let received = samples.iter().any(|sample| sample.headers.is_some());
    (is_told && received).then_some(Finding::NoReplicaHeader { header })
}

/// Models and fingerprints, where there were several.
fn models_and_fingerprints(samples: &[&Sample]) -> impl Iterator<Item = Finding> {
    let (models, several_models) = tally(samples, |sample| sample.model.as_deref());
    let (fingerprints, several_fingerprints) = tally(samples, |sample| sample.fingerprint.as_deref());
    let models = (several_models > 1).then_some(Finding::Models { answered: models, count: several_models });
    let fingerprints = (several_fingerprints > 1)
        .then_some(Finding::Fingerprints { answered: fingerprints, count: several_fingerprints });
    [models, fingerprints].into_iter().flatten()
}

/// The names that samples bear with their requests, most frequent first and then by name, ten at most, and how many
/// names there are.
fn tally<'a>(samples: &[&'a Sample], name: impl Fn(&'a Sample) -> Option<&'a str>) -> (Vec<(String, u32)>, u32) {
    let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
    for name in samples.iter().filter_map(|sample| name(sample)) {
        *counts.entry(name).or_default() += 1;
    }
    let mut counts: Vec<(&str, u32)> = counts.into_iter().collect();
    counts.sort_by_key(|(_, requests)| std::cmp::Reverse(*requests));
    let named = counts.iter().take(NAMED).map(|(name, requests)| ((*name).to_owned(), *requests));
    (named.collect(), count(counts.len()))
}

fn estimated(scored: &Scored<'_>) -> Option<Finding> {
    let sources: Vec<TokenSource> = scored.ok().filter_map(|sample| Some(sample.output_tokens()?.1)).collect();
    let estimated = sources.iter().filter(|source| **source == TokenSource::Estimated).count();
    let share = estimated as f64 / sources.len().max(1) as f64;
    (estimated > 0).then_some(Finding::EstimatedTokens { share })
}

/// Output lengths against the plan's, over requests whose tokens were counted.
fn lengths(scored: &Scored<'_>) -> Option<Finding> {
    let (mut planned, mut seen, mut n) = (0.0, 0.0, 0.0);
    for sample in scored.ok() {
        if let Some((tokens, TokenSource::Usage | TokenSource::Tokenizer)) = sample.output_tokens() {
            planned += f64::from(sample.planned_output);
            seen += tokens as f64;
            n += 1.0;
        }
    }
    let differs = planned > 0.0 && (seen - planned).abs() > LENGTH_DRIFT * planned;
    differs.then(|| Finding::ShortOutputs { planned: planned / n, seen: seen / n })
}

/// How often an arm's requests failed in each way, most frequent first, with the first message.
pub(crate) fn failures(samples: &[&Sample]) -> impl Iterator<Item = (OutcomeCount, String)> {
    let failed = samples.iter().copied().filter(|sample| sample.outcome != Outcome::Ok);
    let message = |outcome: Outcome| {
        let first = samples.iter().filter(|sample| sample.outcome == outcome).find_map(|sample| sample.error.clone());
        first.unwrap_or_else(|| outcome.name().replace('_', " "))
    };
    outcomes(failed).into_iter().map(move |counted| (counted, message(counted.outcome)))
}
