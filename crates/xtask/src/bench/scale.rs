//! Many streams at once: how true the stamps are, and what a token costs.

use std::process::Command;

use anyhow::{Context, Result, bail};

use super::journal::{Errors, Timed};
use super::process::{Busy, Measured, pinned};
use super::{Bench, Row, rank, spec};
use crate::tool::cargo;

/// The server's own core, and the client's.
const SERVER: Option<u32> = Some(0);
const CLIENT: Option<u32> = Some(1);
/// From which lateness of its own, in milliseconds, a server is no measure of a client.
const SERVER_LATE: f64 = 1.0;

/// The client stamps by this clock, for so many streams of 300 tokens at 100 tokens/s.
fn load(streams: u32, clock: &str) -> String {
    // Each stream lasts 3.09 s. Starts that are no whole number of milliseconds apart spread the tokens evenly: a
    // thousand due at one instant would queue for milliseconds, whatever the server does.
    let (rate, count) = (f64::from(streams) / 3.0937, (2 * streams).max(300));
    format!("rps: {rate:.3}, iterations: {count}, extend: none, arrivals: constant, warmup: 1, clock: {clock}")
}

/// Runs such a load, the server on one core and the client on the other.
fn run(bench: &Bench, streams: u32, clock: &str) -> Result<(Timed, Measured, Errors)> {
    let engine = bench.engine_on("ttft: 100ms, tpot: 10ms", SERVER)?;
    let (run, measured) =
        bench.load_on(&spec("scale", &engine.url, "openai-chat", &load(streams, clock), 300), CLIENT)?;
    if run.health.clock != clock {
        bail!("the {} clock was used instead of the {clock} clock", run.health.clock);
    }
    let errors = run.against(&engine.truth()?)?;
    Ok((run, measured, errors))
}

fn p50_p99(values: &[f64]) -> String {
    format!("p50 {:.3} ms, p99 {:.3} ms", rank(values, 0.5), rank(values, 0.99))
}

/// A stamp less the time just before the server's write.
pub(super) fn arrival(bench: &Bench) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for streams in [64, 256, 1000] {
        let (run, _, errors) = run(bench, streams, "kernel")?;
        rows.push(Row {
            what: format!(
                "arrival error (stamp − the server's write), `clock: kernel`, {streams} streams of 100 tokens/s"
            ),
            goal: "p50 ≤ .02 ms, p99 ≤ .2 ms",
            measured: format!(
                "{}; {:.2} % of tokens coalesced; the server's own lateness p99 {:.2} ms",
                p50_p99(&errors.arrival),
                run.health.coalesced_share.unwrap_or(0.0) * 100.0,
                rank(&errors.server, 0.99)
            ),
            name: "arrival",
        });
    }
    let (_, _, errors) = run(bench, 64, "user")?;
    rows.push(Row {
        what: "the same, `clock: user`, 64 streams".to_owned(),
        goal: "p95 ≤ .2 ms",
        measured: format!("p50 {:.3} ms, p95 {:.3} ms", rank(&errors.arrival, 0.5), rank(&errors.arrival, 0.95)),
        name: "arrival",
    });
    Ok(rows)
}

/// The same while every core also runs a loop that does nothing.
pub(super) fn busy(bench: &Bench) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (clock, goal) in [("kernel", "p50 ≤ .02 ms, p99 ≤ .2 ms"), ("user", "none: the run says it is no measure")]
    {
        let _busy = Busy::start()?;
        let (run, _, errors) = run(bench, 64, clock)?;
        let delay = run.health.loop_delay_p95.context("the event loop was not watched")? / 1e6;
        rows.push(Row {
            what: format!("arrival error with a busy loop on every core, `clock: {clock}`, 64 streams"),
            goal,
            measured: format!("{}; event-loop delay p95 {delay:.2} ms", p50_p99(&errors.arrival)),
            name: "busy",
        });
    }
    Ok(rows)
}

/// TTFT against the truth.
pub(super) fn ttft(bench: &Bench) -> Result<Vec<Row>> {
    let goals = [(64, "p50 ≤ .3 ms, p95 ≤ 1 ms"), (256, "p50 ≤ .4 ms, p95 ≤ 2 ms"), (1000, "p50 ≤ .9 ms, p95 ≤ 5 ms")];
    let row = |(streams, goal)| {
        let (_, _, errors) = run(bench, streams, "kernel")?;
        Ok(Row {
            what: format!("TTFT against the server's own, {streams} streams of 100 tokens/s"),
            goal,
            measured: format!("p50 {:.3} ms, p95 {:.3} ms", rank(&errors.ttft, 0.5), rank(&errors.ttft, 0.95)),
            name: "ttft",
        })
    };
    goals.into_iter().map(row).collect()
}

/// What a token costs the client at 1,000 streams, against a bare epoll loop in the same minute; its memory and start.
pub(super) fn cost(bench: &Bench) -> Result<Vec<Row>> {
    let (run, measured, errors) = run(bench, 1000, "kernel")?;
    let ours = measured.cpu_seconds * 1e6 / run.tokens();
    let bare = bare(bench)?;
    let late = rank(&errors.server, 0.99);
    let counts = if late <= SERVER_LATE { "" } else { "; does not count: the server itself was late" };
    let ready = (run.epoch_unix_seconds()? - measured.started_unix) * 1e3;
    let engine = bench.engine_on("ttft: 5ms, tpot: 1ms", SERVER)?;
    let one = "rps: 20, iterations: 20, extend: none, warmup: 0";
    let (quick, started) = bench.load_on(&spec("start", &engine.url, "openai-chat", one, 8), None)?;
    let first = (quick.epoch_unix_seconds()? - started.started_unix) * 1e3;
    Ok(vec![
        Row {
            what: "client CPU a token at 1,000 streams of 100 tokens/s, the whole process".to_owned(),
            goal: "≤ 9 µs, ≤ 1.6 × a bare epoll + read loop",
            measured: format!(
                "{ours:.2} µs, {:.2} × the bare loop's {bare:.2} µs; server's own lateness p99 {late:.2} ms{counts}",
                ours / bare
            ),
            name: "scale",
        },
        Row {
            what: "peak resident memory of it".to_owned(),
            goal: "≤ 60 MB",
            measured: format!("{:.1} MB", measured.peak_megabytes),
            name: "scale",
        },
        Row {
            what: "from the process's start to its first measured request, no warm-up".to_owned(),
            goal: "≤ 50 ms",
            measured: format!("{first:.1} ms ({ready:.0} ms with a warm-up stream of 3 s)"),
            name: "scale",
        },
    ])
}

/// What a token costs a client that only reads, in microseconds.
fn bare(bench: &Bench) -> Result<f64> {
    let engine = bench.engine_on("ttft: 100ms, tpot: 10ms", SERVER)?;
    let program = built("gate-load", "bare")?;
    let mut command = pinned(&program, CLIENT);
    let output = command.args([engine.address(), "333", "2000", "300"]).output()?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let number = said.split(' ').next().and_then(|word| word.parse().ok());
    number.with_context(|| format!("the bare loop said: {said}{}", String::from_utf8_lossy(&output.stderr)))
}

/// A benchmark's program, built.
pub(super) fn built(package: &str, bench: &str) -> Result<std::path::PathBuf> {
    let mut command = Command::new(cargo());
    command.args(["bench", "--package", package, "--bench", bench, "--no-run", "--message-format", "json", "--quiet"]);
    let output = command.output()?;
    let lines = String::from_utf8(output.stdout)?;
    let messages = lines.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let mut programs = messages.filter_map(|message| Some(message.get("executable")?.as_str()?.to_owned()));
    let program = programs.next_back();
    program
        .map(Into::into)
        .with_context(|| format!("{bench} was not built: {}", String::from_utf8_lossy(&output.stderr)))
}

/// Events a second, where the server writes as fast as it can.
pub(super) fn events(bench: &Bench) -> Result<Vec<Row>> {
    let engine = bench.engine_on("ttft: 1ms, tpot: 0ms", SERVER)?;
    let load = "concurrency: 4, iterations: 40, extend: none, warmup: 4";
    let (run, _) = bench.load_on(&spec("events", &engine.url, "openai-chat", load, 100_000), CLIENT)?;
    Ok(vec![Row {
        what: "events decoded a second on one core, the server writing as fast as it can on the other".to_owned(),
        goal: "≥ 800,000",
        measured: format!("{:.0}", run.tokens() / run.seconds()),
        name: "events",
    }])
}

/// A chat stream in memory.
pub(super) fn decoding(_: &Bench) -> Result<Vec<Row>> {
    let program = built("gate-wire", "decoding")?;
    let output = pinned(&program, CLIENT).arg("--bench").output()?;
    Ok(vec![Row {
        what: "pure decoding of a chat stream in memory, one core".to_owned(),
        goal: "≥ 500 MB/s",
        measured: String::from_utf8(output.stdout)?.trim().to_owned(),
        name: "decoding",
    }])
}
