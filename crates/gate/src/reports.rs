//! Writing what a verdict becomes: the files of one gate, and the files that hold several.

use std::path::{Path, PathBuf};

use gate_model::{ExitCode, JournalRef, Verdict};

use crate::cli::Outputs;
use crate::console::Console;
use crate::failure::Failure;
use crate::files;

const VERDICT: &str = "verdict.json";
const JUNIT: &str = "junit.xml";
const COMMENT: &str = "comment.md";
const SUMMARY: &str = "summary.md";
const ANNOTATIONS: &str = "annotations.txt";
const METRICS: &str = "metrics.txt";

/// Names the journals a verdict rests on, by their paths from the verdict's folder and their hashes.
pub(crate) fn refer(verdict: &mut Verdict, folder: &Path, journals: &[PathBuf]) -> Result<(), Failure> {
    for journal in journals {
        let path = files::relative(folder, journal).display().to_string();
        verdict.journals.push(JournalRef { path, sha256: files::digest(journal)? });
    }
    Ok(())
}

/// Removes the reports of an earlier run, so that a run that is killed leaves none that look like its own.
pub(crate) fn clear(folder: &Path) -> Result<(), Failure> {
    for name in [VERDICT, JUNIT, COMMENT, SUMMARY, ANNOTATIONS, METRICS] {
        let path = folder.join(name);
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(Failure::unwritable(&path, error));
            }
            _ => {}
        }
    }
    Ok(())
}

/// Writes one gate's reports into its folder.
pub(crate) fn write(verdict: &Verdict, folder: &Path, console: &Console) -> Result<(), Failure> {
    let redactor = console.secrets.redactor();
    files::replace(&folder.join(VERDICT), &files::verdict_text(verdict, &redactor)?)?;
    let verdicts = std::slice::from_ref(verdict);
    write_junit(verdicts, &folder.join(JUNIT), console)?;
    write_comment(verdicts, &folder.join(COMMENT), console)?;
    let summary = gate_report::summary(verdicts).map_err(|error| failed(&error))?;
    put(&folder.join(SUMMARY), &console.secrets.redact(&summary), console)?;
    put(&folder.join(ANNOTATIONS), &console.secrets.redact(&gate_report::annotations(verdicts)), console)?;
    write_openmetrics(verdicts, &folder.join(METRICS), console)
}

fn failed(error: &gate_report::ReportError) -> Failure {
    Failure::internal(format!("failed to {error}"))
}

/// Writes the pull-request comment's Markdown (`-`: stdout).
pub(crate) fn write_comment(verdicts: &[Verdict], path: &Path, console: &Console) -> Result<(), Failure> {
    let text = gate_report::comment(verdicts, None).map_err(|error| failed(&error))?;
    put(path, &console.secrets.redact(&text), console)
}

/// Writes OpenMetrics (`-`: stdout).
pub(crate) fn write_openmetrics(verdicts: &[Verdict], path: &Path, console: &Console) -> Result<(), Failure> {
    put(path, &console.secrets.redact(&gate_report::openmetrics(verdicts)), console)
}

/// Writes JUnit of several gates (`-`: stdout).
pub(crate) fn write_junit(verdicts: &[Verdict], path: &Path, console: &Console) -> Result<(), Failure> {
    let text = gate_report::junit(verdicts).map_err(|error| failed(&error))?;
    put(path, &console.secrets.redact(&text), console)
}

/// Writes a text to a file, or to stdout where the file is `-`.
pub(crate) fn put(path: &Path, text: &str, console: &Console) -> Result<(), Failure> {
    if path == Path::new("-") { console.data(text) } else { files::replace(path, text) }
}

/// Writes what was asked for of all gates, and gives the job's exit code.
pub(crate) fn conclude(verdicts: &[Verdict], outputs: &Outputs, console: &Console) -> Result<ExitCode, Failure> {
    if let Some(path) = &outputs.junit {
        write_junit(verdicts, path, console)?;
    }
    if outputs.json {
        let redactor = console.secrets.redactor();
        for verdict in verdicts {
            console.data(&files::verdict_text(verdict, &redactor)?)?;
        }
    }
    Ok(verdicts.iter().fold(ExitCode::Passed, |worst, verdict| worst.worse(verdict.exit)))
}
