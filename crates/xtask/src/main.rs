//! The project's own chores, behind `cargo xtask`.

mod bench;
mod book;
mod docs;
mod engine;
mod fuzz;
mod house;
mod opchar;
mod suite;
mod tool;
mod types;
mod viewers;

use std::process::ExitCode;

use anyhow::{Result, bail};

const USAGE: &str = "\
cargo xtask test                       everything CI runs, installs included
cargo xtask check                      crate directions, file lengths, lints inherited
cargo xtask deny                       licences, bans and sources of the dependencies
cargo xtask bench [FIGURE]             measure the figures of docs/benchmarks.md
cargo xtask opchar [CASE…] [--repetitions N]
                                       simulate the operating characteristics of docs/how-sure.md, minutes long
cargo xtask fuzz [TARGET] [--seconds N] [--keep]
                                       fuzz the decoders, 20 s a target; --keep adds what is found to the kept corpus
cargo xtask docs                       write the schema, the man page, docs/cli.md and docs/json.md from the code
cargo xtask book                       build docs/ as a book, its links checked
cargo xtask engine llama [--port N] [--install-only | --stop]
                                       a real llama.cpp server with a small model
";

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tool::say(&format!("xtask: {error:#}"));
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        ["test"] => suite::run_all(),
        ["check"] => house::check(),
        ["deny"] => suite::deny(),
        ["docs"] => docs::write(),
        ["book"] => book::build(),
        ["bench", options @ ..] => bench::command(options),
        ["opchar", options @ ..] => opchar::command(options),
        ["fuzz", options @ ..] => fuzz::command(options),
        ["engine", "llama", options @ ..] => engine::command(options),
        _ => bail!("unknown command\n\n{USAGE}"),
    }
}
