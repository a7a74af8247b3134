//! What must agree between runs, in the words of a spec: a part of a baseline's key is canonical JSON.

use std::collections::{BTreeMap, BTreeSet};

use gate_model::{Difference, Iterations, Pace};
use serde_json::Value;

use super::baseline::name;
use crate::layout::listed;

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
    let shown = |path: &str, words: String| (path.to_owned(), Setting::Shown(words));
    let number = |number: u32| number.to_string();
    match path {
        "load.pace" => {
            if let Ok(pace) = serde_json::from_str::<Pace>(part) {
                let rate = pace.rate().map(|rate| shown("load.rps", rate.0.to_string()));
                return rate.into_iter().chain(pace.cap().map(|cap| shown("load.concurrency", number(cap)))).collect();
            }
        }
        "load.iterations" => match serde_json::from_str::<Iterations>(part) {
            Ok(Iterations::Fixed(count)) => return [shown(path, number(count))].into(),
            Ok(Iterations::Range { first, last, extend }) => {
                let extend = extend.map(|extend| shown("load.extend", number(extend)));
                return extend.into_iter().chain([shown(path, format!("{first}..{last}"))]).collect();
            }
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
    let is_choice = path.starts_with("load.")
        || ["prompts.cache", "prompts.output", "prompts.tokens", "target.api", "tokens"].contains(&path)
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
        for path in ["prompts.system", "target.model", "prompts.file", "prompts.tokenizer", "baseline.class", "new.key"]
        {
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
