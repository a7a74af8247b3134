//! What a reader should know of a run as a whole, and of a plan before it runs.

pub(crate) mod compared;
pub(crate) mod long;

use std::collections::BTreeMap;

use gate_model::{
    Aggregate, Arm, Cache, Check, CheckVerdict, Clock, EndReason, Endpoint, Finding, GateSpec, Length, Metric, Nanos,
    Outcome, OutcomeCount, OutputLength, Pattern, Percentile, PromptSpec, Request, Rule, Run, Sample, Scalar, Section,
    Series, Stamping, Target, TokenPolicy, TokenSource,
};
use gate_stats::binomial;

use crate::facts::is_streamed;
use crate::judge::{Decided, Judged};
use crate::power::looks_of;
use crate::rules::quantile::allowed_share;
use crate::rules::{over_all, rule};
use crate::scored::{Scored, count, nearest_rank};
use crate::validity::{COALESCED, buffered, outcomes, rate_limited};
use crate::{BOUNDS_ALPHA, waiver};

/// The design effect from which a small sample is not safe.
const BURSTS: f64 = 2.0;
/// The share by which output lengths may differ from the plan's.
const LENGTH_DRIFT: f64 = 0.10;
/// The fewest requests of which it matters that all are of one length.
const MANY: u32 = 20;
/// How many of those who answered are named.
const NAMED: usize = 10;

/// Whether a finding turns a passing gate yellow.
///
/// Failures count in `errors.*`. A server that stops earlier than the plan's length does nothing wrong, unless it was
/// asked to go on; prompts may repeat where a warm cache is what is measured. What a plan cannot prove was known
/// before, and a field that was switched works. Replicas are no news to who names the header that tells them; where
/// they differ, their models or fingerprints do. A cap that keeps requests waiting was asked for, but not that the
/// planned rate is never reached. Connections that were opened anew are inside TTFT, and conversations that were cut are
/// among the failures. What coalesced reads and a late clock may have done is for validity to say.
pub(crate) fn is_warning(finding: &Finding, spec: &GateSpec) -> bool {
    let any = |is_so: fn(&PromptSpec) -> bool| {
        spec.sections().into_iter().flatten().any(|scenario| is_so(spec.prompts_of(scenario)))
    };
    match finding {
        // More than was asked for cannot be: the server's counts are wrong, and TPOT looks better than it is.
        Finding::ShortOutputs { planned, seen } => {
            seen > planned || any(|prompts| prompts.output == OutputLength::Exact)
        }
        Finding::RepeatedPrompts { .. } => !any(|prompts| prompts.cache == Cache::Warm),
        Finding::EstimatedTokens { .. } => any(|prompts| prompts.tokens == TokenPolicy::Usage),
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
        | Finding::NotAtBase { .. }
        | Finding::UniformPrompts { .. }
        | Finding::Drifts { .. }
        | Finding::WarmupAnomaly { .. }
        | Finding::ClientGrows { .. }
        | Finding::ScrapesFailed { .. }
        | Finding::UncountedCost { .. } => true,
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
        | Finding::Reopened { .. }
        | Finding::ConversationsCut { .. }
        | Finding::OnlyEndToEnd => false,
    }
}

/// Everything worth saying of a run, and of its plan.
pub(crate) fn of_run(run: &Run, decided: &Decided<'_>, checks: &[CheckVerdict]) -> Vec<Finding> {
    let spec = &run.header.spec;
    let target = &decided.arms.target;
    let samples = samples(run, target, Arm::Target);
    let scored = Scored::new(target.clone(), &spec.slo);
    let scenarios = decided.arms.by_scenario();
    let each: Vec<Scored<'_>> = scenarios.values().map(|arms| Scored::new(arms.target.clone(), &spec.slo)).collect();
    drop(scenarios);
    let most = |share: fn(&Scored<'_>) -> Option<f64>| each.iter().filter_map(share).reduce(f64::max);
    let mut findings = Vec::new();
    findings.extend(end(run));
    findings.extend(waiver::ended(spec, &run.header.started));
    findings.extend(insecure(spec));
    for part in &decided.parts {
        for cause in part.faults.short.iter().chain(&part.faults.slow) {
            let finding = Finding::ClientSlow(cause.clone());
            findings.extend((!findings.contains(&finding)).then_some(finding));
        }
    }
    let cap_waits: Vec<Finding> = decided.parts.iter().filter_map(|part| cap_wait(spec, part)).collect();
    findings.extend(checks.iter().filter_map(|check| bursts(check, !cap_waits.is_empty())));
    findings.extend(cap_waits);
    // Of a stream that was held back whole, every event was read with later ones.
    let buffered = most(buffered).map(|share| Finding::Buffered { share });
    findings.extend(buffered.or_else(|| coalesced(run)));
    findings.extend(restarted(&samples));
    findings.extend(no_kernel_clock(run));
    findings.extend(estimated(&scored).filter(|_| spec.target.api.generates()));
    findings.extend(each.iter().filter_map(lengths));
    findings.extend(most(rate_limited).map(|share| Finding::RateLimited { share }));
    findings.extend(replicas(run, &samples));
    findings.extend(models_and_fingerprints(&samples));
    findings.extend(repeated(run));
    findings.extend(switched(run));
    findings.extend(failures(target, &samples).map(|(OutcomeCount { outcome, count }, message)| Finding::Failure {
        outcome,
        count,
        message,
    }));
    findings.extend(long::of_run(run, decided));
    let sections: Vec<Section> = decided.parts.iter().map(|part| part.section.clone()).collect();
    // Another tool sent what it sent, whatever the spec would.
    let is_of_load = |note: &Finding| matches!(note, Finding::UniformPrompts { .. } | Finding::ClosedLoop);
    let is_own = run.header.imported_from.is_none();
    findings.extend(plan_notes(spec, &sections).into_iter().filter(|note| is_own || !is_of_load(note)));
    findings
}

/// The requests of an arm of which everything is known: of a long run the first ones, whether or not they are judged.
pub(crate) fn samples<'a>(run: &'a Run, judged: &[Request<'a>], arm: Arm) -> Vec<&'a Sample> {
    if run.is_long() {
        return run.samples.iter().filter(|sample| sample.arm == arm).collect();
    }
    judged.iter().filter_map(|request| request.sample()).collect()
}

/// What a plan cannot show: percentile checks that can be violated but not proven, a gate that only looks at whole
/// answers, and objectives that a closed loop flatters.
#[must_use]
pub fn plan_notes(spec: &GateSpec, sections: &[Section]) -> Vec<Finding> {
    let last = |scenario: u16| looks_of(spec, sections, scenario).last().copied().unwrap_or(0);
    let cannot_prove = |check: &Check| cannot_prove(&over_all(check), check, last(check.scenario));
    let mut notes: Vec<Finding> = spec.checks.iter().filter_map(cannot_prove).collect();
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
    let is_closed = |check: &Check| spec.load_of(check.scenario).pace.rate().is_none();
    if spec.checks.iter().any(|check| of_slo(&over_all(check)) && is_closed(check)) {
        notes.push(Finding::ClosedLoop);
    }
    let scenarios = spec.sections().into_iter().flatten().zip(spec.scenario_names());
    let uniform = scenarios.filter(|(scenario, _)| last(*scenario) >= MANY && is_uniform(spec, *scenario));
    notes.extend(uniform.map(|(_, scenario)| Finding::UniformPrompts { scenario }));
    notes
}

/// Whether all prompts of a scenario, and all answers, are planned to be of one length, which no real traffic is. Where a
/// warm cache is measured, one prompt again and again may be what is meant.
fn is_uniform(spec: &GateSpec, scenario: u16) -> bool {
    let prompts = spec.prompts_of(scenario);
    let is_drawn = prompts.file.is_none()
        && prompts.input_empirical.is_none()
        && prompts.output_empirical.is_none()
        && prompts.turns.max == 1
        && prompts.shared_prefix.is_none()
        && !matches!(spec.load_of(scenario).pattern, Pattern::Trace(_));
    let is_constant = |length: &Length| length.stddev == 0.0 || length.min == length.max;
    is_drawn
        && spec.target.api.generates()
        && prompts.cache != Cache::Warm
        && is_constant(&prompts.input_tokens)
        && is_constant(&prompts.output_tokens)
}

/// A percentile check for which even no exceedance at all is no proof.
fn cannot_prove(check: &Check, written: &Check, n: u32) -> Option<Finding> {
    let (Rule::Quantile | Rule::Cluster, Metric::Series(_, aggregate)) = (rule(check), check.metric) else {
        return None;
    };
    let (Aggregate::Percentile(percentile) | Aggregate::PercentileOfAll(percentile)) = aggregate else { return None };
    let p0 = allowed_share(percentile, check.op)?;
    let proves = |n: u32| binomial::lower_tail(0, u64::from(n), p0).is_ok_and(|p_pass| p_pass <= BOUNDS_ALPHA);
    // Of a section that was never begun the number may not be known.
    if n == 0 || proves(n) {
        return None;
    }
    let needed = (BOUNDS_ALPHA.ln() / (-p0).ln_1p()).ceil();
    Some(Finding::CannotProve { check: written.to_string(), n, needed: needed as u32 })
}

fn end(run: &Run) -> Option<Finding> {
    match &run.end {
        None => Some(Finding::Killed { recorded: run.recorded(), planned: run.planned() }),
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

/// Whether the cap, not the server's first token, is what most requests of a section waited for.
fn cap_wait(spec: &GateSpec, part: &Judged<'_>) -> Option<Finding> {
    let load = part.section.scenarios.first().map(|scenario| spec.load_of(*scenario))?;
    let scored = Scored::new(part.arms.target.clone(), &spec.slo);
    let p50 = Nanos(nearest_rank(scored.values(Series::CapWait), Percentile::P50)? as i64);
    let rates = scored.rates().filter(|rates| load.pace.rate().is_some() && rates.is_short(rates.achieved));
    (p50 > part.lateness.ttft).then_some(Finding::CapWait { p50, held_at: rates.map(|rates| rates.achieved) })
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
    let sources: Vec<TokenSource> = scored.ok().filter_map(|request| Some(request.output_tokens()?.1)).collect();
    let estimated = sources.iter().filter(|source| **source == TokenSource::Estimated).count();
    let share = estimated as f64 / sources.len().max(1) as f64;
    (estimated > 0).then_some(Finding::EstimatedTokens { share })
}

/// Output lengths against the plan's, over requests whose tokens were counted.
fn lengths(scored: &Scored<'_>) -> Option<Finding> {
    let (mut planned, mut seen, mut n) = (0.0, 0.0, 0.0);
    for request in scored.ok() {
        if let Some((tokens, TokenSource::Usage | TokenSource::Tokenizer)) = request.output_tokens() {
            planned += f64::from(request.planned_output());
            seen += tokens as f64;
            n += 1.0;
        }
    }
    let differs = planned > 0.0 && (seen - planned).abs() > LENGTH_DRIFT * planned;
    differs.then(|| Finding::ShortOutputs { planned: planned / n, seen: seen / n })
}

/// How often an arm's requests failed in each way, most frequent first, with the first message that is known.
pub(crate) fn failures(requests: &[Request<'_>], samples: &[&Sample]) -> impl Iterator<Item = (OutcomeCount, String)> {
    let failed = requests.iter().copied().filter(|request| request.outcome() != Outcome::Ok);
    let message = |outcome: Outcome| {
        let first = samples.iter().filter(|sample| sample.outcome == outcome).find_map(|sample| sample.error.clone());
        first.unwrap_or_else(|| outcome.name().replace('_', " "))
    };
    outcomes(failed).into_iter().map(move |counted| (counted, message(counted.outcome)))
}
