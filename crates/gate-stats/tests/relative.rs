//! One sample against another: no NaN whatever comes in, the two directions mirror each other, and what is plain is
//! found.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "a missing answer fails the test")]

use gate_stats::bounds::{Bounds, mean_share_of, share_of};
use gate_stats::paired::{location, signed_rank};
use gate_stats::stored::{LogEstimate, RunNoise, detectable, detectable_at, is_blind, stored, tail_noise, tail_ratio};
use gate_stats::tail::{exceedances, exceedances_of};
use gate_stats::{Error, Mean, Quantile, Sorted, Worse, binomial, quantile};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, LogNormal};

const WAYS: [Worse; 2] = [Worse::Larger, Worse::Smaller];

fn q(thousandths: u32) -> Quantile {
    Quantile::from_thousandths(thousandths).unwrap()
}

fn sorted(values: &[f64]) -> Sorted {
    Sorted::new(values.to_vec()).unwrap()
}

fn is_probability(p: f64) -> bool {
    (0.0..=1.0).contains(&p)
}

/// Values as they come in: zeros, ties, requests that never ended, and ordinary ones.
fn odd(rng: &mut ChaCha8Rng, n: usize) -> Vec<f64> {
    let kind = rng.random_range(0..4);
    (0..n)
        .map(|_| match (kind, rng.random_range(0..6)) {
            (0, _) => 7.0,
            (1, 0) => 0.0,
            (1 | 2, 1) => f64::INFINITY,
            (2, _) => f64::from(rng.random_range(1..4)),
            _ => rng.random_range(0.5..200.0),
        })
        .collect()
}

#[test]
fn whatever_comes_in_p_values_are_probabilities_and_mirror() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    for _ in 0..800 {
        let n = rng.random_range(1..40);
        let (candidate, reference) = (odd(&mut rng, n), odd(&mut rng, n));
        let pairs: Vec<(f64, f64)> = candidate.iter().copied().zip(reference.iter().copied()).collect();
        let tolerance = [-0.3, 0.0, 0.1, 1.0][rng.random_range(0..4)];
        let ranks = signed_rank(&pairs, tolerance, Worse::Larger).unwrap();
        assert!(is_probability(ranks.p_fail) && is_probability(ranks.p_pass), "{pairs:?}: {ranks:?}");
        assert!(ranks.n <= n && !ranks.statistic.is_nan());
        // Exchanging the arms and the direction tells the same story.
        let exchanged: Vec<(f64, f64)> = pairs.iter().map(|(c, r)| (*r, *c)).collect();
        let other = signed_rank(&exchanged, 1.0 / (1.0 + tolerance) - 1.0, Worse::Smaller).unwrap();
        assert_eq!(ranks.n, other.n);
        assert!((ranks.p_fail - other.p_fail).abs() < 1e-9, "{pairs:?}: {ranks:?} {other:?}");
        for alpha in [0.05, 0.4] {
            if let Some(ratio) = location(&pairs, alpha) {
                assert!(ratio.value > 0.0 && ratio.value.is_finite());
                assert!(ratio.lower.is_none_or(|lower| lower <= ratio.value * (1.0 + 1e-12)), "{pairs:?}: {ratio:?}");
                assert!(ratio.upper.is_none_or(|upper| upper >= ratio.value * (1.0 - 1e-12)), "{pairs:?}: {ratio:?}");
            }
        }

        let base = sorted(&reference);
        for thousandths in [1, 10_000, 50_000, 95_000, 99_999] {
            for worse in WAYS {
                let tail = exceedances(&candidate, &base, q(thousandths), 1.0 + tolerance, worse).unwrap();
                assert!(is_probability(tail.p_fail) && is_probability(tail.p_pass), "{tail:?}");
                assert!(tail.k <= tail.n && (1..=tail.base).contains(&tail.rank));
                for worse in WAYS {
                    let bounds = share_of(&sorted(&candidate), &base, q(thousandths), 1.0 + tolerance, worse).unwrap();
                    assert!(is_probability(bounds.p_fail) && is_probability(bounds.p_pass), "{bounds:?}");
                }
            }
            for estimate in [LogEstimate::quantile(&base, q(thousandths)), LogEstimate::mean(&reference)] {
                let Some(estimate) = estimate else { continue };
                assert!(estimate.value.is_finite() && estimate.variance.is_finite() && estimate.variance >= 0.0);
                let found = stored(estimate, &[estimate], tolerance, RunNoise::default(), Worse::Smaller).unwrap();
                assert!(is_probability(found.p_fail) && is_probability(found.p_pass), "{found:?}");
            }
        }
    }
}

#[test]
fn zeros_and_endless_values_are_said_in_words() {
    let endless = f64::INFINITY;
    let all = |pair: (f64, f64)| signed_rank(&[pair; 20], 0.1, Worse::Larger).unwrap();
    for equal in [(0.0, 0.0), (endless, endless), (5.0, 5.0)] {
        assert!(all(equal).p_pass < 1e-4 && all(equal).p_fail > 0.999, "{equal:?}");
        assert_eq!(location(&[equal; 20], 0.05).unwrap().value, 1.0);
    }
    for worse in [(3.0, 0.0), (endless, 3.0), (endless, 0.0)] {
        assert!(all(worse).p_fail < 1e-4 && all(worse).p_pass > 0.999, "{worse:?}");
        assert_eq!(location(&[worse; 20], 0.05), None);
    }
    for better in [(0.0, 3.0), (3.0, endless), (0.0, endless)] {
        assert!(all(better).p_pass < 1e-4, "{better:?}");
    }
    // One failure on either side does not hide what the others say.
    let mut pairs = vec![(12.0, 10.0); 30];
    pairs.extend([(endless, 10.0), (12.0, endless)]);
    assert!((location(&pairs, 0.05).unwrap().value - 1.2).abs() < 1e-12);
}

#[test]
fn pairs_tied_with_the_limit_prove_nothing() {
    for (pairs, tolerance) in [(vec![], 0.1), (vec![(4.0, 4.0); 9], 0.0), (vec![(115.0, 100.0), (23.0, 20.0)], 0.15)] {
        for worse in WAYS {
            let ranks = signed_rank(&pairs, tolerance, worse).unwrap();
            assert_eq!((ranks.n, ranks.p_fail, ranks.p_pass), (0, 1.0, 1.0), "{pairs:?}");
        }
    }
    assert_eq!(location(&[], 0.05), None);
}

#[test]
fn what_is_not_a_measured_value_is_refused() {
    for value in [-1.0, f64::NAN, f64::NEG_INFINITY] {
        let position = |result: Error| matches!(result, Error::Sample { position: 1, .. });
        assert!(position(signed_rank(&[(1.0, 1.0), (1.0, value)], 0.1, Worse::Larger).unwrap_err()));
        assert!(position(exceedances(&[1.0, value], &sorted(&[1.0]), q(50_000), 1.1, Worse::Larger).unwrap_err()));
        assert_eq!(location(&[(1.0, value)], 0.05), None);
        assert_eq!(LogEstimate::number(value), None);
    }
    let one = LogEstimate::number(1.0).unwrap();
    for tolerance in [-1.0, -2.0, f64::NAN, f64::INFINITY] {
        assert!(matches!(signed_rank(&[(1.0, 1.0)], tolerance, Worse::Larger), Err(Error::Tolerance(_))));
        assert!(matches!(stored(one, &[one], tolerance, RunNoise::default(), Worse::Larger), Err(Error::Tolerance(_))));
        assert!(matches!(tail_ratio(tolerance, 0.05, 1, Worse::Larger), Err(Error::Tolerance(_))));
    }
    for ratio in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(matches!(exceedances(&[1.0], &sorted(&[1.0]), q(50_000), ratio, Worse::Larger), Err(Error::Ratio(_))));
        assert!(matches!(
            share_of(&sorted(&[1.0]), &sorted(&[1.0]), q(50_000), ratio, Worse::Larger),
            Err(Error::Ratio(_))
        ));
    }
    assert_eq!(exceedances(&[], &sorted(&[1.0]), q(50_000), 1.1, Worse::Larger), Err(Error::Empty));
    assert_eq!(stored(one, &[], 0.1, RunNoise::default(), Worse::Larger), Err(Error::Empty));
    assert_eq!(tail_noise(&[], RunNoise::default()), Err(Error::Empty));
    let noise = RunNoise { tau: -0.1, freedom: 4.0 };
    assert!(matches!(stored(one, &[one], 0.1, noise, Worse::Larger), Err(Error::Noise { .. })));
    for value in [0.0, f64::INFINITY] {
        assert_eq!(LogEstimate::number(value), None);
        assert_eq!(LogEstimate::mean(&[value, value]), None);
        assert_eq!(LogEstimate::quantile(&sorted(&[value, value]), q(50_000)), None);
    }
}

/// All Walsh averages in ascending order.
fn walsh(logs: &[f64]) -> Vec<f64> {
    let mut all: Vec<f64> =
        (0..logs.len()).flat_map(|i| (i..logs.len()).map(move |j| f64::midpoint(logs[i], logs[j]))).collect();
    all.sort_by(f64::total_cmp);
    all
}

#[test]
fn the_location_is_the_median_of_all_walsh_averages_and_its_bounds_are_the_test_turned_round() {
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    for n in [1, 2, 3, 4, 7, 20, 51, 300] {
        let pairs: Vec<(f64, f64)> =
            (0..n).map(|_| (rng.random_range(50.0..150.0), rng.random_range(50.0..150.0))).collect();
        let logs: Vec<f64> = pairs.iter().map(|(c, r): &(f64, f64)| c.ln() - r.ln()).collect();
        let all = walsh(&logs);
        let median = f64::midpoint(all[(all.len() - 1) / 2], all[all.len() / 2]);
        let ratio = location(&pairs, 0.05).unwrap();
        assert!((ratio.value - median.exp()).abs() < 1e-12, "{n}");
        // Where the ranks are as good as independent, limits a little beyond the bounds are rejected, others not.
        for (bound, worse, outward) in [(ratio.lower, Worse::Larger, 0.999), (ratio.upper, Worse::Smaller, 1.001)] {
            let Some(bound) = bound else {
                assert!(n < 5);
                continue;
            };
            let p = |limit: f64| signed_rank(&pairs, limit - 1.0, worse).unwrap();
            let (beyond, inside) = (p(bound * outward), p(bound / outward));
            if beyond.design_effect.value() == 1.0 && inside.design_effect.value() == 1.0 {
                assert!(beyond.p_fail <= 0.05 && inside.p_fail > 0.04, "{n}: {beyond:?} {inside:?}");
            }
        }
    }
}

#[test]
fn a_hundred_thousand_pairs_are_no_trouble() {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let latency = LogNormal::new(3.0, 0.5).unwrap();
    let pairs: Vec<(f64, f64)> =
        (0..100_000).map(|_| (1.2 * latency.sample(&mut rng), latency.sample(&mut rng))).collect();
    let ratio = location(&pairs, 0.05).unwrap();
    assert!(
        (ratio.value - 1.2).abs() < 0.01 && ratio.lower.unwrap() > 1.18 && ratio.upper.unwrap() < 1.22,
        "{ratio:?}"
    );
    assert!(signed_rank(&pairs, 0.1, Worse::Larger).unwrap().p_fail < 1e-30);
    assert!(signed_rank(&pairs, 0.3, Worse::Larger).unwrap().p_pass < 1e-30);

    let (candidate, base): (Vec<f64>, Vec<f64>) = pairs.into_iter().unzip();
    let base = sorted(&base);
    let tail = exceedances(&candidate, &base, q(95_000), 1.1, Worse::Larger).unwrap();
    assert!(tail.p_fail < 1e-30 && tail.p_pass > 0.999_999, "{tail:?}");
    let estimate = LogEstimate::quantile(&base, q(95_000)).unwrap();
    assert!((estimate.value.exp() - quantile::nearest_rank(&base, q(95_000))).abs() < 0.1, "{estimate:?}");
    assert!(share_of(&sorted(&candidate), &base, q(95_000), 1.1, Worse::Larger).unwrap().p_fail < 1e-10);
}

#[test]
fn exceedances_are_those_of_two_samples_of_one_kind() {
    // P[BetaBin(n, M − r + 1, r) ≥ k] by the textbook's sum over hypergeometric chances of the joint order.
    let choose = |n: u64, k: u64| (0..k).fold(1.0, |product, i| product * (n - i) as f64 / (k - i) as f64);
    for (n, m, thousandths) in [(5, 7, 50_000), (10, 10, 90_000), (12, 30, 95_000), (1, 1, 50_000), (3, 2, 1)] {
        let base: Vec<f64> = (1..=m).map(f64::from).collect();
        for k in 0..=n {
            let candidate: Vec<f64> = (0..n).map(|i| if i < k { 1e6 } else { 0.5 }).collect();
            let tail = exceedances(&candidate, &sorted(&base), q(thousandths), 1.0, Worse::Larger).unwrap();
            assert_eq!((tail.k, tail.n), (k, n));
            if tail.design_effect.value() > 1.0 {
                continue;
            }
            let (n, m, r) = (n as u64, u64::from(m as u32), tail.rank as u64);
            let chance = |j: u64| choose(m - r + j, j) * choose(r - 1 + n - j, n - j) / choose(m + n, n);
            let expected: f64 = (k as u64..=n).map(chance).sum();
            assert!((tail.p_fail - expected).abs() < 1e-12, "{n} {m} {k}: {} {expected}", tail.p_fail);
            let expected: f64 = (0..=k as u64).map(chance).sum();
            assert!((tail.p_pass - expected).abs() < 1e-12, "{n} {m} {k}: {} {expected}", tail.p_pass);
        }
    }
}

#[test]
fn more_exceedances_never_look_better_and_the_needed_count_is_the_first_that_violates() {
    let base = sorted(&(1..=50).map(f64::from).collect::<Vec<_>>());
    // Spread out evenly, so that neighbours know nothing of one another.
    let candidate =
        |k: usize| -> Vec<f64> { (0..50).map(|i| if (i + 1) * k / 50 > i * k / 50 { 1000.0 } else { 1.0 }).collect() };
    let mut before = 1.0;
    for k in 0..=50 {
        let tail = exceedances(&candidate(k), &base, q(95_000), 1.1, Worse::Larger).unwrap();
        assert_eq!((tail.k, tail.rank, tail.design_effect.value()), (k, 48, 1.0));
        assert!(tail.p_fail <= before);
        before = tail.p_fail;
        for level in [0.05, 0.05 / 8.0, 1e-9] {
            let needed = tail.needed(level).unwrap();
            assert_eq!(tail.p_fail <= level, k >= needed, "{k} {needed} {level}");
        }
        assert_eq!(tail.needed(1e-40), None);
    }
    // Ten in a row count for less, and more are needed.
    let burst: Vec<f64> = (0..50).map(|i| if (20..30).contains(&i) { 1000.0 } else { 1.0 }).collect();
    let tail = exceedances(&burst, &base, q(95_000), 1.1, Worse::Larger).unwrap();
    assert!(tail.design_effect.value() > 4.0 && tail.p_fail > 0.05);
    let needed = tail.needed(0.05).unwrap();
    let effective = |k: usize| tail.design_effect.effective(k as u64).floor();
    assert!(effective(needed) > effective(needed - 1) && needed > 10, "{needed}");
}

#[test]
fn tails_mirror_each_other() {
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    for _ in 0..200 {
        let mut values = |n: usize| -> Vec<f64> { (0..n).map(|_| rng.random_range(1.0..9.0)).collect() };
        let (candidate, base) = (values(40), values(60));
        let inverse = |values: &[f64]| -> Vec<f64> { values.iter().map(|x| 1.0 / x).collect() };
        let larger = exceedances(&candidate, &sorted(&base), q(95_000), 1.1, Worse::Larger).unwrap();
        let smaller =
            exceedances(&inverse(&candidate), &sorted(&inverse(&base)), q(5_000), 1.0 / 1.1, Worse::Smaller).unwrap();
        assert_eq!(
            (larger.k, larger.rank, larger.p_fail, larger.p_pass),
            (smaller.k, smaller.rank, smaller.p_fail, smaller.p_pass)
        );
        assert!((larger.cut * smaller.cut - 1.0).abs() < 1e-12);
    }
}

#[test]
fn a_cut_without_end_proves_nothing_and_zeros_are_equal() {
    let endless = sorted(&[1.0, f64::INFINITY, f64::INFINITY]);
    let tail = exceedances(&[f64::INFINITY; 9], &endless, q(95_000), 1.1, Worse::Larger).unwrap();
    assert_eq!((tail.k, tail.p_fail, tail.p_pass), (0, 1.0, 1.0));
    let zeros = sorted(&[0.0; 60]);
    let tail = exceedances(&[0.0; 60], &zeros, q(95_000), 1.1, Worse::Larger).unwrap();
    assert!(tail.k == 0 && tail.p_pass <= 0.06, "{tail:?}");
    let tail = exceedances_of(&[5.0; 60], &zeros, q(95_000), |base| base + 4.0, Worse::Larger).unwrap();
    assert!(tail.k == 60 && tail.cut == 4.0 && tail.p_fail < 1e-6, "{tail:?}");
    assert_eq!(exceedances(&[115.0; 9], &sorted(&[100.0; 9]), q(50_000), 1.15, Worse::Larger).unwrap().k, 0);
}

#[test]
fn runs_that_differ_hide_a_change_and_runs_that_agree_show_it() {
    let at = |value: f64| LogEstimate { value: value.ln(), variance: 1e-5 };
    let calm = [100.0, 101.0, 99.0, 100.0, 100.5].map(at);
    let wild = [60.0, 150.0, 100.0, 80.0, 130.0].map(at);
    let judge = |candidate, runs: &[_], worse| {
        let tolerance = if worse == Worse::Larger { 0.1 } else { 1.0 / 1.1 - 1.0 };
        stored(at(candidate), runs, tolerance, RunNoise::default(), worse).unwrap()
    };
    assert!(judge(135.0, &calm, Worse::Larger).p_fail < 0.01);
    assert!(judge(70.0, &calm, Worse::Smaller).p_fail < 0.01);
    assert!(judge(95.0, &calm, Worse::Larger).p_pass < 0.05);
    let unclear = judge(135.0, &wild, Worse::Larger);
    assert!(unclear.p_fail > 0.1 && is_blind(unclear.deviation, 0.1) && !is_blind(0.05, 0.1));
    assert!(is_blind(0.2, -0.1) && !is_blind(0.1, -0.1) && is_blind(f64::NAN, 0.1));
    // One run is enough to compare with, and worth less than five.
    assert!(judge(125.0, &calm[..1], Worse::Larger).p_fail > judge(125.0, &calm, Worse::Larger).p_fail);
    let (lower, upper) = judge(120.0, &calm, Worse::Larger).bounds(0.05).unwrap();
    assert!(lower < 1.2 && 1.2 < upper && lower > 1.0 && upper < 1.4, "{lower} {upper}");
    assert!(judge(120.0, &calm, Worse::Larger).bounds(0.0).is_err());
}

#[test]
fn runs_without_any_noise_decide_by_the_limit_alone() {
    let number = |value: f64| LogEstimate::number(value).unwrap();
    let noise = RunNoise { tau: 0.0, freedom: 4.0 };
    let judge = |value| stored(number(value), &[number(100.0); 3], 0.15, noise, Worse::Larger).unwrap();
    assert_eq!((judge(116.0).p_fail, judge(116.0).p_pass), (0.0, 1.0));
    assert_eq!((judge(114.0).p_fail, judge(114.0).p_pass), (1.0, 0.0));
    assert_eq!((judge(115.0).p_fail, judge(115.0).p_pass, judge(115.0).t), (1.0, 1.0, 0.0));
}

#[test]
fn noise_between_runs_is_drawn_towards_what_was_expected() {
    let at = |value: f64, variance| LogEstimate { value, variance };
    let expected = RunNoise::default();
    assert!((tail_noise(&[at(1.0, 0.0)], expected).unwrap() - 0.05).abs() < 1e-15);
    // Requests alone explain the difference: the runs themselves show none.
    let explained = tail_noise(&[at(1.0, 0.01), at(1.1, 0.01), at(0.9, 0.01)], expected).unwrap();
    assert!(explained < 0.05, "{explained}");
    let wild = tail_noise(&[at(1.0, 0.0), at(1.5, 0.0), at(0.5, 0.0)], expected).unwrap();
    assert!(wild > 0.2, "{wild}");
    // The design's own figures: noise of 3, 5 and 10 % over five runs.
    for (tau, percent) in [(0.03, 8.5), (0.05, 14.6), (0.1, 31.0)] {
        assert!((100.0 * (detectable(tau, 5) - 1.0) - percent).abs() < 0.4, "{tau}: {}", detectable(tau, 5));
    }
    // With t instead of z, more has to change: 1.8595 + 0.8889 at eight degrees of freedom, and 2.3060 at 97.5 %.
    for (level, quantiles) in [(0.05, 1.859_548 + 0.888_890), (0.025, 2.306_004 + 0.888_890)] {
        let found = detectable_at(level, 0.05, 8.0, 5).unwrap();
        assert!((found - (quantiles * 0.05 * 1.2_f64.sqrt()).exp()).abs() < 1e-6, "{level}: {found}");
    }
    // Of endless ones z is left: 1.6449 + 0.8416.
    for freedom in [1e7, 1e9, f64::INFINITY] {
        let found = detectable_at(0.05, 0.05, freedom, 5).unwrap();
        assert!((found - (2.486_475 * 0.05 * 1.2_f64.sqrt()).exp()).abs() < 1e-5, "{freedom}: {found}");
    }
    assert!(detectable_at(0.0, 0.05, 8.0, 5).is_err());
    assert!(tail_ratio(0.1, 0.05, 5, Worse::Larger).unwrap() > 1.1);
    assert!(tail_ratio(-0.1, 0.05, 5, Worse::Smaller).unwrap() < 0.9);
}

#[test]
fn a_value_of_zero_leaves_an_estimate_its_variance() {
    let sample: Vec<f64> = (0..50).map(|i| f64::from(i % 10)).collect();
    let estimate = LogEstimate::quantile(&sorted(&sample), q(50_000)).unwrap();
    assert!(estimate.variance > 0.0 && estimate.variance < 0.1, "{estimate:?}");
    let mean = LogEstimate::mean(&[2.0]).unwrap();
    assert_eq!((mean.value, mean.variance), (2.0_f64.ln(), 0.0));
}

/// The least alpha of a list at which the lower bound of one is beyond a share of the upper bound of the other.
fn apart(this: &Sorted, that: &Sorted, quantile: Quantile, share: f64) -> f64 {
    let mut alphas: Vec<f64> = (1..=this.len() as u64)
        .map(|l| binomial::lower_tail(l - 1, this.len() as u64, quantile.fraction()).unwrap())
        .chain(
            (1..=that.len() as u64).map(|u| binomial::upper_tail(u, that.len() as u64, quantile.fraction()).unwrap()),
        )
        .filter(|alpha| (1e-29..1.0).contains(alpha))
        .collect();
    alphas.sort_by(f64::total_cmp);
    let holds = |alpha: f64| {
        let alpha = (alpha * (1.0 + 1e-9)).min(0.999_999_999);
        let lower = quantile::lower_rank(this.len(), quantile, alpha).unwrap().and_then(|rank| this.at_rank(rank));
        let upper = quantile::upper_rank(that.len(), quantile, alpha).unwrap().and_then(|rank| that.at_rank(rank));
        matches!((lower, upper), (Some(lower), Some(upper)) if lower > share * upper)
    };
    alphas.into_iter().find(|alpha| holds(*alpha)).unwrap_or(1.0)
}

#[test]
fn bounds_lie_apart_at_the_least_alpha_that_parts_them() {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    for _ in 0..300 {
        let (n, m) = (rng.random_range(1..80), rng.random_range(1..80));
        let shift = rng.random_range(0.5..2.0);
        let this = sorted(&(0..n).map(|_| shift * rng.random_range(10.0..30.0)).collect::<Vec<f64>>());
        let that = sorted(&(0..m).map(|_| rng.random_range(10.0..30.0)).collect::<Vec<f64>>());
        for quantile in [q(50_000), q(90_000)] {
            let Bounds { p_fail, p_pass } = share_of(&this, &that, quantile, 1.0, Worse::Larger).unwrap();
            for (ours, plain) in
                [(p_fail, apart(&this, &that, quantile, 1.0)), (p_pass, apart(&that, &this, quantile, 1.0))]
            {
                assert!((ours - plain).abs() <= 1e-9 * plain || plain > 0.99, "{n} {m}: {ours} {plain}");
            }
            let mirrored = share_of(&this, &that, quantile, 1.0, Worse::Smaller).unwrap();
            assert_eq!((mirrored.p_fail, mirrored.p_pass), (p_pass, p_fail));
        }
    }
}

#[test]
fn a_p95_needs_59_values_in_the_other_to_be_beyond_it() {
    let high = sorted(&(0..200).map(|i| 1000.0 + f64::from(i)).collect::<Vec<_>>());
    let judge = |n: usize| share_of(&high, &sorted(&vec![1.0; n]), q(95_000), 1.0, Worse::Larger).unwrap().p_fail;
    assert!(judge(58) > 0.05 && judge(59) <= 0.05);
}

#[test]
fn means_lie_apart_where_their_margins_do() {
    let values = |around: f64| -> Vec<f64> { (0..60).map(|i| around + f64::from((i * 37) % 11) - 5.0).collect() };
    let mean = |around| Mean::of(&values(around)).unwrap().unwrap();
    for (this, share) in [(102.0, 1.0), (45.0, 0.4), (101.0, 1.0)] {
        let (this, that) = (mean(this), mean(100.0));
        let found = mean_share_of(this, that, share, Worse::Larger).unwrap();
        assert!((found.p_fail + found.p_pass - 1.0).abs() < 1e-12 && found.p_fail < 0.5);
        let gap = |alpha: f64| this.lower(alpha).unwrap() - share * that.upper(alpha).unwrap();
        assert!(gap(found.p_fail * 1.01) > 0.0, "{found:?}");
        assert!(found.p_fail < 2e-15 || gap(found.p_fail * 0.99) < 0.0, "{found:?}");
        let mirrored = mean_share_of(this, that, share, Worse::Smaller).unwrap();
        assert_eq!((mirrored.p_fail, mirrored.p_pass), (found.p_pass, found.p_fail));
    }
    let constant = |value: f64| Mean::of(&[value; 9]).unwrap().unwrap();
    let judge = |this, that| mean_share_of(constant(this), constant(that), 0.5, Worse::Larger).unwrap();
    assert_eq!(judge(6.0, 10.0), Bounds { p_fail: 0.0, p_pass: 1.0 });
    assert_eq!(judge(4.0, 10.0), Bounds { p_fail: 1.0, p_pass: 0.0 });
    assert_eq!(judge(5.0, 10.0), Bounds { p_fail: 1.0, p_pass: 1.0 });
}
