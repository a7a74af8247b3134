//! The verdicts as a check on a commit.

use gate_model::Verdict;

use crate::bounded::bounded;
use crate::comment::{first_words, shortened_summary};
use crate::layout::clip;
use crate::{ReportError, escape};

/// How many characters of a check run's title are shown.
const TITLE: usize = 255;

/// GitHub refuses a check run's summary of more than 65,535 characters. Bytes are counted here, which are never fewer.
const SUMMARY: usize = 65_535;

/// One line for a check run's title: how the job ended and the sentence after it, as plain text of at most 255
/// characters.
#[must_use]
pub fn check_title(verdicts: &[Verdict]) -> String {
    let plain = escape::terminal(&first_words(&bounded(verdicts))).replace('`', "");
    clip(plain.trim(), TITLE)
}

/// The same as [`summary`](crate::summary), for a check run: at most 65,535 characters.
///
/// # Errors
/// As [`comment`](crate::comment()).
pub fn check_summary(verdicts: &[Verdict]) -> Result<String, ReportError> {
    shortened_summary(verdicts, SUMMARY)
}
