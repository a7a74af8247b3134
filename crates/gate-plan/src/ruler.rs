//! What measures texts while they are cut to their lengths.

use std::sync::Arc;

use gate_model::CountTokens;

/// Measures texts in thousandths of a token.
#[derive(Clone)]
pub(crate) enum Ruler {
    /// By [`gate_tokens::thousandths`].
    Estimate,
    /// By a model's own tokenizer.
    Counter(Arc<dyn CountTokens>),
}

impl Ruler {
    /// A text on its own; by the estimate where the tokenizer refuses it.
    pub(crate) fn thousandths(&self, text: &str) -> u64 {
        match self {
            Self::Estimate => gate_tokens::thousandths(text),
            Self::Counter(counter) => match counter.count(text) {
                Some(tokens) => tokens.saturating_mul(1000),
                None => gate_tokens::thousandths(text),
            },
        }
    }

    /// What a text adds to another, with this between them. Vocabularies have tokens with a blank before the word, and
    /// marks with a line break after them.
    pub(crate) fn added(&self, between: &str, text: &str) -> u64 {
        const BEFORE: &str = "It was so.";
        match self {
            Self::Estimate => gate_tokens::thousandths(between) + gate_tokens::thousandths(text),
            Self::Counter(_) => {
                let both = self.thousandths(&format!("{BEFORE}{between}{text}"));
                both.saturating_sub(self.thousandths(BEFORE))
            }
        }
    }

    /// What a line break between two sentences adds.
    pub(crate) fn line_break(&self) -> u64 {
        const AFTER: &str = "They went.";
        self.added("\n", AFTER).saturating_sub(self.added(" ", AFTER))
    }
}
