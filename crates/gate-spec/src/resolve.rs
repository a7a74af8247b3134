//! From the raw spec to the gate: the rules between keys.

use gate_model::{GateSpec, Prices, Secret};

use crate::baseline::baseline;
use crate::checks::{Traffic, checks};
use crate::context::Context;
use crate::load::{load, refuse_unspoken};
use crate::problem::Problem;
use crate::prompts::prompts;
use crate::raw::{RawPrices, RawSpec};
use crate::reference::{check_arms, reference};
use crate::scenario::{Scoped, refuse_unmeasured, scenarios};
use crate::scope::Scope;
use crate::target::{Block, target};

/// What a gate is made of, with the credentials its URL holds.
pub(crate) struct Built {
    pub(crate) spec: GateSpec,
    pub(crate) secrets: Vec<Secret>,
}

/// Builds the gate; whether it can be used depends on the problems left in the context.
pub(crate) fn build(context: &mut Context, mut raw: RawSpec, file: &str) -> Built {
    let mut secrets = Vec::new();
    let gate = Scope::gate();
    let load = load(context, &gate, &raw.load);
    let prompts = prompts(context, &gate, &raw.prompts, &raw.target, &mut secrets);
    refuse_unmeasured(context, &gate, raw.slo, raw.target.api, raw.target.stream);
    let scoped = scenarios(context, &raw, &load, &mut secrets);
    let checks = match scoped.as_slice() {
        [] => checks(context, &raw, &[Traffic::of_gate(&gate, &raw, &load)]),
        scoped => {
            let weights = scoped.iter().map(|one| one.scenario.weight).sum();
            let traffics = scoped.iter().zip(&raw.scenarios);
            let traffics: Vec<_> = traffics.map(|(one, raw_one)| Traffic::of(one, raw_one, raw.run, weights)).collect();
            checks(context, &raw, &traffics)
        }
    };
    let has_models = !scoped.is_empty() && scoped.iter().all(|one| one.scenario.model.is_some());
    let reference = raw.reference.take().map(|own| reference(context, own, &raw.target, has_models, &mut secrets));
    let target = target(context, &Block::target(has_models), raw.target, &mut secrets);
    for endpoint in [Some(&target), reference.as_ref()].into_iter().flatten().map(|target| &target.endpoint) {
        refuse_unspoken(context, &gate, &load, endpoint);
        for Scoped { scope, scenario } in &scoped {
            refuse_unspoken(context, scope, &scenario.load, endpoint);
        }
    }
    if let Some(reference) = &reference {
        check_arms(context, &target, reference);
    }
    if raw.budget.cost.is_some() && raw.prices.is_none() && context.is_sound("prices") {
        let message = "`budget.cost` is in dollars, and there are no `prices`";
        let problem = Problem::error(context.key("budget.cost"), message);
        context.problems.push(problem.hint("add them, such as `prices: {input: $2.50, output: $10}`"));
    }
    let spec = GateSpec {
        version: raw.version.unwrap_or(1),
        name: raw.name.unwrap_or_default(),
        file: file.to_owned(),
        target,
        reference,
        load,
        prompts,
        slo: raw.slo,
        timeouts: raw.timeouts,
        outcomes: raw.outcomes,
        baseline: baseline(context, raw.baseline),
        scenarios: scoped.into_iter().map(|one| one.scenario).collect(),
        order: raw.run,
        budget: raw.budget,
        prices: raw.prices.and_then(prices),
        abort: raw.abort,
        journal: raw.journal,
        checks,
        overrides: Vec::new(),
    };
    Built { spec, secrets }
}

/// The prices, where none that must be there is missing.
fn prices(raw: RawPrices) -> Option<Prices> {
    Some(Prices { input: raw.input?, cached_input: raw.cached_input, output: raw.output? })
}
