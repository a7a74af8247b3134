//! What a run is compared with: completed once the run has ended, or put together from files.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use gate_model::{
    Baseline, BaselineFrom, BaselineKey, BaselineRef, BaselineUse, Difference, Endpoint, NoBaseline, PassedOver, Prior,
    Run,
};

use crate::keep::unjudged;
use crate::key::{TOKENS, beside, differences, with_tokens};
use crate::stored::{self, LARGEST, answered};
use crate::{BaselineError, Refused};

/// How many baselines a run is compared with at most.
const MOST: usize = 20;

/// How many requests must be ok in a baseline: as many as the run itself needs.
pub(crate) const LEAST_OK: u32 = 20;

/// Reads a file that somebody names: a baseline, or a run's journal.
///
/// # Errors
/// Where it cannot be read, is neither, or holds a run that did not end as planned.
pub fn read_file(path: &Path) -> Result<Baseline, BaselineError> {
    let name = path.display().to_string();
    let read = || -> std::io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        File::open(path)?.take(LARGEST + 1).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = read().map_err(|source| BaselineError::Read { path: path.to_path_buf(), source })?;
    read_bytes(bytes, &name)
}

/// Reads what a file or a server that somebody names held: a baseline, or a run's journal. `name` is for messages.
///
/// # Errors
/// Where it is neither, is larger than 256 MiB, or holds a run that did not end as planned.
pub fn read_bytes(bytes: Vec<u8>, name: &str) -> Result<Baseline, BaselineError> {
    let refused = |why: String| BaselineError::Refused(Refused::new(name, why));
    if bytes.len() as u64 > LARGEST {
        return Err(refused(format!("it is larger than {} MiB", LARGEST >> 20)));
    }
    if !stored::is_journal(&bytes) {
        return stored::whole(&bytes, None).map_err(refused);
    }
    let text = String::from_utf8(bytes).map_err(|_| refused("it is not UTF-8".to_owned()))?;
    let run = Run::from_journal(&text).map_err(|error| refused(error.to_string()))?;
    unjudged(run, name)
}

/// What the command line names is used as given, where its key agrees with that of the run (with its tokens) and enough
/// of its requests were ok. What another tool measured has no key to agree.
///
/// # Errors
/// Where a run is given twice, since it would count as two, or more than 20 files are given.
pub fn as_given(files: Vec<(String, Baseline)>, key: &BaselineKey) -> Result<Prior, BaselineError> {
    if files.len() > MOST {
        return Err(BaselineError::TooMany { given: files.len(), most: MOST });
    }
    check_distinct(&files)?;
    let names: Vec<String> = files.iter().map(|(name, _)| name.clone()).collect();
    let mut prior = Prior::default();
    let (mut used, mut passed_over) = (Vec::new(), Vec::new());
    for (name, baseline) in files {
        let differences = differences(&baseline.key, key);
        if baseline.run.header.imported_from.is_none() && !differences.is_empty() {
            passed_over.push(PassedOver { from: BaselineFrom::File(name), why: NoBaseline::Differs(differences) });
            continue;
        }
        if let Some(why) = too_few(&baseline) {
            passed_over.push(PassedOver { from: BaselineFrom::File(name), why });
            continue;
        }
        used.push(reference(&baseline, None));
        prior.baselines.push(baseline);
    }
    let (store, by, fork, differences) = (names.join(", "), None, None, Vec::new());
    prior.chosen = Some(BaselineUse { store, by, fork, used, passed_over, differences });
    Ok(prior)
}

/// No run is there twice, by its id or, where another tool's files have none, by its samples.
fn check_distinct(files: &[(String, Baseline)]) -> Result<(), BaselineError> {
    for (at, (other, baseline)) in files.iter().enumerate() {
        let is_same = |(_, earlier): &&(String, Baseline)| {
            earlier.id() == baseline.id() || earlier.run.samples == baseline.run.samples
        };
        if let Some((one, earlier)) = files.iter().take(at).find(is_same) {
            return Err(BaselineError::SameRun { id: earlier.id().to_owned(), one: one.clone(), other: other.clone() });
        }
    }
    Ok(())
}

/// Where too few of its requests were ok to compare anything with it: that.
pub(crate) fn too_few(baseline: &Baseline) -> Option<NoBaseline> {
    let ok = answered(&baseline.run);
    (ok < LEAST_OK).then_some(NoBaseline::TooFewOk { ok, needed: LEAST_OK })
}

/// Drops the baselines whose output tokens were counted another way than the run's, which only now is known, those of
/// too few requests, and the run itself. Where none is left, what had chosen them is passed over.
#[must_use]
pub fn confirm(mut prior: Prior, run: &Run) -> Prior {
    let counted = with_tokens(BaselineKey::default(), run);
    let of = |key: &BaselineKey| key.parts.get(TOKENS).cloned().unwrap_or_default();
    let (tokens, id) = (of(&counted), run.header.run_id.as_str());
    let why_not = |baseline: &Baseline| {
        if baseline.id() == id {
            return Some(NoBaseline::Itself);
        }
        // A run without an answer counts nothing, and has verdicts of its own.
        let is_imported = baseline.run.header.imported_from.is_some();
        if tokens.is_empty() || is_imported || of(&baseline.key) == tokens {
            return too_few(baseline);
        }
        let (what, baseline, run) = (TOKENS.to_owned(), of(&baseline.key), tokens.clone());
        Some(NoBaseline::Differs(vec![Difference { what, baseline, run }]))
    };
    let why = prior.baselines.iter().find_map(why_not);
    prior.baselines.retain(|baseline| why_not(baseline).is_none());
    prior.history.retain(|baseline| why_not(baseline).is_none());
    if let (Some(chosen), Some(why)) = (&mut prior.chosen, why) {
        chosen.used.retain(|used| prior.baselines.iter().any(|baseline| baseline.id() == used.id));
        if chosen.used.is_empty() {
            // Files that the command line names were chosen by nothing else.
            let from = chosen.by.take().unwrap_or_else(|| BaselineFrom::File(chosen.store.clone()));
            chosen.passed_over.push(PassedOver { from, why });
        }
    }
    prior
}

/// Notes what differs around the newest baseline and the run: machine, runner, region, version of gate, target, server,
/// and what the spec says of the target that is no part of the key. It disables nothing.
pub fn note_differences(prior: &mut Prior, run: &Run) {
    let (Some(newest), Some(chosen)) = (prior.baselines.first(), &mut prior.chosen) else { return };
    let pairs = notes(&newest.run).into_iter().zip(notes(run));
    chosen.differences = pairs
        .filter(|((_, baseline), (_, run))| baseline != run)
        .map(|((what, baseline), (_, run))| Difference { what: what.to_owned(), baseline, run })
        .chain(differences(&beside(&newest.run.header.spec), &beside(&run.header.spec)))
        .collect();
}

/// A baseline that is used, so many commits before the one asked for.
pub(crate) fn reference(baseline: &Baseline, behind: Option<u32>) -> BaselineRef {
    let header = &baseline.run.header;
    BaselineRef {
        id: header.run_id.clone(),
        commit: header.commit.as_ref().map(|commit| commit.id.clone()),
        started: header.started.clone(),
        behind,
        imported_from: header.imported_from.clone(),
    }
}

/// What is noted of a run; empty where it is not known.
fn notes(run: &Run) -> [(&'static str, String); 9] {
    let header = &run.header;
    let host = header.host.clone().unwrap_or_default();
    let reached = run.end.as_ref().and_then(|end| end.reached.as_ref());
    let target = match &header.spec.target.endpoint {
        Endpoint::Url(url) => url.clone(),
        Endpoint::Sim(_) => "sim".to_owned(),
    };
    let cores = if host.cores == 0 { String::new() } else { host.cores.to_string() };
    [
        ("system", host.system),
        ("cores", cores),
        ("cpu", host.cpu.unwrap_or_default()),
        ("kernel", host.kernel.unwrap_or_default()),
        ("runner", host.runner.unwrap_or_default()),
        ("region", host.region.unwrap_or_default()),
        ("gate", header.gate.clone()),
        ("target", target),
        ("server", reached.and_then(|reached| reached.server.clone()).unwrap_or_default()),
    ]
}
