//! Stored runs: found, loaded, saved, and chosen by a commit's history.
//!
//! A run becomes a [`baseline()`] under its [`key()`]; a [`Shelf`] keeps it in a folder or in a ref of the git
//! repository; [`choose`] finds those to compare a later run with, along the history that the [`Repository`] knows.
//! Nothing here reads the environment: what CI says is an argument ([`Surroundings`]).
#![forbid(unsafe_code)]

mod archive;
mod choose;
mod error;
mod folder;
mod git;
mod git_store;
mod keep;
mod key;
mod layout;
mod lineage;
mod prior;
mod repository;
mod shelf;
mod store;
mod stored;

pub use archive::{is_archive, unpack};
pub use choose::{Ask, Choice, choose};
pub use error::BaselineError;
pub use keep::{baseline, unjudged};
pub use key::{key, with_tokens};
pub use lineage::Lineage;
pub use prior::{as_given, confirm, note_differences, read_bytes, read_file};
pub use repository::{Repository, Surroundings};
pub use shelf::{Listing, Shelf};
pub use stored::{Entry, Refused};
