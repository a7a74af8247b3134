//! The verdict: what every check showed, what validity leaves of it, and what that costs the build.

use std::collections::BTreeMap;

use gate_model::{
    Cause, Check, CheckOutcome, CheckVerdict, Comparison, DEFINITIONS, EndReason, Evidence, ExitCode, GateSpec, Health,
    Importance, Look, Metric, Policy, Power, Prior, Quantity, Run, Section, Side, Status, VERDICT_SCHEMA, Verdict,
};

use crate::arms::Arms;
use crate::base::Before;
use crate::bill::Bill;
use crate::course::Course;
use crate::family::{Family, Ruling, Until};
use crate::reach::{Part, Reach, parts};
use crate::requests::Requests;
use crate::rules::{Reading, Says, rule, stored};
use crate::scope::Outlook;
use crate::scored::{Scored, Setting, count};
use crate::validity::{ClientFaults, LEAST_OK, Lateness, needs_enough_ok, rate_limited};
use crate::{BOUNDS_ALPHA, facts, findings, phases, power, slow, spreads, suspects, waiver};

/// Judges a run by the spec and the looks of its header, and by what was measured before it.
///
/// The verdict names every check of the spec, whatever became of the run. Its `journals` are empty and `report_only`
/// is false: the caller knows the files and the flags.
#[must_use]
pub fn judge(run: &Run, prior: &Prior) -> Verdict {
    let spec = &run.header.spec;
    let before = Before::of(prior);
    let decided = Decided::of(run, &before);
    let checks = ruled(run, &decided);
    let mut findings = findings::of_run(run, &decided, &checks);
    findings.extend(findings::compared::of_run(run, &decided, &checks, &before));
    findings.extend(prior.notes.iter().cloned());
    let warned = findings.iter().any(|finding| findings::is_warning(finding, spec));
    let (status, exit) = conclude(spec, run, &checks, warned);
    let slow = slow::slow(&checks, &decided, &before);
    let suspects = suspects::suspects(run, &decided, &checks, &slow);
    Verdict {
        schema: VERDICT_SCHEMA,
        definitions: DEFINITIONS,
        gate: env!("CARGO_PKG_VERSION").to_owned(),
        name: spec.name.clone(),
        spec_file: spec.file.clone(),
        simulated: run.header.simulated,
        status,
        exit,
        policy: spec.outcomes,
        valid: is_valid(run, &decided),
        report_only: false,
        figures: facts::figures(run, &decided),
        run: facts::of_run(run, &decided),
        baseline: prior.chosen.clone().filter(|_| spec.needs_baseline()),
        moved: slow.first().and_then(|slow| phases::moved(slow, &suspects)),
        suspects,
        spreads: spreads::spreads(run, &decided, &before),
        checks,
        findings,
        overrides: spec.overrides.clone(),
        journals: Vec::new(),
    }
}

/// What a run was decided on.
#[derive(Clone, Debug)]
pub(crate) struct Decided<'a> {
    /// Its sections.
    pub(crate) parts: Vec<Judged<'a>>,
    /// The requests that facts are about, section after section: the judged ones, or all that ended where nothing was
    /// judged.
    pub(crate) arms: Arms<'a>,
    /// What the whole run used up.
    pub(crate) bill: Bill,
    /// The rulings on checks decided by evidence.
    rulings: BTreeMap<usize, Ruling>,
    /// What each check could have found.
    power: Vec<Option<Power>>,
}

/// A section with what was decided of it.
#[derive(Clone, Debug)]
pub(crate) struct Judged<'a> {
    /// The section.
    pub(crate) section: Section,
    /// What the server's own metrics said in it.
    pub(crate) scrapes: &'a [gate_model::Scrape],
    /// The look it was decided at, or why it could not be judged.
    pub(crate) at: Result<u32, Cause>,
    /// The judged requests, or all that ended where none were.
    pub(crate) arms: Arms<'a>,
    /// The client's health over it.
    pub(crate) health: Health,
    /// How late the client may be.
    pub(crate) lateness: Lateness,
    /// What was wrong with the sending side.
    pub(crate) faults: ClientFaults,
    /// What every check showed at its looks; nothing where it could not be judged.
    course: Option<Course>,
    /// The looks that were taken.
    looks: Vec<(usize, u32)>,
}

impl<'a> Decided<'a> {
    /// Takes every look that each section reached; the last decides.
    fn of(run: &'a Run, before: &Before<'_>) -> Self {
        let spec = &run.header.spec;
        let bill = Bill::of(run);
        let parts = parts(run);
        let required = Family::new(spec, Importance::Required, |check| looks_of(spec, &parts, check));
        let mut others: BTreeMap<u16, Arms<'a>> = BTreeMap::new();
        if parts.len() > 1 {
            let judged = parts.iter().filter_map(|part| part.reach.as_ref().ok()).map(Reach::judged);
            others.extend(judged.flat_map(|arms| arms.by_scenario()));
        }
        let judged = parts.into_iter().map(|part| Judged::of(part, run, before, bill, &others));
        let parts: Vec<Judged<'a>> = judged.collect();
        drop(others);
        let course = |check: usize| {
            let part = parts.iter().find(|part| part.course.as_ref().is_some_and(|course| course.has(check)));
            part.and_then(|part| part.course.as_ref())
        };
        let last = |check: usize| course(check).and_then(Course::last);
        let is_waived = |check: usize| course(check).is_some_and(|course| course.is_waived(check));
        let p_fail = |check: usize, look: usize| course(check)?.p_fail(check, look);
        let rulings = required.step_down(|check| last(check).map(Until::End), is_waived, p_fail);
        let judged_of = |check: &Check| {
            let part = parts.iter().find(|part| part.section.scenarios.contains(&check.scenario));
            match part {
                Some(Judged { at: Ok(at), section, .. }) if section.scenarios.len() == 1 => vec![*at],
                Some(Judged { at: Ok(_), arms, .. }) => vec![arms.of_scenario(check.scenario).len()],
                _ => Vec::new(),
            }
        };
        let preferred = Family::new(spec, Importance::Preferred, judged_of);
        let at_the_end = |check: usize, _| p_fail(check, last(check)?);
        let preferred_rulings = preferred.step_down(|check| last(check).map(|_| Until::End(0)), is_waived, at_the_end);
        let found = power::of_families(spec.checks.len(), &[&required, &preferred]);
        let mut power = found;
        if parts.iter().any(|part| part.at.is_err()) {
            let sections: Vec<Section> = parts.iter().map(|part| part.section.clone()).collect();
            let planned = power::power(spec, &sections).into_iter().enumerate();
            for (slot, (_, planned)) in power.iter_mut().zip(planned).filter(|(_, (check, _))| last(*check).is_none()) {
                *slot = planned;
            }
        }
        let is_judged = parts.iter().any(|part| part.at.is_ok());
        let arms: Vec<Arms<'a>> =
            parts.iter().filter(|part| part.at.is_ok() || !is_judged).map(|part| part.arms.clone()).collect();
        let arms = Arms::joined(&arms);
        Self { arms, bill, rulings: rulings.into_iter().chain(preferred_rulings).collect(), power, parts }
    }

    /// Whether any section was judged.
    pub(crate) fn is_judged(&self) -> bool {
        self.parts.iter().any(|part| part.at.is_ok())
    }

    /// The section of a scenario.
    pub(crate) fn part(&self, scenario: u16) -> Option<&Judged<'a>> {
        self.parts.iter().find(|part| part.section.scenarios.contains(&scenario))
    }

    /// What is known beside the requests of a scenario.
    pub(crate) fn setting(&self, spec: &'a GateSpec, scenario: u16) -> Setting<'a> {
        let part = self.part(scenario);
        Setting {
            load: Some(spec.load_of(scenario)),
            health: part.map(|part| part.health),
            scrapes: part.map(|part| part.scrapes).unwrap_or_default(),
            shards: part.map_or(1, |part| part.section.shards),
            bill: Some(self.bill),
        }
    }
}

/// The looks of a check's scenario, as its section reached them; where it reached none, as they were planned.
fn looks_of(spec: &GateSpec, parts: &[Part<'_>], check: &Check) -> Vec<u32> {
    let part = parts.iter().find(|part| part.section.scenarios.contains(&check.scenario));
    match part.map(|part| &part.reach) {
        Some(Ok(reach)) => reach.looks_of(check.scenario),
        _ => {
            let sections: Vec<Section> = parts.iter().map(|part| part.section.clone()).collect();
            power::looks_of(spec, &sections, check.scenario)
        }
    }
}

impl<'a> Judged<'a> {
    fn of(part: Part<'a>, run: &'a Run, before: &Before<'_>, bill: Bill, others: &BTreeMap<u16, Arms<'a>>) -> Self {
        let spec = &run.header.spec;
        let Part { section, arms, scrapes, reach } = part;
        let health = section.end.as_ref().map(|end| end.health).unwrap_or_default();
        let unjudged = |section: Section, arms, cause| Self {
            lateness: Lateness::of(spec, &section.scenarios, |_| None),
            section,
            scrapes,
            at: Err(cause),
            arms,
            health,
            faults: ClientFaults::default(),
            course: None,
            looks: Vec::new(),
        };
        let reach = match reach {
            Ok(reach) => reach,
            Err(cause) => return unjudged(section, arms, cause),
        };
        drop(arms);
        let mut course =
            Course::new(spec, &run.header.scenarios, &section.scenarios, &reach.looks, &run.header.started, before);
        let shards = section.shards;
        let outlook = Outlook { health: Some(health), scrapes, shards, bill: Some(bill), others: Some(others) };
        let mut looks = Vec::new();
        for (place, arms) in &reach.taken {
            course.look(*place, arms, &outlook);
            looks.push((*place, reach.looks.get(*place).copied().unwrap_or(reach.at).min(reach.at)));
        }
        let last = course.last().unwrap_or(0);
        let limit = |check: usize| course.reading(check, last)?.comparison.as_ref()?.limit;
        let lateness = Lateness::of(spec, &section.scenarios, limit);
        let arms = reach.judged();
        let faults = client_faults(run, &section, &arms, health, lateness);
        Self { section, scrapes, at: Ok(reach.at), arms, health, lateness, faults, course: Some(course), looks }
    }

    /// What a check that has a ruling showed at every look; nothing where there was one look.
    fn at_looks(&self, check: usize, ruling: Option<&Ruling>) -> Vec<Look> {
        let Some((ruling, course)) = ruling.zip(self.course.as_ref()).filter(|_| self.looks.len() > 1) else {
            return Vec::new();
        };
        let at_looks = self.looks.iter().filter_map(|(place, at)| {
            let level = ruling.levels.get(*place).copied()?;
            let reading = course.reading(check, *place)?;
            let p_fail = level.and(reading.test).map(|test| test.p_fail);
            Some(Look { at: *at, n: reading.n, k: reading.k, p_fail, level })
        });
        at_looks.collect()
    }
}

/// What was wrong with the sending side; nothing is known of it in a run that was imported.
fn client_faults(run: &Run, section: &Section, arms: &Arms<'_>, health: Health, lateness: Lateness) -> ClientFaults {
    if run.header.imported_from.is_some() {
        return ClientFaults::default();
    }
    let spec = &run.header.spec;
    let load = section.scenarios.first().map(|scenario| spec.load_of(*scenario));
    let setting = Setting { load, health: Some(health), ..Setting::default() };
    let both = Scored::new(arms.both(), &spec.slo).within(setting);
    ClientFaults::find(&both, health, lateness, section.end.as_ref().map(|end| &end.reason))
}

/// Whether a run is one to compare later ones with: it sent what was planned up to the look that decided it, with a
/// client that kept up, and most of what was sent was answered.
fn is_valid(run: &Run, decided: &Decided<'_>) -> bool {
    let is_whole = |part: &Judged<'_>| {
        let end = part.section.end.as_ref();
        end.is_some_and(|end| matches!(end.reason, EndReason::Completed | EndReason::StoppedAtLook(_)))
    };
    let scenarios = decided.arms.by_scenario();
    let is_answered = |(scenario, _): (u16, &String)| {
        let target = scenarios.get(&scenario).map(|arms| arms.target.clone()).unwrap_or_default();
        let scored = Scored::new(target, run.header.spec.slo_of(scenario));
        let ok = count(scored.ok().count());
        ok >= LEAST_OK && 2 * u64::from(ok) > u64::from(scored.n()) && rate_limited(&scored).is_none()
    };
    // A late loop whose stamps are exact measured everything of the server rightly.
    let kept_up = |part: &Judged<'_>| part.faults.short.is_none() && part.faults.slow.is_empty();
    decided.parts.iter().all(|part| part.at.is_ok() && is_whole(part) && kept_up(part))
        && (0..).zip(&run.header.scenarios).all(is_answered)
}

/// Every check with what became of it at the deciding look of its section.
fn ruled(run: &Run, decided: &Decided<'_>) -> Vec<CheckVerdict> {
    let spec = &run.header.spec;
    let scenarios = decided.arms.by_scenario();
    let checks = spec.checks.iter().enumerate().map(|(position, check)| {
        let part = decided.part(check.scenario);
        let ruling = decided.rulings.get(&position);
        let course = part.and_then(|part| part.course.as_ref());
        let shown = course.and_then(|course| course.shown(position, course.last()?));
        let (outcome, reading) = match (shown, part.map(|part| &part.at)) {
            (Some(Ok(reading)), _) => (outcome(reading, ruling), Some(reading)),
            (Some(Err(outcome)), _) => (outcome.clone(), None),
            (None, Some(Err(cause))) => (CheckOutcome::CouldNotMeasure { cause: cause.clone() }, None),
            (None, _) => (CheckOutcome::CouldNotMeasure { cause: Cause::NoData }, None),
        };
        let target = match shown {
            Some(_) => scenarios.get(&check.scenario).map(|arms| arms.target.clone()).unwrap_or_default(),
            None => Requests::default(),
        };
        let scored = Scored::new(target, spec.slo_of(check.scenario)).within(decided.setting(spec, check.scenario));
        let scored = if let Metric::Spike(_) = check.metric { scored.in_spike() } else { scored };
        let ok = count(scored.ok().count());
        // Without anything to compare it with there is still a number.
        let uncompared = match &outcome {
            CheckOutcome::NoBaseline { .. } => scored.quantity(check.metric),
            _ => None,
        };
        let n = reading.map(|reading| reading.n);
        let outcome = match part.filter(|_| shown.is_some()) {
            Some(part) => part.faults.apply(check, needs_enough_ok(check, ok, n, outcome)),
            None => outcome,
        };
        CheckVerdict {
            check: check.clone(),
            rule: rule(check),
            outcome: unless_waived(check, run, outcome),
            seen: reading.map(|reading| reading.seen).or(uncompared),
            evidence: reading.map(|reading| evidence(check, reading, ruling)),
            power: decided.power.get(position).cloned().flatten(),
            looks: part.map(|part| part.at_looks(position, ruling)).unwrap_or_default(),
        }
    });
    checks.collect()
}

/// The outcome, unless the check is waived.
fn unless_waived(check: &Check, run: &Run, outcome: CheckOutcome) -> CheckOutcome {
    if waiver::is_waived(check, &run.header.started) {
        CheckOutcome::Waived { otherwise: Box::new(outcome) }
    } else {
        outcome
    }
}

/// What a reading comes to. Without a test it is compared as it is, where that says anything.
fn outcome(reading: &Reading, ruling: Option<&Ruling>) -> CheckOutcome {
    let is_violated = match &reading.test {
        Some(_) => ruling.is_some_and(|ruling| ruling.violated),
        None => reading.says == Says::All && !reading.keeps,
    };
    let holds = reading.says == Says::All && reading.keeps;
    match reading.says {
        _ if is_violated => CheckOutcome::Violated,
        _ if holds && reading.test.is_none_or(|test| test.p_pass <= BOUNDS_ALPHA) => CheckOutcome::Met,
        _ if !reading.keeps => CheckOutcome::Inconclusive { side: Side::Over },
        Says::Violated => CheckOutcome::Inconclusive { side: Side::Blind },
        _ => CheckOutcome::Inconclusive { side: Side::Within },
    }
}

fn evidence(check: &Check, reading: &Reading, ruling: Option<&Ruling>) -> Evidence {
    let level = ruling.and_then(Ruling::level);
    let needed = |level| reading.test.as_ref().and_then(|test| test.needed(reading.n, level));
    let bound = |bound: Option<f64>| bound.map(|value| Quantity { value, unit: reading.seen.unit });
    Evidence {
        n: reading.n,
        k: reading.k,
        allowed: reading.allowed,
        needed: level.and_then(needed).or(reading.breaks_at),
        p_fail: reading.test.map(|test| test.p_fail),
        p_pass: reading.test.map(|test| test.p_pass),
        level,
        design_effect: reading.test.map_or(1.0, |test| test.design_effect()),
        lower: bound(reading.lower),
        upper: bound(reading.upper),
        comparison: reading.comparison.clone().map(|comparison| Comparison {
            detects: level.and_then(|level| stored::detects(check, &comparison, level)),
            ..comparison
        }),
        pattern: reading.pattern,
        shared: ruling.filter(|_| reading.test.is_some() && level.is_some()).map(|ruling| ruling.shared),
    }
}

/// What the outcomes cost: violated beats could-not-measure beats inconclusive, and only required checks cost
/// anything.
fn conclude(spec: &GateSpec, run: &Run, checks: &[CheckVerdict], warned: bool) -> (Status, ExitCode) {
    if run.end.as_ref().is_some_and(|end| end.reason == EndReason::Interrupted) {
        return (Status::Interrupted, ExitCode::Interrupted);
    }
    if !checks.iter().any(|one| one.check.importance == Importance::Required) {
        // gate-spec allows no such gate; a journal that was changed may hold one, and it proves nothing.
        return (Status::CouldNotMeasure, ExitCode::CouldNotMeasure);
    }
    let required = |wanted: fn(&CheckOutcome) -> bool| {
        checks.iter().any(|one| one.check.importance == Importance::Required && wanted(&one.outcome))
    };
    if required(|outcome| matches!(outcome, CheckOutcome::Violated)) {
        return (Status::Violated, ExitCode::Violated);
    }
    if spec.outcomes.invalid == Policy::Fail
        && required(|outcome| matches!(outcome, CheckOutcome::CouldNotMeasure { .. }))
    {
        return (Status::CouldNotMeasure, ExitCode::CouldNotMeasure);
    }
    let costs = (spec.outcomes.inconclusive == Policy::Fail && required(is_over))
        || (spec.outcomes.no_baseline == Policy::Fail
            && required(|outcome| matches!(outcome, CheckOutcome::NoBaseline { .. })));
    if costs {
        return (Status::Inconclusive, ExitCode::Inconclusive);
    }
    let passes = |one: &CheckVerdict| {
        matches!(one.outcome, CheckOutcome::Met | CheckOutcome::Inconclusive { side: Side::Within })
    };
    let status = if warned || !checks.iter().all(passes) { Status::PassedWithWarnings } else { Status::Passed };
    (status, ExitCode::Passed)
}

/// Whether a check is seen over its limit, but not proven to be; or cannot see its own tolerance.
fn is_over(outcome: &CheckOutcome) -> bool {
    matches!(outcome, CheckOutcome::Inconclusive { side: Side::Over | Side::Blind })
}
