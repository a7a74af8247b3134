//! Scenarios: kinds of traffic, each with what it has of its own.

use gate_model::{Api, Load, RunOrder, Scenario, Secret, Slo};

use crate::context::Context;
use crate::load::load;
use crate::problem::Problem;
use crate::prompts::prompts;
use crate::raw::{RawScenario, RawSpec};
use crate::scope::Scope;
use crate::target::check_extra_body;

/// A scenario with where it was written.
pub(crate) struct Scoped {
    pub(crate) scope: Scope,
    pub(crate) scenario: Scenario,
}

/// The scenarios; under `together` they share the gate's load.
pub(crate) fn scenarios(context: &mut Context, raw: &RawSpec, shared: &Load, secrets: &mut Vec<Secret>) -> Vec<Scoped> {
    if raw.scenarios.is_empty() && context.is_written("run") && context.is_sound("scenarios") {
        let message = "`run` says how scenarios run, and there are none";
        let problem = Problem::error(context.key("run"), message);
        context.problems.push(problem.hint("add `scenarios: {…}`, or remove it"));
    }
    raw.scenarios.iter().map(|one| scenario(context, raw, one, shared, secrets)).collect()
}

fn scenario(
    context: &mut Context,
    raw: &RawSpec,
    one: &RawScenario,
    shared: &Load,
    secrets: &mut Vec<Secret>,
) -> Scoped {
    let scope = Scope::scenario(context, &one.name);
    refuse_order(context, &scope, raw.run);
    let load = match raw.run {
        RunOrder::InTurn => load(context, &scope, &one.load),
        RunOrder::Together => shared.clone(),
    };
    let prompts = prompts(context, &scope, &one.prompts, &raw.target, secrets);
    refuse_unmeasured(context, &scope, one.slo, raw.target.api, raw.target.stream);
    check_extra_body(context, &scope.own("target.extra_body"), "target.stream", raw.target.api, &one.target.extra_body);
    let scenario = Scenario {
        name: one.name.clone(),
        load,
        prompts,
        slo: one.slo,
        model: one.target.model.clone(),
        extra_body: one.target.extra_body.clone(),
        weight: one.weight,
    };
    Scoped { scope, scenario }
}

/// What has no meaning in this order.
fn refuse_order(context: &mut Context, scope: &Scope, order: RunOrder) {
    let (key, message, hint) = match order {
        RunOrder::Together => (
            "load",
            "under `run: together` all scenarios share the gate's `load`",
            "remove it, or write `run: in_turn`; `weight` splits the load",
        ),
        RunOrder::InTurn => (
            "weight",
            "scenarios that run in turn have the endpoint to themselves, so there is nothing to share",
            "remove it, or write `run: together`",
        ),
    };
    let path = scope.own(key);
    if context.is_written(&path) && context.is_sound("run") {
        context.problems.push(Problem::error(context.key(&path), format!("`{path}`: {message}")).hint(hint));
    }
}

/// A bound that only a stream can keep.
pub(crate) fn refuse_unmeasured(context: &mut Context, scope: &Scope, slo: Slo, api: Api, stream: bool) {
    for (key, bound) in [("ttft", slo.ttft), ("ttfa", slo.ttfa), ("tpot", slo.tpot)] {
        let path = scope.path(context, &format!("slo.{key}"));
        let (message, hint) = match bound {
            Some(_) if !api.generates() => {
                (format!("`{path}` is about generated tokens, and `{}` generates none", api.name()), "keep `e2e` alone")
            }
            Some(_) if !stream => (
                format!("`{path}` is measured on a stream, and `target.stream` is false"),
                "keep `e2e` alone, or remove `stream: false`",
            ),
            _ => continue,
        };
        context.problems.push(Problem::error(context.key(&path), message).hint(hint));
    }
}
