//! One plan sent by several machines, and judged as one run.

use std::process::{Child, Stdio};
use std::time::{SystemTime, UNIX_EPOCH};

use gate_model::Run;

use crate::harness::{Ended, Place, Sim, root};

const LOAD: &str = "load: {rps: 20, iterations: 40, warmup: 2}
prompts: {input_tokens: 50, output_tokens: 6}
require: [ttft.p50 < 10s, errors.5xx < 5%]
";

fn spec(place: &Place, url: &str) {
    place.write("gate.yaml", &format!("version: 1\nname: wide\ntarget: {{url: '{url}'}}\n{LOAD}"));
}

/// Starts a shard that sends its first request so many seconds from now.
fn shard(place: &Place, words: &[&str], variables: &[(&str, &str)], at: f64) -> Child {
    let at = format!("{at:.3}");
    let mut command = place.command(&["run", "gate.yaml", "--start-at", &at]);
    command.args(words).envs(variables.iter().copied()).stdout(Stdio::null()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

fn in_seconds(seconds: f64) -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64() + seconds
}

#[test]
fn the_shards_of_a_plan_are_judged_as_one_run() {
    let place = Place::new();
    let sim = Sim::start(&place, "ttft: 5ms, tpot: 1ms");
    spec(&place, &sim.url());
    let at = in_seconds(3.0);
    let children = [
        shard(&place, &["-o", "one.jsonl", "--shard", "1/3"], &[], at),
        // As a Kubernetes Indexed Job, and as GitLab's `parallel`.
        shard(&place, &["-o", "two.jsonl", "--shard", "/3"], &[("JOB_COMPLETION_INDEX", "1")], at),
        shard(&place, &["-o", "three.jsonl"], &[("CI_NODE_INDEX", "3"), ("CI_NODE_TOTAL", "3")], at),
    ];
    for child in children {
        Ended::of(child.wait_with_output().unwrap()).expect_code(0).says("of 3");
    }
    place.gate(&["judge", "one.jsonl", "two.jsonl", "three.jsonl", "--out", "out"]).expect_code(0);
    let verdict: gate_model::Verdict = serde_json::from_str(&place.read("out/wide/verdict.json")).unwrap();
    assert_eq!((verdict.run.judged, verdict.run.planned, verdict.run.shards), (40, 40, 3));
    assert_eq!(verdict.journals.len(), 3);
    let epochs = ["one", "two", "three"].map(|name| {
        let run = Run::from_journal(&place.read(&format!("{name}.jsonl")));
        // A shard alone is no run; its last line says when it began.
        assert!(run.is_err(), "{name}");
        let text = place.read(&format!("{name}.jsonl"));
        let end: serde_json::Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
        end["epoch_unix"].as_i64().unwrap()
    });
    assert!(epochs.iter().all(|epoch| (epoch - epochs[0]).abs() < 1_000_000), "{epochs:?}");

    place.gate(&["judge", "one.jsonl", "three.jsonl"]).expect_code(2).says("of 3 shards, 2 is missing");
    place.gate(&["judge", "one.jsonl", "one.jsonl", "two.jsonl"]).expect_code(2).says("named twice");
    place.gate(&["report", "out/wide/verdict.json", "--samples", "all.jsonl"]).expect_code(0);
    assert_eq!(place.read("all.jsonl").lines().count(), 40);
}

#[test]
fn shards_that_did_not_send_at_the_same_time_are_refused() {
    let place = Place::new();
    let sim = Sim::start(&place, "ttft: 5ms, tpot: 1ms");
    spec(&place, &sim.url());
    for index in ["1/2", "2/2"] {
        let output = format!("{}.jsonl", &index[..1]);
        place.gate_once(&["run", "gate.yaml", "--shard", index, "-o", &output]).expect_code(0);
    }
    place.gate(&["judge", "1.jsonl", "2.jsonl"]).expect_code(2).says("overlap").says("start them together");
    let late = format!("{:.0}", in_seconds(-5.0));
    place.gate_once(&["run", "gate.yaml", "--start-at", &late]).expect_code(2).says("start");
    place.gate_once(&["run", "gate.yaml", "--shard", "/2"]).expect_code(2).says("JOB_COMPLETION_INDEX");
    place.gate_once(&["run", "gate.yaml", "--shard", "3/2"]).expect_code(2).says("I from 1 to N");
}

#[test]
fn the_manifest_is_one_that_kubernetes_takes() {
    let place = Place::new();
    spec(&place, "http://llm:8000");
    let manifest = place.gate(&["plan", "gate.yaml", "--kubernetes", "4"]);
    manifest.expect_code(0);
    let documents: Vec<serde_yaml::Value> = serde_yaml::Deserializer::from_str(&manifest.stdout)
        .map(|document| serde::Deserialize::deserialize(document).unwrap())
        .collect();
    let job = documents.iter().find(|one| one["kind"] == "Job" && one["spec"]["completionMode"] == "Indexed").unwrap();
    assert_eq!((&job["spec"]["completions"], &job["spec"]["parallelism"]), (&4.into(), &4.into()));
    let config = documents.iter().find(|one| one["kind"] == "ConfigMap").unwrap();
    assert!(config["data"].as_mapping().unwrap().values().any(|text| text.as_str().unwrap().contains("name: wide")));

    let check = root().join("../shared/contract/check-k8s.sh");
    let check = std::env::var_os("GATE_SHARED")
        .map_or(check, |shared| std::path::PathBuf::from(shared).join("contract/check-k8s.sh"));
    if !check.is_file() {
        eprintln!("skipped: ../shared/contract is not here, so no schema judges the manifest");
        return;
    }
    place.write("job.yaml", &manifest.stdout);
    let judged = std::process::Command::new("bash").arg(&check).arg(place.path("job.yaml")).output().unwrap();
    assert!(
        judged.status.success(),
        "{}{}",
        String::from_utf8_lossy(&judged.stdout),
        String::from_utf8_lossy(&judged.stderr)
    );
}

/// The recipes of docs/workloads.md, by the first line of each.
fn recipe(first: &str) -> serde_yaml::Value {
    let page = std::fs::read_to_string(root().join("docs/workloads.md")).unwrap();
    let block = page.split("```yaml\n").find(|block| block.starts_with(first)).unwrap_or_else(|| panic!("{first}"));
    serde_yaml::from_str(block.split("```").next().unwrap()).unwrap()
}

/// Runs a shell line with this folder's `gate`, as a job would.
fn job(place: &Place, line: &str, variables: &[(&str, &str)]) -> Child {
    let binary = crate::harness::binary();
    let script = format!("set -e; gate() {{ '{}' \"$@\"; }}; {line}", binary.display());
    let mut command = std::process::Command::new("bash");
    command.arg("-c").arg(script).current_dir(place.path(".")).envs(variables.iter().copied());
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

#[test]
fn the_recipes_of_both_forges_work() {
    for forge in ["github", "gitlab"] {
        let place = Place::new();
        let sim = Sim::start(&place, "ttft: 5ms, tpot: 1ms");
        place.write("gates/wide.yaml", &format!("version: 1\nname: wide\ntarget: {{url: '{}'}}\n{LOAD}", sim.url()));
        // The docs leave two minutes for machines to be found.
        let soon = |line: &str| line.replace("+ 120", "+ 3");
        let (shards, judge) = if forge == "github" {
            let jobs = &recipe("# GitHub")["jobs"];
            let output = place.path("output");
            let start = soon(jobs["start"]["steps"][0]["run"].as_str().unwrap());
            job(&place, &start, &[("GITHUB_OUTPUT", &output.display().to_string())]).wait().unwrap();
            let at = place.read("output").trim().trim_start_matches("at=").to_owned();
            let line = jobs["shard"]["steps"][1]["run"].as_str().unwrap();
            let numbers: Vec<u64> = jobs["shard"]["strategy"]["matrix"]["shard"]
                .as_sequence()
                .unwrap()
                .iter()
                .map(|one| one.as_u64().unwrap())
                .collect();
            let shards = numbers.iter().map(|number| {
                let line = line.replace("${{ matrix.shard }}", &number.to_string());
                job(&place, &line.replace("${{ needs.start.outputs.at }}", &at), &[])
            });
            (shards.collect::<Vec<_>>(), jobs["judge"]["steps"][1]["run"].as_str().unwrap().to_owned())
        } else {
            let jobs = recipe("# GitLab");
            job(&place, &soon(jobs["start"]["script"][0].as_str().unwrap()), &[]).wait().unwrap();
            let at = place.read("start.env").trim().trim_start_matches("START_AT=").to_owned();
            let of = jobs["shard"]["parallel"].as_u64().unwrap().to_string();
            let line = jobs["shard"]["script"][0].as_str().unwrap();
            let shards = ["1", "2", "3"].map(|number| {
                job(&place, line, &[("START_AT", &at), ("CI_NODE_INDEX", number), ("CI_NODE_TOTAL", &of)])
            });
            (Vec::from(shards), jobs["judge"]["script"][0].as_str().unwrap().to_owned())
        };
        for child in shards {
            Ended::of(child.wait_with_output().unwrap()).expect_code(0);
        }
        Ended::of(job(&place, &judge, &[]).wait_with_output().unwrap()).expect_code(0).says("PASSED");
        assert_eq!(place.verdict("wide").run.judged, 40, "{forge}");
    }
}
