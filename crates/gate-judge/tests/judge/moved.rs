//! The part of a request that moved most, and whether it moved by anything worth telling.

use gate_model::{Against, EndReason, Iterations, Moved, Nanos, Phase, Prior, Sample};

use crate::support::{gate, kept, ok, run, side_by_side};

/// A request that had its connection after so many milliseconds.
fn connected(index: u32, connect: f64, ttft: f64, tpot: f64) -> Sample {
    let sample = ok(index, connect + ttft, tpot);
    Sample { connected: Some(sample.intended + Nanos::from_secs_f64(connect / 1e3)), ..sample }
}

/// What moved between two sets of 50 requests, against stored runs and side by side, beside a check that is violated.
fn moved(check: &str, before: impl Fn(u32) -> Sample, now: impl Fn(u32) -> Sample) -> Option<Moved> {
    let mut spec = gate(&[check], &[]);
    spec.load.iterations = Iterations::Fixed(50);
    let all = |of: &dyn Fn(u32) -> Sample| (0..50).map(of).collect::<Vec<_>>();
    let stored = kept(run(&spec, all(&before), EndReason::Completed));
    let prior = Prior { baselines: vec![stored], ..Prior::default() };
    let against_stored = gate_judge::judge(&run(&spec, all(&now), EndReason::Completed), &prior).moved;
    let beside = side_by_side(&spec, all(&now), all(&before), EndReason::Completed);
    let beside = gate_judge::judge(&beside, &Prior::default()).moved;
    let of = |moved: Option<Moved>| moved.map(|moved| (moved.phase, moved.from, moved.to));
    // One stored run says less: what differs by a factor of 1.07 or less may be the machine's mood.
    let is_mood = against_stored.is_none() && beside.is_some_and(|one| (one.to.0 as f64) < 1.074 * one.from.0 as f64);
    assert!(is_mood || of(against_stored) == of(beside), "{against_stored:?} {beside:?}");
    let against = [against_stored, beside].map(|moved| moved.map(|moved| moved.against));
    let expected = [Some(Against::Baseline).filter(|_| !is_mood), Some(Against::Reference)];
    assert!(against == expected || against == [None, None], "{against:?}");
    beside
}

/// The same beside a check on whole requests.
fn phase(before: impl Fn(u32) -> Sample, now: impl Fn(u32) -> Sample) -> Option<Phase> {
    moved("e2e.p50 < 1ms", before, now).map(|moved| moved.phase)
}

#[test]
fn a_twentieth_of_a_request_is_worth_telling() {
    // 50 tokens: a request takes 100 + 49 · 10 = 590 ms, and a twentieth of it is 29.5 ms.
    let before = |index| connected(index, 1.0, 99.0, 10.0);
    assert_eq!(phase(before, before), None);
    assert_eq!(phase(before, |index| connected(index, 30.0, 99.0, 10.0)), None);
    assert_eq!(phase(before, |index| connected(index, 31.0, 99.0, 10.0)), Some(Phase::Connect));
    assert_eq!(phase(before, |index| connected(index, 1.0, 128.0, 10.0)), None);
    assert_eq!(phase(before, |index| connected(index, 1.0, 129.0, 10.0)), Some(Phase::FirstToken));
    // A token's part is told by the token, and counts for all of them.
    assert_eq!(phase(before, |index| connected(index, 1.0, 99.0, 10.5)), None);
    let decode = moved("e2e.p50 < 1ms", before, |index| connected(index, 1.0, 99.0, 10.7)).unwrap();
    assert_eq!((decode.phase, decode.from), (Phase::Decode, Nanos::from_millis(10)));
    // What became faster explains nothing, and the largest part is told.
    assert_eq!(phase(before, |index| connected(index, 1.0, 20.0, 5.0)), None);
    assert_eq!(phase(before, |index| connected(index, 40.0, 150.0, 5.0)), Some(Phase::FirstToken));
}

#[test]
fn a_quarter_of_a_millisecond_explains_no_lost_throughput() {
    let mut spec = gate(&["throughput.requests >= 100/s"], &[]);
    spec.load.iterations = Iterations::Fixed(50);
    let run_at = |connect: f64| {
        let samples = (0..50).map(|index| connected(index, connect, 100.0, 10.0)).collect();
        run(&spec, samples, EndReason::Completed)
    };
    let prior = Prior { baselines: vec![kept(run_at(0.419))], ..Prior::default() };
    assert_eq!(gate_judge::judge(&run_at(0.671), &prior).moved, None);
    assert_eq!(gate_judge::judge(&run_at(50.0), &prior).moved.unwrap().phase, Phase::Connect);
}

#[test]
fn a_check_on_the_first_token_goes_by_its_wait() {
    let before = |index| connected(index, 1.0, 99.0, 10.0);
    let phase = |now: fn(u32) -> Sample| moved("ttft.p50 < 1ms", before, now).map(|moved| moved.phase);
    assert_eq!(phase(|index| connected(index, 1.0, 103.0, 10.0)), None);
    assert_eq!(phase(|index| connected(index, 1.0, 105.0, 10.0)), Some(Phase::FirstToken));
    assert_eq!(phase(|index| connected(index, 6.5, 99.0, 10.0)), Some(Phase::Connect));
}

#[test]
fn without_an_end_it_is_a_part_of_the_first_tokens_wait() {
    let endless = |ttft: f64| move |index| Sample { end: None, last_token: None, ..connected(index, 0.0, ttft, 10.0) };
    let phase = |ttft: f64| moved("headers.p50 < 1ms", endless(100.0), endless(ttft)).map(|moved| moved.phase);
    assert_eq!(phase(104.0), None);
    assert_eq!(phase(106.0), Some(Phase::FirstToken));
}

#[test]
fn what_one_stored_run_may_differ_by_is_no_move() {
    let mut spec = gate(&["tpot.p50 < 1ms"], &[]);
    spec.load.iterations = Iterations::Fixed(50);
    let run_at = |tpot: f64| run(&spec, (0..50).map(|index| ok(index, 100.0, tpot)).collect(), EndReason::Completed);
    let moved = |tpot: f64, stored: usize| {
        let prior = Prior { baselines: vec![kept(run_at(10.0)); stored], ..Prior::default() };
        gate_judge::judge(&run_at(tpot), &prior).moved.map(|moved| moved.phase)
    };
    // 5 % from run to run, and as much again for the one it is compared with.
    assert_eq!((moved(10.7, 1), moved(10.8, 1)), (None, Some(Phase::Decode)));
    // Six that are alike show that runs hardly differ.
    assert_eq!(moved(10.6, 6), Some(Phase::Decode));
}

/// A draw between 0 and 1 that looks like chance.
fn chance(index: u32, seed: u32) -> f64 {
    f64::from((index.wrapping_mul(2_654_435_761) ^ seed.wrapping_mul(40_503)).wrapping_mul(2_246_822_519) >> 8)
        / 16_777_216.0
}

#[test]
fn what_chance_explains_is_no_move() {
    // TTFTs of one and the same server that differ by up to half: medians lie farther apart than a twentieth at times.
    let of = |seed: u32, longer: f64| {
        move |index| connected(index, 0.0, longer * (100.0 + 100.0 * chance(index, seed)), 10.0)
    };
    let phases: Vec<Option<Phase>> = (0..20)
        .map(|seed| moved("ttft.p50 < 1ms", of(2 * seed + 1, 1.0), of(2 * seed + 2, 1.0)).map(|moved| moved.phase))
        .collect();
    assert_eq!(phases, [None; 20]);
    let longer = moved("ttft.p50 < 1ms", of(1, 1.0), of(2, 1.5)).map(|moved| moved.phase);
    assert_eq!(longer, Some(Phase::FirstToken));
}
