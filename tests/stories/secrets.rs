//! Secrets are in no artefact and no stream, whatever the server does with them.

use crate::harness::{Ended, Place, answer, quick_spec, serve};

const KEY: &str = "sk-planted-\"key\"&<1>";
const HEADER: &str = "planted-header-value";
const QUERY: &str = "planted-query-token";
const BODY: &str = "planted-body-value";

#[test]
fn planted_secrets_are_nowhere() {
    // A server that echoes everything it was sent, in an error that is not JSON-escaped cleanly.
    let echo = serve(|request, socket| {
        if request.starts_with("GET") {
            answer(socket, "200 OK", "application/json", "{}");
        } else {
            let message = serde_json::Value::from(request).to_string();
            answer(socket, "500 Oops", "application/json", &format!("{{\"error\":{{\"message\":{message}}}}}"));
        }
    });
    let place = Place::new();
    let url = format!("http://{echo}/v1?api_key={QUERY}");
    let spec = quick_spec("planted", &url, 20).replace(
        "model: m,",
        "model: m, key: '${PLANTED_KEY}', headers: {x-tenant: '${PLANTED_HEADER}'}, extra_body: {user: '${PLANTED_BODY}'},",
    );
    place.write("spec/gate.yaml", &spec);
    let run = |words: &[&str]| {
        let mut command = place.command(words);
        command.env("PLANTED_KEY", KEY).env("PLANTED_HEADER", HEADER).env("PLANTED_BODY", BODY);
        Ended::of(command.output().unwrap())
    };
    let check = run(&["check", "spec/gate.yaml", "-vv", "--json", "--junit", "junit.xml"]);
    check.expect_code(1);
    assert!(check.stderr.contains("***"), "the server's echo is shown, redacted: {}", check.stderr);
    let mut streams = vec![check];
    streams.push(run(&["plan", "spec/gate.yaml", "-vv", "--json"]));
    streams.push(run(&["plan", "spec/gate.yaml"]));
    streams.push(run(&["run", "spec/gate.yaml", "-vv", "-o", "run.jsonl"]));
    streams.push(run(&["judge", "run.jsonl", "--json", "--out", "judged"]));
    streams.push(run(&["report", ".gate/planted/verdict.json", "--samples", "-"]));
    // Errors on the very values that hold them.
    streams.push(run(&["check", "spec/gate.yaml", "--set", &format!("target.key=[{KEY}]")]));
    streams.push(run(&["check", "spec/gate.yaml", "--set", &format!("target.headers={HEADER}")]));

    let forms = [KEY, "sk-planted-\\\"key\\\"", "sk-planted-&quot;key", "sk-planted-%22key", HEADER, QUERY, BODY];
    for secret in forms {
        for (path, text) in place.everything() {
            if !path.starts_with(place.path("spec")) {
                assert!(!text.contains(secret), "{secret} is in {}", path.display());
            } else {
                assert!(text.contains(QUERY), "the spec itself holds what was written into it");
            }
        }
        for ended in &streams {
            assert!(!ended.stdout.contains(secret), "{secret} is on stdout: {}", ended.stdout);
            assert!(!ended.stderr.contains(secret), "{secret} is on stderr: {}", ended.stderr);
        }
    }
}
