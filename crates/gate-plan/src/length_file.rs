//! Lengths seen before, from a file.

use std::sync::Arc;

use crate::draw::Stream;
use crate::lengths::most;
use crate::levels::BLOCK;

/// How much of a wrong line is shown, in characters.
const SHOWN: usize = 40;

/// The lengths of a `prompts.input_tokens.empirical` file, or of its output's. A clone shares them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LengthFile {
    /// Ascending.
    lengths: Arc<[u32]>,
}

/// Why a text is not a file of lengths.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LengthFileError {
    /// No length at all.
    #[error("the file holds no length: it has one whole number of tokens a line")]
    Empty,
    /// A line that is no length.
    #[error("line {line} is `{found}`, and must be a whole number of tokens, from 1 to 10,000,000")]
    Wrong {
        /// The line, from 1.
        line: usize,
        /// What stands there, shortened.
        found: String,
    },
}

impl LengthFile {
    /// Reads one whole number of tokens a line; blank lines are skipped.
    ///
    /// # Errors
    ///
    /// [`LengthFileError`] for the first line that is no such number.
    pub fn parse(text: &str) -> Result<Self, LengthFileError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let lines = (1..).zip(text.lines().map(str::trim)).filter(|(_, line)| !line.is_empty());
        let length = |(line, text): (usize, &str)| {
            let length = text.parse().ok().and_then(most).filter(|length| *length > 0);
            length.ok_or_else(|| LengthFileError::Wrong { line, found: text.chars().take(SHOWN).collect() })
        };
        let mut lengths: Vec<u32> = lines.map(length).collect::<Result<_, _>>()?;
        lengths.sort_unstable();
        if lengths.is_empty() { Err(LengthFileError::Empty) } else { Ok(Self { lengths: lengths.into() }) }
    }

    /// The lengths, ascending.
    #[must_use]
    pub fn lengths(&self) -> &[u32] {
        &self.lengths
    }

    /// Lengths without end, each used as often as any other: once before any is used again, and spread evenly, one of
    /// every tenth of the file in each block of ten.
    pub(crate) fn draw(&self, stream: Stream) -> impl Iterator<Item = u32> + '_ {
        (0..).flat_map(move |cycle| self.cycle(stream, cycle))
    }

    /// The whole file once, in random order.
    fn cycle(&self, stream: Stream, cycle: u64) -> Vec<u32> {
        let mut draws = stream.part(cycle);
        let (count, strata) = (self.lengths.len(), self.lengths.len().min(BLOCK as usize));
        let mut columns: Vec<Vec<u32>> = (0..strata)
            .map(|stratum| {
                let range = stratum * count / strata..(stratum + 1) * count / strata;
                let mut column = self.lengths.get(range).unwrap_or_default().to_vec();
                draws.shuffle(&mut column);
                column
            })
            .collect();
        let mut order = Vec::with_capacity(count);
        while order.len() < count {
            let mut round: Vec<u32> = columns.iter_mut().filter_map(Vec::pop).collect();
            draws.shuffle(&mut round);
            order.extend(round);
        }
        order
    }
}
