//! What belongs to the key, and what is kept of a run.

use gate_baseline::{BaselineError, as_given, baseline, key, with_tokens};
use gate_model::{
    Api, Arrivals, Cache, Clock, Connections, DEFINITIONS, Endpoint, GateSpec, Http, Iterations, Length, Nanos,
    NoBaseline, Outcome, OutputLength, Override, Pace, PerSecond, Secret, Shape, TokenPolicy,
};

use crate::support::{folder_shelf, keep, run_of, spec, the_key, verdict_of};

fn hash_with(change: impl FnOnce(&mut GateSpec)) -> String {
    let mut spec = spec();
    change(&mut spec);
    key(&spec, DEFINITIONS).hash
}

#[test]
fn every_key_of_the_load_but_the_seed_and_every_key_of_the_prompts_matters() {
    let same = the_key().hash;
    assert_eq!(hash_with(|spec| spec.load.seed = 7), same);
    let length = Length { mean: 1.0, stddev: 0.0, min: 1, max: 1, shape: Shape::Normal };
    type Change = fn(&mut GateSpec);
    let changes: [(&str, Change); 16] = [
        ("load.pace", |spec| spec.load.pace = Pace::Open { rate: PerSecond(2.5), cap: None }),
        ("load.pace", |spec| spec.load.pace = Pace::Closed { concurrency: 2 }),
        ("load.iterations", |spec| spec.load.iterations = Iterations::Fixed(3)),
        ("load.warmup", |spec| spec.load.warmup = 6),
        ("load.arrivals", |spec| spec.load.arrivals = Arrivals::Constant),
        ("load.connections", |spec| spec.load.connections = Connections::Fresh),
        ("load.http", |spec| spec.load.http = Http::Two),
        ("load.clock", |spec| spec.load.clock = Clock::User),
        ("load.workers", |spec| spec.load.workers = 2),
        ("prompts.cache", |spec| spec.prompts.cache = Cache::Warm),
        ("prompts.output", |spec| spec.prompts.output = OutputLength::Exact),
        ("prompts.system", |spec| spec.prompts.system = Some("be brief".to_owned())),
        ("prompts.file", |spec| spec.prompts.file = Some("rows.jsonl".to_owned())),
        ("prompts.tokenizer", |spec| spec.prompts.tokenizer = Some("tokenizer.json".to_owned())),
        ("prompts.tokens", |spec| spec.prompts.tokens = TokenPolicy::AcceptEstimate),
        ("target.api", |spec| spec.target.api = Api::Anthropic),
    ];
    let mut hashes: Vec<String> = changes.iter().map(|(_, change)| hash_with(change)).collect();
    hashes.extend([
        hash_with(|spec| spec.prompts.input_tokens = length),
        hash_with(|spec| spec.prompts.output_tokens = length),
        hash_with(|spec| spec.target.model = None),
        hash_with(|spec| spec.baseline.class = Some("a10g".to_owned())),
        key(&spec(), DEFINITIONS + 1).hash,
        same,
    ]);
    let count = hashes.len();
    hashes.sort();
    hashes.dedup();
    assert_eq!(hashes.len(), count, "each makes another key");

    // None that is added to the spec later is forgotten: all that is serialised is a part.
    let mut parts: Vec<String> = vec!["definitions".to_owned(), "target.api".to_owned(), "target.model".to_owned()];
    for (block, value) in
        [("load", serde_json::to_value(spec().load)), ("prompts", serde_json::to_value(spec().prompts))]
    {
        let value = value.unwrap();
        // Later keys are parts where they are not at their defaults, so that no run that was kept before is lost.
        let later = ["seed", "pattern", "turns", "think", "format"];
        let fields = value
            .as_object()
            .unwrap()
            .iter()
            .filter(|(name, field)| !later.contains(&name.as_str()) && !field.is_null());
        parts.extend(fields.map(|(name, _)| format!("{block}.{name}")));
    }
    parts.sort();
    assert_eq!(the_key().parts.into_keys().collect::<Vec<_>>(), parts);
    for (path, _) in
        changes.iter().filter(|(path, _)| !["prompts.system", "prompts.file", "prompts.tokenizer"].contains(path))
    {
        assert!(parts.contains(&(*path).to_owned()), "{path}");
    }
}

#[test]
fn what_is_to_be_compared_is_no_part_of_the_key() {
    let same = the_key().hash;
    for hash in [
        hash_with(|spec| spec.target.endpoint = Endpoint::Url("http://other/v1".to_owned())),
        hash_with(|spec| spec.target.key = Some(Secret::new("sk-123456"))),
        hash_with(|spec| spec.timeouts.total = Nanos::from_secs(9)),
        hash_with(|spec| spec.name = "renamed".to_owned()),
        hash_with(|spec| spec.file = "elsewhere.yaml".to_owned()),
        hash_with(|spec| spec.slo.ttft = Some(Nanos::from_secs(1))),
    ] {
        assert_eq!(hash, same);
    }
}

#[test]
fn parts_are_canonical_json() {
    let key = the_key();
    assert_eq!(key.parts["load.pace"], r#"{"open":{"rate":2.0}}"#);
    assert_eq!(
        key.parts["prompts.output_tokens"],
        r#"{"max":500,"mean":150.0,"min":10,"shape":"normal","stddev":20.0}"#
    );
    assert_eq!((key.parts["target.api"].as_str(), key.parts["definitions"].as_str()), (r#""openai-chat""#, "1"));
    // Another hash of the same gate would make every stored run unusable.
    assert_eq!(key.hash, "ee3fda366ce4b553eadec4b7a0c6460cc1e8e09e1d71c014c50a66bbb4468287");
}

#[test]
fn tokens_are_a_part_and_not_in_the_hash() {
    let mut run = run_of(&spec(), "r", "2026-11-01T00:00:00Z", None);
    let counted = |run: &gate_model::Run| with_tokens(the_key(), run);
    assert_eq!(counted(&run).parts["tokens"], r#"["usage"]"#);
    assert_eq!(counted(&run).hash, the_key().hash);
    run.samples.truncate(2);
    run.samples[1].usage = None;
    assert_eq!(counted(&run).parts["tokens"], r#"["estimated","usage"]"#);
    run.samples[1].outcome = Outcome::Http5xx;
    assert_eq!(counted(&run).parts["tokens"], r#"["usage"]"#, "only those of `ok` requests count");
    run.samples[0].outcome = Outcome::Http5xx;
    assert!(!counted(&run).parts.contains_key("tokens"));
    assert!(!with_tokens(with_tokens(the_key(), &run), &run).parts.contains_key("tokens"));
}

#[test]
fn all_but_the_times_of_tokens_is_kept() {
    let run = run_of(&spec(), "r", "2026-11-01T00:00:00Z", None);
    assert!(!run.samples[0].token_times.is_empty());
    let kept = keep(&run);
    let mut without = run.clone();
    without.samples.iter_mut().for_each(|sample| sample.token_times.clear());
    assert_eq!(kept.run, without);
    assert_eq!(kept.key, with_tokens(the_key(), &run));
    assert_eq!(kept.id(), "r");
}

#[test]
fn what_a_person_wrote_is_kept_as_a_hash() {
    const TEXT: &str = "You are the butler of Miss Marple.";
    const HASH: &str = "sha256:a3d05f5e1e4dd58711e98b2443646932a1bdf5a53d43ff238aadbb70d837311c";
    let mut told = spec();
    told.prompts.system = Some(TEXT.to_owned());
    let change = |path: &str| Override { flag: "--set".to_owned(), path: path.to_owned(), value: TEXT.to_owned() };
    told.overrides = vec![change("prompts.system"), change("load.rps")];
    let run = run_of(&told, "r", "2026-11-01T00:00:00Z", None);
    let kept = keep(&run);
    assert_eq!(kept.key, with_tokens(key(&told, DEFINITIONS), &run));
    assert_eq!(kept.key.hash, key(&kept.run.header.spec, DEFINITIONS).hash, "and has the same key from then on");
    assert_ne!(kept.key.hash, the_key().hash);
    assert_eq!(kept.key.parts["prompts.system"], format!("\"{HASH}\""));
    let spec = &kept.run.header.spec;
    assert_eq!((spec.prompts.system.as_deref(), spec.overrides[0].value.as_str()), (Some(HASH), HASH));
    assert_eq!(spec.overrides[1], change("load.rps"), "others say what they said");
    let mut without = kept.clone();
    without.run.header.spec.overrides.clear();
    let text = serde_json::to_string(&without).unwrap();
    assert!(!text.contains("Marple"), "{text}");

    // What it differs in does not say it either, even where an older file does.
    let folder = tempfile::tempdir().unwrap();
    let mut shelf = folder_shelf(folder.path());
    shelf.save(&kept).unwrap();
    assert_eq!(shelf.load("chat", "r").unwrap(), kept);
    let prior =
        |baseline: &gate_model::Baseline| as_given(vec![("f".to_owned(), baseline.clone())], &the_key()).unwrap();
    let mut older = kept.clone();
    older.key.parts.insert("prompts.system".to_owned(), format!("\"{TEXT}\""));
    for (baseline, shown) in [(&kept, format!("\"{HASH}\"")), (&older, "a text".to_owned())] {
        let chosen = prior(baseline).chosen.unwrap();
        let NoBaseline::Differs(differences) = &chosen.passed_over[0].why else { panic!("{chosen:?}") };
        assert_eq!(differences.iter().find(|it| it.what == "prompts.system").unwrap().baseline, shown);
    }
}

#[test]
fn only_valid_runs_are_kept() {
    let run = run_of(&spec(), "r1", "2026-11-01T00:00:00Z", None);
    let mut verdict = verdict_of(&run);
    verdict.valid = false;
    let error = baseline(&run, &verdict, "2026-11-01T00:00:00Z").unwrap_err();
    assert!(matches!(error, BaselineError::Invalid(_)) && error.to_string().contains("run r1"), "{error}");
    let other = run_of(&spec(), "r2", "2026-11-01T00:00:00Z", None);
    let error = baseline(&other, &verdict_of(&run), "2026-11-01T00:00:00Z").unwrap_err();
    assert!(error.to_string().contains("the verdict is about run r1"), "{error}");
    let odd = run_of(&spec(), "../r", "2026-11-01T00:00:00Z", None);
    assert!(baseline(&odd, &verdict_of(&odd), "2026-11-01T00:00:00Z").unwrap_err().to_string().contains("`../r`"));
}
