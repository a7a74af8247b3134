//! Diagnostics as text: message, place, source line, caret, hint.

use gate_model::{Diagnostic, Severity, Snippet};

use crate::escape;
use crate::layout::{counted, listed};
use crate::style::{Style, Tone};

/// How much of a source line is shown, in characters.
const SHOWN: usize = 100;

/// The diagnostics, in their order, with how many there are at the end if there is more than one.
#[must_use]
pub fn diagnostics(diagnostics: &[Diagnostic], style: Style) -> String {
    let mut text: String = diagnostics.iter().map(|diagnostic| one(diagnostic, style) + "\n").collect();
    if diagnostics.len() > 1 {
        let count = |severity| diagnostics.iter().filter(|diagnostic| diagnostic.severity == severity).count();
        let (errors, warnings) = (count(Severity::Error), count(Severity::Warning));
        let counts = [(errors, "error"), (warnings, "warning")];
        let counts = counts.into_iter().filter(|(count, _)| *count > 0).map(|(count, noun)| counted(count, noun));
        text.push_str(&listed(&counts.collect::<Vec<_>>(), "and"));
        text.push('\n');
    }
    text
}

fn one(diagnostic: &Diagnostic, style: Style) -> String {
    let (word, tone) = match diagnostic.severity {
        Severity::Error => ("error", Tone::Bad),
        Severity::Warning => ("warning", Tone::Doubtful),
    };
    let message = style.paint(Tone::Strong, &escape::terminal(&diagnostic.message));
    let mut text = format!("{}: {message}\n", style.paint(tone, word));
    let line_number = diagnostic.place.as_ref().map_or(String::new(), |place| place.line.to_string());
    let margin = " ".repeat(line_number.len());
    let faint = |text: &str| style.paint(Tone::Faint, text);
    if let Some(place) = &diagnostic.place {
        text.push_str(&format!("{margin}{} {}\n", faint("-->"), escape::terminal(&place.to_string())));
    }
    if let Some(snippet) = &diagnostic.snippet {
        let (source, blanks, carets) = excerpt(snippet);
        let bar = faint("|");
        let carets = style.paint(tone, &"^".repeat(carets));
        text.push_str(&format!("{margin} {bar}\n{} {bar} {source}\n", faint(&line_number)));
        text.push_str(&format!("{margin} {bar} {}{carets}\n", " ".repeat(blanks)));
    }
    if let Some(hint) = &diagnostic.hint {
        text.push_str(&format!("{margin} {} hint: {}\n", faint("="), escape::terminal(hint)));
    }
    text
}

/// The part of the source line around the caret, the blanks before the caret, and how many carets.
///
/// Each control character, a tab too, becomes one blank, so that columns stay columns.
fn excerpt(snippet: &Snippet) -> (String, usize, usize) {
    let symbols: Vec<char> = snippet.text.chars().map(visible).collect();
    let caret = (snippet.column.saturating_sub(1) as usize).min(symbols.len());
    let start = if symbols.len() > SHOWN { caret.saturating_sub(SHOWN / 2) } else { 0 };
    let mut shown: String = symbols.iter().skip(start).take(SHOWN).collect();
    let before = if start > 0 { "…" } else { "" };
    if start + SHOWN < symbols.len() {
        shown.push('…');
    }
    let room = (symbols.len().min(start + SHOWN).saturating_sub(caret)).max(1);
    let carets = (snippet.length.max(1) as usize).min(room);
    (format!("{before}{}", shown.trim_end()), caret - start + before.chars().count(), carets)
}

fn visible(symbol: char) -> char {
    if escape::terminal(symbol.encode_utf8(&mut [0; 4])).chars().eq([symbol]) { symbol } else { ' ' }
}
