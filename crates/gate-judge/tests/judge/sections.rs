//! Scenarios, one after another and together; runs that their own rules ended; long runs; conversations.

use gate_judge::referee;
use gate_model::{
    Cause, CheckOutcome, Decision, EndReason, Finding, GateSpec, Importance, Iterations, Load, Nanos, Outcome, Plan,
    PlannedRequest, Prices, Prior, Referee, Run, RunEnd, RunHeader, RunOrder, Sample, Scenario, Scrape, Section,
    ServerMetric, Spent, Status, Turns, Usage, Verdict,
};

use crate::support::{STARTED, check, failed, gate, judge, ok};

/// A gate of scenarios of these names, each with these checks and so many requests.
fn scenarios(names: &[&str], checks: &[&str], n: u32) -> GateSpec {
    let mut spec = gate(&[], &[]);
    let load = Load { iterations: Iterations::Fixed(n), ..Load::default() };
    let scenario = |name: &&str| Scenario {
        name: (*name).to_owned(),
        load: load.clone(),
        prompts: spec.prompts.clone(),
        slo: spec.slo,
        model: None,
        extra_body: serde_json::Map::new(),
        weight: 1.0,
    };
    spec.scenarios = names.iter().map(scenario).collect();
    for place in 0..names.len() as u16 {
        let own = checks.iter().map(|text| check(text, Importance::Required));
        spec.checks.extend(own.map(|check| gate_model::Check { scenario: place, ..check }));
    }
    spec
}

/// One section of it, with requests of these TTFTs in milliseconds.
fn part(spec: &GateSpec, number: u16, first: u32, ttfts: &[f64], reason: EndReason) -> Run {
    let n = spec.load_of(number).iterations.looks()[0];
    let request = |place: u32| PlannedRequest {
        index: first + place,
        scenario: number,
        at: Nanos::from_millis(500 * i64::from(place)),
        ..PlannedRequest::default()
    };
    let plan = Plan { section: number, first, ..Plan::new(spec, vec![n], (0..n).map(request).collect()) };
    let header = RunHeader::new(spec.clone(), &plan, "0.1.0", "r", STARTED);
    let samples = (0..).zip(ttfts).map(|(place, ttft)| of(ok(place, *ttft, 10.0), number, first + place));
    let samples: Vec<Sample> = samples.collect();
    let end = RunEnd::new(reason, samples.len() as u32, Nanos::from_secs(60));
    Run::new(header, Vec::new(), samples, Some(end))
}

fn of(sample: Sample, scenario: u16, index: u32) -> Sample {
    Sample { scenario, index, ..sample }
}

fn outcomes(verdict: &Verdict) -> Vec<&CheckOutcome> {
    verdict.checks.iter().map(|one| &one.outcome).collect()
}

#[test]
fn each_scenario_is_judged_on_its_own_section() {
    let spec = scenarios(&["fast", "slow"], &["ttft.p50 < 800ms"], 50);
    let sections = vec![
        part(&spec, 0, 0, &[100.0; 50], EndReason::Completed),
        part(&spec, 1, 50, &[900.0; 50], EndReason::Completed),
    ];
    let verdict = judge(&Run::assemble(sections).unwrap());
    assert_eq!(outcomes(&verdict), [&CheckOutcome::Met, &CheckOutcome::Violated]);
    assert_eq!((verdict.status, verdict.run.planned, verdict.run.judged), (Status::Violated, 100, 100));
    let evidence = verdict.checks[1].evidence.as_ref().unwrap();
    assert_eq!((evidence.n, evidence.k, evidence.shared.unwrap().checks), (50, 50, 2));
    // Nothing is left but the one that is not violated.
    assert_eq!(verdict.checks[0].evidence.as_ref().unwrap().shared.unwrap().checks, 1);
    let parts: Vec<_> = verdict.run.parts.iter().map(|part| (part.scenario, part.decided_at, part.judged)).collect();
    assert_eq!(parts, [(0, Some(50), 50), (1, Some(50), 50)]);
    assert_eq!(verdict.run.duration, Nanos::from_secs(120));
}

#[test]
fn a_section_that_was_never_begun_could_not_be_measured() {
    let spec = scenarios(&["one", "two", "three"], &["ttft.p50 < 800ms"], 50);
    let sections = vec![
        part(&spec, 0, 0, &[100.0; 50], EndReason::Completed),
        part(&spec, 1, 50, &[100.0; 10], EndReason::Interrupted),
    ];
    let verdict = judge(&Run::assemble(sections).unwrap());
    let interrupted = CheckOutcome::CouldNotMeasure { cause: Cause::Interrupted };
    assert_eq!(outcomes(&verdict), [&CheckOutcome::Met, &interrupted, &interrupted]);
    assert_eq!(verdict.status, Status::Interrupted);
    assert!(!verdict.valid && verdict.checks.iter().all(|one| one.power.is_some()));
    let budget = EndReason::BudgetSpent { key: "budget.requests".to_owned(), limit: "75".to_owned() };
    let sections =
        vec![part(&spec, 0, 0, &[100.0; 50], EndReason::Completed), part(&spec, 1, 50, &[100.0; 25], budget.clone())];
    let verdict = judge(&Run::assemble(sections).unwrap());
    // What was sent is judged; what was not is not.
    assert_eq!(verdict.checks[1].outcome, CheckOutcome::Met);
    assert_eq!(verdict.checks[2].outcome, CheckOutcome::CouldNotMeasure { cause: Cause::NotRun(budget.clone()) });
    assert!(verdict.findings.contains(&Finding::EndedEarly(budget)));
}

#[test]
fn what_the_server_would_not_serve_is_not_judged() {
    let mut spec = gate(&["errors.rate < 5%", "ttft.p50 < 800ms"], &[]);
    spec.load.iterations = Iterations::Fixed(100);
    for reason in [EndReason::Quota("daily limit".to_owned()), EndReason::Unauthorized("status 401".to_owned())] {
        // Few refusals among many answers, and many among few: neither passes nor fails.
        for answered in [29, 10] {
            let mut samples: Vec<Sample> = (0..answered).map(|index| ok(index, 100.0, 10.0)).collect();
            samples.push(failed(answered, Outcome::Http429));
            let verdict = judge(&crate::support::run(&spec, samples, reason.clone()));
            let refused = CheckOutcome::CouldNotMeasure { cause: Cause::NotRun(reason.clone()) };
            assert_eq!(outcomes(&verdict), [&refused, &refused]);
            assert_eq!(verdict.exit, gate_model::ExitCode::CouldNotMeasure);
            assert_eq!((verdict.run.sent, verdict.run.judged), (answered + 1, 0));
        }
    }
}

#[test]
fn what_was_killed_adds_up() {
    let spec = scenarios(&["one", "two", "three"], &["ttft.p95 < 800ms"], 50);
    let killed = Run { end: None, ..part(&spec, 1, 50, &[100.0; 20], EndReason::Interrupted) };
    let sections = vec![part(&spec, 0, 0, &[100.0; 50], EndReason::Completed), killed];
    let verdict = judge(&Run::assemble(sections).unwrap());
    let run = &verdict.run;
    assert_eq!((run.planned, run.sent, run.judged, run.looks.as_slice()), (100, 70, 50, &[100][..]));
    let parts: Vec<_> = run.parts.iter().map(|part| (part.planned, part.judged, part.outcomes.len())).collect();
    assert_eq!(parts, [(50, 50, 1), (50, 0, 1), (0, 0, 0)]);
    let ended: Nanos = run.parts[1].duration;
    assert!(ended > Nanos::from_secs(9));
    assert_eq!(run.duration, Nanos::from_secs(60) + ended);
    let cause = CheckOutcome::CouldNotMeasure { cause: Cause::Killed { recorded: 70, planned: 100 } };
    assert_eq!(outcomes(&verdict)[1..], [&cause, &cause]);
}

#[test]
fn a_section_of_unknown_size_proves_nothing_unsaid() {
    let mut spec = scenarios(&["one", "two"], &["ttft.p95 < 800ms"], 100);
    spec.scenarios[1].load.iterations = Iterations::For(Nanos::from_secs(3));
    let sections = vec![part(&spec, 0, 0, &[100.0; 40], EndReason::Interrupted)];
    let verdict = judge(&Run::assemble(sections).unwrap());
    let unproven = |finding: &Finding| matches!(finding, Finding::CannotProve { n: 0, .. });
    assert!(!verdict.findings.iter().any(unproven), "{:?}", verdict.findings);
    assert_eq!((verdict.run.planned, verdict.run.sent), (100, 40));
}

#[test]
fn embeddings_cost_their_input() {
    let mut spec = gate(&["cost <= $0.005", "tokens.spent <= 5000"], &[]);
    spec.target.api = gate_model::Api::OpenaiEmbeddings;
    spec.load.iterations = Iterations::Fixed(50);
    spec.prices = Some(Prices { input: 1.0, cached_input: None, output: 2.0 });
    let answer = |index| {
        let usage = Usage { input: Some(100), ..Usage::default() };
        Sample { usage: Some(usage), first_token: None, ..ok(index, 100.0, 10.0) }
    };
    let verdict = judge(&crate::support::run(&spec, (0..50).map(answer).collect(), EndReason::Completed));
    assert_eq!(outcomes(&verdict), [&CheckOutcome::Met, &CheckOutcome::Met]);
    assert_eq!(verdict.run.spent.unwrap(), Spent { requests: 50, input: 5_000, ..Spent::default() });
}

#[test]
fn a_warm_cache_has_one_prompt() {
    let mut spec = gate(&["ttft.p50 < 800ms"], &[]);
    spec.load.iterations = Iterations::Fixed(60);
    spec.prompts.cache = gate_model::Cache::Warm;
    // More cached than there were: the server is wrong.
    let answer = |index| {
        let usage = Usage { input: Some(100), cached: Some(99_999), output: Some(50), ..Usage::default() };
        Sample { usage: Some(usage), ..ok(index, 100.0, 10.0) }
    };
    let facts = |spec: &GateSpec| {
        judge(&crate::support::run(spec, (0..60).map(answer).collect(), EndReason::Completed)).run.prompts
    };
    let [prompts] = facts(&spec)[..] else { panic!("{:?}", facts(&spec)) };
    assert_eq!((prompts.requests, prompts.unique, prompts.overlap, prompts.cached), (60, 1, 1.0, Some(1.0)));
    // How many different rows a file has is not known from the run.
    spec.prompts.file = Some("rows.jsonl".to_owned());
    assert_eq!(facts(&spec), []);
}

#[test]
fn a_share_of_another_scenario_looks_into_its_section() {
    let mut spec = scenarios(&["cold", "warm"], &[], 100);
    spec.checks = vec![gate_model::Check { scenario: 1, ..check("ttft.p50 < 40% of cold", Importance::Required) }];
    let verdict = |warm: f64| {
        let sections = vec![
            part(&spec, 0, 0, &[1_000.0; 100], EndReason::Completed),
            part(&spec, 1, 100, &[warm; 100], EndReason::Completed),
        ];
        judge(&Run::assemble(sections).unwrap()).checks.remove(0)
    };
    assert_eq!(verdict(300.0).outcome, CheckOutcome::Met);
    let broken = verdict(600.0);
    assert_eq!(broken.outcome, CheckOutcome::Violated);
    assert_eq!(broken.evidence.unwrap().comparison.unwrap().base.unwrap().value, 1e9);
    // While it runs the other scenario is not known, and it asks for nothing.
    let section = Section { number: 1, scenarios: vec![1], ..crate::support::section(&[30, 100]) };
    let samples: Vec<Sample> = (0..30).map(|place| of(ok(place, 600.0, 10.0), 1, 100 + place)).collect();
    assert_eq!(referee(&spec, &section, STARTED, &Prior::default()).look(&samples), Decision::Stop);
}

#[test]
fn together_each_check_has_the_looks_of_its_own_scenario() {
    let mut spec = scenarios(&["often", "rare"], &["ttft.p50 < 800ms"], 100);
    spec.order = RunOrder::Together;
    // Every fourth is rare: 25 of 100.
    let scenario = |index: u32| u16::from(index % 4 == 3);
    let request = |index: u32| PlannedRequest {
        index,
        scenario: scenario(index),
        at: Nanos::from_millis(500 * i64::from(index)),
        ..PlannedRequest::default()
    };
    let by_scenario = vec![vec![75, 25]];
    let plan = Plan { by_scenario, ..Plan::new(&spec, vec![100], (0..100).map(request).collect()) };
    let header = RunHeader::new(spec.clone(), &plan, "0.1.0", "r", STARTED);
    let samples: Vec<Sample> = (0..100)
        .map(|index| of(ok(index, if scenario(index) == 1 { 900.0 } else { 100.0 }, 10.0), scenario(index), index))
        .collect();
    let end = RunEnd::new(EndReason::Completed, 100, Nanos::from_secs(60));
    let verdict = judge(&Run::new(header, Vec::new(), samples, Some(end)));
    assert_eq!(outcomes(&verdict), [&CheckOutcome::Met, &CheckOutcome::Violated]);
    let looks: Vec<_> = verdict.checks.iter().map(|one| one.power.as_ref().unwrap().violates_at.clone()).collect();
    assert_eq!((looks[0][0].0, looks[1][0].0), (75, 25));
    assert_eq!(verdict.checks[1].evidence.as_ref().unwrap().n, 25);
}

#[test]
fn a_lost_check_is_violated_on_what_was_sent() {
    let mut spec = gate(&["errors.rate < 5%", "ttft.p50 < 800ms"], &[]);
    spec.load.iterations = Iterations::Fixed(1_000);
    let section = crate::support::section(&[1_000]);
    let mut one = referee(&spec, &section, STARTED, &Prior::default());
    let mut samples: Vec<Sample> = Vec::new();
    let lost = (0..1_000).find_map(|index| {
        // Every other one fails: the fiftieth is one too many.
        let sample = if index % 2 == 1 { failed(index, Outcome::Http5xx) } else { ok(index, 100.0, 10.0) };
        samples.push(sample.clone());
        one.lost(&sample)
    });
    assert_eq!((lost.as_deref(), samples.len()), (Some("errors.rate < 5%"), 100));
    // Two more were under way.
    samples.extend([ok(100, 100.0, 10.0), ok(101, 100.0, 10.0)]);
    let reason = EndReason::Lost { check: "errors.rate < 5%".to_owned() };
    let verdict = judge(&crate::support::run(&spec, samples, reason));
    assert_eq!(verdict.checks[0].outcome, CheckOutcome::Violated);
    assert_eq!((verdict.status, verdict.run.decided_at, verdict.run.judged), (Status::Violated, Some(102), 102));
    // Failures of which nothing can be said are no reason.
    let mut one = referee(&spec, &section, STARTED, &Prior::default());
    assert!((0..200).all(|index| one.lost(&failed(index, Outcome::Connect)).is_none()));
    spec.abort.lost = false;
    let mut one = referee(&spec, &section, STARTED, &Prior::default());
    assert!((0..200).all(|index| one.lost(&failed(index, Outcome::Http5xx)).is_none()));
}

#[test]
fn whatever_is_named_lost_is_violated() {
    use rand::{RngExt, SeedableRng};
    let checks = ["ttft.p50 < 210ms", "ttft.p95 < 300ms", "ttft.p90.all < 300ms", "attainment >= 90%", "e2e.max < 3s"];
    let mut named = [0; 5];
    for seed in 0..120_u64 {
        let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(seed);
        let place = (seed % 5) as usize;
        let mut spec = gate(&[checks[place]], &[]);
        spec.slo.ttft = Some(Nanos::from_millis(300));
        let n = [60, 200, 400][(seed / 5 % 3) as usize];
        spec.load.iterations = Iterations::Fixed(n);
        let mut one = referee(&spec, &crate::support::section(&[n]), STARTED, &Prior::default());
        let (level, stays) = (180.0 + 200.0 * rng.random::<f64>(), rng.random::<f64>() * 0.95);
        let (mut samples, mut slow) = (Vec::new(), false);
        let mut lost = None;
        let mut left = n;
        for index in 0..n {
            // Slow phases come and go, so that neighbours resemble each other.
            slow = if rng.random_bool(stays) { slow } else { rng.random_bool(0.4) };
            let ttft = crate::support::lognormal(&mut rng, if slow { 2.0 * level } else { level }, 0.2);
            let huge = seed % 5 == 4 && rng.random_bool(0.01);
            let sample = match rng.random_bool(0.03) {
                true => failed(index, Outcome::Reset),
                false => ok(index, if huge { 5_000.0 } else { ttft }, 10.0),
            };
            samples.push(sample.clone());
            if lost.is_none() {
                lost = one.lost(&sample);
                if lost.is_some() {
                    left = rng.random_range(0..20);
                }
            } else if left == 0 {
                break;
            } else {
                left -= 1;
            }
        }
        let Some(check) = lost else { continue };
        let verdict = judge(&crate::support::run(&spec, samples, EndReason::Lost { check: check.clone() }));
        named[place] += 1;
        assert_eq!(
            (check.as_str(), &verdict.checks[0].outcome),
            (checks[place], &CheckOutcome::Violated),
            "{seed}: {check}"
        );
    }
    assert!(named.iter().all(|times| *times > 2), "{named:?}");
}

#[test]
fn what_it_cost_and_what_the_server_said() {
    let mut spec =
        gate(&["cost < $0.01", "tokens.spent <= 8000", "server.waiting.max < 5", "server.running.mean > 1"], &[]);
    spec.load.iterations = Iterations::Fixed(50);
    spec.prices = Some(Prices { input: 1.0, cached_input: None, output: 2.0 });
    let run = || crate::support::run_of(&spec, &[100.0; 50]);
    let waiting = ServerMetric::new("waiting").unwrap();
    let scrape = |at: i64, value: f64| Scrape { at: Nanos::from_secs(at), values: vec![(waiting, value)], error: None };
    let scraped = Run { scrapes: vec![scrape(-1, 99.0), scrape(1, 2.0), scrape(9, 6.0)], ..run() };
    let verdict = judge(&scraped);
    // 50 × 100 tokens in and 50 × 50 out: 5,000 and 2,500.
    let seen = |place: usize| verdict.checks[place].seen.unwrap().value;
    assert!((seen(0) - 0.01).abs() < 1e-12, "{}", seen(0));
    assert_eq!((seen(1), seen(2)), (7_500.0, 6.0));
    assert_eq!(verdict.checks[2].outcome, CheckOutcome::Violated);
    let missing = CheckOutcome::CouldNotMeasure { cause: Cause::NotScraped { message: None } };
    assert_eq!(verdict.checks[3].outcome, missing);
    assert_eq!((verdict.run.server[0].delta, verdict.run.server[0].scrapes), (-93.0, 2));
    let mut uncounted = run();
    let spent = Spent { requests: 55, input: 100, cached: 0, output: 10, uncounted: 3 };
    uncounted.end.as_mut().unwrap().spent = Some(spent);
    let verdict = judge(&uncounted);
    let cause = Cause::Uncounted { requests: 3 };
    assert_eq!(verdict.checks[0].outcome, CheckOutcome::CouldNotMeasure { cause });
    assert!(verdict.findings.contains(&Finding::UncountedCost { requests: 3 }));
    let refused = Scrape { at: Nanos::ZERO, values: Vec::new(), error: Some("status 404".to_owned()) };
    let verdict = judge(&Run { scrapes: vec![refused], ..run() });
    let cause = Cause::NotScraped { message: Some("status 404".to_owned()) };
    assert_eq!(verdict.checks[2].outcome, CheckOutcome::CouldNotMeasure { cause });
}

#[test]
fn a_ramp_without_a_knee_is_held_to_what_was_asked_of_it() {
    // To 40/s in 200 s. From 32/s on every other request is slow: too few for a knee, too many for a proof.
    let outcome = |bound: &str, is_good: bool| {
        let mut spec = gate(&[&format!("knee.rate >= {bound}")], &[]);
        let per_second = gate_model::PerSecond;
        let (from, to) = (per_second(0.0), per_second(40.0));
        spec.load.pattern = gate_model::Pattern::Ramp { from, to, over: Nanos::from_secs(200) };
        spec.load.iterations = Iterations::Fixed(400);
        spec.slo.ttft = Some(Nanos::from_millis(800));
        let is_slow = |place: u32| !is_good && place >= 320 && place.is_multiple_of(2);
        let ttfts: Vec<f64> = (0..400).map(|place| if is_slow(place) { 900.0 } else { 100.0 }).collect();
        let check = judge(&crate::support::run_of(&spec, &ttfts)).checks.remove(0);
        assert_eq!(check.seen, Some("40/s".parse().unwrap()));
        let pattern = check.evidence.unwrap().pattern.unwrap();
        assert!(matches!(pattern, gate_model::PatternFacts::Knee { at: None, .. }), "{pattern:?}");
        check.outcome
    };
    let (within, over) = (gate_model::Side::Within, gate_model::Side::Over);
    assert_eq!(outcome("10/s", true), CheckOutcome::Met);
    assert_eq!(outcome("10/s", false), CheckOutcome::Inconclusive { side: within });
    // Of the last fifth up to 35/s 16 of 71 are slow, up to 39/s 36 of 79.
    assert_eq!(outcome("35/s", false), CheckOutcome::Inconclusive { side: within });
    assert_eq!(outcome("39/s", false), CheckOutcome::Inconclusive { side: over });
    assert_eq!(outcome("41/s", true), CheckOutcome::Inconclusive { side: over });
}

#[test]
fn a_spike_is_judged_by_the_requests_that_were_due_in_it() {
    let mut spec = gate(&["spike.ttft.p50 < 800ms", "ttft.p50 < 800ms", "spike.errors.rate < 5%"], &[]);
    let (before, hold) = (Nanos::from_secs(30), Nanos::from_secs(15));
    spec.load.pattern = gate_model::Pattern::Spike { times: 1.0, hold, before, after: Nanos::from_secs(55) };
    spec.load.iterations = Iterations::Fixed(200);
    // Two a second: 60 before, 30 inside.
    let ttfts: Vec<f64> = (0..200).map(|place| if (60..90).contains(&place) { 900.0 } else { 100.0 }).collect();
    let verdict = judge(&crate::support::run_of(&spec, &ttfts));
    assert_eq!(outcomes(&verdict), [&CheckOutcome::Violated, &CheckOutcome::Met, &CheckOutcome::Met]);
    let evidence = verdict.checks[0].evidence.as_ref().unwrap();
    assert_eq!((evidence.n, evidence.k), (30, 30));
    assert_eq!(verdict.checks[0].power.as_ref().unwrap().violates_at[0].0, 30);
    assert_eq!(verdict.checks[2].evidence.as_ref().unwrap().n, 30);
}

#[test]
fn a_long_run_is_judged_in_short() {
    let mut spec = gate(&["ttft.p99 < 800ms", "itl.p95 < 50ms", "errors.rate < 1%", "attainment >= 95%"], &[]);
    spec.slo.ttft = Some(Nanos::from_millis(800));
    let n = 100_100;
    spec.load.iterations = Iterations::Fixed(n);
    let plan = Plan { whole: n, ..Plan::new(&spec, vec![n], Vec::new()) };
    let header = RunHeader::new(spec.clone(), &plan, "0.1.0", "r", STARTED);
    let end = RunEnd::new(EndReason::Completed, n, Nanos::from_secs(60_000));
    let mut run = Run::new(header, Vec::new(), Vec::new(), Some(end));
    for index in 0..n {
        run.keep(match index % 200 {
            199 => failed(index, Outcome::Http5xx),
            place => ok(index, if place == 0 { 900.0 } else { 100.0 }, 10.0),
        });
    }
    assert!(run.is_long() && run.samples.len() == 1_000);
    let verdict = judge(&run);
    assert_eq!(verdict.checks[0].outcome, CheckOutcome::Met);
    assert_eq!(verdict.checks[1].outcome, CheckOutcome::CouldNotMeasure { cause: Cause::NotKept });
    assert_eq!(verdict.checks[2].outcome, CheckOutcome::Met);
    assert_eq!(verdict.checks[3].outcome, CheckOutcome::Met);
    let evidence = verdict.checks[0].evidence.as_ref().unwrap();
    assert_eq!((evidence.n, evidence.k), (n - 500, 501));
    let failure = |one: &&Finding| matches!(one, Finding::Failure { count: 500, message, .. } if message == "it failed: http_5xx");
    assert!(verdict.findings.iter().any(|one| failure(&one)), "{:?}", verdict.findings);
}

#[test]
fn conversations_that_were_cut_leave_a_completed_run() {
    let mut spec = gate(&["ttft.p50 < 800ms"], &[]);
    spec.prompts.turns = Turns { min: 3, max: 3 };
    spec.load.iterations = Iterations::Fixed(60);
    // Twenty conversations of three turns; the second turn of two of them fails.
    let samples: Vec<Sample> = (0..60_u32)
        .filter(|index| !matches!(index, 5 | 59))
        .map(|index| {
            let sample = if matches!(index, 4 | 58) { failed(index, Outcome::Reset) } else { ok(index, 100.0, 10.0) };
            let turn = (index % 3) as u16;
            let input = Some(100 + 150 * u64::from(turn));
            let usage = sample.usage.map(|usage| Usage { input, cached: Some(100 * u64::from(turn)), ..usage });
            Sample { turn, usage, ..sample }
        })
        .collect();
    let verdict = judge(&crate::support::run(&spec, samples, EndReason::Completed));
    assert_eq!(verdict.checks[0].outcome, CheckOutcome::Met);
    assert!(verdict.findings.contains(&Finding::ConversationsCut { conversations: 2 }), "{:?}", verdict.findings);
    let turns: Vec<(u64, u32, Option<f64>)> =
        verdict.run.turns.iter().map(|one| (one.from, one.n, one.input)).collect();
    assert_eq!(turns, [(0, 20, Some(100.0)), (1, 18, Some(250.0)), (2, 18, Some(400.0))]);
    let contexts: Vec<(u64, u64, u32)> = verdict.run.contexts.iter().map(|one| (one.from, one.to, one.n)).collect();
    assert_eq!(contexts.iter().map(|(_, _, n)| n).sum::<u32>(), 56);
    let prompts = verdict.run.prompts[0];
    // Of three turns of 100 tokens, each with its answer of 50: 0 of 100, 150 of 250 and 300 of 400 were there before.
    assert!((0.55..0.62).contains(&prompts.overlap), "{}", prompts.overlap);
    assert_eq!((prompts.requests, prompts.unique), (58, 58));
}

#[test]
fn prompts_of_one_length_are_told() {
    let mut spec = gate(&["ttft.p50 < 800ms"], &[]);
    let told = |spec: &GateSpec| {
        let notes = gate_judge::plan_notes(spec, &[crate::support::section(&[30])]);
        notes.contains(&Finding::UniformPrompts { scenario: "chat".to_owned() })
    };
    assert!(!told(&spec));
    spec.prompts.input_tokens.stddev = 0.0;
    assert!(!told(&spec));
    spec.prompts.output_tokens.stddev = 0.0;
    assert!(told(&spec));
    spec.prompts.cache = gate_model::Cache::Warm;
    assert!(!told(&spec));
}
