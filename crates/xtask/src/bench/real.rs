//! Long runs and many requests: how late they go out, how large a plan, a soak and a merge may be.

use std::process::Command;

use anyhow::Result;

use super::process::Measured;
use super::scale::built;
use super::{Bench, Row, rank, spec, text};

/// Sends late by how much, at thousands of requests a second, server and client sharing the machine's cores.
pub(super) fn lateness(bench: &Bench) -> Result<Vec<Row>> {
    let row = |(rate, goal)| {
        let engine = bench.engine("ttft: 0ms, tpot: 0ms, role_chunk: none")?;
        let load = format!("rps: {rate}, iterations: {}, warmup: 20", 5 * rate);
        let (run, measured) = bench.load(&spec("rate", &engine.url, "openai-chat", &load, 1))?;
        let late = run.lateness();
        Ok(Row {
            what: format!("send lateness at {rate} requests/s on cores shared with the server, one token each"),
            goal,
            measured: format!(
                "p50 {:.3} ms, p99 {:.3} ms; {:.0} µs of CPU a request",
                rank(&late, 0.5),
                rank(&late, 0.99),
                measured.cpu_seconds * 1e6 / f64::from(5 * rate)
            ),
            name: "lateness",
        })
    };
    [(5_000, "p99 ≤ .5 ms"), (10_000, "p99 ≤ 2 ms")].into_iter().map(row).collect()
}

/// A plan of a million requests.
pub(super) fn million(bench: &Bench) -> Result<Vec<Row>> {
    let spec = spec("million", "http://127.0.0.1:9", "openai-chat", "rps: 100, iterations: 1000000", 50);
    let measured = bench.process(&["plan", &text(&bench.write("million.yaml", &spec)?)])?;
    Ok(vec![Row {
        what: "`gate plan` of 1,000,000 requests, the whole process".to_owned(),
        goal: "≤ 2 s",
        measured: format!("{:.2} s, {:.0} MB", measured.seconds, measured.peak_megabytes),
        name: "million",
    }])
}

/// A soak of a million requests in virtual time: planned, simulated, judged.
pub(super) fn soak(_: &Bench) -> Result<Vec<Row>> {
    let measured = Measured::of(Command::new(built("gate-judge", "soak")?).arg("soak"))?;
    Ok(vec![Row {
        what: "a soak of 1,000,000 requests in virtual time: planned, simulated and judged in one process".to_owned(),
        goal: "≤ 150 MB",
        measured: format!("{:.0} MB, {:.1} s", measured.peak_megabytes, measured.seconds),
        name: "soak",
    }])
}

/// Eight shards of 100,000 requests judged as one run.
pub(super) fn merge(bench: &Bench) -> Result<Vec<Row>> {
    let folder = bench.scratch.join("shards");
    std::fs::create_dir_all(&folder)?;
    Measured::of(Command::new(built("gate-judge", "soak")?).args(["shards", &text(&folder)]))?;
    let mut words = vec!["judge".to_owned()];
    words.extend((1..=8).map(|shard| text(&folder.join(format!("run-{shard}.jsonl")))));
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let measured = bench.process(&words)?;
    Ok(vec![Row {
        what: "`gate judge` of 8 shards of 100,000 requests, token times of the first 1,000".to_owned(),
        goal: "≤ 3 s, ≤ 300 MB",
        measured: format!("{:.2} s, {:.0} MB", measured.seconds, measured.peak_megabytes),
        name: "merge",
    }])
}
