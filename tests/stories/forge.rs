//! A verdict on its way to GitHub and GitLab, against a double of both. A forge never changes a verdict.

use std::process::Command;

use serde_json::{Value, json};

use crate::forge_double::{Fault, Forge, JOB_TOKEN, TOKEN, US, pull_request};
use crate::harness::{Ended, Place, answer, outputs_of_step, serve};

const HEALTHY: &str = "version: 1\nname: chat\ntarget: {sim: {ttft: 5ms, tpot: 1ms}}\nload: {rps: 60, iterations: 20, warmup: 1}\nprompts: {output_tokens: 8}\nrequire: [ttft.p50 < 400ms]\n";

fn place() -> Place {
    let place = Place::new();
    place.write("gates/chat.yaml", HEALTHY);
    place.write("slow/chat.yaml", &HEALTHY.replace("ttft: 5ms", "ttft: 900ms"));
    place
}

fn in_job(place: &Place, job: &[(&str, String)], words: &[&str]) -> Command {
    let mut command = place.command(words);
    command.env_remove("CI").envs(job.iter().map(|(name, value)| (name, value)));
    command
}

/// Runs the binary in a job, and again where this machine was too busy to measure.
fn run(place: &Place, job: &[(&str, String)], words: &[&str]) -> Ended {
    place.undisturbed(|| Ended::of(in_job(place, job, words).output().unwrap()))
}

#[test]
fn one_comment_is_created_then_updated_then_turns_green() {
    let (place, forge) = (place(), Forge::start());
    for foreign in 0..130 {
        forge.state().post("octocat", &format!("comment {foreign}"));
    }
    let job = forge.github(&place, "pull_request", &pull_request("o/r"));
    for (words, code, said) in [
        (["check", "slow/chat.yaml"], 1, "VIOLATED"),
        (["check", "slow/chat.yaml"], 1, "VIOLATED"),
        (["check", "gates/chat.yaml"], 0, "PASSED"),
    ] {
        run(&place, &job, &words).expect_code(code);
        let ours = forge.state().ours();
        let [only] = ours.as_slice() else { panic!("{} comments of ours", ours.len()) };
        assert!(only.body.starts_with("<!-- gate:comment job=ci%2Fperf -->\n"), "{}", only.body);
        assert!(only.body.contains(said), "{}", only.body);
        let state = forge.state();
        let last = state.checks.values().next_back().unwrap();
        assert_eq!(last["head_sha"], json!("a".repeat(40)));
        assert_eq!(
            (&last["status"], &last["conclusion"]),
            (&json!("completed"), &json!(if code == 0 { "success" } else { "failure" }))
        );
        drop(state);
    }
    assert!(forge.state().log.iter().any(|request| request.contains("in_progress")), "opened before the load");
    assert_eq!(forge.state().posts.len(), 131);
}

#[test]
fn the_runners_own_files_are_written_without_a_token_too() {
    let (place, forge) = (place(), Forge::start());
    let mut job = forge.github(&place, "pull_request", &pull_request("o/r"));
    job.retain(|(name, _)| *name != "GITHUB_TOKEN");
    place.write("step-summary.md", "before\n");
    let ended = run(&place, &job, &["check", "slow/chat.yaml"]);
    ended.expect_code(1).says("::error file=slow/chat.yaml,line=6,");
    assert!(forge.state().log.is_empty(), "nobody is asked without a token");
    let summary = place.read("step-summary.md");
    assert!(summary.starts_with("before\n") && summary.contains(&place.read(".gate/chat/summary.md")), "{summary}");
    let outputs = outputs_of_step(&place.read("step-output"));
    let value =
        |wanted: &str| outputs.iter().rfind(|(name, _)| name == wanted).map(|(_, value)| value.clone()).unwrap();
    assert_eq!((value("verdict"), value("exit-code")), ("violated".to_owned(), "1".to_owned()));
    assert_eq!((value("report"), value("no-credentials")), (".gate/chat/report.html".to_owned(), "false".to_owned()));

    place.write("gates/wrong.yaml", "version: 1\nname: wrong\n");
    let ended = run(&place, &job, &["check"]);
    ended.expect_code(2).says("::error title=gate::").says("::error file=gates/wrong.yaml,line=");
    assert!(place.read("step-output").contains("\nusage\n"));
    assert!(place.read("step-summary.md").contains("nothing was sent"));
}

#[test]
fn a_forge_never_changes_the_verdict() {
    let place = place();
    for (of, status, hint) in [
        ("POST /repos/o/r/issues/7/comments", "403 Forbidden", "pull-requests: write"),
        ("GET /repos/o/r/issues/7/comments", "404 Not Found", "hint:"),
        ("POST /repos/o/r/issues/7/comments", "410 Gone", "(the verdict stands)"),
        ("POST /repos/o/r/issues/7/comments", "422 Unprocessable Entity", "(the verdict stands)"),
        ("GET /repos/o/r/issues/7/comments", "401 Unauthorized", "token"),
    ] {
        let forge = Forge::start();
        forge.state().faults.push(Fault { of, status, takes_effect: false, times: u32::MAX });
        let job = forge.github(&place, "pull_request", &pull_request("o/r"));
        let ended = run(&place, &job, &["check", "gates/chat.yaml"]);
        ended.expect_code(0).says(hint).says(&status[..3]);
        assert_eq!(ended.stderr.matches("warning: ").count(), 1, "one clear line: {}", ended.stderr);
        assert!(forge.state().ours().is_empty());
    }
    // Nobody there at all.
    let forge = Forge::start();
    let mut job = forge.github(&place, "pull_request", &pull_request("o/r"));
    job.retain(|(name, _)| *name != "GITHUB_API_URL");
    job.push(("GITHUB_API_URL", "http://127.0.0.1:9".into()));
    let ended = run(&place, &job, &["check", "gates/chat.yaml"]);
    ended.expect_code(0).says("(the verdict stands)");
}

#[test]
fn a_create_that_took_effect_is_not_repeated() {
    let (place, forge) = (place(), Forge::start());
    let of = "POST /repos/o/r/issues/7/comments";
    forge.state().faults.push(Fault { of, status: "502 Bad Gateway", takes_effect: true, times: 1 });
    let job = forge.github(&place, "pull_request", &pull_request("o/r"));
    run(&place, &job, &["check", "gates/chat.yaml"]).expect_code(0);
    assert_eq!(forge.state().ours().len(), 1);
}

#[test]
fn two_jobs_at_once_leave_one_comment() {
    let (place, other, forge) = (place(), self::place(), Forge::start());
    let (job, other_job) = (
        forge.github(&place, "pull_request", &pull_request("o/r")),
        forge.github(&other, "pull_request", &pull_request("o/r")),
    );
    let mut children: Vec<_> = [(&place, &job), (&other, &other_job)]
        .map(|(place, job)| in_job(place, job, &["check", "gates/chat.yaml", "--quiet"]).spawn().unwrap())
        .into();
    for child in &mut children {
        child.wait().unwrap();
    }
    assert_eq!(forge.state().ours().len(), 1);
}

#[test]
fn a_strangers_comment_with_our_marker_is_left_alone() {
    let (place, forge) = (place(), Forge::start());
    let quoted = "<!-- gate:comment job=ci%2Fperf -->\nnot yours";
    forge.state().post("octocat", quoted);
    let job = forge.github(&place, "pull_request", &pull_request("o/r"));
    run(&place, &job, &["check", "gates/chat.yaml"]).expect_code(0);
    assert_eq!(forge.state().posts[0].body, quoted);
    assert_eq!(forge.state().ours().len(), 1);
}

#[test]
fn a_comment_is_posted_when_its_reader_wants_it() {
    let (place, forge) = (place(), Forge::start());
    let job = forge.github(&place, "pull_request", &pull_request("o/r"));
    run(&place, &job, &["check", "gates/chat.yaml", "--comment", "on-fail"]).expect_code(0);
    run(&place, &job, &["check", "slow/chat.yaml", "--comment", "never"]).expect_code(1);
    assert!(forge.state().ours().is_empty());
    run(&place, &job, &["check", "slow/chat.yaml", "--comment", "on-fail"]).expect_code(1);
    assert!(forge.state().ours()[0].body.contains("VIOLATED"));
    let posted = forge.state().ours()[0].body.clone();
    run(&place, &job, &["check", "slow/chat.yaml", "--comment", "on-change"]).expect_code(1);
    assert_eq!(forge.state().ours()[0].body, posted, "it says the same");
    run(&place, &job, &["check", "gates/chat.yaml", "--comment", "on-fail"]).expect_code(0);
    assert!(forge.state().ours()[0].body.contains("PASSED"));
}

#[test]
fn a_fork_without_credentials_is_neither_green_nor_red() {
    let (place, forge) = (Place::new(), Forge::start());
    let address =
        serve(|_, stream| answer(stream, "401 Unauthorized", "application/json", "{\"error\": \"who are you\"}"));
    let spec = HEALTHY
        .replace("sim: {ttft: 5ms, tpot: 1ms}", &format!("url: 'http://{address}/v1', model: m, key: '${{KEY:-}}'"));
    place.write("gates/chat.yaml", &spec);
    let job = forge.github(&place, "pull_request", &pull_request("stranger/r"));
    let ended = run(&place, &job, &["check"]);
    ended.expect_code(3).says("no credentials").says("--no-credentials neutral");
    let ended = run(&place, &job, &["check", "--no-credentials", "neutral"]);
    ended.expect_code(0).says("COULD NOT MEASURE").says("neither for nor against");
    let state = forge.state();
    assert_eq!(state.checks.values().next_back().unwrap()["conclusion"], json!("neutral"));
    assert!(state.ours()[0].body.contains("COULD NOT MEASURE") && !state.ours()[0].body.contains("PASSED"));
    assert!(place.junit("chat").contains("<error"), "{}", place.junit("chat"));
    let outputs = outputs_of_step(&place.read("step-output"));
    let last = |wanted: &str| outputs.iter().rfind(|(name, _)| name == wanted).map(|(_, value)| value.clone()).unwrap();
    let said = [last("verdict"), last("exit-code"), last("no-credentials")];
    assert_eq!(said, ["could-not-measure", "0", "true"].map(str::to_owned));
    // A key that is refused is a fault of the job, whatever the flag says.
    drop(state);
    let mut with_key = job.clone();
    with_key.push(("KEY", "sk-refused-key".into()));
    run(&place, &with_key, &["check", "--no-credentials", "neutral"]).expect_code(3);
}

#[test]
fn a_fork_whose_specs_need_a_secret_could_not_be_measured() {
    let (place, forge) = (Place::new(), Forge::start());
    place.write("gates/chat.yaml", &HEALTHY.replace("target: {", "target: {model: '${MODEL:?a secret}', "));
    let of_fork = forge.github(&place, "pull_request", &pull_request("stranger/r"));
    run(&place, &of_fork, &["check"]).expect_code(3).says("MODEL").says("comes from a fork");
    let junit = place.read(".gate/junit.xml");
    assert!(junit.contains("<error") && junit.contains("gates/chat.yaml") && junit.contains("MODEL"), "{junit}");
    assert!(forge.state().ours()[0].body.contains("comes from a fork"), "{}", forge.state().ours()[0].body);
    run(&place, &of_fork, &["check", "--no-credentials", "neutral", "--junit", "j.xml"]).expect_code(0);
    assert!(place.read("j.xml").contains("<error"));
    assert_eq!(forge.state().checks.values().next_back().unwrap()["conclusion"], json!("neutral"));
    // Anybody else has to set it, and another error is one for a fork too.
    let own = forge.github(&place, "pull_request", &pull_request("o/r"));
    run(&place, &own, &["check"]).expect_code(2);
    place.write(
        "gates/chat.yaml",
        &(HEALTHY.replace("target: {", "target: {model: '${MODEL:?a secret}', ") + "lod: {}\n"),
    );
    let of_fork = forge.github(&place, "pull_request", &pull_request("stranger/r"));
    run(&place, &of_fork, &["check"]).expect_code(2);
}

#[test]
fn no_secret_is_told_to_anybody_else() {
    let (place, forge) = (Place::new(), Forge::start());
    // A server that repeats what it is sent, in every way it can.
    let address = serve(|request, stream| {
        let echo = json!({"error": {"message": request.replace("\r\n", " ")}}).to_string();
        answer(stream, "500 Internal Server Error", "application/json", &echo);
    });
    let spec = HEALTHY.replace(
        "sim: {ttft: 5ms, tpot: 1ms}",
        &format!("url: 'http://{address}/v1', model: m, key: '${{KEY}}', headers: {{x-password: '${{PASSWORD}}'}}"),
    );
    place.write("gates/chat.yaml", &spec);
    let mut job = forge.github(&place, "pull_request", &pull_request("o/r"));
    job.extend([("KEY", "sk-planted-key-1".into()), ("PASSWORD", "planted password".into())]);
    forge.state().faults.push(Fault {
        of: "POST /repos/o/r/check-runs",
        status: "403 Forbidden",
        takes_effect: false,
        times: 1,
    });
    let ended = run(&place, &job, &["check", "-vv", "--json"]);
    let secrets = ["sk-planted-key-1", "planted password", TOKEN];
    for (path, text) in place.everything() {
        if !path.ends_with("event.json") {
            assert!(!secrets.iter().any(|secret| text.contains(secret)), "{} tells one", path.display());
        }
    }
    for (stream, text) in [("stdout", &ended.stdout), ("stderr", &ended.stderr)] {
        assert!(!secrets.iter().any(|secret| text.contains(secret)), "{stream} tells one: {text}");
    }
    for request in &forge.state().log {
        assert!(!request.contains("sk-planted-key-1") && !request.contains("planted password"), "{request}");
        let (head, body) = request.split_once("\r\n\r\n").unwrap();
        assert!(head.contains(TOKEN) && !body.contains(TOKEN), "the token is in its header alone");
    }
}

#[test]
fn a_verdict_made_elsewhere_is_checked_and_written_anew() {
    let (place, forge) = (place(), Forge::start());
    place.gate(&["check", "slow/chat.yaml"]).expect_code(1);
    let event = json!({
        "workflow_run": {
            "id": 900, "run_number": 12, "head_sha": "a".repeat(40), "head_branch": "change", "event": "pull_request",
            "head_repository": {"full_name": "stranger/r", "owner": {"login": "stranger"}},
            "pull_requests": [{"number": 7}],
        },
        "repository": {"full_name": "o/r"},
    });
    let job = forge.github(&place, "workflow_run", &event);
    let ended = run(&place, &job, &["publish", "--from", ".gate/chat/verdict.json"]);
    ended.expect_code(0);
    let ours = forge.state().ours();
    assert!(
        ours.len() == 1 && ours[0].body.contains("VIOLATED") && ours[0].body.contains("own job"),
        "{}",
        ours[0].body
    );
    assert!(forge.state().checks.is_empty(), "a stranger's numbers are no check that can be required");

    let verdict: Value = serde_json::from_str(&place.read(".gate/chat/verdict.json")).unwrap();
    let forge = Forge::start();
    let job = forge.github(&place, "workflow_run", &event);
    for (name, hostile) in [
        ("name", json!("<img src=x onerror=alert(1)>")),
        ("exit", json!("passed")),
        ("schema", json!(999)),
        ("checks", json!("none")),
    ] {
        let mut changed = verdict.clone();
        changed[name] = hostile;
        place.write("hostile.json", &changed.to_string());
        run(&place, &job, &["publish", "--from", "hostile.json"]).expect_code(2).says("hostile.json");
    }
    let markup =
        "</details> <script>x</script> @everyone [x](https://evil.example) <!-- gate:comment job=ci%2Fperf -->";
    let mut changed = verdict;
    changed["run"]["model"] = json!(markup);
    changed["run"]["target"] = json!(markup);
    changed["spec_file"] = json!(markup);
    place.write("hostile.json", &changed.to_string());
    run(&place, &job, &["publish", "--from", "hostile.json"]).expect_code(0);
    let body = forge.state().ours()[0].body.clone();
    // In a fenced block it is code.
    let prose: Vec<&str> = body.split("```").step_by(2).collect();
    assert!(!prose.concat().contains("<script>") && !prose.concat().contains("@everyone"), "{body}");
    assert_eq!(body.matches("<!-- gate:comment").count(), 1, "{body}");
}

#[test]
fn a_check_run_has_one_name_whatever_becomes_of_the_job() {
    let (place, forge) = (place(), Forge::start());
    place.write("slow/wrong.yaml", "version: 1\nname: wrong\n");
    let job = forge.github(&place, "pull_request", &pull_request("o/r"));
    run(&place, &job, &["check", "gates/chat.yaml"]).expect_code(0);
    run(&place, &job, &["check", "slow/wrong.yaml"]).expect_code(2);
    run(&place, &job, &["publish", "--from", ".gate/chat/verdict.json"]).expect_code(0);
    let state = forge.state();
    let checks: Vec<_> =
        state.checks.values().map(|check| (check["name"].clone(), check["conclusion"].clone())).collect();
    let ended = |conclusion: &str| (json!("gate: ci/perf"), json!(conclusion));
    assert_eq!(checks, [ended("success"), ended("failure"), ended("success")]);
    let ours = state.ours();
    assert!(ours.len() == 1 && ours[0].body.contains("PASSED"), "{}", ours[0].body);
}

#[test]
fn a_baseline_that_cannot_be_had_is_none() {
    let place = Place::new();
    place.write("gates/chat.yaml", &HEALTHY.replace("400ms]", "400ms, ttft.p50 < baseline + 50%]"));
    let address = serve(|request, stream| match request.split(' ').nth(1).unwrap() {
        "/page" => answer(stream, "200 OK", "text/html", "<html>please log in</html>"),
        "/zip" => answer(stream, "200 OK", "application/zip", "PK\u{3}\u{4}half of an archive"),
        "/gone" => answer(stream, "404 Not Found", "text/plain", "no"),
        _ => answer(stream, "500 Internal Server Error", "text/plain", "no"),
    });
    for (path, said) in [("page", "warning: "), ("zip", "warning: "), ("gone", "no baseline there")] {
        let ended = place.gate(&["check", "--baseline", &format!("http://{address}/{path}")]);
        ended.expect_code(0).says(said).says("no baseline");
    }
    let ended = place.gate(&["check", "--strict", "--baseline", &format!("http://{address}/gone")]);
    ended.expect_code(4);
    // And one that can be had is compared with.
    place.gate(&["check", "--out", "kept"]).expect_code(0);
    let journal = std::fs::read_to_string(place.path("kept/chat/run.jsonl")).unwrap();
    let address = serve(move |_, stream| answer(stream, "200 OK", "application/jsonl", &journal));
    let ended = place.gate(&["check", "--baseline", &format!("http://{address}/run.jsonl")]);
    assert!(!ended.stderr.contains("no baseline"), "{}", ended.stderr);
}

#[test]
fn publishing_is_its_own_purpose_or_none() {
    let place = place();
    place.gate(&["check", "gates/chat.yaml"]).expect_code(0);
    place.gate(&["publish", "--from", ".gate/chat/verdict.json"]).expect_code(2).says("no job of GitHub Actions");
    place.gate(&["check", "gates/chat.yaml", "--publish"]).expect_code(2).says("no job of GitHub Actions");
    let forge = Forge::start();
    forge.state().faults.push(Fault { of: "GET", status: "404 Not Found", takes_effect: false, times: u32::MAX });
    let job = forge.github(&place, "pull_request", &pull_request("o/r"));
    run(&place, &job, &["publish", "--from", ".gate/chat/verdict.json"]).expect_code(3).says("404");
}

#[test]
fn a_merge_request_has_one_note() {
    let (place, forge) = (place(), Forge::start());
    let mut job = forge.gitlab();
    let ended = run(&place, &job, &["check", "slow/chat.yaml"]);
    ended.expect_code(1).says("GITLAB_TOKEN");
    assert!(forge.state().posts.is_empty());
    job.push(("GITLAB_TOKEN", "glpat-planted-project-token".into()));
    for (words, code, said) in
        [(["check", "slow/chat.yaml"], 1, "VIOLATED"), (["check", "gates/chat.yaml"], 0, "PASSED")]
    {
        let ended = run(&place, &job, &words);
        ended.expect_code(code);
        assert!(!ended.stderr.contains("glpat-planted") && !ended.stderr.contains(JOB_TOKEN), "{}", ended.stderr);
        let ours = forge.state().ours();
        assert_eq!(ours.len(), 1, "{}", ended.stderr);
        assert!(ours[0].body.contains(said) && ours[0].author == US, "{}", ours[0].body);
    }
    let performance: Value = serde_json::from_str(&place.read(".gate/chat/gl-load-performance.json")).unwrap();
    assert!(performance["metrics"].is_object(), "{performance}");
    assert!(place.read(".gate/chat/gl-annotations.json").contains("https://gitlab.example/job/1"));
}
