//! Who answered, how streams came, and whose token counts count.

use gate_model::{
    Api, Cause, CheckOutcome, EndReason, Finding, Histogram, Iterations, Nanos, Outcome, Run, Sample, Side, Status,
    TokenPolicy, Usage,
};

use crate::support::{failed, gate, judge, ok, run, streamed};

const WITHIN: CheckOutcome = CheckOutcome::Inconclusive { side: Side::Within };

/// A run of these requests, judged once by this check.
fn once(check: &str, samples: Vec<Sample>) -> Run {
    let mut spec = gate(&[check], &[]);
    spec.load.iterations = Iterations::Fixed(samples.len() as u32);
    run(&spec, samples, EndReason::Completed)
}

fn named(index: u32, count: u32) -> Option<String> {
    Some(format!("n{:02}", (index % count) * (index % count) % count))
}

#[test]
fn several_who_answered_are_named() {
    let with = |change: fn(&mut Sample)| {
        let mut samples: Vec<Sample> = (0..30).map(|index| ok(index, 100.0, 10.0)).collect();
        samples[7] = failed(7, Outcome::Http5xx);
        samples.iter_mut().for_each(change);
        let verdict = judge(&once("ttft.p95 < 1s", samples));
        (verdict.findings, verdict.status)
    };
    let (findings, status) = with(|sample| sample.replica = named(sample.index, 3));
    let answered = vec![("n01".to_owned(), 20), ("n00".to_owned(), 10)];
    assert!(findings.contains(&Finding::Replicas { answered: answered.clone(), count: 2 }));
    assert_eq!(status, Status::Passed);
    let (findings, status) = with(|sample| sample.model = named(sample.index, 3));
    assert!(findings.contains(&Finding::Models { answered: answered.clone(), count: 2 }));
    assert_eq!(status, Status::PassedWithWarnings);
    let (findings, status) = with(|sample| sample.fingerprint = named(sample.index, 3));
    assert!(findings.contains(&Finding::Fingerprints { answered, count: 2 }));
    assert_eq!(status, Status::PassedWithWarnings);

    // Ten at most, most frequent first and then by name.
    let (findings, _) = with(|sample| sample.replica = Some(format!("r{:02}", sample.index % 28)));
    let found = findings.iter().find_map(|one| match one {
        Finding::Replicas { answered, count } => Some((answered, count)),
        _ => None,
    });
    let (answered, count) = found.unwrap();
    assert_eq!((answered.len(), *count), (10, 28));
    assert_eq!(answered[..3], [("r00".to_owned(), 2), ("r01".to_owned(), 2), ("r02".to_owned(), 1)]);

    // One, on some requests or on all, is nothing to say.
    for change in [(|sample| sample.model = Some("m".to_owned())) as fn(&mut Sample), |sample| {
        sample.fingerprint = (sample.index > 9).then(|| "fp".to_owned());
    }] {
        assert_eq!(with(change), with(|_| ()));
    }
}

#[test]
fn a_header_that_never_came_is_said() {
    let with = |replica: Option<&str>, change: fn(&mut Run)| {
        let mut samples: Vec<Sample> = (0..30).map(|index| ok(index, 100.0, 10.0)).collect();
        samples.iter_mut().for_each(|sample| sample.replica = replica.map(str::to_owned));
        let mut run = once("ttft.p95 < 1s", samples);
        run.header.spec.target.replica_header = Some("x-pod".to_owned());
        run.header.simulated = false;
        change(&mut run);
        let verdict = judge(&run);
        let about = |one: &Finding| matches!(one, Finding::Replicas { .. } | Finding::NoReplicaHeader { .. });
        (verdict.findings.into_iter().find(about), verdict.status)
    };
    let one = Finding::Replicas { answered: vec![("a".to_owned(), 30)], count: 1 };
    assert_eq!(with(Some("a"), |_| ()), (Some(one), Status::Passed));
    let missing = Finding::NoReplicaHeader { header: "x-pod".to_owned() };
    assert_eq!(with(None, |_| ()), (Some(missing), Status::PassedWithWarnings));
    // Where no header could come, or none was asked for, there is nothing to miss.
    assert_eq!(with(None, |run| run.header.simulated = true), (None, Status::Passed));
    assert_eq!(with(None, |run| run.header.imported_from = Some("samples".to_owned())), (None, Status::Passed));
    assert_eq!(with(None, |run| run.header.spec.target.replica_header = None), (None, Status::Passed));
    assert_eq!(with(None, |run| run.samples.iter_mut().for_each(|one| one.headers = None)).0, None);
}

#[test]
fn streams_that_began_again_are_counted() {
    let mut samples: Vec<Sample> = (0..30).map(|index| ok(index, 100.0, 10.0)).collect();
    (samples[3].restarts, samples[8].restarts) = (1, 4);
    let verdict = judge(&once("ttft.p95 < 1s", samples));
    assert!(verdict.findings.contains(&Finding::Restarted { requests: 2 }));
    assert_eq!(verdict.status, Status::PassedWithWarnings);
}

/// 60 requests of 21 events without usage; a tokenizer may have counted.
fn without_usage(check: &str, counted: Option<u64>) -> Run {
    let mut gaps = Histogram::default();
    (0..20).for_each(|_| gaps.record(Nanos::from_millis(10)));
    let sample = |index: u32| {
        let sample = streamed(index, &[10.0; 20]);
        Sample { usage: None, counted_output: counted, gaps: gaps.clone(), ..sample }
    };
    once(check, (0..60).map(sample).collect())
}

#[test]
fn a_tokenizer_counts_as_well_as_usage() {
    let outcome = |run: Run| judge(&run).checks[0].outcome.clone();
    for (check, expected) in [("tpot.p95 < 50ms", CheckOutcome::Met), ("itl.p95 < 50ms", CheckOutcome::Met)] {
        assert_eq!(outcome(without_usage(check, Some(21))), expected, "{check}");
        let cause = Cause::EstimatedTokens;
        assert_eq!(outcome(without_usage(check, None)), CheckOutcome::CouldNotMeasure { cause }, "{check}");
    }
    // Its count says, too, that events carry several tokens, and that answers have another length than planned.
    let cause = Cause::SeveralTokensAnEvent { requests: 60, of: 60 };
    assert_eq!(outcome(without_usage("itl.p95 < 50ms", Some(42))), CheckOutcome::CouldNotMeasure { cause });
    let findings = judge(&without_usage("tpot.p95 < 50ms", Some(21))).findings;
    assert!(findings.contains(&Finding::ShortOutputs { planned: 50.0, seen: 21.0 }));
    assert!(!findings.iter().any(|one| matches!(one, Finding::EstimatedTokens { .. })));
}

#[test]
fn estimated_tokens_are_accepted_where_the_spec_says_so() {
    for check in ["tpot.p95 < 50ms", "throughput.output_tokens > 1tok/s"] {
        let mut run = without_usage(check, None);
        run.header.spec.prompts.tokens = TokenPolicy::AcceptEstimate;
        let verdict = judge(&run);
        assert_eq!(verdict.checks[0].outcome, CheckOutcome::Met, "{check}");
        assert!(verdict.findings.contains(&Finding::EstimatedTokens { share: 1.0 }));
        assert_eq!(verdict.status, Status::Passed);
    }
    // No count says how many tokens an event carried.
    let mut run = without_usage("itl.p95 < 50ms", None);
    run.header.spec.prompts.tokens = TokenPolicy::AcceptEstimate;
    assert_eq!(judge(&run).checks[0].outcome, CheckOutcome::CouldNotMeasure { cause: Cause::NoData });
}

#[test]
fn embeddings_have_no_figures_of_a_stream() {
    let embedding = |index: u32| {
        let sample = ok(index, 100.0, 0.0);
        let usage = Some(Usage { input: Some(100), ..Usage::default() });
        Sample { first_token: None, content_events: 1, usage, ..sample }
    };
    let mut run = once("e2e.p95 < 1s", (0..30).map(embedding).collect());
    run.header.spec.target.api = Api::OpenaiEmbeddings;
    let verdict = judge(&run);
    assert_eq!(verdict.checks[0].outcome, WITHIN);
    assert!(!verdict.findings.contains(&Finding::OnlyEndToEnd));
    // No tokens are generated, so none are estimated.
    assert!(!verdict.findings.iter().any(|one| matches!(one, Finding::EstimatedTokens { .. })));
    assert_eq!((verdict.run.token_sources, verdict.status), (Vec::new(), Status::Passed));
    let figures: Vec<String> = verdict.figures.iter().map(|figure| figure.metric.to_string()).collect();
    let expected =
        ["e2e.p50", "e2e.p95", "errors.rate", "throughput.requests", "input_tokens.p50", "headers.p50", "headers.p95"];
    assert_eq!(figures, expected);
}
