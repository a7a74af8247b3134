//! Properties that hold for any numbers, checked over grids and by plain enumeration.
#![expect(clippy::indexing_slicing, reason = "a missing answer fails the test")]

use gate_stats::sequential::{boundaries, nested_levels};
use gate_stats::{DesignEffect, Indicators, Mark, Quantile, Spending, binomial, power, quantile, series};

const SHARES: [f64; 7] = [0.01, 0.05, 0.1, 0.29, 0.5, 0.9, 0.999];

/// Bin(n, p) by the ratios of neighbours from the end that does not underflow; for small n only.
fn binomial_masses(n: u32, p: f64) -> Vec<f64> {
    if p > 0.5 {
        let mut mirrored = binomial_masses(n, 1.0 - p);
        mirrored.reverse();
        return mirrored;
    }
    let mut mass = (1.0 - p).powi(n.cast_signed());
    let mut all = vec![mass];
    for k in 0..n {
        mass *= f64::from(n - k) / f64::from(k + 1) * p / (1.0 - p);
        all.push(mass);
    }
    all
}

/// Probability that `violates` or `stops` first says yes, over all cumulative counts.
fn enumerate(looks: &[u32], counts: &[u32], p: f64, stops: impl Fn(u32, usize) -> bool) -> f64 {
    let (mut running, mut before, mut violated) = (vec![1.0], 0, 0.0);
    for (n, count) in looks.iter().zip(counts) {
        let arriving = binomial_masses(n - before, p);
        before = *n;
        let mut next = vec![0.0; *n as usize + 1];
        for (k, mass) in running.iter().enumerate() {
            for (more, chance) in arriving.iter().enumerate() {
                next[k + more] += mass * chance;
            }
        }
        for (k, mass) in next.iter_mut().enumerate() {
            if k >= *count as usize {
                violated += *mass;
                *mass = 0.0;
            } else if stops(*n, k) {
                *mass = 0.0;
            }
        }
        running = next;
    }
    violated
}

#[test]
fn tails_add_up_and_fall() {
    for p in SHARES {
        for n in [1_u64, 2, 20, 59, 150, 2999, 3001, 40_000] {
            let mut last = 1.0;
            for k in (0..=n).step_by((n / 50 + 1) as usize) {
                let upper = binomial::upper_tail(k, n, p).unwrap();
                let below = if k == 0 { 0.0 } else { binomial::lower_tail(k - 1, n, p).unwrap() };
                assert!((upper + below - 1.0).abs() < 1e-11, "{k} of {n} at {p}: {upper} + {below}");
                assert!(upper <= last * (1.0 + 1e-12), "{k} of {n} at {p}");
                last = upper;
            }
        }
    }
}

#[test]
fn tails_are_exact_far_out_and_for_large_counts() {
    // Rational arithmetic, or 60 decimal digits for the large ones.
    for (k, n, p, exact) in [
        (5, 50, 0.05, 0.103_616_810_144_143_53),
        (50, 50, 0.05, 8.881_784_197_001_252e-66),
        (200, 1000, 0.1, 2.928_054_803_828_677e-21),
        (1010, 10_000, 0.1, 0.374_234_424_380_777_25),
        (1100, 20_000, 0.05, 7.255_429_254_148_127e-4),
        (5150, 100_000, 0.05, 0.015_338_980_648_961_047),
        (50, 100_000, 0.0001, 1.840_226_421_433_795_4e-19),
        (20, 1_000_000, 0.00001, 0.003_454_174_030_494_832),
        (50_400, 1_000_000, 0.05, 0.033_519_371_472_898_92),
        (502_000, 1_000_000, 0.5, 3.180_466_875_041_244e-5),
        (11_000_000, 200_000_000, 0.0549, 2.706_064_693_961_246e-10),
    ] {
        let upper = binomial::upper_tail(k, n, p).unwrap();
        assert!((upper / exact - 1.0).abs() < 1e-8, "{k} of {n} at {p}: {upper}, exactly {exact}");
        let mirrored = binomial::lower_tail(n - k, n, 1.0 - p).unwrap();
        assert!((mirrored / exact - 1.0).abs() < 1e-8, "{k} of {n} at {p}: {mirrored}, exactly {exact}");
    }
}

#[test]
fn bounds_invert_the_tails() {
    for (k, n) in [(1_u64, 1_000_000), (1, 50), (6, 50), (49, 50), (20, 30), (5000, 100_000)] {
        for alpha in [0.05, 0.001] {
            let low = binomial::share_lower(k, n, alpha).unwrap();
            let high = binomial::share_upper(k, n, alpha).unwrap();
            assert!(low < k as f64 / n as f64 && k as f64 / (n as f64) < high);
            assert!((binomial::upper_tail(k, n, low).unwrap() / alpha - 1.0).abs() < 1e-8, "{k} of {n}");
            assert!((binomial::lower_tail(k, n, high).unwrap() / alpha - 1.0).abs() < 1e-8, "{k} of {n}");
        }
    }
}

#[test]
fn critical_counts_are_the_first_and_the_last() {
    for p0 in SHARES {
        for n in 1..=120 {
            let fail = binomial::fail_count(n, p0, 0.05).unwrap();
            assert!(fail > n || binomial::upper_tail(fail, n, p0).unwrap() <= 0.05);
            assert!(binomial::upper_tail(fail - 1, n, p0).unwrap() > 0.05);
            match binomial::pass_count(n, p0, 0.05).unwrap() {
                Some(pass) => {
                    assert!(binomial::lower_tail(pass, n, p0).unwrap() <= 0.05);
                    assert!(binomial::lower_tail(pass + 1, n, p0).unwrap() > 0.05);
                    assert!(pass < fail);
                }
                None => assert!(binomial::lower_tail(0, n, p0).unwrap() > 0.05),
            }
        }
    }
}

#[test]
fn order_statistic_bounds_enclose_the_rank() {
    for thousandths in [1, 10_000, 50_000, 90_000, 95_000, 99_999] {
        let q = Quantile::from_thousandths(thousandths).unwrap();
        for n in 1..300 {
            let rank = q.rank(n);
            assert!((1..=n).contains(&rank));
            let lower = quantile::lower_rank(n, q, 0.05).unwrap();
            let upper = quantile::upper_rank(n, q, 0.05).unwrap();
            assert!(lower.is_none_or(|l| l <= rank), "{thousandths} {n}");
            assert!(upper.is_none_or(|u| rank <= u && u <= n), "{thousandths} {n}");
        }
    }
}

#[test]
fn independent_evidence_is_the_binomial_bit_for_bit() {
    for p0 in [0.0, 0.05, 0.5, 1.0] {
        for n in 1..=60 {
            for k in 0..=n {
                let p_fail = series::p_fail(k, n, DesignEffect::NONE, p0).unwrap();
                assert_eq!(p_fail.to_bits(), binomial::upper_tail(k, n, p0).unwrap().to_bits());
                let p_pass = series::p_pass(k, n, DesignEffect::NONE, p0).unwrap();
                assert_eq!(p_pass.to_bits(), binomial::lower_tail(k, n, p0).unwrap().to_bits());
            }
        }
    }
}

#[test]
fn more_exceedances_are_more_evidence_at_any_design_effect() {
    for effect in [1.0, 1.7, 5.0, 12.5].map(|d| DesignEffect::new(d).unwrap()) {
        for p0 in SHARES {
            for k in 1..=50 {
                let before = series::p_fail(k - 1, 50, effect, p0).unwrap();
                assert!(series::p_fail(k, 50, effect, p0).unwrap() <= before + 1e-12);
                let before = series::p_pass(k - 1, 50, effect, p0).unwrap();
                assert!(series::p_pass(k, 50, effect, p0).unwrap() + 1e-12 >= before);
            }
        }
    }
}

/// A fixed, irregular series: bit `i` of a multiplicative scramble.
fn scrambled(seed: u64, n: usize) -> Vec<bool> {
    (0..n as u64).map(|i| ((i + seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40).is_multiple_of(3)).collect()
}

#[test]
fn the_running_design_effect_is_the_textbook_one() {
    for seed in 0..40 {
        for n in [5, 6, 7, 9, 30, 200] {
            let bits = scrambled(seed, n);
            let run_together: Vec<bool> = (0..n).map(|i| bits[i / 3]).collect();
            for bits in [bits, run_together] {
                let marks = bits.iter().map(|over| if *over { Mark::Exceeded } else { Mark::Kept });
                let ours = marks.collect::<Indicators>().design_effect().value();
                let mean = bits.iter().filter(|b| **b).count() as f64 / n as f64;
                let d: Vec<f64> = bits.iter().map(|b| f64::from(*b) - mean).collect();
                let squares: f64 = d.iter().map(|x| x * x).sum();
                let mut textbook = 1.0;
                for lag in (1..=5).filter(|lag| *lag < n && squares > 0.0) {
                    let r: f64 = d.iter().zip(&d[lag..]).map(|(a, b)| a * b).sum::<f64>() / squares;
                    textbook += 2.0 * (1.0 - lag as f64 / n as f64) * r;
                }
                let textbook = textbook.min(n as f64 / 4.0).max(1.0);
                assert!((ours - textbook).abs() < 1e-11, "{seed} {n}: {ours} {textbook}");
            }
        }
    }
}

#[test]
fn boundaries_equal_those_of_a_plain_recursion() {
    use Spending::{OBrienFleming, Pocock};
    for (looks, p0, alpha, spending, counts) in [
        (&[30, 50, 100][..], 0.05, 0.05, OBrienFleming, &[8, 8, 10][..]),
        (&[30, 50, 100], 0.5, 0.05, OBrienFleming, &[25, 35, 59]),
        (&[30, 50, 100], 0.01, 0.05, Pocock, &[3, 3, 4]),
        (&[30, 50, 100], 0.05, 0.05 / 8.0, Pocock, &[7, 8, 13]),
        (&[20, 40], 0.1, 0.01, Pocock, &[7, 10]),
        (&[100, 200, 400], 0.05, 0.05, OBrienFleming, &[16, 20, 28]),
        (&[10, 11, 12, 40], 0.3, 0.05, Pocock, &[7, 8, 8, 18]),
    ] {
        assert_eq!(boundaries(looks, p0, alpha, spending).unwrap(), counts, "{looks:?} {p0} {alpha}");
    }
}

#[test]
fn looking_often_keeps_alpha() {
    for looks in [&[30, 50, 100][..], &[20, 40], &[10, 20, 30, 40, 50], &[50], &[50, 51, 200]] {
        for p0 in SHARES {
            for alpha in [0.05, 0.05 / 3.0, 0.05 / 16.0, 0.001] {
                for spending in [Spending::Pocock, Spending::OBrienFleming] {
                    let counts = boundaries(looks, p0, alpha, spending).unwrap();
                    let error = enumerate(looks, &counts, p0, |_, _| false);
                    assert!(error <= alpha * (1.0 + 1e-9), "{looks:?} {p0} {alpha} {spending:?}: {error}");
                    assert!(looks.iter().zip(&counts).all(|(n, c)| (1..=n + 1).contains(c)));
                    // Spending the rest at the last look, one less would be too many.
                    let mut fewer = counts.clone();
                    *fewer.last_mut().unwrap() -= 1;
                    let error = enumerate(looks, &fewer, p0, |_, _| false);
                    assert!(error > alpha * (1.0 - 1e-9), "{looks:?} {p0} {alpha} {spending:?} {fewer:?}: {error}");
                }
            }
        }
    }
}

#[test]
fn one_look_is_the_critical_count() {
    for p0 in SHARES {
        for n in [1, 20, 50, 1000, 5000, 3_000_000] {
            let counts = boundaries(&[n], p0, 0.05, Spending::Pocock).unwrap();
            assert_eq!(counts, [binomial::fail_count(n.into(), p0, 0.05).unwrap() as u32]);
            let size = power::violation_probability(&[n], &counts, p0, p0).unwrap();
            assert!(size <= 0.05 && size == binomial::upper_tail(counts[0].into(), n.into(), p0).unwrap());
        }
    }
}

#[test]
fn levels_are_nested_and_fit_their_counts() {
    for looks in [&[30, 50, 100][..], &[20, 40, 80], &[100]] {
        for p0 in SHARES {
            let levels = nested_levels(looks, p0, 0.05, 16, Spending::Pocock).unwrap();
            for (i, n) in looks.iter().enumerate() {
                let mut above = 0;
                for r in 1..=16 {
                    let boundary = levels.at(r, i).unwrap();
                    let raw = boundaries(looks, p0, 0.05 / r as f64, Spending::Pocock).unwrap()[i];
                    assert_eq!(boundary.count, raw.max(above), "{looks:?} {p0} r {r} look {i}");
                    above = boundary.count;
                    let tail = binomial::upper_tail(above.into(), (*n).into(), p0).unwrap();
                    assert_eq!(boundary.level.to_bits(), tail.to_bits());
                    // Independent exceedances violate by count and by level alike.
                    for k in 0..=*n {
                        let p_fail = series::p_fail(k.into(), (*n).into(), DesignEffect::NONE, p0).unwrap();
                        assert_eq!(p_fail <= boundary.level, k >= boundary.count, "{n} {p0} r {r} k {k}");
                    }
                }
            }
            assert_eq!(levels.at(0, 0), None);
            assert_eq!(levels.at(17, 0), None);
            assert_eq!(levels.at(1, looks.len()), None);
        }
    }
}

#[test]
fn nothing_may_exceed_where_nothing_is_allowed_and_all_where_all_is() {
    let none = nested_levels(&[30, 50, 100], 0.0, 0.05, 4, Spending::Pocock).unwrap();
    let all = nested_levels(&[30, 50, 100], 1.0, 0.05, 4, Spending::Pocock).unwrap();
    for (look, n) in [30_u32, 50, 100].into_iter().enumerate() {
        for r in 1..=4 {
            assert_eq!(none.at(r, look).unwrap().count, 1);
            assert_eq!(all.at(r, look).unwrap().count, n + 1);
        }
        let level = none.at(4, look).unwrap().level;
        assert!(series::p_fail(1, n.into(), DesignEffect::NONE, 0.0).unwrap() <= level);
        assert!(series::p_fail(0, n.into(), DesignEffect::NONE, 0.0).unwrap() > level);
        let level = all.at(1, look).unwrap().level;
        assert!(series::p_fail(n.into(), n.into(), DesignEffect::NONE, 1.0).unwrap() > level);
    }
}

#[test]
fn power_is_the_enumerated_one_and_rises() {
    let looks = [30, 50, 100];
    for p0 in [0.05, 0.29, 0.5] {
        let counts = boundaries(&looks, p0, 0.05, Spending::Pocock).unwrap();
        let mut last = 0.0;
        for p1 in [0.01, 0.05, 0.1, 0.2, 0.29, 0.4, 0.5, 0.6, 0.8, 0.95] {
            let ours = power::violation_probability(&looks, &counts, p0, p1).unwrap();
            let within = |n: u32, k: usize| k as u64 <= binomial::allowed_count(n.into(), p0).unwrap();
            let plain = enumerate(&looks, &counts, p1, within);
            assert!((ours - plain).abs() < 1e-10, "{p0} {p1}: {ours} {plain}");
            assert!(ours + 1e-12 >= last, "{p0} {p1}: {ours} after {last}");
            last = ours;
        }
        let found = power::detectable_share(&looks, &counts, p0, 0.8).unwrap().unwrap();
        let at = |p1| power::violation_probability(&looks, &counts, p0, p1).unwrap();
        assert!(found > p0 && at(found) >= 0.8 && at(found - 1e-6) < 0.8);
    }
}

#[test]
fn the_published_false_alarms_are_met() {
    // True P95 exactly at its limit, looks 30/50/100, one check: .030–.039 red.
    let counts = boundaries(&[30, 50, 100], 0.05, 0.05, Spending::Pocock).unwrap();
    let red = power::violation_probability(&[30, 50, 100], &counts, 0.05, 0.05).unwrap();
    assert!((0.028..=0.039).contains(&red), "{red}");
}
