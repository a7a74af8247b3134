//! The arms of a run: the requests of the target and, side by side, those of the reference.

use std::collections::{BTreeMap, HashMap};

use gate_model::{Arm, Outcome, Sample};

use crate::scored::count;

/// The measured requests of a run in send order, without those that it cut off.
///
/// Side by side, what stands at the same place in both arms is a pair.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Arms<'a> {
    /// The requests of the endpoint under test.
    pub(crate) target: Vec<&'a Sample>,
    /// Those of the reference; empty where there is none.
    pub(crate) reference: Vec<&'a Sample>,
}

impl<'a> Arms<'a> {
    /// The arms of a run that has so many. Side by side only whole pairs count, so that whatever cut a run cuts both
    /// arms alike.
    pub(crate) fn of(arms: u32, samples: impl IntoIterator<Item = &'a Sample>) -> Self {
        let mut samples: Vec<&Sample> =
            samples.into_iter().filter(|sample| sample.outcome != Outcome::Cancelled).collect();
        samples.sort_by_key(|sample| sample.index);
        let (reference, target): (Vec<&Sample>, Vec<&Sample>) =
            samples.into_iter().partition(|sample| sample.arm == Arm::Reference);
        if arms == 1 {
            return Self { target, reference: Vec::new() };
        }
        let mut halves: HashMap<Place, &Sample> = placed(reference).collect();
        let pairs = placed(target).filter_map(|(place, sample)| Some((sample, halves.remove(&place)?)));
        let (target, reference) = pairs.unzip();
        Self { target, reference }
    }

    /// Those of one arm.
    pub(crate) fn of_arm(&self, arm: Arm) -> &[&'a Sample] {
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
        let first = |samples: &[&'a Sample]| {
            samples.iter().take(usize::try_from(n).unwrap_or(usize::MAX)).copied().collect::<Vec<_>>()
        };
        Self { target: first(&self.target), reference: first(&self.reference) }
    }

    /// Those of one scenario.
    pub(crate) fn of_scenario(&self, scenario: u16) -> Self {
        self.by_scenario().remove(&scenario).unwrap_or_default()
    }

    /// Those of each scenario.
    pub(crate) fn by_scenario(&self) -> BTreeMap<u16, Self> {
        let mut scenarios: BTreeMap<u16, Self> = BTreeMap::new();
        for (place, target) in self.target.iter().enumerate() {
            let arms = scenarios.entry(target.scenario).or_default();
            arms.target.push(target);
            arms.reference.extend(self.reference.get(place));
        }
        scenarios
    }

    /// The requests of both arms, in send order.
    pub(crate) fn both(&self) -> Vec<&'a Sample> {
        let mut both: Vec<&Sample> = self.target.iter().chain(&self.reference).copied().collect();
        both.sort_by_key(|sample| sample.index);
        both
    }
}

/// What tells a pair's halves: its number or, without one, the place in the arm.
type Place = (Option<u32>, usize);

fn placed(samples: Vec<&Sample>) -> impl Iterator<Item = (Place, &Sample)> {
    samples.into_iter().enumerate().map(|(place, sample)| {
        let place = if sample.pair.is_some() { 0 } else { place };
        ((sample.pair, place), sample)
    })
}
