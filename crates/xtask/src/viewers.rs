//! What looks at the reports in tests as a person would: a browser with a judge of accessibility, and a terminal.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::tool::{run, say, wheels};

/// Ships axe-core, which judges a page's accessibility.
const AXE: [&str; 1] = ["axe-playwright-python==0.1.8"];

/// The names Chromium goes by.
const CHROMIUM: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

/// The variables by which the tests find a browser and a terminal: on a machine that has them, or whose packages can be
/// installed. Elsewhere those tests say that they were left out; in CI that is an error.
pub(crate) fn variables() -> Result<Vec<(&'static str, PathBuf)>> {
    let mut variables = Vec::new();
    if let Some(chromium) = program("GATE_CHROMIUM", &CHROMIUM, "chromium")? {
        let axe = wheels("axe", &AXE)?;
        variables.push(("GATE_CHROMIUM", chromium));
        variables.push(("GATE_AXE", packages(&axe)?.join("axe_playwright_python/axe.min.js")));
        variables.push(("GATE_BROWSER", "required".into()));
    }
    if program("GATE_TMUX_BIN", &["tmux"], "tmux")?.is_some() {
        variables.push(("GATE_TMUX", "required".into()));
    }
    Ok(variables)
}

/// The folder that a Python environment keeps its packages in.
fn packages(folder: &Path) -> Result<PathBuf> {
    let library = folder.join("venv/lib");
    let versions = std::fs::read_dir(&library).with_context(|| format!("cannot read {}", library.display()))?;
    let packages = versions.flatten().map(|version| version.path().join("site-packages"));
    packages.into_iter().find(|folder| folder.is_dir()).with_context(|| format!("no packages in {}", library.display()))
}

/// A program that this variable names, or the first of these that is on the path; else that of a Debian package, where
/// it can be installed.
fn program(variable: &str, names: &[&str], package: &str) -> Result<Option<PathBuf>> {
    let named = std::env::var_os(variable).filter(|path| !path.is_empty()).map(PathBuf::from);
    if let Some(found) = named.or_else(|| on_path(names)) {
        return Ok(Some(found));
    }
    if is_root() && on_path(&["apt-get"]).is_some() {
        say(&format!("installing {package}"));
        let apt = |words: &[&str]| {
            run(Command::new("apt-get")
                .env("DEBIAN_FRONTEND", "noninteractive")
                .args(["-qq", "-o", "Dpkg::Use-Pty=0"])
                .args(words))
        };
        apt(&["update"])?;
        apt(&["install", "--yes", "--no-install-recommends", package])?;
    }
    match on_path(names) {
        Some(found) => Ok(Some(found)),
        None if std::env::var_os("CI").is_some() => bail!("CI needs {package}: install it, or name it by `{variable}`"),
        None => {
            say(&format!("there is no {package}, so the tests that need it are left out"));
            Ok(None)
        }
    }
}

fn on_path(names: &[&str]) -> Option<PathBuf> {
    let folders: Vec<PathBuf> = std::env::split_paths(&std::env::var_os("PATH")?).collect();
    names.iter().find_map(|name| folders.iter().map(|folder| folder.join(name)).find(|file| file.is_file()))
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}
