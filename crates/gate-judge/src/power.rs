//! What a gate can find: the counts that violate each check, and the share it finds with 80 % power.

use gate_model::{Check, GateSpec, Importance, Power, Rule, Section};
use gate_stats::stored::RunNoise;
use gate_stats::{binomial, power as stats};

use crate::BOUNDS_ALPHA;
use crate::base::is_noise;
use crate::course::ordered;
use crate::family::Family;
use crate::rules::{is_evidence, rule, stored};
use crate::scored::complement;

/// The probability with which [`Power::detects_share`] is found.
const POWER: f64 = 0.8;

/// What each check can find at the looks of these sections, in the order of the spec's checks; `None` for a check that is
/// not decided by counting requests beyond its bound, and for one whose scenario's looks are not known.
///
/// A preferred check is judged once, where its section ends: its counts are those of each look by itself, and what it
/// proves and detects is of the last. `detects_share` is 1 where nothing is found with 80 % power.
#[must_use]
pub fn power(spec: &GateSpec, sections: &[Section]) -> Vec<Option<Power>> {
    let checks = spec.checks.len();
    let looks = |check: &Check| looks_of(spec, sections, check.scenario);
    let mut found = of_families(checks, &[&Family::new(spec, Importance::Required, looks)]);
    let most = spec.checks.iter().map(|check| looks(check).len()).max().unwrap_or(0);
    for place in 0..most {
        let only = |check: &Check| looks(check).get(place).copied().into_iter().collect();
        let preferred = of_families(checks, &[&Family::new(spec, Importance::Preferred, only)]);
        for (slot, at_look) in found.iter_mut().zip(preferred) {
            let Some(mut at_look) = at_look else { continue };
            let earlier = slot.take().map(|power| power.violates_at).unwrap_or_default();
            at_look.violates_at.splice(..0, earlier);
            *slot = Some(at_look);
        }
    }
    found
}

/// The looks of a scenario, in its own requests of each arm: as planned or, before there is a plan, as the spec says.
pub(crate) fn looks_of(spec: &GateSpec, sections: &[Section], scenario: u16) -> Vec<u32> {
    let section = sections.iter().find(|section| section.scenarios.contains(&scenario));
    ordered(&match section {
        Some(section) => section.looks_of(scenario),
        None => spec.load_of(scenario).iterations.looks(),
    })
}

/// The smallest change that a check on a number against so many stored runs finds with 80 % power, as a share of what
/// they have (`.3` for 30 % more), if runs differ by `noise` (the standard deviation of the logarithm) or, without one
/// known, as they usually do: beside all other checks of its importance, and with its own confidence.
///
/// `None` for a check that is decided otherwise (high percentiles by their tails, shares by counting), one whose
/// tolerance is no share of the base, and one that is not in the spec.
#[must_use]
pub fn stored_detects(spec: &GateSpec, check: usize, runs: u32, noise: Option<f64>) -> Option<f64> {
    let check = spec.checks.get(check).filter(|check| rule(check) == Rule::Stored)?;
    let bound = check.bound.relative()?;
    let tolerance = bound.change.or_else(|| bound.step.is_none().then_some(0.0)).filter(|share| *share > -1.0)?;
    let family = spec.checks.iter().filter(|one| one.importance == check.importance && is_evidence(rule(one)));
    let level = complement(check.confidence) / family.count() as f64;
    let usual = RunNoise::default();
    let noise = RunNoise { tau: noise.filter(is_noise).unwrap_or(usual.tau), ..usual };
    stored::expects(check, tolerance, level, noise, runs)
}

/// What the members of some families can find, by check.
pub(crate) fn of_families(checks: usize, families: &[&Family]) -> Vec<Option<Power>> {
    let mut found = vec![None; checks];
    for family in families {
        for (check, p0, looks, counts) in family.boundaries() {
            if let Some(slot) = found.get_mut(check) {
                *slot = of_check(looks, &counts, p0);
            }
        }
    }
    found
}

fn of_check(looks: &[u32], counts: &[u32], p0: f64) -> Option<Power> {
    let last = u64::from(*looks.last()?);
    let violates_at = looks.iter().zip(counts).map(|(look, count)| (*look, Some(*count).filter(|count| count <= look)));
    let proves = binomial::pass_count(last, p0, BOUNDS_ALPHA).ok().flatten();
    let detects = stats::detectable_share(looks, counts, p0, POWER).ok().flatten();
    Some(Power {
        violates_at: violates_at.collect(),
        proves_at_most: proves.and_then(|count| u32::try_from(count).ok()),
        allowed_share: p0,
        detects_share: detects.unwrap_or(1.0),
    })
}
