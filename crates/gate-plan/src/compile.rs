//! A spec to its plan.

use gate_model::{Arm, Arrivals, Cache, GateSpec, Load, Nanos, PerSecond, Plan, PlannedRequest};

use crate::draw::{Draws, Purpose};
use crate::error::PlanError;
use crate::lengths::{Truncated, typical};
use crate::prompt_file::{PromptFile, PromptRow};

/// The most requests a plan holds of each arm, warm-up and measured each.
const MOST_REQUESTS: u32 = 1_000_000;

/// The most input tokens of a request: its text must fit in memory.
const MOST_INPUT_TOKENS: u32 = 10_000_000;

/// The latest a request may be due.
const LONGEST: Nanos = Nanos::from_secs(24 * 60 * 60);

/// Compiles a spec into its plan: every request, before any is sent.
///
/// `looks` are the sizes at which the run is judged, ascending; the last is the number of measured requests of each arm.
/// `gate check` gives all of [`gate_model::Iterations::looks`], `gate run` leaves out the extension. A request
/// depends on the spec and its own index alone, never on how many follow it, so the shorter plan is a prefix
/// of the longer one.
///
/// `file` is what `prompts.file` holds. Its first rows are measured, in its order, and its last ones are for warm-up;
/// the two never overlap. A request then has the input tokens of its row by [`gate_tokens::estimate`], and the row's
/// output tokens where it has any.
///
/// Input tokens are those of the prompt without `prompts.system`, which comes on top. With `cache: warm` and no file,
/// where one text is sent throughout, they are the mean. Where nothing is generated (embeddings), requests have no
/// output tokens.
///
/// In a closed loop every request is due at zero: the end of an earlier one sends it, and only their order is planned.
/// A cap on an open loop changes nothing.
///
/// With a reference every request is a pair: one of each arm, equal in all but arm and index, numbered as the requests
/// of a plan without a reference are and equal to them in time and lengths. Which of the two comes first is drawn anew
/// for each measured pair; in warm-up it is the target's.
///
/// # Errors
///
/// [`PlanError`] where the spec's numbers or the file allow no plan.
pub fn plan(spec: &GateSpec, looks: &[u32], file: Option<&PromptFile>) -> Result<Plan, PlanError> {
    let (count, warmup) = (last_look(looks)?, spec.load.warmup);
    at_most("load.iterations", count)?;
    at_most("load.warmup", warmup)?;
    match (file, &spec.prompts.file) {
        (Some(file), _) => check_rows(file, count, spec)?,
        (None, Some(name)) => return Err(PlanError::FileNotRead { file: name.clone() }),
        (None, None) => {}
    }

    let warmup_purposes = (Purpose::WarmupInputLengths, Purpose::WarmupOutputLengths);
    let warmup_lengths = lengths(spec, warmup_purposes, warmup, file.map(|file| file.warmup(warmup)))?;
    let measured_purposes = (Purpose::InputLengths, Purpose::OutputLengths);
    let measured_lengths = lengths(spec, measured_purposes, count, file.map(|file| file.measured(count)))?;
    let requests = (0..).zip(arrivals(&spec.load, count)?).zip(measured_lengths);
    let requests = requests.map(|((index, at), lengths)| request(index, at, lengths)).collect();
    let warmup = (0..).zip(warmup_lengths).map(|(index, lengths)| request(index, Nanos::ZERO, lengths)).collect();
    let (warmup, requests) = match &spec.reference {
        None => (warmup, requests),
        Some(_) => {
            let mut order = Draws::new(spec.load.seed, Purpose::Order, 0);
            let drawn = || if order.below(2) == 0 { Arm::Target } else { Arm::Reference };
            (paired(warmup, || Arm::Target), paired(requests, drawn))
        }
    };
    Ok(Plan { warmup, ..Plan::new(spec, looks.to_vec(), requests) })
}

/// A request of each arm for every one of these; `first` gives the arm that comes first.
fn paired(requests: Vec<PlannedRequest>, mut first: impl FnMut() -> Arm) -> Vec<PlannedRequest> {
    let pair = |request: PlannedRequest| {
        let arms = match first() {
            Arm::Target => [Arm::Target, Arm::Reference],
            Arm::Reference => [Arm::Reference, Arm::Target],
        };
        arms.map(|arm| PlannedRequest { arm, pair: Some(request.index), ..request })
    };
    let requests = requests.into_iter().flat_map(pair);
    (0..).zip(requests).map(|(index, request)| PlannedRequest { index, ..request }).collect()
}

/// The file has rows for every request, and more than one prompt where that is asked for.
fn check_rows(file: &PromptFile, measured: u32, spec: &GateSpec) -> Result<(), PlanError> {
    let (rows, warmup) = (file.rows().len(), spec.load.warmup);
    if (rows as u64) < u64::from(measured) + u64::from(warmup) {
        return Err(PlanError::TooFewRows { rows, measured, warmup });
    }
    let one_prompt = measured > 1 && file.repeats(measured) == measured - 1;
    if one_prompt && spec.prompts.cache != Cache::Warm {
        return Err(PlanError::OnePrompt { measured });
    }
    Ok(())
}

/// Input and output tokens of the first `count` requests of a phase, whose draws have these purposes.
fn lengths(
    spec: &GateSpec,
    (inputs, outputs): (Purpose, Purpose),
    count: u32,
    rows: Option<&[PromptRow]>,
) -> Result<Vec<(u32, u32)>, PlanError> {
    let (seed, prompts) = (spec.load.seed, &spec.prompts);
    let generates = spec.target.api.generates();
    let outputs: Vec<u32> = if generates {
        Truncated::new("prompts.output_tokens", &prompts.output_tokens)?.draw(seed, outputs, count).collect()
    } else {
        vec![0; count as usize]
    };
    if let Some(rows) = rows {
        let output = |row: &PromptRow, drawn| row.output_tokens.filter(|_| generates).unwrap_or(drawn);
        let of_row = |(row, drawn): (&PromptRow, u32)| (row.input_tokens(), output(row, drawn));
        return Ok(rows.iter().zip(outputs).map(of_row).collect());
    }
    let key = "prompts.input_tokens";
    let input_lengths = Truncated::new(key, &prompts.input_tokens)?;
    let lengths: Vec<(u32, u32)> = match prompts.cache {
        Cache::Bust => input_lengths.draw(seed, inputs, count).zip(outputs).collect(),
        Cache::Warm => outputs.into_iter().map(|output| (typical(&prompts.input_tokens), output)).collect(),
    };
    match (0..).zip(&lengths).find(|(_, (tokens, _))| *tokens > MOST_INPUT_TOKENS) {
        Some((index, &(tokens, _))) => Err(PlanError::TooLarge { key, index, tokens, limit: MOST_INPUT_TOKENS }),
        None => Ok(lengths),
    }
}

fn request(index: u32, at: Nanos, (input_tokens, output_tokens): (u32, u32)) -> PlannedRequest {
    PlannedRequest { index, at, input_tokens, output_tokens, ..PlannedRequest::default() }
}

fn last_look(looks: &[u32]) -> Result<u32, PlanError> {
    let ascending = looks.is_sorted_by(|earlier, later| earlier < later);
    match (looks.first(), looks.last()) {
        (Some(&first), Some(&last)) if first > 0 && ascending => Ok(last),
        _ => Err(PlanError::Looks { looks: looks.to_vec() }),
    }
}

fn at_most(key: &'static str, count: u32) -> Result<(), PlanError> {
    if count > MOST_REQUESTS {
        return Err(PlanError::TooMany { key, count, limit: MOST_REQUESTS });
    }
    Ok(())
}

/// When each request is due: the first at zero, then by exponential (Poisson arrivals) or equal gaps; all at zero in a
/// closed loop.
fn arrivals(load: &Load, count: u32) -> Result<Vec<Nanos>, PlanError> {
    let Some(PerSecond(rate)) = load.pace.rate() else { return Ok(vec![Nanos::ZERO; count as usize]) };
    if !(rate.is_finite() && rate > 0.0) {
        return Err(PlanError::Rate { rate });
    }
    let mut draws = Draws::new(load.seed, Purpose::Gaps, 0);
    let mut at = Nanos::ZERO;
    (0..count)
        .map(|index| {
            if index > 0 {
                at = match load.arrivals {
                    // The inverse of the exponential distribution function; 1 - u is never 0.
                    Arrivals::Poisson => at + Nanos::from_secs_f64(-(1.0 - draws.unit()).ln() / rate),
                    // From the index, so that rounding doesn't add up.
                    Arrivals::Constant => Nanos::from_secs_f64(f64::from(index) / rate),
                };
            }
            if at > LONGEST { Err(PlanError::TooLong { index, at }) } else { Ok(at) }
        })
        .collect()
}
