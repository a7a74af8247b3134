//! Reading one value: text → a value in base units (nanoseconds, fractions, plain numbers).

mod traffic;

pub(crate) use traffic::arrivals;

use std::fmt::Display;

use gate_model::{Quantity, QuantityError, Unit};
use jiff::civil::Date;
use serde_yaml::{Mapping, Value};

use crate::baseline;
use crate::field::{Leaf, Least};
use crate::problem::nearest;

/// What the name of a gate looks like, as a regular expression.
pub(crate) const NAME: &str = "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$";
/// The most bytes that can be asked for: 1 GiB.
const MOST_BYTES: u32 = 1 << 30;

/// Why a text is not a value of its field. Nothing here repeats the text, except `fix`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Flaw {
    /// What the field asks for, as a predicate: `must be a number above 0`.
    pub(crate) problem: String,
    /// What to do.
    pub(crate) hint: String,
    /// What to do, with the text in it: not for values from the environment.
    pub(crate) fix: Option<String>,
}

impl Flaw {
    pub(crate) fn new(problem: impl Display, hint: impl Display) -> Self {
        Self { problem: problem.to_string(), hint: hint.to_string(), fix: None }
    }

    pub(crate) fn fix(self, fix: impl Display) -> Self {
        Self { fix: Some(fix.to_string()), ..self }
    }
}

impl Leaf {
    /// Whether an empty text means that the key is not set.
    pub(crate) fn empty_is_unset(self) -> bool {
        matches!(self, Self::Text | Self::File | Self::Check | Self::Credential | Self::Metrics)
    }

    /// Reads a text as this kind of value.
    pub(crate) fn read(self, text: &str) -> Result<Value, Flaw> {
        let text = text.trim();
        match self {
            Self::Version => match text {
                "1" => Ok(Value::from(1)),
                _ => Err(Flaw::new("must be 1, the only version there is", "write `version: 1`")),
            },
            Self::Name => name(text),
            Self::Text | Self::Check | Self::Url => Ok(Value::from(text)),
            Self::File => match text.is_empty() {
                true => Err(Flaw::new("must be the name of a file", "name one, or remove the key")),
                false => Ok(Value::from(text)),
            },
            Self::Reason => match text.is_empty() {
                true => Err(Flaw::new("must say why", "such as `reason: \"issue 412\"`")),
                false => Ok(Value::from(text)),
            },
            Self::Date => match text.parse::<Date>() {
                // The parser takes other spellings too, times, and years before the first.
                Ok(date) if date.to_string() == text && date.year() > 0 => Ok(Value::from(text)),
                _ => Err(Flaw::new("must be a day of the calendar, as YYYY-MM-DD", "such as `2027-01-31`")),
            },
            Self::Flag => flag(text),
            Self::Credential => match text.chars().any(char::is_control) {
                true => Err(Flaw::new(
                    "holds a line break or another control character",
                    "set the secret again, as one line",
                )),
                false => Ok(Value::from(text)),
            },
            Self::Path => match text == "auto" || (text.starts_with('/') && !text.contains(char::is_whitespace)) {
                true => Ok(Value::from(text)),
                false => Err(Flaw::new("must be `auto` or a path that starts with `/`", "such as `/health`")),
            },
            Self::Route => match text {
                _ if !text.starts_with('/') => {
                    Err(Flaw::new("must be a path that starts with `/`", "such as `/generate`"))
                }
                _ if text.contains(|symbol: char| symbol.is_whitespace() || symbol.is_control()) => {
                    Err(Flaw::new("holds a blank or a control character", "remove it, or write `%20` for a blank"))
                }
                _ if text.contains('#') => {
                    Err(Flaw::new("holds a fragment (`#…`), which is never sent", "remove the `#` and what follows it"))
                }
                _ => Ok(Value::from(text)),
            },
            Self::Pointer => pointer(text),
            Self::HeaderName => match is_header_name(text) {
                true => Ok(Value::from(text)),
                false => Err(Flaw::new(
                    "must be the name of a header",
                    "a name of letters, digits and `-`, such as `x-served-by`",
                )),
            },
            Self::Time { least, unit } => time(text, least, unit),
            Self::TimeOrNone => or_none(text, |text| time(text, Least::Zero, "ms")),
            Self::Share => share(text, "from 0% to 100%", "30%", |share| share <= 1.0),
            Self::Confidence => {
                share(text, "above 50% and at most 99.9%", "99%", |share| 0.5 < share && share <= 0.999 + 1e-9)
            }
            Self::Bytes => bytes(text),
            Self::Rate { least } => traffic::rate(text, least),
            Self::Rates => traffic::rates(text),
            Self::TokenRate => traffic::token_rate(text),
            Self::PerHour => traffic::per_hour(text),
            Self::Dollars { least } => traffic::dollars(text, least),
            Self::Amount => traffic::amount(text),
            Self::Tokens { most } => {
                let number = ["tokens", "token"].into_iter().find_map(|word| text.strip_suffix(word));
                count(number.unwrap_or(text).trim_end(), 1, most)
                    .map_err(|flaw| flaw.fix("such as `500`, or `500 tokens`"))
            }
            Self::Turns => traffic::turns(text),
            Self::Arrivals => traffic::arrivals(text).map(|_| Value::from(text)),
            Self::Metrics => traffic::metrics(text),
            Self::Image => traffic::image(text),
            Self::Number { least } => number(text, least),
            Self::Count { least, most } => count(text, least, most),
            Self::CountOrNone { most } => {
                // The most is legal whatever the other keys say.
                or_none(text, |text| {
                    count(text, 1, most).map_err(|flaw| Flaw { hint: format!("such as `{most}`"), ..flaw })
                })
            }
            Self::Warmup => match text.parse::<Quantity>() {
                Ok(Quantity { unit: Unit::Time, .. }) => Err(Flaw::new(
                    "as a time is not yet supported",
                    "give the number of warm-up requests, such as `warmup: 5`",
                )),
                _ => count(text, 0, 1_000),
            },
            Self::Seed => text
                .parse::<u64>()
                .map(Value::from)
                .map_err(|_| Flaw::new("must be a whole number from 0 to 18446744073709551615", "such as `seed: 0`")),
            Self::Iterations => iterations(text),
            Self::From => baseline::from(text).map(|_| Value::from(text)),
            Self::Store => baseline::store(text).map(|_| Value::from(text)),
            Self::Word(words) => word(text, words),
        }
    }
}

fn name(text: &str) -> Result<Value, Flaw> {
    let allowed = |symbol: char| symbol.is_ascii_alphanumeric() || "-_.".contains(symbol);
    if text == "baselines" {
        return Err(Flaw::new("is reserved: stored baselines live under it", "choose another name"));
    }
    if gate_model::is_gate_name(text) {
        return Ok(Value::from(text));
    }
    let slug: String = text.chars().map(|symbol| if allowed(symbol) { symbol } else { '-' }).take(64).collect();
    let slug = slug.trim_matches(['-', '.', '_']);
    let flaw = Flaw::new(
        "must be 1 to 64 letters, digits, `-`, `_` or `.`, and start with a letter or digit",
        "it names a folder: something like `chat`",
    );
    Err(if slug.is_empty() { flaw } else { flaw.fix(format!("something like `name: {slug}`")) })
}

/// Whether a text can be the name of a header.
pub(crate) fn is_header_name(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

/// A JSON pointer (RFC 6901) of parts that start with `/`, in which `~` is only part of `~0` or `~1`. The empty one is
/// the whole document, which nobody means.
fn pointer(text: &str) -> Result<Value, Flaw> {
    let escaped = text.split('~').skip(1).all(|rest| rest.starts_with(['0', '1']));
    if escaped && text.starts_with('/') {
        return Ok(Value::from(text));
    }
    if !escaped {
        let flaw = Flaw::new("has a `~` that is neither `~0` nor `~1`", "write `~0` for `~`, and `~1` for `/`");
        return Err(flaw);
    }
    if text.is_empty() {
        let hint = "write one, such as `/choices/0/text`; where there is none to write, leave the key out";
        return Err(Flaw::new("must be a JSON pointer", hint));
    }
    let flaw = Flaw::new("must be a JSON pointer", "it starts with `/`, such as `/choices/0/text`");
    // `$.choices[0].text` is how other tools write it.
    let path = text.trim_start_matches('$').trim_start_matches('.').replace('[', ".").replace([']', '"', '\''], "");
    let is_path = !path.is_empty() && path.chars().all(|symbol| symbol.is_alphanumeric() || "._-".contains(symbol));
    Err(if is_path { flaw.fix(format!("write `/{}`", path.replace('.', "/"))) } else { flaw })
}

fn time(text: &str, least: Least, unit: &str) -> Result<Value, Flaw> {
    let quantity = match text.parse::<Quantity>() {
        Ok(quantity) => quantity,
        Err(QuantityError::TooLarge) => {
            return Err(Flaw::new("must be a time below 30 years", format!("such as `800{unit}`")));
        }
        Err(QuantityError::UnknownUnit(_)) => {
            return Err(Flaw::new(
                format!("must be a time in {}", Unit::Time.spellings()),
                format!("such as `800{unit}`"),
            ));
        }
        Err(QuantityError::NotANumber(_)) => {
            return Err(Flaw::new("must be a time", format!("a number with its unit, such as `800{unit}`")));
        }
    };
    match (quantity.unit, quantity.value > 0.0) {
        (Unit::Time, true) => Ok(Value::from(quantity.value.round() as i64)),
        (Unit::Time | Unit::Count, false) if least == Least::Zero => Ok(Value::from(0)),
        (Unit::Time | Unit::Count, false) => Err(Flaw::new("must be a time above 0", format!("such as `800{unit}`"))),
        (Unit::Count, true) => {
            Err(Flaw::new("needs a unit", format!("times carry their unit: {}", Unit::Time.spellings()))
                .fix(format!("times carry their unit: `{text}{unit}`")))
        }
        _ => Err(Flaw::new(format!("must be a time in {}", Unit::Time.spellings()), format!("such as `800{unit}`"))),
    }
}

fn flag(text: &str) -> Result<Value, Flaw> {
    let flaw = Flaw::new("must be `true` or `false`", "write `true` or `false`");
    match text {
        "true" => Ok(Value::from(true)),
        "false" => Ok(Value::from(false)),
        _ => Err(match text.to_lowercase().as_str() {
            "true" | "yes" | "on" | "1" => flaw.fix("write `true`"),
            "false" | "no" | "off" | "0" => flaw.fix("write `false`"),
            _ => flaw,
        }),
    }
}

fn share(text: &str, wanted: &str, example: &str, fits: impl Fn(f64) -> bool) -> Result<Value, Flaw> {
    let flaw = Flaw::new(format!("must be a share {wanted}"), format!("such as `{example}`"));
    match text.parse::<Quantity>() {
        Ok(Quantity { unit: Unit::Share, value }) if fits(value) => Ok(Value::from(value)),
        Ok(Quantity { unit: Unit::Count, value: 0.0 }) if fits(0.0) => Ok(Value::from(0.0)),
        Ok(Quantity { unit: Unit::Count, value }) => {
            let percent = if value <= 1.0 { (value * 1e5).round() / 1e3 } else { value };
            Err(if fits(percent / 100.0) { flaw.fix(format!("write it in percent: `{percent}%`")) } else { flaw })
        }
        _ => Err(flaw),
    }
}

fn bytes(text: &str) -> Result<Value, Flaw> {
    let (number, unit) = text.split_at(text.find(|symbol: char| !symbol.is_ascii_digit()).unwrap_or(text.len()));
    let flaw = Flaw::new("must be a number of bytes in B, KiB or MiB, at most 1024MiB", "such as `16KiB`");
    let Ok(number) = number.parse::<u32>() else { return Err(flaw) };
    let factor = match unit.trim() {
        "" if number == 0 => 1,
        "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "" => return Err(flaw.fix(format!("give it its unit: `{number}B`, or `{number}KiB`"))),
        "k" | "K" | "kB" | "KB" | "kb" | "Kb" | "kib" | "Ki" => return Err(flaw.fix(format!("write `{number}KiB`"))),
        "M" | "MB" | "mb" | "Mb" | "mib" | "Mi" => return Err(flaw.fix(format!("write `{number}MiB`"))),
        _ => return Err(flaw),
    };
    match number.checked_mul(factor) {
        Some(bytes) if bytes <= MOST_BYTES => Ok(Value::from(bytes)),
        _ => Err(flaw),
    }
}

fn number(text: &str, least: Least) -> Result<Value, Flaw> {
    match plain(text) {
        Some(number) if least.allows(number) => Ok(Value::from(number)),
        _ => Err(spelt_out(
            text,
            match least {
                Least::Zero => Flaw::new("must be a number, 0 or more", "without a unit, such as `150`"),
                Least::AboveZero => Flaw::new("must be a number above 0", "without a unit, such as `550`"),
                Least::One => Flaw::new("must be a number, 1 or more", "without a unit, such as `3`"),
            },
        )),
    }
}

/// The flaw of a number; of one with an exponent it says that none is read.
fn spelt_out(text: &str, flaw: Flaw) -> Flaw {
    let exponents = text.chars().filter(char::is_ascii_alphabetic).collect::<String>();
    match text.parse::<f64>() {
        Ok(number) if exponents.eq_ignore_ascii_case("e") && (1e-9..1e15).contains(&number) => {
            flaw.fix(format!("an exponent is not read: write `{number}`"))
        }
        _ => flaw,
    }
}

/// A decimal number without sign, exponent or unit.
fn plain(text: &str) -> Option<f64> {
    match text.parse::<Quantity>() {
        Ok(Quantity { unit: Unit::Count, value }) => Some(value),
        _ => None,
    }
}

fn count(text: &str, least: u32, most: u32) -> Result<Value, Flaw> {
    let is_whole = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let example = match text.parse::<u32>() {
        Ok(count) if (least..=most).contains(&count) => return Ok(Value::from(count)),
        Ok(count) if count < least => least,
        // Too large, also for the type.
        _ if is_whole => most,
        _ => least.max(1),
    };
    let advice = if is_whole { "such as" } else { "without a unit, such as" };
    Err(Flaw::new(format!("must be a whole number from {least} to {most}"), format!("{advice} `{example}`")))
}

/// `{}` for `none`, else `{value: …}`: a shape that keeps "none" and "absent" apart.
fn or_none(text: &str, read: impl Fn(&str) -> Result<Value, Flaw>) -> Result<Value, Flaw> {
    let mut map = Mapping::new();
    if text != "none" {
        let value = read(text).map_err(|flaw| Flaw { problem: format!("{}, or `none`", flaw.problem), ..flaw })?;
        map.insert(Value::from("value"), value);
    }
    Ok(Value::Mapping(map))
}

/// The ends of `A..B`, or the one of `B`.
pub(crate) fn range(text: &str) -> Option<(Option<u32>, u32)> {
    let read = |text: &str| text.trim().parse::<u32>().ok();
    match text.split_once("..") {
        None => Some((None, read(text)?)),
        Some((first, last)) => Some((Some(read(first)?), read(last)?)),
    }
}

/// `{last}` for `N`, else `{first, last}`.
fn iterations(text: &str) -> Result<Value, Flaw> {
    let flaw = || Flaw::new("must be a range `A..B` or a number", "such as `30..50`, or `100`");
    let mut map = Mapping::new();
    let (first, last) = range(text).ok_or_else(flaw)?;
    match first {
        Some(first) if first > last => {
            return Err(
                Flaw::new("must not end below its start", "such as `30..50`").fix(format!("write `{last}..{first}`"))
            );
        }
        Some(0) => return Err(Flaw::new("must start at 1 or more", "such as `30..50`")),
        Some(_) if last > 1_000 => {
            return Err(Flaw::new(
                "must not go beyond 1000 as a range",
                "a fixed number, such as `iterations: 5000`, may be larger",
            ));
        }
        None if last == 0 || last > 1_000_000 => {
            return Err(Flaw::new(
                "must be a number from 1 to 1000000, or a range `A..B`",
                "such as `100`, or `30..50`",
            ));
        }
        _ => {}
    }
    if let Some(first) = first {
        map.insert(Value::from("first"), Value::from(first));
    }
    map.insert(Value::from("last"), Value::from(last));
    Ok(Value::Mapping(map))
}

/// Words as a sentence offers them: `a`, `b` or `c`.
pub(crate) fn alternatives(words: &[&str]) -> String {
    let list = words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>();
    match list.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
        None => String::new(),
    }
}

fn word(text: &str, words: &[&str]) -> Result<Value, Flaw> {
    if words.contains(&text) {
        return Ok(Value::from(text));
    }
    let list = alternatives(words);
    let flaw = match words.len() {
        ..=4 => Flaw::new(format!("must be {list}"), format!("write {list}")),
        5..=10 => Flaw::new(format!("must be {list}"), "write one of these words"),
        many => Flaw::new(format!("must be one of {many} words"), format!("write {list}")),
    };
    let meant = SPOKEN.iter().find(|(server, word)| words.contains(word) && text.eq_ignore_ascii_case(server));
    if let Some((_, word)) = meant {
        return Err(flaw.fix(format!("use `{word}`")));
    }
    Err(match nearest(text, words.iter().copied()).or_else(|| begun(text, words)) {
        Some(word) => flaw.fix(format!("did you mean `{word}`?")),
        None => flaw,
    })
}

/// What servers and services speak that people name instead of their dialect.
const SPOKEN: [(&str, &str); 20] = [
    ("openai", "openai-chat"),
    ("azure", "openai-chat"),
    ("azure-openai", "openai-chat"),
    ("vllm", "openai-chat"),
    ("lmstudio", "openai-chat"),
    ("lm-studio", "openai-chat"),
    ("litellm", "openai-chat"),
    ("deepseek", "openai-chat"),
    ("xai", "openai-chat"),
    ("openrouter", "openai-chat"),
    ("groq", "openai-chat"),
    ("mistral", "openai-chat"),
    ("perplexity", "openai-chat"),
    ("moonshot", "openai-chat"),
    ("snowflake", "openai-chat"),
    ("claude", "anthropic"),
    ("vertex", "gemini"),
    ("bedrock", "bedrock-converse"),
    ("llama.cpp", "llamacpp"),
    ("tensorrt-llm", "triton"),
];

/// The first word that a text begins, or that begins the text: `openai` for `openai-chat`, `exactly` for `exact`.
fn begun<'a>(text: &str, words: &[&'a str]) -> Option<&'a str> {
    let text = text.to_lowercase();
    let is_begun = |word: &&&str| text.len() >= 3 && (word.starts_with(&text) || text.starts_with(**word));
    words.iter().find(is_begun).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(leaf: Leaf, text: &str) -> String {
        match leaf.read(text) {
            Ok(value) => serde_json::to_string(&value).unwrap(),
            Err(flaw) => format!("{}; {}", flaw.problem, flaw.fix.unwrap_or(flaw.hint)),
        }
    }

    #[test]
    fn values_come_in_base_units() {
        let limit = Leaf::Time { least: Least::AboveZero, unit: "ms" };
        for (leaf, written, read) in [
            (limit, "800ms", "800000000"),
            (limit, "1.5 s", "1500000000"),
            (limit, "800", "needs a unit; times carry their unit: `800ms`"),
            (limit, "0", "must be a time above 0; such as `800ms`"),
            (limit, "5%", "must be a time in us, ms, s, m, h or d; such as `800ms`"),
            (limit, "5 parsecs", "must be a time in us, ms, s, m, h or d; such as `800ms`"),
            (Leaf::Time { least: Least::Zero, unit: "ms" }, "0", "0"),
            (Leaf::TimeOrNone, "none", "{}"),
            (Leaf::TimeOrNone, "5ms", "{\"value\":5000000}"),
            (Leaf::Share, "30%", "0.3"),
            (Leaf::Share, "0", "0.0"),
            (Leaf::Share, "0.3", "must be a share from 0% to 100%; write it in percent: `30%`"),
            (Leaf::Share, "30", "must be a share from 0% to 100%; write it in percent: `30%`"),
            (Leaf::Confidence, "99%", "0.99"),
            (Leaf::Confidence, "99.9", "must be a share above 50% and at most 99.9%; write it in percent: `99.9%`"),
            (Leaf::Confidence, "40", "must be a share above 50% and at most 99.9%; such as `99%`"),
            (Leaf::Bytes, "16KiB", "16384"),
            (Leaf::Bytes, "2 MiB", "2097152"),
            (Leaf::Bytes, "0", "0"),
            (Leaf::Bytes, "1024MiB", "1073741824"),
            (Leaf::Flag, "true", "true"),
            (Leaf::Flag, "No", "must be `true` or `false`; write `false`"),
            (Leaf::Date, "2028-02-29", "\"2028-02-29\""),
            (Leaf::Reason, "412", "\"412\""),
            (Leaf::Route, "/g?x=1", "\"/g?x=1\""),
            (Leaf::Route, "g h", "must be a path that starts with `/`; such as `/generate`"),
            (Leaf::Pointer, "/a~1b/0", "\"/a~1b/0\""),
            (Leaf::Word(&["openai-chat", "triton"]), "Azure", "must be `openai-chat` or `triton`; use `openai-chat`"),
            (Leaf::Word(&["sse", "ndjson"]), "vllm", "must be `sse` or `ndjson`; write `sse` or `ndjson`"),
            (Leaf::Number { least: Least::One }, "1", "1.0"),
            (Leaf::Rate { least: Least::AboveZero }, "0.5", "0.5"),
            (Leaf::Rate { least: Least::AboveZero }, "2", "2.0"),
            (
                Leaf::Rate { least: Least::AboveZero },
                "1e2",
                "must be a number of requests per second above 0, at most 100000; an exponent is not read: write `100`",
            ),
            (
                Leaf::Number { least: Least::One },
                "1.5E3",
                "must be a number, 1 or more; an exponent is not read: write `1500`",
            ),
            (Leaf::Seed, "007", "7"),
            (Leaf::Iterations, "30..50", "{\"first\":30,\"last\":50}"),
            (Leaf::Iterations, "30 .. 50", "{\"first\":30,\"last\":50}"),
            (Leaf::Iterations, "100", "{\"last\":100}"),
            (
                Leaf::CountOrNone { most: 2_000 },
                "99999999999",
                "must be a whole number from 1 to 2000, or `none`; such as `2000`",
            ),
            (
                Leaf::CountOrNone { most: 2_000 },
                "0",
                "must be a whole number from 1 to 2000, or `none`; such as `2000`",
            ),
            (Leaf::Count { least: 1, most: 10 }, "11", "must be a whole number from 1 to 10; such as `10`"),
            (
                Leaf::Count { least: 1, most: 10 },
                "5s",
                "must be a whole number from 1 to 10; without a unit, such as `1`",
            ),
            (Leaf::Iterations, "50..30", "must not end below its start; write `30..50`"),
            (
                Leaf::Warmup,
                "30s",
                "as a time is not yet supported; give the number of warm-up requests, such as `warmup: 5`",
            ),
            (
                Leaf::Name,
                "my gate!",
                "must be 1 to 64 letters, digits, `-`, `_` or `.`, and start with a letter or digit; something like `name: my-gate`",
            ),
        ] {
            assert_eq!(text(leaf, written), read, "{written}");
        }
    }

    #[test]
    fn numbers_out_of_range_are_refused() {
        for (leaf, written) in [
            (Leaf::Rate { least: Least::AboveZero }, "0"),
            (Leaf::Rate { least: Least::AboveZero }, "100001"),
            (Leaf::Rate { least: Least::AboveZero }, "-1"),
            (Leaf::Rate { least: Least::AboveZero }, "1e3"),
            (Leaf::Rate { least: Least::AboveZero }, ".inf"),
            (Leaf::Rate { least: Least::AboveZero }, "2/s"),
            (Leaf::Share, "101%"),
            (Leaf::Confidence, "50%"),
            (Leaf::Confidence, "100%"),
            (Leaf::Bytes, "1025MiB"),
            (Leaf::Bytes, "4096MiB"),
            (Leaf::Bytes, "1.5KiB"),
            (Leaf::Bytes, "KiB"),
            (Leaf::Date, "2027-02-29"),
            (Leaf::Date, "2027-1-31"),
            (Leaf::Date, "20270131"),
            (Leaf::Date, "2027-01-31T10:00:00"),
            (Leaf::Date, "-002027-01-31"),
            (Leaf::Number { least: Least::One }, "0.99"),
            (Leaf::Seed, "-1"),
            (Leaf::Seed, "18446744073709551616"),
            (Leaf::Iterations, "0"),
            (Leaf::Iterations, "0..5"),
            (Leaf::Iterations, "30..1001"),
            (Leaf::Iterations, "1..2..3"),
            (Leaf::Count { least: 1, most: 10 }, "11"),
            (Leaf::Count { least: 1, most: 10 }, "0x5"),
            (Leaf::CountOrNone { most: 2_000 }, "2001"),
        ] {
            assert!(leaf.read(written).is_err(), "{written}");
        }
    }
}
