//! What a reader must not miss first: the order of gates and of checks.

use gate_model::{CheckOutcome, CheckVerdict, Importance, Side, Status, Verdict};

use crate::words::report_only;

/// The checks of a gate, those that did not pass first; else as the spec has them.
pub(crate) fn by_urgency(verdict: &Verdict) -> Vec<&CheckVerdict> {
    let mut checks: Vec<&CheckVerdict> = verdict.checks.iter().collect();
    checks.sort_by_key(|check| urgency(check));
    checks
}

/// What costs the build most first, as exit codes rank it; a gate that only `--report-only` lets pass comes after.
pub(crate) fn badness(verdict: &Verdict) -> u8 {
    if report_only(verdict).is_some() { 4 } else { rank(verdict.status) }
}

pub(super) fn rank(status: Status) -> u8 {
    match status {
        Status::Interrupted => 0,
        Status::Violated => 1,
        Status::CouldNotMeasure => 2,
        Status::Inconclusive => 3,
        Status::PassedWithWarnings => 5,
        Status::Passed => 6,
    }
}

/// What a reader must not miss first.
pub(super) fn urgency(verdict: &CheckVerdict) -> u8 {
    match verdict.outcome {
        CheckOutcome::Met | CheckOutcome::Inconclusive { side: Side::Within } => 5,
        _ if verdict.check.importance == Importance::Preferred => 4,
        CheckOutcome::Waived { .. } | CheckOutcome::NoBaseline { .. } => 3,
        CheckOutcome::Inconclusive { side: Side::Over | Side::Blind } => 2,
        CheckOutcome::CouldNotMeasure { .. } => 1,
        CheckOutcome::Violated => 0,
    }
}
