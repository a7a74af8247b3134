//! No text from outside is longer than a report shows.

use std::borrow::Cow;

use gate_model::Verdict;
use serde_json::Value;

use crate::escape::strip_ansi;
use crate::layout::clip;

/// How much of a text from outside any report shows, in characters: a server's message, a path, an address.
pub(crate) const TEXT: usize = 600;

/// How much of a name any report shows: of a gate, a scenario, a model.
pub(crate) const NAME: usize = 200;

/// How much is kept of a part of a baseline's key, which is JSON: it is read before it is worded.
const KEY: usize = 65_536;

/// The fields that hold names.
const NAMES: [&str; 6] = ["name", "model", "scenario", "scenarios", "branch", "server"];

/// The verdicts with every text cut to what reports show and without escape sequences, so that the size of a report depends on how many things it
/// tells and not on how long a stranger's texts are. Where none is too long they are as they were.
pub(crate) fn bounded(verdicts: &[Verdict]) -> Cow<'_, [Verdict]> {
    let cut: Vec<Option<Verdict>> = verdicts.iter().map(cut).collect();
    if cut.iter().all(Option::is_none) {
        return Cow::Borrowed(verdicts);
    }
    let chosen = cut.into_iter().zip(verdicts).map(|(cut, whole)| cut.unwrap_or_else(|| whole.clone()));
    Cow::Owned(chosen.collect())
}

/// The verdict with its texts cut; `None` where none is too long.
fn cut(verdict: &Verdict) -> Option<Verdict> {
    let mut value = serde_json::to_value(verdict).ok()?;
    if !shorten(&mut value, TEXT) {
        return None;
    }
    serde_json::from_value(value).ok()
}

/// Cuts every text in the value; whether any was too long.
fn shorten(value: &mut Value, most: usize) -> bool {
    match value {
        // Fewer bytes are fewer characters.
        Value::String(text) if text.len() <= most && !text.contains(['\u{1b}', '\u{9b}']) => false,
        Value::String(text) => {
            // What one text begins another must not end: whatever stood between them would be hidden.
            let clipped = clip(&strip_ansi(text), most);
            let is_cut = clipped.len() != text.len();
            *text = clipped;
            is_cut
        }
        Value::Array(items) => items.iter_mut().filter_map(|item| shorten(item, most).then_some(())).count() > 0,
        Value::Object(fields) => {
            // What differs from a baseline: two parts of keys.
            let is_difference = ["what", "baseline", "run"].iter().all(|field| fields.contains_key(*field));
            let room = |field: &str| match field {
                "baseline" | "run" if is_difference => KEY,
                name if NAMES.contains(&name) => NAME,
                _ => most,
            };
            fields.iter_mut().filter_map(|(field, value)| shorten(value, room(field)).then_some(())).count() > 0
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict() -> Verdict {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/reports/violated.json");
        serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
    }

    #[test]
    fn a_sequence_that_one_text_begins_no_other_ends() {
        let mut verdict = verdict();
        verdict.name = "a\u{1b}]0;b".to_owned();
        verdict.spec_file = "c\u{7}d\u{1b}[31me".to_owned();
        let clean = bounded(std::slice::from_ref(&verdict)).into_owned().remove(0);
        assert_eq!((clean.name.as_str(), clean.spec_file.as_str()), ("a0;b", "c\u{7}de"));
    }

    #[test]
    fn only_what_is_too_long_is_cut() {
        let mut verdict = verdict();
        assert!(matches!(bounded(std::slice::from_ref(&verdict)), Cow::Borrowed(_)));
        verdict.name = "é".repeat(NAME);
        verdict.spec_file = "é".repeat(TEXT);
        assert!(matches!(bounded(std::slice::from_ref(&verdict)), Cow::Borrowed(_)));
        let whole = verdict.clone();
        verdict.name.push('é');
        verdict.run.model = Some("漢".repeat(1_000_000));
        verdict.spec_file.push('é');
        let cut = bounded(std::slice::from_ref(&verdict)).into_owned().remove(0);
        let end = |text: &str| (text.chars().count(), text.chars().last().unwrap());
        assert_eq!(end(&cut.name), (NAME, '…'));
        assert_eq!(end(cut.run.model.as_ref().unwrap()), (NAME, '…'));
        assert_eq!(end(&cut.spec_file), (TEXT, '…'));
        let run = gate_model::RunFacts { model: cut.run.model.clone(), ..whole.run.clone() };
        assert_eq!(cut, Verdict { name: cut.name.clone(), spec_file: cut.spec_file.clone(), run, ..whole });
    }
}
