//! Nothing that a journal can hold panics, and every check has an outcome.

use gate_judge::{judge, plan_notes, power, referee};
use gate_model::{
    Arm, CheckOutcome, Decide, EndReason, Endpoint, GateSpec, Health, Iterations, Nanos, Noise, Outcome, Pace, Prior,
    Referee, Sample, Side, Slo, Stamping, Target, TokenPolicy, Usage, Waiver,
};
use proptest::prelude::*;

use crate::support::{STARTED, failed, gate, kept, ok, prior_of, run, section, side_by_side};

fn point() -> impl Strategy<Value = Option<Nanos>> {
    proptest::option::weighted(0.8, prop_oneof![(-10_000_000_000_i64..10_000_000_000).boxed(), any::<i64>().boxed()])
        .prop_map(|point| point.map(Nanos))
}

prop_compose! {
    fn sample()(
        points in proptest::collection::vec(point(), 8),
        index in 0_u32..60,
        (beside, pair) in (any::<bool>(), proptest::option::weighted(0.9, 0_u32..40)),
        scenario in 0_u16..2,
        outcome in 0_usize..Outcome::ALL.len(),
        good in any::<bool>(),
        status in proptest::option::of(any::<u16>()),
        output in proptest::option::of(prop_oneof![0_u64..3, any::<u64>()]),
        content_events in prop_oneof![0_u32..10, any::<u32>()],
        token_times in proptest::collection::vec(any::<i64>().prop_map(Nanos), 0..10),
    ) -> Sample {
        Sample {
            scenario,
            arm: if beside { Arm::Reference } else { Arm::Target },
            pair,
            cap_wait: points[2],
            intended: points[0].unwrap_or_default(),
            start: points[1],
            sent: points[2],
            first_token: points[3],
            first_answer: points[4],
            last_token: points[5],
            end: points[6],
            longest_gap: points[7],
            outcome: if good { Outcome::Ok } else { Outcome::ALL[outcome] },
            status,
            usage: output.map(|output| Usage { output: Some(output), input: Some(output), ..Usage::default() }),
            content_events,
            token_times,
            ..ok(index, 100.0, 10.0)
        }
    }
}

fn reason() -> impl Strategy<Value = Option<EndReason>> {
    prop_oneof![
        Just(None),
        Just(Some(EndReason::Completed)),
        (0_u32..80).prop_map(|at| Some(EndReason::StoppedAtLook(at))),
        Just(Some(EndReason::Interrupted)),
        Just(Some(EndReason::RunTimeout)),
        Just(Some(EndReason::NotReady(String::new()))),
    ]
}

const CHECKS: [&str; 41] = [
    "ttft.p95 < 800ms",
    "ttft.p50.all <= 1s",
    "tpot.p99.999 > 0ms",
    "output_tokens.p0.001 >= 1",
    "e2e.max < 10s",
    "connect.min > 0s",
    "stall.stddev < 1s",
    "send_lag.p99 < 5ms",
    "errors.rate < 5%",
    "errors.5xx.count == 0",
    "attainment >= 95%",
    "attainment <= 0%",
    "goodput > 1/s",
    "achieved_rate > 1/s",
    "e2e.mean < 1s",
    "output_tokens.mean >= 10",
    "itl.p95 < 50ms",
    "icl.max < 1s",
    "tpot.effective < 50ms",
    "ttft.p50 < reference + 10%",
    "ttft.mean < reference + 10% or 20ms",
    "e2e.p95 < reference + 10%",
    "output_tokens.p10 > reference - 10%",
    "tpot.p99.999 <= reference - 120%",
    "stall.max < reference + 20ms",
    "ttft.p50.all < reference + 10%",
    "errors.rate <= reference + 2pp",
    "attainment >= reference - 2pp",
    "errors.rate.count == reference",
    "goodput > reference - 10%",
    "ttft.p50 < baseline + 10%",
    "cap_wait.p50 <= baseline",
    "e2e.p95 < baseline + 10% or 20ms",
    "output_tokens.p95 > baseline - 10%",
    "stall.stddev < baseline + 10%",
    "throughput.requests > baseline - 10%",
    "errors.5xx < baseline + 2pp",
    "client.cpu < baseline + 2pp",
    "ttft.p50 < 40% of cold",
    "e2e.mean < 40% of cold",
    "icl.p95 > 40% of nowhere",
];

/// What was measured before: runs of such samples, as ill as the judged one.
fn prior() -> impl Strategy<Value = Prior> {
    let runs = proptest::collection::vec(proptest::collection::vec(sample(), 0..40), 0..4);
    let tau = proptest::option::of(prop_oneof![Just(0.1), any::<f64>()]);
    (runs, tau, any::<bool>()).prop_map(|(runs, tau, beside)| {
        let spec = if beside { with_reference(gate(&[], &[])) } else { gate(&[], &[]) };
        let run = |samples: Vec<Sample>| kept(run(&spec, samples, EndReason::RunTimeout));
        let baselines: Vec<_> = runs.into_iter().map(run).collect();
        let history = baselines.iter().cycle().take(baselines.len() * 4).cloned().collect();
        let noise = tau.map(|tau| Noise { tau: [("ttft.p50".to_owned(), tau)].into(), ..Noise::default() });
        Prior { baselines, history, noise, ..Prior::default() }
    })
}

fn with_reference(mut spec: GateSpec) -> GateSpec {
    spec.reference = Some(Target::new(Endpoint::Sim(Box::default())));
    spec
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn any_run_has_a_verdict(
        samples in proptest::collection::vec(sample(), 0..70),
        reason in reason(),
        looks in proptest::collection::vec(0_u32..70, 0..4),
        slo in proptest::option::of(any::<i64>()),
        cpu in proptest::option::of(0.0..2.0),
        prefer in 0_usize..CHECKS.len(),
        confidence in prop_oneof![Just(0.95), Just(1.0), any::<f64>()],
        until in proptest::option::of("2025-1[12]-[0-9]{2}|2026-01-01|.{0,12}"),
        prior in prior(),
        beside in any::<bool>(),
    ) {
        let (required, preferred) = CHECKS.split_at(prefer);
        let mut spec = gate(required, preferred);
        spec.load.iterations = Iterations::Fixed(30);
        spec.slo = Slo { ttft: slo.map(Nanos), ..Slo::default() };
        if prefer.is_multiple_of(3) {
            spec.load.pace = Pace::Closed { concurrency: 4 };
            spec.prompts.tokens = TokenPolicy::AcceptEstimate;
        }
        for check in spec.checks.iter_mut().step_by(5) {
            check.scenario = 1;
        }
        for (position, check) in spec.checks.iter_mut().enumerate() {
            check.confidence = confidence;
            check.decide = [None, Some(Decide::Point), Some(Decide::Evidence)][(position + prefer) % 3];
            check.waive = until.clone().filter(|_| position % 4 == 0).map(|until| Waiver { until, reason: String::new() });
        }
        if beside {
            spec = with_reference(spec);
        }
        let mut run = run(&spec, samples.clone(), EndReason::Completed);
        run.header.looks = looks.clone();
        run.header.scenarios = vec!["chat".to_owned(), "cold".to_owned()];
        run.warmup = samples.iter().take(2).cloned().collect();
        match reason {
            Some(reason) => {
                let end = run.end.as_mut().unwrap();
                end.reason = reason;
                end.health = Health {
                    clock: [Stamping::User, Stamping::Kernel][prefer % 2],
                    coalesced_share: cpu,
                    cpu_share: cpu,
                    loop_delay_p95: slo.map(Nanos),
                    read_delay_p95: slo.map(Nanos),
                };
            }
            None => run.end = None,
        }
        let verdict = judge(&run, &prior);
        prop_assert_eq!(verdict.checks.len(), CHECKS.len());
        prop_assert!(verdict.run.judged as usize <= samples.len());
        let text = serde_json::to_string(&verdict).unwrap();
        // Of what is no number JSON keeps nothing.
        prop_assert_eq!(serde_json::from_str::<gate_model::Verdict>(&text).unwrap(), verdict);
        prop_assert_eq!(power(&spec, &[section(&looks)]).len(), CHECKS.len());
        let _ = plan_notes(&spec, &[section(&looks)]);
        let mut referee = referee(&spec, &section(&looks), STARTED, &prior);
        for end in (0..samples.len()).step_by(7) {
            let _ = referee.look(&samples[..end]);
        }
    }
}

#[test]
fn no_data_never_passes() {
    let ill = |index| failed(index, Outcome::Http5xx);
    let without: [fn(u32) -> Sample; 3] = [
        ill,
        |index| Sample {
            first_token: None,
            first_answer: None,
            last_token: None,
            longest_gap: None,
            usage: None,
            content_events: 0,
            end: None,
            ..ok(index, 1.0, 1.0)
        },
        |index| Sample { outcome: Outcome::Cancelled, ..ok(index, 1.0, 1.0) },
    ];
    let prior = prior_of(&[vec![100.0; 50], vec![110.0; 50]]);
    let passes = |outcome: &CheckOutcome| {
        matches!(outcome, CheckOutcome::Met | CheckOutcome::Inconclusive { side: Side::Within | Side::Blind })
    };
    for text in CHECKS.iter().filter(|text| text.contains("reference") || text.contains("baseline")) {
        let mut spec = gate(&[text], &[]);
        spec.load.iterations = Iterations::Fixed(50);
        spec.slo.ttft = Some(Nanos::from_millis(800));
        for (place, empty) in without.iter().enumerate() {
            // Tokens that are not there, and failures, are what some of them count.
            let counts = text.starts_with("errors") || text.starts_with("goodput") || text.starts_with("attainment");
            let is_once = text.starts_with("throughput") || text.starts_with("client");
            if place < 2 && (counts || is_once) {
                continue;
            }
            let samples = || (0..50).map(empty).collect::<Vec<_>>();
            let good = || (0..50).map(|index| ok(index, 100.0, 10.0)).collect::<Vec<_>>();
            for (target, reference) in [(samples(), samples()), (samples(), good()), (good(), samples())] {
                if text.contains("baseline") && target == good() {
                    continue;
                }
                let run = side_by_side(&spec, target, reference, EndReason::Completed);
                for prior in [&prior, &Prior::default()] {
                    let outcome = judge(&run, prior).checks.remove(0).outcome;
                    assert!(!passes(&outcome), "{text} with nothing {place}: {outcome:?}");
                }
            }
        }
    }
}
