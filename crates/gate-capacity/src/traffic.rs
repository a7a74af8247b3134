//! What is sent: requests and their tokens.

use serde::Serialize;

use crate::CapacityError;

/// A mean load.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Traffic {
    /// Requests a second.
    pub rps: f64,
    /// Mean input tokens of a request, cached ones among them.
    pub input_tokens: f64,
    /// Mean output tokens of a request.
    pub output_tokens: f64,
    /// The share of input tokens that come from the provider's cache.
    pub cached: f64,
}

impl Traffic {
    /// # Errors
    /// [`CapacityError::OutOfRange`] where a number is no such one.
    pub(crate) fn check(&self) -> Result<(), CapacityError> {
        let least = |what, value: f64| match (0.0..1e15).contains(&value) {
            true => Ok(()),
            false => Err(CapacityError::range(what, value, "a number from 0")),
        };
        if !(self.rps.is_finite() && self.rps > 0.0 && self.rps < 1e15) {
            return Err(CapacityError::range("requests a second of", self.rps, "a number above 0"));
        }
        least("input tokens of", self.input_tokens)?;
        least("output tokens of", self.output_tokens)?;
        match (0.0..=1.0).contains(&self.cached) {
            true => Ok(()),
            false => Err(CapacityError::range("a cached share of", self.cached, "from 0 to 100 %")),
        }
    }

    /// Requests, input tokens not from the cache, cached ones, and output tokens in so many seconds.
    pub(crate) fn within(&self, seconds: f64) -> [f64; 4] {
        let requests = self.rps * seconds;
        let input = requests * self.input_tokens;
        [requests, input * (1.0 - self.cached), input * self.cached, requests * self.output_tokens]
    }
}
