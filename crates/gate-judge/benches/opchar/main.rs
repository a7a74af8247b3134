//! Operating characteristics: how often the gate is red for nothing, and how often it finds what it is for, by seeded
//! simulation of the whole procedure through this crate.
//!
//! `cargo bench -p gate-judge --bench opchar -- [--repetitions N] [CASE…]` prints a Markdown table; a case is chosen by
//! the beginning of its name or any part of its text. The run fails where a goal is missed, times apart.
#![expect(clippy::print_stdout, reason = "the table is what this program is for")]

mod cases;
mod gates;
mod models;

use std::hash::{DefaultHasher, Hash, Hasher};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use gate_judge::judge;
use gate_model::{Against, EndReason, Prior, Run};
use gate_stats::binomial;
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use crate::cases::{Case, Goal, Repeat};
use crate::gates::{EIGHT, check, gate, millis, once, relative, requests, run, stored};
use crate::models::{Model, Truth};

/// Repetitions of a case.
const REPETITIONS: u32 = 2000;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    if !words.iter().any(|word| word == "--bench") {
        // As `cargo test --benches` calls it: there is nothing to measure.
        return ExitCode::SUCCESS;
    }
    let mut repetitions = REPETITIONS;
    let mut wanted = Vec::new();
    let mut words = words.into_iter().filter(|word| word != "--bench");
    while let Some(word) = words.next() {
        if word == "--repetitions" {
            match words.next().and_then(|count| count.parse().ok()) {
                Some(count) if count > 0 => repetitions = count,
                _ => {
                    println!("usage: opchar [--repetitions N] [CASE…]");
                    return ExitCode::from(2);
                }
            }
        } else {
            wanted.push(word);
        }
    }
    let chosen = |id: &str, what: &str| {
        wanted.is_empty() || wanted.iter().any(|word| id.starts_with(word.as_str()) || what.contains(word.as_str()))
    };

    println!("| case | counted | found (95 % bounds) | goal | reached |");
    println!("|---|---|---|---|---|");
    let mut all_reached = true;
    for case in cases::all().iter().filter(|case| chosen(case.id, &case.what)) {
        let Some(hits) = (case.set_up)().map(|repeat| count(case, &repeat, repetitions)) else {
            return ExitCode::FAILURE;
        };
        for ((counted, goal), hits) in case.counted.iter().zip(hits) {
            let share = f64::from(hits) / f64::from(repetitions);
            all_reached &= goal.holds(share);
            let bounds = bounds(hits, repetitions);
            let reached = reached(*goal, goal.holds(share));
            println!("| {} | {counted} | {} ({bounds}) | {} | {reached} |", case.what, percent(share), said(*goal));
        }
    }
    for (what, limit, time) in times(chosen).unwrap_or_default() {
        let reached = if time <= limit { "yes" } else { "**no**" };
        let millis = |time: Duration| format!("{:.1} ms", time.as_secs_f64() * 1e3);
        println!("| {what} | time of a verdict | {} | ≤ {} | {reached} |", millis(time), millis(limit));
    }
    if all_reached { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// How often each thing came out, on all cores. Equal repetitions give equal counts.
fn count(case: &Case, repeat: &Repeat, repetitions: u32) -> Vec<u32> {
    let mut hasher = DefaultHasher::new();
    case.what.hash(&mut hasher);
    let stream = hasher.finish();
    let threads = std::thread::available_parallelism().map_or(1, |cores| cores.get() as u32);
    let part = |first: u32| {
        let mut hits = vec![0; case.counted.len()];
        for repetition in (first..repetitions).step_by(threads as usize) {
            let mut rng = ChaCha8Rng::seed_from_u64(u64::from(repetition));
            rng.set_stream(stream);
            for (hits, hit) in hits.iter_mut().zip(repeat(&mut rng)) {
                *hits += u32::from(hit);
            }
        }
        hits
    };
    let part = &part;
    std::thread::scope(|scope| {
        let parts: Vec<_> = (0..threads).map(|first| scope.spawn(move || part(first))).collect();
        let parts = parts.into_iter().filter_map(|part| part.join().ok());
        parts.fold(vec![0; case.counted.len()], |sums, part| sums.iter().zip(part).map(|(a, b)| a + b).collect())
    })
}

/// One-sided Clopper–Pearson bounds of a share.
fn bounds(hits: u32, of: u32) -> String {
    let (k, n) = (u64::from(hits), u64::from(of));
    let lower = binomial::share_lower(k, n, 0.05).unwrap_or(0.0);
    let upper = binomial::share_upper(k, n, 0.05).unwrap_or(1.0);
    format!("{} to {}", percent(lower), percent(upper))
}

fn percent(share: f64) -> String {
    format!("{:.2} %", 100.0 * share)
}

fn said(goal: Goal) -> String {
    let percent = |share: f64| format!("{} %", (share * 1e4).round() / 1e2);
    match goal {
        Goal::AtMost(most) => format!("≤ {}", percent(most)),
        Goal::AtLeast(least) => format!("≥ {}", percent(least)),
        Goal::Between(least, most) => format!("{} to {}", percent(least), percent(most)),
        Goal::Any => "–".to_owned(),
    }
}

fn reached(goal: Goal, holds: bool) -> &'static str {
    match goal {
        Goal::Any => "–",
        _ if holds => "yes",
        _ => "**no**",
    }
}

/// How long a verdict may take, and takes.
fn times(chosen: impl Fn(&str, &str) -> bool) -> Option<Vec<(String, Duration, Duration)>> {
    let truth = Truth::of(Model::Lognormal)?;
    let rng = &mut ChaCha8Rng::seed_from_u64(0);
    let fixed: Option<Vec<_>> = EIGHT.iter().map(|metric| check(metric, millis(truth.value(metric)? / 0.8))).collect();
    let against: Option<Vec<_>> = EIGHT.iter().map(|metric| check(metric, relative(Against::Baseline))).collect();
    let (fixed, against) = (gate(fixed?), gate(against?));
    let mut times = Vec::new();
    for (n, repeats, limit) in [(50, 200, Duration::from_millis(5)), (100_000, 5, Duration::from_secs(1))] {
        for (spec, with) in [(&fixed, "8 fixed limits"), (&against, "8 checks against 5 stored runs")] {
            let what = format!("{n} requests, {with}");
            if !chosen("time", &what) {
                continue;
            }
            let prior = stored(rng, spec, Model::Lognormal, 5, 0.05);
            let spec = once(n, spec.clone());
            let latencies = Model::Lognormal.draw(rng, n as usize);
            let whole = run(&spec, requests(rng, &latencies), EndReason::Completed);
            times.push((what, limit, fastest(&whole, &prior, repeats)));
        }
    }
    Some(times)
}

/// The fastest of several: what else the machine does is not the verdict's.
fn fastest(run: &Run, prior: &Prior, repeats: usize) -> Duration {
    let times = (0..repeats).map(|_| {
        let start = Instant::now();
        std::hint::black_box(judge(run, prior));
        start.elapsed()
    });
    times.min().unwrap_or_default()
}
