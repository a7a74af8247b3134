//! Wrong specs and command lines: exit 2, everything wrong at once, each with place and remedy, nothing sent.

use crate::harness::{Place, root, serve};

#[test]
fn a_misspelt_metric_gets_its_place_and_the_nearest_name() {
    let place = Place::new();
    place.write(
        "gate.yaml",
        "version: 1\nname: chat\ntarget: {url: 'http://127.0.0.1:9'}\nrequire:\n  - tfft.p95 < 800ms\n",
    );
    place.gate(&["check", "gate.yaml"]).expect_code(2).says("gate.yaml:5:5").says("tfft.p95").says("ttft.p95");
    assert!(!place.path(".gate").exists());
}

#[test]
fn ten_mistakes_are_ten_messages() {
    let wall = root().join("fixtures/specs/bad/wall.yaml");
    let place = Place::new();
    let ended = place.gate(&["check", &wall.display().to_string()]);
    ended.expect_code(2);
    let messages =
        ended.stderr.lines().filter(|line| line.starts_with("error: ") && !line.contains("nothing was sent"));
    assert!(messages.count() >= 10, "{}", ended.stderr);
}

#[test]
fn one_bad_spec_of_two_stops_both() {
    let asked = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let seen = asked.clone();
    let address = serve(move |_, _| seen.store(true, std::sync::atomic::Ordering::SeqCst));
    let place = Place::new();
    place.write("good.yaml", &crate::harness::quick_spec("good", &format!("http://{address}"), 20));
    place.write("bad.yaml", "version: 1\n");
    place.gate(&["check", "good.yaml", "bad.yaml"]).expect_code(2);
    assert!(!asked.load(std::sync::atomic::Ordering::SeqCst), "a byte was sent");
}

#[test]
fn a_simulator_reached_through_a_variable_is_an_error() {
    let place = Place::new();
    place.write(
        "gate.yaml",
        "version: 1\nname: chat\ntarget:\n  url: ${GATE_TARGET:-sim}\nrequire: [ttft.p95 < 800ms]\n",
    );
    place.gate(&["check", "gate.yaml"]).expect_code(2).says("gate.yaml:4:").says("sim");
    let mut command = place.command(&["check", "gate.yaml"]);
    let ended = crate::harness::Ended::of(command.env("GATE_TARGET", "sim").output().unwrap());
    ended.expect_code(2).says("sim");
}

#[test]
fn what_is_not_there_yet_is_said_with_its_place() {
    let place = Place::new();
    place.write(
        "gate.yaml",
        "version: 1\nname: chat\ntarget: {url: 'http://127.0.0.1:9'}\nload: {warmup: 30s}\nrequire: [ttft.p95 < 15s]\n",
    );
    place.gate(&["check", "gate.yaml"]).expect_code(2).says("not yet supported").says("gate.yaml:4:");
    place.gate(&["check", "gate.yaml", "--html", "r.html"]).expect_code(2).says("not yet supported");
}

#[test]
fn a_preferred_error_rate_does_not_replace_the_required_one() {
    let place = Place::new();
    place.write(
        "gate.yaml",
        "version: 1\nname: lax\ntarget: {sim: {ttft: 5ms, tpot: 1ms, faults: {reset: 100%}}}\nload: {rps: 60, iterations: 20, warmup: 1}\nrequire: [errors.5xx < 5%]\nprefer: [errors.rate < 50%]\n",
    );
    place.gate(&["check", "gate.yaml"]).expect_code(1).says("errors.rate < 5% (implied)");
}

#[test]
fn reports_go_through_links_and_devices() {
    let place = Place::new();
    place.write(
        "gate.yaml",
        "version: 1\nname: dev\ntarget: {sim: {ttft: 5ms, tpot: 1ms}}\nload: {rps: 60, iterations: 20, warmup: 1}\nrequire: [ttft.p50 < 400ms]\n",
    );
    std::os::unix::fs::symlink(place.path("real.xml"), place.path("link.xml")).unwrap();
    place.write("real.xml", "old");
    place.gate(&["check", "gate.yaml", "--junit", "link.xml"]).expect_code(0);
    assert!(place.read("real.xml").contains("<testsuites"));
    let full = place.gate(&["check", "gate.yaml", "--junit", "/dev/full"]);
    full.expect_code(2).says("PASSED").says("/dev/full");
    assert!(!std::fs::metadata("/dev/full").unwrap().is_file());
    place.gate(&["plan", "/dev/zero"]).expect_code(2);
}

#[test]
fn a_missing_file_and_an_unknown_flag_are_usage_errors() {
    let place = Place::new();
    place.gate(&["check", "absent.yaml"]).expect_code(2).says("absent.yaml");
    place.gate(&["check", "--strikt"]).expect_code(2).says("--strikt");
    place.gate(&["judge", "absent.jsonl"]).expect_code(2).says("absent.jsonl");
    place.gate(&["report", "absent.json"]).expect_code(2).says("absent.json");
    place.gate(&[]).expect_code(2);
    let help = place.gate(&["--help"]);
    help.expect_code(0);
    assert!(help.stdout.contains("130 interrupted"), "{}", help.stdout);
}
