//! The shelf: the baselines of a store, listed, loaded, saved, pinned and pruned.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use gate_model::{Baseline, BaselineKey, BaselineStore, Noise};
use serde::Serialize;

use crate::folder::FolderStore;
use crate::git_store::GitStore;
use crate::layout::{Kind, check_id, check_name, is_key_folder, key_folder, path};
use crate::store::{Changes, Found, Store};
use crate::stored::{self, LARGEST, Place};
use crate::{BaselineError, Entry, Refused};

/// The largest file of noise that is read.
const LARGEST_NOISE: u64 = 1 << 20;

/// An open store.
#[derive(Debug)]
pub struct Shelf {
    at: BaselineStore,
    store: Store,
}

/// What a store holds of one gate.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Listing {
    /// Its baselines, of whatever key, newest first.
    pub entries: Vec<Entry>,
    /// Files that are not used.
    pub refused: Vec<Refused>,
}

impl Shelf {
    /// Opens a store from the folder that the command runs in. A folder that is not there yet is an empty store.
    ///
    /// # Errors
    /// Where a ref is none for a store, or there is no repository for it.
    pub fn open(store: &BaselineStore, folder: &Path) -> Result<Self, BaselineError> {
        let at = store.clone();
        let store = match store {
            BaselineStore::Folder(path) => Store::Folder(FolderStore::at(folder.join(path))),
            BaselineStore::Git(name) => Store::Git(Box::new(GitStore::open(name, folder)?)),
        };
        Ok(Self { at, store })
    }

    /// What a reader should know of how the store was opened: its remote did not answer, so what the clone has was used.
    #[must_use]
    pub fn warning(&self) -> Option<&str> {
        match &self.store {
            Store::Folder(_) => None,
            Store::Git(store) => store.warning(),
        }
    }

    /// Where it is, as a spec writes it.
    #[must_use]
    pub fn location(&self) -> String {
        self.at.to_string()
    }

    /// The gates that have something in it, by name.
    ///
    /// # Errors
    /// Where the store cannot be read.
    pub fn gates(&self) -> Result<Vec<String>, BaselineError> {
        let mut gates = self.store.gates()?;
        gates.retain(|name| check_name(name).is_ok());
        Ok(gates)
    }

    /// The baselines of a gate, newest first, and the files that are none. One file at a time is in memory.
    ///
    /// # Errors
    /// Where the name is none, or the store cannot be read.
    pub fn list(&self, name: &str) -> Result<Listing, BaselineError> {
        check_name(name)?;
        let mut listing = Listing::default();
        let mut pins = HashSet::new();
        let mut reader = self.store.reader()?;
        for found in self.store.files(name)? {
            let mut refuse = |why: String| listing.refused.push(self.refused(&found.path, why));
            match place(&found, name) {
                Ok((folder, Kind::Baseline(id))) => {
                    let place = Place { name, folder, id: &id };
                    match reader.read(&found, LARGEST).and_then(|bytes| stored::entry(&bytes, place)) {
                        Ok(entry) => listing.entries.push(entry),
                        Err(why) => refuse(why),
                    }
                }
                Ok((folder, Kind::Pin(id))) => {
                    pins.insert((folder.to_owned(), id));
                }
                Ok((_, Kind::Noise)) => {}
                Err(why) => refuse(why),
            }
        }
        for entry in &mut listing.entries {
            entry.pinned = pins.contains(&(entry.folder(), entry.id.clone()));
        }
        listing.entries.sort_by(|left, right| (right.time, &right.id).cmp(&(left.time, &left.id)));
        Ok(listing)
    }

    /// A baseline of a gate by its id.
    ///
    /// # Errors
    /// Where there is none, or its file cannot be used.
    pub fn load(&self, name: &str, id: &str) -> Result<Baseline, BaselineError> {
        check_name(name)?;
        check_id(id)?;
        let mut why = BaselineError::NoSuchId { name: name.to_owned(), id: id.to_owned() };
        let mut reader = self.store.reader()?;
        for found in self.store.files(name)? {
            let Ok((folder, Kind::Baseline(other))) = place(&found, name) else { continue };
            if other != id {
                continue;
            }
            let bytes = reader.read(&found, LARGEST);
            match bytes.and_then(|bytes| stored::whole(&bytes, Some(Place { name, folder, id }))) {
                Ok(baseline) => return Ok(baseline),
                Err(words) => why = BaselineError::Refused(self.refused(&found.path, words)),
            }
        }
        Err(why)
    }

    /// Saves a baseline; one of the same id is replaced. Its secrets must be out.
    ///
    /// # Errors
    /// Where it is none that could be read again, or the store cannot be written.
    pub fn save(&mut self, baseline: &Baseline) -> Result<(), BaselineError> {
        let (name, id) = (&baseline.run.header.spec.name, baseline.id());
        check_name(name)?;
        check_id(id)?;
        let folder = key_folder(&baseline.key)?;
        let path = path(name, &folder, &Kind::Baseline(id.to_owned()));
        let refused = |why: String| BaselineError::Refused(self.refused(&path, why));
        let mut bytes = serde_json::to_vec(baseline).map_err(|error| refused(error.to_string()))?;
        bytes.push(b'\n');
        if bytes.len() as u64 > LARGEST {
            return Err(refused(format!("it would be larger than {} MiB: measure fewer requests", LARGEST >> 20)));
        }
        stored::whole(&bytes, Some(Place { name, folder: &folder, id })).map_err(refused)?;
        let about = format!("{name}: keep run {id}");
        self.store.apply(&Changes { add: vec![(path, bytes)], remove: Vec::new() }, &about)
    }

    /// Keeps what calibration found, beside the baselines of the same key; it replaces what was found before.
    ///
    /// # Errors
    /// Where it is none that could be read again, or the store cannot be written.
    pub fn save_noise(&mut self, name: &str, key: &BaselineKey, noise: &Noise) -> Result<(), BaselineError> {
        check_name(name)?;
        let path = path(name, &key_folder(key)?, &Kind::Noise);
        let refused = |why: String| BaselineError::Refused(self.refused(&path, why));
        let mut bytes = serde_json::to_vec_pretty(noise).map_err(|error| refused(error.to_string()))?;
        bytes.push(b'\n');
        stored::noise(&bytes).map_err(refused)?;
        self.store.apply(&Changes { add: vec![(path, bytes)], remove: Vec::new() }, &format!("{name}: keep its noise"))
    }

    /// What calibration found for runs of this key.
    ///
    /// # Errors
    /// Where its file cannot be used.
    pub fn noise(&self, name: &str, key: &BaselineKey) -> Result<Option<Noise>, BaselineError> {
        check_name(name)?;
        let path = path(name, &key_folder(key)?, &Kind::Noise);
        let files = self.store.files(name)?;
        let Some(found) = files.iter().find(|found| found.path == path) else { return Ok(None) };
        let bytes = self.store.reader()?.read(found, LARGEST_NOISE);
        bytes
            .and_then(|bytes| stored::noise(&bytes))
            .map(Some)
            .map_err(|why| BaselineError::Refused(self.refused(&path, why)))
    }

    /// Marks a baseline, so that `prune` leaves it alone.
    ///
    /// # Errors
    /// Where there is none of this id, or the store cannot be written.
    pub fn pin(&mut self, name: &str, id: &str) -> Result<(), BaselineError> {
        check_id(id)?;
        let entry = self.list(name)?.entries.into_iter().find(|entry| entry.id == id);
        let entry = entry.ok_or_else(|| BaselineError::NoSuchId { name: name.to_owned(), id: id.to_owned() })?;
        let path = path(name, &entry.folder(), &Kind::Pin(entry.id));
        let changes = Changes { add: vec![(path, Vec::new())], remove: Vec::new() };
        self.store.apply(&changes, &format!("{name}: pin run {id}"))
    }

    /// Removes all but the newest so many of each key; pinned ones and files that are not used stay. What was removed,
    /// newest first. A git store's history still has what is removed from its newest state.
    ///
    /// # Errors
    /// Where the store cannot be read or written.
    pub fn prune(&mut self, name: &str, keep: usize) -> Result<Vec<String>, BaselineError> {
        let mut seen: BTreeMap<String, usize> = BTreeMap::new();
        let (mut removed, mut changes) = (Vec::new(), Changes::default());
        for entry in self.list(name)?.entries {
            let newer = seen.entry(entry.hash.clone()).or_default();
            *newer += 1;
            if *newer > keep && !entry.pinned {
                changes.remove.push(path(name, &entry.folder(), &Kind::Baseline(entry.id.clone())));
                removed.push(entry.id);
            }
        }
        if !removed.is_empty() {
            self.store.apply(&changes, &format!("{name}: prune {} runs", removed.len()))?;
        }
        Ok(removed)
    }

    fn refused(&self, path: &str, why: String) -> Refused {
        Refused::new(format!("{}/{path}", self.at), why)
    }
}

/// Which file of which key this is; else why it is none, in words.
fn place<'a>(found: &'a Found, name: &str) -> Result<(&'a str, Kind), String> {
    if let Some(why) = found.odd {
        return Err(why.to_owned());
    }
    let below = found.path.strip_prefix(name).and_then(|path| path.strip_prefix('/')).unwrap_or_default();
    let ours = below.split_once('/').filter(|(folder, _)| is_key_folder(folder));
    let ours = ours.and_then(|(folder, file)| Some((folder, Kind::of(file)?)));
    ours.ok_or_else(|| "it is no file of a baseline store".to_owned())
}
