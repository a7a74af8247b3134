//! What editors, shells and people ask the binary for, and prompts from a file.

use crate::harness::{Place, quick_spec, root};

#[test]
fn the_schema_is_the_one_in_the_docs() {
    let place = Place::new();
    let schema = place.gate(&["schema"]);
    schema.expect_code(0);
    let value: serde_json::Value = serde_json::from_str(&schema.stdout).unwrap();
    assert!(value["properties"]["require"].is_object() && value["type"] == "object");
    let kept = std::fs::read_to_string(root().join("docs/gate.schema.json")).unwrap();
    assert!(schema.stdout == kept, "docs/gate.schema.json is out of date: run `cargo xtask docs`");
}

#[test]
fn the_man_page_is_the_one_in_the_docs() {
    let page = Place::new().gate(&["completions", "man"]);
    page.expect_code(0);
    let kept = std::fs::read_to_string(root().join("docs/gate.1")).unwrap();
    assert!(page.stdout == kept, "docs/gate.1 is out of date: run `cargo xtask docs`");
}

#[test]
fn shells_get_their_completions() {
    for (shell, word) in [("bash", "_gate"), ("zsh", "#compdef gate"), ("fish", "complete -c gate")] {
        let script = Place::new().gate(&["completions", shell]);
        script.expect_code(0);
        assert!(script.stdout.contains(word), "{shell}");
    }
}

#[test]
fn a_metric_is_explained() {
    let place = Place::new();
    let tpot = place.gate(&["explain", "tpot"]);
    tpot.expect_code(0);
    for word in ["output tokens", "tpot_e2e", "vLLM", "GuideLLM"] {
        assert!(tpot.stdout.contains(word), "`{word}` is not in {}", tpot.stdout);
    }
    place.gate(&["explain", "ttft.p95"]).expect_code(0);
    place.gate(&["explain", "tfft.p95"]).expect_code(2).says("ttft.p95");
}

#[test]
fn every_report_is_written_and_rendered_again() {
    let place = Place::new();
    let spec = quick_spec("all", "http://127.0.0.1:9", 20)
        .replace("url: 'http://127.0.0.1:9', model: m, ready: {within: 2s}", "sim: {ttft: 900ms, tpot: 1ms}");
    place.write("gate.yaml", &spec.replace("ttft.p50 < 10s", "ttft.p50 < 400ms"));
    place.gate(&["check", "gate.yaml"]).expect_code(1);
    let comment = place.read(".gate/all/comment.md");
    assert!(
        comment.contains("<!-- gate") && comment.contains("VIOLATED") && comment.contains("SIMULATED ENGINE"),
        "{comment}"
    );
    assert!(place.read(".gate/all/summary.md").contains("ttft.p50"));
    assert!(place.read(".gate/all/annotations.txt").starts_with("::error file=gate.yaml,line="));
    assert!(place.read(".gate/all/metrics.txt").ends_with("# EOF\n"));
    let words = ["report", ".gate/all/verdict.json", "--markdown", "c.md", "--openmetrics", "m.txt"];
    place.gate(&words).expect_code(0);
    assert_eq!(place.read("c.md"), comment);
    assert_eq!(place.read("m.txt"), place.read(".gate/all/metrics.txt"));
}

#[test]
fn prompts_come_from_a_file_beside_the_spec() {
    let place = Place::new();
    let rows: String = (0..21).map(|row| format!("{{\"prompt\": \"Question number {row}?\"}}\n")).collect();
    place.write("specs/rows.jsonl", &rows);
    let spec = |prompts: &str| {
        quick_spec("rows", "http://127.0.0.1:9", 20)
            .replace("url: 'http://127.0.0.1:9', model: m, ready: {within: 2s}", "sim: {ttft: 5ms, tpot: 1ms}")
            .replace("input_tokens: 50, output_tokens: 8", prompts)
    };
    place.write("specs/gate.yaml", &spec("file: rows.jsonl, output_tokens: 8, system: Be brief."));
    place.gate(&["check", "specs/gate.yaml"]).expect_code(0);
    // One row too few, counting warm-up.
    place.write("specs/rows.jsonl", &rows.lines().skip(1).map(|row| format!("{row}\n")).collect::<String>());
    place.gate(&["check", "specs/gate.yaml"]).expect_code(2).says("rows").says("20").says("21");
    place.write("specs/rows.jsonl", &"{\"prompt\": \"The same?\"}\n".repeat(30));
    place.gate(&["check", "specs/gate.yaml"]).expect_code(2).says("cache: warm");
    place.write("specs/gate.yaml", &spec("file: rows.jsonl, output_tokens: 8, cache: warm"));
    place.gate(&["check", "specs/gate.yaml"]).expect_code(0);
    place.write("specs/gate.yaml", &spec("file: absent.jsonl"));
    place.gate(&["plan", "specs/gate.yaml"]).expect_code(2).says("absent.jsonl");
}
