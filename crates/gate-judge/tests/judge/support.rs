//! Gates, samples and runs for the tests.

use gate_model::{
    Api, Arm, Arrivals, Bound, Cache, Check, DEFINITIONS, EndReason, Endpoint, GateSpec, Health, Histogram, Importance,
    Iterations, Length, Load, Nanos, Op, Origin, Outcome, Outcomes, PerSecond, Policy, PromptSpec, Quantity,
    RUN_SCHEMA, Ready, ReadyPath, Run, RunEnd, RunHeader, Sample, Shape, Slo, Target, Timeouts, Usage,
};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

/// The time between two arrivals.
pub(crate) const SPACING: Nanos = Nanos::from_millis(500);

/// A check as written: metric, operator and bound with blanks between.
pub(crate) fn check(text: &str, importance: Importance) -> Check {
    let parts: Vec<&str> = text.split_whitespace().collect();
    let [metric, op, bound] = parts[..] else { panic!("{text}") };
    let ops = [Op::Less, Op::AtMost, Op::Greater, Op::AtLeast, Op::Equal];
    Check {
        scenario: 0,
        metric: metric.parse().unwrap(),
        op: ops.into_iter().find(|one| one.symbol() == op).unwrap(),
        bound: Bound::Absolute(bound.parse::<Quantity>().unwrap()),
        bound_text: bound.to_owned(),
        importance,
        origin: Origin::Implied,
    }
}

/// A gate judged at 30, 50 and 100 requests.
pub(crate) fn gate(require: &[&str], prefer: &[&str]) -> GateSpec {
    let length = |mean: f64| Length { mean, stddev: 0.0, min: mean as u32, max: mean as u32, shape: Shape::Normal };
    let checks = require.iter().map(|text| check(text, Importance::Required));
    let checks = checks.chain(prefer.iter().map(|text| check(text, Importance::Preferred))).collect();
    GateSpec {
        version: 1,
        name: "chat".to_owned(),
        file: "gates/chat.yaml".to_owned(),
        target: Target {
            endpoint: Endpoint::Sim(Box::default()),
            api: Api::OpenaiChat,
            model: None,
            key: None,
            headers: Vec::new(),
            extra_body: serde_json::Map::new(),
            ready: Ready { within: Nanos::from_secs(10), path: ReadyPath::Auto },
        },
        load: Load {
            rate: PerSecond(2.0),
            iterations: Iterations::Range { first: 30, last: 50, extend: Some(100) },
            warmup: 1,
            arrivals: Arrivals::Constant,
            seed: 0,
        },
        prompts: PromptSpec { input_tokens: length(100.0), output_tokens: length(50.0), cache: Cache::Bust },
        slo: Slo::default(),
        timeouts: Timeouts {
            connect: Nanos::from_secs(5),
            first_token: Nanos::from_secs(60),
            stall: Nanos::from_secs(30),
            total: Nanos::from_secs(300),
            run: None,
        },
        outcomes: Outcomes { inconclusive: Policy::Pass, no_baseline: Policy::Pass, invalid: Policy::Fail },
        checks,
        overrides: Vec::new(),
    }
}

/// An `ok` request with these times in milliseconds, 50 output tokens in 50 events.
pub(crate) fn ok(index: u32, ttft: f64, tpot: f64) -> Sample {
    let intended = Nanos(SPACING.0 * i64::from(index));
    let after = |millis: f64| Some(intended + Nanos::from_secs_f64(millis / 1e3));
    Sample {
        index,
        scenario: 0,
        arm: Arm::Target,
        pair: None,
        turn: 0,
        planned_input: 100,
        planned_output: 50,
        intended,
        start: Some(intended),
        connected: None,
        sent: Some(intended),
        headers: after(ttft),
        first_event: after(ttft),
        first_token: after(ttft),
        first_answer: after(ttft),
        last_token: after(ttft + 49.0 * tpot),
        end: after(ttft + 49.0 * tpot),
        outcome: Outcome::Ok,
        status: Some(200),
        error: None,
        embedded_server_error: false,
        finish_reason: Some("length".to_owned()),
        usage: Some(Usage { input: Some(100), output: Some(50), cached: None, reasoning: None }),
        events: 52,
        content_events: 50,
        body_bytes: 5000,
        longest_gap: after(tpot).map(|at| at - intended),
        gaps: Histogram::default(),
        token_times: Vec::new(),
    }
}

/// A request that failed in this way after 10 ms.
pub(crate) fn failed(index: u32, outcome: Outcome) -> Sample {
    let status = match outcome {
        Outcome::Http4xx => Some(404),
        Outcome::Http429 => Some(429),
        Outcome::Http5xx => Some(500),
        _ => None,
    };
    let whole = ok(index, 10.0, 0.0);
    Sample {
        outcome,
        status,
        error: Some(format!("it failed: {}", outcome.name())),
        finish_reason: None,
        usage: None,
        events: 0,
        content_events: 0,
        first_event: None,
        first_token: None,
        first_answer: None,
        last_token: None,
        longest_gap: None,
        ..whole
    }
}

/// A run of a gate over its looks that ended like this.
pub(crate) fn run(spec: &GateSpec, samples: Vec<Sample>, reason: EndReason) -> Run {
    let looks = spec.load.iterations.looks();
    let last = looks.last().copied().unwrap_or(0);
    let sent = samples.len() as u32;
    let at = samples.iter().filter_map(|sample| sample.end).max().unwrap_or(Nanos::ZERO);
    Run {
        header: RunHeader {
            schema: RUN_SCHEMA,
            definitions: DEFINITIONS,
            gate: "0.1.0".to_owned(),
            run_id: "r".to_owned(),
            started: "2026-01-01T00:00:00Z".to_owned(),
            spec: spec.clone(),
            scenarios: vec!["chat".to_owned()],
            looks,
            schedule: (0..last).map(|index| Nanos(SPACING.0 * i64::from(index))).collect(),
            simulated: true,
            percentiles: "nearest rank".to_owned(),
            clock: "virtual".to_owned(),
            host: None,
            imported_from: None,
        },
        warmup: Vec::new(),
        samples,
        end: Some(RunEnd { reason, sent, at, health: Health::default() }),
    }
}

/// A run whose `ok` requests have these TTFTs in milliseconds, and a TPOT of 10 ms.
pub(crate) fn run_of(spec: &GateSpec, ttfts: &[f64]) -> Run {
    let samples = (0..).zip(ttfts).map(|(index, ttft)| ok(index, *ttft, 10.0)).collect();
    run(spec, samples, EndReason::Completed)
}

/// `n` TTFTs of 100 ms, except 900 ms at these places.
pub(crate) fn slow_at(n: usize, slow: &[usize]) -> Vec<f64> {
    (0..n).map(|place| if slow.contains(&place) { 900.0 } else { 100.0 }).collect()
}

/// A draw of the lognormal distribution with this median and sigma.
pub(crate) fn lognormal(rng: &mut ChaCha8Rng, median: f64, sigma: f64) -> f64 {
    let (first, second): (f64, f64) = (rng.random(), rng.random());
    let normal = (-2.0 * (1.0 - first).ln()).sqrt() * (std::f64::consts::TAU * second).cos();
    median * (sigma * normal).exp()
}
