//! Numbers with their units.

use std::fmt;
use std::ops::{Add, Sub};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::float;

/// Nanoseconds: a duration, or a point in time relative to the run's epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Nanos(pub i64);

impl Nanos {
    /// No time at all.
    pub const ZERO: Self = Self(0);

    /// A whole number of milliseconds.
    #[must_use]
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis.saturating_mul(1_000_000))
    }

    /// A whole number of seconds.
    #[must_use]
    pub const fn from_secs(secs: i64) -> Self {
        Self(secs.saturating_mul(1_000_000_000))
    }

    /// Seconds, rounded to the nanosecond; saturating, and zero for NaN.
    #[must_use]
    pub fn from_secs_f64(secs: f64) -> Self {
        Self((secs * 1e9).round() as i64)
    }

    /// The same in seconds.
    #[must_use]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The same in milliseconds.
    #[must_use]
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// The same as a [`std::time::Duration`]; zero where negative.
    #[must_use]
    pub fn to_duration(self) -> std::time::Duration {
        std::time::Duration::from_nanos(u64::try_from(self.0).unwrap_or(0))
    }
}

impl Add for Nanos {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl Sub for Nanos {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl From<std::time::Duration> for Nanos {
    fn from(duration: std::time::Duration) -> Self {
        Self(i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX))
    }
}

/// As a [`Quantity`]; whole seconds up to ten minutes as a person writes them: `1 s`, not `1,000 ms`; from two days on in
/// whole days, and from a year on `a year or more`.
impl fmt::Display for Nanos {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        const DAY: i64 = 86_400;
        match (self.0 / 1_000_000_000, self.0 % 1_000_000_000) {
            (seconds @ 1..600, 0) => write!(out, "{seconds} s"),
            (seconds, _) if seconds >= 365 * DAY => out.write_str("a year or more"),
            (seconds, _) if seconds >= 2 * DAY => write!(out, "{} days", (seconds + DAY / 2) / DAY),
            _ => Quantity::time(*self).fmt(out),
        }
    }
}

/// A frequency in events per second.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PerSecond(pub f64);

/// What a [`Quantity`] counts, and the base unit its value is held in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Time, in nanoseconds (time per token too).
    Time,
    /// A share of a whole, 0 to 1; written in percent.
    Share,
    /// Events per second.
    PerSecond,
    /// Tokens per second.
    TokensPerSecond,
    /// A plain number of things.
    Count,
    /// Growth per hour as a share of the value: `.01` for 1 % per hour.
    PerHour,
    /// US dollars.
    Dollars,
    /// Bytes.
    Bytes,
}

impl Unit {
    /// The units a person may write, for messages.
    #[must_use]
    pub fn spellings(self) -> &'static str {
        match self {
            Self::Time => "us, ms, s, m, h or d",
            Self::Share => "%",
            Self::PerSecond => "/s",
            Self::TokensPerSecond => "tok/s",
            Self::Count => "no unit",
            Self::PerHour => "%/h",
            Self::Dollars => "$ before the number",
            Self::Bytes => "B, KiB, MiB or GiB",
        }
    }

    /// An example of a quantity in this unit, for messages.
    #[must_use]
    pub fn example(self) -> &'static str {
        match self {
            Self::Time => "800ms",
            Self::Share => "5%",
            Self::PerSecond => "2/s",
            Self::TokensPerSecond => "100tok/s",
            Self::Count => "3",
            Self::PerHour => "1%/h",
            Self::Dollars => "$0.40",
            Self::Bytes => "512MiB",
        }
    }
}

/// A number with its unit; `+∞` is a legal value (a failed request's latency).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Quantity {
    /// The number, in the unit's base (see [`Unit`]).
    #[serde(with = "float")]
    pub value: f64,
    /// The unit.
    pub unit: Unit,
}

/// Why a text is not a quantity.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// No number at the start.
    #[error("`{0}` does not start with a number")]
    NotANumber(String),
    /// A number, but an unknown unit.
    #[error("unknown unit `{0}`")]
    UnknownUnit(String),
    /// Not finite, or too large to hold.
    #[error("the number is too large")]
    TooLarge,
}

impl Quantity {
    /// A time.
    #[must_use]
    pub fn time(nanos: Nanos) -> Self {
        Self { value: nanos.0 as f64, unit: Unit::Time }
    }

    /// A share, from a fraction between 0 and 1.
    #[must_use]
    pub fn share(fraction: f64) -> Self {
        Self { value: fraction, unit: Unit::Share }
    }

    /// A count.
    #[must_use]
    pub fn count(count: f64) -> Self {
        Self { value: count, unit: Unit::Count }
    }
}

impl FromStr for Quantity {
    type Err = QuantityError;

    /// Reads `400ms`, `5%`, `1.5 s`, `2/s`, `100 tok/s`, `1%/h`, `$0.40`, `512MiB`, `12`; a bare number is a count.
    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let text = text.trim();
        if let Some(dollars) = text.strip_prefix('$') {
            let value: f64 = dollars.trim().parse().map_err(|_| QuantityError::NotANumber(text.to_owned()))?;
            let is_plain = dollars.trim().chars().all(|symbol| symbol.is_ascii_digit() || symbol == '.');
            return match value.is_finite() {
                true if is_plain => Ok(Self { value, unit: Unit::Dollars }),
                true => Err(QuantityError::NotANumber(text.to_owned())),
                false => Err(QuantityError::TooLarge),
            };
        }
        let end = text.find(|symbol: char| !(symbol.is_ascii_digit() || symbol == '.')).unwrap_or(text.len());
        let (number, unit) = text.split_at(end);
        // `1e-9` is deliberately not a number here: nobody writes a limit that way, and `1e` would read as a unit.
        let number: f64 = number.parse().map_err(|_| QuantityError::NotANumber(text.to_owned()))?;
        let (factor, unit) = match unit.trim() {
            "" => (1.0, Unit::Count),
            "ns" => (1.0, Unit::Time),
            "us" | "µs" | "μs" => (1e3, Unit::Time),
            "ms" => (1e6, Unit::Time),
            "s" => (1e9, Unit::Time),
            "m" => (60e9, Unit::Time),
            "h" => (3_600e9, Unit::Time),
            "d" => (86_400e9, Unit::Time),
            "%" => (0.01, Unit::Share),
            "%/h" => (0.01, Unit::PerHour),
            "B" => (1.0, Unit::Bytes),
            "KiB" => (1024.0, Unit::Bytes),
            "MiB" => (1_048_576.0, Unit::Bytes),
            "GiB" => (1_073_741_824.0, Unit::Bytes),
            "/s" => (1.0, Unit::PerSecond),
            "tok/s" => (1.0, Unit::TokensPerSecond),
            other => return Err(QuantityError::UnknownUnit(other.to_owned())),
        };
        // Shares divide: 7 / 100 is the double nearest to .07, 7 × .01 is not.
        let value = if matches!(unit, Unit::Share | Unit::PerHour) { number / 100.0 } else { number * factor };
        if !value.is_finite() || (unit == Unit::Time && value > 1e18) {
            return Err(QuantityError::TooLarge);
        }
        Ok(Self { value, unit })
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.value.is_infinite() {
            return out.write_str(if self.value > 0.0 { "∞" } else { "-∞" });
        }
        match self.unit {
            Unit::Time => {
                let (scaled, unit) = match self.value.abs() {
                    0.0 => (0.0, "ms"),
                    below if below < 1e3 => (self.value, "ns"),
                    below if below < 1e6 => (self.value / 1e3, "µs"),
                    below if below < 1e10 => (self.value / 1e6, "ms"),
                    below if below < 600e9 => (self.value / 1e9, "s"),
                    _ => (self.value / 60e9, "min"),
                };
                write!(out, "{} {unit}", significant(scaled))
            }
            Unit::Share => write!(out, "{} %", significant(self.value * 100.0)),
            Unit::PerSecond => write!(out, "{}/s", significant(self.value)),
            Unit::TokensPerSecond => write!(out, "{} tok/s", significant(self.value)),
            Unit::Count => out.write_str(&significant(self.value)),
            Unit::PerHour => write!(out, "{} %/h", significant(self.value * 100.0)),
            Unit::Dollars if self.value < 0.0 => write!(out, "-${}", dollars(-self.value)),
            Unit::Dollars => write!(out, "${}", dollars(self.value)),
            Unit::Bytes => {
                let (scaled, unit) = match self.value.abs() {
                    below if below < 1024.0 => (self.value, "B"),
                    below if below < 1_048_576.0 => (self.value / 1024.0, "KiB"),
                    below if below < 1_073_741_824.0 => (self.value / 1_048_576.0, "MiB"),
                    _ => (self.value / 1_073_741_824.0, "GiB"),
                };
                write!(out, "{} {unit}", significant(scaled))
            }
        }
    }
}

/// Cents, and of less than a dollar two digits.
fn dollars(value: f64) -> String {
    if value >= 0.995 || value == 0.0 { format!("{value:.2}") } else { significant(value) }
}

/// About three significant digits, whole from 100 on, with thousands separated: `9.87`, `45.3`, `1,040`.
fn significant(value: f64) -> String {
    let magnitude = value.abs();
    let decimals = match magnitude {
        // Two digits of a small number: `0.0031`, never `0`.
        small if small > 0.0 && small < 0.095 => (1.0 - small.log10().floor()).min(12.0) as usize,
        whole if whole == whole.trunc() || whole >= 99.95 => 0,
        tens if tens >= 9.995 => 1,
        _ => 2,
    };
    let text = format!("{value:.decimals$}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text };
    let (sign, text) = text.strip_prefix('-').map_or(("", text.as_str()), |digits| ("-", digits));
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let mut grouped = String::with_capacity(text.len() + 4);
    for (position, digit) in whole.chars().enumerate() {
        if position > 0 && (whole.len() - position) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    format!("{sign}{grouped}{rest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_times_are_in_days() {
        for (seconds, text) in [
            (60, "60 s"),
            (86_400, "1,440 min"),
            (2 * 86_400, "2 days"),
            (60 * 3_600, "3 days"),
            (364 * 86_400, "364 days"),
            (365 * 86_400, "a year or more"),
            (1_000_000_000, "a year or more"),
        ] {
            assert_eq!(Nanos::from_secs(seconds).to_string(), text);
        }
    }

    #[test]
    fn reads_every_unit() {
        for (text, value, unit) in [
            ("400ms", 4e8, Unit::Time),
            ("1.5 s", 1.5e9, Unit::Time),
            ("250us", 2.5e5, Unit::Time),
            ("2m", 1.2e11, Unit::Time),
            ("5%", 0.05, Unit::Share),
            ("7%", 0.07, Unit::Share),
            ("2/s", 2.0, Unit::PerSecond),
            ("100 tok/s", 100.0, Unit::TokensPerSecond),
            ("0", 0.0, Unit::Count),
        ] {
            assert_eq!(text.parse::<Quantity>().unwrap(), Quantity { value, unit }, "{text}");
        }
        assert_eq!("ms".parse::<Quantity>(), Err(QuantityError::NotANumber("ms".into())));
        assert_eq!("5 parsecs".parse::<Quantity>(), Err(QuantityError::UnknownUnit("parsecs".into())));
        assert_eq!("99999999999999999999d".parse::<Quantity>(), Err(QuantityError::TooLarge));
    }

    #[test]
    fn prints_for_people() {
        let time = |millis: f64| Quantity { value: millis * 1e6, unit: Unit::Time }.to_string();
        assert_eq!(time(1040.2), "1,040 ms");
        assert_eq!(time(45.26), "45.3 ms");
        assert_eq!(time(9.994), "9.99 ms");
        assert_eq!(Quantity { value: 0.001, unit: Unit::PerSecond }.to_string(), "0.001/s");
        assert_eq!(Quantity::share(0.000_123_4).to_string(), "0.012 %");
        assert_eq!(time(0.0), "0 ms");
        assert_eq!(time(0.0213), "21.3 µs");
        assert_eq!(time(12_345.0), "12.3 s");
        assert_eq!(Quantity::share(0.04218).to_string(), "4.22 %");
        assert_eq!(Quantity::share(1.0).to_string(), "100 %");
        assert_eq!(Quantity::share(0.07).to_string(), "7 %");
        assert_eq!(Quantity { value: f64::INFINITY, unit: Unit::Time }.to_string(), "∞");
        assert_eq!(Quantity::count(1_234_567.0).to_string(), "1,234,567");
    }

    #[test]
    fn infinity_survives_json() {
        let quantity = Quantity { value: f64::INFINITY, unit: Unit::Time };
        let text = serde_json::to_string(&quantity).unwrap();
        assert_eq!(serde_json::from_str::<Quantity>(&text).unwrap(), quantity);
    }
}
