//! Where comments hang: the part of a forge that finding, creating and updating one needs.

use std::future::Future;

use crate::ForgeError;

/// A comment that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hanging {
    /// Its number; a later one is greater.
    pub(crate) id: u64,
    /// The Markdown.
    pub(crate) body: String,
    /// Whether its author may be this job: a stranger who quotes the marker is none.
    pub(crate) is_ours: bool,
    /// Its page.
    pub(crate) page: Option<String>,
}

/// A pull request's comments, or a merge request's notes.
pub(crate) trait Board {
    /// What it is called, such as `pull request 7`.
    fn name(&self) -> String;
    /// All of them, every page read, oldest first.
    fn list(&self) -> impl Future<Output = Result<Vec<Hanging>, ForgeError>>;
    /// Hangs one up. It is not repeated after an answer that leaves open whether it hangs: that error is
    /// [`ForgeError::Unreachable`], or [`ForgeError::Refused`] with a status of 500 or more.
    fn create(&self, body: &str) -> impl Future<Output = Result<Hanging, ForgeError>>;
    /// Replaces its text.
    fn update(&self, id: u64, body: &str) -> impl Future<Output = Result<Hanging, ForgeError>>;
    /// Takes one of ours down.
    fn delete(&self, id: u64) -> impl Future<Output = Result<(), ForgeError>>;
}
