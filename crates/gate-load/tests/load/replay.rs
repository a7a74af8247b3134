//! Answers of real servers, served byte for byte, head and chunks included, through the connection code.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use gate_model::{Api, Connections, Delivery, Outcome, Sample};
use gate_wire::{BodyEnd, Keep, conclude, dialect};

use crate::bench::{Bench, secret};
use crate::server::*;

/// One recorded exchange.
struct Case {
    name: String,
    api: Api,
    delivery: Delivery,
    answer: Vec<u8>,
    /// Whether the server closed after it.
    is_closed: bool,
    /// What the folder's own table says of it.
    facts: String,
}

fn folder() -> PathBuf {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/wire");
    std::env::var_os("GATE_WIRE_CORPUS").map_or_else(beside, PathBuf::from).join("captured")
}

/// The dialect of a route; `None` where it is none that a gate asks.
fn api(request: &str) -> Option<Api> {
    let path = request.strip_prefix("POST ")?.split([' ', '?']).next()?;
    Some(match path.rsplit('/').next()? {
        "completions" if path.contains("/chat/") => Api::OpenaiChat,
        "completions" => Api::OpenaiCompletions,
        "messages" => Api::Anthropic,
        "responses" => Api::OpenaiResponses,
        "nope" => Api::OpenaiChat,
        "converse-stream" => Api::BedrockConverse,
        "invoke-with-response-stream" => Api::BedrockInvoke,
        _ if path.ends_with(":streamGenerateContent") => Api::Gemini,
        _ => return None,
    })
}

/// The table's facts, by the names of files.
fn facts(readme: &str) -> BTreeMap<String, String> {
    let mut server = "";
    let mut facts = BTreeMap::new();
    for line in readme.lines() {
        if let Some(name) = line.strip_prefix("## ") {
            server = name;
        } else if let Some(row) = line.strip_prefix("| ") {
            let name = row.split(" |").next().unwrap();
            let fact = row.trim_end_matches(" |").rsplit(" | ").next().unwrap();
            facts.insert(format!("{server}-{name}"), fact.to_owned());
        }
    }
    facts
}

fn cases(folder: &Path) -> Vec<Case> {
    let facts = facts(&std::fs::read_to_string(folder.join("README.md")).unwrap());
    let read = |name: &str, kind: &str| std::fs::read(folder.join(format!("{name}.{kind}"))).unwrap();
    let mut cases = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "http") {
            continue;
        }
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let request = String::from_utf8_lossy(&read(&name, "request")).into_owned();
        let Some(api) = api(&request) else { continue };
        let by_route = matches!(api, Api::Gemini | Api::BedrockConverse | Api::BedrockInvoke);
        let is_streamed = by_route || request.contains("\"stream\": true");
        cases.push(Case {
            api,
            delivery: if is_streamed { Delivery::Streamed } else { Delivery::Whole },
            answer: read(&name, "http"),
            is_closed: String::from_utf8_lossy(&read(&name, "timing")).lines().next() != Some("complete"),
            facts: facts.get(&name).unwrap_or_else(|| panic!("no facts of {name}")).clone(),
            name,
        });
    }
    cases.sort_by(|a, b| a.name.cmp(&b.name));
    cases
}

/// Head and body of an answer, its chunks undone by hand.
fn body(answer: &[u8]) -> (String, Vec<u8>) {
    let end = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap() + 4;
    let (head, mut rest) = (String::from_utf8_lossy(&answer[..end]).to_lowercase(), &answer[end..]);
    if !head.contains("transfer-encoding: chunked") {
        return (head, rest.to_vec());
    }
    let mut body = Vec::new();
    while let Some(line) = rest.windows(2).position(|bytes| bytes == b"\r\n") {
        let size = usize::from_str_radix(std::str::from_utf8(&rest[..line]).unwrap(), 16).unwrap();
        rest = &rest[line + 2..];
        body.extend_from_slice(&rest[..size.min(rest.len())]);
        rest = rest.get(size + 2..).unwrap_or_default();
    }
    (head, body)
}

/// Cuts an answer anywhere, mostly into few bytes, and sometimes waits.
fn acts(case: &Case) -> Vec<Act> {
    let mut draw = case.name.bytes().fold(1_u64, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte)));
    let (mut rest, mut acts) = (&case.answer[..], Vec::new());
    while !rest.is_empty() {
        draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (piece, later) = rest.split_at((1 + (draw >> 40) as usize % 200).min(rest.len()));
        acts.push(Put(piece.to_vec()));
        if draw >> 61 == 0 {
            acts.push(Pause(1));
        }
        rest = later;
    }
    if case.is_closed {
        acts.push(Close);
    }
    acts
}

/// The number before these words in a case's facts.
fn number(facts: &str, words: &str) -> Option<u32> {
    facts.split("; ").find_map(|fact| fact.strip_suffix(words)?.trim().parse().ok())
}

fn check(case: &Case, sample: &Sample) {
    let Case { name, facts, .. } = case;
    let status: u16 = facts.split(' ').next().unwrap().parse().unwrap();
    assert_eq!(sample.status, Some(status), "{name}: {sample:?}");
    match status {
        429 => return assert_eq!(sample.outcome, Outcome::Http429, "{name}"),
        400..500 => return assert_eq!(sample.outcome, Outcome::Http4xx, "{name}"),
        500..600 => return assert_eq!(sample.outcome, Outcome::Http5xx, "{name}"),
        _ => {}
    }
    // What the decoder says of the same body, as it was without a connection.
    let (head, body) = body(&case.answer);
    let mut decoder = dialect(case.api, None).decoder(case.delivery, Keep::Nothing);
    let mut events = 0;
    decoder.feed(&body, &mut |_| events += 1);
    decoder.finish(&mut |_| events += 1);
    let state = decoder.state();
    let content_type = head.lines().find_map(|line| line.strip_prefix("content-type: "));
    let (outcome, _) = conclude(state, content_type, BodyEnd::Clean);
    assert_eq!(sample.outcome, outcome, "{name}: {facts}: {sample:?}");
    assert_eq!((sample.usage, &sample.model), (state.usage, &state.model), "{name}");
    assert_eq!(u64::from(sample.content_events), state.content_events, "{name}");
    assert_eq!(sample.finish_reason, state.finish_reason, "{name}");
    // What its table says, which no code of ours has counted.
    let fact = |start: &str| facts.split("; ").find_map(|fact| fact.strip_prefix(start));
    let is_error = facts.contains("ERROR EVENT");
    if let Some(finish) = fact("finish ") {
        assert_eq!(sample.finish_reason.as_deref(), Some(finish), "{name}");
        assert_eq!(sample.outcome, Outcome::Ok, "{name}: {sample:?}");
    }
    // After an error nothing more is read.
    assert!(sample.events == events || (is_error && sample.events < events), "{name}: {sample:?}");
    if is_error {
        assert_eq!(sample.outcome, Outcome::StreamError, "{name}: {sample:?}");
    } else if facts.contains("NO chunk terminator") {
        assert_eq!(sample.outcome, Outcome::Truncated, "{name}: {sample:?}");
    }
    if fact("usage: ").is_some() {
        assert!(sample.usage.is_some_and(|usage| usage.output.is_some()), "{name}: {sample:?}");
    }
    // Katan's routes of Bedrock answer with server-sent events, which Bedrock never does.
    if let Some(lines) = number(facts, " data lines").filter(|_| sample.outcome != Outcome::Decode && !is_error) {
        assert_eq!(state.events, u64::from(lines), "{name}: {facts}");
    }
    if case.delivery == Delivery::Streamed && sample.outcome == Outcome::Ok {
        let points =
            [sample.sent, sample.headers, sample.first_event, sample.first_token, sample.last_token, sample.end];
        assert!(points.iter().all(Option::is_some) && points.is_sorted(), "{name}: {points:?}");
    }
}

#[test]
fn every_recorded_answer_is_what_it_was() {
    let folder = folder();
    if !folder.is_dir() {
        println!("skipped: no `captured` in GATE_WIRE_CORPUS, nor in ../shared/wire beside the workspace");
        return;
    }
    let mut checked = 0;
    let mut kinds: BTreeMap<(&str, bool), Vec<Case>> = BTreeMap::new();
    for case in cases(&folder) {
        kinds.entry((case.api.name(), case.delivery == Delivery::Whole)).or_default().push(case);
    }
    for cases in kinds.into_values() {
        let scripts: Vec<_> = cases.iter().map(acts).collect();
        let mut bench = Bench::new(serve_measured(move |index, _| scripts[index].clone()), cases.len() as u32);
        bench.spec.target.api = cases[0].api;
        bench.spec.target.delivery = cases[0].delivery;
        bench.spec.target.key = Some(secret("captured-key-0123"));
        // Some of these servers closed after their answer, without saying so before.
        bench.spec.load.connections = Connections::Fresh;
        let run = bench.go().run;
        assert_eq!(run.samples.len(), cases.len());
        for (case, sample) in cases.iter().zip(&run.samples) {
            check(case, sample);
            checked += 1;
        }
    }
    println!("{checked} recorded answers came through the connection code as expected");
    assert!(checked > 100, "only {checked}");
}
