//! The sending side: its clock, its health, and the loop it sends in.

use gate_judge::{judge, plan_notes};
use gate_model::{
    Cause, CheckOutcome, Clock, EndReason, Finding, Health, Host, HttpVersion, Iterations, Nanos, Pace, PerSecond,
    Reached, Run, Sample, Stamping, Verdict,
};

use crate::support::{gate, ok, run};

/// A run of 60 requests with a TTFT of 900 ms, where 300 ms went to each step before it, under this health.
fn measured(checks: &[&str], health: Health) -> Run {
    let steps = |index: u32| {
        let sample = ok(index, 900.0, 10.0);
        let step = Some(Nanos::from_millis(300));
        Sample { dns: step, connect: step, tls: step, cap_wait: step, writing: sample.start, ..sample }
    };
    let mut spec = gate(checks, &[]);
    spec.load.iterations = Iterations::Fixed(60);
    let mut run = run(&spec, (0..60).map(steps).collect(), EndReason::Completed);
    run.end.as_mut().unwrap().health = health;
    run
}

fn late_loop(clock: Stamping, coalesced_share: Option<f64>) -> Health {
    let loop_delay_p95 = Some(Nanos::from_millis(50));
    Health { clock, coalesced_share, loop_delay_p95, ..Health::default() }
}

fn outcomes(verdict: &Verdict) -> Vec<CheckOutcome> {
    verdict.checks.iter().map(|one| one.outcome.clone()).collect()
}

fn delayed(limit: i64) -> Cause {
    Cause::LoopDelay { p95: Nanos::from_millis(50), limit: Nanos::from_millis(limit) }
}

#[test]
fn a_late_loop_falsifies_no_stamp_of_the_kernel() {
    let outcome = |health: Health| outcomes(&judge(&measured(&["ttft.p95 < 800ms"], health))).remove(0);
    let lost = CheckOutcome::CouldNotMeasure { cause: delayed(40) };
    assert_eq!(outcome(late_loop(Stamping::User, None)), lost);
    assert_eq!(outcome(late_loop(Stamping::Kernel, None)), CheckOutcome::Violated);
    // Until too many events have the stamp of later ones.
    assert_eq!(outcome(late_loop(Stamping::Kernel, Some(0.05))), CheckOutcome::Violated);
    assert_eq!(outcome(late_loop(Stamping::Kernel, Some(0.06))), lost);
    // Where the CPU is used up, it is no matter which clock there is.
    let busy = Health { cpu_share: Some(0.95), clock: Stamping::Kernel, ..Health::default() };
    assert_eq!(outcome(busy), CheckOutcome::CouldNotMeasure { cause: Cause::ClientCpu { share: 0.95 } });
}

#[test]
fn a_late_loop_makes_the_clients_own_steps_look_slow() {
    let checks = ["dns.p95 < 200ms", "connect.p95 < 200ms", "tls.p95 < 200ms", "headers.p95 < 200ms"];
    let verdict = judge(&measured(&checks, late_loop(Stamping::Kernel, None)));
    let lost = CheckOutcome::CouldNotMeasure { cause: delayed(10) };
    assert_eq!(outcomes(&verdict), [lost.clone(), lost.clone(), lost, CheckOutcome::Violated]);
    assert!(!verdict.findings.iter().any(|one| matches!(one, Finding::ClientSlow(_))));
}

#[test]
fn many_coalesced_events_are_said_once() {
    let findings = |share: f64, tpot: f64| {
        let health = Health { coalesced_share: Some(share), ..Health::default() };
        let mut run = measured(&["ttft.p95 < 1s"], health);
        run.samples = (0..60).map(|index| ok(index, 900.0, tpot)).collect();
        judge(&run).findings
    };
    assert!(findings(0.06, 10.0).contains(&Finding::Coalesced { share: 0.06 }));
    assert!(!findings(0.05, 10.0).iter().any(|one| matches!(one, Finding::Coalesced { .. })));
    // A buffering proxy is all of it.
    let buffered = findings(0.98, 0.01);
    assert!(buffered.contains(&Finding::Buffered { share: 1.0 }));
    assert!(!buffered.iter().any(|one| matches!(one, Finding::Coalesced { .. })));
}

#[test]
fn a_clock_that_was_not_there_is_said() {
    let said = |clock: Clock, stamping: Stamping, system: &str| {
        let mut run = measured(&["ttft.p95 < 1s"], Health { clock: stamping, ..Health::default() });
        run.header.spec.load.clock = clock;
        run.header.host = Some(Host { system: system.to_owned(), cores: 2 });
        judge(&run).findings.contains(&Finding::NoKernelClock)
    };
    assert!(said(Clock::Auto, Stamping::User, "linux-x86_64"));
    assert!(!said(Clock::Auto, Stamping::Kernel, "linux-x86_64"));
    assert!(!said(Clock::User, Stamping::User, "linux-x86_64"));
    assert!(!said(Clock::Auto, Stamping::User, "macos-aarch64"));
}

#[test]
fn a_closed_loop_has_no_planned_rate() {
    let closed = |pace: Pace| {
        let mut run = measured(&["ttft.p95 < 1s", "errors.rate < 5%"], Health::default());
        run.header.spec.load.pace = pace;
        // Each is taken up later and later after the plan's own time.
        for sample in &mut run.samples {
            sample.start = Some(sample.intended + Nanos::from_millis(40 * i64::from(sample.index)));
        }
        judge(&run)
    };
    let verdict = closed(Pace::Open { rate: PerSecond(2.0), cap: Some(4) });
    assert!(matches!(verdict.checks[0].outcome, CheckOutcome::CouldNotMeasure { cause: Cause::RateShort { .. } }));
    assert!(verdict.run.rates.is_some());
    let verdict = closed(Pace::Closed { concurrency: 4 });
    assert!(!matches!(verdict.checks[0].outcome, CheckOutcome::CouldNotMeasure { cause: Cause::RateShort { .. } }));
    assert_eq!(verdict.run.rates, None);
}

#[test]
fn a_closed_loop_flatters_objectives() {
    let notes = |check: &str, pace: Pace| {
        let mut spec = gate(&[check], &[]);
        spec.load.pace = pace;
        plan_notes(&spec, &[100]).contains(&Finding::ClosedLoop)
    };
    let closed = Pace::Closed { concurrency: 4 };
    assert!(notes("attainment >= 95%", closed));
    assert!(notes("goodput >= 1/s", closed));
    assert!(!notes("ttft.p95 < 800ms", closed));
    assert!(!notes("attainment >= 95%", Pace::Open { rate: PerSecond(2.0), cap: Some(4) }));
}

#[test]
fn every_phase_that_requests_went_through_is_a_figure() {
    let mut run = measured(&["ttft.p95 < 1s"], Health::default());
    let reached = Reached { addresses: vec!["::1".to_owned()], proxy: None, http: HttpVersion::Http2 };
    run.end.as_mut().unwrap().reached = Some(reached.clone());
    let figures = |run: &Run| -> Vec<String> {
        let figures =
            judge(run).figures.into_iter().skip_while(|figure| figure.metric.to_string() != "output_tokens.p50");
        figures.skip(1).map(|figure| format!("{} {} {}", figure.metric, figure.value.unwrap(), figure.n)).collect()
    };
    assert_eq!(
        figures(&run),
        [
            "cap_wait.p50 300 ms 60",
            "cap_wait.p95 300 ms 60",
            "dns.p50 300 ms 60",
            "dns.p95 300 ms 60",
            "connect.p50 300 ms 60",
            "connect.p95 300 ms 60",
            "tls.p50 300 ms 60",
            "tls.p95 300 ms 60",
            "write.p50 0 ms 60",
            "write.p95 0 ms 60",
            "headers.p50 900 ms 60",
            "headers.p95 900 ms 60",
        ]
    );
    assert_eq!(judge(&run).run.reached, Some(reached));
    // Only one request opened a connection.
    for sample in run.samples.iter_mut().skip(1) {
        (sample.dns, sample.connect, sample.tls, sample.cap_wait, sample.writing) = (None, None, None, None, None);
    }
    run.samples[0].dns = None;
    let figures = figures(&run);
    assert_eq!(figures[2..4], ["connect.p50 300 ms 1", "connect.p95 300 ms 1"]);
    assert!(!figures.iter().any(|figure| figure.starts_with("dns")));
}
