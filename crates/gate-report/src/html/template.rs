//! The pages' templates, in an environment that escapes whatever it prints.

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Serde, Value};
use minijinja::{Environment, Output, State, UndefinedBehavior};
use serde::Serialize;

use crate::{ReportError, escape};

/// What a page is made of: the templates by their names.
const TEMPLATES: [(&str, &str); 4] = [
    ("page", include_str!("../../templates/page.html.j2")),
    ("report", include_str!("../../templates/report.html.j2")),
    ("gate", include_str!("../../templates/gate.html.j2")),
    ("versus", include_str!("../../templates/versus.html.j2")),
];

/// The styles, in the order they apply.
const STYLES: [&str; 4] = [
    include_str!("../../assets/uPlot.min.css"),
    include_str!("../../assets/report.css"),
    include_str!("../../assets/pictures.css"),
    include_str!("../../assets/interactive.css"),
];

/// The page's script: parts that know each other and nothing else of the page.
const SCRIPT: [&str; 6] = [
    include_str!("../../assets/script/document.js"),
    include_str!("../../assets/script/gate.js"),
    include_str!("../../assets/script/tip.js"),
    include_str!("../../assets/script/plot.js"),
    include_str!("../../assets/script/table.js"),
    include_str!("../../assets/script/page.js"),
];

/// The library that plots, and its licence, which goes with every copy.
const PLOTS: [&str; 2] = [include_str!("../../assets/LICENSE-uPlot"), include_str!("../../assets/uPlot.iife.min.js")];

/// A page by the template of this name.
pub(super) fn render(name: &str, view: &impl Serialize, data: String) -> Result<String, ReportError> {
    let mut environment = Environment::new();
    environment.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?);
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_formatter(print);
    environment.add_filter("prose", |text: String| Value::from_safe_string(prose(&text)));
    for (name, text) in TEMPLATES {
        environment.add_template(name, text)?;
    }
    environment.add_global("styles", Value::from_safe_string(STYLES.join("\n")));
    environment.add_global("scripts", Value::from_safe_string(scripts()));
    environment.add_global("data", Value::from_safe_string(data));
    let text = environment.get_template(name)?.render(Value::from(Serde(view)))?;
    Ok(format!("{}\n", text.trim()))
}

/// What runs in the page, in a scope of its own.
fn scripts() -> String {
    let [licence, plots] = PLOTS;
    format!("/*\n{licence}*/\n{plots}\n(() => {{\n'use strict';\n{}}})();", SCRIPT.concat())
}

/// Prints a value as text of HTML, unless it is markup of our own.
fn print(out: &mut Output<'_>, _: &mut State<'_, '_>, value: &Value) -> Result<(), minijinja::Error> {
    if value.is_undefined() || value.is_none() {
        return Ok(());
    }
    let text = value.to_string();
    if value.is_safe() {
        return Ok(out.write_str(&text)?);
    }
    Ok(out.write_str(&escaped(&text))?)
}

/// Text for any place in HTML.
fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for symbol in escape::xml_text(text).chars() {
        match symbol {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            symbol => safe.push(symbol),
        }
    }
    safe
}

/// A sentence whose words between backticks are code.
fn prose(text: &str) -> String {
    let mut pieces: Vec<&str> = text.split('`').collect();
    // One that nothing ends is a backtick.
    let last = if pieces.len().is_multiple_of(2) { pieces.pop() } else { None };
    let marked = pieces
        .iter()
        .enumerate()
        .map(|(place, piece)| if place % 2 == 1 { format!("<code>{}</code>", escaped(piece)) } else { escaped(piece) });
    marked.chain(last.map(|rest| format!("`{}", escaped(rest)))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_stands_between_two_backticks() {
        assert_eq!(prose("see `a<b` and `c`."), "see <code>a&lt;b</code> and <code>c</code>.");
        assert_eq!(prose("one ` alone & well"), "one ` alone &amp; well");
        assert_eq!(prose("`a` and ` alone"), "<code>a</code> and ` alone");
        assert_eq!(prose(""), "");
    }
}
