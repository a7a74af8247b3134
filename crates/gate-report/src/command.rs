//! The command that runs a gate again.

use gate_model::{Override, Verdict};

use crate::escape::shell_word;
use crate::layout::clip;

/// The commands that make the run again on another machine, a line each: the commit, and the gate with what it was
/// compared with.
pub(crate) fn again(verdict: &Verdict) -> Option<String> {
    let mut words = words(verdict)?;
    for name in stores(verdict) {
        words.extend(["--baseline".to_owned(), shell_word(name)]);
    }
    let id = verdict.run.commit.as_ref().map(|commit| commit.id.as_str());
    let is_id = |id: &&str| id.len() >= 7 && id.chars().all(|symbol| symbol.is_ascii_hexdigit());
    let checkout = id.filter(is_id).map(|id| format!("git checkout {id}\n")).unwrap_or_default();
    Some(checkout + &words.join(" "))
}

/// What else it takes to run it again elsewhere, in sentences.
pub(crate) fn again_needs(verdict: &Verdict) -> Vec<String> {
    if verdict.run.imported_from.is_some() {
        return Vec::new();
    }
    let mut needs = Vec::new();
    if verdict.run.commit.as_ref().is_some_and(|commit| commit.dirty) {
        needs.push("Tracked files differed from that commit: what was not committed is missing there.".to_owned());
    }
    let stores: Vec<&str> = stores(verdict).collect();
    if let Some(name) = stores.iter().find_map(|name| name.strip_prefix("git:")) {
        let name = clip(&name.replace('`', "'"), 100);
        needs.push(format!("Its baselines are in a ref: `git fetch origin {name}:{name}` brings them."));
    } else if !stores.is_empty() {
        let words = "Its baselines are where the job ran: copy them to that path, or name the archive that a job left \
                     of them, `--baseline URL`.";
        needs.push(words.to_owned());
    }
    needs
}

/// What `--baseline` has to name for the same comparison: the store, or the files that were given.
fn stores(verdict: &Verdict) -> impl Iterator<Item = &str> {
    let chosen = verdict.baseline.as_ref().filter(|chosen| !chosen.used.is_empty());
    chosen.into_iter().flat_map(|chosen| {
        // A store is one name; files were given by the command line, and chosen by nothing.
        let is_store = chosen.by.is_some();
        let names = chosen.store.split(", ").take(if is_store { 0 } else { chosen.used.len().max(1) });
        is_store.then_some(chosen.store.as_str()).into_iter().chain(names)
    })
}

/// The command line of the run, in words of a shell: the spec, and what flags changed. `None` for a run that was
/// imported, which another tool would have to make again. Secrets stand in it as they do in the verdict: redacted.
fn words(verdict: &Verdict) -> Option<Vec<String>> {
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
    Some(words)
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
