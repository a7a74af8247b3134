//! Specs of strangers, in jobs that have secrets which are none of theirs.

use std::path::{Path, PathBuf};

use gate_forge::{Event, Job};

use crate::cli::Trust;
use crate::failure::Failure;
use crate::{files, surroundings};

/// Refuses specs that are not, byte for byte, what the trusted commit has by their paths, where a stranger may have
/// started the job and it has the secrets of the repository: a spec says where the key is sent. Nothing of a spec is read
/// as one before. Whoever says `--trust` has decided.
///
/// A file that such a spec names may be a stranger's all the same, as in a checkout of the change with the base's `gates`
/// put over it: what is sent differs then, but not where to nor which secrets.
///
/// # Errors
/// Where a spec is another, or it cannot be found out whether it is.
pub(crate) fn refuse_strangers(job: &Job, trust: Option<Trust>, paths: &[PathBuf]) -> Result<(), Failure> {
    if trust.is_some() || !job.event.is_privileged() {
        return Ok(());
    }
    let event = name(&job.event);
    for path in paths {
        if let Some(why) = strange(job, path) {
            let words = format!(
                "{} is not run: the event {event} gives the job secrets that whoever started it may not have, a spec says \
                 where they are sent, and {why}",
                path.display()
            );
            return Err(Failure::usage(words).hint(
                "check out the base for the specs, or measure in a job without secrets and publish from another (two \
                 workflows, docs/ci.md); `--trust base` judges by the base's specs, `--trust head` takes these if you know \
                 them",
            ));
        }
    }
    Ok(())
}

/// Why a file is not known to be the trusted commit's; `None` where it is.
fn strange(job: &Job, path: &Path) -> Option<String> {
    let Some(commit) = &job.trusted else { return Some("the job does not say which commit is trusted".to_owned()) };
    let short = commit.get(..12).unwrap_or(commit);
    let there = surroundings::repository().and_then(|repository| repository.bytes_at(commit, path));
    match (there, files::read_bytes(path, files::SMALL)) {
        (Err(error), _) => Some(format!("it is not known whether it is that of {short}: failed to {error}")),
        (_, Err(failure)) => Some(failure.message),
        (Ok(None), _) => Some(format!("{short}, the commit that is trusted, has no such file")),
        (Ok(Some(there)), Ok(here)) if there != here => {
            Some(format!("it is not that of {short}, the commit that is trusted"))
        }
        (Ok(Some(_)), Ok(_)) => None,
    }
}

fn name(event: &Event) -> &str {
    match event {
        Event::PullRequestTarget => "pull_request_target",
        Event::WorkflowRun => "workflow_run",
        Event::IssueComment => "issue_comment",
        Event::Other(name) => name,
        _ => "of this job",
    }
}
