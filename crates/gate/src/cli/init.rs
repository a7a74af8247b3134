//! What may be said of a gate that is to be made.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use gate_init::Kind;
use gate_model::{Api, Nanos, Quantity, Unit};

use super::capacity::{amount, dollars, share};

#[derive(Debug, Args)]
pub(crate) struct Init {
    /// The gate's name, and its files': `gates/NAME.yaml`. Without it that of the workload.
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// The endpoint's URL, such as `http://127.0.0.1:8000/v1`; `sim` is the built-in engine.
    #[arg(long, value_name = "URL")]
    pub(crate) target: Option<String>,
    /// The dialect it speaks.
    #[arg(long, value_name = "API", default_value = "openai-chat", value_parser = api)]
    pub(crate) api: Api,
    /// The model to ask for; without it the first that the endpoint lists.
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// The variable that has the endpoint's key. Only its name is written.
    #[arg(long, value_name = "VARIABLE")]
    pub(crate) key_env: Option<String>,
    /// The kind of work: chat, code, rag or batch.
    #[arg(long, value_name = "KIND")]
    pub(crate) workload: Option<Kind>,
    /// Fit lengths and turns to a sample of real traffic: JSON Lines, a request or conversation a row.
    #[arg(long, value_name = "FILE")]
    pub(crate) from_dataset: Option<PathBuf>,
    /// Requests a second, as usual.
    #[arg(long, value_name = "RATE", value_parser = amount)]
    pub(crate) rps: Option<f64>,
    /// What users are owed: the 95th percentile of the time to the first token, such as `800ms`.
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) ttft_p95: Option<Nanos>,
    /// The same of the time of a token after it, such as `50ms`.
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) tpot_p95: Option<Nanos>,
    /// The share of requests that may fail, such as `5%`.
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub(crate) errors: Option<f64>,
    /// Whose CI runs it; without it the one that is found here.
    #[arg(long, value_name = "FORGE")]
    pub(crate) forge: Option<WhichForge>,
    /// Dollars per million input tokens.
    #[arg(long, value_name = "DOLLARS", value_parser = dollars, requires = "output_price")]
    pub(crate) input_price: Option<f64>,
    /// Dollars per million output tokens.
    #[arg(long, value_name = "DOLLARS", value_parser = dollars, requires = "input_price")]
    pub(crate) output_price: Option<f64>,
    /// How often the gate of pull requests runs in a month.
    #[arg(long, value_name = "N", default_value = "400", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) runs_a_month: u32,
    /// Replace files that are there.
    #[arg(long)]
    pub(crate) force: bool,
    /// Print the files instead of writing them.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Ask nothing, on a terminal either: what is not said takes its default.
    #[arg(short, long)]
    pub(crate) yes: bool,
}

/// Whose CI.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum WhichForge {
    /// GitHub Actions.
    Github,
    /// GitLab CI.
    Gitlab,
    /// No CI file.
    None,
}

fn api(text: &str) -> Result<Api, String> {
    // These need more than a URL and a model.
    const HARDER: [Api; 5] =
        [Api::Custom, Api::OpenaiEmbeddings, Api::BedrockConverse, Api::BedrockInvoke, Api::Triton];
    let easy = || Api::ALL.into_iter().filter(|api| !HARDER.contains(api));
    if HARDER.iter().any(|api| api.name() == text) {
        return Err("its specs are written by hand: docs/dialects.md shows one".to_owned());
    }
    let names: Vec<&str> = easy().map(Api::name).collect();
    easy().find(|api| api.name() == text).ok_or_else(|| format!("it is one of {}", names.join(", ")))
}

/// A quantity as a limit: a time of a millisecond to an hour.
pub(crate) fn time_of(quantity: Quantity) -> Option<Nanos> {
    let time = Nanos(quantity.value.round() as i64);
    let is_limit = quantity.unit == Unit::Time && (Nanos::from_millis(1)..=Nanos::from_secs(3_600)).contains(&time);
    is_limit.then_some(time)
}

fn time(text: &str) -> Result<Nanos, String> {
    let time = text.parse::<Quantity>().ok().and_then(time_of);
    time.ok_or_else(|| "it is a time from 1ms to 1h with its unit, such as `800ms`".to_owned())
}
