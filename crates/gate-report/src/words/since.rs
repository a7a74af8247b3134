//! Since when: what a run is compared with, and what it measures itself.

use gate_model::{BaselineRef, CheckOutcome, CheckVerdict, Importance, Side, Verdict, With};

use super::{comparison, judged, short};
use crate::layout::counted;

/// Since when what is violated or over may be so, in one sentence: the newest run it is compared with, and the commit
/// that was measured. `None` for a verdict that has neither, and nothing in doubt.
pub(crate) fn since(verdict: &Verdict) -> Option<String> {
    let parts = [stored(verdict), side_by_side(verdict)];
    let mut parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() {
        if !is_doubtful(verdict) {
            return None;
        }
        parts.push("since when is not known: no earlier run was compared with".to_owned());
    }
    parts.extend(measured(verdict));
    Some(super::capitalised(&parts.join("; ")) + ".")
}

/// The same where something is in doubt and was compared with stored runs: without, a reader of the checks knows it.
pub(crate) fn since_known(verdict: &Verdict) -> Option<String> {
    let is_stored = verdict.baseline.as_ref().is_some_and(|chosen| !chosen.used.is_empty());
    since(verdict).filter(|_| is_stored && is_doubtful(verdict))
}

/// Whether a check is violated or seen beyond its limit: its reader asks since when.
pub(crate) fn is_doubtful(verdict: &Verdict) -> bool {
    verdict.checks.iter().any(in_doubt)
}

fn in_doubt(check: &CheckVerdict) -> bool {
    match judged(&check.outcome) {
        CheckOutcome::Violated => true,
        CheckOutcome::Inconclusive { side: Side::Over } => check.check.importance == Importance::Required,
        _ => false,
    }
}

/// `since when: after a1b2c3d of 2026-11-26, the newest of the 5 stored runs it is compared with`.
fn stored(verdict: &Verdict) -> Option<String> {
    let chosen = verdict.baseline.as_ref()?;
    let newest = chosen.used.first()?;
    let compares = |check: &&CheckVerdict| {
        let with = comparison(check).map(|comparison| &comparison.with);
        in_doubt(check) && matches!(with, Some(With::Baseline { .. }))
    };
    let runs = match chosen.used.len() {
        1 => "the stored run it is compared with".to_owned(),
        several => format!("the newest of the {} it is compared with", counted(several, "stored run")),
    };
    let fork = chosen.fork.as_deref().zip(newest.behind).map(|(fork, behind)| match behind {
        0 => ", where the change forked off".to_owned(),
        behind => format!(", {} before the fork point `{}`", counted(behind as usize, "commit"), short(fork)),
    });
    let words = if verdict.checks.iter().any(|check| compares(&check)) {
        format!("since when: after {}, {runs}", named(newest))
    } else if is_doubtful(verdict) {
        format!(
            "since when is not known: what is beyond its limit is compared with a fixed one; {}, is {runs}",
            named(newest)
        )
    } else {
        format!("compared with {}, {runs}", named(newest)).replace(" it is compared with", "")
    };
    Some(words + &fork.unwrap_or_default())
}

/// `a1b2c3d of 2026-11-26`.
fn named(baseline: &BaselineRef) -> String {
    let id = baseline.commit.as_deref().map_or_else(|| short_id(&baseline.id), short);
    let day = baseline.started.split('T').next().filter(|day| day.len() == 10);
    day.map_or_else(|| format!("`{id}`"), |day| format!("`{id}` of {}", day.replace('`', "'")))
}

fn short_id(id: &str) -> String {
    crate::layout::clip(&id.replace('`', "'"), 40)
}

/// That the reference was measured at the same time.
fn side_by_side(verdict: &Verdict) -> Option<String> {
    let reference = verdict.run.reference.as_ref()?;
    let target = crate::layout::clip(&reference.target.replace('`', "'"), 100);
    Some(format!("compared side by side with the reference `{target}`, measured in the same minutes"))
}

/// `this run measures 9c8b7a6 on faster-tokenizer`.
fn measured(verdict: &Verdict) -> Option<String> {
    let commit = verdict.run.commit.as_ref()?;
    let dirty = if commit.dirty { ", with changes that were not committed" } else { "" };
    Some(format!("this run measures `{}`{dirty}", short(&commit.id)))
}
