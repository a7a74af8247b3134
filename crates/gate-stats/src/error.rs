/// Why a number could not be computed; each reads on from "failed to".
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is nothing to compute from.
    #[error("conclude anything from no data")]
    Empty,
    /// A sample is NaN, minus infinity, or infinite where only finite values have a meaning.
    #[error("use sample {position}: {value} has no place among the measured values")]
    Sample {
        /// Position of the sample in the input, from 0.
        position: usize,
        /// What was found there.
        value: f64,
    },
    /// A share or p-value lies outside 0..=1.
    #[error("use {value} as {name}: it must lie between 0 and 1")]
    Probability {
        /// Which argument it is.
        name: &'static str,
        /// What was given.
        value: f64,
    },
    /// An error probability is not in `1e-30..1`.
    #[error("use {0} as alpha: it must lie between 1e-30 and 1, both ends excluded")]
    Alpha(f64),
    /// More exceedances than requests.
    #[error("count {k} exceedances among {n} requests")]
    Count {
        /// Exceedances.
        k: u64,
        /// Requests.
        n: u64,
    },
    /// A quantile is not strictly between 0 and 100 %.
    #[error("use {0} thousandths of a percent as a quantile: it must lie between 1 and 99999")]
    Quantile(u32),
    /// A design effect is not a finite number of at least 1.
    #[error("use {0} as a design effect: it must be a finite number of at least 1")]
    DesignEffect(f64),
    /// Looks are not a non-empty, strictly increasing list of positive request counts.
    #[error("look at the data after {0:?} requests: looks must increase and start above 0")]
    Looks(Vec<u32>),
    /// The last look is too late for an exact recursion.
    #[error("look at the data after {requests} requests: at most {most} are possible here")]
    LookTooLate {
        /// The last look.
        requests: u32,
        /// The latest look that can be computed.
        most: u32,
    },
    /// A list of counts does not have one entry per look.
    #[error("pair {counts} counts with {looks} looks")]
    Lengths {
        /// Number of looks.
        looks: usize,
        /// Number of counts.
        counts: usize,
    },
    /// No check is left to decide.
    #[error("share alpha among no checks")]
    NoChecks,
    /// A tolerance leaves no limit above zero.
    #[error("allow a change of {0}: it must be a finite number above -1")]
    Tolerance(f64),
    /// A factor on a limit is not a finite number above 0.
    #[error("multiply a limit by {0}: it must be a finite number above 0")]
    Ratio(f64),
    /// The noise between runs is not a finite deviation known with at least one degree of freedom.
    #[error(
        "expect a deviation of {tau} between runs, known with {freedom} degrees of freedom: both must be finite, from 0 and from 1"
    )]
    Noise {
        /// Standard deviation of the logs.
        tau: f64,
        /// Degrees of freedom it is known with.
        freedom: f64,
    },
    /// A duration or pace that must be positive is zero.
    #[error("divide by {0}: it must be longer than nothing")]
    ZeroDuration(&'static str),
    /// A benefit weight is not a finite, non-negative number.
    #[error("charge {0} tokens for a second of idling: it must be finite and not negative")]
    IdleCost(f64),
}

/// Accepts a share within 0..=1.
pub(crate) fn share(name: &'static str, value: f64) -> Result<f64, Error> {
    if (0.0..=1.0).contains(&value) { Ok(value) } else { Err(Error::Probability { name, value }) }
}

/// Accepts an error probability that the recursions can resolve.
pub(crate) fn alpha(value: f64) -> Result<f64, Error> {
    if value > 1e-30 && value < 1.0 { Ok(value) } else { Err(Error::Alpha(value)) }
}

/// Accepts a tolerance that leaves a limit above 0, and gives `ln(1 + tolerance)`.
pub(crate) fn margin(tolerance: f64) -> Result<f64, Error> {
    if tolerance.is_finite() && tolerance > -1.0 { Ok(tolerance.ln_1p()) } else { Err(Error::Tolerance(tolerance)) }
}

/// Accepts a factor on a limit.
pub(crate) fn ratio(value: f64) -> Result<f64, Error> {
    if value.is_finite() && value > 0.0 { Ok(value) } else { Err(Error::Ratio(value)) }
}

/// Accepts a measured value at a position: from 0, +∞ where it never ended.
pub(crate) fn measured(position: usize, value: f64) -> Result<f64, Error> {
    if value >= 0.0 { Ok(value) } else { Err(Error::Sample { position, value }) }
}

/// Accepts `k` of `n` with `0 < n` and `k <= n`.
pub(crate) fn count(k: u64, n: u64) -> Result<(), Error> {
    if n == 0 {
        Err(Error::Empty)
    } else if k > n {
        Err(Error::Count { k, n })
    } else {
        Ok(())
    }
}
