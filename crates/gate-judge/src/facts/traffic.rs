//! Facts of conversations, and of what prompts had in common.

use std::collections::BTreeMap;

use gate_model::{
    Arm, Cache, GateSpec, Nanos, Outcome, Percentile, PromptFacts, PromptSpec, Request, Run, Sample, Series, TtftBy,
};

use crate::judge::Decided;
use crate::scored::{count, nearest_rank};

/// Into how many groups requests are parted by the length of their context, at most.
const GROUPS: usize = 5;
/// The fewest requests of such a group.
const LEAST: usize = 5;

/// A request's TTFT, and its input tokens where the server counts them.
#[derive(Clone, Copy, Debug)]
struct Answered {
    ttft: f64,
    input: Option<u64>,
}

impl Answered {
    fn of(request: Request<'_>) -> Option<Self> {
        let ttft = request.value(Series::Ttft).filter(|_| request.outcome() == Outcome::Ok)?;
        Some(Self { ttft, input: request.value(Series::InputTokens).map(|tokens| tokens as u64) })
    }
}

/// The scenarios whose conversations have several turns.
fn conversing(spec: &GateSpec) -> impl Iterator<Item = u16> + '_ {
    spec.sections().into_iter().flatten().filter(|scenario| spec.prompts_of(*scenario).turns.max > 1)
}

/// TTFT by turn.
pub(crate) fn by_turn(spec: &GateSpec, decided: &Decided<'_>) -> Vec<TtftBy> {
    let mut found = Vec::new();
    for scenario in conversing(spec) {
        let mut turns: BTreeMap<u16, Vec<Answered>> = BTreeMap::new();
        for request in decided.arms.of_scenario(scenario).target.iter() {
            turns.entry(request.turn()).or_default().extend(Answered::of(*request));
        }
        let of_turn =
            |(turn, answered): (u16, Vec<Answered>)| summary(scenario, (u64::from(turn), u64::from(turn)), &answered);
        found.extend(turns.into_iter().filter_map(of_turn));
    }
    found
}

/// TTFT by input tokens, in groups of about as many requests each; requests of one length are in one group.
pub(crate) fn by_context(spec: &GateSpec, decided: &Decided<'_>) -> Vec<TtftBy> {
    let mut found = Vec::new();
    for scenario in conversing(spec) {
        let target = decided.arms.of_scenario(scenario).target;
        let mut known: Vec<(u64, Answered)> = target
            .iter()
            .filter_map(|request| {
                let answered = Answered::of(*request)?;
                Some((answered.input?, answered))
            })
            .collect();
        known.sort_by_key(|(input, _)| *input);
        let groups = (known.len() / LEAST).clamp(1, GROUPS);
        let mut rest = known.as_slice();
        for group in 0..groups {
            let wanted = rest.len().div_ceil(groups - group);
            let Some((longest, _)) = rest.get(wanted.saturating_sub(1)) else { break };
            let (own, later) = rest.split_at(rest.partition_point(|(input, _)| input <= longest));
            rest = later;
            let Some((shortest, _)) = own.first() else { break };
            let answered: Vec<Answered> = own.iter().map(|(_, answered)| *answered).collect();
            found.extend(summary(scenario, (*shortest, *longest), &answered));
        }
    }
    found
}

fn summary(scenario: u16, (from, to): (u64, u64), answered: &[Answered]) -> Option<TtftBy> {
    let at = |percentile| {
        let ttft = nearest_rank(answered.iter().map(|one| one.ttft).collect(), percentile)?;
        Some(Nanos(ttft as i64))
    };
    let inputs: Vec<u64> = answered.iter().filter_map(|one| one.input).collect();
    let input = inputs.iter().sum::<u64>() as f64 / inputs.len() as f64;
    Some(TtftBy {
        scenario,
        from,
        to,
        n: count(answered.len()),
        p50: at(Percentile::P50)?,
        p95: at(Percentile::from_thousandths(95_000).ok()?)?,
        input: (!inputs.is_empty()).then_some(input),
    })
}

/// What the prompts of each scenario had in common; nothing of those that had nothing.
pub(crate) fn prompts(run: &Run, decided: &Decided<'_>) -> Vec<PromptFacts> {
    let spec = &run.header.spec;
    let mut found = Vec::new();
    for part in &decided.parts {
        let may_repeat = |scenario: &&u16| spec.prompts_of(**scenario).cache != Cache::Bust;
        let repeating: Vec<u16> = part.section.scenarios.iter().filter(may_repeat).copied().collect();
        for scenario in &part.section.scenarios {
            let target = part.arms.of_scenario(*scenario).target;
            let requests = count(target.len());
            // The plan counts repeated prompts section by section.
            let repeated = match (repeating.contains(scenario), repeating.as_slice()) {
                (true, [_]) => part.section.repeated_prompts.min(requests.saturating_sub(1)),
                (true, _) if part.section.repeated_prompts > 0 => continue,
                _ => 0,
            };
            let cached = cached(&target);
            if spec.prompts_of(*scenario).cache == Cache::Warm {
                found.extend(warm(spec, *scenario, requests, cached));
                continue;
            }
            let overlap = overlap(spec.prompts_of(*scenario), &samples(run, *scenario, &target));
            if overlap > 0.0 || repeated > 0 || cached.is_some_and(|cached| cached > 0.0) {
                found.push(PromptFacts { scenario: *scenario, requests, unique: requests - repeated, overlap, cached });
            }
        }
    }
    found
}

/// Under `cache: warm` one text is sent throughout. Of a file, of several turns and of several prefixes it is not known
/// here how many different ones there were.
fn warm(spec: &GateSpec, scenario: u16, requests: u32, cached: Option<f64>) -> Option<PromptFacts> {
    let prompts = spec.prompts_of(scenario);
    let is_one = prompts.file.is_none()
        && prompts.turns.max == 1
        && prompts.shared_prefix.is_none_or(|prefix| prefix.groups == 1);
    let overlap = if requests > 1 { 1.0 } else { 0.0 };
    (is_one && requests > 0).then_some(PromptFacts { scenario, requests, unique: 1, overlap, cached })
}

/// The requests of which everything is known: in a long run the first ones.
fn samples<'a>(run: &'a Run, scenario: u16, target: &[Request<'a>]) -> Vec<&'a Sample> {
    if !run.is_long() {
        return target.iter().filter_map(|request| request.sample()).collect();
    }
    let is_own = |sample: &&Sample| sample.scenario == scenario && sample.arm == Arm::Target;
    run.samples.iter().filter(is_own).collect()
}

/// The share of input tokens that the server read from a cache; `None` where it does not say. Of no request it is more
/// than there were, whatever the server says.
fn cached(target: &[Request<'_>]) -> Option<f64> {
    let counts = target
        .iter()
        .filter_map(|request| Some((request.value(Series::CachedTokens)?, request.value(Series::InputTokens)?)));
    let (cached, input) = counts.fold((0.0, 0.0), |(cached, input), (one, of)| (cached + one.min(of), input + of));
    (input > 0.0).then_some(cached / input)
}

/// The share of planned input tokens that requests have in common with another one: a shared prefix, and all turns before
/// with their answers.
fn overlap(prompts: &PromptSpec, samples: &[&Sample]) -> f64 {
    let prefix = prompts.shared_prefix.map_or(0, |prefix| u64::from(prefix.tokens));
    let (mut common, mut all) = (0, 0);
    let mut history = 0;
    for sample in samples {
        let own = u64::from(sample.planned_input);
        if sample.turn == 0 {
            history = 0;
        }
        common += if sample.turn == 0 { prefix.min(own) } else { history };
        all += history + own;
        let answer = sample.output_tokens().map_or(u64::from(sample.planned_output), |(tokens, _)| tokens);
        history += own + answer;
    }
    if all == 0 { 0.0 } else { common as f64 / all as f64 }
}
