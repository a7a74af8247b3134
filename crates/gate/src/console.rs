//! What leaves the process: stdout for data, stderr for people, both without secrets.

mod screen;

use std::io::{self, IsTerminal, Write};
use std::sync::{Arc, PoisonError, RwLock};

use gate_model::{Redactor, Secret};
use gate_report::{LiveBlock, Style};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::cli::Cli;
use crate::failure::Failure;
use screen::{Screen, Size};

/// The secrets known so far, shared with the log.
#[derive(Clone, Default)]
pub(crate) struct Secrets(Arc<RwLock<Redactor>>);

impl Secrets {
    /// Takes more secrets into custody.
    pub(crate) fn add(&self, secrets: &[Secret]) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).add(secrets);
    }

    /// The filter as it stands.
    pub(crate) fn redactor(&self) -> Redactor {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What a panic says, without any of them: a person's report of it may go anywhere.
    pub(crate) fn of_panic(&self, panic: &std::panic::PanicHookInfo<'_>) -> String {
        format!("internal error, please report it: {}", self.redact(&panic.to_string()))
    }

    /// The text without any of them.
    pub(crate) fn redact(&self, text: &str) -> String {
        self.0.read().unwrap_or_else(PoisonError::into_inner).redact(text).into_owned()
    }

    /// A value without any of them in its texts: before it is rendered, since escaping changes how a secret looks.
    pub(crate) fn redacted<T: Serialize + DeserializeOwned>(&self, value: T) -> T {
        let Ok(mut texts) = serde_json::to_value(&value) else { return value };
        self.redactor().redact_json(&mut texts);
        // A secret that is also a word of the format would break it; what is written is redacted once more in any case.
        serde_json::from_value(texts).unwrap_or(value)
    }
}

/// Both streams.
pub(crate) struct Console {
    pub(crate) style: Style,
    pub(crate) secrets: Secrets,
    quiet: bool,
    screen: Screen,
    /// Whether stderr is a terminal that can be drawn on.
    is_terminal: bool,
}

impl Console {
    /// As the flags, the environment and the terminal say.
    pub(crate) fn new(cli: &Cli) -> Self {
        let no_color = cli.no_color || std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let is_terminal = io::stderr().is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb");
        let style = if no_color || !is_terminal { Style::Plain } else { Style::Colour };
        let secrets = Secrets::default();
        let console = Self { style, secrets, quiet: cli.quiet, screen: Screen::default(), is_terminal };
        console.start_log(cli.verbose);
        console
    }

    /// The same that says nothing to people but what is urgent.
    pub(crate) fn silent(&self) -> Self {
        Self { secrets: self.secrets.clone(), screen: self.screen.clone(), quiet: true, ..*self }
    }

    /// Text for people, which `--quiet` silences.
    pub(crate) fn people(&self, text: &str) {
        if !self.quiet {
            self.urgent(text);
        }
    }

    /// Text for people that is never silenced.
    pub(crate) fn urgent(&self, text: &str) {
        self.screen.write(&self.secrets.redact(text));
    }

    /// Draws the live block below all else, in place of the last one.
    pub(crate) fn draw(&self, block: &LiveBlock) {
        let Size { columns, rows } = Size::of_stderr();
        let lines = gate_report::live_block(block, columns, rows, self.style);
        self.screen.draw(lines.iter().map(|line| self.secrets.redact(line)).collect());
    }

    /// Removes the live block.
    pub(crate) fn undraw(&self) {
        self.screen.undraw();
    }

    /// Data, on stdout. A reader that has gone away is no fault.
    pub(crate) fn data(&self, text: &str) -> Result<(), Failure> {
        let mut stdout = io::stdout().lock();
        let written = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
        match written {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
                Err(Failure::usage(format!("cannot write to stdout: {error}")))
            }
            _ => Ok(()),
        }
    }

    /// Whether a live block can be drawn.
    pub(crate) fn is_live(&self) -> bool {
        !self.quiet && self.is_terminal
    }

    /// Says why a command ended without a verdict.
    pub(crate) fn failure(&self, failure: &Failure) {
        self.urgent(&told("error", failure));
    }

    /// Says what went wrong and costs nothing.
    pub(crate) fn warning(&self, failure: &Failure) {
        self.people(&told("warning", failure));
    }

    fn start_log(&self, verbosity: u8) {
        let level = match verbosity {
            0 => tracing::level_filters::LevelFilter::WARN,
            1 => tracing::level_filters::LevelFilter::INFO,
            _ => tracing::level_filters::LevelFilter::TRACE,
        };
        let (secrets, screen) = (self.secrets.clone(), self.screen.clone());
        // A log that was already started (by a test in the same process) stays as it is.
        drop(
            tracing_subscriber::fmt()
                .with_max_level(level)
                .with_ansi(false)
                .with_writer(move || RedactedLine {
                    secrets: secrets.clone(),
                    screen: screen.clone(),
                    line: Vec::new(),
                })
                .try_init(),
        );
    }
}

fn told(word: &str, failure: &Failure) -> String {
    let hint = failure.hint.as_ref().map(|hint| format!("  hint: {hint}\n")).unwrap_or_default();
    format!("{word}: {}\n{hint}", gate_report::escape::terminal(&failure.message))
}

/// One log line on its way to stderr.
struct RedactedLine {
    secrets: Secrets,
    screen: Screen,
    line: Vec<u8>,
}

impl Write for RedactedLine {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.line.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for RedactedLine {
    fn drop(&mut self) {
        // Whatever a server's words are in it, it stays one line and is no command to a CI runner.
        let line = gate_report::escape::terminal(String::from_utf8_lossy(&self.line).trim_end());
        self.screen.write(&format!("{}\n", self.secrets.redact(&line)));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[test]
    fn a_panic_tells_no_secret() {
        let secrets = Secrets::default();
        secrets.add(&[Secret::new("sk-planted-secret")]);
        let said = Arc::new(Mutex::new(String::new()));
        let (kept, custodian) = (Arc::clone(&said), secrets.clone());
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| *kept.lock().unwrap() = custodian.of_panic(panic)));
        let ended = std::panic::catch_unwind(|| panic!("the key is sk-planted-secret"));
        std::panic::set_hook(before);
        assert!(ended.is_err());
        let said = said.lock().unwrap().clone();
        assert!(said.contains("the key is ***") && !said.contains("planted"), "{said}");
    }
}
