//! `verdict.json`.

use gate_model::Verdict;

use crate::ReportError;

/// The verdict as indented JSON, with a newline at its end: exactly the value that was computed.
///
/// # Errors
/// [`ReportError::Json`], which no verdict of `gate` brings about.
pub fn verdict_json(verdict: &Verdict) -> Result<String, ReportError> {
    Ok(serde_json::to_string_pretty(verdict)? + "\n")
}
