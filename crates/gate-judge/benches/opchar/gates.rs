//! Gates, and what happens to them: samples, runs, the looks as the referee takes them, the verdict.

use gate_judge::{judge, referee};
use gate_model::{
    Against, Arm, BASELINE_SCHEMA, Baseline, BaselineKey, Bound, Check, Decision, EndReason, Endpoint, GateSpec,
    Importance, Iterations, Nanos, Op, Origin, Outcome, Plan, PlannedRequest, Prior, Quantity, Referee, Relative, Run,
    RunEnd, RunHeader, Sample, Section, Status, Target, Usage, Verdict,
};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Exp1, StandardNormal};

use crate::models::{Latency, Model, TOKENS};

/// The time between two requests of an arm.
const SPACING: i64 = 500;
const STARTED: &str = "2026-01-01T00:00:00Z";
/// The share of requests that fail.
pub(crate) const ERRORS: f64 = 0.005;
/// The allowed change of every relative check here.
pub(crate) const TOLERANCE: f64 = 0.1;

/// The metrics of a gate of eight checks.
pub(crate) const EIGHT: [&str; 8] =
    ["ttft.p50", "ttft.p90", "ttft.p95", "tpot.p50", "tpot.p90", "tpot.p95", "e2e.p50", "e2e.p95"];

/// A required check `METRIC < bound`; `None` where there is no such metric.
pub(crate) fn check(metric: &str, bound: Bound) -> Option<Check> {
    Some(Check {
        scenario: 0,
        metric: metric.parse().ok()?,
        op: Op::Less,
        bound,
        bound_text: String::new(),
        importance: Importance::Required,
        origin: Origin::Implied,
        decide: None,
        confidence: Check::CONFIDENCE,
        waive: None,
    })
}

/// A required check `METRIC >= bound`.
pub(crate) fn at_least(metric: &str, bound: Bound) -> Option<Check> {
    Some(Check { op: Op::AtLeast, ..check(metric, bound)? })
}

/// A fixed limit in milliseconds.
pub(crate) fn millis(limit: f64) -> Bound {
    Bound::Absolute(Quantity::time(Nanos::from_secs_f64(limit / 1e3)))
}

/// `… + 10%`.
pub(crate) fn relative(to: Against) -> Bound {
    Bound::Relative(Relative { to, change: Some(TOLERANCE), step: None })
}

/// `baseline - 10%`.
pub(crate) fn less_than_stored() -> Bound {
    Bound::Relative(Relative { to: Against::Baseline, change: Some(-TOLERANCE), step: None })
}

/// `baseline - 5pp`.
pub(crate) fn points_less_than_stored() -> Bound {
    Bound::Relative(Relative { to: Against::Baseline, change: None, step: Some(Quantity::share(-0.05)) })
}

/// A gate of these checks, and of the one on errors that every gate has.
pub(crate) fn gate(checks: impl IntoIterator<Item = Check>) -> GateSpec {
    let mut checks: Vec<Check> = checks.into_iter().collect();
    checks.extend(check("errors.rate", Bound::Absolute(Quantity::share(0.05))));
    let endpoint = || Endpoint::Sim(Box::default());
    let side_by_side = checks.iter().any(|one| one.bound.relative().is_some_and(|one| one.to == Against::Reference));
    let reference = side_by_side.then(|| Target::new(endpoint()));
    GateSpec { checks, reference, ..GateSpec::new("opchar", endpoint()) }
}

/// The same, judged once at so many requests of each arm.
pub(crate) fn once(n: u32, spec: GateSpec) -> GateSpec {
    let mut spec = spec;
    spec.load.iterations = Iterations::Fixed(n);
    spec
}

/// How many requests of each arm a gate may send.
pub(crate) fn most(spec: &GateSpec) -> usize {
    spec.load.iterations.looks().last().map_or(0, |last| *last as usize)
}

/// The requests of one arm in send order, each of which may fail.
pub(crate) fn requests(rng: &mut ChaCha8Rng, latencies: &[Latency]) -> Vec<Sample> {
    (0..).zip(latencies).map(|(index, latency)| sample(rng, planned(index), *latency)).collect()
}

/// The same at the arrivals of another seed: their gaps are exponential.
pub(crate) fn at_random(rng: &mut ChaCha8Rng, latencies: &[Latency]) -> Vec<Sample> {
    let mut at = Nanos::ZERO;
    let request = |(index, latency): (u32, &Latency)| {
        let due = PlannedRequest { at, ..planned(index) };
        let gap: f64 = Exp1.sample(rng);
        at = at + Nanos::from_secs_f64(gap * SPACING as f64 / 1e3);
        sample(rng, due, *latency)
    };
    (0..).zip(latencies).map(request).collect()
}

/// The requests of both arms in send order: in pairs, whose order is random.
pub(crate) fn pairs(rng: &mut ChaCha8Rng, target: &[Latency], reference: &[Latency]) -> Vec<Sample> {
    let mut samples = Vec::new();
    for (pair, (target, reference)) in (0..).zip(target.iter().zip(reference)) {
        let mut halves = [(Arm::Target, *target), (Arm::Reference, *reference)];
        if rng.random_bool(0.5) {
            halves.reverse();
        }
        for (second, (arm, latency)) in (0..).zip(halves) {
            let planned = PlannedRequest { index: 2 * pair + second, arm, pair: Some(pair), ..planned(pair) };
            samples.push(sample(rng, planned, latency));
        }
    }
    samples
}

fn planned(index: u32) -> PlannedRequest {
    let at = Nanos::from_millis(SPACING * i64::from(index));
    PlannedRequest { index, at, input_tokens: 500, output_tokens: TOKENS, ..PlannedRequest::default() }
}

fn sample(rng: &mut ChaCha8Rng, planned: PlannedRequest, latency: Latency) -> Sample {
    let after = |millis: f64| Some(planned.at + Nanos::from_secs_f64(millis / 1e3));
    let sent = Sample { start: Some(planned.at), sent: Some(planned.at), ..Sample::unsent(&planned) };
    if rng.random_bool(ERRORS) {
        let end = after(10.0);
        return Sample { headers: end, end, outcome: Outcome::Http5xx, status: Some(500), ..sent };
    }
    let (first, last) = (after(latency.ttft), after(latency.e2e()));
    Sample {
        headers: first,
        first_event: first,
        first_token: first,
        first_answer: first,
        last_token: last,
        end: last,
        outcome: Outcome::Ok,
        status: Some(200),
        usage: Some(Usage { input: Some(500), output: Some(u64::from(TOKENS)), ..Usage::default() }),
        events: TOKENS,
        content_events: TOKENS,
        ..sent
    }
}

/// A run that has these samples, and ended for this reason.
pub(crate) fn run(spec: &GateSpec, samples: Vec<Sample>, reason: EndReason) -> Run {
    let looks = spec.load.iterations.looks();
    let last = looks.last().copied().unwrap_or(0) * spec.arms();
    let plan = Plan::new(spec, looks, (0..last).map(planned).collect());
    let sent = u32::try_from(samples.len()).unwrap_or(u32::MAX);
    let end = RunEnd::new(reason, sent, samples.iter().filter_map(|sample| sample.end).max().unwrap_or(Nanos::ZERO));
    let header = RunHeader::new(spec.clone(), &plan, "0.0.0", "opchar", STARTED);
    Run::new(header, Vec::new(), samples, Some(end))
}

/// The whole procedure: the load goes on for as long as the referee says, and what it had then is judged.
pub(crate) fn proceed(spec: &GateSpec, mut samples: Vec<Sample>, prior: &Prior) -> Verdict {
    let looks = spec.load.iterations.looks();
    let section = Section::of_plan(spec, &Plan::new(spec, looks.clone(), Vec::new()));
    let mut referee = referee(spec, &section, STARTED, prior);
    let mut reason = EndReason::Completed;
    for look in looks {
        let scored = (look * spec.arms()) as usize;
        if referee.look(samples.get(..scored).unwrap_or_default()) == Decision::Stop {
            samples.truncate(scored);
            reason = EndReason::StoppedAtLook(look);
            break;
        }
    }
    judge(&run(spec, samples, reason), prior)
}

/// So many stored runs of a gate, which differ by noise of their own.
pub(crate) fn stored(rng: &mut ChaCha8Rng, spec: &GateSpec, model: Model, runs: usize, noise: f64) -> Prior {
    stored_as(rng, spec, runs, |rng, n| {
        let mood = mood(rng, noise);
        let latencies: Vec<Latency> = model.draw(rng, n).into_iter().map(|one| one.slower(mood)).collect();
        requests(rng, &latencies)
    })
}

/// The same of requests that are drawn like this. Each run has those of the first look, where healthy ones stop.
pub(crate) fn stored_as(
    rng: &mut ChaCha8Rng,
    spec: &GateSpec,
    runs: usize,
    draw: impl Fn(&mut ChaCha8Rng, usize) -> Vec<Sample>,
) -> Prior {
    let n = spec.load.iterations.looks().first().copied().unwrap_or(0);
    let spec = once(n, spec.clone());
    let baselines = (0..runs).map(|_| Baseline {
        schema: BASELINE_SCHEMA,
        key: BaselineKey::default(),
        saved: STARTED.to_owned(),
        status: Status::Passed,
        run: run(&spec, draw(rng, most(&spec)), EndReason::Completed),
    });
    Prior { baselines: baselines.collect(), ..Prior::default() }
}

/// What a run is slower by as a whole: lognormal noise, of TTFT and of TPOT on their own.
pub(crate) fn mood(rng: &mut ChaCha8Rng, noise: f64) -> Latency {
    let mut factor = || {
        let z: f64 = StandardNormal.sample(rng);
        (noise * z).exp()
    };
    Latency { ttft: factor(), tpot: factor() }
}
