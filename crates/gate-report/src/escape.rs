//! One function per target, for text that came from outside: a server's message, a name in a spec.

mod markdown;

use std::fmt::Write as _;
use std::iter::Peekable;
use std::str::Chars;

pub use markdown::{markdown, markdown_block, markdown_code, markdown_link};

/// Text for a terminal or a log: one line, without escape sequences, control characters, or characters that reorder text
/// or cannot be seen.
///
/// Line ends and tabs become single blanks, so that no server can add a line to a report. What a CI runner that reads
/// the log would take for a command (`::error::…` at the start of a line, `##[…]` or `##vso[…]` anywhere) is broken by a blank.
#[must_use]
pub fn terminal(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    for symbol in strip_ansi(text).chars() {
        match symbol {
            '\n' | '\r' | '\t' | '\u{2028}' | '\u{2029}' => {
                if !clean.ends_with(' ') {
                    clean.push(' ');
                }
            }
            '\u{fffe}' | '\u{ffff}' => {}
            symbol if symbol.is_control() || deceives(symbol) => {}
            symbol => clean.push(symbol),
        }
    }
    without_commands(clean)
}

fn without_commands(text: String) -> String {
    if !text.contains("::") && !text.contains("##") {
        return text;
    }
    let words = text.split(' ').map(|word| match word.strip_prefix("::") {
        Some(rest) if rest.starts_with(|first: char| first.is_ascii_alphabetic()) => format!(": :{rest}"),
        _ => word.to_owned(),
    });
    let words = words.collect::<Vec<_>>().join(" ");
    let mut pieces: Vec<String> = words.split('[').map(str::to_owned).collect();
    let last = pieces.pop();
    let broken = pieces.into_iter().map(|piece| {
        // `##[error]` of one runner, `##vso[task.complete]` and `##teamcity[…]` of others.
        let before = piece.trim_end_matches(|symbol: char| symbol.is_ascii_alphanumeric());
        let word = piece.get(before.len()..).unwrap_or_default();
        if before.ends_with("##") { format!("{before} {word}[") } else { format!("{piece}[") }
    });
    broken.chain(last).collect()
}

/// Text for any place in an XML 1.0 file, before the writer escapes markup: without ANSI sequences and characters that
/// reorder text or cannot be seen, what XML forbids as U+FFFD, and `]]>` broken so that it cannot end a CDATA section.
#[must_use]
pub fn xml_text(text: &str) -> String {
    let seen = strip_ansi(text);
    let seen = seen.chars().filter(|symbol| !deceives(*symbol));
    let clean: String = seen.map(|symbol| if in_xml(symbol) { symbol } else { '\u{fffd}' }).collect();
    clean.replace("]]>", "]] >")
}

/// Text as the message of a GitHub workflow command.
#[must_use]
pub fn workflow_message(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// Text as a property of a GitHub workflow command, such as its file or title.
#[must_use]
pub fn workflow_property(text: &str) -> String {
    workflow_message(text).replace(':', "%3A").replace(',', "%2C")
}

/// Text as the value of an OpenMetrics label, between its quotes.
#[must_use]
pub fn label_value(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// Text as one word of a POSIX shell's command line.
#[must_use]
pub fn shell_word(text: &str) -> String {
    let is_plain = |symbol: char| symbol.is_ascii_alphanumeric() || "_@%+=:,./-".contains(symbol);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// Whether the text is an address of `http` or `https` with a host.
pub(crate) fn is_web(text: &str) -> bool {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    rest.is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_alphanumeric() || first == '['))
}

/// An address in which all that is not of its own syntax is `%XX`: fit for a link's target in Markdown between `<` and
/// `>`, and for JSON.
pub(crate) fn web_address(text: &str) -> String {
    let mut address = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~:/?#[]@!$&'*+,;=%".contains(&byte) {
            address.push(char::from(byte));
        } else {
            let _ = write!(address, "%{byte:02X}");
        }
    }
    address
}

/// Whether XML 1.0 allows the character; C1 controls are allowed but discouraged, and left out here.
fn in_xml(symbol: char) -> bool {
    match symbol {
        '\t' | '\n' | '\r' => true,
        '\u{fffe}' | '\u{ffff}' => false,
        symbol => !symbol.is_control(),
    }
}

/// Whether the character changes the order of the text around it, or is there without being seen, so that two names that
/// differ look alike: what Unicode lets every font ignore (`Default_Ignorable_Code_Point`), the marks of direction, and
/// those of annotations.
pub(crate) fn deceives(symbol: char) -> bool {
    matches!(
        symbol,
        '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'
            | '\u{1160}'
            | '\u{17b4}'
            | '\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

/// The text without ANSI escape sequences. An unfinished one loses its introducer only, so that nothing is hidden.
pub(crate) fn strip_ansi(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut symbols = text.chars().peekable();
    while let Some(symbol) = symbols.next() {
        match symbol {
            '\u{1b}' => match symbols.peek() {
                Some('[') => {
                    symbols.next();
                    skip_control_sequence(&mut symbols);
                }
                Some(']' | 'P' | 'X' | '^' | '_') => {
                    symbols.next();
                    skip_control_string(&mut symbols);
                }
                _ => {}
            },
            '\u{9b}' => skip_control_sequence(&mut symbols),
            symbol => clean.push(symbol),
        }
    }
    clean
}

/// Skips parameters and the final character of `ESC [ …`.
fn skip_control_sequence(symbols: &mut Peekable<Chars<'_>>) {
    while symbols.next_if(|symbol| matches!(symbol, ' '..='?')).is_some() {}
    symbols.next_if(|symbol| matches!(symbol, '@'..='~'));
}

/// Skips `ESC ] …` up to BEL or `ESC \`, if either comes.
fn skip_control_string(symbols: &mut Peekable<Chars<'_>>) {
    let mut ahead = symbols.clone();
    while let Some(symbol) = ahead.next() {
        if symbol == '\u{7}' || (symbol == '\u{1b}' && ahead.next_if_eq(&'\\').is_some()) {
            *symbols = ahead;
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_terminal_gets_one_harmless_line() {
        for (hostile, clean) in [
            ("\u{1b}[31mred\u{1b}[0m", "red"),
            ("\u{1b}]0;title\u{7}rest", "rest"),
            ("\u{1b}]8;;http://evil\u{1b}\\link", "link"),
            ("\u{1b}]unfinished", "unfinished"),
            ("\u{9b}2Jcleared", "cleared"),
            ("\u{1b}cgone", "cgone"),
            ("a\r\n\tb\u{8}\u{0}", "a b"),
            ("\u{202e}gnp.exe", "gnp.exe"),
            ("a\u{200b}d\u{ad}m\u{e0061}in\u{61c}\u{feff}", "admin"),
            ("é 漢 — fine", "é 漢 — fine"),
            ("##[error] ##vso[task.complete] ## a ##b", "## [error] ## vso[task.complete] ## a ##b"),
            ("###[error]x [y] ##[##[", "### [error]x [y] ## [## ["),
        ] {
            assert_eq!(terminal(hostile), clean, "{hostile:?}");
        }
    }

    #[test]
    fn a_workflow_command_ends_with_its_line() {
        assert_eq!(workflow_message("100%: a,\r\n::error::b"), "100%25: a,%0D%0A::error::b");
        assert_eq!(workflow_property("a:b,c%\n"), "a%3Ab%2Cc%25%0A");
    }

    #[test]
    fn labels_and_words_end_where_they_should() {
        assert_eq!(label_value("a\"b\\c\nd"), "a\\\"b\\\\c\\nd");
        assert_eq!(shell_word("load.rps=2"), "load.rps=2");
        assert_eq!(shell_word("it's $(x)"), "'it'\\''s $(x)'");
        assert_eq!(shell_word(""), "''");
    }

    #[test]
    fn xml_gets_only_what_it_allows() {
        for (hostile, clean) in [
            ("\u{1b}[31mred\u{1b}[0m", "red"),
            ("a\u{0}b\u{ffff}c\u{85}", "a\u{fffd}b\u{fffd}c\u{fffd}"),
            ("x]]>y]]]>", "x]] >y]]] >"),
            ("]\u{1b}[0m]>", "]] >"),
            ("<&\"'>\n\t", "<&\"'>\n\t"),
            ("a\u{202e}b\u{200d}", "ab"),
        ] {
            assert_eq!(xml_text(hostile), clean, "{hostile:?}");
        }
    }
}
