//! What may be said of where a verdict is told: the forge's flags and commands.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use gate_forge::CommentPolicy;

use super::outputs::Wording;

/// How a verdict is told to the forge.
#[derive(Debug, Args)]
pub(crate) struct Publishing {
    /// Publish the verdict, or say why that cannot be; without this flag that is done in CI where there is a token.
    #[arg(long)]
    pub(crate) publish: bool,
    #[command(flatten)]
    pub(crate) comment: Commenting,
    /// What it costs the build that the job has no credentials for the endpoint, as in the pull request of a fork:
    /// `fail` exits 3, `neutral` exits 0 and is neither green nor red.
    #[arg(long, value_name = "HOW", default_value = "fail")]
    pub(crate) no_credentials: NoCredentials,
}

/// When a comment is posted.
#[derive(Debug, Args)]
pub(crate) struct Commenting {
    /// When the comment on the pull or merge request is posted.
    #[arg(long, value_name = "WHEN", default_value = "always")]
    pub(crate) comment: CommentWhen,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum CommentWhen {
    /// At every run, in place of the one before.
    #[default]
    Always,
    /// When a verdict or a check's outcome is another than in the one before.
    OnChange,
    /// When a gate did not pass; one that is there turns green later.
    OnFail,
    /// Never.
    Never,
}

impl CommentWhen {
    /// The courier's word for it.
    pub(crate) fn policy(self) -> CommentPolicy {
        match self {
            Self::Always => CommentPolicy::Always,
            Self::OnChange => CommentPolicy::OnChange,
            Self::OnFail => CommentPolicy::OnFail,
            Self::Never => CommentPolicy::Never,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum NoCredentials {
    /// Could not measure, exit 3.
    #[default]
    Fail,
    /// Could not measure, exit 0: neither green nor red.
    Neutral,
}

#[derive(Debug, Args)]
pub(crate) struct Publish {
    /// A `verdict.json` made elsewhere, such as by the job of a fork's pull request (repeatable). It is checked, and its
    /// words are written anew: nothing in it is taken as markup.
    #[arg(long, value_name = "VERDICT", required = true)]
    pub(crate) from: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) comment: Commenting,
    #[command(flatten)]
    pub(crate) wording: Wording,
}

#[derive(Debug, Args)]
pub(crate) struct Hook {
    #[command(subcommand)]
    pub(crate) action: HookAction,
}

#[derive(Debug, Subcommand)]
pub(crate) enum HookAction {
    /// Make git run `gate check` before each push of this repository.
    Install,
    /// Take that hook away.
    Remove,
}
