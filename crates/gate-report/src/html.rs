//! The report as one self-contained HTML file.
//!
//! What a reader decides by is in the document itself: verdict, checks, and the pictures as SVG. The script draws what is
//! worth zooming into, and the table of all requests, from the numbers at the end of the document.

mod data;
mod pictures;
mod scenario;
mod template;
mod versus;
mod view;

use gate_model::{Run, Verdict};

use crate::ReportError;
use crate::bounded::bounded;
use crate::comment::badness;

/// One gate of the report.
#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    /// Its verdict.
    pub verdict: &'a Verdict,
    /// Its run, with every request; absent where the journal is not to be had: the report then says so, and shows what
    /// the verdict knows.
    pub run: Option<&'a Run>,
}

/// The report of these gates, a section each, the worst first, as one HTML file that asks for nothing else.
///
/// # Errors
/// [`ReportError::Template`], which no verdict of `gate` brings about.
pub fn html(pages: &[Page<'_>]) -> Result<String, ReportError> {
    let verdicts: Vec<Verdict> = pages.iter().map(|page| page.verdict.clone()).collect();
    let verdicts = bounded(&verdicts);
    let pages = verdicts.iter().zip(pages).map(|(verdict, page)| Page { verdict, run: page.run });
    let mut pages: Vec<Page<'_>> = pages.collect();
    // The page's numbers of gates are those of this order.
    pages.sort_by_key(|page| badness(page.verdict));
    template::render("report", &view::View::new(&pages)?, data::data(&pages)?)
}

/// Two runs side by side: what changed from the first to the second.
///
/// # Errors
/// As [`html`].
pub fn html_versus(before: &Page<'_>, after: &Page<'_>) -> Result<String, ReportError> {
    let verdicts = [before.verdict.clone(), after.verdict.clone()];
    let verdicts = bounded(&verdicts);
    let pages = verdicts.iter().zip([before, after]).map(|(verdict, page)| Page { verdict, run: page.run });
    let pages: Vec<Page<'_>> = pages.collect();
    template::render("versus", &versus::Versus::new(&pages)?, data::data(&pages)?)
}
