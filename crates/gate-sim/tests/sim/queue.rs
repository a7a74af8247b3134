//! Slots, the queue, the prefix cache and what the engine reports of itself.

use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use gate_engine::{Fate, simulate};
use gate_model::{
    Drift, Endpoint, EngineParams, GateSpec, Latency, Nanos, Outcome, Plan, PlannedRequest, PrefixCache, RunHeader,
    Scaling,
};
use gate_sim::{Server, TruthRequest};
use serde_json::{Value, json};

use crate::client::*;

/// So many milliseconds to the only token of an answer.
fn serving(slots: u32, millis: i64) -> EngineParams {
    EngineParams { slots: Some(slots), ttft: Latency::constant(Nanos::from_millis(millis)), ..fast() }
}

/// Sends so many requests, each on a connection of its own, one after another as the server takes them up.
fn sent(server: &Server, count: usize) -> Vec<TcpStream> {
    let before = server.truth().requests.len();
    let send = |place: usize| {
        let mut stream = connect(server);
        stream.write_all(streamed(1).as_bytes()).unwrap();
        until(|| server.truth().requests.len() > before + place);
        stream
    };
    (0..count).map(send).collect()
}

fn until(is_so: impl Fn() -> bool) {
    let guard = Instant::now();
    while !is_so() {
        assert!(guard.elapsed() < Duration::from_secs(60));
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn metric(server: &Server, name: &str) -> Option<f64> {
    let text = ask(server, &get("/metrics")).body;
    let line = text.lines().find(|line| line.starts_with(name) && !line.starts_with('#'));
    line.map(|line| line.rsplit(' ').next().unwrap().parse().unwrap())
}

fn first_token(request: &TruthRequest) -> Nanos {
    request.writes.iter().find(|write| write.tokens > 0).unwrap().at
}

#[test]
fn who_came_first_is_served_first_and_no_more_than_there_are_slots() {
    let server = start(EngineParams { role_chunk: Some(Nanos::ZERO), ..serving(2, 150) });
    let mut streams = sent(&server, 6);
    let answers: Vec<_> = streams.iter_mut().map(|stream| read(stream).unwrap()).collect();
    assert!(answers.iter().all(|answer| answer.status == 200 && answer.words() == 1));
    let requests = settled(&server).requests;
    assert!(requests.is_sorted_by_key(first_token));
    for request in &requests {
        // The role does not wait.
        assert!(request.writes[0].at - request.arrived < first_token(request) - request.arrived);
        assert!(first_token(request) - request.arrived >= request.waited.unwrap() + Nanos::from_millis(150));
    }
    // A slot is taken until its last token, so nobody is served before who came two before has ended.
    for three in requests.windows(3) {
        let ended = three[0].writes.last().unwrap().due;
        assert!(three[2].arrived + three[2].waited.unwrap() >= ended, "{three:?}");
    }
    assert_eq!((requests[0].waited, requests[1].waited), (Some(Nanos::ZERO), Some(Nanos::ZERO)));
    let truth = server.truth().engine;
    let capacity = truth.capacity.unwrap().0;
    assert!((capacity - 2.0 / 0.15).abs() < 1e-9, "{capacity}");
    assert_eq!((truth.backlogs.len(), truth.backlogs[0].most), (1, 4));
    assert!(truth.recovery(truth.backlogs[0].from).unwrap() > Nanos::from_millis(200));
}

#[test]
fn it_agrees_with_virtual_time_in_order_and_counts() {
    let params = EngineParams {
        script: vec![
            gate_model::ScriptedFault { from: 3, to: 3, fault: gate_model::Fault::Http429 },
            gate_model::ScriptedFault { from: 4, to: 4, fault: gate_model::Fault::Truncate },
        ],
        prefill: Some(100.0),
        ..serving(1, 60)
    };
    // Four words are 6 tokens here: 60 ms of reading.
    let plan_of = |index: u32| PlannedRequest { index, input_tokens: 6, output_tokens: 2, ..Default::default() };
    let spec = GateSpec::new("chat", Endpoint::Sim(Box::new(params.clone())));
    let plan = Plan::new(&spec, vec![6], (0..6).map(plan_of).collect());
    let header = RunHeader::new(spec, &plan, "0.0.0", "run", "2026-01-01T00:00:00Z");
    let run = simulate(&params, None, &plan, header);

    let server = start(params);
    let body = r#"{"messages":[{"content":"a b c d"}],"max_tokens":2,"stream":true}"#;
    let mut streams = Vec::new();
    for count in 1..=6 {
        let mut stream = connect(&server);
        stream.write_all(post(body).as_bytes()).unwrap();
        until(|| server.truth().requests.len() == count);
        streams.push(stream);
    }
    let answers: Vec<_> = streams.iter_mut().map(|stream| read(stream).unwrap()).collect();
    let requests = settled(&server).requests;
    let outcome = |request: &TruthRequest| match request.fate {
        Fate::Complete => Outcome::Ok,
        Fate::Http429 => Outcome::Http429,
        _ => Outcome::Truncated,
    };
    let order = |ends: Vec<Nanos>| {
        let mut order: Vec<usize> = (0..ends.len()).collect();
        order.sort_by_key(|place| ends[*place]);
        order
    };
    assert!(run.samples.iter().map(|sample| sample.outcome).eq(requests.iter().map(outcome)));
    let real = order(requests.iter().map(|request| request.end.unwrap()).collect());
    assert_eq!(order(run.samples.iter().map(|sample| sample.end.unwrap()).collect()), [2, 0, 1, 3, 4, 5]);
    assert_eq!(real, [2, 0, 1, 3, 4, 5]);
    assert_eq!((answers[2].status, requests[2].waited), (429, None));
    for (sample, request) in run.samples.iter().zip(&requests).filter(|(sample, _)| sample.outcome == Outcome::Ok) {
        assert_eq!(sample.usage.unwrap().output, Some(u64::from(request.output_tokens)));
        assert_eq!(sample.usage.unwrap().input, Some(u64::from(request.prompt_tokens)));
        let waited = sample.first_token.unwrap() - sample.intended - Nanos::from_millis(120);
        // What came later by the clock waited less by as much, and nothing is served early.
        assert!(request.waited.unwrap() + request.arrived >= waited + requests[0].arrived, "{request:?}");
    }
}

#[test]
fn a_client_that_leaves_gives_its_place_back() {
    let server = start(serving(1, 60_000));
    let mut streams = sent(&server, 3);
    until(|| metric(&server, "vllm:num_requests_waiting") == Some(2.0));
    drop(streams.remove(1));
    until(|| metric(&server, "vllm:num_requests_waiting") == Some(1.0));
    drop(streams.remove(0));
    until(|| server.truth().requests[2].waited.is_some());
    let requests = server.truth().requests;
    assert!(requests[0].client_left && requests[1].client_left && requests[1].waited.is_none());
}

#[test]
fn slots_come_after_the_cold_start() {
    let scaling = Scaling { max_slots: 3, step: 2, queue: 2, cold_start: Nanos::from_millis(300) };
    let server = start(EngineParams { scaling: Some(scaling), ..serving(1, 60_000) });
    let _streams = sent(&server, 4);
    until(|| metric(&server, "vllm:num_requests_running") == Some(3.0));
    let requests = server.truth().requests;
    let started = |place: usize| requests[place].arrived + requests[place].waited.unwrap();
    // The third request is the second that waits.
    assert!(started(1) - requests[2].arrived >= Nanos::from_millis(299));
    assert_eq!((requests[3].waited, metric(&server, "vllm:kv_cache_usage_perc")), (None, Some(1.0)));
}

fn cached(answer: &Answer) -> Option<u64> {
    answer.json()["usage"]["prompt_tokens_details"]["cached_tokens"].as_u64()
}

fn messages(messages: &[(&str, &str)]) -> String {
    let messages: Vec<Value> =
        messages.iter().map(|(role, content)| json!({"role": role, "content": content})).collect();
    post(&json!({"messages": messages, "max_tokens": 60}).to_string())
}

#[test]
fn prompts_and_conversations_are_found_in_the_prefix_cache() {
    let prefix_cache = Some(PrefixCache { blocks: 1_000, block_tokens: 8 });
    let server = start(EngineParams { prefix_cache, ..fast() });
    let mut stream = connect(&server);
    let system = "You are a helpful assistant who answers briefly and to the point. ".repeat(4);
    let first = exchange(&mut stream, &messages(&[("system", &system), ("user", "What is a whale?")]));
    assert_eq!(cached(&first), Some(0));
    let other = exchange(&mut stream, &messages(&[("system", &system), ("user", "Who wrote it?")]));
    // The system prompt is 264 characters, so 8 whole blocks of 32.
    assert_eq!(cached(&other), Some(64));

    let answer = first.json()["choices"][0]["message"]["content"].as_str().unwrap().to_owned();
    let turns =
        [("system", &*system), ("user", "What is a whale?"), ("assistant", &*answer), ("user", "Is it a fish?")];
    let later = exchange(&mut stream, &messages(&turns));
    let known = system.len() + "What is a whale?".len() + answer.len() + 2;
    assert_eq!(cached(&later), Some((known / 32 * 8) as u64));
    assert!(later.json()["usage"]["prompt_tokens"].as_u64() > cached(&later));

    let requests = settled(&server).requests;
    let (queries, hits) = requests.iter().fold((0, 0), |(queries, hits), request| {
        (queries + request.prompt_tokens, hits + request.cached_tokens.unwrap())
    });
    assert_eq!(metric(&server, "vllm:prefix_cache_queries_total"), Some(f64::from(queries)));
    assert_eq!(metric(&server, "vllm:prefix_cache_hits_total"), Some(f64::from(hits)));

    // The usage of a stream, and Anthropic's, whose input has cached tokens beside it.
    let body = json!({"messages": [{"role": "system", "content": system}], "max_tokens": 1, "stream": true,
        "stream_options": {"include_usage": true}});
    let streamed = exchange(&mut stream, &post(&body.to_string()));
    assert!(streamed.body.contains(r#""prompt_tokens_details":{"cached_tokens":"#), "{}", streamed.body);
    let body = json!({"system": system, "messages": [{"role": "user", "content": "Hm, is that so, really?"}], "max_tokens": 1});
    let usage = &exchange(&mut stream, &post_to("/v1/messages", &body.to_string())).json()["usage"];
    let prompt = u64::from(server.truth().requests.last().unwrap().prompt_tokens);
    assert_eq!(usage["input_tokens"].as_u64().unwrap() + usage["cache_read_input_tokens"].as_u64().unwrap(), prompt);
    assert_eq!(usage["cache_read_input_tokens"], 64);
}

#[test]
fn latencies_drift_from_the_start_of_the_server_on() {
    // Doubled every 10 ms or so.
    let drift = Drift { ttft: 360_000.0, ..Drift::default() };
    let server = start(EngineParams { drift, ..fast() });
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(ask(&server, &streamed(1)).words(), 1);
    let request = only(&server);
    let grown = 1.0 + request.arrived.as_secs_f64() * 100.0;
    let due = request.writes[0].due - request.arrived;
    assert!((due.as_secs_f64() / (0.002 * grown) - 1.0).abs() < 0.01, "{due:?}");
    assert_eq!(server.truth().engine.drift, drift);
}

#[test]
fn what_it_reports_is_in_prometheus_text_format() {
    let server = start(fast());
    assert_eq!(ask(&server, &streamed(3)).words(), 3);
    let answer = ask(&server, &get("/metrics"));
    assert!(answer.head.contains("content-type: text/plain; version=0.0.4"), "{}", answer.head);
    assert_eq!(metric(&server, "vllm:num_requests_running{engine=\"0\",model_name=\"gate-sim\"}"), Some(0.0));
    assert_eq!(metric(&server, "vllm:num_preemptions_total"), Some(0.0));
    assert_eq!(metric(&server, "process_resident_memory_bytes"), Some(4_294_967_296.0));
    assert_eq!(metric(&server, "vllm:kv_cache_usage_perc"), None, "there are no slots to share");
    for name in ["vllm:num_requests_running gauge", "vllm:num_preemptions_total counter"] {
        assert!(answer.body.contains(&format!("# TYPE {name}\n")), "{}", answer.body);
    }
}

#[test]
fn an_answer_that_is_due_at_one_instant_is_one_write() {
    let params = EngineParams { ttft: Latency::constant(Nanos::ZERO), slots: Some(4), ..fast() };
    let server = start(params);
    let mut stream = connect(&server);
    let request = chat(1, r#","stream":true,"stream_options":{"include_usage":true}"#);
    stream.write_all(request.as_bytes()).unwrap();
    until(|| !server.truth().requests.is_empty());
    let request = only(&server);
    assert_eq!((request.writes.len(), request.writes[0].events, request.writes[0].tokens), (1, 1, 1));
    until(|| only(&server).writes[0].done.is_some());
    // All of it is there to be read at once.
    let mut bytes = [0; 4_096];
    let length = std::io::Read::read(&mut stream, &mut bytes).unwrap();
    let text = String::from_utf8_lossy(&bytes[..length]);
    assert!(
        text.starts_with("HTTP/1.1 200 OK\r\n") && text.contains("usage") && text.ends_with("\r\n0\r\n\r\n"),
        "{text}"
    );
    stream.write_all(streamed(1).as_bytes()).unwrap();
    assert_eq!(read(&mut stream).unwrap().words(), 1);
}
