//! From a run to a baseline: what is kept of it.

use gate_model::{BASELINE_SCHEMA, Baseline, EndReason, RAW_LIMIT, Run, Status, Verdict};

use crate::key::{hashed, key, with_tokens, without_text};
use crate::layout::check_id;
use crate::{BaselineError, Refused};

/// A run as a baseline, saved at this time (RFC 3339 in UTC): every sample of both arms, without the times of single
/// tokens. The spec in its header must have its secrets out, as a journal's has; its system prompt is kept as a hash.
///
/// # Errors
/// Where the verdict is about another run, or says that this one is not valid; where the run is one shard of several, or
/// too long for all of its samples to be kept.
pub fn baseline(run: &Run, verdict: &Verdict, saved: &str) -> Result<Baseline, BaselineError> {
    let id = &run.header.run_id;
    check_id(id)?;
    if verdict.run.run_id != *id {
        return Err(BaselineError::OtherRun { run: id.clone(), verdict: verdict.run.run_id.clone() });
    }
    check_keepable(run, id)?;
    if !verdict.valid {
        return Err(BaselineError::Invalid(id.clone()));
    }
    Ok(kept(run.clone(), verdict.status, saved))
}

/// A run as a baseline where there is no verdict: that of a journal, or another tool's, read from this file. Its status
/// claims nothing.
///
/// # Errors
/// Where it did not end as planned, or is none that could be kept.
pub fn unjudged(run: Run, file: &str) -> Result<Baseline, BaselineError> {
    check_keepable(&run, &run.header.run_id)?;
    if run.sections().len() != run.header.spec.sections().len() {
        let why = "it ended before all of its scenarios had their turn: run it again";
        return Err(BaselineError::Refused(Refused::new(file, why)));
    }
    match run.end.as_ref().map(|end| &end.reason) {
        Some(EndReason::Completed | EndReason::StoppedAtLook(_)) => {
            let saved = run.header.started.clone();
            Ok(kept(run, Status::Inconclusive, &saved))
        }
        _ => Err(BaselineError::Refused(Refused::new(file, "the run did not end as planned: run it again"))),
    }
}

/// Whether all there was to measure is in the run, and all of that is kept.
fn check_keepable(run: &Run, id: &str) -> Result<(), BaselineError> {
    if let Some(shard) = run.header.shard {
        return Err(BaselineError::OneShard { id: id.to_owned(), shard: shard.index, of: shard.of });
    }
    if run.is_long() {
        return Err(BaselineError::TooLong { id: id.to_owned(), requests: run.recorded(), most: RAW_LIMIT });
    }
    Ok(())
}

fn kept(mut run: Run, status: Status, saved: &str) -> Baseline {
    run.samples.iter_mut().chain(&mut run.warmup).for_each(|sample| sample.token_times = Vec::new());
    let spec = &mut run.header.spec;
    let own = spec.scenarios.iter_mut().map(|scenario| &mut scenario.prompts);
    for prompts in own.chain([&mut spec.prompts]) {
        *prompts = without_text(std::mem::take(prompts));
    }
    for change in spec.overrides.iter_mut().filter(|change| has_text(&change.path)) {
        change.value = hashed(&change.value);
    }
    let key = with_tokens(key(&run.header.spec, run.header.definitions), &run);
    Baseline { schema: BASELINE_SCHEMA, key, saved: saved.to_owned(), status, run }
}

/// Whether the value at a path of the spec may hold a system prompt: the gate's, a scenario's, or all that holds one. A
/// scenario's name may have dots in it, and be that of a block.
fn has_text(path: &str) -> bool {
    let parts: Vec<&str> = path.split('.').collect();
    match parts.as_slice() {
        [.., "prompts"] | [.., "prompts", "system"] | ["scenarios"] => true,
        ["scenarios", _, within @ ..] => {
            let is_within =
                |pair: &[&str]| pair.first().is_some_and(|block| ["load", "prompts", "slo"].contains(block));
            !within.windows(2).any(is_within)
        }
        _ => false,
    }
}
