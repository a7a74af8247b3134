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
    /// A value has no JSON form.
    #[error("write JSON: {0}")]
    Json(#[from] serde_json::Error),
}
