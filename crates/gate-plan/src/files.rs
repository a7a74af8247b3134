//! What a scenario's files say.

use gate_model::Image;

use crate::length_file::LengthFile;
use crate::prompt_file::PromptFile;
use crate::trace::Trace;

/// The files that one scenario's spec names, already read. A clone shares what is large.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Files {
    /// What `prompts.file` holds.
    pub prompts: Option<PromptFile>,
    /// What `prompts.input_tokens.empirical` holds.
    pub input_lengths: Option<LengthFile>,
    /// What `prompts.output_tokens.empirical` holds.
    pub output_lengths: Option<LengthFile>,
    /// What `load.trace` holds. Under `run: together` it is that of the section's first scenario.
    pub trace: Option<Trace>,
    /// The images of `prompts.images`, which every prompt carries.
    pub images: Vec<Image>,
}
