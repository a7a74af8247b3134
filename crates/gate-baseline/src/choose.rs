//! Which baselines a run is compared with.

use std::cmp::Reverse;
use std::io;
use std::path::Path;

use gate_model::{Baseline, BaselineFrom, BaselineKey, BaselineUse, GateSpec, NoBaseline, PassedOver, Prior};

use crate::key::{TOKENS, differences};
use crate::prior::{read_file, reference};
use crate::{BaselineError, Entry, Refused, Repository, Shelf, Surroundings};

/// How many are looked at for slow creep.
const HISTORY: usize = 20;

/// What baselines are wanted for.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// The gate.
    pub spec: &'a GateSpec,
    /// What must agree. It has a part for tokens where the run has ended ([`crate::with_tokens`]); else
    /// [`crate::confirm`] looks at them later.
    pub key: &'a BaselineKey,
    /// What CI says of the checkout.
    pub surroundings: &'a Surroundings,
    /// The folder that the spec's files are relative to.
    pub folder: &'a Path,
    /// The run's id where it has one: it is not compared with itself, even if it was saved.
    pub run_id: Option<&'a str>,
}

/// What was chosen.
#[derive(Clone, Debug, Default)]
pub struct Choice {
    /// The baselines, with how they were chosen.
    pub prior: Prior,
    /// Files of the store that are not used, for a warning.
    pub refused: Vec<Refused>,
}

/// Chooses baselines: as the spec's `from` says, else by the first of its fallbacks that gives any. At most as many
/// as it asks for, and 20 more, are in memory.
///
/// # Errors
/// Where the store, or a file the spec names, cannot be read. A file that is not there is no baseline.
pub fn choose(
    ask: &Ask<'_>,
    shelf: &Shelf,
    repository: Result<&Repository, &BaselineError>,
) -> Result<Choice, BaselineError> {
    let listing = shelf.list(&ask.spec.name)?;
    let entries = listing.entries.into_iter().filter(|entry| Some(entry.id.as_str()) != ask.run_id).collect();
    let mut search = Search { ask, shelf, repository, entries, refused: listing.refused };
    let noise = match shelf.noise(&ask.spec.name, ask.key) {
        Ok(noise) => noise,
        Err(BaselineError::Refused(refused)) => {
            search.refused.push(refused);
            None
        }
        Err(error) => return Err(error),
    };
    let mut prior = Prior { noise, ..Prior::default() };
    let mut used = BaselineUse {
        store: shelf.location(),
        by: None,
        fork: None,
        used: Vec::new(),
        passed_over: Vec::new(),
        differences: Vec::new(),
    };
    for from in std::iter::once(&ask.spec.baseline.from).chain(&ask.spec.baseline.fallback) {
        let why = match search.by(from)? {
            Ok(found) => {
                let chosen = match found.given {
                    Some(baseline) => vec![(*baseline, None)],
                    None => search.load(&found.line, found.most)?,
                };
                if !chosen.is_empty() {
                    let history = search.load(found.history.as_ref().unwrap_or(&found.line), HISTORY)?;
                    used.by = Some(from.clone());
                    used.fork = found.fork;
                    used.used = chosen.iter().map(|(baseline, behind)| reference(baseline, *behind)).collect();
                    prior.baselines = chosen.into_iter().map(|(baseline, _)| baseline).collect();
                    prior.history = history.into_iter().map(|(baseline, _)| baseline).collect();
                    break;
                }
                // Every one of them turned out to be corrupt.
                NoBaseline::NoneSaved
            }
            Err(why) => why,
        };
        used.passed_over.push(PassedOver { from: from.clone(), why });
    }
    prior.chosen = Some(used);
    Ok(Choice { prior, refused: search.refused })
}

struct Search<'a> {
    ask: &'a Ask<'a>,
    shelf: &'a Shelf,
    repository: Result<&'a Repository, &'a BaselineError>,
    /// Newest first.
    entries: Vec<Entry>,
    refused: Vec<Refused>,
}

/// A stored run, and how many commits it is behind.
type Candidate = (String, Option<u32>);

/// What one way to choose gives.
#[derive(Default)]
struct Found {
    /// In the order in which they are wanted.
    line: Vec<Candidate>,
    /// How many of them are wanted.
    most: usize,
    /// What slow creep is looked for in, where that is not the same line.
    history: Option<Vec<Candidate>>,
    /// What a file holds.
    given: Option<Box<Baseline>>,
    /// Where the line begins.
    fork: Option<String>,
}

impl Search<'_> {
    fn by(&self, from: &BaselineFrom) -> Result<Result<Found, NoBaseline>, BaselineError> {
        let runs = usize::try_from(self.ask.spec.baseline.runs.max(1)).unwrap_or(usize::MAX);
        match from {
            BaselineFrom::MergeBase => self.along(runs, |repository| repository.fork_point(self.ask.surroundings)),
            BaselineFrom::Branch(name) => self.along(runs, |repository| repository.branch(name)),
            BaselineFrom::Last(count) => {
                let most = usize::try_from(*count).unwrap_or(usize::MAX);
                Ok(self.agreeing()?.map(|agreeing| Found { line: newest(&agreeing), most, ..Found::default() }))
            }
            BaselineFrom::Pin(id) => self.pinned(id),
            BaselineFrom::File(path) => self.file(path),
        }
    }

    /// Along first parents, from a commit on.
    fn along(
        &self,
        most: usize,
        start: impl FnOnce(&Repository) -> Result<String, BaselineError>,
    ) -> Result<Result<Found, NoBaseline>, BaselineError> {
        let agreeing = match self.agreeing()? {
            Ok(agreeing) => agreeing,
            Err(why) => return Ok(Err(why)),
        };
        let repository = match self.repository {
            Ok(repository) => repository,
            Err(error) => return Ok(Err(NoBaseline::NoHistory(error.to_string()))),
        };
        let lineage = start(repository).and_then(|fork| repository.lineage(&fork));
        let lineage = match lineage {
            Ok(lineage) => lineage.continued(self.entries.iter().filter_map(|entry| entry.commit.as_ref())),
            Err(BaselineError::NoForkPoint(why)) => return Ok(Err(NoBaseline::NoForkPoint(why))),
            Err(error) => return Ok(Err(NoBaseline::NoHistory(error.to_string()))),
        };
        let places = lineage.places();
        let mut placed: Vec<(u32, &Entry)> = agreeing
            .iter()
            .filter_map(|entry| {
                let commit = entry.commit.as_ref().filter(|commit| !commit.dirty)?;
                Some((*places.get(commit.id.as_str())?, *entry))
            })
            .collect();
        if placed.is_empty() {
            let saved = u32::try_from(agreeing.len()).unwrap_or(u32::MAX);
            return Ok(Err(NoBaseline::NotInHistory { saved, shallow: lineage.is_cut }));
        }
        placed.sort_by_key(|(behind, entry)| (*behind, Reverse((entry.time, entry.id.clone()))));
        let line = placed.into_iter().map(|(behind, entry)| (entry.id.clone(), Some(behind))).collect();
        Ok(Ok(Found { line, most, fork: lineage.ids.first().cloned(), ..Found::default() }))
    }

    fn pinned(&self, id: &str) -> Result<Result<Found, NoBaseline>, BaselineError> {
        let Some(entry) = self.entries.iter().find(|entry| entry.id == id) else {
            return Ok(Err(NoBaseline::NoSuchId));
        };
        if !self.agrees(entry) {
            return Ok(Err(self.differs(&[entry])?));
        }
        let history = Some(newest(&self.agreeing()?.unwrap_or_default()));
        Ok(Ok(Found { line: vec![(id.to_owned(), None)], most: 1, history, ..Found::default() }))
    }

    fn file(&self, path: &str) -> Result<Result<Found, NoBaseline>, BaselineError> {
        let baseline = match read_file(&self.ask.folder.join(path)) {
            Ok(baseline) => baseline,
            Err(BaselineError::Read { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                return Ok(Err(NoBaseline::NoneSaved));
            }
            Err(error) => return Err(error),
        };
        if Some(baseline.id()) == self.ask.run_id {
            return Ok(Err(NoBaseline::NoneSaved));
        }
        let differences = differences(&baseline.key, self.ask.key);
        if !differences.is_empty() {
            return Ok(Err(NoBaseline::Differs(differences)));
        }
        let history = Some(newest(&self.agreeing()?.unwrap_or_default()));
        Ok(Ok(Found { given: Some(Box::new(baseline)), history, ..Found::default() }))
    }

    fn agrees(&self, entry: &Entry) -> bool {
        let tokens = self.ask.key.parts.get(TOKENS);
        entry.hash == self.ask.key.hash && (tokens.is_none() || entry.tokens.as_ref() == tokens)
    }

    /// Those of the same key, newest first; else why there are none.
    fn agreeing(&self) -> Result<Result<Vec<&Entry>, NoBaseline>, BaselineError> {
        let agreeing: Vec<&Entry> = self.entries.iter().filter(|entry| self.agrees(entry)).collect();
        if agreeing.is_empty() {
            return Ok(Err(self.differs(&self.entries.iter().collect::<Vec<_>>())?));
        }
        Ok(Ok(agreeing))
    }

    /// What the newest of these, all of other keys, differs in.
    fn differs(&self, entries: &[&Entry]) -> Result<NoBaseline, BaselineError> {
        for entry in entries {
            match self.shelf.load(&self.ask.spec.name, &entry.id) {
                Ok(baseline) => return Ok(NoBaseline::Differs(differences(&baseline.key, self.ask.key))),
                Err(BaselineError::Refused(_) | BaselineError::NoSuchId { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(NoBaseline::NoneSaved)
    }

    /// The first so many that can be used.
    fn load(&mut self, line: &[Candidate], most: usize) -> Result<Vec<(Baseline, Option<u32>)>, BaselineError> {
        let mut loaded = Vec::new();
        for (id, behind) in line {
            if loaded.len() == most {
                break;
            }
            match self.shelf.load(&self.ask.spec.name, id) {
                Ok(baseline) => loaded.push((baseline, *behind)),
                Err(BaselineError::Refused(refused)) if self.refused.contains(&refused) => {}
                Err(BaselineError::Refused(refused)) => self.refused.push(refused),
                // Another job pruned it meanwhile.
                Err(BaselineError::NoSuchId { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(loaded)
    }
}

fn newest(entries: &[&Entry]) -> Vec<Candidate> {
    entries.iter().map(|entry| (entry.id.clone(), None)).collect()
}
