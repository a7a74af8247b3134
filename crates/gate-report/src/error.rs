//! Why a report could not be made.

/// Why a report could not be made.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The JUnit builder gave up.
    #[error("build the JUnit report: {0}")]
    Build(#[from] junit_report::Error),
    /// The JUnit file could not be completed.
    #[error("complete the JUnit report: {0}")]
    Xml(#[from] quick_xml::Error),
    /// The JUnit file could not be written to memory.
    #[error("complete the JUnit report: {0}")]
    Write(#[from] std::io::Error),
    /// A part of the JUnit file is not text.
    #[error("complete the JUnit report: {0}")]
    Text(#[from] std::string::FromUtf8Error),
    /// The comment's template could not be rendered.
    #[error("render the comment: {0}")]
    Template(#[from] minijinja::Error),
    /// A user's template is too long.
    #[error("read the template {file}: it has {bytes} bytes, and a template has at most {most}")]
    TemplateTooLong {
        /// Its file.
        file: String,
        /// How long it is.
        bytes: usize,
        /// How long it may be.
        most: usize,
    },
    /// A user's template is wrong at a place.
    #[error("render the comment by {file}, line {line}: {what}")]
    TemplateWrong {
        /// Its file.
        file: String,
        /// The line, from 1.
        line: usize,
        /// What is wrong there.
        what: String,
    },
    /// A user's template asks for what it is not given.
    #[error("render the comment by {file}, line {line}: there is no `{name}`{}", nearest(.near))]
    TemplateUnknown {
        /// Its file.
        file: String,
        /// The line, from 1.
        line: usize,
        /// What it asks for.
        name: String,
        /// The names that are most like it, nearest first.
        near: Vec<String>,
    },
    /// A user's template does not end.
    #[error("render the comment by {file}: it takes more than {steps} steps: does each of its loops end?")]
    TemplateEndless {
        /// Its file.
        file: String,
        /// The steps it may take.
        steps: u64,
    },
    /// A user's template could not be worked on.
    #[error("make room for the template: {why}")]
    TemplateRoom {
        /// Why.
        why: String,
    },
    /// A spec has no YAML form.
    #[error("write the spec as YAML: {0}")]
    Yaml(#[from] serde_yaml::Error),
    /// A value has no JSON form.
    #[error("write JSON: {0}")]
    Json(#[from] serde_json::Error),
}

/// `: is it `name` or `lead`?`; nothing where no name is like it.
fn nearest(near: &[String]) -> String {
    let names: Vec<String> = near.iter().map(|name| format!("`{name}`")).collect();
    if names.is_empty() { String::new() } else { format!("; is it {}?", crate::layout::listed(&names, "or")) }
}
