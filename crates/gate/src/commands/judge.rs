//! `gate judge`: the verdict alone, from a journal or another tool's file.

use std::path::Path;

use gate_import::{Format, Import};
use gate_model::{Endpoint, ExitCode, GateSpec, PromptSpec, Run};
use gate_spec::Overlay;

use crate::baselines::{self, Given};
use crate::cli::Judge;
use crate::console::Console;
use crate::failure::Failure;
use crate::{files, measure, reports, specs};

/// Stands in a spec for the endpoint that a reference's file was measured on.
const SOMEWHERE: &str = "http://reference.invalid";

pub(crate) fn judge(arguments: &Judge, console: &Console) -> Result<ExitCode, Failure> {
    let [path] = arguments.runs.as_slice() else {
        return Err(Failure::usage("several runs are not yet supported: judge one at a time"));
    };
    refuse_overwriting(path, arguments)?;
    let mut run = read(path, arguments, console)?;
    if let Some(beside) = &arguments.reference {
        run = side_by_side(run, beside, arguments, console)?;
    }
    let given = Given::of(&arguments.baseline, |path| match &arguments.from {
        Some(_) => Ok(gate_import::as_baseline(read(path, arguments, console)?)),
        None => baselines::read(path),
    })?;
    arguments.strictness.apply(&mut run.header.spec);
    let prior = baselines::choose(&run.header.spec, &given, Some(&run), console)?;
    let prior = baselines::confirm(prior, &run);
    let mut verdict = console.secrets.redacted(gate_judge::judge(&run, &prior));
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

/// Reads a run: a journal, or another tool's file.
fn read(path: &Path, arguments: &Judge, console: &Console) -> Result<Run, Failure> {
    match &arguments.from {
        Some(format) => import(format, path, arguments, console),
        None => journal(path, arguments, console),
    }
}

/// Lays another run beside one, as its reference.
fn side_by_side(run: Run, beside: &Path, arguments: &Judge, console: &Console) -> Result<Run, Failure> {
    let name = beside.display().to_string();
    let mut reference = read(beside, arguments, console)?;
    if arguments.from.is_some() {
        // Another tool's file does not say which endpoint it is of.
        reference.header.spec.target.endpoint = Endpoint::Url(name.clone());
    }
    let mut run = gate_import::with_reference(run, reference).map_err(|error| Failure::unreadable(beside, error))?;
    let overrides = run.header.spec.overrides.iter_mut().filter(|one| one.value == SOMEWHERE);
    overrides.for_each(|one| one.value.clone_from(&name));
    Ok(run)
}

/// What changes the spec: where another file is the reference, its checks may ask for one.
fn overlays(arguments: &Judge) -> Vec<Overlay> {
    let reference = arguments.reference.iter().map(|_| Overlay {
        flag: "--reference".into(),
        path: "reference.url".into(),
        value: SOMEWHERE.into(),
    });
    arguments.overlays.list().into_iter().chain(reference).collect()
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
        let spec = specs::resolve_one(spec, &overlays(arguments), console)?;
        run.header.spec = required_of(spec, &run.header.spec);
    } else if !arguments.overlays.list().is_empty() {
        return Err(Failure::usage("--set and --target change a spec: name it with --spec"));
    }
    Ok(run)
}

/// The spec to judge a run by that was sent by another: what was sent is the other's to say; what is required of it,
/// the spec's, and so is which token counts will do.
fn required_of(spec: GateSpec, sent: &GateSpec) -> GateSpec {
    let prompts = PromptSpec { tokens: spec.prompts.tokens, ..sent.prompts.clone() };
    let (target, reference) = (sent.target.clone(), sent.reference.clone());
    GateSpec { target, reference, load: sent.load.clone(), prompts, ..spec }
}

/// Another tool's file.
fn import(format: &str, path: &Path, arguments: &Judge, console: &Console) -> Result<Run, Failure> {
    let format: Format = format.parse().map_err(|error| Failure::usage(format!("--from: {error}")))?;
    let Some(spec) = &arguments.spec else {
        return Err(Failure::usage("--from needs --spec: another tool's file does not say what is required of it"));
    };
    let spec = specs::resolve_one(spec, &overlays(arguments), console)?;
    let text = files::read(path, files::LARGE)?;
    let import =
        Import { spec, text: &text, gate: measure::VERSION, run_id: &measure::run_id(), started: &measure::now() };
    gate_import::import(format, import).map_err(|error| Failure::unreadable(path, error))
}

#[cfg(test)]
mod tests {
    use gate_model::TokenPolicy;

    use super::*;

    #[test]
    fn what_was_sent_stays_and_what_is_required_of_it_changes() {
        let gate = |name: &str, url: &str| GateSpec::new(name, Endpoint::Url(url.to_owned()));
        let (mut sent, mut spec) = (gate("sent", "http://sent"), gate("new", "http://new"));
        sent.load.seed = 7;
        sent.prompts.file = Some("sent.jsonl".to_owned());
        spec.prompts.file = Some("new.jsonl".to_owned());
        spec.prompts.tokens = TokenPolicy::AcceptEstimate;
        let judged_by = required_of(spec, &sent);
        assert_eq!((judged_by.name.as_str(), judged_by.load.seed), ("new", 7));
        assert_eq!(judged_by.target, sent.target);
        let prompts = PromptSpec { tokens: TokenPolicy::AcceptEstimate, ..sent.prompts };
        assert_eq!(judged_by.prompts, prompts);
    }
}
