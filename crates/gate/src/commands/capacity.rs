//! `gate capacity`: planning formulas, from flags or from what a run measured.

mod host;
mod instances;
mod kv;
mod measured;
mod table;
mod tokens;

use gate_capacity::CapacityError;
use gate_model::ExitCode;
use serde::Serialize;

use crate::cli::{Capacity, Question};
use crate::console::Console;
use crate::failure::Failure;

pub(crate) fn capacity(arguments: &Capacity, console: &Console) -> Result<ExitCode, Failure> {
    let text = match (&arguments.question, &arguments.measured.from) {
        (Some(Question::Kv(asked)), _) => kv::answer(asked)?,
        (Some(Question::Instances(asked)), _) => instances::answer(asked)?,
        (Some(Question::Tokens(asked)), _) => tokens::answer(asked)?,
        (Some(Question::Host(asked)), _) => host::answer(asked)?,
        (None, Some(run)) => measured::answer(run, arguments.json)?,
        (None, None) => {
            return Err(Failure::usage("say what to plan: kv, instances, tokens or host, or a run with --from RUN")
                .hint("`gate capacity --help` explains them"));
        }
    };
    console.data(&console.secrets.redact(&text))?;
    Ok(ExitCode::Passed)
}

/// What a formula refuses, as the person's own to mend.
fn refused(error: CapacityError) -> Failure {
    let hint = match &error {
        CapacityError::UnknownModel { .. } => {
            let names = gate_capacity::model_names().unwrap_or_default().join(", ");
            Some(format!("known are {names}; of any other give its config.json with --config"))
        }
        CapacityError::Config { .. } | CapacityError::NotJson(_) => {
            Some("name the config.json of a decoder as Hugging Face has it".to_owned())
        }
        CapacityError::Tiers(_) | CapacityError::NoLimit(_) => {
            Some("docs/capacity.md shows such a file: date, source, and tiers with rpm, itpm, otpm or tpm".to_owned())
        }
        _ => None,
    };
    let failure = Failure::usage(format!("failed to {}", gate_report::escape::terminal(&error.to_string())));
    match hint {
        Some(hint) => failure.hint(hint),
        None => failure,
    }
}

/// An answer as JSON.
fn json(value: &impl Serialize) -> Result<String, Failure> {
    let text = serde_json::to_string_pretty(value);
    Ok(text.map_err(|error| Failure::internal(format!("cannot write the answer: {error}")))? + "\n")
}
