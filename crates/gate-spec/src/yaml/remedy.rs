//! Syntax errors in words a newcomer can act on.

use gate_model::{Metric, Quantity};
use saphyr_parser::ScanError;

use super::tree::{Site, Span};
use crate::problem::Problem;
use crate::source::split_lines;

/// The parser's error with its place and the likely remedy.
pub(crate) fn explain(error: &ScanError, text: &str, flag: Option<usize>) -> Problem {
    let lines = split_lines(text);
    let number = error.marker().line();
    // At the end of the text the parser points behind the last line.
    let (number, column) = if number > lines.len() {
        (lines.len().max(1), lines.last().map_or(0, |line| line.chars().count().saturating_sub(1)))
    } else {
        (number, error.marker().col())
    };
    let line = lines.get(number.saturating_sub(1)).copied().unwrap_or("");
    let (message, hint) = words(error.info(), line, column);
    let site = flag.map_or_else(
        || {
            let short = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
            let (line, column) = (short(number), short(column).saturating_add(1));
            Site::Text(Span { line, column, end_line: line, end_column: column.saturating_add(1) })
        },
        Site::Flag,
    );
    Problem::error(site, message).hint(hint)
}

fn words(info: &str, line: &str, column: usize) -> (String, String) {
    let own = |message: &str, hint: &str| (message.to_owned(), hint.to_owned());
    let indentation = line.chars().take_while(|symbol| symbol.is_whitespace());
    if info.contains("tabs") || info.contains("tab character") || indentation.clone().any(|symbol| symbol == '\t') {
        return own(
            "there is a tab in the indentation",
            "YAML is indented with spaces: replace the tab with two of them",
        );
    }
    if info.contains("unprintable") {
        return own("a control character stands here", "save the file as UTF-8 text, and remove the character");
    }
    if info.contains("recursion") {
        return own("lists and maps are nested too deep", "close the `{` and `[` that are left open");
    }
    if info.contains("block scalar") {
        return block_scalar(line, column);
    }
    if line.contains("${") && info.contains("flow") {
        return own(
            "`{` ends the value before `${`: in a flow map or list, `${…}` needs quotes",
            "put the value in quotes: `{url: \"${GATE_TARGET:-http://127.0.0.1:8000}\"}`",
        );
    }
    if info.contains("mapping values are not allowed") {
        return if line.contains("${") {
            own(
                "`: ` inside a value splits it",
                "put the whole value in quotes: `url: \"${NAME:?a message: with a colon}\"`",
            )
        } else {
            own(
                "a second `: ` on this line, or a line indented too far",
                "put a value that holds `: ` in quotes, or align the line with the keys above",
            )
        };
    }
    if info.contains("unknown anchor") {
        return own(
            "`*` refers to an anchor that is not there",
            "if the `*` belongs to the text, put the text in quotes",
        );
    }
    if let Some(symbol) = info.strip_prefix("unexpected character: ") {
        let symbol = symbol.trim_matches(['`', '\'']);
        let symbol = if symbol.is_empty() { "`" } else { symbol };
        return (
            format!("a value cannot start with {symbol:?} unless it is in quotes"),
            "put the value in quotes".to_owned(),
        );
    }
    if info.contains("unexpected end of stream") {
        return own("the quote that opens here is never closed", "close it, or remove it");
    }
    if info.contains("escape") {
        return own(
            "an unknown `\\` escape in double quotes",
            "use single quotes, where `\\` is an ordinary character",
        );
    }
    if info.contains("flow mapping") || info.contains("flow sequence") {
        return own(
            "a `{` or `[` is not closed, here or above, or a comma is missing",
            "close it with `}` or `]`, with commas between the items",
        );
    }
    if info.contains("block sequence entries are not allowed") {
        return own(
            "a list item stands on the line of its key",
            "put each `- item` on a line of its own, below the key",
        );
    }
    if ["did not find expected", "block collection", "simple key", "indent"].iter().any(|part| info.contains(part)) {
        return own(
            "this line fits none of the blocks above it",
            "write it as `key: value`, or as `- item` in a list, indented like its siblings",
        );
    }
    (format!("not valid YAML: {info}"), "put values that hold `: `, ` #`, `{` or `[` in quotes".to_owned())
}

/// `>` or `|` at the start of a value: nearly always a check that lost its metric.
fn block_scalar(line: &str, column: usize) -> (String, String) {
    let rest: String = line.chars().skip(column).collect();
    let before: String = line.chars().take(column).collect();
    let before = before.trim().trim_start_matches("- ").trim_end_matches([':', '-']).trim();
    let metric = if before.parse::<Metric>().is_ok() { before } else { "attainment" };
    let condition = rest.trim().trim_end_matches(['}', ']']);
    // Only what is surely the end of a check is repeated: it could be anything, a credential too.
    let is_condition = condition.trim_start_matches(['>', '=', ' ']).parse::<Quantity>().is_ok();
    let condition = if is_condition { condition } else { ">= 95%" };
    (
        "`>` or `|` at the start of a value begins a block of text".to_owned(),
        format!("a check is one text, metric first: `- {metric} {condition}`; any other text here needs quotes"),
    )
}
