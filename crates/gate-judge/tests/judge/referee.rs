//! The referee says while the load runs what the judge finds afterwards.

use gate_judge::referee;
use gate_model::{Decide, Decision, EndReason, GateSpec, Outcome, Prior, Referee, Sample, Waiver};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::support::{STARTED, failed, gate, judge, lognormal, ok, run, section, streamed};

/// The look at which the load stops; the judge finds the same there, in the whole run and in the one that was cut.
fn agreed(spec: &GateSpec, samples: &[Sample], seed: u64) -> u32 {
    let at = stopped_at(spec, samples);
    let whole = judge(&run(spec, samples.to_vec(), EndReason::Completed));
    assert_eq!(whole.run.decided_at, Some(at), "{seed}");
    // The load stopped there, with a few more requests under way.
    let open = (at as usize + 3).min(samples.len());
    let reason = if at == 100 { EndReason::Completed } else { EndReason::StoppedAtLook(at) };
    let cut = judge(&run(spec, samples[..open].to_vec(), reason));
    assert_eq!((cut.run.decided_at, &cut.checks, cut.exit), (Some(at), &whole.checks, whole.exit), "{seed}");
    at
}

/// Plays the load: asks at every look, and stops where the referee says so.
fn stopped_at(spec: &GateSpec, samples: &[Sample]) -> u32 {
    let looks = spec.load.iterations.looks();
    let mut referee = referee(spec, &section(&looks), STARTED, &Prior::default());
    for look in &looks {
        if referee.look(&samples[..*look as usize]) == Decision::Stop {
            return *look;
        }
    }
    panic!("the last look stops")
}

#[test]
fn they_agree_on_means_gaps_and_waivers() {
    let mut spec = gate(
        &[
            "e2e.mean < 460ms",
            "itl.p90 < 13.5ms",
            "ttft.p95 < 90ms",
            "tpot.p50 < 10.3ms",
            "errors.rate < 10%",
            "ttfe.max < 1s",
        ],
        &["icl.p50 < 1ms"],
    );
    let until = |day: &str| Some(Waiver { until: day.to_owned(), reason: "issue 412".to_owned() });
    // TTFT breaks its limit in every request, and is waived; the other waiver has ended.
    spec.checks[2].waive = until("2026-01-01");
    spec.checks[3].waive = until("2025-12-31");
    spec.checks[4].decide = Some(Decide::Evidence);
    spec.checks[5].decide = Some(Decide::Point);
    let mut seen = [0; 3];
    for seed in 0..200 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let slower = 0.95 + rng.random::<f64>() / 10.0;
        let failing = rng.random::<f64>() / 8.0;
        let samples: Vec<Sample> = (0..100)
            .map(|index| {
                let pace = lognormal(&mut rng, 10.0 * slower, 0.1);
                let gaps: Vec<f64> = (0..35).map(|_| lognormal(&mut rng, pace, 0.2)).collect();
                if rng.random_bool(failing) { failed(index, Outcome::Reset) } else { streamed(index, &gaps) }
            })
            .collect();
        let at = agreed(&spec, &samples, seed);
        seen[[30, 50, 100].iter().position(|look| *look == at).unwrap()] += 1;
    }
    assert!(seen.iter().all(|times| *times > 10), "{seen:?}");
}

#[test]
fn judge_and_referee_agree() {
    let spec = gate(
        &["ttft.p50 < 205ms", "ttft.p95 < 300ms", "e2e.p95 < 800ms", "errors.rate < 5%", "throughput.requests > 1/s"],
        &["tpot.p95 < 10ms"],
    );
    let mut seen = [0; 3];
    for seed in 0..300 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let slower = 0.9 + rng.random::<f64>() / 4.0;
        let failing = rng.random::<f64>() / 10.0;
        let samples: Vec<Sample> = (0..100)
            .map(|index| {
                let ttft = lognormal(&mut rng, 200.0 * slower, 0.25);
                if rng.random_bool(failing) { failed(index, Outcome::Reset) } else { ok(index, ttft, 10.0) }
            })
            .collect();
        let at = agreed(&spec, &samples, seed);
        seen[[30, 50, 100].iter().position(|look| *look == at).unwrap()] += 1;
    }
    assert!(seen.iter().all(|times| *times > 10), "{seen:?}");
}

#[test]
fn stop_is_final_and_looks_are_taken_once() {
    let spec = gate(&["ttft.p95 < 800ms"], &[]);
    let slow: Vec<Sample> = (0..100).map(|index| ok(index, 900.0, 10.0)).collect();
    let fast: Vec<Sample> = (0..100).map(|index| ok(index, 100.0, 10.0)).collect();
    let mut one = referee(&spec, &section(&[30, 50, 100]), STARTED, &Prior::default());
    assert_eq!(one.look(&fast[..29]), Decision::GoOn);
    assert_eq!(one.look(&fast[..30]), Decision::Stop);
    assert_eq!(one.look(&slow[..50]), Decision::Stop);
    // A look that was missed is taken with the next.
    assert_eq!(referee(&spec, &section(&[30, 50, 100]), STARTED, &Prior::default()).look(&fast), Decision::Stop);
    assert_eq!(referee(&spec, &section(&[]), STARTED, &Prior::default()).look(&fast), Decision::GoOn);
}
