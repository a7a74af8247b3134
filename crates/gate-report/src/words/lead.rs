//! What a person reads first of a verdict, and which checks need a reason.

use gate_model::{
    Cause, CheckOutcome, CheckVerdict, ExitCode, Finding, Importance, Metric, Policy, Side, Status, Verdict,
};

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
        Status::Violated => {
            let violated = required(|outcome| matches!(outcome, CheckOutcome::Violated));
            violated.first().map(|first| headline(first) + &more(&violated, ["is violated", "are violated"]))
        }
        Status::CouldNotMeasure => unmeasured().first().map(|check| headline(check)),
        Status::Inconclusive => over().first().map(|first| {
            let more = more(&over(), NOT_PROVEN);
            format!("{}; not proven, and this gate counts that against the build{more}", headline(first))
        }),
        Status::Interrupted => Some(format!(
            "Stopped after {} of at most {}",
            grouped(verdict.run.sent),
            counted(verdict.run.planned as usize, "request")
        )),
        Status::PassedWithWarnings => over()
            .first()
            .map(|first| {
                let more = more(&over(), NOT_PROVEN);
                format!("{}; not proven{}: the build passes{}{more}", headline(first), how_many(first), strict(verdict))
            })
            .or_else(|| {
                let more = more(&unmeasured(), ["could not be measured"; 2]);
                unmeasured().first().map(|first| headline(first) + &more)
            })
            .or_else(|| waived_sentence(verdict))
            .or_else(|| preferred_sentence(verdict)),
        Status::Passed => None,
    };
    let mut sentence = sentence.unwrap_or_else(|| how_many_hold(verdict));
    if !sentence.ends_with(['.', '?', '!']) {
        sentence.push('.');
    }
    sentence
}

/// Whether [`lead_sentence`] is about the first waiver: nothing that is required is in doubt beside it.
pub(crate) fn leads_with_waiver(verdict: &Verdict) -> bool {
    let in_doubt = |check: &CheckVerdict| {
        let doubtful = !matches!(check.outcome, CheckOutcome::Waived { .. }) && needs_reason(check);
        doubtful && check.check.importance == Importance::Required
    };
    verdict.status == Status::PassedWithWarnings && !verdict.checks.iter().any(in_doubt)
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

/// How requests failed, where that is what a check says: a reader should not have to look for it.
pub(crate) fn failures(verdict: &Verdict) -> Vec<String> {
    verdict.findings.iter().filter(|finding| is_the_matter(verdict, finding)).map(finding_sentence).collect()
}

/// Whether the finding is a failure that violates a check on errors, or leaves not one request to judge.
fn is_the_matter(verdict: &Verdict, finding: &Finding) -> bool {
    let Finding::Failure { outcome, .. } = finding else { return false };
    verdict.checks.iter().any(|check| match (&check.outcome, check.check.metric) {
        (CheckOutcome::Violated, Metric::ErrorShare(kind) | Metric::ErrorCount(kind)) => outcome.is(kind, true),
        (CheckOutcome::CouldNotMeasure { cause: Cause::TooFewOk { ok: 0, .. } }, _) => true,
        _ => false,
    })
}

/// What else a reader should know, in words; what [`failures`] or the reason of a check already say is left out.
pub(crate) fn further_findings(verdict: &Verdict) -> Vec<(&Finding, String)> {
    let said: Vec<String> = reasons(verdict).into_iter().map(|(sentence, _)| sentence).collect();
    let findings = verdict.findings.iter().filter(|finding| !is_the_matter(verdict, finding));
    let findings = findings.map(|finding| (finding, finding_sentence(finding)));
    findings.filter(|(_, words)| !said.iter().any(|reason| reason.contains(words.as_str()))).collect()
}

const NOT_PROVEN: [&str; 2] = ["is not proven", "are not proven"];

/// A sentence for the required checks after the first: what one of them is, or what several are.
fn more(checks: &[&CheckVerdict], [is, are]: [&str; 2]) -> String {
    match checks.len() {
        0 | 1 => String::new(),
        2 => format!(". 1 more required check {is}"),
        several => format!(". {} more required checks {are}", several - 1),
    }
}

/// ` with 100 requests`, on which a check rests.
fn how_many(check: &CheckVerdict) -> String {
    let evidence = check.evidence.as_ref();
    evidence.map(|evidence| format!(" with {}", counted(evidence.n as usize, "request"))).unwrap_or_default()
}

/// What would make the build fail, unless it is asked for already.
fn strict(verdict: &Verdict) -> String {
    if verdict.policy.inconclusive == Policy::Fail {
        return String::new();
    }
    format!("; `--strict` would fail it (exit {})", ExitCode::Inconclusive.code())
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
    let compared = verdict.checks.iter().filter(|check| outcome_word(check) == "holds").count();
    let compared = (compared > 0).then(|| is(compared, "is compared as it is", "are compared as they are"));
    let how = [proven, unproven, compared].into_iter().flatten().collect::<Vec<_>>();
    let how = if how.is_empty() { String::new() } else { format!("; {}", how.join(", ")) };
    format!("{all} on {}{how}", counted(verdict.run.judged as usize, "request"))
}
