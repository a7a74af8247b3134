//! The house rules a compiler does not check: who may use whom, how long a file may be.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, Package};

use crate::tool::{root, say};

/// The longest a source file may be, its tests apart.
const MOST_LINES: usize = 500;

/// Which of our crates each crate may use; `gate` may use all.
const ROOMS: [(&str, &[&str]); 18] = [
    ("gate-model", &[]),
    ("gate-stats", &[]),
    ("gate-spec", &["gate-model"]),
    ("gate-tokens", &["gate-model"]),
    ("gate-plan", &["gate-model", "gate-tokens"]),
    ("gate-wire", &["gate-model"]),
    ("gate-load", &["gate-model", "gate-wire"]),
    ("gate-engine", &["gate-model"]),
    ("gate-sim", &["gate-model", "gate-engine"]),
    ("gate-judge", &["gate-model", "gate-stats"]),
    ("gate-baseline", &["gate-model"]),
    ("gate-import", &["gate-model"]),
    ("gate-report", &["gate-model"]),
    ("gate-forge", &["gate-model"]),
    ("gate-init", &["gate-model", "gate-spec"]),
    ("gate-capacity", &["gate-model"]),
    ("gate-fuzz", &["gate-model", "gate-wire"]),
    ("xtask", &[]),
];

/// Outside packages that only these of our crates may name.
const DOORS: [(&str, &[&str]); 4] = [
    ("tokio", &["gate-load", "gate-forge", "gate-sim", "gate", "gate-tests"]),
    ("octocrab", &["gate-forge"]),
    ("statrs", &["gate-stats", "gate-plan", "gate-spec"]),
    ("anyhow", &["gate", "xtask"]),
];

/// Checks them all and names every breach.
pub(crate) fn check() -> Result<()> {
    let metadata = MetadataCommand::new().current_dir(root()).no_deps().exec().context("cargo metadata failed")?;
    let mut breaches = directions(&metadata);
    for package in metadata.workspace_packages() {
        let manifest = std::fs::read_to_string(&package.manifest_path)?;
        if !manifest.contains("[lints]\nworkspace = true") {
            breaches.push(format!("{} does not inherit the workspace's lints", package.manifest_path));
        }
    }
    for file in sources(&root().join("crates"))? {
        let text = std::fs::read_to_string(&file)?;
        let lines = lines_without_tests(&text);
        if lines > MOST_LINES {
            breaches.push(format!("{} has {lines} lines without its tests: it is two modules", file.display()));
        }
    }
    if breaches.is_empty() {
        say("house rules hold");
        return Ok(());
    }
    bail!("{} house rule(s) broken:\n  {}", breaches.len(), breaches.join("\n  "))
}

fn directions(metadata: &Metadata) -> Vec<String> {
    let rooms: BTreeMap<_, _> = ROOMS.into_iter().collect();
    let ours: Vec<&Package> = metadata.workspace_packages();
    let mut breaches = Vec::new();
    for package in &ours {
        let name = package.name.as_str();
        let allowed = rooms.get(name);
        if allowed.is_none() && !["gate", "gate-tests"].contains(&name) {
            breaches.push(format!("{name} is not in the table of rooms (crates/xtask/src/house.rs)"));
        }
        for dependency in &package.dependencies {
            if dependency.kind == DependencyKind::Development {
                continue;
            }
            let used = dependency.name.as_str();
            let is_ours = ours.iter().any(|other| other.name.as_str() == used);
            if is_ours && allowed.is_some_and(|allowed| !allowed.contains(&used)) {
                breaches.push(format!("{name} may not use {used}"));
            }
            for (door, keepers) in DOORS {
                if used == door && !keepers.contains(&name) && name != "gate-tests" {
                    breaches.push(format!("{name} may not name {door}: only {} may", keepers.join(", ")));
                }
            }
        }
    }
    breaches
}

fn sources(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if path.is_dir() && name != "tests" {
            found.extend(sources(&path)?);
        } else if name.ends_with(".rs") && name != "tests.rs" {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Lines up to the test module that ends a file.
fn lines_without_tests(text: &str) -> usize {
    let lines: Vec<&str> = text.lines().collect();
    let tests = lines.windows(2).position(|pair| matches!(pair, ["#[cfg(test)]", next] if next.starts_with("mod ")));
    tests.unwrap_or(lines.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_do_not_count() {
        assert_eq!(lines_without_tests("a\nb\n#[cfg(test)]\nmod tests {\n}\n"), 2);
        assert_eq!(lines_without_tests("a\n#[cfg(test)]\nuse b;\n"), 3);
    }
}
