//! The words a prompt starts with, so that no two requests and no two runs share a prefix.

use sha2::{Digest, Sha256};

/// Words that are one token of usual vocabularies.
const WORDS: &str = include_str!("nonce_words.txt");

/// How many words a nonce has. Each stands for eight bits.
const LENGTH: u32 = 6;

const MASK: u64 = (1 << (8 * LENGTH)) - 1;

/// 2⁴⁸ divided by the golden ratio, made odd: multiples of it differ, and spread over the leading words evenly.
const STEP: u64 = 0x9e37_79b9_7f4b;

/// Whose nonces: those of warm-up requests lie past every index of a measured one.
#[derive(Clone, Copy)]
pub(crate) enum Phase {
    Measured = 0,
    Warmup = 1,
}

/// Where a run's nonces start; different runs start at unrelated places.
pub(crate) struct Nonces {
    words: Vec<&'static str>,
    start: u64,
}

impl Nonces {
    pub(crate) fn new(run_id: &str) -> Self {
        let digest = Sha256::digest(run_id.as_bytes());
        let start = digest.iter().take(8).fold(0, |bits, &byte| bits << 8 | u64::from(byte));
        Self { words: WORDS.split_whitespace().collect(), start }
    }

    /// The nonce of a number. Within a run no two share one, up to 32,768 scenarios.
    pub(crate) fn get(&self, phase: Phase, scenario: u16, number: u32) -> String {
        let number = u64::from(scenario) << 33 | (phase as u64) << 32 | u64::from(number);
        let bits = self.start.wrapping_add(number.wrapping_mul(STEP)) & MASK;
        let bytes = bits.to_be_bytes().into_iter().skip(8 - LENGTH as usize);
        let words: Vec<&str> = bytes.filter_map(|byte| self.words.get(usize::from(byte)).copied()).collect();
        words.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_byte_has_a_word_of_its_own_and_of_one_token() {
        let words: HashSet<&str> = WORDS.split_whitespace().collect();
        assert_eq!(WORDS.split_whitespace().count(), 256);
        assert_eq!(words.len(), 256);
        assert!(words.iter().all(|word| gate_tokens::thousandths(word) == 1000));
        assert_eq!(STEP % 2, 1);
    }

    #[test]
    fn the_leading_words_are_spread_evenly() {
        let nonces = Nonces::new("run");
        let leading = |words: usize, count: u32| {
            let nonces = (0..count).map(|number| nonces.get(Phase::Measured, 0, number));
            nonces.map(|nonce| nonce.split(' ').take(words).collect::<Vec<_>>().join(" ")).collect::<HashSet<_>>().len()
        };
        assert!(leading(1, 100) >= 95, "{}", leading(1, 100));
        assert_eq!(leading(2, 20_000), 20_000);
    }

    #[test]
    fn phases_and_scenarios_differ() {
        let nonces = Nonces::new("run");
        let phases = [Phase::Measured, Phase::Warmup];
        let all = phases
            .map(|phase| [0, 1, 2, 32_767].map(|scenario| [0, 1, u32::MAX].map(|i| nonces.get(phase, scenario, i))));
        assert_eq!(all.iter().flatten().flatten().collect::<HashSet<_>>().len(), 24);
    }

    #[test]
    fn runs_differ() {
        let of = |run: &str| (0..1000).map(|i| Nonces::new(run).get(Phase::Measured, 0, i)).collect::<HashSet<_>>();
        assert!(of("a").is_disjoint(&of("b")));
    }
}
