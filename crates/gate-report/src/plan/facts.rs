//! The facts of a plan, a line each.

use gate_model::{
    BaselineFrom, BaselineSpec, Budget, Delivery, Endpoint, Fault, Latency, Nanos, Prices, Quantity, Roots, Target,
    Tls, Unit,
};

use super::{PlanTotals, PlanView};
use crate::facts::overrides;
use crate::layout::{counted, listed};
use crate::words::{figure, grouped, number, percent, span};

/// The facts of the gate as a whole, with their names; what has nothing to say is empty.
pub(super) fn facts(view: &PlanView<'_>) -> Vec<(&'static str, String)> {
    let spec = view.spec;
    let of_reference = |fact: fn(&Target) -> String| spec.reference.as_ref().map(fact).unwrap_or_default();
    vec![
        ("spec", spec.file.clone()),
        ("target", target(&spec.target)),
        ("engine", engine(&spec.target)),
        ("tls", tls(&spec.target.tls)),
        ("metrics", spec.target.metrics.clone().unwrap_or_default()),
        ("reference", of_reference(target)),
        ("its engine", of_reference(engine)),
        ("its tls", of_reference(|target| tls(&target.tls))),
    ]
}

/// What stands after the sections: what they may use up, what they are compared with, and what flags changed.
pub(super) fn kept(view: &PlanView<'_>) -> Vec<(&'static str, String)> {
    let spec = view.spec;
    vec![
        ("worst case", worst(view)),
        ("budget", budget(&spec.budget)),
        ("baseline", if spec.needs_baseline() { baseline(&spec.baseline) } else { String::new() }),
        ("set by flags", overrides(&spec.overrides)),
    ]
}

/// What several sections come to, one after another.
pub(super) fn several(view: &PlanView<'_>) -> Vec<(&'static str, String)> {
    let lasts = view.sections().map(|section| section.lasts()).try_fold(Nanos::ZERO, |sum, one| Some(sum + one?));
    let lasts = match lasts {
        Some(lasts) => format!("about {}, without warm-up and the last answers of each", round(lasts)),
        None => "as long as the answers take".to_owned(),
    };
    vec![("time", lasts)]
}

/// A time of minutes without its seconds, and one of hours without its minutes.
fn round(time: Nanos) -> String {
    const MINUTE: i64 = 60_000_000_000;
    match time.0 / MINUTE {
        0..10 => span(time),
        10..120 => span(Nanos((time.0 + MINUTE / 2) / MINUTE * MINUTE)),
        _ => format!("{} h", number((time.as_secs_f64() / 360.0).round() / 10.0)),
    }
}

/// What everything together uses up at most, where that is bounded, has a price, or is of several sections.
fn worst(view: &PlanView<'_>) -> String {
    let spec = view.spec;
    let PlanTotals { requests, input_tokens, output_tokens, cost } = view.totals;
    if !(spec.budget.is_given() || cost.is_some() || view.plans.len() > 1) {
        return String::new();
    }
    let count = |count: u64| Quantity::count(count as f64).to_string();
    let arms = if spec.reference.is_some() { "warm-up and both arms included" } else { "warm-up included" };
    let priced = cost.map(|cost| {
        let prices = spec.prices.as_ref().map(prices).unwrap_or_default();
        format!("; {}{prices}", dollars(cost))
    });
    format!(
        "{} requests, {arms}; {} tokens in and {} out{}",
        count(requests),
        count(input_tokens),
        count(output_tokens),
        priced.unwrap_or_default()
    )
}

fn dollars(value: f64) -> String {
    figure(Quantity { value, unit: Unit::Dollars })
}

/// ` at $0.15 in, $0.08 in from a cache and $0.60 out per million tokens`.
fn prices(prices: &Prices) -> String {
    let cached = prices.cached_input.map(|cached| format!(", {} in from a cache", dollars(cached))).unwrap_or_default();
    format!(" at {} in{cached} and {} out per million tokens", dollars(prices.input), dollars(prices.output))
}

/// What a run may use up.
fn budget(budget: &Budget) -> String {
    let count = |count: u64, noun: &str| format!("{} {noun}", Quantity::count(count as f64));
    let parts = [
        budget.requests.map(|requests| count(requests, "requests")),
        budget.input_tokens.map(|tokens| count(tokens, "tokens in")),
        budget.output_tokens.map(|tokens| count(tokens, "tokens out")),
        budget.cost.map(dollars),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() { String::new() } else { format!("{} at most: no more is sent then", listed(&parts, "and")) }
}

fn target(target: &Target) -> String {
    let model = target.model.as_ref().map(|model| format!(", model {model}")).unwrap_or_default();
    let whole = if target.delivery == Delivery::Whole { ", answers in one body" } else { "" };
    let replicas = target.replica_header.as_ref().map(|header| format!(", replicas told by {header}"));
    format!("{}{model}, {}{whole}{}", endpoint(target), target.api.name(), replicas.unwrap_or_default())
}

/// Which stored runs are asked for: `the newest 5 by merge-base, from .gate/baselines; where there are none, last:5`.
fn baseline(baseline: &BaselineSpec) -> String {
    let BaselineSpec { from, runs, store, class, fallback } = baseline;
    let newest = if *runs == 1 { "the newest".to_owned() } else { format!("the newest {}", grouped(*runs)) };
    let chosen = match from {
        BaselineFrom::MergeBase | BaselineFrom::Branch(_) => format!("{newest} by {from}"),
        BaselineFrom::Last(_) | BaselineFrom::Pin(_) | BaselineFrom::File(_) => from.to_string(),
    };
    let class = class.as_ref().map(|class| format!(", of the class {class}")).unwrap_or_default();
    let fallback = fallback.iter().map(ToString::to_string).collect::<Vec<_>>();
    let fallback = (!fallback.is_empty()).then(|| format!("; where there are none, {}", fallback.join(", then ")));
    format!("{chosen} from {store}{class}{}", fallback.unwrap_or_default())
}

/// The endpoint as a person named it.
pub(super) fn endpoint(target: &Target) -> &str {
    match &target.endpoint {
        Endpoint::Url(url) => url,
        Endpoint::Sim(_) => "sim",
    }
}

/// How the server's certificate is checked, where that is not the usual way.
fn tls(tls: &Tls) -> String {
    let authorities = if tls.insecure {
        "the server's certificate is NOT CHECKED (`target.tls.insecure`)".to_owned()
    } else {
        let roots = (tls.roots == Roots::System).then(|| "the system's authorities".to_owned());
        let ca = tls.ca.as_ref().map(|file| format!("the authorities of {file}"));
        listed(&[roots, ca].into_iter().flatten().collect::<Vec<_>>(), "and")
    };
    let own = tls.cert.as_ref().map(|file| format!("the client's own certificate is {file}"));
    [Some(authorities).filter(|words| !words.is_empty()), own].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// What the simulated engine does, where it is that.
fn engine(target: &Target) -> String {
    let Endpoint::Sim(params) = &target.endpoint else { return String::new() };
    let mut parts = vec![format!("ttft {}", latency(&params.ttft)), format!("tpot {}", latency(&params.tpot))];
    let faults = Fault::ALL.map(|fault| (fault, params.faults.rate(fault)));
    let faults = faults.into_iter().filter(|(_, rate)| *rate > 0.0);
    parts.extend(faults.map(|(fault, rate)| format!("{} of requests {}", percent(rate), fault.name())));
    parts.extend(params.script.iter().map(|scripted| match (scripted.from, scripted.to) {
        (from, to) if from == to => format!("request {} {}", grouped(from), scripted.fault.name()),
        (from, to) => format!("requests {} to {} {}", grouped(from), grouped(to), scripted.fault.name()),
    }));
    parts.extend(params.warming_up.map(|warming| {
        format!("up to {} times slower over its first {} requests", number(warming.slowdown), grouped(warming.requests))
    }));
    parts.extend(
        (params.buffer_bytes > 0).then(|| format!("streams held back by {} bytes", grouped(params.buffer_bytes))),
    );
    parts.extend(params.slots.map(|slots| format!("serves {} at once", grouped(slots))));
    parts.extend(params.prefill.map(|tokens| format!("reads prompts at {} tok/s", number(tokens))));
    parts.extend(
        params
            .prefix_cache
            .map(|cache| format!("caches {} blocks of {} tokens", grouped(cache.blocks), grouped(cache.block_tokens))),
    );
    parts.extend(params.scaling.map(|scaling| {
        format!(
            "gets {} more slots, up to {}, {} after {} wait",
            grouped(scaling.step),
            grouped(scaling.max_slots),
            span(scaling.cold_start),
            grouped(scaling.queue)
        )
    }));
    let drifts = [("ttft", params.drift.ttft), ("tpot", params.drift.tpot), ("memory", params.drift.memory)];
    let drifts = drifts.into_iter().filter(|(_, share)| *share != 0.0);
    parts.extend(drifts.map(|(what, share)| format!("{what} grows by {} an hour", percent(share))));
    parts.extend(params.dies_after.map(|count| format!("dies after {}", counted(count as usize, "request"))));
    parts.join(", ")
}

/// The mean with its standard deviation: `120 ms ± 30 ms`.
fn latency(latency: &Latency) -> String {
    let spread = (latency.stddev.0 > 0).then(|| format!(" ± {}", figure(Quantity::time(latency.stddev))));
    format!("{}{}", figure(Quantity::time(latency.mean)), spread.unwrap_or_default())
}
