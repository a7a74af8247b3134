//! Runs of different length: what depends on how many requests there are is compared over as many of each.

use gate_engine::simulate;
use gate_model::{
    CheckOutcome, CheckVerdict, EndReason, EngineParams, Faults, GateSpec, Iterations, Latency, Metric, Nanos, Pace,
    PerSecond, Plan, PlannedRequest, Prior, Run, Slo, Verdict, With,
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::support::{gate, kept, run};

/// All that a run has per second of the work done.
const WORK: [&str; 4] = [
    "throughput.requests >= baseline - 10%",
    "throughput.output_tokens >= baseline - 10%",
    "throughput.total_tokens >= baseline - 10%",
    "goodput >= baseline - 10%",
];
const OPEN: Pace = Pace::Open { rate: PerSecond(2.0), cap: None };
/// The seed of arrivals that come slowly at first.
const ARRIVALS: u64 = 0;
const CLOSED: Pace = Pace::Closed { concurrency: 12 };

fn spec_of(checks: &[&str], pace: Pace, n: u32) -> GateSpec {
    let mut spec = gate(checks, &[]);
    spec.load.pace = pace;
    spec.load.iterations = Iterations::Fixed(n);
    spec.slo = Slo { ttft: Some(Nanos::from_secs(2)), ..Slo::default() };
    spec
}

/// An engine whose answers of 60 tokens take three seconds, or so many times as long.
fn engine(seed: u64, slower: f64) -> EngineParams {
    let usual = EngineParams::default();
    let mean = Nanos((50e6 * slower) as i64);
    let ttft = Nanos((usual.ttft.mean.0 as f64 * slower) as i64);
    let tpot = Latency { mean, ..usual.tpot };
    EngineParams { seed, tpot, ttft: Latency { mean: ttft, ..usual.ttft }, ..usual }
}

/// So many requests to an engine: the first of a plan whose arrivals are those of a seed.
fn played(spec: &GateSpec, engine: &EngineParams, arrivals: u64) -> Run {
    let n = spec.load.iterations.looks()[0];
    let mut rng = ChaCha8Rng::seed_from_u64(arrivals);
    let rate = spec.load.pace.rate().map(|rate| rate.0);
    let mut at = 0.0;
    let requests = (0..n).map(|index| {
        let due = Nanos::from_secs_f64(at);
        at += rate.map_or(0.0, |rate| -(1.0 - rng.random::<f64>()).ln() / rate);
        PlannedRequest { index, at: due, input_tokens: 100, output_tokens: 60, ..PlannedRequest::default() }
    });
    let plan = Plan::new(spec, vec![n], requests.collect());
    simulate(engine, None, &plan, run(spec, Vec::new(), EndReason::Completed).header)
}

/// The verdict on a run of `n` requests to an engine that is so much slower, against three unchanged ones of `before`.
fn judged(checks: &[&str], pace: Pace, n: u32, before: u32, slower: f64) -> Verdict {
    let stored = |seed| kept(played(&spec_of(checks, pace, before), &engine(seed, 1.0), ARRIVALS));
    let prior = Prior { baselines: [1, 2, 3].map(stored).to_vec(), ..Prior::default() };
    gate_judge::judge(&played(&spec_of(checks, pace, n), &engine(4, slower), ARRIVALS), &prior)
}

fn change(check: &CheckVerdict) -> f64 {
    check.evidence.as_ref().unwrap().comparison.as_ref().unwrap().change.unwrap()
}

#[test]
fn a_short_run_is_no_slower_than_long_ones_and_a_long_one_no_faster() {
    for pace in [OPEN, CLOSED] {
        for (n, before) in [(30, 100), (100, 30), (50, 50)] {
            let verdict = judged(&WORK, pace, n, before, 1.0);
            for check in verdict.checks {
                let evidence = check.evidence.as_ref().unwrap();
                let comparison = evidence.comparison.as_ref().unwrap();
                assert!(change(&check).abs() < 0.04, "{pace:?} {n} {before}: {check:?}");
                assert_eq!(check.outcome, CheckOutcome::Met, "{pace:?} {n} {before}: {check:?}");
                let first = n.min(before);
                assert_eq!((evidence.n, comparison.n), (first, 3 * first));
                assert_eq!(comparison.with, With::Baseline { runs: 3 });
                // What is seen and what it is compared with are of the same requests.
                let ratio = check.seen.unwrap().value / comparison.base.unwrap().value;
                assert!((ratio - 1.0 - change(&check)).abs() < 1e-9, "{check:?}");
            }
        }
    }
}

#[test]
fn the_lengths_alone_would_look_like_a_loss() {
    let metric: Metric = "throughput.requests".parse().unwrap();
    for pace in [OPEN, CLOSED] {
        let whole =
            |n| gate_judge::value(&played(&spec_of(&WORK, pace, n), &engine(1, 1.0), ARRIVALS), metric).unwrap().value;
        assert!(whole(30) < 0.92 * whole(100), "{pace:?}: {} {}", whole(30), whole(100));
    }
}

#[test]
fn a_real_loss_is_found_whichever_run_is_longer() {
    for (n, before) in [(30, 100), (100, 30)] {
        let verdict = judged(&WORK, CLOSED, n, before, 1.0 / 0.7);
        for check in verdict.checks {
            if check.check.metric.to_string() == "errors.rate" {
                continue;
            }
            assert!((-0.34..-0.26).contains(&change(&check)), "{n} {before}: {check:?}");
            assert_eq!(check.outcome, CheckOutcome::Violated, "{n} {before}: {check:?}");
        }
    }
}

#[test]
fn requests_that_fail_count_to_the_first_ones() {
    let spec = spec_of(&WORK[..1], OPEN, 30);
    let failing = EngineParams { faults: Faults { http_500: 0.3, ..Faults::default() }, ..engine(4, 1.0) };
    let prior = Prior {
        baselines: vec![kept(played(&spec_of(&WORK[..1], OPEN, 100), &engine(1, 1.0), ARRIVALS))],
        ..Prior::default()
    };
    let run = played(&spec, &failing, ARRIVALS);
    let ok = run.samples.iter().filter(|sample| sample.outcome == gate_model::Outcome::Ok).count() as f64;
    let check = gate_judge::judge(&run, &prior).checks.remove(0);
    assert!((change(&check) - (ok / 30.0 - 1.0)).abs() < 0.05, "{ok}: {check:?}");
}

#[test]
fn the_rate_of_a_short_run_is_that_of_its_own_requests() {
    let check = "achieved_rate >= baseline - 10%";
    for (n, before) in [(30, 100), (100, 30)] {
        let verdict = judged(&[check], OPEN, n, before, 1.0);
        assert_eq!(change(&verdict.checks[0]), 0.0, "{:?}", verdict.checks[0]);
        assert_eq!(verdict.checks[0].outcome, CheckOutcome::Met);
    }
    let whole = |n| {
        let run = played(&spec_of(&[check], OPEN, n), &engine(1, 1.0), ARRIVALS);
        gate_judge::value(&run, "achieved_rate".parse().unwrap()).unwrap().value
    };
    assert!((whole(30) / whole(100) - 1.0).abs() > 0.05, "{} {}", whole(30), whole(100));
}

#[test]
fn compared_as_it_is_it_is_over_as_many() {
    let mut spec = spec_of(&WORK, OPEN, 30);
    spec.checks.iter_mut().for_each(|check| check.decide = Some(gate_model::Decide::Point));
    let prior = Prior {
        baselines: vec![kept(played(&spec_of(&WORK, OPEN, 100), &engine(1, 1.0), ARRIVALS))],
        ..Prior::default()
    };
    let verdict = gate_judge::judge(&played(&spec, &engine(4, 1.0), ARRIVALS), &prior);
    assert!(verdict.checks.iter().all(|check| check.outcome == CheckOutcome::Met), "{:?}", verdict.checks);
}
