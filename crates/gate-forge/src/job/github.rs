//! A job of GitHub Actions.

use serde_json::Value;

use super::read::{self, branch, commit, key, number, required, text, unusable, url};
use super::{Event, Forge, Job, JobError, Variables};

/// The user whose changes GitHub treats as a fork's.
const DEPENDABOT: &str = "dependabot[bot]";

/// What an event says of the change.
#[derive(Default)]
struct Change {
    head: Option<String>,
    base: Option<String>,
    request: Option<u64>,
    head_branch: Option<String>,
    is_of_fork: bool,
}

/// The job, from its variables and its event.
pub(super) fn job(variables: &Variables, payload: Option<&Value>) -> Result<Job, JobError> {
    let payload = read::Event(payload);
    let event = event(required(variables, "GITHUB_EVENT_NAME")?);
    let server = url("GITHUB_SERVER_URL", text(variables, "GITHUB_SERVER_URL").unwrap_or("https://github.com"))?;
    let api = match text(variables, "GITHUB_API_URL") {
        Some(api) => url("GITHUB_API_URL", api)?,
        None if server == "https://github.com" => "https://api.github.com".to_owned(),
        None => format!("{server}/api/v3"),
    };
    let repository = repository(required(variables, "GITHUB_REPOSITORY")?)?;
    let (workflow, name) = (required(variables, "GITHUB_WORKFLOW")?, required(variables, "GITHUB_JOB")?);
    let run = text(variables, "GITHUB_RUN_NUMBER").and_then(number);
    let run = match event {
        // The run that measured: a later one of the same workflow is newer, whenever each is published.
        Event::WorkflowRun => payload.number("/workflow_run/run_number").or(run),
        _ => run,
    };
    let page = text(variables, "GITHUB_RUN_ID").and_then(number);
    let page = page.map(|id| format!("{server}/{repository}/actions/runs/{id}"));
    let change = change(&event, variables, payload, &repository);
    let from_fork = change.is_of_fork || is_by_dependabot(&event, variables, payload);
    let checked_out = text(variables, "GITHUB_SHA").and_then(commit);
    Ok(Job {
        forge: Forge::GitHub,
        trusted: checked_out.filter(|_| event.is_privileged()),
        event,
        api,
        head: change.head,
        base: change.base,
        request: change.request,
        head_branch: change.head_branch,
        from_fork,
        key: key(&[workflow, name], variables),
        run,
        page,
        repository,
    })
}

fn event(name: &str) -> Event {
    match name {
        "pull_request" => Event::PullRequest,
        "pull_request_target" => Event::PullRequestTarget,
        "merge_group" => Event::MergeGroup,
        "push" => Event::Push,
        "workflow_run" => Event::WorkflowRun,
        "issue_comment" => Event::IssueComment,
        "workflow_dispatch" => Event::WorkflowDispatch,
        "schedule" => Event::Schedule,
        other => Event::Other(other.chars().filter(|symbol| !symbol.is_control()).take(64).collect()),
    }
}

/// `OWNER/NAME`, which becomes part of an address.
fn repository(text: &str) -> Result<String, JobError> {
    let is_part = |part: &str| {
        let is_allowed = |symbol: char| symbol.is_ascii_alphanumeric() || "-_.".contains(symbol);
        !part.is_empty() && part != "." && part != ".." && part.chars().all(is_allowed)
    };
    match text.split_once('/') {
        Some((owner, name)) if is_part(owner) && is_part(name) => Ok(text.to_owned()),
        _ => Err(unusable("GITHUB_REPOSITORY", "it is no OWNER/NAME")),
    }
}

fn change(event: &Event, variables: &Variables, payload: read::Event<'_>, repository: &str) -> Change {
    let checked_out = text(variables, "GITHUB_SHA").and_then(commit);
    let pushed = text(variables, "GITHUB_REF").and_then(|name| name.strip_prefix("refs/heads/")).and_then(branch);
    let owner = repository.split('/').next().unwrap_or_default();
    let head_branch = pushed.map(|branch| format!("{owner}:{branch}"));
    match event {
        Event::MergeGroup => Change {
            head: payload.commit("/merge_group/head_sha").or(checked_out),
            base: payload.commit("/merge_group/base_sha"),
            ..Change::default()
        },
        Event::Push => Change {
            head: payload.commit("/after").or(checked_out),
            base: payload.commit("/before"),
            head_branch,
            ..Change::default()
        },
        Event::WorkflowRun => of_run(payload, repository),
        // The commit that was checked out is the default branch's; that of the pull request is not told.
        Event::IssueComment if payload.at("/issue/pull_request").is_object() => {
            Change { request: payload.number("/issue/number"), ..Change::default() }
        }
        Event::WorkflowDispatch => Change { head: checked_out, head_branch, ..Change::default() },
        Event::PullRequest | Event::PullRequestTarget | Event::Other(_) if payload.at("/pull_request").is_object() => {
            of_request(payload, repository)
        }
        // What is checked out is the merge or the base; its number is in the ref, if anywhere.
        Event::PullRequest | Event::PullRequestTarget => Change {
            request: text(variables, "GITHUB_REF").and_then(request_of_ref),
            head_branch: text(variables, "GITHUB_HEAD_REF").and_then(branch).map(str::to_owned),
            ..Change::default()
        },
        Event::IssueComment | Event::Schedule | Event::MergeRequest | Event::Other(_) => {
            Change { head: checked_out, ..Change::default() }
        }
    }
}

/// `refs/pull/7/merge` is of pull request 7.
fn request_of_ref(name: &str) -> Option<u64> {
    name.strip_prefix("refs/pull/")?.split('/').next().and_then(number)
}

fn of_request(payload: read::Event<'_>, repository: &str) -> Change {
    let request = payload.at("/pull_request");
    let home = request.text("/base/repo/full_name").or(payload.text("/repository/full_name")).unwrap_or(repository);
    let source = request.text("/head/repo/full_name");
    Change {
        head: request.commit("/head/sha"),
        base: request.commit("/base/sha"),
        request: request.number("/number").or(payload.number("/number")),
        head_branch: source.and_then(|source| of_owner(source, request.branch("/head/ref"))),
        is_of_fork: !source.is_some_and(|source| source.eq_ignore_ascii_case(home)),
    }
}

fn of_run(payload: read::Event<'_>, repository: &str) -> Change {
    let run = payload.at("/workflow_run");
    let home = payload.text("/repository/full_name").unwrap_or(repository);
    let source = run.text("/head_repository/full_name");
    let head = run.commit("/head_sha");
    // A request of the same commit may be one of another repository of the network.
    let id = payload.number("/repository/id");
    let is_here = |request: &read::Event<'_>| match (request.number("/base/repo/id"), id) {
        (Some(one), Some(other)) => one == other,
        _ => true,
    };
    let request = run.at("/pull_requests").items().find(is_here).unwrap_or(read::Event(None));
    Change {
        base: request.commit("/base/sha"),
        request: request.number("/number"),
        head_branch: source.and_then(|source| of_owner(source, run.branch("/head_branch"))),
        is_of_fork: run.is_object() && !source.is_some_and(|source| source.eq_ignore_ascii_case(home)),
        head,
    }
}

/// `OWNER:BRANCH`, as a pull request's head is asked for.
fn of_owner(repository: &str, name: Option<&str>) -> Option<String> {
    let (owner, _) = repository.split_once('/')?;
    let is_login = |symbol: char| symbol.is_ascii_alphanumeric() || "-_".contains(symbol);
    let is_owner = !owner.is_empty() && owner.chars().all(is_login);
    name.filter(|_| is_owner).map(|name| format!("{owner}:{name}"))
}

/// Dependabot's own changes get a token that can only read, and no secrets, as those of a fork.
fn is_by_dependabot(event: &Event, variables: &Variables, payload: read::Event<'_>) -> bool {
    let actor = text(variables, "GITHUB_ACTOR").or(payload.text("/sender/login"));
    let is_treated_so = matches!(event, Event::PullRequest | Event::Push) || {
        matches!(event, Event::Other(_)) && payload.at("/pull_request").is_object()
    };
    is_treated_so && actor == Some(DEPENDABOT)
}
