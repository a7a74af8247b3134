//! What may be said of reports: which are written, and where.

use std::path::PathBuf;

use clap::Args;

use crate::apart::Apart;

/// Where a verdict's reports go.
#[derive(Debug, Args)]
pub(crate) struct Outputs {
    /// Write the JUnit report of all gates here too (`-`: stdout).
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
    /// Write the HTML report of all gates in one page here too (`-`: stdout).
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Print the verdicts as JSON on stdout, one object per gate.
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) wording: Wording,
}

impl Outputs {
    /// Notes what they write, and the template that words a comment.
    pub(crate) fn note<'a>(&'a self, apart: &mut Apart<'a>) {
        apart.write("--junit", self.junit.as_ref());
        apart.write("--html", self.html.as_ref());
        if self.json {
            apart.print("--json");
        }
        apart.keep("the template", self.wording.template.iter());
    }
}

/// How a comment is worded.
#[derive(Debug, Args)]
pub(crate) struct Wording {
    /// Word the comment by this minijinja template instead of the built-in one; docs/template.md says what it is given.
    #[arg(long, value_name = "FILE")]
    pub(crate) template: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Report {
    /// A `verdict.json`; of two, what changed from the first to the second.
    #[arg(value_name = "VERDICT", required = true, num_args = 1..=2)]
    pub(crate) verdicts: Vec<PathBuf>,
    /// Write JUnit (`-`: stdout).
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,
    /// Write the HTML report (`-`: stdout).
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Write the pull-request comment's Markdown (`-`: stdout).
    #[arg(long, value_name = "FILE")]
    pub(crate) markdown: Option<PathBuf>,
    /// Write OpenMetrics (`-`: stdout).
    #[arg(long, value_name = "FILE")]
    pub(crate) openmetrics: Option<PathBuf>,
    /// Write the verdict as JSON (`-`: stdout).
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Write the measured requests in the `samples` format (`-`: stdout).
    #[arg(long, value_name = "FILE")]
    pub(crate) samples: Option<PathBuf>,
    /// Write the measured requests as CSV (`-`: stdout).
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) wording: Wording,
}
