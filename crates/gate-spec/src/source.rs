//! The source text: places and snippets, with credentials masked.

use gate_model::{Diagnostic, Place, REDACTED, Snippet};

use crate::Overlay;
use crate::credential::spans_by_words;
use crate::problem::Problem;
use crate::yaml::{Site, Span};

/// The longest piece of a line a snippet shows, in characters.
const SNIPPET_WIDTH: usize = 160;

/// The lines of a text, by `\n`, `\r\n` or `\r`.
pub(crate) fn split_lines(text: &str) -> Vec<&str> {
    let mut lines = Vec::new();
    let mut rest = text;
    while let Some(end) = rest.find(['\n', '\r']) {
        let (line, tail) = rest.split_at(end);
        lines.push(line);
        rest = tail.strip_prefix("\r\n").unwrap_or_else(|| tail.get(1..).unwrap_or(""));
    }
    if !rest.is_empty() {
        lines.push(rest);
    }
    lines
}

/// The file a spec is read from, with what must not be shown of it.
pub(crate) struct Source<'a> {
    file: &'a str,
    lines: Vec<&'a str>,
    overlays: &'a [Overlay],
    masks: Vec<Span>,
}

impl<'a> Source<'a> {
    pub(crate) fn new(file: &'a str, text: &'a str, overlays: &'a [Overlay]) -> Self {
        Self { file, lines: split_lines(text), overlays, masks: Vec::new() }
    }

    /// Hides these stretches in every snippet.
    pub(crate) fn mask(&mut self, spans: impl IntoIterator<Item = Span>) {
        self.masks.extend(spans);
    }

    /// Hides what looks like a credential in a text that could not be read as YAML.
    pub(crate) fn mask_by_words(&mut self, problems: &[Problem]) {
        let line = |problem: &Problem| match problem.site {
            Site::Text(span) => Some(span.line),
            Site::Whole | Site::Flag(_) => None,
        };
        self.masks.extend(spans_by_words(&self.lines, &problems.iter().filter_map(line).collect()));
    }

    pub(crate) fn line(&self, number: u32) -> &'a str {
        let index = usize::try_from(number).unwrap_or(usize::MAX).wrapping_sub(1);
        self.lines.get(index).copied().unwrap_or("")
    }

    /// The place of something written; a flag stands in for the file where an overlay gave it.
    pub(crate) fn place(&self, site: Site) -> Place {
        match site {
            Site::Text(span) => Place { file: self.file.to_owned(), line: span.line, column: span.column },
            Site::Flag(flag) => Place { file: self.flag(flag), line: 1, column: 1 },
            Site::Whole => Place { file: self.file.to_owned(), line: 1, column: 1 },
        }
    }

    fn flag(&self, index: usize) -> String {
        self.overlays.get(index).map_or_else(String::new, |overlay| match overlay.flag.as_str() {
            "--set" => format!("--set {}", overlay.path),
            flag => flag.to_owned(),
        })
    }

    /// The problem as it is shown.
    pub(crate) fn diagnostic(&self, problem: Problem) -> Diagnostic {
        let Problem { severity, site, message, hint, missing } = problem;
        match site {
            Site::Text(span) => {
                let snippet = Some(self.snippet(span));
                Diagnostic { severity, place: Some(self.place(site)), message, snippet, hint, missing }
            }
            Site::Flag(flag) => {
                let message = format!("`{}`: {message}", self.flag(flag));
                Diagnostic { severity, place: None, message, snippet: None, hint, missing }
            }
            Site::Whole => {
                Diagnostic { severity, place: Some(self.place(site)), message, snippet: None, hint, missing }
            }
        }
    }

    fn snippet(&self, span: Span) -> Snippet {
        let line: Vec<char> = self.line(span.line).chars().collect();
        let start = index(span.column).min(line.len());
        let end = if span.end_line > span.line { line.len() } else { index(span.end_column).min(line.len()) };
        let end = end.max(start + 1);
        let window = if line.len() <= SNIPPET_WIDTH { 0 } else { start.saturating_sub(SNIPPET_WIDTH / 2) };
        let window = window..(window + SNIPPET_WIDTH).min(line.len());
        let masks: Vec<_> = self
            .masks
            .iter()
            .filter(|mask| mask.line <= span.line && span.line <= mask.end_line)
            .map(|mask| {
                let from = if mask.line < span.line { 0 } else { index(mask.column) };
                let to = if mask.end_line > span.line { line.len() } else { index(mask.end_column) };
                let to = to.min(line.len());
                // A block of text ends where the next key starts, behind its indentation.
                let blank = mask.line < span.line && line.iter().take(to).all(|symbol| symbol.is_whitespace());
                from..if blank { from } else { to }
            })
            // A line can be long and full of masks: only those in the window matter.
            .filter(|mask| mask.start < window.end && window.start < mask.end)
            .collect();
        let (mut text, mut caret, mut length) = (String::new(), None, 0_usize);
        let mut shown = 0_usize;
        if window.start > 0 {
            text.push('…');
            shown += 1;
        }
        let mut masked = false;
        for position in window.clone() {
            let hidden = masks.iter().any(|mask| mask.contains(&position));
            let piece = match line.get(position) {
                _ if hidden => if masked { "" } else { REDACTED }.to_owned(),
                Some(symbol) if symbol.is_control() => " ".to_owned(),
                Some(symbol) => symbol.to_string(),
                None => String::new(),
            };
            masked = hidden;
            let width = piece.chars().count();
            if position >= start && caret.is_none() {
                // A caret inside a masked stretch goes to the stretch's start.
                caret = Some(if width == 0 { shown.saturating_sub(REDACTED.len()) } else { shown });
            }
            if (start..end).contains(&position) {
                length += width;
            }
            text.push_str(&piece);
            shown += width;
        }
        if window.end < line.len() {
            text.push('…');
        }
        let short = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        Snippet { text, column: short(caret.unwrap_or(shown) + 1), length: short(length.max(1)) }
    }
}

fn index(column: u32) -> usize {
    usize::try_from(column.saturating_sub(1)).unwrap_or(usize::MAX)
}
