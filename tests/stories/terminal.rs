//! The live view as a person sees it, in tmux: steady, of the terminal's width, and gone without a trace.
//!
//! Where there is no tmux these say so and pass, unless `GATE_TMUX=required`.

use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use gate_model::Status;

use crate::harness::{Ended, Place, Sim, binary, quick_spec, wait_until};

/// What stands only in a live block.
const OF_BLOCK: [&str; 6] = ["━", "─", "╍", "in flight", "warming up", "starting"];

/// A shell in a terminal of its own.
struct Terminal {
    socket: String,
}

impl Terminal {
    /// Opens one in the folder; `None` where there is no tmux.
    fn open(place: &Place, columns: u32, environment: &[(&str, &str)]) -> Option<Self> {
        static OPENED: AtomicU32 = AtomicU32::new(0);
        if Command::new("tmux").arg("-V").output().is_err() {
            assert!(std::env::var("GATE_TMUX").map_or(true, |wish| wish != "required"), "tmux is not installed");
            eprintln!("not tested: tmux is not installed");
            return None;
        }
        let number = OPENED.fetch_add(1, Ordering::Relaxed);
        let terminal = Self { socket: format!("gate-{}-{number}", std::process::id()) };
        let mut shell = "exec env -u TMUX".to_owned();
        environment.iter().for_each(|(name, value)| shell += &format!(" {name}={value}"));
        let (columns, folder) = (columns.to_string(), place.path(""));
        let session = ["-f", "/dev/null", "new-session", "-d", "-x", &columns, "-y", "24", "-c"];
        terminal.tmux(&[&session[..], &[folder.to_str().unwrap(), &(shell + " PS1='> ' sh")]].concat());
        wait_until("the shell's prompt", || terminal.is_at_prompt());
        terminal.enter("echo above");
        wait_until("the first command's end", || terminal.history().contains("\nabove\n") && terminal.is_at_prompt());
        Some(terminal)
    }

    fn tmux(&self, words: &[&str]) -> String {
        let mut command = Command::new("tmux");
        command.env_clear().envs(std::env::vars_os().filter(|(name, _)| name == "PATH" || name == "HOME"));
        command.env("LC_ALL", "C.UTF-8").env("TERM", "xterm-256color").env("GATE", binary());
        let ended = Ended::of(command.args(["-u", "-L", &self.socket]).args(words).output().unwrap());
        ended.expect_code(0);
        ended.stdout
    }

    /// Types a line.
    fn enter(&self, line: &str) {
        self.tmux(&["send-keys", "-l", line]);
        self.tmux(&["send-keys", "Enter"]);
    }

    /// What it shows now.
    fn screen(&self) -> Vec<String> {
        self.tmux(&["capture-pane", "-p"]).lines().map(str::to_owned).collect()
    }

    /// All it ever showed that can be scrolled to, with broken lines joined.
    fn history(&self) -> String {
        let text = self.tmux(&["capture-pane", "-p", "-J", "-S", "-"]);
        text.lines().map(|line| line.trim_end().to_owned() + "\n").collect()
    }

    /// Keeps every byte from now on in `raw.txt`.
    fn keep_what_is_written(&self, place: &Place) {
        self.tmux(&["pipe-pane", "-o", &format!("cat > '{}'", place.path("raw.txt").display())]);
    }

    fn is_at_prompt(&self) -> bool {
        self.screen().iter().rev().find(|line| !line.is_empty()).is_some_and(|line| line.trim_end() == ">")
    }

    /// The rows of the block, where requests are in flight.
    fn block(&self) -> Option<Vec<String>> {
        let screen = self.screen();
        let end = screen.iter().position(|row| row.contains(" in flight"))?;
        let start = screen.iter().take(end).rposition(|row| row.starts_with("quick"))?;
        Some(screen[start..=end].to_vec())
    }

    /// Every look of the block until the command has ended.
    fn blocks_until_end(&self) -> Vec<Vec<String>> {
        let mut blocks = Vec::new();
        wait_until("the command's end", || {
            blocks.extend(self.block());
            self.is_at_prompt()
        });
        blocks
    }

    /// Fails where the block left anything, or took anything with it.
    #[track_caller]
    fn expect_no_trace(&self) {
        let history = self.history();
        assert!(!OF_BLOCK.iter().any(|trace| history.contains(trace)), "{history}");
        assert!(history.contains("\nabove\n> "), "{history}");
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        drop(Command::new("tmux").args(["-L", &self.socket, "kill-server"]).output());
    }
}

/// A gate that is judged at 20 and at 60, and whose limit is neither proven at 20 nor seen exceeded, in a few seconds.
fn gate(place: &Place, sim: &Sim) {
    let spec = quick_spec("quick", &sim.url(), 60).replace("iterations: 60", "iterations: 20..60");
    let spec = spec.replace("rps: 40", "rps: 25").replace("[ttft.p50 < 10s]", "[ttft.p50 < 10s, ttft.p50 > 99ms]");
    place.write("gate.yaml", &spec);
}

const ENGINE: &str = "ttft: {mean: 100ms, stddev: 20ms}, tpot: 5ms";

/// The block has four rows at any time: one that was too wide would have taken more.
#[track_caller]
fn expect_steady(blocks: &[Vec<String>]) {
    assert!(!blocks.is_empty(), "the block was never seen");
    for block in blocks {
        assert_eq!(block.len(), 4, "{block:#?}");
        assert!(block[1].contains(" of ") && block[2].contains("ttft p50"), "{block:#?}");
    }
}

#[test]
fn a_terminal_shows_a_steady_block_that_leaves_no_trace() {
    for columns in [80, 60] {
        let place = Place::new();
        let sim = Sim::start(&place, ENGINE);
        gate(&place, &sim);
        let Some(terminal) = Terminal::open(&place, columns, &[]) else { return };
        terminal.enter("\"$GATE\" check gate.yaml -v");
        let blocks = terminal.blocks_until_end();
        expect_steady(&blocks);
        assert!(blocks.iter().all(|block| block.iter().all(|row| row.chars().count() <= columns as usize)));
        assert!(blocks.iter().flatten().any(|row| row.contains("look 1 of 2: at 20") || row.contains("at 60")));
        terminal.expect_no_trace();
        let history = terminal.history();
        assert!(history.contains("gate quick: "), "{history}");
        let logged = history.lines().filter(|line| line.contains("gate::live: look at "));
        let logged: Vec<_> = logged.inspect(|line| assert!(line.starts_with("20"), "{history}")).collect();
        assert!(!logged.is_empty(), "what is logged meanwhile stands above the block: {history}");
    }
}

#[test]
fn a_terminal_that_becomes_narrower_keeps_a_clean_screen() {
    let place = Place::new();
    let sim = Sim::start(&place, ENGINE);
    gate(&place, &sim);
    let Some(terminal) = Terminal::open(&place, 100, &[]) else { return };
    terminal.enter("\"$GATE\" check gate.yaml --set load.iterations=500");
    let is_drawn = || terminal.block().is_some_and(|block| block.len() == 4 && block.concat().contains("tpot"));
    wait_until("the block", is_drawn);
    terminal.tmux(&["resize-window", "-x", "60", "-y", "24"]);
    let redrawn = || terminal.block().is_some_and(|block| block.len() == 4 && !block.concat().contains("tpot"));
    wait_until("the block at its new width", redrawn);
    let mut blocks = Vec::new();
    wait_until("more looks at the block", || {
        blocks.extend(terminal.block());
        blocks.len() >= 20
    });
    expect_steady(&blocks);
    terminal.tmux(&["send-keys", "C-c"]);
    wait_until("the command's end", || terminal.is_at_prompt());
    terminal.expect_no_trace();
}

#[test]
fn without_a_terminal_there_are_plain_lines() {
    let place = Place::new();
    let sim = Sim::start(&place, ENGINE);
    gate(&place, &sim);
    let mut command = place.command(&["check", "gate.yaml"]);
    let ended = Ended::of(command.env("TERM", "xterm-256color").output().unwrap());
    ended.says("quick 0 s: ").says(" of 60 sent, ");
    assert!(!ended.stderr.contains(|symbol: char| symbol.is_control() && symbol != '\n'), "{}", ended.stderr);
    let quiet = Ended::of(place.command(&["check", "gate.yaml", "--quiet"]).output().unwrap());
    assert_eq!(quiet.stderr, "");
    let Some(terminal) = Terminal::open(&place, 80, &[("TERM", "dumb")]) else { return };
    terminal.keep_what_is_written(&place);
    terminal.enter("\"$GATE\" check gate.yaml");
    wait_until("the verdict", || terminal.history().contains("gate quick: ") && terminal.is_at_prompt());
    let history = terminal.history();
    assert!(history.contains("quick 0 s: ") && !history.contains('━'), "{history}");
    assert!(!place.read("raw.txt").contains('\u{1b}'), "{}", place.read("raw.txt"));
}

#[test]
fn no_color_leaves_the_block_and_takes_its_colours() {
    for (environment, is_coloured) in [(&[("NO_COLOR", "1")][..], false), (&[], true)] {
        let place = Place::new();
        let sim = Sim::start(&place, ENGINE);
        gate(&place, &sim);
        let Some(terminal) = Terminal::open(&place, 80, environment) else { return };
        terminal.keep_what_is_written(&place);
        terminal.enter("\"$GATE\" check gate.yaml");
        expect_steady(&terminal.blocks_until_end());
        terminal.expect_no_trace();
        let raw = place.read("raw.txt");
        let mut ends = raw.split("\u{1b}[").skip(1).filter_map(|rest| rest.chars().find(char::is_ascii_alphabetic));
        assert_eq!(ends.any(|end| end == 'm'), is_coloured, "{raw:?}");
        assert!(raw.contains("\u{1b}[?2026h"), "each change is shown at once");
        assert!(!raw.contains("\u{1b}[?25l"), "the cursor is never hidden");
    }
}

#[test]
fn an_interrupt_leaves_the_terminal_as_it_was() {
    let place = Place::new();
    let sim = Sim::start(&place, ENGINE);
    gate(&place, &sim);
    let Some(terminal) = Terminal::open(&place, 80, &[]) else { return };
    terminal.enter("\"$GATE\" check gate.yaml --set load.rps=5");
    wait_until("the block", || terminal.block().is_some());
    terminal.tmux(&["send-keys", "C-c"]);
    wait_until("the command's end", || terminal.is_at_prompt());
    terminal.enter("echo code $?");
    wait_until("the exit code", || terminal.history().contains("\ncode 130\n"));
    terminal.expect_no_trace();
    let history = terminal.history();
    assert!(history.contains("gate quick: INTERRUPTED") && history.contains("\n> echo code"), "{history}");
    assert_eq!(place.verdict("quick").status, Status::Interrupted);
    assert!(place.path(".gate/quick/junit.xml").is_file());
    assert_eq!(terminal.tmux(&["display-message", "-p", "#{cursor_flag}"]).trim(), "1");
    let coloured = terminal.tmux(&["capture-pane", "-p", "-e"]);
    let last = coloured.lines().rev().find(|line| !line.is_empty()).unwrap();
    assert!(!last.contains('\u{1b}') || last.starts_with("\u{1b}[39m") || last.starts_with("\u{1b}[0m"), "{last:?}");
}

#[test]
fn a_person_is_asked_one_question_after_another() {
    let place = Place::new();
    let Some(terminal) = Terminal::open(&place, 80, &[]) else { return };
    terminal.enter("$GATE init --forge none");
    for (question, answer) in [
        ("The endpoint's URL", ""),
        ("The kind of work", "poetry"),
        ("that is none", "rag"),
        ("95 % of first tokens within", "2s"),
        ("for each token after it", "5"),
        ("that is no limit", ""),
        ("Requests a second", ""),
        ("The gate's name", "search"),
    ] {
        wait_until(question, || terminal.screen().iter().any(|line| line.contains(question)));
        terminal.enter(answer);
    }
    wait_until("the files", || terminal.history().contains("Next: gate check gates/search.yaml"));
    let gate = place.read("gates/search.yaml");
    assert!(
        gate.contains("ttft.p95 < 2000ms") && gate.contains("tpot.p95 < 50ms") && gate.contains("rps: 1\n"),
        "{gate}"
    );
}
