//! What the whole-spec rules need to know about where things were written.

use std::collections::BTreeMap;

use gate_model::Place;

use crate::problem::Problem;
use crate::source::Source;
use crate::walk::Walked;
use crate::yaml::{Site, Span};

/// The places of a walked spec, and the problems found in it as a whole.
pub(crate) struct Context<'a> {
    pub(crate) walked: &'a Walked,
    pub(crate) source: &'a Source<'a>,
    pub(crate) environment: &'a BTreeMap<String, String>,
    /// Variables that credentials were taken from without being named, with what asks for them.
    pub(crate) asked: BTreeMap<String, Site>,
    pub(crate) problems: Vec<Problem>,
}

impl Context<'_> {
    /// Where the value of a path stands; for an absent one, where the map it belongs to is named.
    pub(crate) fn site(&self, path: &str) -> Site {
        if let Some(spot) = self.walked.spots.get(path) {
            return spot.site;
        }
        match path.rsplit_once('.') {
            Some((above, _)) => self.key(above),
            None => Site::Whole,
        }
    }

    /// Where the key of a path stands.
    pub(crate) fn key(&self, path: &str) -> Site {
        match self.walked.spots.get(path) {
            Some(spot) => spot.key.unwrap_or(spot.site),
            None => path.rsplit_once('.').map_or(Site::Whole, |(above, _)| self.key(above)),
        }
    }

    /// The place of a path's value.
    pub(crate) fn place(&self, path: &str) -> Place {
        self.source.place(self.site(path))
    }

    /// Whether nothing at, above or below a path was reported: only then does its value mean anything.
    pub(crate) fn is_sound(&self, path: &str) -> bool {
        let below = |inner: &str, outer: &str| {
            inner
                .strip_prefix(outer)
                .is_some_and(|rest| outer.is_empty() || rest.is_empty() || rest.starts_with(['.', '[']))
        };
        !self.walked.unsound.iter().any(|unsound| below(unsound, path) || below(path, unsound))
    }

    /// The first variable in a path's value.
    pub(crate) fn variable(&self, path: &str) -> Option<&str> {
        self.walked.spots.get(path)?.variables.first().map(String::as_str)
    }

    /// Whether the spec or a flag gives a value at a path or below it.
    pub(crate) fn is_written(&self, path: &str) -> bool {
        self.walked.spots.contains_key(path)
    }

    /// Reports an error at the value of a path.
    pub(crate) fn error(&mut self, path: &str, message: String, hint: &str) {
        let site = self.site(path);
        self.problems.push(Problem::error(site, message).hint(hint));
    }

    /// The stretch of a path's value that some bytes of its text are, as far as the source shows them.
    pub(crate) fn part(&self, path: &str, text: &str, bytes: std::ops::Range<usize>) -> Site {
        let site = self.site(path);
        let Site::Text(span) = site else { return site };
        let line = self.source.line(span.line);
        let skipped = usize::try_from(span.column.saturating_sub(1)).unwrap_or(usize::MAX);
        let from = line.char_indices().nth(skipped).map_or(line.len(), |(at, _)| at);
        let Some(found) = line.get(from..).and_then(|rest| rest.find(text)) else { return site };
        let count = |text: &str| u32::try_from(text.chars().count()).unwrap_or(u32::MAX);
        let before = count(line.get(from..from + found).unwrap_or(""));
        let offset = before.saturating_add(count(text.get(..bytes.start).unwrap_or("")));
        let length = count(text.get(bytes).unwrap_or(""));
        Site::Text(Span { line: span.line, ..span.part(offset, length) })
    }
}
