//! Writing what a verdict becomes: the files of one gate, and the files that hold several.

use std::path::{Path, PathBuf};

use gate_model::{Diagnostic, ExitCode, JournalRef, Run, Verdict};
use gate_report::{About, CommentTemplate, More, Page};

use crate::cli::Outputs;
use crate::console::Console;
use crate::failure::Failure;
use crate::{files, journals};

const VERDICT: &str = "verdict.json";
const JUNIT: &str = "junit.xml";
const HTML: &str = "report.html";
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
    for name in [VERDICT, JUNIT, HTML, COMMENT, SUMMARY, ANNOTATIONS, METRICS, GITLAB_PERFORMANCE, GITLAB_ANNOTATIONS] {
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

/// A run as its page may show it: the spec's texts without secrets, before escaping changes how they look. What servers
/// said was cleaned when it was recorded.
pub(crate) fn shown(mut run: Run, console: &Console) -> Run {
    run.header.spec = console.secrets.redacted(run.header.spec);
    run
}

/// Where a gate's HTML report is, in its folder.
pub(crate) fn page(folder: &Path) -> PathBuf {
    folder.join(HTML)
}

/// Where a gate's verdict is, in its folder.
pub(crate) fn verdict(folder: &Path) -> PathBuf {
    folder.join(VERDICT)
}

/// Tells people a verdict, and where there is more of it: its page, and the journal that its checks can be explained by.
pub(crate) fn tell(verdict: &Verdict, page: Option<&Path>, journal: Option<&PathBuf>, console: &Console) {
    let (report, run) = (page.map(|page| page.display().to_string()), journal.map(|run| run.display().to_string()));
    let more = More { report: report.as_deref(), run: run.as_deref() };
    console.people(&gate_report::terminal_with(verdict, console.style, more));
}

/// Writes one gate's reports into its folder.
pub(crate) fn write(
    verdict: &Verdict,
    run: &Run,
    folder: &Path,
    template: &CommentTemplate,
    console: &Console,
) -> Result<(), Failure> {
    let redactor = console.secrets.redactor();
    files::replace(&self::verdict(folder), &files::verdict_text(verdict, &redactor)?)?;
    let verdicts = std::slice::from_ref(verdict);
    write_junit(verdicts, &folder.join(JUNIT), console)?;
    write_comment(verdicts, template, &folder.join(COMMENT), console)?;
    write_html(&[Page { verdict, run: Some(run) }], &folder.join(HTML), console)?;
    let summary = gate_report::summary(verdicts).map_err(|error| failed(&error))?;
    put(&folder.join(SUMMARY), &console.secrets.redact(&summary), console)?;
    put(&folder.join(ANNOTATIONS), &console.secrets.redact(&gate_report::annotations(verdicts)), console)?;
    write_openmetrics(verdicts, &folder.join(METRICS), console)
}

fn failed(error: &gate_report::ReportError) -> Failure {
    Failure::internal(format!("failed to {error}"))
}

/// Writes the pull-request comment's Markdown (`-`: stdout).
pub(crate) fn write_comment(
    verdicts: &[Verdict],
    template: &CommentTemplate,
    path: &Path,
    console: &Console,
) -> Result<(), Failure> {
    let text = gate_report::comment_by(template, verdicts, &About::default()).map_err(|error| wrong(&error))?;
    put(path, &console.secrets.redact(&text), console)
}

/// What a user's template brought about.
fn wrong(error: &gate_report::ReportError) -> Failure {
    Failure::usage(format!("failed to {error}")).hint("docs/template.md says what a template is given")
}

/// The largest template of a user's own.
const TEMPLATE: u64 = 64 << 10;

/// The comment's template: the built-in one, or that of a file, whose text may come from elsewhere than the checkout.
pub(crate) fn template(
    path: Option<&Path>,
    text: impl FnOnce(&Path) -> Result<Option<String>, Failure>,
) -> Result<CommentTemplate, Failure> {
    let text = path.map(|path| Ok((path, text(path)?))).transpose()?;
    match text {
        Some((path, Some(text))) => {
            if text.len() as u64 > TEMPLATE {
                return Err(Failure::unreadable(path, format!("a template has at most {} KiB", TEMPLATE >> 10)));
            }
            CommentTemplate::parse(&path.display().to_string(), &text).map_err(|error| wrong(&error))
        }
        _ => CommentTemplate::built_in().map_err(|error| failed(&error)),
    }
}

/// The template that a file of the checkout has.
pub(crate) fn template_here(path: Option<&Path>) -> Result<CommentTemplate, Failure> {
    template(path, |path| files::read(path, files::SMALL).map(Some))
}

/// Writes the HTML report (`-`: stdout).
pub(crate) fn write_html(pages: &[Page<'_>], path: &Path, console: &Console) -> Result<(), Failure> {
    let text = gate_report::html(pages).map_err(|error| failed(&error))?;
    put(path, &console.secrets.redact(&text), console)
}

/// Writes the HTML report of all gates, whose verdicts and journals are in folders of their names; of a journal that is
/// not there any more what the verdict says.
pub(crate) fn write_html_of(verdicts: &[Verdict], out: &Path, path: &Path, console: &Console) -> Result<(), Failure> {
    let run = |verdict: &Verdict| journals::of_verdict(&self::verdict(&out.join(&verdict.name)), verdict).ok();
    let runs: Vec<Option<Run>> = verdicts.iter().map(run).collect();
    let pages = verdicts.iter().zip(&runs).map(|(verdict, run)| Page { verdict, run: run.as_ref() });
    write_html(&pages.collect::<Vec<_>>(), path, console)
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
    let file = |path: &Option<PathBuf>| path.iter().filter(|path| *path != Path::new("-")).cloned().collect::<Vec<_>>();
    let (junit, html) = (file(&outputs.junit), file(&outputs.html));
    vec![
        ("out", vec![out.to_path_buf()]),
        ("report", if html.is_empty() { of_each(HTML) } else { html }),
        ("comment-files", of_each(COMMENT)),
        ("verdict-files", of_each(VERDICT)),
        ("junit", if junit.is_empty() { of_each(JUNIT) } else { junit }),
    ]
}

/// Writes a text to a file, or to stdout where the file is `-`.
pub(crate) fn put(path: &Path, text: &str, console: &Console) -> Result<(), Failure> {
    if path == Path::new("-") { console.data(text) } else { files::replace(path, text) }
}

/// Writes what was asked for of all gates, and gives the job's exit code.
pub(crate) fn conclude(
    verdicts: &[Verdict],
    html: impl FnOnce(&Path) -> Result<(), Failure>,
    outputs: &Outputs,
    console: &Console,
) -> Result<ExitCode, Failure> {
    if let Some(path) = &outputs.html {
        html(path)?;
    }
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
