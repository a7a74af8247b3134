//! From the raw spec to the gate: the rules between keys.

use gate_model::{
    Api, Clock, Endpoint, GateSpec, Http, Iterations, Length, Load, Pace, PerSecond, PromptSpec, Secret, Slo, UnixUrl,
};

use crate::baseline::baseline;
use crate::checks::checks;
use crate::context::Context;
use crate::length::{LEAST_MASS, mass};
use crate::problem::Problem;
use crate::raw::{RawLength, RawLoad, RawPrompts, RawSpec};
use crate::reference::{check_arms, reference};
use crate::table::LONGEST;
use crate::target::{Block, target};

/// What a gate is made of, with the credentials its URL holds.
pub(crate) struct Built {
    pub(crate) spec: GateSpec,
    pub(crate) secrets: Vec<Secret>,
}

/// Builds the gate; whether it can be used depends on the problems left in the context.
pub(crate) fn build(context: &mut Context, mut raw: RawSpec, file: &str) -> Built {
    let mut secrets = Vec::new();
    let load = load(context, &raw.load);
    let checks = checks(context, &raw, &load);
    let prompts = prompts(context, raw.prompts, raw.target.api);
    refuse_unmeasured(context, raw.slo, raw.target.api, raw.target.stream);
    let reference = raw.reference.take().map(|own| reference(context, own, &raw.target, &mut secrets));
    let target = target(context, &Block::target(), raw.target, &mut secrets);
    for endpoint in [Some(&target), reference.as_ref()].into_iter().flatten().map(|target| &target.endpoint) {
        refuse_unspoken(context, &load, endpoint);
    }
    if let Some(reference) = &reference {
        check_arms(context, &target, reference);
    }
    let spec = GateSpec {
        version: raw.version.unwrap_or(1),
        name: raw.name.unwrap_or_default(),
        file: file.to_owned(),
        target,
        reference,
        load,
        prompts,
        slo: raw.slo,
        timeouts: raw.timeouts,
        outcomes: raw.outcomes,
        baseline: baseline(context, raw.baseline),
        checks,
        overrides: Vec::new(),
    };
    Built { spec, secrets }
}

fn load(context: &mut Context, raw: &RawLoad) -> Load {
    let last = raw.iterations.last;
    let extend = raw.extend.as_ref().filter(|_| context.is_sound("load.extend"));
    let iterations = match raw.iterations.first {
        None => {
            if extend.is_some_and(|extend| extend.value.is_some()) && context.is_sound("load.iterations") {
                let message = "`load.extend` needs a range: a fixed number of iterations is never extended".to_owned();
                let hint = format!("write `iterations: {last}..{last}` to allow it, or remove `extend`");
                context.error("load.extend", message, &hint);
            }
            Iterations::Fixed(last)
        }
        Some(first) => {
            let extend = extend.map_or(Some(2 * last), |extend| extend.value);
            if let Some(extend) = extend.filter(|extend| *extend <= last)
                && context.is_sound("load.iterations")
            {
                let message = format!("`load.extend` is {extend}, and `load.iterations` already goes to {last}");
                let hint = format!("write a number above {last}, such as `extend: {}`, or `extend: none`", 2 * last);
                context.error("load.extend", message, &hint);
            }
            Iterations::Range { first, last, extend }
        }
    };
    Load {
        pace: pace(context, raw),
        iterations,
        warmup: raw.warmup,
        arrivals: raw.arrivals,
        connections: raw.connections,
        http: match raw.http.as_str() {
            "1" => Http::One,
            "2" => Http::Two,
            _ => Http::Auto,
        },
        clock: raw.clock,
        workers: raw.workers,
        seed: raw.seed,
    }
}

/// A rate is an open loop, a concurrency alone a closed one, and both an open loop with a cap.
fn pace(context: &mut Context, raw: &RawLoad) -> Pace {
    let is_open = context.is_written("load.rps") || !context.is_sound("load.rps");
    match raw.concurrency.filter(|_| !is_open) {
        None => Pace::Open { rate: PerSecond(raw.rps), cap: raw.concurrency },
        Some(concurrency) => {
            if context.is_written("load.arrivals") {
                let message = "`load.concurrency` alone is a closed loop, which has no `arrivals`: the end of a request \
                               sends the next";
                let problem = Problem::error(context.key("load.arrivals"), message);
                context.problems.push(problem.hint("remove `arrivals`, or add `rps` for an open loop with a cap"));
            }
            Pace::Closed { concurrency }
        }
    }
}

/// What this endpoint can't do.
fn refuse_unspoken(context: &mut Context, load: &Load, endpoint: &Endpoint) {
    let is_unix = matches!(endpoint, Endpoint::Url(url) if UnixUrl::parse(url).is_some());
    if load.clock == Clock::Kernel && is_unix {
        let message =
            "`load.clock` is `kernel`, and the kernel stamps nothing that comes over a Unix socket".to_owned();
        context.error("load.clock", message, "remove it, or write `clock: user`");
    }
    if load.http == Http::Two && matches!(endpoint, Endpoint::Sim(_)) {
        let message = "`load.http` is 2, and the simulated engine speaks HTTP/1.1".to_owned();
        context.error("load.http", message, "remove it");
    }
}

fn prompts(context: &mut Context, raw: RawPrompts, api: Api) -> PromptSpec {
    if raw.file.is_some() && context.is_written("prompts.input_tokens") {
        let problem =
            Problem::error(context.key("prompts.input_tokens"), "`prompts` has both `input_tokens` and `file`");
        context.problems.push(problem.hint("keep one of the two: the rows of a file are as long as they are"));
    }
    for path in ["prompts.output_tokens", "prompts.output", "prompts.tokenizer"] {
        if !api.generates() && context.is_written(path) {
            let message = format!("`{path}` is about generated tokens, and `{}` generates none", api.name());
            context.problems.push(Problem::error(context.key(path), message).hint("remove it"));
        }
    }
    PromptSpec {
        input_tokens: length(context, "prompts.input_tokens", raw.input_tokens),
        output_tokens: length(context, "prompts.output_tokens", raw.output_tokens),
        cache: raw.cache,
        output: raw.output,
        system: raw.system,
        file: raw.file,
        tokenizer: raw.tokenizer,
        tokens: raw.tokens,
    }
}

/// A bound that only a stream can keep.
fn refuse_unmeasured(context: &mut Context, slo: Slo, api: Api, stream: bool) {
    for (key, bound) in [("ttft", slo.ttft), ("ttfa", slo.ttfa), ("tpot", slo.tpot)] {
        let path = format!("slo.{key}");
        let (message, hint) = match bound {
            Some(_) if !api.generates() => {
                (format!("`{path}` is about generated tokens, and `{}` generates none", api.name()), "keep `e2e` alone")
            }
            Some(_) if !stream => (
                format!("`{path}` is measured on a stream, and `target.stream` is false"),
                "keep `e2e` alone, or remove `stream: false`",
            ),
            _ => continue,
        };
        context.problems.push(Problem::error(context.key(&path), message).hint(hint));
    }
}

fn length(context: &mut Context, path: &str, raw: RawLength) -> Length {
    let mean = raw.mean.unwrap_or(1.0);
    let reach = (mean + 5.0 * raw.stddev).ceil().min(f64::from(LONGEST)) as u32;
    let max = raw.max.unwrap_or(reach.max(raw.min));
    let length = Length { mean, stddev: raw.stddev, min: raw.min, max, shape: raw.shape };
    if !context.is_sound(path) {
        return length;
    }
    let (min, largest) = (length.min, f64::from(length.max));
    if min > max {
        context.error(path, format!("`{path}` has `min` {min} above `max` {max}"), "swap them");
    } else if mean < f64::from(min) || mean > largest {
        let message = format!("`{path}` has its `mean` {mean} outside `min` {min} to `max` {max}");
        context.error(path, message, "choose a mean between them: draws outside are redrawn");
    } else if mass(&length) < LEAST_MASS {
        let message = format!("`{path}`: almost no draw falls between {min} and {max}");
        context.error(path, message, "widen `min` to `max`, or lower `stddev`");
    }
    length
}
