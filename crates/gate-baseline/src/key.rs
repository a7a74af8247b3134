//! The key: what must agree between a run and its baselines.

use std::collections::{BTreeMap, BTreeSet};

use gate_model::{
    Arm, BaselineKey, Difference, Endpoint, GateSpec, Load, Outcome, PromptSpec, Run, RunOrder, Scenario, TokenSource,
};
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};

/// How many characters of a part are shown where it differs.
const MOST_SHOWN: usize = 120;

/// The part that only a run which has ended knows.
pub(crate) const TOKENS: &str = "tokens";

/// The part that a person wrote as prose, whole or at its end: a scenario has one of its own.
const SYSTEM: &str = "prompts.system";

/// Keys that came after runs were kept without them: at their defaults they are no parts, so that those runs are still
/// compared with.
const LATER: [&str; 4] = ["pattern", "turns", "think", "format"];

/// What the hash of a text starts with.
const HASHED: &str = "sha256:";

/// The key of a gate's runs, under this version of the metrics' definitions.
///
/// Its parts are each key of `load` but the seed, each of `prompts`, `target.api`, `target.model`, `definitions` and
/// `baseline.class`, as they are serialised: a key that a later version adds is a part by itself, and one that is
/// absent or null is none, so that a new optional key changes nothing for those who don't use it. Of `prompts.file` and
/// `prompts.tokenizer` only the names count: what is in the files is not known here. Of `prompts.system` there is only
/// the hash: keys are shown and kept, prompts are not.
///
/// Of a gate with scenarios it is what each of them sends that counts: the scenarios' names in order, `run`, and of each
/// scenario its prompts, its model and, where they run in turn, its load; together there is one load, split by their
/// weights. What no scenario takes over is not sent, and no part.
#[must_use]
pub fn key(spec: &GateSpec, definitions: u32) -> BaselineKey {
    let mut parts = BTreeMap::new();
    if spec.scenarios.is_empty() {
        add_load(&mut parts, "load", &spec.load);
        add_prompts(&mut parts, "prompts", &spec.prompts);
    } else {
        add(&mut parts, "scenarios", value(&spec.scenario_names()));
        add(&mut parts, "run", value(&spec.order));
        if spec.order == RunOrder::Together {
            add_load(&mut parts, "load", &spec.load);
        }
        spec.scenarios.iter().for_each(|scenario| add_scenario(&mut parts, scenario, spec.order));
    }
    add(&mut parts, "target.api", value(&spec.target.api));
    add(&mut parts, "target.model", value(&spec.target.model));
    add(&mut parts, "definitions", value(&definitions));
    add(&mut parts, "baseline.class", value(&spec.baseline.class));
    BaselineKey { hash: hash(&parts), parts }
}

/// What a spec says of its target that is no part of the key, by its path: what the built-in engine is asked to be like,
/// and what is added to each request. Who changes them wants to see what that does, and is told that they changed.
pub(crate) fn beside(spec: &GateSpec) -> BaselineKey {
    let mut parts = BTreeMap::new();
    if let Endpoint::Sim(engine) = &spec.target.endpoint {
        add_block(&mut parts, "target.sim", engine, &[]);
    }
    add_block(&mut parts, "target.extra_body", &spec.target.extra_body, &[]);
    BaselineKey { hash: String::new(), parts }
}

/// The same with where the run's output tokens are counted: the sources among the target's `ok` requests. A run without
/// any has no such part.
#[must_use]
pub fn with_tokens(mut key: BaselineKey, run: &Run) -> BaselineKey {
    let ok = run.requests().filter(|request| request.arm() == Arm::Target && request.outcome() == Outcome::Ok);
    let names = ok.filter_map(gate_model::Request::output_tokens).map(|(_, source)| match source {
        TokenSource::Usage => "usage",
        TokenSource::Tokenizer => "tokenizer",
        TokenSource::Estimated => "estimated",
    });
    let names: BTreeSet<&str> = names.collect();
    key.parts.remove(TOKENS);
    if !names.is_empty() {
        add(&mut key.parts, TOKENS, value(&names));
    }
    key
}

/// SHA-256 of the parts but for `tokens`, in hexadecimal.
pub(crate) fn hash(parts: &BTreeMap<String, String>) -> String {
    let counted: BTreeMap<_, _> = parts.iter().filter(|(path, _)| *path != TOKENS).collect();
    digest(&value(&counted).to_string())
}

/// The prompts with the hash of what a person wrote in its place. That of a hash is itself, so a run that is kept has
/// the key it always had.
pub(crate) fn without_text(mut prompts: PromptSpec) -> PromptSpec {
    let is_hashed = |text: &str| {
        text.strip_prefix(HASHED).is_some_and(|hash| hash.len() == 64 && hash.bytes().all(|it| it.is_ascii_hexdigit()))
    };
    if let Some(text) = prompts.system.as_mut().filter(|text| !is_hashed(text)) {
        *text = hashed(text);
    }
    prompts
}

/// The hash that stands for a text.
pub(crate) fn hashed(text: &str) -> String {
    format!("{HASHED}{}", digest(text))
}

fn digest(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What differs between two keys. Where the run's tokens are not known yet, those of the baseline say nothing.
pub(crate) fn differences(baseline: &BaselineKey, run: &BaselineKey) -> Vec<Difference> {
    let paths: BTreeSet<&String> = baseline.parts.keys().chain(run.parts.keys()).collect();
    let of = |key: &BaselineKey, path: &str| key.parts.get(path).cloned().unwrap_or_default();
    paths
        .into_iter()
        .filter(|path| *path != TOKENS || run.parts.contains_key(TOKENS))
        .map(|path| (path, of(baseline, path), of(run, path)))
        .filter(|(_, baseline, run)| baseline != run)
        .map(|(path, baseline, run)| Difference {
            what: path.clone(),
            baseline: shown(path, baseline),
            run: shown(path, run),
        })
        .collect()
}

/// A part as a report shows it: some may be long. What stands where a hash should is somebody's text, and is not shown.
fn shown(path: &str, part: String) -> String {
    if path.ends_with(SYSTEM) && !part.is_empty() && !part.starts_with(&format!("\"{HASHED}")) {
        return "a text".to_owned();
    }
    match part.char_indices().nth(MOST_SHOWN) {
        Some((end, _)) => part.get(..end).unwrap_or_default().to_owned() + "…",
        None => part,
    }
}

fn add_load(parts: &mut BTreeMap<String, String>, block: &str, load: &Load) {
    add_block(parts, block, load, &["seed"]);
}

fn add_prompts(parts: &mut BTreeMap<String, String>, block: &str, prompts: &PromptSpec) {
    add_block(parts, block, &without_text(prompts.clone()), &[]);
}

fn add_scenario(parts: &mut BTreeMap<String, String>, scenario: &Scenario, order: RunOrder) {
    let block = format!("scenarios.{}", scenario.name);
    match order {
        RunOrder::InTurn => add_load(parts, &format!("{block}.load"), &scenario.load),
        RunOrder::Together => add(parts, &format!("{block}.weight"), value(&scenario.weight)),
    }
    add_prompts(parts, &format!("{block}.prompts"), &scenario.prompts);
    add(parts, &format!("{block}.model"), value(&scenario.model));
}

fn add_block<T: Serialize + Default>(parts: &mut BTreeMap<String, String>, block: &str, content: &T, except: &[&str]) {
    let usual = value(&T::default());
    let is_new = |name: &str, field: &Value| LATER.contains(&name) && usual.get(name) == Some(field);
    if let Value::Object(fields) = value(content) {
        let fields =
            fields.into_iter().filter(|(name, field)| !except.contains(&name.as_str()) && !is_new(name, field));
        fields.for_each(|(name, field)| add(parts, &format!("{block}.{name}"), field));
    }
}

fn add(parts: &mut BTreeMap<String, String>, path: &str, mut part: Value) {
    drop_nulls(&mut part);
    part.sort_all_objects();
    if !part.is_null() {
        parts.insert(path.to_owned(), part.to_string());
    }
}

fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|_, field| !field.is_null());
            fields.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

/// Plain data of a spec always has a JSON form.
fn value(content: &impl Serialize) -> Value {
    serde_json::to_value(content).unwrap_or_default()
}
