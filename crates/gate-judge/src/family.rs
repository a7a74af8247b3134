//! Checks that share one error probability: their levels at each look, and Holm's step-down among them.

use std::collections::BTreeMap;

use gate_model::{Check, GateSpec, Importance, Metric, Pattern, Rule, Shared};
use gate_stats::sequential::nested_levels;
use gate_stats::{Levels, Spending};

use crate::rules::{allowed_share, is_evidence, limit, rule};
use crate::scored::{complement, count};

/// The checks of one importance that are decided by evidence, all scenarios together.
///
/// It is counted as declared: a check that is waived or cannot be measured still has its share, so that losing one
/// never turns another red. Where all have the usual confidence, a healthy gate is red at most 5 % of the time.
#[derive(Clone, Debug)]
pub(crate) struct Family {
    /// How many checks it has.
    size: usize,
    /// Those that are judged here.
    members: Vec<Member>,
}

#[derive(Clone, Debug)]
struct Member {
    /// Which check it is.
    check: usize,
    /// Its error probability, if no other check shares it.
    alpha: f64,
    /// How many requests of its scenario each look has that has any.
    looks: Vec<u32>,
    /// Which of these each look of its section is; `None` where the scenario has none there.
    places: Vec<Option<usize>>,
    share: Share,
}

/// How a check spends its error probability over the looks.
#[derive(Clone, Debug)]
enum Share {
    /// By group-sequential boundaries on exceedances.
    Boundaries {
        /// The share of exceedances its bound allows.
        p0: f64,
        /// `None` where no level can be computed; such a check cannot be violated by evidence.
        levels: Option<Levels>,
    },
    /// In equal parts: a test that has no exact recursion.
    EqualParts,
    /// At once, on the final data: no look tells more of how runs differ.
    AtTheEnd,
}

/// How far a family is judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Until {
    /// Up to this look, from 0, after which more requests may come.
    Look(usize),
    /// Up to this look, which is the last.
    End(usize),
}

impl Until {
    /// The look, from 0.
    fn look(self) -> usize {
        match self {
            Self::Look(look) | Self::End(look) => look,
        }
    }
}

/// What became of one member of a family.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ruling {
    /// Whether there is evidence that it is broken.
    pub(crate) violated: bool,
    /// What its levels are parts of.
    pub(crate) shared: Shared,
    /// The level at each look, with as many checks left as when it was decided; absent where it was not asked.
    pub(crate) levels: Vec<Option<f64>>,
}

impl Ruling {
    /// The level at the last look.
    pub(crate) fn level(&self) -> Option<f64> {
        self.levels.last().copied().flatten()
    }
}

impl Family {
    /// The family of one importance. `looks` are those of a check's section, in requests of each arm of its scenario:
    /// ascending, and none for a check whose looks are not known.
    pub(crate) fn new(spec: &GateSpec, importance: Importance, looks: impl Fn(&Check) -> Vec<u32>) -> Self {
        let chosen: Vec<(usize, &Check)> = spec
            .checks
            .iter()
            .enumerate()
            .filter(|(_, check)| check.importance == importance && is_evidence(rule(check)))
            .collect();
        let size = chosen.len();
        let mut known: BTreeMap<(Vec<u32>, u64, u64), Option<Levels>> = BTreeMap::new();
        let members = chosen.into_iter().map(|(position, check)| {
            let alpha = complement(check.confidence);
            let counts = in_spike(check, spec, looks(check));
            let mut looks: Vec<u32> = counts.iter().copied().filter(|look| *look > 0).collect();
            looks.dedup();
            let places = counts.iter().map(|count| looks.iter().position(|look| look == count)).collect();
            let share = match rule(check) {
                Rule::Stored | Rule::StoredTail | Rule::Knee | Rule::Recovery | Rule::Trend => Share::AtTheEnd,
                Rule::Mean | Rule::Cluster | Rule::Paired | Rule::PairedTail | Rule::Bounds => Share::EqualParts,
                // What it allows is measured, and no boundary can be drawn beforehand.
                Rule::Rate if limit(check).is_none() => Share::EqualParts,
                _ => {
                    let p0 = allowed_share(check).unwrap_or(f64::NAN);
                    let levels = known
                        .entry((looks.clone(), p0.to_bits(), alpha.to_bits()))
                        .or_insert_with(|| nested_levels(&looks, p0, alpha, size, Spending::Pocock).ok());
                    Share::Boundaries { p0, levels: levels.clone() }
                }
            };
            Member { check: position, alpha, looks, places, share }
        });
        Self { size, members: members.collect() }
    }

    /// The same of which only some checks are judged here: the others keep their shares.
    pub(crate) fn only(mut self, is_here: impl Fn(usize) -> bool) -> Self {
        self.members.retain(|member| is_here(member.check));
        self
    }

    /// The check, the share its bound allows, its looks and the counts that violate it at each while no other check is
    /// violated, of each member that is decided by counts.
    pub(crate) fn boundaries(&self) -> impl Iterator<Item = (usize, f64, &[u32], Vec<u32>)> + '_ {
        self.members.iter().filter_map(|member| match &member.share {
            Share::Boundaries { p0, levels } => {
                Some((member.check, *p0, member.looks.as_slice(), levels.as_ref()?.counts(self.size)?))
            }
            Share::EqualParts | Share::AtTheEnd => None,
        })
    }

    /// The level of a check at the last look while no other check is violated; `None` where it has none.
    pub(crate) fn last_level(&self, check: usize) -> Option<f64> {
        let member = self.members.iter().find(|member| member.check == check)?;
        let last = member.places.len().checked_sub(1)?;
        self.level(member, self.size, last, Until::End(last))
    }

    /// The level of a member at a look, with so many checks not yet violated; `None` where it is not asked there, and
    /// where its confidence is no probability.
    fn level(&self, member: &Member, remaining: usize, look: usize, until: Until) -> Option<f64> {
        let level = match &member.share {
            Share::Boundaries { levels, .. } => {
                let place = member.places.get(look).copied().flatten()?;
                levels.as_ref()?.at(remaining, place).map(|boundary| boundary.level)
            }
            Share::EqualParts => Some(member.alpha / (remaining * member.looks.len()) as f64),
            Share::AtTheEnd => (until == Until::End(look)).then(|| member.alpha / remaining as f64),
        };
        level.filter(|level| (0.0..1.0).contains(level))
    }

    /// What a member's levels are parts of, with so many checks not yet violated.
    fn shared(member: &Member, remaining: usize) -> Shared {
        let looks = match member.share {
            Share::Boundaries { .. } | Share::EqualParts => member.looks.len(),
            Share::AtTheEnd => 1,
        };
        Shared { alpha: member.alpha, checks: count(remaining), looks: count(looks) }
    }

    /// Holm's step-down over the looks so far: `until` says how far a check's section is judged, and nothing where it is
    /// not judged at all. `p_fail` gives a check's p-value at a look, and `None` where it was not measured.
    ///
    /// The first pass decides red or green; the rest only names further culprits. A waived check never counts as
    /// violated, so the others' levels stay; its own ruling says what it would have been with those left at the end.
    pub(crate) fn step_down(
        &self,
        until: impl Fn(usize) -> Option<Until>,
        is_waived: impl Fn(usize) -> bool,
        p_fail: impl Fn(usize, usize) -> Option<f64>,
    ) -> BTreeMap<usize, Ruling> {
        let mut rulings = BTreeMap::new();
        let mut left: Vec<(&Member, Until)> =
            self.members.iter().filter_map(|member| Some((member, until(member.check)?))).collect();
        let elsewhere = self.size - left.len();
        while !left.is_empty() {
            let remaining = elsewhere + left.len();
            let breaks = |(member, until): (&Member, Until)| {
                (0..=until.look()).any(|look| {
                    let level = self.level(member, remaining, look, until);
                    level.zip(p_fail(member.check, look)).is_some_and(|(level, p_fail)| p_fail <= level)
                })
            };
            let (broken, kept): (Vec<_>, Vec<_>) =
                left.into_iter().partition(|one| !is_waived(one.0.check) && breaks(*one));
            for one in if broken.is_empty() { &kept } else { &broken } {
                let (member, until) = *one;
                let levels = (0..=until.look()).map(|look| self.level(member, remaining, look, until)).collect();
                let shared = Self::shared(member, remaining);
                rulings.insert(member.check, Ruling { violated: breaks(*one), shared, levels });
            }
            left = if broken.is_empty() { Vec::new() } else { kept };
        }
        rulings
    }
}

/// The looks of a check on what a spike has, where it is judged once: as many requests as are due inside it.
fn in_spike(check: &Check, spec: &GateSpec, looks: Vec<u32>) -> Vec<u32> {
    let load = spec.load_of(check.scenario);
    match (check.metric, &load.pattern, load.pace.rate(), looks.as_slice()) {
        (Metric::Spike(_), Pattern::Spike { times, hold, .. }, Some(rate), [_]) => {
            vec![(rate.0 * times * hold.as_secs_f64()).round().max(1.0) as u32]
        }
        _ => looks,
    }
}
