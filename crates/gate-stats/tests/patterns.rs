//! Steps, trends and rank sums: by hand, against every other way of counting, and under the null.
#![expect(clippy::unwrap_used, reason = "a missing answer fails the test")]

use gate_stats::step::{Segment, Steps, Turn};
use gate_stats::trend::Trend;
use gate_stats::{Error, Limit, Mark, Mean, ranks};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

#[track_caller]
fn close(computed: f64, expected: f64) {
    assert!((computed - expected).abs() <= 1e-9 * expected.abs() + 1e-12, "computed {computed}, expected {expected}");
}

fn marks(text: &str) -> Vec<Mark> {
    text.bytes().map(|byte| if byte == b'1' { Mark::Exceeded } else { Mark::Kept }).collect()
}

/// `shares` of exceedances, each over so many requests.
fn drawn(rng: &mut ChaCha8Rng, shares: &[(usize, f64)]) -> Vec<Mark> {
    let mark = |share: f64, rng: &mut ChaCha8Rng| if rng.random_bool(share) { Mark::Exceeded } else { Mark::Kept };
    shares.iter().flat_map(|(n, share)| (0..*n).map(|_| mark(*share, rng)).collect::<Vec<_>>()).collect()
}

#[test]
fn a_clean_step_is_where_it_is() {
    let steps = Steps::of(&marks("00001111"), Turn::Up, 1);
    let step = steps.best().unwrap();
    assert_eq!((step.at, step.before, step.after), (4, Segment { n: 4, k: 0 }, Segment { n: 4, k: 4 }));
    close(step.gain, 16.0 * 2_f64.ln());
    assert_eq!((step.after.share(), steps.whole()), (1.0, Segment { n: 8, k: 4 }));
    assert_eq!(Steps::of(&marks("00001111"), Turn::Down, 1).best(), None);
    assert_eq!(Steps::of(&marks("11110000"), Turn::Down, 1).best().unwrap().at, 4);
}

#[test]
fn a_step_leaves_enough_on_either_side() {
    assert_eq!(Steps::of(&marks("00000011"), Turn::Up, 3).best().unwrap().at, 5);
    assert_eq!(Steps::of(&marks("00000011"), Turn::Up, 5).best(), None);
    for nothing in ["", "0", "1", "0000", "1111"] {
        let steps = Steps::of(&marks(nothing), Turn::Up, 0);
        assert_eq!((steps.best(), steps.within(4.0)), (None, None), "{nothing}");
        assert_eq!(steps.p_value(|_| true), 1.0, "{nothing}");
    }
}

#[test]
fn what_is_nearly_as_likely_lies_about_the_step() {
    // By position: 1: 0 + ℓ(3 of 5), 2: ℓ(3 of 4), 3: ℓ(1 of 3) + ℓ(2 of 3), 4: ℓ(1 of 4); ℓ(k of n) = Σ k ln(k/n).
    let steps = Steps::of(&marks("001011"), Turn::Up, 1);
    let of = |k: f64, n: f64| k * (k / n).ln() + (n - k) * (1.0 - k / n).ln();
    let (best, third, no_step) = (of(3.0, 4.0), 2.0 * of(1.0, 3.0), of(3.0, 6.0));
    let step = steps.best().unwrap();
    assert_eq!(step.at, 2);
    close(step.gain, 2.0 * (best - no_step));
    assert_eq!(steps.within(0.0), Some((2, 4)));
    assert_eq!((steps.within(1.0), steps.within(1.2)), (Some((2, 4)), Some((1, 5))));
    assert_eq!(steps.within(best - no_step + 1e-9), Some((0, 5)));
    close(steps.p_value(|at| at == 3), (third - best).exp());
    close(steps.p_value(|at| at == 0), (no_step - best).exp());
    assert_eq!((steps.p_value(|at| at >= 4), steps.p_value(|_| false)), (1.0, 0.0));
}

#[test]
fn the_best_step_is_that_of_all_steps() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let log_likelihood = |part: &[Mark]| {
        let k = part.iter().filter(|mark| **mark == Mark::Exceeded).count() as f64;
        let share = k / part.len() as f64;
        let times = |count: f64, share: f64| if count == 0.0 { 0.0 } else { count * share.ln() };
        times(k, share) + times(part.len() as f64 - k, 1.0 - share)
    };
    for _ in 0..200 {
        let (n, turn_at) = (rng.random_range(10..60), rng.random_range(3..8));
        let series = drawn(&mut rng, &[(turn_at, 0.2), (n, 0.7)]);
        let share =
            |part: &[Mark]| part.iter().filter(|mark| **mark == Mark::Exceeded).count() as f64 / part.len() as f64;
        let all =
            (3..=series.len() - 3).map(|at| series.split_at(at)).filter(|(before, after)| share(before) < share(after));
        let most = all.map(|(before, after)| log_likelihood(before) + log_likelihood(after)).reduce(f64::max);
        let gain = Steps::of(&series, Turn::Up, 3).best().map(|step| step.gain);
        match (gain, most) {
            (Some(gain), Some(most)) => close(gain, 2.0 * (most - log_likelihood(&series))),
            (gain, most) => assert_eq!((gain, most), (None, None)),
        }
    }
}

/// Runs of 400 whose true step is at 200: how often its own p-value is at most 5 %.
#[test]
fn a_true_step_is_seldom_refused() {
    let mut rng = ChaCha8Rng::seed_from_u64(2);
    for (before, after) in [(0.98, 0.05), (0.6, 0.2), (0.9, 0.5)] {
        let runs = (0..1000).map(|_| drawn(&mut rng, &[(200, before), (200, after)]));
        let steps: Vec<Steps> = runs.map(|run| Steps::of(&run, Turn::Down, 5)).collect();
        let late = steps.iter().filter(|one| one.p_value(|at| at <= 200) <= 0.05).count();
        let early = steps.iter().filter(|one| one.p_value(|at| at >= 200) <= 0.05).count();
        assert!(late <= 60 && early <= 60, "{before} to {after}: {late} and {early} of 1000");
        let held = steps.iter().filter(|one| one.within(4.0).is_some_and(|(first, last)| first <= 200 && 200 <= last));
        let held = held.count();
        assert!(held >= 950, "{before} to {after}: {held} of 1000");
    }
}

#[test]
fn a_million_requests_are_no_trouble() {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let series = drawn(&mut rng, &[(700_000, 0.02), (300_000, 0.9)]);
    let step = Steps::of(&series, Turn::Up, 10).best().unwrap();
    assert!(step.at.abs_diff(700_000) < 50, "{}", step.at);
}

fn trend(values: &[f64]) -> Trend {
    let points: Vec<(f64, f64)> = (0..).map(f64::from).zip(values.iter().copied()).collect();
    Trend::of(&points).unwrap().unwrap()
}

#[test]
fn a_straight_line_grows_as_it_does() {
    let line = trend(&[1.0, 2.0, 3.0, 4.0]);
    assert_eq!((line.n(), line.slope(), line.factor()), (4, 1.0, 1.0));
    // S = 6, V = 4 · 3 · 13 / 18; of the normal distribution, P[Z ≥ 5/√(26/3)].
    close(line.z(0.0), 5.0 / (26.0_f64 / 3.0).sqrt());
    assert!((line.p_faster(0.0) - 0.044_719).abs() < 1e-5, "{}", line.p_faster(0.0));
    // P[Z ≤ 7/√(26/3)].
    assert!((line.p_slower(0.0) - 0.991_295).abs() < 1e-5, "{}", line.p_slower(0.0));
    close(line.p_slower(2.0), line.p_faster(0.0));
    // On the line itself nothing varies.
    assert_eq!((line.z(1.0), line.p_faster(1.0), line.p_slower(1.0)), (0.0, 1.0, 1.0));
    assert_eq!(line.bounds(0.05), Ok((None, None)));
    assert_eq!(line.bounds(0.0), Err(Error::Alpha(0.0)));
}

#[test]
fn equal_values_take_from_the_variance() {
    // S = 5, V = (4 · 3 · 13 − 2 · 1 · 9)/18; slopes 0, 1/2, 2/3, 1, 1, 1.
    let tied = trend(&[1.0, 1.0, 2.0, 3.0]);
    close(tied.slope(), 5.0 / 6.0);
    close(tied.z(0.0), 4.0 / (23.0_f64 / 3.0).sqrt());
}

#[test]
fn values_that_are_like_their_neighbours_raise_the_variance() {
    // Ranks about their mean 1.5 (thrice), −3 (thrice), 1.5 (thrice); ρ = 4/9, −1/9, −2/3, −7/18, −1/9, 1/6, 1/9;
    // the weighted sum is 21, so the factor is 1 + 2 · 21/(9 · 8 · 7).
    let waves = trend(&[1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0]);
    close(waves.factor(), 1.0 + 1.0 / 12.0);
    assert_eq!((waves.slope(), waves.z(0.0)), (0.0, 0.0));
    // S = 0, and V = (1656 − 510 − 66)/18 · 13/12 = 65: P[Z ≥ −1/√65].
    assert!((waves.p_faster(0.0) - 0.549_35).abs() < 1e-4, "{}", waves.p_faster(0.0));
}

#[test]
fn a_trend_needs_points_that_are_numbers() {
    assert_eq!(Trend::of(&[(0.0, 1.0), (1.0, 2.0), (2.0, 3.0)]), Ok(None));
    assert_eq!(Trend::of(&[(1.0, 1.0); 6]), Ok(None));
    assert!(matches!(Trend::of(&[(0.0, f64::NAN); 6]), Err(Error::Sample { position: 0, .. })));
    let constant = trend(&[5.0; 20]);
    assert_eq!((constant.slope(), constant.z(0.0), constant.p_faster(0.0)), (0.0, 0.0, 1.0));
    assert!(constant.p_slower(0.01) < 1e-6);
    assert_eq!(constant.bounds(0.05), Ok((Some(0.0), Some(0.0))));
}

/// 60 points, independent and with an autocorrelation of .3: how often a slope that is exactly at its bound is refused,
/// and how often it is outside its bounds. Ten lags do not take all of the resemblance away.
#[test]
fn a_trend_at_its_bound_is_seldom_refused() {
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    for (like, most) in [(0.0, 60), (0.3, 110)] {
        let (mut refused, mut outside) = (0, 0);
        for _ in 0..1000 {
            let mut last = 0.0;
            let values = (0..60).map(|at| {
                let noise: f64 = StandardNormal.sample(&mut rng);
                last = like * last + noise;
                0.1 * f64::from(at) + last
            });
            let trend = trend(&values.collect::<Vec<f64>>());
            let (lower, upper) = trend.bounds(0.05).unwrap();
            refused += usize::from(trend.p_faster(0.1) <= 0.05);
            outside += usize::from(lower.unwrap() > 0.1 || upper.unwrap() < 0.1);
            // The bounds are the test turned round, but for its correction for continuity.
            assert!(trend.p_faster(lower.unwrap() + 0.01) > 0.04 && trend.p_faster(lower.unwrap() - 0.01) < 0.06);
        }
        assert!(refused <= most && outside <= 2 * most, "{like}: {refused} and {outside} of 1000");
    }
}

#[test]
fn ranks_are_shared_by_equal_values() {
    assert_eq!(ranks::midranks(&[3.0, 1.0, 3.0, 2.0]), [3.5, 1.0, 3.5, 2.0]);
    // U = 6.5 − 3 of 4 at most, its mean 2, its variance 2 · 2/12 · (5 − 6/12): P[Z ≥ (1.5 − .5)/√1.5].
    let p = ranks::p_larger(&[2.0, 3.0], &[1.0, 2.0]).unwrap();
    assert!((p - 0.207_1).abs() < 1e-4, "{p}");
    assert_eq!(ranks::p_larger(&[1.0; 5], &[1.0; 9]), Ok(1.0));
    assert_eq!(ranks::p_larger(&[], &[1.0]), Err(Error::Empty));
    assert!(matches!(ranks::p_larger(&[1.0], &[f64::NAN]), Err(Error::Sample { position: 1, .. })));
}

/// Two series of one and the same kind, each value resembling the one before it: the test that takes that into account
/// finds one larger about as often as it says, the other one far more often; both see a true difference.
#[test]
fn ranks_of_values_in_order_carry_less_evidence_the_more_they_resemble() {
    let mut random = rand_chacha::ChaCha8Rng::seed_from_u64(5);
    let mut series = |like: f64| {
        let mut last = 0.0;
        let mut step = || {
            let draw: f64 = StandardNormal.sample(&mut random);
            last = like * last + (1.0 - like * like).sqrt() * draw;
            last
        };
        (0..50).map(|_| step()).collect::<Vec<f64>>()
    };
    let mut count = |like: f64, shift: f64, p: fn(&[f64], &[f64]) -> Result<f64, Error>| {
        let found = (0..1_000).filter(|_| {
            let one: Vec<f64> = series(like).into_iter().map(|value| value + shift).collect();
            p(&one, &series(like)).unwrap() <= 0.05
        });
        found.count()
    };
    let independent = count(0.0, 0.0, ranks::p_larger_in_order);
    assert!(independent <= 70, "{independent}");
    let (alike, naive) = (count(0.6, 0.0, ranks::p_larger_in_order), count(0.6, 0.0, ranks::p_larger));
    assert!(alike <= 110 && naive >= 170, "{alike} and {naive} of 1000");
    let (found, alike) = (count(0.0, 1.0, ranks::p_larger_in_order), count(0.6, 1.5, ranks::p_larger_in_order));
    assert!(found >= 950 && alike >= 850, "{found} and {alike} of 1000");
}

#[test]
fn ranks_that_rise_together_are_no_chance() {
    // Σ d d' = 4 of Σ d² = 5: r = .8, P[Z ≥ .8 √3].
    let p = ranks::p_rising(&[(1.0, 1.0), (2.0, 3.0), (3.0, 2.0), (4.0, 9.0)]).unwrap();
    assert!((p - 0.082_9).abs() < 1e-4, "{p}");
    let falling: Vec<(f64, f64)> = (0..20).map(|at| (f64::from(at), f64::from(-at))).collect();
    assert!(ranks::p_rising(&falling).unwrap() > 0.999);
    assert_eq!(ranks::p_rising(&[(1.0, 1.0), (1.0, 2.0), (1.0, 3.0)]), Ok(1.0));
    assert_eq!(ranks::p_rising(&[(1.0, 1.0), (2.0, 3.0)]), Err(Error::Empty));
    assert!(ranks::p_rising(&[(1.0, 1.0), (2.0, f64::NAN), (3.0, 3.0)]).is_err());
}

/// The vectors of Mann and Whitney's test, which no rule uses: `candidate` against `(1 + tol) reference`.
#[test]
fn rank_sums_are_those_of_the_vectors() {
    let text = include_str!("../../../fixtures/stats/vectors.json");
    let file: serde_json::Value = serde_json::from_str(text).unwrap();
    let numbers =
        |value: &serde_json::Value| value.as_array().unwrap().iter().map(|one| one.as_f64().unwrap()).collect();
    let mut checked = 0;
    for vector in file["vectors"].as_array().unwrap() {
        if vector["kind"] != "judge_ab" || vector["params"]["q"] != 0.5 {
            continue;
        }
        let candidate: Vec<f64> = numbers(&vector["input"]["candidate"]);
        let tolerance = vector["params"]["tol"].as_f64().unwrap();
        let reference: Vec<f64> = numbers(&vector["input"]["reference"]);
        let allowed: Vec<f64> = reference.iter().map(|value| value * (1.0 + tolerance)).collect();
        let p = |name: &str| vector["expect"][name].as_f64().unwrap();
        let close = |computed: f64, expected: f64| assert!((computed - expected).abs() <= 1e-7 * expected, "{vector}");
        close(ranks::p_larger(&candidate, &allowed).unwrap(), p("p_fail"));
        close(ranks::p_larger(&allowed, &candidate).unwrap(), p("p_pass"));
        checked += 1;
    }
    assert_eq!(checked, 3);
}

#[test]
fn independent_values_have_no_design_effect() {
    // Mean 4.5, s² = 6, so t = 1.5/√(6/8) = √3 with 7 degrees of freedom; of a table, its 5 % point is 1.895.
    let values: Vec<f64> = (1..=8).map(f64::from).collect();
    let mean = Mean::of_independent(&values).unwrap().unwrap();
    assert_eq!((mean.value(), mean.design_effect().value()), (4.5, 1.0));
    assert!((mean.upper(0.05).unwrap() - 4.5 - 1.894_579 * 0.75_f64.sqrt()).abs() < 1e-5);
    assert!((mean.p_fail(Limit::AtLeast(6.0)) - 0.0634).abs() < 1e-3, "{}", mean.p_fail(Limit::AtLeast(6.0)));
    assert_eq!(Mean::of_independent(&values[..4]), Ok(None));
}
