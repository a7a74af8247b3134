//! Files: read whole, written whole or not at all, without secrets.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use gate_model::{Redactor, Verdict};
use sha2::{Digest, Sha256};

use crate::failure::Failure;

/// The largest journal or verdict that is read whole.
pub(crate) const LARGE: u64 = 2 << 30;
/// The largest file of prompts.
pub(crate) const MEDIUM: u64 = 256 << 20;
/// The largest spec: one byte more than gate-spec takes, so that it can say so.
pub(crate) const SMALL: u64 = (1 << 20) + 1;

/// Reads a text file the person named, at most so many bytes of it (a pipe or a device may have no end).
pub(crate) fn read(path: &Path, most: u64) -> Result<String, Failure> {
    text(read_bytes(path, most)?).map_err(|error| Failure::unreadable(path, error))
}

/// A file's bytes as text, or where they are none.
pub(crate) fn text(bytes: Vec<u8>) -> Result<String, String> {
    String::from_utf8(bytes).map_err(|error| {
        let before = error.as_bytes().iter().take(error.utf8_error().valid_up_to());
        format!("line {} is not UTF-8", before.filter(|byte| **byte == b'\n').count() + 1)
    })
}

/// Reads a file the person named, at most so many bytes of it.
pub(crate) fn read_bytes(path: &Path, most: u64) -> Result<Vec<u8>, Failure> {
    let open = || -> std::io::Result<Vec<u8>> {
        let file = File::open(path)?;
        if file.metadata()?.is_dir() {
            return Err(std::io::Error::other("it is a folder"));
        }
        let mut bytes = Vec::new();
        file.take(most).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = open().map_err(|error| Failure::unreadable(path, error))?;
    if most > SMALL && bytes.len() as u64 == most {
        return Err(Failure::unreadable(path, format!("it is larger than {} MiB", most >> 20)));
    }
    Ok(bytes)
}

/// Makes a folder with its parents.
pub(crate) fn make_folder(path: &Path) -> Result<(), Failure> {
    fs::create_dir_all(path).map_err(|error| Failure::unwritable(path, error))
}

/// Replaces a file in one step: a reader sees the old text or the new, never half of one.
///
/// A link stays a link: what it names is replaced. A device or a pipe is written to.
pub(crate) fn replace(path: &Path, text: &str) -> Result<(), Failure> {
    let unwritable = |error: std::io::Error| Failure::unwritable(path, error);
    let path = &match fs::metadata(path) {
        Ok(facts) if facts.is_dir() => return Err(Failure::unwritable(path, "it is a folder")),
        Ok(facts) if !facts.is_file() => {
            let mut open = File::options().write(true).open(path).map_err(unwritable)?;
            return open.write_all(text.as_bytes()).map_err(unwritable);
        }
        Ok(_) => fs::canonicalize(path).map_err(unwritable)?,
        Err(_) => path.to_path_buf(),
    };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    make_folder(folder)?;
    let write = || -> std::io::Result<()> {
        let mut file = tempfile::Builder::new().prefix(".gate-").tempfile_in(folder)?;
        file.write_all(text.as_bytes())?;
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            // Reports are for everyone the folder is for; a temporary file starts out private.
            file.as_file().set_permissions(fs::Permissions::from_mode(0o644))?;
        }
        file.persist(path).map_err(|error| error.error)?;
        Ok(())
    };
    write().map_err(|error| Failure::unwritable(path, error))
}

/// SHA-256 of a file's bytes, in hexadecimal.
pub(crate) fn digest(path: &Path) -> Result<String, Failure> {
    let unreadable = |error: std::io::Error| Failure::unreadable(path, error);
    let mut file = File::open(path).map_err(unreadable)?;
    let (mut digest, mut bytes) = (Sha256::new(), vec![0; 1 << 18]);
    loop {
        let read = file.read(&mut bytes).map_err(unreadable)?;
        let Some(read) = bytes.get(..read).filter(|read| !read.is_empty()) else { break };
        digest.update(read);
    }
    Ok(digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// A verdict as JSON text, without secrets.
pub(crate) fn verdict_text(verdict: &Verdict, redactor: &Redactor) -> Result<String, Failure> {
    let mut value = serde_json::to_value(verdict)
        .map_err(|error| Failure::internal(format!("cannot write the verdict: {error}")))?;
    redactor.redact_json(&mut value);
    let text = serde_json::to_string_pretty(&value)
        .map_err(|error| Failure::internal(format!("cannot write the verdict: {error}")))?;
    Ok(text + "\n")
}

/// The way from a folder to a file, as a verdict names its journal.
pub(crate) fn relative(folder: &Path, file: &Path) -> PathBuf {
    let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    let (folder, file) = (absolute(folder), absolute(file));
    let shared = folder.components().zip(file.components()).take_while(|(left, right)| left == right).count();
    let up = folder.components().skip(shared).map(|_| std::path::Component::ParentDir);
    up.chain(file.components().skip(shared)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_is_named_from_its_verdict() {
        assert_eq!(relative(Path::new("/a/b"), Path::new("/a/b/run.jsonl")), Path::new("run.jsonl"));
        assert_eq!(relative(Path::new("/a/b/c"), Path::new("/a/d/run.jsonl")), Path::new("../../d/run.jsonl"));
    }

    #[test]
    fn replacing_leaves_no_other_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/report.txt");
        replace(&path, "one").unwrap();
        replace(&path, "two").unwrap();
        assert_eq!(read(&path, SMALL).unwrap(), "two");
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
        assert!(read(folder.path(), SMALL).unwrap_err().message.contains("it is a folder"));
        assert!(replace(folder.path(), "x").unwrap_err().message.contains("it is a folder"));
    }

    #[cfg(unix)]
    #[test]
    fn a_link_stays_a_link_and_a_device_a_device() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&file, "old").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        replace(&link, "new").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        replace(Path::new("/dev/null"), "text").unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
        assert!(replace(Path::new("/dev/full"), "text").is_err());
    }

    #[cfg(unix)]
    #[test]
    fn a_file_without_end_is_read_to_the_limit() {
        assert_eq!(read(Path::new("/dev/zero"), 1000).unwrap().len(), 1000);
    }
}
