//! A store that is a folder: the default, or one that CI restores.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use crate::BaselineError;
use crate::layout::{is_key_folder, no_store};
use crate::store::{Changes, Found, Removal};

/// What a file's name starts with until it is whole.
const UNFINISHED: &str = ".gate-";

/// A folder of baselines.
#[derive(Debug)]
pub(crate) struct FolderStore {
    root: PathBuf,
}

impl FolderStore {
    /// The store at a folder, which may not be there yet.
    pub(crate) fn open(root: PathBuf) -> Result<Self, BaselineError> {
        let refused = |why: &str| {
            let why = format!("{why}; name a folder, which need not be there yet, or `git:refs/gate/baselines`");
            no_store(&root.display().to_string(), &why)
        };
        match fs::metadata(&root) {
            Ok(facts) if !facts.is_dir() => Err(refused("it is no folder")),
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => Err(refused("it is below a file")),
            Err(_) if fs::symlink_metadata(&root).is_ok() => Err(refused("it is a link that leads nowhere")),
            _ => Ok(Self { root }),
        }
    }

    pub(crate) fn is_there(&self) -> bool {
        self.root.is_dir()
    }

    /// Whether it holds things, and none of them is ours.
    pub(crate) fn is_foreign(&self) -> Result<bool, BaselineError> {
        let inside = entries(&self.root)?;
        for gate in inside.iter().filter(|entry| entry.is_folder) {
            if entries(&self.root.join(&gate.name))?.iter().any(|entry| entry.is_folder && is_key_folder(&entry.name)) {
                return Ok(false);
            }
        }
        Ok(inside.iter().any(|entry| !entry.is_hidden()))
    }

    /// The gates that have a folder.
    pub(crate) fn gates(&self) -> Result<Vec<String>, BaselineError> {
        let entries = entries(&self.root)?;
        Ok(entries.into_iter().filter(|entry| entry.is_folder).map(|entry| entry.name).collect())
    }

    /// The files of a gate, by their paths; what cannot be one of ours too.
    pub(crate) fn files(&self, name: &str) -> Result<Vec<Found>, BaselineError> {
        let mut found = Vec::new();
        let gate = self.root.join(name);
        if fs::symlink_metadata(&gate).is_ok_and(|facts| facts.is_symlink()) {
            return Ok(vec![Found::odd(name.to_owned(), "it is a link")]);
        }
        for folder in entries(&gate)? {
            let path = format!("{name}/{}", folder.name);
            if !folder.is_folder {
                found.extend(folder.odd(path, "it is no folder of a key"));
                continue;
            }
            for file in entries(&gate.join(&folder.name))? {
                let path = format!("{path}/{}", file.name);
                match file.size {
                    Some(size) if !file.is_hidden() => found.push(Found { path, size, blob: None, odd: None }),
                    _ => found.extend(file.odd(path, "it is no plain file")),
                }
            }
        }
        Ok(found)
    }

    /// A file's bytes, at most so many.
    pub(crate) fn read(&self, path: &str, most: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        File::open(self.root.join(path))?.take(most).read_to_end(&mut bytes)?;
        Ok(bytes)
    }

    /// Writes and removes files, each in one step.
    pub(crate) fn apply(&self, changes: &Changes) -> Result<(), BaselineError> {
        for (path, bytes) in &changes.add {
            self.write_file(path, bytes)?;
        }
        for removal in &changes.remove {
            match self.remove(removal) {
                Err(source) if source.kind() != io::ErrorKind::NotFound => {
                    return Err(BaselineError::Write { path: self.root.join(&removal.path), source });
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Writes a file in one step, by its path in the store.
    pub(crate) fn write_file(&self, path: &str, bytes: &[u8]) -> Result<(), BaselineError> {
        let path = self.root.join(path);
        self.write(&path, bytes).map_err(|source| BaselineError::Write { path, source })
    }

    /// Sets the file aside before it looks for what keeps it: whoever puts that there first finds the file, or sees
    /// that it is gone and writes it again.
    fn remove(&self, removal: &Removal) -> io::Result<()> {
        let path = self.root.join(&removal.path);
        let Some(unless) = &removal.unless else { return fs::remove_file(path) };
        let folder = path.parent().unwrap_or(&self.root);
        let aside = tempfile::Builder::new().prefix(UNFINISHED).tempfile_in(folder)?.into_temp_path();
        fs::rename(&path, &aside)?;
        match self.root.join(unless).exists() {
            true => aside.persist(path).map_err(|error| error.error),
            false => aside.close(),
        }
    }

    /// A reader sees the file whole or not at all, even after the power failed.
    fn write(&self, path: &Path, bytes: &[u8]) -> io::Result<()> {
        let folder = path.parent().unwrap_or(&self.root);
        fs::create_dir_all(folder)?;
        let mut below = folder;
        while below != self.root {
            if fs::symlink_metadata(below)?.is_symlink() {
                return Err(io::Error::other(format!("`{}` is a link", below.display())));
            }
            below = below.parent().unwrap_or(&self.root);
        }
        let mut file = tempfile::Builder::new().prefix(UNFINISHED).tempfile_in(folder)?;
        file.write_all(bytes)?;
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            // Baselines are for everyone the folder is for; a temporary file starts out private.
            file.as_file().set_permissions(fs::Permissions::from_mode(0o644))?;
        }
        file.as_file().sync_all()?;
        file.persist(path).map_err(|error| error.error)?;
        #[cfg(unix)]
        File::open(folder)?.sync_all()?;
        Ok(())
    }
}

/// What a folder holds.
struct Inside {
    name: String,
    is_folder: bool,
    /// Of a plain file.
    size: Option<u64>,
}

impl Inside {
    /// A half-written file, or what a file manager leaves: nobody's baseline.
    fn is_hidden(&self) -> bool {
        self.name.starts_with('.')
    }

    fn odd(&self, path: String, why: &'static str) -> Option<Found> {
        (!self.is_hidden()).then(|| Found::odd(path, why))
    }
}

/// What a folder holds, by name; nothing where it is not there. Links are neither files nor folders.
fn entries(folder: &Path) -> Result<Vec<Inside>, BaselineError> {
    let read = |source: io::Error| BaselineError::Read { path: folder.to_path_buf(), source };
    let inside = match fs::read_dir(folder) {
        Ok(inside) => inside,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(read(error)),
    };
    let mut found = Vec::new();
    for entry in inside {
        let entry = entry.map_err(read)?;
        // What is gone since was pruned.
        let Ok(facts) = fs::symlink_metadata(entry.path()) else { continue };
        let name = entry.file_name().to_string_lossy().into_owned();
        let size = facts.is_file().then_some(facts.len());
        found.push(Inside { name, is_folder: facts.is_dir(), size });
    }
    found.sort_by(|left, right| left.name.cmp(&right.name));
    Ok(found)
}
