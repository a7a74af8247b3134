//! Why a command ends without a verdict.

use std::fmt::Display;
use std::path::Path;

use gate_model::{Diagnostic, ExitCode};

/// A command that cannot go on: what to tell the person, and the exit code.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: ExitCode,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
    /// What is wrong in the specs, where that is why.
    pub(crate) diagnostics: Vec<Diagnostic>,
}

impl Failure {
    /// The spec or the command line is wrong.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { exit: ExitCode::Usage, message: message.into(), hint: None, diagnostics: Vec::new() }
    }

    /// The run could not be recorded, so nothing can be said of it.
    pub(crate) fn unmeasured(message: impl Into<String>) -> Self {
        Self { exit: ExitCode::CouldNotMeasure, message: message.into(), hint: None, diagnostics: Vec::new() }
    }

    /// Something that should not happen, or that this program cannot repair.
    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self { exit: ExitCode::Internal, message: message.into(), hint: None, diagnostics: Vec::new() }
    }

    /// What happened and what to do about it, in one line.
    pub(crate) fn sentence(&self) -> String {
        self.hint.as_ref().map_or_else(|| self.message.clone(), |hint| format!("{}: {hint}", self.message))
    }

    /// What happened, what to do about it, and what is wrong where: a sentence each.
    pub(crate) fn sentences(&self) -> Vec<String> {
        std::iter::once(self.sentence()).chain(self.diagnostics.iter().map(gate_report::diagnostic_sentence)).collect()
    }

    /// Whether nothing is wrong but that variables are not set.
    pub(crate) fn is_of_environment(&self) -> bool {
        !self.diagnostics.is_empty() && self.diagnostics.iter().all(|diagnostic| diagnostic.missing.is_some())
    }

    /// With what to do about it.
    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// A file the person named cannot be read.
    pub(crate) fn unreadable(path: &Path, error: impl Display) -> Self {
        Self::usage(format!("cannot read {}: {error}", path.display()))
    }

    /// A file the person named, or one below the output folder, cannot be written.
    pub(crate) fn unwritable(path: &Path, error: impl Display) -> Self {
        Self::usage(format!("cannot write {}: {error}", path.display()))
            .hint("name a folder that can be written with --out, or a file in one")
    }
}
