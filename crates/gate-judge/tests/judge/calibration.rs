//! How often the whole procedure is wrong, and how often it finds a regression: in virtual time, by fixed seeds.

use gate_engine::simulate;

use gate_model::{
    CheckOutcome, EndReason, EngineParams, Faults, GateSpec, Latency, Nanos, Outcome, Plan, PlannedRequest, Run,
    Sample, Shape, Status,
};
use gate_stats::{Limit, Mean, binomial};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::support::{SPACING, alone, failed, gate, judge, lognormal, ok, run, streamed};

/// The 95th percentile of the standard normal distribution.
const Z95: f64 = 1.644_853_626_951_472_2;
const SIGMA: f64 = 0.25;

/// The share of judgings that end red.
fn red(spec: &GateSpec, judgings: u64, mut draw: impl FnMut(&mut ChaCha8Rng, u32) -> Sample) -> f64 {
    let red = (0..judgings).filter(|seed| {
        let mut rng = ChaCha8Rng::seed_from_u64(*seed);
        let samples = (0..100).map(|index| draw(&mut rng, index)).collect();
        judge(&run(spec, samples, EndReason::Completed)).status == Status::Violated
    });
    red.count() as f64 / judgings as f64
}

/// A run of the simulated engine: 100 requests, each of so many tokens.
fn engine(spec: &GateSpec, params: &EngineParams, output_tokens: u32) -> Run {
    let request = |index: u32| PlannedRequest {
        index,
        at: Nanos(SPACING.0 * i64::from(index)),
        input_tokens: 100,
        output_tokens,
        ..PlannedRequest::default()
    };
    let plan = Plan { seed: params.seed, ..Plan::new(spec, vec![30, 50, 100], (0..100).map(request).collect()) };
    simulate(params, None, &plan, run(spec, Vec::new(), EndReason::Completed).header)
}

#[test]
fn exactly_at_the_limit() {
    let (mean, stddev) = (200.0_f64, 50.0_f64);
    let sigma2 = (1.0 + stddev * stddev / (mean * mean)).ln();
    let limit = (mean.ln() - sigma2 / 2.0 + Z95 * sigma2.sqrt()).exp();
    let spec = gate(&[&format!("ttft.p95 < {limit:.6}ms")], &[]);
    let ttft = Latency { mean: Nanos::from_millis(200), stddev: Nanos::from_millis(50), shape: Shape::Lognormal };
    let red = (0..2000).filter(|seed| {
        let params = EngineParams { ttft, seed: *seed, ..EngineParams::default() };
        judge(&engine(&spec, &params, 2)).status == Status::Violated
    });
    let share = red.count() as f64 / 2000.0;
    assert!((0.015..=0.05).contains(&share), "{share}");
}

#[test]
fn an_engine_with_faults_is_red_and_a_healthy_one_is_not() {
    let spec = gate(&["ttft.p95 < 800ms", "tpot.p95 < 50ms", "errors.rate < 5%"], &[]);
    let with = |faults: Faults, dies_after: Option<u32>| {
        let params = EngineParams { faults, dies_after, ..EngineParams::default() };
        judge(&engine(&spec, &params, 10))
    };
    assert_eq!(with(Faults::default(), None).status, Status::Passed);
    for faults in [
        Faults { http_500: 0.3, ..Faults::default() },
        Faults { stream_error: 0.3, ..Faults::default() },
        Faults { stall: 0.3, ..Faults::default() },
        Faults { reset: 0.3, ..Faults::default() },
        Faults { truncate: 0.3, ..Faults::default() },
    ] {
        assert_eq!(with(faults, None).checks[2].outcome, CheckOutcome::Violated, "{faults:?}");
    }
    assert_eq!(with(Faults::default(), Some(26)).checks[2].outcome, CheckOutcome::Violated);
}

/// A gate of eight checks whose limits are this multiple of the true values, on latencies that are drawn
/// with `slower` times the median.
fn eight_checks(headroom: f64, slower: f64, judgings: u64) -> f64 {
    let (ttft, tpot) = (200.0, 20.0);
    let tail = (Z95 * SIGMA).exp();
    let limits = [
        format!("ttft.p50 < {:.6}ms", ttft * headroom),
        format!("ttft.p90 < {:.6}ms", ttft * (1.281_551_565_5 * SIGMA).exp() * headroom),
        format!("ttft.p95 < {:.6}ms", ttft * tail * headroom),
        format!("tpot.p50 < {:.6}ms", tpot * headroom),
        format!("tpot.p95 < {:.6}ms", tpot * tail * headroom),
        format!("e2e.p50 < {:.6}ms", (ttft + 49.0 * tpot) * headroom),
        format!("e2e.p95 < {:.6}ms", (ttft + 49.0 * tpot) * tail * headroom),
        "errors.rate < 5%".to_owned(),
    ];
    let spec = gate(&limits.each_ref().map(String::as_str), &[]);
    red(&spec, judgings, |rng, index| {
        let ttft = lognormal(rng, ttft * slower, SIGMA);
        ok(index, ttft, lognormal(rng, tpot * slower, SIGMA))
    })
}

#[test]
fn healthy_at_four_fifths_of_every_limit() {
    let share = eight_checks(1.25, 1.0, 2000);
    assert!(share <= 0.005, "{share}");
}

/// The outcomes of a check alone, judged once at 50 requests: the shares that are violated, and met.
fn once(text: &str, judgings: u64, mut draw: impl FnMut(&mut ChaCha8Rng, u32) -> Sample) -> (f64, f64) {
    let (mut violated, mut met) = (0.0, 0.0);
    for seed in 0..judgings {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        match alone(text, (0..50).map(|index| draw(&mut rng, index)).collect()).outcome {
            CheckOutcome::Violated => violated += 1.0,
            CheckOutcome::Met => met += 1.0,
            _ => {}
        }
    }
    (violated / judgings as f64, met / judgings as f64)
}

#[test]
fn a_mean_exactly_at_its_limit() {
    let limit = 200.0 * (SIGMA * SIGMA / 2.0).exp();
    let text = format!("ttft.mean < {limit:.6}ms");
    let (violated, met) = once(&text, 2000, |rng, index| ok(index, lognormal(rng, 200.0, SIGMA), 10.0));
    assert!((0.02..=0.06).contains(&violated) && (0.02..=0.08).contains(&met), "{violated} {met}");
    let (violated, _) = once(&text, 300, |rng, index| ok(index, lognormal(rng, 230.0, SIGMA), 10.0));
    assert!(violated >= 0.9, "{violated}");
}

/// The gaps of a request whose own pace varies: most of what makes a gap long is common to all of them.
fn gaps(rng: &mut ChaCha8Rng, slower: f64) -> Vec<f64> {
    let pace = lognormal(rng, 10.0 * slower, 0.24);
    let count = rng.random_range(30..70);
    (0..count).map(|_| lognormal(rng, pace, 0.07)).collect()
}

#[test]
fn gaps_that_hang_together_exactly_at_their_limit() {
    // Pooled, the logarithm of a gap has this standard deviation.
    let limit = 10.0 * (Z95 * (0.24_f64 * 0.24 + 0.07 * 0.07).sqrt()).exp();
    let text = format!("icl.p95 < {limit:.6}ms");
    let (violated, _) = once(&text, 2000, |rng, index| streamed(index, &gaps(rng, 1.0)));
    assert!(violated <= 0.08, "{violated}");
    let (violated, _) = once(&text, 300, |rng, index| streamed(index, &gaps(rng, 1.5)));
    assert!(violated >= 0.9, "{violated}");
    // A binomial over all gaps takes too much for evidence.
    let pooled = (0..500).filter(|seed| {
        let mut rng = ChaCha8Rng::seed_from_u64(*seed);
        let gaps: Vec<f64> = (0..50).flat_map(|_| gaps(&mut rng, 1.0)).collect();
        let beyond = gaps.iter().filter(|gap| **gap >= limit).count() as u64;
        binomial::upper_tail(beyond, gaps.len() as u64, 0.05).unwrap() <= 0.05
    });
    let pooled = pooled.count() as f64 / 500.0;
    assert!(pooled >= 0.25, "{pooled}");
}

/// Requests that are slow as a whole in one of `in_so_many`, and in the others have this share of slow gaps.
fn slow_as_a_whole(rng: &mut ChaCha8Rng, in_so_many: f64, share: f64) -> Vec<f64> {
    let whole = rng.random_bool(1.0 / in_so_many);
    (0..rng.random_range(15..35)).map(|_| if whole || rng.random_bool(share) { 60.0 } else { 10.0 }).collect()
}

#[test]
fn slow_gaps_in_few_whole_requests_exactly_at_the_limit() {
    // 5 % of the gaps are slow, 2.5 % all over and the others in every 39th request; or all in every 20th.
    for (in_so_many, share) in [(39.0, 0.025), (20.0, 0.0)] {
        for n in [30, 50, 100] {
            let (mut violated, mut met, mut by_t_alone) = (0, 0, 0);
            for seed in 0..400 {
                let mut rng = ChaCha8Rng::seed_from_u64(seed);
                let gaps: Vec<Vec<f64>> = (0..n).map(|_| slow_as_a_whole(&mut rng, in_so_many, share)).collect();
                let slow = |gaps: &[f64]| gaps.iter().filter(|gap| **gap > 50.0).count() as f64;
                let surpluses: Vec<f64> = gaps.iter().map(|gaps| slow(gaps) - 0.05 * gaps.len() as f64).collect();
                by_t_alone += i32::from(Mean::of(&surpluses).unwrap().unwrap().p_pass(Limit::AtMost(0.0)) <= 0.05);
                match alone("icl.p95 < 50ms", (0..).zip(&gaps).map(|(index, gaps)| streamed(index, gaps)).collect())
                    .outcome
                {
                    CheckOutcome::Violated => violated += 1,
                    CheckOutcome::Met => met += 1,
                    _ => {}
                }
            }
            assert!(violated <= 20 && met <= 24, "{in_so_many} {n}: {violated} {met}");
            assert!(by_t_alone >= 40, "{in_so_many} {n}: {by_t_alone}");
        }
    }
    let slow_in = |share: f64| {
        let outcomes = (0..100).map(|seed| {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let samples = (0..100).map(|index| streamed(index, &slow_as_a_whole(&mut rng, 1e9, share)));
            alone("icl.p95 < 50ms", samples.collect()).outcome
        });
        outcomes.filter(|outcome| *outcome == CheckOutcome::Met).count()
    };
    let met = slow_in(0.01);
    assert!(met >= 90, "{met}");
}

#[test]
fn finds_half_slower_again() {
    let share = eight_checks(1.0, 1.5, 200);
    assert!(share >= 0.95, "{share}");
    let limit = 200.0 * (Z95 * SIGMA).exp();
    let spec = gate(&[&format!("ttft.p95 < {limit:.6}ms")], &[]);
    let share = red(&spec, 500, |rng, index| ok(index, lognormal(rng, 300.0, SIGMA), 10.0));
    assert!(share >= 0.95, "{share}");
}

#[test]
fn a_third_of_errors_is_always_red() {
    let spec = gate(&["ttft.p95 < 10s", "errors.rate < 5%"], &[]);
    for outcome in [Outcome::Http5xx, Outcome::StreamError, Outcome::TimeoutStall, Outcome::Reset, Outcome::Truncated] {
        let share = red(
            &spec,
            100,
            |rng, index| {
                if rng.random_bool(0.3) { failed(index, outcome) } else { ok(index, 100.0, 10.0) }
            },
        );
        assert_eq!(share, 1.0, "{}", outcome.name());
    }
}
