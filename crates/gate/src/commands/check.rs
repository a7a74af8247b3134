//! `gate check`: compile, run, judge, report.

use gate_load::Stop;
use gate_model::{ExitCode, GateSpec, Verdict};

use crate::cli::Check;
use crate::console::Console;
use crate::failure::Failure;
use crate::{measure, reports, specs, stop};

pub(crate) fn check(arguments: &Check, console: &Console) -> Result<ExitCode, Failure> {
    let mut specs = specs::resolve_all(&arguments.specs, &arguments.overlays.list(), console)?;
    for spec in &mut specs {
        arguments.strictness.apply(spec);
        // What cannot be planned is found before any gate sends a byte.
        measure::Inputs::read(spec)?.plan(spec, &spec.load.iterations.looks())?;
    }
    let stop = Stop::new();
    let on_signal = stop.clone();
    stop::on_signals(move || on_signal.trigger())?;
    let mut verdicts = Vec::new();
    let mut exit = ExitCode::Passed;
    for spec in &specs {
        // One gate that cannot be run or reported is no reason to leave out the others.
        match check_one(spec, arguments, &stop, &mut verdicts, console) {
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

/// Runs one gate; its verdict is kept and printed before anything is written, which may fail.
fn check_one(
    spec: &GateSpec,
    arguments: &Check,
    stop: &Stop,
    verdicts: &mut Vec<Verdict>,
    console: &Console,
) -> Result<(), Failure> {
    let folder = arguments.out.join(&spec.name);
    let journal = folder.join("run.jsonl");
    let looks = spec.load.iterations.looks();
    reports::clear(&folder)?;
    // The day it starts on is the day its waivers are measured by.
    let started = measure::now();
    let mut referee = gate_judge::referee(spec, &looks, &started);
    let run = measure::run(spec, &looks, &mut referee, &journal, &started, stop, console)?;
    let mut verdict = reports::redacted(gate_judge::judge(&run), console);
    arguments.strictness.soften(&mut verdict);
    console.people(&gate_report::terminal(&verdict, console.style));
    let written =
        reports::refer(&mut verdict, &folder, &journal).and_then(|()| reports::write(&verdict, &folder, console));
    verdicts.push(verdict);
    written?;
    console.people(&format!("Reports: {}\n", folder.display()));
    Ok(())
}
