//! What a person reads first of a verdict, and which checks need a reason.

use gate_model::{CheckOutcome, CheckVerdict, Finding, Importance, Side, Status, Verdict};

use super::{finding_sentence, grouped, headline, judged, outcome_sentence, outcome_word, waiver};
use crate::layout::counted;

/// The one sentence a person reads first: what is violated, could not be measured or is not proven, and what follows
/// from that for the build.
#[must_use]
pub fn lead_sentence(verdict: &Verdict) -> String {
    let required = |wanted: fn(&CheckOutcome) -> bool| {
        let checks = verdict.checks.iter().filter(move |check| check.check.importance == Importance::Required);
        checks.filter(move |check| wanted(&check.outcome)).collect::<Vec<_>>()
    };
    let unmeasured = || required(|outcome| matches!(outcome, CheckOutcome::CouldNotMeasure { .. }));
    let over = || required(|outcome| matches!(outcome, CheckOutcome::Inconclusive { side: Side::Over }));
    let sentence = match verdict.status {
        Status::Violated => first_of(&required(|outcome| matches!(outcome, CheckOutcome::Violated))),
        Status::CouldNotMeasure => unmeasured().first().map(|check| headline(check)),
        Status::Inconclusive => {
            first_of(&over()).map(|seen| format!("{seen}; not proven, and this gate counts that against the build"))
        }
        Status::Interrupted => Some(format!(
            "Stopped after {} of at most {}",
            grouped(verdict.run.sent),
            counted(verdict.run.planned as usize, "request")
        )),
        Status::PassedWithWarnings => first_of(&over())
            .map(|seen| {
                let with = with_how_many(&over());
                format!("{seen}; not proven{with}: the build passes; `--strict` decides it against")
            })
            .or_else(|| first_of(&unmeasured()))
            .or_else(|| waived_sentence(verdict))
            .or_else(|| preferred_sentence(verdict)),
        Status::Passed => None,
    };
    let mut sentence = sentence.unwrap_or_else(|| how_many_hold(verdict));
    if !sentence.ends_with('.') {
        sentence.push('.');
    }
    sentence
}

/// Says that the build passes all the same, where only `--report-only` makes it.
pub(crate) fn report_only(verdict: &Verdict) -> Option<&'static str> {
    let turned = verdict.report_only && matches!(verdict.status, Status::Violated | Status::Inconclusive);
    turned.then_some("REPORT ONLY: the build passes all the same (`--report-only`)")
}

/// Whether the check did not pass on its own.
pub(crate) fn needs_reason(verdict: &CheckVerdict) -> bool {
    !matches!(verdict.outcome, CheckOutcome::Met | CheckOutcome::Inconclusive { side: Side::Within })
}

/// Why each check that did not pass did not. One cause of several checks is said once.
pub(crate) fn reasons(verdict: &Verdict) -> Vec<(String, Vec<&CheckVerdict>)> {
    let mut said: Vec<(String, Vec<&CheckVerdict>)> = Vec::new();
    for check in verdict.checks.iter().filter(|check| needs_reason(check)) {
        let sentence = outcome_sentence(check);
        match said.iter_mut().find(|(same, _)| *same == sentence) {
            Some((_, checks)) => checks.push(check),
            None => said.push((sentence, vec![check])),
        }
    }
    said
}

/// What else a reader should know, in words; what the reason of a check already says is left out.
pub(crate) fn further_findings(verdict: &Verdict) -> Vec<(&Finding, String)> {
    let said: Vec<String> = reasons(verdict).into_iter().map(|(sentence, _)| sentence).collect();
    let findings = verdict.findings.iter().map(|finding| (finding, finding_sentence(finding)));
    findings.filter(|(_, words)| !said.iter().any(|reason| reason.contains(words.as_str()))).collect()
}

fn first_of(checks: &[&CheckVerdict]) -> Option<String> {
    match checks {
        [] => None,
        [only] => Some(headline(only)),
        [first, rest @ ..] => Some(format!("{} (and {})", headline(first), counted(rest.len(), "more check"))),
    }
}

/// ` with 100 requests`, for the first of the checks.
fn with_how_many(checks: &[&CheckVerdict]) -> String {
    let evidence = checks.first().and_then(|check| check.evidence.as_ref());
    evidence.map(|evidence| format!(" with {}", counted(evidence.n as usize, "request"))).unwrap_or_default()
}

/// What a waiver keeps from costing the build.
fn waived_sentence(verdict: &Verdict) -> Option<String> {
    let is_waived = |check: &&CheckVerdict| matches!(check.outcome, CheckOutcome::Waived { .. });
    let first = verdict.checks.iter().find(is_waived)?;
    let waiver = waiver(&first.check);
    Some(match judged(&first.outcome) {
        CheckOutcome::Met | CheckOutcome::Inconclusive { side: Side::Within } => {
            format!("{} is waived{waiver}, though it holds", first.check.metric)
        }
        _ => format!("{}; waived{waiver}, so the build passes", headline(first)),
    })
}

/// What a preferred check saw, where nothing required is in doubt.
fn preferred_sentence(verdict: &Verdict) -> Option<String> {
    let first = verdict.checks.iter().find(|check| needs_reason(check))?;
    Some(format!("{}; the check is only preferred, so the build passes", headline(first)))
}

fn how_many_hold(verdict: &Verdict) -> String {
    let proven = verdict.checks.iter().filter(|check| outcome_word(check) == "proven").count();
    let unproven = verdict.checks.iter().filter(|check| outcome_word(check) == "holds, not proven").count();
    let holding = verdict.checks.iter().filter(|check| !needs_reason(check)).count();
    let all = match (holding, verdict.checks.len()) {
        (1, 1) => "The check holds".to_owned(),
        (holding, count) if holding == count => format!("All {count} checks hold"),
        (holding, count) => format!("{holding} of {count} checks hold"),
    };
    let is = |count: usize, one: &str, several: &str| format!("{count} {}", if count == 1 { one } else { several });
    let proven = (proven > 0).then(|| is(proven, "is proven", "are proven"));
    let unproven =
        (unproven > 0).then(|| is(unproven, "needs more requests to be proven", "need more requests to be proven"));
    let how = [proven, unproven].into_iter().flatten().collect::<Vec<_>>();
    let how = if how.is_empty() { String::new() } else { format!("; {}", how.join(", ")) };
    format!("{all} on {}{how}", counted(verdict.run.judged as usize, "request"))
}
