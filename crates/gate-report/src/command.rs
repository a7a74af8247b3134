//! The command that runs a gate again.

use gate_model::{Override, Verdict};

use crate::escape::shell_word;

/// The command line of the run, as a shell reads it: the spec, and what flags changed. `None` for a run that was
/// imported, which another tool would have to make again. Secrets stand in it as they do in the verdict: redacted.
pub(crate) fn command(verdict: &Verdict) -> Option<String> {
    if verdict.run.imported_from.is_some() {
        return None;
    }
    let mut words = vec!["gate".to_owned(), "check".to_owned(), shell_word(&verdict.spec_file)];
    for (flag, value) in flags(&verdict.overrides) {
        words.push(shell_word(flag));
        words.extend(value.as_deref().map(shell_word));
    }
    if verdict.report_only && !words.iter().any(|word| word == "--report-only") {
        words.push("--report-only".to_owned());
    }
    Some(words.join(" "))
}

/// The flags as they were typed, with the value of those that take one. A bare flag that changed several keys stands
/// once: typed twice, it is an error.
pub(crate) fn flags(changes: &[Override]) -> Vec<(&str, Option<String>)> {
    let mut flags: Vec<(&str, Option<String>)> = Vec::new();
    for change in changes {
        let flag = change.flag.as_str();
        let value = match flag {
            "--set" => Some(format!("{}={}", change.path, change.value)),
            "--strict" | "--report-only" => None,
            _ => Some(change.value.clone()),
        };
        if value.is_some() || !flags.iter().any(|(known, _)| *known == flag) {
            flags.push((flag, value));
        }
    }
    flags
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_flag_stands_once() {
        let change = |flag: &str, path: &str, value: &str| Override {
            flag: flag.to_owned(),
            path: path.to_owned(),
            value: value.to_owned(),
        };
        let changes = [
            change("--set", "load.seed", "7"),
            change("--set", "load.rps", "2"),
            change("--strict", "outcomes.inconclusive", "fail"),
            change("--strict", "outcomes.no_baseline", "fail"),
            change("--target", "target.url", "http://h"),
        ];
        let expected = [
            ("--set", Some("load.seed=7".to_owned())),
            ("--set", Some("load.rps=2".to_owned())),
            ("--strict", None),
            ("--target", Some("http://h".to_owned())),
        ];
        assert_eq!(flags(&changes), expected);
    }
}
