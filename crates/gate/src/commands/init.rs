//! `gate init`: from answers to a gate, a nightly gate, a CI file and a page that explains them.

mod answers;
mod probe;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use gate_init::{Answers, Detects, Forge};
use gate_model::ExitCode;

use crate::cli::Init;
use crate::commands::plan;
use crate::console::Console;
use crate::failure::Failure;
use crate::{files, specs};

pub(crate) fn init(arguments: &Init, console: &Console) -> Result<ExitCode, Failure> {
    let answers = answers::given(arguments, console)?;
    let gate = gate_init::pull_request(&answers);
    let detects = detects(&answers, &gate, console)?;
    let name = &answers.name;
    let mut files = vec![
        (PathBuf::from(format!("gates/{name}.yaml")), gate),
        (PathBuf::from(format!("gates/nightly/{name}.yaml")), gate_init::nightly(&answers)),
        (PathBuf::from(format!("gates/{name}.md")), gate_init::page(&answers, &detects)),
    ];
    files.extend(match answers.forge {
        Some(Forge::GitHub) => Some((PathBuf::from(gate_init::CI_GITHUB), gate_init::github(&answers))),
        Some(Forge::GitLab) => Some((PathBuf::from(gate_init::CI_GITLAB), gate_init::gitlab(&answers))),
        None => None,
    });
    if arguments.dry_run {
        for (path, text) in &files {
            console.data(&console.secrets.redact(&format!("# {}\n{text}\n", path.display())))?;
        }
        return Ok(ExitCode::Passed);
    }
    let there: Vec<String> = files
        .iter()
        .filter(|(path, _)| path.symlink_metadata().is_ok())
        .map(|(path, _)| path.display().to_string())
        .collect();
    if !there.is_empty() && !arguments.force {
        return Err(Failure::usage(format!("there already: {}; nothing was written", there.join(", ")))
            .hint("--force replaces them, --name makes another gate, --dry-run prints"));
    }
    for (path, text) in &files {
        files::replace(path, &console.secrets.redact(text))?;
        console.people(&format!("wrote {}\n", path.display()));
    }
    console.people(&told(&answers));
    Ok(ExitCode::Passed)
}

/// What is missing, and what comes next.
fn told(answers: &Answers) -> String {
    let mut text = String::new();
    let endpoint = &answers.endpoint;
    if let Some(why) = &endpoint.unknown {
        text.push_str(&format!("warning: nothing is known of the endpoint: {}\n", gate_report::escape::terminal(why)));
    }
    if endpoint.url.is_some() && endpoint.model.is_none() {
        text.push_str(
            "warning: which model is asked for is not known: write `target.model` into both gates, or say --model\n",
        );
    }
    if endpoint.usage == Some(false) {
        text.push_str(
            "warning: its answers do not say how many tokens they have: give both gates a `prompts.tokenizer`, or \
             `prompts.tokens: accept_estimate`\n",
        );
    }
    let gate = format!("gates/{}.yaml", answers.name);
    text.push_str(&format!(
        "\nNext: gate check {gate}\n      gates/{}.md says what it sees, and what comes after\n",
        answers.name
    ));
    text
}

/// What the gate can detect with its requests, and what it sends. Keys are not needed for that.
fn detects(answers: &Answers, gate: &str, console: &Console) -> Result<Detects, Failure> {
    let mut environment: BTreeMap<String, String> = BTreeMap::new();
    environment.extend(answers.endpoint.key.iter().map(|key| (key.clone(), "not needed".to_owned())));
    let spec = gate_spec::resolve(&format!("gates/{}.yaml", answers.name), gate, &environment, &[]);
    let spec = spec.map_err(|diagnostics| {
        console.urgent(&gate_report::diagnostics(&diagnostics, console.style));
        Failure::internal("these answers make no gate")
    })?;
    let (text, totals) = plan::text_of(&spec.spec)?;
    let first = spec.spec.checks.first().map(ToString::to_string).unwrap_or_default();
    let checks = text.split_inclusive("\n\n").skip_while(|block| !block.starts_with(&first));
    Ok(Detects {
        text: checks.collect::<String>().trim_end().to_owned() + "\n",
        input_tokens: totals.input_tokens,
        output_tokens: totals.output_tokens,
    })
}

/// The forge whose files are here, or that the repository is fetched from.
fn found_forge() -> Option<Forge> {
    if Path::new(".gitlab-ci.yml").exists() {
        return Some(Forge::GitLab);
    }
    if Path::new(".github").is_dir() {
        return Some(Forge::GitHub);
    }
    let remote = std::process::Command::new("git").args(["remote", "get-url", "origin"]).output().ok()?;
    let remote = String::from_utf8_lossy(&remote.stdout).to_ascii_lowercase();
    match () {
        () if remote.contains("github") => Some(Forge::GitHub),
        () if remote.contains("gitlab") => Some(Forge::GitLab),
        () => None,
    }
}

/// A spec's text as a value, for a question to its endpoint.
fn resolved(text: &str, console: &Console) -> Result<gate_model::GateSpec, Failure> {
    Ok(specs::resolve_text("the endpoint", text, &[], console)?.spec)
}
