//! Gates, samples and runs for the tests.

use gate_model::{
    Against, Arm, BASELINE_SCHEMA, Baseline, BaselineKey, Bound, Check, CheckVerdict, Decision, EndReason, Endpoint,
    GateSpec, Importance, Iterations, Nanos, Op, Origin, Outcome, Plan, PlannedRequest, Prior, Quantity, Referee,
    Relative, Run, RunEnd, RunHeader, Sample, Section, Slo, Status, Target, Unit, Usage, Verdict,
};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

/// The time between two arrivals.
pub(crate) const SPACING: Nanos = Nanos::from_millis(500);

/// When every run here started.
pub(crate) const STARTED: &str = "2026-01-01T00:00:00Z";

/// A check as written: metric, operator and bound with blanks between.
pub(crate) fn check(text: &str, importance: Importance) -> Check {
    let parts: Vec<&str> = text.splitn(3, ' ').collect();
    let [metric, op, bound] = parts[..] else { panic!("{text}") };
    let ops = [Op::Less, Op::AtMost, Op::Greater, Op::AtLeast, Op::Equal];
    Check {
        scenario: 0,
        metric: metric.parse().unwrap(),
        op: ops.into_iter().find(|one| one.symbol() == op).unwrap(),
        bound: read_bound(bound),
        bound_text: bound.to_owned(),
        importance,
        origin: Origin::Implied,
        decide: None,
        confidence: Check::CONFIDENCE,
        waive: None,
    }
}

/// `800ms`, `baseline + 10% or 20ms`, `reference - 2pp`, `40% of cold`.
fn read_bound(text: &str) -> Bound {
    if let Some((share, scenario)) = text.split_once(" of ") {
        let share = share.parse::<Quantity>().unwrap().value;
        return Bound::ShareOf { share, scenario: scenario.to_owned() };
    }
    let parts: Vec<&str> = text.split(' ').collect();
    let to = match parts[0] {
        "baseline" => Against::Baseline,
        "reference" => Against::Reference,
        _ => return Bound::Absolute(text.parse().unwrap()),
    };
    let mut relative = Relative { to, change: None, step: None };
    let sign = if parts.get(1) == Some(&"-") { -1.0 } else { 1.0 };
    for part in parts.iter().skip(2).filter(|part| **part != "or") {
        if let Some(share) = part.strip_suffix("pp") {
            relative.step = Some(Quantity::share(sign * share.parse::<f64>().unwrap() / 100.0));
            continue;
        }
        let quantity: Quantity = part.parse().unwrap();
        if quantity.unit == Unit::Share {
            relative.change = Some(sign * quantity.value);
        } else {
            relative.step = Some(Quantity { value: sign * quantity.value, ..quantity });
        }
    }
    Bound::Relative(relative)
}

/// A gate judged at 30, 50 and 100 requests.
pub(crate) fn gate(require: &[&str], prefer: &[&str]) -> GateSpec {
    let checks = require.iter().map(|text| check(text, Importance::Required));
    let checks = checks.chain(prefer.iter().map(|text| check(text, Importance::Preferred))).collect();
    GateSpec { checks, ..GateSpec::new("chat", Endpoint::Sim(Box::default())) }
}

/// A request as planned: 100 tokens in, 50 out.
fn planned(index: u32) -> PlannedRequest {
    let at = Nanos(SPACING.0 * i64::from(index));
    PlannedRequest { index, at, input_tokens: 100, output_tokens: 50, ..PlannedRequest::default() }
}

/// An `ok` request with these times in milliseconds, 50 output tokens in 50 events.
pub(crate) fn ok(index: u32, ttft: f64, tpot: f64) -> Sample {
    let planned = planned(index);
    let after = |millis: f64| Some(planned.at + Nanos::from_secs_f64(millis / 1e3));
    Sample {
        start: Some(planned.at),
        sent: Some(planned.at),
        headers: after(ttft),
        first_event: after(ttft),
        first_token: after(ttft),
        first_answer: after(ttft),
        last_token: after(ttft + 49.0 * tpot),
        end: after(ttft + 49.0 * tpot),
        outcome: Outcome::Ok,
        status: Some(200),
        finish_reason: Some("length".to_owned()),
        usage: Some(Usage { input: Some(100), output: Some(50), ..Usage::default() }),
        events: 52,
        content_events: 50,
        body_bytes: 5000,
        longest_gap: after(tpot).map(|at| at - planned.at),
        ..Sample::unsent(&planned)
    }
}

/// An `ok` request with a TTFT of 100 ms and these gaps between its events in milliseconds, one token each.
pub(crate) fn streamed(index: u32, gaps: &[f64]) -> Sample {
    let mut at = planned(index).at + Nanos::from_millis(100);
    let mut times = vec![at];
    for gap in gaps {
        at = at + Nanos::from_secs_f64(gap / 1e3);
        times.push(at);
    }
    let tokens = times.len() as u32;
    Sample {
        last_token: Some(at),
        end: Some(at),
        usage: Some(Usage { input: Some(100), output: Some(u64::from(tokens)), ..Usage::default() }),
        events: tokens + 2,
        content_events: tokens,
        token_times: times,
        ..ok(index, 100.0, 10.0)
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
    let planned = planned(index);
    let end = Some(planned.at + Nanos::from_millis(10));
    Sample {
        start: Some(planned.at),
        sent: Some(planned.at),
        headers: end,
        end,
        outcome,
        status,
        error: Some(format!("it failed: {}", outcome.name())),
        ..Sample::unsent(&planned)
    }
}

/// The verdict on a run that nothing was measured before.
pub(crate) fn judge(run: &Run) -> Verdict {
    gate_judge::judge(run, &Prior::default())
}

/// The verdict on one check alone, judged once over all these requests.
pub(crate) fn alone(text: &str, samples: Vec<Sample>) -> CheckVerdict {
    let mut spec = gate(&[text], &[]);
    spec.load.iterations = Iterations::Fixed(samples.len() as u32);
    spec.slo = Slo { ttft: Some(Nanos::from_millis(800)), ..Slo::default() };
    judge(&run(&spec, samples, EndReason::Completed)).checks.remove(0)
}

/// A run of a gate over its looks that ended like this. One that completed was stopped by the referee where it says
/// stop, as `gate check` does: the samples after that are open streams that finished.
pub(crate) fn run(spec: &GateSpec, samples: Vec<Sample>, reason: EndReason) -> Run {
    let looks = spec.load.iterations.looks();
    let reason = if reason == EndReason::Completed { stopped(spec, &looks, &samples) } else { reason };
    let last = looks.last().copied().unwrap_or(0) * spec.arms();
    let sent = samples.len() as u32;
    let at = samples.iter().filter_map(|sample| sample.end).max().unwrap_or(Nanos::ZERO);
    let plan = Plan::new(spec, looks, (0..last).map(planned).collect());
    let header = RunHeader::new(spec.clone(), &plan, "0.1.0", "r", STARTED);
    Run::new(header, Vec::new(), samples, Some(RunEnd::new(reason, sent, at)))
}

/// A run side by side that ended like this: pairs of these samples, their order within the pair in turn.
pub(crate) fn side_by_side(spec: &GateSpec, target: Vec<Sample>, reference: Vec<Sample>, reason: EndReason) -> Run {
    let samples = (0_u32..).zip(target.into_iter().zip(reference)).flat_map(|(pair, (target, reference))| {
        let first = pair % 2;
        let target = Sample { index: 2 * pair + first, arm: Arm::Target, pair: Some(pair), ..target };
        let reference = Sample { index: 2 * pair + 1 - first, arm: Arm::Reference, pair: Some(pair), ..reference };
        [target, reference]
    });
    let mut samples: Vec<Sample> = samples.collect();
    samples.sort_by_key(|sample| sample.index);
    let mut spec = spec.clone();
    spec.reference.get_or_insert_with(|| Target::new(Endpoint::Sim(Box::default())));
    run(&spec, samples, reason)
}

/// The one section of a gate without scenarios that is judged at these looks.
pub(crate) fn section(looks: &[u32]) -> Section {
    let spec = gate(&[], &[]);
    Section::of_plan(&spec, &Plan::new(&spec, looks.to_vec(), Vec::new()))
}

/// A run kept as a baseline.
pub(crate) fn kept(run: Run) -> Baseline {
    let (key, saved) = (BaselineKey::default(), STARTED.to_owned());
    Baseline { schema: BASELINE_SCHEMA, key, saved, status: Status::Passed, run }
}

/// Stored runs that had these TTFTs in milliseconds, newest first.
pub(crate) fn prior_of(ttfts: &[Vec<f64>]) -> Prior {
    let run = |ttfts: &Vec<f64>| {
        let mut spec = gate(&["ttft.p95 < 800ms"], &[]);
        spec.load.iterations = Iterations::Fixed(ttfts.len() as u32);
        kept(run_of(&spec, ttfts))
    };
    Prior { baselines: ttfts.iter().map(run).collect(), ..Prior::default() }
}

/// Where the referee stops a run that has these samples in the end.
fn stopped(spec: &GateSpec, looks: &[u32], samples: &[Sample]) -> EndReason {
    let mut referee = gate_judge::referee(spec, &section(looks), STARTED, &Prior::default());
    let until = |look: u32| (look * spec.arms()) as usize;
    let reached = looks.iter().filter(|look| samples.len() >= until(**look));
    let stop = reached.into_iter().find(|look| referee.look(&samples[..until(**look)]) == Decision::Stop);
    stop.map_or(EndReason::Completed, |look| EndReason::StoppedAtLook(*look))
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
