use proptest::prelude::*;
use serde_json::json;

use super::*;

const MERGE: &str = "dddddddddddddddddddddddddddddddddddddddd";

macro_rules! fixture {
    ($name:literal) => {
        serde_json::from_str::<Value>(include_str!(concat!("../../fixtures/events/", $name, ".json"))).unwrap()
    };
}

fn id(digit: &str) -> Option<String> {
    Some(digit.repeat(40))
}

fn variables(pairs: &[(&str, &str)]) -> Variables {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

fn on_github(event: &str, more: &[(&str, &str)]) -> Variables {
    let mut all = variables(&[
        ("GITHUB_ACTIONS", "true"),
        ("GITHUB_API_URL", "https://api.github.com"),
        ("GITHUB_SERVER_URL", "https://github.com"),
        ("GITHUB_REPOSITORY", "acme/chat"),
        ("GITHUB_EVENT_NAME", event),
        ("GITHUB_EVENT_PATH", "/runner/event.json"),
        ("GITHUB_SHA", MERGE),
        ("GITHUB_REF", "refs/pull/7/merge"),
        ("GITHUB_WORKFLOW", "perf"),
        ("GITHUB_JOB", "gate"),
        ("GITHUB_RUN_ID", "4242"),
        ("GITHUB_RUN_NUMBER", "99"),
        ("GITHUB_RUN_ATTEMPT", "2"),
        ("GITHUB_ACTOR", "octocat"),
    ]);
    all.extend(variables(more));
    all
}

/// A job that only tells its commit.
fn on_a_commit(event: Event) -> Job {
    Job {
        forge: Forge::GitHub,
        event,
        api: "https://api.github.com".to_owned(),
        repository: "acme/chat".to_owned(),
        head: Some(MERGE.to_owned()),
        base: None,
        trusted: None,
        request: None,
        head_branch: None,
        from_fork: false,
        key: "perf/gate".to_owned(),
        run: Some(99),
        page: Some("https://github.com/acme/chat/actions/runs/4242".to_owned()),
    }
}

/// A job of pull request 7, by a member.
fn of_request(event: Event) -> Job {
    let head_branch = Some("acme:faster/answers".to_owned());
    Job { head: id("a"), base: id("b"), request: Some(7), head_branch, ..on_a_commit(event) }
}

fn of_fork(event: Event) -> Job {
    Job { head_branch: Some("stranger:faster/answers".to_owned()), from_fork: true, ..of_request(event) }
}

#[track_caller]
fn check(variables: &Variables, event: Value, job: Job) {
    assert_eq!(Job::of(variables, Some(&event)), Ok(Some(job)));
}

#[test]
fn a_pull_request_is_measured_at_its_head_and_not_at_the_merge() {
    let variables = on_github("pull_request", &[]);
    check(&variables, fixture!("pull_request"), of_request(Event::PullRequest));
    check(&variables, fixture!("pull_request_fork"), of_fork(Event::PullRequest));
    let gone = Job { head_branch: None, ..of_fork(Event::PullRequest) };
    check(&variables, fixture!("pull_request_deleted_fork"), gone);
}

#[test]
fn what_runs_with_the_base_s_secrets_says_which_commit_is_trusted() {
    let trusted = Some(MERGE.to_owned());
    let target = Job { trusted: trusted.clone(), ..of_fork(Event::PullRequestTarget) };
    check(&on_github("pull_request_target", &[]), fixture!("pull_request_target"), target);

    // The number is that of the run that measured; another repository's request of the same commit is not ours.
    let run = Job { trusted: trusted.clone(), run: Some(31), ..of_request(Event::WorkflowRun) };
    let variables = on_github("workflow_run", &[("GITHUB_REF", "refs/heads/main")]);
    check(&variables, fixture!("workflow_run"), run);
    let run = Job { trusted: trusted.clone(), run: Some(31), base: None, request: None, ..of_fork(Event::WorkflowRun) };
    check(&variables, fixture!("workflow_run_fork"), run);

    let variables = on_github("issue_comment", &[("GITHUB_REF", "refs/heads/main")]);
    let comment = Job { trusted, ..on_a_commit(Event::IssueComment) };
    check(&variables, fixture!("issue_comment_on_issue"), comment.clone());
    check(&variables, fixture!("issue_comment"), Job { head: None, request: Some(7), ..comment });
}

#[test]
fn pushes_queues_clicks_and_the_clock() {
    let main = on_github("push", &[("GITHUB_REF", "refs/heads/main"), ("GITHUB_SHA", &"a".repeat(40))]);
    let push = Job { head: id("a"), ..on_a_commit(Event::Push) };
    let to_main = Job { base: id("b"), head_branch: Some("acme:main".to_owned()), ..push.clone() };
    check(&main, fixture!("push"), to_main);
    let branch = on_github("push", &[("GITHUB_REF", "refs/heads/faster/answers")]);
    let on_branch = Job { head_branch: Some("acme:faster/answers".to_owned()), ..push };
    check(&branch, fixture!("push_new_branch"), on_branch);

    let queue = on_github("merge_group", &[("GITHUB_REF", "refs/heads/gh-readonly-queue/main/pr-7-b")]);
    let group = Job { head: id("a"), base: id("b"), ..on_a_commit(Event::MergeGroup) };
    check(&queue, fixture!("merge_group"), group);

    let click = on_github("workflow_dispatch", &[("GITHUB_REF", "refs/heads/faster/answers")]);
    let head_branch = Some("acme:faster/answers".to_owned());
    check(&click, fixture!("workflow_dispatch"), Job { head_branch, ..on_a_commit(Event::WorkflowDispatch) });
    let clock = on_github("schedule", &[("GITHUB_REF", "refs/heads/main")]);
    check(&clock, fixture!("schedule"), on_a_commit(Event::Schedule));
    let tag = on_github("release", &[("GITHUB_REF", "refs/tags/v1.2.0")]);
    check(&tag, fixture!("release"), on_a_commit(Event::Other("release".to_owned())));
    let review = on_github("pull_request_review", &[]);
    check(&review, fixture!("pull_request_review"), of_request(Event::Other("pull_request_review".to_owned())));
}

#[test]
fn dependabot_counts_as_a_fork_where_github_treats_it_so() {
    let by = &[("GITHUB_ACTOR", "dependabot[bot]")];
    let request = Job { from_fork: true, ..of_request(Event::PullRequest) };
    check(&on_github("pull_request", by), fixture!("pull_request"), request);
    let run = Job { trusted: Some(MERGE.to_owned()), run: Some(31), ..of_request(Event::WorkflowRun) };
    check(&on_github("workflow_run", by), fixture!("workflow_run"), run);
}

#[test]
fn an_enterprise_server_has_its_own_addresses() {
    let own =
        &[("GITHUB_API_URL", "https://git.acme.example/api/v3/"), ("GITHUB_SERVER_URL", "https://git.acme.example")];
    let expected = Job {
        api: "https://git.acme.example/api/v3".to_owned(),
        page: Some("https://git.acme.example/acme/chat/actions/runs/4242".to_owned()),
        ..of_request(Event::PullRequest)
    };
    check(&on_github("pull_request", own), fixture!("pull_request"), expected.clone());
    let mut without = on_github("pull_request", own);
    without.remove("GITHUB_API_URL");
    check(&without, fixture!("pull_request"), expected);
}

#[test]
fn the_key_is_the_job_and_a_matrix_job_s_own_values_in_one_line() {
    let key = |more| Job::of(&on_github("schedule", more), None).unwrap().unwrap().key;
    assert_eq!(key(&[("GATE_JOB", "llama, h100")]), "perf/gate (llama, h100)");
    assert_eq!(key(&[("GITHUB_WORKFLOW", "a\n\t\u{7}b"), ("GATE_JOB", " ")]), "a b/gate");
    assert_eq!(key(&[("GITHUB_WORKFLOW", &"é".repeat(500))]).chars().count(), 200);
}

#[test]
fn without_an_event_the_variables_tell_what_they_can() {
    let job = Job::of(&on_github("pull_request", &[("GITHUB_HEAD_REF", "faster")]), None).unwrap().unwrap();
    let head_branch = Some("faster".to_owned());
    assert_eq!(job, Job { head: None, request: Some(7), head_branch, ..on_a_commit(Event::PullRequest) });
}

#[test]
fn variables_that_make_no_sense_are_refused_without_being_shown() {
    for (name, value) in [
        ("GITHUB_API_URL", "https://user:s3cret@api.github.com"),
        ("GITHUB_API_URL", "file:///etc/passwd"),
        ("GITHUB_API_URL", "not a URL s3cret"),
        ("GITHUB_API_URL", "https://api.github.com?token=s3cret"),
        ("GITHUB_SERVER_URL", "https://s3cret@github.com"),
        ("GITHUB_REPOSITORY", "acme"),
        ("GITHUB_REPOSITORY", "acme/../s3cret"),
        ("GITHUB_REPOSITORY", "acme/.."),
        ("GITHUB_REPOSITORY", ""),
        ("GITHUB_EVENT_NAME", ""),
        ("GITHUB_WORKFLOW", ""),
        ("GITHUB_JOB", ""),
    ] {
        let refused = Job::of(&on_github("push", &[(name, value)]), None).unwrap_err();
        assert!(matches!(&refused, JobError::Variable { name: named, .. } if named == name), "{name}={value}");
        assert!(!refused.to_string().contains("s3cret"), "{refused}");
    }
    assert_eq!(Job::of(&variables(&[("CI", "true")]), None), Ok(None));
}

#[test]
fn the_event_s_file_is_github_s_alone() {
    let path = PathBuf::from("/runner/event.json");
    assert_eq!(Job::event_file(&on_github("push", &[])), Some(path));
    assert_eq!(Job::event_file(&variables(&[("GITHUB_EVENT_PATH", "/x")])), None);
    assert_eq!(Job::event_file(&on_github("push", &[("GITHUB_EVENT_PATH", "")])), None);
}

#[test]
fn wrong_types_are_absent() {
    let event = json!({
        "number": "7",
        "pull_request": {
            "number": -7,
            "head": {"sha": "main", "ref": "a b\n", "repo": {"full_name": ["acme/chat"]}},
            "base": {"sha": 5, "repo": "acme"},
        },
        "repository": null,
    });
    let expected = Job { head: None, from_fork: true, ..on_a_commit(Event::PullRequest) };
    check(&on_github("pull_request", &[]), event, expected);
}

fn on_gitlab(source: &str, more: &[(&str, &str)]) -> Variables {
    let mut all = variables(&[
        ("GITLAB_CI", "true"),
        ("CI_API_V4_URL", "https://gitlab.example/api/v4"),
        ("CI_PROJECT_ID", "5"),
        ("CI_PROJECT_PATH", "acme/chat"),
        ("CI_PIPELINE_SOURCE", source),
        ("CI_PIPELINE_ID", "1234"),
        ("CI_JOB_NAME", "gate 1/2"),
        ("CI_NODE_INDEX", "1"),
        ("CI_NODE_TOTAL", "2"),
        ("CI_JOB_URL", "https://gitlab.example/acme/chat/-/jobs/777"),
        ("CI_COMMIT_SHA", MERGE),
        ("CI_COMMIT_BEFORE_SHA", &"0".repeat(40)),
        ("CI_JOB_TOKEN", "glcbt-64_s3cret"),
    ]);
    all.extend(variables(more));
    all
}

fn in_project(event: Event) -> Job {
    Job {
        forge: Forge::GitLab,
        api: "https://gitlab.example/api/v4".to_owned(),
        repository: "5".to_owned(),
        key: "gate".to_owned(),
        run: Some(1234),
        page: Some("https://gitlab.example/acme/chat/-/jobs/777".to_owned()),
        ..on_a_commit(event)
    }
}

#[test]
fn merge_requests_in_their_project_and_in_a_fork() {
    let (a, b) = ("a".repeat(40), "b".repeat(40));
    let request = [
        ("CI_MERGE_REQUEST_IID", "7"),
        ("CI_MERGE_REQUEST_PROJECT_ID", "5"),
        ("CI_MERGE_REQUEST_SOURCE_PROJECT_ID", "5"),
        ("CI_MERGE_REQUEST_SOURCE_BRANCH_NAME", "faster/answers"),
        ("CI_MERGE_REQUEST_DIFF_BASE_SHA", b.as_str()),
    ];
    let head_branch = Some("faster/answers".to_owned());
    let expected = Job { base: id("b"), request: Some(7), head_branch, ..in_project(Event::MergeRequest) };
    let job = |variables: Variables| Job::of(&variables, None).unwrap().unwrap();
    let detached = on_gitlab("merge_request_event", &request);
    assert_eq!(job(detached.clone()), expected);

    // A merged result is built on a merge: its parents are the heads of both branches.
    let mut merged = detached.clone();
    let parents =
        [("CI_MERGE_REQUEST_SOURCE_BRANCH_SHA", a.as_str()), ("CI_MERGE_REQUEST_TARGET_BRANCH_SHA", &"c".repeat(40))];
    merged.extend(variables(&parents));
    assert_eq!(job(merged), Job { head: id("a"), base: id("c"), ..expected.clone() });

    // In the fork's own pipeline the request belongs to another project than the pipeline.
    let mut fork = detached.clone();
    fork.extend(variables(&[("CI_PROJECT_ID", "66"), ("CI_MERGE_REQUEST_SOURCE_PROJECT_ID", "66")]));
    assert_eq!(job(fork), Job { from_fork: true, ..expected.clone() });
    let mut child = detached;
    child.insert("CI_PIPELINE_SOURCE".to_owned(), "parent_pipeline".to_owned());
    assert_eq!(job(child), expected);
}

#[test]
fn other_pipelines_of_gitlab() {
    let job = |source, more: &[_]| Job::of(&on_gitlab(source, more), None).unwrap().unwrap();
    assert_eq!(job("schedule", &[]), in_project(Event::Schedule));
    assert_eq!(job("web", &[]), in_project(Event::WorkflowDispatch));
    assert_eq!(job("api", &[("CI_JOB_NAME", "gate: [h100]")]).key, "gate: [h100]");
    let b = "b".repeat(40);
    let main = [("CI_COMMIT_BRANCH", "main"), ("CI_COMMIT_BEFORE_SHA", b.as_str())];
    let pushed = Job { base: id("b"), head_branch: Some("main".to_owned()), ..in_project(Event::Push) };
    assert_eq!(job("push", &main), pushed);
    let open = [("CI_COMMIT_BRANCH", "faster"), ("CI_OPEN_MERGE_REQUESTS", "acme/chat!7,acme/chat!9")];
    let opened = Job {
        repository: "acme/chat".to_owned(),
        request: Some(7),
        head_branch: Some("faster".to_owned()),
        ..in_project(Event::Push)
    };
    assert_eq!(job("push", &open), opened);
    let elsewhere = [("CI_OPEN_MERGE_REQUESTS", "acme/chat!7"), ("CI_PROJECT_PATH", "stranger/chat")];
    assert!(job("push", &elsewhere).from_fork);
    for (name, value) in
        [("CI_API_V4_URL", "https://u:s3cret@gitlab.example/api/v4"), ("CI_PROJECT_ID", "../1"), ("CI_JOB_NAME", "")]
    {
        let refused = Job::of(&on_gitlab("push", &[(name, value)]), None).unwrap_err().to_string();
        assert!(refused.contains(name) && !refused.contains("s3cret"), "{refused}");
    }
}

/// JSON of any shape, with the names that events have.
fn any_json() -> impl Strategy<Value = Value> {
    let name = prop::sample::select(vec![
        "pull_request",
        "merge_group",
        "workflow_run",
        "pull_requests",
        "issue",
        "head",
        "base",
        "repo",
        "repository",
        "full_name",
        "sha",
        "ref",
        "number",
        "head_sha",
        "head_branch",
        "head_repository",
        "after",
        "before",
        "sender",
        "login",
        "id",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
        "[0-9a-f]{40}".prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 64, 8, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::hash_map(name.clone(), inner, 0..8)
                .prop_map(|fields| fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()),
        ]
    })
}

proptest! {
    #[test]
    fn no_event_panics_and_all_that_is_told_is_in_order(
        json in any_json(),
        event in prop::sample::select(vec![
            "pull_request", "pull_request_target", "merge_group", "push", "workflow_run", "issue_comment", "schedule",
            "pull_request_review",
        ]),
    ) {
        let job = Job::of(&on_github(event, &[]), Some(&json)).unwrap().unwrap();
        for commit in [&job.head, &job.base, &job.trusted].into_iter().flatten() {
            prop_assert!(commit.len() == 40 || commit.len() == 64);
        }
        prop_assert!(job.head_branch.is_none_or(|name| name.contains(':') && !name.contains(char::is_whitespace)));
        prop_assert!(job.request != Some(0));
    }

    #[test]
    fn no_variable_panics(name in "(GITHUB|CI)_[A-Z_0-9]{2,20}", value in any::<String>(), forge in any::<bool>()) {
        let mut all = if forge { on_github("push", &[]) } else { on_gitlab("push", &[]) };
        let names: Vec<String> = all.keys().cloned().chain([name]).collect();
        for name in names.into_iter().filter(|name| name != "GITHUB_ACTIONS" && name != "GITLAB_CI") {
            let before = all.insert(name.clone(), value.clone());
            drop(Job::of(&all, None));
            match before {
                Some(before) => all.insert(name, before),
                None => all.remove(&name),
            };
        }
    }
}
