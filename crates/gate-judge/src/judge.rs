//! The verdict: what every check showed, what validity leaves of it, and what that costs the build.

use std::collections::BTreeMap;

use gate_model::{
    Cause, Check, CheckOutcome, CheckVerdict, DEFINITIONS, EndReason, Evidence, ExitCode, GateSpec, Health, Importance,
    Outcome, Policy, Power, Quantity, Rule, Run, Sample, Side, Status, VERDICT_SCHEMA, Verdict,
};

use crate::course::{Course, Shown, ordered};
use crate::family::{Family, Ruling};
use crate::reach::{Reach, reach};
use crate::rules::{Reading, rule};
use crate::scored::{Scored, count};
use crate::validity::{ClientFaults, needs_enough_ok};
use crate::{BOUNDS_ALPHA, facts, findings, power, waiver};

/// Judges a run by the spec and the looks of its header.
///
/// The verdict names every check of the spec, whatever became of the run. Its `journals` are empty and `report_only`
/// is false: the caller knows the files and the flags.
#[must_use]
pub fn judge(run: &Run) -> Verdict {
    let spec = &run.header.spec;
    let health = run.end.as_ref().map(|end| end.health).unwrap_or_default();
    let (checks, decided, faults) = match reach(run) {
        Ok(reach) => {
            let decided = decide(run, &reach, health);
            let faults = client_faults(run, &decided, health);
            (ruled(run, &decided, &faults), Some(decided), faults)
        }
        Err(cause) => (unjudged(run, &cause), None, ClientFaults::default()),
    };
    let findings = findings::of_run(run, decided.as_ref(), &checks, &faults);
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
        report_only: false,
        figures: facts::figures(run, decided.as_ref()),
        run: facts::of_run(run, decided.as_ref()),
        checks,
        findings,
        overrides: spec.overrides.clone(),
        journals: Vec::new(),
    }
}

/// The look a run was decided at.
#[derive(Clone, Debug)]
pub(crate) struct Decided<'a> {
    /// How many requests it scores.
    pub(crate) at: u32,
    /// Those requests, in send order.
    pub(crate) samples: Vec<&'a Sample>,
    /// The client's health over the run.
    pub(crate) health: Health,
    /// What every check showed there.
    shown: Vec<Shown>,
    /// The rulings on checks decided by evidence.
    rulings: BTreeMap<usize, Ruling>,
    /// What each check could have found.
    power: Vec<Option<Power>>,
}

/// Takes every look a run reached; the last decides.
fn decide<'a>(run: &Run, reach: &Reach<'a>, health: Health) -> Decided<'a> {
    let spec = &run.header.spec;
    let mut course = Course::new(spec, &reach.looks, &run.header.started);
    let (mut at, mut last, mut samples) = (0, 0, Vec::new());
    for (look, scored) in reach.looks.iter().take(reach.reached).enumerate() {
        (at, last) = (*scored, look);
        samples = reach.samples.iter().take(usize::try_from(at).unwrap_or(usize::MAX)).copied().collect();
        course.look(&samples, Some(health));
    }
    let is_waived = |check| course.is_waived(check);
    let mut rulings = course.required().step_down(last, is_waived, |check, look| course.p_fail(check, look));
    let preferred = Family::new(&spec.checks, Importance::Preferred, &[at]);
    rulings.extend(preferred.step_down(0, is_waived, |check, _| course.p_fail(check, last)));
    let power = power::of_families(spec.checks.len(), &[course.required(), &preferred]);
    let shown = course.last().map(<[Shown]>::to_vec).unwrap_or_default();
    Decided { at, samples, health, shown, rulings, power }
}

/// What was wrong with the sending side; nothing is known of it in a run that was imported.
fn client_faults(run: &Run, decided: &Decided<'_>, health: Health) -> ClientFaults {
    if run.header.imported_from.is_some() {
        return ClientFaults::default();
    }
    let spec = &run.header.spec;
    ClientFaults::find(spec, &Scored::of_run(&decided.samples, &spec.slo, Some(health)), health)
}

/// Every check with what became of it at the deciding look.
fn ruled(run: &Run, decided: &Decided<'_>, faults: &ClientFaults) -> Vec<CheckVerdict> {
    let spec = &run.header.spec;
    let shown = decided.shown.iter().zip(&decided.power);
    let checks = spec.checks.iter().enumerate().zip(shown).map(|((position, check), (shown, power))| {
        let ruling = decided.rulings.get(&position).copied();
        let outcome = match shown {
            Ok(reading) => outcome(reading, ruling),
            Err(cause) => CheckOutcome::CouldNotMeasure { cause: cause.clone() },
        };
        let in_scenario = decided.samples.iter().filter(|sample| sample.scenario == check.scenario);
        let ok = count(in_scenario.filter(|sample| sample.outcome == Outcome::Ok).count());
        let reading = shown.as_ref().ok();
        let outcome = faults.apply(check, needs_enough_ok(check, rests_on(check, ok, reading), outcome));
        CheckVerdict {
            check: check.clone(),
            rule: rule(check),
            outcome: unless_waived(check, run, outcome),
            seen: reading.map(|reading| reading.seen),
            evidence: reading.map(|reading| evidence(reading, ruling.and_then(|ruling| ruling.level))),
            power: power.clone(),
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

/// The `ok` requests a check rests on. A mean of few values can look certain for want of spread, so only those count
/// that have a value; counts of exceedances are as uncertain as they are few.
fn rests_on(check: &Check, ok: u32, reading: Option<&Reading>) -> u32 {
    match (rule(check), reading) {
        (Rule::Mean | Rule::Cluster, Some(reading)) => ok.min(reading.n),
        _ => ok,
    }
}

/// What a reading comes to. Without a test it is compared as it is.
fn outcome(reading: &Reading, ruling: Option<Ruling>) -> CheckOutcome {
    let Some(test) = &reading.test else {
        return if reading.keeps { CheckOutcome::Met } else { CheckOutcome::Violated };
    };
    if ruling.is_some_and(|ruling| ruling.violated) {
        CheckOutcome::Violated
    } else if test.p_pass <= BOUNDS_ALPHA {
        CheckOutcome::Met
    } else {
        CheckOutcome::Inconclusive { side: if reading.keeps { Side::Within } else { Side::Over } }
    }
}

fn evidence(reading: &Reading, level: Option<f64>) -> Evidence {
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
    if spec.outcomes.inconclusive == Policy::Fail && required(is_over) {
        return (Status::Inconclusive, ExitCode::Inconclusive);
    }
    let passes = |one: &CheckVerdict| {
        matches!(one.outcome, CheckOutcome::Met | CheckOutcome::Inconclusive { side: Side::Within })
    };
    let status = if warned || !checks.iter().all(passes) { Status::PassedWithWarnings } else { Status::Passed };
    (status, ExitCode::Passed)
}

/// Whether a check is seen over its limit, but not proven to be.
fn is_over(outcome: &CheckOutcome) -> bool {
    matches!(outcome, CheckOutcome::Inconclusive { side: Side::Over })
}
