//! Numbers as people read them.

use gate_model::Quantity;

/// The quantity without trailing zeros: `2.5 ms`, `7 %`.
#[must_use]
pub fn figure(quantity: Quantity) -> String {
    let text = quantity.to_string();
    let end = text.find([' ', '/']).unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    format!("{}{unit}", without_zeros(digits))
}

/// A bare number with at most two decimals, without trailing zeros.
pub(crate) fn number(value: f64) -> String {
    figure(Quantity::count(value))
}

/// A whole number with its thousands separated.
pub(crate) fn grouped(value: u32) -> String {
    Quantity::count(f64::from(value)).to_string()
}

/// A share in percent.
pub(crate) fn percent(share: f64) -> String {
    figure(Quantity::share(share))
}

/// A probability, and how it compares with a level: `0.0008`, `at or below the level 0.0118`. Both have as many
/// decimals as it takes to tell them apart.
pub(crate) fn beside(value: f64, level: f64) -> (String, String) {
    let texts = (4..=9).map(|decimals| (probability(value, decimals), probability(level, decimals)));
    match texts.into_iter().find(|(value, level)| value != level) {
        Some((text, limit)) => {
            (text, format!("{} the level {limit}", if value <= level { "at or below" } else { "above" }))
        }
        None => (probability(value, 4), "just at the level".to_owned()),
    }
}

/// A p-value as it is written: `p = 0.0003`, `p < 0.0001`.
pub(crate) fn p_value(value: f64) -> String {
    let text = probability(value, 4);
    match text.strip_prefix("below ") {
        Some(least) => format!("p < {least}"),
        None => format!("p = {text}"),
    }
}

/// A probability with at most so many decimals, and never `0`.
pub(crate) fn probability(value: f64, decimals: usize) -> String {
    let text = format!("{value:.decimals$}");
    let least = format!("0.{}1", "0".repeat(decimals.saturating_sub(1)));
    if least.parse().is_ok_and(|least: f64| value < least) {
        format!("below {least}")
    } else {
        without_zeros(&text).to_owned()
    }
}

/// The text with its first letter as a capital.
pub(crate) fn capitalised(text: &str) -> String {
    let mut symbols = text.chars();
    symbols.next().map_or(String::new(), |first| first.to_uppercase().chain(symbols).collect())
}

fn without_zeros(digits: &str) -> &str {
    if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probability_is_told_from_its_level() {
        let texts = |value, level| {
            let (value, than) = beside(value, level);
            format!("{value}, {than}")
        };
        assert_eq!(texts(0.0008, 0.0118), "0.0008, at or below the level 0.0118");
        assert_eq!(texts(0.2, 0.05), "0.2, above the level 0.05");
        assert_eq!(texts(0.011_78, 0.011_81), "0.01178, at or below the level 0.01181");
        assert_eq!(texts(0.05, 0.05), "0.05, just at the level");
        assert_eq!(texts(1e-7, 0.0118), "below 0.0001, at or below the level 0.0118");
        assert_eq!(texts(0.000_02, 0.000_03), "0.00002, at or below the level 0.00003");
    }
}
