//! Where am I: which forge, which event, which commit, which pull request.

mod github;
mod gitlab;
mod read;
mod token;

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::Value;

pub use token::token_of;

/// The environment, by name.
pub type Variables = BTreeMap<String, String>;

/// Who runs the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forge {
    /// GitHub Actions, on github.com or a GitHub Enterprise Server.
    GitHub,
    /// GitLab CI, on gitlab.com or an instance of its own.
    GitLab,
}

/// What started the job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A pull request, with what its own commit may do.
    PullRequest,
    /// A pull request, with the base branch's secrets.
    PullRequestTarget,
    /// A group of a merge queue.
    MergeGroup,
    /// A push to a branch or a tag.
    Push,
    /// The end of another workflow's run, with the default branch's secrets.
    WorkflowRun,
    /// A comment, with the default branch's secrets.
    IssueComment,
    /// Somebody's click: `workflow_dispatch` on GitHub, `web` on GitLab.
    WorkflowDispatch,
    /// The clock.
    Schedule,
    /// A GitLab merge request, in the project it is for or in the fork it comes from.
    MergeRequest,
    /// Any other, by the forge's name for it.
    Other(String),
}

/// Further events of GitHub that anybody can bring about, and whose jobs run on the default branch with its secrets.
const STRANGERS: [&str; 8] =
    ["issues", "discussion", "discussion_comment", "check_run", "check_suite", "fork", "watch", "gollum"];

impl Event {
    /// Whether the job has the base branch's secrets although a stranger may have started it.
    #[must_use]
    pub fn is_privileged(&self) -> bool {
        match self {
            Self::PullRequestTarget | Self::WorkflowRun | Self::IssueComment => true,
            Self::Other(name) => STRANGERS.contains(&name.as_str()),
            _ => false,
        }
    }
}

/// The job that the process runs in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// The forge.
    pub forge: Forge,
    /// What started it.
    pub event: Event,
    /// The root of the forge's API, such as `https://api.github.com` or `https://gitlab.com/api/v4`; no slash at its end.
    pub api: String,
    /// GitHub: `OWNER/NAME`. GitLab: the id or path of the project that has the request, which in a fork's own pipeline is
    /// not the fork.
    pub repository: String,
    /// The commit that is measured: of a pull request the head of its branch, not the merge that was checked out.
    pub head: Option<String>,
    /// The commit it is compared with: of a pull request the head of its base branch at the event; of a push the one
    /// before it. On GitLab, where it is not told of every merge request, it may be where the branch forked off.
    pub base: Option<String>,
    /// Under an event that [is privileged](Event::is_privileged), the commit whose files nobody but those who may write
    /// to the repository has made: that of the base or default branch, which GitHub sets `GITHUB_SHA` to.
    pub trusted: Option<String>,
    /// The pull or merge request's number, where the event names it.
    pub request: Option<u64>,
    /// The branch a change comes from, such as `OWNER:BRANCH` of a fork on GitHub: by it a request is found that the
    /// event does not name.
    pub head_branch: Option<String>,
    /// Whether the change comes from another repository, whose jobs get a token that can only read, and no secrets. One
    /// by Dependabot counts as such, since GitHub treats it so. A fork that was deleted is another repository too.
    pub from_fork: bool,
    /// What tells this job's comment from another job's: the workflow and the job, and what `GATE_JOB` says (a matrix
    /// job's own values).
    pub key: String,
    /// The number of this run of the workflow or pipeline: what a later run posted is not overwritten by an earlier one.
    pub run: Option<u64>,
    /// The page of the run or job.
    pub page: Option<String>,
}

/// Why it is not known where the process runs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JobError {
    /// The event's file cannot be used.
    #[error("read the event in {}: {why}", path.display())]
    Event {
        /// The file that `GITHUB_EVENT_PATH` names.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// A variable of the CI system is absent or makes no sense.
    #[error("use the variable {name}: {why}")]
    Variable {
        /// Its name.
        name: String,
        /// What is wrong.
        why: String,
    },
}

impl Job {
    /// The file that holds the event, to be read for [`Job::of`]; `None` where there is none.
    #[must_use]
    pub fn event_file(variables: &Variables) -> Option<PathBuf> {
        let path = read::text(variables, "GITHUB_EVENT_PATH")?;
        read::is_true(variables, "GITHUB_ACTIONS").then(|| path.into())
    }

    /// The job, from the environment and the parsed event; `None` outside CI and in a CI system with no forge. What an
    /// event says in a shape that GitHub does not document is absent. Without an event, what the variables do not say is.
    ///
    /// # Errors
    /// [`JobError::Variable`] where a variable that the forge always sets is missing or makes no sense.
    pub fn of(variables: &Variables, event: Option<&Value>) -> Result<Option<Self>, JobError> {
        if read::is_true(variables, "GITHUB_ACTIONS") {
            return github::job(variables, event).map(Some);
        }
        if read::is_true(variables, "GITLAB_CI") {
            return gitlab::job(variables).map(Some);
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests;
