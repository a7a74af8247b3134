//! What the simulated engine does, side by side.

use gate_model::{
    EngineParams, Fault, Latency, Nanos, PrefixCache, Scaling, ScriptedFault, Shape, SpecChange, WarmingUp,
};

use super::sent::{text, word};
use super::{change, percent, time};

pub(super) fn engine(path: &str, base: &EngineParams, head: &EngineParams) -> Vec<SpecChange> {
    let both = parameters(base).into_iter().zip(parameters(head));
    both.filter_map(|((key, base), (_, head))| change(&format!("{path}.{key}"), base, head, false)).collect()
}

/// What the simulated engine does, by the keys of the spec.
fn parameters(engine: &EngineParams) -> Vec<(String, Option<String>)> {
    let line = |line: &ScriptedFault| match line.from == line.to {
        true => format!("{}: {}", line.from, line.fault.name()),
        false => format!("{}..{}: {}", line.from, line.to, line.fault.name()),
    };
    let script: Vec<_> = engine.script.iter().map(line).collect();
    let warming_up = |up: WarmingUp| format!("{{requests: {}, slowdown: {}}}", up.requests, up.slowdown);
    let single = [
        ("ttft", Some(latency(engine.ttft))),
        ("tpot", Some(latency(engine.tpot))),
        ("tokens_per_chunk", text(engine.tokens_per_chunk)),
        ("role_chunk", Some(engine.role_chunk.map_or("none".to_owned(), time))),
        ("script", (!script.is_empty()).then(|| format!("{{{}}}", script.join(", ")))),
        ("slow_headers", Some(time(engine.slow_headers))),
        ("retry_after", engine.retry_after.map(time)),
        ("warming_up", engine.warming_up.map(warming_up)),
        ("buffer", Some(bytes(engine.buffer_bytes))),
        ("dies_after", Some(engine.dies_after.map_or("none".to_owned(), |count| count.to_string()))),
        ("ready_after", Some(time(engine.ready_after))),
        ("slots", engine.slots.and_then(text)),
        ("prefill", engine.prefill.and_then(text)),
        ("prefix_cache", engine.prefix_cache.map(prefix_cache)),
        ("scaling", engine.scaling.map(scaling)),
        ("drift.ttft", Some(growth(engine.drift.ttft))),
        ("drift.tpot", Some(growth(engine.drift.tpot))),
        ("drift.memory", Some(growth(engine.drift.memory))),
        ("seed", text(engine.seed)),
    ];
    let faults = Fault::ALL
        .into_iter()
        .map(|fault| (format!("faults.{}", fault.name()), Some(percent(engine.faults.rate(fault)))));
    single.into_iter().map(|(key, text)| (key.to_owned(), text)).chain(faults).collect()
}

fn prefix_cache(cache: PrefixCache) -> String {
    format!("{{blocks: {}, block_tokens: {}}}", cache.blocks, cache.block_tokens)
}

fn scaling(scaling: Scaling) -> String {
    let Scaling { max_slots, step, queue, cold_start } = scaling;
    format!("{{max_slots: {max_slots}, step: {step}, queue: {queue}, cold_start: {}}}", time(cold_start))
}

fn growth(share: f64) -> String {
    format!("{}/h", percent(share))
}

pub(super) fn latency(latency: Latency) -> String {
    let Latency { mean, stddev, shape } = latency;
    match (stddev, shape) {
        (Nanos::ZERO, _) => time(mean),
        (_, Shape::Lognormal) => format!("{{mean: {}, stddev: {}}}", time(mean), time(stddev)),
        _ => {
            let shape = word(&shape).unwrap_or_default();
            format!("{{mean: {}, stddev: {}, shape: {shape}}}", time(mean), time(stddev))
        }
    }
}

fn bytes(bytes: u32) -> String {
    let units = [(1 << 20, "MiB"), (1 << 10, "KiB"), (1, "B")];
    let whole = units.into_iter().find(|(size, _)| bytes > 0 && bytes.is_multiple_of(*size));
    whole.map_or("0".to_owned(), |(size, unit)| format!("{}{unit}", bytes / size))
}
