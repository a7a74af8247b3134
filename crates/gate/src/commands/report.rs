//! `gate report`: a verdict rendered again, offline, or two verdicts compared.

use std::path::{Path, PathBuf};

use gate_model::{ExitCode, Run, Verdict};
use gate_report::{More, Page};

use crate::apart::Apart;
use crate::cli::Report;
use crate::console::Console;
use crate::failure::Failure;
use crate::{files, journals, reports, verdicts};

pub(crate) fn report(arguments: &Report, console: &Console) -> Result<ExitCode, Failure> {
    let mut apart = Apart::default();
    apart.keep("the verdict", &arguments.verdicts);
    apart.keep("the template", arguments.wording.template.iter());
    named(arguments).into_iter().for_each(|(flag, file)| apart.write(flag, Some(file)));
    apart.check()?;
    match arguments.verdicts.as_slice() {
        [before, after] => compare(arguments, [before, after], apart, console)?,
        [path, ..] => render(arguments, path, apart, console)?,
        [] => return Err(Failure::usage("name a verdict.json")),
    }
    Ok(ExitCode::Passed)
}

/// The files that are to be written, by their flags.
fn named(arguments: &Report) -> Vec<(&'static str, &PathBuf)> {
    let Report { junit, html, markdown, openmetrics, json, samples, csv, .. } = arguments;
    let flags = [
        ("--junit", junit),
        ("--html", html),
        ("--markdown", markdown),
        ("--openmetrics", openmetrics),
        ("--json", json),
        ("--samples", samples),
        ("--csv", csv),
    ];
    flags.into_iter().filter_map(|(flag, file)| Some((flag, file.as_ref()?))).collect()
}

/// What changed from one verdict to another.
fn compare(arguments: &Report, paths: [&PathBuf; 2], mut apart: Apart<'_>, console: &Console) -> Result<(), Failure> {
    let files = named(arguments);
    if let Some((flag, _)) = files.iter().find(|(flag, _)| !["--html", "--markdown"].contains(flag)) {
        return Err(Failure::usage(format!(
            "{flag} is of one verdict: two are compared as text, --markdown or --html"
        )));
    }
    if arguments.wording.template.is_some() {
        return Err(Failure::usage("--template words a comment, which two verdicts have none of"));
    }
    let [before, after] = [verdicts::read(paths[0])?, verdicts::read(paths[1])?];
    apart.keep(JOURNAL, journals::named_by(paths[0], &before));
    apart.keep(JOURNAL, journals::named_by(paths[1], &after));
    apart.check()?;
    let [before, after] = [console.secrets.redacted(before), console.secrets.redacted(after)];
    if let Some(file) = &arguments.markdown {
        reports::put(file, &console.secrets.redact(&gate_report::versus_markdown(&before, &after)), console)?;
    }
    if let Some(file) = &arguments.html {
        let runs = [(paths[0], &before), (paths[1], &after)].map(|(path, verdict)| requests_of(path, verdict, console));
        let [first, second] =
            [Page { verdict: &before, run: runs[0].as_ref() }, Page { verdict: &after, run: runs[1].as_ref() }];
        let text = gate_report::html_versus(&first, &second)
            .map_err(|error| Failure::internal(format!("failed to {error}")))?;
        reports::put(file, &console.secrets.redact(&text), console)?;
    }
    if files.is_empty() {
        console.data(&gate_report::versus_text(&before, &after, console.style))?;
    }
    Ok(())
}

/// What a verdict was made from.
const JOURNAL: &str = "the journal that the verdict rests on";

/// The requests of a verdict's run; where its journal is not to be had, a report goes without.
fn requests_of(path: &Path, verdict: &Verdict, console: &Console) -> Option<Run> {
    let goes_without = |failure: Failure| {
        let message = format!("the report goes without requests: {}", failure.message);
        console.warning(&Failure { message, ..failure });
    };
    journals::of_verdict(path, verdict).map_err(goes_without).ok().map(|run| reports::shown(run, console))
}

/// One verdict in every form that is asked for; as text where none is.
///
/// Where its journal is not to be had, all that can be written without it is written first.
fn render(arguments: &Report, path: &Path, mut apart: Apart<'_>, console: &Console) -> Result<(), Failure> {
    let verdict = verdicts::read(path)?;
    apart.keep(JOURNAL, journals::named_by(path, &verdict));
    apart.check()?;
    let template = match (&arguments.wording.template, &arguments.markdown) {
        (Some(_), None) => {
            return Err(Failure::usage("--template words the comment: say where to write it with --markdown FILE"));
        }
        (template, _) => reports::template_here(template.as_deref())?,
    };
    let verdicts = std::slice::from_ref(&verdict);
    if let Some(file) = &arguments.junit {
        reports::write_junit(verdicts, file, console)?;
    }
    if let Some(file) = &arguments.json {
        reports::put(file, &files::verdict_text(&verdict, &console.secrets.redactor())?, console)?;
    }
    if let Some(file) = &arguments.markdown {
        reports::write_comment(verdicts, &template, file, console)?;
    }
    if let Some(file) = &arguments.openmetrics {
        reports::write_openmetrics(verdicts, file, console)?;
    }
    if named(arguments).is_empty() {
        let run = path.display().to_string();
        let more = More { run: Some(&run), ..More::default() };
        console.data(&gate_report::terminal_with(&verdict, console.style, more))?;
    }
    let Report { samples, csv, html, .. } = arguments;
    let run = match (html, samples.is_some() || csv.is_some()) {
        (_, true) => journals::of_verdict(path, &verdict).map(|run| Some(reports::shown(run, console))),
        (Some(_), false) => Ok(requests_of(path, &verdict, console)),
        (None, false) => return Ok(()),
    };
    if let Some(file) = html {
        let run = run.as_ref().ok().and_then(Option::as_ref);
        reports::write_html(&[Page { verdict: &verdict, run }], file, console)?;
    }
    let Some(run) = run? else { return Ok(()) };
    if let Some(file) = csv {
        reports::put(file, &console.secrets.redact(&gate_report::requests_csv(&run)), console)?;
    }
    let Some(file) = samples else { return Ok(()) };
    if run.is_long() {
        let recorded = run.recorded();
        let words = format!("{}: the run has {recorded} requests, and only the first are kept whole", path.display());
        return Err(Failure::usage(words).hint("--csv has all of them, in short"));
    }
    reports::put(file, &gate_report::samples(&run), console)
}
