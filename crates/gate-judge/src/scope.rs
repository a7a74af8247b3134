//! What one check is read from at one look.

use std::collections::BTreeMap;

use gate_model::{Bound, Cause, Check, Health, Slo};

use crate::arms::Arms;
use crate::base::Base;
use crate::rules::point;
use crate::scored::Scored;
use crate::validity::LEAST_OK;

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
    /// What a check is read from, in a run of scenarios of these names.
    pub(crate) fn of(
        check: &'a Check,
        names: &[String],
        scenarios: &BTreeMap<u16, Arms<'a>>,
        base: &'a Base,
        slo: &'a Slo,
        health: Option<Health>,
    ) -> Self {
        let scored = |samples| Scored::new(samples, slo, health);
        let arms = |scenario: u16| scenarios.get(&scenario).cloned().unwrap_or_default();
        let own = arms(check.scenario);
        let other = match &check.bound {
            Bound::ShareOf { scenario, .. } => {
                let place = (0_u16..).zip(names).find(|(_, name)| *name == scenario);
                Some((scenario.as_str(), place.map(|(place, _)| scored(arms(place).target))))
            }
            _ => None,
        };
        Self { scored: scored(own.target), reference: scored(own.reference), base, other }
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
