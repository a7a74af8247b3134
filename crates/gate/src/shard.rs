//! Which part of a plan this machine sends.

use gate_model::Shard;

use crate::failure::Failure;

/// `--shard I/N`, or `--shard /N`: the index is the job's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shards {
    index: Option<u32>,
    of: u32,
}

/// The most machines that share a plan.
const MOST: u32 = 1_000;

impl Shards {
    /// Reads `2/8` or `/8`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("write I/N, such as 2/8: I from 1 to N, and N at most {MOST}");
        let (index, of) = text.split_once('/').ok_or_else(wrong)?;
        let number = |text: &str| text.trim().parse::<u32>().map_err(|_| wrong());
        let index = if index.trim().is_empty() { None } else { Some(number(index)?) };
        let of = number(of)?;
        let is_one = (1..=MOST).contains(&of) && index.is_none_or(|index| (1..=of).contains(&index));
        if is_one { Ok(Self { index, of }) } else { Err(wrong()) }
    }

    /// The shard, with the index that the job says where the flag does not: `CI_NODE_INDEX` counts from 1, and
    /// `JOB_COMPLETION_INDEX` from 0.
    pub(crate) fn of_job(self) -> Result<Shard, Failure> {
        let of = self.of;
        if let Some(index) = self.index {
            return Ok(Shard { index, of });
        }
        let index = match (variable("CI_NODE_INDEX")?, variable("JOB_COMPLETION_INDEX")?) {
            (Some(index), _) => index,
            (None, Some(before)) => before.saturating_add(1),
            (None, None) => {
                return Err(Failure::usage(format!("--shard /{of}: this job does not say which one it is"))
                    .hint("write --shard I/N, or set CI_NODE_INDEX (from 1) or JOB_COMPLETION_INDEX (from 0)"));
            }
        };
        if !(1..=of).contains(&index) {
            return Err(Failure::usage(format!("--shard /{of}: this job is number {index}")));
        }
        Ok(Shard { index, of })
    }

    /// The shard of a job that GitLab runs several times over (`parallel: N`).
    pub(crate) fn of_gitlab() -> Result<Option<Shard>, Failure> {
        match (variable("CI_NODE_INDEX")?, variable("CI_NODE_TOTAL")?) {
            (Some(index), Some(of)) if of > 1 => Self { index: Some(index), of }.checked().map(Some),
            _ => Ok(None),
        }
    }

    fn checked(self) -> Result<Shard, Failure> {
        let Self { index, of } = self;
        match index {
            Some(index) if (1..=of).contains(&index) && of <= MOST => Ok(Shard { index, of }),
            _ => Err(Failure::usage(format!("CI_NODE_INDEX and CI_NODE_TOTAL make no shard of at most {MOST}"))),
        }
    }
}

/// A variable that holds a whole number; unset and empty are none.
fn variable(name: &str) -> Result<Option<u32>, Failure> {
    let Some(text) = std::env::var_os(name).filter(|text| !text.is_empty()) else { return Ok(None) };
    let number = text.to_str().and_then(|text| text.parse().ok());
    number.map(Some).ok_or_else(|| Failure::usage(format!("{name} is no whole number")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shard_is_one_of_so_many() {
        assert_eq!(Shards::parse("2/8"), Ok(Shards { index: Some(2), of: 8 }));
        assert_eq!(Shards::parse("/8"), Ok(Shards { index: None, of: 8 }));
        for wrong in ["0/8", "9/8", "8", "a/b", "1/0", "1/1001", "-1/3", "/"] {
            assert!(Shards::parse(wrong).is_err(), "{wrong}");
        }
    }
}
