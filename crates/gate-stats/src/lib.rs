//! Numbers to estimates, bounds and tests.
//!
//! Everything here is a pure function of its arguments: no clock, no I/O, no
//! randomness, no resampling. What cannot be answered is an [`Error`] or, where
//! "does not exist" is an ordinary answer, an [`Option`]; nothing panics, and
//! no data is never a proof of anything.
//!
//! | module | answers |
//! |---|---|
//! | [`quantile`] | which order statistic estimates a quantile, and which bound it |
//! | [`binomial`] | how surprising are k exceedances of n; which counts decide |
//! | [`series`] | the same for requests that are not independent |
//! | [`mean`] | how surprising is a mean of such requests |
//! | [`paired`], [`tail`] | whether one sample is worse than another: in the middle, in the tail |
//! | [`stored`] | the same against earlier runs, which differ by more than their requests |
//! | [`step`] | where a series changes for good: a knee, a recovery |
//! | [`trend`] | whether something grows over time, and how fast |
//! | [`ranks`] | whether one group of values lies higher than another |
//! | [`bounds`] | whether one sample is beyond a share of another, each by its own bounds |
//! | [`sequential`] | which counts violate when the data is looked at more than once |
//! | [`power`] | how likely a regression is found by such a procedure |
//! | [`multiplicity`] | p-values of several checks taken together |
//! | [`goodput`], [`smooth`] | requests per second that met every bound |
//! | [`summary`] | mean, spread and range |
//!
//! All alphas are one-sided. Throughout, `k` of `n` are the exceedances among
//! the requests looked at, and `p0` is the share of exceedances the bound allows.
#![forbid(unsafe_code)]

mod beta;
pub mod binomial;
pub mod bounds;
mod error;
pub mod goodput;
mod mass;
pub mod mean;
pub mod multiplicity;
mod normal;
pub mod paired;
pub mod power;
pub mod quantile;
pub mod ranks;
pub mod sequential;
pub mod series;
pub mod smooth;
pub mod step;
pub mod stored;
mod student;
pub mod summary;
pub mod tail;
pub mod trend;

pub use error::Error;
pub use mean::Mean;
pub use paired::Worse;
pub use quantile::{Quantile, Sorted};
pub use sequential::{Boundary, Levels, Spending};
pub use series::{DesignEffect, Indicators, Limit, Mark};
pub use summary::Summary;
