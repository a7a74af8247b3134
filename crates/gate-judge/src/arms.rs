//! The arms of a run: the requests of the target and, side by side, those of the reference.

use std::collections::{BTreeMap, HashMap};

use gate_model::{Arm, Outcome, Request};

use crate::requests::Requests;
use crate::scored::count;

/// The measured requests of a run in send order, without those that it cut off.
///
/// Side by side, what stands at the same place in both arms is a pair.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Arms<'a> {
    /// The requests of the endpoint under test.
    pub(crate) target: Requests<'a>,
    /// Those of the reference; empty where there is none.
    pub(crate) reference: Requests<'a>,
}

impl<'a> Arms<'a> {
    /// The arms of a run that has so many. Side by side only whole pairs count, so that whatever cut a run cuts both
    /// arms alike.
    pub(crate) fn of(arms: u32, requests: impl IntoIterator<Item = Request<'a>>) -> Self {
        let (mut target, mut reference) = (Vec::new(), Vec::new());
        for request in requests.into_iter().filter(|request| request.outcome() != Outcome::Cancelled) {
            match request.arm() {
                Arm::Target => target.push(request),
                Arm::Reference => reference.push(request),
            }
        }
        target.sort_by_key(|request| request.index());
        reference.sort_by_key(|request| request.index());
        if arms == 1 {
            return Self { target: Requests::new(target), reference: Requests::default() };
        }
        let mut halves: HashMap<Place, Request<'a>> = placed(reference).collect();
        let pairs = placed(target).filter_map(|(place, request)| Some((request, halves.remove(&place)?)));
        let (target, reference): (Vec<_>, Vec<_>) = pairs.unzip();
        Self { target: Requests::new(target), reference: Requests::new(reference) }
    }

    /// Those of one arm.
    pub(crate) fn of_arm(&self, arm: Arm) -> &Requests<'a> {
        match arm {
            Arm::Target => &self.target,
            Arm::Reference => &self.reference,
        }
    }

    /// How many requests of each arm there are.
    pub(crate) fn len(&self) -> u32 {
        count(self.target.len())
    }

    /// The first requests of each arm, that many at most.
    pub(crate) fn first(&self, n: u32) -> Self {
        Self { target: self.target.up_to(n), reference: self.reference.up_to(n) }
    }

    /// Those of one scenario.
    pub(crate) fn of_scenario(&self, scenario: u16) -> Self {
        self.by_scenario().remove(&scenario).unwrap_or_default()
    }

    /// Those of each scenario.
    pub(crate) fn by_scenario(&self) -> BTreeMap<u16, Self> {
        let Some(first) = self.target.first().map(|request| request.scenario()) else { return BTreeMap::new() };
        if self.target.iter().all(|request| request.scenario() == first) {
            return BTreeMap::from([(first, self.clone())]);
        }
        let mut scenarios: BTreeMap<u16, (Vec<Request<'a>>, Vec<Request<'a>>)> = BTreeMap::new();
        for (place, target) in self.target.iter().enumerate() {
            let (targets, references) = scenarios.entry(target.scenario()).or_default();
            targets.push(*target);
            references.extend(self.reference.get(place));
        }
        let arms = scenarios.into_iter().map(|(scenario, (target, reference))| {
            (scenario, Self { target: Requests::new(target), reference: Requests::new(reference) })
        });
        arms.collect()
    }

    /// Those of several sections.
    pub(crate) fn joined(parts: &[Self]) -> Self {
        if let [only] = parts {
            return only.clone();
        }
        let of = |arm| parts.iter().flat_map(|part| part.of_arm(arm).iter().copied()).collect();
        Self { target: of(Arm::Target), reference: of(Arm::Reference) }
    }

    /// The requests of both arms, in send order.
    pub(crate) fn both(&self) -> Requests<'a> {
        if self.reference.is_empty() {
            return self.target.clone();
        }
        let mut both: Vec<Request<'a>> = self.target.iter().chain(self.reference.iter()).copied().collect();
        both.sort_by_key(|request| request.index());
        Requests::new(both)
    }
}

/// What tells a pair's halves: its number and turn or, without one, the place in the arm.
type Place = (Option<u32>, u16, usize);

fn placed<'a>(requests: Vec<Request<'a>>) -> impl Iterator<Item = (Place, Request<'a>)> {
    requests.into_iter().enumerate().map(|(place, request)| {
        let (place, turn) = if request.pair().is_some() { (0, request.turn()) } else { (place, 0) };
        ((request.pair(), turn, place), request)
    })
}
