//! What is known once the run has ended.

use gate_baseline::{BaselineError, as_given, confirm, note_differences, read_file, unjudged, with_tokens};
use gate_model::{
    Baseline, BaselineFrom, BaselineUse, Difference, EndReason, Endpoint, EngineParams, Host, HttpVersion, JournalLine,
    Latency, Nanos, NoBaseline, PassedOver, Prior, Reached, Run,
};

use crate::support::{at, keep, kept, kept_few, run_of, spec, the_key};

fn prior_of(baselines: Vec<Baseline>) -> Prior {
    let files = baselines.iter().map(|kept| (kept.id().to_owned(), kept.clone())).collect();
    let mut prior = as_given(files, &the_key()).unwrap();
    assert_eq!(prior.baselines, baselines);
    prior.history = baselines;
    prior.chosen = Some(BaselineUse { by: Some(BaselineFrom::Last(5)), ..prior.chosen.unwrap() });
    prior
}

/// The usual run with its tokens only estimated.
fn estimated(id: &str, minute: u32) -> Run {
    let mut run = run_of(&spec(), id, &at(minute), None);
    run.samples.iter_mut().for_each(|sample| sample.usage = None);
    run
}

#[test]
fn baselines_with_other_tokens_are_dropped() {
    let run = run_of(&spec(), "now", &at(9), None);
    let prior = confirm(prior_of(vec![kept("b", 2, None), keep(&estimated("a", 1))]), &run);
    let chosen = prior.chosen.as_ref().unwrap();
    assert_eq!((prior.baselines.len(), prior.history.len(), chosen.used.len()), (1, 1, 1));
    assert_eq!((chosen.used[0].id.as_str(), &chosen.by), ("b", &Some(BaselineFrom::Last(5))));

    let prior = confirm(prior_of(vec![keep(&estimated("a", 1))]), &run);
    let chosen = prior.chosen.unwrap();
    assert!(prior.baselines.is_empty() && chosen.used.is_empty() && chosen.by.is_none());
    let (baseline, run) = (r#"["estimated"]"#.to_owned(), r#"["usage"]"#.to_owned());
    let why = NoBaseline::Differs(vec![Difference { what: "tokens".to_owned(), baseline, run }]);
    assert_eq!(chosen.passed_over, [PassedOver { from: BaselineFrom::Last(5), why }]);
}

#[test]
fn a_run_without_an_answer_drops_nothing() {
    let mut run = run_of(&spec(), "now", &at(9), None);
    run.samples.clear();
    let prior = prior_of(vec![kept("a", 1, None)]);
    assert_eq!(confirm(prior.clone(), &run), prior);
}

#[test]
fn a_run_is_not_compared_with_itself() {
    let run = run_of(&spec(), "a", &at(1), None);
    let prior = confirm(prior_of(vec![kept("a", 1, None)]), &run);
    assert!(prior.baselines.is_empty());
    let chosen = prior.chosen.unwrap();
    assert_eq!(chosen.passed_over, [PassedOver { from: BaselineFrom::Last(5), why: NoBaseline::Itself }]);
}

#[test]
fn files_that_all_fall_away_say_why() {
    let run = run_of(&spec(), "a", &at(1), None);
    let given = |name: &str, baseline: Baseline| {
        confirm(as_given(vec![(name.to_owned(), baseline)], &the_key()).unwrap(), &run).chosen.unwrap()
    };
    let file = |name: &str| BaselineFrom::File(name.to_owned());
    let itself = given("a.jsonl", kept("a", 1, None));
    assert_eq!(itself.passed_over, [PassedOver { from: file("a.jsonl"), why: NoBaseline::Itself }]);
    let other = given("b.json", keep(&estimated("b", 2)));
    let [PassedOver { from, why: NoBaseline::Differs(differences) }] = &other.passed_over[..] else {
        panic!("{other:?}");
    };
    assert_eq!((from, differences[0].what.as_str(), other.used.len()), (&file("b.json"), "tokens", 0));
}

#[test]
fn baselines_of_too_few_requests_are_not_used() {
    let files = vec![("few".to_owned(), kept_few("a", 1, None, 19)), ("enough".to_owned(), kept_few("b", 2, None, 20))];
    let prior = as_given(files, &the_key()).unwrap();
    let why = NoBaseline::TooFewOk { ok: 19, needed: 20 };
    let chosen = prior.chosen.as_ref().unwrap();
    assert_eq!(chosen.passed_over, [PassedOver { from: BaselineFrom::File("few".to_owned()), why: why.clone() }]);
    assert_eq!(prior.baselines.iter().map(Baseline::id).collect::<Vec<_>>(), ["b"]);

    let mut prior = prior_of(vec![kept("b", 2, None)]);
    prior.baselines = vec![kept_few("b", 2, None, 0)];
    let prior = confirm(prior, &run_of(&spec(), "now", &at(9), None));
    let why = NoBaseline::TooFewOk { ok: 0, needed: 20 };
    assert_eq!(prior.chosen.unwrap().passed_over, [PassedOver { from: BaselineFrom::Last(5), why }]);
    assert!(prior.baselines.is_empty());
}

#[test]
fn a_run_is_given_once() {
    let given = |files: Vec<(&str, Baseline)>| {
        as_given(files.into_iter().map(|(name, kept)| (name.to_owned(), kept)).collect(), &the_key())
    };
    let mut copied = kept("a", 1, None);
    copied.run.header.run_id = "imported-again".to_owned();
    for same in [kept("a", 5, None), copied] {
        let error =
            given(vec![("x.json", kept("a", 1, None)), ("o", kept("o", 2, None)), ("y.json", same)]).unwrap_err();
        assert!(matches!(error, BaselineError::SameRun { .. }), "{error}");
        let error = error.to_string();
        assert!(error.contains("`x.json` and `y.json`: both are run a"), "{error}");
    }
    let many = |count: u32| (0..count).map(|number| ("f", kept(&format!("a{number}"), number, None))).collect();
    assert_eq!(given(many(20)).unwrap().baselines.len(), 20);
    let error = given(many(21)).unwrap_err().to_string();
    assert!(error.contains("21 files") && error.contains("at most 20"), "{error}");
}

#[test]
fn what_the_spec_asks_of_its_target_beside_the_key_is_noted() {
    let engine = |millis: i64| {
        let tpot = Latency::constant(Nanos::from_millis(millis));
        Endpoint::Sim(Box::new(EngineParams { tpot, ..EngineParams::default() }))
    };
    let mut before = run_of(&spec(), "b", &at(2), None);
    before.header.spec.target.endpoint = engine(8);
    let mut run = run_of(&spec(), "now", &at(9), None);
    run.header.spec.target.endpoint = engine(22);
    run.header.spec.target.extra_body.insert("temperature".to_owned(), 0.into());
    let mut prior = prior_of(vec![keep(&before)]);
    note_differences(&mut prior, &run);
    let differences = &prior.chosen.as_ref().unwrap().differences;
    let paths: Vec<&str> = differences.iter().map(|it| it.what.as_str()).collect();
    assert_eq!(paths, ["target.extra_body.temperature", "target.sim.tpot"]);
    assert!(differences[1].baseline != differences[1].run && differences[0].baseline.is_empty());
}

#[test]
fn what_is_noted_and_differs_is_named() {
    let mut run = run_of(&spec(), "now", &at(9), None);
    let mut prior = prior_of(vec![kept("b", 2, None), kept("a", 1, None)]);
    note_differences(&mut prior, &run);
    assert_eq!(prior.chosen.as_ref().unwrap().differences, []);
    run.header.gate = "0.2.0".to_owned();
    run.header.spec.target.endpoint = Endpoint::Url("http://new/v1".to_owned());
    run.header.host = Some(Host {
        cores: 8,
        cpu: Some("c".to_owned()),
        kernel: Some("k".to_owned()),
        runner: Some("r".to_owned()),
        region: Some("eu".to_owned()),
        ..Host::default()
    });
    let server = Some("engine/2".to_owned());
    let reached = Reached { addresses: Vec::new(), proxy: None, http: HttpVersion::Http1, server };
    run.end.as_mut().unwrap().reached = Some(reached);
    note_differences(&mut prior, &run);
    let differences = &prior.chosen.as_ref().unwrap().differences;
    let found: Vec<_> =
        differences.iter().map(|it| (it.what.as_str(), it.baseline.as_str(), it.run.as_str())).collect();
    assert_eq!(
        found,
        [
            ("system", "linux-x86_64", ""),
            ("cores", "4", "8"),
            ("cpu", "", "c"),
            ("kernel", "", "k"),
            ("runner", "", "r"),
            ("region", "", "eu"),
            ("gate", "0.1.0", "0.2.0"),
            ("target", "http://127.0.0.1:8000/v1", "http://new/v1"),
            ("server", "", "engine/2"),
        ]
    );
    assert_eq!(prior.baselines.len(), 2, "it disables nothing");
}

#[test]
fn files_that_are_named_are_used_as_given_where_their_key_agrees() {
    let mut other = spec();
    other.load.warmup = 1;
    let mut imported = keep(&run_of(&other, "c", &at(3), None));
    imported.run.header.imported_from = Some("samples".to_owned());
    let differing = keep(&run_of(&other, "b", &at(2), None));
    let files = [("one", kept("a", 1, None)), ("two", differing), ("three", imported)];
    let key = with_tokens(the_key(), &run_of(&spec(), "now", &at(9), None));
    let prior = as_given(files.map(|(name, kept)| (name.to_owned(), kept)).into(), &key).unwrap();
    let chosen = prior.chosen.unwrap();
    assert_eq!((chosen.store.as_str(), chosen.by), ("one, two, three", None));
    assert_eq!(chosen.used.iter().map(|used| used.id.as_str()).collect::<Vec<_>>(), ["a", "c"]);
    assert_eq!(chosen.used[1].imported_from.as_deref(), Some("samples"));
    let [PassedOver { from: BaselineFrom::File(name), why: NoBaseline::Differs(differences) }] =
        &chosen.passed_over[..]
    else {
        panic!("{:?}", chosen.passed_over);
    };
    assert_eq!((name.as_str(), differences[0].what.as_str(), differences.len()), ("two", "load.warmup", 1));
}

#[test]
fn a_file_is_a_baseline_or_a_journal() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");
    let run = run_of(&spec(), "a", &at(1), None);
    let put = |text: String| std::fs::write(&path, text).unwrap();
    put(serde_json::to_string_pretty(&keep(&run)).unwrap());
    assert_eq!(read_file(&path).unwrap(), keep(&run));

    let journal = |run: &Run| {
        let samples = run.samples.iter().map(|sample| JournalLine::Sample(Box::new(sample.clone())));
        let lines = std::iter::once(JournalLine::Header(Box::new(run.header.clone()))).chain(samples);
        let lines = lines.chain(run.end.clone().map(|end| JournalLine::End(Box::new(end))));
        lines.map(|line| serde_json::to_string(&line).unwrap() + "\n").collect::<String>()
    };
    put(journal(&run));
    let read = read_file(&path).unwrap();
    assert_eq!((&read.key, &read.run), (&keep(&run).key, &keep(&run).run));
    assert_eq!(read.saved, at(1));

    let killed = Run { end: None, ..run.clone() };
    put(journal(&killed));
    let error = read_file(&path).unwrap_err().to_string();
    assert!(error.contains("file") && error.contains("did not end as planned"), "{error}");
    let mut interrupted = run.clone();
    interrupted.end.as_mut().unwrap().reason = EndReason::Interrupted;
    assert!(unjudged(interrupted, "x").is_err());
    for text in ["", "{}", "hello", "[1]", "{\"type\":\"header\"}\n"] {
        put(text.to_owned());
        assert!(matches!(read_file(&path), Err(BaselineError::Refused(_))), "{text}");
    }
    assert!(matches!(read_file(&folder.path().join("none")), Err(BaselineError::Read { .. })));
}
