//! Percentiles, exact to a thousandth of a percent.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A percentile such as p50, p95 or p99.9, strictly between 0 and 100, held in thousandths of a percent.
///
/// It is held as an integer because in doubles 1 / (1 − .95) is greater than 20.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u32", into = "u32")]
pub struct Percentile(u32);

/// Why a text or a number is not a percentile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PercentileError {
    /// Not a decimal number.
    #[error("a percentile is a number such as 95 or 99.9")]
    NotANumber,
    /// Outside (0, 100).
    #[error("a percentile lies strictly between 0 and 100")]
    OutOfRange,
    /// More than three decimals.
    #[error("a percentile has at most three decimals")]
    TooFine,
}

impl Percentile {
    /// The median.
    pub const P50: Self = Self(50_000);
    /// The 95th percentile.
    pub const P95: Self = Self(95_000);

    /// A percentile from thousandths of a percent (95 000 is p95).
    ///
    /// # Errors
    /// [`PercentileError::OutOfRange`] outside 1 to 99 999.
    pub fn from_thousandths(thousandths: u32) -> Result<Self, PercentileError> {
        if (1..100_000).contains(&thousandths) { Ok(Self(thousandths)) } else { Err(PercentileError::OutOfRange) }
    }

    /// Thousandths of a percent: 1 to 99 999.
    #[must_use]
    pub fn thousandths(self) -> u32 {
        self.0
    }

    /// How many requests a sample needs before any of them is expected beyond this percentile:
    /// the least n with n (1 − Q) ≥ 1 in the upper half, n Q ≥ 1 in the lower.
    #[must_use]
    pub fn least_sample(self) -> u32 {
        let tail = self.0.min(100_000 - self.0);
        100_000_u32.div_ceil(tail)
    }
}

impl TryFrom<u32> for Percentile {
    type Error = PercentileError;
    fn try_from(thousandths: u32) -> Result<Self, PercentileError> {
        Self::from_thousandths(thousandths)
    }
}

impl From<Percentile> for u32 {
    fn from(percentile: Percentile) -> u32 {
        percentile.0
    }
}

impl FromStr for Percentile {
    type Err = PercentileError;

    /// Reads the digits after the `p`: `95`, `99.9`, `99.999`.
    fn from_str(text: &str) -> Result<Self, PercentileError> {
        let (whole, decimals) = text.split_once('.').map_or((text, None), |(whole, decimals)| (whole, Some(decimals)));
        let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
        if !digits(whole) || !decimals.is_none_or(digits) {
            return Err(PercentileError::NotANumber);
        }
        let decimals = decimals.unwrap_or("").trim_end_matches('0');
        if decimals.len() > 3 {
            return Err(PercentileError::TooFine);
        }
        let whole: u32 = whole.parse().map_err(|_| PercentileError::OutOfRange)?;
        let decimals: u32 = format!("{decimals:0<3}").parse().map_err(|_| PercentileError::NotANumber)?;
        let thousandths = whole.checked_mul(1000).and_then(|whole| whole.checked_add(decimals));
        Self::from_thousandths(thousandths.ok_or(PercentileError::OutOfRange)?)
    }
}

impl fmt::Display for Percentile {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, decimals) = (self.0 / 1000, self.0 % 1000);
        if decimals == 0 {
            write!(out, "p{whole}")
        } else {
            let decimals = format!("{decimals:03}");
            write!(out, "p{whole}.{}", decimals.trim_end_matches('0'))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_prints_exactly() {
        for (text, thousandths, printed) in
            [("95", 95_000, "p95"), ("99.9", 99_900, "p99.9"), ("99.950", 99_950, "p99.95"), ("0.001", 1, "p0.001")]
        {
            let percentile: Percentile = text.parse().unwrap();
            assert_eq!(percentile.thousandths(), thousandths);
            assert_eq!(percentile.to_string(), printed);
        }
        for (text, error) in [
            ("0", PercentileError::OutOfRange),
            ("100", PercentileError::OutOfRange),
            ("99999999999", PercentileError::OutOfRange),
            ("99.9999", PercentileError::TooFine),
            ("", PercentileError::NotANumber),
            ("9.", PercentileError::NotANumber),
            ("+5", PercentileError::NotANumber),
        ] {
            assert_eq!(text.parse::<Percentile>(), Err(error), "{text}");
        }
    }

    #[test]
    fn least_sample_is_exact_where_doubles_are_not() {
        let least = |text: &str| text.parse::<Percentile>().unwrap().least_sample();
        assert_eq!(least("95"), 20);
        assert_eq!(least("99"), 100);
        assert_eq!(least("99.9"), 1000);
        assert_eq!(least("50"), 2);
        assert_eq!(least("5"), 20);
        assert_eq!(least("97"), 34);
    }
}
