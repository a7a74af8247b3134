//! Answers at the ends of every domain; nothing panics, and no data proves nothing.
#![expect(clippy::unwrap_used, reason = "a missing answer fails the test")]

use gate_stats::goodput::{Answer, Attainment, Quality, Reading, quality};
use gate_stats::sequential::{boundaries, nested_levels};
use gate_stats::smooth::{Pace, Stream, benefit, smooth_goodput};
use gate_stats::summary::summarize;
use gate_stats::{
    DesignEffect, Error, Indicators, Limit, Mark, Quantile, Sorted, Spending, binomial, multiplicity, power, quantile,
    series,
};
use std::time::Duration;

const P95: u32 = 95_000;

fn q(thousandths: u32) -> Quantile {
    Quantile::from_thousandths(thousandths).unwrap()
}

#[test]
fn quantiles_are_strictly_between_the_ends() {
    for thousandths in [0, 100_000, u32::MAX] {
        assert_eq!(Quantile::from_thousandths(thousandths), Err(Error::Quantile(thousandths)));
    }
    assert_eq!(q(1).complement(), 0.99999);
    assert_eq!(q(P95).complement().to_bits(), 0.05_f64.to_bits());
    assert_eq!(q(P95).fraction().to_bits(), 0.95_f64.to_bits());
}

#[test]
fn ranks_are_exact_integers() {
    for (thousandths, n, rank) in [
        (P95, 20, 19),
        (P95, 21, 20),
        (P95, 50, 48),
        (50_000, 5, 3),
        (50_000, 50, 25),
        (99_000, 100, 99),
        (99_900, 1000, 999),
        (29_000, 100, 29),
        (1, 1, 1),
        (99_999, 1, 1),
        (P95, 0, 0),
    ] {
        assert_eq!(q(thousandths).rank(n), rank, "{thousandths} {n}");
    }
    assert!(q(99_999).rank(usize::MAX) < usize::MAX);
}

#[test]
fn a_quantile_is_beyond_samples_that_expect_nothing_above_it() {
    for (thousandths, least) in [(P95, 20), (90_000, 10), (99_000, 100), (99_999, 100_000), (50_000, 2)] {
        assert_eq!(q(thousandths).least_requests(), least);
        assert!(!q(thousandths).is_beyond(least));
        assert!(q(thousandths).is_beyond(least - 1));
    }
}

#[test]
fn samples_are_ranked_or_refused() {
    assert_eq!(Sorted::new(Vec::new()), Err(Error::Empty));
    assert!(matches!(Sorted::new(vec![1.0, f64::NAN]), Err(Error::Sample { position: 1, .. })));
    assert!(matches!(Sorted::new(vec![f64::NEG_INFINITY]), Err(Error::Sample { position: 0, .. })));
    let sample = Sorted::new(vec![f64::INFINITY, 2.0, 1.0]).unwrap();
    assert_eq!(sample.values(), [1.0, 2.0, f64::INFINITY]);
    assert_eq!((sample.at_rank(0), sample.at_rank(3), sample.at_rank(4)), (None, Some(f64::INFINITY), None));
}

#[test]
fn requests_that_never_finished_are_infinite_estimates_not_nan() {
    let sample = Sorted::new(vec![1.0, 2.0, f64::INFINITY, f64::INFINITY]).unwrap();
    assert_eq!(quantile::nearest_rank(&sample, q(50_000)), 2.0);
    assert_eq!(quantile::nearest_rank(&sample, q(P95)), f64::INFINITY);
    assert_eq!(quantile::type7(&sample, q(50_000)), f64::INFINITY);
    assert_eq!(quantile::type7(&sample, q(P95)), f64::INFINITY);
    assert!(matches!(quantile::harrell_davis(&sample, q(50_000)), Err(Error::Sample { position: 2, .. })));
    let even = Sorted::new(vec![1.0, 2.0, f64::INFINITY]).unwrap();
    assert_eq!(quantile::type7(&even, q(50_000)), 2.0);
    let one = Sorted::new(vec![7.0]).unwrap();
    assert_eq!(quantile::type7(&one, q(99_999)), 7.0);
    assert_eq!(quantile::nearest_rank(&one, q(1)), 7.0);
    let hd = quantile::harrell_davis(&one, q(P95)).unwrap();
    assert_eq!((hd.value, hd.standard_error), (7.0, 0.0));
}

#[test]
fn binomial_refuses_what_it_cannot_mean() {
    for p in [-0.1, 1.1, f64::NAN, f64::INFINITY] {
        assert!(matches!(binomial::upper_tail(1, 2, p), Err(Error::Probability { .. })));
        assert!(matches!(binomial::lower_tail(1, 2, p), Err(Error::Probability { .. })));
        assert!(matches!(binomial::fail_count(2, p, 0.05), Err(Error::Probability { .. })));
        assert!(matches!(binomial::allowed_count(2, p), Err(Error::Probability { .. })));
        assert!(matches!(series::p_fail(1, 2, DesignEffect::NONE, p), Err(Error::Probability { .. })));
        assert!(boundaries(&[2, 4], p, 0.05, Spending::Pocock).is_err());
        assert!(power::violation_probability(&[2], &[1], 0.5, p).is_err());
    }
    for alpha in [0.0, 1.0, -1.0, f64::NAN, 1e-31] {
        assert!(matches!(binomial::pass_count(2, 0.5, alpha), Err(Error::Alpha(_))));
        assert!(matches!(binomial::share_upper(1, 2, alpha), Err(Error::Alpha(_))));
        assert!(matches!(boundaries(&[2], 0.5, alpha, Spending::Pocock), Err(Error::Alpha(_))));
        assert!(matches!(boundaries(&[2, 3], 0.5, alpha, Spending::Pocock), Err(Error::Alpha(_))));
    }
    assert_eq!(binomial::fail_count(0, 0.5, 0.05), Err(Error::Empty));
    assert_eq!(binomial::pass_count(0, 0.5, 0.05), Err(Error::Empty));
    assert_eq!(quantile::lower_rank(0, q(P95), 0.05), Err(Error::Empty));
    assert_eq!(binomial::share_lower(3, 2, 0.05), Err(Error::Count { k: 3, n: 2 }));
    assert_eq!(series::p_pass(0, 0, DesignEffect::NONE, 0.5), Err(Error::Empty));
    assert_eq!(series::p_fail(3, 2, DesignEffect::NONE, 0.5), Err(Error::Count { k: 3, n: 2 }));
}

#[test]
fn tails_at_their_ends() {
    for p in [0.0, 0.3, 1.0] {
        assert_eq!(binomial::upper_tail(0, 5, p), Ok(1.0));
        assert_eq!(binomial::upper_tail(6, 5, p), Ok(0.0));
        assert_eq!(binomial::lower_tail(5, 5, p), Ok(1.0));
    }
    assert_eq!(binomial::upper_tail(1, 5, 0.0), Ok(0.0));
    assert_eq!(binomial::upper_tail(5, 5, 1.0), Ok(1.0));
    assert_eq!(binomial::lower_tail(0, 5, 0.0), Ok(1.0));
    assert_eq!(binomial::lower_tail(4, 5, 1.0), Ok(0.0));
    assert_eq!(binomial::upper_tail(0, 0, 0.5), Ok(1.0));
    assert!(binomial::upper_tail(u64::MAX, u64::MAX, 0.5).is_ok());
    assert!(binomial::fail_count(u64::MAX, 0.5, 0.05).is_ok());
    assert_eq!(binomial::share_lower(0, 9, 0.05), Ok(0.0));
    assert_eq!(binomial::share_upper(9, 9, 0.05), Ok(1.0));
}

#[test]
fn allowed_counts_ignore_rounding() {
    for (n, p0, allowed) in [(100, 0.29, 29), (100, 0.07, 7), (50, 0.05, 2), (60, 0.05, 3), (7, 0.0, 0), (7, 1.0, 7)] {
        assert_eq!(binomial::allowed_count(n, p0), Ok(allowed), "{n} {p0}");
    }
}

#[test]
fn bounds_of_zero_and_one_hundred_percent() {
    let none = DesignEffect::NONE;
    assert_eq!(series::p_fail(0, 9, none, 0.0), Ok(1.0));
    assert_eq!(series::p_fail(1, 9, none, 0.0), Ok(0.0));
    assert_eq!(series::p_pass(0, 9, none, 0.0), Ok(1.0));
    assert_eq!(series::p_fail(9, 9, none, 1.0), Ok(1.0));
    assert_eq!(series::p_pass(9, 9, none, 1.0), Ok(1.0));
    assert_eq!(series::p_pass(8, 9, none, 1.0), Ok(0.0));
}

#[test]
fn design_effects_of_short_and_constant_series() {
    for n in 0..10 {
        for mark in [Mark::Kept, Mark::Exceeded] {
            let constant: Indicators = std::iter::repeat_n(mark, n).collect();
            assert_eq!(constant.design_effect(), DesignEffect::NONE);
        }
    }
    let short: Indicators = [Mark::Kept, Mark::Kept, Mark::Exceeded, Mark::Exceeded].into_iter().collect();
    assert_eq!(short.design_effect(), DesignEffect::NONE);
    let halves: Indicators = std::iter::repeat_n(Mark::Kept, 8).chain(std::iter::repeat_n(Mark::Exceeded, 8)).collect();
    assert_eq!(halves.design_effect().value(), 4.0, "clipped at n/4");
    for value in [0.99, 0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(matches!(DesignEffect::new(value), Err(Error::DesignEffect(_))));
    }
}

#[test]
fn limits_mark_equality_and_nan() {
    use Mark::{Exceeded, Kept};
    for (limit, below, equal, above) in [
        (Limit::Below(5.0), Kept, Exceeded, Exceeded),
        (Limit::AtMost(5.0), Kept, Kept, Exceeded),
        (Limit::Above(5.0), Exceeded, Exceeded, Kept),
        (Limit::AtLeast(5.0), Exceeded, Kept, Kept),
    ] {
        assert_eq!([4.0, 5.0, 6.0].map(|x| limit.mark(x)), [below, equal, above]);
        assert_eq!(limit.mark(f64::NAN), Exceeded);
    }
    assert_eq!(Limit::AtMost(5.0).mark(f64::INFINITY), Exceeded);
}

#[test]
fn looks_must_increase() {
    for looks in [&[][..], &[0], &[0, 5], &[5, 5], &[50, 30]] {
        assert!(matches!(boundaries(looks, 0.5, 0.05, Spending::Pocock), Err(Error::Looks(_))), "{looks:?}");
        assert!(matches!(nested_levels(looks, 0.5, 0.05, 2, Spending::Pocock), Err(Error::Looks(_))));
    }
    assert!(matches!(
        boundaries(&[1, 2_000_000], 0.5, 0.05, Spending::Pocock),
        Err(Error::LookTooLate { requests: 2_000_000, .. })
    ));
    assert!(matches!(boundaries(&[u32::MAX], 0.5, 0.05, Spending::Pocock), Err(Error::LookTooLate { .. })));
    assert_eq!(boundaries(&[1], 0.5, 0.05, Spending::Pocock), Ok(vec![2]), "one request can't violate");
    assert_eq!(boundaries(&[1, 2, 3], 0.5, 0.05, Spending::OBrienFleming), Ok(vec![2, 3, 4]));
    assert_eq!(nested_levels(&[9], 0.5, 0.05, 0, Spending::Pocock), Err(Error::NoChecks));
    assert!(boundaries(&[3, 9], 0.5, 0.999_999, Spending::Pocock).unwrap().iter().all(|c| *c >= 1));
}

#[test]
fn what_cannot_violate_detects_nothing() {
    assert_eq!(power::detectable_share(&[5, 9], &[6, 10], 0.5, 0.8), Ok(None));
    assert_eq!(power::violation_probability(&[5, 9], &[6, 10], 0.5, 1.0), Ok(0.0));
    assert_eq!(power::violation_probability(&[5, 9], &[1, 1], 0.0, 1.0), Ok(1.0));
    assert!(matches!(
        power::violation_probability(&[5, 9], &[1], 0.5, 0.5),
        Err(Error::Lengths { looks: 2, counts: 1 })
    ));
    // One request of 30 over zero allowed: found when 1 − (1 − p)^30 = 0.8.
    let found = power::detectable_share(&[30], &[1], 0.0, 0.8).unwrap().unwrap();
    assert!((found - (1.0 - 0.2_f64.powf(1.0 / 30.0))).abs() < 1e-8);
}

#[test]
fn p_values_taken_together() {
    for bad in [&[f64::NAN][..], &[0.5, 1.5], &[-0.1]] {
        assert!(matches!(multiplicity::holm(bad), Err(Error::Probability { .. })));
        assert!(matches!(multiplicity::simes(bad), Err(Error::Probability { .. })));
        assert!(matches!(multiplicity::bonferroni(bad), Err(Error::Probability { .. })));
    }
    assert_eq!(multiplicity::holm(&[]), Err(Error::Empty));
    assert_eq!(multiplicity::simes(&[]), Err(Error::Empty));
    assert_eq!(multiplicity::holm(&[0.02]), Ok(vec![0.02]));
    assert_eq!(multiplicity::holm(&[0.5, 0.5]), Ok(vec![1.0, 1.0]));
    let (p, adjusted) = ([0.2, 0.01, 0.03], multiplicity::holm(&[0.2, 0.01, 0.03]).unwrap());
    let upper = multiplicity::bonferroni(&p).unwrap();
    assert!(p.iter().zip(&adjusted).zip(&upper).all(|((p, holm), top)| p <= holm && holm <= top));
}

#[test]
fn goodput_counts_only_what_holds() {
    assert_eq!(quality(Answer::Complete, []), Quality::Good);
    assert_eq!(quality(Answer::Failed, []), Quality::Bad);
    assert_eq!(quality(Answer::Complete, [(Reading::Missing, 1.0)]), Quality::Bad);
    assert_eq!(quality(Answer::Complete, [(Reading::Undefined, 1.0), (Reading::Value(1.0), 1.0)]), Quality::Good);
    assert_eq!(quality(Answer::Complete, [(Reading::Value(f64::NAN), 1.0)]), Quality::Bad);
    let nothing = Attainment::default();
    assert_eq!((nothing.share(), nothing.per_second(Duration::ZERO)), (None, None));
    assert_eq!(nothing.per_second(Duration::from_secs(2)), Some(0.0));
}

#[test]
fn smooth_goodput_needs_a_pace_and_a_window() {
    let pace = Pace { per_token: Duration::ZERO, first: None, idle_cost: None };
    let end = Stream::Nothing(Duration::from_secs(1));
    assert!(matches!(benefit(end, pace), Err(Error::ZeroDuration(_))));
    for cost in [-1.0, f64::NAN, f64::INFINITY] {
        assert!(matches!(benefit(end, Pace { idle_cost: Some(cost), ..pace }), Err(Error::IdleCost(_))));
    }
    let paid = benefit(end, Pace { idle_cost: Some(3.0), ..pace }).unwrap();
    assert_eq!((paid.idle, paid.tokens), (Duration::from_secs(1), -3.0));
    assert_eq!(benefit(Stream::Tokens(&[]), Pace { idle_cost: Some(3.0), ..pace }), Err(Error::Empty));
    assert_eq!(smooth_goodput(&[], Duration::from_secs(1)), Err(Error::Empty));
    assert!(matches!(smooth_goodput(&[paid], Duration::ZERO), Err(Error::ZeroDuration(_))));
}

#[test]
fn summaries_of_few_and_of_bad_samples() {
    assert_eq!(summarize(&[]), Err(Error::Empty));
    assert!(matches!(summarize(&[1.0, f64::INFINITY]), Err(Error::Sample { position: 1, .. })));
    assert!(matches!(summarize(&[f64::NAN]), Err(Error::Sample { position: 0, .. })));
    let one = summarize(&[3.5]).unwrap();
    assert_eq!((one.count, one.mean, one.standard_deviation, one.min, one.max), (1, 3.5, None, 3.5, 3.5));
    let four = summarize(&[2.0, 4.0, 4.0, 6.0]).unwrap();
    assert_eq!((four.mean, four.min, four.max), (4.0, 2.0, 6.0));
    assert!((four.standard_deviation.unwrap() - (8.0_f64 / 3.0).sqrt()).abs() < 1e-15);
    let offset = summarize(&[1e9 + 1.0, 1e9 + 2.0, 1e9 + 3.0]).unwrap();
    assert!((offset.standard_deviation.unwrap() - 1.0).abs() < 1e-6);
    assert!(summarize(&[f64::MAX, f64::MIN, f64::MAX]).is_ok());
}

#[test]
fn messages_read_on_from_failed_to() {
    assert_eq!(Error::Count { k: 3, n: 2 }.to_string(), "count 3 exceedances among 2 requests");
    assert_eq!(
        Quantile::from_thousandths(100_000).unwrap_err().to_string(),
        "use 100000 thousandths of a percent as a quantile: it must lie between 1 and 99999"
    );
}
