//! From a run to a baseline: what is kept of it.

use gate_model::{BASELINE_SCHEMA, Baseline, EndReason, Run, Status, Verdict};

use crate::key::{hashed, key, with_tokens, without_text};
use crate::layout::check_id;
use crate::{BaselineError, Refused};

/// A run as a baseline, saved at this time (RFC 3339 in UTC): every sample of both arms, without the times of single
/// tokens. The spec in its header must have its secrets out, as a journal's has; its system prompt is kept as a hash.
///
/// # Errors
/// Where the verdict is about another run, or says that this one is not valid.
pub fn baseline(run: &Run, verdict: &Verdict, saved: &str) -> Result<Baseline, BaselineError> {
    let id = &run.header.run_id;
    check_id(id)?;
    if verdict.run.run_id != *id {
        return Err(BaselineError::OtherRun { run: id.clone(), verdict: verdict.run.run_id.clone() });
    }
    if !verdict.valid {
        return Err(BaselineError::Invalid(id.clone()));
    }
    Ok(kept(run.clone(), verdict.status, saved))
}

/// A run as a baseline where there is no verdict: that of a journal, or another tool's, read from this file. Its status
/// claims nothing.
///
/// # Errors
/// Where it did not end as planned.
pub fn unjudged(run: Run, file: &str) -> Result<Baseline, BaselineError> {
    match run.end.as_ref().map(|end| &end.reason) {
        Some(EndReason::Completed | EndReason::StoppedAtLook(_)) => {
            let saved = run.header.started.clone();
            Ok(kept(run, Status::Inconclusive, &saved))
        }
        _ => Err(BaselineError::Refused(Refused::new(file, "the run did not end as planned: run it again"))),
    }
}

fn kept(mut run: Run, status: Status, saved: &str) -> Baseline {
    run.samples.iter_mut().chain(&mut run.warmup).for_each(|sample| sample.token_times = Vec::new());
    let spec = &mut run.header.spec;
    spec.prompts = without_text(std::mem::take(&mut spec.prompts));
    for change in
        spec.overrides.iter_mut().filter(|change| ["prompts", "prompts.system"].contains(&change.path.as_str()))
    {
        change.value = hashed(&change.value);
    }
    let key = with_tokens(key(&run.header.spec, run.header.definitions), &run);
    Baseline { schema: BASELINE_SCHEMA, key, saved: saved.to_owned(), status, run }
}
