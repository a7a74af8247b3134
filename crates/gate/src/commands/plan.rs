//! `gate plan`: what would be sent, and what each check can detect. Sends nothing.

use gate_model::ExitCode;
use gate_report::PlanView;

use crate::cli::Plan;
use crate::console::Console;
use crate::failure::Failure;
use crate::inputs::Inputs;
use crate::{measure, specs};

pub(crate) fn plan(arguments: &Plan, console: &Console) -> Result<ExitCode, Failure> {
    let spec = specs::resolve_one(&arguments.spec, &arguments.side_by_side.over(&arguments.overlays), console)?;
    let looks = spec.load.iterations.looks();
    let plan = Inputs::read(&spec)?.plan(&spec, &looks)?;
    let power = gate_judge::power(&spec, &looks);
    let rules = spec.checks.iter().map(gate_judge::rule);
    let checks: Vec<_> = rules.zip(power).collect();
    let runs = gate_report::stored_runs(&spec.baseline);
    let stored = (0..spec.checks.len()).map(|check| gate_judge::stored_detects(&spec, check, runs, None));
    let view = PlanView {
        spec: &spec,
        plan: &plan,
        checks: &checks,
        stored: &stored.collect::<Vec<_>>(),
        today: &measure::now(),
        warnings: &gate_judge::plan_notes(&spec, &looks),
    };
    let text = if arguments.json {
        gate_report::plan_json(&view).map_err(|error| Failure::internal(format!("failed to {error}")))?
    } else {
        gate_report::plan_text(&view, console.style)
    };
    console.data(&console.secrets.redact(&text))?;
    Ok(ExitCode::Passed)
}
