//! `gate report`: a verdict rendered again, offline, or two verdicts compared.

use std::path::{Path, PathBuf};

use gate_model::{ExitCode, Run, VERDICT_SCHEMA, Verdict};
use gate_report::{More, Page};

use crate::cli::Report;
use crate::console::Console;
use crate::failure::Failure;
use crate::{files, journals, reports};

pub(crate) fn report(arguments: &Report, console: &Console) -> Result<ExitCode, Failure> {
    let files = named(arguments);
    if files.iter().filter(|(_, file)| *file == Path::new("-")).count() > 1 {
        return Err(Failure::usage("only one report can go to stdout: give the others a file"));
    }
    match arguments.verdicts.as_slice() {
        [before, after] => compare(arguments, [before, after], console)?,
        [path, ..] => render(arguments, path, console)?,
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
fn compare(arguments: &Report, paths: [&PathBuf; 2], console: &Console) -> Result<(), Failure> {
    let files = named(arguments);
    if let Some((flag, _)) = files.iter().find(|(flag, _)| !["--html", "--markdown"].contains(flag)) {
        return Err(Failure::usage(format!(
            "{flag} is of one verdict: two are compared as text, --markdown or --html"
        )));
    }
    if arguments.wording.template.is_some() {
        return Err(Failure::usage("--template words a comment, which two verdicts have none of"));
    }
    let [before, after] = [console.secrets.redacted(read(paths[0])?), console.secrets.redacted(read(paths[1])?)];
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

/// The requests of a verdict's run; where its journal is not to be had, a report goes without.
fn requests_of(path: &Path, verdict: &Verdict, console: &Console) -> Option<Run> {
    match journals::of_verdict(path, verdict) {
        Ok(run) => Some(run),
        Err(failure) => {
            console.warning(&Failure {
                message: format!("the report goes without requests: {}", failure.message),
                ..failure
            });
            None
        }
    }
}

/// One verdict in every form that is asked for; as text where none is.
fn render(arguments: &Report, path: &Path, console: &Console) -> Result<(), Failure> {
    let verdict = read(path)?;
    let verdicts = std::slice::from_ref(&verdict);
    if let Some(file) = &arguments.junit {
        reports::write_junit(verdicts, file, console)?;
    }
    if let Some(file) = &arguments.html {
        let run = requests_of(path, &verdict, console);
        reports::write_html(&[Page { verdict: &verdict, run: run.as_ref() }], file, console)?;
    }
    if let Some(file) = &arguments.json {
        reports::put(file, &files::verdict_text(&verdict, &console.secrets.redactor())?, console)?;
    }
    if let Some(file) = &arguments.samples {
        let run = journals::of_verdict(path, &verdict)?;
        if run.is_long() {
            let words = format!(
                "{}: the run has {} requests, and only the first are kept whole",
                path.display(),
                run.recorded()
            );
            return Err(Failure::usage(words).hint("--csv has all of them, in short"));
        }
        reports::put(file, &gate_report::samples(&run), console)?;
    }
    if let Some(file) = &arguments.csv {
        let run = journals::of_verdict(path, &verdict)?;
        reports::put(file, &console.secrets.redact(&gate_report::requests_csv(&run)), console)?;
    }
    if let Some(file) = &arguments.markdown {
        let template = reports::template_here(arguments.wording.template.as_deref())?;
        reports::write_comment(verdicts, &template, file, console)?;
    } else if arguments.wording.template.is_some() {
        return Err(Failure::usage("--template words the comment: say where to write it with --markdown FILE"));
    }
    if let Some(file) = &arguments.openmetrics {
        reports::write_openmetrics(verdicts, file, console)?;
    }
    if named(arguments).is_empty() {
        let run = path.display().to_string();
        let more = More { run: Some(&run), ..More::default() };
        console.data(&gate_report::terminal_with(&verdict, console.style, more))?;
    }
    Ok(())
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
