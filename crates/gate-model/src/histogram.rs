//! A mergeable histogram of durations with a stated relative error.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Nanos;

/// Sub-buckets per power of two, as a power of two itself.
const PRECISION: u32 = 5;

/// Counts of durations in log-linear buckets: 32 per power of two, so a bucket is at most 1/32 (3.2 %) wide.
///
/// Values below 32 ns are exact; negative ones count as zero.
///
/// It is written as a list of `[bucket, count]` pairs: a map's integer keys would not survive the journal's
/// tagged lines.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<(u16, u64)>", into = "Vec<(u16, u64)>")]
pub struct Histogram {
    counts: BTreeMap<u16, u64>,
}

impl Histogram {
    /// Adds one duration.
    pub fn record(&mut self, duration: Nanos) {
        *self.counts.entry(bucket(duration)).or_insert(0) += 1;
    }

    /// Adds all that another histogram holds.
    pub fn merge(&mut self, other: &Self) {
        for (bucket, count) in &other.counts {
            *self.counts.entry(*bucket).or_insert(0) += count;
        }
    }

    /// How many durations it holds.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.values().fold(0, |sum: u64, count| sum.saturating_add(*count))
    }

    /// Each non-empty bucket's lower edge with its count, ascending.
    pub fn iter(&self) -> impl Iterator<Item = (Nanos, u64)> + '_ {
        self.counts.iter().map(|(bucket, count)| (lower_edge(*bucket), *count))
    }

    /// The lower edge of the bucket that holds the given rank (1-based), or `None` past the end.
    #[must_use]
    pub fn at_rank(&self, rank: u64) -> Option<Nanos> {
        let mut seen = 0;
        self.iter().find_map(|(edge, count)| {
            seen = count.saturating_add(seen);
            (rank > 0 && seen >= rank).then_some(edge)
        })
    }
}

impl From<Vec<(u16, u64)>> for Histogram {
    fn from(pairs: Vec<(u16, u64)>) -> Self {
        let mut counts = BTreeMap::new();
        for (bucket, count) in pairs {
            let held: &mut u64 = counts.entry(bucket).or_insert(0);
            *held = held.saturating_add(count);
        }
        Self { counts }
    }
}

impl From<Histogram> for Vec<(u16, u64)> {
    fn from(histogram: Histogram) -> Self {
        histogram.counts.into_iter().collect()
    }
}

fn bucket(duration: Nanos) -> u16 {
    let value = u64::try_from(duration.0).unwrap_or(0);
    let bits = 64 - value.leading_zeros();
    let shift = bits.saturating_sub(PRECISION + 1);
    // `value >> shift` lies in 32..64 once shifted; below, the value is its own bucket.
    let bucket = u64::from(shift << PRECISION) + (value >> shift);
    u16::try_from(bucket).unwrap_or(u16::MAX)
}

fn lower_edge(bucket: u16) -> Nanos {
    let bucket = u64::from(bucket);
    let shift = (bucket >> PRECISION).saturating_sub(1);
    let mantissa = bucket - (shift << PRECISION);
    Nanos(i64::try_from(mantissa.checked_shl(shift as u32).unwrap_or(u64::MAX)).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bucket_is_at_most_one_part_in_32_wide() {
        let mut previous = None;
        for value in (0..4096).chain([1_000_000, 123_456_789, 9_999_999_999, i64::MAX]) {
            let edge = lower_edge(bucket(Nanos(value))).0;
            assert!(edge <= value && (value - edge) <= edge / 32, "{value} in the bucket from {edge}");
            assert!(previous <= Some(edge));
            previous = Some(edge);
        }
        assert_eq!(bucket(Nanos(-5)), 0);
    }

    #[test]
    fn merging_is_adding() {
        let (mut left, mut right, mut both) = (Histogram::default(), Histogram::default(), Histogram::default());
        for value in 0..1000_i64 {
            let half = if value % 3 == 0 { &mut left } else { &mut right };
            half.record(Nanos(value * value));
            both.record(Nanos(value * value));
        }
        left.merge(&right);
        assert_eq!(left, both);
        assert_eq!(left.count(), 1000);
        assert_eq!(left.at_rank(1), Some(Nanos(0)));
        assert_eq!(left.at_rank(0), None);
        assert_eq!(left.at_rank(1001), None);
        let text = serde_json::to_string(&left).unwrap();
        assert_eq!(serde_json::from_str::<Histogram>(&text).unwrap(), left);
    }
}
