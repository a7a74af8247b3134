//! Which part of a request moved most since the baseline or the reference.

use gate_model::{LikelyCause, Moved, Nanos, Phase, Request, Series, Suspect};

use crate::base;
use crate::slow::Slow;

/// The part that added most to a slow scenario's requests. `None` where no part grew by more than chance and by so much
/// that it matters, where the first likely cause explains what no part shows, and where there is nothing to compare with.
pub(crate) fn moved<'a>(slow: &Slow<'a>, suspects: &[Suspect]) -> Option<Moved> {
    let least = slow.least()?;
    let tokens = |one: Request<'a>| one.value(Series::OutputTokens);
    // Decode is told by the token, and weighs by all of them.
    let tokens = base::mean(slow.here.numbers(tokens).into_iter()).unwrap_or(0.0);
    let parts = [
        part(slow, Phase::Connect, 1.0, |one| slow.connecting(one)),
        part(slow, Phase::FirstToken, 1.0, |one| slow.wait(one)),
        part(slow, Phase::Decode, (tokens - 1.0).max(0.0), |one| one.value(Series::Tpot)),
    ];
    let grown = parts.into_iter().flatten().filter(|part| part.added >= least);
    let largest = grown.max_by(|one, other| one.added.total_cmp(&other.added))?;
    let causes: Vec<&Suspect> = suspects.iter().filter(|one| one.scenario == slow.scenario).collect();
    let is_explained = causes.iter().any(|cause| cause.phase == largest.phase);
    if !is_explained && causes.first().is_some_and(|cause| is_beside_parts(&cause.cause)) {
        return None;
    }
    let time = |nanos: f64| Nanos(nanos.round() as i64);
    Some(Moved { phase: largest.phase, against: slow.against, from: time(largest.from), to: time(largest.to) })
}

/// Whether a cause explains what no part shows: longer answers leave the time of a token as it is, and by a busy client's
/// clock every part may be wrong.
fn is_beside_parts(cause: &LikelyCause) -> bool {
    matches!(cause, LikelyCause::LongerOutputs { .. } | LikelyCause::ClientBusy { .. })
}

/// A part of a request here and there.
struct Part {
    phase: Phase,
    from: f64,
    to: f64,
    /// What it added to a request.
    added: f64,
}

fn part<'a>(slow: &Slow<'a>, phase: Phase, weight: f64, time: impl Fn(Request<'a>) -> Option<f64>) -> Option<Part> {
    let grown = slow.grew(time)?;
    Some(Part { phase, from: grown.from, to: grown.to, added: weight * (grown.to - grown.from) })
}
