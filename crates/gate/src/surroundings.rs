//! What is around the command: the machine, the CI job, the git repository.

use std::path::Path;

use gate_baseline::{BaselineError, Repository, Surroundings};
use gate_forge::{Job, Variables};
use gate_model::{Commit, Host};

use crate::console::Console;
use crate::failure::Failure;
use crate::files;

/// The largest file of an event: GitHub's are of 25 MB at most.
const EVENT: u64 = 32 << 20;

/// The machine that sends the load, with what is noted of it beside a baseline.
pub(crate) fn host() -> Host {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    Host {
        system: format!("{}-{}", std::env::consts::OS, std::env::consts::ARCH),
        cores: u32::try_from(cores).unwrap_or(u32::MAX),
        cpu: cpu(),
        kernel: line_of("/proc/sys/kernel/osrelease"),
        runner: variable(&["RUNNER_NAME", "CI_RUNNER_DESCRIPTION"]),
        region: variable(&["AWS_REGION", "AWS_DEFAULT_REGION", "GOOGLE_CLOUD_REGION", "AZURE_REGION"]),
    }
}

/// The environment; what is not UTF-8 is none of it.
pub(crate) fn variables() -> Variables {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}

/// The CI job that the command runs in; `None` outside CI. An event that cannot be read costs a warning: what started the
/// job is known by its name all the same.
///
/// # Errors
/// Where the job's variables make no sense.
pub(crate) fn job(variables: &Variables, console: &Console) -> Result<Option<Job>, Failure> {
    let event = Job::event_file(variables).and_then(|path| match event(&path) {
        Ok(event) => Some(event),
        Err(failure) => {
            console.warning(&failure);
            None
        }
    });
    Job::of(variables, event.as_ref()).map_err(|error| Failure::usage(format!("failed to {error}")))
}

/// What started the job.
fn event(path: &Path) -> Result<serde_json::Value, Failure> {
    let text = files::read(path, EVENT)?;
    serde_json::from_str(&text).map_err(|error| Failure::unreadable(path, format!("it is no event: {error}")))
}

/// The git repository that the command runs in.
pub(crate) fn repository() -> Result<Repository, BaselineError> {
    Repository::of(Path::new("."))
}

/// The commit that is measured; `None` outside a repository, and in one without commits.
pub(crate) fn commit() -> Option<Commit> {
    repository().and_then(|repository| repository.commit(&of_job())).ok()
}

/// What the CI job says of the checkout: it checks out a commit, and git knows no branch then.
pub(crate) fn of_job() -> Surroundings {
    let pushed = || variable(&["GITHUB_REF"])?.strip_prefix("refs/heads/").map(str::to_owned);
    Surroundings {
        base_branch: variable(&["GITHUB_BASE_REF", "CI_MERGE_REQUEST_TARGET_BRANCH_NAME"]),
        branch: variable(&["GITHUB_HEAD_REF", "CI_MERGE_REQUEST_SOURCE_BRANCH_NAME", "CI_COMMIT_BRANCH"])
            .or_else(pushed),
    }
}

/// The first of these variables that is set to something.
fn variable(names: &[&str]) -> Option<String> {
    names.iter().find_map(|name| std::env::var(name).ok().filter(|value| !value.is_empty()))
}

/// A file's first line.
fn line_of(path: &str) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    text.lines().next().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty())
}

/// The CPU's name, where the system tells it.
fn cpu() -> Option<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    line.split_once(':').map(|(_, name)| name.trim().to_owned())
}
