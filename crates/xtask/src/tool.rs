//! Running other programs, and places in the checkout.

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// The root of the checkout.
pub(crate) fn root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here).to_path_buf()
}

/// Where downloaded engines and tools live: `GATE_CACHE`, else the user's cache folder.
pub(crate) fn cache() -> PathBuf {
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    variable("GATE_CACHE")
        .or_else(|| variable("XDG_CACHE_HOME").map(|cache| cache.join("gate")))
        .or_else(|| variable("HOME").map(|home| home.join(".cache/gate")))
        .unwrap_or_else(|| root().join("target/cache"))
}

/// The cargo that runs this chore.
pub(crate) fn cargo() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// Where cargo builds.
pub(crate) fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), |target| root().join(target))
}

/// The release binary, where cargo puts it.
pub(crate) fn release_binary() -> PathBuf {
    target().join("release/gate")
}

/// One line for the person who runs the chore.
pub(crate) fn say(line: &str) {
    // A closed stderr is no reason to stop a chore.
    drop(writeln!(std::io::stderr(), "{line}"));
}

/// Runs a command in the root of the checkout and waits for it.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let shown = format!("{command:?}").replace('"', "");
    let status = command.current_dir(root()).status().with_context(|| format!("cannot start `{shown}`"))?;
    if !status.success() {
        bail!("`{shown}` failed: {status}");
    }
    Ok(())
}

/// A Python environment with these pinned wheels, made once; returns its folder.
///
/// Nothing is compiled and no dependency is followed: each wheel is named with its version.
pub(crate) fn wheels(name: &str, pinned: &[&str]) -> Result<PathBuf> {
    let folder = cache().join(name);
    let (stamp, wanted) = (folder.join("installed"), pinned.join("\n"));
    if std::fs::read_to_string(&stamp).is_ok_and(|installed| installed == wanted) {
        return Ok(folder);
    }
    say(&format!("installing {} into {}", pinned.join(", "), folder.display()));
    drop(std::fs::remove_dir_all(&folder));
    std::fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let python = std::env::var_os("PYTHON").unwrap_or_else(|| "python3".into());
    run(Command::new(&python).args(["-m", "venv"]).arg(folder.join("venv")))
        .context("python3 with its venv module is needed (Debian: apt-get install python3-venv)")?;
    run(Command::new(folder.join("venv/bin/python"))
        .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary", ":all:"])
        .args(pinned))?;
    std::fs::write(&stamp, wanted).with_context(|| format!("cannot write {}", stamp.display()))?;
    Ok(folder)
}
