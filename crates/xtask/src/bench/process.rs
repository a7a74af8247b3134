//! Whole processes: how long they take, how much memory, and an engine beside them.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

/// What a finished process took.
pub(crate) struct Measured {
    pub(crate) seconds: f64,
    /// CPU time of all its threads; asked for every few milliseconds.
    pub(crate) cpu_seconds: f64,
    /// When it was started, in seconds since the UNIX epoch.
    pub(crate) started_unix: f64,
    /// The largest resident set seen; asked for every few milliseconds.
    pub(crate) peak_megabytes: f64,
}

impl Measured {
    /// Runs a command to its end.
    pub(crate) fn of(command: &mut Command) -> Result<Self> {
        let start = Instant::now();
        let started_unix = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs_f64();
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
        let (status, stat) = (format!("/proc/{}/status", child.id()), format!("/proc/{}/stat", child.id()));
        let (mut peak, mut cpu) = (0.0_f64, 0.0_f64);
        let ended = loop {
            if let Some(ended) = child.try_wait()? {
                break ended;
            }
            let text = std::fs::read_to_string(&status).unwrap_or_default();
            let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
            let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse::<f64>().ok());
            peak = peak.max(kilobytes.unwrap_or(0.0) * 1024.0 / 1e6);
            cpu = cpu.max(cpu_seconds(&std::fs::read_to_string(&stat).unwrap_or_default()).unwrap_or(0.0));
            std::thread::sleep(Duration::from_millis(2));
        };
        let seconds = start.elapsed().as_secs_f64();
        if !ended.success() {
            let mut said = String::new();
            child.stderr.take().context("no stderr")?.read_to_string(&mut said)?;
            bail!("{command:?} failed: {ended}\n{said}");
        }
        Ok(Self { seconds, cpu_seconds: cpu, started_unix, peak_megabytes: peak })
    }
}

/// User and system time in a `/proc/PID/stat`, whose ticks are hundredths.
fn cpu_seconds(stat: &str) -> Option<f64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_ascii_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<f64>().ok();
    Some((ticks()? + ticks()?) / 100.0)
}

/// A program, on one core where it is to be.
pub(crate) fn pinned(program: &Path, core: Option<u32>) -> Command {
    match core {
        None => Command::new(program),
        Some(core) => {
            let mut command = Command::new("taskset");
            command.args(["-c", &core.to_string()]).arg(program);
            command
        }
    }
}

/// A loop that does nothing, once on every core, until dropped.
pub(crate) struct Busy(Vec<Child>);

impl Busy {
    pub(crate) fn start() -> Result<Self> {
        let cores = std::thread::available_parallelism()?.get();
        let spin = || Command::new("sh").args(["-c", "while :; do :; done"]).stdin(Stdio::null()).spawn();
        Ok(Self((0..cores).map(|_| spin()).collect::<std::io::Result<_>>()?))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        for child in &mut self.0 {
            drop(child.kill());
            drop(child.wait());
        }
    }
}

/// What an engine did; times in nanoseconds from its start.
#[derive(Deserialize)]
pub(crate) struct Truth {
    pub(crate) started_unix: i64,
    pub(crate) requests: Vec<TruthRequest>,
}

#[derive(Deserialize)]
pub(crate) struct TruthRequest {
    pub(crate) arrived: f64,
    pub(crate) writes: Vec<TruthWrite>,
}

/// One write: when it was due, and the time just before it.
#[derive(Deserialize)]
pub(crate) struct TruthWrite {
    pub(crate) due: f64,
    pub(crate) at: f64,
    pub(crate) tokens: usize,
}

/// `gate sim` as a process of its own; killed when dropped.
pub(crate) struct Engine {
    child: Child,
    pub(crate) url: String,
}

impl Engine {
    pub(crate) fn start(gate: &Path, spec: &Path, core: Option<u32>) -> Result<Self> {
        let mut command = pinned(gate, core);
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

    pub(crate) fn address(&self) -> &str {
        self.url.trim_start_matches("http://")
    }

    /// What it really sent.
    pub(crate) fn truth(&self) -> Result<Truth> {
        let mut stream = TcpStream::connect(self.address())?;
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
