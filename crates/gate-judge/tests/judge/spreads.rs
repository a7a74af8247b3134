//! Distributions in few numbers.

use gate_model::{Against, EndReason, Iterations, Outcome, Prior, Run, Sample, Series, Spread, Verdict};

use crate::support::{failed, gate, kept, ok, run, side_by_side};

/// `n` requests with TTFTs of 1, 2, … ms, in no order.
fn samples(n: u32) -> Vec<Sample> {
    (0..n).map(|index| ok(index, f64::from((index * 7) % n + 1), 10.0)).collect()
}

fn of(samples: Vec<Sample>) -> Run {
    let mut spec = gate(&["ttft.p50 < 1s"], &[]);
    spec.load.iterations = Iterations::Fixed(samples.len() as u32);
    run(&spec, samples, EndReason::Completed)
}

fn spread(verdict: &Verdict, series: Series, of: Option<Against>) -> Option<&Spread> {
    verdict.spreads.iter().find(|one| one.series == series && one.of == of)
}

#[test]
fn few_values_are_all_there_and_many_by_rank() {
    let ttft = |n: u32| {
        let verdict = gate_judge::judge(&of(samples(n)), &Prior::default());
        let spread = spread(&verdict, Series::Ttft, None).unwrap().clone();
        assert_eq!(spread.n, n);
        spread.quantiles
    };
    let whole: Vec<f64> = (1..=101).map(|millis| f64::from(millis) * 1e6).collect();
    assert_eq!(ttft(50), whole[..50]);
    assert_eq!(ttft(101), whole);
    let many = ttft(1_000);
    assert_eq!((many.len(), many[0], many[1], many[50], many[100]), (101, 1e6, 10e6, 500e6, 1000e6));
    assert!(many.is_sorted());
}

#[test]
fn only_judged_requests_that_were_answered_count() {
    let mut with_failures = samples(40);
    with_failures.extend((40..50).map(|index| failed(index, Outcome::Http5xx)));
    let verdict = gate_judge::judge(&of(with_failures), &Prior::default());
    let names: Vec<(Series, u32)> = verdict.spreads.iter().map(|one| (one.series, one.n)).collect();
    let series = [Series::Ttft, Series::Tpot, Series::E2e, Series::OutputTokens];
    assert_eq!(names, series.map(|series| (series, 40)));
    // Of one body there is only its end.
    let whole = |sample: Sample| Sample { first_token: None, first_answer: None, first_event: None, ..sample };
    let verdict = gate_judge::judge(&of(samples(40).into_iter().map(whole).collect()), &Prior::default());
    let names: Vec<Series> = verdict.spreads.iter().map(|one| one.series).collect();
    assert_eq!(names, [Series::E2e, Series::OutputTokens]);
    let none = gate_judge::judge(&of(Vec::new()), &Prior::default());
    assert_eq!(none.spreads, []);
}

#[test]
fn what_it_is_compared_with_stands_beside_it() {
    let prior = Prior { baselines: vec![kept(of(samples(30))), kept(of(samples(40)))], ..Prior::default() };
    let stored = gate_judge::judge(&of(samples(50)), &prior);
    let n = |verdict: &Verdict, of| spread(verdict, Series::E2e, of).map(|spread| spread.n);
    let both = [n(&stored, None), n(&stored, Some(Against::Baseline)), n(&stored, Some(Against::Reference))];
    assert_eq!(both, [Some(50), Some(70), None]);

    let mut spec = gate(&["ttft.p50 < 1s"], &[]);
    spec.load.iterations = Iterations::Fixed(30);
    let reference = samples(30).into_iter().map(|one| Sample { usage: None, content_events: 20, ..one }).collect();
    let pairs = side_by_side(&spec, samples(30), reference, EndReason::Completed);
    let beside = gate_judge::judge(&pairs, &Prior::default());
    let tokens = |of| spread(&beside, Series::OutputTokens, of).map(|spread| spread.quantiles[0]);
    assert_eq!(
        [tokens(None), tokens(Some(Against::Reference)), tokens(Some(Against::Baseline))],
        [Some(50.0), Some(20.0), None]
    );
}
