//! Verdicts as files: read, and kept out where no report could be made of them.

use std::path::Path;

use gate_model::{VERDICT_SCHEMA, Verdict};

use crate::failure::Failure;
use crate::files;

/// The most checks, and the most parts of any other kind, that a report is made of in a few seconds.
const MOST_PARTS: usize = 10_000;

/// The largest verdict that is taken from another job, and the most parts of a kind.
const MOST_OF_ANOTHER: (u64, usize) = (8 << 20, 2_000);

/// Reads a verdict that another job made, who may be a stranger's: it is a file, of a size that can be rendered, and does
/// not contradict itself.
pub(crate) fn read_foreign(path: &Path) -> Result<Verdict, Failure> {
    if std::fs::metadata(path).is_ok_and(|file| !file.is_file() && !file.is_dir()) {
        return Err(Failure::unreadable(path, "it is no file"));
    }
    let (bytes, parts) = MOST_OF_ANOTHER;
    let verdict = read_within(path, bytes, parts)?;
    if !gate_model::is_gate_name(&verdict.name) {
        return Err(wrong(path, "its name is not one of a gate"));
    }
    if !verdict.is_consistent() {
        return Err(wrong(path, "its exit code contradicts its status"));
    }
    Ok(verdict)
}

fn wrong(path: &Path, why: &str) -> Failure {
    Failure::unreadable(path, why).hint("a verdict is what `gate check` writes")
}

/// Reads a verdict that a person named.
///
/// # Errors
/// That it is none, of a later schema, or larger than a report can be made of.
pub(crate) fn read(path: &Path) -> Result<Verdict, Failure> {
    read_within(path, files::LARGE, MOST_PARTS)
}

/// Reads a verdict of at most so many bytes, and so many parts of each kind.
fn read_within(path: &Path, most: u64, most_parts: usize) -> Result<Verdict, Failure> {
    if path.is_dir() {
        let inside = path.join("verdict.json");
        let hint = match inside.is_file() {
            true => format!("name the verdict in it: {}", inside.display()),
            false => "name a gate's verdict, such as .gate/chat/verdict.json".to_owned(),
        };
        return Err(Failure::unreadable(path, "it is a folder").hint(hint));
    }
    let text = files::read(path, most)?;
    let value: serde_json::Value = serde_json::from_str(&text).map_err(|error| {
        Failure::unreadable(path, format!("it is not a verdict: {error}"))
            .hint("a verdict is the verdict.json that `gate check` and `gate judge --out` write")
    })?;
    let schema = value.get("schema").and_then(serde_json::Value::as_u64);
    match schema {
        Some(schema) if schema <= u64::from(VERDICT_SCHEMA) => {}
        Some(schema) => {
            let reads = format!("it has schema {schema}, and this gate reads up to {VERDICT_SCHEMA}");
            return Err(Failure::unreadable(path, reads).hint("use the version of gate that wrote it, or a later one"));
        }
        None => return Err(Failure::unreadable(path, "it is not a verdict: it has no `schema`")),
    }
    let verdict: Verdict = serde_json::from_value(value)
        .map_err(|error| Failure::unreadable(path, format!("it is not a verdict: {error}")))?;
    match verdict.crowd(most_parts) {
        None => Ok(verdict),
        Some((what, count)) => {
            Err(wrong(path, &format!("it has {count} {what}, and a report is made of at most {most_parts}")))
        }
    }
}
