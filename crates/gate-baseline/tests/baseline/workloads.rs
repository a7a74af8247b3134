//! Patterns, conversations and scenarios: what belongs to the key, and how runs of several sections are kept.

use std::fs;

use gate_baseline::{BaselineError, baseline, key, read_file, unjudged, with_tokens};
use gate_model::{
    Abort, Budget, DEFINITIONS, EndReason, GateSpec, Iterations, JournalLine, JournalSpec, Latency, Nanos, Outcome,
    Override, Pattern, PerSecond, Plan, PlannedRequest, Prices, PromptFormat, PromptSpec, Run, RunEnd, RunHeader,
    RunOrder, Sample, Scenario, Scrape, ServerMetric, Shard, SharedPrefix, Slo, Stage, Turns, Usage,
};
use serde_json::Value;

use crate::support::{folder_shelf, ids, keep, kept, run_of, spec, the_key, verdict_of};

/// What is kept of a run is put together of requests of each scenario.
const EACH: u32 = 12;

fn scenario(name: &str) -> Scenario {
    let mut load = spec().load;
    load.iterations = Iterations::Fixed(EACH);
    Scenario {
        name: name.to_owned(),
        load,
        prompts: PromptSpec::default(),
        slo: Slo::default(),
        model: None,
        extra_body: serde_json::Map::new(),
        weight: 1.0,
    }
}

fn mixed(order: RunOrder) -> GateSpec {
    GateSpec { scenarios: vec![scenario("chat"), scenario("batch")], order, ..spec() }
}

fn hash(spec: &GateSpec) -> String {
    key(spec, DEFINITIONS).hash
}

fn distinct(hashes: impl IntoIterator<Item = String>) {
    let mut hashes: Vec<String> = hashes.into_iter().collect();
    let count = hashes.len();
    hashes.sort();
    hashes.dedup();
    assert_eq!(hashes.len(), count, "each makes another key");
}

#[test]
fn the_shape_of_the_load_and_what_is_sent_belong_to_the_key() {
    let with = |change: fn(&mut GateSpec)| {
        let mut spec = spec();
        change(&mut spec);
        hash(&spec)
    };
    let stage = |to: f64| Stage { from: PerSecond(1.0), to: PerSecond(to), lasts: Nanos::from_secs(60) };
    let stages = |to: f64| {
        let mut spec = spec();
        spec.load.pattern = Pattern::Stages(vec![stage(to)]);
        hash(&spec)
    };
    distinct([
        the_key().hash,
        stages(2.0),
        stages(3.0),
        with(|spec| spec.load.pattern = Pattern::Soak),
        with(|spec| spec.load.pattern = Pattern::Trace("a.csv".to_owned())),
        with(|spec| spec.load.iterations = Iterations::For(Nanos::from_secs(60))),
        with(|spec| spec.prompts.turns = Turns { min: 2, max: 3 }),
        with(|spec| spec.prompts.think = Latency::constant(Nanos::from_secs(1))),
        with(|spec| spec.prompts.shared_prefix = Some(SharedPrefix { tokens: 100, groups: 2 })),
        with(|spec| spec.prompts.shared_prefix = Some(SharedPrefix { tokens: 100, groups: 3 })),
        with(|spec| spec.prompts.format = PromptFormat::Sharegpt),
        with(|spec| spec.prompts.input_empirical = Some("in.txt".to_owned())),
        with(|spec| spec.prompts.output_empirical = Some("out.txt".to_owned())),
        with(|spec| spec.prompts.images = vec!["cat.png".to_owned()]),
    ]);
}

#[test]
fn what_is_judged_and_spent_does_not() {
    let mut other = spec();
    other.budget = Budget { requests: Some(9), ..Budget::default() };
    other.prices = Some(Prices { input: 1.0, cached_input: None, output: 2.0 });
    other.abort = Abort { connection_failures: 1, lost: false };
    other.journal = JournalSpec { tokens: 1, keep_text: true };
    assert_eq!(hash(&other), the_key().hash);

    let mut other = mixed(RunOrder::InTurn);
    let same = hash(&other);
    other.scenarios[0].slo.ttft = Some(Nanos::from_secs(1));
    other.scenarios[0].load.seed = 9;
    // All that is sent comes from the scenarios.
    other.load.warmup = 99;
    other.prompts.system = Some("x".to_owned());
    assert_eq!(hash(&other), same);
}

#[test]
fn each_scenario_belongs_to_the_key() {
    let with = |order: RunOrder, change: fn(&mut GateSpec)| {
        let mut spec = mixed(order);
        change(&mut spec);
        hash(&spec)
    };
    for order in [RunOrder::InTurn, RunOrder::Together] {
        distinct([
            the_key().hash,
            with(order, |_| ()),
            with(order, |spec| spec.scenarios.reverse()),
            with(order, |spec| spec.scenarios.truncate(1)),
            with(order, |spec| spec.scenarios[1].name = "bulk".to_owned()),
            with(order, |spec| spec.scenarios[1].model = Some("large".to_owned())),
            with(order, |spec| spec.scenarios[1].prompts.turns = Turns { min: 1, max: 2 }),
            with(order, |spec| spec.scenarios[0].prompts.turns = Turns { min: 1, max: 2 }),
        ]);
    }
    distinct([
        with(RunOrder::InTurn, |_| ()),
        with(RunOrder::InTurn, |spec| spec.scenarios[1].load.pattern = Pattern::Soak),
        with(RunOrder::Together, |_| ()),
        with(RunOrder::Together, |spec| spec.load.warmup = 99),
        with(RunOrder::Together, |spec| spec.scenarios[1].weight = 3.0),
    ]);
    let weight = with(RunOrder::InTurn, |spec| spec.scenarios[1].weight = 3.0);
    assert_eq!(weight, with(RunOrder::InTurn, |_| ()), "in turn there is nothing to split");
    let parts = key(&mixed(RunOrder::InTurn), DEFINITIONS).parts;
    assert_eq!(parts["scenarios"], r#"["chat","batch"]"#);
    assert_eq!(parts["scenarios.batch.load.iterations"], r#"{"fixed":12}"#);
    assert!(!parts.contains_key("load.pace") && !parts.contains_key("prompts.cache"));
}

/// A section of a gate whose two scenarios run in turn: every request is sent twelve seconds long.
fn section(spec: &GateSpec, number: u16) -> Run {
    let first = u32::from(number) * EACH;
    let planned = |place: u32| PlannedRequest {
        index: first + place,
        scenario: number,
        at: Nanos::from_secs(i64::from(place)),
        ..PlannedRequest::default()
    };
    let requests: Vec<_> = (0..EACH).map(planned).collect();
    let plan = Plan { section: number, ..Plan::new(spec, vec![EACH], requests.clone()) };
    let samples = requests.iter().map(|planned| {
        let mut sample = Sample { start: Some(planned.at), ..Sample::unsent(planned) };
        let at = planned.at + Nanos::from_millis(100 + i64::from(planned.index));
        sample.first_event = Some(at);
        sample.record_token(at, 1_000);
        sample.outcome = Outcome::Ok;
        sample.usage = Some(Usage { output: Some(1), ..Usage::default() });
        sample
    });
    let samples: Vec<_> = samples.collect();
    let warmup = vec![Sample::unsent(&PlannedRequest { scenario: number, ..PlannedRequest::default() })];
    let header = RunHeader::new(spec.clone(), &plan, "0.1.0", "mixed", "2026-11-01T00:00:00Z");
    let end = RunEnd::new(EndReason::Completed, EACH, Nanos::from_secs(13));
    let mut run = Run::new(header, warmup, samples, Some(end));
    let running = ServerMetric::new("running").unwrap();
    run.scrapes = (0..=i64::from(number))
        .map(|second| Scrape { at: Nanos::from_secs(second), values: vec![(running, 2.5)], error: None })
        .collect();
    run
}

fn in_turn() -> Run {
    let spec = mixed(RunOrder::InTurn);
    Run::assemble(vec![section(&spec, 0), section(&spec, 1)]).unwrap()
}

#[test]
fn a_run_of_several_sections_is_kept_whole() {
    let folder = tempfile::tempdir().unwrap();
    let mut shelf = folder_shelf(folder.path());
    let run = in_turn();
    assert_eq!((run.sections.len(), run.scrapes.len(), run.recorded()), (2, 3, 2 * EACH));
    let baseline = keep(&run);
    shelf.save(&baseline).unwrap();
    let loaded = shelf.load("chat", "mixed").unwrap();
    assert_eq!(loaded, baseline);
    assert_eq!(loaded.run.sections(), run.sections());
    let entry = &shelf.list("chat").unwrap().entries[0];
    assert_eq!((entry.requests, entry.ok), (2 * EACH, 2 * EACH));

    // A run of one section that is stopped at a look, and one of a gate whose scenarios run together.
    let spec = mixed(RunOrder::Together);
    let mut together = section(&spec, 0);
    together.samples.iter_mut().for_each(|sample| sample.scenario = u16::from(sample.index >= 5));
    together.header.by_scenario = vec![vec![5, 7]];
    together.header.run_id = "together".to_owned();
    shelf.save(&keep(&together)).unwrap();
    assert_eq!(shelf.load("chat", "together").unwrap(), keep(&together));
}

#[test]
fn sections_that_cannot_be_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut shelf = folder_shelf(folder.path());
    let mut refused = |what: &str, change: fn(&mut Run)| {
        let mut bad = keep(&in_turn());
        change(&mut bad.run);
        let error = shelf.save(&bad).map_err(|error| error.to_string()).expect_err(what);
        assert!(error.contains("its run cannot be"), "{what}: {error}");
    };
    refused("a request is missing", |run| {
        run.samples.pop();
    });
    refused("the end is of fewer", |run| {
        run.samples.pop();
        run.sections[1].end.as_mut().unwrap().sent -= 1;
    });
    refused("a request stands there twice", |run| {
        let twice = run.samples[0].clone();
        run.samples.push(twice);
    });
    refused("a request is of another section", |run| run.samples[0].scenario = 1);
    refused("a request is of no section", |run| run.samples[0].scenario = 7);
    refused("the spec has no such section", |run| run.sections[1].number = 5);
    refused("the sections are out of order", |run| run.sections.reverse());
    refused("a section is there twice", |run| run.sections[1] = run.sections[0].clone());
    refused("a scrape too many", |run| run.scrapes.truncate(2));
    refused("the sum is wrong", |run| run.end.as_mut().unwrap().sent = 3);
    refused("a time is none", |run| run.samples[20].first_token = Some(Nanos(-1)));
    refused("it was not due then", |run| run.samples[0].intended = Nanos(7));
}

#[test]
fn one_shard_is_no_baseline_and_all_of_them_are() {
    let whole = run_of(&spec(), "r", "2026-11-01T00:00:00Z", None);
    let shard = |index: u32| {
        let mut run = whole.clone();
        run.samples.retain(|sample| sample.index % 2 == index - 1);
        run.header.shard = Some(Shard { index, of: 2 });
        run.header.planned = 10;
        run.header.schedule.clear();
        run.end.as_mut().unwrap().sent = 10;
        run
    };
    let error = baseline(&shard(1), &verdict_of(&shard(1)), "2026-11-01T00:00:00Z").unwrap_err();
    assert!(error.to_string().contains("it is shard 1 of 2"), "{error}");
    assert!(matches!(unjudged(shard(2), "x"), Err(BaselineError::OneShard { shard: 2, of: 2, .. })));

    let folder = tempfile::tempdir().unwrap();
    let mut shelf = folder_shelf(folder.path());
    let joined = Run::assemble(vec![shard(2), shard(1)]).unwrap();
    shelf.save(&keep(&joined)).unwrap();
    let loaded = shelf.load("chat", "r").unwrap();
    assert_eq!(loaded, keep(&joined));
    assert_eq!((loaded.run.sections()[0].shards, loaded.run.recorded()), (2, 20));
    assert_eq!(loaded.key, keep(&whole).key, "it was the same load");
}

#[test]
fn a_long_run_is_no_baseline() {
    let mut run = run_of(&spec(), "r", "2026-11-01T00:00:00Z", None);
    run.header.whole = 100_001;
    let samples = std::mem::take(&mut run.samples);
    samples.into_iter().for_each(|sample| run.keep(sample));
    assert!(run.is_long());
    let error = baseline(&run, &verdict_of(&run), "2026-11-01T00:00:00Z").unwrap_err().to_string();
    assert!(error.contains("runs of more than 100000 are not kept"), "{error}");
    assert!(matches!(unjudged(run.clone(), "x"), Err(BaselineError::TooLong { .. })));
    // Where its tokens were counted is known all the same.
    run.samples.clear();
    assert_eq!(with_tokens(the_key(), &run).parts["tokens"], r#"["usage"]"#);
}

#[test]
fn a_journal_in_which_a_scenario_is_missing_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal");
    let spec = mixed(RunOrder::InTurn);
    let lines = |run: &Run| {
        let mut lines = vec![JournalLine::Header(Box::new(run.header.clone()))];
        lines.extend(run.samples.iter().map(|sample| JournalLine::Sample(Box::new(sample.clone()))));
        lines.extend(run.scrapes.iter().cloned().map(JournalLine::Scrape));
        lines.extend(run.end.clone().map(|end| JournalLine::End(Box::new(end))));
        lines.iter().map(|line| serde_json::to_string(line).unwrap() + "\n").collect::<String>()
    };
    let (one, other) = (lines(&section(&spec, 0)), lines(&section(&spec, 1)));
    fs::write(&path, &one).unwrap();
    let error = read_file(&path).unwrap_err().to_string();
    assert!(error.contains("before all of its scenarios had their turn"), "{error}");
    fs::write(&path, one + &other).unwrap();
    assert_eq!(read_file(&path).unwrap().run.recorded(), 2 * EACH);
}

#[test]
fn system_prompts_of_scenarios_are_kept_as_hashes() {
    const TEXT: &str = "You are the butler of Miss Marple.";
    let mut spec = mixed(RunOrder::InTurn);
    spec.scenarios[1].prompts.system = Some(TEXT.to_owned());
    let change = |path: &str| Override { flag: "--set".to_owned(), path: path.to_owned(), value: TEXT.to_owned() };
    let texts = [
        "scenarios",
        "scenarios.batch",
        "scenarios.batch.prompts",
        "scenarios.batch.prompts.system",
        "scenarios.load.prompts.system",
        "scenarios.load",
        "prompts",
    ];
    let others = ["scenarios.batch.load.rps", "scenarios.load.slo.ttft", "scenarios.batch.prompts.cache", "load.rps"];
    spec.overrides = texts.into_iter().chain(others).map(change).collect();
    let run = Run::assemble(vec![section(&spec, 0), section(&spec, 1)]).unwrap();
    let baseline = keep(&run);
    let told = baseline.run.header.spec.overrides.iter().filter(|change| change.value == TEXT);
    assert_eq!(told.map(|change| change.path.as_str()).collect::<Vec<_>>(), others);
    let mut without = baseline.clone();
    without.run.header.spec.overrides.clear();
    assert!(!serde_json::to_string(&without).unwrap().contains("Marple"));
    assert!(baseline.key.parts["scenarios.batch.prompts.system"].starts_with("\"sha256:"));
    assert_eq!(baseline.key.hash, key(&baseline.run.header.spec, DEFINITIONS).hash);
    assert_eq!(baseline.key.hash, hash(&spec));
}

/// Removes fields wherever they are.
fn without(value: &mut Value, fields: &[&str]) {
    match value {
        Value::Object(object) => {
            object.retain(|name, _| !fields.contains(&name.as_str()));
            object.values_mut().for_each(|value| without(value, fields));
        }
        Value::Array(items) => items.iter_mut().for_each(|value| without(value, fields)),
        _ => {}
    }
}

#[test]
fn what_was_kept_before_there_were_scenarios_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let mut shelf = folder_shelf(folder.path());
    shelf.save(&kept("old", 1, None)).unwrap();
    let path = folder.path().join(".gate/baselines/chat").join(&the_key().hash[..12]).join("old.json");
    let mut stored: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let header = &mut stored["run"]["header"];
    let new = ["section", "whole", "first", "planned", "by_scenario", "digest", "shard"];
    new.iter().for_each(|name| _ = header.as_object_mut().unwrap().remove(*name));
    let new = ["pattern", "turns", "think", "format", "order", "budget", "abort", "journal", "scenarios"];
    without(&mut header["spec"], &new);
    fs::write(&path, serde_json::to_vec(&stored).unwrap()).unwrap();
    assert_eq!(shelf.load("chat", "old").unwrap(), kept("old", 1, None));
    assert_eq!(ids(&shelf), ["old"]);
}
