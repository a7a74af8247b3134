//! From a gate spec and its seed to a plan.
//!
//! [`plan`] lists every request before any is sent: when it is due and how long its prompt and its answer are.
//! [`SpecPrompts`] makes the text of a request when it is sent, from the seed and the request's index, or takes it
//! from a row of a [`PromptFile`]. [`totals`] adds up the worst case. Nothing here reads a clock, a file, the network
//! or the environment.
//!
//! Equal spec, seed and prompt file give an equal plan, byte for byte, and a request depends on its own index alone: a
//! plan with more requests only adds to the end. Side by side, each becomes a pair, of which the same holds.

mod compile;
mod draw;
mod error;
mod fit;
mod lengths;
mod nonce;
mod prompt_file;
mod prompts;
mod prose;
mod texts;
mod totals;

pub use compile::plan;
pub use error::PlanError;
pub use prompt_file::{PromptFile, PromptFileError, PromptRow};
pub use prompts::SpecPrompts;
pub use totals::{Totals, totals};
