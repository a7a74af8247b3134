//! Documents made from the code: the JSON Schema and the man page. A story fails where they are out of date.

use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::tool::{cargo, root, say};

/// Which command prints which file.
const MADE: [(&str, &[&str]); 2] = [("docs/gate.schema.json", &["schema"]), ("docs/gate.1", &["completions", "man"])];

/// Writes them anew.
pub(crate) fn write() -> Result<()> {
    for (file, words) in MADE {
        let mut command = Command::new(cargo());
        command.args(["run", "--quiet", "--package", "gate", "--"]).args(words).current_dir(root());
        let output = command.output().context("cannot start cargo")?;
        if !output.status.success() {
            bail!("`gate {}` failed: {}", words.join(" "), String::from_utf8_lossy(&output.stderr));
        }
        std::fs::write(root().join(file), output.stdout).with_context(|| format!("cannot write {file}"))?;
        say(&format!("wrote {file}"));
    }
    Ok(())
}
