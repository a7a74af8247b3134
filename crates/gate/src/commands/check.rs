//! `gate check`: compile, run, judge, report.

use gate_load::Stop;
use gate_model::{ExitCode, GateSpec, Verdict};

use crate::cli::Check;
use crate::console::Console;
use crate::failure::Failure;
use crate::{measure, reports, specs, stop};

pub(crate) fn check(arguments: &Check, console: &Console) -> Result<ExitCode, Failure> {
    let specs = specs::resolve_all(&arguments.specs, &arguments.overlays.list(), console)?;
    for spec in &specs {
        // What cannot be planned is found before any gate sends a byte.
        measure::plan(spec, &spec.load.iterations.looks())?;
    }
    let stop = Stop::new();
    let on_signal = stop.clone();
    stop::on_signals(move || on_signal.trigger())?;
    let mut verdicts = Vec::new();
    let mut failed = None;
    for spec in &specs {
        match check_one(spec, arguments, &stop, console) {
            Ok(verdict) => verdicts.push(verdict),
            Err(failure) => failed = Some(failure),
        }
        if failed.is_some() || stop.is_triggered() {
            break;
        }
    }
    // What was judged is reported, whatever came after it.
    let exit = reports::conclude(&verdicts, &arguments.outputs, console)?;
    failed.map_or(Ok(if stop.is_triggered() { ExitCode::Interrupted } else { exit }), Err)
}

fn check_one(spec: &GateSpec, arguments: &Check, stop: &Stop, console: &Console) -> Result<Verdict, Failure> {
    let folder = arguments.out.join(&spec.name);
    let journal = folder.join("run.jsonl");
    let looks = spec.load.iterations.looks();
    let mut referee = gate_judge::referee(spec, &looks);
    let run = measure::run(spec, &looks, &mut referee, &journal, stop, console)?;
    let mut verdict = gate_judge::judge(&run);
    reports::refer(&mut verdict, &folder, &journal)?;
    reports::write(&verdict, &folder, console)?;
    console.people(&gate_report::terminal(&verdict, console.style));
    console.people(&format!("Reports: {}\n", folder.display()));
    Ok(verdict)
}
