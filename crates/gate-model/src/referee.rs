//! The two questions a running load asks: go on or stop, and what to say in request i.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{PlannedRequest, Sample};

/// What a referee says at a look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// Keep sending.
    GoOn,
    /// Send nothing more; open streams finish, unscored.
    Stop,
}

/// Decides at each look whether the load goes on.
pub trait Referee: Send {
    /// Judges the first `samples.len()` planned requests, in send order, all of which have ended. The requests of a pair
    /// are neighbours, so side by side these are the first pairs.
    fn look(&mut self, samples: &[Sample]) -> Decision;

    /// Takes note of a request, in send order, and names the required check that can no longer be kept, as written,
    /// whatever is still to come.
    fn lost(&mut self, sample: &Sample) -> Option<String> {
        let _ = sample;
        None
    }
}

/// Who says a message of a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The system prompt.
    System,
    /// The user.
    User,
    /// The model, in an earlier turn.
    Assistant,
}

/// An image of a message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Image {
    /// One that the server fetches.
    Url(String),
    /// One that is sent along.
    Inline {
        /// Its media type, such as `image/png`.
        media_type: String,
        /// Its bytes in Base64.
        base64: Arc<str>,
    },
}

/// One message of a prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// Who says it.
    pub role: Role,
    /// What is said.
    pub text: String,
    /// What is shown with it, before the text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
}

impl Message {
    /// A message of text alone.
    #[must_use]
    pub fn new(role: Role, text: impl Into<String>) -> Self {
        Self { role, text: text.into(), images: Vec::new() }
    }
}

/// What one request asks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Prompt {
    /// The messages, in order.
    pub messages: Vec<Message>,
}

/// Gives the text of a planned request when it is sent.
pub trait Prompts: Send + Sync {
    /// The prompt of a measured request. Of a later turn it is the whole conversation, with the `answers` that the turns
    /// before it got, oldest first.
    fn measured(&self, request: &PlannedRequest, answers: &[String]) -> Prompt;
    /// The prompt of a warm-up request, from a set that shares nothing with the measured ones.
    fn warmup(&self, request: &PlannedRequest) -> Prompt;
    /// Learns from warm-up how many tokens the server counts where so many were planned, so that measured
    /// prompts come nearer to their plan. Each pair is (planned, counted).
    fn fit(&self, counted: &[(u32, u64)]) {
        let _ = counted;
    }
}

/// Counts the tokens of a text, as a model's tokenizer does.
pub trait CountTokens: Send + Sync {
    /// The tokens of a text; `None` where the tokenizer refuses it.
    fn count(&self, text: &str) -> Option<u64>;
}
