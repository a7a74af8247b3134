//! The course of a gate over its looks: what every check showed at each, and whether the load goes on.

use gate_model::{
    Cause, Check, CheckOutcome, Decision, GateSpec, Health, Importance, Prior, Referee, Sample, Slo, TokenPolicy,
};

use crate::arms::Arms;
use crate::base::{Base, Before};
use crate::family::{Family, Until};
use crate::rules::{self, Reading};
use crate::scope::Scope;
use crate::scored::count;
use crate::{validity, waiver};

/// What a check showed at one look, or what becomes of it since it showed nothing.
pub(crate) type Shown = Result<Reading, CheckOutcome>;

/// The whole-gate procedure while it runs.
#[derive(Clone, Debug)]
pub(crate) struct Course {
    checks: Vec<Check>,
    /// Whether each check is waived.
    waived: Vec<bool>,
    slo: Slo,
    /// Which token counts it may rest on.
    tokens: TokenPolicy,
    /// The scenarios' names.
    scenarios: Vec<String>,
    /// What stored runs say of each check's metric.
    bases: Vec<Base>,
    required: Family,
    /// What every check showed, look by look.
    shown: Vec<Vec<Shown>>,
}

impl Course {
    /// Before the first look of a run of these scenarios that started then (RFC 3339 in UTC). `looks` are ascending,
    /// from above 0.
    pub(crate) fn new(
        spec: &GateSpec,
        scenarios: &[String],
        looks: &[u32],
        started: &str,
        before: &Before<'_>,
    ) -> Self {
        Self {
            checks: spec.checks.clone(),
            waived: spec.checks.iter().map(|check| waiver::is_waived(check, started)).collect(),
            slo: spec.slo,
            tokens: spec.prompts.tokens,
            scenarios: scenarios.to_vec(),
            bases: spec.checks.iter().map(|check| Base::of(check, before, &spec.slo)).collect(),
            required: Family::new(&spec.checks, Importance::Required, looks),
            shown: Vec::new(),
        }
    }

    /// The required checks that are decided by evidence.
    pub(crate) fn required(&self) -> &Family {
        &self.required
    }

    /// Whether a check is waived.
    pub(crate) fn is_waived(&self, check: usize) -> bool {
        self.waived.get(check).copied().unwrap_or(false)
    }

    /// How many requests of each arm the next look scores; `None` after the last.
    pub(crate) fn next_look(&self) -> Option<u32> {
        self.required.looks().get(self.shown.len()).copied()
    }

    /// What every check showed at the last look taken.
    pub(crate) fn last(&self) -> Option<&[Shown]> {
        self.shown.last().map(Vec::as_slice)
    }

    /// What a check showed at a look, from 0; `None` where it showed nothing.
    pub(crate) fn reading(&self, check: usize, look: usize) -> Option<&Reading> {
        self.shown.get(look)?.get(check)?.as_ref().ok()
    }

    /// The same as a p-value; `None` where it has none.
    pub(crate) fn p_fail(&self, check: usize, look: usize) -> Option<f64> {
        self.reading(check, look)?.test.map(|test| test.p_fail)
    }

    /// Takes the next look at the requests it scores, and decides.
    ///
    /// The load stops once a required check is violated, and where none asks for more requests: because it is seen over
    /// its limit, or has too few of them yet. Waived checks do neither. A healthy gate stops at its first look.
    pub(crate) fn look(&mut self, arms: &Arms<'_>, health: Option<Health>) -> Decision {
        let scenarios = arms.by_scenario();
        let last_look = self.required.looks().last().copied().unwrap_or(0);
        let each = self.checks.iter().zip(&self.bases).zip(&self.waived).map(|((check, base), waived)| {
            let scope = Scope::of(check, &self.scenarios, &scenarios, base, &self.slo, health);
            let shown = show(check, &scope, self.tokens);
            let may_ask = check.importance == Importance::Required && !waived;
            let asks = || is_over(check, &shown) || may_have_enough(check, &shown, &scope, arms.len(), last_look);
            let asks = may_ask && asks();
            (shown, asks)
        });
        let (shown, asks): (Vec<Shown>, Vec<bool>) = each.unzip();
        self.shown.push(shown);
        let last = self.shown.len() - 1;
        let until = if self.next_look().is_none() { Until::End(last) } else { Until::Look(last) };
        let rulings =
            self.required.step_down(until, |check| self.is_waived(check), |check, look| self.p_fail(check, look));
        let violated = rulings.iter().any(|(check, ruling)| ruling.violated && !self.is_waived(*check));
        if violated || !asks.contains(&true) || self.next_look().is_none() { Decision::Stop } else { Decision::GoOn }
    }
}

/// What a check shows at a look.
fn show(check: &Check, scope: &Scope<'_>, tokens: TokenPolicy) -> Shown {
    let unmeasured = |cause| CheckOutcome::CouldNotMeasure { cause };
    validity::measurable(check, scope, tokens).map_err(unmeasured)?;
    match scope.base {
        Base::Missing(why) if scope.is_measured(check) => Err(CheckOutcome::NoBaseline { why: why.clone() }),
        _ => rules::read(check, scope).map_err(unmeasured),
    }
}

/// Whether a check, seen over its limit, asks for more requests.
fn is_over(check: &Check, shown: &Shown) -> bool {
    rules::extends(check) && shown.as_ref().is_ok_and(|reading| !reading.keeps)
}

/// Whether a check for which a look has too few answers has enough at the last look, if they go on to come as they did.
fn may_have_enough(check: &Check, shown: &Shown, scope: &Scope<'_>, look: u32, last: u32) -> bool {
    let n = match shown {
        Ok(reading) => Some(reading.n),
        Err(outcome) if validity::is_for_want_of_requests(outcome) => None,
        Err(_) => return false,
    };
    match validity::too_few(check, count(scope.scored.ok().count()), n) {
        Some(Cause::TooFewOk { ok, needed } | Cause::ReferenceTooFewOk { ok, needed }) => {
            u64::from(ok) * u64::from(last) >= u64::from(needed) * u64::from(look)
        }
        _ => false,
    }
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
    arms: u32,
    course: Course,
    decision: Decision,
}

/// The referee of a gate that is judged at these looks, in a run that started then: the header's `started`, by
/// which waivers work or have ended. Of the prior runs it keeps what the checks need.
#[must_use]
pub fn referee(spec: &GateSpec, looks: &[u32], started: &str, prior: &Prior) -> Adaptive {
    let scenarios = std::slice::from_ref(&spec.name);
    let course = Course::new(spec, scenarios, &ordered(looks), started, &Before::of(prior));
    Adaptive { arms: spec.arms(), course, decision: Decision::GoOn }
}

impl Referee for Adaptive {
    /// Takes every look that the samples reach and that was not taken before. Once it said stop, it stays so.
    fn look(&mut self, samples: &[Sample]) -> Decision {
        while self.decision == Decision::GoOn
            && let Some(next) = self.course.next_look()
            && let Some(scored) = usize::try_from(next.saturating_mul(self.arms)).ok().and_then(|n| samples.get(..n))
        {
            self.decision = self.course.look(&Arms::of(self.arms, scored), None);
        }
        self.decision
    }
}
