//! The command that runs a gate again.

use gate_model::Verdict;

use crate::escape::shell_word;

/// The command line of the run, as a shell reads it: the spec, and what flags changed. `None` for a run that was
/// imported, which another tool would have to make again. Secrets stand in it as they do in the verdict: redacted.
pub(crate) fn command(verdict: &Verdict) -> Option<String> {
    if verdict.run.imported_from.is_some() {
        return None;
    }
    let mut words = vec!["gate".to_owned(), "check".to_owned(), shell_word(&verdict.spec_file)];
    for change in &verdict.overrides {
        words.push(shell_word(&change.flag));
        match change.flag.as_str() {
            "--set" => words.push(shell_word(&format!("{}={}", change.path, change.value))),
            "--strict" | "--report-only" => {}
            _ => words.push(shell_word(&change.value)),
        }
    }
    if verdict.report_only && !words.iter().any(|word| word == "--report-only") {
        words.push("--report-only".to_owned());
    }
    Some(words.join(" "))
}
