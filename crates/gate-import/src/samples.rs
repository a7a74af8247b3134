//! The neutral `samples` format.

use std::collections::HashMap;

use gate_model::{
    Arm, EndReason, Health, Nanos, Plan, PlannedRequest, ReferenceEnd, Run, RunEnd, RunHeader, Sample, Usage,
};

use crate::arms::{Single, Spot, in_send_order, pairs};
use crate::row::Row;
use crate::{Import, ImportError};

/// A row with its line in the file, from 1.
struct Placed {
    line: usize,
    row: Row,
}

/// Reads `samples` lines as a run; blank lines are skipped.
pub(crate) fn import(import: Import<'_>) -> Result<Run, ImportError> {
    let Import { mut spec, text, gate, run_id, started } = import;
    let mut rows = read(text, &spec.name)?;
    let first = rows.first().ok_or(ImportError::Empty)?.line;
    let of_arm = |arm: Arm| rows.iter().filter(|placed| placed.row.arm == arm).count();
    let (target, reference) = (of_arm(Arm::Target), of_arm(Arm::Reference));
    if target == 0 {
        return Err(ImportError::NoTarget { line: first });
    }
    let looks = vec![u32::try_from(target).map_err(|_| ImportError::TooMany)?];
    let sent = u32::try_from(rows.len()).map_err(|_| ImportError::TooMany)?;
    // The header says how many arms the run has, and that is what the file holds.
    if reference == 0 {
        spec.reference = None;
    } else {
        pair(&mut rows)?;
        spec.reference.get_or_insert_with(|| spec.target.clone());
    }
    let epoch = rows.iter().map(|placed| placed.row.send_s).fold(f64::INFINITY, f64::min);
    let samples = in_send_order(rows.iter().map(|placed| sample(&placed.row, epoch)).collect());

    // A file that is whole is judged once, on all it has.
    let requests = samples.iter().map(|sample| PlannedRequest { at: sample.intended, ..PlannedRequest::default() });
    let plan = Plan::new(&spec, looks, requests.collect());
    let end = RunEnd {
        reason: EndReason::Completed,
        sent,
        at: samples.iter().map(|sample| sample.end.unwrap_or(sample.intended)).max().unwrap_or(Nanos::ZERO),
        epoch_unix: None,
        health: Health::default(),
        switched_to: None,
        reached: None,
        reference: spec.reference.as_ref().map(|_| ReferenceEnd::default()),
    };
    let header =
        RunHeader { imported_from: Some("samples".to_owned()), ..RunHeader::new(spec, &plan, gate, run_id, started) };
    Ok(Run { header, warmup: Vec::new(), samples, end: Some(end) })
}

/// The rows, each arm's in send order.
fn read(text: &str, name: &str) -> Result<Vec<Placed>, ImportError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut rows = Vec::new();
    let mut last_sent = HashMap::new();
    for (number, text) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let line = number + 1;
        let row = Row::parse(line, text)?;
        if let Some(scenario) = row.scenario.as_deref().filter(|scenario| *scenario != name) {
            let expected = name.to_owned();
            return Err(ImportError::UnknownScenario { line, scenario: scenario.to_owned(), expected });
        }
        if last_sent.insert(row.arm, row.send_s).is_some_and(|before| row.send_s < before) {
            return Err(ImportError::Unsorted { line, send_s: row.send_s.to_string() });
        }
        rows.push(Placed { line, row });
    }
    Ok(rows)
}

/// Gives every row its pair.
fn pair(rows: &mut [Placed]) -> Result<(), ImportError> {
    let single = |Placed { line, row }: &Placed| Single { at: Spot::Line(*line), arm: row.arm, pair: row.pair };
    let pairs = pairs(&rows.iter().map(single).collect::<Vec<_>>())?;
    rows.iter_mut().zip(pairs).for_each(|(placed, pair)| placed.row.pair = Some(pair));
    Ok(())
}

/// Whether a row is one of a reference. Only lines that have the word are read, and one that is no row is not reported:
/// reading the file as a run does that.
pub(crate) fn has_reference(text: &str) -> bool {
    let is_reference = |line: &str| {
        let row = serde_json::from_str::<serde_json::Value>(line.trim_start_matches('\u{feff}'));
        row.is_ok_and(|row| row.get("arm").is_some_and(|arm| arm == "reference"))
    };
    text.lines().filter(|line| line.contains("\"reference\"")).any(is_reference)
}

/// The row as a sample sent when it was due. What the format does not hold is absent. Its token counts are also what
/// was planned: nothing can be said of a plan that the file does not hold.
fn sample(row: &Row, epoch: f64) -> Sample {
    let tokens = |tokens: Option<u64>| tokens.and_then(|tokens| u32::try_from(tokens).ok()).unwrap_or(0);
    let planned = PlannedRequest {
        arm: row.arm,
        pair: row.pair,
        at: Nanos::from_secs_f64(row.send_s - epoch),
        input_tokens: tokens(row.input_tokens),
        output_tokens: tokens(row.output_tokens),
        ..PlannedRequest::default()
    };
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
        ..Sample::unsent(&planned)
    }
}
