//! Probability masses of counts, as the exact recursions move them along.

/// Weights below this part of the mode are left out; far below any usable alpha.
const NEGLIGIBLE: f64 = 1e-60;

/// The masses of consecutive counts, possibly summing to less than 1.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Mass {
    first: u64,
    weights: Vec<f64>,
}

impl Mass {
    /// All mass on one count.
    pub(crate) fn point(count: u64) -> Self {
        Self { first: count, weights: vec![1.0] }
    }

    /// Bin(n, p) around its mode, by the ratios of neighbours.
    pub(crate) fn binomial(n: u32, p: f64) -> Self {
        if p <= 0.0 {
            return Self::point(0);
        }
        if p >= 1.0 {
            return Self::point(u64::from(n));
        }
        let odds = p / (1.0 - p);
        let size = f64::from(n);
        Self::around(((size + 1.0) * p).floor().min(size), size, |k| (size - k) / (k + 1.0) * odds)
    }

    /// Of `n` values, those above the reference value that has `above` of its own sample at or above it, and
    /// `below` at or below: BetaBin(n, above, below), both from 1.
    pub(crate) fn beta_binomial(n: u64, above: usize, below: usize) -> Self {
        let (size, a, b) = (n as f64, above as f64, below as f64);
        let mode = ((size * (a - 1.0) + 1.0 - b) / (a + b - 2.0).max(1.0)).ceil().clamp(0.0, size);
        Self::around(mode, size, |k| (size - k) / (k + 1.0) * ((k + a) / (size - k - 1.0 + b)))
    }

    /// A distribution of `0..=size` with one mode, by the ratios of each count's weight to the one before it.
    fn around(mode: f64, size: f64, next: impl Fn(f64) -> f64) -> Self {
        let mut weights = Vec::new();
        let (mut k, mut weight) = (mode, 1.0);
        while k > 0.0 && weight > NEGLIGIBLE {
            k -= 1.0;
            weight /= next(k);
            weights.push(weight);
        }
        let first = k as u64;
        weights.reverse();
        weights.push(1.0);
        (k, weight) = (mode, 1.0);
        while k < size && weight > NEGLIGIBLE {
            weight *= next(k);
            weights.push(weight);
            k += 1.0;
        }
        let total: f64 = weights.iter().sum();
        weights.iter_mut().for_each(|w| *w /= total);
        Self { first, weights }
    }

    /// The distribution of the sum with an independent count.
    pub(crate) fn plus(&self, other: &Self) -> Self {
        let (short, long) = if self.weights.len() <= other.weights.len() {
            (&self.weights, &other.weights)
        } else {
            (&other.weights, &self.weights)
        };
        let length = if short.is_empty() { 0 } else { short.len() + long.len() - 1 };
        let mut weights = vec![0.0; length];
        for (offset, a) in short.iter().enumerate() {
            for (sum, b) in weights.iter_mut().skip(offset).zip(long) {
                *sum += a * b;
            }
        }
        Self { first: self.first + other.first, weights }
    }

    /// Least count whose upper tail, itself included, is at most `budget`.
    pub(crate) fn least_count_within(&self, budget: f64) -> u64 {
        let mut tail = 0.0;
        let mut count = self.first + self.weights.len() as u64;
        for weight in self.weights.iter().rev() {
            tail += weight;
            if tail > budget {
                break;
            }
            count -= 1;
        }
        count
    }

    /// `P[K ≥ count]`.
    pub(crate) fn at_least(&self, count: u64) -> f64 {
        let below = usize::try_from(count.saturating_sub(self.first)).unwrap_or(usize::MAX);
        // Smallest first, so that nothing small is lost.
        self.weights.iter().skip(below).rev().sum::<f64>().min(1.0)
    }

    /// `P[K ≤ count]`.
    pub(crate) fn at_most(&self, count: u64) -> f64 {
        let Some(counts) = (count + 1).checked_sub(self.first) else { return 0.0 };
        self.weights.iter().take(usize::try_from(counts).unwrap_or(usize::MAX)).sum::<f64>().min(1.0)
    }

    /// Takes away the mass of counts from `count` up and returns it.
    pub(crate) fn take_from(&mut self, count: u64) -> f64 {
        let keep = usize::try_from(count.saturating_sub(self.first)).unwrap_or(usize::MAX);
        if keep >= self.weights.len() {
            return 0.0;
        }
        // Smallest first, so that nothing small is lost.
        self.weights.split_off(keep).iter().rev().sum()
    }

    /// Drops the mass of counts up to and including `count`.
    pub(crate) fn drop_up_to(&mut self, count: u64) {
        let Some(drop) = (count + 1).checked_sub(self.first) else { return };
        let drop = usize::try_from(drop).unwrap_or(usize::MAX).min(self.weights.len());
        self.weights.drain(..drop);
        self.first += drop as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::binomial::at_least;

    #[test]
    fn tails_are_the_binomial_ones() {
        for (n, p) in [(1, 0.5), (30, 0.05), (100, 0.5), (1000, 0.95), (50_000, 0.01)] {
            for k in [1, n / 20, n / 2, n - n / 50, n] {
                let exact = at_least(u64::from(k), u64::from(n), p);
                let summed = Mass::binomial(n, p).take_from(u64::from(k));
                assert!((exact - summed).abs() <= 1e-10 * exact + 1e-50, "{n} {p} {k}: {exact} {summed}");
            }
        }
    }

    #[test]
    fn sums_of_binomials_are_binomial() {
        let sum = Mass::binomial(30, 0.3).plus(&Mass::binomial(20, 0.3));
        let whole = Mass::binomial(50, 0.3);
        assert_eq!(sum.first, whole.first);
        for (a, b) in sum.weights.iter().zip(&whole.weights) {
            assert!((a - b).abs() < 1e-14);
        }
    }

    #[test]
    fn cutting_everything_leaves_nothing_to_add_to() {
        let mut mass = Mass::binomial(5, 0.5);
        mass.drop_up_to(9);
        assert_eq!(mass.plus(&Mass::point(3)).take_from(0), 0.0);
    }
}
