//! `gate`: a CI/CD performance gate for LLM inference endpoints. This file only wires.

mod apart;
mod baselines;
mod cli;
mod commands;
mod console;
mod failure;
mod files;
mod inputs;
mod journals;
mod live;
mod measure;
mod publish;
mod reports;
mod shard;
mod specs;
mod stop;
mod surroundings;
mod trust;
mod verdicts;

use std::panic::{AssertUnwindSafe, catch_unwind};

use gate_model::ExitCode;

use crate::cli::{Cli, Command};
use crate::console::Console;
use crate::failure::Failure;

fn main() -> std::process::ExitCode {
    let exit = match cli::parse(std::env::args_os()) {
        Ok(cli) => run(&cli),
        Err(error) => {
            // Help and the version go to stdout and are no error.
            drop(error.print());
            if error.use_stderr() { ExitCode::Usage } else { ExitCode::Passed }
        }
    };
    std::process::ExitCode::from(exit.code())
}

fn run(cli: &Cli) -> ExitCode {
    let console = Console::new(cli);
    let secrets = console.secrets.clone();
    std::panic::set_hook(Box::new(move |panic| tracing::error!("{}", secrets.of_panic(panic))));
    let outcome = catch_unwind(AssertUnwindSafe(|| command(cli, &console)));
    match outcome {
        Ok(Ok(exit)) => exit,
        Ok(Err(failure)) => {
            console.failure(&failure);
            failure.exit
        }
        Err(_) => ExitCode::Internal,
    }
}

fn command(cli: &Cli, console: &Console) -> Result<ExitCode, Failure> {
    match &cli.command {
        Command::Init(arguments) => commands::init::init(arguments, console),
        Command::Check(arguments) => commands::check::check(arguments, console),
        Command::Plan(arguments) => commands::plan::plan(arguments, console),
        Command::Run(arguments) => commands::run::run(arguments, console),
        Command::Judge(arguments) => commands::judge::judge(arguments, console),
        Command::Report(arguments) => commands::report::report(arguments, console),
        Command::Publish(arguments) => commands::publish::publish(arguments, console),
        Command::Hook(arguments) => commands::hook::hook(arguments, console),
        Command::Baseline(arguments) => commands::baseline::baseline(arguments, console),
        Command::Calibrate(arguments) => commands::calibrate::calibrate(arguments, console),
        Command::Capacity(arguments) => commands::capacity::capacity(arguments, console),
        Command::Doctor(arguments) => commands::doctor::doctor(arguments, console),
        Command::Explain(arguments) => commands::explain::explain(arguments, console),
        Command::Decode(arguments) => commands::decode::decode(arguments, console),
        Command::Schema => commands::schema::schema(console),
        Command::Completions(arguments) => commands::completions::completions(arguments, console),
        Command::Sim(arguments) => commands::sim::sim(arguments, console),
    }
}
