//! The sending side: its clock, its health, and the loop it sends in.

use gate_judge::plan_notes;
use gate_model::{
    Cause, CheckOutcome, Clock, EndReason, Finding, Health, Host, HttpVersion, Iterations, Nanos, Pace, PerSecond,
    Reached, Run, Sample, Stamping, Verdict,
};

use crate::support::{gate, judge, ok, run, section};

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
        let health = Health { clock: stamping, cpu_share: Some(0.1), ..Health::default() };
        let mut run = measured(&["ttft.p95 < 1s"], health);
        run.header.spec.load.clock = clock;
        run.header.host = Some(Host { system: system.to_owned(), cores: 2, ..Host::default() });
        judge(&run).findings.contains(&Finding::NoKernelClock)
    };
    assert!(said(Clock::Auto, Stamping::User, "linux-x86_64"));
    assert!(!said(Clock::Auto, Stamping::Kernel, "linux-x86_64"));
    assert!(!said(Clock::User, Stamping::User, "linux-x86_64"));
    assert!(!said(Clock::Auto, Stamping::User, "macos-aarch64"));
    // A journal that leaves the health out says nothing of the clock.
    let mut run = measured(&["ttft.p95 < 1s"], Health::default());
    run.header.host = Some(Host { system: "linux-x86_64".to_owned(), cores: 2, ..Host::default() });
    assert!(!judge(&run).findings.contains(&Finding::NoKernelClock));
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

/// 60 requests planned at 2 a second, of which one goes out every `every` milliseconds, taken up on time.
fn capped(every: i64) -> Run {
    let mut run = measured(&["ttft.p95 < 60s", "achieved_rate > 1.5/s"], Health::default());
    run.header.spec.load.pace = Pace::Open { rate: PerSecond(2.0), cap: Some(1) };
    for sample in &mut run.samples {
        let wait = Nanos::from_millis((every - 500).max(0) * i64::from(sample.index));
        let later = |at: Option<Nanos>| at.map(|at| at + wait);
        (sample.cap_wait, sample.sent, sample.end) = (Some(wait), later(sample.sent), later(sample.end));
        (sample.first_token, sample.last_token) = (later(sample.first_token), later(sample.last_token));
    }
    run
}

#[test]
fn the_rate_is_that_at_which_requests_go_out() {
    let verdict = judge(&capped(1_000));
    let (planned, achieved) = verdict.run.rates.unwrap();
    assert!((planned - 2.0).abs() < 1e-9 && (achieved - 1.0).abs() < 1e-9, "{planned} and {achieved}");
    // The cap was asked for, so the client kept its rate, and the check on the rate says what came of it.
    assert_eq!(outcomes(&verdict), [CheckOutcome::Met, CheckOutcome::Violated]);
    let waited = Finding::CapWait { p50: Nanos::from_millis(29 * 500), held_at: Some(achieved) };
    assert!(verdict.findings.contains(&waited), "{:?}", verdict.findings);

    let verdict = judge(&capped(400));
    assert_eq!(verdict.run.rates, Some((2.0, 2.0)));
    assert_eq!(outcomes(&verdict)[1], CheckOutcome::Met);
    assert!(!verdict.findings.iter().any(|one| matches!(one, Finding::CapWait { .. })));

    // A wait that leaves the rate as it is, and is more than 5 % of the TTFT bound.
    let mut run = measured(&["ttft.p95 < 1s"], Health::default());
    let said = |run: &Run| {
        let verdict = judge(run);
        verdict.findings.into_iter().find(|one| matches!(one, Finding::CapWait { .. }))
    };
    run.samples.iter_mut().for_each(|sample| sample.cap_wait = Some(Nanos::from_millis(51)));
    assert_eq!(said(&run), Some(Finding::CapWait { p50: Nanos::from_millis(51), held_at: None }));
    run.samples.iter_mut().for_each(|sample| sample.cap_wait = Some(Nanos::from_millis(50)));
    assert_eq!(said(&run), None);
}

#[test]
fn bursts_behind_a_cap_are_of_the_cap() {
    let with = |wait: i64| {
        let mut run = capped(400);
        run.header.spec.checks = gate(&["ttft.p95 < 800ms"], &[]).checks;
        for sample in &mut run.samples {
            sample.cap_wait = Some(Nanos::from_millis(wait));
            let slow = if (20..30).contains(&sample.index) { 900 } else { 300 };
            sample.first_token = Some(sample.intended + Nanos::from_millis(slow));
        }
        let findings = judge(&run).findings;
        findings
            .iter()
            .find_map(|one| if let Finding::DesignEffect { capped, .. } = one { Some(*capped) } else { None })
    };
    assert_eq!((with(0), with(200)), (Some(false), Some(true)));
}

#[test]
fn a_closed_loop_flatters_objectives() {
    let notes = |check: &str, pace: Pace| {
        let mut spec = gate(&[check], &[]);
        spec.load.pace = pace;
        plan_notes(&spec, &[section(&[100])]).contains(&Finding::ClosedLoop)
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
    let reached = Reached { addresses: vec!["::1".to_owned()], proxy: None, http: HttpVersion::Http2, server: None };
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
