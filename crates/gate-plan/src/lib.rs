//! From a gate spec and its seed to plans.
//!
//! [`plans`] lists every request before any is sent, section by section: when it is due and how long its prompt and its
//! answer are. [`shard`] cuts a plan for several machines. [`SpecPrompts`] makes the text of a request when it is sent,
//! from the seed and the request's place, or takes it from a row of a [`PromptFile`]. [`totals`] adds up the worst case,
//! and [`over_budget`] holds it against the budget. Nothing here reads a clock, a file, the network or the environment.
//!
//! Equal spec, seed and files give an equal plan, byte for byte, and a request depends on its own place alone: a plan
//! with more requests only adds to the end. Side by side, each becomes a pair, of which the same holds.

mod arrivals;
mod compile;
mod dataset;
mod digest;
mod draw;
mod earlier;
mod error;
mod files;
mod fit;
mod length_file;
mod lengths;
mod levels;
mod mix;
mod nonce;
mod prompt_file;
mod prompts;
mod prose;
mod repeats;
mod rows;
mod ruler;
mod shard;
mod texts;
mod totals;
mod trace;
mod traffic;

pub use compile::{Extent, plans};
pub use error::PlanError;
pub use files::Files;
pub use length_file::{LengthFile, LengthFileError};
pub use prompt_file::{PromptFile, PromptFileError, PromptRow};
pub use prompts::SpecPrompts;
pub use repeats::repeats;
pub use shard::shard;
pub use totals::{Totals, over_budget, totals};
pub use trace::{Trace, TraceError, TraceRow};
