//! Values from the environment: `${VAR}`, `${VAR:-default}`, `${VAR:?message}`, and `$${` for a literal `${`.

use std::collections::BTreeMap;

/// A text with its variables filled in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Filled {
    pub(crate) text: String,
    /// The variables it names, whether or not a default stood in.
    pub(crate) variables: Vec<String>,
    /// The values that came from the environment.
    pub(crate) values: Vec<String>,
}

/// Why a text cannot be filled in.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FillError {
    /// A variable that is not set, or empty.
    #[error("needs the environment variable `{name}`, which is {}{}", state(*.empty), reason(.message))]
    Missing { name: String, empty: bool, message: String },
    /// A `${` without its `}`.
    #[error("has a `${{` without its `}}`")]
    Unclosed,
    /// Not a name, or an unknown operator behind it.
    #[error("has a `${{…}}` that is not a variable")]
    Malformed,
    /// A `${` inside a default or message.
    #[error("has a `${{` inside another `${{…}}`")]
    Nested,
}

fn state(empty: bool) -> &'static str {
    if empty { "empty" } else { "not set" }
}

fn reason(message: &str) -> String {
    if message.is_empty() { String::new() } else { format!(": {message}") }
}

/// Fills in the variables of a text, once: what they hold is never looked into again. `clean` makes of a variable's
/// value what is filled in.
pub(crate) fn fill(
    text: &str,
    environment: &BTreeMap<String, String>,
    clean: fn(&str) -> &str,
) -> Result<Filled, FillError> {
    let mut filled = Filled::default();
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let (before, tail) = rest.split_at(start);
        let tail = tail.strip_prefix("${").unwrap_or(tail);
        if let Some(before) = before.strip_suffix('$') {
            filled.text.push_str(before);
            filled.text.push_str("${");
            rest = tail;
            continue;
        }
        filled.text.push_str(before);
        let (inner, after) = tail.split_once('}').ok_or(FillError::Unclosed)?;
        if inner.contains("${") {
            return Err(FillError::Nested);
        }
        expand(inner, environment, clean, &mut filled)?;
        rest = after;
    }
    filled.text.push_str(rest);
    Ok(filled)
}

fn expand(
    inner: &str,
    environment: &BTreeMap<String, String>,
    clean: fn(&str) -> &str,
    filled: &mut Filled,
) -> Result<(), FillError> {
    let end = inner.find(|symbol: char| !(symbol.is_ascii_alphanumeric() || symbol == '_')).unwrap_or(inner.len());
    let (name, operator) = inner.split_at(end);
    if name.is_empty() || name.starts_with(|first: char| first.is_ascii_digit()) {
        return Err(FillError::Malformed);
    }
    let default = operator.strip_prefix(":-");
    let message = operator.strip_prefix(":?");
    if !operator.is_empty() && default.is_none() && message.is_none() {
        return Err(FillError::Malformed);
    }
    filled.variables.push(name.to_owned());
    let value = environment.get(name).map(|value| clean(value));
    match (value.filter(|value| !value.is_empty()), default) {
        (Some(value), _) => {
            filled.text.push_str(value);
            filled.values.push(value.to_owned());
        }
        (None, Some(default)) => filled.text.push_str(default),
        (None, None) => {
            let message = message.unwrap_or("").trim().to_owned();
            return Err(FillError::Missing { name: name.to_owned(), empty: value.is_some(), message });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(text: &str) -> Result<String, FillError> {
        cleaned(text, |value| value)
    }

    fn cleaned(text: &str, clean: fn(&str) -> &str) -> Result<String, FillError> {
        let environment = [("A", "one"), ("E", ""), ("D", "${A}"), ("BLANK", " \n"), ("LINE", "one\n")];
        let environment = environment.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        fill(text, &environment, clean).map(|filled| filled.text)
    }

    #[test]
    fn every_form() {
        for (text, result) in [
            ("${A}", "one"),
            ("x${A}y${A}", "xoneyone"),
            ("${B:-two}", "two"),
            ("${B:-}", ""),
            ("${E:-empty is unset}", "empty is unset"),
            ("${A:-two}", "one"),
            ("${A:?needed}", "one"),
            ("$${A}", "${A}"),
            ("$$${A}", "$${A}"),
            ("$A and $", "$A and $"),
            ("${D}", "${A}"),
        ] {
            assert_eq!(filled(text).as_deref(), Ok(result), "{text}");
        }
    }

    #[test]
    fn a_cleaned_value_may_be_empty() {
        assert_eq!(cleaned("<${LINE}>", str::trim).as_deref(), Ok("<one>"));
        assert_eq!(cleaned("${BLANK:-two}", str::trim).as_deref(), Ok("two"));
        assert!(matches!(cleaned("${BLANK}", str::trim), Err(FillError::Missing { empty: true, .. })));
        assert_eq!(filled("<${LINE}${BLANK}>").as_deref(), Ok("<one\n \n>"));
    }

    #[test]
    fn every_error() {
        let missing = |name: &str, empty, message: &str| {
            Err(FillError::Missing { name: name.into(), empty, message: message.into() })
        };
        assert_eq!(filled("${B}"), missing("B", false, ""));
        assert_eq!(filled("${E}"), missing("E", true, ""));
        assert_eq!(filled("${B:?say why}"), missing("B", false, "say why"));
        assert_eq!(filled("${B"), Err(FillError::Unclosed));
        for text in ["${}", "${1A}", "${A:+x}", "${A-x}", "${A B}"] {
            assert_eq!(filled(text), Err(FillError::Malformed), "{text}");
        }
        assert_eq!(filled("${B:-${A}}"), Err(FillError::Nested));
    }
}
