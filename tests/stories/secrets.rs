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
    for form in ["--samples", "--html", "--csv", "--markdown"] {
        streams.push(run(&["report", ".gate/planted/verdict.json", form, "-"]));
    }
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

/// A key with everything that Markdown, HTML and Base64 write otherwise.
const ODD: &str = "se_cr_et|x<1\"'>>>???-end";
const SPACED: &str = "two  spaced  value";

#[test]
fn a_secret_is_known_however_it_is_written() {
    // The key by JSON escapes, behind enough text that the message is cut inside it; by HTML's numbers; by URL-safe
    // Base64; and a header's value whose blanks are folded.
    let by_number: String = ODD.chars().map(|symbol| format!("\\u{:04x}", u32::from(symbol))).collect();
    let html = ODD.replace('<', "&lt;").replace('>', "&gt;").replace('"', "&#34;").replace('\'', "&#39;");
    let echoes = [
        format!("{}{by_number}", "padding ".repeat(29)),
        html.replace('"', "\\\""),
        "c2VfY3JfZXR8eDwxIic-Pj4_Pz8tZW5k".to_owned(),
        "two spaced value".to_owned(),
    ];
    for echo in echoes {
        let body = format!("{{\"error\":{{\"message\":\"{echo}\"}}}}");
        let server = serve(move |request, socket| match request.starts_with("GET") {
            true => answer(socket, "200 OK", "application/json", "{}"),
            false => answer(socket, "500 Oops", "application/json", &body),
        });
        let place = Place::new();
        let spec = quick_spec("odd", &format!("http://{server}"), 20)
            .replace("model: m,", "model: m, key: '${ODD}', headers: {x-tenant: '${SPACED}'},")
            // A text of the spec that repeats the key, on its way into Markdown and annotations.
            .replace(
                "require: [ttft.p50 < 10s]",
                "require: [errors.rate < 5%, {check: ttft.p50 < 10s, waive: {until: 2999-01-31, reason: 'see ${ODD} ok'}}]",
            );
        place.write("spec/gate.yaml", &spec);
        let mut command = place.command(&["check", "spec/gate.yaml", "-vv", "--json"]);
        let ended = Ended::of(command.env("ODD", ODD).env("SPACED", SPACED).output().unwrap());
        ended.expect_code(1).says("***");
        let mut texts = vec![("stdout".to_owned(), ended.stdout.clone()), ("stderr".to_owned(), ended.stderr.clone())];
        let written = place.everything().into_iter().filter(|(path, _)| !path.starts_with(place.path("spec")));
        texts.extend(written.map(|(path, text)| (path.display().to_string(), text)));
        for (place, text) in texts {
            // Without the signs that escaping adds.
            let bare = text.replace(['\\', '\n'], "");
            for part in ["se_cr_", "se%5Fcr", "c2VfY3JfZXR8eDwxIic-Pj4_Pz8tZW5k", "two spaced value", "two  spaced"] {
                assert!(!bare.contains(part), "{part} is in {place} after {echo}:\n{text}");
            }
        }
    }
}
