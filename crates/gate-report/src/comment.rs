//! The verdicts as Markdown: a pull request's comment, and the summary of a job.

mod about;
mod context;
mod order;
mod reading;
mod room;
mod state;
mod template;

use gate_model::{ExitCode, Verdict};

use crate::ReportError;
use crate::bounded::bounded;
pub use about::{About, Source};
use context::Context;
pub(crate) use context::first_words;
pub(crate) use order::{badness, by_urgency};
use room::{fitted, shortened};
pub use state::comment_state;
pub use template::CommentTemplate;

/// GitHub refuses a comment of more than 65,536 characters. Bytes are counted here, which are never fewer.
const COMMENT_LIMIT: usize = 65_536;

/// GitHub drops a step summary of more than 1 MiB.
const SUMMARY_LIMIT: usize = 1 << 20;

/// The comment of a job with these verdicts, always below 65,536 characters.
///
/// It begins with the hidden [`comment_marker`] and the hidden [`comment_state`], a line each. The first line that is
/// seen is the verdict and says what is not proven; a run against the built-in engine is headed so. Each gate has a
/// section. Where there is too little room for all, the rows of checks that passed go first, then details, then other
/// rows, then gates, and the comment says how many; the verdict stays. Its last line says which commit and job it is of.
///
/// # Errors
/// [`ReportError::Template`], which no verdict of `gate` brings about.
pub fn comment(verdicts: &[Verdict], about: &About<'_>) -> Result<String, ReportError> {
    comment_by(&CommentTemplate::built_in()?, verdicts, about)
}

/// The same by a template of the user's own. What is hidden is not in its hands, and what it writes beyond the limit is
/// cut, with a sentence that says so.
///
/// # Errors
/// [`ReportError::TemplateUnknown`] where the template asks for what is not there, [`ReportError::TemplateEndless`]
/// where it does not end, and [`ReportError::TemplateWrong`] for all else that goes wrong in it.
pub fn comment_by(template: &CommentTemplate, verdicts: &[Verdict], about: &About<'_>) -> Result<String, ReportError> {
    let hidden = format!("{}\n{}\n\n", comment_marker(about.job), comment_state(verdicts, about.run));
    let text = render(verdicts, about, template, COMMENT_LIMIT.saturating_sub(hidden.len()))?;
    Ok(hidden + &text)
}

/// The first line of a job that judged nothing, in Markdown: how it ended.
#[must_use]
pub fn unjudged_heading(exit: ExitCode) -> String {
    format!("{} **{}**", context::unjudged_icon(exit), context::unjudged(exit))
}

/// The same for a job's summary: without what is hidden, and with room for 1 MiB.
///
/// # Errors
/// As [`comment`].
pub fn summary(verdicts: &[Verdict]) -> Result<String, ReportError> {
    shortened_summary(verdicts, SUMMARY_LIMIT)
}

/// The summary in fewer bytes than the limit.
pub(crate) fn shortened_summary(verdicts: &[Verdict], limit: usize) -> Result<String, ReportError> {
    render(verdicts, &About::default(), &CommentTemplate::built_in()?, limit)
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

fn render(
    verdicts: &[Verdict],
    about: &About<'_>,
    template: &CommentTemplate,
    limit: usize,
) -> Result<String, ReportError> {
    let verdicts = bounded(verdicts);
    let context = Context::new(&verdicts, about);
    let text = fitted(&verdicts, limit, |room| template.render(&context.cut(room)))?;
    Ok(shortened(text, limit))
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
