//! The course of a gate over its looks: what every check showed at each, and whether the load goes on.

use gate_model::{Cause, Check, Decision, GateSpec, Health, Importance, Referee, Sample, Slo, TokenPolicy};

use crate::family::Family;
use crate::rules::{self, Reading, rule};
use crate::scored::{Scored, measured};
use crate::{validity, waiver};

/// What a check showed at one look, or why it could not be measured.
pub(crate) type Shown = Result<Reading, Cause>;

/// The whole-gate procedure while it runs.
#[derive(Clone, Debug)]
pub(crate) struct Course {
    checks: Vec<Check>,
    /// Whether each check is waived.
    waived: Vec<bool>,
    slo: Slo,
    /// Which token counts it may rest on.
    tokens: TokenPolicy,
    required: Family,
    /// What every check showed, look by look.
    shown: Vec<Vec<Shown>>,
}

impl Course {
    /// Before the first look of a run that started then (RFC 3339 in UTC). `looks` are ascending, from above 0.
    pub(crate) fn new(spec: &GateSpec, looks: &[u32], started: &str) -> Self {
        let required = Family::new(&spec.checks, Importance::Required, looks);
        let waived = spec.checks.iter().map(|check| waiver::is_waived(check, started)).collect();
        let (checks, slo, tokens) = (spec.checks.clone(), spec.slo, spec.prompts.tokens);
        Self { checks, waived, slo, tokens, required, shown: Vec::new() }
    }

    /// The required checks that are decided by evidence.
    pub(crate) fn required(&self) -> &Family {
        &self.required
    }

    /// Whether a check is waived.
    pub(crate) fn is_waived(&self, check: usize) -> bool {
        self.waived.get(check).copied().unwrap_or(false)
    }

    /// How many requests the next look scores; `None` after the last.
    pub(crate) fn next_look(&self) -> Option<u32> {
        self.required.looks().get(self.shown.len()).copied()
    }

    /// What every check showed at the last look taken.
    pub(crate) fn last(&self) -> Option<&[Shown]> {
        self.shown.last().map(Vec::as_slice)
    }

    /// What every check showed at a look, from 0, as a p-value; `None` where it has none.
    pub(crate) fn p_fail(&self, check: usize, look: usize) -> Option<f64> {
        let shown = self.shown.get(look)?.get(check)?;
        shown.as_ref().ok()?.test.map(|test| test.p_fail)
    }

    /// Takes the next look at the requests it scores, and decides.
    ///
    /// The load stops once a required check is violated, and where no required check that may ask for more requests
    /// is seen over its limit; waived ones do neither. A healthy gate stops at its first look.
    pub(crate) fn look(&mut self, samples: &[&Sample], health: Option<Health>) -> Decision {
        let shown = self.checks.iter().map(|check| {
            let scored = Scored::of_scenario(check.scenario, samples, &self.slo, health);
            match validity::unmeasurable(check, &scored, self.tokens) {
                Some(cause) => Err(cause),
                None => rules::read(check, &scored).ok_or(Cause::NoData),
            }
        });
        let shown: Vec<Shown> = shown.collect();
        let checks = self.checks.iter().zip(&self.waived).zip(&shown);
        let over = checks.into_iter().any(|((check, waived), shown)| !waived && extends(check, shown));
        self.shown.push(shown);
        let last = self.shown.len() - 1;
        let rulings =
            self.required.step_down(last, |check| self.is_waived(check), |check, look| self.p_fail(check, look));
        let violated = rulings.iter().any(|(check, ruling)| ruling.violated && !self.is_waived(*check));
        if violated || !over || self.next_look().is_none() { Decision::Stop } else { Decision::GoOn }
    }
}

/// Whether a check, seen over its limit, asks for more requests.
fn extends(check: &Check, shown: &Shown) -> bool {
    check.importance == Importance::Required
        && rules::extends(rule(check))
        && shown.as_ref().is_ok_and(|reading| !reading.keeps)
}

/// Looks as the procedure needs them: ascending, distinct, from above 0.
pub(crate) fn ordered(looks: &[u32]) -> Vec<u32> {
    let mut looks: Vec<u32> = looks.iter().copied().filter(|look| *look > 0).collect();
    looks.sort_unstable();
    looks.dedup();
    looks
}

/// The referee of a gate: at each look it says what [`judge`](crate::judge) will find there.
#[derive(Clone, Debug)]
pub struct Adaptive {
    course: Course,
    decision: Decision,
}

/// The referee of a gate that is judged at these looks, in a run that started then: the header's `started`, by
/// which waivers work or have ended.
#[must_use]
pub fn referee(spec: &GateSpec, looks: &[u32], started: &str) -> Adaptive {
    Adaptive { course: Course::new(spec, &ordered(looks), started), decision: Decision::GoOn }
}

impl Referee for Adaptive {
    /// Takes every look that the samples reach and that was not taken before. Once it said stop, it stays so.
    fn look(&mut self, samples: &[Sample]) -> Decision {
        while self.decision == Decision::GoOn
            && let Some(next) = self.course.next_look()
            && let Some(scored) = usize::try_from(next).ok().and_then(|next| samples.get(..next))
        {
            self.decision = self.course.look(&measured(scored), None);
        }
        self.decision
    }
}
