//! `gate run`: the load alone, journalled as it goes.

use gate_load::Stop;
use gate_model::{Decision, EndReason, ExitCode, Referee, Sample};

use crate::cli::Run;
use crate::console::Console;
use crate::failure::Failure;
use crate::{measure, specs, stop};

/// Never stops: `gate run` always sends the full number.
pub(crate) struct SendAll;

impl Referee for SendAll {
    fn look(&mut self, _samples: &[Sample]) -> Decision {
        Decision::GoOn
    }
}

pub(crate) fn run(arguments: &Run, console: &Console) -> Result<ExitCode, Failure> {
    let spec = specs::resolve_one(&arguments.spec, &arguments.side_by_side.over(&arguments.overlays), console)?;
    let stop = Stop::new();
    let on_signal = stop.clone();
    stop::on_signals(move || on_signal.trigger())?;
    let looks = spec.load.iterations.without_extension().looks();
    let run = measure::run(&spec, &looks, &mut SendAll, &arguments.output, &measure::now(), &stop, console)?;
    let recorded = run.samples.len();
    let (exit, words) = match run.end.as_ref().map(|end| &end.reason) {
        Some(EndReason::Completed | EndReason::StoppedAtLook(_)) => (ExitCode::Passed, "completed".to_owned()),
        Some(EndReason::Interrupted) => (ExitCode::Interrupted, "interrupted".to_owned()),
        Some(reason) => (ExitCode::CouldNotMeasure, gate_report::end_reason(reason)),
        None => (ExitCode::Internal, "the load ended without a word".to_owned()),
    };
    let output = arguments.output.display();
    console.people(&format!("{}: {words}; {recorded} requests recorded in {output}\n", spec.name));
    console.people(&format!("Judge it with: gate judge {output}\n"));
    Ok(exit)
}
