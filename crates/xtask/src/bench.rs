//! `cargo xtask bench`: the figures of docs/benchmarks.md, measured anew.
//!
//! Each figure is what its row says, measured with the release binary against the built-in engine in a process of
//! its own, on loopback. Nothing here fails on a slow machine: the table says what was measured and what is aimed at.

mod journal;
mod process;
mod real;
mod scale;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::tool::{root, run, say};
use journal::Timed;
use process::{Engine, Measured, pinned};

/// One row of the table.
struct Row {
    what: String,
    goal: &'static str,
    measured: String,
    name: &'static str,
}

/// Measures some rows.
type Figure = fn(&Bench) -> Result<Vec<Row>>;

/// What can be measured alone, by name.
const FIGURES: [(&str, Figure); 15] = [
    ("schedule", schedule),
    ("timing", timing),
    ("overhead", overhead),
    ("plan", plan),
    ("dialects", dialects),
    ("arrival", scale::arrival),
    ("busy", scale::busy),
    ("ttft", scale::ttft),
    ("scale", scale::cost),
    ("events", scale::events),
    ("decoding", scale::decoding),
    ("lateness", real::lateness),
    ("million", real::million),
    ("soak", real::soak),
    ("merge", real::merge),
];

/// Where the binary and scratch files are.
struct Bench {
    gate: PathBuf,
    scratch: PathBuf,
}

/// Measures all figures and writes docs/benchmarks.md, or one by its name and prints it.
pub(crate) fn command(options: &[&str]) -> Result<()> {
    run(Command::new(crate::tool::cargo()).args(["build", "--release", "--package", "gate"]))?;
    let scratch = std::env::temp_dir().join(format!("gate-bench-{}", std::process::id()));
    std::fs::create_dir_all(&scratch)?;
    let bench = Bench { gate: crate::tool::release_binary(), scratch };
    let rows = match options {
        [] => FIGURES
            .iter()
            .map(|(_, measure)| measure(&bench))
            .collect::<Result<Vec<_>>>()?
            .into_iter()
            .flatten()
            .collect(),
        [name] => match FIGURES.iter().find(|(known, _)| known == name) {
            Some((_, measure)) => measure(&bench)?,
            None => bail!("no figure `{name}`: {}", FIGURES.map(|(known, _)| known).join(", ")),
        },
        other => bail!("unknown options {other:?}"),
    };
    std::fs::remove_dir_all(&bench.scratch)?;
    let table = table(&rows);
    if options.is_empty() {
        let file = root().join("docs/benchmarks.md");
        std::fs::write(&file, page(&table)).with_context(|| format!("cannot write {}", file.display()))?;
    }
    say(&table);
    Ok(())
}

fn table(rows: &[Row]) -> String {
    let mut text = String::from("| what | goal | measured | again with |\n|---|---|---|---|\n");
    for Row { what, goal, measured, name } in rows {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "| {what} | {goal} | {measured} | `cargo xtask bench {name}` |");
    }
    text
}

fn page(table: &str) -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    format!(
        "# Benchmarks\n\n`cargo xtask bench` measured these and wrote this page; the last column measures one row again. \
         The machine: {}-{}, {cores} cores, shared with other work. The client is the release binary; the server is \
         `gate sim`, a process of its own on the same machine, whose `/truth` says what it wrote and when. Percentiles are \
         by nearest rank.\n\n{table}",
        std::env::consts::OS,
        std::env::consts::ARCH,
    )
}

/// A spec with this load, against a server at `url`.
fn spec(name: &str, url: &str, api: &str, load: &str, tokens: u32) -> String {
    format!(
        "version: 1\nname: {name}\ntarget: {{url: '{url}', api: {api}, model: m}}\nload: {{{load}}}\n\
         prompts: {{input_tokens: 100, output_tokens: {tokens}}}\nrequire: [ttft.p50 < 60s]\n"
    )
}

impl Bench {
    fn write(&self, name: &str, text: &str) -> Result<PathBuf> {
        let path = self.scratch.join(name);
        std::fs::write(&path, text)?;
        Ok(path)
    }

    /// The simulated engine with these parameters, in flow style.
    fn engine(&self, params: &str) -> Result<Engine> {
        self.engine_on(params, None)
    }

    /// The same, on one core where it is to be.
    fn engine_on(&self, params: &str, core: Option<u32>) -> Result<Engine> {
        let spec = format!("version: 1\nname: e\ntarget: {{sim: {{{params}}}}}\nrequire: [ttft.p50 < 60s]\n");
        Engine::start(&self.gate, &self.write("engine.yaml", &spec)?, core)
    }

    /// A whole `gate run`, with its journal.
    fn load(&self, spec: &str) -> Result<(Timed, Measured)> {
        self.load_on(spec, None)
    }

    /// The same, on one core where it is to be.
    fn load_on(&self, spec: &str, core: Option<u32>) -> Result<(Timed, Measured)> {
        let (spec, journal) = (self.write("load.yaml", spec)?, self.scratch.join("run.jsonl"));
        let mut command = pinned(&self.gate, core);
        command.args(["run", &text(&spec), "-o", &text(&journal), "--quiet"]).current_dir(&self.scratch);
        let measured = Measured::of(&mut command)?;
        Ok((Timed::read(&journal)?, measured))
    }

    fn process(&self, words: &[&str]) -> Result<Measured> {
        Measured::of(Command::new(&self.gate).args(words).current_dir(&self.scratch))
    }
}

fn text(path: &Path) -> String {
    path.display().to_string()
}

/// `start − intended` at 50 requests a second.
fn schedule(bench: &Bench) -> Result<Vec<Row>> {
    let engine = bench.engine("ttft: 20ms, tpot: 2ms")?;
    let (run, _) =
        bench.load(&spec("schedule", &engine.url, "openai-chat", "rps: 50, iterations: 1000, warmup: 5", 8))?;
    let late = run.lateness();
    Ok(vec![Row {
        what: "send lateness (`start − intended`) at 50 requests/s, 1,000 requests".to_owned(),
        goal: "p50 ≤ .25 ms, p99 ≤ 1 ms",
        measured: format!("p50 {:.3} ms, p99 {:.3} ms", rank(&late, 0.5), rank(&late, 0.99)),
        name: "schedule",
    }])
}

/// TTFT and gaps against the truth at 64 streams of 100 tokens a second.
fn timing(bench: &Bench) -> Result<Vec<Row>> {
    let engine = bench.engine("ttft: 100ms, tpot: 10ms")?;
    let load = "rps: 21.3, iterations: 300, arrivals: constant, warmup: 5, clock: user";
    let (run, _) = bench.load(&spec("timing", &engine.url, "openai-chat", load, 300))?;
    let truth = engine.truth()?;
    let errors = run.against(&truth)?;
    Ok(vec![
        Row {
            what: "TTFT against the server's own, 64 streams of 100 tokens/s".to_owned(),
            goal: "p50 ≤ .3 ms, p95 ≤ 1 ms",
            measured: format!("p50 {:.3} ms, p95 {:.3} ms", rank(&errors.ttft, 0.5), rank(&errors.ttft, 0.95)),
            name: "timing",
        },
        Row {
            what: "gap between tokens against the server's own, the same run".to_owned(),
            goal: "p50 ≤ .05 ms",
            measured: format!("p50 {:.3} ms, p95 {:.3} ms", rank(&errors.gaps, 0.5), rank(&errors.gaps, 0.95)),
            name: "timing",
        },
    ])
}

/// What `gate check` adds to its schedule, and its memory, for a gate of 50 requests.
fn overhead(bench: &Bench) -> Result<Vec<Row>> {
    let engine = bench.engine("ttft: 50ms, tpot: 2ms")?;
    let spec =
        spec("overhead", &engine.url, "openai-chat", "rps: 10, iterations: 50, arrivals: constant, warmup: 0", 50);
    let spec = bench.write("overhead.yaml", &spec)?;
    let measured = bench.process(&["check", &text(&spec), "--quiet"])?;
    let run = Timed::read(&bench.scratch.join(".gate/overhead/run.jsonl"))?;
    let added = measured.seconds - run.last_end_seconds();
    let size = std::fs::metadata(&bench.gate)?.len() as f64 / 1e6;
    Ok(vec![
        Row {
            what: "what `gate check` adds to the schedule and its last answer, 50 requests".to_owned(),
            goal: "≤ .3 s",
            measured: format!("{added:.3} s"),
            name: "overhead",
        },
        Row {
            what: "peak resident memory of that check".to_owned(),
            goal: "≤ 40 MB",
            measured: format!("{:.1} MB", measured.peak_megabytes),
            name: "overhead",
        },
        Row {
            what: "stripped binary".to_owned(),
            goal: "≤ 20 MB",
            measured: format!("{size:.1} MB"),
            name: "overhead",
        },
    ])
}

/// How long `gate plan` takes.
fn plan(bench: &Bench) -> Result<Vec<Row>> {
    let demo = text(&root().join("gates/demo.yaml"));
    let mut millis = Vec::new();
    for _ in 0..21 {
        millis.push(bench.process(&["plan", &demo])?.seconds * 1e3);
    }
    millis.sort_by(f64::total_cmp);
    let measured = format!("median {:.1} ms, worst of 21 {:.1} ms", rank(&millis, 0.5), rank(&millis, 1.0));
    Ok(vec![Row {
        what: "`gate plan gates/demo.yaml`, the whole process".to_owned(),
        goal: "≤ 50 ms",
        measured,
        name: "plan",
    }])
}

/// The same load in every dialect: the greatest difference of a figure between two of them.
fn dialects(bench: &Bench) -> Result<Vec<Row>> {
    let (mut ttft, mut tpot) = (Vec::new(), Vec::new());
    for api in ["openai-chat", "openai-completions", "anthropic", "ollama"] {
        // A fresh engine each time: equal seeds, equal token times.
        let engine = bench.engine("ttft: 60ms, tpot: 5ms")?;
        let load = "rps: 20, iterations: 100, arrivals: constant, warmup: 3";
        let (run, _) = bench.load(&spec("dialects", &engine.url, api, load, 40))?;
        ttft.push(rank(&run.ttft(), 0.5));
        tpot.push(rank(&run.per_token_millis(), 0.5));
    }
    let spread = |values: &[f64]| rank(values, 1.0) - values.iter().copied().fold(f64::INFINITY, f64::min);
    ttft.sort_by(f64::total_cmp);
    tpot.sort_by(f64::total_cmp);
    Ok(vec![Row {
        what: "four dialects, the same engine: greatest difference of the median TTFT, and of the median TPOT"
            .to_owned(),
        goal: "≤ .5 ms",
        measured: format!("{:.3} ms, {:.3} ms", spread(&ttft), spread(&tpot)),
        name: "dialects",
    }])
}

/// The nearest-rank percentile of sorted values; NaN of none.
fn rank(sorted: &[f64], share: f64) -> f64 {
    let place = ((share * sorted.len() as f64).ceil() as usize).clamp(1, sorted.len().max(1)) - 1;
    sorted.get(place).copied().unwrap_or(f64::NAN)
}
