//! Ramps, spikes and soaks in virtual time, on engines whose truth is known: 50 seeds of each, of which 48 must be right.
//!
//! Plans are drawn here: Poisson arrivals by rescaling time, and a number of output tokens for each request.
#![expect(clippy::unwrap_used, reason = "a missing answer fails the test")]

use std::sync::atomic::{AtomicUsize, Ordering};

use gate_engine::{EngineTruth, simulate_with_truth};
use gate_model::{
    Cause, Check, CheckOutcome, CheckVerdict, Drift, Endpoint, EngineParams, Finding, GateSpec, Importance, Iterations,
    Latency, Load, Nanos, Op, Origin, Pace, Pattern, PatternFacts, PerSecond, Plan, PlannedRequest, Prior, RunHeader,
    Shape, Side, Slo, Stage, Verdict, WarmingUp,
};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Exp1, LogNormal};

const SEEDS: u64 = 50;
const LEAST_RIGHT: usize = 48;

/// From a request's service to its first token.
const TTFT: f64 = 0.1;
/// Between tokens.
const TPOT: f64 = 0.1;
/// The mean of output tokens.
const TOKENS: f64 = 10.0;
/// What a request takes of a slot, on average.
const SERVICE: f64 = TTFT + TPOT * (TOKENS - 1.0);

/// How output lengths differ.
#[derive(Clone, Copy, Debug)]
enum Lengths {
    Equal,
    /// Two tokens each: one time between tokens.
    Short,
    /// Lognormal about the same mean, with this coefficient of variation.
    Spread(f64),
}

impl Lengths {
    fn draw(self, random: &mut ChaCha8Rng) -> u32 {
        let spread = match self {
            Self::Equal => return TOKENS as u32,
            Self::Short => return 2,
            Self::Spread(spread) => spread,
        };
        let variance = (1.0 + spread * spread).ln();
        let lengths = LogNormal::new(TOKENS.ln() - variance / 2.0, variance.sqrt()).unwrap();
        lengths.sample(random).round().max(2.0) as u32
    }
}

/// The times of Poisson arrivals at the rate of these stages.
fn arrivals(stages: &[Stage], random: &mut ChaCha8Rng) -> Vec<f64> {
    let mut times = Vec::new();
    let (mut due, mut begun) = (0.0, 0.0);
    let mut next = || -> f64 { Exp1.sample(random) };
    due += next();
    for stage in stages {
        let (from, lasts) = (stage.from.0, stage.lasts.as_secs_f64());
        let slope = (stage.to.0 - from) / lasts;
        let area = (from + stage.to.0) / 2.0 * lasts;
        while due <= area {
            // The time t of the stage with from t + slope t²/2 = due.
            times.push(begun + 2.0 * due / (from + (from * from + 2.0 * slope * due).sqrt()));
            due += next();
        }
        due -= area;
        begun += lasts;
    }
    times
}

fn check(metric: &str, op: Op, bound: &str) -> Check {
    Check {
        scenario: 0,
        metric: metric.parse().unwrap(),
        op,
        bound: gate_model::Bound::Absolute(bound.parse().unwrap()),
        bound_text: bound.to_owned(),
        importance: Importance::Required,
        origin: Origin::Implied,
        decide: None,
        confidence: Check::CONFIDENCE,
        waive: None,
    }
}

/// An engine of so many slots.
fn engine(slots: Option<u32>, seed: u64) -> EngineParams {
    let latency = |seconds: f64, spread: f64| Latency {
        mean: Nanos::from_secs_f64(seconds),
        stddev: Nanos::from_secs_f64(seconds * spread),
        shape: Shape::Lognormal,
    };
    EngineParams { ttft: latency(TTFT, 0.25), tpot: latency(TPOT, 0.1), slots, seed, ..EngineParams::default() }
}

/// A gate of one load, whose base rate is `rate`, on this engine.
fn gate(checks: Vec<Check>, params: &EngineParams, pattern: Pattern, rate: f64, iterations: Iterations) -> GateSpec {
    let pace = Pace::Open { rate: PerSecond(rate), cap: None };
    let mut spec = GateSpec {
        checks,
        load: Load { pace, pattern, iterations, warmup: 0, seed: params.seed, ..Load::default() },
        slo: Slo { ttft: Some(Nanos::from_secs(2)), ..Slo::default() },
        ..GateSpec::new("patterns", Endpoint::Sim(Box::new(params.clone())))
    };
    spec.timeouts.first_token = Nanos::from_secs(1_000);
    spec.timeouts.total = Nanos::from_secs(2_000);
    spec
}

/// The verdict on one run of it, and what was true.
fn run(spec: GateSpec, params: &EngineParams, lengths: Lengths) -> (Verdict, EngineTruth) {
    let mut random = ChaCha8Rng::seed_from_u64(params.seed);
    let times = arrivals(&spec.load.stages().unwrap(), &mut random);
    let requests: Vec<PlannedRequest> = (0..)
        .zip(times)
        .map(|(index, at)| PlannedRequest {
            index,
            at: Nanos::from_secs_f64(at),
            input_tokens: 100,
            output_tokens: lengths.draw(&mut random),
            ..PlannedRequest::default()
        })
        .collect();
    let plan = Plan::new(&spec, vec![requests.len() as u32], requests);
    let header = RunHeader::new(spec, &plan, "test", "test", "2026-01-01T00:00:00Z");
    let (run, truth) = simulate_with_truth(params, None, &plan, header);
    (gate_judge::judge(&run, &Prior::default()), truth)
}

/// Of how many of the seeds something is true; two threads ask it.
fn counted(is_true: impl Fn(u64) -> bool + Sync) -> usize {
    let count = |parity: u64| (0..SEEDS).filter(|seed| seed % 2 == parity && is_true(*seed)).count();
    std::thread::scope(|scope| {
        let odd = scope.spawn(|| count(1));
        count(0) + odd.join().unwrap()
    })
}

fn facts(verdict: &CheckVerdict) -> PatternFacts {
    verdict.evidence.as_ref().unwrap().pattern.unwrap()
}

/// A ramp from nothing to so many times the capacity; long enough for 300 requests and more.
fn ramp(slots: u32, lengths: Lengths, times: f64, seed: u64) -> (CheckVerdict, f64) {
    let capacity = f64::from(slots) / SERVICE;
    let to = capacity * times;
    let over = (720.0 / to).max(120.0);
    let pattern = Pattern::Ramp { from: PerSecond(0.0), to: PerSecond(to), over: Nanos::from_secs_f64(over) };
    let params = engine(Some(slots), seed);
    let checks = vec![check("knee.rate", Op::AtLeast, &format!("{}/s", capacity / 2.0))];
    let iterations = Iterations::For(Nanos::from_secs_f64(over));
    let (verdict, truth) = run(gate(checks, &params, pattern, to, iterations), &params, lengths);
    (verdict.checks.into_iter().next().unwrap(), truth.capacity.unwrap().0)
}

const ENGINES: [u32; 3] = [1, 4, 16];
const LENGTHS: [Lengths; 2] = [Lengths::Equal, Lengths::Spread(0.4)];

#[test]
fn a_ramp_past_the_capacity_finds_it() {
    for (slots, lengths) in ENGINES.into_iter().flat_map(|slots| LENGTHS.map(|lengths| (slots, lengths))) {
        // Farther up where it costs least.
        for times in if slots == 1 { &[1.5, 2.0][..] } else { &[1.5] } {
            let right = counted(|seed| {
                let (check, capacity) = ramp(slots, lengths, *times, seed);
                let is_found = matches!(facts(&check), PatternFacts::Knee { at: Some(_), .. });
                is_found && (check.seen.unwrap().value / capacity - 1.0).abs() <= 0.1
            });
            println!("{slots} slots, {lengths:?}, to {times} of the capacity: found {right} of {SEEDS} times");
            assert!(right >= LEAST_RIGHT, "{slots} slots, {lengths:?}, to {times}: {right} of {SEEDS}");
        }
    }
}

#[test]
fn a_ramp_below_the_capacity_has_no_knee() {
    for (slots, lengths) in ENGINES.into_iter().flat_map(|slots| LENGTHS.map(|lengths| (slots, lengths))) {
        let met = AtomicUsize::new(0);
        let right = counted(|seed| {
            let (check, _) = ramp(slots, lengths, 0.6, seed);
            met.fetch_add(usize::from(check.outcome == CheckOutcome::Met), Ordering::Relaxed);
            matches!(facts(&check), PatternFacts::Knee { at: None, .. })
        });
        println!("{slots} slots, {lengths:?}, to .6 of the capacity: no knee {right} of {SEEDS} times, met {met:?}");
        assert!(right >= LEAST_RIGHT, "{slots} slots, {lengths:?}: {right} of {SEEDS}");
    }
}

/// Five times .45 of the capacity, for as long as takes 150 requests at that rate to make up for.
fn spike(slots: u32, lengths: Lengths, bound: &str, seed: u64) -> (Verdict, Option<f64>) {
    let rate = 0.45 * f64::from(slots) / SERVICE;
    let seconds = |requests: f64| Nanos::from_secs_f64(requests / rate);
    // It leaves 1.25 of the capacity × hold behind, and .55 of it is left to make up for that.
    let hold = seconds(150.0 * 0.55 / 1.25);
    let (before, after) = (seconds(100.0), seconds(350.0));
    let pattern = Pattern::Spike { times: 5.0, hold, before, after };
    let params = engine(Some(slots), seed);
    let iterations = Iterations::For(before + hold + after);
    let spec = gate(vec![check("recovery", Op::Less, bound)], &params, pattern, rate, iterations);
    let (verdict, truth) = run(spec, &params, lengths);
    (verdict, truth.recovery(before + hold).map(|recovery| recovery.as_secs_f64()))
}

#[test]
fn a_spike_tells_how_long_it_takes_to_recover() {
    for (slots, lengths) in ENGINES.into_iter().flat_map(|slots| LENGTHS.map(|lengths| (slots, lengths))) {
        let long = AtomicUsize::new(0);
        let right = counted(|seed| {
            let (verdict, truth) = spike(slots, lengths, "1000s", seed);
            let truth = truth.unwrap();
            long.fetch_add(usize::from(truth * 0.45 * f64::from(slots) / SERVICE >= 100.0), Ordering::Relaxed);
            let PatternFacts::Recovery { settled, .. } = facts(&verdict.checks[0]) else { return false };
            settled && (verdict.checks[0].seen.unwrap().value / 1e9 / truth - 1.0).abs() <= 0.1
        });
        println!(
            "{slots} slots, {lengths:?}: recovery within 10 % {right} of {SEEDS} times; {long:?} took 100 requests"
        );
        assert!(right >= LEAST_RIGHT, "{slots} slots, {lengths:?}: {right} of {SEEDS}");
    }
}

#[test]
fn a_knee_is_held_against_its_bound() {
    let capacity = 16.0 / SERVICE;
    let outcome = |share: f64, op: Op| {
        let to = 1.5 * capacity;
        let over = Nanos::from_secs(120);
        let pattern = Pattern::Ramp { from: PerSecond(0.0), to: PerSecond(to), over };
        let params = engine(Some(16), 1);
        let checks = vec![check("knee.rate", op, &format!("{}/s", share * capacity))];
        let (verdict, _) = run(gate(checks, &params, pattern, to, Iterations::For(over)), &params, Lengths::Equal);
        verdict.checks[0].outcome.clone()
    };
    assert_eq!(outcome(0.8, Op::AtLeast), CheckOutcome::Met);
    assert_eq!(outcome(1.25, Op::AtLeast), CheckOutcome::Violated);
    assert_eq!(outcome(0.8, Op::AtMost), CheckOutcome::Violated);
    assert_eq!(outcome(1.25, Op::AtMost), CheckOutcome::Met);
}

#[test]
fn a_ramp_without_a_knee_proves_no_more_than_it_asked() {
    let of = |bound: &str, op: Op| {
        let over = Nanos::from_secs(120);
        let pattern = Pattern::Ramp { from: PerSecond(0.0), to: PerSecond(8.0), over };
        let params = engine(Some(16), 1);
        let spec = gate(vec![check("knee.rate", op, bound)], &params, pattern, 8.0, Iterations::For(over));
        run(spec, &params, Lengths::Equal).0
    };
    let verdict = of("8/s", Op::AtLeast);
    assert_eq!(
        (&verdict.checks[0].outcome, verdict.checks[0].seen),
        (&CheckOutcome::Met, Some("8/s".parse().unwrap()))
    );
    let found = &verdict.run.parts[0].found[0];
    assert_eq!((found.value, found.lower, found.upper), (None, Some("8/s".parse().unwrap()), None));
    assert_eq!(of("9/s", Op::AtLeast).checks[0].outcome, CheckOutcome::Inconclusive { side: Side::Over });
    assert_eq!(of("7/s", Op::AtMost).checks[0].outcome, CheckOutcome::Violated);
    assert_eq!(of("9/s", Op::AtMost).checks[0].outcome, CheckOutcome::Inconclusive { side: Side::Within });
}

#[test]
fn a_pattern_that_is_too_short_tells_nothing() {
    let cause = |metric: &str, op: Op, bound: &str, pattern: Pattern, rate: f64, lasts: i64| {
        let params = engine(Some(16), 1);
        let iterations = Iterations::For(Nanos::from_secs(lasts));
        let (verdict, _) =
            run(gate(vec![check(metric, op, bound)], &params, pattern, rate, iterations), &params, Lengths::Equal);
        assert!(verdict.run.parts[0].found.is_empty());
        match verdict.checks[0].outcome.clone() {
            CheckOutcome::CouldNotMeasure { cause: Cause::PatternTooShort { phase, needed, .. } } => (phase, needed),
            other => panic!("{other:?}"),
        }
    };
    let secs = Nanos::from_secs;
    let ramp = |over: i64, to: f64| Pattern::Ramp { from: PerSecond(0.0), to: PerSecond(to), over: secs(over) };
    let too_short = cause("knee.rate", Op::AtLeast, "5/s", ramp(119, 9.0), 9.0, 119);
    assert_eq!(too_short, ("of the ramp, in seconds,".to_owned(), 120));
    let too_few = cause("knee.rate", Op::AtLeast, "1/s", ramp(120, 3.0), 3.0, 120);
    assert_eq!(too_few, ("of the ramp, in requests,".to_owned(), 300));
    let spike = |before: i64, after: i64| Pattern::Spike {
        times: 3.0,
        hold: secs(5),
        before: secs(before),
        after: secs(after),
    };
    let before = cause("recovery", Op::Less, "10s", spike(20, 60), 2.0, 85);
    assert_eq!(before, ("before the spike, in answered requests,".to_owned(), 60));
    let after = cause("recovery", Op::Less, "10s", spike(60, 5), 2.0, 70);
    assert_eq!(after, ("after the spike, in requests,".to_owned(), 20));
    let soak = cause("drift.ttft", Op::Less, "1%/h", Pattern::Soak, 2.0, 540);
    assert_eq!(soak, ("of the run, in minutes,".to_owned(), 10));
}

#[test]
fn a_recovery_is_held_against_its_bound() {
    let (verdict, truth) = spike(4, Lengths::Equal, "1000s", 3);
    let truth = truth.unwrap();
    let evidence = verdict.checks[0].evidence.clone().unwrap();
    let (lower, upper) = (evidence.lower.unwrap().value / 1e9, evidence.upper.unwrap().value / 1e9);
    assert!(lower <= 1.02 * truth && truth <= 1.05 * upper && upper < 1.2 * lower, "{lower} … {upper}, {truth}");
    let outcome = |share: f64| spike(4, Lengths::Equal, &format!("{}s", share * truth), 3).0.checks[0].outcome.clone();
    assert_eq!(outcome(1.3), CheckOutcome::Met);
    assert_eq!(outcome(0.7), CheckOutcome::Violated);
}

#[test]
fn what_does_not_recover_keeps_no_bound() {
    // Above its capacity after the spike too, by a little before it.
    let rate = 1.02 / SERVICE;
    let pattern = Pattern::Spike {
        times: 10.0,
        hold: Nanos::from_secs(60),
        before: Nanos::from_secs(80),
        after: Nanos::from_secs(300),
    };
    let params = engine(Some(1), 5);
    let of = |bound: &str| {
        let checks = vec![check("recovery", Op::Less, bound)];
        run(
            gate(checks, &params, pattern.clone(), rate, Iterations::For(Nanos::from_secs(440))),
            &params,
            Lengths::Equal,
        )
        .0
    };
    let verdict = of("60s");
    assert!(matches!(facts(&verdict.checks[0]), PatternFacts::Recovery { settled: false, .. }));
    assert_eq!(verdict.checks[0].outcome, CheckOutcome::Violated);
    assert_eq!(verdict.run.parts[0].found[0].value, None);
    // The run is too short to tell.
    assert_eq!(of("1000s").checks[0].outcome, CheckOutcome::Inconclusive { side: Side::Over });
}

#[test]
fn a_spike_that_nobody_feels_is_over_at_once() {
    let pattern = Pattern::Spike {
        times: 3.0,
        hold: Nanos::from_secs(20),
        before: Nanos::from_secs(60),
        after: Nanos::from_secs(100),
    };
    let right = counted(|seed| {
        let params = engine(None, seed);
        let iterations = Iterations::For(Nanos::from_secs(180));
        let spec = gate(vec![check("recovery", Op::Less, "5s")], &params, pattern.clone(), 2.0, iterations);
        let verdict = run(spec, &params, Lengths::Equal).0;
        verdict.checks[0].seen.unwrap().value == 0.0 && verdict.checks[0].outcome == CheckOutcome::Met
    });
    println!("a spike without a queue: recovered at once {right} of {SEEDS} times");
    assert!(right >= LEAST_RIGHT, "{right} of {SEEDS}");
}

/// Two hours at 5/s, whose TPOT grows by so much per hour.
fn soak(checks: Vec<Check>, drift: Drift, slots: Option<u32>, seed: u64) -> Verdict {
    let mut params = engine(slots, seed);
    (params.drift, params.ttft.mean, params.tpot.mean) = (drift, Nanos::from_millis(50), Nanos::from_millis(10));
    params.ttft.stddev = Nanos::from_millis(10);
    params.tpot.stddev = Nanos::from_millis(1);
    let iterations = Iterations::For(Nanos::from_secs(7_200));
    let spec = gate(checks, &params, Pattern::Soak, 5.0, iterations);
    run(spec, &params, Lengths::Short).0
}

#[test]
fn a_drift_is_flagged_and_a_steady_run_is_not() {
    let outcome = |tpot: f64, seed: u64| {
        let drift = Drift { tpot, ..Drift::default() };
        soak(vec![check("drift.tpot", Op::Less, "1%/h")], drift, None, seed).checks[0].outcome.clone()
    };
    let drifting = counted(|seed| outcome(0.02, seed) == CheckOutcome::Violated);
    let steady = counted(|seed| outcome(0.0, seed) == CheckOutcome::Met);
    println!("2 %/h: violated {drifting} of {SEEDS} times; none: met {steady} of {SEEDS} times");
    assert!(drifting >= LEAST_RIGHT && steady >= LEAST_RIGHT, "{drifting} and {steady} of {SEEDS}");
}

#[test]
fn a_soak_names_what_drifts_unasked() {
    let checks = || vec![check("drift.ttft", Op::Less, "1%/h")];
    let drifts = |verdict: &Verdict| {
        let what = verdict.findings.iter().filter_map(|finding| match finding {
            Finding::Drifts { metric, per_hour, .. } => Some((metric.to_string(), (per_hour * 100.0).round())),
            _ => None,
        });
        what.collect::<Vec<_>>()
    };
    let drift = Drift { ttft: 0.05, tpot: 0.03, memory: 0.06 };
    let verdict = soak(checks(), drift, Some(64), 1);
    let named = [("drift.tpot".to_owned(), 3.0), ("drift.server.memory".to_owned(), 6.0)];
    assert_eq!(drifts(&verdict), named, "TTFT is asked for by a check");
    assert_eq!(verdict.checks[0].outcome, CheckOutcome::Violated);
    let found: Vec<String> = verdict.run.parts[0].found.iter().map(|found| found.metric.to_string()).collect();
    assert!(["drift.ttft", "drift.tpot", "drift.server.memory"].iter().all(|name| found.contains(&(*name).to_owned())));
    assert_eq!(drifts(&soak(checks(), Drift::default(), Some(64), 2)), []);
}

#[test]
fn first_requests_that_are_slow_are_told_of() {
    let anomaly = |warming_up: Option<WarmingUp>, seed: u64| {
        let params = EngineParams { warming_up, ..engine(None, seed) };
        let iterations = Iterations::For(Nanos::from_secs(60));
        let spec = gate(vec![check("ttft.p50", Op::Less, "1s")], &params, Pattern::Steady, 2.0, iterations);
        let (verdict, _) = run(spec, &params, Lengths::Equal);
        verdict.findings.into_iter().find_map(|finding| match finding {
            Finding::WarmupAnomaly { requests, first, rest, .. } => Some((requests, first, rest)),
            _ => None,
        })
    };
    let (requests, first, rest) = anomaly(Some(WarmingUp { requests: 10, slowdown: 4.0 }), 1).unwrap();
    assert!([5, 10].contains(&requests) && first.0 as f64 >= 1.5 * rest.0 as f64, "{requests}: {first:?}, {rest:?}");
    assert!((rest.as_secs_f64() / TTFT - 1.0).abs() < 0.2, "{rest:?}");
    assert_eq!(counted(|seed| anomaly(None, seed).is_some()), 0);
}
