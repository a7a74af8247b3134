//! What a person reads first of a verdict, and which checks need a reason.

use gate_model::{
    Cause, CheckOutcome, CheckVerdict, ExitCode, Finding, Importance, Metric, NoBaseline, Policy, Rule, ScenarioFacts,
    Side, Status, Verdict,
};

use super::{
    STOPPED, capitalised, comparison, finding_sentence, found, grouped, headline, judged, moved_sentence,
    no_baseline_of, of_scenario, outcome_sentence, outcome_word, waiver,
};
use crate::layout::counted;

/// What a person reads first: what is violated, could not be measured or is not proven, what follows from that for the
/// build, and which part of a request moved.
#[must_use]
pub fn lead_sentence(verdict: &Verdict) -> String {
    let mut sentence = matter(verdict).unwrap_or_else(|| how_many_hold(verdict));
    if !sentence.ends_with(['.', '?', '!']) {
        sentence.push('.');
    }
    let moved = verdict.moved.as_ref().map(|moved| format!(" {}.", capitalised(&moved_sentence(moved))));
    sentence + &moved.unwrap_or_default()
}

/// The first thing that is not as it should be.
fn matter(verdict: &Verdict) -> Option<String> {
    let required = |wanted: fn(&CheckOutcome) -> bool| {
        let checks = verdict.checks.iter().filter(move |check| check.check.importance == Importance::Required);
        checks.filter(move |check| wanted(&check.outcome)).collect::<Vec<_>>()
    };
    let unmeasured = || required(|outcome| matches!(outcome, CheckOutcome::CouldNotMeasure { .. }));
    let over = || required(|outcome| matches!(outcome, CheckOutcome::Inconclusive { side: Side::Over | Side::Blind }));
    match verdict.status {
        Status::Violated => {
            let violated = required(|outcome| matches!(outcome, CheckOutcome::Violated));
            violated.first().map(|first| told(verdict, first) + &more(&violated, ["is violated", "are violated"]))
        }
        Status::CouldNotMeasure => unmeasured().first().map(|check| after_how_many(verdict, told(verdict, check))),
        Status::Inconclusive => {
            let counts = "this gate counts that against the build";
            let over = over();
            let costs = verdict.policy.inconclusive == Policy::Fail;
            let not_proven = over.first().filter(|_| costs).map(|first| {
                let word = if is_blind(first) { "" } else { "not proven, and " };
                format!("{}; {word}{counts}{}", told(verdict, first), more(&over, NOT_PROVEN))
            });
            not_proven.or_else(|| without_baseline(verdict).map(|sentence| format!("{sentence}; {counts}")))
        }
        Status::Interrupted => {
            let too_early = if verdict.run.judged == 0 { ", before there was enough to judge" } else { "" };
            Some(format!("Interrupted after {}{too_early}", sent_of_planned(verdict)))
        }
        Status::PassedWithWarnings => over()
            .first()
            .map(|first| {
                let word = if is_blind(first) { String::new() } else { format!("not proven{}: ", how_many(first)) };
                let more = more(&over(), NOT_PROVEN);
                format!("{}; {word}the build passes{}{more}", told(verdict, first), strict(verdict))
            })
            .or_else(|| {
                let more = more(&unmeasured(), ["could not be measured"; 2]);
                unmeasured().first().map(|first| told(verdict, first) + &more)
            })
            .or_else(|| {
                let sentence = waived_sentence(verdict).or_else(|| preferred_sentence(verdict))?;
                let missing = without_baseline(verdict).map(|missing| format!(". {missing}"));
                Some(sentence + &missing.unwrap_or_default())
            }),
        Status::Passed => None,
    }
}

/// Whether a look may end the run before its plan does.
pub(crate) fn may_end_early(looks: usize, parts: &[ScenarioFacts]) -> bool {
    looks > 1 || parts.iter().any(|part| part.looks.len() > 1)
}

/// `12 of at most 100 requests`; where nothing ends a run before its plan does, `12 of 100 requests`.
fn sent_of_planned(verdict: &Verdict) -> String {
    let run = &verdict.run;
    let most = if may_end_early(run.looks.len(), &run.parts) { "at most " } else { "" };
    format!("{} of {most}{}", grouped(run.sent), counted(run.planned as usize, "request"))
}

/// A sentence on a run that its own rules ended, with how far it came; others as they are.
fn after_how_many(verdict: &Verdict, sentence: String) -> String {
    let tail = STOPPED.trim_start_matches('s').trim_end_matches(':');
    match sentence.split_once(&format!("{tail}:")) {
        Some((before, after)) if verdict.run.sent > 0 && before.ends_with(['s', 'S']) => {
            format!("{before}{tail} after {}:{after}", sent_of_planned(verdict))
        }
        _ => sentence,
    }
}

/// The headline of a check, after its scenario where there are several.
fn told(verdict: &Verdict, check: &CheckVerdict) -> String {
    let headline = headline(check);
    match of_scenario(verdict, check) {
        scenario if scenario.is_empty() => headline,
        scenario => scenario + &continued(&headline),
    }
}

/// A sentence as it goes on after a colon; an abbreviation keeps its capitals.
fn continued(sentence: &str) -> String {
    let mut symbols = sentence.chars();
    match (symbols.next(), symbols.clone().next()) {
        (Some(first), Some(second)) if second.is_lowercase() => first.to_lowercase().chain(symbols).collect(),
        _ => sentence.to_owned(),
    }
}

fn is_blind(verdict: &CheckVerdict) -> bool {
    matches!(verdict.outcome, CheckOutcome::Inconclusive { side: Side::Blind })
}

/// That checks have nothing to compare with, and why.
fn without_baseline(verdict: &Verdict) -> Option<String> {
    let whys = verdict.checks.iter().filter_map(|check| match &check.outcome {
        CheckOutcome::NoBaseline { why } => Some(why),
        _ => None,
    });
    let whys: Vec<&NoBaseline> = whys.collect();
    let first = no_baseline_of(verdict.baseline.as_ref(), whys.first()?);
    Some(match whys.as_slice() {
        [_] => format!("1 check has no baseline: {first}"),
        [one, others @ ..] if others.iter().all(|other| other == one) => {
            format!("{} checks have no baseline: {first}", whys.len())
        }
        _ => format!("{} checks have no baseline; of the first, {first}", whys.len()),
    })
}

/// Whether [`lead_sentence`] is about the first waiver: nothing that is required is in doubt beside it.
pub(crate) fn leads_with_waiver(verdict: &Verdict) -> bool {
    let in_doubt = |check: &CheckVerdict| {
        let calm = matches!(check.outcome, CheckOutcome::Waived { .. } | CheckOutcome::NoBaseline { .. });
        let doubtful = !calm && needs_reason(check);
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

/// How requests failed, where that is what a check says, and what rule of the run's own ended it: a reader should not have
/// to look for it.
pub(crate) fn failures(verdict: &Verdict) -> Vec<String> {
    let findings = verdict.findings.iter().filter(|finding| is_the_matter(verdict, finding));
    let findings = findings.filter(|finding| !leads_with_end(verdict, finding));
    findings.map(|finding| after_how_many(verdict, finding_sentence(finding))).collect()
}

/// Whether [`lead_sentence`] says already why the run was given up.
fn leads_with_end(verdict: &Verdict, finding: &Finding) -> bool {
    let Finding::EndedEarly(reason) = finding else { return false };
    let required = verdict.checks.iter().filter(|check| check.check.importance == Importance::Required);
    let mut causes = required.filter_map(|check| match &check.outcome {
        CheckOutcome::CouldNotMeasure { cause } => Some(cause),
        _ => None,
    });
    let is_end = matches!(causes.next(), Some(Cause::NotRun(end)) if end == reason);
    verdict.status == Status::CouldNotMeasure && is_end
}

/// Whether the finding is a failure that violates a check on errors, or leaves too few requests to judge, or that the
/// run was given up.
fn is_the_matter(verdict: &Verdict, finding: &Finding) -> bool {
    let mut checks = verdict.checks.iter();
    match finding {
        Finding::Failure { outcome, .. } => checks.any(|check| match (&check.outcome, check.check.metric) {
            (CheckOutcome::Violated, Metric::ErrorShare(kind) | Metric::ErrorCount(kind)) => outcome.is(kind, true),
            (CheckOutcome::CouldNotMeasure { cause: Cause::TooFewOk { ok: 0, .. } }, _) => true,
            _ => false,
        }),
        Finding::ReferenceFailure { .. } => checks.any(|check| {
            matches!(check.outcome, CheckOutcome::CouldNotMeasure { cause: Cause::ReferenceTooFewOk { .. } })
        }),
        // That the run's own rules ended it is the first thing to know.
        Finding::EndedEarly(reason) => reason.is_abort(),
        _ => false,
    }
}

/// Whether the reason of a check says the same.
fn is_said(verdict: &Verdict, finding: &Finding, words: &str, said: &[String]) -> bool {
    match finding {
        Finding::NoisyBaseline { check, .. } => {
            let is_blind = |outcome| matches!(judged(outcome), CheckOutcome::Inconclusive { side: Side::Blind });
            verdict.checks.iter().any(|known| is_blind(&known.outcome) && known.check.to_string() == *check)
        }
        _ => said.iter().any(|reason| reason.contains(words)),
    }
}

/// What else a reader should know, in words; what [`failures`] or the reason of a check already say is left out.
pub(crate) fn further_findings(verdict: &Verdict) -> Vec<(&Finding, String)> {
    let said: Vec<String> = reasons(verdict).into_iter().map(|(sentence, _)| sentence).collect();
    let findings = verdict.findings.iter().filter(|finding| !is_the_matter(verdict, finding));
    let findings = findings.map(|finding| (finding, found(verdict, finding)));
    findings.filter(|(finding, words)| !is_said(verdict, finding, words, &said)).collect()
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
    let noun = if check.rule == Rule::Paired { "pair" } else { "request" };
    let evidence = check.evidence.as_ref();
    evidence.map(|evidence| format!(" with {}", counted(evidence.n as usize, noun))).unwrap_or_default()
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
        CheckOutcome::NoBaseline { .. } => format!("{} is waived{waiver}, and has no baseline", first.check.metric),
        _ => format!("{}; waived{waiver}, so the build passes", told(verdict, first)),
    })
}

/// What a preferred check saw, where nothing required is in doubt.
fn preferred_sentence(verdict: &Verdict) -> Option<String> {
    let is_calm = |check: &CheckVerdict| matches!(check.outcome, CheckOutcome::NoBaseline { .. });
    let first = verdict.checks.iter().find(|check| needs_reason(check) && !is_calm(check))?;
    Some(format!("{}; the check is only preferred, so the build passes", told(verdict, first)))
}

fn how_many_hold(verdict: &Verdict) -> String {
    let proven = verdict.checks.iter().filter(|check| outcome_word(check) == "proven").count();
    let unproven = verdict.checks.iter().filter(|check| outcome_word(check) == "holds, not proven");
    let (tolerated, unproven): (Vec<_>, Vec<_>) = unproven.partition(|check| comparison(check).is_some());
    let (tolerated, unproven) = (tolerated.len(), unproven.len());
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
    let tolerated = (tolerated > 0)
        .then(|| is(tolerated, "is within its tolerance, not proven", "are within their tolerance, not proven"));
    let compared = verdict.checks.iter().filter(|check| outcome_word(check) == "holds").count();
    let compared = (compared > 0).then(|| is(compared, "is compared as it is", "are compared as they are"));
    let how = [proven, unproven, tolerated, compared].into_iter().flatten().collect::<Vec<_>>();
    let how = if how.is_empty() { String::new() } else { format!("; {}", how.join(", ")) };
    let missing = without_baseline(verdict).map(|sentence| format!(". {sentence}")).unwrap_or_default();
    let requests = if verdict.run.judged == 1 { "request" } else { "requests" };
    format!("{all} on {} {requests}{how}{missing}", grouped(verdict.run.judged))
}
