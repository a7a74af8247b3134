//! Baselines in an archive, as a CI system keeps a job's files: unpacked into a folder, which then is a store.
//!
//! What the archive holds comes from outside. Of its names nothing is used but what this crate could have written, and of
//! its sizes nothing is believed.

use std::collections::BTreeSet;
use std::io::{Cursor, Read};
use std::path::Path;
use std::{fs, path};

use gate_model::BaselineStore;
use memchr::memmem;
use zip::ZipArchive;
use zip::read::ZipFile;

use crate::folder::FolderStore;
use crate::layout::{is_ours, no_store};
use crate::stored::LARGEST;
use crate::{BaselineError, Refused};

/// How a ZIP archive begins, and one that holds nothing.
const BEGINNINGS: [&[u8]; 2] = [b"PK\x03\x04", b"PK\x05\x06"];
/// How each entry of its directory begins.
const ENTRY: &[u8] = b"PK\x01\x02";

/// How much is taken from an archive.
#[derive(Clone, Copy)]
struct Limits {
    /// Its entries, with those that are no baselines.
    entries: usize,
    /// Bytes of one file.
    file: u64,
    /// Bytes of all files.
    total: u64,
}

const LIMITS: Limits = Limits { entries: 10_000, file: LARGEST, total: 512 << 20 };

/// Whether a file's bytes begin as a ZIP archive's do.
#[must_use]
pub fn is_archive(bytes: &[u8]) -> bool {
    BEGINNINGS.iter().any(|beginning| bytes.starts_with(beginning))
}

/// Unpacks the baselines of a ZIP archive, stored or deflated, into a folder that is empty or not there yet: the files
/// that a store's folder holds, `NAME/HASH/FILE`, below whatever folders of the archive. The folder then is the store to
/// open. Whether each is a baseline shows when it is read, as in any store. `name` is the archive's, for messages.
///
/// # Errors
/// Where the archive is damaged, holds no baselines, holds one twice, has a name that leads out of the folder, is locked
/// with a password, or has more than 10,000 entries or 512 MiB; where the folder is not empty or cannot be written.
pub fn unpack(bytes: &[u8], name: &str, into: &Path) -> Result<BaselineStore, BaselineError> {
    unpack_within(LIMITS, bytes, name, into)
}

fn unpack_within(limits: Limits, bytes: &[u8], name: &str, into: &Path) -> Result<BaselineStore, BaselineError> {
    let refused = |why: String| BaselineError::Refused(Refused::new(name, why));
    let damaged = |error: &dyn std::fmt::Display| {
        refused(format!("the archive is damaged, or none that gate reads: {}", shortened(&error.to_string())))
    };
    // Before the directory is read, which takes some memory for each of its entries.
    if memmem::find_iter(bytes, ENTRY).nth(limits.entries).is_some() {
        return Err(refused(format!("the archive holds more than {} files", limits.entries)));
    }
    let store = store_at(into)?;
    let folder = FolderStore::open(into.to_path_buf())?;
    let mut archive = ZipArchive::new(Cursor::new(bytes)).map_err(|error| damaged(&error))?;
    let mut left = limits.total;
    let mut paths = BTreeSet::new();
    for index in 0..archive.len() {
        let (path, is_whole) = {
            let raw = archive.by_index_raw(index).map_err(|error| damaged(&error))?;
            let Some(path) = wanted(&raw).map_err(refused)? else { continue };
            (path, !raw.encrypted())
        };
        if !is_whole {
            return Err(refused(format!("`{path}` is locked with a password")));
        }
        if !paths.insert(path.clone()) {
            return Err(refused(format!("the archive holds `{path}` twice, in two folders")));
        }
        let mut file = archive.by_index(index).map_err(|error| damaged(&error))?;
        let most = left.min(limits.file);
        let mut content = Vec::new();
        file.by_ref().take(most + 1).read_to_end(&mut content).map_err(|error| damaged(&error))?;
        let size = content.len() as u64;
        if size > most {
            let (file, total) = (limits.file >> 20, limits.total >> 20);
            return Err(refused(format!("it unpacks to more than {file} MiB in a file, or {total} MiB in all")));
        }
        left -= size;
        folder.write_file(&path, &content)?;
    }
    if paths.is_empty() {
        let why = "the archive holds no baselines: it is made of the folder that `baseline.store` names";
        return Err(refused(why.to_owned()));
    }
    Ok(store)
}

/// The store that a folder becomes, which must be empty.
fn store_at(into: &Path) -> Result<BaselineStore, BaselineError> {
    let unusable = |why: &str| no_store(&into.display().to_string(), why);
    fs::create_dir_all(into).map_err(|source| BaselineError::Write { path: into.to_path_buf(), source })?;
    let inside = fs::read_dir(into).map_err(|source| BaselineError::Read { path: into.to_path_buf(), source })?;
    if inside.count() > 0 {
        return Err(unusable("it is not empty, and an archive is unpacked into an empty folder"));
    }
    let whole = path::absolute(into).map_err(|source| BaselineError::Read { path: into.to_path_buf(), source })?;
    let path = whole.to_str().ok_or_else(|| unusable("its path is not UTF-8"))?;
    Ok(BaselineStore::Folder(path.to_owned()))
}

/// Where an entry belongs in a store; `None` where it is no file of one.
///
/// # Errors
/// In words, what is hostile about it.
fn wanted<R: Read + ?Sized>(entry: &ZipFile<'_, R>) -> Result<Option<String>, String> {
    let name = std::str::from_utf8(entry.name_raw()).unwrap_or_default();
    let parts: Vec<&str> = name.split(['/', '\\']).collect();
    let has_drive = parts.first().is_some_and(|first| first.contains(':'));
    if name.starts_with(['/', '\\']) || has_drive || parts.contains(&"..") {
        return Err(format!("the archive has a name that leads out of it: `{}`", shortened(name)));
    }
    if entry.is_dir() || entry.is_symlink() {
        return Ok(None);
    }
    let [.., gate, folder, file] = parts.as_slice() else { return Ok(None) };
    let path = format!("{gate}/{folder}/{file}");
    Ok(is_ours(&path).then_some(path))
}

/// A text from outside, short and in one line.
fn shortened(text: &str) -> String {
    text.chars().map(|symbol| if symbol.is_control() { ' ' } else { symbol }).take(120).collect()
}

#[cfg(test)]
mod tests;
