//! The command line: what may be typed, and what a later version will take.

mod capacity;
mod init;
mod outputs;
mod publishing;
mod stored;

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, CommandFactory, Parser, Subcommand};
use gate_model::{Decide, ExitCode, GateSpec, Nanos, Override, Policy, Verdict};
use gate_spec::Overlay;

pub(crate) use capacity::{Capacity, Host, Instances, Kv, Load, Question, Tokens};
pub(crate) use init::{Init, WhichForge, time_of};
pub(crate) use outputs::{Outputs, Report};
pub(crate) use publishing::{Hook, HookAction, NoCredentials, Publish, Publishing};
pub(crate) use stored::{Baseline, BaselineAction, Shelves};

use crate::shard::Shards;

/// A CI/CD performance gate for LLM inference endpoints.
///
/// Exit codes: 0 passed · 1 a required check is violated · 2 the spec or the command line is wrong ·
/// 3 could not measure · 4 inconclusive where that costs the build · 70 internal error · 130 interrupted.
#[derive(Debug, Parser)]
#[command(name = "gate", version, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
    /// Say more on stderr (twice: everything).
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
    /// Print nothing for people but errors.
    #[arg(short, long, global = true)]
    pub(crate) quiet: bool,
    /// No colours (also: the variable `NO_COLOR`).
    #[arg(long, global = true)]
    pub(crate) no_color: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Make a gate: its spec, a nightly one, the CI file, and a page that explains them.
    Init(Init),
    /// Run gates: send the load, judge it, write the reports.
    Check(Check),
    /// Show what would be sent and what each check can detect; sends nothing.
    Plan(Plan),
    /// Send the load alone and write its journal.
    Run(Run),
    /// Judge a finished run again, from its journal or another tool's file.
    Judge(Judge),
    /// Render a verdict again.
    Report(Report),
    /// Deliver a verdict that was made elsewhere to the pull or merge request.
    Publish(Publish),
    /// The stored runs that checks are compared with.
    Baseline(Baseline),
    /// Run a gate against an unchanged target: its own false alarms, the noise, proposed limits.
    Calibrate(Calibrate),
    /// Serve the built-in simulated inference engine.
    Sim(Sim),
    /// Plan: KV cache, instances, providers' limits, where to host.
    Capacity(Capacity),
    /// What a metric means and how a check on it is decided, or how one was decided in a run.
    Explain(Explain),
    /// What works here: the clock, the proxy, the forge and its token, the target, the tokenizer, the baselines.
    Doctor(Doctor),
    /// Show what the decoder sees in a saved stream.
    Decode(Decode),
    /// Run `gate check` before each push.
    Hook(Hook),
    /// Print the JSON Schema of gate specs, for editors.
    Schema,
    /// Print a shell's completion script, or the man page.
    Completions(Completions),
}

/// How a verdict becomes an exit code.
#[derive(Debug, Args)]
pub(crate) struct Strictness {
    /// What is seen over its limit but not proven, and what has no baseline, fails too (exit 4).
    #[arg(long)]
    strict: bool,
    /// Compare each number with its limit as it is, with no statistics: `point`.
    #[arg(long, value_name = "HOW")]
    decide: Option<Decision>,
    /// Report a violated or inconclusive gate, and exit 0.
    #[arg(long)]
    report_only: bool,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Decision {
    /// By plain comparison.
    Point,
}

impl Strictness {
    /// Changes a gate as the flags say, and notes it for every report.
    pub(crate) fn apply(&self, spec: &mut GateSpec) {
        let mut note = |flag: &str, path: &str, value: &str| {
            spec.overrides.push(Override { flag: flag.into(), path: path.into(), value: value.into() });
        };
        if self.strict {
            note("--strict", "outcomes.inconclusive", "fail");
            note("--strict", "outcomes.no_baseline", "fail");
            (spec.outcomes.inconclusive, spec.outcomes.no_baseline) = (Policy::Fail, Policy::Fail);
        }
        if let Some(Decision::Point) = self.decide {
            spec.overrides.push(Override { flag: "--decide".into(), path: "decide".into(), value: "point".into() });
            spec.checks.iter_mut().for_each(|check| check.decide = Some(Decide::Point));
        }
    }

    /// Takes back what `--report-only` makes of a verdict's exit code.
    pub(crate) fn soften(&self, verdict: &mut Verdict) {
        if self.report_only && matches!(verdict.exit, ExitCode::Violated | ExitCode::Inconclusive) {
            verdict.exit = ExitCode::Passed;
            verdict.report_only = true;
        }
    }
}

#[derive(Debug, Args)]
pub(crate) struct Explain {
    /// A metric such as `tpot.p95`, a series such as `tpot`, or with --run a check such as `ttft.p95 < 800ms`.
    #[arg(value_name = "METRIC|CHECK")]
    pub(crate) subject: String,
    /// What the rule computed on this run, step by step, or what it had of a series: a journal, or a verdict.
    #[arg(long, value_name = "RUN")]
    pub(crate) run: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct Decode {
    /// The body of a response, as it came (`-`: stdin).
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// The dialect it is in, such as `openai-chat`.
    #[arg(long, value_name = "API")]
    pub(crate) api: String,
    /// Print everything the decoder saw as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// For which shell.
    #[arg(value_name = "SHELL")]
    pub(crate) shell: Script,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum Script {
    Bash,
    Elvish,
    Fish,
    Powershell,
    Zsh,
    /// The man page, in roff.
    Man,
}

/// What changes a spec from the command line.
#[derive(Debug, Args)]
pub(crate) struct Overlays {
    /// Another target instead of the spec's.
    #[arg(long, value_name = "URL")]
    target: Option<String>,
    /// Set one value of the spec, such as `load.rps=5` (repeatable).
    #[arg(long, value_name = "PATH=VALUE", value_parser = assignment)]
    set: Vec<(String, String)>,
}

impl Overlays {
    /// In the order they take effect: `--target` is the last word on where requests go.
    pub(crate) fn list(&self) -> Vec<Overlay> {
        let set = self.set.iter().map(|(path, value)| ("--set", path.as_str(), value));
        let target = self.target.iter().map(|url| ("--target", "target.url", url));
        set.chain(target)
            .map(|(flag, path, value)| Overlay { flag: flag.into(), path: path.into(), value: value.clone() })
            .collect()
    }
}

/// The second arm of a side-by-side run.
#[derive(Debug, Args)]
pub(crate) struct SideBySide {
    /// Compare with this endpoint side by side, instead of the spec's `reference`.
    #[arg(long, value_name = "URL")]
    reference: Option<String>,
}

impl SideBySide {
    /// The overlays with its own.
    pub(crate) fn over(&self, overlays: &Overlays) -> Vec<Overlay> {
        let reference = self.reference.iter().map(|url| Overlay {
            flag: "--reference".into(),
            path: "reference.url".into(),
            value: url.clone(),
        });
        overlays.list().into_iter().chain(reference).collect()
    }
}

/// Whose checks judge a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Trust {
    /// Those of the commit the change forked off from, so that a change cannot loosen its own gate.
    Base,
    /// The checkout's own.
    #[default]
    Head,
}

fn assignment(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((path, value)) if !path.trim().is_empty() => Ok((path.trim().to_owned(), value.to_owned())),
        _ => Err("write PATH=VALUE, such as load.rps=5".to_owned()),
    }
}

#[derive(Debug, Args)]
pub(crate) struct Check {
    /// Gate specs; without any, `gates/*.yaml` and `gates/*.yml`.
    #[arg(value_name = "SPEC")]
    pub(crate) specs: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) overlays: Overlays,
    #[command(flatten)]
    pub(crate) side_by_side: SideBySide,
    /// Compare with this instead of what the spec's `baseline` chooses: a baseline's file or a run's journal
    /// (repeatable), or a store (a folder, `git:REF`, or the URL of an archive that a job left).
    #[arg(long, value_name = "FILE|STORE|URL")]
    pub(crate) baseline: Vec<String>,
    /// Keep the run as a baseline if it is valid and no required check is violated.
    #[arg(long)]
    pub(crate) save_baseline: bool,
    /// Whose checks, waivers and baseline settings judge the run; without this flag `head`, and a stranger's specs are
    /// refused where the job has secrets that are not the stranger's.
    #[arg(long, value_name = "WHOSE")]
    pub(crate) trust: Option<Trust>,
    /// With `--trust base`: a host that may be sent secrets although the base commit's spec does not name it (repeatable).
    #[arg(long, value_name = "HOST", requires = "trust")]
    pub(crate) allow_host: Vec<String>,
    /// Run a pattern of more than 10 minutes, as in a nightly job.
    #[arg(long)]
    pub(crate) long: bool,
    /// The folder for outputs: a folder per gate is made in it.
    #[arg(long, value_name = "DIR", default_value = ".gate")]
    pub(crate) out: PathBuf,
    #[command(flatten)]
    pub(crate) outputs: Outputs,
    #[command(flatten)]
    pub(crate) strictness: Strictness,
    #[command(flatten)]
    pub(crate) publishing: Publishing,
}

#[derive(Debug, Args)]
pub(crate) struct Plan {
    /// The gate spec.
    #[arg(value_name = "SPEC")]
    pub(crate) spec: PathBuf,
    #[command(flatten)]
    pub(crate) overlays: Overlays,
    #[command(flatten)]
    pub(crate) side_by_side: SideBySide,
    /// Print the whole plan as JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Print a Kubernetes Indexed Job that sends the plan from N machines, and a step that judges them together.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000), conflicts_with = "json")]
    pub(crate) kubernetes: Option<u32>,
}

#[derive(Debug, Args)]
pub(crate) struct Run {
    /// The gate spec.
    #[arg(value_name = "SPEC")]
    pub(crate) spec: PathBuf,
    #[command(flatten)]
    pub(crate) overlays: Overlays,
    #[command(flatten)]
    pub(crate) side_by_side: SideBySide,
    /// The journal to write.
    #[arg(short, long, value_name = "FILE", default_value = "run.jsonl")]
    pub(crate) output: PathBuf,
    /// Send only one machine's part of the plan: shard I of N, from 1. Without I (`/N`) the job's own index counts
    /// (CI_NODE_INDEX, or JOB_COMPLETION_INDEX + 1); under GitLab's `parallel` also without this flag.
    #[arg(long, value_name = "I/N", value_parser = Shards::parse)]
    pub(crate) shard: Option<Shards>,
    /// Send the specs' load although they may be a stranger's and the job's secrets are not: `head`.
    #[arg(long, value_name = "WHOSE", value_parser = head_only)]
    pub(crate) trust: Option<Trust>,
    /// Send the first measured request exactly then, so that shards start together: a time such as
    /// 2027-01-31T02:00:00Z, or seconds since the UNIX epoch.
    #[arg(long, value_name = "TIME", value_parser = instant)]
    pub(crate) start_at: Option<Nanos>,
}

/// What is not judged has no checks of another commit to be judged by.
fn head_only(text: &str) -> Result<Trust, String> {
    match text {
        "head" => Ok(Trust::Head),
        "base" => Err("only `gate check` can judge by the base commit's checks".to_owned()),
        _ => Err("write head".to_owned()),
    }
}

/// An instant, as the time since the UNIX epoch.
fn instant(text: &str) -> Result<Nanos, String> {
    if let Ok(seconds) = text.parse::<f64>() {
        let is_time = seconds.is_finite() && (0.0..4e9).contains(&seconds);
        return if is_time { Ok(Nanos::from_secs_f64(seconds)) } else { Err("this is no time since 1970".to_owned()) };
    }
    let instant: jiff::Timestamp =
        text.parse().map_err(|_| "write a time such as 2027-01-31T02:00:00Z, or seconds since 1970".to_owned())?;
    i64::try_from(instant.as_nanosecond()).map(Nanos).map_err(|_| "this time is too far away".to_owned())
}

#[derive(Debug, Args)]
pub(crate) struct Judge {
    /// The run's journal, the journals of all its shards, or with `--from` another tool's file.
    #[arg(value_name = "RUN", required = true)]
    pub(crate) runs: Vec<PathBuf>,
    /// Judge by this spec's checks instead of the journal's own.
    #[arg(long, value_name = "SPEC")]
    pub(crate) spec: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) overlays: Overlays,
    /// The format of RUN, and of the files of --reference and --baseline, when they are no journals: `samples`, `vllm`, `k6` or `vegeta`.
    #[arg(long, value_name = "FORMAT", requires = "spec")]
    pub(crate) from: Option<String>,
    /// Another run to compare with request by request, as if it had been sent beside this one.
    #[arg(long, value_name = "FILE")]
    pub(crate) reference: Option<PathBuf>,
    /// Compare with this instead of what the spec's `baseline` chooses (repeatable); without --from also a store.
    #[arg(long, value_name = "FILE|STORE")]
    pub(crate) baseline: Vec<String>,
    /// Write all reports into a folder per gate in this one.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) outputs: Outputs,
    #[command(flatten)]
    pub(crate) strictness: Strictness,
}

#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Gate specs, whose targets are asked; none: those in `gates/`.
    #[arg(value_name = "SPEC")]
    pub(crate) specs: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) overlays: Overlays,
    /// Print it as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Calibrate {
    /// The gate spec.
    #[arg(value_name = "SPEC")]
    pub(crate) spec: PathBuf,
    /// Send the spec's load although it may be a stranger's and the job's secrets are not: `head`.
    #[arg(long, value_name = "WHOSE", value_parser = head_only)]
    pub(crate) trust: Option<Trust>,
    /// How often the gate is run.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=100))]
    pub(crate) runs: u32,
    #[command(flatten)]
    pub(crate) overlays: Overlays,
    /// The folder for the runs' journals: a folder per gate is made in it.
    #[arg(long, value_name = "DIR", default_value = ".gate")]
    pub(crate) out: PathBuf,
    /// Print what was found as JSON instead of the proposed checks as YAML.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Sim {
    /// Take the engine's parameters from this spec's `target.sim`.
    #[arg(value_name = "SPEC")]
    pub(crate) spec: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) overlays: Overlays,
    /// Listen here.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8000")]
    pub(crate) listen: SocketAddr,
}

/// Flags and commands of the product that this version does not have.
const NOT_YET: [&str; 2] = ["--simulate", "--preset"];

/// Reads the command line.
///
/// # Errors
/// Help, the version, or what is wrong: clap's own error, with a plain sentence where a later version of
/// `gate` has what was asked for.
pub(crate) fn parse(arguments: impl IntoIterator<Item = std::ffi::OsString>) -> Result<Cli, clap::Error> {
    Cli::try_parse_from(arguments).map_err(|error| {
        let asked = match error.kind() {
            ErrorKind::UnknownArgument => error.get(ContextKind::InvalidArg),
            ErrorKind::InvalidSubcommand => error.get(ContextKind::InvalidSubcommand),
            _ => None,
        };
        let Some(ContextValue::String(asked)) = asked else { return error };
        let name = asked.split(['=', ' ']).next().unwrap_or_default();
        if NOT_YET.contains(&name) {
            Cli::command().error(error.kind(), format!("`{name}` is not yet supported by this version of gate"))
        } else {
            error
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_words(words: &str) -> Result<Cli, clap::Error> {
        parse(words.split(' ').map(Into::into))
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn overlays_keep_their_order_and_target_comes_last() {
        let cli = parse_words("gate check --target http://h --set load.rps=5 --set name=a=b").unwrap();
        let Command::Check(check) = cli.command else { panic!() };
        let list: Vec<_> = check.overlays.list().into_iter().map(|o| (o.flag, o.path, o.value)).collect();
        let expected = [("--set", "load.rps", "5"), ("--set", "name", "a=b"), ("--target", "target.url", "http://h")];
        assert_eq!(list, expected.map(|(flag, path, value)| (flag.into(), path.into(), value.into())));
    }

    #[test]
    fn what_is_not_there_yet_says_so() {
        for words in ["gate plan a.yaml --simulate", "gate sim --preset=r"] {
            let error = parse_words(words).unwrap_err();
            assert!(error.to_string().contains("is not yet supported"), "{words}: {error}");
            assert_eq!(error.exit_code(), 2);
        }
        assert!(!parse_words("gate check --strikt").unwrap_err().to_string().contains("not yet"));
    }
}
