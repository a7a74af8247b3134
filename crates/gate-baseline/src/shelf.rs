//! The shelf: the baselines of a store, listed, loaded, saved, pinned and pruned.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;

use gate_model::{Baseline, BaselineKey, BaselineStore, Noise};
use serde::Serialize;

use crate::folder::FolderStore;
use crate::git_store::GitStore;
use crate::layout::{Kind, check_id, check_name, is_key_folder, key_folder, path};
use crate::store::{Changes, Found, Removal, Store};
use crate::stored::{self, LARGEST, Place};
use crate::{BaselineError, Entry, Refused, Repository};

/// The largest file of noise that is read.
const LARGEST_NOISE: u64 = 1 << 20;

/// An open store.
#[derive(Debug)]
pub struct Shelf {
    at: BaselineStore,
    store: Store,
    warning: Option<String>,
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
    /// Where something else stands in its place, a ref is none for a store, or there is no repository for it.
    pub fn open(store: &BaselineStore, folder: &Path) -> Result<Self, BaselineError> {
        let at = store.clone();
        let (store, warning) = match store {
            BaselineStore::Folder(path) => {
                let store = FolderStore::open(folder.join(path))?;
                let warning = match store.is_there() {
                    true => store.is_foreign()?.then(|| {
                        format!("`{path}` holds other things and no baselines: check `baseline.store` or `--store`")
                    }),
                    false => elsewhere(path, folder),
                };
                (Store::Folder(store), warning)
            }
            BaselineStore::Git(name) => {
                let store = GitStore::open(name, folder)?;
                let warning = store.warning().map(str::to_owned);
                (Store::Git(Box::new(store)), warning)
            }
        };
        Ok(Self { at, store, warning })
    }

    /// What a reader should know of how the store was opened: its remote did not answer, so what the clone has was used;
    /// the folder holds other things; the folder is not there, and the repository has one of that name at its root.
    #[must_use]
    pub fn warning(&self) -> Option<&str> {
        self.warning.as_deref()
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
        let entry = self.entry(name, id)?;
        let of = |kind: &Kind| path(name, &entry.folder(), kind);
        let (pin, file) = (of(&Kind::Pin(id.to_owned())), of(&Kind::Baseline(id.to_owned())));
        let gone = || BaselineError::NoSuchId { name: name.to_owned(), id: id.to_owned() };
        let found = self.store.files(name)?.into_iter().find(|found| found.path == file).ok_or_else(gone)?;
        let bytes = self.store.reader()?.read(&found, LARGEST);
        let bytes = bytes.map_err(|why| BaselineError::Refused(self.refused(&file, why)))?;
        // After the pin, the baseline: who prunes at the same time may have removed it before they could see the pin.
        let changes = Changes { add: vec![(pin, Vec::new()), (file, bytes)], remove: Vec::new() };
        self.store.apply(&changes, &format!("{name}: pin run {id}"))
    }

    /// Takes a baseline's mark away, where it has one.
    ///
    /// # Errors
    /// Where there is none of this id, or the store cannot be written.
    pub fn unpin(&mut self, name: &str, id: &str) -> Result<(), BaselineError> {
        let entry = self.entry(name, id)?;
        let pin = path(name, &entry.folder(), &Kind::Pin(entry.id));
        let changes = Changes { add: Vec::new(), remove: vec![Removal { path: pin, unless: None }] };
        self.store.apply(&changes, &format!("{name}: unpin run {id}"))
    }

    fn entry(&self, name: &str, id: &str) -> Result<Entry, BaselineError> {
        check_id(id)?;
        let entry = self.list(name)?.entries.into_iter().find(|entry| entry.id == id);
        entry.ok_or_else(|| BaselineError::NoSuchId { name: name.to_owned(), id: id.to_owned() })
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
                let of = |kind: &Kind| path(name, &entry.folder(), kind);
                let file = of(&Kind::Baseline(entry.id.clone()));
                let pin = of(&Kind::Pin(entry.id.clone()));
                changes.remove.push(Removal { path: file.clone(), unless: Some(pin) });
                removed.push((entry.id, file));
            }
        }
        if removed.is_empty() {
            return Ok(Vec::new());
        }
        self.store.apply(&changes, &format!("{name}: prune {} runs", removed.len()))?;
        // What was pinned meanwhile stayed.
        let left: HashSet<String> = self.store.files(name)?.into_iter().map(|found| found.path).collect();
        Ok(removed.into_iter().filter(|(_, file)| !left.contains(file)).map(|(id, _)| id).collect())
    }

    /// A baseline that is passed over since too few of its requests were ok.
    pub(crate) fn too_few(&self, name: &str, entry: &Entry, needed: u32) -> Refused {
        let path = path(name, &entry.folder(), &Kind::Baseline(entry.id.clone()));
        let why = format!("{} of its requests were ok, and {needed} are needed to compare with", entry.ok);
        self.refused(&path, why)
    }

    fn refused(&self, path: &str, why: String) -> Refused {
        Refused::new(format!("{}/{path}", self.at), why)
    }
}

/// Where a folder is not there, and the repository has one of that name at its root: gate runs in another folder than
/// the one that saved.
fn elsewhere(path: &str, folder: &Path) -> Option<String> {
    let root = Repository::of(folder).ok()?.root().to_path_buf();
    root.join(path).is_dir().then(|| {
        let root = root.display();
        format!("`{path}` is not in this folder, and is in `{root}`: run gate there, or name that one as the store")
    })
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
