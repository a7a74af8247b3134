//! An endpoint, under test or for reference: the rules between its keys.

use gate_model::{
    Api, Delivery, Endpoint, EngineParams, Faults, Header, Latency, MaxTokensField, PrefixCache, Ready, ReadyPath,
    Scaling, Secret, Target, Tls, UnixUrl, WarmingUp,
};
use url::Url;

use crate::aws;
use crate::context::Context;
use crate::custom::custom;
use crate::endpoint::{self, query_secrets};
use crate::problem::Problem;
use crate::raw::{RawLatency, RawSim, RawTarget};

/// The block of the spec that an endpoint is read from.
pub(crate) struct Block {
    /// `target` or `reference`.
    pub(crate) name: &'static str,
    /// Its keys whose values are the target's.
    pub(crate) inherited: Vec<&'static str>,
    /// Whether every scenario names a model of its own.
    pub(crate) has_models: bool,
    /// Whether credentials are taken from the environment where the spec has none.
    pub(crate) asks_environment: bool,
}

impl Block {
    /// The target's own.
    pub(crate) fn target(has_models: bool) -> Self {
        Self { name: "target", inherited: Vec::new(), has_models, asks_environment: true }
    }

    /// Where the value of a key stands in the spec, so that what is wrong with it is said there, and once.
    pub(crate) fn path(&self, key: &str) -> String {
        let first = key.split('.').next().unwrap_or(key);
        let name = if self.inherited.contains(&first) { "target" } else { self.name };
        format!("{name}.{key}")
    }
}

/// The endpoint of a block; credentials that are no values of the spec are added to `secrets`.
pub(crate) fn target(context: &mut Context, block: &Block, mut raw: RawTarget, secrets: &mut Vec<Secret>) -> Target {
    let endpoint = endpoint(context, block, raw.url.take(), raw.sim.take(), secrets);
    check_tls(context, block, &raw.tls, &endpoint);
    check_api(context, block, raw.api, raw.max_tokens_field, raw.stream);
    check_model(context, block, raw.api, raw.model.as_deref(), &endpoint);
    check_extra_body(context, &block.path("extra_body"), &block.path("stream"), raw.api, &raw.extra_body);
    let metrics = metrics(context, block, raw.metrics.take(), &endpoint, secrets);
    let custom = custom(context, block, raw.custom.take(), &raw, secrets);
    let headers = raw.headers.iter().filter_map(|(name, value)| {
        let (name, value) = (name.as_str()?.to_owned(), Secret::new(value.as_str()?));
        Some(Header { name, value })
    });
    let path = match raw.ready.path.as_str() {
        "auto" => ReadyPath::Auto,
        path => ReadyPath::Path(path.to_owned()),
    };
    let streams = raw.stream && raw.api.generates();
    let mut target = Target {
        endpoint,
        api: raw.api,
        model: raw.model,
        key: raw.key.map(Secret::new),
        headers: headers.collect(),
        extra_body: raw.extra_body,
        aws: None,
        custom,
        replica_header: raw.replica_header,
        metrics,
        delivery: if streams { Delivery::Streamed } else { Delivery::Whole },
        max_tokens_field: raw.max_tokens_field,
        tls: raw.tls,
        ready: Ready { within: raw.ready.within, path },
    };
    aws::authorise(context, block, &mut target, secrets);
    target
}

/// What a dialect has no use for.
fn check_api(context: &mut Context, block: &Block, api: Api, max_tokens_field: MaxTokensField, stream: bool) {
    let path = block.path("max_tokens_field");
    if max_tokens_field == MaxTokensField::MaxCompletionTokens && api != Api::OpenaiChat {
        let message = format!("`{path}` is for `openai-chat`, and `{}` is `{}`", block.path("api"), api.name());
        context.error(&path, message, "remove it: this dialect has one such field");
    }
    let path = block.path("stream");
    if !api.generates() && stream && context.is_written(&path) && context.is_sound(&path) {
        let message = format!("`{path}` is true, and the answers of `{}` are one body", api.name());
        context.error(&path, message, "remove it");
    }
}

/// Where the model is part of the route there must be one, unless the URL has it already.
fn check_model(context: &mut Context, block: &Block, api: Api, model: Option<&str>, endpoint: &Endpoint) {
    let url = match endpoint {
        Endpoint::Url(url) => url.split('?').next().unwrap_or("").trim_end_matches('/'),
        Endpoint::Sim(_) => "",
    };
    let has_route = match api {
        Api::Gemini => ["/models/", "/endpoints/"].iter().any(|segment| url.contains(segment)),
        Api::BedrockConverse => url.ends_with("/converse-stream") || url.ends_with("/converse"),
        Api::BedrockInvoke => url.ends_with("/invoke-with-response-stream") || url.ends_with("/invoke"),
        Api::Triton => url.ends_with("/generate_stream") || url.ends_with("/generate"),
        _ => return,
    };
    let path = block.path("model");
    let is_sound = context.is_sound(&path) && context.is_sound(&block.path("url"));
    if model.is_none() && !block.has_models && !has_route && is_sound {
        let message = format!("`{path}` is missing: the route of `{}` has the model in it", api.name());
        context.error(&path, message, "add `model: …`, or write the whole route as the URL");
    }
}

/// Fields that gate fills in cannot be filled in twice; the body of `custom` is the spec's own.
pub(crate) fn check_extra_body(
    context: &mut Context,
    at: &str,
    stream: &str,
    api: Api,
    extra_body: &serde_json::Map<String, serde_json::Value>,
) {
    let prompts: &[&str] = match api {
        Api::OpenaiChat | Api::Anthropic | Api::BedrockConverse | Api::BedrockInvoke | Api::Cohere => &["messages"],
        Api::OpenaiCompletions | Api::Llamacpp => &["prompt"],
        Api::OpenaiResponses | Api::OpenaiEmbeddings => &["input"],
        Api::Gemini => &["contents"],
        Api::Ollama => &["messages", "prompt"],
        Api::Tgi => &["inputs"],
        Api::Sglang => &["text"],
        Api::Triton => &["text_input"],
        Api::Custom => return,
    };
    let says = format!("remove it; `{stream}` says whether answers stream");
    let stream = ("stream", says.as_str());
    for (key, hint) in prompts.iter().map(|key| (*key, "remove it")).chain([stream]) {
        if extra_body.contains_key(key) {
            let path = format!("{at}.{key}");
            context.error(&path, format!("`{path}`: gate sets this itself"), hint);
        }
    }
}

/// Certificates are checked over https, and there always.
fn check_tls(context: &mut Context, block: &Block, tls: &Tls, endpoint: &Endpoint) {
    let (at, name) = (block.path("tls"), block.name);
    let plain = match endpoint {
        Endpoint::Sim(_) => Some("the simulated engine"),
        Endpoint::Url(url) if UnixUrl::parse(url).is_some() => Some("a Unix socket"),
        Endpoint::Url(url) => url.get(..5).filter(|scheme| scheme.eq_ignore_ascii_case("http:")).map(|_| "an http URL"),
    };
    if let Some(plain) = plain.filter(|_| *tls != Tls::default()) {
        let problem = Problem::error(context.key(&at), format!("`{at}` is for https, and the {name} is {plain}"));
        context.problems.push(problem.hint("remove it, or write an https URL"));
        return;
    }
    for (name, file) in [("ca", &tls.ca), ("cert", &tls.cert), ("key", &tls.key)] {
        if file.as_ref().is_some_and(|file| file.contains("-----BEGIN") || file.contains('\n')) {
            let path = format!("{at}.{name}");
            let message = format!("`{path}` is the name of a file, and holds what looks like its text");
            context.error(&path, message, "write the text to a file, and its name here");
        }
    }
    if tls.insecure {
        let path = format!("{at}.insecure");
        let message =
            format!("`{path}` accepts any certificate: whoever answers need not be the {name}, and gets the key");
        let problem = Problem::warning(context.site(&path), message);
        context.problems.push(problem.hint("trust the server's own authority instead: `tls: {ca: FILE}`"));
    }
    let (alone, missing, what) = match (&tls.cert, &tls.key) {
        (Some(_), None) => ("cert", "key", "the PEM file of its private key"),
        (None, Some(_)) => ("key", "cert", "the PEM file of the certificate it belongs to"),
        _ => return,
    };
    if context.is_sound(&format!("{at}.cert")) && context.is_sound(&format!("{at}.key")) {
        let message = format!("`{at}.{alone}` comes without `{at}.{missing}`");
        let problem = Problem::error(context.key(&format!("{at}.{alone}")), message);
        context.problems.push(problem.hint(format!("add `{missing}: FILE`, {what}, or remove `{alone}`")));
    }
}

/// Where the target's own metrics are: the URL, or the path on the target's host; of the simulated engine the path alone.
fn metrics(
    context: &mut Context,
    block: &Block,
    metrics: Option<String>,
    endpoint: &Endpoint,
    secrets: &mut Vec<Secret>,
) -> Option<String> {
    let path = block.path("metrics");
    if block.name == "reference" {
        if context.is_written(&path) {
            let problem = Problem::error(context.key(&path), format!("`{path}`: only the target's metrics are read"));
            context.problems.push(problem.hint("remove it, or move it to `target`"));
        }
        return None;
    }
    let metrics = metrics?;
    let url = match endpoint {
        Endpoint::Url(url) if metrics.starts_with('/') => match UnixUrl::parse(url) {
            Some(UnixUrl { socket, .. }) => format!("unix:{socket}:{metrics}"),
            None => format!("{}{metrics}", Url::parse(url).ok()?.origin().ascii_serialization()),
        },
        _ => metrics,
    };
    secrets.extend(query_secrets(url.split_once('?').map_or("", |(_, query)| query)));
    Some(url)
}

fn endpoint(
    context: &mut Context,
    block: &Block,
    url: Option<String>,
    sim: Option<RawSim>,
    secrets: &mut Vec<Secret>,
) -> Endpoint {
    let (name, url_path, sim_path) = (block.name, block.path("url"), block.path("sim"));
    let engine = |context: &mut Context, sim: Option<RawSim>| {
        Endpoint::Sim(Box::new(sim.map_or_else(EngineParams::default, |sim| engine(context, &sim_path, sim))))
    };
    match (url, sim) {
        (Some(url), sim) if url.eq_ignore_ascii_case("sim") => {
            if let Some(variable) = context.variable(&url_path) {
                let message = format!("`{url_path}` is the simulated engine, and comes from `${{{variable}}}`");
                let hint = "a simulated engine must be written literally, `url: sim`, so that a missing variable \
                            never tests it by accident";
                context.error(&url_path, message, hint);
            } else if url != "sim" {
                context.error(&url_path, format!("`{url_path}` is `{url}`"), "write `url: sim`");
            }
            engine(context, sim)
        }
        (Some(url), None) => {
            match endpoint::parse(&url) {
                Ok(found) => secrets.extend(found),
                Err(error) => {
                    let from = context.variable(&url_path);
                    let from = from.map_or_else(String::new, |name| format!("; its value comes from `${{{name}}}`"));
                    context.error(&url_path, format!("`{url_path}` {error}{from}"), error.hint());
                }
            }
            Endpoint::Url(url)
        }
        (Some(_), Some(_)) => {
            let problem = Problem::error(context.key(&sim_path), format!("`{name}` has both `url` and `sim`"));
            context.problems.push(problem.hint("keep one of the two"));
            Endpoint::Url(String::new())
        }
        (None, Some(sim)) => engine(context, Some(sim)),
        (None, None) => {
            if context.is_sound(&url_path) && context.is_sound(&sim_path) {
                let problem = Problem::error(context.key(name), format!("`{name}` has neither `url` nor `sim`"));
                context.problems.push(problem.hint("add `url: http://127.0.0.1:8000/v1`, or `sim: {}`"));
            }
            Endpoint::Url(String::new())
        }
    }
}

fn engine(context: &mut Context, path: &str, sim: RawSim) -> EngineParams {
    let sum = all(&sim.faults);
    // Shares in binary may sum to a little over one.
    if sum > 1.0 + 1e-9 {
        let path = format!("{path}.faults");
        let message = format!("`{path}` add up to {}%", (sum * 1e6).round() / 1e4);
        context.error(&path, message, "together they are at most 100% of the requests");
    }
    let scaling = sim.scaling.and_then(|raw| {
        let (max_slots, queue, cold_start) = (raw.max_slots?, raw.queue?, raw.cold_start?);
        Some(Scaling { max_slots, step: raw.step, queue, cold_start })
    });
    check_scaling(context, path, sim.slots, scaling);
    if sim.retry_after.is_some_and(|time| time.0 % 1_000_000_000 != 0) {
        let path = format!("{path}.retry_after");
        context.error(&path, format!("`{path}` is no whole number of seconds"), "such as `retry_after: 60s`");
    }
    EngineParams {
        ttft: latency(&sim.ttft),
        tpot: latency(&sim.tpot),
        tokens_per_chunk: sim.tokens_per_chunk,
        role_chunk: sim.role_chunk.value,
        faults: sim.faults,
        script: sim.script,
        slow_headers: sim.slow_headers,
        retry_after: sim.retry_after,
        warming_up: sim.warming_up.and_then(|raw| Some(WarmingUp { requests: raw.requests?, slowdown: raw.slowdown? })),
        buffer_bytes: sim.buffer,
        dies_after: sim.dies_after.value,
        ready_after: sim.ready_after,
        slots: sim.slots,
        prefill: sim.prefill,
        prefix_cache: sim
            .prefix_cache
            .and_then(|raw| Some(PrefixCache { blocks: raw.blocks?, block_tokens: raw.block_tokens })),
        scaling,
        drift: sim.drift,
        seed: sim.seed,
    }
}

/// Slots are added to those there are.
fn check_scaling(context: &mut Context, path: &str, slots: Option<u32>, scaling: Option<Scaling>) {
    let Some(scaling) = scaling.filter(|_| context.is_sound(&format!("{path}.slots"))) else { return };
    let at = format!("{path}.scaling");
    match slots {
        None => {
            let problem =
                Problem::error(context.key(&at), format!("`{at}` adds slots, and `{path}.slots` is not given"));
            context.problems.push(problem.hint("add it, such as `slots: 8`: without it as many are served as come"));
        }
        Some(slots) if scaling.max_slots <= slots => {
            let at = format!("{at}.max_slots");
            let message = format!("`{at}` is {}, and there are {slots} `slots` from the start", scaling.max_slots);
            context.error(&at, message, &format!("write a number above {slots}, or remove `scaling`"));
        }
        Some(_) => {}
    }
}

/// The share of requests with any fault.
fn all(faults: &Faults) -> f64 {
    let Faults { http_401, http_429, http_500, stream_error, stall, reset, truncate, empty, html_200, slow_headers } =
        *faults;
    [http_401, http_429, http_500, stream_error, stall, reset, truncate, empty, html_200, slow_headers].iter().sum()
}

fn latency(raw: &RawLatency) -> Latency {
    Latency { mean: raw.mean.unwrap_or_default(), stddev: raw.stddev, shape: raw.shape }
}
