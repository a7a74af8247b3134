//! Which looks a run reached.

use gate_model::{Cause, EndReason, Outcome, Run};

use crate::arms::Arms;
use crate::course::ordered;
use crate::scored::count;

/// The looks that a run is judged at, in requests of each arm.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Reach<'a> {
    /// All looks that set the boundaries, ascending.
    pub(crate) looks: Vec<u32>,
    /// How many of them the run reached, at least one.
    pub(crate) reached: usize,
    /// The measured requests.
    pub(crate) arms: Arms<'a>,
}

impl<'a> Reach<'a> {
    /// The requests that the last look reached scores.
    pub(crate) fn judged(&self) -> Arms<'a> {
        let last = self.reached.checked_sub(1).and_then(|last| self.looks.get(last));
        self.arms.first(last.copied().unwrap_or(0))
    }
}

/// The looks a run reached, or why it reached none.
///
/// A run is judged on all it has, at the last of them: where the procedure says stop, it is the load that stops.
/// Boundaries come from the planned looks. A run that ended between two of them has one more, where it ended:
/// error spending by the share of requests allows a look that was not planned, as long as what was seen so far
/// did not choose it. A run that ended before its first look is judged once, on what there is.
pub(crate) fn reach(run: &Run) -> Result<Reach<'_>, Cause> {
    let mut looks = ordered(&run.header.looks);
    let mut arms = Arms::of(run.header.spec.arms(), &run.samples);
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
                let whole = run.samples.iter().filter(|sample| sample.index < first_cut);
                arms = Arms::of(run.header.spec.arms(), whole);
            }
        }
        EndReason::StoppedAtLook(at) => {
            arms = arms.first(*at);
            looks = with(looks, arms.len());
        }
        EndReason::Completed | EndReason::RunTimeout => {
            let available = arms.len();
            if looks.first().is_none_or(|first| available < *first) {
                looks = vec![available];
            } else if looks.last().is_some_and(|last| available < *last) {
                looks = with(looks, available);
            }
        }
    }
    let available = arms.len();
    let reached = looks.iter().filter(|look| **look <= available).count();
    if available > 0 && reached > 0 {
        return Ok(Reach { looks, reached, arms });
    }
    Err(if end.reason == EndReason::Interrupted { Cause::Interrupted } else { Cause::NoData })
}

/// The looks with one more.
fn with(mut looks: Vec<u32>, more: u32) -> Vec<u32> {
    looks.push(more);
    ordered(&looks)
}
