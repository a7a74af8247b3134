use gate_model::{Arrivals, GateSpec, Iterations, Nanos, Pace, Pattern, PerSecond, Stage};
use gate_plan::Files;
use statrs::distribution::{ContinuousCDF, Gamma};

use crate::support::{error, open, plan, spec};

/// The p-value of a Kolmogorov–Smirnov test that these come from a distribution.
fn fits(mut values: Vec<f64>, cdf: impl Fn(f64) -> f64) -> f64 {
    values.sort_by(f64::total_cmp);
    let n = values.len() as f64;
    let distance = |(rank, value): (usize, &f64)| {
        let expected = cdf(*value);
        ((rank + 1) as f64 / n - expected).max(expected - rank as f64 / n)
    };
    let largest = values.iter().enumerate().map(distance).fold(0.0, f64::max);
    let lambda = (n.sqrt() + 0.12 + 0.11 / n.sqrt()) * largest;
    if lambda < 0.3 {
        // The series converges badly here, where p is 1 to the fifth digit.
        return 1.0;
    }
    let term = |k: f64| (-1.0_f64).powf(k - 1.0) * (-2.0 * k * k * lambda * lambda).exp();
    (2.0 * (1..=100).map(|k| term(f64::from(k))).sum::<f64>()).clamp(0.0, 1.0)
}

fn gaps(spec: &GateSpec) -> Vec<f64> {
    let requests = plan(spec).requests;
    requests.windows(2).map(|two| (two[1].at - two[0].at).as_secs_f64()).collect()
}

fn ramp(spec: &mut GateSpec, from: f64, to: f64, seconds: i64) {
    let over = Nanos::from_secs(seconds);
    spec.load.pattern = Pattern::Ramp { from: PerSecond(from), to: PerSecond(to), over };
    spec.load.iterations = Iterations::For(over);
}

#[test]
fn the_test_itself_tells_wrong_from_right() {
    let even: Vec<f64> = (0..1000).map(|k| (f64::from(k) + 0.5) / 1000.0).collect();
    assert!(fits(even.clone(), |x| x) > 0.999);
    assert!(fits(even, |x| x.sqrt()) < 1e-6);
}

#[test]
fn twenty_seeds_each_keep_to_their_process() {
    for seed in 0..20 {
        let mut spec = spec(seed);
        spec.load.pace = open(20.0);
        spec.load.iterations = Iterations::Fixed(2_000);
        let p = fits(gaps(&spec), |gap| 1.0 - (-20.0 * gap).exp());
        assert!(p > 0.001, "poisson, seed {seed}: {p}");

        for shape in [0.4, 1.0, 4.0] {
            spec.load.arrivals = Arrivals::Gamma(shape);
            let gamma = Gamma::new(shape, 20.0 * shape).unwrap();
            let p = fits(gaps(&spec), |gap| gamma.cdf(gap));
            assert!(p > 0.001, "gamma {shape}, seed {seed}: {p}");
        }

        // Given how many there are, Poisson arrivals are draws from the normed integral of the rate.
        spec.load.arrivals = Arrivals::Poisson;
        ramp(&mut spec, 2.0, 18.0, 200);
        let times: Vec<f64> = plan(&spec).requests.iter().map(|request| request.at.as_secs_f64()).collect();
        // Five standard deviations of a Poisson count of 2,000.
        assert!((1_776..=2_224).contains(&times.len()), "{}", times.len());
        let p = fits(times, |t| (2.0 * t + 0.04 * t * t) / 2_000.0);
        assert!(p > 0.001, "ramp, seed {seed}: {p}");
    }
}

#[test]
fn equal_gaps_follow_the_integral_of_the_rate() {
    let mut spec = spec(1);
    spec.load.arrivals = Arrivals::Constant;
    ramp(&mut spec, 0.0, 10.0, 10);
    let ramped = plan(&spec);
    // The integral is t²/2.
    let expected = |index: i32| (2.0 * f64::from(index)).sqrt();
    assert_eq!((ramped.requests.len(), &ramped.looks, ramped.whole), (50, &vec![50], 50));
    for (index, request) in (0..).zip(&ramped.requests) {
        assert!((request.at.as_secs_f64() - expected(index)).abs() < 1e-8, "{index}: {:?}", request.at);
    }

    // A fall to zero, a pause, and a rate after it.
    let stage =
        |from, to, seconds| Stage { from: PerSecond(from), to: PerSecond(to), lasts: Nanos::from_secs(seconds) };
    spec.load.pattern = Pattern::Stages(vec![stage(4.0, 0.0, 2), stage(0.0, 0.0, 5), stage(2.0, 2.0, 1)]);
    let times: Vec<f64> = plan(&spec).requests.iter().map(|request| request.at.as_secs_f64()).collect();
    let fall = |k: f64| 2.0 - (4.0 - k).sqrt();
    for (seen, expected) in times.iter().zip([0.0, fall(1.0), fall(2.0), fall(3.0), 7.0, 7.5]) {
        assert!((seen - expected).abs() < 1e-8, "{times:?}");
    }
    assert_eq!(times.len(), 6);
}

#[test]
fn a_spike_is_as_high_and_as_long_as_asked_for() {
    for seed in 0..5 {
        let mut spec = spec(seed);
        spec.load.pace = open(10.0);
        let (before, hold, after) = (Nanos::from_secs(60), Nanos::from_secs(30), Nanos::from_secs(60));
        spec.load.pattern = Pattern::Spike { times: 5.0, hold, before, after };
        spec.load.iterations = Iterations::For(Nanos::from_secs(150));
        let plan = plan(&spec);
        let within = |from: i64, to: i64| {
            let due = plan.requests.iter().filter(|r| r.at >= Nanos::from_secs(from) && r.at < Nanos::from_secs(to));
            due.count() as f64
        };
        for (from, to, expected) in [(0, 60, 600.0_f64), (60, 90, 1500.0), (90, 150, 600.0)] {
            assert!((within(from, to) - expected).abs() < 5.0 * expected.sqrt(), "{from}: {}", within(from, to));
        }
        assert_eq!(plan.requests.len() as f64, within(0, 150));
        assert!(plan.requests.is_sorted_by_key(|request| request.at));
        assert_eq!(plan.looks, [plan.whole]);
    }
}

#[test]
fn a_time_instead_of_a_number_ends_with_the_schedule() {
    let mut spec = spec(0);
    spec.load.arrivals = Arrivals::Constant;
    spec.load.iterations = Iterations::For(Nanos::from_secs(10));
    let plan = plan(&spec);
    assert_eq!((plan.requests.len(), plan.looks.as_slice()), (20, &[20][..]));
    assert_eq!(plan.duration(), Nanos::from_millis(9_500));
    // A soak of a number of requests has one look.
    spec.load.pattern = Pattern::Soak;
    spec.load.iterations = Iterations::Range { first: 30, last: 50, extend: Some(100) };
    assert_eq!(crate::support::plan(&spec).looks, [50]);
}

#[test]
fn a_load_without_a_plan_says_why() {
    let fails = |change: fn(&mut GateSpec)| {
        let mut spec = spec(0);
        change(&mut spec);
        error(&spec, &Files::default())
    };
    let found = [
        fails(|spec| spec.load.arrivals = Arrivals::Gamma(0.0)),
        fails(|spec| ramp(spec, -1.0, 2.0, 10)),
        fails(|spec| ramp(spec, 0.0, 0.0, 10)),
        fails(|spec| ramp(spec, 1.0, 2.0, 90_000)),
        fails(|spec| ramp(spec, 1e6, 1e6, 10)),
        fails(|spec| {
            spec.load.pace = Pace::Closed { concurrency: 2 };
            spec.load.iterations = Iterations::For(Nanos::from_secs(10));
        }),
        fails(|spec| spec.load.pattern = Pattern::Trace("azure.csv".to_owned())),
    ];
    let expected = [
        "`load.arrivals` is gamma with shape 0: it must be above 0",
        "`load.pattern` has a rate of -1/s: rates must be 0 or more",
        "no request is due within the schedule of `load.pattern`: raise its rates, or let it last longer",
        "the schedule of `load.pattern` lasts 1,500 min, and a plan lasts 24 h at most: shorten it",
        "more than 1000000 requests are due, the most a plan holds: shorten `load.duration` or the stages of \
         `load.pattern`, lower their rates, or give the rarest scenario more `weight`",
        "`load.duration` needs a rate, and a closed loop has none: give `load.iterations` instead, or `load.rps` with \
         `load.concurrency`",
        "`load.trace` is `azure.csv`, and no plan is possible without its text: read it first",
    ];
    assert_eq!(found, expected);
}
