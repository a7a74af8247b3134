//! As much as fits.

use gate_model::Verdict;

use crate::ReportError;

/// How much of each thing there is room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Room {
    /// Rows of checks that passed, per gate.
    pub(super) passed: usize,
    /// Lines of each kind of detail, per gate.
    pub(super) details: usize,
    /// Rows of other checks, per gate.
    pub(super) rows: usize,
    /// Gates.
    pub(super) gates: usize,
}

impl Room {
    /// Room for all.
    const ALL: Self = Self { passed: usize::MAX, details: usize::MAX, rows: usize::MAX, gates: usize::MAX };
}

/// One of the sizes of a room.
type Size = fn(&mut Room) -> &mut usize;

/// The fullest text below `limit` bytes: rows of checks that passed are cut first, then details, then other rows, then
/// gates, each only as far as needed.
pub(super) fn fitted(
    verdicts: &[Verdict],
    limit: usize,
    render: impl Fn(Room) -> Result<String, ReportError>,
) -> Result<String, ReportError> {
    let mut room = Room::ALL;
    let mut text = render(room)?;
    let checks = verdicts.iter().map(|verdict| verdict.checks.len()).max().unwrap_or(0);
    // The longest list of details of a gate has a line for each check or finding.
    let details = verdicts.iter().map(|verdict| verdict.findings.len()).max().unwrap_or(0).max(checks).max(1);
    let dimensions: [(usize, Size); 4] = [
        (checks, |room| &mut room.passed),
        (details, |room| &mut room.details),
        (checks, |room| &mut room.rows),
        (verdicts.len(), |room| &mut room.gates),
    ];
    for (most, size) in dimensions {
        if text.len() < limit {
            break;
        }
        let fits = |count| {
            let mut tried = room;
            *size(&mut tried) = count;
            Ok::<_, ReportError>(render(tried)?.len() < limit)
        };
        let best = largest(most, fits)?;
        *size(&mut room) = best;
        text = render(room)?;
    }
    Ok(text)
}

/// What is said below a text that a template made too long however little it was given.
const CUT: &str = "\n\nThe rest is left out: the template of this comment writes more than there is room for.\n";

/// The room that closing what is open needs.
const CLOSING: usize = 200;

/// The text in fewer bytes than the limit: whole lines of it, with what is open in them closed, and a sentence.
pub(super) fn shortened(text: String, limit: usize) -> String {
    if text.len() < limit {
        return text;
    }
    let most = limit.saturating_sub(CUT.len() + CLOSING);
    let end = (0..=most).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    let cut = text.get(..end).unwrap_or_default();
    let whole = cut.rfind('\n').filter(|end| *end > 0).and_then(|end| cut.get(..end)).unwrap_or(cut);
    format!("{whole}{}{CUT}", closing(whole))
}

/// What ends a hidden text, a block of code and folded details that are open at the end of a text.
fn closing(text: &str) -> String {
    let hidden = text.rfind("<!--").is_some_and(|start| text.get(start..).is_some_and(|rest| !rest.contains("-->")));
    let fence = text.lines().map(str::trim_start).fold(None, |open: Option<String>, line| {
        let ticks: String = line.chars().take_while(|symbol| *symbol == '`').collect();
        match open {
            None if ticks.len() >= 3 => Some(ticks),
            Some(fence) if ticks.len() >= fence.len() && line.trim_end().len() == ticks.len() => None,
            other => other,
        }
    });
    let details = text.matches("<details>").count().saturating_sub(text.matches("</details>").count()).min(10);
    let hidden = if hidden { "-->" } else { "" };
    let fence = fence.filter(|fence| fence.len() < 50).map(|fence| format!("\n{fence}")).unwrap_or_default();
    format!("{hidden}{fence}{}", "\n\n</details>".repeat(details))
}

/// The largest number up to `most` that fits, by bisection; zero where none does.
fn largest(most: usize, fits: impl Fn(usize) -> Result<bool, ReportError>) -> Result<usize, ReportError> {
    // One try tells where cutting all of it is not enough.
    if !fits(0)? {
        return Ok(0);
    }
    let (mut low, mut high) = (0, most);
    while low < high {
        let middle = high - (high - low) / 2;
        if fits(middle)? {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    Ok(low)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_that_is_cut_ends_what_it_began() {
        assert_eq!(shortened("short\n".to_owned(), 100), "short\n");
        let long = |start: &str| shortened(format!("{start}\n{}", "line é\n".repeat(1_000)), 2_000);
        for (start, end) in [
            ("<details>", "line é\n\n</details>\n\nThe rest"),
            ("````text\n```", "line é\n````\n\nThe rest"),
            ("<!-- a -->\n<!-- b", "line é-->\n\nThe rest"),
            ("```\na\n```", "line é\n\nThe rest"),
        ] {
            let text = long(start);
            assert!(text.len() < 2_000 && text.contains(end), "{text}");
        }
        let one = shortened("é".repeat(5_000), 2_000);
        assert!((1_500..2_000).contains(&one.len()) && one.ends_with("room for.\n"), "{one}");
    }

    #[test]
    fn the_largest_that_fits_is_found() {
        for most in 0..20 {
            for limit in 0..25 {
                assert_eq!(largest(most, |count| Ok(count <= limit)).unwrap(), most.min(limit));
            }
        }
    }
}
