//! `gate check`: compile, run, judge, report, publish.

use std::path::{Path, PathBuf};

use gate_load::Stop;
use gate_model::{
    Cause, CheckOutcome, CheckVerdict, EndReason, ExitCode, GateSpec, Iterations, Nanos, Pattern, Plan, Prior, Referee,
    Section, Verdict,
};
use gate_plan::Extent;
use gate_report::CommentTemplate;
use gate_spec::Overlay;

use crate::apart::Apart;
use crate::baselines::{self, Given};
use crate::cli::{Check, NoCredentials, Publishing, Trust};
use crate::console::Console;
use crate::failure::Failure;
use crate::inputs::{Inputs, files_of};
use crate::measure::Order;
use crate::publish::{Publisher, Told, Zeal};
use crate::stop::Interrupts;
use crate::trust::{Base, Trusted};
use crate::{measure, reports, specs, trust};

pub(crate) fn check(arguments: &Check, console: &Console) -> Result<ExitCode, Failure> {
    let interrupts = Interrupts::listen()?;
    let Publishing { publish, comment, .. } = &arguments.publishing;
    let zeal = if *publish { Zeal::Insist } else { Zeal::WherePossible };
    let mut publisher = Publisher::new(zeal, comment.comment.policy(), &interrupts, console)?;
    let mut job = Job::default();
    let outcome = check_all(arguments, &mut publisher, &interrupts.stop, &mut job, console);
    let lacks = publisher.job().filter(|job| job.from_fork).map(|_| "this pull request comes from a fork");
    let lacks = lacks.or_else(|| std::env::var_os(HOOK).map(|_| "this is a push from a machine of one's own"));
    let outcome = match outcome {
        Err(failure) if failure.is_of_environment() => match lacks {
            Some(why) => {
                job.no_credentials += 1;
                Err(without_secrets(failure, why, arguments, console))
            }
            None => Err(failure),
        },
        outcome => outcome,
    };
    let told = Told {
        verdicts: &job.verdicts,
        exit: outcome.as_ref().map_or_else(|failure| failure.exit, |exit| *exit),
        failure: outcome.as_ref().err().or(job.failures.first()),
        no_credentials: job.no_credentials > 0,
        out: Some(&arguments.out),
        files: reports::files(&job.verdicts, &arguments.out, &arguments.outputs),
    };
    let failed = publisher.end(&told);
    publisher.warn(&failed);
    match outcome {
        Err(failure) if failure.exit == ExitCode::Passed => {
            console.people(&format!("{}\n", failure.message));
            Ok(ExitCode::Passed)
        }
        outcome => outcome,
    }
}

/// A gate's journal, in its folder.
const JOURNAL: &str = "run.jsonl";

/// Set by the hook that runs before a push.
const HOOK: &str = "GATE_HOOK";

/// The pull request of a fork has no secrets, and a machine of one's own not all that CI has: what specs need is not set
/// there, and that is no fault of the specs. It could not be measured, and the JUnit report says so.
fn without_secrets(failure: Failure, why: &str, arguments: &Check, console: &Console) -> Failure {
    if let Err(unwritten) = reports::write_unresolved(&failure.diagnostics, &arguments.out, &arguments.outputs, console)
    {
        return unwritten;
    }
    let exit = match arguments.publishing.no_credentials {
        NoCredentials::Fail => ExitCode::CouldNotMeasure,
        NoCredentials::Neutral => ExitCode::Passed,
    };
    let message = format!("could not measure: {why}, and the specs need variables that are not set there");
    Failure {
        exit,
        message,
        hint: Some("set them; docs/ci.md says how forks are measured all the same".to_owned()),
        ..failure
    }
}

/// What became of the gates of one call.
#[derive(Default)]
struct Job {
    verdicts: Vec<Verdict>,
    /// Why gates have no verdict, or no reports.
    failures: Vec<Failure>,
    /// Gates that could not be measured for want of credentials.
    no_credentials: usize,
}

fn check_all(
    arguments: &Check,
    publisher: &mut Publisher<'_>,
    stop: &Stop,
    job: &mut Job,
    console: &Console,
) -> Result<ExitCode, Failure> {
    let template = template(arguments)?;
    let overlays = arguments.side_by_side.over(&arguments.overlays);
    let paths = specs::found(&arguments.specs)?;
    if let Some(job) = publisher.job() {
        trust::refuse_strangers(job, arguments.trust, &paths)?;
    }
    let specs = specs::resolve_all(&paths, &overlays, console)?;
    keep_apart(arguments, &paths, &specs)?;
    let given = Given::of(&arguments.baseline, baselines::read, || stop.is_triggered(), console)?;
    let mut gates = Vec::new();
    for Trusted { mut spec, findings } in trusted(specs, arguments, &overlays, console)? {
        arguments.strictness.apply(&mut spec);
        // What cannot be planned, or not be compared with, is found before any gate sends a byte.
        let inputs = Inputs::read(&spec)?;
        let plans = inputs.affordable_plans(&spec, Extent::Extended)?;
        if !arguments.long {
            refuse_long(&spec, &plans)?;
        }
        let prior = baselines::choose(&spec, &given, None, console)?;
        gates.push(Gate { spec, inputs, plans, prior: Prior { notes: findings, ..prior } });
    }
    publisher.open(&gates.iter().map(|gate| &*gate.spec.name).collect::<Vec<_>>());
    let mut exit = ExitCode::Passed;
    for gate in gates {
        // One gate that cannot be run or reported is no reason to leave out the others.
        if let Err(failure) = check_one(gate, arguments, &template, stop, job, console) {
            console.failure(&failure);
            exit = exit.worse(failure.exit);
            job.failures.push(failure);
        }
        if stop.is_triggered() {
            exit = ExitCode::Interrupted;
            break;
        }
    }
    publisher.word_by(template);
    let html = |path: &Path| reports::write_html_of(&job.verdicts, &arguments.out, path, console);
    Ok(exit.worse(reports::conclude(&job.verdicts, html, &arguments.outputs, console)?))
}

/// No report replaces what the gates read, or what they write into their folders for later commands.
fn keep_apart(arguments: &Check, paths: &[PathBuf], specs: &[GateSpec]) -> Result<(), Failure> {
    let mut apart = Apart::default();
    apart.keep("the spec", paths);
    apart.keep("a file that the spec names", specs.iter().flat_map(files_of));
    apart.keep("a baseline", &arguments.baseline);
    let folders = || specs.iter().map(|spec| arguments.out.join(&spec.name));
    apart.keep("the run's journal", folders().map(|folder| folder.join(JOURNAL)));
    apart.keep("the verdict", folders().map(|folder| reports::verdict(&folder)));
    arguments.outputs.note(&mut apart);
    apart.check()
}

/// The comment's template. A change that is judged by the base's checks is also told in the base's words: where the base
/// does not have the template yet, in the built-in ones.
fn template(arguments: &Check) -> Result<CommentTemplate, Failure> {
    let path = arguments.outputs.wording.template.as_deref();
    match arguments.trust {
        Some(Trust::Base) => reports::template(path, trust::text_at_base),
        _ => reports::template_here(path),
    }
}

/// The specs as they are judged: by their own checks, or by those of the commit that the change forked off from.
fn trusted(
    heads: Vec<GateSpec>,
    arguments: &Check,
    overlays: &[Overlay],
    console: &Console,
) -> Result<Vec<Trusted>, Failure> {
    if arguments.trust != Some(Trust::Base) {
        return Ok(heads.into_iter().map(|spec| Trusted { spec, findings: Vec::new() }).collect());
    }
    let base = Base::find(&heads, overlays, console)?.allowing(&arguments.allow_host)?;
    // Whoever names specs has not removed the others.
    let removed = if arguments.specs.is_empty() { base.removed(&heads) } else { Vec::new() };
    let mut trusted = heads.into_iter().map(|head| base.judged(head)).collect::<Result<Vec<_>, _>>()?;
    for one in trusted.iter().filter(|one| one.spec.needs_baseline()) {
        base.vouches_for(&one.spec.baseline)?;
    }
    if let Some(first) = trusted.first_mut() {
        first.findings.extend(base.finding(removed));
    }
    Ok(trusted)
}

/// The longest schedule of a pattern that runs unasked.
const LONG: Nanos = Nanos::from_secs(600);

/// A pattern of more than ten minutes is no check of a pull request.
fn refuse_long(spec: &GateSpec, plans: &[Plan]) -> Result<(), Failure> {
    let sections = spec.sections();
    let scenarios = || sections.iter().flatten().map(|scenario| spec.load_of(*scenario));
    let has_pattern =
        scenarios().any(|load| load.pattern != Pattern::Steady || matches!(load.iterations, Iterations::For(_)));
    let length = plans.iter().fold(Nanos::ZERO, |sum, plan| sum + plan.duration());
    if !has_pattern || length <= LONG {
        return Ok(());
    }
    let minutes = (length.as_secs_f64() / 60.0).round();
    Err(Failure::usage(format!("{}: its load takes {minutes} minutes, which is long for a pull request", spec.file))
        .hint("run it in a nightly job with `gate check --long`, or shorten the pattern to 10 minutes"))
}

/// A gate with what its run will be compared with.
struct Gate {
    spec: GateSpec,
    inputs: Inputs,
    plans: Vec<Plan>,
    prior: Prior,
}

/// Runs one gate; its verdict is kept and printed even if its reports cannot be written.
fn check_one(
    gate: Gate,
    arguments: &Check,
    template: &CommentTemplate,
    stop: &Stop,
    job: &mut Job,
    console: &Console,
) -> Result<(), Failure> {
    let Gate { spec, inputs, plans, prior } = gate;
    let folder = arguments.out.join(&spec.name);
    let journal = folder.join(JOURNAL);
    reports::clear(&folder)?;
    // The day it starts on is the day its waivers are measured by.
    let started = measure::now();
    let order = Order {
        spec: &spec,
        inputs: &inputs,
        plans: &plans,
        journal: &journal,
        started: &started,
        start_at: None,
        stop,
        console,
    };
    let referee =
        |section: &Section| -> Box<dyn Referee> { Box::new(gate_judge::referee(&spec, section, &started, &prior)) };
    let (run, journals) = measure::run(&order, referee)?.whole()?;
    let prior = baselines::confirm(prior, &run);
    let mut verdict = console.secrets.redacted(gate_judge::judge(&run, &prior));
    arguments.strictness.soften(&mut verdict);
    let no_credentials = lacks_credentials(&spec, &verdict);
    if no_credentials && arguments.publishing.no_credentials == NoCredentials::Neutral {
        verdict.exit = ExitCode::Passed;
    }
    let referred = reports::refer(&mut verdict, &folder, &journals);
    let saved =
        if arguments.save_baseline { baselines::save_checked(&run, &verdict, &folder, console) } else { Ok(()) };
    let run = reports::shown(run, console);
    let written = referred.and_then(|()| reports::write(&verdict, &run, &folder, template, console));
    reports::tell(&verdict, written.is_ok().then(|| reports::page(&folder)).as_deref(), journals.first(), console);
    if no_credentials {
        job.no_credentials += 1;
        console.people(&without_credentials(&verdict));
    }
    job.verdicts.push(verdict);
    written.and(saved)
}

/// Whether the run could not be measured because the job was given no credentials, as in the pull request of a fork. One
/// that was given some and is refused is set up wrongly.
fn lacks_credentials(spec: &GateSpec, verdict: &Verdict) -> bool {
    let mut targets = std::iter::once(&spec.target).chain(&spec.reference);
    let is_bare = targets.all(|target| target.key.is_none() && target.aws.is_none());
    let is_refused = |check: &CheckVerdict| {
        matches!(&check.outcome, CheckOutcome::CouldNotMeasure { cause: Cause::NotRun(EndReason::NoCredentials(_)) })
    };
    is_bare && verdict.checks.iter().any(is_refused)
}

fn without_credentials(verdict: &Verdict) -> String {
    let cost = match verdict.exit {
        ExitCode::Passed => "which counts neither for nor against the change",
        _ => "`--no-credentials neutral` counts that neither for nor against the change",
    };
    format!("{}: the job has no credentials for the endpoint; {cost}\n", verdict.name)
}
