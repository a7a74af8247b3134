//! What is sent.

use serde::{Deserialize, Serialize};

use crate::{Latency, Nanos, Shape};

/// A distribution of lengths in tokens, redrawn (never clipped) outside `min..=max`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Length {
    /// The mean before truncation.
    pub mean: f64,
    /// The standard deviation before truncation; zero makes it constant.
    pub stddev: f64,
    /// The least.
    pub min: u32,
    /// The greatest.
    pub max: u32,
    /// The shape.
    pub shape: Shape,
}

/// What prompts do to the server's prefix cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cache {
    /// Every prompt starts with a nonce of its own: no prefix is ever shared.
    Bust,
    /// Prompts are sent as they are, each once: what they have in common is shared as in real traffic.
    Natural,
    /// Prompts are sent as they are and may repeat, so the cache is warm: it is what is measured.
    Warm,
}

/// How long answers are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OutputLength {
    /// The model may stop before the planned length.
    #[default]
    AtMost,
    /// The server is asked to go on to the planned length (`ignore_eos` and `min_tokens`, where it knows them).
    Exact,
}

/// Which token counts a verdict may rest on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenPolicy {
    /// The server's usage, or a tokenizer's count.
    #[default]
    Usage,
    /// Also the number of events, where there is neither.
    AcceptEstimate,
}

/// What a file of prompts is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PromptFormat {
    /// One JSON object a line, with `prompt` or `messages`.
    #[default]
    Rows,
    /// A ShareGPT export: a JSON list of conversations.
    Sharegpt,
    /// OpenAI's batch or fine-tuning lines: a JSON object a line with `messages`, alone or under `body`.
    Openai,
    /// HumanEval: a JSON object a line with `prompt`.
    Humaneval,
    /// Plain text: a paragraph is a prompt.
    Text,
}

/// How many turns a conversation has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Turns {
    /// At least, from 1.
    pub min: u32,
    /// At most.
    pub max: u32,
}

impl Default for Turns {
    /// One question, one answer.
    fn default() -> Self {
        Self { min: 1, max: 1 }
    }
}

/// A beginning that prompts share, as a long system prompt or a document is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedPrefix {
    /// Its tokens; they are part of a prompt's input tokens.
    pub tokens: u32,
    /// How many different ones there are; each request has one of them.
    pub groups: u16,
}

/// The prompts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PromptSpec {
    /// Input lengths.
    pub input_tokens: Length,
    /// A file of input lengths seen before, one a line, which are drawn from instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_empirical: Option<String>,
    /// Output lengths: the most tokens a request asks for.
    pub output_tokens: Length,
    /// A file of output lengths seen before, one a line, which are drawn from instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_empirical: Option<String>,
    /// How many turns a conversation has; later ones carry the history with the real answers.
    #[serde(default)]
    pub turns: Turns,
    /// From the end of an answer to the next turn.
    #[serde(default = "no_time")]
    pub think: Latency,
    /// A beginning that prompts share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared_prefix: Option<SharedPrefix>,
    /// The prefix cache.
    pub cache: Cache,
    /// How long answers are.
    pub output: OutputLength,
    /// A system prompt, sent before every prompt.
    pub system: Option<String>,
    /// A file of prompts, each sent once, instead of built-in prose.
    pub file: Option<String>,
    /// What that file is.
    #[serde(default)]
    pub format: PromptFormat,
    /// Images that every prompt carries: URLs, or files beside the spec.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<String>,
    /// A Hugging Face `tokenizer.json` that counts the tokens of answers without usage, after the run.
    pub tokenizer: Option<String>,
    /// Which token counts a verdict may rest on.
    pub tokens: TokenPolicy,
}

fn no_time() -> Latency {
    Latency::constant(Nanos::ZERO)
}

impl Default for PromptSpec {
    /// About 550 tokens in and 150 out, and no prefix shared.
    fn default() -> Self {
        Self {
            input_tokens: Length { mean: 550.0, stddev: 150.0, min: 50, max: 2000, shape: Shape::Normal },
            output_tokens: Length { mean: 150.0, stddev: 20.0, min: 10, max: 500, shape: Shape::Normal },
            input_empirical: None,
            output_empirical: None,
            turns: Turns::default(),
            think: no_time(),
            shared_prefix: None,
            cache: Cache::Bust,
            output: OutputLength::AtMost,
            system: None,
            file: None,
            format: PromptFormat::Rows,
            images: Vec::new(),
            tokenizer: None,
            tokens: TokenPolicy::Usage,
        }
    }
}
