//! Numbers as people read them.

use gate_model::{Quantity, Unit};

/// The quantity without trailing zeros: `2.5 ms`, `7 %`; dollars with their cents: `$0.40`.
#[must_use]
pub fn figure(quantity: Quantity) -> String {
    if quantity.unit == Unit::Dollars && quantity.value.is_finite() && quantity.value.abs() >= 0.095 {
        return dollars(quantity.value, 2);
    }
    without_trailing_zeros(&quantity.to_string())
}

/// A quantity with as many digits as it takes to tell it from others, so that rounding never hides why one breaks the
/// other: `10.504 ms` beside a limit of `10.5 ms`. A zero that rounding left is shown, `10.0 ms` for 10.02 ms, so that
/// the others can be reckoned from it.
pub(crate) fn told_from(quantity: Quantity, others: &[Option<Quantity>]) -> String {
    if quantity.unit == Unit::Dollars && quantity.value.is_finite() {
        let hides = |decimals: &usize| {
            let mut others = others.iter().flatten().filter(|other| !is_same(quantity.value, other.value));
            others.any(|other| dollars(quantity.value, *decimals) == dollars(other.value, *decimals))
        };
        let decimals = (2..2 + MOST_FINER).find(|decimals| !hides(decimals)).filter(|decimals| *decimals > 2);
        return decimals.map_or_else(|| figure(quantity), |decimals| dollars(quantity.value, decimals));
    }
    let plain = figure(quantity);
    let finer = others.iter().flatten().filter_map(|other| {
        if plain != figure(*other) || is_same(quantity.value, other.value) {
            return None;
        }
        let least = decimals(&plain) + 1;
        let text = |quantity, decimals| without_trailing_zeros(&fixed(quantity, &plain, decimals));
        let mut texts = (least..least + MOST_FINER).map(|decimals| (text(quantity, decimals), text(*other, decimals)));
        texts.find_map(|(text, other)| (text != other).then_some(text))
    });
    finer.max_by_key(String::len).unwrap_or_else(|| with_rounded_zeros(quantity, &plain))
}

/// A quantity as a person wrote it: none of its digits is lost.
pub(crate) fn exact(quantity: Quantity) -> String {
    if quantity.unit == Unit::Dollars && quantity.value.is_finite() {
        let mut texts = (2..2 + MOST_FINER).map(|decimals| dollars(quantity.value, decimals));
        let written = |text: &String| {
            let number = text.replace(['$', ','], "").parse();
            number.is_ok_and(|number: f64| is_same(number, quantity.value))
        };
        return texts.find(written).unwrap_or_else(|| figure(quantity));
    }
    let plain = figure(quantity);
    let least = decimals(&plain);
    let texts = (least..least + MOST_FINER).map(|decimals| fixed(quantity, &plain, decimals));
    let mut texts = texts.filter(|text| is_exact(quantity, text));
    texts.next().map_or(plain, |text| without_trailing_zeros(&text))
}

/// Dollars with so many decimals: `$1,040.50`.
fn dollars(value: f64, decimals: usize) -> String {
    let text = format!("{:.decimals$}", value.abs());
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    let whole = whole.parse().map_or_else(|_| whole.to_owned(), |whole| Quantity::count(whole).to_string());
    format!("{}${whole}{rest}", if value < 0.0 { "-" } else { "" })
}

/// The text with the zeros among its three significant digits where they are not exact.
fn with_rounded_zeros(quantity: Quantity, plain: &str) -> String {
    let (digits, _) = split(plain);
    let significant = digits.chars().filter(char::is_ascii_digit).count();
    if is_exact(quantity, plain) || significant >= 3 || digits.starts_with(['0', '-']) || digits.is_empty() {
        return plain.to_owned();
    }
    fixed(quantity, plain, decimals(plain) + 3 - significant)
}

/// Whether a text leaves nothing of the quantity out.
fn is_exact(quantity: Quantity, text: &str) -> bool {
    let shown = split(text).0.replace(',', "").parse();
    shown.is_ok_and(|shown: f64| is_same(shown * scale(text), quantity.value))
}

/// Whether two numbers differ by no more than rounding.
pub(crate) fn is_same(left: f64, right: f64) -> bool {
    let largest = left.abs().max(right.abs());
    left == right || largest.is_finite() && (left - right).abs() <= 1e-9 * largest
}

/// How many decimals are added at most.
const MOST_FINER: usize = 9;

/// The digits of a quantity's text, and its unit with the blank before it.
pub(super) fn split(text: &str) -> (&str, &str) {
    let end = text.find(|symbol: char| !(symbol.is_ascii_digit() || ".,-".contains(symbol)));
    text.split_at(end.unwrap_or(text.len()))
}

fn decimals(text: &str) -> usize {
    split(text).0.split_once('.').map_or(0, |(_, rest)| rest.len())
}

/// What one of a text's unit is in the unit's base.
fn scale(text: &str) -> f64 {
    match split(text).1.trim_start() {
        "µs" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        "min" => 60e9,
        "%" | "%/h" => 0.01,
        "KiB" => 1024.0,
        "MiB" => 1_048_576.0,
        "GiB" => 1_073_741_824.0,
        _ => 1.0,
    }
}

/// The quantity in the unit that `plain` has, with so many decimals.
fn fixed(quantity: Quantity, plain: &str, decimals: usize) -> String {
    let text = format!("{:.decimals$}", quantity.value / scale(plain));
    let (whole, rest) =
        text.split_once('.').map_or((text.as_str(), String::new()), |(whole, rest)| (whole, format!(".{rest}")));
    let whole = whole.parse().map_or_else(|_| whole.to_owned(), |whole| Quantity::count(whole).to_string());
    format!("{whole}{rest}{}", split(plain).1)
}

fn without_trailing_zeros(text: &str) -> String {
    let (digits, unit) = split(text);
    format!("{}{unit}", without_zeros(digits))
}

/// A number of a formula with four significant digits, and its sign as people write it: `0.1398`, `−2.703`.
pub(crate) fn reckoned(value: f64) -> String {
    let before = if value.abs() < 1.0 { value.abs().max(1e-9).log10().floor() } else { value.abs().log10().floor() };
    let decimals = (3.0 - before).clamp(0.0, 12.0) as usize;
    let text = format!("{:.decimals$}", value.abs());
    let digits = without_zeros(&text);
    if value < 0.0 && digits != "0" { format!("−{digits}") } else { digits.to_owned() }
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
    fn numbers_have_the_digits_that_tell_them_apart() {
        let told = |text: &str, other: &str| {
            let quantity = |text: &str| text.parse::<Quantity>().unwrap();
            [told_from(quantity(text), &[Some(quantity(other))]), told_from(quantity(other), &[Some(quantity(text))])]
        };
        assert_eq!(told("10.504ms", "10.5ms"), ["10.504 ms", "10.5 ms"]);
        assert_eq!(told("10.52ms", "10.5ms"), ["10.52 ms", "10.5 ms"]);
        assert_eq!(told("14ms", "10.5ms"), ["14 ms", "10.5 ms"]);
        assert_eq!(told("1040.2ms", "1040ms"), ["1,040.2 ms", "1,040 ms"]);
        assert_eq!(told("9.4496ms", "9.4503ms"), ["9.4496 ms", "9.4503 ms"]);
        assert_eq!(told("1.9404/s", "1.94/s"), ["1.9404/s", "1.94/s"]);
        assert_eq!(told("92.004%", "92%"), ["92.004 %", "92 %"]);
        assert_eq!(told("10.02ms", "9.018ms"), ["10.0 ms", "9.02 ms"]);
        assert_eq!(told("9.001ms", "120.4ms"), ["9.00 ms", "120 ms"]);
        assert_eq!(told("1.504/s", "0.5003/s"), ["1.50/s", "0.5/s"]);
        assert_eq!(told("92%", "30ms"), ["92 %", "30 ms"]);
        assert_eq!(told("$0.402", "$0.40"), ["$0.402", "$0.400"]);
        assert_eq!(told("$0.31", "$0.40"), ["$0.31", "$0.40"]);
        assert_eq!(told("$0.0031", "$0.40"), ["$0.0031", "$0.40"]);
        assert_eq!(told("1.004%/h", "1%/h"), ["1.004 %/h", "1 %/h"]);
        assert_eq!(told("1025KiB", "1MiB"), ["1.001 MiB", "1 MiB"]);
        assert_eq!(told("800.3ms", "0.8s"), ["800.3 ms", "800 ms"]);
        assert_eq!(told("0.00312/s", "0.00314/s"), ["0.00312/s", "0.00314/s"]);
        assert_eq!(told("1234567.2", "1234567"), ["1,234,567.2", "1,234,567"]);
        let equal = Quantity::share(0.1 + 0.2);
        assert_eq!(told_from(equal, &[Some(Quantity::share(0.3)), None]), "30 %");
        let never = Quantity { value: f64::INFINITY, ..equal };
        assert_eq!(told_from(never, &[Some(never)]), "∞");
        assert!(!is_same(f64::INFINITY, 1.0) && is_same(f64::INFINITY, f64::INFINITY) && !is_same(f64::NAN, 1.0));
    }

    #[test]
    fn what_a_person_wrote_keeps_its_digits() {
        for (written, text) in [
            ("800ms", "800 ms"),
            ("10.02ms", "10.02 ms"),
            ("12.345ms", "12.345 ms"),
            ("1040.25ms", "1,040.25 ms"),
            ("7.125%", "7.125 %"),
            ("20s", "20 s"),
            ("0", "0"),
            ("$0.40", "$0.40"),
            ("$0.405", "$0.405"),
            ("$1200", "$1,200.00"),
            ("1.5%/h", "1.5 %/h"),
            ("512MiB", "512 MiB"),
        ] {
            assert_eq!(exact(written.parse().unwrap()), text);
        }
        assert_eq!(exact(Quantity { value: f64::INFINITY, unit: gate_model::Unit::Time }), "∞");
    }

    #[test]
    fn numbers_of_a_formula_have_four_digits() {
        for (value, text) in [
            (0.139_76, "0.1398"),
            (-2.7031, "−2.703"),
            (0.05, "0.05"),
            (207.123, "207.1"),
            (91.0, "91"),
            (12_345.6, "12346"),
            (0.001_234_56, "0.001235"),
            (0.0, "0"),
            (-0.0, "0"),
        ] {
            assert_eq!(reckoned(value), text, "{value}");
        }
    }

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
