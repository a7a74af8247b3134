//! Stored runs: their noise, their tails, and what crept, moved or got better since.

use gate_judge::stored_detects;
use gate_model::{
    Against, CheckOutcome, CheckVerdict, Comparison, Decide, Decision, EndReason, ExitCode, Finding, Importance,
    Iterations, Nanos, NoBaseline, Noise, Outcome, Phase, Policy, Prior, Referee, Rule, Run, Sample, Side, Usage,
    Verdict, Waiver, With,
};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde_json::Value;

use crate::support::{STARTED, check, failed, gate, kept, lognormal, ok, prior_of, run, run_of, section, side_by_side};

const WITHIN: CheckOutcome = CheckOutcome::Inconclusive { side: Side::Within };
const OVER: CheckOutcome = CheckOutcome::Inconclusive { side: Side::Over };
const BLIND: CheckOutcome = CheckOutcome::Inconclusive { side: Side::Blind };

fn judged(check: &str, ttfts: &[f64], prior: &Prior) -> Verdict {
    let mut spec = gate(&[check], &[]);
    spec.load.iterations = Iterations::Fixed(ttfts.len() as u32);
    gate_judge::judge(&run_of(&spec, ttfts), prior)
}

fn outcome(check: &str, ttfts: &[f64], prior: &Prior) -> CheckOutcome {
    judged(check, ttfts, prior).checks.remove(0).outcome
}

/// `n` values around one, 1 % apart at most.
fn around(ttft: f64, n: usize) -> Vec<f64> {
    (0..n).map(|place| ttft * (1.0 + ((place * 7) % 11) as f64 / 1000.0)).collect()
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
        let is_tail = match vector["kind"].as_str().unwrap() {
            "judge_stored" => false,
            "judge_stored_tail" => true,
            _ => continue,
        };
        seen += 1;
        let percentile = 100.0 * params["q"].as_f64().unwrap();
        let tolerance = 100.0 * params["tol"].as_f64().unwrap();
        let check = format!("ttft.p{percentile} < baseline + {tolerance:.0}%");
        let runs: Vec<Vec<f64>> = vector["input"]["runs"].as_array().unwrap().iter().map(numbers).collect();
        let verdict = judged(&check, &numbers(&vector["input"]["candidate"]), &prior_of(&runs));
        let check = &verdict.checks[0];
        let evidence = check.evidence.as_ref().unwrap();
        let comparison = evidence.comparison.as_ref().unwrap();
        let near = |seen: Option<f64>, expected: &str| {
            let expected = expect[expected].as_f64().unwrap();
            assert!((seen.unwrap() - expected).abs() <= 1e-6 * expected.abs().max(1e-3), "{vector}: {seen:?}");
        };
        near(evidence.p_fail, "p_fail");
        near(evidence.p_pass, "p_pass");
        assert_eq!(comparison.with, With::Baseline { runs: runs.len() as u32 });
        assert_eq!(comparison.n as usize, runs.concat().len());
        if is_tail {
            near(comparison.cut.map(|cut| cut.value / 1e6), "cut");
            near(comparison.noise, "tau");
            near(Some(f64::from(evidence.k)), "k");
            assert_eq!(check.rule, Rule::StoredTail);
        } else {
            near(comparison.change.map(|change| 1.0 + change), "ratio");
            near(comparison.statistic, "t");
            near(comparison.freedom, "df");
            near(comparison.noise, "s");
            assert!(comparison.lower < comparison.change && comparison.change < comparison.upper);
            assert_eq!(check.rule, Rule::Stored);
        }
        assert_eq!(check.outcome == CheckOutcome::Violated, expect["verdict"] == "fail", "{vector}");
    }
    assert_eq!(seen, 3);
}

#[test]
fn an_unchanged_run_passes_and_a_slower_one_does_not() {
    let prior = prior_of(&[100.0, 102.0, 98.0, 101.0, 99.0].map(|ttft| around(ttft, 50)));
    for check in ["ttft.p50 < baseline + 10%", "ttft.mean < baseline + 10%", "ttft.p75 < baseline + 10%"] {
        assert_eq!(outcome(check, &around(100.0, 50), &prior), CheckOutcome::Met, "{check}");
        assert_eq!(outcome(check, &around(112.0, 50), &prior), OVER, "{check}");
        assert_eq!(outcome(check, &around(140.0, 50), &prior), CheckOutcome::Violated, "{check}");
    }
    let tail = "ttft.p95 < baseline + 10%";
    assert_eq!(outcome(tail, &around(100.0, 50), &prior), WITHIN, "50 prove no P95");
    assert_eq!(outcome(tail, &around(100.0, 100), &prior), CheckOutcome::Met);
    assert_eq!(outcome(tail, &around(140.0, 50), &prior), CheckOutcome::Violated);
    // One run is enough to begin with.
    assert_eq!(
        outcome("ttft.p50 < baseline + 25%", &around(190.0, 50), &prior_of(&[around(100.0, 50)])),
        CheckOutcome::Violated
    );
    let comparison =
        |check: &str| judged(check, &around(100.0, 50), &prior).checks[0].evidence.clone().unwrap().comparison.unwrap();
    let detects = comparison("ttft.p50 < baseline + 10%").detects.unwrap();
    // s is about 4 % of four degrees of prior and four of runs.
    assert!((0.15..0.3).contains(&detects), "{detects}");
    assert!(comparison(tail).detects.is_none());
}

#[test]
fn throughput_is_worse_when_it_is_less() {
    let at_rate = |n: u32, slower: f64| -> Vec<Sample> {
        let sample = |index| {
            let mut sample = ok(index, 100.0, 10.0);
            sample.sent = sample.sent.map(|at| gate_model::Nanos((at.0 as f64 * slower) as i64));
            sample.end = sample.end.map(|at| gate_model::Nanos((at.0 as f64 * slower) as i64));
            sample
        };
        (0..n).map(sample).collect()
    };
    let mut spec = gate(&["throughput.requests > baseline - 10%"], &[]);
    spec.load.iterations = Iterations::Fixed(50);
    let run_at = |slower: f64| run(&spec, at_rate(50, slower), EndReason::Completed);
    let prior =
        Prior { baselines: vec![kept(run_at(1.0)), kept(run_at(1.01)), kept(run_at(0.99))], ..Prior::default() };
    let outcome = |slower: f64| {
        let check = gate_judge::judge(&run_at(slower), &prior).checks.remove(0);
        (check.rule, check.outcome)
    };
    assert_eq!(outcome(1.0), (Rule::Stored, CheckOutcome::Met));
    assert_eq!(outcome(1.06), (Rule::Stored, WITHIN));
    assert_eq!(outcome(1.2), (Rule::Stored, OVER));
    assert_eq!(outcome(1.5), (Rule::Stored, CheckOutcome::Violated));
}

#[test]
fn stored_runs_stop_no_load_before_the_last_look() {
    let prior = prior_of(&[100.0, 102.0, 98.0, 101.0, 99.0].map(|ttft| around(ttft, 50)));
    let decided = |limit: &str| {
        let mut spec = gate(&["ttft.p50 < baseline + 10%", limit], &[]);
        spec.load.iterations = Iterations::Range { first: 30, last: 50, extend: None };
        let run = run_of(&spec, &around(140.0, 50));
        let mut referee = gate_judge::referee(&spec, &section(&[30, 50]), STARTED, &prior);
        let at = [30, 50].into_iter().find(|look| referee.look(&run.samples[..*look]) == Decision::Stop).unwrap();
        let mut stopped = run;
        stopped.end.as_mut().unwrap().reason = EndReason::StoppedAtLook(at as u32);
        let verdict = gate_judge::judge(&stopped, &prior);
        (at, verdict.checks[0].outcome.clone(), verdict.checks[0].looks.len())
    };
    // Nothing else asks for more: the final data are those of the first look.
    assert_eq!(decided("ttft.p95 < 800ms"), (30, CheckOutcome::Violated, 0));
    // A P95 over its limit does, and it is asked there.
    assert_eq!(decided("ttft.p95 < 141.3ms"), (50, CheckOutcome::Violated, 2));
}

#[test]
fn waivers_and_confidences_work_as_for_the_others() {
    let prior = prior_of(&[100.0, 102.0, 98.0, 101.0, 99.0].map(|ttft| around(ttft, 50)));
    let mut spec = gate(&["ttft.p50 < baseline + 10%", "ttft.p95 < baseline + 10%"], &[]);
    spec.load.iterations = Iterations::Fixed(50);
    spec.checks[0].confidence = 0.99;
    spec.checks[1].waive = Some(Waiver { until: "2026-01-01".to_owned(), reason: "issue 412".to_owned() });
    let verdict = gate_judge::judge(&run_of(&spec, &around(125.0, 50)), &prior);
    let evidence = verdict.checks[0].evidence.as_ref().unwrap();
    // Of two checks, one has half of 1 %; by 5 % it would be violated.
    assert!((evidence.level.unwrap() - 0.005).abs() < 1e-12 && evidence.p_fail.unwrap() < 0.025, "{evidence:?}");
    assert_eq!(verdict.checks[0].outcome, OVER);
    let otherwise = Box::new(CheckOutcome::Violated);
    assert_eq!((&verdict.checks[1].outcome, verdict.exit), (&CheckOutcome::Waived { otherwise }, ExitCode::Passed));
    // A waived check without a baseline costs nothing even where that would.
    spec.outcomes.no_baseline = Policy::Fail;
    spec.checks.remove(0);
    spec.checks.push(crate::support::check("ttft.p95 < 800ms", gate_model::Importance::Required));
    let verdict = gate_judge::judge(&run_of(&spec, &around(125.0, 50)), &Prior::default());
    assert_eq!(verdict.exit, ExitCode::Passed);
}

#[test]
fn noise_that_hides_the_tolerance_is_said() {
    let noisy = prior_of(&[60.0, 100.0, 160.0, 90.0, 120.0].map(|ttft| around(ttft, 50)));
    let is_said = |verdict: &Verdict| verdict.findings.iter().any(|one| matches!(one, Finding::NoisyBaseline { .. }));
    for check in ["ttft.p50 < baseline + 10%", "ttft.p95 < baseline + 10%"] {
        let quiet = judged(check, &around(95.0, 100), &noisy);
        assert_eq!((&quiet.checks[0].outcome, is_said(&quiet)), (&BLIND, true), "{check}");
        assert_eq!(quiet.exit, ExitCode::Passed);
        assert_eq!(outcome(check, &around(1000.0, 100), &noisy), CheckOutcome::Violated, "{check}");
    }
    assert_eq!(outcome("ttft.p50 < baseline + 10%", &around(130.0, 50), &noisy), OVER);
    // It costs what over costs.
    let mut spec = gate(&["ttft.p50 < baseline + 10%"], &[]);
    spec.outcomes.inconclusive = Policy::Fail;
    spec.load.iterations = Iterations::Fixed(50);
    assert_eq!(gate_judge::judge(&run_of(&spec, &around(95.0, 50)), &noisy).exit, ExitCode::Inconclusive);
    // A wide tolerance is seen.
    let wide = judged("ttft.p50 < baseline + 100%", &around(95.0, 50), &noisy);
    assert_eq!((&wide.checks[0].outcome, is_said(&wide)), (&CheckOutcome::Met, false));
}

#[test]
fn what_calibration_found_is_reckoned_with() {
    let mut prior = prior_of(&[around(100.0, 50)]);
    let noise = |prior: &Prior, check: &str| {
        let check = judged(check, &around(100.0, 50), prior).checks.remove(0);
        check.evidence.unwrap().comparison.unwrap().noise.unwrap()
    };
    assert!((noise(&prior, "ttft.p95 < baseline + 50%") - 0.05).abs() < 1e-12);
    let mut found = Noise { runs: 20, ..Noise::default() };
    found.tau.insert("ttft.p50".to_owned(), 0.2);
    prior.noise = Some(found.clone());
    assert!((noise(&prior, "ttft.p50 < baseline + 50%") - 0.2).abs() < 0.01);
    assert!((noise(&prior, "ttft.p95 < baseline + 50%") - 0.2).abs() < 1e-12, "of the median");
    assert!((noise(&prior, "tpot.p95 < baseline + 50%") - 0.05).abs() < 1e-12);
    found.tau.insert("ttft.p95".to_owned(), 0.02);
    prior.noise = Some(found);
    assert!((noise(&prior, "ttft.p95 < baseline + 50%") - 0.02).abs() < 1e-12, "its own");
}

#[test]
fn baselines_are_taken_at_the_look_that_decided_them() {
    // 30 fast requests decided it; 20 slow ones were still open.
    let mut spec = gate(&["ttft.p95 < 800ms"], &[]);
    spec.load.iterations = Iterations::Range { first: 30, last: 50, extend: None };
    let mut ttfts = vec![100.0; 30];
    ttfts.extend([700.0; 20]);
    let prior = Prior { baselines: vec![kept(run_of(&spec, &ttfts))], ..Prior::default() };
    let comparison = judged("ttft.mean < baseline + 10%", &around(100.0, 50), &prior)
        .checks
        .remove(0)
        .evidence
        .unwrap()
        .comparison
        .unwrap();
    assert_eq!((comparison.n, comparison.base.unwrap().to_string()), (30, "100 ms".to_owned()));
}

#[test]
fn the_slow_creep_is_said() {
    let creeping = |step: f64, runs: usize| -> Prior {
        let newest_first = (0..runs).rev().map(|run| around(100.0 * (1.0 + step * run as f64), 30));
        let history = prior_of(&newest_first.collect::<Vec<_>>()).baselines;
        Prior { baselines: history[..3].to_vec(), history, ..Prior::default() }
    };
    let crept = |check: &str, prior: &Prior| {
        judged(check, &around(100.0, 30), prior).findings.into_iter().find_map(|one| match one {
            Finding::Creep { from, to, runs, tolerance, .. } => {
                Some((from.value / 1e6, to.value / 1e6, runs, tolerance))
            }
            _ => None,
        })
    };
    let check = "ttft.p50 < baseline + 10%";
    let (from, to, runs, tolerance) = crept(check, &creeping(0.01, 20)).unwrap();
    assert!((from - 103.0).abs() < 1.0 && (to - 117.0).abs() < 1.0, "{from} {to}");
    assert_eq!((runs, tolerance), (20, 0.1));
    assert_eq!(crept(check, &creeping(0.01, 9)), None);
    assert_eq!(crept(check, &creeping(0.005, 20)), None);
    assert_eq!(crept(check, &creeping(-0.01, 20)), None, "faster");
    assert_eq!(crept("ttft.p50 < 800ms", &creeping(0.01, 20)), None);
}

#[test]
fn another_model_or_build_of_it_is_said() {
    let named = |model: &str, print: &str| -> Vec<Sample> {
        let name = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        (0..30).map(|index| Sample { model: name(model), fingerprint: name(print), ..ok(index, 100.0, 10.0) }).collect()
    };
    let mut spec = gate(&["ttft.p50 < baseline + 10%"], &[]);
    spec.load.iterations = Iterations::Fixed(30);
    let run_of = |model: &str, print: &str| run(&spec, named(model, print), EndReason::Completed);
    let prior = Prior { baselines: vec![kept(run_of("a", "x")), kept(run_of("b", "y"))], ..Prior::default() };
    let moved = |model: &str, print: &str| -> Vec<String> {
        let verdict = gate_judge::judge(&run_of(model, print), &prior);
        let moved = verdict.findings.into_iter().filter_map(|one| match one {
            Finding::ModelMoved(difference) => {
                Some(format!("{} {} {}", difference.what, difference.baseline, difference.run))
            }
            _ => None,
        });
        moved.collect()
    };
    assert_eq!(moved("a", "x"), Vec::<String>::new());
    assert_eq!(moved("b", "x"), ["model a b"], "the newest counts");
    assert_eq!(moved("a", "z"), ["system_fingerprint x z"]);
    assert_eq!(moved("", ""), Vec::<String>::new(), "nothing is known of it");
}

#[test]
fn prompts_read_from_a_cache_are_said() {
    let cached = |tokens: u64| -> Vec<Sample> {
        let usage = Some(Usage { input: Some(100), output: Some(50), cached: Some(tokens), reasoning: None });
        (0..30).map(|index| Sample { usage, ..ok(index, 100.0, 10.0) }).collect()
    };
    let mut spec = gate(&["ttft.p50 < baseline + 10%"], &[]);
    spec.load.iterations = Iterations::Fixed(30);
    let run_of = |tokens: u64| run(&spec, cached(tokens), EndReason::Completed);
    let moved = |before: u64, now: u64| {
        let prior = Prior { baselines: vec![kept(run_of(before))], ..Prior::default() };
        let verdict = gate_judge::judge(&run_of(now), &prior);
        verdict.findings.into_iter().find_map(|one| match one {
            Finding::LengthsMoved { metric, base, seen } => Some((metric.to_string(), base, seen)),
            _ => None,
        })
    };
    assert_eq!(moved(0, 64), Some(("cached_tokens.mean".to_owned(), 0.0, 64.0)));
    assert_eq!(moved(64, 60), None);
    assert_eq!(moved(0, 0), None);
}

#[test]
fn decode_is_named_against_stored_runs() {
    let mut spec = gate(&["tpot.p50 < baseline + 10%"], &[]);
    spec.load.iterations = Iterations::Fixed(50);
    let run_at = |tpot: f64| run(&spec, (0..50).map(|index| ok(index, 100.0, tpot)).collect(), EndReason::Completed);
    let prior =
        Prior { baselines: vec![kept(run_at(10.0)), kept(run_at(10.2)), kept(run_at(9.9))], ..Prior::default() };
    let verdict = gate_judge::judge(&run_at(16.0), &prior);
    assert_eq!(verdict.checks[0].outcome, CheckOutcome::Violated);
    let moved = verdict.moved.unwrap();
    assert_eq!((moved.phase, moved.against), (Phase::Decode, Against::Baseline));
    assert_eq!(gate_judge::judge(&run_at(10.0), &prior).moved, None);
}

#[test]
fn only_a_whole_and_answered_run_is_one_to_compare_with() {
    let spec = gate(&["ttft.p95 < 800ms"], &[]);
    let valid = |change: &dyn Fn(&mut gate_model::Run)| {
        let mut run = run_of(&spec, &[100.0; 100]);
        change(&mut run);
        gate_judge::judge(&run, &Prior::default()).valid
    };
    let reason = |reason: EndReason| valid(&|run| run.end.as_mut().unwrap().reason = reason.clone());
    assert!(valid(&|_| ()));
    assert!(reason(EndReason::Completed));
    assert!(!reason(EndReason::RunTimeout));
    assert!(!reason(EndReason::Interrupted));
    assert!(!valid(&|run| run.end = None));
    assert!(!valid(&|run| run.end.as_mut().unwrap().health.cpu_share = Some(0.95)));
    let failing = |every: usize| {
        valid(&|run| {
            run.samples.iter_mut().step_by(every).for_each(|sample| sample.outcome = gate_model::Outcome::Http5xx)
        })
    };
    assert!(failing(4));
    assert!(!failing(2), "half of it failed");
    // A violated run is valid: whether it is kept is not for the judge to say.
    let slow = gate_judge::judge(&run_of(&spec, &[900.0; 100]), &Prior::default());
    assert_eq!((slow.exit, slow.valid), (ExitCode::Violated, true));
}

fn comparison(check: &CheckVerdict) -> Comparison {
    check.evidence.as_ref().unwrap().comparison.clone().unwrap()
}

/// A run of these samples, all of which were planned.
fn whole(samples: Vec<Sample>) -> Run {
    let mut spec = gate(&["ttft.p95 < 800ms"], &[]);
    spec.load.iterations = Iterations::Fixed(samples.len() as u32);
    run(&spec, samples, EndReason::Completed)
}

#[test]
fn every_check_counts_the_same_runs() {
    let answered = |n: u32, ok_ones: u32| -> Run {
        let sample = |i| if i < ok_ones { ok(i, 100.0, 10.0) } else { failed(i, Outcome::Http5xx) };
        whole((0..n).map(sample).collect())
    };
    let checks = [
        "ttft.p50 < baseline + 10%",
        "ttft.p95 < baseline + 10%",
        "ttft.mean < baseline + 10%",
        "throughput.requests >= baseline - 10%",
        "errors.rate <= baseline + 1pp",
        "attainment >= baseline - 3pp",
        "ttft.max < baseline + 10%",
    ];
    let verdict = |stored: Vec<Run>| {
        let mut spec = gate(&checks, &[]);
        spec.load.iterations = Iterations::Fixed(50);
        spec.slo.ttft = Some(Nanos::from_millis(800));
        let prior = Prior { baselines: stored.into_iter().map(kept).collect(), ..Prior::default() };
        gate_judge::judge(&run_of(&spec, &[100.0; 50]), &prior)
    };
    let good = || answered(50, 50);
    for one in verdict(vec![answered(3, 3), good(), answered(50, 0), good(), answered(50, 19), answered(50, 20)]).checks
    {
        assert_eq!(comparison(&one).with, With::Baseline { runs: 3 }, "{}", one.check);
    }
    // What answered nothing allows nothing.
    for (stored, ok) in [(vec![answered(50, 0)], 0), (vec![answered(3, 3), answered(50, 19)], 19)] {
        for one in verdict(stored).checks {
            let why = NoBaseline::TooFewOk { ok, needed: 20 };
            assert_eq!(one.outcome, CheckOutcome::NoBaseline { why }, "{}", one.check);
        }
    }
}

#[test]
fn equality_breaks_no_relative_bound_by_evidence() {
    let same = [115.0; 50];
    let prior = prior_of(&[vec![115.0; 50], vec![115.0; 50], vec![115.0; 50]]);
    for op in ["<", "<="] {
        for metric in ["ttft.p50", "ttft.p95", "ttft.mean"] {
            let text = format!("{metric} {op} baseline");
            assert_eq!(outcome(&text, &same, &prior), BLIND, "{text}");
            let mut spec = gate(&[&format!("{metric} {op} reference")], &[]);
            spec.load.iterations = Iterations::Fixed(50);
            let samples = || (0..50).map(|index| ok(index, 115.0, 10.0)).collect();
            let beside = side_by_side(&spec, samples(), samples(), EndReason::Completed);
            assert_eq!(gate_judge::judge(&beside, &prior).checks[0].outcome, WITHIN, "{metric} {op} reference");
        }
        // 115 is 15 % more than 100, which rounding must not make more.
        let hundred = prior_of(&[vec![100.0; 50], vec![100.0; 50], vec![100.0; 50]]);
        for metric in ["ttft.p50", "ttft.p95"] {
            assert_eq!(outcome(&format!("{metric} {op} baseline + 15%"), &same, &hundred), WITHIN, "{metric} {op}");
        }
    }
    // Numbers compared as they are go by the sign.
    for (op, expected) in [("<", CheckOutcome::Violated), ("<=", CheckOutcome::Met)] {
        let mut spec = gate(&[&format!("ttft.p50 {op} baseline")], &[]);
        spec.load.iterations = Iterations::Fixed(50);
        spec.checks[0].decide = Some(Decide::Point);
        assert_eq!(gate_judge::judge(&run_of(&spec, &same), &prior).checks[0].outcome, expected, "{op}");
    }
}

#[test]
fn t_grows_the_worse_it_looks_either_way() {
    let prior = prior_of(&[100.0, 104.0, 97.0].map(|ttft| around(ttft, 50)));
    for (text, worse) in [("ttft.p50 < baseline + 10%", 1.0), ("ttft.p50 > baseline - 10%", -1.0)] {
        for ttft in [60.0, 150.0] {
            let verdict = judged(text, &around(ttft, 50), &prior);
            let check = &verdict.checks[0];
            let compared = comparison(check);
            let distance = (1.0 + compared.change.unwrap()).ln() - (1.0 + compared.tolerance.unwrap()).ln();
            let t = compared.statistic.unwrap();
            assert!((t - worse * distance / compared.deviation.unwrap()).abs() < 1e-9, "{text} {ttft}: {t}");
            assert!((compared.deviation.unwrap() - compared.noise.unwrap() * (4.0_f64 / 3.0).sqrt()).abs() < 1e-12);
            assert_eq!(t > 0.0, check.evidence.as_ref().unwrap().p_fail.unwrap() < 0.5, "{text} {ttft}");
            assert_eq!(t > 0.0, check.outcome == CheckOutcome::Violated, "{text} {ttft}");
        }
    }
}

#[test]
fn neighbours_that_resemble_each_other_explain_more_of_how_runs_differ() {
    // The same values, in random order and slowly rising and falling.
    let mut rng = ChaCha8Rng::seed_from_u64(7);
    let mut draw = || -> Vec<f64> { (0..50).map(|_| lognormal(&mut rng, 100.0, 0.4)).collect() };
    let drawn: Vec<Vec<f64>> = (0..4).map(|_| draw()).collect();
    let waves: Vec<Vec<f64>> = drawn
        .iter()
        .map(|values| {
            let mut sorted = values.clone();
            sorted.sort_by(f64::total_cmp);
            let (up, down): (Vec<(usize, f64)>, _) = sorted.into_iter().enumerate().partition(|(at, _)| at % 2 == 0);
            up.into_iter().chain(down.into_iter().rev()).map(|(_, value)| value).collect()
        })
        .collect();
    let of = |runs: &[Vec<f64>]| {
        let verdict = judged("ttft.p50 < baseline + 10%", &runs[0], &prior_of(&runs[1..]));
        let evidence = verdict.checks[0].evidence.clone().unwrap();
        (evidence.design_effect, evidence.comparison.unwrap().noise.unwrap())
    };
    let ((random, small), (wave, large)) = (of(&drawn), of(&waves));
    assert!(random < 1.5 && wave > 5.0, "{random} {wave}");
    assert!(large > 1.2 * small, "{small} {large}");
}

/// Requests at these times in seconds, each of which takes `takes`.
fn arriving(times: &[f64], takes: f64) -> Vec<Sample> {
    let at = |seconds: f64| Some(Nanos::from_secs_f64(seconds));
    let sample = |(index, time): (u32, &f64)| Sample {
        intended: Nanos::from_secs_f64(*time),
        start: at(*time),
        sent: at(*time),
        end: at(time + takes),
        ..ok(index, 100.0, 10.0)
    };
    (0..).zip(times).map(sample).collect()
}

#[test]
fn throughput_is_compared_over_as_many_requests() {
    // Two a second, each of which takes 6 s: 30 of them 1.5/s, 100 of them 1.8/s.
    let at_rate =
        |n: usize, rate: f64| -> Vec<Sample> { arriving(&(0..n).map(|i| i as f64 / rate).collect::<Vec<_>>(), 6.0) };
    let judged = |n: usize, rate: f64, stored: usize, decide| {
        let checks = ["throughput.requests >= baseline - 10%", "goodput >= baseline - 10%"];
        let mut spec = gate(&checks, &[]);
        spec.load.iterations = Iterations::Fixed(n as u32);
        spec.slo.ttft = Some(Nanos::from_millis(800));
        spec.checks.iter_mut().for_each(|check| check.decide = decide);
        let prior = Prior { baselines: vec![kept(whole(at_rate(stored, 2.0))); 3], ..Prior::default() };
        gate_judge::judge(&run(&spec, at_rate(n, rate), EndReason::Completed), &prior).checks
    };
    for (n, stored) in [(30, 100), (100, 30), (50, 50)] {
        let first = n.min(stored) as u32;
        for decide in [None, Some(Decide::Point)] {
            for check in judged(n, 2.0, stored, decide) {
                assert_eq!(check.outcome, CheckOutcome::Met, "{} {n} {stored}", check.check);
                let compared = comparison(&check);
                assert!(compared.change.unwrap().abs() < 1e-9, "{} {n} {stored}", check.check);
                assert_eq!((check.evidence.unwrap().n, compared.n), (first, 3 * first));
            }
        }
        // A real loss is found either way.
        for check in judged(n, 1.0, stored, None) {
            assert_eq!(check.outcome, CheckOutcome::Violated, "{} {n} {stored}", check.check);
        }
    }
}

#[test]
fn other_arrivals_are_no_other_server() {
    // The same server, and Poisson arrivals of another seed each: without their variance 17 % are red.
    let poisson = |seed: u64| -> Vec<Sample> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut at = 0.0;
        let mut next = || {
            at -= (1.0 - rand::RngExt::random::<f64>(&mut rng)).ln() / 2.0;
            at
        };
        arriving(&(0..30).map(|_| next()).collect::<Vec<_>>(), 0.5)
    };
    let mut spec = gate(&["throughput.requests >= baseline - 10%"], &[]);
    spec.load.iterations = Iterations::Fixed(30);
    let red = (0..200).filter(|seed| {
        let prior = Prior { baselines: vec![kept(whole(poisson(1000 + seed)))], ..Prior::default() };
        let verdict = gate_judge::judge(&run(&spec, poisson(*seed), EndReason::Completed), &prior);
        verdict.checks[0].outcome == CheckOutcome::Violated
    });
    assert!(red.count() <= 6, "3 %");
}

#[test]
fn what_hangs_on_a_few_requests_is_not_red_by_chance() {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let mut draw = || -> Vec<f64> { (0..50).map(|_| lognormal(&mut rng, 100.0, 0.6)).collect() };
    for text in ["ttft.stddev < baseline + 10%", "ttft.max < baseline + 10%", "send_lag.p99 < baseline + 10%"] {
        let mut sides = std::collections::BTreeSet::new();
        for _ in 0..20 {
            let verdict = judged(text, &draw(), &prior_of(&[draw()]));
            assert!([WITHIN, OVER].contains(&verdict.checks[0].outcome), "{text}: {:?}", verdict.checks[0].outcome);
            sides.insert(verdict.checks[0].outcome == OVER);
        }
        assert!(sides.len() == 2 || text.starts_with("send_lag"), "{text}");
    }
}

#[test]
fn what_will_be_found_is_known_beforehand() {
    let checks = ["ttft.p50 < baseline + 10%", "ttft.p95 < 800ms", "throughput.requests >= baseline - 10%"];
    let one = gate(&checks[..1], &[]);
    let found = |spec: &gate_model::GateSpec, place, runs, noise| stored_detects(spec, place, runs, noise);
    // t of 8 degrees of freedom: 1.8595 at 95 %, 0.8889 at 80 %; s √(1 + 1/5) is .05477.
    let expected = 1.1 * ((1.8595_f64 + 0.8889) * 0.05 * 1.2_f64.sqrt()).exp() - 1.0;
    assert!((found(&one, 0, 5, None).unwrap() - expected).abs() < 1e-4);
    assert_eq!(found(&one, 0, 5, Some(0.05)), found(&one, 0, 5, None));
    assert!(found(&one, 0, 5, Some(0.1)) > found(&one, 0, 5, None));
    assert!(found(&one, 0, 1, None) > found(&one, 0, 5, None));
    // More checks share the error probability, and a check may ask for more certainty.
    let three = gate(&checks, &[]);
    assert!(found(&three, 0, 5, None) > found(&one, 0, 5, None));
    let mut surer = one.clone();
    surer.checks[0].confidence = 0.99;
    assert!(found(&surer, 0, 5, None) > found(&one, 0, 5, None));
    let less = found(&three, 2, 5, None).unwrap();
    assert!((-0.5..-0.1).contains(&less), "{less}");
    assert_eq!([found(&three, 1, 5, None), found(&three, 3, 5, None), found(&three, 0, 0, None)], [None; 3]);
    let preferred = gate(&checks[1..], &checks[..1]);
    assert_eq!(found(&preferred, 2, 5, None), found(&one, 0, 5, None), "a family of its own");
    // The same of a run, by how its stored runs differ.
    let prior = prior_of(&[100.0, 104.0, 97.0].map(|ttft| around(ttft, 50)));
    let detects = |checks: &[&str]| {
        let mut spec = gate(checks, &[]);
        spec.load.iterations = Iterations::Fixed(50);
        comparison(&gate_judge::judge(&run_of(&spec, &around(100.0, 50)), &prior).checks[0]).detects.unwrap()
    };
    assert!(detects(&checks) > detects(&checks[..1]));
    assert_eq!(check(checks[0], Importance::Required).to_string(), checks[0]);
}
