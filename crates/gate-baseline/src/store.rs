//! The two kinds of store, behind one set of verbs: name files, read one, write and remove some.

use std::io;

use crate::BaselineError;
use crate::folder::FolderStore;
use crate::git::Blobs;
use crate::git_store::GitStore;

/// A file of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// Its path, `NAME/HASH12/FILE` where it is one of ours.
    pub(crate) path: String,
    /// Its size in bytes.
    pub(crate) size: u64,
    /// Its object in git.
    pub(crate) blob: Option<String>,
    /// Why it cannot be read at all.
    pub(crate) odd: Option<&'static str>,
}

impl Found {
    pub(crate) fn odd(path: String, why: &'static str) -> Self {
        Self { path, size: 0, blob: None, odd: Some(why) }
    }
}

/// What is to be written and removed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Changes {
    /// Files by path.
    pub(crate) add: Vec<(String, Vec<u8>)>,
    /// What is to go.
    pub(crate) remove: Vec<Removal>,
}

/// A file that is to go.
#[derive(Clone, Debug)]
pub(crate) struct Removal {
    pub(crate) path: String,
    /// The file that keeps it, whoever puts it there meanwhile.
    pub(crate) unless: Option<String>,
}

/// Where baselines are kept.
#[derive(Debug)]
pub(crate) enum Store {
    Folder(FolderStore),
    Git(Box<GitStore>),
}

impl Store {
    pub(crate) fn gates(&self) -> Result<Vec<String>, BaselineError> {
        match self {
            Self::Folder(store) => store.gates(),
            Self::Git(store) => store.gates(),
        }
    }

    pub(crate) fn files(&self, name: &str) -> Result<Vec<Found>, BaselineError> {
        match self {
            Self::Folder(store) => store.files(name),
            Self::Git(store) => store.files(name),
        }
    }

    pub(crate) fn reader(&self) -> Result<Reader<'_>, BaselineError> {
        Ok(match self {
            Self::Folder(store) => Reader::Folder(store),
            Self::Git(store) => Reader::Git(Box::new(store.blobs()?)),
        })
    }

    /// Makes the changes. `about` is a line for the history of a store that has one.
    pub(crate) fn apply(&mut self, changes: &Changes, about: &str) -> Result<(), BaselineError> {
        match self {
            Self::Folder(store) => store.apply(changes),
            Self::Git(store) => store.apply(changes, about),
        }
    }
}

/// Reads files of a store, one after another.
pub(crate) enum Reader<'a> {
    Folder(&'a FolderStore),
    Git(Box<Blobs>),
}

impl Reader<'_> {
    /// A file's bytes, where it is no larger than this; else why not, in words.
    pub(crate) fn read(&mut self, found: &Found, most: u64) -> Result<Vec<u8>, String> {
        let too_large = || format!("it is larger than {} MiB", most >> 20);
        if let Some(why) = found.odd {
            return Err(why.to_owned());
        }
        if found.size > most {
            return Err(too_large());
        }
        let bytes = match self {
            Self::Folder(store) => store.read(&found.path, most + 1),
            Self::Git(blobs) => match &found.blob {
                Some(id) => blobs.read(id),
                None => Err(io::Error::other("it is no file in git")),
            },
        };
        let bytes = bytes.map_err(|error| error.to_string())?;
        if bytes.len() as u64 > most { Err(too_large()) } else { Ok(bytes) }
    }
}
