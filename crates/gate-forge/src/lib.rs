//! Delivers what a gate has to say to a forge: GitHub's comments and check runs, GitLab's notes.
//!
//! [`Job`] says where the process runs, from the environment and the event that started it; nothing is sent for that.
//! [`Courier`] delivers: each thing it posts is looked for first and updated in place, so that a job has one comment
//! however often it runs. What is posted was rendered elsewhere; nothing here words or judges. A forge that refuses
//! never changes a verdict: every failure is a [`ForgeError`] for the caller to tell in one line.
//!
//! This is the only crate that names octocrab.

mod artifact;
mod board;
mod check_run;
mod courier;
mod error;
mod github;
mod gitlab;
mod http;
mod job;
mod post;
mod retry;
mod runner;
mod upsert;

pub use artifact::{Fetched, fetch};
pub use courier::{Courier, Delivered};
pub use error::{ForgeError, Refusal};
pub use job::{Event, Forge, Job, JobError, Variables, token_of};
pub use post::{CheckText, Comment, CommentPolicy, Conclusion, Delivery};
pub use runner::{fitting_summary, output_entry};
