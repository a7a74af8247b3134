//! Runs, verdicts and repositories to test with.

use std::path::{Path, PathBuf};
use std::process::Command;

use gate_baseline::{Repository, Shelf, Surroundings, baseline, key};
use gate_model::{
    Baseline, BaselineKey, BaselineStore, Commit, DEFINITIONS, EndReason, Endpoint, ExitCode, GateSpec, Health, Host,
    Iterations, Nanos, Outcome, Outcomes, Pace, PerSecond, Plan, PlannedRequest, Run, RunEnd, RunFacts, RunHeader,
    Sample, Status, Usage, VERDICT_SCHEMA, Verdict,
};
use tempfile::TempDir;

/// The ref that git stores are tested with.
pub(crate) const REF: &str = "refs/gate/baselines";

/// As many as a run must have answered to be compared with.
pub(crate) const REQUESTS: u32 = 20;

pub(crate) fn spec() -> GateSpec {
    let mut spec = GateSpec::new("chat", Endpoint::Url("http://127.0.0.1:8000/v1".to_owned()));
    spec.load.pace = Pace::Open { rate: PerSecond(2.0), cap: None };
    spec.load.iterations = Iterations::Fixed(REQUESTS);
    spec.target.model = Some("small".to_owned());
    spec
}

pub(crate) fn the_key() -> BaselineKey {
    key(&spec(), DEFINITIONS)
}

/// A run of this gate: ended as planned, tokens by the server's usage.
pub(crate) fn run_of(spec: &GateSpec, id: &str, started: &str, commit: Option<Commit>) -> Run {
    // No two runs have the same times.
    let own = i64::from(id.bytes().fold(0_u16, |sum, byte| sum.wrapping_mul(31).wrapping_add(u16::from(byte))));
    let planned = |index: u32| PlannedRequest {
        index,
        at: Nanos::from_millis(500 * i64::from(index)),
        ..PlannedRequest::default()
    };
    let requests: Vec<PlannedRequest> = (0..REQUESTS).map(planned).collect();
    let plan = Plan::new(spec, vec![REQUESTS], requests.clone());
    let samples = requests.iter().map(|planned| {
        let at = |millis: i64| planned.at + Nanos(own) + Nanos::from_millis(millis);
        let mut sample = Sample { start: Some(planned.at), ..Sample::unsent(planned) };
        sample.first_event = Some(at(100));
        (0..5).for_each(|token| sample.record_token(at(100 + 10 * token), 1_000));
        sample.outcome = Outcome::Ok;
        sample.usage = Some(Usage { output: Some(5), ..Usage::default() });
        sample
    });
    let samples: Vec<Sample> = samples.collect();
    let host = Host { system: "linux-x86_64".to_owned(), cores: 4, ..Host::default() };
    let header = RunHeader { commit, host: Some(host), ..RunHeader::new(spec.clone(), &plan, "0.1.0", id, started) };
    let end = RunEnd::new(EndReason::Completed, REQUESTS, Nanos::from_secs(10));
    Run::new(header, Vec::new(), samples, Some(end))
}

pub(crate) fn verdict_of(run: &Run) -> Verdict {
    let header = &run.header;
    Verdict {
        schema: VERDICT_SCHEMA,
        definitions: DEFINITIONS,
        gate: header.gate.clone(),
        name: header.spec.name.clone(),
        spec_file: header.spec.file.clone(),
        simulated: false,
        status: Status::Passed,
        exit: ExitCode::Passed,
        policy: Outcomes::default(),
        valid: true,
        report_only: false,
        checks: Vec::new(),
        findings: Vec::new(),
        figures: Vec::new(),
        run: RunFacts {
            run_id: header.run_id.clone(),
            started: header.started.clone(),
            target: "http://127.0.0.1:8000/v1".to_owned(),
            model: None,
            scenarios: header.scenarios.clone(),
            looks: header.looks.clone(),
            decided_at: Some(REQUESTS),
            planned: REQUESTS,
            sent: REQUESTS,
            judged: REQUESTS,
            outcomes: Vec::new(),
            duration: Nanos::from_secs(1),
            pace: None,
            token_sources: Vec::new(),
            rates: None,
            cold_ttft: None,
            send_lag: None,
            health: Health::default(),
            reached: None,
            percentiles: header.percentiles.clone(),
            imported_from: None,
            commit: header.commit.clone(),
            reference: None,
            parts: Vec::new(),
            turns: Vec::new(),
            contexts: Vec::new(),
            prompts: Vec::new(),
            server: Vec::new(),
            spent: None,
            cost: None,
            footprint: None,
            shards: 1,
        },
        baseline: None,
        moved: None,
        suspects: Vec::new(),
        spreads: Vec::new(),
        overrides: Vec::new(),
        journals: Vec::new(),
    }
}

pub(crate) fn keep(run: &Run) -> Baseline {
    baseline(run, &verdict_of(run), "2026-11-01T12:00:00Z").unwrap()
}

/// A baseline of the usual gate, of this minute and commit.
pub(crate) fn kept(id: &str, minute: u32, commit: Option<Commit>) -> Baseline {
    keep(&run_of(&spec(), id, &at(minute), commit))
}

/// The same of which only so many requests were ok.
pub(crate) fn kept_few(id: &str, minute: u32, commit: Option<Commit>, ok: usize) -> Baseline {
    let mut baseline = kept(id, minute, commit);
    baseline.run.samples.iter_mut().skip(ok).for_each(|sample| sample.outcome = Outcome::Http5xx);
    baseline
}

pub(crate) fn at(minute: u32) -> String {
    format!("2026-11-01T{:02}:{:02}:00Z", minute / 60, minute % 60)
}

pub(crate) fn folder_shelf(folder: &Path) -> Shelf {
    Shelf::open(&BaselineStore::Folder(".gate/baselines".to_owned()), folder).unwrap()
}

pub(crate) fn git_shelf(folder: &Path) -> Shelf {
    Shelf::open(&BaselineStore::Git(REF.to_owned()), folder).unwrap()
}

pub(crate) fn ids(shelf: &Shelf) -> Vec<String> {
    let listing = shelf.list("chat").unwrap();
    assert_eq!(listing.refused, []);
    listing.entries.into_iter().map(|entry| entry.id).collect()
}

/// Git without anybody's settings.
pub(crate) fn git_command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("git");
    let person = [
        ("GIT_AUTHOR_NAME", "a"),
        ("GIT_AUTHOR_EMAIL", "a@x"),
        ("GIT_COMMITTER_NAME", "c"),
        ("GIT_COMMITTER_EMAIL", "c@x"),
    ];
    command.arg("-C").arg(folder).args(["-c", "init.defaultBranch=main", "-c", "advice.detachedHead=false"]);
    command.args(arguments).envs(person);
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1").env("LC_ALL", "C");
    for variable in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"] {
        command.env_remove(variable);
    }
    command
}

pub(crate) fn git(folder: &Path, arguments: &[&str]) -> String {
    let output = git_command(folder, arguments).output().unwrap();
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}

/// A remote, and a clone of it that its commits are made in.
pub(crate) struct World {
    folder: TempDir,
}

impl World {
    pub(crate) fn new() -> Self {
        let world = Self { folder: tempfile::tempdir().unwrap() };
        git(world.folder.path(), &["init", "--quiet", "--bare", "remote.git"]);
        git(world.folder.path(), &["init", "--quiet", "work"]);
        git(&world.work(), &["remote", "add", "origin", &world.url()]);
        world
    }

    /// With so many commits on `main`, pushed.
    pub(crate) fn with_main(commits: usize) -> (Self, Vec<String>) {
        let world = Self::new();
        let ids = (0..commits).map(|number| world.commit(&format!("m{number}"))).collect();
        git(&world.work(), &["push", "--quiet", "origin", "main"]);
        git(&world.work(), &["fetch", "--quiet", "origin"]);
        (world, ids)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.path("work")
    }

    /// The remote, as over a network: a shallow clone by path alone would be a whole one.
    pub(crate) fn url(&self) -> String {
        format!("file://{}", self.path("remote.git").display())
    }

    /// A commit in the working clone that changes a file of its own.
    pub(crate) fn commit(&self, name: &str) -> String {
        commit_in(&self.work(), name)
    }

    pub(crate) fn clone(&self, name: &str, options: &[&str]) -> PathBuf {
        let url = self.url();
        git(self.folder.path(), &[&["clone", "--quiet"], options, &[&url, name]].concat());
        self.path(name)
    }
}

pub(crate) fn commit_in(folder: &Path, name: &str) -> String {
    std::fs::write(folder.join(format!("{name}.txt")), name).unwrap();
    git(folder, &["add", "."]);
    git(folder, &["commit", "--quiet", "-m", name]);
    git(folder, &["rev-parse", "HEAD"])
}

/// A clean commit with these first parents, as a run notes it.
pub(crate) fn noted(id: &str, parents: &[String]) -> Commit {
    Commit { id: id.to_owned(), parents: parents.to_vec(), ..Commit::default() }
}

pub(crate) fn repository(folder: &Path) -> Repository {
    Repository::of(folder).unwrap()
}

pub(crate) fn onto(branch: &str) -> Surroundings {
    Surroundings { base_branch: Some(branch.to_owned()), branch: None }
}

/// Set in a test that runs itself again, with other variables than the other tests have.
pub(crate) const AGAIN: &str = "GATE_TEST_AGAIN";

pub(crate) fn again(test: &str, variables: &[(&str, &str)]) {
    let mut command = Command::new(std::env::current_exe().unwrap());
    let output = command.args(["--exact", test]).env(AGAIN, "1").envs(variables.iter().copied()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && said.contains("1 passed"), "{said}");
}
