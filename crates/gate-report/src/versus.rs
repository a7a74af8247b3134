//! Two verdicts compared, without a judgement.

mod markdown;
mod sides;
mod text;

use gate_model::Verdict;

use crate::bounded::bounded;
use crate::style::Style;
pub(crate) use sides::Sides;

/// That nothing is judged here.
pub(crate) const UNJUDGED: &str = "Nothing is judged here: these are the numbers of two runs side by side, which differ from run to \
                        run by chance too. `gate check --baseline` judges a change.";

/// What changed from one verdict to another, as text for a terminal, at most 80 columns wide: what makes the two hard to
/// compare, their numbers, their checks, what each said of causes, and their distributions.
#[must_use]
pub fn versus_text(before: &Verdict, after: &Verdict, style: Style) -> String {
    of_both(before, after, |sides| text::text(sides, style))
}

/// The same as Markdown.
#[must_use]
pub fn versus_markdown(before: &Verdict, after: &Verdict) -> String {
    of_both(before, after, markdown::markdown)
}

/// Words for two verdicts whose texts are no longer than reports show.
fn of_both(before: &Verdict, after: &Verdict, words: impl Fn(&Sides) -> String) -> String {
    let (before, after) = (bounded(std::slice::from_ref(before)), bounded(std::slice::from_ref(after)));
    before.iter().zip(after.iter()).map(|(before, after)| words(&Sides::new(before, after))).collect()
}
