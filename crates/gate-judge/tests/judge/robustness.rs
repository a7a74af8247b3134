//! Nothing that a journal can hold panics, and every check has an outcome.

use gate_judge::{judge, plan_notes, power, referee};
use gate_model::{
    Decide, EndReason, Health, Iterations, Nanos, Outcome, Pace, Referee, Sample, Slo, Stamping, TokenPolicy, Usage,
    Waiver,
};
use proptest::prelude::*;

use crate::support::{STARTED, gate, ok, run};

fn point() -> impl Strategy<Value = Option<Nanos>> {
    proptest::option::weighted(0.8, prop_oneof![(-10_000_000_000_i64..10_000_000_000).boxed(), any::<i64>().boxed()])
        .prop_map(|point| point.map(Nanos))
}

prop_compose! {
    fn sample()(
        points in proptest::collection::vec(point(), 8),
        index in 0_u32..60,
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

const CHECKS: [&str; 19] = [
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
];

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
        let mut run = run(&spec, samples.clone(), EndReason::Completed);
        run.header.looks = looks.clone();
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
        let verdict = judge(&run);
        prop_assert_eq!(verdict.checks.len(), CHECKS.len());
        prop_assert!(verdict.run.judged as usize <= samples.len());
        let text = serde_json::to_string(&verdict).unwrap();
        prop_assert!(serde_json::from_str::<gate_model::Verdict>(&text).is_ok());
        prop_assert_eq!(power(&spec, &looks).len(), CHECKS.len());
        let _ = plan_notes(&spec, &looks);
        let mut referee = referee(&spec, &looks, STARTED);
        for end in (0..samples.len()).step_by(7) {
            let _ = referee.look(&samples[..end]);
        }
    }
}
