//! Counting by a tokenizer file.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use gate_model::CountTokens;
use serde::de::IgnoredAny;

use crate::TokenizerError;

/// A Hugging Face tokenizer, read from its `tokenizer.json`.
///
/// It counts a text as a model writes it: without the special tokens that frame a prompt, never cut, never padded.
pub struct Tokenizer(tokenizers::Tokenizer);

impl Tokenizer {
    /// Reads a `tokenizer.json`.
    ///
    /// # Errors
    ///
    /// [`TokenizerError`] where the bytes are no tokenizer, or one that cannot count every text.
    pub fn from_json(bytes: &[u8]) -> Result<Self, TokenizerError> {
        /// Words, and what is in no vocabulary: a private character and one that is not assigned.
        const TRIED: &str = "Some words, 12 \u{f8ff} \u{10fffd}\n";
        let fields: BTreeMap<String, IgnoredAny> = serde_json::from_slice(bytes).map_err(|error| {
            if error.is_data() {
                TokenizerError::NoModel
            } else {
                TokenizerError::NotJson { message: error.to_string() }
            }
        })?;
        if !fields.contains_key("model") {
            return Err(TokenizerError::NoModel);
        }
        let read = || {
            let mut tokenizer = tokenizers::Tokenizer::from_bytes(bytes)?;
            // Both are for batches of prompts, and would falsify every count.
            tokenizer.with_truncation(None)?;
            tokenizer.with_padding(None);
            Ok(tokenizer)
        };
        let tokenizer = Self(guarded(read).map_err(|message| TokenizerError::Unreadable { message })?);
        match tokenizer.tokens(TRIED) {
            Ok(_) => Ok(tokenizer),
            Err(message) => Err(TokenizerError::Refuses { message }),
        }
    }

    fn tokens(&self, text: &str) -> Result<usize, String> {
        guarded(|| self.0.encode_fast(text, false)).map(|tokens| tokens.len())
    }
}

impl CountTokens for Tokenizer {
    fn count(&self, text: &str) -> Option<u64> {
        self.tokens(text).ok().map(|tokens| tokens as u64)
    }
}

/// What the library makes of a file or text: on files that contradict themselves it may panic.
fn guarded<T>(act: impl FnOnce() -> tokenizers::Result<T>) -> Result<T, String> {
    match catch_unwind(AssertUnwindSafe(act)) {
        Ok(result) => result.map_err(|error| error.to_string()),
        Err(_) => Err("it contradicts itself".to_owned()),
    }
}
