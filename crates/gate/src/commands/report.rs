//! `gate report`: a verdict rendered again, offline.

use std::path::Path;

use gate_model::{ExitCode, Run, VERDICT_SCHEMA, Verdict};

use crate::cli::Report;
use crate::console::Console;
use crate::failure::Failure;
use crate::{files, journals, reports};

pub(crate) fn report(arguments: &Report, console: &Console) -> Result<ExitCode, Failure> {
    let path = &arguments.verdict;
    let files = [&arguments.junit, &arguments.json, &arguments.samples, &arguments.markdown, &arguments.openmetrics];
    if files.iter().filter(|file| file.as_deref() == Some(Path::new("-"))).count() > 1 {
        return Err(Failure::usage("only one report can go to stdout: give the others a file"));
    }
    let verdict = read(path)?;
    if let Some(file) = &arguments.junit {
        reports::write_junit(std::slice::from_ref(&verdict), file, console)?;
    }
    if let Some(file) = &arguments.json {
        reports::put(file, &files::verdict_text(&verdict, &console.secrets.redactor())?, console)?;
    }
    if let Some(file) = &arguments.samples {
        let run = journal(path, &verdict)?;
        if run.is_long() {
            let words = format!(
                "{}: the run has {} requests, and only the first are kept whole",
                path.display(),
                run.recorded()
            );
            return Err(Failure::usage(words).hint("read the journal itself: one JSON object a request"));
        }
        reports::put(file, &gate_report::samples(&run), console)?;
    }
    if let Some(file) = &arguments.markdown {
        reports::write_comment(std::slice::from_ref(&verdict), file, console)?;
    }
    if let Some(file) = &arguments.openmetrics {
        reports::write_openmetrics(std::slice::from_ref(&verdict), file, console)?;
    }
    if files.iter().all(|file| file.is_none()) {
        console.data(&gate_report::terminal(&verdict, console.style))?;
    }
    Ok(ExitCode::Passed)
}

pub(crate) fn read(path: &Path) -> Result<Verdict, Failure> {
    read_within(path, files::LARGE)
}

/// Reads a verdict of at most so many bytes.
pub(crate) fn read_within(path: &Path, most: u64) -> Result<Verdict, Failure> {
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
    serde_json::from_value(value).map_err(|error| Failure::unreadable(path, format!("it is not a verdict: {error}")))
}

/// The run of the journals a verdict names, if they are still those it was made from.
pub(crate) fn journal(verdict_path: &Path, verdict: &Verdict) -> Result<Run, Failure> {
    if verdict.journals.is_empty() {
        return Err(Failure::usage(format!("{} names no journal to take requests from", verdict_path.display())));
    }
    let mut paths = Vec::new();
    for reference in &verdict.journals {
        let path = verdict_path.parent().unwrap_or(Path::new("")).join(&reference.path);
        if files::digest(&path)? != reference.sha256 {
            return Err(Failure::unreadable(&path, "it has changed since the verdict was made"));
        }
        paths.push(path);
    }
    journals::read_all(&paths)
}
