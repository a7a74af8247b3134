//! The course of a section over its looks: what every check showed at each, and whether the load goes on.

use gate_model::{Cause, Check, CheckOutcome, Decision, GateSpec, Importance, Metric, Prior, Referee, Sample, Section};

use crate::arms::Arms;
use crate::base::{Base, Before};
use crate::family::{Family, Until};
use crate::lost::Lost;
use crate::rules::{self, Reading};
use crate::scope::{Outlook, Scope};
use crate::scored::count;
use crate::{validity, waiver};

/// What a check showed at one look, or what becomes of it since it showed nothing.
pub(crate) type Shown = Result<Reading, CheckOutcome>;

/// A check as it is read.
#[derive(Clone, Debug)]
struct Read {
    /// Its place in the spec.
    place: usize,
    /// The check; one on what a spike has is on the same metric over the whole run.
    check: Check,
    /// Whether it is of what a spike has alone.
    in_spike: bool,
    is_waived: bool,
    /// What stored runs say of its metric.
    base: Base,
}

/// The whole-gate procedure of one section.
#[derive(Clone, Debug)]
pub(crate) struct Course {
    spec: GateSpec,
    /// The scenarios' names.
    names: Vec<String>,
    /// The looks, in requests of each arm.
    looks: Vec<u32>,
    /// The section's checks.
    reads: Vec<Read>,
    /// What each of them showed, look by look; nothing at a look that was not taken.
    shown: Vec<Vec<Shown>>,
}

impl Course {
    /// Before the first look of a section of these scenarios in a run, all of whose scenarios have these names, that
    /// started then (RFC 3339 in UTC). `looks` are ascending, from above 0.
    pub(crate) fn new(
        spec: &GateSpec,
        names: &[String],
        scenarios: &[u16],
        looks: &[u32],
        started: &str,
        before: &Before<'_>,
    ) -> Self {
        let own = spec.checks.iter().enumerate().filter(|(_, check)| scenarios.contains(&check.scenario));
        let read = |(place, check): (usize, &Check)| Read {
            place,
            check: rules::over_all(check),
            in_spike: matches!(check.metric, Metric::Spike(_)),
            is_waived: waiver::is_waived(check, started),
            base: Base::of(check, before, spec.slo_of(check.scenario)),
        };
        Self {
            spec: spec.clone(),
            names: names.to_vec(),
            looks: looks.to_vec(),
            reads: own.map(read).collect(),
            shown: Vec::new(),
        }
    }

    /// How many requests of each arm the next look scores; `None` after the last.
    pub(crate) fn next_look(&self) -> Option<u32> {
        self.looks.get(self.shown.len()).copied()
    }

    /// The last look taken, from 0; `None` before the first.
    pub(crate) fn last(&self) -> Option<usize> {
        self.shown.len().checked_sub(1)
    }

    fn position(&self, check: usize) -> Option<usize> {
        self.reads.iter().position(|read| read.place == check)
    }

    /// Whether a check is one of the section's.
    pub(crate) fn has(&self, check: usize) -> bool {
        self.position(check).is_some()
    }

    /// Whether a check is waived.
    pub(crate) fn is_waived(&self, check: usize) -> bool {
        self.reads.iter().any(|read| read.place == check && read.is_waived)
    }

    /// What a check showed at a look, from 0; `None` of a look that was not taken.
    pub(crate) fn shown(&self, check: usize, look: usize) -> Option<&Shown> {
        self.shown.get(look)?.get(self.position(check)?)
    }

    /// The same where it was measured.
    pub(crate) fn reading(&self, check: usize, look: usize) -> Option<&Reading> {
        self.shown(check, look)?.as_ref().ok()
    }

    /// The same as a p-value; `None` where it has none.
    pub(crate) fn p_fail(&self, check: usize, look: usize) -> Option<f64> {
        self.reading(check, look)?.test.map(|test| test.p_fail)
    }

    /// Takes the look of this place, from 0, at the requests it scores; those before it that were not taken never are.
    /// Says whether a required check asks for more requests: because it is seen over its limit, or has too few of them
    /// yet. Waived checks do not.
    pub(crate) fn look(&mut self, place: usize, arms: &Arms<'_>, outlook: &Outlook<'_>) -> bool {
        let scenarios = arms.by_scenario();
        let last_look = self.looks.last().copied().unwrap_or(0);
        let mut asks = false;
        let mut shown = Vec::with_capacity(self.reads.len());
        for read in &self.reads {
            let check = &read.check;
            let scope = Scope::of(check, &self.spec, &self.names, &scenarios, &read.base, outlook);
            let scope = if read.in_spike { scope.in_spike() } else { scope };
            let one = show(check, &scope, &self.spec);
            let may_ask = check.importance == Importance::Required && !read.is_waived;
            let more = || is_over(check, &one) || may_have_enough(check, &one, &scope, arms.len(), last_look);
            asks = asks || (may_ask && more());
            shown.push(one);
        }
        self.shown.resize(place, Vec::new());
        self.shown.push(shown);
        asks
    }
}

/// What a check shows at a look.
fn show(check: &Check, scope: &Scope<'_>, spec: &GateSpec) -> Shown {
    let unmeasured = |cause| CheckOutcome::CouldNotMeasure { cause };
    validity::measurable(check, scope, spec.prompts_of(check.scenario).tokens).map_err(unmeasured)?;
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

/// The referee of a section: at each look it says what [`judge`](crate::judge) will find there.
#[derive(Clone, Debug)]
pub struct Adaptive {
    arms: u32,
    /// The required checks of the section that are decided by evidence.
    required: Family,
    course: Course,
    lost: Lost,
    decision: Decision,
}

/// The referee of a section of a gate, in a run that started then: the header's `started`, by which waivers work or have
/// ended. Of the prior runs it keeps what the checks need. Only checks of the section's scenarios have a say, and each
/// with as small a share of the error probability as if no check of any scenario were violated.
#[must_use]
pub fn referee(spec: &GateSpec, section: &Section, started: &str, prior: &Prior) -> Adaptive {
    let looks = ordered(&section.looks);
    let course = Course::new(spec, &spec.scenario_names(), &section.scenarios, &looks, started, &Before::of(prior));
    let of_scenario = |check: &Check| {
        if section.by_scenario.is_empty() { looks.clone() } else { section.looks_of(check.scenario) }
    };
    let required = Family::new(spec, Importance::Required, of_scenario).only(|check| course.has(check));
    let lost = Lost::new(spec, section, started, &required);
    Adaptive { arms: spec.arms(), required, course, lost, decision: Decision::GoOn }
}

impl Adaptive {
    /// The section's first requests up to a look, of each arm; `None` where it is not reached. By their indexes, since
    /// conversations that ended early have left holes.
    fn up_to<'a>(&self, look: u32, samples: &'a [Sample]) -> Option<&'a [Sample]> {
        let n = look.saturating_mul(self.arms);
        let (first, last) = (samples.first()?.index, samples.last()?.index);
        let passed = last.checked_sub(first).map_or(0, |passed| passed.saturating_add(1));
        let until = first.saturating_add(n);
        let place = samples.partition_point(|sample| sample.index < until);
        (n <= passed).then(|| samples.get(..place)).flatten()
    }
}

impl Referee for Adaptive {
    /// Takes every look that the samples reach and that was not taken before. Once it said stop, it stays so: once a
    /// required check is violated, and where none asks for more requests. A healthy gate stops at its first look.
    fn look(&mut self, samples: &[Sample]) -> Decision {
        while self.decision == Decision::GoOn
            && let Some(next) = self.course.next_look()
            && let Some(scored) = self.up_to(next, samples)
        {
            let arms = Arms::of(self.arms, scored.iter().map(gate_model::Request::Sample));
            let place = self.course.last().map_or(0, |last| last + 1);
            let asks = self.course.look(place, &arms, &Outlook::default());
            let is_last = self.course.next_look().is_none();
            let until = if is_last { Until::End(place) } else { Until::Look(place) };
            let (course, required) = (&self.course, &self.required);
            let is_waived = |check| course.is_waived(check);
            let rulings = required.step_down(|_| Some(until), is_waived, |check, look| course.p_fail(check, look));
            let violated = rulings.iter().any(|(check, ruling)| ruling.violated && !is_waived(*check));
            self.decision = if violated || !asks || is_last { Decision::Stop } else { Decision::GoOn };
        }
        self.decision
    }

    fn lost(&mut self, sample: &Sample) -> Option<String> {
        self.lost.take(sample)
    }
}
