//! Side-by-side runs: pairs, what cuts them, and the account of each arm.

use gate_judge::referee;
use gate_model::{
    Against, Arm, Cause, CheckOutcome, Decision, EndReason, Endpoint, ExitCode, Finding, GateSpec, Health, HttpVersion,
    Iterations, Nanos, Outcome, Phase, Prior, Reached, Referee, ReferenceEnd, Rule, Run, Sample, Side, Target,
    TokenPolicy, Usage, Verdict, With,
};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde_json::Value;

use crate::support::{STARTED, failed, gate, judge, lognormal, ok, section, side_by_side};

const WITHIN: CheckOutcome = CheckOutcome::Inconclusive { side: Side::Within };
const OVER: CheckOutcome = CheckOutcome::Inconclusive { side: Side::Over };

fn samples(ttfts: &[f64]) -> Vec<Sample> {
    (0..).zip(ttfts).map(|(index, ttft)| ok(index, *ttft, 10.0)).collect()
}

fn fixed(checks: &[&str], n: usize) -> GateSpec {
    let mut spec = gate(checks, &[]);
    spec.load.iterations = Iterations::Fixed(n as u32);
    spec
}

/// The run of a gate over as many pairs as there are samples.
fn pairs(checks: &[&str], target: Vec<Sample>, reference: Vec<Sample>) -> Run {
    let spec = fixed(checks, target.len());
    side_by_side(&spec, target, reference, EndReason::Completed)
}

fn outcome(run: &Run) -> CheckOutcome {
    judge(run).checks.remove(0).outcome
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|one| one.as_f64().unwrap()).collect()
}

#[test]
fn the_shared_vectors_come_out_of_whole_runs() {
    let file: Value = serde_json::from_str(include_str!("../../../../fixtures/stats/vectors.json")).unwrap();
    let mut seen = 0;
    for vector in file["vectors"].as_array().unwrap() {
        let (params, expect) = (&vector["params"], &vector["expect"]);
        let percentile = match vector["kind"].as_str().unwrap() {
            "judge_paired" => 50.0,
            "judge_ab_tail" => 100.0 * params["q"].as_f64().unwrap(),
            _ => continue,
        };
        seen += 1;
        let tolerance = 100.0 * params["tol"].as_f64().unwrap();
        let check = format!("ttft.p{percentile} < reference + {tolerance:.0}%");
        let input = &vector["input"];
        let (target, reference) = (numbers(&input["candidate"]), numbers(&input["reference"]));
        let verdict = judge(&pairs(&[&check], samples(&target), samples(&reference)));
        let evidence = verdict.checks[0].evidence.as_ref().unwrap();
        let comparison = evidence.comparison.as_ref().unwrap();
        let near = |seen: Option<f64>, expected: &str| {
            let expected = expect[expected].as_f64().unwrap();
            assert!((seen.unwrap() - expected).abs() <= 1e-6 * expected.abs().max(1e-3), "{vector}: {seen:?}");
        };
        near(evidence.p_fail, "p_fail");
        near(evidence.p_pass, "p_pass");
        near(Some(evidence.design_effect), "deff");
        assert_eq!((comparison.with.clone(), comparison.dropped), (With::Reference, 0));
        if percentile == 50.0 {
            near(comparison.statistic, "w");
            near(comparison.change.map(|change| 1.0 + change), "ratio");
            assert!(comparison.lower.is_none_or(|lower| lower < comparison.change.unwrap()));
        } else {
            near(comparison.cut.map(|cut| cut.value / 1e6), "cut");
            near(Some(f64::from(evidence.k)), "k");
            assert!(evidence.needed.is_some_and(|needed| (evidence.k >= needed) == (expect["verdict"] == "fail")));
        }
        let is_violated = verdict.checks[0].outcome == CheckOutcome::Violated;
        assert_eq!(is_violated, expect["verdict"] == "fail", "{vector}");
    }
    assert_eq!(seen, 6);
}

#[test]
fn more_is_better_the_other_way_round() {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let mut draw = |slower: f64| -> Vec<f64> { (0..60).map(|_| lognormal(&mut rng, 100.0 * slower, 0.2)).collect() };
    let (same, slow) = (draw(1.0), draw(2.0));
    for (check, rule) in [
        ("output_tokens.p50 > reference - 10%", Rule::Paired),
        ("output_tokens.mean > reference - 10%", Rule::Paired),
        ("output_tokens.p10 > reference - 10%", Rule::PairedTail),
    ] {
        let tokens = |counts: &[f64]| -> Vec<Sample> {
            let sample = |(index, count): (u32, &f64)| {
                let usage = Some(Usage { output: Some(count.round() as u64), ..Usage::default() });
                Sample { usage, ..ok(index, 100.0, 10.0) }
            };
            (0..).zip(counts).map(sample).collect()
        };
        let verdict = judge(&pairs(&[check], tokens(&same), tokens(&slow)));
        assert_eq!((verdict.checks[0].rule, &verdict.checks[0].outcome), (rule, &CheckOutcome::Violated), "{check}");
        assert_eq!(outcome(&pairs(&[check], tokens(&slow), tokens(&same))), CheckOutcome::Met, "{check}");
    }
}

#[test]
fn the_larger_allowance_counts() {
    // 30 ms on 100 ms is 30 %: more than 10 %, and exactly what 30 ms allow.
    let run = |text: &str, slower: f64| {
        let reference: Vec<f64> = (0..50).map(|index| 100.0 + f64::from(index) / 10.0).collect();
        let target: Vec<f64> = reference.iter().map(|ttft| ttft + slower).collect();
        outcome(&pairs(&[text], samples(&target), samples(&reference)))
    };
    assert_eq!(run("ttft.p50 < reference + 10%", 30.0), CheckOutcome::Violated);
    assert_eq!(run("ttft.p50 < reference + 10% or 40ms", 30.0), CheckOutcome::Met);
    assert_eq!(run("ttft.p50 < reference + 50% or 40ms", 45.0), CheckOutcome::Met);
    assert_eq!(run("ttft.p95 < reference + 10% or 40ms", 30.0), WITHIN, "50 pairs prove no P95");
    assert_eq!(run("ttft.p95 < reference + 10%", 30.0), CheckOutcome::Violated);
    // A signed tolerance asks for an improvement.
    assert_eq!(run("ttft.p50 < reference - 10%", -5.0), CheckOutcome::Violated);
    assert_eq!(run("ttft.p50 < reference - 10%", -15.0), CheckOutcome::Met);
}

#[test]
fn a_cache_that_is_hit_less_often_is_seen_where_pairs_do_not_move() {
    // Hits take 100 ms and misses 1 s; pairs go both ways, the median flips.
    let hits = |misses: usize| -> Vec<f64> {
        (0..51).map(|place| if (place * 7) % 51 < misses { 1000.0 } else { 100.0 }).collect()
    };
    let run = pairs(&["ttft.p50 < reference + 10%"], samples(&hits(26)), samples(&hits(25)));
    assert_eq!(outcome(&run), OVER);
    let evidence = judge(&run).checks[0].evidence.clone().unwrap();
    assert!(evidence.comparison.unwrap().change.unwrap() < 0.1);
}

#[test]
fn pairs_with_a_failure_are_dropped_and_counted() {
    let mut target = samples(&[100.0; 50]);
    let mut reference = samples(&[100.0; 50]);
    for place in 0..10 {
        target[place] = failed(place as u32, Outcome::Http5xx);
        reference[place + 5] = failed(place as u32 + 5, Outcome::Reset);
    }
    let checks =
        ["ttft.p50 < reference + 10%", "ttft.p95 < reference + 10%", "errors.rate < 25%", "errors.reset == 0%"];
    let verdict = judge(&pairs(&checks, target.clone(), reference.clone()));
    for check in &verdict.checks[..2] {
        let comparison = check.evidence.as_ref().unwrap().comparison.as_ref().unwrap();
        assert_eq!((comparison.n, comparison.dropped), (35, 15), "{}", check.check);
    }
    // The reference's failures are its own.
    assert_eq!(verdict.checks[2].seen.unwrap().value, 0.2);
    assert_eq!(verdict.checks[3].outcome, CheckOutcome::Met);
    let failure = |one: &Finding| matches!(one, Finding::Failure { outcome: Outcome::Http5xx, count: 10, .. });
    let theirs = |one: &Finding| matches!(one, Finding::ReferenceFailure { outcome: Outcome::Reset, count: 10, .. });
    assert!(verdict.findings.iter().any(failure) && verdict.findings.iter().any(theirs));
    let facts = verdict.run.reference.unwrap();
    assert_eq!((facts.outcomes[0].outcome, facts.outcomes[0].count), (Outcome::Ok, 40));
    assert_eq!((verdict.run.outcomes[0].count, verdict.run.judged), (40, 50));
}

#[test]
fn too_few_pairs_prove_nothing_but_a_violation() {
    let lost = |ok, needed| CheckOutcome::CouldNotMeasure { cause: Cause::ReferenceTooFewOk { ok, needed } };
    let run = |check: &str, n: usize, bad: usize, slower: f64| {
        let mut reference = samples(&vec![100.0; n]);
        for (index, sample) in reference.iter_mut().enumerate().take(bad) {
            *sample = failed(index as u32, Outcome::Http5xx);
        }
        outcome(&pairs(&[check], samples(&vec![100.0 * slower; n]), reference))
    };
    let (middle, tail) = ("ttft.p50 < reference + 10%", "ttft.p95 < reference + 10%");
    assert_eq!(run(middle, 40, 20, 1.0), CheckOutcome::Met);
    assert_eq!(run(middle, 40, 21, 1.0), lost(19, 20));
    assert_eq!(run(middle, 40, 21, 2.0), CheckOutcome::Violated);
    assert_eq!(run(middle, 40, 40, 1.0), lost(0, 20));
    assert_eq!(run("errors.rate <= reference", 40, 40, 1.0), lost(0, 20));
    assert_eq!(run("errors.rate <= reference", 40, 39, 1.0), CheckOutcome::Met);
    // A tail is found alike in 30 pairs, however many were sent.
    assert_eq!(run(tail, 50, 20, 1.0), WITHIN);
    for (n, bad) in [(29, 0), (30, 1), (50, 21)] {
        assert_eq!(run(tail, n, bad, 1.0), lost(29, 30), "{n}");
        assert_eq!(run(tail, n, bad, 2.0), CheckOutcome::Violated, "{n}");
    }
    // Pairs count, not what each arm answered of them.
    let half = |bad: std::ops::Range<u32>| -> Vec<Sample> {
        (0..50).map(|i| if bad.contains(&i) { failed(i, Outcome::Http5xx) } else { ok(i, 100.0, 10.0) }).collect()
    };
    assert_eq!(outcome(&pairs(&[middle], half(0..25), half(25..50))), lost(0, 20));
    assert_eq!(outcome(&pairs(&[tail], half(0..25), half(25..50))), lost(0, 30));
    // Where the target itself answered too little, that is what is said.
    let run = pairs(&[middle], vec![failed(0, Outcome::Http5xx); 30], samples(&[100.0; 30]));
    assert_eq!(outcome(&run), CheckOutcome::CouldNotMeasure { cause: Cause::TooFewOk { ok: 0, needed: 20 } });
}

#[test]
fn what_cuts_a_run_cuts_both_arms_alike() {
    let checks = ["ttft.p50 < reference + 10%"];
    let spec = gate(&checks, &[]);
    let whole = side_by_side(&spec, samples(&[100.0; 100]), samples(&[100.0; 100]), EndReason::Completed);
    let judged = |run: &Run| {
        let verdict = judge(run);
        let n = verdict.checks[0].evidence.as_ref().map(|evidence| evidence.comparison.as_ref().unwrap().n);
        (verdict.run.decided_at, n)
    };
    assert_eq!(judged(&whole), (Some(30), Some(30)), "the referee stopped it");
    let ended = |reason: EndReason, change: &dyn Fn(&mut Vec<Sample>)| {
        let mut run = whole.clone();
        run.end.as_mut().unwrap().reason = reason;
        change(&mut run.samples);
        judged(&run)
    };
    assert_eq!(ended(EndReason::Completed, &|_| ()), (Some(100), Some(100)));
    assert_eq!(ended(EndReason::StoppedAtLook(50), &|samples| samples.truncate(107)), (Some(50), Some(50)));
    // The second half of pair 60 was cut off, and one of pair 70 was never sent.
    let cut = |samples: &mut Vec<Sample>| {
        samples[121].outcome = Outcome::Cancelled;
        samples.truncate(141);
    };
    assert_eq!(ended(EndReason::Interrupted, &cut), (Some(50), Some(50)));
    assert_eq!(ended(EndReason::RunTimeout, &cut), (Some(69), Some(69)));
    // Without numbers, pairs are what stands at the same place.
    let unnumbered = |samples: &mut Vec<Sample>| samples.iter_mut().for_each(|sample| sample.pair = None);
    assert_eq!(ended(EndReason::Completed, &unnumbered), (Some(100), Some(100)));
}

#[test]
fn the_referee_and_the_judge_agree_on_pairs() {
    let spec = {
        let mut spec = gate(&["ttft.p50 < reference + 10%", "tpot.p95 < reference + 10%", "ttft.p95 < 135ms"], &[]);
        spec.reference = Some(Target::new(Endpoint::Sim(Box::default())));
        spec
    };
    let mut stops = std::collections::BTreeMap::<u32, u32>::new();
    for seed in 0..60 {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let slower = 1.0 + f64::from(seed as u32 % 4) / 10.0;
        let mut arm = |slower: f64| -> Vec<Sample> {
            let sample = |index| ok(index, lognormal(&mut rng, 100.0 * slower, 0.2), 10.0);
            (0..100).map(sample).collect()
        };
        let (target, reference) = (arm(slower), arm(1.0));
        let run = side_by_side(&spec, target, reference, EndReason::Completed);
        let mut referee = referee(&spec, &section(&[30, 50, 100]), STARTED, &Prior::default());
        let stop = [30, 50, 100].into_iter().find(|look| referee.look(&run.samples[..2 * look]) == Decision::Stop);
        let verdict = judge(&run);
        assert_eq!(verdict.run.decided_at, stop.map(|at| at as u32), "{seed}");
        *stops.entry(stop.unwrap() as u32).or_default() += 1;
        // Asked with half the samples, it waits.
        assert_eq!(
            gate_judge::referee(&spec, &section(&[30]), STARTED, &Prior::default()).look(&run.samples[..30]),
            Decision::GoOn
        );
    }
    assert!(stops.len() == 3, "{stops:?}");
}

#[test]
fn a_look_with_too_few_pairs_is_not_the_last() {
    let tail = "ttft.p95 < reference + 25%";
    let stops = |checks: (&[&str], &[&str]), looks: &[u32], target: Vec<Sample>| {
        let mut spec = gate(checks.0, checks.1);
        spec.reference = Some(Target::new(Endpoint::Sim(Box::default())));
        spec.load.iterations = Iterations::Range { first: looks[0], last: looks[1], extend: looks.get(2).copied() };
        let reference = samples(&vec![100.0; target.len()]);
        let run = side_by_side(&spec, target, reference, EndReason::Completed);
        let verdict = judge(&run);
        let EndReason::StoppedAtLook(at) = run.end.unwrap().reason else { panic!("it went on") };
        (at, verdict.checks[0].outcome.clone(), verdict.checks[0].looks.len())
    };
    let healthy = || samples(&[100.0; 80]);
    // 20 pairs say nothing against a P95, and 40 keep it.
    assert_eq!(stops((&[tail], &[]), &[20, 40], healthy()), (40, WITHIN, 2));
    assert_eq!(stops((&[tail], &[]), &[20, 40, 80], healthy()), (40, WITHIN, 2));
    assert_eq!(stops((&["ttft.p50 < reference + 25%"], &[]), &[20, 40], healthy()).0, 20);
    // A violation stands at once.
    assert_eq!(stops((&[tail], &[]), &[20, 40], samples(&[200.0; 80])), (20, CheckOutcome::Violated, 0));
    // Where the last look has too few as well there is nothing to wait for, and no preferred check waits.
    let too_few = CheckOutcome::CouldNotMeasure { cause: Cause::ReferenceTooFewOk { ok: 20, needed: 30 } };
    assert_eq!(stops((&[tail], &[]), &[20, 25], healthy()), (20, too_few, 0));
    assert_eq!(stops((&["ttft.p95 < 800ms"], &[tail]), &[20, 40], healthy()).0, 20);
    // The same goes for what every rule needs: 20 `ok` requests.
    assert_eq!(stops((&["ttft.p50 < 800ms"], &[]), &[10, 20], healthy()), (20, CheckOutcome::Met, 2));
    let ill = |every: usize| -> Vec<Sample> {
        let sample = |i: usize| {
            if i.is_multiple_of(every) { failed(i as u32, Outcome::Http5xx) } else { ok(i as u32, 100.0, 10.0) }
        };
        (0..80).map(sample).collect()
    };
    assert_eq!(stops((&["ttft.p50 < 800ms", "errors.rate < 90%"], &[]), &[20, 40], ill(10)).0, 40, "18 of 20");
    assert_eq!(stops((&["ttft.p50 < 800ms", "errors.rate == 100%"], &[]), &[20, 40], ill(1)).0, 20, "none");
}

#[test]
fn what_a_comparison_is_divided_by_is_told() {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let mut draw = || -> Vec<f64> { (0..50).map(|_| lognormal(&mut rng, 100.0, 0.2)).collect() };
    let (target, reference) = (samples(&draw()), samples(&draw()));
    let checks = ["ttft.p50 < reference + 10%", "ttft.mean < reference + 5%", "ttft.p95 < 800ms"];
    let verdict = judge(&pairs(&checks, target, reference));
    let evidence = verdict.checks[0].evidence.as_ref().unwrap();
    let comparison = evidence.comparison.as_ref().unwrap();
    let (statistic, deviation) = (comparison.statistic.unwrap(), comparison.deviation.unwrap());
    // Without ties ΣR² = n(n + 1)(2n + 1)/6.
    let variance = evidence.design_effect * 50.0 * 51.0 * 101.0 / 6.0;
    assert!((deviation - variance.sqrt()).abs() < 1e-6 * deviation, "{deviation}");
    // P[Z ≥ z] by Simpson's rule, far enough out.
    let z = (statistic - 1.0) / deviation;
    let density = |x: f64| (-0.5 * x * x).exp() / std::f64::consts::TAU.sqrt();
    let at = |i: i32| density(z + f64::from(i) * 0.001) * if i % 2 == 0 { 2.0 } else { 4.0 };
    let tail: f64 = (1..12_000).map(at).sum::<f64>() + density(z);
    assert!((evidence.p_fail.unwrap() - tail * 0.001 / 3.0).abs() < 1e-6, "{:?}", evidence.p_fail);
    for check in &verdict.checks {
        let evidence = check.evidence.as_ref().unwrap();
        let shared = evidence.shared.unwrap();
        assert!((shared.alpha - 0.05).abs() < 1e-12 && (shared.checks, shared.looks) == (3, 1), "{shared:?}");
        let level = shared.alpha / f64::from(shared.checks * shared.looks);
        assert!(evidence.level.unwrap() <= level + 1e-12, "{}", check.check);
    }
}

#[test]
fn each_arm_has_its_figures() {
    let run = pairs(&["ttft.p50 < reference + 10%"], samples(&[100.0; 30]), samples(&[90.0; 30]));
    let verdict = judge(&run);
    let figure = |arm: Arm| {
        let found = verdict.figures.iter().find(|one| one.arm == arm && one.metric.to_string() == "ttft.p50");
        found.unwrap().value.unwrap().to_string()
    };
    assert_eq!((figure(Arm::Target), figure(Arm::Reference)), ("100 ms".to_owned(), "90 ms".to_owned()));
    assert!(verdict.valid);
    assert_eq!(verdict.run.rates.map(|(planned, _)| planned > 4.0), Some(true), "both arms are sent");
}

#[test]
fn a_slow_client_takes_pairs_away_too() {
    let mut run = pairs(
        &["ttft.p50 < reference + 10%", "ttft.p95 < reference + 10%"],
        samples(&[200.0; 50]),
        samples(&[100.0; 50]),
    );
    let outcomes = |run: &Run| judge(run).checks.into_iter().map(|one| one.outcome).collect::<Vec<_>>();
    assert_eq!(outcomes(&run), [CheckOutcome::Violated, CheckOutcome::Violated]);
    // 5 % of the limit of 110 ms.
    let late = |millis: f64| Health { loop_delay_p95: Some(Nanos::from_secs_f64(millis / 1e3)), ..Health::default() };
    run.end.as_mut().unwrap().health = late(5.4);
    assert_eq!(outcomes(&run), [CheckOutcome::Violated, CheckOutcome::Violated]);
    run.end.as_mut().unwrap().health = late(5.6);
    for outcome in outcomes(&run) {
        assert!(matches!(outcome, CheckOutcome::CouldNotMeasure { cause: Cause::LoopDelay { .. } }), "{outcome:?}");
    }
    assert!(!judge(&run).valid);
}

#[test]
fn the_reference_must_be_measurable_itself() {
    let mut reference = samples(&[100.0; 50]);
    for sample in &mut reference {
        sample.usage = None;
    }
    let run = pairs(&["tpot.p50 < reference + 10%", "ttft.p50 < reference + 10%"], samples(&[100.0; 50]), reference);
    let verdict = judge(&run);
    assert_eq!(verdict.checks[0].outcome, CheckOutcome::CouldNotMeasure { cause: Cause::EstimatedTokens });
    assert_eq!(verdict.checks[1].outcome, CheckOutcome::Met);
    let mut accepted = run;
    accepted.header.spec.prompts.tokens = TokenPolicy::AcceptEstimate;
    assert_eq!(outcome(&accepted), CheckOutcome::Met);
}

#[test]
fn one_server_for_both_arms_is_said() {
    let shared = |target: &str, reference: &str, addresses: [&str; 2], proxy: Option<&str>| {
        let mut run = pairs(&["ttft.p50 < reference + 10%"], samples(&[100.0; 30]), samples(&[100.0; 30]));
        let url = |url: &str| Target::new(Endpoint::Url(url.to_owned()));
        run.header.spec.target = url(target);
        run.header.spec.reference = Some(url(reference));
        let reached = addresses.map(|address| Reached {
            addresses: vec![address.to_owned()],
            proxy: proxy.map(str::to_owned),
            http: HttpVersion::Http1,
            server: None,
        });
        let [target, reference] = reached;
        let end = run.end.as_mut().unwrap();
        end.reached = Some(target);
        end.reference = Some(ReferenceEnd { switched_to: None, reached: Some(reference) });
        let verdict = judge(&run);
        verdict.findings.into_iter().find_map(|one| match one {
            Finding::SharedServer { address } => Some(address),
            _ => None,
        })
    };
    let (one, other) = ("10.0.0.1:80", "10.0.0.2:80");
    assert_eq!(shared("http://a/v1", "http://b/v1", [one, other], None), None);
    assert_eq!(shared("http://a/v1", "http://b/v1", [one, one], None).as_deref(), Some(one));
    assert_eq!(shared("http://a/v1", "http://b/v1", [one, one], Some("http://proxy:3128")), None);
    assert_eq!(shared("http://a/v1", "http://a/v1/", [one, other], None).as_deref(), Some("http://a/v1"));
}

#[test]
fn unlike_shapes_are_said() {
    let has = |verdict: &Verdict| verdict.findings.iter().any(|one| matches!(one, Finding::ShapesDiffer { .. }));
    let spread = |width: f64| -> Vec<f64> { (0..50).map(|place| 100.0 + width * f64::from(place)).collect() };
    let check = ["ttft.p95 < reference + 10%"];
    assert!(has(&judge(&pairs(&check, samples(&spread(1.0)), samples(&spread(0.2))))));
    assert!(!has(&judge(&pairs(&check, samples(&spread(1.0)), samples(&spread(0.9))))));
    assert!(!has(&judge(&pairs(&["ttft.p50 < reference + 10%"], samples(&spread(1.0)), samples(&spread(0.2))))));
}

#[test]
fn the_part_that_moved_most_is_named() {
    let of = |ttft: f64, tpot: f64, connect: i64| -> Vec<Sample> {
        let sample = |index| {
            let sample = ok(index, ttft, tpot);
            Sample { writing: Some(sample.intended + Nanos::from_millis(connect)), ..sample }
        };
        (0..50).map(sample).collect()
    };
    let moved = |checks: &[&str], target: Vec<Sample>| judge(&pairs(checks, target, of(100.0, 10.0, 1))).moved;
    let checks = ["ttft.p50 < reference + 10%", "tpot.p50 < reference + 10%"];
    let named = |target: Vec<Sample>| moved(&checks, target).map(|moved| (moved.phase, moved.from, moved.to));
    let millis = Nanos::from_millis;
    assert_eq!(named(of(100.0, 10.0, 1)), None, "nothing is broken");
    assert_eq!(named(of(100.0, 14.0, 1)), Some((Phase::Decode, millis(10), millis(14))));
    assert_eq!(named(of(200.0, 10.0, 1)), Some((Phase::FirstToken, millis(99), millis(199))));
    assert_eq!(named(of(200.0, 10.0, 90)), Some((Phase::Connect, millis(1), millis(90))));
    // What is under 5 % of a request explains nothing.
    assert_eq!(moved(&["throughput.requests > 1000/s"], of(100.0, 10.0, 5)), None);
    assert_eq!(moved(&["throughput.requests > 1000/s"], of(106.0, 10.0, 1)), None);
    assert_eq!(moved(&["throughput.requests > 1000/s"], of(140.0, 10.0, 1)).unwrap().phase, Phase::FirstToken);
    // 49 tokens of 3 ms weigh more than 100 ms, and less than 200 ms.
    assert_eq!(named(of(200.0, 13.0, 1)).unwrap().0, Phase::Decode);
    assert_eq!(named(of(300.0, 13.0, 1)).unwrap().0, Phase::FirstToken);
    assert_eq!(moved(&checks, of(100.0, 14.0, 1)).unwrap().against, Against::Reference);
    // A fixed limit that is broken has the reference to compare with too.
    assert_eq!(moved(&["ttft.p50 < 150ms"], of(200.0, 10.0, 1)).unwrap().phase, Phase::FirstToken);
    assert_eq!(moved(&["errors.rate < 5%"], of(200.0, 10.0, 1)), None);
}

#[test]
fn a_faster_server_is_a_green_gate_with_a_word() {
    let run = |slower: f64| {
        judge(&pairs(&["ttft.p50 < reference + 10%"], samples(&[100.0 * slower; 50]), samples(&[100.0; 50])))
    };
    let improved = |verdict: &Verdict| verdict.findings.iter().any(|one| matches!(one, Finding::Improved { .. }));
    assert_eq!((run(0.39).exit, improved(&run(0.39))), (ExitCode::Passed, true));
    assert!(!improved(&run(0.41)));
    assert_eq!(run(1.05).checks[0].outcome, CheckOutcome::Met);
}
