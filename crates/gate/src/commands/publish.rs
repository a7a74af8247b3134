//! `gate publish`: a verdict that was made elsewhere, delivered.

use gate_model::{ExitCode, Verdict};

use crate::cli::Publish;
use crate::console::Console;
use crate::failure::Failure;
use crate::publish::{Publisher, Told, Zeal, refused};
use crate::reports;
use crate::stop::Interrupts;
use crate::verdicts;

pub(crate) fn publish(arguments: &Publish, console: &Console) -> Result<ExitCode, Failure> {
    let mut all: Vec<Verdict> = Vec::new();
    for path in &arguments.from {
        let verdict = verdicts::read_foreign(path)?;
        if all.iter().any(|other| other.name == verdict.name) {
            return Err(Failure::usage(format!(
                "{}: another file is of a gate `{}` too",
                path.display(),
                verdict.name
            ))
            .hint("name the verdict of each gate once"));
        }
        all.push(verdict);
    }
    let interrupts = Interrupts::listen()?;
    let template = reports::template_here(arguments.wording.template.as_deref())?;
    let mut publisher = Publisher::new(Zeal::Insist, arguments.comment.comment.policy(), &interrupts, console)?;
    publisher.word_by(template);
    let exit = all.iter().fold(ExitCode::Passed, |worst, verdict| worst.worse(verdict.exit));
    let told = Told {
        verdicts: &all,
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
