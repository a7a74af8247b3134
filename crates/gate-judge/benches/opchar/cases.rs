//! The cases: which gate, which server, what is counted, and the goal.

use gate_judge::judge;
use gate_model::{
    Against, Bound, Check, CheckOutcome, CheckVerdict, EndReason, GateSpec, Nanos, Prior, Run, Side, Status, Verdict,
    Waiver,
};
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

use crate::gates::{
    EIGHT, ERRORS, TOLERANCE, at_least, at_random, check, gate, less_than_stored, millis, mood, most, once, pairs,
    points_less_than_stored, proceed, relative, requests, run, stored, stored_as,
};
use crate::models::{Latency, Model, Truth, UNCHANGED};

/// What must come out.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Goal {
    AtMost(f64),
    AtLeast(f64),
    Between(f64, f64),
    /// Shown, without a goal.
    Any,
}

impl Goal {
    pub(crate) fn holds(self, share: f64) -> bool {
        match self {
            Self::AtMost(most) => share <= most,
            Self::AtLeast(least) => share >= least,
            Self::Between(least, most) => (least..=most).contains(&share),
            Self::Any => true,
        }
    }
}

/// One repetition: for each thing that is counted, whether it came out.
pub(crate) type Repeat = Box<dyn Fn(&mut ChaCha8Rng) -> Vec<bool> + Sync>;

/// A case: repetitions of one thing.
pub(crate) struct Case {
    /// How it is asked for.
    pub(crate) id: &'static str,
    pub(crate) what: String,
    /// What is counted, and the goal of its share.
    pub(crate) counted: Vec<(&'static str, Goal)>,
    pub(crate) set_up: Box<dyn Fn() -> Option<Repeat> + Sync>,
}

pub(crate) fn all() -> Vec<Case> {
    let mut cases = Vec::new();
    for model in Model::INDEPENDENT {
        let warned = if model == Model::Lognormal { Goal::AtMost(0.05) } else { Goal::Any };
        cases.push(Case {
            counted: vec![("red", Goal::AtMost(0.005)), ("warned", warned)],
            ..case("healthy", format!("healthy at .8 of 8 limits, {}", model.name()), Goal::Any, move || {
                absolute(model, &EIGHT.map(|metric| (metric, 0.8)))
            })
        });
    }
    for model in [Model::Lognormal, Model::Gamma] {
        let what = format!("true P95 exactly at its limit, {}", model.name());
        cases.push(case("limit", what, Goal::Between(0.015, 0.05), move || absolute(model, &[("ttft.p95", 1.0)])));
    }
    cases.extend(regressions());
    cases.extend(side_by_side());
    cases.extend(against_stored());
    cases.extend(rates_and_shares());
    cases.extend(correlated());
    cases.push(Case {
        counted: vec![("turns another red", Goal::AtMost(0.0))],
        ..case("nested", "a check added, one waived, of up to 60".to_owned(), Goal::Any, nested)
    });
    cases
}

/// A case in which red gates are counted.
fn case(id: &'static str, what: String, goal: Goal, set_up: impl Fn() -> Option<Repeat> + Sync + 'static) -> Case {
    Case { id, what, counted: vec![("red", goal)], set_up: Box::new(set_up) }
}

fn regressions() -> Vec<Case> {
    let one = |metric: &'static str, over: f64| move || absolute(Model::Lognormal, &[(metric, over)]);
    let among = |slow: &'static str, over: f64| {
        move || {
            let limits = EIGHT.map(|metric| (metric, if metric == slow { over } else { 0.8 }));
            absolute(Model::Lognormal, &limits)
        }
    };
    let found = |what: &str| format!("{what} over its limit, lognormal with outliers");
    let mut cases = vec![
        case("p50", found("P50 30 %") + ", 1 check", Goal::AtLeast(0.97), one("ttft.p50", 1.3)),
        case("p50", found("P50 30 %") + ", 8 checks", Goal::AtLeast(0.93), among("ttft.p50", 1.3)),
        case("p95", found("P95 50 %") + ", 1 check", Goal::AtLeast(0.97), one("ttft.p95", 1.5)),
        case("p95", found("P95 50 %") + ", 8 checks", Goal::AtLeast(0.95), among("ttft.p95", 1.5)),
    ];
    for model in [Model::Gamma, Model::Weibull, Model::Bimodal] {
        let what = format!("P50 30 % over its limit, {}, 1 check", model.name());
        cases.push(case("p50", what, Goal::Any, move || absolute(model, &[("ttft.p50", 1.3)])));
    }
    cases
}

fn side_by_side() -> Vec<Case> {
    let tpot = Latency { tpot: 1.2, ..UNCHANGED };
    let ttft = Latency { ttft: 1.5, ..UNCHANGED };
    let at_limit = Latency { ttft: 1.0 + TOLERANCE, ..UNCHANGED };
    let lognormal = Model::Lognormal;
    vec![
        case("pairs", "side by side, 8 checks, 50 pairs: unchanged".into(), Goal::Any, move || {
            paired(lognormal, &EIGHT, 50, UNCHANGED)
        }),
        case("pairs", "side by side, 1 check, 50 pairs: TTFT +10 %, as allowed, P50".into(), Goal::Any, move || {
            paired(lognormal, &["ttft.p50"], 50, at_limit)
        }),
        case("pairs", "side by side, 1 check, 50 pairs: TTFT +10 %, as allowed, P95".into(), Goal::Any, move || {
            paired(lognormal, &["ttft.p95"], 50, at_limit)
        }),
        case("pairs", "side by side, 1 check, 50 pairs: TPOT +20 %".into(), Goal::AtLeast(0.95), move || {
            paired(lognormal, &["tpot.p50"], 50, tpot)
        }),
        case("pairs", "side by side, 1 check, 50 pairs: TTFT +50 %".into(), Goal::AtLeast(0.9), move || {
            paired(lognormal, &["ttft.p50"], 50, ttft)
        }),
        case("pairs", "side by side, 8 checks, 100 pairs: TPOT +20 %".into(), Goal::AtLeast(0.95), move || {
            paired(lognormal, &EIGHT, 100, tpot)
        }),
        case("pairs", "side by side, 8 checks, 100 pairs: TTFT +50 %".into(), Goal::AtLeast(0.9), move || {
            paired(lognormal, &EIGHT, 100, ttft)
        }),
    ]
}

fn against_stored() -> Vec<Case> {
    let lognormal = Model::Lognormal;
    let slower = |tpot: f64| Latency { tpot, ..UNCHANGED };
    let at_limit = Latency { ttft: 1.0 + TOLERANCE, ..UNCHANGED };
    vec![
        case("stored", "5 stored runs, noise 5 %, 1 check: unchanged".into(), Goal::AtMost(0.01), move || {
            with_stored(lognormal, &["tpot.p50"], UNCHANGED)
        }),
        case("stored", "5 stored runs, noise 5 %, 8 checks: unchanged".into(), Goal::Any, move || {
            with_stored(lognormal, &EIGHT, UNCHANGED)
        }),
        case("stored", "5 stored runs, noise 5 %, 1 check: TTFT +10 %, as allowed, P50".into(), Goal::Any, move || {
            with_stored(lognormal, &["ttft.p50"], at_limit)
        }),
        case("stored", "5 stored runs, noise 5 %, 1 check: TTFT +10 %, as allowed, P95".into(), Goal::Any, move || {
            with_stored(lognormal, &["ttft.p95"], at_limit)
        }),
        case("stored", "5 stored runs, noise 5 %, 1 check: TPOT +30 %".into(), Goal::AtLeast(0.8), move || {
            with_stored(lognormal, &["tpot.p50"], slower(1.3))
        }),
        case("stored", "5 stored runs, noise 5 %, 8 checks: TPOT +40 %".into(), Goal::AtLeast(0.75), move || {
            with_stored(lognormal, &EIGHT, slower(1.4))
        }),
    ]
}

/// What is compared with stored runs and goes by chance of its own: arrivals of another seed, and few bad requests.
fn rates_and_shares() -> Vec<Case> {
    let counted = || vec![("red", Goal::Any), ("warned", Goal::Any)];
    let throughput = |runs: usize, what: &str| Case {
        counted: counted(),
        ..case("rates", format!("{what}, noise 5 %, throughput, another seed each: unchanged"), Goal::Any, move || {
            throughput(runs)
        })
    };
    let attainment = "5 stored runs of 30, `attainment >= baseline - 5pp`, counted, true 98 %: unchanged";
    vec![
        throughput(1, "1 stored run of 30"),
        throughput(5, "5 stored runs of 30"),
        Case { counted: counted(), ..case("shares", attainment.into(), Goal::Any, || attained(0.98)) },
    ]
}

/// Requests that depend on one another, exactly at the limit, one check.
fn correlated() -> Vec<Case> {
    let model = Model::Correlated;
    let at_limit = Latency { ttft: 1.0 + TOLERANCE, tpot: 1.0 + TOLERANCE };
    vec![
        case("ar1", "AR(1) .5 exactly at the limit: P50".into(), Goal::AtMost(0.11), move || {
            absolute(model, &[("ttft.p50", 1.0)])
        }),
        case("ar1", "AR(1) .5 exactly at the limit: PAIR".into(), Goal::AtMost(0.11), move || {
            paired(model, &["ttft.p50"], 50, at_limit)
        }),
        case("ar1", "AR(1) .5 exactly at the limit: P95".into(), Goal::AtMost(0.07), move || {
            absolute(model, &[("ttft.p95", 1.0)])
        }),
        case("ar1", "AR(1) .5 exactly at the limit: STORED, TPOT".into(), Goal::AtMost(0.07), move || {
            with_stored(model, &["tpot.p50"], at_limit)
        }),
        case("ar1", "AR(1) .5 exactly at the limit: STORED, TTFT".into(), Goal::AtMost(0.07), move || {
            with_stored(model, &["ttft.p50"], at_limit)
        }),
    ]
}

fn is_red(verdict: &Verdict) -> bool {
    verdict.status == Status::Violated
}

/// Not red, but seen over a limit.
fn is_warned(verdict: &Verdict) -> bool {
    let over = |one: &CheckOutcome| matches!(one, CheckOutcome::Inconclusive { side: Side::Over });
    !is_red(verdict) && verdict.checks.iter().any(|one| over(&one.outcome))
}

fn counted(verdict: &Verdict) -> Vec<bool> {
    vec![is_red(verdict), is_warned(verdict)]
}

/// A gate with fixed limits, given as what is true by what is allowed, at 30, 50 and 100 requests.
fn absolute(model: Model, checks: &[(&str, f64)]) -> Option<Repeat> {
    let truth = Truth::of(model)?;
    let checks: Option<Vec<Check>> =
        checks.iter().map(|(metric, over)| check(metric, millis(truth.value(metric)? / over))).collect();
    let spec = gate(checks?);
    Some(Box::new(move |rng| {
        let latencies = model.draw(rng, most(&spec));
        counted(&proceed(&spec, requests(rng, &latencies), &Prior::default()))
    }))
}

fn relative_gate(metrics: &[&str], to: Against) -> Option<GateSpec> {
    let checks: Option<Vec<Check>> = metrics.iter().map(|metric| check(metric, relative(to))).collect();
    Some(gate(checks?))
}

/// A gate side by side, judged once: the reference as it is, the candidate slower.
fn paired(model: Model, metrics: &[&str], n: u32, slower: Latency) -> Option<Repeat> {
    let spec = once(n, relative_gate(metrics, Against::Reference)?);
    Some(Box::new(move |rng| {
        let target: Vec<Latency> = model.draw(rng, most(&spec)).into_iter().map(|one| one.slower(slower)).collect();
        let reference = model.draw(rng, most(&spec));
        counted(&proceed(&spec, pairs(rng, &target, &reference), &Prior::default()))
    }))
}

/// A gate against five stored runs, which all differ by 5 %, as does the run itself.
fn with_stored(model: Model, metrics: &[&str], slower: Latency) -> Option<Repeat> {
    let spec = relative_gate(metrics, Against::Baseline)?;
    Some(Box::new(move |rng| {
        let prior = stored(rng, &spec, model, 5, 0.05);
        let slower = mood(rng, 0.05).slower(slower);
        let latencies: Vec<Latency> = model.draw(rng, most(&spec)).into_iter().map(|one| one.slower(slower)).collect();
        counted(&proceed(&spec, requests(rng, &latencies), &prior))
    }))
}

/// A gate on throughput against stored runs; the arrivals of each run are of a seed of its own.
fn throughput(runs: usize) -> Option<Repeat> {
    let spec = gate([at_least("throughput.requests", less_than_stored())?]);
    Some(Box::new(move |rng| {
        let draw = |rng: &mut ChaCha8Rng, n: usize| {
            let mood = mood(rng, 0.05);
            let latencies: Vec<Latency> =
                Model::Lognormal.draw(rng, n).into_iter().map(|one| one.slower(mood)).collect();
            at_random(rng, &latencies)
        };
        let prior = stored_as(rng, &spec, runs, draw);
        let samples = draw(rng, most(&spec));
        counted(&proceed(&spec, samples, &prior))
    }))
}

/// A gate on attainment against five stored runs, where this share of the requests is good.
fn attained(good: f64) -> Option<Repeat> {
    let (fast, slow) = (Latency { ttft: 100.0, tpot: 10.0 }, Latency { ttft: 1000.0, tpot: 10.0 });
    let mut spec = gate([at_least("attainment", points_less_than_stored())?]);
    spec.slo.ttft = Some(Nanos::from_millis(500));
    Some(Box::new(move |rng| {
        let draw = |rng: &mut ChaCha8Rng, n: usize| {
            let is_fast = good / (1.0 - ERRORS);
            let latencies: Vec<Latency> = (0..n).map(|_| if rng.random_bool(is_fast) { fast } else { slow }).collect();
            requests(rng, &latencies)
        };
        let prior = stored_as(rng, &spec, 5, draw);
        let samples = draw(rng, most(&spec));
        counted(&proceed(&spec, samples, &prior))
    }))
}

/// A gate of up to 60 checks around their limits, the same with one more, and the same with one waived: whether any
/// other check is violated that was not.
fn nested() -> Option<Repeat> {
    let truth = Truth::of(Model::Lognormal)?;
    Some(Box::new(move |rng| {
        let random = |rng: &mut ChaCha8Rng| {
            let metric = EIGHT.get(rng.random_range(0..EIGHT.len())).copied().unwrap_or_default();
            let bound: Bound = match rng.random_range(0..3) {
                0 => relative(Against::Baseline),
                _ => millis(truth.value(metric).unwrap_or(0.0) / rng.random_range(0.7..1.4)),
            };
            check(metric, bound)
        };
        let count = rng.random_range(1..60);
        let checks: Vec<Check> = (0..=count).filter_map(|_| random(rng)).collect();
        let Some((added, checks)) = checks.split_last() else { return vec![true] };
        let spec = gate(checks.iter().cloned());
        let prior = stored(rng, &spec, Model::Lognormal, 5, 0.05);
        let slower = Latency { ttft: rng.random_range(0.9..1.4), tpot: rng.random_range(0.95..1.3) };
        let latencies: Vec<Latency> =
            Model::Lognormal.draw(rng, most(&spec)).into_iter().map(|one| one.slower(slower)).collect();
        let whole = run(&spec, requests(rng, &latencies), EndReason::Completed);
        let before = judge(&whole, &prior);

        let mut more = checks.to_vec();
        more.insert(rng.random_range(0..=checks.len()), added.clone());
        let mut waived = checks.to_vec();
        if let Some(one) = waived.get_mut(rng.random_range(0..checks.len())) {
            one.waive = Some(Waiver { until: "2099-01-01".to_owned(), reason: "to see what follows".to_owned() });
        }
        let turned = [more, waived].into_iter().any(|checks| newly_red(&whole, &before, checks, &prior));
        vec![turned]
    }))
}

/// Whether a check of the verdict that was not violated is so in a gate of these checks.
fn newly_red(run: &Run, before: &Verdict, checks: Vec<Check>, prior: &Prior) -> bool {
    let mut run = run.clone();
    run.header.spec = gate(checks);
    let after = judge(&run, prior);
    let is_violated = |one: &CheckVerdict| matches!(one.outcome, CheckOutcome::Violated);
    let was_calm = |check: &Check| before.checks.iter().any(|one| one.check == *check && !is_violated(one));
    let was_red = |check: &Check| before.checks.iter().any(|one| one.check == *check && is_violated(one));
    after.checks.iter().any(|one| is_violated(one) && was_calm(&one.check) && !was_red(&one.check))
}
