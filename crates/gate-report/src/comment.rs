//! The verdicts as Markdown: a pull request's comment, and the summary of a job.

mod context;
mod room;
mod template;

use gate_model::Verdict;

use crate::ReportError;
use context::Context;
use room::fitted;
use template::Template;

/// GitHub refuses a comment of more than 65,536 characters. Bytes are counted here, which are never fewer.
const COMMENT_LIMIT: usize = 65_536;

/// GitHub drops a step summary of more than 1 MiB.
const SUMMARY_LIMIT: usize = 1 << 20;

/// The comment of a job with these verdicts, always below 65,536 characters.
///
/// Its first line is the verdict and says what is not proven; a run against the built-in engine is headed so. Each
/// gate has a section. Where there is too little room for all, details go first, then the rows of checks that passed,
/// then gates, and the comment says how many; the verdict stays. Its last line is the hidden [`comment_marker`].
///
/// # Errors
/// [`ReportError::Template`], which no verdict of `gate` brings about.
pub fn comment(verdicts: &[Verdict], job: Option<&str>) -> Result<String, ReportError> {
    render(verdicts, Some(&comment_marker(job)), COMMENT_LIMIT)
}

/// The same for a job's summary: without the marker, and with room for 1 MiB.
///
/// # Errors
/// As [`comment`].
pub fn summary(verdicts: &[Verdict]) -> Result<String, ReportError> {
    render(verdicts, None, SUMMARY_LIMIT)
}

/// The hidden text by which a job finds its own comment again: `<!-- gate:comment -->`, or
/// `<!-- gate:comment job=NAME -->`. No text from outside can look like it.
#[must_use]
pub fn comment_marker(job: Option<&str>) -> String {
    let key = job.map(|job| format!("job={} ", encoded(job))).unwrap_or_default();
    format!("<!-- gate:comment {key}-->")
}

/// The name with all but letters, digits, `_` and `.` as `%XX`, so that it cannot end the marker.
fn encoded(name: &str) -> String {
    let encode = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'.' => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    };
    name.bytes().map(encode).collect()
}

fn render(verdicts: &[Verdict], marker: Option<&str>, limit: usize) -> Result<String, ReportError> {
    let template = Template::new()?;
    let context = Context::new(verdicts, marker);
    fitted(verdicts, limit, |room| template.render(&context.cut(room)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_ends_where_it_should() {
        assert_eq!(comment_marker(None), "<!-- gate:comment -->");
        assert_eq!(comment_marker(Some("perf_1.x")), "<!-- gate:comment job=perf_1.x -->");
        assert_eq!(comment_marker(Some("a-->b é")), "<!-- gate:comment job=a%2D%2D%3Eb%20%C3%A9 -->");
    }
}
