//! What a forge shows on the spec's own lines.

use gate_model::{CheckOutcome, CheckVerdict, Importance, Policy, Side, Verdict};

use crate::escape::{self, workflow_message, workflow_property};
use crate::words::{check_label, needs_reason, outcome_sentence};

/// How GitHub shows an annotation; it keeps only the first few of each.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Error,
    Warning,
}

/// GitHub workflow commands, one a line, for every check that did not pass: an `::error` where it breaks the build,
/// else a `::warning`, on the spec's line. Errors come first.
#[must_use]
pub fn annotations(verdicts: &[Verdict]) -> String {
    let checks = verdicts.iter().flat_map(|verdict| verdict.checks.iter().map(move |check| (verdict, check)));
    let mut lines: Vec<(Level, String)> =
        checks.filter(|(_, check)| needs_reason(check)).map(|(verdict, check)| annotation(verdict, check)).collect();
    lines.sort_by_key(|(level, _)| *level);
    lines.into_iter().map(|(_, line)| line).collect()
}

fn annotation(verdict: &Verdict, check: &CheckVerdict) -> (Level, String) {
    let level = level(verdict, check);
    let word = match level {
        Level::Error => "error",
        Level::Warning => "warning",
    };
    let property = |name: &str, value: &str| format!("{name}={}", workflow_property(&escape::terminal(value)));
    let place = check.check.place();
    let mut properties = vec![property("file", place.map_or(&verdict.spec_file, |place| &place.file))];
    properties.extend(place.map(|place| format!("line={},col={}", place.line, place.column)));
    let simulated = if verdict.simulated { "SIMULATED ENGINE: " } else { "" };
    properties.push(property("title", &format!("{simulated}gate {}: {}", verdict.name, check_label(&check.check))));
    let message = workflow_message(&escape::terminal(&outcome_sentence(check)));
    (level, format!("::{word} {}::{message}\n", properties.join(",")))
}

/// An error where the check breaks the build.
fn level(verdict: &Verdict, check: &CheckVerdict) -> Level {
    let costs = match check.outcome {
        CheckOutcome::Violated => true,
        CheckOutcome::CouldNotMeasure { .. } => verdict.policy.invalid == Policy::Fail,
        CheckOutcome::Inconclusive { side: Side::Over } => verdict.policy.inconclusive == Policy::Fail,
        CheckOutcome::Met | CheckOutcome::Inconclusive { side: Side::Within } | CheckOutcome::Waived { .. } => false,
    };
    if costs && check.check.importance == Importance::Required { Level::Error } else { Level::Warning }
}
