//! Where things are in a store: `NAME/HASH12/ID.json`, `NAME/HASH12/ID.pin`, `NAME/HASH12/noise.json`.

use gate_model::{BaselineKey, is_gate_name};

use crate::BaselineError;

/// How many digits of the key's hash name a folder.
const HASH_DIGITS: usize = 12;

/// The file of what calibration found, without its ending.
const NOISE: &str = "noise";

/// What a file of a store is, by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The baseline of this id.
    Baseline(String),
    /// The pin of this id.
    Pin(String),
    /// What calibration found.
    Noise,
}

impl Kind {
    /// Reads a file's name; `None` where it is none of ours.
    pub(crate) fn of(file: &str) -> Option<Self> {
        let (stem, ending) = file.rsplit_once('.')?;
        match ending {
            "json" if stem == NOISE => Some(Self::Noise),
            "json" if is_id(stem) => Some(Self::Baseline(stem.to_owned())),
            "pin" if is_id(stem) => Some(Self::Pin(stem.to_owned())),
            _ => None,
        }
    }

    fn file(&self) -> String {
        match self {
            Self::Baseline(id) => format!("{id}.json"),
            Self::Pin(id) => format!("{id}.pin"),
            Self::Noise => format!("{NOISE}.json"),
        }
    }
}

/// The folder of a key below its gate's.
pub(crate) fn key_folder(key: &BaselineKey) -> Result<String, BaselineError> {
    let folder = folder_of(&key.hash);
    if !is_key_folder(&folder) {
        return Err(unusable(&key.hash, "a key's hash", "it is no hexadecimal hash"));
    }
    Ok(folder)
}

/// What of a hash names the folder.
pub(crate) fn folder_of(hash: &str) -> String {
    hash.chars().take(HASH_DIGITS).collect()
}

/// Whether a folder's name can be a key's.
pub(crate) fn is_key_folder(name: &str) -> bool {
    name.len() == HASH_DIGITS && name.bytes().all(|digit| digit.is_ascii_digit() || (b'a'..=b'f').contains(&digit))
}

/// Whether a path from a store's root is that of a file of ours.
pub(crate) fn is_ours(path: &str) -> bool {
    match path.split('/').collect::<Vec<_>>().as_slice() {
        [name, folder, file] => is_gate_name(name) && is_key_folder(folder) && Kind::of(file).is_some(),
        _ => false,
    }
}

/// The path of a file in a store. Every part of it is checked, so it leads nowhere else.
pub(crate) fn path(name: &str, folder: &str, kind: &Kind) -> String {
    format!("{name}/{folder}/{}", kind.file())
}

pub(crate) fn check_name(name: &str) -> Result<(), BaselineError> {
    match is_gate_name(name) {
        true => Ok(()),
        false => Err(unusable(name, "a gate's name", "it is letters, digits, `.`, `_` and `-`, at most 64")),
    }
}

pub(crate) fn check_id(id: &str) -> Result<(), BaselineError> {
    match is_id(id) {
        true => Ok(()),
        false => Err(unusable(id, "a run's id", "it is letters, digits, `.`, `_` and `-`, at most 128")),
    }
}

/// Whether a text can be a run's id: it names a file.
fn is_id(text: &str) -> bool {
    let allowed = |symbol: char| symbol.is_ascii_alphanumeric() || "._-".contains(symbol);
    text.len() <= 128
        && text.starts_with(|first: char| first.is_ascii_alphanumeric())
        && text.chars().all(allowed)
        && text != NOISE
}

/// Why something is no place for baselines.
pub(crate) fn no_store(store: &str, why: &str) -> BaselineError {
    unusable(store, "a store", why)
}

fn unusable(text: &str, what: &'static str, why: &str) -> BaselineError {
    BaselineError::Unusable { text: text.chars().take(80).collect(), what, why: why.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_files_are_ours() {
        assert_eq!(Kind::of("a1.json"), Some(Kind::Baseline("a1".to_owned())));
        assert_eq!(Kind::of("a.1-_.pin"), Some(Kind::Pin("a.1-_".to_owned())));
        assert_eq!(Kind::of("noise.json"), Some(Kind::Noise));
        for name in ["noise.pin", "a.txt", "..json", ".json", "-a.json", "a b.json", "a/b.json", "json", "é.json"] {
            assert_eq!(Kind::of(name), None, "{name}");
        }
        for kind in [Kind::Baseline("a".to_owned()), Kind::Pin("a.b".to_owned()), Kind::Noise] {
            assert_eq!(Kind::of(&kind.file()), Some(kind));
        }
    }

    #[test]
    fn no_name_leads_elsewhere() {
        for text in ["", "..", ".", "a/..", "../a", "/a", "-rf", "a\\b", "a\0", &"a".repeat(129)] {
            assert!(check_id(text).is_err() && check_name(text).is_err(), "{text:?}");
        }
        for hash in ["", "../../../../..", "0123456789aG", "0123456789AB", "01234"] {
            assert!(key_folder(&BaselineKey { hash: hash.to_owned(), ..BaselineKey::default() }).is_err(), "{hash}");
        }
    }
}
