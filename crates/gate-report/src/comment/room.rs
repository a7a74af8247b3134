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
    fn the_largest_that_fits_is_found() {
        for most in 0..20 {
            for limit in 0..25 {
                assert_eq!(largest(most, |count| Ok(count <= limit)).unwrap(), most.min(limit));
            }
        }
    }
}
