//! Gate specs: YAML text, environment values and overlays to a resolved gate, or all its diagnostics.
//!
//! ```text
//! text ──yaml──▶ tree with places ──overlay, walk (field table)──▶ values ──▶ RawSpec ──resolve──▶ GateSpec
//! ```
//!
//! One table of fields checks the keys, reads the values, fills in the defaults and makes the JSON Schema.
//! Nothing here reads a file or the environment: both are arguments.

mod aws;
mod baseline;
mod bound;
mod change;
mod check;
mod checks;
mod context;
mod credential;
mod custom;
mod endpoint;
mod environment;
mod field;
mod leaf;
mod length;
mod load;
mod overlay;
mod problem;
mod prompts;
mod raw;
mod reach;
mod reference;
mod resolve;
mod scenario;
mod schema;
mod scope;
mod source;
mod table;
mod target;
mod walk;
mod yaml;

use std::collections::BTreeMap;

use gate_model::{Diagnostic, GateSpec, Place, Secret, Severity};
use serde_yaml::Value;

use context::Context;
use problem::Problem;
use raw::RawSpec;
use source::Source;
use yaml::{Site, TEXT_LIMIT};

pub use change::{changes, judged_by};
pub use reach::{
    AllowedHost, AllowedHostError, Destination, carries_secrets, destinations, destinations_of_flags, sent_files,
};
pub use schema::json_schema;

/// The most diagnostics that are returned; nobody reads more at once.
const DIAGNOSTICS_LIMIT: usize = 100;

/// A value that a flag puts over the spec's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overlay {
    /// The flag, such as `--set` or `--target`.
    pub flag: String,
    /// The dotted path, such as `load.rps`; `--target` is `target.url`, and `--reference` is `reference.url`.
    pub path: String,
    /// The value as typed: one value as it is, a list or map as YAML. Variables in it are not filled in.
    pub value: String,
}

/// A gate, with what came along with it.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// The gate.
    pub spec: GateSpec,
    /// Every credential in it, for the redactor.
    pub secrets: Vec<Secret>,
    /// Every variable of the environment that its values name, set or not, and those that AWS credentials come from where
    /// they are asked for; with the first place that does.
    pub variables: BTreeMap<String, Place>,
    /// What is worth knowing, though the gate runs; in file order.
    pub warnings: Vec<Diagnostic>,
}

/// Reads a gate spec: `text` is what `file` holds, overlays are applied in order.
///
/// # Errors
/// Everything that is wrong, in file order, then what is wrong with overlays. At most 100 diagnostics; the last
/// one then says how many more there are. Values from the environment and credentials are never repeated.
pub fn resolve(
    file: &str,
    text: &str,
    environment: &BTreeMap<String, String>,
    overlays: &[Overlay],
) -> Result<Resolved, Vec<Diagnostic>> {
    // A byte order mark is no part of the text, and editors do not count it as a column.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.len() > TEXT_LIMIT {
        let message = format!("the spec is {} bytes long, more than {TEXT_LIMIT}", text.len());
        let problem =
            Problem::error(Site::Whole, message).hint("a gate spec is a page or two: is this the right file?");
        return Err(vec![Source::new(file, "", overlays).diagnostic(problem)]);
    }
    let mut source = Source::new(file, text, overlays);
    let parsed = yaml::read(text, None);
    let mut problems = parsed.problems;
    let mut root = match parsed.root {
        Some(root) if !root.is_null() => root,
        root => {
            if root.is_some() || problems.is_empty() {
                let hint = "start with `version: 1`, then `name: …`, `target: …` and `require: …`";
                problems.push(Problem::error(Site::Whole, "the spec is empty").hint(hint));
            }
            source.mask_by_words(&problems);
            return Err(diagnostics(&source, problems));
        }
    };
    source.mask(parsed.masks.into_iter().chain(credential::spans_in_spec(&root)));
    problems.extend(overlay::apply(&mut root, overlays));
    let mut walked = walk::walk(&root, environment);
    problems.append(&mut walked.problems);

    let raw: RawSpec = match serde_yaml::from_value(Value::Mapping(std::mem::take(&mut walked.value))) {
        Ok(raw) => raw,
        Err(error) => {
            // The walk lets nothing through that the types refuse; if it does, say so rather than go on.
            if problems.is_empty() {
                problems.push(Problem::error(Site::Whole, format!("the spec does not fit its types: {error}")));
            }
            return Err(diagnostics(&source, problems));
        }
    };
    let mut context = Context { walked: &walked, source: &source, environment, asked: BTreeMap::new(), problems };
    let built = resolve::build(&mut context, raw, file);
    let (errors, warnings): (Vec<_>, Vec<_>) =
        context.problems.into_iter().partition(|problem| problem.severity == Severity::Error);
    if !errors.is_empty() {
        return Err(diagnostics(&source, errors));
    }
    let warnings = diagnostics(&source, warnings);
    let variables = walked.variables.iter().chain(&context.asked);
    let variables = variables.map(|(name, site)| (name.clone(), source.place(*site))).collect();
    let mut secrets = built.secrets;
    secrets.append(&mut walked.secrets);
    let spec = GateSpec { overrides: overlay::overrides(overlays), ..built.spec };
    Ok(Resolved { spec, secrets, variables, warnings })
}

fn diagnostics(source: &Source, mut problems: Vec<Problem>) -> Vec<Diagnostic> {
    problems.sort_by_key(|problem| problem.site);
    let mut told: Vec<Problem> = Vec::new();
    for problem in problems {
        // What scenarios have from the gate is wrong for each of them.
        if !told.iter().rev().take_while(|earlier| earlier.site == problem.site).any(|earlier| *earlier == problem) {
            told.push(problem);
        }
    }
    let mut problems = told;
    if problems.len() > DIAGNOSTICS_LIMIT {
        let more = problems.len() - (DIAGNOSTICS_LIMIT - 1);
        problems.truncate(DIAGNOSTICS_LIMIT - 1);
        problems
            .push(Problem::error(Site::Whole, format!("there are {more} more problems")).hint("repair these first"));
    }
    problems.into_iter().map(|problem| source.diagnostic(problem)).collect()
}
