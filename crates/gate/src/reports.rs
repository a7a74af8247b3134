//! Writing what a verdict becomes: the files of one gate, and the files that hold several.

use std::path::{Path, PathBuf};

use gate_model::{Diagnostic, ExitCode, JournalRef, Verdict};
use gate_report::About;

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
const GITLAB_PERFORMANCE: &str = "gl-load-performance.json";
const GITLAB_ANNOTATIONS: &str = "gl-annotations.json";

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
    for name in [VERDICT, JUNIT, COMMENT, SUMMARY, ANNOTATIONS, METRICS, GITLAB_PERFORMANCE, GITLAB_ANNOTATIONS] {
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
    let text = gate_report::comment(verdicts, &About::default()).map_err(|error| failed(&error))?;
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

/// Writes the JUnit report of specs that need what is not set, where the job's own would be.
pub(crate) fn write_unresolved(
    wrong: &[Diagnostic],
    out: &Path,
    outputs: &Outputs,
    console: &Console,
) -> Result<(), Failure> {
    let file =
        |one: &Diagnostic| one.place.as_ref().map_or_else(|| "the command line".to_owned(), |place| place.file.clone());
    let wrong: Vec<_> = wrong.iter().map(|one| (file(one), one.message.clone())).collect();
    let text = gate_report::junit_unresolved(&wrong).map_err(|error| failed(&error))?;
    put(outputs.junit.as_deref().unwrap_or(&out.join(JUNIT)), &console.secrets.redact(&text), console)
}

/// Writes what GitLab shows beside a merge request: of each gate into its folder, and of all into the folder of these,
/// since GitLab takes one file of a kind. The job's page is linked.
pub(crate) fn write_for_gitlab(
    verdicts: &[Verdict],
    page: Option<&str>,
    out: &Path,
    console: &Console,
) -> Result<(), Failure> {
    let each = verdicts.iter().map(|verdict| (out.join(&verdict.name), std::slice::from_ref(verdict)));
    for (folder, verdicts) in each.chain([(out.to_path_buf(), verdicts)]) {
        put(
            &folder.join(GITLAB_PERFORMANCE),
            &console.secrets.redact(&gate_report::load_performance(verdicts)),
            console,
        )?;
        let links: Vec<(String, String)> = page
            .iter()
            .flat_map(|page| {
                verdicts
                    .iter()
                    .map(|verdict| (gate_report::check_title(std::slice::from_ref(verdict)), (*page).to_owned()))
            })
            .collect();
        put(
            &folder.join(GITLAB_ANNOTATIONS),
            &console.secrets.redact(&gate_report::gitlab_annotations(&links)),
            console,
        )?;
    }
    Ok(())
}

/// The files that later steps of a job may want, by the names of a step's outputs.
pub(crate) fn files(verdicts: &[Verdict], out: &Path, outputs: &Outputs) -> Vec<(&'static str, Vec<PathBuf>)> {
    let of_each = |name: &str| verdicts.iter().map(|verdict| out.join(&verdict.name).join(name)).collect::<Vec<_>>();
    let junit = outputs.junit.iter().filter(|path| *path != Path::new("-")).cloned().collect::<Vec<_>>();
    vec![
        ("out", vec![out.to_path_buf()]),
        ("report", of_each(COMMENT)),
        ("verdict-files", of_each(VERDICT)),
        ("junit", if junit.is_empty() { of_each(JUNIT) } else { junit }),
    ]
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
