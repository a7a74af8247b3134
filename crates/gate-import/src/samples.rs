//! The neutral `samples` format.

use gate_model::{Arm, EndReason, Health, Nanos, Plan, PlannedRequest, Run, RunEnd, RunHeader, Sample, Usage};

use crate::row::Row;
use crate::{Import, ImportError};

/// Reads `samples` lines as a run; blank lines are skipped.
pub(crate) fn import(import: Import<'_>) -> Result<Run, ImportError> {
    let Import { spec, text, gate, run_id, started } = import;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let (mut requests, mut samples) = (Vec::new(), Vec::new());
    let mut first_send = None;
    let mut previous_send = f64::NEG_INFINITY;
    for (number, line) in lines {
        let line_number = number + 1;
        let row = Row::parse(line_number, line)?;
        check_place(&row, line_number, &spec.name)?;
        if row.send_s < previous_send {
            return Err(ImportError::Unsorted { line: line_number, send_s: row.send_s.to_string() });
        }
        previous_send = row.send_s;
        let since_first = row.send_s - *first_send.get_or_insert(row.send_s);
        let index = u32::try_from(samples.len()).map_err(|_| ImportError::TooMany)?;
        let planned = planned(&row, index, Nanos::from_secs_f64(since_first));
        samples.push(sample(&row, &planned));
        requests.push(planned);
    }
    if samples.is_empty() {
        return Err(ImportError::Empty);
    }
    // A file that is whole is judged once, on all it has.
    let rows = u32::try_from(samples.len()).map_err(|_| ImportError::TooMany)?;
    let plan = Plan::new(&spec, vec![rows], requests);
    let header =
        RunHeader { imported_from: Some("samples".to_owned()), ..RunHeader::new(spec, &plan, gate, run_id, started) };
    let ends = samples.iter().map(|sample| sample.end.unwrap_or(sample.intended));
    let end = RunEnd {
        reason: EndReason::Completed,
        sent: rows,
        at: ends.max().unwrap_or(Nanos::ZERO),
        epoch_unix: None,
        health: Health::default(),
        switched_to: None,
        reached: None,
    };
    Ok(Run { header, warmup: Vec::new(), samples, end: Some(end) })
}

/// The row is of the spec's one scenario and of the target.
fn check_place(row: &Row, line: usize, name: &str) -> Result<(), ImportError> {
    if let Some(scenario) = row.scenario.as_deref().filter(|scenario| *scenario != name) {
        let expected = name.to_owned();
        return Err(ImportError::UnknownScenario { line, scenario: scenario.to_owned(), expected });
    }
    if row.arm == Arm::Reference { Err(ImportError::ReferenceNotYet { line }) } else { Ok(()) }
}

/// The request that the row answers. Its token counts are also what was planned: nothing can be said of a plan that
/// the file does not hold.
fn planned(row: &Row, index: u32, at: Nanos) -> PlannedRequest {
    let tokens = |tokens: Option<u64>| tokens.and_then(|tokens| u32::try_from(tokens).ok()).unwrap_or(0);
    PlannedRequest {
        index,
        arm: row.arm,
        pair: row.pair,
        at,
        input_tokens: tokens(row.input_tokens),
        output_tokens: tokens(row.output_tokens),
        ..PlannedRequest::default()
    }
}

/// The row as a sample sent when it was due. What the format does not hold is absent.
fn sample(row: &Row, planned: &PlannedRequest) -> Sample {
    let since_due = |time: Option<Nanos>| time.map(|time| planned.at + time);
    Sample {
        start: Some(planned.at),
        sent: Some(planned.at),
        first_token: since_due(row.ttft),
        last_token: since_due(row.e2e),
        end: since_due(row.e2e),
        outcome: row.outcome,
        status: row.status,
        usage: Some(Usage { input: row.input_tokens, output: row.output_tokens, ..Usage::default() }),
        ..Sample::unsent(planned)
    }
}
