//! The line of commits that baselines are chosen along.

use std::collections::HashMap;

use gate_model::Commit;

/// How many commits a lineage has at most.
pub(crate) const LONGEST: usize = 10_000;

/// A commit and its first parents, nearest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lineage {
    /// The commits' ids.
    pub ids: Vec<String>,
    /// Whether the clone's history is cut off, so that older ones are not known.
    pub is_cut: bool,
}

impl Lineage {
    /// The same line, continued where the clone's history is cut off by what stored runs know of their own commits.
    /// First parents are a single line, so whichever of them knows the oldest commit knows what comes before.
    #[must_use]
    pub fn continued<'a>(mut self, stored: impl IntoIterator<Item = &'a Commit>) -> Self {
        if !self.is_cut {
            return self;
        }
        let stored: Vec<Vec<&str>> = stored
            .into_iter()
            .map(|commit| std::iter::once(&commit.id).chain(&commit.parents).map(String::as_str).collect())
            .collect();
        while self.ids.len() < LONGEST {
            let Some(oldest) = self.ids.last() else { break };
            let beyond = stored.iter().filter_map(|line| {
                let at = line.iter().position(|id| id == oldest)?;
                line.get(at + 1..)
            });
            match beyond.max_by_key(|line| line.len()) {
                Some(line) if !line.is_empty() => {
                    let room = LONGEST - self.ids.len();
                    let more: Vec<String> = line.iter().take(room).map(|id| (*id).to_owned()).collect();
                    self.ids.extend(more);
                }
                _ => break,
            }
        }
        self
    }

    /// How many commits each one is before the first.
    pub(crate) fn places(&self) -> HashMap<&str, u32> {
        // Where a forged parent closes a ring the nearest place counts.
        let places = self.ids.iter().enumerate().rev();
        places.map(|(place, id)| (id.as_str(), u32::try_from(place).unwrap_or(u32::MAX))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commit(id: &str, parents: &[&str]) -> Commit {
        Commit {
            id: id.to_owned(),
            parents: parents.iter().map(|parent| (*parent).to_owned()).collect(),
            ..Commit::default()
        }
    }

    fn line(ids: &[&str], is_cut: bool) -> Lineage {
        Lineage { ids: ids.iter().map(|id| (*id).to_owned()).collect(), is_cut }
    }

    #[test]
    fn stored_runs_continue_a_line_that_is_cut() {
        let stored = [commit("f", &["e", "d"]), commit("d", &["c", "b"]), commit("x", &["y"])];
        assert_eq!(line(&["g", "e"], true).continued(&stored), line(&["g", "e", "d", "c", "b"], true));
        assert_eq!(line(&["g", "z"], true).continued(&stored), line(&["g", "z"], true));
        assert_eq!(line(&["g", "e"], false).continued(&stored), line(&["g", "e"], false), "it ends there");
    }

    #[test]
    fn a_ring_ends() {
        let line = line(&["a"], true).continued(&[commit("a", &["b", "a"])]);
        assert_eq!(line.ids.len(), LONGEST);
        assert_eq!(line.places().get("a"), Some(&0));
    }
}
