//! What must agree between runs, in the words of a spec: a part of a baseline's key is canonical JSON.

use std::collections::{BTreeMap, BTreeSet};

use gate_model::{Arrivals, Difference, Iterations, Latency, Nanos, Pace, Pattern, RunOrder, Turns};
use serde_json::Value;

use super::baseline::name;
use super::span;
use crate::layout::listed;
use crate::plan::shape;

/// How many differences are listed.
const LISTED: usize = 3;

/// What a hash that stands for a text begins with.
const HASHED: &str = "sha256:";

/// One value by its path in the spec.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Setting {
    /// A number, or a word of the spec's own.
    Shown(String),
    /// A text from outside, or its hash: it may hold what nobody is to read.
    Text(String),
}

/// What differs between two keys: `load.rps: 41 here, 40 in the baseline; prompts.system differs`.
pub(crate) fn key_differences(differences: &[Difference]) -> String {
    let mut each: Vec<String> = differences.iter().flat_map(difference).collect();
    let more = each.len().saturating_sub(LISTED);
    each.truncate(LISTED);
    match more {
        0 => each.join("; "),
        more => format!("{}; and {more} more", each.join("; ")),
    }
}

fn difference(difference: &Difference) -> Vec<String> {
    let [here, there] = [&difference.run, &difference.baseline].map(|part| settings(&difference.what, part));
    let paths: BTreeSet<&String> = here.keys().chain(there.keys()).collect();
    let told = paths.into_iter().filter(|path| here.get(*path) != there.get(*path)).map(|path| {
        let what = name(path);
        let one = |setting: &Setting| match setting {
            Setting::Shown(words) => name(words),
            Setting::Text(_) => "one".to_owned(),
        };
        match (here.get(path), there.get(path)) {
            (Some(Setting::Shown(here)), Some(Setting::Shown(there))) => {
                format!("{what}: {} here, {} in the baseline", name(here), name(there))
            }
            (Some(here), None) => format!("{what}: {} here, none in the baseline", one(here)),
            (None, Some(there)) => format!("{what}: none here, {} in the baseline", one(there)),
            (Some(_), Some(_)) | (None, None) => format!("{what} differs"),
        }
    });
    told.collect()
}

/// A part of a key as values of the spec: of `load.pace` with `{"open":{"rate":40.0}}` it is `load.rps` with `40`.
pub(crate) fn settings(path: &str, part: &str) -> BTreeMap<String, Setting> {
    // Of a scenario's own values the path begins with its name.
    let (scenario, key) = split_scenario(path);
    let shown = |key: &str, words: String| (format!("{scenario}{key}"), Setting::Shown(words));
    let number = |number: u32| number.to_string();
    match key {
        "load.pace" => {
            if let Ok(pace) = serde_json::from_str::<Pace>(part) {
                let rate = pace.rate().map(|rate| shown("load.rps", rate.0.to_string()));
                return rate.into_iter().chain(pace.cap().map(|cap| shown("load.concurrency", number(cap)))).collect();
            }
        }
        "load.iterations" => match serde_json::from_str::<Iterations>(part) {
            Ok(Iterations::Fixed(count)) => return [shown(key, number(count))].into(),
            Ok(Iterations::Range { first, last, extend }) => {
                let extend = extend.map(|extend| shown("load.extend", number(extend)));
                return extend.into_iter().chain([shown(key, format!("{first}..{last}"))]).collect();
            }
            Ok(Iterations::For(time)) => return [shown("load.duration", span(time))].into(),
            Err(_) => {}
        },
        "load.arrivals" => {
            if let Ok(Arrivals::Gamma(shape)) = serde_json::from_str::<Arrivals>(part) {
                return [shown(key, format!("gamma({shape})"))].into();
            }
        }
        "load.pattern" => match serde_json::from_str::<Pattern>(part) {
            // A file's name is the person's own.
            Ok(Pattern::Trace(file)) => return [(format!("{scenario}load.trace"), Setting::Text(file))].into(),
            Ok(pattern @ (Pattern::Steady | Pattern::Soak)) => return [shown(key, pattern.name().to_owned())].into(),
            Ok(pattern) => return [shown(key, shape(&pattern))].into(),
            Err(_) => {}
        },
        "prompts.turns" => {
            if let Ok(Turns { min, max }) = serde_json::from_str::<Turns>(part) {
                let words = if min == max { number(min) } else { format!("{min}..{max}") };
                return [shown(key, words)].into();
            }
        }
        "prompts.think" | "target.sim.ttft" | "target.sim.tpot" => {
            if let Ok(Latency { mean, stddev, .. }) = serde_json::from_str::<Latency>(part) {
                let spread = if stddev == Nanos::ZERO { String::new() } else { format!(" ± {}", span(stddev)) };
                return [shown(key, format!("{}{spread}", span(mean)))].into();
            }
        }
        "order" | "run" => match serde_json::from_str::<RunOrder>(part) {
            Ok(RunOrder::InTurn) => return [shown("run", "in_turn".to_owned())].into(),
            Ok(RunOrder::Together) => return [shown("run", "together".to_owned())].into(),
            Err(_) => {}
        },
        _ => {}
    }
    let mut settings = BTreeMap::new();
    if part.is_empty() {
        return settings;
    }
    match serde_json::from_str(part) {
        Ok(value) => flatten(path, &value, &mut settings),
        // One that was cut, or is no JSON.
        Err(_) => drop(settings.insert(path.to_owned(), Setting::Text(part.to_owned()))),
    }
    settings
}

/// What the path of a scenario's own value begins with, `scenarios.batch.`, and the path within; of others nothing,
/// and the path. A path that could be read in two ways is not cut, since a person's own text could be taken for a word
/// of the spec.
fn split_scenario(path: &str) -> (&str, &str) {
    let blocks = [".load.", ".prompts.", ".slo.", ".target."];
    let found: Vec<usize> = blocks.iter().flat_map(|block| path.match_indices(block)).map(|(at, _)| at).collect();
    match found.as_slice() {
        [at] if path.starts_with("scenarios.") && !path.contains("extra_body") => path.split_at(at + 1),
        _ => ("", path),
    }
}

/// The values of a part, each by its own path.
fn flatten(path: &str, value: &Value, settings: &mut BTreeMap<String, Setting>) {
    let setting = match value {
        Value::Object(fields) => {
            return fields.iter().for_each(|(field, value)| flatten(&format!("{path}.{field}"), value, settings));
        }
        Value::Null => return,
        Value::String(text) => word(path, text),
        Value::Array(items) => {
            let words: Option<Vec<String>> = items.iter().map(|item| shown_word(path, item.as_str()?)).collect();
            words.map_or_else(|| Setting::Text(value.to_string()), |words| Setting::Shown(listed(&words, "and")))
        }
        Value::Number(number) => Setting::Shown(number.as_f64().unwrap_or_default().to_string()),
        Value::Bool(yes) => Setting::Shown(yes.to_string()),
    };
    settings.insert(path.to_owned(), setting);
}

fn word(path: &str, text: &str) -> Setting {
    shown_word(path, text).map_or_else(|| Setting::Text(text.to_owned()), Setting::Shown)
}

/// A word of the spec's own, as a person writes it there; `None` of a text that is the person's own.
fn shown_word(path: &str, text: &str) -> Option<String> {
    let (_, path) = split_scenario(path);
    let is_choice = (path.starts_with("load.") && path != "load.pattern.trace")
        || ["prompts.cache", "prompts.format", "prompts.output", "prompts.tokens", "target.api", "tokens"]
            .contains(&path)
        || path.ends_with("_tokens.shape");
    let word = match (path, text) {
        ("load.http", "one") => "1",
        ("load.http", "two") => "2",
        _ => text,
    };
    (is_choice && !text.starts_with(HASHED)).then(|| word.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(differences: &[(&str, &str, &str)]) -> String {
        let differences = differences.iter().map(|(what, run, baseline)| Difference {
            what: (*what).to_owned(),
            baseline: (*baseline).to_owned(),
            run: (*run).to_owned(),
        });
        key_differences(&differences.collect::<Vec<_>>())
    }

    #[test]
    fn keys_are_told_as_a_spec_has_them() {
        for (what, run, baseline, words) in [
            (
                "load.pace",
                r#"{"open":{"rate":41.0}}"#,
                r#"{"open":{"rate":40.5}}"#,
                "load.rps: 41 here, 40.5 in the baseline",
            ),
            (
                "load.pace",
                r#"{"open":{"cap":8,"rate":2.0}}"#,
                r#"{"open":{"rate":2.0}}"#,
                "load.concurrency: 8 here, none in the baseline",
            ),
            (
                "load.pace",
                r#"{"closed":{"concurrency":4}}"#,
                r#"{"open":{"rate":2.0}}"#,
                "load.concurrency: 4 here, none in the baseline; load.rps: none here, 2 in the baseline",
            ),
            ("load.iterations", r#"{"fixed":40}"#, r#"{"fixed":50}"#, "load.iterations: 40 here, 50 in the baseline"),
            (
                "load.iterations",
                r#"{"range":{"extend":100,"first":30,"last":50}}"#,
                r#"{"range":{"first":30,"last":50}}"#,
                "load.extend: 100 here, none in the baseline",
            ),
            (
                "load.iterations",
                r#"{"range":{"first":30,"last":50}}"#,
                r#"{"fixed":50}"#,
                "load.iterations: 30..50 here, 50 in the baseline",
            ),
            (
                "prompts.input_tokens",
                r#"{"max":2000,"mean":550.0,"min":50,"shape":"normal","stddev":150.0}"#,
                r#"{"max":2000,"mean":200.0,"min":50,"shape":"lognormal","stddev":150.0}"#,
                "prompts.input_tokens.mean: 550 here, 200 in the baseline; prompts.input_tokens.shape: normal here, \
                 lognormal in the baseline",
            ),
            (
                "load.iterations",
                r#"{"for":1800000000000}"#,
                r#"{"fixed":50}"#,
                "load.duration: 30 min here, none in the baseline; load.iterations: none here, 50 in the baseline",
            ),
            (
                "load.pattern",
                r#"{"ramp":{"from":0.0,"over":900000000000,"to":12.0}}"#,
                "\"steady\"",
                "load.pattern: a ramp from 0 to 12/s over 15 min here, steady in the baseline",
            ),
            (
                "load.arrivals",
                r#"{"gamma":0.5}"#,
                "\"poisson\"",
                "load.arrivals: gamma(0.5) here, poisson in the baseline",
            ),
            (
                "prompts.turns",
                r#"{"max":5,"min":3}"#,
                r#"{"max":1,"min":1}"#,
                "prompts.turns: 3..5 here, 1 in the baseline",
            ),
            (
                "prompts.think",
                r#"{"mean":2000000000,"shape":"lognormal","stddev":500000000}"#,
                r#"{"mean":0,"shape":"lognormal","stddev":0}"#,
                "prompts.think: 2 s ± 500 ms here, 0 ms in the baseline",
            ),
            (
                "prompts.shared_prefix",
                r#"{"groups":4,"tokens":500}"#,
                r#"{"groups":4,"tokens":200}"#,
                "prompts.shared_prefix.tokens: 500 here, 200 in the baseline",
            ),
            ("run", "\"together\"", "\"in_turn\"", "run: together here, in_turn in the baseline"),
            (
                "scenarios.batch.load.pace",
                r#"{"open":{"rate":4.0}}"#,
                r#"{"open":{"rate":2.0}}"#,
                "scenarios.batch.load.rps: 4 here, 2 in the baseline",
            ),
            (
                "scenarios.my.load.test.prompts.cache",
                "\"natural\"",
                "\"bust\"",
                "scenarios.my.load.test.prompts.cache differs",
            ),
            (
                "scenarios.batch.prompts.cache",
                "\"natural\"",
                "\"bust\"",
                "scenarios.batch.prompts.cache: natural here, bust in the baseline",
            ),
            ("load.http", "\"two\"", "\"auto\"", "load.http: 2 here, auto in the baseline"),
            ("load.warmup", "5", "10", "load.warmup: 5 here, 10 in the baseline"),
            ("target.api", "\"ollama\"", "\"openai-chat\"", "target.api: ollama here, openai-chat in the baseline"),
            (
                "tokens",
                r#"["usage"]"#,
                r#"["estimated","usage"]"#,
                "tokens: usage here, estimated and usage in the baseline",
            ),
        ] {
            assert_eq!(told(&[(what, run, baseline)]), words);
        }
    }

    #[test]
    fn no_text_of_a_person_is_repeated() {
        let secret = "\"SEKRET\"";
        assert_eq!(told(&[("load.pattern", r#"{"trace":"SEKRET"}"#, r#"{"trace":"x"}"#)]), "load.trace differs");
        for path in [
            "prompts.system",
            "target.model",
            "prompts.file",
            "prompts.tokenizer",
            "prompts.images",
            "scenarios.batch.prompts.system",
            "baseline.class",
            "new.key",
        ] {
            assert_eq!(told(&[(path, secret, "\"other\"")]), format!("{path} differs"));
            assert_eq!(told(&[(path, secret, "")]), format!("{path}: one here, none in the baseline"));
            assert_eq!(told(&[(path, "", secret)]), format!("{path}: none here, one in the baseline"));
        }
        let hash = |digit: &str| format!("\"sha256:{}\"", digit.repeat(64));
        assert_eq!(told(&[("prompts.system", &hash("a"), &hash("b"))]), "prompts.system differs");
        assert_eq!(told(&[("prompts.system", "a text", &hash("b"))]), "prompts.system differs");
        assert_eq!(told(&[("target.api", r#"{"custom":{"body":"SEKRET"#, "\"tgi\"")]), "target.api differs");
        assert!(!told(&[("target.api", r#"{"custom":{"body":"SEKRET"}}"#, "")]).contains("SEKRET"));
    }

    #[test]
    fn a_long_list_is_cut() {
        let differences = ["load.warmup", "load.workers", "load.a", "load.b", "load.c"].map(|path| (path, "1", "2"));
        assert!(
            told(&differences).ends_with("load.a: 1 here, 2 in the baseline; and 2 more"),
            "{}",
            told(&differences)
        );
        assert_eq!(told(&[]), "");
    }
}
