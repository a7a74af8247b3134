//! A job of GitLab CI.

use super::read::{branch, commit, key, number, required, text, unusable, url};
use super::{Event, Forge, Job, JobError, Variables};

/// The request that a pipeline is of.
struct Request<'v> {
    /// The project that it is for.
    project: &'v str,
    number: u64,
    /// Whether its branch is of another project.
    is_of_fork: bool,
}

/// The job, from its variables.
pub(super) fn job(variables: &Variables) -> Result<Job, JobError> {
    let of = |name| text(variables, name);
    let api = url("CI_API_V4_URL", required(variables, "CI_API_V4_URL")?)?;
    let own = required(variables, "CI_PROJECT_ID")?;
    number(own).ok_or_else(|| unusable("CI_PROJECT_ID", "it is no number"))?;
    let name = job_name(required(variables, "CI_JOB_NAME")?, of("CI_NODE_INDEX"), of("CI_NODE_TOTAL"));
    let page = of("CI_JOB_URL").map(|page| url("CI_JOB_URL", page)).transpose()?;
    let request = merge_request(variables, own).or_else(|| open_request(variables));
    let sha = |name| text(variables, name).and_then(commit);
    let branch_name = of("CI_MERGE_REQUEST_SOURCE_BRANCH_NAME").or(of("CI_COMMIT_BRANCH")).and_then(branch);
    Ok(Job {
        forge: Forge::GitLab,
        event: event(variables),
        api,
        repository: request.as_ref().map_or(own, |request| request.project).to_owned(),
        // Where the pipeline runs on the merge, that is what `CI_COMMIT_SHA` names.
        head: sha("CI_MERGE_REQUEST_SOURCE_BRANCH_SHA").or(sha("CI_COMMIT_SHA")),
        base: sha("CI_MERGE_REQUEST_TARGET_BRANCH_SHA")
            .or(sha("CI_MERGE_REQUEST_DIFF_BASE_SHA"))
            .or(sha("CI_COMMIT_BEFORE_SHA")),
        trusted: None,
        request: request.as_ref().map(|request| request.number),
        head_branch: branch_name.map(str::to_owned),
        from_fork: request.is_some_and(|request| request.is_of_fork),
        key: key(&[name], variables),
        run: of("CI_PIPELINE_ID").and_then(number),
        page,
    })
}

fn event(variables: &Variables) -> Event {
    // A pipeline that one of a merge request started is of it, too.
    if text(variables, "CI_MERGE_REQUEST_IID").is_some() {
        return Event::MergeRequest;
    }
    match text(variables, "CI_PIPELINE_SOURCE").unwrap_or("unknown") {
        "merge_request_event" => Event::MergeRequest,
        "push" => Event::Push,
        "schedule" => Event::Schedule,
        "web" => Event::WorkflowDispatch,
        other => Event::Other(other.chars().filter(|symbol| !symbol.is_control()).take(64).collect()),
    }
}

fn merge_request<'v>(variables: &'v Variables, own: &'v str) -> Option<Request<'v>> {
    let id = |name| text(variables, name).filter(|id| number(id).is_some());
    let project = id("CI_MERGE_REQUEST_PROJECT_ID").unwrap_or(own);
    let is_of_fork = id("CI_MERGE_REQUEST_SOURCE_PROJECT_ID").is_some_and(|source| source != project);
    Some(Request { project, number: text(variables, "CI_MERGE_REQUEST_IID").and_then(number)?, is_of_fork })
}

/// The first of the merge requests that are open for the pushed branch: `GROUP/PROJECT!7,…`.
fn open_request(variables: &Variables) -> Option<Request<'_>> {
    let first = text(variables, "CI_OPEN_MERGE_REQUESTS")?.split(',').next()?;
    let (project, iid) = first.trim().rsplit_once('!')?;
    let is_allowed = |symbol: char| symbol.is_alphanumeric() || "-_./".contains(symbol);
    if project.is_empty() || !project.chars().all(is_allowed) {
        return None;
    }
    let is_of_fork = text(variables, "CI_PROJECT_PATH").is_some_and(|own| !own.eq_ignore_ascii_case(project));
    Some(Request { project, number: number(iid)?, is_of_fork })
}

/// The job's name without the ` 1/2` that `parallel: 2` gives it: all of them are one gate's shards.
fn job_name<'v>(name: &'v str, index: Option<&str>, total: Option<&str>) -> &'v str {
    let (Some(index), Some(total)) = (index, total) else { return name };
    let shard = format!(" {index}/{total}");
    name.strip_suffix(shard.as_str()).filter(|name| !name.is_empty()).unwrap_or(name)
}
