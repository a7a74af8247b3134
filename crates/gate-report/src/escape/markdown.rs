//! Text for GitHub's and GitLab's Markdown.

use std::fmt::Write as _;

use super::{is_web, terminal, web_address};

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

/// A link to a page of `http` or `https`; `None` where the address is none, or longer than 2,000 characters.
#[must_use]
pub fn markdown_link(label: &str, address: &str) -> Option<String> {
    (is_web(address) && address.len() <= 2_000)
        .then(|| format!("[{}](<{}>)", markdown(label), web_address(address).replace("<!--", "")))
}

/// Text as a fenced block, with the lines it has. None begins with a slash: GitLab would look for a command there.
#[must_use]
pub fn markdown_block(text: &str) -> String {
    let line = |line: &str| {
        let line = verbatim(line);
        if line.starts_with('/') { format!(" {line}") } else { line }
    };
    let lines = text.lines().map(line).collect::<Vec<_>>().join("\n");
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

/// Writes text without backticks so that none of it is markup, nor a reference of GitHub's (`@name`, `#12`, `GH-12`) or
/// GitLab's (`!12`, `$12`, `%12`, `&12`, `~name`, `^alert`, `*iteration`, `[issue:12]`, `{+added+}`).
fn prose(text: &str, escaped: &mut String) {
    let mut before: Option<char> = None;
    let mut symbols = text.chars().peekable();
    while let Some(symbol) = symbols.next() {
        let next = symbols.peek().copied();
        match symbol {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            // Mathematics.
            '$' => escaped.push_str("&#36;"),
            // GitLab's `/close`, at the start of a line.
            '/' if before.is_none() => escaped.push_str("&#47;"),
            // `- item`, `+ item`, `1. item`, `1) item`, at the start of a line.
            '-' | '+' | '=' if before.is_none() => {
                escaped.push('\\');
                escaped.push(symbol);
            }
            '.' | ')'
                if next.is_none_or(|next| next == ' ')
                    && !escaped.is_empty()
                    && escaped.chars().all(|digit| digit.is_ascii_digit()) =>
            {
                escaped.push('\\');
                escaped.push(symbol);
            }
            // `www.`
            '.' if before.is_some_and(|before| before.eq_ignore_ascii_case(&'w')) => {
                let _ = write!(escaped, "{BREAK}.");
            }
            '\\' | '*' | '_' | '[' | ']' | '|' | '~' | '!' => {
                escaped.push('\\');
                escaped.push(symbol);
            }
            symbol => escaped.push(symbol),
        }
        if begins_reference(symbol, before, next) || (symbol == ':' && is_emoji(symbols.clone())) {
            escaped.push_str(BREAK);
        }
        before = Some(symbol);
    }
}

/// Whether a forge may make something of the character and what follows it.
fn begins_reference(symbol: char, before: Option<char>, next: Option<char>) -> bool {
    match symbol {
        // A heading too; GitLab knows names in quotes.
        '@' | '#' => true,
        '!' | '$' | '&' => next.is_some_and(|next| next.is_ascii_digit()),
        '%' | '~' | '^' | '*' => next.is_some_and(|next| next.is_alphanumeric() || "\"_{".contains(next)),
        // `[issue:12]`, `[TOC]`, `[+added+]`, `{-removed-}`
        '[' | '{' => next.is_none_or(|next| !next.is_whitespace()),
        // `http://`
        ':' => next == Some('/'),
        // `GH-12`
        '-' => {
            before.is_some_and(|before| before.eq_ignore_ascii_case(&'h'))
                && next.is_some_and(|next| next.is_ascii_digit())
        }
        _ => false,
    }
}

/// Whether what follows a colon makes it `:tada:`.
fn is_emoji(after: impl Iterator<Item = char>) -> bool {
    let mut length = 0;
    for symbol in after {
        match symbol {
            ':' => return length > 0,
            symbol if symbol.is_ascii_alphanumeric() || "_+-".contains(symbol) => length += 1,
            _ => return false,
        }
    }
    false
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
            ("**a** _b_ ~~c~~", "\\*\\*&#8203;a\\*\\* \\_b\\_ \\~\\~&#8203;c\\~\\~"),
            ("<img src=x>&lt;", "&lt;img src=x&gt;&amp;lt;"),
            ("@octocat fixes #12", "@&#8203;octocat fixes #&#8203;12"),
            ("[x](https://e.org) ![y](z)", "\\[&#8203;x\\](https:&#8203;//e.org) \\!\\[&#8203;y\\](z)"),
            ("www.e.org", "www&#8203;.e.org"),
            ("a\n\n# heading\n- item", "a # heading - item".replace('#', "#&#8203;").as_str()),
            ("- item", "\\- item"),
            ("1. item", "1\\. item"),
            ("1.5 s of 2.5 s", "1.5 s of 2.5 s"),
            ("$x$", "&#36;x&#36;"),
            ("/close now", "&#47;close now"),
            ("a/b", "a/b"),
            ("!12 %12 &12 ~a ^a *a:", "\\!&#8203;12 %&#8203;12 &amp;&#8203;12 \\~&#8203;a ^&#8203;a \\*&#8203;a:"),
            ("5 % each, a & b", "5 % each, a &amp; b"),
            ("GH-12 gh-x", "GH-&#8203;12 gh-x"),
            (":tada: 1:2 a: b", ":&#8203;tada: 1:2 a: b"),
            ("{+a+} {-b-}", "{&#8203;+a+} {&#8203;-b-}"),
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
        assert_eq!(markdown_block("a ```` b\n/c"), "`````text\na ```` b\n /c\n`````");
    }
}
