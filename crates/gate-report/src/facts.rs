//! The facts of a run, a line each.

mod scenarios;
mod spent;
mod tables;

use gate_model::{
    Arm, Commit, Figure, Health, HttpVersion, Metric, Nanos, Outcome, OutcomeCount, Override, Pace, Quantity, Reached,
    ReferenceFacts, Series, Stamping, TokenSource, Verdict,
};

use crate::command::flags;
use crate::escape;
use crate::layout::{JOINT, listed, wrap};
use crate::words::{self, figure, grouped, number};

pub(crate) use tables::tables;

/// The facts of the run and what flags changed, as text.
pub(crate) fn facts_text(verdict: &Verdict) -> String {
    format!("\n{}{}", listing(facts(verdict)), tables::text(verdict))
}

/// The facts of the run and what flags changed, each with its name; what has nothing to say is empty.
pub(crate) fn facts(verdict: &Verdict) -> Vec<(&'static str, String)> {
    let run = &verdict.run;
    let mut lines =
        vec![("target", target(verdict)), ("reference", reference(verdict)), ("requests", requests(verdict))];
    lines.extend(scenarios::scenarios(verdict));
    lines.extend(scenarios::prompts(verdict));
    lines.extend(figures(verdict, "figures", |figure| !is_phase(figure.metric)));
    lines.extend(figures(verdict, "phases", |figure| is_phase(figure.metric)));
    lines.push(("tokens", tokens(&run.token_sources)));
    lines.push(("time", pace(verdict)));
    lines.push((
        "warm-up",
        run.cold_ttft.map_or(String::new(), |cold| format!("first request's ttft {}, not scored", time(cold))),
    ));
    lines.push(("client", client(verdict)));
    lines.push(("its machine", spent::footprint(verdict)));
    lines.push(("spent", spent::spent(verdict)));
    lines.push(("shards", spent::shards(verdict)));
    if let Some(baseline) = &verdict.baseline {
        lines.push(("baseline", words::chosen(baseline, &run.started)));
        lines.push(("differs", words::differences_text(&baseline.differences)));
    }
    lines.push(("commit", run.commit.as_ref().map(commit).unwrap_or_default()));
    let imported = run.imported_from.as_ref().map(|format| format!(", imported from {format}")).unwrap_or_default();
    lines.push(("run", format!("{}, started {}, gate {}{imported}", run.run_id, run.started, verdict.gate)));
    lines.push(("set by flags", overrides(&verdict.overrides)));
    lines
}

/// Names with their facts, one below the other; a fact without words is left out.
pub(crate) fn listing<'a>(facts: impl IntoIterator<Item = (&'a str, String)>) -> String {
    let known = facts.into_iter().filter(|(_, fact)| !fact.is_empty());
    known.map(|(name, fact)| wrap(&format!("{name:<14}"), 14, &escape::terminal(&fact))).collect()
}

/// What flags changed, as they were typed.
pub(crate) fn overrides(changes: &[Override]) -> String {
    let flags = flags(changes).into_iter().map(|(flag, value)| match value {
        Some(value) => format!("{flag}{JOINT}{value}"),
        None => flag.to_owned(),
    });
    flags.collect::<Vec<_>>().join(", ")
}

/// The figures of the target, a line for each scenario.
fn figures(verdict: &Verdict, name: &'static str, chosen: impl Fn(&Figure) -> bool) -> Vec<(&'static str, String)> {
    let mut scenarios: Vec<u16> = verdict.figures.iter().map(|figure| figure.scenario).collect();
    scenarios.sort_unstable();
    scenarios.dedup();
    let lines = scenarios.into_iter().filter_map(|scenario| {
        let figures = figures_of(verdict, |figure| figure.scenario == scenario && chosen(figure));
        let of = words::scenario_name(verdict, scenario).map(|name| format!("{name}: ")).unwrap_or_default();
        (!figures.is_empty()).then(|| of + &figures)
    });
    scenarios::named_once(name, lines)
}

/// The chosen figures of the target, each with the reference's own; what only the reference has stands after them.
fn figures_of(verdict: &Verdict, chosen: impl Fn(&Figure) -> bool) -> String {
    let of_arm = |arm: Arm| verdict.figures.iter().filter(move |figure| figure.arm == arm);
    let same = |one: &Figure, other: &Figure| (one.scenario, one.metric) == (other.scenario, other.metric);
    let reference = |figure: &Figure| {
        let value = of_arm(Arm::Reference).find(|other| same(figure, other))?.value?;
        Some(words::figure(value))
    };
    let alone = of_arm(Arm::Reference)
        .filter(|figure| !of_arm(Arm::Target).any(|other| other.value.is_some() && same(figure, other)));
    let figures = of_arm(Arm::Target).chain(alone).filter(|figure| chosen(figure)).filter_map(|figure| {
        let beside = match figure.arm {
            Arm::Target => reference(figure).map(|value| format!(" (reference{JOINT}{value})")).unwrap_or_default(),
            Arm::Reference => " (reference)".to_owned(),
        };
        figure.value.map(|value| format!("{}{JOINT}{}{beside}", figure.metric, words::figure(value)))
    });
    figures.collect::<Vec<_>>().join(", ")
}

/// Whether a metric is of one phase of a request on its way to the first token.
fn is_phase(metric: Metric) -> bool {
    let Metric::Series(series, _) = metric else { return false };
    matches!(series, Series::CapWait | Series::Dns | Series::Connect | Series::Tls | Series::Write | Series::Headers)
}

fn target(verdict: &Verdict) -> String {
    let run = &verdict.run;
    endpoint(verdict, &run.target, run.model.as_deref(), run.reached.as_ref())
}

/// An arm's endpoint and model, how it was reached, and what its server calls itself.
fn endpoint(verdict: &Verdict, target: &str, model: Option<&str>, reached: Option<&Reached>) -> String {
    let model = model.map(|model| format!(", model {model}")).unwrap_or_default();
    // The engine is this process: there is no way to it.
    let reached = reached.filter(|_| !verdict.simulated);
    let server = reached.and_then(|reached| reached.server.as_deref()).map(|server| format!("server {server}"));
    let facts = [reached.and_then(|reached| way(target, reached)), server];
    let facts: String = facts.into_iter().flatten().map(|fact| format!("; {fact}")).collect();
    format!("{target}{model}{facts}")
}

/// The reference, and how its requests ended.
fn reference(verdict: &Verdict) -> String {
    let Some(reference) = &verdict.run.reference else { return String::new() };
    let ReferenceFacts { target, model, outcomes, cold_ttft, reached } = reference;
    let endpoint = endpoint(verdict, target, model.as_deref(), reached.as_ref());
    let judged = (total(outcomes) > 0).then(|| format!("{} judged: {}", grouped(total(outcomes)), ways(outcomes)));
    let cold = cold_ttft.map(|cold| format!("first request's ttft {}, not scored", time(cold)));
    [Some(endpoint), judged, cold].into_iter().flatten().collect::<Vec<_>>().join("; ")
}

fn total(outcomes: &[OutcomeCount]) -> u32 {
    outcomes.iter().map(|way| way.count).fold(0, u32::saturating_add)
}

/// The commit that was measured: `a1b2c3d on main, with changes that were not committed`.
fn commit(commit: &Commit) -> String {
    let branch = commit.branch.as_ref().map(|branch| format!(" on {branch}")).unwrap_or_default();
    let dirty = if commit.dirty { ", with changes that were not committed" } else { "" };
    format!("{}{branch}{dirty}", commit.id)
}

/// How the target was reached: `HTTP/2 at 203.0.113.7, the first of 3 addresses`; `None` where that is what its URL
/// says.
fn way(target: &str, reached: &Reached) -> Option<String> {
    let proxy = reached.proxy.as_ref().map(|proxy| format!(" through the proxy {proxy}")).unwrap_or_default();
    // An address that the target is named by is no news.
    let address = reached.addresses.first().filter(|address| !target.contains(*address));
    let address = address.map(|address| match reached.addresses.len() {
        1 => format!(" at {address}"),
        several => format!(" at {address}, the first of {several} addresses"),
    });
    let is_news = reached.http != HttpVersion::Http1 || reached.proxy.is_some() || address.is_some();
    is_news.then(|| format!("{}{proxy}{}", words::http_version(reached.http), address.unwrap_or_default()))
}

fn requests(verdict: &Verdict) -> String {
    let run = &verdict.run;
    let most = if words::may_end_early(run.looks.len(), &run.parts) { "at most " } else { "" };
    let of = if run.decided_at.is_some() { String::new() } else { format!(" of {most}{}", grouped(run.planned)) };
    let pairs = if run.reference.is_some() { " of each arm" } else { "" };
    let both = if run.reference.is_some() { " to both arms" } else { "" };
    let mut text = format!("{}{of} sent{both}", grouped(run.sent));
    let judged = if run.reference.is_some() { total(&run.outcomes) } else { run.judged };
    if run.judged > 0 {
        let target = if run.reference.is_some() { " of the target" } else { "" };
        let left_out = left_out(verdict, judged);
        text.push_str(&format!(", {}{target} judged{left_out}: {}", grouped(judged), ways(&run.outcomes)));
    }
    // Of several scenarios each has its own.
    if run.looks.len() > 1 && run.parts.len() <= 1 {
        let looks = listed(&run.looks.iter().map(|look| grouped(*look)).collect::<Vec<_>>(), "and");
        let decided = run.decided_at.map(|look| format!(", decided at {}", grouped(look))).unwrap_or_default();
        text.push_str(&format!("; looks at {looks}{pairs}{decided}"));
    }
    text
}

/// Why fewer requests were judged than sent: requests go on being sent while a look waits for its last answers.
fn left_out(verdict: &Verdict, judged: u32) -> String {
    let run = &verdict.run;
    let reference = run.reference.as_ref().map_or(0, |reference| total(&reference.outcomes));
    match run.sent.saturating_sub(judged).saturating_sub(reference) {
        0 => String::new(),
        _ if run.decided_at.is_none() => String::new(),
        1 => " (1 more was sent before the decision and is left out)".to_owned(),
        more => format!(" ({} more were sent before the decision and are left out)", grouped(more)),
    }
}

pub(crate) fn ways(outcomes: &[OutcomeCount]) -> String {
    match outcomes {
        [all] if all.outcome == Outcome::Ok => "all ok".to_owned(),
        several => {
            let ways = several.iter().map(|way| format!("{} {}", grouped(way.count), way.outcome.name()));
            ways.collect::<Vec<_>>().join(", ")
        }
    }
}

/// Who counted the output tokens, where it is not the server alone.
fn tokens(sources: &[(TokenSource, u32)]) -> String {
    let name = |source| match source {
        TokenSource::Usage => "the server's usage",
        TokenSource::Tokenizer => "the spec's tokenizer",
        TokenSource::Estimated => "the number of events, an estimate",
    };
    match sources {
        [] | [(TokenSource::Usage, _)] => String::new(),
        [(source, _)] => format!("counted by {}", name(*source)),
        several => {
            let several =
                several.iter().map(|(source, requests)| format!("{} of {}", name(*source), grouped(*requests)));
            format!("counted by {}", listed(&several.collect::<Vec<_>>(), "and"))
        }
    }
}

/// How long the run took, and its rates.
fn pace(verdict: &Verdict) -> String {
    let took = (verdict.run.duration.0 > 0).then(|| long_time(verdict.run.duration));
    let cap = match verdict.run.pace {
        Some(Pace::Closed { concurrency }) => Some(format!("a closed loop of {} at a time", grouped(concurrency))),
        Some(Pace::Open { cap: Some(cap), .. }) => Some(format!("at most {} at a time", grouped(cap))),
        Some(Pace::Open { cap: None, .. }) | None => None,
    };
    let rates = verdict.run.rates;
    let both = if verdict.run.reference.is_some() { " to both arms together" } else { "" };
    let rates = rates.map(|(planned, sent)| {
        format!("the plan's own times give {}/s{both}; {}/s sent", number(planned), number(sent))
    });
    [took, cap, rates].into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// A time of seconds or more, in seconds up to ten minutes.
pub(crate) fn long_time(time: Nanos) -> String {
    let seconds = time.as_secs_f64();
    if seconds < 600.0 { format!("{} s", number(seconds)) } else { figure(Quantity::time(time)) }
}

/// The client's own health; of an imported run nothing is known.
fn client(verdict: &Verdict) -> String {
    if verdict.run.imported_from.is_some() {
        return String::new();
    }
    let health = &verdict.run.health;
    let parts = [
        verdict.run.send_lag.map(|(p50, p99)| format!("sends late by {} (p50) and {} (p99)", time(p50), time(p99))),
        health.cpu_share.map(|share| format!("{} of its CPU used", words::percent(share))),
        health.loop_delay_p95.map(|delay| format!("wakes late by {} (p95)", time(delay))),
    ];
    let mut parts: Vec<String> = parts.into_iter().flatten().collect();
    if !parts.is_empty() && health.is_recorded() {
        parts.extend(stamps(health));
    }
    parts.join("; ")
}

/// Which clock stamped what was received, and how good its stamps are.
fn stamps(health: &Health) -> impl Iterator<Item = String> {
    let behind = health.read_delay_p95.filter(|_| health.clock == Stamping::Kernel);
    let behind = behind.map(|delay| format!(", reads {} behind it (p95)", time(delay))).unwrap_or_default();
    let coalesced =
        health.coalesced_share.map(|share| format!("{} of the events read with later ones", words::percent(share)));
    std::iter::once(format!("{} clock{behind}", health.clock.name())).chain(coalesced)
}

fn time(nanos: Nanos) -> String {
    figure(Quantity::time(nanos))
}
