//! `gate judge`: the verdict alone, from a journal or another tool's file.

use std::path::{Path, PathBuf};

use gate_import::{Format, Import};
use gate_model::{Against, Check, Endpoint, ExitCode, GateSpec, PromptSpec, Run, Sample, Scenario};
use gate_report::Page;
use gate_spec::Overlay;

use crate::apart::Apart;
use crate::baselines::{self, Given};
use crate::cli::Judge;
use crate::console::Console;
use crate::failure::Failure;
use crate::{files, journals, measure, reports, specs};

pub(crate) fn judge(arguments: &Judge, console: &Console) -> Result<ExitCode, Failure> {
    let [path, others @ ..] = arguments.runs.as_slice() else {
        return Err(Failure::usage("name the run to judge"));
    };
    if arguments.from.is_some() && !others.is_empty() {
        return Err(Failure::usage("--from reads one file at a time")
            .hint("several runs are the shards of one `gate run`, as journals"));
    }
    for (place, run) in arguments.runs.iter().enumerate() {
        if arguments.runs.iter().take(place).any(|earlier| earlier == run) {
            return Err(Failure::usage(format!("{} is named twice", run.display())).hint("name each journal once"));
        }
    }
    keep_apart(arguments)?;
    let source = Source::of(arguments, path, console)?;
    let mut run = source.run(&arguments.runs)?;
    if let Some(beside) = &arguments.reference {
        run = source.side_by_side(run, path, beside)?;
    }
    needs_reference(&run, path)?;
    if let Some(folder) = arguments.baseline.iter().find(|name| source.from.is_some() && Path::new(name).is_dir()) {
        return Err(Failure::usage(format!("--baseline {folder}: with --from it names files of that format")));
    }
    let read = |path: &Path| match source.from {
        Some(_) => Ok(gate_import::as_baseline(source.run(&[path.to_path_buf()])?)),
        None => baselines::read(path),
    };
    let given = Given::of(&arguments.baseline, read, || false, console)?;
    arguments.strictness.apply(&mut run.header.spec);
    let prior = baselines::choose(&run.header.spec, &given, Some(&run), console)?;
    let prior = baselines::confirm(prior, &run);
    let mut verdict = console.secrets.redacted(gate_judge::judge(&run, &prior));
    arguments.strictness.soften(&mut verdict);
    let journals = match source.from {
        Some(_) => arguments.runs.clone(),
        None => journals::with_further_parts(&arguments.runs),
    };
    let run = reports::shown(run, console);
    let template = reports::template_here(arguments.outputs.wording.template.as_deref())?;
    match &arguments.out {
        Some(out) => {
            let folder = out.join(&verdict.name);
            reports::refer(&mut verdict, &folder, &journals)?;
            reports::write(&verdict, &run, &folder, &template, console)?;
        }
        None => reports::refer(&mut verdict, Path::new("."), &journals)?,
    }
    let page = arguments.out.as_ref().map(|out| reports::page(&out.join(&verdict.name)));
    reports::tell(&verdict, page.as_deref(), arguments.runs.first().filter(|_| source.from.is_none()), console);
    let html = |path: &Path| reports::write_html(&[Page { verdict: &verdict, run: Some(&run) }], path, console);
    reports::conclude(std::slice::from_ref(&verdict), html, &arguments.outputs, console)
}

/// Nothing that is judged, or judged by, is replaced by a report.
fn keep_apart(arguments: &Judge) -> Result<(), Failure> {
    let mut apart = Apart::default();
    apart.keep("the run that is judged", &arguments.runs);
    apart.keep("the spec", arguments.spec.iter());
    apart.keep("the reference", arguments.reference.iter());
    apart.keep("a baseline", &arguments.baseline);
    arguments.outputs.note(&mut apart);
    apart.check()
}

/// Stands in a spec for the endpoint that a reference's file was measured on.
const SOMEWHERE: &str = "http://reference.invalid";

/// How files become runs.
struct Source {
    /// The spec that judges, where it is not the journal's own.
    spec: Option<GateSpec>,
    /// The other tool's format.
    from: Option<Format>,
}

impl Source {
    /// Reads the spec once for all files. Where a reference comes from a file, its checks may ask for one.
    fn of(arguments: &Judge, path: &Path, console: &Console) -> Result<Self, Failure> {
        let from = arguments
            .from
            .as_ref()
            .map(|format| format.parse::<Format>().map_err(|error| Failure::usage(format!("--from: {error}"))));
        let from = from.transpose()?;
        let overlays = arguments.overlays.list();
        let Some(spec) = &arguments.spec else {
            if from.is_some() {
                let words = "--from needs --spec: another tool's file does not say what is required of it";
                return Err(Failure::usage(words));
            }
            if !overlays.is_empty() {
                return Err(Failure::usage("--set and --target change a spec: name it with --spec"));
            }
            return Ok(Self { spec: None, from });
        };
        let has_both = match from {
            Some(format) => gate_import::has_reference(format, &files::read(path, files::LARGE)?),
            None => false,
        };
        let beside = arguments.reference.as_ref().map(|beside| beside.display().to_string());
        let beside = beside.or_else(|| has_both.then(|| path.display().to_string()));
        let reference = beside.iter().map(|_| Overlay {
            flag: "--reference".into(),
            path: "reference.url".into(),
            value: SOMEWHERE.into(),
        });
        let overlays: Vec<Overlay> = overlays.into_iter().chain(reference).collect();
        let mut spec = specs::resolve_one(spec, &overlays, console)?;
        if let Some(name) = beside {
            let overrides = spec.overrides.iter_mut().filter(|one| one.value == SOMEWHERE);
            overrides.for_each(|one| one.value.clone_from(&name));
            if let Some(reference) = &mut spec.reference {
                reference.endpoint = Endpoint::Url(name);
            }
        }
        Ok(Self { spec: Some(spec), from })
    }

    /// Reads a run: a journal or those of all its shards, or another tool's file.
    fn run(&self, paths: &[PathBuf]) -> Result<Run, Failure> {
        match (self.from, &self.spec, paths) {
            (Some(format), Some(spec), [path]) => {
                let text = files::read(path, files::LARGE)?;
                let (run_id, started) = (&measure::run_id(), &measure::now());
                let import = Import { spec: spec.clone(), text: &text, gate: measure::VERSION, run_id, started };
                gate_import::import(format, import).map_err(|error| Failure::unreadable(path, error))
            }
            (_, spec, paths) => {
                let mut run = journals::read_all(paths)?;
                if let Some(spec) = spec {
                    run.header.spec = required_of(spec.clone(), &run.header.spec)?;
                }
                Ok(run)
            }
        }
    }

    /// Lays another run beside one, as its reference.
    fn side_by_side(&self, run: Run, path: &Path, beside: &Path) -> Result<Run, Failure> {
        if beside.to_string_lossy().contains("://") {
            return Err(Failure::usage(format!("--reference {}: it names a file here", beside.display()))
                .hint("a second endpoint is asked by `gate check --reference URL` or `gate run --reference URL`"));
        }
        let mut reference = self.run(&[beside.to_path_buf()])?;
        if self.from.is_some() {
            // Another tool's file does not say which endpoint it is of.
            reference.header.spec.target.endpoint = Endpoint::Url(beside.display().to_string());
        } else {
            same_prompts(&run, &reference).map_err(|what| {
                Failure::usage(format!(
                    "--reference {}: it differs from {} in {what}",
                    beside.display(),
                    path.display()
                ))
                .hint("requests are pairs only if they were sent the same prompts; --baseline compares runs as a whole")
            })?;
        }
        gate_import::with_reference(run, reference).map_err(|error| Failure::unreadable(beside, error))
    }
}

/// Whether two runs sent the same prompts; else what they differ in.
fn same_prompts(run: &Run, reference: &Run) -> Result<(), &'static str> {
    let (of_run, of_reference) = (&run.header.spec, &reference.header.spec);
    let differ = |(one, other): (&Sample, &Sample)| {
        (one.planned_input, one.planned_output) != (other.planned_input, other.planned_output)
    };
    match () {
        () if of_run.load.seed != of_reference.load.seed => Err("`load.seed`"),
        () if of_run.prompts != of_reference.prompts => Err("`prompts`"),
        () if run.samples.iter().zip(&reference.samples).any(differ) => Err("the lengths of its requests"),
        () => Ok(()),
    }
}

/// A check on the reference needs one, which another tool's file may not have.
fn needs_reference(run: &Run, path: &Path) -> Result<(), Failure> {
    let asks = |check: &&Check| check.bound.relative().is_some_and(|bound| bound.to == Against::Reference);
    match run.header.spec.checks.iter().find(asks) {
        Some(check) if run.header.spec.reference.is_none() => {
            let words = format!("`{check}` needs a reference, and {} has none", path.display());
            Err(Failure::usage(words).hint("name its file with --reference, or give its rows `\"arm\": \"reference\"`"))
        }
        _ => Ok(()),
    }
}

/// The spec to judge a run by that was sent by another: what was sent is the other's to say; what is required of it,
/// the spec's, and so is which token counts will do.
fn required_of(spec: GateSpec, sent: &GateSpec) -> Result<GateSpec, Failure> {
    if spec.scenarios.len() != sent.scenarios.len() || spec.scenario_names().iter().ne(&sent.scenario_names()) {
        // A gate without scenarios has one of its own name, whatever that is.
        if !(spec.scenarios.is_empty() && sent.scenarios.is_empty()) {
            let (ours, theirs) = (spec.scenario_names().join(", "), sent.scenario_names().join(", "));
            return Err(Failure::usage(format!("{}: its scenarios are {ours}, and the run's {theirs}", spec.file))
                .hint("judge a run by a spec with the scenarios that it was sent by"));
        }
    }
    let prompts = |asked: &PromptSpec, sent: &PromptSpec| PromptSpec { tokens: asked.tokens, ..sent.clone() };
    let scenarios = spec.scenarios.iter().zip(&sent.scenarios).map(|(asked, sent)| Scenario {
        slo: asked.slo,
        prompts: prompts(&asked.prompts, &sent.prompts),
        ..sent.clone()
    });
    Ok(GateSpec {
        target: sent.target.clone(),
        reference: sent.reference.clone(),
        load: sent.load.clone(),
        prompts: prompts(&spec.prompts, &sent.prompts),
        scenarios: scenarios.collect(),
        order: sent.order,
        journal: sent.journal,
        ..spec
    })
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
        let judged_by = required_of(spec, &sent).unwrap();
        assert_eq!((judged_by.name.as_str(), judged_by.load.seed), ("new", 7));
        assert_eq!(judged_by.target, sent.target);
        let prompts = PromptSpec { tokens: TokenPolicy::AcceptEstimate, ..sent.prompts };
        assert_eq!(judged_by.prompts, prompts);
    }
}
