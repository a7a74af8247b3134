//! A million requests in virtual time, and eight shards of a hundred thousand: what `cargo xtask bench soak` and `merge`
//! measure from outside.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a benchmark that goes wrong has nothing to say but where"
)]

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use gate_model::{
    Arrivals, Check, Endpoint, EngineParams, GateSpec, Importance, Iterations, JournalLine, Latency, Length, Nanos,
    Origin, Pace, Pattern, PerSecond, Plan, Prior, Run, RunEnd, RunHeader, Shape, Shard,
};
use gate_plan::{Extent, Files};

const STARTED: &str = "2026-01-01T00:00:00Z";

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["soak"] => soak(),
        ["shards", folder] => shards(Path::new(folder)),
        // `cargo test` and `cargo bench` run every benchmark; this one is asked for by name.
        _ => eprintln!("soak | shards FOLDER"),
    }
}

/// A gate of short answers at this rate.
fn spec(rate: f64, iterations: Iterations) -> GateSpec {
    let engine = EngineParams {
        ttft: Latency { mean: Nanos::from_millis(80), stddev: Nanos::from_millis(20), shape: Shape::Lognormal },
        tpot: Latency::constant(Nanos::from_millis(8)),
        ..EngineParams::default()
    };
    let mut spec = GateSpec::new("soak", Endpoint::Sim(Box::new(engine)));
    spec.load.pace = Pace::Open { rate: PerSecond(rate), cap: None };
    spec.load.iterations = iterations;
    spec.load.arrivals = Arrivals::Constant;
    spec.load.warmup = 0;
    spec.prompts.output_tokens = Length { mean: 16.0, stddev: 4.0, min: 4, max: 40, shape: Shape::Normal };
    let check = |text: &str| {
        let [metric, op, bound] = text.split(' ').collect::<Vec<_>>()[..] else { panic!("{text}") };
        Check {
            scenario: 0,
            metric: metric.parse().unwrap(),
            op: serde_json::from_value(op.into()).unwrap(),
            bound: gate_model::Bound::Absolute(bound.parse().unwrap()),
            bound_text: bound.to_owned(),
            importance: Importance::Required,
            origin: Origin::Implied,
            decide: None,
            confidence: Check::CONFIDENCE,
            waive: None,
        }
    };
    spec.checks = ["ttft.p95 < 800ms", "tpot.p50 < 50ms", "errors.rate < 5%"].map(check).into();
    if matches!(spec.load.iterations, Iterations::For(_)) {
        spec.checks.push(check("drift.tpot < 1%/h"));
    }
    spec
}

fn plan(spec: &GateSpec) -> Plan {
    gate_plan::plans(spec, Extent::Base, &[Files::default()]).unwrap().remove(0)
}

fn simulated(spec: &GateSpec, plan: &Plan, header: RunHeader) -> Run {
    let Endpoint::Sim(engine) = &spec.target.endpoint else { panic!() };
    gate_engine::simulate(engine, None, plan, header)
}

fn soak() {
    let mut spec = spec(50.0, Iterations::For(Nanos::from_secs(20_000)));
    spec.load.pattern = Pattern::Soak;
    let plan = plan(&spec);
    let header = RunHeader::new(spec.clone(), &plan, "0.1.0", "soak", STARTED);
    let run = simulated(&spec, &plan, header);
    drop(plan);
    let verdict = gate_judge::judge(&run, &Prior::default());
    println!("{} requests: {:?}", run.recorded(), verdict.status);
    for check in &verdict.checks {
        println!("{}: {:?}", check.check, check.outcome);
    }
}

/// Writes the journals of eight shards.
fn shards(folder: &Path) {
    let mut spec = spec(1_000.0, Iterations::Fixed(800_000));
    // Of each shard the first thousand.
    spec.journal.tokens = 8_000;
    let whole = plan(&spec);
    for index in 1..=8 {
        let plan = gate_plan::shard(&whole, Shard { index, of: 8 });
        let header = RunHeader::new(spec.clone(), &plan, "0.1.0", &format!("shard-{index}"), STARTED);
        // Whole samples are wanted, though the run is long.
        let short = RunHeader { whole: header.planned, ..header.clone() };
        let run = simulated(&spec, &plan, short);
        let mut out = BufWriter::new(File::create(folder.join(format!("run-{index}.jsonl"))).unwrap());
        let mut line = |line: &JournalLine| {
            serde_json::to_writer(&mut out, line).unwrap();
            out.write_all(b"\n").unwrap();
        };
        line(&JournalLine::Header(Box::new(header)));
        let end = run.end.unwrap();
        for sample in run.samples {
            line(&JournalLine::Sample(Box::new(sample)));
        }
        line(&JournalLine::End(Box::new(RunEnd { epoch_unix: Some(Nanos::from_secs(1_767_225_600)), ..end })));
        out.flush().unwrap();
    }
}
