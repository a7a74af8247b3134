//! Coverage-guided fuzzing of the decoders, on the stable toolchain.
//!
//! The compiler's own coverage passes are switched on by flags, and libFuzzer's runtime comes with `libfuzzer-sys`,
//! which needs a C++ compiler. Runs work on a copy of the kept corpus under `target/fuzz`: only `--keep` writes to
//! the checkout.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::tool::{cargo, root, run, say};

/// How long a target runs, if nothing else is asked.
const SECONDS: Duration = Duration::from_secs(5);

/// How many targets run at once.
const AT_ONCE: usize = 2;

/// The longest body that is tried: long enough for several reads' worth of events.
const LONGEST: &str = "-max_len=4096";

/// How many bytes of a target's finds are kept at most.
const ROOM: u64 = 24 << 10;

/// What makes the compiler count coverage as libFuzzer reads it, and check what release builds do not.
const FLAGS: [&str; 9] = [
    "--cfg=fuzzing",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Ccodegen-units=1",
    "-Cdebug-assertions",
    "-Coverflow-checks",
];

/// What `cargo xtask fuzz` was asked.
#[derive(Debug, PartialEq, Eq)]
struct Ask<'a> {
    target: Option<&'a str>,
    time: Duration,
    corpus: Corpus,
}

/// What becomes of what was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Corpus {
    /// It stays under `target`.
    Discarded,
    /// The kept corpus becomes the smallest one that covers the same.
    Kept,
}

/// `cargo xtask fuzz [TARGET] [--seconds N] [--keep]`.
pub(crate) fn command(options: &[&str]) -> Result<()> {
    let ask = parse(options)?;
    if !has_compiler() {
        bail!("{NO_COMPILER}");
    }
    let targets = targets()?;
    let chosen = match ask.target {
        None => targets,
        Some(target) if targets.iter().any(|known| known == target) => vec![target.to_owned()],
        Some(target) => bail!("no target `{target}`: they are {}", targets.join(", ")),
    };
    fuzz(&chosen, ask.time)?;
    if ask.corpus == Corpus::Kept {
        chosen.iter().try_for_each(|target| keep(target))?;
    }
    Ok(())
}

/// Every target for a short time, as part of the whole test; says so where there is no C++ compiler.
pub(crate) fn run_all() -> Result<()> {
    if !has_compiler() {
        say(&format!("skipped: {NO_COMPILER}"));
        return Ok(());
    }
    fuzz(&targets()?, SECONDS)
}

const NO_COMPILER: &str =
    "fuzzing needs a C++ compiler (`c++`, or the one that CXX names); Debian: apt-get install g++";

fn parse<'a>(options: &[&'a str]) -> Result<Ask<'a>> {
    let mut ask = Ask { target: None, time: SECONDS, corpus: Corpus::Discarded };
    let mut rest = options;
    while let [option, after @ ..] = rest {
        rest = match (*option, after) {
            ("--keep", after) => {
                ask.corpus = Corpus::Kept;
                after
            }
            ("--seconds", [seconds, after @ ..]) => {
                let number = seconds.parse().ok().filter(|number| *number > 0);
                let number = number.with_context(|| format!("`--seconds {seconds}` is no number of seconds"))?;
                ask.time = Duration::from_secs(number);
                after
            }
            (target, after) if !target.starts_with('-') && ask.target.is_none() => {
                ask.target = Some(target);
                after
            }
            (option, _) => bail!("unexpected `{option}`: cargo xtask fuzz [TARGET] [--seconds N] [--keep]"),
        };
    }
    Ok(ask)
}

fn has_compiler() -> bool {
    let compiler = std::env::var_os("CXX").filter(|name| !name.is_empty()).unwrap_or_else(|| "c++".into());
    let mut version = Command::new(compiler);
    version.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    version.status().is_ok_and(|status| status.success())
}

fn crate_folder() -> PathBuf {
    root().join("crates/fuzz")
}

/// Where everything is built and found.
fn work() -> PathBuf {
    root().join("target/fuzz")
}

/// Streams to begin with.
fn fixtures() -> PathBuf {
    root().join("fixtures/wire")
}

/// The targets, by the names of their files.
fn targets() -> Result<Vec<String>> {
    let mut targets = Vec::new();
    for entry in std::fs::read_dir(crate_folder().join("fuzz_targets"))? {
        let path = entry?.path();
        targets.extend(path.file_stem().and_then(|stem| stem.to_str()).map(str::to_owned));
    }
    targets.sort();
    Ok(targets)
}

/// Builds the targets, and runs them; a crash is an error that names the input.
fn fuzz(targets: &[String], time: Duration) -> Result<()> {
    let host = host()?;
    run(Command::new(cargo())
        .env("RUSTFLAGS", FLAGS.join(" "))
        // Every target is linked by itself: optimising each as a whole would take longer than it runs.
        .env("CARGO_PROFILE_RELEASE_LTO", "off")
        .env("CARGO_PROFILE_RELEASE_STRIP", "none")
        .args(["build", "--release", "--quiet", "--package", "gate-fuzz", "--features", "fuzz", "--bins"])
        // With a target named, build scripts and macros are built without the flags.
        .args(["--target", &host, "--target-dir"])
        .arg(work().join("build")))?;
    let programs = work().join("build").join(host).join("release");
    let mut crashes = Vec::new();
    for group in targets.chunks(AT_ONCE) {
        let started = group.iter().map(|target| Run::start(&programs, target, time)).collect::<Result<Vec<_>>>()?;
        for run in started {
            crashes.extend(run.wait()?);
        }
    }
    if !crashes.is_empty() {
        bail!("{} target(s) failed:\n  {}", crashes.len(), crashes.join("\n  "));
    }
    Ok(())
}

/// The host's name, as the compiler spells it.
fn host() -> Result<String> {
    let output = Command::new(std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into())).arg("-vV").output()?;
    let text = String::from_utf8(output.stdout)?;
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("`rustc -vV` names no host")?.to_owned())
}

/// One target that runs.
struct Run<'a> {
    target: &'a str,
    child: Child,
    log: PathBuf,
    artifacts: PathBuf,
}

impl<'a> Run<'a> {
    fn start(programs: &Path, target: &'a str, time: Duration) -> Result<Self> {
        let (corpus, artifacts) = (work().join("corpus").join(target), work().join("crashes").join(target));
        for folder in [&corpus, &artifacts] {
            std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        }
        let log = work().join(format!("{target}.log"));
        let output = std::fs::File::create(&log).with_context(|| format!("cannot write {}", log.display()))?;
        let child = Command::new(programs.join(format!("fuzz-{target}")))
            .arg(format!("-max_total_time={}", time.as_secs()))
            .arg(format!("-artifact_prefix={}/", artifacts.display()))
            // Time and memory that grow faster than the body does are failures too.
            .args([LONGEST, "-timeout=120", "-rss_limit_mb=1024", "-print_final_stats=1"])
            .arg(&corpus)
            .args([crate_folder().join("corpus").join(target)].iter().filter(|kept| kept.is_dir()))
            .arg(fixtures())
            .stdout(output.try_clone()?)
            .stderr(output)
            .spawn()
            .with_context(|| format!("cannot start the target `{target}`"))?;
        Ok(Self { target, child, log, artifacts })
    }

    /// Waits for its end; what to say where it failed.
    fn wait(mut self) -> Result<Option<String>> {
        let status = self.child.wait()?;
        let log = String::from_utf8_lossy(&std::fs::read(&self.log)?).into_owned();
        let number = |name: &str| {
            let found = log.lines().rev().find_map(|line| line.strip_prefix("stat::")?.strip_prefix(name));
            found.map_or("?", |rest| rest.trim_start_matches(':').trim()).to_owned()
        };
        if status.success() {
            let (runs, peak) = (number("number_of_executed_units"), number("peak_rss_mb"));
            say(&format!("{:<18}{runs:>9} inputs, {peak} MB at most, no crash", self.target));
            return Ok(None);
        }
        let written = log.lines().rev().find_map(|line| line.split_once("Test unit written to ").map(|(_, path)| path));
        let why =
            log.lines().find(|line| line.contains("panicked at") || line.starts_with("==") || line.contains("ERROR"));
        let input = written.map_or_else(|| self.artifacts.display().to_string(), str::to_owned);
        let why = why.unwrap_or("it ended early");
        Ok(Some(format!("{}: {input}: {why} (log: {})", self.target, self.log.display())))
    }
}

/// Makes the kept corpus of a target a small one that reaches what was reached, the fixtures' own reach apart.
fn keep(target: &str) -> Result<()> {
    let programs = work().join("build").join(host()?).join("release");
    let (kept, merged) = (crate_folder().join("corpus").join(target), work().join("merged").join(target));
    for folder in [&kept, &merged] {
        std::fs::create_dir_all(folder)?;
    }
    std::fs::remove_dir_all(&merged)?;
    copy(&fixtures(), &merged, |_, _| true)?;
    let log = std::fs::File::create(work().join(format!("{target}.merge.log")))?;
    run(Command::new(programs.join(format!("fuzz-{target}")))
        .args(["-set_cover_merge=1", "-use_counters=0", LONGEST])
        .args([&merged, &kept, &work().join("corpus").join(target)])
        .stdout(Stdio::null())
        .stderr(log))?;
    std::fs::remove_dir_all(&kept)?;
    let mut room = ROOM;
    copy(&merged, &kept, |name, length| {
        let fits = !fixtures().join(name).exists() && length <= room;
        room -= if fits { length } else { 0 };
        fits
    })?;
    say(&format!("{target}: the kept corpus is in {}", kept.display()));
    Ok(())
}

/// Copies the files of a folder that are wanted by their names and lengths, the shortest first.
fn copy(from: &Path, to: &Path, mut wanted: impl FnMut(&OsStr, u64) -> bool) -> Result<()> {
    std::fs::create_dir_all(to)?;
    let mut files = Vec::new();
    for entry in std::fs::read_dir(from)? {
        let entry = entry?;
        let about = entry.metadata()?;
        if about.is_file() {
            files.push((about.len(), entry.file_name()));
        }
    }
    files.sort();
    for (_, name) in files.iter().filter(|(length, name)| wanted(name, *length)) {
        std::fs::copy(from.join(name), to.join(name))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_in_any_order() {
        let ask = Ask { target: Some("anthropic"), time: Duration::from_secs(600), corpus: Corpus::Kept };
        assert_eq!(parse(&["--seconds", "600", "anthropic", "--keep"]).unwrap(), ask);
        assert_eq!(parse(&[]).unwrap(), Ask { target: None, time: SECONDS, corpus: Corpus::Discarded });
        for wrong in [&["--seconds"][..], &["--seconds", "0"], &["--fast"], &["a", "b"]] {
            assert!(parse(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn every_target_has_a_program() {
        let manifest = std::fs::read_to_string(crate_folder().join("Cargo.toml")).unwrap();
        let targets = targets().unwrap();
        assert!(targets.len() >= 8);
        for target in targets {
            assert!(manifest.contains(&format!("name = \"fuzz-{target}\"\npath = \"fuzz_targets/{target}.rs\"")));
        }
    }
}
