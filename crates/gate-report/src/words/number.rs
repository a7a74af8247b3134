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

/// A probability with four decimals, and never `0`.
pub(super) fn probability(value: f64) -> String {
    if value < 1e-4 { "below 0.0001".to_owned() } else { without_zeros(&format!("{value:.4}")).to_owned() }
}

/// The text with its first letter as a capital.
pub(crate) fn capitalised(text: &str) -> String {
    let mut symbols = text.chars();
    symbols.next().map_or(String::new(), |first| first.to_uppercase().chain(symbols).collect())
}

fn without_zeros(digits: &str) -> &str {
    if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits }
}
