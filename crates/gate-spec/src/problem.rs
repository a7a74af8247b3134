//! What is wrong, before it knows its file.

use std::fmt::Display;

use gate_model::Severity;

use crate::yaml::Site;

/// A diagnostic whose place is still a site of the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) severity: Severity,
    pub(crate) site: Site,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
    /// The environment variable that is needed and not set, where that is what is wrong.
    pub(crate) missing: Option<String>,
}

impl Problem {
    pub(crate) fn error(site: Site, message: impl Display) -> Self {
        Self { severity: Severity::Error, site, message: message.to_string(), hint: None, missing: None }
    }

    pub(crate) fn warning(site: Site, message: impl Display) -> Self {
        Self { severity: Severity::Warning, ..Self::error(site, message) }
    }

    pub(crate) fn hint(self, hint: impl Display) -> Self {
        Self { hint: Some(hint.to_string()), ..self }
    }
}

/// A text from a spec, short enough for a message.
pub(crate) fn clip(text: &str) -> String {
    if text.chars().count() <= 80 { text.to_owned() } else { text.chars().take(79).chain(['…']).collect() }
}

/// The candidate nearest to a word, if one is near enough to be meant.
pub(crate) fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // A distance costs the product of the lengths, and nobody misspells a key into a paragraph.
    if word.len() > 64 {
        return None;
    }
    let word = word.to_lowercase().replace('-', "_");
    candidates
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(&word, candidate), candidate))
        .filter(|(distance, candidate)| {
            let length = candidate.chars().count();
            *distance <= length.max(3) / 3 && *distance < length
        })
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}
