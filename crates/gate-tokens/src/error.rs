//! What makes a file no tokenizer.

/// Why a file is no tokenizer that can count.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenizerError {
    /// The file is not JSON.
    #[error("is not JSON ({message}): name the `tokenizer.json` of the model's repository, not a `tokenizer.model`")]
    NotJson {
        /// What the parser says, with line and column.
        message: String,
    },
    /// The file is JSON of another kind.
    #[error(
        "is JSON but no tokenizer, since it has no `model`: name the `tokenizer.json` of the model's repository, not \
         its `tokenizer_config.json`, `vocab.json` or `config.json`"
    )]
    NoModel,
    /// The file is a tokenizer that cannot be read.
    #[error(
        "holds a tokenizer that cannot be read ({message}): save it again with a current version of Hugging Face's \
         `tokenizers`"
    )]
    Unreadable {
        /// What the reader says.
        message: String,
    },
    /// The tokenizer refuses ordinary text.
    #[error(
        "holds a tokenizer that refuses text outside its vocabulary ({message}): give it the unknown token its model \
         names"
    )]
    Refuses {
        /// What the tokenizer says.
        message: String,
    },
    /// This `gate` was built without the reader.
    #[error(
        "cannot be used, since this gate was built without tokenizers: build it with the feature `tokenizer`, or \
         remove `prompts.tokenizer`"
    )]
    NotBuiltIn,
}
