//! Passages of natural text, cut and recombined from embedded prose.

use crate::draw::Draws;
use crate::ruler::Ruler;

/// Sentences taken in a row from one place, at most.
const RUN: usize = 6;

/// Up to this many thousandths of a token one sentence ends a passage: there are many of every such length.
const ONE_SENTENCE: u64 = 50_000;

struct Sentence {
    text: &'static str,
    /// Its length, in thousandths of a token.
    cost: u64,
}

/// A text to cut passages from.
pub(crate) struct Prose {
    /// In reading order.
    sentences: Vec<Sentence>,
    /// Positions in `sentences`, shortest sentence first.
    by_cost: Vec<usize>,
    line_break: u64,
}

impl Prose {
    /// Reads a text with one sentence a line.
    pub(crate) fn new(text: &'static str, ruler: &Ruler) -> Self {
        let sentences: Vec<Sentence> =
            text.lines().map(|text| Sentence { text, cost: ruler.added(" ", text) }).collect();
        let mut by_cost: Vec<usize> = (0..sentences.len()).collect();
        by_cost.sort_by_key(|&position| sentences.get(position).map(|sentence| sentence.cost));
        Self { sentences, by_cost, line_break: ruler.line_break() }
    }

    /// The length of the shortest passage, in thousandths of a token.
    pub(crate) fn shortest(&self) -> u64 {
        self.ranked(0).map_or(0, |sentence| sentence.cost)
    }

    /// A passage of `goal` thousandths of a token: runs of sentences from random places, one run a line, then a
    /// sentence as long as what is left.
    pub(crate) fn passage(&self, draws: &mut Draws, goal: u64) -> String {
        let mut text = String::with_capacity(goal as usize / 200);
        let mut left = goal;
        // Most sentences are short enough to fit, so a place where none does is followed by one where some do.
        while left > ONE_SENTENCE {
            let start = draws.below(self.sentences.len());
            for (position, sentence) in self.sentences.iter().skip(start).take(RUN).enumerate() {
                let (separator, between) = match position {
                    _ if text.is_empty() => ("", 0),
                    0 => ("\n", self.line_break),
                    _ => (" ", 0),
                };
                let cost = sentence.cost + between;
                // What is left must hold a line break and a last sentence.
                if cost + self.line_break + self.shortest() > left {
                    break;
                }
                text.push_str(separator);
                text.push_str(sentence.text);
                left -= cost;
            }
        }
        if !text.is_empty() {
            text.push('\n');
            left = left.saturating_sub(self.line_break);
        }
        text.push_str(self.closest(draws, left));
        text
    }

    /// One of the sentences within half a token of `cost`, or the longest below it, or the shortest of all.
    fn closest(&self, draws: &mut Draws, cost: u64) -> &'static str {
        let rank = |limit: u64| {
            self.by_cost.partition_point(|&position| self.sentences.get(position).is_some_and(|s| s.cost <= limit))
        };
        let (from, to) = (rank(cost.saturating_sub(500)), rank(cost + 500));
        let chosen = if from < to { from + draws.below(to - from) } else { from.saturating_sub(1) };
        self.ranked(chosen).map_or("", |sentence| sentence.text)
    }

    fn ranked(&self, rank: usize) -> Option<&Sentence> {
        self.by_cost.get(rank).and_then(|&position| self.sentences.get(position))
    }
}
