//! The neutral `samples` format.

use std::collections::HashMap;

use gate_model::{
    Arm, EndReason, GateSpec, Nanos, Plan, PlannedRequest, ReferenceEnd, Run, RunEnd, RunHeader, RunOrder, Sample,
    Usage,
};

use crate::arms::{PairNumbers, Single, Spot, in_send_order, pairs};
use crate::row::Row;
use crate::{Import, ImportError};

/// A row with its line in the file, from 1.
pub(crate) struct Placed {
    line: usize,
    /// Of the spec's.
    scenario: u16,
    row: Row,
}

/// Rows as a run.
pub(crate) fn run_of(mut rows: Vec<Placed>, format: &str, import: Import<'_>) -> Result<Run, ImportError> {
    let Import { mut spec, gate, run_id, started, .. } = import;
    let first = rows.first().ok_or(ImportError::Empty)?.line;
    if rows.iter().all(|placed| placed.row.arm == Arm::Reference) {
        return Err(ImportError::NoTarget { line: first });
    }
    u32::try_from(rows.len()).map_err(|_| ImportError::TooMany)?;
    for (scenario, name) in (0..).zip(spec.scenario_names()) {
        if targets(&rows, scenario) == 0 {
            return Err(ImportError::NoRows { scenario: name });
        }
    }
    // The header says how many arms the run has, and that is what the file holds.
    if rows.iter().all(|placed| placed.row.arm == Arm::Target) {
        spec.reference = None;
    } else {
        pair(&mut rows, &spec)?;
        spec.reference.get_or_insert_with(|| spec.target.clone());
    }
    let (mut parts, mut first) = (Vec::new(), 0_u32);
    for (number, scenarios) in (0..).zip(spec.sections()) {
        let (plan, samples) = section(empty_plan(&spec, number, &scenarios, &rows), &scenarios, &rows, first);
        first = first.saturating_add(plan.whole);
        let at = samples.iter().map(|sample| sample.end.unwrap_or(sample.intended)).max().unwrap_or(Nanos::ZERO);
        let end = RunEnd {
            reference: spec.reference.as_ref().map(|_| ReferenceEnd::default()),
            ..RunEnd::new(EndReason::Completed, plan.whole, at)
        };
        let header = RunHeader {
            imported_from: Some(format.to_owned()),
            // The spec says what is required, not what was measured.
            simulated: false,
            ..RunHeader::new(spec.clone(), &plan, gate, run_id, started)
        };
        parts.push(Run::new(header, Vec::new(), samples, Some(end)));
    }
    Ok(Run::assemble(parts)?)
}

/// How many rows of the target a scenario has.
fn targets(rows: &[Placed], scenario: u16) -> usize {
    rows.iter().filter(|placed| placed.scenario == scenario && placed.row.arm == Arm::Target).count()
}

/// A section's plan without its requests. A file that is whole is judged once, on all it has.
fn empty_plan(spec: &GateSpec, number: u16, scenarios: &[u16], rows: &[Placed]) -> Plan {
    let counts = scenarios.iter().map(|scenario| u32::try_from(targets(rows, *scenario)).unwrap_or(u32::MAX));
    let counts: Vec<u32> = counts.collect();
    let look = counts.iter().fold(0, |sum: u32, count| sum.saturating_add(*count));
    let by_scenario = if counts.len() > 1 { vec![counts] } else { Vec::new() };
    Plan { section: number, by_scenario, ..Plan::new(spec, vec![look], Vec::new()) }
}

/// The section's rows as its plan's requests and as samples, numbered from `first` on.
fn section(plan: Plan, scenarios: &[u16], rows: &[Placed], first: u32) -> (Plan, Vec<Sample>) {
    let own = || rows.iter().filter(|placed| scenarios.contains(&placed.scenario));
    let epoch = own().map(|placed| placed.row.send_s).fold(f64::INFINITY, f64::min);
    let samples = in_send_order(own().map(|placed| sample(placed, epoch)).collect(), first);
    let requests = samples.iter().map(|sample| PlannedRequest {
        index: sample.index,
        scenario: sample.scenario,
        turn: sample.turn,
        at: sample.intended,
        ..PlannedRequest::default()
    });
    let requests: Vec<_> = requests.collect();
    let whole = u32::try_from(requests.len()).unwrap_or(u32::MAX);
    (Plan { first, whole, requests, ..plan }, samples)
}

/// Rows that a tool's file has, none of which names a scenario.
pub(crate) fn placed(rows: Vec<(usize, Row)>, spec: &GateSpec) -> Result<Vec<Placed>, ImportError> {
    let names = spec.scenario_names();
    let place = |(line, row): (usize, Row)| Ok(Placed { line, scenario: scenario(line, &row, &names)?, row });
    rows.into_iter().map(place).collect()
}

/// The rows of `samples` lines, each arm's in send order; where scenarios run in turn, each scenario's. Blank lines are
/// skipped.
pub(crate) fn read(text: &str, spec: &GateSpec) -> Result<Vec<Placed>, ImportError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let names = spec.scenario_names();
    let mut rows = Vec::new();
    let mut last_sent = HashMap::new();
    for (number, text) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let line = number + 1;
        let row = Row::parse(line, text)?;
        let scenario = scenario(line, &row, &names)?;
        let most = spec.prompts_of(scenario).turns.max;
        if row.turn > 0 && u32::from(row.turn) >= most {
            return Err(ImportError::NoSuchTurn { line, turn: row.turn, most });
        }
        let sent_with = (row.arm, if spec.order == RunOrder::InTurn { scenario } else { 0 });
        if last_sent.insert(sent_with, row.send_s).is_some_and(|before| row.send_s < before) {
            return Err(ImportError::Unsorted { line, send_s: row.send_s.to_string() });
        }
        rows.push(Placed { line, scenario, row });
    }
    Ok(rows)
}

/// Which of the spec's scenarios a row is of.
fn scenario(line: usize, row: &Row, names: &[String]) -> Result<u16, ImportError> {
    let expected = || names.to_vec();
    let unknown = |name: &String| ImportError::UnknownScenario { line, scenario: name.clone(), expected: expected() };
    let place = match &row.scenario {
        Some(name) => names.iter().position(|known| known == name).ok_or_else(|| unknown(name))?,
        None if names.len() > 1 => return Err(ImportError::NoScenario { line, expected: expected() }),
        None => 0,
    };
    u16::try_from(place).map_err(|_| ImportError::TooMany)
}

/// Gives every row its pair, which is of the same scenario.
fn pair(rows: &mut [Placed], spec: &GateSpec) -> Result<(), ImportError> {
    let mut numbers = PairNumbers::of(spec);
    for (scenario, _) in (0..).zip(spec.scenario_names()) {
        let mut own: Vec<&mut Placed> = rows.iter_mut().filter(|placed| placed.scenario == scenario).collect();
        let single = |Placed { line, row, .. }: &Placed| Single { at: Spot::Line(*line), arm: row.arm, pair: row.pair };
        let singles: Vec<_> = own.iter().map(|placed| single(placed)).collect();
        let pairs = numbers.of_scenario(pairs(&singles)?);
        own.iter_mut().zip(pairs).for_each(|(placed, pair)| placed.row.pair = Some(pair));
    }
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
fn sample(Placed { scenario, row, .. }: &Placed, epoch: f64) -> Sample {
    let tokens = |tokens: Option<u64>| tokens.and_then(|tokens| u32::try_from(tokens).ok()).unwrap_or(0);
    let planned = PlannedRequest {
        scenario: *scenario,
        turn: row.turn,
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
