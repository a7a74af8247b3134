//! The tokenizer of a build without the feature `tokenizer`.

use gate_model::CountTokens;

use crate::TokenizerError;

/// A Hugging Face tokenizer; in this build, without the feature `tokenizer`, there is none.
pub enum Tokenizer {}

impl Tokenizer {
    /// Refuses every file.
    ///
    /// # Errors
    ///
    /// Always [`TokenizerError::NotBuiltIn`].
    pub fn from_json(_: &[u8]) -> Result<Self, TokenizerError> {
        Err(TokenizerError::NotBuiltIn)
    }
}

impl CountTokens for Tokenizer {
    fn count(&self, _: &str) -> Option<u64> {
        match *self {}
    }
}
