//! `gate explain`: what a metric means, and how a check on it is decided.

use std::path::Path;

use gate_model::{Bound, Check, ExitCode, Importance, Metric, Op, Origin, Quantity, Series, Verdict};

use crate::baselines::{self, Given};
use crate::cli::Explain;
use crate::console::Console;
use crate::failure::Failure;
use crate::{journals, verdicts};

pub(crate) fn explain(arguments: &Explain, console: &Console) -> Result<ExitCode, Failure> {
    let name = arguments.subject.trim();
    if let Some(run) = &arguments.run {
        return on_run(name, run, console);
    }
    let text = match Series::ALL.into_iter().find(|series| series.name() == name) {
        Some(series) => gate_report::explain_series(series),
        None if name == "errors" => gate_report::explain_errors(),
        None => {
            // Of a check its metric; what became of it is known only of a run.
            let (metric, bound) = name.split_at(name.find(['<', '>', '=']).unwrap_or(name.len()));
            let metric: Metric = metric.trim().parse().map_err(|error| wrong(&error))?;
            if !bound.is_empty() {
                console.people("With --run FILE: what the rule computed on that run, step by step.\n");
            }
            gate_report::explain(metric, gate_judge::rule(&example(metric)))
        }
    };
    console.data(&text)?;
    Ok(ExitCode::Passed)
}

/// What the rule of a check computed on a run, step by step; of a metric, each check on it; of a series, what the run had of
/// it, as each convention counts.
fn on_run(subject: &str, path: &Path, console: &Console) -> Result<ExitCode, Failure> {
    let verdict = verdict(path, console)?;
    let squeezed = |text: &str| text.split_whitespace().collect::<String>();
    let is_meant = |check: &Check| {
        let (wanted, written) = (squeezed(subject), squeezed(&check.to_string()));
        wanted == written || wanted == check.metric.to_string()
    };
    let meant: Vec<usize> =
        (0..).zip(&verdict.checks).filter(|(_, one)| is_meant(&one.check)).map(|(at, _)| at).collect();
    if let Some(series) = Series::ALL.into_iter().find(|series| series.name() == subject) {
        console.data(&console.secrets.redact(&gate_report::explain_series_on(series, &verdict)))?;
        return Ok(ExitCode::Passed);
    }
    if meant.is_empty() {
        let checks: Vec<String> = verdict.checks.iter().map(|one| format!("`{}`", one.check)).collect();
        return Err(Failure::usage(format!("{} has no check `{subject}`", path.display()))
            .hint(format!("it has {}", checks.join(", "))));
    }
    for check in meant {
        console.data(&console.secrets.redact(&gate_report::explain_check(&verdict, check)))?;
    }
    Ok(ExitCode::Passed)
}

/// A verdict as it was given, or a journal judged again.
fn verdict(path: &Path, console: &Console) -> Result<Verdict, Failure> {
    let Ok(run) = journals::read(path) else { return verdicts::read(path) };
    let prior = baselines::choose(&run.header.spec, &Given::default(), Some(&run), console)?;
    let prior = baselines::confirm(prior, &run);
    Ok(console.secrets.redacted(gate_judge::judge(&run, &prior)))
}

/// A text that is no metric.
pub(super) fn wrong(error: &gate_model::MetricError) -> Failure {
    let failure = Failure::usage(error.to_string());
    match error {
        gate_model::MetricError::Unknown { nearest: Some(nearest), .. } => {
            failure.hint(format!("did you mean `{nearest}`?"))
        }
        gate_model::MetricError::Unknown { .. } => failure.hint(format!("they are {}, attainment and errors", names())),
        _ => failure,
    }
}

/// Every series, and every number a run has once.
fn names() -> String {
    let series = Series::ALL.map(Series::name);
    let scalars = gate_model::Scalar::ALL.map(gate_model::Scalar::name);
    [&series[..], &scalars[..]].concat().join(", ")
}

/// A check as a person would write it: its rule is the metric's.
fn example(metric: Metric) -> Check {
    let op = if metric.direction() == gate_model::Direction::Higher { Op::AtLeast } else { Op::Less };
    Check {
        scenario: 0,
        metric,
        op,
        bound: Bound::Absolute(Quantity { value: 1.0, unit: metric.unit() }),
        bound_text: metric.unit().example().to_owned(),
        importance: Importance::Required,
        origin: Origin::Implied,
        decide: None,
        confidence: Check::CONFIDENCE,
        waive: None,
    }
}
