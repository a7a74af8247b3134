//! What is around the command: the machine, the CI job, the git repository.

use std::path::Path;

use gate_baseline::{BaselineError, Repository, Surroundings};
use gate_model::{Commit, Host};

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
