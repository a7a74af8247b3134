//! Two gates' scenarios, by name: a head may add, remove and reorder them.

use gate_model::{Check, GateSpec, RunOrder, Scenario};

/// The scenario of checks that have none in the other gate.
const NOWHERE: u16 = u16::MAX;

/// The scenarios of both, the head's first; none where neither has any.
pub(super) fn names(base: &GateSpec, head: &GateSpec) -> Vec<String> {
    let mut names: Vec<_> = head.scenarios.iter().map(|one| one.name.clone()).collect();
    let missing = missing(base, head);
    names.extend(missing.map(|one| one.name.clone()));
    names
}

/// The base's scenarios that the head has no longer.
fn missing<'a>(base: &'a GateSpec, head: &GateSpec) -> impl Iterator<Item = &'a Scenario> {
    let kept: Vec<_> = head.scenarios.iter().map(|one| one.name.clone()).collect();
    base.scenarios.iter().filter(move |one| !kept.contains(&one.name))
}

/// Where a name stands among the scenarios of a gate.
fn place(spec: &GateSpec, name: &str) -> Option<u16> {
    u16::try_from(spec.scenarios.iter().position(|one| one.name == name)?).ok()
}

/// Where a scenario of both stands in the base and in the head. A base without scenarios has all of them.
pub(super) fn places(base: &GateSpec, head: &GateSpec, scenario: u16, name: &str) -> Option<(u16, u16)> {
    let before = if base.scenarios.is_empty() { Some(scenario) } else { place(base, name) };
    before.zip(place(head, name))
}

/// The base's checks, with the places of their scenarios in [`names`]; those of a base without scenarios hold for each.
pub(super) fn demanded(base: &GateSpec, head: &GateSpec) -> Vec<Check> {
    let names = names(base, head);
    if base.scenarios.is_empty() {
        let each = (0_u16..).take(names.len().max(1));
        return each.flat_map(|scenario| base.checks.iter().map(move |check| of(check, scenario))).collect();
    }
    let of_names = |check: &Check| {
        let name = base.scenarios.get(usize::from(check.scenario)).map(|one| one.name.as_str());
        let place = names.iter().position(|one| Some(one.as_str()) == name);
        of(check, place.and_then(|place| u16::try_from(place).ok()).unwrap_or(NOWHERE))
    };
    base.checks.iter().map(of_names).collect()
}

/// The head's checks, with the places of their scenarios in [`names`].
pub(super) fn own(base: &GateSpec, head: &GateSpec) -> Vec<Check> {
    match head.scenarios.is_empty() && !base.scenarios.is_empty() {
        true => head.checks.iter().map(|check| of(check, NOWHERE)).collect(),
        false => head.checks.clone(),
    }
}

/// The head's checks of scenarios that a base with scenarios has not: nothing else is demanded of them.
pub(super) fn added(base: &GateSpec, head: &GateSpec) -> Vec<Check> {
    if base.scenarios.is_empty() {
        return Vec::new();
    }
    let is_new = |check: &&Check| {
        head.scenarios.get(usize::from(check.scenario)).is_some_and(|one| place(base, &one.name).is_none())
    };
    head.checks.iter().filter(is_new).cloned().collect()
}

/// The head with the scenarios it removed, and with what its base demands of each of its own but for checks.
pub(super) fn restored(base: &GateSpec, head: &GateSpec) -> GateSpec {
    let mut spec = head.clone();
    for (scenario, one) in (0_u16..).zip(&mut spec.scenarios) {
        if let Some((before, _)) = places(base, head, scenario, &one.name) {
            one.slo = *base.slo_of(before);
            one.prompts.tokens = base.prompts_of(before).tokens;
        }
    }
    if head.scenarios.is_empty() {
        spec.order = base.order;
    }
    let order = spec.order;
    spec.scenarios.extend(missing(base, head).cloned().map(|one| match order {
        // They share one load.
        RunOrder::Together => Scenario { load: head.load.clone(), ..one },
        RunOrder::InTurn => one,
    }));
    spec
}

fn of(check: &Check, scenario: u16) -> Check {
    Check { scenario, ..check.clone() }
}
