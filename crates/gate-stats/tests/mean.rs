//! Means of requests in send order: against reference values, at the ends of the domain, and under the null.
#![expect(clippy::unwrap_used, reason = "a missing answer fails the test")]

use gate_stats::mean::Resemblance;
use gate_stats::{Error, Limit, Mean};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Exp1, StandardNormal};

const SPREAD: [f64; 10] = [12.0, 9.5, 11.2, 10.4, 13.1, 8.7, 10.9, 12.6, 9.9, 11.8];
/// Neighbours are alike.
const WAVE: [f64; 20] =
    [10.0, 10.5, 11.0, 11.8, 12.5, 13.0, 12.8, 12.1, 11.5, 10.9, 10.2, 9.6, 9.0, 8.7, 8.9, 9.4, 9.9, 10.3, 11.1, 11.9];

fn of(values: &[f64]) -> Mean {
    Mean::of(values).unwrap().unwrap()
}

#[track_caller]
fn close(computed: f64, expected: f64) {
    assert!((computed - expected).abs() <= 1e-8 * expected.abs(), "computed {computed}, expected {expected}");
}

/// Computed with numpy and scipy from the formulas: limit, D, `p_fail`, `p_pass` and 95 % bounds.
#[test]
fn reference_values() {
    let long: Vec<f64> = (0..20_000).map(|i| f64::from(i * 7919 % 1000) / 10.0).collect();
    let line = [1.0, 2.0, 3.0, 4.0, 5.0];
    let cases: [(&[f64], f64, [f64; 5]); 6] = [
        (
            &SPREAD,
            10.0,
            [1.0, 0.024_558_312_646_802_55, 0.975_441_687_353_197_5, 10.195_484_299_099_743, 11.824_515_700_900_26],
        ),
        (
            &SPREAD,
            13.0,
            [1.0, 0.999_232_248_592_143_2, 0.000_767_751_407_856_793_6, 10.195_484_299_099_743, 11.824_515_700_900_26],
        ),
        (
            &WAVE,
            10.0,
            [
                3.952_209_010_127_309_5,
                0.133_099_175_376_138_5,
                0.866_900_824_623_861_5,
                9.510_829_781_107_836,
                11.999_170_218_892_166,
            ],
        ),
        (
            &WAVE,
            12.0,
            [
                3.952_209_010_127_309_5,
                0.950_080_286_582_529_3,
                0.049_919_713_417_470_736,
                9.510_829_781_107_836,
                11.999_170_218_892_166,
            ],
        ),
        (
            &line,
            2.5,
            [1.04, 0.264_019_356_897_872_3, 0.735_980_643_102_126_7, 1.440_121_875_838_849_2, 4.559_878_124_161_151],
        ),
        (
            &long,
            49.7,
            [1.0, 0.110_348_548_350_008_17, 0.889_651_451_649_991_8, 49.614_221_879_287_71, 50.285_778_120_712_294],
        ),
    ];
    for (values, limit, [effect, p_fail, p_pass, lower, upper]) in cases {
        let mean = of(values);
        close(mean.design_effect().value(), effect);
        close(mean.p_fail(Limit::AtMost(limit)), p_fail);
        close(mean.p_pass(Limit::AtMost(limit)), p_pass);
        close(mean.lower(0.05).unwrap(), lower);
        close(mean.upper(0.05).unwrap(), upper);
    }
}

#[test]
fn a_lower_limit_is_the_mirror() {
    let mean = of(&SPREAD);
    for limit in [10.0, 11.0, 12.5] {
        assert_eq!(mean.p_fail(Limit::Above(limit)), mean.p_pass(Limit::Below(limit)));
        assert_eq!(mean.p_pass(Limit::AtLeast(limit)), mean.p_fail(Limit::AtMost(limit)));
    }
}

#[test]
fn bounds_are_the_limits_that_are_just_not_rejected() {
    for values in [&SPREAD[..], &WAVE] {
        let mean = of(values);
        for alpha in [0.001, 0.05, 0.3] {
            close(mean.p_fail(Limit::Below(mean.lower(alpha).unwrap())), alpha);
            close(mean.p_pass(Limit::Below(mean.upper(alpha).unwrap())), alpha);
        }
    }
    assert_eq!(of(&SPREAD).lower(0.0), Err(Error::Alpha(0.0)));
}

#[test]
fn scale_does_not_matter() {
    let mean = of(&WAVE);
    let scaled = of(&WAVE.map(|value| value * 1e6));
    close(scaled.p_fail(Limit::Below(10e6)), mean.p_fail(Limit::Below(10.0)));
    close(scaled.design_effect().value(), mean.design_effect().value());
}

#[test]
fn without_spread_the_side_decides() {
    let mean = of(&[800.0; 30]);
    assert_eq!(mean.design_effect().value(), 1.0);
    let both = |limit: Limit| (mean.p_fail(limit), mean.p_pass(limit));
    assert_eq!(both(Limit::Below(799.0)), (0.0, 1.0));
    assert_eq!(both(Limit::Below(801.0)), (1.0, 0.0));
    assert_eq!(both(Limit::Above(801.0)), (0.0, 1.0));
    assert_eq!(both(Limit::Above(799.0)), (1.0, 0.0));
    // At the limit there is evidence of nothing.
    for limit in [Limit::Below(800.0), Limit::AtMost(800.0), Limit::Above(800.0), Limit::AtLeast(800.0)] {
        assert_eq!(both(limit), (1.0, 1.0));
    }
    assert_eq!((mean.lower(0.05), mean.upper(0.05)), (Ok(800.0), Ok(800.0)));
}

#[test]
fn few_values_say_nothing() {
    for n in 0..5 {
        assert_eq!(Mean::of(&SPREAD[..n]), Ok(None), "{n}");
    }
    assert!(Mean::of(&SPREAD[..5]).unwrap().is_some());
    let mut infinite = SPREAD;
    infinite[7] = f64::INFINITY;
    assert_eq!(Mean::of(&infinite), Err(Error::Sample { position: 7, value: f64::INFINITY }));
}

/// The share of samples with a true mean of 0 that are rejected, above and below, at 5 %.
fn rejected(n: usize, correlation: f64, mut draw: impl FnMut(&mut ChaCha8Rng) -> f64) -> (f64, f64) {
    const DRAWS: u64 = 4000;
    let (mut above, mut below) = (0.0, 0.0);
    for seed in 0..DRAWS {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let innovation = (1.0 - correlation * correlation).sqrt();
        let mut value = draw(&mut rng);
        let values: Vec<f64> = (0..n)
            .map(|_| {
                value = correlation * value + innovation * draw(&mut rng);
                value
            })
            .collect();
        let mean = of(&values);
        above += f64::from(mean.p_fail(Limit::AtMost(0.0)) <= 0.05);
        below += f64::from(mean.p_pass(Limit::AtMost(0.0)) <= 0.05);
    }
    (above / DRAWS as f64, below / DRAWS as f64)
}

fn normal(rng: &mut ChaCha8Rng) -> f64 {
    StandardNormal.sample(rng)
}

#[test]
fn a_true_mean_at_its_limit_is_seldom_rejected() {
    // Autocorrelations estimated from 30 values come out too small.
    for (n, correlated) in [(30, 0.11), (50, 0.10)] {
        let (above, below) = rejected(n, 0.0, normal);
        assert!((0.02..=0.06).contains(&above) && (0.02..=0.06).contains(&below), "{n}: {above} {below}");
        let (above, below) = rejected(n, 0.5, normal);
        assert!(
            (0.02..=correlated).contains(&above) && (0.02..=correlated).contains(&below),
            "{n}, AR(1) .5: {above} {below}"
        );
    }
}

#[test]
fn a_skewed_sample_is_not_rejected_above_more_often() {
    // Exponential, as waiting times are; what few large values pull up, they blur as well.
    let exponential = |rng: &mut ChaCha8Rng| {
        let drawn: f64 = Exp1.sample(rng);
        drawn - 1.0
    };
    let (above, _) = rejected(50, 0.0, exponential);
    assert!(above <= 0.05, "{above}");
}

#[test]
fn resemblance_adds_up_over_series() {
    let alone = |values: &[f64]| Resemblance::of(values).design_effect();
    assert_eq!(alone(&WAVE), of(&WAVE).design_effect());
    // Twice the same says the same, wherever it is and however wide.
    let wider: Vec<f64> = WAVE.iter().map(|value| 5.0 + value).collect();
    let both: Resemblance = [&WAVE[..], &wider].into_iter().map(Resemblance::of).sum();
    close(both.design_effect().value(), alone(&WAVE).value());
    // What alternates takes away from what rises and falls, even where each alone is cut off at 1.
    let alternating: Vec<f64> = (0..20).map(|i| if i % 2 == 0 { 9.0 } else { 12.0 }).collect();
    assert_eq!(alone(&alternating).value(), 1.0);
    let mixed: Resemblance = [&WAVE[..], &alternating].into_iter().map(Resemblance::of).sum();
    assert!(mixed.design_effect() < alone(&WAVE), "{mixed:?}");
    // At most a quarter of a series, and nothing of nothing.
    let rising: Vec<f64> = (0..8).map(f64::from).collect();
    assert!(alone(&rising).value() <= 2.0);
    for none in
        [Resemblance::default(), Resemblance::of(&[]), Resemblance::of(&[3.0; 9]), Resemblance::of(&[f64::NAN; 9])]
    {
        assert_eq!(none.design_effect().value(), 1.0);
    }
}
