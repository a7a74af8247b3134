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
    Rows,
    Turns,
    Thinks,
    Groups,
    WarmupGroups,
    Scenarios,
    Prefix,
}

/// What is drawn for one purpose, for one scenario.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stream {
    seed: u64,
    purpose: Purpose,
    scenario: u16,
}

impl Stream {
    pub(crate) fn new(seed: u64, purpose: Purpose, scenario: u16) -> Self {
        Self { seed, purpose, scenario }
    }

    /// One of the many streams of the purpose, such as each request's.
    pub(crate) fn part(self, part: u64) -> Draws {
        let mut key = [0; 32];
        let words = [self.seed, self.purpose as u64, part, self.scenario.into()];
        for (bytes, word) in key.chunks_exact_mut(8).zip(words) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        Draws(ChaCha8Rng::from_seed(key))
    }
}

/// A stream of draws, known by its key.
pub(crate) struct Draws(ChaCha8Rng);

impl Draws {
    /// Uniform in `0.0..1.0`, a multiple of 2⁻⁵³.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.0.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Uniform in `0..count`; 0 where `count` is 0. The bias is below `count` / 2⁶⁴.
    pub(crate) fn below(&mut self, count: usize) -> usize {
        let wide = u128::from(self.0.next_u64()) * count as u128;
        (wide >> 64) as usize
    }

    /// Exponential with mean 1: the inverse of its distribution function; `1 - u` is never 0.
    pub(crate) fn exponential(&mut self) -> f64 {
        -(1.0 - self.unit()).ln()
    }

    /// Standard normal (Marsaglia's polar method, of each pair the first).
    fn normal(&mut self) -> f64 {
        loop {
            let (x, y) = (2.0 * self.unit() - 1.0, 2.0 * self.unit() - 1.0);
            let square = x * x + y * y;
            if square > 0.0 && square < 1.0 {
                return x * (-2.0 * square.ln() / square).sqrt();
            }
        }
    }

    /// Gamma distributed with this shape, above 0, and scale 1 (Marsaglia and Tsang, *A simple method for generating
    /// gamma variables*, ACM TOMS 26, 2000).
    pub(crate) fn gamma(&mut self, shape: f64) -> f64 {
        if shape < 1.0 {
            let power = (1.0 - self.unit()).powf(1.0 / shape);
            return self.gamma(shape + 1.0) * power;
        }
        let d = shape - 1.0 / 3.0;
        let c = 1.0 / (9.0 * d).sqrt();
        loop {
            let x = self.normal();
            let v = (1.0 + c * x).powi(3);
            let u = 1.0 - self.unit();
            if v > 0.0 && u.ln() < 0.5 * x * x + d * (1.0 - v + v.ln()) {
                return d * v;
            }
        }
    }

    /// A random order (Fisher and Yates).
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            let other = self.below(last + 1);
            items.swap(last, other);
        }
    }
}
