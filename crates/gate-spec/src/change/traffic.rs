//! Load and prompts, side by side.

use gate_model::{
    Arrivals, Cache, Http, Iterations, Latency, Length, Load, OutputLength, Pace, Pattern, PromptSpec, Shape,
    SharedPrefix, SpecChange, Stage, Turns,
};

use super::engine::latency;
use super::sent::{GIVEN, differ, text, word};
use super::{change, time};
use crate::load::expected;

pub(super) fn load(base: &Load, head: &Load) -> Vec<SpecChange> {
    let mut changes = Vec::new();
    // Other shapes have rates of their own.
    let rate = |load: &Load| match load.pattern {
        Pattern::Steady | Pattern::Spike { .. } | Pattern::Soak => load.pace.rate().map(|rate| rate.0),
        Pattern::Ramp { .. } | Pattern::Stages(_) | Pattern::Trace(_) => None,
    };
    let is_slower = rate(base).is_some_and(|before| rate(head).is_none_or(|now| now < before));
    changes.extend(change("load.rps", rate(base).and_then(text), rate(head).and_then(text), is_slower));
    let cap = |load: &Load| load.pace.cap().and_then(text);
    let is_less = matches!(
        (base.pace, head.pace),
        (Pace::Closed { concurrency: before }, Pace::Closed { concurrency: now }) if now < before
    );
    changes.extend(change("load.concurrency", cap(base), cap(head), is_less));
    changes.extend(shapes(base, head));
    changes.extend(iterations(base, head));
    let http = |load: &Load| {
        let version = match load.http {
            Http::Auto => "auto",
            Http::One => "1",
            Http::Two => "2",
        };
        text(version)
    };
    let calm = [
        change("load.warmup", text(base.warmup), text(head.warmup), false),
        change("load.arrivals", arrivals(base.arrivals), arrivals(head.arrivals), false),
        change("load.connections", word(&base.connections), word(&head.connections), false),
        change("load.http", http(base), http(head), false),
        change("load.clock", word(&base.clock), word(&head.clock), false),
        change("load.workers", text(base.workers), text(head.workers), false),
        change("load.seed", text(base.seed), text(head.seed), false),
    ];
    changes.extend(calm.into_iter().flatten());
    changes
}

fn arrivals(arrivals: Arrivals) -> Option<String> {
    match arrivals {
        Arrivals::Poisson => text("poisson"),
        Arrivals::Constant => text("constant"),
        Arrivals::Gamma(shape) => text(format!("gamma({shape})")),
    }
}

/// How many requests of each arm a load comes to, where that is known without a file.
fn size(load: &Load) -> Option<f64> {
    load.iterations.base().map(f64::from).or_else(|| expected(load))
}

/// The key that says the shape of a load that is not counted, with its value.
fn shape(load: &Load) -> Option<(&'static str, String)> {
    Some(match (&load.pattern, load.iterations) {
        (Pattern::Ramp { from, to, over }, _) => {
            ("load.pattern", format!("{{ramp: {{from: {}, to: {}, over: {}}}}}", from.0, to.0, time(*over)))
        }
        (Pattern::Spike { times, hold, before, after }, _) => {
            let [hold, before, after] = [hold, before, after].map(|lasts| time(*lasts));
            let spike = format!("times: {times}, hold: {hold}, before: {before}, after: {after}");
            ("load.pattern", format!("{{spike: {{{spike}}}}}"))
        }
        (Pattern::Soak, Iterations::For(lasts)) => ("load.pattern", format!("{{soak: {}}}", time(lasts))),
        (Pattern::Steady, Iterations::For(lasts)) => ("load.duration", time(lasts)),
        (Pattern::Stages(stages), _) => {
            let stages: Vec<_> = stages.iter().map(stage).collect();
            ("load.stages", format!("[{}]", stages.join(", ")))
        }
        (Pattern::Trace(file), _) => ("load.trace", file.clone()),
        (Pattern::Soak | Pattern::Steady, Iterations::Fixed(_) | Iterations::Range { .. }) => return None,
    })
}

fn stage(stage: &Stage) -> String {
    let rate =
        if stage.from == stage.to { stage.from.0.to_string() } else { format!("{}..{}", stage.from.0, stage.to.0) };
    format!("{{rps: {rate}, for: {}}}", time(stage.lasts))
}

/// Another shape of load; one that comes to fewer requests proves less.
fn shapes(base: &Load, head: &Load) -> Vec<SpecChange> {
    let (before, now) = (shape(base), shape(head));
    let is_less = size(base).zip(size(head)).is_some_and(|(before, now)| now < before);
    let of = |shape: &Option<(&'static str, String)>, key: &str| {
        shape.as_ref().filter(|(own, _)| *own == key).map(|(_, text)| text.clone())
    };
    let keys = ["load.duration", "load.pattern", "load.stages", "load.trace"];
    keys.into_iter().filter_map(|key| change(key, of(&before, key), of(&now, key), is_less)).collect()
}

fn iterations(base: &Load, head: &Load) -> Vec<SpecChange> {
    let shown = |iterations: Iterations| match iterations {
        Iterations::Fixed(count) => Some(count.to_string()),
        Iterations::Range { first, last, .. } => Some(format!("{first}..{last}")),
        Iterations::For(_) => None,
    };
    let (of_base, of_head) = (base.iterations, head.iterations);
    let is_fewer = match of_base.base().zip(of_head.base()) {
        Some((before, now)) => now < before,
        None => size(base).zip(size(head)).is_some_and(|(before, now)| now < before),
    };
    // Only a range can go on, so between a range and a number the two keys say one thing.
    let range = |iterations: Iterations| match iterations {
        Iterations::Range { last, extend, .. } => Some((last, extend)),
        Iterations::Fixed(_) | Iterations::For(_) => None,
    };
    let most = |iterations: Iterations| iterations.looks().last().copied();
    let is_less = |before: Option<u32>, now: Option<u32>| now < before;
    let is_counted = of_base.base().is_some() && of_head.base().is_some();
    let is_other = range(of_base).is_none() != range(of_head).is_none();
    let is_fewer = is_fewer || (is_counted && is_other && is_less(most(of_base), most(of_head)));
    let mut changes: Vec<_> = change("load.iterations", shown(of_base), shown(of_head), is_fewer).into_iter().collect();
    if let (Some((last, before)), Some((new_last, now))) = (range(of_base), range(of_head))
        // Where neither says otherwise it follows from the iterations.
        && (before, now) != (Some(last.saturating_mul(2)), Some(new_last.saturating_mul(2)))
    {
        let shown = |extend: Option<u32>| Some(extend.map_or("none".to_owned(), |extend| extend.to_string()));
        changes.extend(change("load.extend", shown(before), shown(now), is_less(before, now)));
    }
    changes
}

pub(super) fn prompts(base: &PromptSpec, head: &PromptSpec) -> Vec<SpecChange> {
    let lengths = [
        (
            "prompts.input_tokens",
            lengths(base.input_tokens, &base.input_empirical),
            lengths(head.input_tokens, &head.input_empirical),
            head.input_tokens.mean < base.input_tokens.mean,
        ),
        (
            "prompts.output_tokens",
            lengths(base.output_tokens, &base.output_empirical),
            lengths(head.output_tokens, &head.output_empirical),
            head.output_tokens.mean < base.output_tokens.mean,
        ),
    ];
    let lengths = lengths.map(|(what, base, head, is_less)| change(what, base, head, is_less));
    let given = |system: &Option<String>| system.as_ref().map(|_| GIVEN.to_owned());
    let images =
        |prompts: &PromptSpec| (!prompts.images.is_empty()).then(|| format!("{} of them", prompts.images.len()));
    let prefix = |prefix: Option<SharedPrefix>| {
        prefix.map(|prefix| format!("{{tokens: {}, groups: {}}}", prefix.tokens, prefix.groups))
    };
    // What is cached is not read again.
    let is_longer = head.shared_prefix.map(|prefix| prefix.tokens) > base.shared_prefix.map(|prefix| prefix.tokens);
    let others = [
        change("prompts.turns", turns(base.turns), turns(head.turns), false),
        change("prompts.think", think(base), think(head), false),
        change("prompts.shared_prefix", prefix(base.shared_prefix), prefix(head.shared_prefix), is_longer),
        change("prompts.cache", word(&base.cache), word(&head.cache), cached(head.cache) > cached(base.cache)),
        change("prompts.output", word(&base.output), word(&head.output), head.output == OutputLength::AtMost),
        differ("prompts.system", base.system != head.system, given(&base.system), given(&head.system), false),
        change("prompts.file", base.file.clone(), head.file.clone(), false),
        change("prompts.format", word(&base.format), word(&head.format), false),
        differ("prompts.images", base.images != head.images, images(base), images(head), false),
        change("prompts.tokenizer", base.tokenizer.clone(), head.tokenizer.clone(), false),
    ];
    lengths.into_iter().chain(others).flatten().collect()
}

/// How much of a prompt the server may find in its cache, in order.
fn cached(cache: Cache) -> u8 {
    match cache {
        Cache::Bust => 0,
        Cache::Natural => 1,
        Cache::Warm => 2,
    }
}

fn turns(turns: Turns) -> Option<String> {
    match turns.min == turns.max {
        true => text(turns.max),
        false => text(format!("{}..{}", turns.min, turns.max)),
    }
}

fn think(prompts: &PromptSpec) -> Option<String> {
    let Latency { mean, .. } = prompts.think;
    (mean.0 > 0).then(|| latency(prompts.think))
}

fn lengths(length: Length, empirical: &Option<String>) -> Option<String> {
    let Length { mean, stddev, min, max, shape } = length;
    Some(match (empirical, stddev, shape) {
        (Some(file), ..) => format!("{{empirical: {file}}}"),
        (None, 0.0, _) => mean.to_string(),
        (None, _, Shape::Normal) => format!("{{mean: {mean}, stddev: {stddev}, min: {min}, max: {max}}}"),
        _ => format!("{{mean: {mean}, stddev: {stddev}, min: {min}, max: {max}, shape: {}}}", word(&shape)?),
    })
}
