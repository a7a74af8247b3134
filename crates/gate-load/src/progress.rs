//! What a run tells while it runs.

use gate_model::{Decision, Nanos, Sample};

/// One thing that happened; told on the caller's thread, in order.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Progress<'a> {
    /// The target, or the reference, is not ready yet.
    Waiting {
        /// Since the first question.
        elapsed: Nanos,
        /// What was last seen, in words.
        last: &'a str,
    },
    /// The target is ready, and so is the reference where there is one.
    Ready,
    /// A warm-up request ended.
    Warmup(&'a Sample),
    /// The measured phase starts.
    Started,
    /// About twice a second in the measured phase.
    Tick {
        /// Since the epoch.
        elapsed: Nanos,
        /// Measured requests sent, those of both arms.
        sent: u32,
        /// Those of them that are open.
        in_flight: u32,
    },
    /// A measured request ended.
    Ended(&'a Sample),
    /// The referee judged the first `n` requests of each arm.
    Look {
        /// How many.
        n: u32,
        /// What it said.
        decision: Decision,
    },
}
