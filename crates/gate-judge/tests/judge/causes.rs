//! Likely causes in virtual time, on engines of which it is known what changed: 50 seeds of each, side by side and
//! against stored runs, of which 48 must be right; and engines that are as they were, of which nothing may be said.

use gate_engine::simulate;
use gate_model::{
    Against, Arm, Cache, Cause, CheckOutcome, EndReason, Endpoint, EngineParams, GateSpec, Health, Iterations, Latency,
    LikelyCause, Nanos, Phase, Plan, PlannedRequest, PrefixCache, Prior, Run, Sample, Stamping, Suspect, Target,
    Verdict,
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::support::{gate, kept, ok, run, side_by_side};

const SEEDS: u64 = 50;
const LEAST_RIGHT: usize = 48;
/// Broken by any server.
const CHECKS: [&str; 2] = ["ttft.p50 < 1ms", "e2e.p50 < 1ms"];

/// What is sent, and to what.
#[derive(Clone)]
struct Traffic {
    /// Requests a second.
    rate: f64,
    requests: u32,
    /// The mean of output tokens.
    output: f64,
    /// The mean of input tokens.
    input: f64,
    engine: EngineParams,
}

fn latency(millis: i64, stddev: i64) -> Latency {
    let (mean, stddev) = (Nanos::from_millis(millis), Nanos::from_millis(stddev));
    Latency { mean, stddev, ..EngineParams::default().ttft }
}

/// A server that is hardly ever busy: requests of three quarters of a second, 1.2 of them a second.
fn usual() -> Traffic {
    let engine = EngineParams {
        ttft: latency(120, 30),
        tpot: latency(10, 1),
        slots: Some(16),
        prefill: Some(4_000.0),
        prefix_cache: Some(PrefixCache { blocks: 4_096, block_tokens: 16 }),
        ..EngineParams::default()
    };
    Traffic { rate: 1.2, requests: 60, output: 60.0, input: 1_000.0, engine }
}

/// One that is busy: a slot is free for a quarter of the time.
fn busy() -> Traffic {
    Traffic { rate: 2.0, engine: EngineParams { slots: Some(2), ..usual().engine }, ..usual() }
}

fn with(traffic: &Traffic, change: impl Fn(&mut Traffic)) -> Traffic {
    let mut changed = traffic.clone();
    change(&mut changed);
    changed
}

fn requests(traffic: &Traffic, arrivals: u64, lengths: u64) -> Vec<PlannedRequest> {
    let (mut times, mut draws) = (ChaCha8Rng::seed_from_u64(arrivals), ChaCha8Rng::seed_from_u64(lengths + 1_000_000));
    let mut at = 0.0;
    let mut request = |index| {
        at += -(1.0 - times.random::<f64>()).ln() / traffic.rate;
        let mut about = |mean: f64| (mean * (0.6 + 0.8 * draws.random::<f64>())).round() as u32;
        PlannedRequest {
            index,
            at: Nanos::from_secs_f64(at),
            input_tokens: about(traffic.input),
            output_tokens: about(traffic.output),
            ..PlannedRequest::default()
        }
    };
    (0..traffic.requests).map(&mut request).collect()
}

fn spec(checks: &[&str], requests: u32) -> GateSpec {
    let mut spec = gate(checks, &[]);
    spec.load.iterations = Iterations::Fixed(requests);
    spec.prompts.cache = Cache::Warm;
    spec.timeouts.first_token = Nanos::from_secs(1_000);
    spec.timeouts.total = Nanos::from_secs(2_000);
    spec
}

/// A run of its own: the plan of a seed, to an engine of another.
fn played(checks: &[&str], traffic: &Traffic, seed: u64, engine: u64) -> Run {
    let spec = spec(checks, traffic.requests);
    let warmup = requests(&Traffic { requests: 2, ..traffic.clone() }, 0, 0);
    let plan = Plan::new(&spec, vec![traffic.requests], requests(traffic, seed, seed));
    let plan = Plan { warmup, ..plan };
    let engine = EngineParams { seed: engine, ..traffic.engine.clone() };
    simulate(&engine, None, &plan, run(&spec, Vec::new(), EndReason::Completed).header)
}

/// Against one stored run or several, all of them of `before`; of one plan, as a gate's runs are.
fn against_stored(checks: &[&str], before: &Traffic, now: &Traffic, runs: u64, seed: u64) -> Verdict {
    let stored = (1..=runs).map(|one| kept(played(checks, before, seed, seed + 10_000 * one)));
    let prior = Prior { baselines: stored.collect(), ..Prior::default() };
    gate_judge::judge(&played(checks, now, seed, seed), &prior)
}

/// Side by side, each arm with its own lengths.
fn beside(checks: &[&str], before: &Traffic, now: &Traffic, seed: u64) -> Verdict {
    let mut spec = spec(checks, now.requests);
    spec.reference = Some(Target::new(Endpoint::Sim(Box::new(before.engine.clone()))));
    let pair = |of: &Traffic, arm: Arm| {
        let index = move |one: u32| 2 * one + u32::from(arm == Arm::Reference);
        let requests = requests(of, seed, seed).into_iter();
        requests.map(move |one| PlannedRequest { index: index(one.index), arm, pair: Some(one.index), ..one })
    };
    let mut pairs: Vec<PlannedRequest> = pair(now, Arm::Target).chain(pair(before, Arm::Reference)).collect();
    pairs.sort_by_key(|one| one.index);
    let warmup: Vec<PlannedRequest> =
        pairs.iter().take(4).map(|one| PlannedRequest { at: Nanos::ZERO, ..*one }).collect();
    let plan = Plan { warmup, ..Plan::new(&spec, vec![now.requests], pairs) };
    let header = run(&spec, Vec::new(), EndReason::Completed).header;
    let (target, reference) =
        (EngineParams { seed, ..now.engine.clone() }, EngineParams { seed: seed + 7, ..before.engine.clone() });
    gate_judge::judge(&simulate(&target, Some(&reference), &plan, header), &Prior::default())
}

fn name(cause: &LikelyCause) -> &'static str {
    match cause {
        LikelyCause::ClientBusy { .. } => "client",
        LikelyCause::LongerOutputs { .. } => "outputs",
        LikelyCause::LongerPrompts { .. } => "prompts",
        LikelyCause::CacheLost { .. } => "cache",
        LikelyCause::DecodeSlower { .. } => "decode",
        LikelyCause::QueueGrew { .. } => "queue",
        LikelyCause::PrefillSlower { .. } => "prefill",
        LikelyCause::SlowerConnect { .. } => "connect",
    }
}

fn names(verdict: &Verdict) -> Vec<&'static str> {
    verdict.suspects.iter().map(|one| name(&one.cause)).collect()
}

/// Of how many seeds something is true; two threads ask it.
fn counted(is_true: impl Fn(u64) -> bool + Sync) -> usize {
    let count = |parity: u64| (0..SEEDS).filter(|seed| seed % 2 == parity && is_true(*seed)).count();
    std::thread::scope(|scope| {
        let odd = scope.spawn(|| count(1));
        count(0) + odd.join().unwrap()
    })
}

/// Whether a verdict names these causes in this order and, where a part of a request moved, a part they lengthen.
fn is_right(verdict: &Verdict, expected: &[&str], phase: Phase, against: Against) -> bool {
    let named = names(verdict) == expected && verdict.suspects[0].phase == phase;
    // A queue may add more than what it grew for.
    let is_explained = |phase: Phase| verdict.suspects.iter().any(|one| one.phase == phase);
    let agrees = verdict.moved.is_none_or(|moved| is_explained(moved.phase) && moved.against == against);
    named && agrees && verdict.suspects.iter().all(|one| one.against == Some(against))
}

/// The verdict of a seed.
type Judged<'a> = &'a (dyn Fn(u64) -> Verdict + Sync);

/// That causes are named, and no others, side by side and against stored runs.
#[track_caller]
fn finds(what: &str, before: &Traffic, now: &Traffic, expected: &[&str], phase: Phase) {
    let reports: [(&str, Against, Judged<'_>); 3] = [
        ("side by side", Against::Reference, &|seed| beside(&CHECKS, before, now, seed)),
        ("against 1 run", Against::Baseline, &|seed| against_stored(&CHECKS, before, now, 1, seed)),
        ("against 5 runs", Against::Baseline, &|seed| against_stored(&CHECKS, before, now, 5, seed)),
    ];
    let mut wrong = Vec::new();
    for (how, against, verdict) in reports {
        let right = counted(|seed| {
            let verdict = verdict(seed);
            let is_right = is_right(&verdict, expected, phase, against);
            if !is_right {
                println!("{what}, {how}, {seed}: {:?} {:?}", names(&verdict), verdict.moved);
            }
            is_right
        });
        println!("{what}, {how}: right {right} of {SEEDS} times");
        wrong.extend((right < LEAST_RIGHT).then(|| format!("{what}, {how}: {right} of {SEEDS}")));
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}

#[test]
fn a_slower_engine() {
    for (what, before) in [("hardly busy", usual()), ("more often busy", Traffic { rate: 3.0, ..usual() })] {
        let slower = with(&before, |now| now.engine.tpot = latency(16, 2));
        finds(&format!("each token slower, {what}"), &before, &slower, &["decode"], Phase::Decode);
    }
    let slower = with(&usual(), |now| now.engine.ttft = latency(360, 90));
    finds("the first token later", &usual(), &slower, &["prefill"], Phase::FirstToken);
    let slower = with(&usual(), |now| (now.engine.tpot, now.engine.ttft) = (latency(30, 3), latency(360, 90)));
    finds("all of it slower", &usual(), &slower, &["decode", "prefill"], Phase::Decode);
}

#[test]
fn what_moved_is_the_part_that_added_most_whatever_comes_first_of_its_causes() {
    let before = Traffic { rate: 2.0, ..usual() };
    let slower = with(&before, |now| (now.engine.slots, now.engine.tpot) = (Some(1), latency(16, 2)));
    let verdict = beside(&CHECKS, &before, &slower, 1);
    assert_eq!(names(&verdict), ["decode", "queue"]);
    let moved = verdict.moved.unwrap();
    assert!(moved.phase == Phase::FirstToken && moved.to.0 > 5 * moved.from.0, "{moved:?}");
}

#[test]
fn a_longer_queue() {
    let before = Traffic { rate: 2.0, ..usual() };
    let fewer = with(&before, |now| now.engine.slots = Some(1));
    finds("one slot, more than it can serve", &before, &fewer, &["queue"], Phase::FirstToken);
    let before = Traffic { rate: 2.4, requests: 100, ..usual() };
    let fewer = with(&before, |now| now.engine.slots = Some(2));
    finds("two slots", &before, &fewer, &["queue"], Phase::FirstToken);
    let before = Traffic { rate: 1.2, requests: 100, ..busy() };
    let more = with(&before, |now| now.rate = 3.2);
    finds("more requests a second", &before, &more, &["queue"], Phase::FirstToken);
}

#[test]
fn a_lost_prefix_cache() {
    let lost = with(&usual(), |now| now.engine.prefix_cache = Some(PrefixCache { blocks: 1, block_tokens: 16 }));
    finds("no cache", &usual(), &lost, &["cache"], Phase::FirstToken);
}

#[test]
fn longer_prompts() {
    let before = with(&usual(), |now| now.engine.prefix_cache = None);
    let longer = with(&before, |now| now.input = 2_500.0);
    finds("longer prompts", &before, &longer, &["prompts"], Phase::FirstToken);
}

#[test]
fn longer_outputs() {
    let longer = with(&usual(), |now| now.output = 110.0);
    finds("longer outputs", &usual(), &longer, &["outputs"], Phase::Decode);
}

#[test]
fn a_queue_that_grew_for_longer_outputs_comes_after_them() {
    let before = Traffic { requests: 100, ..busy() };
    let longer = with(&before, |now| now.output = 180.0);
    finds("longer outputs and a queue", &before, &longer, &["outputs", "queue"], Phase::Decode);
    // So it does where the check is on the queue's part alone, which longer outputs lengthen by it.
    let first = |checks: &[&str], before: &Traffic, longer: &Traffic| {
        names(&against_stored(checks, before, longer, 1, 3)).first().copied()
    };
    assert_eq!(first(&["ttft.p50 < 1ms"], &before, &longer), Some("outputs"));
    assert_eq!(first(&["ttft.p50 < 1ms"], &usual(), &with(&usual(), |now| now.output = 110.0)), None);
    assert_eq!(first(&["tpot.p50 < 1ms"], &before, &longer), None, "no token takes longer");
}

#[test]
fn a_cause_explains_what_the_check_is_on() {
    let slower = with(&usual(), |now| now.engine.tpot = latency(30, 3));
    let named = |check: &str, now: &Traffic| names(&beside(&[check], &usual(), now, 5));
    assert_eq!(named("tpot.p50 < 1ms", &slower), ["decode"]);
    assert_eq!(named("throughput.output_tokens > 1000000/s", &slower), ["decode"]);
    assert_eq!(named("ttft.p50 < 1ms", &slower), [""; 0]);
    let later = with(&usual(), |now| now.engine.ttft = latency(360, 90));
    assert_eq!(named("ttft.p50 < 1ms", &later), ["prefill"]);
    assert_eq!(named("tpot.p50 < 1ms", &later), [""; 0]);
    assert_eq!(named("errors.rate < 5%", &later), [""; 0]);
}

#[test]
fn the_evidence_has_numbers() {
    let before = Traffic { rate: 2.0, ..usual() };
    let fewer = with(&before, |now| now.engine.slots = Some(1));
    let stored = against_stored(&CHECKS, &before, &fewer, 2, 1);
    let [Suspect { cause: LikelyCause::QueueGrew { wait, alone, waiting, rising }, .. }] = &stored.suspects[..] else {
        panic!()
    };
    assert!(wait.to.value > 5.0 * wait.from.value && alone.to.value < wait.to.value / 2.0, "{wait:?} {alone:?}");
    let waiting = waiting.unwrap();
    assert!(waiting.from.value == 0.0 && waiting.to.value > 1.0, "{waiting:?}");
    let rising = rising.unwrap();
    assert!(rising.to.value > 2.0 * rising.from.value, "two requests a second are too many for it: {rising:?}");
    // Nothing is read of a reference.
    let beside = beside(&CHECKS, &before, &fewer, 1);
    assert!(matches!(beside.suspects[0].cause, LikelyCause::QueueGrew { waiting: None, .. }));

    let lost = with(&usual(), |now| now.engine.prefix_cache = Some(PrefixCache { blocks: 1, block_tokens: 16 }));
    let stored = against_stored(&CHECKS, &usual(), &lost, 1, 1);
    let LikelyCause::CacheLost { cached } = stored.suspects[0].cause else { panic!() };
    assert!(cached.from.value > 0.6 && cached.to.value < 0.1, "{cached:?}");
}

#[test]
fn the_servers_counters_tell_of_the_cache_where_usage_does_not() {
    let silent = |traffic: &Traffic, engine: u64| {
        let mut run = played(&CHECKS, traffic, 3, engine);
        assert!(!run.scrapes.is_empty());
        run.samples.iter_mut().for_each(|one| one.usage.as_mut().unwrap().cached = None);
        run
    };
    let lost = with(&usual(), |now| now.engine.prefix_cache = Some(PrefixCache { blocks: 1, block_tokens: 16 }));
    let prior = Prior { baselines: vec![kept(silent(&usual(), 4))], ..Prior::default() };
    let named = |now: &Traffic| names(&gate_judge::judge(&silent(now, 5), &prior));
    assert_eq!(named(&lost), ["cache"]);
    assert_eq!(named(&usual()), [""; 0]);
}

#[test]
fn a_server_that_leaves_out_that_it_has_cached_nothing_has_lost_its_cache() {
    let lost = with(&usual(), |now| now.engine.prefix_cache = Some(PrefixCache { blocks: 1, block_tokens: 16 }));
    let prior = Prior { baselines: vec![kept(played(&CHECKS, &usual(), 3, 4))], ..Prior::default() };
    let named = |now: &Traffic| {
        let mut run = played(&CHECKS, now, 3, 5);
        let usages = run.samples.iter_mut().filter_map(|one| one.usage.as_mut());
        usages.for_each(|usage| usage.cached = usage.cached.filter(|tokens| *tokens > 0));
        names(&gate_judge::judge(&run, &prior))
    };
    assert_eq!(named(&lost), ["cache"]);
    assert_eq!(named(&usual()), [""; 0]);
}

#[test]
fn connecting_itself_is_told_from_a_late_client() {
    let connected = |lag: i64, connect: i64| {
        let sample = move |index| {
            let sample = ok(index, 100.0 + (lag + connect) as f64, 10.0);
            let start = sample.intended + Nanos::from_millis(lag);
            let writing = start + Nanos::from_millis(connect);
            Sample { start: Some(start), writing: Some(writing), sent: Some(writing), ..sample }
        };
        (0..50).map(sample).collect::<Vec<Sample>>()
    };
    let mut spec = gate(&["ttft.p50 < 10ms"], &[]);
    spec.load.iterations = Iterations::Fixed(50);
    let judged = |now: Vec<Sample>| {
        let run = side_by_side(&spec, now, connected(1, 5), EndReason::Completed);
        gate_judge::judge(&run, &Prior::default())
    };
    let slower = judged(connected(1, 60));
    assert_eq!((names(&slower), slower.moved.unwrap().phase), (vec!["connect"], Phase::Connect));
    let late = judged(connected(60, 5));
    assert_eq!((names(&late), late.moved), (vec!["client"], None), "nothing was measured");
}

/// The same run by a client that took half of its requests up late, by up to so much.
fn late(mut run: Run, most: f64, seed: u64) -> Run {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    for sample in &mut run.samples {
        let lag = Nanos::from_millis((most * (2.0 * random.random::<f64>() - 1.0)).max(0.0) as i64);
        let points = [
            &mut sample.start,
            &mut sample.writing,
            &mut sample.sent,
            &mut sample.headers,
            &mut sample.first_event,
            &mut sample.first_token,
            &mut sample.first_answer,
            &mut sample.last_token,
            &mut sample.end,
        ];
        points.into_iter().flatten().for_each(|point| *point = *point + lag);
        sample.token_times.iter_mut().for_each(|time| *time = *time + lag);
    }
    run
}

#[test]
fn a_busy_client() {
    let checks = ["ttft.p50 < 100ms", "throughput.requests > 1000/s"];
    // Whatever else is slow: its measurements can't be trusted.
    let slower = with(&usual(), |now| now.engine.tpot = latency(30, 3));
    for (what, now) in [("alone", usual()), ("and a slower engine", slower)] {
        let right = counted(|seed| {
            let prior = Prior { baselines: vec![kept(played(&checks, &usual(), seed, seed + 9))], ..Prior::default() };
            let verdict = gate_judge::judge(&late(played(&checks, &now, seed, seed), 400.0, seed), &prior);
            let [Suspect { phase, against, cause: LikelyCause::ClientBusy { lag, .. }, .. }] = &verdict.suspects[..]
            else {
                return false;
            };
            let is_taken_away =
                matches!(verdict.checks[0].outcome, CheckOutcome::CouldNotMeasure { cause: Cause::ClientLate { .. } });
            assert!(is_taken_away && lag.value > 100e6, "{lag:?}");
            verdict.moved.is_none_or(|moved| moved.phase == *phase) && (*phase, *against) == (Phase::Connect, None)
        });
        println!("a busy client {what}: right {right} of {SEEDS} times");
        assert!(right >= LEAST_RIGHT, "{what}: {right}");
        let on_time = counted(|seed| {
            let prior = Prior { baselines: vec![kept(played(&checks, &usual(), seed, seed + 9))], ..Prior::default() };
            let verdict = gate_judge::judge(&late(played(&checks, &now, seed, seed), 4.0, seed), &prior);
            names(&verdict).contains(&"client")
        });
        assert_eq!(on_time, 0, "a few milliseconds are none");
    }
}

#[test]
fn a_client_that_reads_late_is_busy_unless_the_kernel_stamps() {
    let judged = |check: &str, health: Health| {
        let mut run = played(&[check], &usual(), 1, 1);
        run.end.as_mut().unwrap().health = health;
        gate_judge::judge(&run, &Prior::default()).suspects
    };
    let late = Health { loop_delay_p95: Some(Nanos::from_millis(50)), ..Health::default() };
    let [Suspect { phase: Phase::FirstToken, cause: LikelyCause::ClientBusy { loop_delay, cpu: None, .. }, .. }] =
        judged("ttft.p50 < 100ms", late)[..]
    else {
        panic!()
    };
    assert_eq!(loop_delay, Some("50ms".parse().unwrap()));
    let stamped = Health { clock: Stamping::Kernel, ..late };
    assert_eq!(judged("ttft.p50 < 100ms", stamped), []);
    // But for what no kernel stamps.
    assert!(matches!(judged("write.p50 > 1ms", stamped)[..], [Suspect { phase: Phase::Connect, .. }]));
    let hot = Health { cpu_share: Some(0.95), clock: Stamping::Kernel, ..Health::default() };
    let [Suspect { cause: LikelyCause::ClientBusy { cpu, .. }, .. }] = judged("ttft.p50 < 100ms", hot)[..] else {
        panic!()
    };
    assert_eq!(cpu, Some("95%".parse().unwrap()));
    assert_eq!(judged("ttft.p50 < 100s", hot), [], "no check is broken");
}

#[test]
fn engines_that_are_as_they_were() {
    for (what, same) in [
        ("hardly busy", usual()),
        ("busy", busy()),
        ("overloaded", Traffic { rate: 3.5, ..busy() }),
        ("without a cache", with(&usual(), |now| now.engine.prefix_cache = None)),
    ] {
        for (how, verdict) in [
            ("side by side", &(|seed| beside(&CHECKS, &same, &same, seed)) as Judged<'_>),
            ("against 1 run", &|seed| against_stored(&CHECKS, &same, &same, 1, seed)),
            ("against 5 runs", &|seed| against_stored(&CHECKS, &same, &same, 5, seed)),
        ] {
            let said = counted(|seed| {
                let verdict = verdict(1_000 + seed);
                assert!(verdict.checks.iter().all(|one| one.outcome == CheckOutcome::Violated));
                let is_said = !verdict.suspects.is_empty() || verdict.moved.is_some();
                if is_said {
                    println!("{what}, {how}, {seed}: {:?} {:?}", names(&verdict), verdict.moved);
                }
                is_said
            });
            println!("unchanged and {what}, {how}: said {said} of {SEEDS} times");
            assert_eq!(said, 0, "{what}, {how}");
        }
    }
    // Of another plan, whose requests come at other times, a busy server may truly make more of them wait.
    let of_another_plan = |same: &Traffic, seed: u64| {
        let stored = kept(played(&CHECKS, same, seed + 10_000, seed + 10_000));
        let prior = Prior { baselines: vec![stored], ..Prior::default() };
        gate_judge::judge(&played(&CHECKS, same, seed, seed), &prior)
    };
    for (what, same, most) in [("hardly busy", usual(), 0), ("busy", busy(), 2)] {
        let said = counted(|seed| !of_another_plan(&same, seed).suspects.is_empty());
        println!("unchanged and {what}, against a run of another plan: said {said} of {SEEDS} times");
        assert!(said <= most, "{what}: {said}");
    }
    let kept = ["ttft.p50 < 100s", "e2e.p50 < 100s"];
    let slower = with(&usual(), |now| now.engine.tpot = latency(30, 3));
    let said = counted(|seed| {
        let verdicts = [beside(&kept, &usual(), &slower, seed), against_stored(&kept, &usual(), &slower, 1, seed)];
        verdicts.iter().any(|verdict| !verdict.suspects.is_empty() || verdict.moved.is_some())
    });
    assert_eq!(said, 0, "no check asks for a cause");
}
