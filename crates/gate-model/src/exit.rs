//! Exit codes: the one documented type.

use serde::{Deserialize, Serialize};

/// How the process ends. The codes are part of the interface and never change their meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExitCode {
    /// 0: passed, or passed with warnings.
    Passed,
    /// 1: a required check is violated.
    Violated,
    /// 2: the spec or the command line is wrong.
    Usage,
    /// 3: could not measure.
    CouldNotMeasure,
    /// 4: inconclusive, or no baseline, where that costs the build.
    Inconclusive,
    /// 70: internal error.
    Internal,
    /// 130: interrupted.
    Interrupted,
}

impl ExitCode {
    /// The number.
    #[must_use]
    pub fn code(self) -> u8 {
        match self {
            Self::Passed => 0,
            Self::Violated => 1,
            Self::Usage => 2,
            Self::CouldNotMeasure => 3,
            Self::Inconclusive => 4,
            Self::Internal => 70,
            Self::Interrupted => 130,
        }
    }

    /// Which of two codes a job with both ends with: the first present of 130, 2, 70, 1, 3, 4, 0.
    #[must_use]
    pub fn worse(self, other: Self) -> Self {
        if self.rank() <= other.rank() { self } else { other }
    }

    fn rank(self) -> u8 {
        match self {
            Self::Interrupted => 0,
            Self::Usage => 1,
            Self::Internal => 2,
            Self::Violated => 3,
            Self::CouldNotMeasure => 4,
            Self::Inconclusive => 5,
            Self::Passed => 6,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ExitCode::*;

    #[test]
    fn the_first_present_wins() {
        let order = [Interrupted, Usage, Internal, Violated, CouldNotMeasure, Inconclusive, Passed];
        for (position, left) in order.iter().enumerate() {
            for right in &order[position..] {
                assert_eq!(left.worse(*right), *left);
                assert_eq!(right.worse(*left), *left);
            }
        }
        assert_eq!(order.map(super::ExitCode::code), [130, 2, 70, 1, 3, 4, 0]);
    }
}
