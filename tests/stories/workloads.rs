//! Load that looks like traffic: patterns, scenarios, conversations, datasets, the server's own metrics, and what it
//! may cost.

use std::io::Write;
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use gate_model::{CheckOutcome, EndReason, Finding, Outcome, Status};

use crate::harness::{Ended, Place, TWO_WORDS, answer, serve, wait_until};

/// An engine that reads prompts at 4,000 tokens a second.
const ENGINE: &str = "sim: {ttft: 5ms, tpot: 2ms, prefill: 4000}";

/// A server of openai-chat that is always healthy, and answers requests by their number, from 1.
fn chat(script: impl Fn(u32, &str, &mut TcpStream) + Send + Sync + 'static) -> String {
    let count = Arc::new(AtomicU32::new(0));
    let address = serve(move |request, stream| {
        if request.starts_with("GET /") {
            answer(stream, "200 OK", "application/json", "{}");
        } else {
            script(count.fetch_add(1, Ordering::Relaxed) + 1, request, stream);
        }
    });
    format!("http://{address}")
}

fn gate(name: &str, target: &str, rest: &str) -> String {
    format!("version: 1\nname: {name}\ntarget: {{{target}}}\n{rest}")
}

#[test]
fn of_two_scenarios_together_only_the_slow_one_is_red() {
    let place = Place::new();
    let rest = "load: {rps: 40, iterations: 30, warmup: 1}
prompts: {output_tokens: 8}
run: together
scenarios:
  chat: {weight: 3, prompts: {input_tokens: 60}, require: [ttft.p50 < 400ms]}
  batch: {weight: 1, prompts: {input_tokens: 6000}, require: [ttft.p50 < 400ms]}
";
    place.write("gate.yaml", &gate("mixed", ENGINE, rest));
    place.gate(&["check", "gate.yaml"]).expect_code(1).says("batch").says("VIOLATED");
    let verdict = place.verdict("mixed");
    assert_eq!(verdict.run.scenarios, ["chat", "batch"]);
    for check in &verdict.checks {
        let is_slow = check.check.scenario == 1 && check.check.metric.to_string() == "ttft.p50";
        assert_eq!(check.outcome == CheckOutcome::Violated, is_slow, "{check:?}");
    }
    // The rarest scenario has its count, and the other three times as many.
    let run = place.run("mixed");
    let of = |scenario| run.samples.iter().filter(|sample| sample.scenario == scenario).count();
    assert_eq!(of(1), 30);
    assert!((70..=110).contains(&of(0)), "{}", of(0));
    let junit = place.junit("mixed");
    assert!(junit.contains("chat") && junit.contains("batch"), "{junit}");
    // The same from the journal.
    place.gate(&["judge", ".gate/mixed/run.jsonl"]).expect_code(1);
}

#[test]
fn scenarios_in_turn_have_loads_of_their_own() {
    let place = Place::new();
    let rest = "load: {rps: 40, iterations: 20, warmup: 1}
prompts: {input_tokens: 60, output_tokens: 8}
scenarios:
  calm: {require: [ttft.p50 < 5s]}
  rising: {load: {pattern: {ramp: {from: 10, to: 60, over: 2s}}}, require: [errors.5xx < 50%]}
";
    place.write("gate.yaml", &gate("turns", ENGINE, rest));
    place.gate(&["check", "gate.yaml"]).expect_code(0);
    let run = place.run("turns");
    let sections = run.sections();
    assert_eq!(sections.len(), 2);
    assert_eq!(sections[0].planned, 20);
    assert!(sections[1].planned > 30, "{}", sections[1].planned);
    assert_eq!(run.recorded(), sections[0].planned + sections[1].planned);
    let headers =
        place.read(".gate/turns/run.jsonl").lines().filter(|line| line.contains("\"type\":\"header\"")).count();
    assert_eq!(headers, 2);
    let plan = place.gate(&["plan", "gate.yaml"]);
    plan.expect_code(0);
    assert!(plan.stdout.contains("calm") && plan.stdout.contains("ramp"), "{}", plan.stdout);
    place.gate(&["judge", ".gate/turns/run.jsonl"]).expect_code(0);
}

#[test]
fn every_shape_that_is_interrupted_ends_with_reports() {
    let shapes = [
        ("steady", "load: {rps: 30, duration: 60s, warmup: 1}\n"),
        ("ramp", "load: {pattern: {ramp: {from: 10, to: 60, over: 60s}}, warmup: 1}\n"),
        ("spike", "load: {rps: 30, pattern: {spike: {times: 3, hold: 20s, before: 20s, after: 20s}}, warmup: 1}\n"),
        ("soak", "load: {rps: 30, pattern: {soak: 1h}, warmup: 1}\n"),
        ("stages", "load: {stages: [{rps: 20, for: 30s}, {rps: 20..50, for: 30s}], warmup: 1}\n"),
        ("closed", "load: {concurrency: 3, iterations: 1000, warmup: 1}\n"),
        ("talk", "load: {rps: 20, iterations: 1000, warmup: 1}\nprompts: {turns: 3}\n"),
        (
            "together",
            "load: {rps: 30, iterations: 900, warmup: 1}\nrun: together\nscenarios: {a: {weight: 2}, b: {weight: 1}}\n",
        ),
        ("in_turn", "load: {rps: 30, iterations: 900, warmup: 1}\nscenarios: {a: {}, b: {slo: {ttft: 1s}}}\n"),
    ];
    for (name, load) in shapes {
        let place = Place::new();
        let load = if load.contains("prompts:") {
            load.replace("prompts: {", "prompts: {input_tokens: 60, output_tokens: 6, ")
        } else {
            format!("{load}prompts: {{input_tokens: 60, output_tokens: 6}}\n")
        };
        let rest = format!("{load}require: [errors.5xx < 50%]\n");
        place.write("gate.yaml", &gate(name, ENGINE, &rest));
        let child = place
            .command(&["check", "gate.yaml", "--long"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let journal = place.path(&format!(".gate/{name}/run.jsonl"));
        let recorded = || std::fs::read_to_string(&journal).unwrap_or_default().lines().count();
        wait_until(name, || recorded() >= 12);
        assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
        Ended::of(child.wait_with_output().unwrap()).expect_code(130).says("INTERRUPTED");
        assert_eq!(place.verdict(name).status, Status::Interrupted, "{name}");
        for report in ["junit.xml", "report.html", "comment.md", "summary.md", "metrics.txt"] {
            assert!(place.path(&format!(".gate/{name}/{report}")).exists(), "{name}: {report}");
        }
        let run = place.run(name);
        assert_eq!(run.end.as_ref().map(|end| &end.reason), Some(&EndReason::Interrupted), "{name}");
        assert!(run.samples.iter().any(|sample| sample.outcome == Outcome::Ok), "{name}");
    }
}

#[test]
fn a_budget_stops_a_server_that_answers_without_end() {
    let place = Place::new();
    // Whatever is asked, it says to have written 100 tokens.
    let url = chat(|_, _, stream| {
        answer(
            stream,
            "200 OK",
            "text/event-stream",
            &TWO_WORDS.replace("\"completion_tokens\":2", "\"completion_tokens\":100"),
        );
    });
    let rest = "load: {concurrency: 1, iterations: 60, warmup: 1}
prompts: {input_tokens: 50, output_tokens: 8}
budget: {output_tokens: 1000}
require: [ttft.p50 < 10s]
";
    place.write("gate.yaml", &gate("spender", &format!("url: '{url}'"), rest));
    place.gate_once(&["check", "gate.yaml"]).says("budget");
    let run = place.run("spender");
    let end = run.end.as_ref().unwrap();
    assert!(
        matches!(&end.reason, EndReason::BudgetSpent { key, .. } if key == "budget.output_tokens"),
        "{:?}",
        end.reason
    );
    let spent = end.spent.unwrap();
    assert!((800..=1000).contains(&spent.output), "{spent:?}");

    // What the plan alone could use up is refused before anything is sent.
    place.write("gate.yaml", &gate("spender", &format!("url: '{url}'"), &rest.replace("1000", "400")));
    place.gate_once(&["check", "gate.yaml"]).expect_code(2).says("budget.output_tokens");
    place.gate_once(&["plan", "gate.yaml"]).expect_code(2).says("budget.output_tokens");
}

#[test]
fn a_quota_and_an_expired_key_end_the_run_within_five_requests() {
    let place = Place::new();
    let rest = "load: {rps: 40, iterations: 100, warmup: 1}
prompts: {input_tokens: 50, output_tokens: 8}
require: [ttft.p50 < 10s]
";
    let ok = |stream: &mut TcpStream| answer(stream, "200 OK", "text/event-stream", TWO_WORDS);
    let quota = chat(move |number, _, stream| {
        if number <= 25 {
            return ok(stream);
        }
        let body = r#"{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}"#;
        drop(write!(
            stream,
            "HTTP/1.1 429 Too Many Requests\r\nretry-after: 7200\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        ));
    });
    let expired = chat(move |number, _, stream| {
        if number <= 25 {
            return ok(stream);
        }
        answer(stream, "401 Unauthorized", "application/json", r#"{"error":{"message":"the key has expired"}}"#);
    });
    for (url, words) in [(quota, "quota"), (expired, "401")] {
        place.write("gate.yaml", &gate("cut", &format!("url: '{url}'"), rest));
        place.gate_once(&["check", "gate.yaml"]).says(words);
        let run = place.run("cut");
        let reason = &run.end.as_ref().unwrap().reason;
        assert!(matches!(reason, EndReason::Quota(_) | EndReason::Unauthorized(_)), "{reason:?}");
        let after = run.samples.iter().filter(|sample| sample.outcome != Outcome::Ok).count();
        assert!((1..=6).contains(&after), "{words}: {after} requests after the first refusal");
        assert!(run.recorded() < 40, "{}", run.recorded());
    }
}

#[test]
fn a_check_that_is_lost_ends_the_run() {
    let place = Place::new();
    let target = "sim: {ttft: 5ms, tpot: 1ms, faults: {http_500: 60%}}";
    let rest = "load: {rps: 60, iterations: 600, warmup: 1}
prompts: {input_tokens: 50, output_tokens: 4}
require: [errors.5xx < 5%]
";
    place.write("gate.yaml", &gate("lost", target, rest));
    place.gate(&["check", "gate.yaml"]).expect_code(1).says("VIOLATED");
    let run = place.run("lost");
    assert!(matches!(&run.end.as_ref().unwrap().reason, EndReason::Lost { check } if check.contains("errors.5xx")));
    assert!(run.recorded() < 300, "{}", run.recorded());
    place.gate(&["check", "gate.yaml", "--set", "abort.lost=false", "--set", "load.iterations=100"]).expect_code(1);
    assert_eq!(place.run("lost").recorded(), 100);
}

#[test]
fn a_conversation_carries_its_history_and_the_real_answers() {
    let place = Place::new();
    let heard = Arc::new(std::sync::Mutex::new(Vec::new()));
    let ears = Arc::clone(&heard);
    let url = chat(move |_, request, stream| {
        let body: serde_json::Value = serde_json::from_str(request.split_once("\r\n\r\n").unwrap().1).unwrap();
        ears.lock().unwrap().push(body);
        answer(stream, "200 OK", "text/event-stream", TWO_WORDS);
    });
    let rest = "load: {rps: 20, iterations: 24, warmup: 1}
prompts: {input_tokens: 40, output_tokens: 8, turns: 3, think: 20ms}
require: [ttft.p50 < 10s]
";
    place.write("gate.yaml", &gate("talk", &format!("url: '{url}'"), rest));
    place.gate(&["check", "gate.yaml"]).expect_code(0).says("turn");
    let heard = heard.lock().unwrap();
    let thirds: Vec<_> = heard.iter().filter(|body| body["messages"].as_array().unwrap().len() == 5).collect();
    assert!(thirds.len() >= 8, "{}", thirds.len());
    for body in thirds {
        let roles: Vec<_> =
            body["messages"].as_array().unwrap().iter().map(|one| one["role"].as_str().unwrap()).collect();
        assert_eq!(roles, ["user", "assistant", "user", "assistant", "user"]);
        assert_eq!(body["messages"][1]["content"], "a word");
        // A later request holds what an earlier one asked.
        let first = &body["messages"][0];
        assert!(
            heard
                .iter()
                .any(|other| other["messages"].as_array().unwrap().len() == 1 && &other["messages"][0] == first)
        );
    }
    let turns = place.verdict("talk").run.turns;
    assert_eq!(turns.iter().map(|turn| turn.from).collect::<Vec<_>>(), [0, 1, 2]);
}

#[test]
fn datasets_are_sent_once_each_and_never_wrapped() {
    let place = Place::new();
    let conversation = |number: u32| {
        format!(
            r#"{{"id":"{number}","conversations":[{{"from":"human","value":"Question {number}: what is it?"}},{{"from":"gpt","value":"It is an answer of some words."}}]}}"#
        )
    };
    let sharegpt = format!("[{}]", (0..40).map(conversation).collect::<Vec<_>>().join(","));
    place.write("sharegpt.json", &sharegpt);
    place.write(
        "text.txt",
        &(0..40).map(|number| format!("Paragraph {number} is here.\nIt goes on.\n\n")).collect::<String>(),
    );
    let human = |number: u32| {
        format!(
            r#"{{"task_id":"HumanEval/{number}","prompt":"def f{number}(x):\n","canonical_solution":"  return x"}}"#
        )
    };
    place.write("human.jsonl", &(0..40).map(|number| human(number) + "\n").collect::<String>());
    let openai = |number: u32| {
        format!(r#"{{"custom_id":"{number}","body":{{"messages":[{{"role":"user","content":"Say {number}."}}]}}}}"#)
    };
    place.write("openai.jsonl", &(0..40).map(|number| openai(number) + "\n").collect::<String>());
    for (file, format) in
        [("sharegpt.json", "sharegpt"), ("text.txt", "text"), ("human.jsonl", "humaneval"), ("openai.jsonl", "openai")]
    {
        let rest = format!(
            "load: {{rps: 60, iterations: 25, warmup: 2}}\nprompts: {{file: {file}, format: {format}, output_tokens: 4}}\nrequire: [ttft.p50 < 10s]\n"
        );
        place.write("gate.yaml", &gate("data", "sim: {ttft: 2ms, tpot: 1ms}", &rest));
        place.gate(&["check", "gate.yaml"]).expect_code(0);
        let verdict = place.verdict("data");
        assert!(!verdict.findings.iter().any(|finding| matches!(finding, Finding::RepeatedPrompts { .. })), "{format}");
        // 41 requests of 40 prompts.
        place
            .gate(&["plan", "gate.yaml", "--set", "load.iterations=39"])
            .expect_code(2)
            .says("prompts.file")
            .says("41");
    }
}

#[test]
fn the_servers_own_metrics_are_read_and_checked() {
    let place = Place::new();
    let target = "sim: {ttft: 20ms, tpot: 5ms, slots: 4}, metrics: /metrics";
    let rest = "load: {rps: 20, iterations: 40, warmup: 1}
prompts: {input_tokens: 50, output_tokens: 20}
require: [server.running.max <= 4, server.kv_cache_usage.max <= 100%, ttft.p50 < 10s]
";
    place.write("gate.yaml", &gate("server", target, rest));
    place.gate(&["check", "gate.yaml"]).expect_code(0).says("server.running");
    let verdict = place.verdict("server");
    assert!(verdict.run.server.iter().any(|facts| facts.metric.as_str() == "running" && facts.scrapes > 0));
    place.gate(&["judge", ".gate/server/run.jsonl"]).expect_code(0);

    // Metrics that cannot be read fail no run, only the checks on them.
    let nowhere = "sim: {ttft: 20ms, tpot: 5ms}, metrics: 'http://127.0.0.1:9/metrics'";
    place.write("gate.yaml", &gate("server", nowhere, rest));
    place.gate(&["check", "gate.yaml"]).expect_code(3).says("metrics");
    let verdict = place.verdict("server");
    let measured = |check: &&gate_model::CheckVerdict| !matches!(check.outcome, CheckOutcome::CouldNotMeasure { .. });
    assert_eq!(verdict.checks.iter().filter(measured).count(), 2, "ttft and the implied one");
}

#[test]
fn tokens_cost_what_the_prices_say() {
    let place = Place::new();
    let rest = "load: {rps: 60, iterations: 20, warmup: 0, arrivals: constant}
prompts: {input_tokens: 50, output_tokens: 10}
prices: {input: 1.00, output: 2.00}
require: ['cost < $0.40', tokens.spent < 100000]
";
    place.write("gate.yaml", &gate("money", "sim: {ttft: 2ms, tpot: 1ms}", rest));
    place.gate(&["check", "gate.yaml"]).expect_code(0).says("$");
    let verdict = place.verdict("money");
    let spent = verdict.run.spent.unwrap();
    let expected = spent.input as f64 / 1e6 + spent.output as f64 * 2.0 / 1e6;
    assert!((verdict.run.cost.unwrap() - expected).abs() < 1e-9 && spent.output == 200, "{spent:?}");
    place.gate(&["check", "gate.yaml", "--set", "prices.output=100000"]).expect_code(1).says("cost");
}

#[test]
fn a_long_pattern_is_asked_for() {
    let place = Place::new();
    let rest = "load: {rps: 1, pattern: {soak: 2h}}\nrequire: [drift.tpot < 1%/h]\n";
    place.write("gate.yaml", &gate("soak", "sim: {}", rest));
    place.gate(&["check", "gate.yaml"]).expect_code(2).says("--long").says("nightly");
    place.gate(&["plan", "gate.yaml"]).expect_code(0);
    let wrong = rest.replace("drift.tpot < 1%/h", "recovery < 10s");
    place.write("gate.yaml", &gate("soak", "sim: {}", &wrong));
    place.gate(&["check", "gate.yaml"]).expect_code(2).says("spike");
}

#[test]
fn pictures_go_out_with_their_prompts() {
    let place = Place::new();
    place.write("dot.png", "not really a picture");
    let seen = Arc::new(AtomicU32::new(0));
    let eyes = Arc::clone(&seen);
    let url = chat(move |_, request, stream| {
        let body: serde_json::Value = serde_json::from_str(request.split_once("\r\n\r\n").unwrap().1).unwrap();
        let message = body["messages"].as_array().unwrap().iter().find(|one| one["role"] == "user").unwrap();
        let parts = message["content"].as_array().map(Vec::as_slice).unwrap_or_default();
        let urls: Vec<_> = parts.iter().filter_map(|part| part["image_url"]["url"].as_str()).collect();
        if urls == ["data:image/png;base64,bm90IHJlYWxseSBhIHBpY3R1cmU=", "https://example.com/a.jpg"] {
            eyes.fetch_add(1, Ordering::Relaxed);
        }
        answer(stream, "200 OK", "text/event-stream", TWO_WORDS);
    });
    let rest = "load: {rps: 40, iterations: 20, warmup: 1}
prompts: {input_tokens: 50, output_tokens: 8, images: [dot.png, 'https://example.com/a.jpg']}
require: [ttft.p50 < 10s]
";
    place.write("gate.yaml", &gate("vision", &format!("url: '{url}'"), rest));
    place.gate_once(&["check", "gate.yaml"]);
    assert!(seen.load(Ordering::Relaxed) >= 21);
}
