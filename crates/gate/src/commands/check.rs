//! `gate check`: compile, run, judge, report.

use gate_load::Stop;
use gate_model::{ExitCode, GateSpec, Iterations, Nanos, Pattern, Plan, Prior, Referee, Section, Verdict};
use gate_plan::Extent;
use gate_spec::Overlay;

use crate::baselines::{self, Given};
use crate::cli::{Check, Trust};
use crate::console::Console;
use crate::failure::Failure;
use crate::inputs::Inputs;
use crate::measure::Order;
use crate::trust::{Base, Trusted};
use crate::{measure, reports, specs, stop};

pub(crate) fn check(arguments: &Check, console: &Console) -> Result<ExitCode, Failure> {
    let overlays = arguments.side_by_side.over(&arguments.overlays);
    let specs = specs::resolve_all(&arguments.specs, &overlays, console)?;
    let given = Given::of(&arguments.baseline, baselines::read)?;
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
    let stop = Stop::new();
    let on_signal = stop.clone();
    stop::on_signals(move || on_signal.trigger())?;
    let mut verdicts = Vec::new();
    let mut exit = ExitCode::Passed;
    for gate in gates {
        // One gate that cannot be run or reported is no reason to leave out the others.
        match check_one(gate, arguments, &stop, &mut verdicts, console) {
            Ok(()) => {}
            Err(failure) => {
                console.failure(&failure);
                exit = exit.worse(failure.exit);
            }
        }
        if stop.is_triggered() {
            exit = ExitCode::Interrupted;
            break;
        }
    }
    Ok(exit.worse(reports::conclude(&verdicts, &arguments.outputs, console)?))
}

/// The specs as they are judged: by their own checks, or by those of the commit that the change forked off from.
fn trusted(
    heads: Vec<GateSpec>,
    arguments: &Check,
    overlays: &[Overlay],
    console: &Console,
) -> Result<Vec<Trusted>, Failure> {
    if arguments.trust == Trust::Head {
        return Ok(heads.into_iter().map(|spec| Trusted { spec, findings: Vec::new() }).collect());
    }
    let base = Base::find(&heads, overlays, console)?;
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

/// Runs one gate; its verdict is kept and printed before anything is written, which may fail.
fn check_one(
    gate: Gate,
    arguments: &Check,
    stop: &Stop,
    verdicts: &mut Vec<Verdict>,
    console: &Console,
) -> Result<(), Failure> {
    let Gate { spec, inputs, plans, prior } = gate;
    let folder = arguments.out.join(&spec.name);
    let journal = folder.join("run.jsonl");
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
    console.people(&gate_report::terminal(&verdict, console.style));
    let written =
        reports::refer(&mut verdict, &folder, &journals).and_then(|()| reports::write(&verdict, &folder, console));
    let saved =
        if arguments.save_baseline { baselines::save_checked(&run, &verdict, &folder, console) } else { Ok(()) };
    verdicts.push(verdict);
    written.and(saved)?;
    console.people(&format!("Reports: {}\n", folder.display()));
    Ok(())
}
