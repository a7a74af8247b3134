//! `--trust base`: a change is judged by the checks of the commit it forked off from.

use std::path::Path;

use gate_model::{Finding, GateSpec};
use gate_spec::Overlay;

use crate::console::Console;
use crate::failure::Failure;
use crate::{specs, surroundings};

/// A spec that is judged as its base commit wants it, with what the report says of that.
pub(crate) struct Trusted {
    pub(crate) spec: GateSpec,
    pub(crate) finding: Option<Finding>,
}

/// What a spec's checks are at the commit the change forked off from.
///
/// # Errors
/// Where the base cannot be found or its spec not be resolved: nothing is judged by checks nobody vouched for.
pub(crate) fn base(head: GateSpec, overlays: &[Overlay], console: &Console) -> Result<Trusted, Failure> {
    let wrong = |error: &dyn std::fmt::Display| {
        Failure::usage(format!("--trust base: failed to {error}"))
            .hint("the job needs a checkout with the commits back to the fork point, such as fetch-depth: 0")
    };
    let repository = surroundings::repository().map_err(|error| wrong(&error))?;
    let base = repository.fork_point(&surroundings::of_job()).map_err(|error| wrong(&error))?;
    let text = match repository.relative(Path::new(&head.file)) {
        Some(path) => repository.file_at(&base, &path).map_err(|error| wrong(&error))?,
        None => return Err(Failure::usage(format!("--trust base: {} is not in the repository", head.file))),
    };
    let Some(text) = text else {
        return Ok(Trusted { spec: head, finding: Some(Finding::NotAtBase { base }) });
    };
    let name = format!("{} at {}", head.file, base.get(..12).unwrap_or(&base));
    let of_base = specs::resolve_text(&name, &text, overlays, console)?;
    let changes = gate_spec::changes(&of_base, &head);
    let spec = gate_spec::judged_by(&of_base, &head);
    let finding = (!changes.is_empty()).then_some(Finding::SpecChanged { base, changes });
    Ok(Trusted { spec, finding })
}
