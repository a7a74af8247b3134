//! `gate calibrate`: the same target against itself.

use gate_load::Stop;
use gate_model::{ExitCode, GateSpec, Run};
use gate_plan::Extent;

use crate::baselines;
use crate::cli::Calibrate;
use crate::commands::run::SendAll;
use crate::console::Console;
use crate::failure::Failure;
use crate::inputs::Inputs;
use crate::measure::Order;
use crate::{measure, specs, stop, surroundings, trust};

pub(crate) fn calibrate(arguments: &Calibrate, console: &Console) -> Result<ExitCode, Failure> {
    if let Some(job) = surroundings::job(&surroundings::variables(), console)? {
        trust::refuse_strangers(&job, arguments.trust, std::slice::from_ref(&arguments.spec))?;
    }
    let spec = specs::resolve_one(&arguments.spec, &arguments.overlays.list(), console)?;
    let inputs = Inputs::read(&spec)?;
    let plans = inputs.affordable_plans(&spec, Extent::Base)?;
    let stop = Stop::new();
    let on_signal = stop.clone();
    stop::on_signals(move || on_signal.trigger())?;
    let folder = arguments.out.join(&spec.name).join("calibrate");
    let mut runs = Vec::new();
    for number in 1..=arguments.runs {
        console.people(&format!("{}: run {number} of {}\n", spec.name, arguments.runs));
        let journal = folder.join(format!("run-{number}.jsonl"));
        let started = measure::now();
        let order = Order {
            spec: &spec,
            inputs: &inputs,
            plans: &plans,
            journal: &journal,
            started: &started,
            start_at: None,
            stop: &stop,
            console,
        };
        runs.push(measure::run(&order, |_| Box::new(SendAll))?.whole()?.0);
        if stop.is_triggered() {
            console.people("Interrupted: nothing is concluded from part of the runs.\n");
            return Ok(ExitCode::Interrupted);
        }
    }
    conclude(&spec, &runs, arguments, console)
}

fn conclude(spec: &GateSpec, runs: &[Run], arguments: &Calibrate, console: &Console) -> Result<ExitCode, Failure> {
    let calibration = gate_judge::calibrate(runs)
        .map_err(|error| Failure::unmeasured(format!("{}: failed to {error}", spec.file)))?;
    console.people(&gate_report::calibration_text(&calibration, console.style));
    let text = if arguments.json {
        serde_json::to_string_pretty(&calibration).map_err(|error| Failure::internal(error.to_string()))? + "\n"
    } else {
        gate_report::calibration_yaml(&calibration)
    };
    console.data(&console.secrets.redact(&text))?;
    baselines::save_noise(spec, &calibration.noise, console)?;
    Ok(ExitCode::Passed)
}
