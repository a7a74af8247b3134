//! `gate publish`: a verdict that was made elsewhere, delivered.

use std::path::Path;

use gate_model::{ExitCode, Verdict};

use crate::cli::Publish;
use crate::commands::report;
use crate::console::Console;
use crate::failure::Failure;
use crate::publish::{Publisher, Told, Zeal, refused};
use crate::reports;
use crate::stop::Interrupts;

/// The largest verdict that is taken from another job.
const MOST_BYTES: u64 = 8 << 20;

/// The most checks, findings and figures of one.
const MOST_PARTS: usize = 2_000;

pub(crate) fn publish(arguments: &Publish, console: &Console) -> Result<ExitCode, Failure> {
    let mut verdicts: Vec<Verdict> = Vec::new();
    for path in &arguments.from {
        if std::fs::metadata(path).is_ok_and(|file| !file.is_file() && !file.is_dir()) {
            return Err(Failure::unreadable(path, "it is no file"));
        }
        let verdict = sound(path, report::read_within(path, MOST_BYTES)?)?;
        if verdicts.iter().any(|other| other.name == verdict.name) {
            return Err(Failure::usage(format!(
                "{}: another file is of a gate `{}` too",
                path.display(),
                verdict.name
            ))
            .hint("name the verdict of each gate once"));
        }
        verdicts.push(verdict);
    }
    let interrupts = Interrupts::listen()?;
    let template = reports::template_here(arguments.wording.template.as_deref())?;
    let mut publisher = Publisher::new(Zeal::Insist, arguments.comment.comment.policy(), &interrupts, console)?;
    publisher.word_by(template);
    let exit = verdicts.iter().fold(ExitCode::Passed, |worst, verdict| worst.worse(verdict.exit));
    let told = Told {
        verdicts: &verdicts,
        exit,
        failure: None,
        no_credentials: false,
        out: None,
        files: vec![("verdict-files", arguments.from.clone())],
    };
    let failed = publisher.of_verdicts().end(&told);
    for error in &failed {
        console.failure(&refused(error));
    }
    Ok(if failed.is_empty() { ExitCode::Passed } else { ExitCode::CouldNotMeasure })
}

/// The verdict, if it does not contradict itself and is of a size that can be rendered: whoever made it may be a stranger.
fn sound(path: &Path, verdict: Verdict) -> Result<Verdict, Failure> {
    let wrong = |why: &str| Err(Failure::unreadable(path, why).hint("a verdict is what `gate check` writes"));
    if !gate_model::is_gate_name(&verdict.name) {
        return wrong("its name is not one of a gate");
    }
    let parts = [verdict.checks.len(), verdict.findings.len(), verdict.figures.len(), verdict.run.scenarios.len()];
    if parts.iter().any(|count| *count > MOST_PARTS) {
        return wrong(&format!("it has more than {MOST_PARTS} checks, findings, figures or scenarios"));
    }
    if !verdict.is_consistent() {
        return wrong("its exit code contradicts its status");
    }
    Ok(verdict)
}
