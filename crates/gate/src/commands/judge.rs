//! `gate judge`: the verdict alone, from a journal or another tool's file.

use std::path::Path;

use gate_import::{Format, Import};
use gate_model::{ExitCode, Run};

use crate::cli::Judge;
use crate::console::Console;
use crate::failure::Failure;
use crate::{files, measure, reports, specs};

pub(crate) fn judge(arguments: &Judge, console: &Console) -> Result<ExitCode, Failure> {
    let [path] = arguments.runs.as_slice() else {
        return Err(Failure::usage("several runs are not yet supported: judge one at a time"));
    };
    refuse_overwriting(path, arguments)?;
    let mut run = match &arguments.from {
        Some(format) => import(format, path, arguments, console)?,
        None => journal(path, arguments, console)?,
    };
    arguments.strictness.apply(&mut run.header.spec);
    let mut verdict = reports::redacted(gate_judge::judge(&run), console);
    arguments.strictness.soften(&mut verdict);
    match &arguments.out {
        Some(out) => {
            let folder = out.join(&verdict.name);
            reports::refer(&mut verdict, &folder, path)?;
            reports::write(&verdict, &folder, console)?;
        }
        None => reports::refer(&mut verdict, Path::new("."), path)?,
    }
    console.people(&gate_report::terminal(&verdict, console.style));
    reports::conclude(&[verdict], &arguments.outputs, console)
}

/// The run is not replaced by its own report.
fn refuse_overwriting(run: &Path, arguments: &Judge) -> Result<(), Failure> {
    let real = |path: &Path| std::fs::canonicalize(path).ok();
    match &arguments.outputs.junit {
        Some(junit) if real(junit).is_some() && real(junit) == real(run) => {
            Err(Failure::usage(format!("--junit {} would replace the run that is judged", junit.display())))
        }
        _ => Ok(()),
    }
}

/// A journal, judged by its own spec or by another one's checks. Its looks are always its own.
fn journal(path: &Path, arguments: &Judge, console: &Console) -> Result<Run, Failure> {
    let text = files::read(path, files::LARGE)?;
    let mut run = Run::from_journal(&text).map_err(|error| {
        Failure::unreadable(path, error)
            .hint("gate judge reads the run.jsonl of a check or a run; for another tool's file add --from")
    })?;
    if let Some(spec) = &arguments.spec {
        let mut spec = specs::resolve_one(spec, &arguments.overlays.list(), console)?;
        // What was sent is the journal's to say; what is required of it, the spec's.
        let sent = &run.header.spec;
        (spec.target, spec.load, spec.prompts) = (sent.target.clone(), sent.load.clone(), sent.prompts.clone());
        run.header.spec = spec;
    } else if !arguments.overlays.list().is_empty() {
        return Err(Failure::usage("--set and --target change a spec: name it with --spec"));
    }
    Ok(run)
}

/// Another tool's file.
fn import(format: &str, path: &Path, arguments: &Judge, console: &Console) -> Result<Run, Failure> {
    let format: Format = format.parse().map_err(|error| Failure::usage(format!("--from: {error}")))?;
    let Some(spec) = &arguments.spec else {
        return Err(Failure::usage("--from needs --spec: another tool's file does not say what is required of it"));
    };
    let spec = specs::resolve_one(spec, &arguments.overlays.list(), console)?;
    let text = files::read(path, files::LARGE)?;
    let import =
        Import { spec, text: &text, gate: measure::VERSION, run_id: &measure::run_id(), started: &measure::now() };
    gate_import::import(format, import).map_err(|error| Failure::unreadable(path, error))
}
