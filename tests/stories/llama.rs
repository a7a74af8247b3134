//! A real llama.cpp server: `GATE_LLAMA_URL` names it (`cargo xtask test` starts one).

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use gate_model::{Outcome, Sample, Series, TokenSource};
use serde_json::Value;

use crate::harness::{Ended, Place, get, root};

/// What is looked at, on this server.
type Story = fn(SocketAddr);

/// One after another, since each has the server for itself: as tests of their own they would wait for each other, and keep
/// other stories from running meanwhile.
#[test]
fn a_real_server_agrees() {
    let Ok(url) = std::env::var("GATE_LLAMA_URL") else {
        println!("skipped: GATE_LLAMA_URL is not set (`cargo xtask engine llama` starts a server)");
        return;
    };
    let server: SocketAddr = url.trim_start_matches("http://").parse().unwrap();
    let stories: [(&str, Story); 4] = [
        ("the shipped gate passes", the_shipped_gate_passes),
        ("timings agree with the server's own", timings_agree_with_the_servers_own),
        ("tokens equal the server's own counts", tokens_equal_the_servers_own_counts_in_each_of_its_dialects),
        ("init makes a gate that runs as it is", init_makes_a_gate_of_it_that_runs_as_it_is),
    ];
    for (name, story) in stories {
        let begun = Instant::now();
        story(server);
        println!("{name}: ok in {:.1} s", begun.elapsed().as_secs_f64());
    }
}

/// A proxy that passes every byte on at once and keeps what the server said, one text a connection.
fn recording(server: SocketAddr) -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let said = Arc::new(Mutex::new(Vec::new()));
    let kept = said.clone();
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let (Ok(mut client), Ok(mut upstream)) = (client, TcpStream::connect(server)) else { break };
            client.set_nodelay(true).unwrap();
            upstream.set_nodelay(true).unwrap();
            let (mut from_client, mut to_server) = (client.try_clone().unwrap(), upstream.try_clone().unwrap());
            std::thread::spawn(move || {
                drop(std::io::copy(&mut from_client, &mut to_server));
                drop(to_server.shutdown(std::net::Shutdown::Write));
            });
            let kept = kept.clone();
            std::thread::spawn(move || {
                let slot = {
                    let mut kept = kept.lock().unwrap();
                    kept.push(String::new());
                    kept.len() - 1
                };
                let mut buffer = [0; 65536];
                while let Ok(count) = upstream.read(&mut buffer) {
                    if count == 0 || client.write_all(&buffer[..count]).is_err() {
                        break;
                    }
                    kept.lock().unwrap()[slot] += &String::from_utf8_lossy(&buffer[..count]);
                }
                drop(client.shutdown(std::net::Shutdown::Both));
            });
        }
    });
    (address, said)
}

/// The `timings` object of every answer, in the order they came on each connection.
fn timings(said: &[String]) -> Vec<Value> {
    let events = said.iter().flat_map(|text| text.lines()).filter_map(|line| line.strip_prefix("data: "));
    let events = events.filter_map(|event| serde_json::from_str::<Value>(event).ok());
    events.filter_map(|event| event.get("timings").cloned()).collect()
}

fn the_shipped_gate_passes(address: SocketAddr) {
    let place = Place::new();
    let spec = root().join("gates/servers/llama.yaml").display().to_string();
    let mut command = place.command(&["check", &spec]);
    let ended = Ended::of(command.env("GATE_LLAMA_URL", format!("http://{address}")).output().unwrap());
    ended.expect_code(0).says("PASSED");
    assert!(!ended.stderr.contains("SIMULATED"), "{}", ended.stderr);
}

fn timings_agree_with_the_servers_own(server: SocketAddr) {
    let (address, said) = recording(server);
    let place = Place::new();
    place.write(
        "gate.yaml",
        &format!(
            "version: 1
name: timings
target: {{url: 'http://{address}', model: smollm2-135m, extra_body: {{ignore_eos: true, temperature: 0, cache_prompt: false}}}}
load: {{rps: 0.25, iterations: 20, arrivals: constant, warmup: 1}}
prompts: {{input_tokens: {{mean: 60, stddev: 10, min: 40, max: 100}}, output_tokens: 128}}
require: [ttft.p50 < 100s]
"
        ),
    );
    place.gate(&["check", "gate.yaml"]).expect_code(0);
    let run = place.run("timings");
    // One warm-up connection, kept alive: answers are in the order of the requests.
    let timings = timings(&said.lock().unwrap());
    let samples: Vec<&Sample> = run.warmup.iter().chain(&run.samples).collect();
    assert_eq!(timings.len(), samples.len());
    let number = |timing: &Value, name: &str| timing[name].as_f64().unwrap();
    let (mut tpot, mut ttft) = (Vec::new(), Vec::new());
    for (sample, timing) in samples.iter().zip(&timings) {
        assert_eq!(sample.outcome, Outcome::Ok);
        assert_eq!(sample.finish_reason.as_deref(), Some("length"));
        assert_eq!(sample.output_tokens(), Some((number(timing, "predicted_n") as u64, TokenSource::Usage)));
        tpot.push(sample.value(Series::Tpot).unwrap() / 1e6 / number(timing, "predicted_per_token_ms"));
        // From the last byte sent: waiting behind an earlier request is not the server's prompt time.
        let prompt_ms = number(timing, "prompt_ms");
        ttft.push(((sample.first_token.unwrap() - sample.sent.unwrap()).as_millis_f64() - prompt_ms, prompt_ms));
    }
    println!("TPOT seen ÷ server's: {tpot:?}");
    println!("TTFT − prompt_ms, prompt_ms: {ttft:?}");
    // The median of twenty: a single one may meet a busy machine.
    tpot.sort_by(f64::total_cmp);
    ttft.sort_by(|left, right| left.0.total_cmp(&right.0));
    let (ratio, (late, prompt)) = (tpot[tpot.len() / 2], ttft[ttft.len() / 2]);
    assert!((ratio - 1.0).abs() <= 0.01, "TPOT is off by more than 1 %: {ratio}");
    assert!((0.0..=5.0 + 0.03 * prompt).contains(&late), "TTFT − prompt_ms is {late} ms");
}

/// How many tokens the server has generated since its start, by its own count.
fn predicted(server: SocketAddr) -> u64 {
    let metrics = get(server, "/metrics");
    let line = metrics.lines().find_map(|line| line.strip_prefix("llamacpp:tokens_predicted_total "));
    line.unwrap_or_else(|| panic!("no count in:\n{metrics}")).trim().parse::<f64>().unwrap() as u64
}

fn tokens_equal_the_servers_own_counts_in_each_of_its_dialects(server: SocketAddr) {
    let spec = root().join("gates/servers/llama.yaml").display().to_string();
    for api in ["openai-chat", "openai-completions", "anthropic", "openai-responses", "llamacpp"] {
        let place = Place::new();
        let set = format!("target.api={api}");
        // What is counted is the same on a machine that is too slow for the limits.
        let words = ["check", &spec, "--set", &set, "--set", "load.warmup=1", "--set", "load.rps=2", "--report-only"];
        let before = predicted(server);
        let mut command = place.command(&words);
        let ended = Ended::of(command.env("GATE_LLAMA_URL", format!("http://{server}")).output().unwrap());
        ended.expect_code(0);
        let run = place.run("llama");
        let mut counted = 0;
        for sample in run.warmup.iter().chain(&run.samples) {
            assert_eq!(sample.outcome, Outcome::Ok, "{api}: {:?}", sample.error);
            let (tokens, source) = sample.output_tokens().unwrap();
            assert_eq!(source, TokenSource::Usage, "{api}");
            counted += tokens;
        }
        // Readiness asks /health; every token is one of these requests'.
        assert_eq!(counted, predicted(server) - before, "{api}");
    }
}

fn init_makes_a_gate_of_it_that_runs_as_it_is(server: SocketAddr) {
    let place = Place::new();
    let url = format!("http://{server}/v1");
    let ended = place.gate(&[
        "init",
        "--target",
        &url,
        "--forge",
        "none",
        "--ttft-p95",
        "60s",
        "--tpot-p95",
        "20s",
        "--rps",
        "2",
    ]);
    ended.expect_code(0).says("found: llama.cpp").says("streams, says its tokens");
    // Shorter than people ask for, so that a small machine is done in a minute; nothing else is changed.
    let short = ["--set", "prompts.input_tokens=40", "--set", "prompts.output_tokens=8", "--report-only"];
    place.gate(&[&["check", "gates/chat.yaml"], &short[..]].concat()).expect_code(0);
    let verdict = place.verdict("chat");
    assert!(
        verdict.checks.iter().all(|check| check.evidence.is_some()),
        "every check was judged: {:?}",
        verdict.status
    );
}
