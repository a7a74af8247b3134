//! What else is known of a request, and of the client itself.

use std::sync::{Arc, Mutex};

use gate_load::LoadError;
use gate_model::{Api, AwsCredentials, Clock, CountTokens, JournalLine, Outcome, Run, Stamping, TokenSource};

use crate::bench::{Bench, Report, secret};
use crate::server::*;

/// A chunk with the names that servers give themselves.
fn named(text: &str, model: &str, fingerprint: &str) -> String {
    let names = format!("data: {{\"model\":\"{model}\",\"system_fingerprint\":\"{fingerprint}\",");
    token(text).replacen("data: {", &names, 1)
}

#[test]
fn who_answered_is_kept_without_secrets() {
    let address = serve_measured(|index, _| {
        let replica = ["x-served-by: pod-1", "x-served-by: pod-hush-0123456789", "x-other: pod-3"][index];
        let head = head("200 OK", &["content-type: text/event-stream", "transfer-encoding: chunked", replica]);
        let names = ["tiny-2", "hush-0123456789", "tiny"];
        let told = named("a", names[index], "fp_1");
        vec![head, chunk(&told), chunk(&finish("stop")), chunk(DONE), last_chunk()]
    });
    let mut bench = Bench::new(address, 3);
    bench.spec.target.replica_header = Some("X-Served-By".to_owned());
    bench.spec.target.key = Some(secret("hush-0123456789"));
    let samples = bench.go().run.samples;
    let replicas: Vec<_> = samples.iter().map(|sample| sample.replica.as_deref()).collect();
    assert_eq!(replicas, [Some("pod-1"), Some("pod-***"), None]);
    let models: Vec<_> = samples.iter().map(|sample| sample.model.as_deref()).collect();
    assert_eq!(models, [Some("tiny-2"), Some("***"), Some("tiny")]);
    assert!(samples.iter().all(|sample| sample.fingerprint.as_deref() == Some("fp_1")));
}

/// Counts letters.
struct Letters;

impl CountTokens for Letters {
    fn count(&self, text: &str) -> Option<u64> {
        Some(text.len() as u64)
    }
}

#[test]
fn tokens_are_counted_after_the_load_where_the_server_counted_none() {
    let usage = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2}}\n\n";
    let address = serve_measured(move |index, _| {
        let mut acts = stream(&["ab", "cde"]);
        match index {
            1 => acts.insert(acts.len() - 2, chunk(usage)),
            2 => acts = vec![stream_head(), chunk(&token("abc")), Close],
            _ => {}
        }
        acts
    });
    let mut bench = Bench::new(address, 4);
    bench.counter = Some(Arc::new(Letters));
    let Report { run, journal, .. } = bench.go();
    let counts: Vec<_> = run.samples.iter().map(|sample| sample.output_tokens()).collect();
    let counted = Some((5, TokenSource::Tokenizer));
    assert_eq!(counts, [counted, Some((2, TokenSource::Usage)), Some((1, TokenSource::Estimated)), counted]);
    assert_eq!(run.samples[2].outcome, Outcome::Truncated);
    assert_eq!(Run::from_journal(&journal).unwrap(), run);
    let lines: Vec<JournalLine> = journal.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let [.., a, b, JournalLine::End(_)] = &lines[..] else { panic!("{journal}") };
    assert!([a, b].iter().all(|line| matches!(line, JournalLine::Counted { output: 5, .. })), "{a:?} {b:?}");
    assert_eq!(run.warmup[0].counted_output, None);
}

#[test]
fn the_clock_that_was_used_is_said() {
    let address = serve_measured(|_, _| stream(&["a", "b", "c"]));
    let health = |clock| {
        let mut bench = Bench::new(address, 5);
        bench.spec.load.clock = clock;
        bench.go().run.end.unwrap().health
    };
    let user = health(Clock::User);
    assert_eq!((user.clock, user.read_delay_p95), (Stamping::User, None));
    let auto = health(Clock::Auto);
    assert_eq!(auto.clock == Stamping::Kernel, cfg!(target_os = "linux"));
    assert_eq!(auto.read_delay_p95.is_some(), cfg!(target_os = "linux"));
    assert!(user.loop_delay_p95.is_some() && user.coalesced_share.is_some_and(|share| (0.0..=1.0).contains(&share)));
}

#[cfg(unix)]
#[test]
fn a_clock_that_cannot_be_is_said_before_anything_is_sent() {
    let folder = std::env::temp_dir().join(format!("gate-load-clock-{}", std::process::id()));
    let mut bench = Bench::at("http://localhost", 1);
    bench.socket = Some(folder.join("no.sock"));
    bench.spec.load.clock = Clock::Kernel;
    let (result, journal, _) = bench.try_go();
    let error = result.unwrap_err();
    assert!(matches!(error, LoadError::Clock { .. }), "{error}");
    assert!(error.to_string().contains("use `auto` or `user`") && journal.is_empty(), "{error}");
}

#[test]
fn events_of_one_read_are_upper_bounds_but_the_last() {
    let address = serve_measured(|index, _| match index {
        0 => vec![
            stream_head(),
            chunk(&(token("a") + &role() + &token("b") + &token("c"))),
            Pause(40),
            chunk(&token("d")),
            Pause(40),
            chunk(&finish("stop")),
            chunk(DONE),
            last_chunk(),
        ],
        _ => {
            vec![stream_head(), Pause(30), chunk(&token("a")), Pause(30), chunk(&token("b")), chunk(DONE), last_chunk()]
        }
    });
    for clock in [Clock::User, Clock::Auto] {
        let mut bench = Bench::new(address, 2);
        bench.spec.load.clock = clock;
        let run = bench.go().run;
        let coalesced: Vec<_> = run.samples.iter().map(|sample| sample.coalesced).collect();
        assert_eq!(coalesced, [2, 0]);
        assert_eq!(run.end.unwrap().health.coalesced_share, Some(2.0 / 6.0));
    }
}

#[test]
fn requests_to_bedrock_are_signed() {
    let heads = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&heads);
    let address = serve(move |seen| {
        if seen.line.starts_with("POST") {
            log.lock().unwrap().push(seen.head.clone());
        }
        document("404 Not Found", "application/json", "{}")
    });
    let mut bench = Bench::new(address, 1);
    bench.spec.target.api = Api::BedrockConverse;
    bench.spec.target.aws = Some(AwsCredentials {
        access_key_id: secret("AKIDEXAMPLE"),
        secret_access_key: secret("wJalrXUtnFEMI-K7MDENG"),
        session_token: None,
        region: "eu-west-1".to_owned(),
    });
    bench.go();
    let heads = heads.lock().unwrap();
    // The question whether it is ready, and warm-up, which is refused.
    assert!(heads.len() >= 2, "{heads:?}");
    for head in heads.iter() {
        let signed = "authorization: aws4-hmac-sha256 credential=akidexample/";
        assert!(head.contains(signed) && head.contains("/eu-west-1/bedrock/aws4_request"), "{head}");
        assert!(head.contains("x-amz-date: "), "{head}");
    }
}

#[test]
fn a_stream_without_a_pause_keeps_nobody_waiting() {
    let flood = token("a").repeat(10_000);
    let address = serve_measured(move |index, _| match index {
        0 => {
            let mut acts = vec![head("200 OK", &["content-type: text/event-stream"])];
            acts.extend(std::iter::repeat_n(Put(flood.clone().into()), 80));
            acts.extend([Put((finish("stop") + DONE).into()), Close]);
            acts
        }
        _ => stream(&["a", "b"]),
    });
    let run = Bench::new(address, 20).go().run;
    let flooded = &run.samples[0];
    assert!(flooded.content_events >= 100_000, "{}", flooded.content_events);
    for sample in &run.samples[1..] {
        assert_eq!(sample.outcome, Outcome::Ok);
        assert!(sample.end < flooded.last_token, "it waited for the flood: {sample:?}");
    }
}
