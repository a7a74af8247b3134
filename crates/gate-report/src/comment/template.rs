//! The template, in an environment that escapes whatever it prints.

mod nearest;
mod page;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Serde, Value};
use minijinja::{Environment, ErrorKind, Output, State, UndefinedBehavior};

use super::context::Context;
use crate::layout::clip;
use crate::{ReportError, bounded, escape};
use nearest::nearest;
use page::Page;

const TEMPLATE: &str = include_str!("../../templates/comment.md.j2");

/// How much of one text is printed, in characters.
const SHOWN: usize = bounded::TEXT;

/// How much of one block is printed, in characters.
const SHOWN_OF_BLOCK: usize = 4_000;

/// How long the text of a template may be.
const MOST: usize = 64 << 10;

/// How much a user's template may write, in bytes: several times what any forge takes.
const MOST_WRITTEN: usize = 256 << 10;

/// The stack of a user's template, in bytes: thousands of times its text. What is not used takes no memory.
const STACK: usize = 512 << 20;

/// How many steps a user's template may take.
const STEPS: u64 = 5_000_000;

/// What the engine calls a template that comes from nowhere else.
const NAME: &str = "comment";

/// How much of a name that is not there is quoted, in characters.
const QUOTED: usize = 60;

/// A comment's template that is ready to render.
pub struct CommentTemplate {
    environment: Environment<'static>,
    /// A user's own: its file, and its text.
    own: Option<(String, String)>,
}

impl CommentTemplate {
    /// The template that is compiled in.
    ///
    /// # Errors
    /// [`ReportError::Template`], which it never brings about.
    pub fn built_in() -> Result<Self, ReportError> {
        let mut environment = environment()?;
        environment.add_template(NAME, TEMPLATE)?;
        Ok(Self { environment, own: None })
    }

    /// A template of the user's own, by the name of its file: `docs/template.md` says what it is given.
    ///
    /// # Errors
    /// [`ReportError::TemplateTooLong`] over 64 KiB, and [`ReportError::TemplateWrong`] where it is not a template.
    pub fn parse(name: &str, text: &str) -> Result<Self, ReportError> {
        if text.len() > MOST {
            return Err(ReportError::TemplateTooLong { file: named(name), bytes: text.len(), most: MOST });
        }
        let mut environment = environment()?;
        environment.set_fuel(Some(STEPS));
        let own = Some((named(name), text.to_owned()));
        match deep(|| environment.add_template_owned(NAME, text.to_owned()))? {
            Ok(()) => Ok(Self { environment, own }),
            Err(error) => Err(Self { environment, own }.wrong(&error, &[]).unwrap_or_else(|| error.into())),
        }
    }

    /// The text, with single empty lines and one newline at its end. Of a text without end there is only so much that it
    /// is longer than any forge takes.
    pub(super) fn render(&self, context: &Context) -> Result<String, ReportError> {
        let mut page = Page::of(if self.own.is_some() { MOST_WRITTEN } else { usize::MAX });
        let given = Value::from(Serde(context));
        let render = |page: &mut Page| {
            let template = self.environment.get_template(NAME)?;
            template.render_captured_to(given, page).map(|_| ())
        };
        let rendered = if self.own.is_some() { deep(|| render(&mut page))? } else { render(&mut page) };
        match rendered {
            Err(error) if !page.is_full() => {
                return Err(self.wrong(&error, &context.names()).unwrap_or_else(|| error.into()));
            }
            _ => {}
        }
        let text = page.into_text();
        // What is hidden is not in a template's hands.
        let text = text.replace("<!-- gate:", "<!-- gate ");
        let mut lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        lines.dedup_by(|line, before| line.is_empty() && before.is_empty());
        Ok(lines.join("\n").trim().to_owned() + "\n")
    }

    /// What is wrong with a user's template, and where; `None` where it is not a user's.
    fn wrong(&self, error: &minijinja::Error, known: &[String]) -> Option<ReportError> {
        let (file, text) = self.own.clone()?;
        let line = error.line().unwrap_or(1);
        Some(match error.kind() {
            ErrorKind::OutOfFuel => ReportError::TemplateEndless { file, steps: STEPS },
            ErrorKind::UndefinedError => {
                let asked = error.range().and_then(|range| text.get(range)).unwrap_or_default();
                let name = clip(&escape::terminal(asked).replace('`', "'"), QUOTED);
                let near = nearest(last_name(&name), known);
                ReportError::TemplateUnknown { file, line, name, near }
            }
            kind => {
                let what = error.detail().map_or_else(|| kind.to_string(), |detail| format!("{kind}: {detail}"));
                ReportError::TemplateWrong { file, line, what: clip(&escape::terminal(&what), SHOWN) }
            }
        })
    }
}

/// Does what a user's template asks for where there is room for any depth that its text can reach: how deep signs, lists
/// and branches are one in another is for its author to say.
fn deep<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, ReportError> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, work);
        let thread = thread.map_err(|error| ReportError::TemplateRoom { why: error.to_string() })?;
        thread.join().map_err(|_| ReportError::TemplateRoom { why: "its thread panicked".to_owned() })
    })
}

/// A file's name, fit for a message.
fn named(file: &str) -> String {
    clip(&escape::terminal(file), bounded::NAME)
}

/// `name` of `gate.verdict.name | code`.
fn last_name(expression: &str) -> &str {
    let path = expression.split('|').next().unwrap_or_default().trim();
    path.rsplit('.').next().unwrap_or_default()
}

/// The engine without a template: what is not there is an error, and all that is printed is escaped.
fn environment() -> Result<Environment<'static>, ReportError> {
    let mut environment = Environment::new();
    environment.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?);
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_formatter(print);
    // No text from outside is let through as it is.
    for filter in ["safe", "escape", "e"] {
        environment.remove_filter(filter);
    }
    environment.add_filter("code", |text: String| safe(escape::markdown_code(&clip(&text, SHOWN))));
    environment.add_filter("block", |text: String| safe(escape::markdown_block(&clip(&text, SHOWN_OF_BLOCK))));
    Ok(environment)
}

/// Prints a value: escaped, unless a filter has made it Markdown.
fn print(out: &mut Output<'_>, _: &mut State<'_, '_>, value: &Value) -> Result<(), minijinja::Error> {
    if value.is_undefined() {
        return Err(minijinja::Error::from(ErrorKind::UndefinedError));
    }
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use gate_model::Verdict;

    use super::*;
    use crate::comment::About;

    /// Every path of what a template is given, as it is.
    fn given() -> BTreeSet<String> {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/reports/");
        let verdict = |name: &str| -> Verdict {
            serde_json::from_str(&std::fs::read_to_string(format!("{folder}{name}.json")).unwrap()).unwrap()
        };
        let about = About { page: Some("https://h/1"), artifact: Some("https://h/2"), ..About::default() };
        let context = Context::new(&[verdict("relative-violated"), verdict("violated")], &about);
        let mut paths = BTreeSet::new();
        collect("", &serde_json::to_value(&context).unwrap(), &mut paths);
        paths
    }

    fn collect(path: &str, value: &serde_json::Value, paths: &mut BTreeSet<String>) {
        match value {
            serde_json::Value::Object(fields) => {
                for (name, value) in fields {
                    let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                    paths.insert(path.clone());
                    if name != "verdict" {
                        collect(&path, value, paths);
                    }
                }
            }
            serde_json::Value::Array(items) => items.iter().for_each(|item| collect(path, item, paths)),
            _ => {}
        }
    }

    /// The documented paths: what stands at the start of a line of the list.
    fn documented(list: &str) -> BTreeSet<String> {
        let lines = list.lines().filter(|line| line.starts_with(|first: char| first.is_ascii_lowercase()));
        lines.map(|line| line.split(' ').next().unwrap().to_owned()).collect()
    }

    #[test]
    fn the_documented_context_is_the_one_that_is_given() {
        let list = TEMPLATE.split("What it is given:\n\n").nth(1).unwrap().split("#}").next().unwrap().trim_end();
        assert_eq!(documented(list), given());
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/template.md");
        let docs = std::fs::read_to_string(path).unwrap();
        assert!(docs.contains(&format!("```text\n{list}\n```\n")), "docs/template.md has another list");
    }

    #[test]
    fn the_last_name_is_what_is_looked_for() {
        assert_eq!(last_name("gate.verdict.naem | code"), "naem");
        assert_eq!(last_name("naem"), "naem");
    }
}
