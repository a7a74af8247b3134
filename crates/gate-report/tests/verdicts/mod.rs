//! The verdicts of `fixtures/reports`, by name.

use gate_model::Verdict;

use crate::goldens::folder;

pub(crate) fn verdict(name: &str) -> Verdict {
    let text = std::fs::read_to_string(folder().join(format!("{name}.json"))).unwrap();
    serde_json::from_str(&text).unwrap()
}
