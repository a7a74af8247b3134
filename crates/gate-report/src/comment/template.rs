//! The template, in an environment that escapes whatever it prints.

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Serde, Value};
use minijinja::{Environment, Output, State, UndefinedBehavior};

use super::context::Context;
use crate::layout::clip;
use crate::{ReportError, bounded, escape};

const TEMPLATE: &str = include_str!("../../templates/comment.md.j2");

/// How much of one text is printed, in characters.
const SHOWN: usize = bounded::TEXT;

/// How much of one block is printed, in characters.
const SHOWN_OF_BLOCK: usize = 4_000;

/// A template that is ready to render.
pub(super) struct Template {
    environment: Environment<'static>,
}

impl Template {
    /// The template that is compiled in.
    pub(super) fn new() -> Result<Self, ReportError> {
        let mut environment = Environment::new();
        environment.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?);
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.set_formatter(print);
        environment.add_filter("code", |text: String| safe(escape::markdown_code(&clip(&text, SHOWN))));
        environment.add_filter("block", |text: String| safe(escape::markdown_block(&clip(&text, SHOWN_OF_BLOCK))));
        environment.add_template("comment", TEMPLATE)?;
        Ok(Self { environment })
    }

    /// The text, with single empty lines and one newline at its end.
    pub(super) fn render(&self, context: &Context) -> Result<String, ReportError> {
        let text = self.environment.get_template("comment")?.render(Value::from(Serde(context)))?;
        let mut lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        lines.dedup_by(|line, before| line.is_empty() && before.is_empty());
        Ok(lines.join("\n").trim().to_owned() + "\n")
    }
}

/// Prints a value: escaped, unless a filter has made it Markdown.
fn print(out: &mut Output<'_>, _: &mut State<'_, '_>, value: &Value) -> Result<(), minijinja::Error> {
    let text = value.to_string();
    if value.is_safe() {
        out.write_str(&text)?
    } else {
        out.write_str(&escape::markdown(&clip(&text, SHOWN)))?
    }
    Ok(())
}

fn safe(markdown: String) -> Value {
    Value::from_safe_string(markdown)
}
