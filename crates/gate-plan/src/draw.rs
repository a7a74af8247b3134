//! Seeded draws that never change: equal key, equal numbers, on every machine and in every version.
//!
//! `ChaCha8` is specified to the bit and `rand_chacha` promises portable, reproducible output. What turns its
//! words into numbers is here, since `rand` keeps its own algorithms stable only between major versions.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// What a stream of draws is for. Streams of different purposes are independent.
#[derive(Clone, Copy, Debug)]
#[repr(u64)]
pub(crate) enum Purpose {
    Gaps = 1,
    InputLengths,
    OutputLengths,
    WarmupInputLengths,
    WarmupOutputLengths,
    Passage,
    WarmupPassage,
    Order,
}

/// A stream of draws, known by its key.
pub(crate) struct Draws(ChaCha8Rng);

impl Draws {
    /// The stream of a purpose; `part` tells apart the many streams of one purpose, such as each request's.
    pub(crate) fn new(seed: u64, purpose: Purpose, part: u64) -> Self {
        let mut key = [0; 32];
        let words = [seed, purpose as u64, part];
        for (bytes, word) in key.chunks_exact_mut(8).zip(words) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        Self(ChaCha8Rng::from_seed(key))
    }

    /// Uniform in `0.0..1.0`, a multiple of 2⁻⁵³.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Uniform in `0..count`; 0 where `count` is 0. The bias is below `count` / 2⁶⁴.
    pub(crate) fn below(&mut self, count: usize) -> usize {
        let wide = u128::from(self.0.next_u64()) * count as u128;
        (wide >> 64) as usize
    }

    /// A random order (Fisher and Yates).
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = self.below(last + 1);
            items.swap(last, other);
        }
    }
}
