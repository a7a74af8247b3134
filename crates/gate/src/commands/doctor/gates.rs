//! What a gate needs: its files and tokenizer, its target, its stored runs.

use std::path::Path;
use std::time::Duration;

use gate_baseline::Shelf;
use gate_model::{Diagnostic, GateSpec, Severity};

use super::{Finding, State};
use crate::console::Console;
use crate::inputs::Inputs;

/// How long a target may take to answer.
const WAIT: Duration = Duration::from_secs(5);

/// How much of a list of models is told.
const TOLD: usize = 5;

pub(super) fn findings(spec: &GateSpec, console: &Console) -> Vec<Finding> {
    let gate = Finding::new("gate", State::Works, format!("{} ({})", spec.name, spec.file));
    let inputs = match Inputs::read(spec) {
        Ok(inputs) => inputs,
        Err(failure) => return vec![gate, Finding::failed("files", failure)],
    };
    let scenarios = 0..u16::try_from(spec.scenarios.len().max(1)).unwrap_or(u16::MAX);
    let has_tokenizer = scenarios.into_iter().any(|scenario| inputs.counter(scenario).is_some());
    let tokenizer = match has_tokenizer {
        true => Finding::new("tokenizer", State::Works, "its file is read: answers without usage are counted by it"),
        false => Finding::new("tokenizer", State::Absent, "none: tokens are those that the server's usage says"),
    };
    vec![gate, target(spec, &inputs, console), tokenizer, baselines(spec)]
}

/// A spec that is wrong here: by its first error.
pub(super) fn unresolved(file: &Path, wrong: &[Diagnostic]) -> Finding {
    let Some(first) = wrong.iter().find(|one| one.severity == Severity::Error) else {
        return Finding::new("gate", State::Fails, file.display().to_string());
    };
    let finding = Finding::new("gate", State::Fails, format!("{}: {}", file.display(), first.message));
    match &first.hint {
        Some(hint) => finding.remedy(hint.as_str()),
        None => finding,
    }
}

/// Whether the target answers, and has the model.
fn target(spec: &GateSpec, inputs: &Inputs, console: &Console) -> Finding {
    let Some(remote) = &inputs.target.remote else {
        return Finding::new("target", State::Works, "the built-in engine, which is started for each run");
    };
    let path = remote.base.path().trim_end_matches('/');
    let beside = if path.is_empty() { "/v1/models".to_owned() } else { format!("{path}/models") };
    let answer = match gate_load::get(spec, remote, &inputs.proxies, &beside, WAIT, &console.secrets.redactor()) {
        Ok(Ok(answer)) => answer,
        Ok(Err(why)) => {
            return Finding::new("target", State::Fails, why).remedy("start the server, or name another with --target");
        }
        Err(error) => return Finding::new("target", State::Fails, format!("failed to {error}")),
    };
    let server = answer.server.map(|server| format!(" ({server})")).unwrap_or_default();
    let models = gate_init::models_in(&answer.text);
    match (answer.status, &spec.target.model) {
        (401 | 403, _) => Finding::new(
            "target",
            State::Fails,
            format!("it answers{server}, and refuses the key (HTTP {})", answer.status),
        )
        .remedy("`target.key` names the key that it takes"),
        (200, Some(model)) if models.contains(model) => {
            Finding::new("target", State::Works, format!("it answers{server}, and lists the model {model}"))
        }
        (200, Some(model)) if !models.is_empty() => {
            let listed: Vec<&str> = models.iter().take(TOLD).map(String::as_str).collect();
            Finding::new("target", State::Doubtful, format!("it answers{server}, and does not list the model {model}"))
                .remedy(format!("it lists {}", listed.join(", ")))
        }
        (200, _) => Finding::new("target", State::Works, format!("it answers{server}")),
        (status, _) => {
            Finding::new("target", State::Works, format!("it answers{server}; it lists no models (HTTP {status})"))
        }
    }
}

fn baselines(spec: &GateSpec) -> Finding {
    let shelf = match Shelf::open(&spec.baseline.store, Path::new(".")) {
        Ok(shelf) => shelf,
        Err(error) => return Finding::new("baselines", State::Fails, format!("failed to {error}")),
    };
    let listing = match shelf.list(&spec.name) {
        Ok(listing) => listing,
        Err(error) => return Finding::new("baselines", State::Fails, format!("failed to {error}")),
    };
    let (count, refused, place) = (listing.entries.len(), listing.refused.len(), shelf.location());
    let found = match (count, refused) {
        (0, 0) => Finding::new("baselines", State::Absent, format!("none in {place}")),
        (count, 0) => Finding::new("baselines", State::Works, format!("{count} in {place}")),
        (count, refused) => {
            Finding::new("baselines", State::Doubtful, format!("{count} in {place}, and {refused} files that are none"))
        }
    };
    match count {
        0 if spec.needs_baseline() => found.remedy("`gate check --save-baseline` on the main branch keeps its runs"),
        _ => found,
    }
}
