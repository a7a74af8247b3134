//! What a change makes of its own load: what is sent, where to, and how long is waited.

use std::fmt::Display;

use gate_model::{
    Against, Cache, Check, Delivery, Endpoint, EngineParams, Fault, GateSpec, Http, Iterations, Latency, Length, Load,
    Nanos, OutputLength, Pace, PromptSpec, ScriptedFault, Shape, SpecChange, Target, Timeouts, UnixUrl, WarmingUp,
};
use serde::Serialize;
use url::Url;

use super::{change, percent, time};

/// The longest value that is shown, in characters.
const LONGEST: usize = 60;
/// What stands for a value that is not shown.
const GIVEN: &str = "given";
/// What stands for the other one, where both look alike.
const CHANGED: &str = "changed";

/// What the head measures otherwise than its base. It is no demand and the head's to say, but less of it proves less, and
/// stored runs of another name, load or model are none to compare with.
pub(super) fn sent(base: &GateSpec, head: &GateSpec) -> Vec<SpecChange> {
    let mut changes: Vec<_> = change("name", text(&base.name), text(&head.name), false).into_iter().collect();
    changes.extend(load(&base.load, &head.load));
    changes.extend(prompts(&base.prompts, &head.prompts));
    changes.extend(timeouts(&base.timeouts, &head.timeouts));
    changes.extend(target("target", &base.target, &head.target));
    if base.needs_baseline() {
        changes.iter_mut().filter(|change| is_of_key(&change.what)).for_each(|change| change.loosens = true);
    }
    changes.extend(reference(base, head));
    changes.into_iter().map(shortened).collect()
}

/// Whether runs that differ in this are not compared with each other.
fn is_of_key(what: &str) -> bool {
    let is_load = what.starts_with("load.") && what != "load.seed";
    is_load || what.starts_with("prompts.") || ["name", "target.api", "target.model"].contains(&what)
}

fn load(base: &Load, head: &Load) -> Vec<SpecChange> {
    let mut changes = Vec::new();
    let rate = |load: &Load| load.pace.rate().map(|rate| rate.0);
    let is_slower = rate(base).is_some_and(|before| rate(head).is_none_or(|now| now < before));
    changes.extend(change("load.rps", rate(base).and_then(text), rate(head).and_then(text), is_slower));
    let cap = |load: &Load| load.pace.cap().and_then(text);
    let is_less = matches!(
        (base.pace, head.pace),
        (Pace::Closed { concurrency: before }, Pace::Closed { concurrency: now }) if now < before
    );
    changes.extend(change("load.concurrency", cap(base), cap(head), is_less));
    changes.extend(iterations(base.iterations, head.iterations));
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
        change("load.arrivals", word(&base.arrivals), word(&head.arrivals), false),
        change("load.connections", word(&base.connections), word(&head.connections), false),
        change("load.http", http(base), http(head), false),
        change("load.clock", word(&base.clock), word(&head.clock), false),
        change("load.workers", text(base.workers), text(head.workers), false),
        change("load.seed", text(base.seed), text(head.seed), false),
    ];
    changes.extend(calm.into_iter().flatten());
    changes
}

fn iterations(base: Iterations, head: Iterations) -> Vec<SpecChange> {
    let shown = |iterations: Iterations| match iterations {
        Iterations::Fixed(count) => Some(count.to_string()),
        Iterations::Range { first, last, .. } => Some(format!("{first}..{last}")),
    };
    let most = |iterations: Iterations| iterations.looks().last().copied();
    // Only a range can go on, so between a range and a number the two keys say one thing.
    let [of_base, of_head] = [base, head].map(|iterations| match iterations {
        Iterations::Fixed(_) => None,
        Iterations::Range { last, extend, .. } => Some((last, extend)),
    });
    let is_less = |before: Option<u32>, now: Option<u32>| now < before;
    let is_fewer =
        head.base() < base.base() || (of_base.is_none() != of_head.is_none() && is_less(most(base), most(head)));
    let mut changes: Vec<_> = change("load.iterations", shown(base), shown(head), is_fewer).into_iter().collect();
    if let (Some((last, before)), Some((new_last, now))) = (of_base, of_head)
        // Where neither says otherwise it follows from the iterations.
        && (before, now) != (Some(last.saturating_mul(2)), Some(new_last.saturating_mul(2)))
    {
        let shown = |extend: Option<u32>| Some(extend.map_or("none".to_owned(), |extend| extend.to_string()));
        changes.extend(change("load.extend", shown(before), shown(now), is_less(before, now)));
    }
    changes
}

fn prompts(base: &PromptSpec, head: &PromptSpec) -> Vec<SpecChange> {
    let lengths = [
        ("prompts.input_tokens", base.input_tokens, head.input_tokens),
        ("prompts.output_tokens", base.output_tokens, head.output_tokens),
    ];
    let lengths = lengths.map(|(what, base, head)| change(what, length(base), length(head), head.mean < base.mean));
    let given = |system: &Option<String>| system.as_ref().map(|_| GIVEN.to_owned());
    let others = [
        change("prompts.cache", word(&base.cache), word(&head.cache), head.cache == Cache::Warm),
        change("prompts.output", word(&base.output), word(&head.output), head.output == OutputLength::AtMost),
        differ("prompts.system", base.system != head.system, given(&base.system), given(&head.system), false),
        change("prompts.file", base.file.clone(), head.file.clone(), false),
        change("prompts.tokenizer", base.tokenizer.clone(), head.tokenizer.clone(), false),
    ];
    lengths.into_iter().chain(others).flatten().collect()
}

fn length(length: Length) -> Option<String> {
    let Length { mean, stddev, min, max, shape } = length;
    Some(match (stddev, shape) {
        (0.0, _) => mean.to_string(),
        (_, Shape::Normal) => format!("{{mean: {mean}, stddev: {stddev}, min: {min}, max: {max}}}"),
        _ => format!("{{mean: {mean}, stddev: {stddev}, min: {min}, max: {max}, shape: {}}}", word(&shape)?),
    })
}

fn timeouts(base: &Timeouts, head: &Timeouts) -> Vec<SpecChange> {
    let all = [
        ("timeouts.connect", Some(base.connect), Some(head.connect)),
        ("timeouts.first_token", Some(base.first_token), Some(head.first_token)),
        ("timeouts.stall", Some(base.stall), Some(head.stall)),
        ("timeouts.total", Some(base.total), Some(head.total)),
        ("timeouts.run", base.run, head.run),
    ];
    all.into_iter().filter_map(|(what, base, head)| change(what, base.map(time), head.map(time), false)).collect()
}

/// What differs of an endpoint. Keys, headers and whatever else may hold a credential is not shown.
fn target(block: &str, base: &Target, head: &Target) -> Vec<SpecChange> {
    let path = |key: &str| format!("{block}.{key}");
    let streams = |target: &Target| Some((target.delivery == Delivery::Streamed).to_string());
    let (api, model, stream) = (path("api"), path("model"), path("stream"));
    let given = |is_given: bool| is_given.then(|| GIVEN.to_owned());
    let mut changes = match (&base.endpoint, &head.endpoint) {
        (Endpoint::Sim(base), Endpoint::Sim(head)) => engine(&path("sim"), base, head),
        (before, now) => {
            let is_simulated = matches!(now, Endpoint::Sim(_));
            let change = differ(&path("url"), before != now, Some(place(before)), Some(place(now)), is_simulated);
            change.into_iter().collect()
        }
    };
    let others = [
        change(&api, text(base.api.name()), text(head.api.name()), false),
        change(&model, base.model.clone(), head.model.clone(), false),
        change(&stream, streams(base), streams(head), false),
        differ(
            &path("custom"),
            base.custom != head.custom,
            given(base.custom.is_some()),
            given(head.custom.is_some()),
            false,
        ),
        differ(
            &path("extra_body"),
            base.extra_body != head.extra_body,
            given(!base.extra_body.is_empty()),
            given(!head.extra_body.is_empty()),
            false,
        ),
    ];
    changes.extend(others.into_iter().flatten());
    changes
}

/// Where a check compares with the reference, another one may be slower.
fn reference(base: &GateSpec, head: &GateSpec) -> Vec<SpecChange> {
    let to = |check: &Check| check.bound.relative().map(|bound| bound.to);
    let is_used = base.checks.iter().any(|check| to(check) == Some(Against::Reference));
    let changes = match (&base.reference, &head.reference) {
        (Some(before), Some(now)) => target("reference", before, now),
        (before, now) => {
            let place = |target: &Option<Target>| target.as_ref().map(|target| place(&target.endpoint));
            change("reference.url", place(before), place(now), true).into_iter().collect()
        }
    };
    let own = changes.into_iter().filter(|change| !is_inherited(&change.what, base, head));
    own.map(|change| SpecChange { loosens: is_used, ..change }).collect()
}

/// Whether a key of the reference has the target's value at both ends, so that it changed in both arms alike.
fn is_inherited(what: &str, base: &GateSpec, head: &GateSpec) -> bool {
    let same: fn(&Target, &Target) -> bool = match what.strip_prefix("reference.") {
        Some("api") => |one, other| one.api == other.api,
        Some("model") => |one, other| one.model == other.model,
        Some("stream") => |one, other| one.delivery == other.delivery,
        Some("custom") => |one, other| one.custom == other.custom,
        Some("extra_body") => |one, other| one.extra_body == other.extra_body,
        _ => return false,
    };
    [base, head].iter().all(|spec| spec.reference.as_ref().is_some_and(|reference| same(reference, &spec.target)))
}

/// An endpoint without what may be a credential: the path and the query are left out.
fn place(endpoint: &Endpoint) -> String {
    let Endpoint::Url(url) = endpoint else { return "sim".to_owned() };
    match (UnixUrl::parse(url), Url::parse(url)) {
        (Some(unix), _) => format!("unix:{}", unix.socket),
        (None, Ok(url)) => url.origin().ascii_serialization(),
        (None, Err(_)) => GIVEN.to_owned(),
    }
}

fn engine(path: &str, base: &EngineParams, head: &EngineParams) -> Vec<SpecChange> {
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
        ("warming_up", engine.warming_up.map(warming_up)),
        ("buffer", Some(bytes(engine.buffer_bytes))),
        ("dies_after", Some(engine.dies_after.map_or("none".to_owned(), |count| count.to_string()))),
        ("ready_after", Some(time(engine.ready_after))),
        ("seed", text(engine.seed)),
    ];
    let faults = Fault::ALL
        .into_iter()
        .map(|fault| (format!("faults.{}", fault.name()), Some(percent(engine.faults.rate(fault)))));
    single.into_iter().map(|(key, text)| (key.to_owned(), text)).chain(faults).collect()
}

fn latency(latency: Latency) -> String {
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

fn text(value: impl Display) -> Option<String> {
    Some(value.to_string())
}

/// The word of the spec for one of several choices.
fn word(choice: &impl Serialize) -> Option<String> {
    serde_json::to_value(choice).ok()?.as_str().map(str::to_owned)
}

/// A change of something whose texts do not tell all of it, and may be the same.
fn differ(what: &str, differs: bool, base: Option<String>, head: Option<String>, loosens: bool) -> Option<SpecChange> {
    differs.then(|| SpecChange { what: what.to_owned(), base, head, loosens })
}

/// The change with values that are short enough for a line. Where two look alike then, they still differ.
fn shortened(change: SpecChange) -> SpecChange {
    let clip = |text: String| match text.chars().count() {
        0..=LONGEST => text,
        _ => text.chars().take(LONGEST - 1).chain(['…']).collect(),
    };
    let SpecChange { what, base, head, loosens } = change;
    let (base, head) = (base.map(clip), head.map(clip));
    let head = if base == head { head.map(|_| CHANGED.to_owned()) } else { head };
    SpecChange { what, base, head, loosens }
}
