//! Whose specs are run, and where they may send secrets.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use crate::harness::{Ended, Place, TWO_WORDS, answer, quick_spec, serve};

/// The key that the job holds.
const KEY: &str = "sk-planted-in-the-job";

/// A server that keeps what it is sent.
struct Server {
    address: SocketAddr,
    heard: Arc<Mutex<Vec<String>>>,
}

impl Server {
    fn start() -> Self {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&heard);
        let address = serve(move |request, stream| {
            kept.lock().unwrap().push(request.to_owned());
            if request.starts_with("GET ") {
                answer(stream, "200 OK", "application/json", "{\"data\":[{\"id\":\"m\"}]}");
            } else {
                answer(stream, "200 OK", "text/event-stream", TWO_WORDS);
            }
        });
        Self { address, heard }
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    fn requests(&self) -> Vec<String> {
        self.heard.lock().unwrap().clone()
    }

    #[track_caller]
    fn was_left_alone(&self) {
        let requests = self.requests();
        assert!(requests.is_empty(), "{requests:?}");
    }
}

/// A gate against a server, with the job's key.
fn spec(url: &str) -> String {
    quick_spec("chat", url, 20).replace("model: m", "model: m, key: '${API_KEY}'")
}

/// A repository whose main branch has the gate, and whose branch `change` is checked out.
fn repository(spec: &str) -> Place {
    let place = Place::new();
    place.git(&["init", "--quiet"]);
    place.write(".gitignore", ".gate/\n");
    place.write("gates/chat.yaml", spec);
    place.commit("the gate");
    place.git(&["checkout", "--quiet", "-b", "change"]);
    place
}

fn check(place: &Place, words: &[&str]) -> Ended {
    place.undisturbed(|| {
        let mut command = place.command(&[&["check"], words].concat());
        Ended::of(command.env("API_KEY", KEY).env("OTHER_KEY", "sk-of-another").output().unwrap())
    })
}

/// The same in a job of GitHub's that this event started; the trusted commit is what `GITHUB_SHA` says.
fn check_in_job(place: &Place, event: &str, sha: &str, words: &[&str]) -> Ended {
    let repository = r#"{"full_name":"o/r","default_branch":"main","owner":{"login":"o"},"id":1}"#;
    let request = format!(
        r#"{{"number":7,"head":{{"sha":"{sha}","ref":"change","label":"x:change","repo":{{"full_name":"x/r","id":2,"fork":true}}}},
           "base":{{"sha":"{sha}","ref":"main","repo":{repository}}}}}"#
    );
    let payload = match event {
        "workflow_run" => format!(
            r#"{{"repository":{repository},"workflow_run":{{"head_sha":"{sha}","head_branch":"change","event":"pull_request",
               "head_repository":{{"full_name":"x/r","id":2,"owner":{{"login":"x"}}}},"pull_requests":[]}}}}"#
        ),
        "issue_comment" => format!(
            r#"{{"repository":{repository},"action":"created","issue":{{"number":7,"pull_request":{{}}}},"comment":{{"id":1}}}}"#
        ),
        _ => format!(r#"{{"repository":{repository},"number":7,"pull_request":{request}}}"#),
    };
    place.write(".gate/event.json", &payload);
    place.undisturbed(|| {
        let mut command = place.command(&[&["check"], words].concat());
        let job = [
            ("GITHUB_ACTIONS", "true"),
            ("GITHUB_EVENT_NAME", event),
            ("GITHUB_REPOSITORY", "o/r"),
            ("GITHUB_SHA", sha),
            ("GITHUB_REF", "refs/heads/main"),
            ("GITHUB_WORKFLOW", "gate"),
            ("GITHUB_JOB", "gate"),
            ("GITHUB_RUN_ID", "1"),
            ("GITHUB_RUN_NUMBER", "1"),
            ("GITHUB_RUN_ATTEMPT", "1"),
            ("GITHUB_SERVER_URL", "http://127.0.0.1:9"),
            ("GITHUB_API_URL", "http://127.0.0.1:9"),
            ("API_KEY", KEY),
        ];
        command.envs(job).env("GITHUB_EVENT_PATH", place.path(".gate/event.json"));
        Ended::of(command.output().unwrap())
    })
}

#[test]
fn a_strangers_spec_is_not_run_with_the_repositorys_secrets() {
    let (ours, theirs) = (Server::start(), Server::start());
    let place = repository(&spec(&ours.url()));
    let base = place.git(&["rev-parse", "main"]);
    place.write("gates/chat.yaml", &spec(&theirs.url()));
    place.commit("to another host");
    for event in ["pull_request_target", "workflow_run", "issue_comment"] {
        let ended = check_in_job(&place, event, &base, &[]);
        ended.expect_code(2).says("gates/chat.yaml").says(event).says("secrets").says("--trust head");
        let named = check_in_job(&place, event, &base, &["gates/chat.yaml"]);
        named.expect_code(2).says("not that of");
    }
    theirs.was_left_alone();
    ours.was_left_alone();

    // A pull request's own job has no such secrets, and whoever says `--trust head` has decided.
    check_in_job(&place, "pull_request", &base, &[]).expect_code(0);
    let before = theirs.requests().len();
    assert!(before > 0);
    check_in_job(&place, "pull_request_target", &base, &["--trust", "head"]).expect_code(0);
    assert!(theirs.requests().len() > before);
    ours.was_left_alone();
}

#[test]
fn the_bases_own_spec_is_run_whatever_started_the_job() {
    let ours = Server::start();
    let place = repository(&spec(&ours.url()));
    let base = place.git(&["rev-parse", "main"]);
    place.write("src/code.txt", "theirs");
    place.commit("a change of something else");
    check_in_job(&place, "pull_request_target", &base, &[]).expect_code(0);
    assert!(!ours.requests().is_empty());
    let before = ours.requests().len();

    // Neither a spec that is new, nor one that is a link to elsewhere, nor one whose base is not known.
    place.write("gates/new.yaml", &spec(&ours.url()).replace("chat", "new"));
    check_in_job(&place, "pull_request_target", &base, &[])
        .expect_code(2)
        .says("gates/new.yaml")
        .says("has no such file");
    std::fs::remove_file(place.path("gates/new.yaml")).unwrap();
    let unknown = check_in_job(&place, "pull_request_target", &"1".repeat(40), &[]);
    unknown.expect_code(2).says("does not have it");
    let outside = Place::new();
    outside.write("gates/chat.yaml", &spec(&ours.url()));
    check_in_job(&outside, "workflow_run", &base, &[]).expect_code(2).says("not a git repository");
    #[cfg(unix)]
    {
        place.write("elsewhere/chat.yaml", &spec(&ours.url()).replace("iterations: 20", "iterations: 21"));
        std::fs::remove_file(place.path("gates/chat.yaml")).unwrap();
        std::os::unix::fs::symlink("../elsewhere/chat.yaml", place.path("gates/chat.yaml")).unwrap();
        place.commit("a link");
        check_in_job(&place, "issue_comment", &base, &[]).expect_code(2).says("not that of");
    }
    assert_eq!(ours.requests().len(), before);
}

#[test]
fn under_the_bases_trust_a_key_goes_to_the_bases_hosts_alone() {
    let (ours, theirs) = (Server::start(), Server::start());
    let place = repository(&spec(&ours.url()));
    place.write("gates/chat.yaml", &spec(&theirs.url()));
    place.commit("to another host");
    let ended = check(&place, &["--trust", "base"]);
    ended.expect_code(2).says("gates/chat.yaml").says("gate chat").says(&theirs.url()).says("--allow-host 127.0.0.1");
    theirs.was_left_alone();
    let port = theirs.address.port();
    for (host, code) in [("h.example".to_owned(), 2), (format!("127.0.0.1:{}", port ^ 1), 2)] {
        check(&place, &["--trust", "base", "--allow-host", &host]).expect_code(code);
    }
    check(&place, &["--trust", "base", "--allow-host", "http://h"]).expect_code(2).says("it is a URL");
    theirs.was_left_alone();
    check(&place, &["--trust", "base", "--allow-host", &format!("127.0.0.1:{port}")]).expect_code(0);
    assert!(theirs.requests().iter().any(|request| request.contains(KEY)));
    for (path, text) in place.everything() {
        assert!(!text.contains(KEY), "{}", path.display());
    }
    // What the workflow itself names is the workflow's to say; and the reference and the metrics count as the target does.
    let before = theirs.requests().len();
    check(&place, &["--trust", "base", "--target", &ours.url()]).expect_code(0);
    for more in ["reference: {url: URL}", "METRICS"] {
        let more = more.replace("URL", &theirs.url());
        let text = match more.as_str() {
            "METRICS" => {
                spec(&ours.url()).replace("model: m", &format!("model: m, metrics: '{}/metrics'", theirs.url()))
            }
            reference => spec(&ours.url()) + reference + "\n",
        };
        place.write("gates/chat.yaml", &text);
        check(&place, &["--trust", "base"]).expect_code(2).says(&format!("sends to {}", theirs.url()));
    }
    assert_eq!(theirs.requests().len(), before);
}

#[test]
fn under_the_bases_trust_no_further_value_leaves_the_job() {
    let ours = Server::start();
    let place = repository(&spec(&ours.url()));
    for (from, to) in [
        ("'${API_KEY}'", "'${OTHER_KEY}'"),
        ("model: m", "model: '${OTHER_KEY}'"),
        ("model: m", "model: m, headers: {X-A: \"\\x24{OTHER_KEY}\"}"),
        ("model: m", "model: m, extra_body: {a: '${OTHER_KEY:-none}'}"),
    ] {
        place.write("gates/chat.yaml", &spec(&ours.url()).replace(from, to));
        let ended = check(&place, &["--trust", "base"]);
        ended.expect_code(2).says("gates/chat.yaml:3").says("OTHER_KEY").says("merge");
    }
    // What is not set takes nothing out.
    let harmless = spec(&ours.url()).replace("model: m", "model: '${MODEL_OF_NOBODY:-m}'");
    place.write("gates/chat.yaml", &harmless);
    ours.was_left_alone();
    check(&place, &["--trust", "base"]).expect_code(0);
}

#[test]
fn a_gate_that_is_new_sends_secrets_where_the_workflow_says() {
    let ours = Server::start();
    let place = repository(&spec(&ours.url()));
    place.write("gates/new.yaml", &spec(&ours.url()).replace("name: chat", "name: new"));
    place.commit("another gate");
    let new = ["gates/new.yaml", "--trust", "base"];
    check(&place, &new).expect_code(2).says("gate new").says("no such gate").says("--allow-host");
    ours.was_left_alone();
    check(&place, &[&new[..], &["--allow-host", "127.0.0.1"]].concat()).expect_code(0);
    check(&place, &[&new[..], &["--target", &ours.url()]].concat()).expect_code(0);
}

#[test]
fn a_gate_without_secrets_goes_anywhere_but_takes_no_file_of_the_machine_along() {
    let (ours, theirs) = (Server::start(), Server::start());
    let place = repository(&quick_spec("chat", &ours.url(), 20));
    let elsewhere = quick_spec("chat", &theirs.url(), 20);
    place.write("gates/chat.yaml", &elsewhere.replace("input_tokens: 50", "file: ../.git/config"));
    place.commit("with the token that the checkout left there");
    check(&place, &["--trust", "base"]).expect_code(2).says(&format!("sends to {}", theirs.url()));
    theirs.was_left_alone();
    place.write("gates/chat.yaml", &elsewhere);
    check(&place, &["--trust", "base"]).expect_code(0);
    assert!(!theirs.requests().is_empty());
}
