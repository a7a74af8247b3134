//! `gate completions`: what makes a shell or `man` know the command line.

use clap::CommandFactory;
use clap_complete::{Shell, generate};
use gate_model::ExitCode;

use crate::cli::{Cli, Completions, Script};
use crate::console::Console;
use crate::failure::Failure;

pub(crate) fn completions(arguments: &Completions, console: &Console) -> Result<ExitCode, Failure> {
    let mut command = Cli::command();
    let mut text = Vec::new();
    let shell = match arguments.shell {
        Script::Bash => Shell::Bash,
        Script::Elvish => Shell::Elvish,
        Script::Fish => Shell::Fish,
        Script::Powershell => Shell::PowerShell,
        Script::Zsh => Shell::Zsh,
        Script::Man => return man(command, console),
    };
    generate(shell, &mut command, "gate", &mut text);
    console.data(&String::from_utf8_lossy(&text))?;
    Ok(ExitCode::Passed)
}

/// One page: `gate` itself, then each command.
fn man(mut command: clap::Command, console: &Console) -> Result<ExitCode, Failure> {
    command.build();
    let mut text = Vec::new();
    let mut render = |page: clap_mangen::Man| page.render(&mut text);
    let subcommands = command.get_subcommands().filter(|one| one.get_name() != "help").cloned();
    let pages = std::iter::once(command.clone()).chain(subcommands);
    for page in pages {
        render(clap_mangen::Man::new(page)).map_err(|error| Failure::internal(format!("cannot write: {error}")))?;
    }
    console.data(&String::from_utf8_lossy(&text))?;
    Ok(ExitCode::Passed)
}
