//! What makes a plan impossible.

use gate_model::Nanos;

/// Why a spec has no plan.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum PlanError {
    /// The looks are empty, start at 0, or do not ascend.
    #[error("the looks {looks:?} are not ascending counts from 1")]
    Looks {
        /// The looks as given.
        looks: Vec<u32>,
    },
    /// More requests than a plan holds.
    #[error("`{key}` is {count}, more than the {limit} requests a plan holds: lower it")]
    TooMany {
        /// The key in the spec.
        key: &'static str,
        /// Requests asked for.
        count: u32,
        /// The most a plan holds.
        limit: u32,
    },
    /// The rate is not a positive number.
    #[error("`load.rps` is {rate}: it must be above 0")]
    Rate {
        /// The rate as given, in requests per second.
        rate: f64,
    },
    /// A request would be due more than 24 hours after the first.
    #[error(
        "request {index} would be due after {at}, and a plan lasts 24 h at most: raise `load.rps` or lower \
         `load.iterations`"
    )]
    TooLong {
        /// The first request past the limit, by its number among its arm's.
        index: u32,
        /// When it would be due.
        at: Nanos,
    },
    /// A request longer than any model's context.
    #[error("`{key}`: request {index} would have {tokens} tokens, and {limit} is the most: lower `max`")]
    TooLarge {
        /// The key in the spec.
        key: &'static str,
        /// The request, by its number among its arm's.
        index: u32,
        /// Its length.
        tokens: u32,
        /// The most tokens of a request.
        limit: u32,
    },
    /// A length's bounds are not in order.
    #[error("`{key}`: min {min} and max {max}: `min` must be at least 1 and at most `max`")]
    Bounds {
        /// The key in the spec.
        key: &'static str,
        /// The least, in tokens.
        min: u32,
        /// The greatest, in tokens.
        max: u32,
    },
    /// A length's mean or standard deviation is no such number.
    #[error("`{key}`: mean {mean} and stddev {stddev}: `mean` must be above 0 and `stddev` at least 0")]
    Moments {
        /// The key in the spec.
        key: &'static str,
        /// The mean before truncation, in tokens.
        mean: f64,
        /// The standard deviation before truncation, in tokens.
        stddev: f64,
    },
    /// Next to nothing of a length's distribution is left between its bounds.
    #[error(
        "`{key}`: fewer than one draw in a million of mean {mean} and stddev {stddev} falls in {min}..{max}: widen \
         `min` and `max`"
    )]
    NoMass {
        /// The key in the spec.
        key: &'static str,
        /// The mean before truncation, in tokens.
        mean: f64,
        /// The standard deviation before truncation, in tokens.
        stddev: f64,
        /// The least, in tokens.
        min: u32,
        /// The greatest, in tokens.
        max: u32,
    },
    /// The spec names a prompt file, and the plan was asked for without it.
    #[error("`prompts.file` is `{file}`, and no plan is possible without its text: read it first")]
    FileNotRead {
        /// The file as the spec names it.
        file: String,
    },
    /// The prompt file has fewer rows than there are requests.
    #[error(
        "`prompts.file` has {rows} rows, and {measured} measured requests and {warmup} for warm-up need {}: add rows, \
         or lower `load.iterations`, `load.extend` or `load.warmup`",
        u64::from(*.measured) + u64::from(*.warmup)
    )]
    TooFewRows {
        /// How many rows there are.
        rows: usize,
        /// Measured requests, those of an extension included.
        measured: u32,
        /// Warm-up requests.
        warmup: u32,
    },
    /// Every measured row is the same prompt, and the spec does not say that this is meant.
    #[error(
        "the first {measured} rows of `prompts.file`, those that are measured, are all the same prompt: vary them, or \
         set `prompts.cache: warm` where one prompt is meant"
    )]
    OnePrompt {
        /// Measured requests.
        measured: u32,
    },
}
