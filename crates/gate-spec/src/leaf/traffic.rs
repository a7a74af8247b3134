//! Reading the values of load, prompts, engine and budget: rates, growth, money, and what they are made of.

use gate_model::{Arrivals, Quantity, Unit};
use serde_yaml::{Mapping, Value};

use super::{Flaw, count, plain, range, spelt_out};
use crate::endpoint;
use crate::field::Least;
use crate::problem::nearest;

/// The most requests per second.
const MOST_RATE: f64 = 100_000.0;
/// The most turns of a conversation.
const MOST_TURNS: u32 = 100;
/// The most tokens or requests a budget can have.
const MOST_AMOUNT: u64 = 1_000_000_000_000;
/// The largest growth per hour, as a share.
const MOST_GROWTH: f64 = 10.0;

pub(super) fn rate(text: &str, least: Least) -> Result<Value, Flaw> {
    match plain(text) {
        Some(rate) if least.allows(rate) && rate <= MOST_RATE => Ok(Value::from(rate)),
        _ => {
            let flaw = match least {
                Least::Zero => Flaw::new(
                    "must be a number of requests per second, 0 or more and at most 100000",
                    "without a unit, such as `2` or `0.5`",
                ),
                Least::AboveZero | Least::One => Flaw::new(
                    "must be a number of requests per second above 0, at most 100000",
                    "without a unit, such as `rps: 2` or `rps: 0.5`",
                ),
            };
            Err(spelt_out(text, flaw))
        }
    }
}

/// `{from, to}`, which are the same for one number.
pub(super) fn rates(text: &str) -> Result<Value, Flaw> {
    let (from, to) = text.split_once("..").unwrap_or((text, text));
    let read = |text: &str| plain(text.trim()).filter(|rate| *rate <= MOST_RATE);
    let (Some(from), Some(to)) = (read(from), read(to)) else {
        let flaw = Flaw::new(
            "must be requests per second, `R` or `A..B`, each at most 100000",
            "without a unit, such as `rps: 2`, or `rps: 1..4` for a straight line from 1 to 4",
        );
        return Err(spelt_out(text, flaw));
    };
    Ok(map([("from", Value::from(from)), ("to", Value::from(to))]))
}

pub(super) fn token_rate(text: &str) -> Result<Value, Flaw> {
    match text.parse::<Quantity>() {
        Ok(Quantity { value, unit: Unit::Count | Unit::TokensPerSecond }) if value > 0.0 => Ok(Value::from(value)),
        _ => Err(Flaw::new("must be a number of tokens per second above 0", "such as `2000`, or `2000 tok/s`")),
    }
}

pub(super) fn per_hour(text: &str) -> Result<Value, Flaw> {
    let flaw = Flaw::new("must be a growth from 0%/h to 1000%/h", "such as `2%/h`");
    match text.parse::<Quantity>() {
        Ok(Quantity { value, unit: Unit::PerHour }) if value <= MOST_GROWTH => Ok(Value::from(value)),
        Ok(Quantity { value: 0.0, unit: Unit::Count }) => Ok(Value::from(0.0)),
        Ok(Quantity { unit: Unit::Share, .. }) => Err(flaw.fix(format!("say per what time: `{text}/h`"))),
        _ => Err(flaw),
    }
}

pub(super) fn dollars(text: &str, least: Least) -> Result<Value, Flaw> {
    match text.parse::<Quantity>() {
        Ok(Quantity { value, unit: Unit::Dollars | Unit::Count }) if least.allows(value) => Ok(Value::from(value)),
        _ if least == Least::Zero => {
            Err(Flaw::new("must be a number of dollars, 0 or more", "such as `$2.50`, or `2.50`"))
        }
        _ => Err(Flaw::new("must be a number of dollars above 0", "such as `$0.40`, or `0.40`")),
    }
}

pub(super) fn amount(text: &str) -> Result<Value, Flaw> {
    match text.parse::<u64>() {
        Ok(amount) if (1..=MOST_AMOUNT).contains(&amount) && !text.starts_with('+') => Ok(Value::from(amount)),
        _ => Err(Flaw::new(
            format!("must be a whole number from 1 to {MOST_AMOUNT}"),
            "without a unit and in digits alone, such as `200000`",
        )),
    }
}

/// `{min, max}`, which are the same for one number.
pub(super) fn turns(text: &str) -> Result<Value, Flaw> {
    let Some((first, last)) = range(text).filter(|_| text.contains("..")) else {
        let turns = count(text, 1, MOST_TURNS);
        let turns = turns.map_err(|flaw| Flaw { problem: format!("{}, or a range `A..B`", flaw.problem), ..flaw })?;
        return Ok(map([("min", turns.clone()), ("max", turns)]));
    };
    match first.unwrap_or(last) {
        first if first > last => {
            Err(Flaw::new("must not end below its start", "such as `3..5`").fix(format!("write `{last}..{first}`")))
        }
        first if first == 0 || last > MOST_TURNS => {
            Err(Flaw::new(format!("must be from 1 to {MOST_TURNS} turns"), "such as `3..5`, or `3`"))
        }
        first => Ok(map([("min", Value::from(first)), ("max", Value::from(last))])),
    }
}

/// `poisson`, `constant`, or `gamma(SHAPE)`.
pub(crate) fn arrivals(text: &str) -> Result<Arrivals, Flaw> {
    let flaw = |hint: &str| Flaw::new("must be `poisson`, `constant` or `gamma(SHAPE)`", hint);
    match text {
        "poisson" => return Ok(Arrivals::Poisson),
        "constant" => return Ok(Arrivals::Constant),
        _ => {}
    }
    let Some(rest) = text.strip_prefix("gamma") else {
        let flaw = flaw("write `poisson`, `constant`, or `gamma(0.5)` for arrivals in bursts");
        return Err(match nearest(text, ["poisson", "constant"]) {
            Some(near) => flaw.fix(format!("did you mean `{near}`?")),
            None => flaw,
        });
    };
    let shape = rest.trim().strip_prefix('(').and_then(|rest| rest.strip_suffix(')'));
    let example = "its shape is a number from 0.01 to 1000, such as `gamma(0.5)`: burstier than `poisson` below 1";
    match shape.and_then(|shape| plain(shape.trim())) {
        Some(shape) if (0.01..=1000.0).contains(&shape) => Ok(Arrivals::Gamma(shape)),
        _ => Err(flaw(example)),
    }
}

/// A URL over HTTP without a user name, or a path on the target's host.
pub(super) fn metrics(text: &str) -> Result<Value, Flaw> {
    let hint = "such as `/metrics`, or `http://127.0.0.1:8000/metrics`";
    if text.starts_with('/') {
        return match text.contains(|symbol: char| symbol.is_whitespace() || symbol.is_control() || symbol == '#') {
            true => Err(Flaw::new("holds a blank, a control character or a `#`", hint)),
            false => Ok(Value::from(text)),
        };
    }
    if gate_model::UnixUrl::parse(text).is_none() && !text.contains("://") {
        return Err(Flaw::new("must be an http or https URL, or a path that starts with `/`", hint));
    }
    match endpoint::parse(text) {
        Ok(_) => Ok(Value::from(text)),
        Err(error) => Err(Flaw::new(error, hint)),
    }
}

pub(super) fn image(text: &str) -> Result<Value, Flaw> {
    if text.is_empty() {
        return Err(Flaw::new("must be the URL or the file of an image", "name one, or remove the line"));
    }
    if !text.contains("://") {
        return Ok(Value::from(text));
    }
    match endpoint::parse(text) {
        Ok(_) => Ok(Value::from(text)),
        Err(error) => Err(Flaw::new(error, "such as `https://example.com/cat.png`, or the name of a file")),
    }
}

fn map<const N: usize>(entries: [(&str, Value); N]) -> Value {
    Value::Mapping(Mapping::from_iter(entries.map(|(name, value)| (Value::from(name), value))))
}

#[cfg(test)]
mod tests {
    use crate::field::{Leaf, Least};

    fn text(leaf: Leaf, text: &str) -> String {
        match leaf.read(text) {
            Ok(value) => serde_json::to_string(&value).unwrap(),
            Err(flaw) => format!("{}; {}", flaw.problem, flaw.fix.unwrap_or(flaw.hint)),
        }
    }

    #[test]
    fn values_read() {
        let free = Leaf::Dollars { least: Least::Zero };
        for (leaf, written, read) in [
            (Leaf::Rate { least: Least::Zero }, "0", "0.0"),
            (Leaf::Rates, "2", r#"{"from":2.0,"to":2.0}"#),
            (Leaf::Rates, "1 .. 4.5", r#"{"from":1.0,"to":4.5}"#),
            (Leaf::TokenRate, "2000", "2000.0"),
            (Leaf::TokenRate, "2000 tok/s", "2000.0"),
            (Leaf::PerHour, "2%/h", "0.02"),
            (Leaf::PerHour, "0", "0.0"),
            (free, "$2.50", "2.5"),
            (free, "2.5", "2.5"),
            (free, "0", "0.0"),
            (Leaf::Amount, "5000000000", "5000000000"),
            (Leaf::Tokens { most: 2000 }, "500", "500"),
            (Leaf::Tokens { most: 2000 }, "500 tokens", "500"),
            (Leaf::Turns, "3", r#"{"min":3,"max":3}"#),
            (Leaf::Turns, "3..5", r#"{"min":3,"max":5}"#),
            (Leaf::Arrivals, "gamma(0.5)", r#""gamma(0.5)""#),
            (Leaf::Metrics, "/metrics", r#""/metrics""#),
            (Leaf::Metrics, "https://h/metrics", r#""https://h/metrics""#),
            (Leaf::Image, "cat.png", r#""cat.png""#),
        ] {
            assert_eq!(text(leaf, written), read, "{leaf:?} {written}");
        }
    }

    #[test]
    fn flaws_say_what_to_write() {
        for (leaf, written, part) in [
            (Leaf::Rates, "4..", "`R` or `A..B`"),
            (Leaf::Rates, "2/s", "`R` or `A..B`"),
            (Leaf::TokenRate, "0", "above 0"),
            (Leaf::PerHour, "2%", "`2%/h`"),
            (Leaf::PerHour, "1001%/h", "0%/h to 1000%/h"),
            (Leaf::Dollars { least: Least::AboveZero }, "0", "above 0"),
            (Leaf::Dollars { least: Least::Zero }, "2 EUR", "dollars"),
            (Leaf::Amount, "1e6", "digits alone"),
            (Leaf::Amount, "0", "from 1"),
            (Leaf::Tokens { most: 2000 }, "2001 tokens", "from 1 to 2000"),
            (Leaf::Turns, "0", "1 to 100"),
            (Leaf::Turns, "5..3", "`3..5`"),
            (Leaf::Turns, "1..101", "from 1 to 100 turns"),
            (Leaf::Arrivals, "gamma", "gamma(0.5)"),
            (Leaf::Arrivals, "gamma(0)", "from 0.01"),
            (Leaf::Arrivals, "burst", "gamma(0.5)"),
            (Leaf::Metrics, "metrics", "a path that starts with `/`"),
            (Leaf::Metrics, "http://me:word@h/metrics", "user name or password"),
            (Leaf::Metrics, "/a b", "a blank"),
            (Leaf::Image, "ftp://h/cat.png", "scheme"),
        ] {
            assert!(text(leaf, written).contains(part), "{leaf:?} {written}: {}", text(leaf, written));
        }
    }
}
