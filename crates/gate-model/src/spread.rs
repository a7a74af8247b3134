//! Spreads: whole distributions in few numbers, for pictures of them.

use serde::{Deserialize, Serialize};

use crate::{Against, Series};

/// How one series of a scenario's judged `ok` requests is distributed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// The scenario.
    pub scenario: u16,
    /// The series.
    pub series: Series,
    /// Whose: absent of the run's target; the stored runs' together; the reference's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub of: Option<Against>,
    /// Requests.
    pub n: u32,
    /// Quantiles by nearest rank, ascending, in the series' base unit (nanoseconds, tokens): of `n` ≤ 101 every value, of
    /// more the 0th to the 100th percentile.
    pub quantiles: Vec<f64>,
}

impl Spread {
    /// The most quantiles that one has.
    pub const MOST: usize = 101;
}
