//! `gate doctor`: what works here, and what to do about what does not. It asks the targets for what they list, and sends them
//! no load.

mod gates;
mod machine;

use gate_forge::{Courier, Forge};
use gate_model::{ExitCode, Secret};
use serde::Serialize;

use crate::cli::Doctor;
use crate::console::Console;
use crate::failure::Failure;
use crate::{specs, surroundings};

/// How long a forge is waited for.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(10);

/// How something is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum State {
    /// It works.
    Works,
    /// It is not here, and may not be needed.
    Absent,
    /// It works, or will, but not as well as it could.
    Doubtful,
    /// It does not work.
    Fails,
}

/// One thing that was looked at.
#[derive(Clone, Debug, Serialize)]
struct Finding {
    what: String,
    state: State,
    said: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<String>,
}

impl Finding {
    fn new(what: impl Into<String>, state: State, said: impl Into<String>) -> Self {
        Self { what: what.into(), state, said: said.into(), remedy: None }
    }

    fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }

    /// What a failure says, as a finding.
    fn failed(what: impl Into<String>, failure: Failure) -> Self {
        Self { remedy: failure.hint, ..Self::new(what, State::Fails, failure.message) }
    }
}

pub(crate) fn doctor(arguments: &Doctor, console: &Console) -> Result<ExitCode, Failure> {
    let specs = match arguments.specs.as_slice() {
        [] => specs::in_gates(console),
        named => specs::resolve_all(named, &arguments.overlays.list(), console)?.into_iter().map(Ok).collect(),
    };
    let mut findings = machine::findings(console);
    findings.push(proxy());
    findings.extend(repository());
    findings.extend(forge(console));
    findings.extend(specs.iter().flat_map(|spec| match spec {
        Ok(spec) => gates::findings(spec, console),
        Err((file, wrong)) => vec![gates::unresolved(file, wrong)],
    }));
    if specs.is_empty() {
        let none = Finding::new("gates", State::Absent, "no spec here says what to measure");
        findings.push(none.remedy("`gate init` makes one; `gate doctor SPEC` looks at one elsewhere"));
    }
    // What a server or a forge said is theirs.
    for finding in &mut findings {
        finding.said = console.secrets.redact(&gate_report::escape::terminal(&finding.said));
        finding.remedy =
            finding.remedy.take().map(|remedy| console.secrets.redact(&gate_report::escape::terminal(&remedy)));
    }
    let text = if arguments.json {
        serde_json::to_string_pretty(&findings).map_err(|error| Failure::internal(error.to_string()))? + "\n"
    } else {
        page(&findings)
    };
    console.data(&text)?;
    Ok(ExitCode::Passed)
}

/// A line for each finding, with what to do below it, and the sum at the end.
fn page(findings: &[Finding]) -> String {
    let mut text = String::new();
    for Finding { what, state, said, remedy } in findings {
        let word = match state {
            State::Works => "ok",
            State::Absent => "-",
            State::Doubtful => "warn",
            State::Fails => "FAIL",
        };
        text.push_str(&format!("{word:<6}{what:<13}{said}\n"));
        text.extend(remedy.iter().map(|remedy| format!("{:19}hint: {remedy}\n", "")));
    }
    let count = |state: State| findings.iter().filter(|finding| finding.state == state).count();
    text.push('\n');
    text.push_str(&match (count(State::Fails), count(State::Doubtful)) {
        (0, 0) => "Everything that was looked at works.\n".to_owned(),
        (0, doubtful) => format!("Nothing fails; {doubtful} could be better.\n"),
        (fails, doubtful) => format!("{fails} of {} fail; {doubtful} could be better.\n", findings.len()),
    });
    text
}

/// Which variables name a proxy. Their values may have a password.
fn proxy() -> Finding {
    let names = ["http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"];
    let set: Vec<&str> =
        names.into_iter().filter(|name| std::env::var_os(name).is_some_and(|value| !value.is_empty())).collect();
    match set.as_slice() {
        [] => Finding::new("proxy", State::Absent, "no variable names one: targets are asked directly"),
        set => Finding::new(
            "proxy",
            State::Works,
            format!("named by {}; never used for loopback, or what `no_proxy` has", set.join(", ")),
        ),
    }
}

fn repository() -> Vec<Finding> {
    let repository = match surroundings::repository() {
        Ok(repository) => repository,
        Err(error) => {
            let none = Finding::new("git", State::Absent, format!("no history to choose baselines by: {error}"));
            return vec![none];
        }
    };
    let of_job = surroundings::of_job();
    let commit = match repository.commit(&of_job) {
        Ok(commit) => commit,
        Err(error) => return vec![Finding::new("git", State::Doubtful, error.to_string())],
    };
    let short: String = commit.id.chars().take(12).collect();
    let dirty = if commit.dirty { ", with changes that are not committed" } else { "" };
    let at = Finding::new("git", State::Works, format!("commit {short}{dirty}"));
    let shallow = repository.is_shallow().is_ok_and(|shallow| shallow).then(|| {
        Finding::new("history", State::Doubtful, "the clone is shallow: older baselines cannot be placed")
            .remedy("fetch all of it: `fetch-depth: 0` on GitHub, GIT_DEPTH: \"0\" on GitLab")
    });
    let fork = match repository.fork_point(&of_job) {
        Ok(fork) => {
            let fork: String = fork.chars().take(12).collect();
            Finding::new("fork point", State::Works, format!("{fork}: merge-base baselines are chosen at or before it"))
        }
        Err(error) => Finding::new(
            "fork point",
            State::Absent,
            format!("merge-base baselines have no commit to begin at: {error}"),
        ),
    };
    [Some(at), shallow, Some(fork)].into_iter().flatten().collect()
}

/// The job, its request, and whether its token is taken.
fn forge(console: &Console) -> Vec<Finding> {
    let variables = surroundings::variables();
    let tokens = ["GITHUB_TOKEN", "GH_TOKEN", "GITLAB_TOKEN", "CI_JOB_TOKEN"];
    console.secrets.add(&tokens.iter().filter_map(|name| variables.get(*name)).map(Secret::new).collect::<Vec<_>>());
    let job = match surroundings::job(&variables, console) {
        Ok(Some(job)) => job,
        Ok(None) => return vec![Finding::new("forge", State::Absent, "no CI job: nothing is published from here")],
        Err(failure) => return vec![Finding::failed("forge", failure)],
    };
    let name = match job.forge {
        Forge::GitHub => "GitHub",
        Forge::GitLab => "GitLab",
    };
    let request =
        job.request.map_or_else(|| "no request by its number".to_owned(), |number| format!("request {number}"));
    let fork = if job.from_fork { ", from a fork: no secrets, and a token that can only read" } else { "" };
    let mut findings = vec![Finding::new("forge", State::Works, format!("{name} {}, {request}{fork}", job.repository))];
    let is_github = job.forge == Forge::GitHub;
    let looked = gate_forge::token_of(&job, &variables)
        .and_then(|token| Courier::new(job, token, PATIENCE, || false))
        .and_then(|mut courier| courier.look());
    findings.push(match looked {
        Ok(Ok(count)) => Finding::new("token", State::Works, format!("it reads the request's {count} comments"))
            .remedy(if is_github {
                "whether it may write is only seen then: it needs pull-requests: write, and checks: write for a check run"
            } else {
                "whether it may write is only seen then: it needs the scope `api` and the role Reporter"
            }),
        Ok(Err(why)) => Finding::new("token", State::Absent, format!("nothing to comment on: {why}")),
        Err(error) => {
            let failed = Finding::new("token", State::Fails, format!("failed to {error}"));
            match error.hint() {
                Some(hint) => failed.remedy(hint),
                None => failed,
            }
        }
    });
    findings
}
