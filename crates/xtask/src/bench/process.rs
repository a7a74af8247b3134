//! Whole processes: how long they take, how much memory, and an engine beside them.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde_json::Value;

/// What a finished process took.
pub(crate) struct Measured {
    pub(crate) seconds: f64,
    /// The largest resident set seen; asked for every few milliseconds.
    pub(crate) peak_megabytes: f64,
}

impl Measured {
    /// Runs a command to its end.
    pub(crate) fn of(command: &mut Command) -> Result<Self> {
        let start = Instant::now();
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
        let status = format!("/proc/{}/status", child.id());
        let mut peak = 0.0_f64;
        let ended = loop {
            if let Some(ended) = child.try_wait()? {
                break ended;
            }
            let text = std::fs::read_to_string(&status).unwrap_or_default();
            let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
            let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse::<f64>().ok());
            peak = peak.max(kilobytes.unwrap_or(0.0) * 1024.0 / 1e6);
            std::thread::sleep(Duration::from_millis(2));
        };
        let seconds = start.elapsed().as_secs_f64();
        if !ended.success() {
            let mut said = String::new();
            child.stderr.take().context("no stderr")?.read_to_string(&mut said)?;
            bail!("{command:?} failed: {ended}\n{said}");
        }
        Ok(Self { seconds, peak_megabytes: peak })
    }
}

/// `gate sim` as a process of its own; killed when dropped.
pub(crate) struct Engine {
    child: Child,
    pub(crate) url: String,
}

impl Engine {
    pub(crate) fn start(gate: &Path, spec: &Path) -> Result<Self> {
        let mut command = Command::new(gate);
        command.arg("sim").arg(spec).args(["--listen", "127.0.0.1:0"]);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
        let mut lines = BufReader::new(child.stderr.take().context("no stderr")?).lines();
        let url = loop {
            let line = lines.next().context("the engine ended before it listened")??;
            if let Some((_, rest)) = line.split_once("simulated engine at ") {
                break rest.split(' ').next().unwrap_or_default().to_owned();
            }
        };
        std::thread::spawn(move || lines.for_each(drop));
        Ok(Self { child, url })
    }

    /// What it really sent.
    pub(crate) fn truth(&self) -> Result<Value> {
        let mut stream = TcpStream::connect(self.url.trim_start_matches("http://"))?;
        stream.write_all(b"GET /truth HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let (_, body) = answer.split_once("\r\n\r\n").context("no answer to /truth")?;
        Ok(serde_json::from_str(body)?)
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
