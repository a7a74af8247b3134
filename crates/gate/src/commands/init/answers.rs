//! The answers: from flags, from a person at a terminal, or the usual ones.

use std::io::{BufRead, IsTerminal, Read};
use std::str::FromStr;

use gate_init::{Answers, Endpoint, Forge, Kind, Prices, Sla, Workload};
use gate_model::{Api, Nanos, PerSecond, Quantity};

use super::{found_forge, probe};
use crate::cli::{Init, WhichForge, time_of};
use crate::console::Console;
use crate::failure::Failure;
use crate::files;

/// The longest answer that is read.
const LONGEST: u64 = 4_096;

/// The answers of all questions.
pub(super) fn given(arguments: &Init, console: &Console) -> Result<Answers, Failure> {
    if arguments.key_env.as_ref().is_some_and(|name| !is_variable(name)) {
        // Whoever gives the key itself must not see it in a log.
        return Err(Failure::usage("--key-env: that is no name of a variable")
            .hint("such as `OPENAI_API_KEY`; the key itself is never written"));
    }
    let asks = Asks::of(arguments, console);
    let target = match &arguments.target {
        Some(url) => url.clone(),
        None => asks.required("The endpoint's URL (`sim`: the built-in engine)", "sim", "--target URL")?,
    };
    let endpoint = match target.as_str() {
        "sim" => built_in(),
        url => {
            without_secrets(url)?;
            probe::endpoint(url, arguments, console)?
        }
    };
    let kind = match arguments.workload {
        Some(kind) => kind,
        None => asks.or("The kind of work (chat, code, rag, batch)", Kind::Chat)?,
    };
    let workload = match &arguments.from_dataset {
        Some(file) => {
            let text = files::read(file, files::MEDIUM)?;
            let name = file.display().to_string();
            gate_init::fitted(&name, &text, kind, gate_tokens::estimate)
                .map_err(|error| Failure::unreadable(file, gate_report::escape::terminal(&error.to_string())))?
        }
        None => Workload::usual(kind),
    };
    fits(&workload, endpoint.api)?;
    let usual = Sla::usual(kind);
    let time = |given: Option<Nanos>, question: &str, usual: Nanos| match given {
        Some(time) => Ok(time),
        None => asks.time(question, usual),
    };
    let sla = Sla {
        ttft: time(arguments.ttft_p95, "95 % of first tokens within", usual.ttft)?,
        tpot: time(arguments.tpot_p95, "95 % of requests with at most, for each token after it", usual.tpot)?,
        errors: arguments.errors.unwrap_or(usual.errors),
        rps: match arguments.rps {
            Some(rate) => PerSecond(rate),
            None => PerSecond(asks.or("Requests a second, as usual", usual.rps.0)?),
        },
    };
    sound(&sla)?;
    let name = match &arguments.name {
        Some(name) => name.clone(),
        None => asks.or("The gate's name", kind.name().to_owned())?,
    };
    if !gate_model::is_gate_name(&name) || !gate_model::is_gate_name(&format!("{name}-nightly")) {
        return Err(Failure::usage(format!("--name {}: it names no gate", gate_report::escape::terminal(&name)))
            .hint("up to 56 letters, digits, `.`, `_` and `-`, from a letter or digit on"));
    }
    let forge = match arguments.forge {
        Some(WhichForge::Github) => Some(Forge::GitHub),
        Some(WhichForge::Gitlab) => Some(Forge::GitLab),
        Some(WhichForge::None) => None,
        None => found_forge(),
    };
    let prices = arguments.input_price.zip(arguments.output_price).map(|(input, output)| Prices { input, output });
    Ok(Answers { name, endpoint, workload, sla, forge, prices, runs_a_month: arguments.runs_a_month })
}

fn is_variable(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && text.chars().all(|symbol| symbol.is_ascii_alphanumeric() || symbol == '_')
}

/// A URL is written into files and shown: it is no place for a key.
fn without_secrets(url: &str) -> Result<(), Failure> {
    let host = url.split_once("://").map_or(url, |(_, rest)| rest).split('/').next().unwrap_or_default();
    match url.contains(['?', '#']) || host.contains('@') {
        true => Err(Failure::usage("--target: a user or a query in a URL may be a secret, and it would be written into files")
            .hint("name the variable that has the key with --key-env; other headers and paths are written by hand (docs/spec.md)")),
        false => Ok(()),
    }
}

/// The longest prompt or answer that is planned.
const LONGEST_TEXT: u32 = 1_000_000;

/// What of a sample no gate can be made of.
fn fits(workload: &Workload, api: Api) -> Result<(), Failure> {
    if workload.turns.1 > 1 && api != Api::OpenaiChat {
        return Err(Failure::usage(
            "--from-dataset: its rows are conversations, and --api has to be openai-chat for these",
        )
        .hint("give rows of one turn: `prompt` and `response`, or `input_tokens` and `output_tokens`"));
    }
    match workload.input.max.max(workload.output.max) > LONGEST_TEXT {
        true => Err(Failure::usage("--from-dataset: a row has more than 1,000,000 tokens").hint("leave such rows out")),
        false => Ok(()),
    }
}

/// What no gate can be made of: the soak of an hour has at most a million requests, and fewer than these show no knee.
fn sound(sla: &Sla) -> Result<(), Failure> {
    if !(0.05..=250.0).contains(&sla.rps.0) {
        return Err(Failure::usage(format!("--rps {}: from 0.05 to 250 requests a second are taken here", sla.rps.0))
            .hint("write other rates into the gates by hand"));
    }
    match sla.errors >= 0.0001 && sla.errors < 1.0 {
        true => Ok(()),
        false => Err(Failure::usage("--errors: some requests may fail, and not all: from 0.01 % to below 100 %")),
    }
}

fn built_in() -> Endpoint {
    Endpoint {
        url: None,
        api: Api::OpenaiChat,
        model: None,
        key: None,
        engine: None,
        streams: Some(true),
        usage: Some(true),
        unknown: None,
    }
}

/// Whether there is a person to ask.
struct Asks<'a> {
    person: bool,
    console: &'a Console,
}

impl<'a> Asks<'a> {
    /// A job of CI is never asked, whatever its terminal says.
    fn of(arguments: &Init, console: &'a Console) -> Self {
        let is_terminal = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
        let is_ci = std::env::var_os("CI").is_some_and(|value| !value.is_empty());
        Self { person: is_terminal && !is_ci && !arguments.yes && !arguments.dry_run, console }
    }

    /// An answer that only a person or a flag can give.
    fn required(&self, question: &str, usual: &str, flag: &str) -> Result<String, Failure> {
        if self.person {
            return self.or(question, usual.to_owned());
        }
        Err(Failure::usage(format!("{flag} is missing, and there is nobody to ask"))
            .hint("`--target sim` makes a gate of the built-in engine"))
    }

    /// A limit, or the usual one.
    fn time(&self, question: &str, usual: Nanos) -> Result<Nanos, Failure> {
        loop {
            let answer = self.or(question, Quantity::time(usual))?;
            match time_of(answer) {
                Some(time) => return Ok(time),
                None => self.console.urgent("  that is no limit: a time from 1ms to 1h, such as `800ms`\n"),
            }
        }
    }

    /// An answer, or the usual one.
    fn or<T: FromStr + std::fmt::Display>(&self, question: &str, usual: T) -> Result<T, Failure> {
        if !self.person {
            return Ok(usual);
        }
        loop {
            self.console.urgent(&format!("{question} [{usual}]: "));
            let mut line = String::new();
            let read = std::io::stdin().lock().take(LONGEST).read_line(&mut line);
            if read.map_err(|error| Failure::usage(format!("cannot read the answer: {error}")))? == 0 {
                return Err(Failure::usage("the answers ended; nothing was written"));
            }
            match line.trim() {
                "" => return Ok(usual),
                answer => match answer.parse() {
                    Ok(answer) => return Ok(answer),
                    Err(_) => self.console.urgent(&format!("  that is none: an answer like `{usual}`\n")),
                },
            }
        }
    }
}
