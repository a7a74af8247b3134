//! Checks that share one error probability: their levels at each look, and Holm's step-down among them.

use std::collections::BTreeMap;

use gate_model::{Check, Importance};
use gate_stats::sequential::nested_levels;
use gate_stats::{Levels, Spending};

use crate::rules::{allowed_share, is_evidence, rule};

/// The error probability of the whole family: a healthy gate is red at most this often.
const ALPHA: f64 = 0.05;

/// The checks of one importance that are decided by evidence, all scenarios together.
///
/// It is counted as declared: a check that cannot be measured still has its share, so that losing one never
/// turns another red.
#[derive(Clone, Debug)]
pub(crate) struct Family {
    looks: Vec<u32>,
    members: Vec<Member>,
}

#[derive(Clone, Debug)]
struct Member {
    /// Which check it is.
    check: usize,
    /// The share of exceedances its bound allows.
    p0: f64,
    /// `None` where no level can be computed; such a check cannot be violated by evidence.
    levels: Option<Levels>,
}

/// What became of one member of a family.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Ruling {
    /// Whether there is evidence that it is broken.
    pub(crate) violated: bool,
    /// The level at the last look, with as many checks left as when it was decided.
    pub(crate) level: Option<f64>,
}

impl Family {
    /// The family of one importance, judged at these looks (ascending, from above 0).
    pub(crate) fn new(checks: &[Check], importance: Importance, looks: &[u32]) -> Self {
        let chosen: Vec<(usize, f64)> = checks
            .iter()
            .enumerate()
            .filter(|(_, check)| check.importance == importance && is_evidence(rule(check)))
            .map(|(position, check)| (position, allowed_share(check).unwrap_or(f64::NAN)))
            .collect();
        let mut known: BTreeMap<u64, Option<Levels>> = BTreeMap::new();
        for (_, p0) in &chosen {
            known
                .entry(p0.to_bits())
                .or_insert_with(|| nested_levels(looks, *p0, ALPHA, chosen.len(), Spending::Pocock).ok());
        }
        let members = chosen.into_iter().map(|(check, p0)| {
            let levels = known.get(&p0.to_bits()).cloned().flatten();
            Member { check, p0, levels }
        });
        Self { looks: looks.to_vec(), members: members.collect() }
    }

    /// The looks it is judged at.
    pub(crate) fn looks(&self) -> &[u32] {
        &self.looks
    }

    /// Each member's check, the share its bound allows, and the counts that violate it at each look while no
    /// other check is violated.
    pub(crate) fn boundaries(&self) -> impl Iterator<Item = (usize, f64, Option<Vec<u32>>)> + '_ {
        let size = self.members.len();
        self.members
            .iter()
            .map(move |member| (member.check, member.p0, member.levels.as_ref().and_then(|levels| levels.counts(size))))
    }

    /// Holm's step-down over the looks up to `last` (from 0). `p_fail` gives a check's p-value at a look, and
    /// `None` where it was not measured.
    ///
    /// The first pass decides red or green; the rest only names further culprits.
    pub(crate) fn step_down(
        &self,
        last: usize,
        p_fail: impl Fn(usize, usize) -> Option<f64>,
    ) -> BTreeMap<usize, Ruling> {
        let level = |member: &Member, remaining: usize, look: usize| {
            member.levels.as_ref().and_then(|levels| levels.at(remaining, look)).map(|boundary| boundary.level)
        };
        let mut rulings = BTreeMap::new();
        let mut left: Vec<&Member> = self.members.iter().collect();
        while !left.is_empty() {
            let remaining = left.len();
            let breaks = |member: &&Member| {
                (0..=last).any(|look| {
                    let p_fail = p_fail(member.check, look);
                    p_fail.zip(level(member, remaining, look)).is_some_and(|(p_fail, level)| p_fail <= level)
                })
            };
            let (broken, kept): (Vec<&Member>, Vec<&Member>) = left.into_iter().partition(breaks);
            let decided = if broken.is_empty() { &kept } else { &broken };
            for member in decided {
                let level = level(member, remaining, last);
                rulings.insert(member.check, Ruling { violated: !broken.is_empty(), level });
            }
            left = if broken.is_empty() { Vec::new() } else { kept };
        }
        rulings
    }
}
