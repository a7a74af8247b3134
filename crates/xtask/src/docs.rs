//! Documents made from the code: the JSON Schema, the man page, the command line and the JSON files. A story fails where
//! they are out of date.

use std::fmt::Write as _;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::tool::{cargo, root, say};
use crate::types;

/// Which command prints which file.
const MADE: [(&str, &[&str]); 2] = [("docs/gate.schema.json", &["schema"]), ("docs/gate.1", &["completions", "man"])];

const CLI: &str = "# The command line

Every command with all its flags, as it prints them itself; `-h` instead of `--help` is shorter. The exit codes are in
[exit-codes.md](exit-codes.md). `gate completions SHELL` prints a completion script for bash, zsh, fish, elvish or PowerShell, and
`gate completions man` the man page ([gate.1](gate.1)). This page is made by `cargo xtask docs`.
";

/// Writes them anew.
pub(crate) fn write() -> Result<()> {
    for (file, words) in MADE {
        put(file, &gate(words)?)?;
    }
    put("docs/cli.md", &command_line()?)?;
    put("docs/json.md", &types::page()?)
}

fn put(file: &str, text: &str) -> Result<()> {
    std::fs::write(root().join(file), text).with_context(|| format!("cannot write {file}"))?;
    say(&format!("wrote {file}"));
    Ok(())
}

/// What the program prints for these words.
fn gate(words: &[&str]) -> Result<String> {
    let mut command = match std::env::var_os("GATE_BIN") {
        Some(binary) => Command::new(binary),
        None => {
            let mut command = Command::new(cargo());
            command.args(["run", "--quiet", "--package", "gate", "--"]);
            command
        }
    };
    // Not as wide as this terminal.
    let output = command.args(words).current_dir(root()).env("COLUMNS", "100").output().context("cannot start gate")?;
    if !output.status.success() {
        bail!("`gate {}` failed: {}", words.join(" "), String::from_utf8_lossy(&output.stderr));
    }
    String::from_utf8(output.stdout).context("gate prints no text")
}

/// The page of all commands, each followed by its own.
fn command_line() -> Result<String> {
    let mut page = CLI.to_owned();
    let mut open = vec![String::new()];
    while let Some(command) = open.pop() {
        let words: Vec<&str> = command.split_whitespace().chain(["--help"]).collect();
        let help = gate(&words)?;
        let title = format!("gate {command}");
        let help: Vec<&str> = help.lines().map(str::trim_end).collect();
        let level = if command.contains(' ') { "###" } else { "##" };
        write!(page, "\n{level} {title}\n\n```console\n$ gate {}\n{}\n```\n", words.join(" "), help.join("\n"))?;
        let listed = help.iter().skip_while(|line| **line != "Commands:").skip(1).take_while(|line| !line.is_empty());
        // What is indented further goes on with the line above.
        let names = listed.filter(|line| !line.starts_with("   ")).filter_map(|line| line.split_whitespace().next());
        let mut inner: Vec<String> =
            names.filter(|name| *name != "help").map(|name| format!("{command} {name}").trim().to_owned()).collect();
        inner.reverse();
        open.extend(inner);
    }
    Ok(page.replace("## gate \n", "## gate\n"))
}
