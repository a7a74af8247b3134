//! Runs that cannot be judged, or only in part.

use gate_model::{
    Cache, Cause, CheckOutcome, EndReason, Endpoint, ExitCode, Finding, Iterations, MaxTokensField, Nanos, Outcome,
    OutcomeCount, OutputLength, Policy, Run, Sample, Side, Status, Verdict,
};

use crate::support::{failed, gate, judge, ok, run, run_of, slow_at};

const WITHIN: CheckOutcome = CheckOutcome::Inconclusive { side: Side::Within };
const CHECKS: [&str; 3] = ["ttft.p95 < 800ms", "errors.rate < 5%", "throughput.requests > 1/s"];

fn not(cause: Cause) -> CheckOutcome {
    CheckOutcome::CouldNotMeasure { cause }
}

fn outcomes(verdict: &Verdict) -> Vec<CheckOutcome> {
    verdict.checks.iter().map(|one| one.outcome.clone()).collect()
}

/// A run of the checks above, judged once.
fn once(samples: Vec<Sample>) -> Run {
    let mut spec = gate(&CHECKS, &[]);
    spec.load.iterations = Iterations::Fixed(samples.len() as u32);
    run(&spec, samples, EndReason::Completed)
}

#[test]
fn a_target_that_was_never_ready_ran_nothing() {
    for reason in [EndReason::NotReady("503".to_owned()), EndReason::Refused("401".to_owned())] {
        let verdict = judge(&run(&gate(&CHECKS, &["ttft.p50 < 1s"]), Vec::new(), reason.clone()));
        assert_eq!(outcomes(&verdict), vec![not(Cause::NotRun(reason.clone())); 4]);
        assert_eq!((verdict.status, verdict.exit), (Status::CouldNotMeasure, ExitCode::CouldNotMeasure));
        assert!(verdict.findings.contains(&Finding::EndedEarly(reason)));
        assert_eq!(verdict.run.decided_at, None);
        assert!(verdict.checks[0].power.is_some());
    }
}

#[test]
fn a_killed_run_says_how_much_was_recorded() {
    let mut run = run_of(&gate(&CHECKS, &[]), &slow_at(40, &[]));
    run.end = None;
    let verdict = judge(&run);
    assert_eq!(outcomes(&verdict), vec![not(Cause::Killed { recorded: 40, planned: 100 }); 3]);
    assert!(verdict.findings.contains(&Finding::Killed { recorded: 40, planned: 100 }));
    assert_eq!((verdict.exit, verdict.run.judged), (ExitCode::CouldNotMeasure, 0));
    run.header.spec.outcomes.invalid = Policy::Pass;
    assert_eq!(judge(&run).status, Status::PassedWithWarnings);
}

/// The verdict on a run that ended early with `n` requests sent: the first `whole` are ok, and the end cut off the rest.
fn cut_off(n: u32, whole: u32, outcome: Outcome, reason: EndReason) -> Verdict {
    let sample = |index| if index < whole { ok(index, 100.0, 10.0) } else { failed(index, outcome) };
    judge(&run(&gate(&CHECKS, &[]), (0..n).map(sample).collect(), reason))
}

#[test]
fn an_interrupted_run_is_judged_at_its_last_complete_look() {
    let interrupted = |n, whole| cut_off(n, whole, Outcome::Cancelled, EndReason::Interrupted);
    let verdict = interrupted(33, 31);
    assert_eq!(outcomes(&verdict), [WITHIN, CheckOutcome::Met, CheckOutcome::Met]);
    assert_eq!((verdict.status, verdict.exit), (Status::Interrupted, ExitCode::Interrupted));
    assert_eq!(verdict.run.decided_at, Some(30));
    let verdict = interrupted(33, 29);
    assert_eq!(outcomes(&verdict), vec![not(Cause::Interrupted); 3]);
    assert_eq!(verdict.exit, ExitCode::Interrupted);
    assert!(verdict.run.outcomes.contains(&OutcomeCount { outcome: Outcome::Cancelled, count: 4 }));
}

#[test]
fn a_run_that_timed_out_is_judged_on_what_ended() {
    let timed_out = |n, whole| cut_off(n, whole, Outcome::TimeoutTotal, EndReason::RunTimeout);
    // Before the first look: once, on what there is.
    let verdict = timed_out(25, 22);
    assert_eq!((verdict.run.decided_at, verdict.exit), (Some(25), ExitCode::Violated));
    // Between two looks, and not settled at the first: at the end as well.
    let verdict = timed_out(40, 28);
    assert_eq!((verdict.run.decided_at, verdict.exit), (Some(40), ExitCode::Violated));
    assert!(matches!(verdict.findings[0], Finding::EndedEarly(EndReason::RunTimeout)));
    // What more was sent counts too.
    assert_eq!(timed_out(40, 40).run.decided_at, Some(40));
}

#[test]
fn a_run_stopped_at_a_look_is_judged_there() {
    let spec = gate(&CHECKS, &[]);
    let samples: Vec<_> = (0..34).map(|index| ok(index, if index < 30 { 100.0 } else { 9e3 }, 10.0)).collect();
    let verdict = judge(&run(&spec, samples, EndReason::StoppedAtLook(30)));
    assert_eq!((verdict.run.decided_at, verdict.status), (Some(30), Status::Passed));
}

#[test]
fn nothing_reached_says_how_and_measures_nothing() {
    for outcome in [Outcome::Connect, Outcome::Tls, Outcome::TimeoutConnect, Outcome::Http4xx, Outcome::Http429] {
        let verdict = judge(&once((0..30).map(|index| failed(index, outcome)).collect()));
        let cause = Cause::NothingReached {
            outcomes: vec![OutcomeCount { outcome, count: 30 }],
            message: Some(format!("it failed: {}", outcome.name())),
        };
        assert_eq!(outcomes(&verdict), vec![not(cause); 3]);
        assert_eq!(verdict.exit, ExitCode::CouldNotMeasure);
    }
    // One answer, or another kind of failure, and every failure counts.
    let mut samples: Vec<_> = (0..30).map(|index| failed(index, Outcome::Connect)).collect();
    samples[3] = ok(3, 100.0, 10.0);
    assert_eq!(judge(&once(samples.clone())).checks[1].outcome, CheckOutcome::Violated);
    samples[3] = failed(3, Outcome::Http4xx);
    samples[3].status = Some(400);
    assert_eq!(judge(&once(samples)).checks[1].outcome, CheckOutcome::Violated);
}

#[test]
fn only_server_errors_are_red() {
    let verdict = judge(&once((0..30).map(|index| failed(index, Outcome::Http5xx)).collect()));
    assert_eq!(
        outcomes(&verdict),
        [not(Cause::TooFewOk { ok: 0, needed: 20 }), CheckOutcome::Violated, CheckOutcome::Violated]
    );
    assert_eq!(verdict.exit, ExitCode::Violated);
}

#[test]
fn few_ok_requests_prove_nothing_but_a_violation() {
    let with = |ttft: f64| {
        let samples = (0..30)
            .map(|index| if index % 2 == 0 { ok(index, ttft, 10.0) } else { failed(index, Outcome::Http5xx) })
            .collect();
        judge(&once(samples)).checks[0].outcome.clone()
    };
    assert_eq!(with(100.0), not(Cause::TooFewOk { ok: 15, needed: 20 }));
    assert_eq!(with(900.0), CheckOutcome::Violated);
}

#[test]
fn many_429_take_latency_away() {
    let limited = |every: u32| {
        let samples = (0..60)
            .map(|index| if index % every == 0 { failed(index, Outcome::Http429) } else { ok(index, 900.0, 10.0) })
            .collect();
        judge(&once(samples))
    };
    let verdict = limited(5);
    assert_eq!(verdict.checks[0].outcome, not(Cause::RateLimited { share: 0.2 }));
    assert!(verdict.findings.contains(&Finding::RateLimited { share: 0.2 }));
    assert_eq!(limited(10).checks[0].outcome, CheckOutcome::Violated);
}

#[test]
fn estimated_tokens_decide_nothing() {
    let mut spec = gate(&["tpot.p95 < 50ms", "throughput.output_tokens > 1tok/s", "ttft.p95 < 1s"], &[]);
    spec.load.iterations = Iterations::Fixed(30);
    let mut samples: Vec<_> = (0..30).map(|index| ok(index, 100.0, 10.0)).collect();
    samples.iter_mut().for_each(|sample| sample.usage = None);
    let verdict = judge(&run(&spec, samples, EndReason::Completed));
    assert_eq!(outcomes(&verdict), [not(Cause::EstimatedTokens), not(Cause::EstimatedTokens), WITHIN]);
    assert!(verdict.findings.contains(&Finding::EstimatedTokens { share: 1.0 }));
}

/// The same requests, each taken up so many milliseconds late.
fn late(samples: Vec<Sample>, millis: impl Fn(u32) -> i64) -> Vec<Sample> {
    let late = samples.into_iter().map(|mut sample| {
        sample.start = Some(sample.intended + Nanos::from_millis(millis(sample.index)));
        sample
    });
    late.collect()
}

fn ok_samples(n: u32, ttft: f64) -> Vec<Sample> {
    (0..n).map(|index| ok(index, ttft, 10.0)).collect()
}

#[test]
fn a_short_rate_measures_nothing() {
    // 30 requests in 14.5 s of plan; the client falls behind by 40 ms a request.
    let verdict = judge(&once(late(ok_samples(30, 100.0), |index| 40 * i64::from(index))));
    let CheckOutcome::CouldNotMeasure { cause: Cause::RateShort { planned, achieved } } = &verdict.checks[0].outcome
    else {
        panic!("{:?}", verdict.checks[0].outcome)
    };
    assert_eq!(*planned, 2.0);
    assert!((1.8..1.9).contains(achieved), "{achieved}");
    assert!(outcomes(&verdict).iter().all(|one| matches!(one, CheckOutcome::CouldNotMeasure { .. })));
    assert_eq!(verdict.exit, ExitCode::CouldNotMeasure);

    // What failed under less load than planned failed; and what is imported has no client of ours.
    let mut samples = late(ok_samples(30, 100.0), |index| 40 * i64::from(index));
    for index in 0..10 {
        samples[index as usize] = failed(index, Outcome::Http5xx);
    }
    assert_eq!(judge(&once(samples.clone())).checks[1].outcome, CheckOutcome::Violated);
    let mut imported = once(late(ok_samples(30, 100.0), |index| 40 * i64::from(index)));
    imported.header.imported_from = Some("samples".to_owned());
    assert_eq!(judge(&imported).status, Status::Passed);
}

#[test]
fn a_pause_at_the_end_is_no_short_rate() {
    for late_ones in [1, 5] {
        let last = late(ok_samples(30, 100.0), |index| if index >= 30 - late_ones { 2000 } else { 0 });
        let verdict = judge(&once(last));
        assert!(outcomes(&verdict).iter().all(|one| !matches!(one, CheckOutcome::CouldNotMeasure { .. })));
    }
    // A short schedule is not short for a few milliseconds.
    let mut dense = ok_samples(30, 100.0);
    for sample in &mut dense {
        sample.intended = Nanos(i64::from(sample.index) * 1_000_000);
        sample.start = Some(sample.intended + Nanos::from_millis(4));
    }
    assert!(!judge(&once(dense)).findings.iter().any(|one| matches!(one, Finding::ClientSlow(_))));
}

#[test]
fn a_late_client_takes_away_only_what_it_may_have_caused() {
    // 5 % of the TTFT bound of 800 ms are 40 ms; two of 30 requests are more than 5 %.
    let lag = |millis: i64| move |index: u32| if index.is_multiple_of(15) { millis } else { 0 };
    let slow = judge(&once(late(ok_samples(30, 900.0), lag(41))));
    let cause = Cause::ClientLate { share: 2.0 / 30.0, limit: Nanos::from_millis(40) };
    assert_eq!(outcomes(&slow), [not(cause.clone()), CheckOutcome::Met, CheckOutcome::Met]);
    assert!(slow.findings.contains(&Finding::ClientSlow(cause)));
    assert_eq!(judge(&once(late(ok_samples(30, 900.0), lag(40)))).checks[0].outcome, CheckOutcome::Violated);
    let fast = judge(&once(late(ok_samples(30, 100.0), lag(41))));
    assert_eq!((outcomes(&fast)[0].clone(), fast.status), (WITHIN, Status::PassedWithWarnings));
}

#[test]
fn a_slow_event_loop_or_a_busy_cpu_does_the_same() {
    let mut run = once(ok_samples(30, 900.0));
    let health = |run: &mut Run, loop_delay: i64, cpu: f64| {
        let end = run.end.as_mut().unwrap();
        end.health.loop_delay_p95 = Some(Nanos::from_millis(loop_delay));
        end.health.cpu_share = Some(cpu);
        judge(run).checks[0].outcome.clone()
    };
    assert_eq!(health(&mut run, 40, 0.9), CheckOutcome::Violated);
    let delay = Cause::LoopDelay { p95: Nanos::from_millis(41), limit: Nanos::from_millis(40) };
    assert_eq!(health(&mut run, 41, 0.5), not(delay));
    assert_eq!(health(&mut run, 0, 0.95), not(Cause::ClientCpu { share: 0.95 }));
    let mut healthy = once(ok_samples(30, 100.0));
    assert_eq!(health(&mut healthy, 0, 0.95), WITHIN);
}

#[test]
fn a_burst_is_a_buffering_proxy() {
    let verdict = judge(&once((0..30).map(|index| ok(index, 700.0, 0.05)).collect()));
    assert!(verdict.findings.contains(&Finding::Buffered { share: 1.0 }));
    assert_eq!(verdict.status, Status::PassedWithWarnings);
    let figures: Vec<String> = verdict.figures.iter().map(|figure| figure.metric.to_string()).collect();
    assert_eq!(figures[..3], ["ttft.p50", "ttft.p95", "tpot_e2e.p50"]);
    assert!(!figures.iter().any(|metric| metric == "tpot.effective" || metric.starts_with("icl")), "{figures:?}");

    // The times between tokens say nothing then, whatever their bound: what looks good is no better than what is bad.
    let times = ["tpot.p95 < 50ms", "tpot.p50 > 50ms", "stall.max < 1s", "tpot.effective < 50ms", "icl.p95 < 50ms"];
    let mut spec = gate(&times, &["ttft.p95 < 800ms", "itl.p95 < 1ms", "tpot_e2e.p95 < 1s"]);
    spec.load.iterations = Iterations::Fixed(60);
    let buffered = |burst: u32| {
        let tpot = move |index: u32| if index < burst { 0.05 } else { 10.0 };
        outcomes(&judge(&run(
            &spec,
            (0..60).map(|index| ok(index, 700.0, tpot(index))).collect(),
            EndReason::Completed,
        )))
    };
    let lost = not(Cause::Buffered { share: 1.0 });
    let [met, violated] = [CheckOutcome::Met, CheckOutcome::Violated];
    let all = buffered(60);
    assert_eq!(all[..5], [lost.clone(), lost.clone(), lost.clone(), lost.clone(), lost.clone()]);
    assert_eq!(all[5..], [met.clone(), lost, met.clone()]);
    // Half of the streams are not most of them.
    assert_eq!(buffered(30)[..2], [met, violated]);

    // A fast model is not: 49 gaps of 2 ms after 700 ms.
    let fast = judge(&once((0..30).map(|index| ok(index, 700.0, 2.0)).collect()));
    assert_eq!(fast.findings, [Finding::CannotProve { check: "ttft.p95 < 800ms".to_owned(), n: 30, needed: 59 }]);
}

#[test]
fn more_tokens_than_were_asked_for_make_a_green_gate_yellow() {
    let mut samples = ok_samples(30, 100.0);
    samples.iter_mut().for_each(|sample| sample.planned_output = 5);
    let verdict = judge(&once(samples));
    assert!(verdict.findings.contains(&Finding::ShortOutputs { planned: 5.0, seen: 50.0 }));
    assert_eq!((verdict.status, verdict.exit), (Status::PassedWithWarnings, ExitCode::Passed));
}

#[test]
fn short_outputs_are_said() {
    let mut samples = ok_samples(30, 100.0);
    samples.iter_mut().for_each(|sample| sample.planned_output = 56);
    let verdict = judge(&once(samples));
    assert!(verdict.findings.contains(&Finding::ShortOutputs { planned: 56.0, seen: 50.0 }));
    assert_eq!(verdict.status, Status::Passed);
}

#[test]
fn short_outputs_are_a_warning_where_exact_ones_were_asked_for() {
    let mut samples = ok_samples(30, 100.0);
    samples.iter_mut().for_each(|sample| sample.planned_output = 56);
    let mut run = once(samples);
    run.header.spec.prompts.output = OutputLength::Exact;
    assert_eq!(judge(&run).status, Status::PassedWithWarnings);
    assert_eq!(judge(&once(ok_samples(30, 100.0))).status, Status::Passed);
}

#[test]
fn a_certificate_that_was_not_checked_is_said_loudly() {
    let with = |url: &str, insecure: bool| {
        let mut run = once(ok_samples(30, 100.0));
        run.header.spec.target.endpoint = Endpoint::Url(url.to_owned());
        run.header.spec.target.tls.insecure = insecure;
        let verdict = judge(&run);
        (verdict.findings.contains(&Finding::InsecureTls), verdict.status)
    };
    assert_eq!(with("https://127.0.0.1:8443/v1", true), (true, Status::PassedWithWarnings));
    assert_eq!(with("HTTPS://127.0.0.1:8443/v1", true), (true, Status::PassedWithWarnings));
    assert_eq!(with("https://127.0.0.1:8443/v1", false), (false, Status::Passed));
    assert_eq!(with("http://127.0.0.1:8000/v1", true), (false, Status::Passed));
    assert_eq!(with("é", true), (false, Status::Passed));
}

#[test]
fn repeated_prompts_are_a_warning_unless_they_are_meant() {
    let mut run = once(ok_samples(30, 100.0));
    run.header.repeated_prompts = 12;
    let verdict = judge(&run);
    assert!(verdict.findings.contains(&Finding::RepeatedPrompts { count: 12 }));
    assert_eq!(verdict.status, Status::PassedWithWarnings);
    run.header.spec.prompts.cache = Cache::Warm;
    let verdict = judge(&run);
    assert!(verdict.findings.contains(&Finding::RepeatedPrompts { count: 12 }));
    assert_eq!(verdict.status, Status::Passed);
}

#[test]
fn a_switched_field_is_said() {
    let mut run = once(ok_samples(30, 100.0));
    run.end.as_mut().unwrap().switched_to = Some(MaxTokensField::MaxCompletionTokens);
    let verdict = judge(&run);
    let finding = Finding::MaxTokensFieldSwitched { to: MaxTokensField::MaxCompletionTokens };
    assert_eq!((verdict.findings.contains(&finding), verdict.status), (true, Status::Passed));
}

#[test]
fn bursts_of_exceedances_are_said() {
    let verdict = judge(&run_of(&gate(&["ttft.p95 < 800ms"], &[]), &slow_at(100, &[10, 11, 12, 13, 14, 60])));
    assert!(
        verdict
            .findings
            .iter()
            .any(|one| matches!(one, Finding::DesignEffect { design_effect, .. } if *design_effect > 2.0))
    );
}

#[test]
fn no_samples_are_no_data() {
    let verdict = judge(&run(&gate(&CHECKS, &[]), Vec::new(), EndReason::Completed));
    assert_eq!(outcomes(&verdict), vec![not(Cause::NoData); 3]);
    assert_eq!(verdict.exit, ExitCode::CouldNotMeasure);
}
