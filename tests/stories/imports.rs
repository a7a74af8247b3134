//! `gate judge --from`: another tool's file, judged by numbers that can be worked out by hand.

use gate_model::{CheckOutcome, Finding};
use serde_json::json;

use crate::harness::Place;

const SPEC: &str = "version: 1\nname: chat\ntarget: {url: 'http://127.0.0.1:9', model: m}\nload: {rps: 3, iterations: 40}\n\
                    require: [ttft.p50 < 305ms, tpot.p50 < 25ms, errors.rate < 5%]\n";

/// A result of `vllm bench serve`: 40 requests, of first tokens after 200, 210 … 590 ms in no order, and 11 tokens 20 ms apart.
fn result() -> serde_json::Value {
    let ttfts: Vec<f64> = (0..40).map(|request| 0.2 + 0.01 * f64::from(request * 17 % 40)).collect();
    json!({
        "model_id": "m", "duration": 20.0, "request_throughput": 2.0, "input_lens": vec![100; 40], "output_lens": vec![11; 40],
        "ttfts": ttfts, "itls": vec![vec![0.02; 10]; 40], "errors": vec![""; 40]
    })
}

#[test]
fn a_result_of_vllm_is_judged_request_by_request() {
    let place = Place::new();
    place.write("chat.yaml", SPEC);
    place.write("result.json", &result().to_string());
    let judge = ["judge", "--from", "vllm", "--spec", "chat.yaml", "result.json", "--out", "out"];
    // The 20th of 40 is 390 ms; 29 of 40 are over 305 ms, where 20 are allowed: more than chance.
    place.gate(&judge).expect_code(1);
    let verdict: gate_model::Verdict = serde_json::from_str(&place.read("out/chat/verdict.json")).unwrap();
    let [ttft, tpot, errors] = &verdict.checks[..] else { panic!("{:?}", verdict.checks) };
    let millis = |check: &gate_model::CheckVerdict| (check.seen.unwrap().value / 1e6).round();
    assert_eq!((millis(ttft), &ttft.outcome), (390.0, &CheckOutcome::Violated));
    assert_eq!(ttft.evidence.as_ref().map(|evidence| (evidence.n, evidence.k)), Some((40, 29)));
    assert_eq!((millis(tpot), &tpot.outcome), (20.0, &CheckOutcome::Met));
    assert_eq!(errors.outcome, CheckOutcome::Met);
    assert!(!verdict.simulated && verdict.run.imported_from.as_deref() == Some("vllm"));
    // What the spec would send says nothing of what the tool sent.
    let is_of_load = |finding: &Finding| matches!(finding, Finding::UniformPrompts { .. } | Finding::ClosedLoop);
    assert!(!verdict.findings.iter().any(is_of_load), "{:?}", verdict.findings);
}

#[test]
fn a_file_that_is_another_tools_is_told_so() {
    let place = Place::new();
    place.write("chat.yaml", SPEC);
    place.write("result.json", &result().to_string());
    let judge = |format: &str| place.gate(&["judge", "--from", format, "--spec", "chat.yaml", "result.json"]);
    judge("samples").expect_code(2).says("it looks like `--from vllm`");
    judge("k6").expect_code(2).says("it looks like `--from vllm`");
    judge("guidellm").expect_code(2).says("not yet supported");
    judge("csv").expect_code(2).says("`samples`, `vllm`, `k6`, `vegeta`");
}
