//! One section of a run among others: scenarios, a common start, long runs, the server's own metrics.

use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use gate_load::{LoadError, Progress};
use gate_model::{
    CountTokens, EndReason, JournalLine, JournalReader, LastLine, Nanos, OutputLength, Pace, PerSecond, RAW_LIMIT, Run,
    RunOrder, Scenario, ServerMetric, TokenSource,
};
use serde_json::{Value, json};

use crate::bench::{Bench, secret};
use crate::pace::closed;
use crate::server::*;

fn well_asked() -> (std::net::SocketAddr, Arc<Mutex<Vec<Value>>>) {
    let bodies = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&bodies);
    let address = serve_measured(move |_, seen| {
        noted.lock().unwrap().push(serde_json::from_str(&seen.body).unwrap());
        stream(&["a", "b"])
    });
    (address, bodies)
}

fn scenario(bench: &Bench, name: &str) -> Scenario {
    Scenario {
        name: name.to_owned(),
        load: bench.spec.load.clone(),
        prompts: bench.spec.prompts.clone(),
        slo: bench.spec.slo,
        model: None,
        extra_body: serde_json::Map::new(),
        weight: 1.0,
    }
}

fn in_scenarios(mut bench: Bench) -> Bench {
    bench.spec.target.extra_body = json!({"top_k": 5, "options": {"a": 1, "b": 2}}).as_object().unwrap().clone();
    let mut batch = scenario(&bench, "batch");
    batch.model = Some("large".to_owned());
    batch.extra_body = json!({"options": {"b": 3}}).as_object().unwrap().clone();
    batch.prompts.output = OutputLength::Exact;
    batch.load.pace = Pace::Closed { concurrency: 1 };
    bench.spec.scenarios = vec![scenario(&bench, "chat"), batch];
    bench.plan.scenarios = bench.spec.scenario_names();
    bench
}

#[test]
fn scenarios_together_have_their_own_models_and_fields() {
    let (address, bodies) = well_asked();
    let mut bench = in_scenarios(Bench::new(address, 4));
    bench.spec.order = RunOrder::Together;
    for request in &mut bench.plan.requests {
        request.scenario = (request.index % 2) as u16;
    }
    let run = bench.go().run;
    assert_eq!(run.samples.iter().map(|sample| sample.scenario).collect::<Vec<_>>(), [0, 1, 0, 1]);
    for body in &*bodies.lock().unwrap() {
        let is_batch = body["model"] == "large";
        assert!(is_batch || body["model"] == "m");
        let last = body["messages"].as_array().unwrap().last().unwrap()["content"].as_str().unwrap().to_owned();
        assert_eq!(last.contains("-1.") || last.contains("-3."), is_batch, "{body}");
        assert_eq!((&body["top_k"], &body["options"]["a"]), (&json!(5), &json!(1)));
        assert_eq!(body["options"]["b"], if is_batch { 3 } else { 2 });
        assert_eq!(body.get("ignore_eos").is_some(), is_batch, "{body}");
    }
}

#[test]
fn a_later_section_has_its_scenarios_load_and_its_own_indexes() {
    let (address, bodies) = well_asked();
    let mut bench = in_scenarios(Bench::new(address, 3));
    (bench.plan.section, bench.plan.first) = (1, 50);
    bench.spec.journal.tokens = 2;
    for request in &mut bench.plan.requests {
        (request.index, request.scenario, request.at) = (request.index + 50, 1, Nanos::ZERO);
    }
    bench.plan.warmup[0].scenario = 1;
    let report = bench.go();
    let run = report.run;
    assert_eq!(run.samples.iter().map(|sample| sample.index).collect::<Vec<_>>(), [50, 51, 52]);
    // In a closed loop, as its scenario says.
    for two in run.samples.windows(2) {
        assert!(two[1].start.unwrap() >= two[0].end.unwrap());
    }
    // The first two of the section have the times of their tokens.
    assert_eq!(run.samples.iter().map(|sample| sample.token_times.len()).collect::<Vec<_>>(), [2, 2, 0]);
    assert!(bodies.lock().unwrap().iter().all(|body| body["model"] == "large"));
    assert_eq!(run.end.as_ref().unwrap().reason, EndReason::Completed);
    assert_eq!(report.looks, [3]);
    assert_eq!(Run::from_journal(&report.journal).unwrap(), run);
}

#[test]
fn a_scenario_that_the_spec_does_not_have_is_no_run() {
    let (address, _) = well_asked();
    let mut bench = Bench::new(address, 2);
    bench.plan.requests[1].scenario = 7;
    let error = bench.try_go().0.unwrap_err();
    assert!(matches!(error, LoadError::Scenario { scenario: 7 }), "{error}");
}

fn unix(at: SystemTime) -> Nanos {
    at.duration_since(SystemTime::UNIX_EPOCH).unwrap().into()
}

#[test]
fn a_run_starts_at_the_time_it_is_told_to() {
    let (address, _) = well_asked();
    for shape in [|bench| bench, |bench| closed(bench, 2)] {
        let mut bench: Bench = shape(Bench::new(address, 3));
        let at = unix(SystemTime::now() + Duration::from_secs(4));
        bench.start_at = Some(at);
        let run = bench.go().run;
        assert_eq!(run.end.as_ref().unwrap().epoch_unix, Some(at));
        assert!(unix(SystemTime::now()) >= at);
        assert_eq!(run.samples.len(), 3);
        assert!(run.samples.iter().all(|sample| sample.start.unwrap() >= Nanos::ZERO));
    }
}

#[test]
fn a_start_that_has_passed_sends_nothing() {
    let mut bench = Bench::new(serve(|_| panic!("nothing may be sent")), 1);
    bench.start_at = Some(unix(SystemTime::now() - Duration::from_secs(90)));
    let (result, journal, _) = bench.try_go();
    let error = result.unwrap_err();
    assert!(matches!(error, LoadError::StartPassed { .. }) && error.to_string().contains("later one"), "{error}");
    assert!(journal.is_empty());
}

#[test]
fn a_warm_up_that_misses_the_start_ends_the_run() {
    let address = serve(|seen| {
        let mut acts = stream(&["a"]);
        if seen.is_warmup() {
            acts.insert(0, Pause(3_000));
        }
        assert!(seen.measured().is_none());
        acts
    });
    let mut bench = Bench::new(address, 3);
    bench.start_at = Some(unix(SystemTime::now() + Duration::from_millis(1_500)));
    let run = bench.go().run;
    let EndReason::NotReady(words) = run.end.unwrap().reason else { panic!() };
    assert!(words.contains("--start-at"), "{words}");
}

#[test]
fn the_wait_for_the_start_can_be_interrupted() {
    let (address, _) = well_asked();
    let mut bench = Bench::new(address, 3);
    bench.start_at = Some(unix(SystemTime::now() + Duration::from_secs(3_600)));
    let stop = bench.stop.clone();
    bench.observe = Box::new(move |progress| {
        if matches!(progress, Progress::Started) {
            stop.trigger();
        }
    });
    let report = bench.go();
    let end = report.run.end.clone().unwrap();
    assert_eq!((end.reason, end.sent), (EndReason::Interrupted, 0));
    assert_eq!(Run::from_journal(&report.journal).unwrap(), report.run);
}

#[test]
fn of_a_long_run_all_is_kept_in_short_and_the_first_whole() {
    let (address, _) = well_asked();
    for shape in [|bench| bench, |bench| closed(bench, 2)] {
        let mut bench: Bench = shape(Bench::new(address, 12));
        bench.spec.journal.tokens = 3;
        bench.plan.whole = RAW_LIMIT + 1;
        bench.plan.shard = Some(gate_model::Shard { index: 1, of: 2 });
        bench.plan.looks = vec![RAW_LIMIT + 1];
        let report = bench.go();
        let run = report.run;
        assert!(run.is_long());
        assert_eq!((run.briefs.len(), run.samples.len(), run.recorded()), (12, 3, 12));
        assert!(run.samples.iter().all(|sample| sample.token_times.len() == 2));
        assert!(report.looks.is_empty());
        let end = run.end.unwrap();
        assert_eq!((end.reason, end.sent), (EndReason::Completed, 12));
        assert_eq!(report.journal.lines().filter(|line| line.starts_with("{\"type\":\"sample\"")).count(), 12);
    }
}

#[test]
fn texts_are_kept_where_the_spec_says_so_and_without_secrets() {
    let address = serve_measured(|_, _| stream(&["the key is ", "sk-plant-0123456789", ", they say"]));
    for keep in [true, false] {
        let mut bench = Bench::new(address, 2);
        bench.spec.target.key = Some(secret("sk-plant-0123456789"));
        bench.spec.journal.keep_text = keep;
        let report = bench.go();
        let texts: Vec<_> = report.run.samples.iter().map(|sample| sample.text.as_deref()).collect();
        assert_eq!(texts, [keep.then_some("the key is ***, they say"); 2]);
        assert!(!report.journal.contains("sk-plant"));
    }
}

#[test]
fn the_run_says_what_it_used_up_and_took() {
    let (address, _) = well_asked();
    let report = Bench::new(address, 6).warmup(2).go();
    let end = report.run.end.unwrap();
    let spent = end.spent.unwrap();
    assert_eq!((spent.requests, spent.uncounted), (8, 8));
    let footprint = end.footprint.unwrap();
    let opened = report.run.samples.iter().filter(|sample| sample.connected.is_some()).count();
    assert_eq!(footprint.connections as usize, opened);
    let lines: usize =
        report.journal.lines().filter(|line| !line.starts_with("{\"type\":\"end\"")).map(|line| line.len() + 1).sum();
    assert_eq!(footprint.journal_bytes as usize, lines);
}

#[test]
fn the_servers_metrics_are_read_before_during_and_after() {
    let scraped = |seen: &Seen| seen.line.starts_with("GET /metrics");
    let address = serve(move |seen| match scraped(seen) {
        true => document("200 OK", "text/plain", "vllm:num_requests_running 7\nvllm:num_requests_waiting 2\n"),
        false => well(|_, _| stream(&["a"]))(seen),
    });
    for shape in [|bench| bench, |bench| closed(bench, 1)] {
        let mut bench: Bench = shape(Bench::new(address, 3));
        bench.spec.target.metrics = Some(format!("http://{address}/metrics"));
        if let Pace::Open { .. } = bench.spec.load.pace {
            bench.spec.load.pace = Pace::Open { rate: PerSecond(1.0), cap: None };
            bench.plan.requests[2].at = Nanos::from_millis(2_500);
        }
        let is_open = bench.spec.load.pace.rate().is_some();
        let report = bench.go();
        let run = report.run;
        assert!(run.scrapes.len() >= if is_open { 4 } else { 2 }, "{:?}", run.scrapes);
        assert!(run.scrapes.first().unwrap().at < Nanos::ZERO);
        assert!(run.scrapes.last().unwrap().at >= run.samples[2].end.unwrap());
        let running = (ServerMetric::new("running").unwrap(), 7.0);
        assert!(run.scrapes.iter().all(|scrape| scrape.error.is_none() && scrape.values.contains(&running)));
        assert_eq!(Run::from_journal(&report.journal).unwrap(), run);
    }
}

#[test]
fn metrics_that_cannot_be_read_fail_nothing() {
    let (address, _) = well_asked();
    let mut bench = Bench::new(address, 3);
    bench.spec.target.metrics = Some("http://127.0.0.1:9/metrics".to_owned());
    let report = bench.go();
    assert_eq!(report.run.end.as_ref().unwrap().reason, EndReason::Completed);
    assert!(report.run.scrapes.len() >= 2);
    assert!(report.run.scrapes.iter().all(|scrape| scrape.values.is_empty() && scrape.error.is_some()));
    let lines = report.journal.lines().filter_map(|line| serde_json::from_str::<JournalLine>(line).ok());
    assert!(lines.filter(|line| matches!(line, JournalLine::Scrape(_))).count() >= 2);
}

#[test]
fn an_interrupted_run_of_every_shape_ends_with_its_end() {
    let address = serve_measured(|_, _| vec![stream_head(), chunk(&token("a")), Hold]);
    for shape in [|bench| bench, |bench| closed(bench, 2), |bench| in_scenarios(bench)] {
        let mut bench: Bench = shape(Bench::new(address, 40));
        bench.spec.target.metrics = Some(format!("http://{address}/metrics"));
        let stop = bench.stop.clone();
        bench.observe = Box::new(move |progress| {
            if matches!(progress, Progress::Tick { in_flight: 2.., .. }) {
                stop.trigger();
            }
        });
        let report = bench.go();
        assert_eq!(report.run.end.as_ref().unwrap().reason, EndReason::Interrupted);
        assert!(report.journal.lines().last().unwrap().starts_with("{\"type\":\"end\""));
        assert_eq!(Run::from_journal(&report.journal).unwrap(), report.run);
    }
}

/// Counts a token for each letter.
struct Letters;

impl CountTokens for Letters {
    fn count(&self, text: &str) -> Option<u64> {
        Some(text.chars().count() as u64)
    }
}

#[test]
fn the_tokens_of_a_long_runs_answers_are_counted_in_short_too() {
    let address = serve_measured(|_, _| stream(&["four", " and nine"]));
    let mut bench = Bench::new(address, 4);
    bench.counter = Some(Arc::new(Letters));
    bench.spec.journal.tokens = 1;
    bench.plan.whole = RAW_LIMIT + 1;
    bench.plan.shard = Some(gate_model::Shard { index: 1, of: 2 });
    bench.plan.looks = vec![RAW_LIMIT + 1];
    let report = bench.go();
    let mut reader = JournalReader::new();
    report.journal.lines().try_for_each(|line| reader.line(line)).unwrap();
    let read = reader.finish(LastLine::Whole).unwrap().remove(0);
    for run in [&report.run, &read] {
        assert_eq!((run.briefs.len(), run.samples.len()), (4, 1));
        assert!(run.requests().all(|request| request.output_tokens() == Some((13, TokenSource::Tokenizer))));
    }
    assert_eq!(read.briefs.len(), report.run.briefs.len());
}

#[test]
fn threads_share_one_budget_and_pairs_too() {
    let usage = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":8}}\n\n";
    let script = move |_: usize, _: &Seen| {
        let mut acts = stream(&["a"]);
        acts.insert(acts.len() - 2, chunk(usage));
        acts
    };
    let (target, reference) = (serve_measured(script), serve_measured(script));
    for shape in [|bench| bench, |bench| closed(bench, 4)] {
        let mut bench: Bench = shape(Bench::new(target, 60).warmup(0).beside(&format!("http://{reference}")));
        bench.spec.load.workers = 2;
        bench.spec.budget.output_tokens = Some(8 * 50 + 7);
        let report = bench.go();
        let end = report.run.end.clone().unwrap();
        assert!(matches!(end.reason, EndReason::BudgetSpent { .. }), "{end:?}");
        assert_eq!((end.sent, end.spent.unwrap().output), (50, 400));
        assert_eq!(Run::from_journal(&report.journal).unwrap(), report.run);
    }
}
