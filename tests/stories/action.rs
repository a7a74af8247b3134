//! `action.yml`, run as a workflow step would: by the shared runner where it is, and always by the small one here.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::harness::{Ended, Place, binary, outputs_of_step, root};

const HEALTHY: &str = "version: 1\nname: healthy\ntarget: {sim: {ttft: 5ms, tpot: 1ms}}\nload: {rps: 60, iterations: 20, warmup: 1}\nrequire: [ttft.p50 < 400ms]\n";

fn place() -> Place {
    let place = Place::new();
    place.write("gates/healthy.yaml", HEALTHY);
    place.write("slow/slow.yaml", &HEALTHY.replace("healthy", "slow").replace("ttft: 5ms", "ttft: 900ms"));
    place.write("slow/wrong.yaml", "version: 1\nname: wrong\n");
    place
}

/// What a run of the action left: its exit code, its outputs, the step summary, everything printed.
struct Job {
    code: i32,
    outputs: BTreeMap<String, String>,
    summary: String,
    log: String,
}

/// What the runner says of the job.
const JOB: [(&str, &str); 9] = [
    ("GITHUB_ACTIONS", "true"),
    ("GITHUB_SERVER_URL", "https://github.com"),
    ("GITHUB_API_URL", "http://127.0.0.1:9"),
    ("GITHUB_REPOSITORY", "o/r"),
    ("GITHUB_EVENT_NAME", "push"),
    ("GITHUB_WORKFLOW", "ci"),
    ("GITHUB_JOB", "perf"),
    ("GITHUB_RUN_ID", "900"),
    ("GITHUB_RUN_NUMBER", "12"),
];

/// Runs the action, and again where this machine was too busy to measure.
fn run(place: &Place, inputs: &[(&str, &str)]) -> Job {
    place.undisturbed(|| run_once(place, inputs))
}

/// Runs every step as the runner does: expressions filled in, outputs read back, `if: always()` after a failure.
fn run_once(place: &Place, inputs: &[(&str, &str)]) -> Job {
    let text = std::fs::read_to_string(root().join("action.yml")).unwrap();
    let action: serde_yaml::Value = serde_yaml::from_str(&text).unwrap();
    let mut known = BTreeMap::new();
    for name in ["github.token", "github.action_repository", "github.action_ref"] {
        known.insert(name.to_owned(), String::new());
    }
    for (name, input) in action["inputs"].as_mapping().unwrap() {
        let default = filled(input["default"].as_str().unwrap(), &known);
        known.insert(format!("inputs.{}", name.as_str().unwrap()), default);
    }
    for (name, value) in inputs {
        assert!(known.insert(format!("inputs.{name}"), (*value).to_owned()).is_some(), "no input {name}");
    }
    // Each run has files of its own, as on the runner.
    drop(std::fs::remove_dir_all(place.path("runner")));
    let mut job = Job { code: 0, outputs: BTreeMap::new(), summary: String::new(), log: String::new() };
    for (number, step) in action["runs"]["steps"].as_sequence().unwrap().iter().enumerate() {
        let condition = step["if"].as_str().unwrap_or("success()");
        let Some(script) = step["run"].as_str() else { continue };
        if job.code != 0 && !condition.contains("always()") {
            continue;
        }
        let folder = place.path(&format!("runner/{number}"));
        std::fs::create_dir_all(&folder).unwrap();
        let (output, summary) = (folder.join("output"), folder.join("summary"));
        let mut bash = Command::new("bash");
        bash.args(["--noprofile", "--norc", "-eo", "pipefail", "-c", script]).current_dir(place.path(""));
        bash.env("GITHUB_OUTPUT", &output).env("GITHUB_STEP_SUMMARY", &summary).env("GITHUB_ACTION_PATH", root());
        bash.env("CI", "true").envs(JOB);
        for (name, value) in step["env"].as_mapping().into_iter().flatten() {
            bash.env(name.as_str().unwrap(), filled(value.as_str().unwrap(), &known));
        }
        let ended = Ended::of(bash.output().unwrap());
        job.log += &format!("{}{}", ended.stdout, ended.stderr);
        job.summary += &std::fs::read_to_string(&summary).unwrap_or_default();
        for (name, value) in outputs_of_step(&std::fs::read_to_string(&output).unwrap_or_default()) {
            known.insert(format!("steps.{}.outputs.{name}", step["id"].as_str().unwrap()), value);
        }
        if job.code == 0 {
            job.code = ended.code;
        }
    }
    for (name, output) in action["outputs"].as_mapping().unwrap() {
        job.outputs.insert(name.as_str().unwrap().to_owned(), filled(output["value"].as_str().unwrap(), &known));
    }
    job
}

/// The text with each `${{ name }}` replaced.
fn filled(text: &str, known: &BTreeMap<String, String>) -> String {
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${{") {
        let (name, after) = after.split_once("}}").unwrap();
        filled += before;
        let value = known.get(name.trim()).map(String::as_str);
        // A step that did not run has no outputs.
        let value = value.or_else(|| name.trim().starts_with("steps.").then_some(""));
        filled += value.unwrap_or_else(|| panic!("nothing is known of {name}"));
        rest = after;
    }
    filled + rest
}

#[test]
fn a_healthy_gate_succeeds_with_a_summary() {
    let place = place();
    let job = run(&place, &[("path", &binary().display().to_string())]);
    assert_eq!(job.code, 0, "{}", job.log);
    assert_eq!((job.outputs["exit-code"].as_str(), job.outputs["verdict"].as_str()), ("0", "passed"));
    assert!(job.summary.contains("healthy") && job.summary.contains("ttft.p50"), "{}", job.summary);
    assert!(place.path(".gate/junit.xml").exists());
}

#[test]
fn a_red_gate_fails_the_step_after_its_annotations_and_summary() {
    let place = place();
    let inputs = [("path", &*binary().display().to_string()), ("spec", "gates/healthy.yaml\nslow/slow.yaml\n")];
    let job = run(&place, &inputs);
    assert_eq!(job.code, 1, "{}", job.log);
    assert_eq!(job.outputs["verdict"], "violated");
    assert!(job.log.contains("::error file=slow/slow.yaml,line=5"), "{}", job.log);
    assert!(job.summary.contains("slow") && job.summary.contains("healthy"), "both gates: {}", job.summary);

    let [path, spec] = inputs;
    let job = run(&place, &[path, spec, ("report-only", "true")]);
    assert_eq!((job.code, job.outputs["verdict"].as_str()), (0, "passed"), "{}", job.log);
    let job = run(&place, &[path, spec, ("set", "target.sim.ttft=5ms\nload.rps=50")]);
    assert_eq!(job.code, 0, "{}", job.log);
}

#[test]
fn main_keeps_its_runs_and_a_change_is_judged_by_its_base() {
    let place = Place::new();
    place.git(&["init", "--quiet"]);
    let checks =
        |limit: &str| HEALTHY.replace("ttft.p50 < 400ms", &format!("ttft.p50 < {limit}, tpot.p50 < baseline + 30%"));
    place.write("gates/healthy.yaml", &checks("400ms"));
    place.write(".gitignore", ".gate/\nrunner/\n");
    place.commit("the gate");
    let path = ("path", &*binary().display().to_string());
    let job = run(&place, &[path, ("save-baseline", "true")]);
    assert_eq!(job.code, 0, "{}", job.log);
    assert!(job.log.contains("kept as baseline"), "{}", job.log);

    place.git(&["checkout", "--quiet", "-b", "change"]);
    place.write("gates/healthy.yaml", &checks("900ms"));
    place.commit("loosen");
    let job = run(&place, &[path, ("trust", "base"), ("set", "target.sim.tpot=3ms")]);
    assert_eq!(job.code, 1, "{}", job.log);
    assert!(job.summary.contains("ecode moved most") && job.summary.contains("900ms"), "{}", job.summary);
    let job = run(&place, &[path, ("reference", "http://127.0.0.1:9"), ("set", "reference.ready.within=1s")]);
    assert_eq!((job.code, job.outputs["verdict"].as_str()), (3, "could-not-measure"), "{}", job.log);
}

#[test]
fn a_spec_is_no_option_and_a_switch_is_no_guess() {
    let place = place();
    let path = ("path", &*binary().display().to_string());
    let job = run(&place, &[path, ("spec", "slow/slow.yaml\n--report-only")]);
    assert_ne!(job.code, 0, "a line of `spec` is no option: {}", job.log);
    let job = run(&place, &[path, ("spec", "slow/slow.yaml"), ("report-only", "True")]);
    assert_eq!(job.code, 0, "{}", job.log);
    // What the earlier call left is not published again.
    let job = run(&place, &[path, ("spec", "gates/healthy.yaml")]);
    assert!(!job.summary.contains("gate slow") && !job.log.contains("::error"), "{}{}", job.summary, job.log);
}

#[test]
fn a_wrong_spec_and_a_wrong_path_say_so() {
    let place = place();
    let job = run(&place, &[("path", &binary().display().to_string()), ("spec", "slow/wrong.yaml")]);
    assert_eq!((job.code, job.outputs["verdict"].as_str()), (2, "usage"), "{}", job.log);
    assert!(
        job.log.contains("slow/wrong.yaml")
            && job.summary.contains("slow/wrong.yaml")
            && job.log.contains("::error file=slow/wrong.yaml,line="),
        "{}",
        job.summary
    );
    let job = run_until_failure(&place, "no/such/gate");
    assert!(job.contains("no/such/gate is no program"), "{job}");
}

/// A path that is no program ends the first step; later steps have nothing to work with.
fn run_until_failure(place: &Place, path: &str) -> String {
    let text = std::fs::read_to_string(root().join("action.yml")).unwrap();
    let action: serde_yaml::Value = serde_yaml::from_str(&text).unwrap();
    let script = action["runs"]["steps"][0]["run"].as_str().unwrap();
    let mut bash = Command::new("bash");
    bash.args(["-eo", "pipefail", "-c", script]).current_dir(place.path("")).env("GIVEN", path);
    let ended = Ended::of(bash.env("GITHUB_OUTPUT", place.path("output")).output().unwrap());
    ended.expect_code(2);
    ended.stdout
}

#[test]
fn the_shared_runner_agrees() {
    let runner = std::env::var_os("GATE_RUN_ACTION").map_or_else(|| root().join("../shared/run_action.py"), Into::into);
    let python = std::env::var("GATE_ACTION_PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let has_yaml = Command::new(&python).args(["-c", "import yaml"]).output().is_ok_and(|ended| ended.status.success());
    if !Path::new(&runner).exists() || !has_yaml {
        println!("skipped: no action runner at GATE_RUN_ACTION or ../shared/run_action.py, or no PyYAML for it");
        return;
    }
    let place = place();
    let act = |spec: &str| {
        let mut command = Command::new(&python);
        command.arg(&runner).arg("--action").arg(root()).arg("--workspace").arg(place.path(""));
        command.args(["--input", &format!("path={}", binary().display()), "--input", &format!("spec={spec}")]);
        let ended = Ended::of(command.arg("--result").arg(place.path("result.json")).output().unwrap());
        let result: Value = serde_json::from_str(&place.read("result.json")).unwrap();
        (ended.code, result)
    };
    let (code, result) = place.undisturbed(|| act("gates/healthy.yaml"));
    assert_eq!((code, result["outputs"]["verdict"].as_str()), (0, Some("passed")), "{result}");
    assert!(result["summary"][0].as_str().unwrap().contains("ttft.p50"));
    let (code, result) = place.undisturbed(|| act("slow/slow.yaml"));
    assert_eq!((code, result["outputs"]["verdict"].as_str()), (1, Some("violated")), "{result}");
    let annotation = &result["annotations"][0];
    assert_eq!((annotation["level"].as_str(), annotation["file"].as_str()), (Some("error"), Some("slow/slow.yaml")));
}
