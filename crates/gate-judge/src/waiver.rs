//! Waivers: checks that are let through until a day.

use gate_model::{Check, Finding, GateSpec};

/// Whether a check is let through in a run that started then (RFC 3339 in UTC).
///
/// A waiver works on its last day too. Where either day cannot be read it does not work: nothing is let through
/// for want of a date.
pub(crate) fn is_waived(check: &Check, started: &str) -> bool {
    let until = check.waive.as_ref().and_then(|waiver| day(&waiver.until));
    day(started).zip(until).is_some_and(|(started, until)| started <= until)
}

/// The waivers that had ended when a run started.
pub(crate) fn ended<'a>(spec: &'a GateSpec, started: &'a str) -> impl Iterator<Item = Finding> + 'a {
    let ended = spec.checks.iter().filter(|check| !is_waived(check, started));
    ended.filter_map(|check| {
        let until = check.waive.as_ref()?.until.clone();
        Some(Finding::WaiverEnded { check: check.to_string(), until })
    })
}

/// The day that a date or a time begins with, as `YYYY-MM-DD`: such texts sort as the days do.
fn day(text: &str) -> Option<&str> {
    const LAYOUT: &str = "dddd-dd-dd";
    let day = text.get(..LAYOUT.len())?;
    let fits = day.bytes().zip(LAYOUT.bytes()).all(|(byte, wanted)| match wanted {
        b'd' => byte.is_ascii_digit(),
        _ => byte == wanted,
    });
    fits.then_some(day)
}

#[cfg(test)]
mod tests {
    use super::day;

    #[test]
    fn a_time_begins_with_its_day() {
        assert_eq!(day("2026-11-29T16:37:00Z"), Some("2026-11-29"));
        assert_eq!(day("2026-11-29"), Some("2026-11-29"));
        for text in ["", "2026-1-2", "29.11.2026", "2026-11-2x", "yesterday at noon", "2026-11-2é"] {
            assert_eq!(day(text), None, "{text}");
        }
    }
}
