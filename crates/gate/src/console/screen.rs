//! stderr, with a block of lines at its end that is drawn again and again. Whatever else is written goes above it.
//!
//! The cursor rests below the block, and nothing of the terminal's state is changed: a process that is killed leaves
//! nothing to restore.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use gate_report::live_columns;

/// How many columns and rows a terminal has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    pub(super) columns: usize,
    pub(super) rows: usize,
}

impl Size {
    /// That of the terminal behind stderr.
    pub(super) fn of_stderr() -> Self {
        let asked = rustix::termios::tcgetwinsize(io::stderr()).ok();
        let known = |count: u16| Some(usize::from(count)).filter(|count| *count > 0);
        let named = || std::env::var("COLUMNS").ok()?.parse().ok().filter(|columns| *columns > 0);
        let columns = asked.and_then(|size| known(size.ws_col)).or_else(named).unwrap_or(80);
        Self { columns, rows: asked.and_then(|size| known(size.ws_row)).unwrap_or(24) }
    }
}

/// stderr, shared with the log.
#[derive(Clone, Default)]
pub(super) struct Screen(Arc<Mutex<Vec<String>>>);

impl Screen {
    /// Writes a text, above the block where there is one.
    pub(super) fn write(&self, text: &str) {
        self.change(|drawn| (text, drawn.clone()));
    }

    /// Draws the block, in place of the one that is there.
    pub(super) fn draw(&self, lines: Vec<String>) {
        self.change(|_| ("", lines));
    }

    /// Removes the block.
    pub(super) fn undraw(&self) {
        self.change(|_| ("", Vec::new()));
    }

    fn change<'t>(&self, change: impl FnOnce(&Vec<String>) -> (&'t str, Vec<String>)) {
        let mut drawn = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (above, lines) = change(&drawn);
        if above.is_empty() && lines == *drawn && lines.is_empty() {
            return;
        }
        let rows = if drawn.is_empty() { 0 } else { rows(&drawn, Size::of_stderr().columns, does_rewrap()) };
        // Nobody is there to hear that stderr is closed.
        drop(io::stderr().lock().write_all(redrawn(rows, drawn.len(), above, &lines).as_bytes()));
        *drawn = lines;
    }
}

/// How many rows lines take that were drawn at any width.
fn rows(lines: &[String], columns: usize, does_rewrap: bool) -> usize {
    let of = |line: &String| if does_rewrap { live_columns(line).div_ceil(columns.max(1)).max(1) } else { 1 };
    lines.iter().map(of).sum()
}

/// Whether the terminal breaks lines anew when it becomes narrower, as most do; some cut them instead.
fn does_rewrap() -> bool {
    let is = |name: &str| std::env::var_os(name).is_some();
    let term = std::env::var("TERM").unwrap_or_default();
    let cuts = is("XTERM_VERSION") || ["linux", "rxvt", "vt"].iter().any(|kind| term.starts_with(kind));
    is("TMUX") || !cuts
}

/// What to write so that a text stands above the block, where the last one had so many lines and now takes so many rows.
fn redrawn(rows: usize, lines_before: usize, above: &str, lines: &[String]) -> String {
    if rows == 0 && lines.is_empty() {
        return above.to_owned();
    }
    // The terminal shows all of it at once.
    let mut text = "\u{1b}[?2026h\r".to_owned();
    if rows > 0 {
        text += &format!("\u{1b}[{rows}A");
    }
    // Lines of the same rows are written over one another: nothing is ever blank in between. Others are erased one by
    // one: a terminal that is told to erase all from its first row on keeps that in its history.
    if rows > 0 && (!above.is_empty() || rows != lines_before || lines.len() != lines_before) {
        text += &format!("{}\u{1b}[2K\u{1b}[{rows}A", "\u{1b}[2K\u{1b}[B".repeat(rows));
    }
    text += above;
    if !above.is_empty() && !above.ends_with('\n') {
        text.push('\n');
    }
    for line in lines {
        text += &format!("{line}\u{1b}[K\n");
    }
    let below = if lines.is_empty() { "" } else { "\u{1b}[J" };
    text + below + "\u{1b}[?2026l"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(widths: &[usize]) -> Vec<String> {
        widths.iter().map(|width| "x".repeat(*width)).collect()
    }

    #[test]
    fn a_text_alone_is_written_as_it_is() {
        assert_eq!(redrawn(0, 0, "a line\n", &[]), "a line\n");
    }

    #[test]
    fn lines_that_the_terminal_broke_anew_are_reckoned() {
        let drawn = lines(&[100, 60, 61, 0]);
        assert_eq!(rows(&drawn, 100, true), 4);
        assert_eq!(rows(&drawn, 60, true), 6);
        assert_eq!(rows(&drawn, 60, false), 4, "a terminal that cuts lines");
        assert_eq!(rows(&["\u{1b}[32m━━━━\u{1b}[0m".to_owned()], 4, true), 1, "colours take no room");
    }

    #[test]
    fn a_block_is_written_over_the_last_one() {
        let block = lines(&[2, 3]);
        let [begin, end] = ["\u{1b}[?2026h\r", "\u{1b}[?2026l"];
        let drawn = "xx\u{1b}[K\nxxx\u{1b}[K\n\u{1b}[J";
        assert_eq!(redrawn(0, 0, "", &block), format!("{begin}{drawn}{end}"));
        assert_eq!(redrawn(2, 2, "", &block), format!("{begin}\u{1b}[2A{drawn}{end}"));
        let erased = "\u{1b}[2A\u{1b}[2K\u{1b}[B\u{1b}[2K\u{1b}[B\u{1b}[2K\u{1b}[2A";
        assert_eq!(redrawn(2, 2, "", &[]), format!("{begin}{erased}{end}"));
    }

    #[test]
    fn what_is_printed_meanwhile_stands_above() {
        let text = redrawn(1, 1, "warning: late", &lines(&[2]));
        let erased = "\u{1b}[1A\u{1b}[2K\u{1b}[B\u{1b}[2K\u{1b}[1A";
        assert_eq!(text, format!("\u{1b}[?2026h\r{erased}warning: late\nxx\u{1b}[K\n\u{1b}[J\u{1b}[?2026l"));
    }
}
