//! The verdict: what every check showed, what validity leaves of it, and what that costs the build.

use std::collections::BTreeMap;

use gate_model::{
    Cause, Check, CheckOutcome, CheckVerdict, Comparison, DEFINITIONS, EndReason, Evidence, ExitCode, GateSpec, Health,
    Importance, Look, Policy, Power, Prior, Quantity, Run, Side, Status, VERDICT_SCHEMA, Verdict,
};

use crate::arms::Arms;
use crate::base::Before;
use crate::course::{Course, Shown, ordered};
use crate::family::{Family, Ruling, Until};
use crate::reach::{Reach, reach};
use crate::rules::{Reading, Says, rule, stored};
use crate::scored::{Scored, count};
use crate::validity::{ClientFaults, LEAST_OK, Lateness, needs_enough_ok, rate_limited};
use crate::{BOUNDS_ALPHA, facts, findings, phases, power, waiver};

/// Judges a run by the spec and the looks of its header, and by what was measured before it.
///
/// The verdict names every check of the spec, whatever became of the run. Its `journals` are empty and `report_only`
/// is false: the caller knows the files and the flags.
#[must_use]
pub fn judge(run: &Run, prior: &Prior) -> Verdict {
    let spec = &run.header.spec;
    let health = run.end.as_ref().map(|end| end.health).unwrap_or_default();
    let before = Before::of(prior);
    let (checks, decided, faults) = match reach(run) {
        Ok(reach) => {
            let decided = decide(run, &reach, health, &before);
            let faults = client_faults(run, &decided);
            (ruled(run, &decided, &faults), Some(decided), faults)
        }
        Err(cause) => (unjudged(run, &cause), None, ClientFaults::default()),
    };
    let mut findings = findings::of_run(run, decided.as_ref(), &checks, &faults);
    findings.extend(findings::compared::of_run(run, decided.as_ref(), &checks, &before));
    findings.extend(prior.notes.iter().cloned());
    let warned = findings.iter().any(|finding| findings::is_warning(finding, spec));
    let (status, exit) = conclude(spec, run, &checks, warned);
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
        valid: decided.as_ref().is_some_and(|decided| is_valid(run, decided, &faults)),
        report_only: false,
        figures: facts::figures(run, decided.as_ref()),
        run: facts::of_run(run, decided.as_ref()),
        baseline: prior.chosen.clone().filter(|_| spec.needs_baseline()),
        moved: decided.as_ref().and_then(|decided| phases::moved(&checks, &decided.arms, &before.kept)),
        checks,
        findings,
        overrides: spec.overrides.clone(),
        journals: Vec::new(),
    }
}

/// The look a run was decided at.
#[derive(Clone, Debug)]
pub(crate) struct Decided<'a> {
    /// How many requests of each arm it scores.
    pub(crate) at: u32,
    /// Those requests.
    pub(crate) arms: Arms<'a>,
    /// The client's health over the run.
    pub(crate) health: Health,
    /// How late the client may be.
    pub(crate) lateness: Lateness,
    /// What every check showed there.
    shown: Vec<Shown>,
    /// What each check decided by evidence showed at every look, where there was more than one.
    looks: Vec<Vec<Look>>,
    /// The rulings on checks decided by evidence.
    rulings: BTreeMap<usize, Ruling>,
    /// What each check could have found.
    power: Vec<Option<Power>>,
}

/// Takes every look a run reached; the last decides.
fn decide<'a>(run: &Run, reach: &Reach<'a>, health: Health, before: &Before<'_>) -> Decided<'a> {
    let spec = &run.header.spec;
    let mut course = Course::new(spec, &run.header.scenarios, &reach.looks, &run.header.started, before);
    let looks: Vec<u32> = reach.looks.iter().take(reach.reached).copied().collect();
    for look in &looks {
        course.look(&reach.arms.first(*look), Some(health));
    }
    let (at, last) = (looks.last().copied().unwrap_or(0), looks.len().saturating_sub(1));
    let is_waived = |check| course.is_waived(check);
    let rulings = course.required().step_down(Until::End(last), is_waived, |check, look| course.p_fail(check, look));
    let at_looks = |check: usize| at_looks(&course, &looks, check, rulings.get(&check));
    let at_looks = (0..spec.checks.len()).map(at_looks).collect();
    let preferred = Family::new(&spec.checks, Importance::Preferred, &[at]);
    let preferred_rulings = preferred.step_down(Until::End(0), is_waived, |check, _| course.p_fail(check, last));
    let shown = course.last().map(<[Shown]>::to_vec).unwrap_or_default();
    let limit = |place: usize| shown.get(place)?.as_ref().ok()?.comparison.as_ref()?.limit;
    Decided {
        at,
        arms: reach.judged(),
        health,
        lateness: Lateness::of(spec, limit),
        power: power::of_families(spec.checks.len(), &[course.required(), &preferred]),
        shown,
        looks: at_looks,
        rulings: rulings.into_iter().chain(preferred_rulings).collect(),
    }
}

/// What a check that has a ruling showed at every look; nothing where there was one look.
fn at_looks(course: &Course, looks: &[u32], check: usize, ruling: Option<&Ruling>) -> Vec<Look> {
    let Some(ruling) = ruling.filter(|_| looks.len() > 1) else { return Vec::new() };
    let at_looks = looks.iter().zip(&ruling.levels).enumerate().filter_map(|(place, (at, level))| {
        let reading = course.reading(check, place)?;
        let p_fail = level.and(reading.test).map(|test| test.p_fail);
        Some(Look { at: *at, n: reading.n, k: reading.k, p_fail, level: *level })
    });
    at_looks.collect()
}

/// What was wrong with the sending side; nothing is known of it in a run that was imported.
fn client_faults(run: &Run, decided: &Decided<'_>) -> ClientFaults {
    if run.header.imported_from.is_some() {
        return ClientFaults::default();
    }
    let spec = &run.header.spec;
    let both = Scored::new(decided.arms.both(), &spec.slo, Some(decided.health));
    ClientFaults::find(spec, &both, decided.health, decided.lateness)
}

/// Whether a run is one to compare later ones with: it sent what was planned up to the look that decided it, with a
/// client that kept up, and most of what was sent was answered.
fn is_valid(run: &Run, decided: &Decided<'_>, faults: &ClientFaults) -> bool {
    let is_whole =
        run.end.as_ref().is_some_and(|end| matches!(end.reason, EndReason::Completed | EndReason::StoppedAtLook(_)));
    let is_answered = |(scenario, _): (u16, &String)| {
        let scored = Scored::new(decided.arms.of_scenario(scenario).target, &run.header.spec.slo, None);
        let ok = count(scored.ok().count());
        ok >= LEAST_OK && 2 * u64::from(ok) > u64::from(scored.n()) && rate_limited(&scored).is_none()
    };
    // A late loop whose stamps are exact measured everything of the server rightly.
    let kept_up = faults.short.is_none() && faults.slow.is_empty();
    is_whole && kept_up && (0..).zip(&run.header.scenarios).all(is_answered)
}

/// Every check with what became of it at the deciding look.
fn ruled(run: &Run, decided: &Decided<'_>, faults: &ClientFaults) -> Vec<CheckVerdict> {
    let spec = &run.header.spec;
    let shown = decided.shown.iter().zip(&decided.power).zip(&decided.looks);
    let scenarios = decided.arms.by_scenario();
    let checks = spec.checks.iter().enumerate().zip(shown).map(|((position, check), ((shown, power), looks))| {
        let ruling = decided.rulings.get(&position);
        let (outcome, reading) = match shown {
            Ok(reading) => (outcome(reading, ruling), Some(reading)),
            Err(outcome) => (outcome.clone(), None),
        };
        let target = scenarios.get(&check.scenario).map(|arms| arms.target.clone()).unwrap_or_default();
        let scored = Scored::new(target, &spec.slo, Some(decided.health));
        let ok = count(scored.ok().count());
        // Without anything to compare it with there is still a number.
        let uncompared = match &outcome {
            CheckOutcome::NoBaseline { .. } => scored.quantity(check.metric),
            _ => None,
        };
        let n = reading.map(|reading| reading.n);
        let outcome = faults.apply(check, needs_enough_ok(check, ok, n, outcome));
        CheckVerdict {
            check: check.clone(),
            rule: rule(check),
            outcome: unless_waived(check, run, outcome),
            seen: reading.map(|reading| reading.seen).or(uncompared),
            evidence: reading.map(|reading| evidence(check, reading, ruling)),
            power: power.clone(),
            looks: looks.clone(),
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
        shared: ruling.filter(|_| reading.test.is_some() && level.is_some()).map(|ruling| ruling.shared),
    }
}

/// Every check of a run that cannot be judged, with the one reason.
fn unjudged(run: &Run, cause: &Cause) -> Vec<CheckVerdict> {
    let spec = &run.header.spec;
    let power = power::power(spec, &ordered(&run.header.looks));
    let checks = spec.checks.iter().zip(power).map(|(check, power)| CheckVerdict {
        check: check.clone(),
        rule: rule(check),
        outcome: unless_waived(check, run, CheckOutcome::CouldNotMeasure { cause: cause.clone() }),
        seen: None,
        evidence: None,
        power,
        looks: Vec::new(),
    });
    checks.collect()
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
