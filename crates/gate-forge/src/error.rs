//! Why something was not delivered.

/// How a forge refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The HTTP status.
    pub status: u16,
    /// The forge's own words, shortened; a text from outside.
    pub message: String,
}

/// Why something was not delivered. `Display` fits "failed to …"; what a forge said is text from outside.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ForgeError {
    /// The forge answered and refused.
    #[error("{what}: {} {}", refusal.status, refusal.message)]
    Refused {
        /// What was asked of it, such as `create the comment on pull request 7`.
        what: String,
        /// Its answer.
        refusal: Refusal,
        /// What may be done about it.
        hint: Option<String>,
    },
    /// No answer came in time, or none that can be read.
    #[error("{what}: {why}")]
    Unreachable {
        /// What was asked of it.
        what: String,
        /// What went wrong.
        why: String,
    },
    /// There is nobody to ask in the name of: the token is absent, or of a kind that may not.
    #[error("{what}: {why}")]
    NoToken {
        /// What was asked.
        what: String,
        /// Which token is there, and which is needed.
        why: String,
        /// Where to get one.
        hint: String,
    },
    /// The command was told to stop.
    #[error("{what}: the job was stopped")]
    Stopped {
        /// What was asked.
        what: String,
    },
}

impl ForgeError {
    /// What may be done about it.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        match self {
            Self::Refused { hint, .. } => hint.as_deref(),
            Self::NoToken { hint, .. } => Some(hint),
            Self::Unreachable { .. } | Self::Stopped { .. } => None,
        }
    }
}
