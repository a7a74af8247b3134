//! What one check is read from at one look.

use std::collections::BTreeMap;

use gate_model::{Bound, Cause, Check, GateSpec, Health, Scrape};

use crate::arms::Arms;
use crate::base::Base;
use crate::bill::Bill;
use crate::rules::point;
use crate::scored::{Scored, Setting};
use crate::validity::LEAST_OK;

/// What a look is taken at, beside the requests that it scores.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Outlook<'a> {
    /// The client's health; unknown while the load still runs.
    pub(crate) health: Option<Health>,
    /// What the server's own metrics said in the section; nothing while the load still runs.
    pub(crate) scrapes: &'a [Scrape],
    /// How many shards asked it.
    pub(crate) shards: u32,
    /// What the whole run used up; unknown while it still goes on.
    pub(crate) bill: Option<Bill>,
    /// The judged requests of scenarios in other sections; unknown while the load still runs.
    pub(crate) others: Option<&'a BTreeMap<u16, Arms<'a>>>,
}

/// The requests of a check's scenario, and what they are compared with.
#[derive(Clone, Debug)]
pub(crate) struct Scope<'a> {
    /// Those of the target.
    pub(crate) scored: Scored<'a>,
    /// Those of the reference, each at its pair's place; none where there is no reference.
    pub(crate) reference: Scored<'a>,
    /// The stored runs.
    pub(crate) base: &'a Base,
    /// Those of the scenario that the bound is a share of, with its name.
    other: Option<(&'a str, Option<Scored<'a>>)>,
}

impl<'a> Scope<'a> {
    /// What a check is read from: of `scenarios` at this look, in a run of scenarios of these names.
    pub(crate) fn of(
        check: &'a Check,
        spec: &'a GateSpec,
        names: &[String],
        scenarios: &BTreeMap<u16, Arms<'a>>,
        base: &'a Base,
        outlook: &Outlook<'a>,
    ) -> Self {
        let setting = |scenario: u16| Setting {
            load: Some(spec.load_of(scenario)),
            health: outlook.health,
            scrapes: outlook.scrapes,
            shards: outlook.shards,
            bill: outlook.bill,
        };
        let scored = |scenario: u16, requests| Scored::new(requests, spec.slo_of(scenario)).within(setting(scenario));
        let arms = |scenario: u16| {
            let elsewhere = || outlook.others.and_then(|others| others.get(&scenario));
            scenarios.get(&scenario).or_else(elsewhere).cloned()
        };
        let own = arms(check.scenario).unwrap_or_default();
        let other = match &check.bound {
            Bound::ShareOf { scenario, .. } => {
                let place = (0_u16..).zip(names).find(|(_, name)| *name == scenario).map(|(place, _)| place);
                let there = place.and_then(|place| Some(scored(place, arms(place)?.target)));
                Some((scenario.as_str(), there))
            }
            _ => None,
        };
        Self {
            scored: scored(check.scenario, own.target),
            reference: scored(check.scenario, own.reference),
            base,
            other,
        }
    }

    /// The same over the requests that were due inside the spike alone.
    pub(crate) fn in_spike(self) -> Self {
        let other = self.other.map(|(name, scored)| (name, scored.map(|scored| scored.in_spike())));
        Self { scored: self.scored.in_spike(), reference: self.reference.in_spike(), other, ..self }
    }

    /// Whether the run has the check's metric at all.
    pub(crate) fn is_measured(&self, check: &Check) -> bool {
        point::seen(check, &self.scored).is_some()
    }

    /// The requests of the scenario that the bound is a share of.
    pub(crate) fn other(&self) -> Result<&Scored<'a>, Cause> {
        match &self.other {
            Some((_, Some(scored))) => Ok(scored),
            Some((name, None)) => Err(Cause::NoScenario((*name).to_owned())),
            None => Err(Cause::NoData),
        }
    }

    /// The requests of the reference, where it answered any.
    pub(crate) fn answered(&self) -> Result<&Scored<'a>, Cause> {
        let is_answered = self.reference.ok().next().is_some();
        is_answered.then_some(&self.reference).ok_or(Cause::ReferenceTooFewOk { ok: 0, needed: LEAST_OK })
    }
}
