//! The main job, as the README shows it: what passes, what fails, and how each is told.

use gate_model::{CheckOutcome, ExitCode, Side, Status};

use crate::harness::{Place, root};

fn demo() -> String {
    root().join("gates/demo.yaml").display().to_string()
}

#[test]
fn a_healthy_engine_passes() {
    let place = Place::new();
    place.gate(&["check", &demo()]).expect_code(0).says("PASSED").says("SIMULATED ENGINE");
    let verdict = place.verdict("demo");
    assert_eq!(verdict.exit, ExitCode::Passed);
    assert!(verdict.simulated);
    assert_eq!(verdict.checks.len(), 6, "four required, one implied, one preferred");
    assert!(verdict.checks.iter().all(|check| {
        matches!(check.outcome, CheckOutcome::Met | CheckOutcome::Inconclusive { side: Side::Within })
    }));
    let junit = place.junit("demo");
    assert!(junit.contains("SIMULATED ENGINE"), "{junit}");
    assert_eq!(junit.matches("<testcase").count(), 6, "{junit}");
    assert!(!junit.contains("<failure") && !junit.contains("<error"), "{junit}");
    // Every planned request of the look is in the journal, with one outcome each.
    let run = place.run("demo");
    assert!(run.samples.len() >= 30 && run.warmup.len() == 3);
}

#[test]
fn an_engine_twice_as_slow_as_its_limits_is_red() {
    let place = Place::new();
    let words =
        ["check", &demo(), "--set", "target.sim.ttft=1600ms", "--set", "target.sim.tpot=100ms", "--set", "load.rps=12"];
    place.gate(&words).expect_code(1).says("VIOLATED").says("ttft.p95 < 800ms");
    let verdict = place.verdict("demo");
    assert_eq!(verdict.status, Status::Violated);
    assert_eq!(verdict.run.decided_at, Some(30), "thirty requests are enough");
    assert_eq!(verdict.overrides.len(), 3);
    let junit = place.junit("demo");
    let failure = junit.split("<failure").nth(1).expect("a failure");
    let failure = &failure[..failure.find("</failure>").unwrap()];
    for word in ["required", "seen", "30", "400ms"] {
        assert!(failure.contains(word), "`{word}` is not in {failure}");
    }
}

#[test]
fn nothing_listening_could_not_be_measured() {
    let place = Place::new();
    let words = ["check", &demo(), "--target", "http://127.0.0.1:9", "--set", "target.ready.within=1s"];
    let ended = place.gate(&words);
    ended.expect_code(3).says("COULD NOT MEASURE").says("127.0.0.1:9").says("refused");
    assert!(!ended.stderr.contains("SIMULATED"), "{}", ended.stderr);
    let junit = place.junit("demo");
    assert!(junit.contains("<error") && !junit.contains("<failure"), "{junit}");
    assert_eq!(place.verdict("demo").status, Status::CouldNotMeasure);
}

#[test]
fn json_is_on_stdout_and_words_are_on_stderr() {
    let place = Place::new();
    let words = ["check", &demo(), "--json", "--junit", "all.xml", "--set", "load.rps=30", "--quiet"];
    let ended = place.gate(&words);
    ended.expect_code(0);
    let verdict: gate_model::Verdict = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(verdict, place.verdict("demo"));
    assert_eq!(ended.stderr, "");
    assert_eq!(place.read("all.xml"), place.junit("demo"));
}

#[test]
fn several_gates_are_checked_before_any_is_sent_and_share_one_exit_code() {
    let place = Place::new();
    let gate = |name: &str, ttft: &str| {
        format!(
            "version: 1\nname: {name}\ntarget: {{sim: {{ttft: {ttft}, tpot: 1ms}}}}\nload: {{rps: 60, iterations: 20, warmup: 1}}\nprompts: {{output_tokens: 4}}\nrequire: [ttft.p50 < 400ms]\n"
        )
    };
    place.write("gates/b.yaml", &gate("b", "5ms"));
    place.write("gates/a.yml", &gate("a", "900ms"));
    place.write("gates/nightly/c.yaml", "not even read");
    let ended = place.gate(&["check", "--junit", "all.xml"]);
    ended.expect_code(1);
    let (first, second) = (ended.stderr.find("a: ").unwrap(), ended.stderr.find("b: ").unwrap());
    assert!(first < second, "in the order of their names: {}", ended.stderr);
    assert_eq!(place.read("all.xml").matches("<testsuite ").count(), 2);
    assert_eq!(place.verdict("b").exit, ExitCode::Passed);

    place.write("gates/b.yaml", &gate("a", "5ms"));
    std::fs::remove_dir_all(place.path(".gate")).unwrap();
    place.gate(&["check"]).expect_code(2).says("two specs have the name `a`");
    assert!(!place.path(".gate").exists(), "nothing was sent or written");

    let empty = Place::new();
    empty.gate(&["check"]).expect_code(2).says("no gate spec");
}

#[test]
fn a_plan_sends_nothing_and_is_the_same_twice() {
    let place = Place::new();
    let url = ["plan", &demo(), "--target", "http://127.0.0.1:9"];
    let plan = place.gate(&url);
    plan.expect_code(0);
    assert!(plan.stdout.contains("ttft.p95"), "{}", plan.stdout);
    let json = |seed: &str| place.gate(&["plan", &demo(), "--json", "--set", seed]).stdout;
    assert_eq!(json("load.seed=7"), json("load.seed=7"));
    assert_ne!(json("load.seed=7"), json("load.seed=8"));
    assert!(!place.path(".gate").exists());
}
