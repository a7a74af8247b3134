//! The simulated inference engine, without a clock.
//!
//! [`script`] says what the engine does with its i-th request: how it ends, and when each event is due. It is a
//! pure function of the parameters and the request's number. [`Engine`] is what requests share: slots and the queue
//! before them, the reading of prompts, the prefix cache; it says which request is served when, and how long after its
//! arrival its script begins. A server that plays scripts in real time and [`simulate`], which plays a whole plan in
//! virtual time, drive the same two, so they agree event for event.
//!
//! Without `slots`, `prefill` and `prefix_cache` every request is served as if it were alone. [`EngineTruth`] says what a
//! good measurement of a run should find.

mod delivery;
mod engine;
mod fate;
mod latency;
mod prefix;
mod script;
mod simulate;
mod truth;

pub use engine::{Backlog, Engine, Reading};
pub use fate::{Fate, after_warmup, of_arm};
pub use prefix::mixed;
pub use script::{EventKind, Script, ScriptEvent, script, script_at};
pub use simulate::{simulate, simulate_with_truth};
pub use truth::{EngineTruth, Work, capacity};
