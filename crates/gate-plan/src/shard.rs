//! One plan, cut for several machines.

use std::collections::HashSet;

use gate_model::{Plan, PlannedRequest, Shard};

/// One machine's part of a section's plan: of `of` shards, those whose number leaves `index - 1` when divided by it
/// take a conversation, its pairs unsplit. Together the shards are the plan, each request once.
///
/// Warm-up requests of each scenario are dealt the same way, but every shard keeps one at least, since each machine has
/// its own connections to open.
///
/// Digest, looks, whole and first stay those of the whole plan. A shard that is not among `1..=of` gets nothing.
#[must_use]
pub fn shard(plan: &Plan, shard: Shard) -> Plan {
    let Shard { index, of } = shard;
    let is_own = |unit: u32| index > 0 && unit % of.max(1) == index - 1;
    let requests = numbered(&plan.requests).filter(|(unit, _)| is_own(*unit)).map(|(_, request)| *request).collect();
    let warmup = if (1..=of).contains(&index) { warmup(plan, is_own, index) } else { Vec::new() };
    Plan { shard: Some(shard), warmup, requests, ..head(plan) }
}

/// A shard's warm-up requests.
fn warmup(plan: &Plan, is_own: impl Fn(u32) -> bool, index: u32) -> Vec<PlannedRequest> {
    // Within a scenario warm-up requests are numbered by their conversations.
    let count_of = |scenario: u16| {
        let own = plan.warmup.iter().filter(|request| request.scenario == scenario);
        own.map(PlannedRequest::conversation).max().map_or(0, |last| last + 1)
    };
    let scenarios: HashSet<u16> = plan.warmup.iter().map(|request| request.scenario).collect();
    let instead: Vec<(u16, u32)> = scenarios
        .into_iter()
        .map(|scenario| (scenario, count_of(scenario)))
        .filter(|(_, count)| !(0..*count).any(&is_own))
        .map(|(scenario, count)| (scenario, (index - 1) % count.max(1)))
        .collect();
    let kept = |request: &&PlannedRequest| {
        let conversation = request.conversation();
        is_own(conversation) || instead.contains(&(request.scenario, conversation))
    };
    plan.warmup.iter().filter(kept).copied().collect()
}

/// Each request with the number of its conversation in the section.
fn numbered(requests: &[PlannedRequest]) -> impl Iterator<Item = (u32, &PlannedRequest)> {
    let mut begun: Option<u32> = None;
    let mut opening = 0;
    requests.iter().map(move |request| {
        let unit = match begun {
            Some(unit) if request.opening() == opening => unit,
            Some(unit) => unit + 1,
            None => 0,
        };
        (begun, opening) = (Some(unit), request.opening());
        (unit, request)
    })
}

/// A plan without its requests.
fn head(plan: &Plan) -> Plan {
    Plan {
        schema: plan.schema,
        seed: plan.seed,
        scenarios: plan.scenarios.clone(),
        section: plan.section,
        shard: plan.shard,
        whole: plan.whole,
        first: plan.first,
        digest: plan.digest.clone(),
        looks: plan.looks.clone(),
        by_scenario: plan.by_scenario.clone(),
        warmup: Vec::new(),
        requests: Vec::new(),
    }
}
