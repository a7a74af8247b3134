//! Finding and resolving specs: all of them, before any byte is sent.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use gate_model::{Diagnostic, GateSpec, Severity};
use gate_spec::{Overlay, Resolved};

use crate::console::Console;
use crate::failure::Failure;
use crate::files;

/// Resolves the specs the person named, or those in `gates/`, in the order of their names.
///
/// # Errors
/// Every error of every spec at once, already printed; or none found.
pub(crate) fn resolve_all(
    named: &[PathBuf],
    overlays: &[Overlay],
    console: &Console,
) -> Result<Vec<GateSpec>, Failure> {
    let found = found(named)?;
    let environment = environment();
    let (mut specs, mut wrong): (Vec<GateSpec>, Vec<Diagnostic>) = (Vec::new(), Vec::new());
    for path in &found {
        let text = match files::read(path, files::SMALL) {
            Ok(text) => text,
            Err(failure) => {
                console.failure(&failure);
                wrong.push(unreadable(failure));
                continue;
            }
        };
        match gate_spec::resolve(&path.display().to_string(), &text, &environment, overlays) {
            Ok(resolved) => {
                console.secrets.add(&resolved.secrets);
                console.people(&gate_report::diagnostics(&resolved.warnings, console.style));
                specs.push(resolved.spec);
            }
            Err(diagnostics) => {
                console.urgent(&gate_report::diagnostics(&diagnostics, console.style));
                wrong.extend(diagnostics.into_iter().filter(|one| one.severity == Severity::Error));
            }
        }
    }
    specs.sort_by(|left, right| left.name.cmp(&right.name));
    specs.dedup_by(|later, earlier| later.name == earlier.name && later.file == earlier.file);
    for pair in specs.windows(2) {
        if let [first, second] = pair
            && first.name == second.name
        {
            let twice = twice(first, second);
            console.urgent(&gate_report::diagnostics(std::slice::from_ref(&twice), console.style));
            wrong.push(twice);
        }
    }
    let words = match wrong.len() {
        0 => return Ok(specs),
        1 => "1 error in the specs; nothing was sent".to_owned(),
        more => format!("{more} errors in the specs; nothing was sent"),
    };
    Err(Failure { diagnostics: wrong, ..Failure::usage(words) })
}

/// The specs in `gates/`, each as it can be resolved here, or its file and what is wrong: a variable may be missing that a
/// check would have.
pub(crate) fn in_gates(console: &Console) -> Vec<Result<GateSpec, (PathBuf, Vec<Diagnostic>)>> {
    let resolve = |path: PathBuf| {
        let text = files::read(&path, files::SMALL).map_err(|failure| (path.clone(), vec![unreadable(failure)]))?;
        let resolved = gate_spec::resolve(&path.display().to_string(), &text, &environment(), &[]);
        let resolved = resolved.map_err(|diagnostics| (path, diagnostics))?;
        console.secrets.add(&resolved.secrets);
        Ok(resolved.spec)
    };
    find(Path::new("gates")).unwrap_or_default().into_iter().map(resolve).collect()
}

/// Resolves a spec's text that stands under this name, in another commit or here.
pub(crate) fn resolve_text(
    name: &str,
    text: &str,
    overlays: &[Overlay],
    console: &Console,
) -> Result<Resolved, Failure> {
    let resolved = gate_spec::resolve(name, text, &environment(), overlays).map_err(|diagnostics| {
        console.urgent(&gate_report::diagnostics(&diagnostics, console.style));
        Failure::usage(format!("{name} cannot be resolved; nothing was sent"))
    })?;
    console.secrets.add(&resolved.secrets);
    Ok(resolved)
}

/// What a text is, where it can be resolved.
pub(crate) fn resolvable(file: &str, text: &str, overlays: &[Overlay]) -> Option<Resolved> {
    gate_spec::resolve(file, text, &environment(), overlays).ok()
}

fn environment() -> BTreeMap<String, String> {
    std::env::vars_os()
        // A value that is not UTF-8 is set all the same: where it is used, it is refused.
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.to_string_lossy().into_owned())))
        .collect()
}

/// Resolves one spec.
pub(crate) fn resolve_one(path: &Path, overlays: &[Overlay], console: &Console) -> Result<GateSpec, Failure> {
    let specs = resolve_all(&[path.to_path_buf()], overlays, console)?;
    specs.into_iter().next().ok_or_else(|| Failure::internal("a spec was neither resolved nor refused"))
}

fn unreadable(failure: Failure) -> Diagnostic {
    let Failure { message, hint, .. } = failure;
    Diagnostic { severity: Severity::Error, place: None, message, snippet: None, hint, missing: None }
}

fn twice(first: &GateSpec, second: &GateSpec) -> Diagnostic {
    Diagnostic {
        severity: Severity::Error,
        place: None,
        message: format!("two specs have the name `{}`: {} and {}", first.name, first.file, second.file),
        snippet: None,
        hint: Some("give each gate a `name` of its own: outputs and baselines are kept by name".to_owned()),
        missing: None,
    }
}

/// The specs the person named, or those in `gates/`.
///
/// # Errors
/// None found.
pub(crate) fn found(named: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    if named.is_empty() { find(Path::new("gates")) } else { Ok(named.to_vec()) }
}

/// The specs directly in a folder; subfolders hold nightly plans and specs that need a server of their own.
fn find(folder: &Path) -> Result<Vec<PathBuf>, Failure> {
    let is_spec = |path: &PathBuf| {
        path.is_file() && path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml")
    };
    let entries = std::fs::read_dir(folder).into_iter().flatten();
    let mut found: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).filter(is_spec).collect();
    found.sort();
    if found.is_empty() {
        return Err(Failure::usage("no gate spec: there is no *.yaml or *.yml in ./gates")
            .hint("name one, as in `gate check path/to/gate.yaml`, or run gate where `gates/` is"));
    }
    Ok(found)
}
