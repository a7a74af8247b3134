//! The neutral `samples` format.

use gate_model::{
    Arm, DEFINITIONS, EndReason, Health, Histogram, Nanos, RUN_SCHEMA, Run, RunEnd, RunHeader, Sample, Usage,
};

use crate::row::Row;
use crate::{Import, ImportError};

/// Reads `samples` lines as a run; blank lines are skipped.
pub(crate) fn import(import: Import<'_>) -> Result<Run, ImportError> {
    let Import { spec, looks, text, gate, run_id, started } = import;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    let mut samples: Vec<Sample> = Vec::new();
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
        samples.push(sample(&row, index, Nanos::from_secs_f64(since_first)));
    }
    if samples.is_empty() {
        return Err(ImportError::Empty);
    }
    let header = RunHeader {
        schema: RUN_SCHEMA,
        definitions: DEFINITIONS,
        gate: gate.to_owned(),
        run_id: run_id.to_owned(),
        started: started.to_owned(),
        scenarios: vec![spec.name.clone()],
        looks,
        schedule: samples.iter().map(|sample| sample.intended).collect(),
        simulated: spec.is_simulated(),
        percentiles: "nearest rank".to_owned(),
        clock: "imported".to_owned(),
        host: None,
        imported_from: Some("samples".to_owned()),
        spec,
    };
    let ends = samples.iter().map(|sample| sample.end.unwrap_or(sample.intended));
    let end = RunEnd {
        reason: EndReason::Completed,
        sent: u32::try_from(samples.len()).map_err(|_| ImportError::TooMany)?,
        at: ends.max().unwrap_or(Nanos::ZERO),
        health: Health::default(),
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

/// The row as a sample sent at `at`. What the format does not hold is absent. Its token counts are also what was
/// planned: nothing can be said of a plan it does not know.
fn sample(row: &Row, index: u32, at: Nanos) -> Sample {
    let planned = |tokens: Option<u64>| tokens.and_then(|tokens| u32::try_from(tokens).ok()).unwrap_or(0);
    let last_token = row.e2e.map(|e2e| at + e2e);
    Sample {
        index,
        scenario: 0,
        arm: row.arm,
        pair: row.pair,
        turn: 0,
        planned_input: planned(row.input_tokens),
        planned_output: planned(row.output_tokens),
        intended: at,
        start: Some(at),
        connected: None,
        sent: Some(at),
        headers: None,
        first_event: None,
        first_token: row.ttft.map(|ttft| at + ttft),
        first_answer: None,
        last_token,
        end: last_token,
        outcome: row.outcome,
        status: row.status,
        error: None,
        embedded_server_error: false,
        finish_reason: None,
        usage: Some(Usage { input: row.input_tokens, output: row.output_tokens, cached: None, reasoning: None }),
        events: 0,
        content_events: 0,
        body_bytes: 0,
        longest_gap: None,
        gaps: Histogram::default(),
        token_times: Vec::new(),
    }
}
