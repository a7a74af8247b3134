//! Text for GitHub's and GitLab's Markdown.

use std::fmt::Write as _;

use super::terminal;

/// Nothing to see, but no mention, reference or link either: those are found in the rendered text, where an entity
/// is a character like any other.
const BREAK: &str = "&#8203;";

/// Text inside a paragraph, a list item or a table's cell: one line, in which nothing is markup, a mention, a link or
/// the end of the cell. What stands between a pair of backticks becomes a code span, the one markup a sentence has.
#[must_use]
pub fn markdown(text: &str) -> String {
    let line = terminal(text);
    let mut pieces = line.trim().split('`').enumerate().peekable();
    let mut escaped = String::with_capacity(line.len());
    while let Some((number, piece)) = pieces.next() {
        let is_open = number % 2 == 1;
        match (is_open, is_open && pieces.peek().is_some()) {
            (true, true) if piece.is_empty() => escaped.push_str("\\`\\`"),
            (true, true) => {
                // Two code spans in a row would be one.
                if escaped.ends_with('`') {
                    escaped.push_str(BREAK);
                }
                escaped.push_str(&markdown_code(piece));
            }
            (true, false) => {
                escaped.push_str("\\`");
                prose(piece, &mut escaped);
            }
            (false, _) => prose(piece, &mut escaped),
        }
    }
    escaped
}

/// Text as a code span, fit for a table's cell; nothing for an empty text. A pipe stands between two spans: within
/// one it would have to be escaped in a table, and must not be elsewhere.
#[must_use]
pub fn markdown_code(text: &str) -> String {
    let line = verbatim(text);
    let spans = line.split('|').map(|part| {
        if part.is_empty() {
            return String::new();
        }
        let fence = "`".repeat(longest_run(part) + 1);
        let touches = part.starts_with('`') || part.ends_with('`') || (part.starts_with(' ') && part.ends_with(' '));
        let pad = if touches { " " } else { "" };
        format!("{fence}{pad}{part}{pad}{fence}")
    });
    spans.collect::<Vec<_>>().join("\\|")
}

/// Text as a fenced block, with the lines it has.
#[must_use]
pub fn markdown_block(text: &str) -> String {
    let lines = text.lines().map(verbatim).collect::<Vec<_>>().join("\n");
    let fence = "`".repeat(longest_run(&lines).max(2) + 1);
    format!("{fence}text\n{lines}\n{fence}")
}

/// One line of code. Nothing in it is markup, but whoever looks for a hidden comment in the source must not find one.
fn verbatim(line: &str) -> String {
    terminal(line).replace("<!--", "<!\u{200b}--")
}

fn longest_run(text: &str) -> usize {
    text.split(|symbol| symbol != '`').map(str::len).max().unwrap_or(0)
}

/// Writes text without backticks so that none of it is markup.
fn prose(text: &str, escaped: &mut String) {
    let mut before = None;
    let mut symbols = text.chars().peekable();
    while let Some(symbol) = symbols.next() {
        match symbol {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            // Mathematics.
            '$' => escaped.push_str("&#36;"),
            // `@name`, `#12`, `# heading`.
            '@' | '#' => {
                escaped.push(symbol);
                escaped.push_str(BREAK);
            }
            // `http://` and `www.`.
            ':' if symbols.peek() == Some(&'/') => {
                let _ = write!(escaped, ":{BREAK}");
            }
            '.' if before.is_some_and(|before: char| before.eq_ignore_ascii_case(&'w')) => {
                let _ = write!(escaped, "{BREAK}.");
            }
            // `- item`, `+ item`, `1. item`, `1) item`, at the start of a line.
            '-' | '+' | '=' if before.is_none() => {
                escaped.push('\\');
                escaped.push(symbol);
            }
            '.' | ')'
                if symbols.peek().is_none_or(|next| *next == ' ')
                    && !escaped.is_empty()
                    && escaped.chars().all(|digit| digit.is_ascii_digit()) =>
            {
                escaped.push('\\');
                escaped.push(symbol);
            }
            '\\' | '*' | '_' | '[' | ']' | '|' | '~' | '!' => {
                escaped.push('\\');
                escaped.push(symbol);
            }
            symbol => escaped.push(symbol),
        }
        before = Some(symbol);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_text_is_markup() {
        for (hostile, clean) in [
            ("plain, 12 ms", "plain, 12 ms"),
            ("a|b", "a\\|b"),
            ("a\\|b", "a\\\\\\|b"),
            ("**a** _b_ ~~c~~", "\\*\\*a\\*\\* \\_b\\_ \\~\\~c\\~\\~"),
            ("<img src=x>&lt;", "&lt;img src=x&gt;&amp;lt;"),
            ("@octocat fixes #12", "@&#8203;octocat fixes #&#8203;12"),
            ("[x](https://e.org) ![y](z)", "\\[x\\](https:&#8203;//e.org) \\!\\[y\\](z)"),
            ("www.e.org", "www&#8203;.e.org"),
            ("a\n\n# heading\n- item", "a # heading - item".replace('#', "#&#8203;").as_str()),
            ("- item", "\\- item"),
            ("1. item", "1\\. item"),
            ("1.5 s of 2.5 s", "1.5 s of 2.5 s"),
            ("$x$", "&#36;x&#36;"),
        ] {
            assert_eq!(markdown(hostile), clean, "{hostile:?}");
        }
    }

    #[test]
    fn backticks_in_pairs_are_code() {
        for (text, clean) in [
            ("raise `load.rps`, or not", "raise `load.rps`, or not"),
            ("`a``b`", "`a`&#8203;`b`"),
            ("one ` alone_", "one \\` alone\\_"),
            ("```", "\\`\\`\\`"),
            ("`<b>` `a|b`", "`<b>` `a`\\|`b`"),
        ] {
            assert_eq!(markdown(text), clean, "{text:?}");
        }
    }

    #[test]
    fn code_ends_where_its_text_does() {
        for (text, clean) in [
            ("ttft.p95 < 800ms", "`ttft.p95 < 800ms`"),
            ("a`b", "``a`b``"),
            ("`", "`` ` ``"),
            ("a||b", "`a`\\|\\|`b`"),
            ("", ""),
        ] {
            assert_eq!(markdown_code(text), clean, "{text:?}");
        }
        assert_eq!(markdown_block("a ```` b\nc"), "`````text\na ```` b\nc\n`````");
    }
}
