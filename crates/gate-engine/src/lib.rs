//! The simulated inference engine, without a clock.
//!
//! [`script`] says what the engine does with its i-th request: how it ends, and when each event is due. It is a
//! pure function of the parameters and the request's number, so a server that plays scripts in real time and
//! [`simulate`], which plays a whole plan in virtual time, agree event for event.
//!
//! There is no queueing: every request is served as if it were alone.

mod delivery;
mod fate;
mod latency;
mod script;
mod simulate;

pub use fate::{Fate, after_warmup, of_arm};
pub use script::{EventKind, Script, ScriptEvent, script};
pub use simulate::simulate;
