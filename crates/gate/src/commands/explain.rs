//! `gate explain`: what a metric means, and how a check on it is decided.

use gate_model::{Bound, Check, ExitCode, Importance, Metric, Op, Origin, Quantity, Series};

use crate::cli::Explain;
use crate::console::Console;
use crate::failure::Failure;

pub(crate) fn explain(arguments: &Explain, console: &Console) -> Result<ExitCode, Failure> {
    let name = arguments.metric.as_str();
    let text = match Series::ALL.into_iter().find(|series| series.name() == name) {
        Some(series) => gate_report::explain_series(series),
        None if name == "errors" => gate_report::explain_errors(),
        None => {
            let metric: Metric = name.parse().map_err(|error| wrong(&error))?;
            gate_report::explain(metric, gate_judge::rule(&example(metric)))
        }
    };
    console.data(&text)?;
    Ok(ExitCode::Passed)
}

fn wrong(error: &gate_model::MetricError) -> Failure {
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
