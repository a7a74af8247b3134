//! What is sent: what kind of work it is, and how long its prompts and answers are.

use std::fmt::{self, Display};
use std::str::FromStr;

/// A kind of work, with lengths and limits that such work often has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// People who wait for each answer.
    Chat,
    /// Completions while somebody types: long prompts, short answers, little patience.
    Code,
    /// Questions with what a search has found: very long prompts that share their beginning.
    Rag,
    /// Work nobody waits for.
    Batch,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Chat, Self::Code, Self::Rag, Self::Batch];

    /// The name that is typed.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Chat => "chat",
            Self::Code => "code",
            Self::Rag => "rag",
            Self::Batch => "batch",
        }
    }

    /// What it is, in words.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Self::Chat => "chat: people who wait for each answer",
            Self::Code => "code: completions while somebody types, with long prompts and short answers",
            Self::Rag => "rag: questions with what a search has found, with very long prompts that begin alike",
            Self::Batch => "batch: work that nobody waits for",
        }
    }
}

impl Display for Kind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|kind| kind.name() == text.trim().to_ascii_lowercase());
        known.ok_or_else(|| "it is one of chat, code, rag, batch".to_owned())
    }
}

/// How long prompts, or answers, are, in tokens: a normal distribution between two bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lengths {
    /// The mean.
    pub mean: u32,
    /// The standard deviation.
    pub stddev: u32,
    /// The least.
    pub min: u32,
    /// The most.
    pub max: u32,
}

impl Lengths {
    /// Those of some lengths that were seen; `None` of none. Bounds are the least and the most of them.
    #[must_use]
    pub fn of(seen: &[u32]) -> Option<Self> {
        let count = seen.len() as f64;
        let mean = seen.iter().map(|one| f64::from(*one)).sum::<f64>() / count;
        let squares = seen.iter().map(|one| (f64::from(*one) - mean).powi(2)).sum::<f64>();
        let stddev = if seen.len() > 1 { (squares / (count - 1.0)).sqrt() } else { 0.0 };
        let whole = |value: f64| value.round().clamp(1.0, f64::from(u32::MAX)) as u32;
        Some(Self {
            mean: whole(mean),
            stddev: stddev.round() as u32,
            min: seen.iter().copied().min()?.max(1),
            max: seen.iter().copied().max()?.max(1),
        })
    }
}

/// What is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workload {
    /// What kind of work it is.
    pub kind: Kind,
    /// How long prompts are.
    pub input: Lengths,
    /// How long answers are.
    pub output: Lengths,
    /// How many turns a conversation has, at least and at most.
    pub turns: (u32, u32),
    /// Tokens that all prompts share at their beginning.
    pub shared_prefix: Option<u32>,
    /// Where the lengths are from: a file and how many of its rows; absent of those that such work often has.
    pub fitted: Option<(String, usize)>,
}

impl Workload {
    /// Lengths that such work often has. They are a beginning: one's own traffic is better.
    #[must_use]
    pub fn usual(kind: Kind) -> Self {
        let lengths = |mean, stddev, min, max| Lengths { mean, stddev, min, max };
        let (input, output) = match kind {
            Kind::Chat => (lengths(550, 150, 50, 2_000), lengths(150, 50, 20, 400)),
            Kind::Code => (lengths(1_500, 600, 100, 4_000), lengths(60, 30, 8, 200)),
            Kind::Rag => (lengths(3_000, 900, 500, 6_000), lengths(200, 60, 20, 500)),
            Kind::Batch => (lengths(1_000, 400, 100, 4_000), lengths(300, 100, 50, 800)),
        };
        let shared_prefix = (kind == Kind::Rag).then_some(400);
        Self { kind, input, output, turns: (1, 1), shared_prefix, fitted: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_fitted() {
        // Mean 5, squares 9 + 1 + 1 + 1 + 0 + 0 + 4 + 16 = 32 over 7.
        let fitted = Lengths::of(&[2, 4, 4, 4, 5, 5, 7, 9]).unwrap();
        assert_eq!(fitted, Lengths { mean: 5, stddev: 2, min: 2, max: 9 });
        assert_eq!(Lengths::of(&[]), None);
        assert_eq!(Lengths::of(&[0]), Some(Lengths { mean: 1, stddev: 0, min: 1, max: 1 }));
    }
}
