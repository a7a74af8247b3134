//! The one clock: monotonic instants, and points relative to a phase's zero.

use std::time::Instant;

use gate_model::Nanos;

/// The instant from which a phase counts: the epoch for measured requests, the first start for warm-up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Zero(pub(crate) Instant);

impl Zero {
    /// The point in time of an instant; negative before the zero.
    pub(crate) fn point(self, instant: Instant) -> Nanos {
        match instant.checked_duration_since(self.0) {
            Some(after) => after.into(),
            None => Nanos::ZERO - Nanos::from(self.0.duration_since(instant)),
        }
    }

    /// The instant of a point in time; the zero itself for a negative one.
    pub(crate) fn instant(self, point: Nanos) -> Instant {
        later(self.0, point)
    }
}

/// How far a deadline that no clock can hold is put off.
const FAR: std::time::Duration = std::time::Duration::from_secs(365 * 24 * 3600);

/// The instant this long after another; one so far away that no clock holds it is a year away.
pub(crate) fn later(from: Instant, by: Nanos) -> Instant {
    from.checked_add(by.to_duration().min(FAR)).unwrap_or(from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_go_both_ways() {
        let now = Instant::now();
        let zero = Zero(now);
        let after = now + std::time::Duration::from_millis(5);
        assert_eq!(zero.point(after), Nanos::from_millis(5));
        assert_eq!(Zero(after).point(now), Nanos::from_millis(-5));
        assert_eq!(zero.instant(Nanos::from_millis(5)), after);
        assert_eq!(zero.instant(Nanos::from_millis(-5)), now);
        assert_eq!(later(now, Nanos(i64::MAX)), now + FAR);
    }
}
