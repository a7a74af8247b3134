//! The facts of a plan, a line each.

use gate_model::{
    Arrivals, BaselineFrom, BaselineSpec, Cache, Clock, Connections, Delivery, Endpoint, Fault, Http, Iterations,
    Latency, Load, OutputLength, Pace, Plan, PromptSpec, Quantity, Roots, Target, Tls, TokenPolicy,
};

use super::PlanView;
use crate::facts::{long_time, overrides};
use crate::layout::{counted, listed};
use crate::words::{figure, grouped, number, percent};

/// Tokens a plan asks for at most.
pub(super) struct Tokens {
    /// Input tokens.
    pub(super) input: u64,
    /// Output tokens.
    pub(super) output: u64,
}

/// The facts with their names; what has nothing to say is empty.
pub(super) fn facts(view: &PlanView<'_>) -> [(&'static str, String); 15] {
    let spec = view.spec;
    let of_reference = |fact: fn(&Target) -> String| spec.reference.as_ref().map(fact).unwrap_or_default();
    [
        ("spec", spec.file.clone()),
        ("target", target(&spec.target)),
        ("engine", engine(&spec.target)),
        ("tls", tls(&spec.target.tls)),
        ("reference", of_reference(target)),
        ("its engine", of_reference(engine)),
        ("its tls", of_reference(|target| tls(&target.tls))),
        ("load", load(view)),
        ("client", client(&spec.load)),
        ("prompts", prompts(&spec.prompts)),
        ("requests", requests(view)),
        ("time", time(view)),
        ("tokens", tokens_text(view.plan)),
        ("baseline", if spec.needs_baseline() { baseline(&spec.baseline) } else { String::new() }),
        ("set by flags", overrides(&spec.overrides)),
    ]
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

fn load(view: &PlanView<'_>) -> String {
    let arrivals = match view.spec.load.arrivals {
        Arrivals::Poisson => "Poisson arrivals",
        Arrivals::Constant => "constant arrivals",
    };
    let pace = match view.spec.load.pace {
        Pace::Open { rate, cap } => {
            let cap = cap.map(|cap| format!(", at most {} at once, and waiting for a slot counts", grouped(cap)));
            format!("open loop, {}/s, {arrivals}{}", number(rate.0), cap.unwrap_or_default())
        }
        Pace::Closed { concurrency } => {
            let requests = view.plan.requests.len();
            let all = (concurrency as usize > requests)
                .then(|| format!(" (at most {requests} are ever open: all of them from the start)"));
            format!("closed loop, {} at once{}", grouped(concurrency), all.unwrap_or_default())
        }
    };
    format!("{pace}, seed {}", view.plan.seed)
}

/// What sends and reads.
fn client(load: &Load) -> String {
    let connections = match load.connections {
        Connections::Pooled => "connections are kept open",
        Connections::Fresh => "a new connection for each request",
    };
    let http = match load.http {
        Http::Auto => "HTTP version as the server chooses",
        Http::One => "HTTP/1.1",
        Http::Two => "HTTP/2",
    };
    let clock = match load.clock {
        Clock::Auto => "the kernel's clock where it works",
        Clock::Kernel => "the kernel's clock",
        Clock::User => "the client's own clock",
    };
    format!("{connections}, {http}, {clock}, {}", counted(load.workers as usize, "worker"))
}

fn requests(view: &PlanView<'_>) -> String {
    let warmup = counted(view.plan.warmup.len(), "warm-up request");
    let pairs = if view.spec.reference.is_some() {
        "; each is a pair with one prompt, a request to each arm, in random order"
    } else {
        ""
    };
    let judged = match view.spec.load.iterations {
        Iterations::Fixed(count) => format!("{} measured, judged once", grouped(count)),
        Iterations::Range { first, last, extend } => {
            let further = extend.filter(|extend| *extend > last).map(|extend| {
                format!(
                    "; goes on to {} only where a required check is seen over its limit and not proven",
                    grouped(extend)
                )
            });
            let (first, last) = (grouped(first), grouped(last));
            format!("{first} to {last} measured, judged at {first} and {last}{}", further.unwrap_or_default())
        }
    };
    format!("{warmup}, then {judged}{pairs}")
}

/// When each look's last request is due. In a closed loop that is when earlier ones have ended.
fn time(view: &PlanView<'_>) -> String {
    if view.spec.load.pace.rate().is_none() {
        return "as long as the answers take".to_owned();
    }
    let plan = view.plan;
    let noun = if view.spec.reference.is_some() { "pair" } else { "request" };
    let due = plan.looks.iter().filter_map(|look| {
        let sent = (*look as usize).checked_mul(view.spec.arms() as usize)?;
        let last = plan.requests.get(sent.checked_sub(1)?)?;
        Some(format!("{} for {}", long_time(last.at), counted(*look as usize, noun)))
    });
    let due = due.collect::<Vec<_>>();
    if due.is_empty() { String::new() } else { format!("{}, after warm-up", listed(&due, "or")) }
}

/// What the whole plan asks for, warm-up included.
pub(super) fn tokens(plan: &Plan) -> Tokens {
    let all = || plan.warmup.iter().chain(&plan.requests);
    Tokens {
        input: all().map(|request| u64::from(request.input_tokens)).sum(),
        output: all().map(|request| u64::from(request.output_tokens)).sum(),
    }
}

fn tokens_text(plan: &Plan) -> String {
    let Tokens { input, output } = tokens(plan);
    let grouped = |count: u64| Quantity::count(count as f64).to_string();
    format!("about {} in and at most {} out, if every request is sent", grouped(input), grouped(output))
}

/// Where prompts come from and what they do to a prefix cache.
fn prompts(prompts: &PromptSpec) -> String {
    let source = prompts.file.as_ref().map_or_else(|| "built-in prose".to_owned(), |file| format!("from {file}"));
    let cache = match prompts.cache {
        Cache::Bust => "no prefix shared",
        Cache::Warm => "a warm prefix cache is meant",
    };
    let system =
        prompts.system.as_ref().map(|system| format!("a system prompt of {} characters", system.chars().count()));
    let exact = (prompts.output == OutputLength::Exact).then(|| "outputs go on to the planned length".to_owned());
    let tokenizer = prompts.tokenizer.as_ref().map(|file| format!("tokens without usage counted by {file}"));
    let estimate = (prompts.tokens == TokenPolicy::AcceptEstimate).then(|| "estimated tokens are accepted".to_owned());
    let parts = [Some(source), Some(cache.to_owned()), system, exact, tokenizer, estimate];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
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
    parts.extend(params.dies_after.map(|count| format!("dies after {}", counted(count as usize, "request"))));
    parts.join(", ")
}

/// The mean with its standard deviation: `120 ms ± 30 ms`.
fn latency(latency: &Latency) -> String {
    let spread = (latency.stddev.0 > 0).then(|| format!(" ± {}", figure(Quantity::time(latency.stddev))));
    format!("{}{}", figure(Quantity::time(latency.mean)), spread.unwrap_or_default())
}
