//! Lines that fit 80 columns.

use gate_model::Quantity;

/// The width of every text for a terminal.
pub(crate) const WIDTH: usize = 80;

/// A blank at which no line is broken: it joins a name and its value.
pub(crate) const JOINT: char = '\u{a0}';

/// Units that stay on the line of their number.
const UNITS: [&str; 8] = ["ns", "µs", "ms", "s", "min", "%", "pp", "tok/s"];

/// The text broken at blanks into lines of at most [`WIDTH`] characters, the first after `first`, the others after
/// as many blanks as `indent`. A word longer than a line is cut, so that no text is ever wider.
pub(crate) fn wrap(first: &str, indent: usize, text: &str) -> String {
    let mut lines = String::new();
    let mut line = first.to_owned();
    let mut width = line.chars().count();
    let mut fresh = true;
    for word in words(text) {
        let mut word: Vec<char> = word.chars().collect();
        while !word.is_empty() {
            let needed = word.len() + usize::from(!fresh);
            if width + needed <= WIDTH {
                if !fresh {
                    line.push(' ');
                }
                line.extend(&word);
                width += needed;
                fresh = false;
                break;
            }
            if fresh {
                // At least one character a line, however deep the indent.
                let rest = word.split_off((WIDTH.saturating_sub(width)).clamp(1, word.len()));
                line.extend(&word);
                word = rest;
            }
            lines.push_str(line.trim_end());
            lines.push('\n');
            line = " ".repeat(indent);
            width = indent;
            fresh = true;
        }
    }
    if !fresh || lines.is_empty() {
        lines.push_str(line.trim_end());
        lines.push('\n');
    }
    lines
}

/// The words of a text; a number and its unit are one, and so are `p = 0.05` and what a [`JOINT`] joins.
fn words(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    for word in text.split(|symbol: char| symbol.is_whitespace() && symbol != JOINT).filter(|word| !word.is_empty()) {
        let word = &word.replace(JOINT, " ");
        let is_unit = UNITS.contains(&word.trim_end_matches(|symbol: char| ",;:.)".contains(symbol)));
        match words.last_mut() {
            Some(last)
                if (is_unit && last.ends_with(|symbol: char| symbol.is_ascii_digit()))
                    || (last == "p" && ["=", "<"].contains(&word.as_str()))
                    || ["p =", "p <"].contains(&last.as_str()) =>
            {
                last.push(' ');
                last.push_str(word);
            }
            _ => words.push(word.to_owned()),
        }
    }
    words
}

/// The text, cut to at most `width` characters; a cut is shown by `…`.
pub(crate) fn clip(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let mut clipped: String = text.chars().take(width.saturating_sub(1)).collect();
    clipped.push('…');
    clipped
}

/// `1 request`, `2,000 requests`.
pub(crate) fn counted(count: usize, noun: &str) -> String {
    if count == 1 { format!("1 {noun}") } else { format!("{} {noun}s", Quantity::count(count as f64)) }
}

/// `30`, `30 and 50`, `30, 50 and 100`, with the last joined by `word`.
pub(crate) fn listed(items: &[String], word: &str) -> String {
    match items {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., last] => format!("{} {word} {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_is_wider_than_80() {
        let text = format!("some words and {} then more words {}", "x".repeat(200), "short ".repeat(40));
        for indent in [0, 2, 12] {
            let wrapped = wrap("first: ", indent, &text);
            assert!(wrapped.lines().all(|line| line.chars().count() <= WIDTH), "{wrapped}");
            let squeeze = |text: &str| text.replace(char::is_whitespace, "");
            assert_eq!(squeeze(&wrapped), squeeze(&format!("first: {text}")));
        }
        let figures = format!("{} 8.13 ms, then 5 s more", "x".repeat(75));
        assert_eq!(wrap("", 0, &figures).lines().last(), Some("8.13 ms, then 5 s more"));
        let figure = format!("{} ttft.p50{JOINT}8.13 ms", "x".repeat(65));
        assert_eq!(wrap("", 0, &figure).lines().last(), Some("ttft.p50 8.13 ms"));
        let p = format!("{} p < 0.0001, then more", "x".repeat(74));
        assert_eq!(wrap("", 0, &p).lines().last(), Some("p < 0.0001, then more"));
        assert_eq!(wrap("a", 0, ""), "a\n");
        assert_eq!(wrap("", 2, "one two"), "one two\n");
    }

    #[test]
    fn words_for_numbers_of_things() {
        let items = |count: usize| (0..count).map(|item| item.to_string()).collect::<Vec<_>>();
        assert_eq!(listed(&items(0), "and"), "");
        assert_eq!(listed(&items(1), "and"), "0");
        assert_eq!(listed(&items(3), "or"), "0, 1 or 2");
        assert_eq!(counted(1, "error"), "1 error");
        assert_eq!(counted(0, "error"), "0 errors");
        assert_eq!(counted(12_345, "error"), "12,345 errors");
        assert_eq!(clip("abcdef", 4), "abc…");
    }
}
