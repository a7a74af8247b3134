//! `gate run`: the load alone, journalled as it goes.

use gate_load::Stop;
use gate_model::{Decision, EndReason, ExitCode, Referee, Sample};
use gate_plan::Extent;

use crate::apart::Apart;
use crate::cli::Run;
use crate::console::Console;
use crate::failure::Failure;
use crate::inputs::{Inputs, files_of, shards};
use crate::measure::{Measured, Order};
use crate::shard::Shards;
use crate::{measure, specs, stop, surroundings, trust};

/// Never stops: `gate run` always sends the full number.
pub(crate) struct SendAll;

impl Referee for SendAll {
    fn look(&mut self, _samples: &[Sample]) -> Decision {
        Decision::GoOn
    }
}

pub(crate) fn run(arguments: &Run, console: &Console) -> Result<ExitCode, Failure> {
    if let Some(job) = surroundings::job(&surroundings::variables(), console)? {
        trust::refuse_strangers(&job, arguments.trust, std::slice::from_ref(&arguments.spec))?;
    }
    let spec = specs::resolve_one(&arguments.spec, &arguments.side_by_side.over(&arguments.overlays), console)?;
    let mut apart = Apart::default();
    apart.keep("the spec", [&arguments.spec]);
    apart.keep("a file that the spec names", files_of(&spec));
    apart.write("--output", Some(&arguments.output));
    apart.check()?;
    let stop = Stop::new();
    let on_signal = stop.clone();
    stop::on_signals(move || on_signal.trigger())?;
    let inputs = Inputs::read(&spec)?;
    let shard = arguments.shard.map(|shard| shard.of_job()).transpose()?.or(Shards::of_gitlab()?);
    let plans = shards(&inputs.affordable_plans(&spec, Extent::Base)?, shard);
    if let Some(shard) = shard {
        console.people(&format!("{}: shard {} of {}\n", spec.name, shard.index, shard.of));
    }
    let started = measure::now();
    let order = Order {
        spec: &spec,
        inputs: &inputs,
        plans: &plans,
        journal: &arguments.output,
        started: &started,
        start_at: arguments.start_at,
        stop: &stop,
        console,
    };
    let Measured { sections, .. } = measure::run(&order, |_| Box::new(SendAll))?;
    let recorded: u32 = sections.iter().map(gate_model::Run::recorded).sum();
    let last = sections.last().and_then(|section| section.end.as_ref());
    let (exit, words) = match last.map(|end| &end.reason) {
        Some(EndReason::Completed | EndReason::StoppedAtLook(_)) => (ExitCode::Passed, "completed".to_owned()),
        Some(EndReason::Interrupted) => (ExitCode::Interrupted, "interrupted".to_owned()),
        Some(reason) => (ExitCode::CouldNotMeasure, gate_report::end_reason(reason)),
        None => (ExitCode::Internal, "the load ended without a word".to_owned()),
    };
    let output = arguments.output.display();
    console.people(&format!("{}: {words}; {recorded} requests recorded in {output}\n", spec.name));
    match shard {
        None => console.people(&format!("Judge it with: gate judge {output}\n")),
        Some(_) => console.people("Judge it with: gate judge, and the journals of all shards\n"),
    }
    Ok(exit)
}
