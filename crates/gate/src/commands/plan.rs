//! `gate plan`: what would be sent, and what each check can detect. Sends nothing.

use gate_model::{ExitCode, GateSpec, Section};
use gate_plan::{Extent, Totals};
use gate_report::{PlanTotals, PlanView, Style};

use crate::cli::Plan;
use crate::console::Console;
use crate::failure::Failure;
use crate::inputs::{Inputs, within_budget};
use crate::{files, measure, specs};

pub(crate) fn plan(arguments: &Plan, console: &Console) -> Result<ExitCode, Failure> {
    let spec = specs::resolve_one(&arguments.spec, &arguments.side_by_side.over(&arguments.overlays), console)?;
    // A job of shards sends the full number.
    let extent = if arguments.kubernetes.is_some() { Extent::Base } else { Extent::Extended };
    let (text, totals) = rendered(&spec, extent, |view| match arguments.kubernetes {
        Some(shards) => {
            let text = files::read(&arguments.spec, files::SMALL)?;
            Ok(gate_report::kubernetes(view, shards, &text))
        }
        None if arguments.json => {
            gate_report::plan_json(view).map_err(|error| Failure::internal(format!("failed to {error}")))
        }
        None => Ok(gate_report::plan_text(view, console.style)),
    })?;
    console.data(&console.secrets.redact(&text))?;
    within_budget(&spec, &totals)?;
    Ok(ExitCode::Passed)
}

/// A spec's plan as plain text, and what it sends.
pub(crate) fn text_of(spec: &GateSpec) -> Result<(String, Totals), Failure> {
    rendered(spec, Extent::Extended, |view| Ok(gate_report::plan_text(view, Style::Plain)))
}

/// A spec's plan in a form, and what it sends.
fn rendered(
    spec: &GateSpec,
    extent: Extent,
    form: impl FnOnce(&PlanView<'_>) -> Result<String, Failure>,
) -> Result<(String, Totals), Failure> {
    let plans = Inputs::read(spec)?.plans(spec, extent)?;
    let sections: Vec<_> = plans.iter().map(|plan| Section::of_plan(spec, plan)).collect();
    let power = gate_judge::power(spec, &sections);
    let rules = spec.checks.iter().map(gate_judge::rule);
    let checks: Vec<_> = rules.zip(power).collect();
    let runs = gate_report::stored_runs(&spec.baseline);
    let stored = (0..spec.checks.len()).map(|check| gate_judge::stored_detects(spec, check, runs, None));
    let totals = gate_plan::totals(&plans, spec);
    let view = PlanView {
        spec,
        plans: &plans,
        checks: &checks,
        stored: &stored.collect::<Vec<_>>(),
        today: &measure::now(),
        warnings: &gate_judge::plan_notes(spec, &sections),
        totals: PlanTotals {
            requests: totals.requests,
            input_tokens: totals.input_tokens,
            output_tokens: totals.output_tokens,
            cost: totals.cost,
        },
    };
    Ok((form(&view)?, totals))
}
