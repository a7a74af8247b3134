//! The one clock: monotonic instants, points relative to a phase's zero, and where the wall clock stands beside it.

use std::time::{Duration, Instant, SystemTime};

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
const FAR: Duration = Duration::from_secs(365 * 24 * 3600);

/// The instant this long after another; one so far away that no clock holds it is a year away.
pub(crate) fn later(from: Instant, by: Nanos) -> Instant {
    from.checked_add(by.to_duration().min(FAR)).unwrap_or(from)
}

/// How often two clocks are read for one pair; the pair with the least time between counts.
const TRIES: usize = 8;
/// After this long a pair is old: the wall clock may have been set.
const OLD: Duration = Duration::from_secs(1);
/// Bytes that seem to have lain for so long are not believed before the clocks were read again.
const DOUBTFUL: Duration = Duration::from_millis(10);

/// One moment on both clocks. The kernel stamps by the wall clock, which can be set; all else goes by the monotonic
/// one. Both tick at the same rate, so that a pair holds until the wall clock is set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clocks {
    monotonic: Instant,
    wall: SystemTime,
}

impl Clocks {
    /// Reads both clocks.
    pub(crate) fn read() -> Self {
        let pair = || {
            let before = Instant::now();
            let wall = SystemTime::now();
            let between = before.elapsed();
            (between, Self { monotonic: before + between / 2, wall })
        };
        let (_, best) = (1..TRIES).map(|_| pair()).fold(pair(), |best, next| if next.0 < best.0 { next } else { best });
        best
    }

    /// The instant at which the wall clock stood so, seen from `now`, which is no earlier. Where that seems late or
    /// long ago, or the pair is old, the clocks are read again first.
    pub(crate) fn instant(&mut self, wall: SystemTime, now: Instant) -> Instant {
        let believed = |at: &Instant| *at <= now && now.duration_since(*at) < DOUBTFUL;
        if now.saturating_duration_since(self.monotonic) < OLD
            && let Some(at) = self.map(wall).filter(believed)
        {
            return at;
        }
        *self = Self::read();
        self.map(wall).map_or(now, |at| at.min(now))
    }

    /// What the wall clock shows at an instant, since 1970.
    pub(crate) fn unix(&self, at: Instant) -> Option<Nanos> {
        let wall: Nanos = self.wall.duration_since(SystemTime::UNIX_EPOCH).ok()?.into();
        Some(wall + Zero(self.monotonic).point(at))
    }

    /// The instant at which the wall clock will show so much since 1970; now where it has.
    pub(crate) fn instant_of(&self, unix: Nanos) -> Instant {
        let at = SystemTime::UNIX_EPOCH.checked_add(unix.to_duration()).and_then(|wall| self.map(wall));
        at.map_or_else(Instant::now, |at| at.max(Instant::now()))
    }

    fn map(&self, wall: SystemTime) -> Option<Instant> {
        match wall.duration_since(self.wall) {
            Ok(after) => self.monotonic.checked_add(after),
            Err(before) => self.monotonic.checked_sub(before.duration()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_go_both_ways() {
        let now = Instant::now();
        let zero = Zero(now);
        let after = now + Duration::from_millis(5);
        assert_eq!(zero.point(after), Nanos::from_millis(5));
        assert_eq!(Zero(after).point(now), Nanos::from_millis(-5));
        assert_eq!(zero.instant(Nanos::from_millis(5)), after);
        assert_eq!(zero.instant(Nanos::from_millis(-5)), now);
        assert_eq!(later(now, Nanos(i64::MAX)), now + FAR);
    }

    #[test]
    fn a_wall_time_becomes_the_instant_it_was() {
        let mut clocks = Clocks::read();
        for _ in 0..1_000 {
            let before = Instant::now();
            let wall = SystemTime::now();
            let after = Instant::now();
            let at = clocks.instant(wall, after);
            // Two readings of a pair are some nanoseconds apart.
            let slack = Duration::from_micros(50);
            assert!(at + slack >= before && at <= after, "{before:?} {at:?} {after:?}");
        }
    }

    #[test]
    fn an_instant_has_a_wall_time() {
        let clocks = Clocks::read();
        let unix = |wall: SystemTime| Nanos::from(wall.duration_since(SystemTime::UNIX_EPOCH).unwrap());
        let ahead = Duration::from_secs(5);
        assert_eq!(clocks.unix(clocks.monotonic + ahead), Some(unix(clocks.wall + ahead)));
        assert_eq!(clocks.unix(clocks.monotonic - ahead), Some(unix(clocks.wall - ahead)));
        assert_eq!(clocks.instant_of(unix(clocks.wall + ahead)), clocks.monotonic + ahead);
    }

    #[test]
    fn a_clock_that_was_set_is_noticed() {
        for step in [-3_600, -1, 1, 3_600_i64] {
            let honest = Clocks::read();
            let by = Duration::from_secs(step.unsigned_abs());
            let wall = if step > 0 { honest.wall + by } else { honest.wall - by };
            let mut clocks = Clocks { wall, ..honest };
            let (wall, now) = (SystemTime::now(), Instant::now());
            let at = clocks.instant(wall, now);
            assert!(at <= now && now.duration_since(at) < Duration::from_millis(500), "{step}: {:?}", now - at);
        }
        let (now, mut clocks) = (Instant::now(), Clocks::read());
        let future = SystemTime::now() + Duration::from_secs(5);
        assert_eq!(clocks.instant(future, now), now, "no stamp is later than the read");
        let _ = clocks.instant(SystemTime::UNIX_EPOCH - Duration::from_secs(1), now);
    }
}
