//! Everything that can be wrong with what a plan is made from.

/// Why a plan cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum CapacityError {
    /// No model of this name is known.
    #[error("find a model named `{name}`{}", .nearest.as_ref().map(|near| format!(" (is it `{near}`?)")).unwrap_or_default())]
    UnknownModel {
        /// As it was asked for.
        name: String,
        /// The name that is most like it.
        nearest: Option<String>,
    },
    /// A model's configuration is not JSON.
    #[error("read the configuration as JSON: {0}")]
    NotJson(#[source] serde_json::Error),
    /// A key of a configuration is absent or not what it should be.
    #[error("read `{key}` of the configuration: {why}")]
    Config {
        /// The key, or the first of its names.
        key: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// A model of a kind that has no KV cache as a decoder has.
    #[error("count the KV cache of this model: {0}")]
    NotADecoder(String),
    /// A number that has to be larger than it is.
    #[error("use {what} {value}: it has to be {must}")]
    OutOfRange {
        /// What it is.
        what: &'static str,
        /// As it was given.
        value: String,
        /// What it has to be.
        must: &'static str,
    },
    /// A product that does not fit a 64-bit integer.
    #[error("work with numbers as large as {0}: the result is beyond 2^64")]
    TooLarge(&'static str),
    /// A file of rate limits is none.
    #[error("read the tiers: {0}")]
    Tiers(#[source] serde_yaml::Error),
    /// A tier that limits nothing, or no tier at all.
    #[error("use the tiers: {0}")]
    NoLimit(String),
}

impl CapacityError {
    pub(crate) fn range(what: &'static str, value: impl std::fmt::Display, must: &'static str) -> Self {
        Self::OutOfRange { what, value: value.to_string(), must }
    }
}
