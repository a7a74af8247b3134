//! What a forge shows on the spec's own lines.

use gate_model::{CheckOutcome, CheckVerdict, Diagnostic, Importance, Policy, Side, Verdict};

use crate::bounded::bounded;
use crate::escape::{self, workflow_message, workflow_property};
use crate::words::{check_label, of_scenario, outcome_sentence, reasons, report_only};

/// How GitHub shows an annotation; it keeps only the first few of each.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Error,
    Warning,
    Notice,
}

/// How many annotations there are at most: GitHub keeps the first ten errors and the first ten warnings of a step, and
/// drops the others without a word.
const SHOWN: usize = 9;

/// GitHub workflow commands, one a line, for every check that did not pass: an `::error` where it breaks the build,
/// else a `::warning`, or a `::notice` where there is only no baseline yet, on the spec's line. Errors come first. What
/// kept every check of a gate from being measured is said once, on the line of its first check, and so is why several
/// have no baseline. There are at most nine; where there are more, a `::notice` says how many.
#[must_use]
pub fn annotations(verdicts: &[Verdict]) -> String {
    let verdicts = bounded(verdicts);
    let mut lines: Vec<(Level, String)> = verdicts.iter().flat_map(of_gate).collect();
    lines.sort_by_key(|(level, _)| *level);
    let more = lines.len().saturating_sub(SHOWN);
    let more = (more > 0).then(|| format!("::notice title=gate%3A {more} more::the job's summary has all of them\n"));
    lines.into_iter().take(SHOWN).map(|(_, line)| line).chain(more).collect()
}

/// The same for what is wrong in specs: an `::error` on each line, at most nine, with a `::notice` of how many more there
/// are.
#[must_use]
pub fn diagnostic_annotations(diagnostics: &[Diagnostic]) -> String {
    let shown = diagnostics.iter().take(SHOWN).map(|diagnostic| {
        let property = |value: &str| workflow_property(&escape::terminal(value));
        let place = diagnostic.place.as_ref();
        let place =
            place.map(|place| format!("file={},line={},col={},", property(&place.file), place.line, place.column));
        let message = workflow_message(&escape::terminal(&worded(diagnostic)));
        format!("::error {}title=gate::{message}\n", place.unwrap_or_default())
    });
    let more = diagnostics.len().saturating_sub(SHOWN);
    let more = (more > 0).then(|| format!("::notice title=gate%3A {more} more::the job's log has all of them\n"));
    shown.chain(more).collect()
}

/// What is wrong in a spec, with its place, in one line of text.
#[must_use]
pub fn diagnostic_sentence(diagnostic: &Diagnostic) -> String {
    let place = diagnostic.place.as_ref().map(|place| format!("`{place}`: ")).unwrap_or_default();
    place + &worded(diagnostic)
}

fn worded(diagnostic: &Diagnostic) -> String {
    let hint = diagnostic.hint.as_ref().map(|hint| format!(": {hint}")).unwrap_or_default();
    format!("{}{hint}", diagnostic.message)
}

/// One for each check that did not pass, or a single one where one cause kept every check from being measured.
fn of_gate(verdict: &Verdict) -> Vec<(Level, String)> {
    let one_cause = match reasons(verdict).as_slice() {
        [(_, checks)] => {
            let first = checks.first().filter(|_| checks.len() > 1 && checks.len() == verdict.checks.len());
            first.copied().filter(|first| matches!(first.outcome, CheckOutcome::CouldNotMeasure { .. }))
        }
        _ => None,
    };
    if let Some(first) = one_cause {
        let worst = verdict.checks.iter().map(|check| level(verdict, check)).min().unwrap_or(Level::Warning);
        return vec![annotation(verdict, first, worst, &format!("all {} checks", verdict.checks.len()))];
    }
    let said = reasons(verdict).into_iter().flat_map(|(_, checks)| match checks.as_slice() {
        [first, others @ ..] if matches!(first.outcome, CheckOutcome::NoBaseline { .. }) => {
            let worst = checks.iter().map(|check| level(verdict, check)).min().unwrap_or(Level::Notice);
            let more = if others.is_empty() { String::new() } else { format!(" and {} more", others.len()) };
            vec![annotation(verdict, first, worst, &format!("{}{more}", label(verdict, first)))]
        }
        each => {
            let each = each.iter();
            each.map(|check| annotation(verdict, check, level(verdict, check), &label(verdict, check))).collect()
        }
    });
    said.collect()
}

/// The check, after its scenario where there are several.
fn label(verdict: &Verdict, check: &CheckVerdict) -> String {
    of_scenario(verdict, check) + &check_label(&check.check)
}

fn annotation(verdict: &Verdict, check: &CheckVerdict, level: Level, about: &str) -> (Level, String) {
    let word = match level {
        Level::Error => "error",
        Level::Warning => "warning",
        Level::Notice => "notice",
    };
    let property = |name: &str, value: &str| format!("{name}={}", workflow_property(&escape::terminal(value)));
    let place = check.check.place();
    let mut properties = vec![property("file", place.map_or(&verdict.spec_file, |place| &place.file))];
    properties.extend(place.map(|place| format!("line={},col={}", place.line, place.column)));
    let simulated = if verdict.simulated { "SIMULATED ENGINE: " } else { "" };
    properties.push(property("title", &format!("{simulated}gate {}: {about}", verdict.name)));
    let message = workflow_message(&escape::terminal(&outcome_sentence(check)));
    (level, format!("::{word} {}::{message}\n", properties.join(",")))
}

/// An error where the check breaks the build; a notice where there is only nothing to compare with.
fn level(verdict: &Verdict, check: &CheckVerdict) -> Level {
    let otherwise =
        if matches!(check.outcome, CheckOutcome::NoBaseline { .. }) { Level::Notice } else { Level::Warning };
    if report_only(verdict).is_some() {
        return otherwise;
    }
    let costs = match check.outcome {
        CheckOutcome::Violated => true,
        CheckOutcome::CouldNotMeasure { .. } => verdict.policy.invalid == Policy::Fail,
        CheckOutcome::Inconclusive { side: Side::Over | Side::Blind } => verdict.policy.inconclusive == Policy::Fail,
        CheckOutcome::NoBaseline { .. } => verdict.policy.no_baseline == Policy::Fail,
        CheckOutcome::Met | CheckOutcome::Inconclusive { side: Side::Within } | CheckOutcome::Waived { .. } => false,
    };
    if costs && check.check.importance == Importance::Required { Level::Error } else { otherwise }
}
