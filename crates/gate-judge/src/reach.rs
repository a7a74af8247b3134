//! Which looks a run reached.

use gate_model::{Cause, EndReason, Outcome, Run, Sample};

use crate::course::ordered;
use crate::scored::{count, measured};

/// The looks that a run is judged at.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Reach<'a> {
    /// All looks that set the boundaries, ascending.
    pub(crate) looks: Vec<u32>,
    /// How many of them the run reached, at least one.
    pub(crate) reached: usize,
    /// The measured requests, in send order.
    pub(crate) samples: Vec<&'a Sample>,
}

/// The looks a run reached, or why it reached none.
///
/// A run is judged on all it has, at the last of them: where the procedure says stop, it is the load that stops.
/// Boundaries come from the planned looks. A run that ended between two of them has one more, where it ended:
/// error spending by the share of requests allows a look that was not planned, as long as what was seen so far
/// did not choose it. A run that ended before its first look is judged once, on what there is.
pub(crate) fn reach(run: &Run) -> Result<Reach<'_>, Cause> {
    let mut looks = ordered(&run.header.looks);
    let mut samples = measured(&run.samples);
    let Some(end) = &run.end else {
        return Err(Cause::Killed { recorded: count(run.samples.len()), planned: run.planned() });
    };
    match &end.reason {
        EndReason::NotReady(_) | EndReason::Refused(_) | EndReason::ClientExhausted(_) => {
            return Err(Cause::NotRun(end.reason.clone()));
        }
        EndReason::Interrupted => {
            // A look is complete only if every request of it ended by itself.
            let cut = run.samples.iter().filter(|sample| sample.outcome == Outcome::Cancelled);
            if let Some(first_cut) = cut.map(|sample| sample.index).min() {
                samples.retain(|sample| sample.index < first_cut);
            }
        }
        EndReason::StoppedAtLook(at) => {
            samples.truncate(usize::try_from(*at).unwrap_or(usize::MAX));
            looks = with(looks, count(samples.len()));
        }
        EndReason::Completed | EndReason::RunTimeout => {
            let available = count(samples.len());
            if looks.first().is_none_or(|first| available < *first) {
                looks = vec![available];
            } else if looks.last().is_some_and(|last| available < *last) {
                looks = with(looks, available);
            }
        }
    }
    let available = count(samples.len());
    let reached = looks.iter().filter(|look| **look <= available).count();
    if available > 0 && reached > 0 {
        return Ok(Reach { looks, reached, samples });
    }
    Err(if end.reason == EndReason::Interrupted { Cause::Interrupted } else { Cause::NoData })
}

/// The looks with one more.
fn with(mut looks: Vec<u32>, more: u32) -> Vec<u32> {
    looks.push(more);
    ordered(&looks)
}
