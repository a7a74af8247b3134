//! What makes a plan impossible.

use gate_model::{Nanos, Quantity};

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
    /// A time's mean or standard deviation is no such time.
    #[error("`{key}`: mean {mean} and stddev {stddev}: both must be at least 0")]
    Time {
        /// The key in the spec.
        key: &'static str,
        /// The mean.
        mean: Nanos,
        /// The standard deviation.
        stddev: Nanos,
    },
    /// The shape of gamma arrivals is not a positive number.
    #[error("`load.arrivals` is gamma with shape {shape}: it must be above 0")]
    GammaShape {
        /// The shape.
        shape: f64,
    },
    /// A rate of the schedule is no number, or negative.
    #[error("`load.pattern` has a rate of {rate}/s: rates must be 0 or more")]
    StageRate {
        /// The rate.
        rate: f64,
    },
    /// A schedule of more than 24 hours.
    #[error("the schedule of `load.pattern` lasts {lasts}, and a plan lasts 24 h at most: shorten it")]
    ScheduleTooLong {
        /// How long it lasts.
        lasts: Nanos,
    },
    /// More requests are due within the schedule than a plan holds.
    #[error(
        "more than {limit} requests are due, the most a plan holds: shorten `load.duration` or the stages of \
         `load.pattern`, lower their rates, or give the rarest scenario more `weight`"
    )]
    TooManyDue {
        /// The most a plan holds.
        limit: u32,
    },
    /// The schedule is over before anything is due.
    #[error("no request is due within the schedule of `load.pattern`: raise its rates, or let it last longer")]
    NothingDue,
    /// A closed loop for a time: how many it will send is not known before.
    #[error(
        "`load.duration` needs a rate, and a closed loop has none: give `load.iterations` instead, or `load.rps` with \
         `load.concurrency`"
    )]
    ClosedFor,
    /// A trace with fewer rows than there are requests.
    #[error(
        "`load.trace` ends after {}, and `load.iterations` asks for {}: lower it, or leave it out to send the whole \
         trace",
        counted(*.rows as u64, "row"),
        counted(u64::from(*.asked), "request")
    )]
    TraceTooShort {
        /// How many rows there are.
        rows: usize,
        /// Requests asked for.
        asked: u32,
    },
    /// A row of a trace is more than 24 hours after the first.
    #[error(
        "line {line} of the trace is due {at} after its first request, and a plan lasts 24 h at most: give \
         `load.iterations` to send its first rows alone, or take out what comes later"
    )]
    TraceTooLong {
        /// The line of the first row past the limit, from 1.
        line: u64,
        /// How long after the first it is due.
        at: Nanos,
    },
    /// Conversations without a turn, or with bounds out of order.
    #[error(
        "`prompts.turns` is {min}..{max}: it must begin at 1 or more, end at {most} at most, and not before it begins"
    )]
    Turns {
        /// The least.
        min: u32,
        /// The greatest.
        max: u32,
        /// The most there may be.
        most: u32,
    },
    /// Shares that are none.
    #[error("scenario `{scenario}` has `weight` {weight}: it must be above 0")]
    Weight {
        /// The scenario.
        scenario: String,
        /// Its weight.
        weight: f64,
    },
    /// A shared prefix that leaves no room for a question.
    #[error(
        "`prompts.shared_prefix` has {tokens} tokens, and a prompt may have {least} in all: raise the least of \
         `prompts.input_tokens` (its `min`) to {} or more, or shorten the prefix",
        .tokens.saturating_add(*.room)
    )]
    NoRoom {
        /// The prefix's tokens.
        tokens: u32,
        /// The shortest prompt.
        least: u32,
        /// What a question of its own takes.
        room: u32,
    },
    /// What a plan could use up is more than the budget.
    #[error("`{key}` is {budget}, and the plan could use {worst} at worst: raise it, or lower {instead}")]
    OverBudget {
        /// The key in the spec.
        key: &'static str,
        /// The most it may use.
        budget: Quantity,
        /// The most it could use.
        worst: Quantity,
        /// What to lower.
        instead: &'static str,
    },
    /// A budget in dollars without prices.
    #[error("`budget.cost` is given, and what tokens cost is not: give `prices.input` and `prices.output`")]
    NoPrices,
    /// A scenario has no plan.
    #[error("scenario `{scenario}`: {error}")]
    InScenario {
        /// The scenario's name.
        scenario: String,
        /// Why.
        error: Box<PlanError>,
    },
    /// The spec names a file, and the plan was asked for without it.
    #[error("`{key}` is `{file}`, and no plan is possible without its text: read it first")]
    FileNotRead {
        /// The key in the spec.
        key: &'static str,
        /// The file as the spec names it.
        file: String,
    },
    /// The prompt file has fewer rows than there are requests.
    #[error(
        "`prompts.file` has {}, and {} and {warmup} for warm-up need {}: add rows, or lower `load.iterations`, \
         `load.extend` or `load.warmup`",
        counted(*.rows as u64, "row"),
        counted(u64::from(*.measured), "measured request"),
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
    /// Too many of the prompt file's conversations are shorter than the spec's.
    #[error(
        "`prompts.file` has {} of at least {} (of {rows}), and {measured} measured and {warmup} for warm-up need {}: \
         add some, or lower `prompts.turns`, `load.iterations` or `load.warmup`",
        counted(*.long as u64, "conversation"),
        counted(u64::from(*.turns), "turn"),
        u64::from(*.measured) + u64::from(*.warmup)
    )]
    TooFewConversations {
        /// How many conversations are long enough.
        long: usize,
        /// The fewest turns.
        turns: u32,
        /// How many conversations there are.
        rows: usize,
        /// Measured conversations, those of an extension included.
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

/// A count with its noun, which has an `s` where there is not exactly one.
fn counted(count: u64, noun: &str) -> String {
    format!("{count} {noun}{}", if count == 1 { "" } else { "s" })
}
