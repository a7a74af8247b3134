//! The texts of `fixtures/reports`, as they were read and approved.

use std::path::PathBuf;

pub(crate) fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/reports")
}

/// Holds a text against its file; `UPDATE_FIXTURES=1` writes the file anew.
#[track_caller]
pub(crate) fn expect(file: &str, text: &str) {
    let path = folder().join(file);
    if std::env::var_os("UPDATE_FIXTURES").is_some() {
        std::fs::write(&path, text).unwrap();
    }
    assert_eq!(text, std::fs::read_to_string(&path).unwrap_or_default(), "{file}");
}
