//! The comparison as text, at most 80 columns wide.

use super::UNJUDGED;
use super::sides::{Number, Pair, Sides};
use crate::escape;
use crate::layout::{WIDTH, clip, wrap};
use crate::sparkline::READING;
use crate::style::{Style, Tone};
use crate::words::SIMULATED;

/// The widths of the columns after the name.
const VALUE: usize = 14;
const CHANGE: usize = 12;

pub(super) fn text(sides: &Sides, style: Style) -> String {
    let mut text = String::new();
    if sides.simulated {
        text.push_str(&format!("{}\n\n", style.paint(Tone::Doubtful, SIMULATED)));
    }
    let [before, after] = &sides.headings;
    text.push_str(&wrap("before  ", 8, &escape::terminal(before)));
    text.push_str(&wrap("after   ", 8, &escape::terminal(after)));
    text.push_str(&list("What differs beside the numbers, and may be why they do:", &sides.apart, style));
    text.push_str(&numbers(&sides.numbers, style));
    text.push_str(&checks("Checks that ended in another way:", &sides.changed, style));
    text.push_str(&checks("Checks that ended alike:", &sides.alike, style));
    if sides.left_out > 0 {
        text.push_str(&format!("\n{} more lines are left out.\n", sides.left_out));
    }
    text.push_str(&list("What each verdict said itself:", &sides.causes, style));
    if let Some(pictures) = &sides.pictures {
        text.push_str(&format!("\n{}\n{pictures}", style.paint(Tone::Strong, "How the requests are distributed:")));
        text.push_str(&wrap("", 0, READING));
    }
    text.push('\n');
    text.push_str(&wrap("", 0, UNJUDGED));
    text
}

fn list(heading: &str, items: &[String], style: Style) -> String {
    if items.is_empty() {
        return String::new();
    }
    let items: String = items.iter().map(|words| wrap("  - ", 4, &escape::terminal(words))).collect();
    format!("\n{}\n{items}", style.paint(Tone::Strong, heading))
}

/// A line for each number; a name too long for its column has a line of its own.
fn numbers(numbers: &[Number], style: Style) -> String {
    if numbers.is_empty() {
        return String::new();
    }
    let name = WIDTH - 2 * VALUE - CHANGE;
    let line = |label: &str, before: &str, after: &str, change: &str| {
        let start = match label.chars().count() > name {
            true => format!("{}\n{:name$}", clip(label, WIDTH), ""),
            false => format!("{label:<name$}"),
        };
        let line = format!("{start}{before:>VALUE$}{after:>VALUE$}{change:>CHANGE$}");
        line.trim_end().to_owned()
    };
    let head = style.paint(Tone::Faint, &line("number", "before", "after", "change"));
    let lines = numbers.iter().map(|number| {
        let Number { name, before, after, change } = number;
        line(escape::terminal(name).trim_end(), before, after, change) + "\n"
    });
    format!("\n{head}\n{}", lines.collect::<String>())
}

fn checks(heading: &str, pairs: &[Pair], style: Style) -> String {
    if pairs.is_empty() {
        return String::new();
    }
    let lines = pairs.iter().map(|Pair { check, before, after }| {
        let outcome = if before == after { before.clone() } else { format!("{before} → {after}") };
        wrap("  ", 4, &escape::terminal(check)) + &wrap("      ", 6, &escape::terminal(&outcome))
    });
    format!("\n{}\n{}", style.paint(Tone::Strong, heading), lines.collect::<String>())
}
