//! Which baselines a run is compared with.

use std::cmp::Reverse;
use std::io;
use std::path::Path;

use gate_model::{Baseline, BaselineFrom, BaselineKey, BaselineUse, GateSpec, NoBaseline, PassedOver, Prior};

use crate::key::{TOKENS, differences};
use crate::layout::is_ours;
use crate::prior::{LEAST_OK, read_file, reference, too_few};
use crate::{BaselineError, Entry, Listing, Refused, Repository, Shelf, Surroundings};

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
/// Where the store, or a file the spec names, cannot be read, or several baselines have an id that begins as the pin
/// that is asked for. A file that is not there is no baseline.
pub fn choose(
    ask: &Ask<'_>,
    shelf: &Shelf,
    repository: Result<&Repository, &BaselineError>,
) -> Result<Choice, BaselineError> {
    let mut search = Search::of(ask, shelf, repository)?;
    let mut prior = Prior::default();
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
                // They were damaged or pruned since they were listed.
                NoBaseline::AllRefused { files: count(found.line.len()) }
            }
            Err(why) => why,
        };
        used.passed_over.push(PassedOver { from: from.clone(), why });
    }
    prior.chosen = Some(used);
    match shelf.noise(&ask.spec.name, ask.key) {
        Ok(noise) => prior.noise = noise,
        Err(BaselineError::Refused(refused)) => search.refused.push(refused),
        Err(error) => return Err(error),
    }
    Ok(Choice { prior, refused: search.refused })
}

struct Search<'a> {
    ask: &'a Ask<'a>,
    shelf: &'a Shelf,
    repository: Result<&'a Repository, &'a BaselineError>,
    /// Newest first, without the run itself.
    entries: Vec<Entry>,
    /// Whether the run itself is there.
    has_itself: bool,
    /// How many stand in a baseline's place, and are none.
    damaged: usize,
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

impl<'a> Search<'a> {
    fn of(
        ask: &'a Ask<'a>,
        shelf: &'a Shelf,
        repository: Result<&'a Repository, &'a BaselineError>,
    ) -> Result<Self, BaselineError> {
        let Listing { mut entries, refused } = shelf.list(&ask.spec.name)?;
        let listed = entries.len();
        entries.retain(|entry| Some(entry.id.as_str()) != ask.run_id);
        let has_itself = entries.len() < listed;
        let at = format!("{}/", shelf.location());
        let damaged = refused.iter().filter(|file| file.file.strip_prefix(&at).is_some_and(is_ours)).count();
        let mut search = Self { ask, shelf, repository, entries, has_itself, damaged, refused };
        let few = search.entries.iter().filter(|entry| search.agrees(entry) && entry.ok < LEAST_OK);
        let few: Vec<Refused> = few.map(|entry| shelf.too_few(&ask.spec.name, entry, LEAST_OK)).collect();
        search.refused.extend(few);
        Ok(search)
    }

    fn by(&self, from: &BaselineFrom) -> Result<Result<Found, NoBaseline>, BaselineError> {
        let runs = usize::try_from(self.ask.spec.baseline.runs.max(1)).unwrap_or(usize::MAX);
        match from {
            BaselineFrom::MergeBase => {
                let fork = |repository: &Repository| repository.fork_point(self.ask.surroundings);
                self.along(runs, fork, NoBaseline::NoForkPoint)
            }
            BaselineFrom::Branch(name) => {
                let gone = |why| NoBaseline::NoHistory(format!("{why}: fetch it before the gate runs"));
                self.along(runs, |repository| repository.branch(name), gone)
            }
            BaselineFrom::Last(count) => {
                let most = usize::try_from(*count).unwrap_or(usize::MAX);
                Ok(self.agreeing()?.map(|agreeing| Found { line: newest(&agreeing), most, ..Found::default() }))
            }
            BaselineFrom::Pin(id) => self.pinned(id),
            BaselineFrom::File(path) => self.file(path),
        }
    }

    /// Along first parents, from a commit on; where it is not to be found, the words of that become a reason.
    fn along(
        &self,
        most: usize,
        start: impl FnOnce(&Repository) -> Result<String, BaselineError>,
        gone: impl FnOnce(String) -> NoBaseline,
    ) -> Result<Result<Found, NoBaseline>, BaselineError> {
        let agreeing = match self.agreeing()? {
            Ok(agreeing) => agreeing,
            Err(why) => return Ok(Err(why)),
        };
        let repository = match self.repository {
            Ok(repository) => repository,
            Err(error) => return Ok(Err(no_history(error))),
        };
        let lineage = start(repository).and_then(|fork| repository.lineage(&fork));
        let lineage = match lineage {
            Ok(lineage) => lineage.continued(self.entries.iter().filter_map(|entry| entry.commit.as_ref())),
            Err(BaselineError::NoForkPoint(why)) => return Ok(Err(gone(why))),
            Err(error) => return Ok(Err(no_history(&error))),
        };
        let places = lineage.places();
        let (mut placed, mut dirty) = (Vec::new(), 0);
        for entry in &agreeing {
            let Some(commit) = &entry.commit else { continue };
            match places.get(commit.id.as_str()) {
                Some(_) if commit.dirty => dirty += 1,
                Some(behind) => placed.push((*behind, *entry)),
                None => {}
            }
        }
        if placed.is_empty() {
            return Ok(Err(match dirty {
                0 => NoBaseline::NotInHistory { saved: count(agreeing.len()), shallow: lineage.is_cut },
                saved => NoBaseline::Dirty { saved },
            }));
        }
        placed.sort_by_key(|(behind, entry)| (*behind, Reverse((entry.time, entry.id.clone()))));
        let line = placed.into_iter().map(|(behind, entry)| (entry.id.clone(), Some(behind))).collect();
        Ok(Ok(Found { line, most, fork: lineage.ids.first().cloned(), ..Found::default() }))
    }

    fn pinned(&self, id: &str) -> Result<Result<Found, NoBaseline>, BaselineError> {
        let found: Vec<&Entry> = self.entries.iter().filter(|entry| entry.id.starts_with(id)).collect();
        let entry = match (found.iter().find(|entry| entry.id == id), found.as_slice()) {
            (Some(entry), _) | (None, [entry]) => *entry,
            (None, []) => return Ok(Err(self.no_such(id))),
            (None, [one, other, ..]) => {
                return Err(BaselineError::Unusable {
                    text: format!("pin:{id}"),
                    what: "a baseline's id",
                    why: format!("{} begin so, such as {} and {}: write more of it", found.len(), one.id, other.id),
                });
            }
        };
        if !self.agrees(entry) {
            return Ok(Err(self.differs(&[entry])?));
        }
        if entry.ok < LEAST_OK {
            return Ok(Err(NoBaseline::TooFewOk { ok: entry.ok, needed: LEAST_OK }));
        }
        let history = Some(newest(&self.agreeing()?.unwrap_or_default()));
        Ok(Ok(Found { line: vec![(entry.id.clone(), None)], most: 1, history, ..Found::default() }))
    }

    /// Why no baseline has an id that begins so.
    fn no_such(&self, id: &str) -> NoBaseline {
        let is_named = |refused: &&Refused| {
            refused.file.rsplit('/').next().is_some_and(|file| file.starts_with(id) && file.ends_with(".json"))
        };
        match self.refused.iter().filter(is_named).count() {
            _ if self.has_itself && self.ask.run_id.is_some_and(|run| run.starts_with(id)) => NoBaseline::Itself,
            0 => NoBaseline::NoSuchId,
            files => NoBaseline::AllRefused { files: count(files) },
        }
    }

    fn file(&self, path: &str) -> Result<Result<Found, NoBaseline>, BaselineError> {
        let baseline = match read_file(&self.ask.folder.join(path)) {
            Ok(baseline) => baseline,
            Err(BaselineError::Read { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                return Ok(Err(NoBaseline::NoSuchFile));
            }
            Err(error) => return Err(error),
        };
        if Some(baseline.id()) == self.ask.run_id {
            return Ok(Err(NoBaseline::Itself));
        }
        let differences = differences(&baseline.key, self.ask.key);
        if !differences.is_empty() {
            return Ok(Err(NoBaseline::Differs(differences)));
        }
        if let Some(why) = too_few(&baseline) {
            return Ok(Err(why));
        }
        let history = Some(newest(&self.agreeing()?.unwrap_or_default()));
        Ok(Ok(Found { given: Some(Box::new(baseline)), history, ..Found::default() }))
    }

    fn agrees(&self, entry: &Entry) -> bool {
        let tokens = self.ask.key.parts.get(TOKENS);
        entry.hash == self.ask.key.hash && (tokens.is_none() || entry.tokens.as_ref() == tokens)
    }

    /// Those of the same key and with enough requests, newest first; else why there are none.
    fn agreeing(&self) -> Result<Result<Vec<&Entry>, NoBaseline>, BaselineError> {
        let mut agreeing: Vec<&Entry> = self.entries.iter().filter(|entry| self.agrees(entry)).collect();
        let Some(ok) = agreeing.iter().map(|entry| entry.ok).max() else {
            return Ok(Err(match self.entries.as_slice() {
                [] if self.has_itself => NoBaseline::Itself,
                [] if self.damaged == 0 => NoBaseline::NoneSaved,
                [] => NoBaseline::AllRefused { files: count(self.damaged) },
                others => self.differs(&others.iter().collect::<Vec<_>>())?,
            }));
        };
        agreeing.retain(|entry| entry.ok >= LEAST_OK);
        match agreeing.is_empty() {
            true => Ok(Err(NoBaseline::TooFewOk { ok, needed: LEAST_OK })),
            false => Ok(Ok(agreeing)),
        }
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
        Ok(NoBaseline::AllRefused { files: count(entries.len()) })
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

/// Why there is no history, in words that stand by themselves.
fn no_history(error: &BaselineError) -> NoBaseline {
    NoBaseline::NoHistory(format!("failed to {error}"))
}

fn count(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

fn newest(entries: &[&Entry]) -> Vec<Candidate> {
    entries.iter().map(|entry| (entry.id.clone(), None)).collect()
}
