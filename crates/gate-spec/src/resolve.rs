//! From the raw spec to the gate: the rules between keys.

use gate_model::{
    Api, Delivery, Endpoint, EngineParams, Faults, GateSpec, Header, Iterations, Latency, Length, Load, MaxTokensField,
    PerSecond, PromptSpec, Ready, ReadyPath, Secret, Slo, Target, Tls, WarmingUp,
};

use crate::checks::checks;
use crate::context::Context;
use crate::endpoint;
use crate::length::{LEAST_MASS, mass};
use crate::problem::Problem;
use crate::raw::{RawLatency, RawLength, RawLoad, RawPrompts, RawSim, RawSpec, RawTarget};
use crate::table::LONGEST;

/// What a gate is made of, with the credentials its URL holds.
pub(crate) struct Built {
    pub(crate) spec: GateSpec,
    pub(crate) secrets: Vec<Secret>,
}

/// Builds the gate; whether it can be used depends on the problems left in the context.
pub(crate) fn build(context: &mut Context, raw: RawSpec, file: &str) -> Built {
    let mut secrets = Vec::new();
    let load = load(context, &raw.load);
    let checks = checks(context, &raw, load.iterations);
    let prompts = prompts(context, raw.prompts);
    refuse_unstreamed(context, raw.slo, raw.target.stream);
    let spec = GateSpec {
        version: raw.version.unwrap_or(1),
        name: raw.name.unwrap_or_default(),
        file: file.to_owned(),
        target: target(context, raw.target, &mut secrets),
        load,
        prompts,
        slo: raw.slo,
        timeouts: raw.timeouts,
        outcomes: raw.outcomes,
        checks,
        overrides: Vec::new(),
    };
    Built { spec, secrets }
}

fn target(context: &mut Context, raw: RawTarget, secrets: &mut Vec<Secret>) -> Target {
    let endpoint = endpoint(context, raw.url, raw.sim, secrets);
    check_tls(context, &raw.tls, &endpoint);
    if raw.max_tokens_field == MaxTokensField::MaxCompletionTokens && raw.api != Api::OpenaiChat {
        let message =
            format!("`target.max_tokens_field` is for `openai-chat`, and `target.api` is `{}`", raw.api.name());
        context.error("target.max_tokens_field", message, "remove it: this dialect has one such field");
    }
    let prompt = if raw.api == Api::OpenaiCompletions { "prompt" } else { "messages" };
    for (key, hint) in [("stream", "remove it; `target.stream` says whether answers stream"), (prompt, "remove it")] {
        if raw.extra_body.contains_key(key) {
            let path = format!("target.extra_body.{key}");
            context.error(&path, format!("`{path}`: gate sets this itself"), hint);
        }
    }
    let headers = raw.headers.iter().filter_map(|(name, value)| {
        let (name, value) = (name.as_str()?.to_owned(), Secret::new(value.as_str()?));
        Some(Header { name, value })
    });
    let path = match raw.ready.path.as_str() {
        "auto" => ReadyPath::Auto,
        path => ReadyPath::Path(path.to_owned()),
    };
    Target {
        endpoint,
        api: raw.api,
        model: raw.model,
        key: raw.key.map(Secret::new),
        headers: headers.collect(),
        extra_body: raw.extra_body,
        delivery: if raw.stream { Delivery::Streamed } else { Delivery::Whole },
        max_tokens_field: raw.max_tokens_field,
        tls: raw.tls,
        ready: Ready { within: raw.ready.within, path },
    }
}

/// Certificates are checked over https, and there always.
fn check_tls(context: &mut Context, tls: &Tls, endpoint: &Endpoint) {
    let plain = match endpoint {
        Endpoint::Sim(_) => Some("the simulated engine"),
        Endpoint::Url(url) => url.get(..5).filter(|scheme| scheme.eq_ignore_ascii_case("http:")).map(|_| "an http URL"),
    };
    if let Some(plain) = plain.filter(|_| *tls != Tls::default()) {
        let message = format!("`target.tls` is for https, and the target is {plain}");
        let problem = Problem::error(context.key("target.tls"), message);
        context.problems.push(problem.hint("remove it, or write an https URL"));
    } else if tls.insecure {
        let message = "`target.tls.insecure` accepts any certificate: whoever answers need not be the target, and gets \
                       the key";
        let problem = Problem::warning(context.site("target.tls.insecure"), message);
        context.problems.push(problem.hint("trust the server's own authority instead: `tls: {ca: FILE}`"));
    }
}

fn endpoint(context: &mut Context, url: Option<String>, sim: Option<RawSim>, secrets: &mut Vec<Secret>) -> Endpoint {
    let engine = |context: &mut Context, sim: Option<RawSim>| {
        Endpoint::Sim(Box::new(sim.map_or_else(EngineParams::default, |sim| engine(context, sim))))
    };
    match (url, sim) {
        (Some(url), sim) if url.eq_ignore_ascii_case("sim") => {
            if let Some(name) = context.variable("target.url") {
                let message = format!("`target.url` is the simulated engine, and comes from `${{{name}}}`");
                let hint = "a simulated engine must be written literally, `url: sim`, so that a missing variable \
                            never tests it by accident";
                context.error("target.url", message, hint);
            } else if url != "sim" {
                context.error("target.url", format!("`target.url` is `{url}`"), "write `url: sim`");
            }
            engine(context, sim)
        }
        (Some(url), None) => {
            match endpoint::parse(&url) {
                Ok(found) => secrets.extend(found),
                Err(error) => {
                    let from = context.variable("target.url");
                    let from = from.map_or_else(String::new, |name| format!("; its value comes from `${{{name}}}`"));
                    let message = format!("`target.url` {error}{from}");
                    context.error("target.url", message, error.hint());
                }
            }
            Endpoint::Url(url)
        }
        (Some(_), Some(_)) => {
            let problem = Problem::error(context.key("target.sim"), "`target` has both `url` and `sim`");
            context.problems.push(problem.hint("keep one of the two"));
            Endpoint::Url(String::new())
        }
        (None, Some(sim)) => engine(context, Some(sim)),
        (None, None) => {
            if context.is_sound("target.url") && context.is_sound("target.sim") {
                let problem = Problem::error(context.key("target"), "`target` has neither `url` nor `sim`");
                context.problems.push(problem.hint("add `url: http://127.0.0.1:8000/v1`, or `sim: {}`"));
            }
            Endpoint::Url(String::new())
        }
    }
}

fn engine(context: &mut Context, sim: RawSim) -> EngineParams {
    let sum = all(&sim.faults);
    // Shares in binary may sum to a little over one.
    if sum > 1.0 + 1e-9 {
        let message = format!("`target.sim.faults` add up to {}%", (sum * 1e6).round() / 1e4);
        context.error("target.sim.faults", message, "together they are at most 100% of the requests");
    }
    EngineParams {
        ttft: latency(&sim.ttft),
        tpot: latency(&sim.tpot),
        tokens_per_chunk: sim.tokens_per_chunk,
        role_chunk: sim.role_chunk.value,
        faults: sim.faults,
        script: sim.script,
        slow_headers: sim.slow_headers,
        warming_up: sim.warming_up.and_then(|raw| Some(WarmingUp { requests: raw.requests?, slowdown: raw.slowdown? })),
        buffer_bytes: sim.buffer,
        dies_after: sim.dies_after.value,
        ready_after: sim.ready_after,
        seed: sim.seed,
    }
}

/// The share of requests with any fault.
fn all(faults: &Faults) -> f64 {
    let Faults { http_429, http_500, stream_error, stall, reset, truncate, empty, html_200, slow_headers } = *faults;
    [http_429, http_500, stream_error, stall, reset, truncate, empty, html_200, slow_headers].iter().sum()
}

fn latency(raw: &RawLatency) -> Latency {
    Latency { mean: raw.mean.unwrap_or_default(), stddev: raw.stddev, shape: raw.shape }
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
    Load { rate: PerSecond(raw.rps), iterations, warmup: raw.warmup, arrivals: raw.arrivals, seed: raw.seed }
}

fn prompts(context: &mut Context, raw: RawPrompts) -> PromptSpec {
    if raw.file.is_some() && context.is_written("prompts.input_tokens") {
        let problem =
            Problem::error(context.key("prompts.input_tokens"), "`prompts` has both `input_tokens` and `file`");
        context.problems.push(problem.hint("keep one of the two: the rows of a file are as long as they are"));
    }
    PromptSpec {
        input_tokens: length(context, "prompts.input_tokens", raw.input_tokens),
        output_tokens: length(context, "prompts.output_tokens", raw.output_tokens),
        cache: raw.cache,
        output: raw.output,
        system: raw.system,
        file: raw.file,
    }
}

/// A bound that only a stream can keep.
fn refuse_unstreamed(context: &mut Context, slo: Slo, stream: bool) {
    for (key, bound) in [("ttft", slo.ttft), ("ttfa", slo.ttfa), ("tpot", slo.tpot)] {
        if bound.is_some() && !stream {
            let path = format!("slo.{key}");
            let message = format!("`{path}` is measured on a stream, and `target.stream` is false");
            let problem = Problem::error(context.key(&path), message);
            context.problems.push(problem.hint("keep `e2e` alone, or remove `stream: false`"));
        }
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
