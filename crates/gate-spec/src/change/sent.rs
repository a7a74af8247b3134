//! What a change makes of its own load: what is sent, where to, and how long is waited.

use std::fmt::Display;

use gate_model::{
    Abort, Against, Budget, Check, Delivery, Drifting, Endpoint, GateSpec, JournalSpec, Metric, Prices, RunOrder,
    Scenario, SpecChange, Target, Timeouts, UnixUrl,
};
use serde::Serialize;
use url::Url;

use super::engine::engine;
use super::traffic::{load, prompts};
use super::{change, time};

/// The longest value that is shown, in characters.
const LONGEST: usize = 60;
/// What stands for a value that is not shown.
pub(super) const GIVEN: &str = "given";
/// What stands for the other one, where both look alike.
const CHANGED: &str = "changed";

/// What the head measures otherwise than its base. It is no demand and the head's to say, but less of it proves less, and
/// stored runs of another name, load or model are none to compare with.
pub(super) fn sent(base: &GateSpec, head: &GateSpec) -> Vec<SpecChange> {
    let mut changes: Vec<_> = change("name", text(&base.name), text(&head.name), false).into_iter().collect();
    let is_apart = |spec: &GateSpec| !spec.scenarios.is_empty() && spec.order == RunOrder::InTurn;
    // In turn the gate's own load is that of nobody but of scenarios, which say so themselves.
    if !(is_apart(base) && is_apart(head)) {
        changes.extend(load(&base.load, &head.load));
    }
    if base.scenarios.is_empty() || head.scenarios.is_empty() {
        changes.extend(prompts(&base.prompts, &head.prompts));
    }
    changes.extend(scenarios(base, head));
    changes.extend(timeouts(&base.timeouts, &head.timeouts));
    changes.extend(target("target", &base.target, &head.target));
    changes.extend(metrics(base, head));
    changes.extend(budget(&base.budget, &head.budget));
    changes.extend(abort(base.abort, head.abort));
    changes.extend(journal(base.journal, head.journal));
    if base.needs_baseline() {
        changes.iter_mut().filter(|change| is_of_key(&change.what)).for_each(|change| change.loosens = true);
    }
    changes.extend(reference(base, head));
    changes.into_iter().map(shortened).collect()
}

/// Whether runs that differ in this are not compared with each other.
fn is_of_key(what: &str) -> bool {
    let inner = what.strip_prefix("scenarios.").and_then(|rest| rest.split_once('.')).map(|(_, key)| key);
    let what = inner.unwrap_or(what);
    let is_load = what.starts_with("load.") && what != "load.seed";
    is_load || what.starts_with("prompts.") || ["name", "run", "weight", "target.api", "target.model"].contains(&what)
}

/// What became of each scenario. One that is gone is measured no longer.
fn scenarios(base: &GateSpec, head: &GateSpec) -> Vec<SpecChange> {
    let order = |spec: &GateSpec| (!spec.scenarios.is_empty()).then(|| word(&spec.order)).flatten();
    let mut changes: Vec<_> = change("run", order(base), order(head), false).into_iter().collect();
    let find = |spec: &'_ GateSpec, name: &str| spec.scenarios.iter().find(|one| one.name == name).cloned();
    let given = || Some(GIVEN.to_owned());
    for before in &base.scenarios {
        let what = format!("scenarios.{}", before.name);
        match find(head, &before.name) {
            Some(now) => {
                let is_shared = head.order == RunOrder::Together && base.order == RunOrder::Together;
                let inner = scenario(before, &now, is_shared);
                changes.extend(inner.into_iter().map(|one| SpecChange { what: format!("{what}.{}", one.what), ..one }));
            }
            None => changes.extend(change(&what, given(), None, true)),
        }
    }
    for added in head.scenarios.iter().filter(|one| find(base, &one.name).is_none()) {
        changes.extend(change(&format!("scenarios.{}", added.name), None, given(), false));
    }
    changes
}

fn scenario(base: &Scenario, head: &Scenario, is_shared: bool) -> Vec<SpecChange> {
    let mut changes = if is_shared { Vec::new() } else { load(&base.load, &head.load) };
    changes.extend(prompts(&base.prompts, &head.prompts));
    let given = |one: &Scenario| (!one.extra_body.is_empty()).then(|| GIVEN.to_owned());
    let others = [
        change("target.model", base.model.clone(), head.model.clone(), false),
        differ("target.extra_body", base.extra_body != head.extra_body, given(base), given(head), false),
        change("weight", text(base.weight), text(head.weight), false),
    ];
    changes.extend(others.into_iter().flatten());
    changes
}

/// Where a check is on the server's own metrics, others may say something else.
fn metrics(base: &GateSpec, head: &GateSpec) -> Option<SpecChange> {
    let is_used =
        base.checks.iter().any(|check| matches!(check.metric, Metric::Server(..) | Metric::Drift(Drifting::Server(_))));
    // The path is shown where a URL's is not: it says which metrics.
    let shown = |spec: &GateSpec| {
        let url = spec.target.metrics.as_deref()?;
        Some(url.split(['?', '#']).next().unwrap_or("").to_owned())
    };
    differ("target.metrics", base.target.metrics != head.target.metrics, shown(base), shown(head), is_used)
}

/// A run that may use less is stopped sooner, and proves less.
fn budget(base: &Budget, head: &Budget) -> Vec<SpecChange> {
    let dollars = |cost: Option<f64>| cost.map(|cost| format!("${cost}"));
    let is_less =
        |before: Option<f64>, now: Option<f64>| now.is_some_and(|now| before.is_none_or(|before| now < before));
    let counts = [
        ("budget.requests", base.requests, head.requests),
        ("budget.input_tokens", base.input_tokens, head.input_tokens),
        ("budget.output_tokens", base.output_tokens, head.output_tokens),
    ];
    let counts = counts.map(|(what, before, now)| {
        let wide = |count: Option<u64>| count.map(|count| count as f64);
        change(what, before.and_then(text), now.and_then(text), is_less(wide(before), wide(now)))
    });
    let cost = change("budget.cost", dollars(base.cost), dollars(head.cost), is_less(base.cost, head.cost));
    counts.into_iter().chain([cost]).flatten().collect()
}

/// What tokens cost; lower prices let more through where a check is on the cost.
pub(super) fn prices(base: Option<Prices>, head: Option<Prices>, is_used: bool) -> Vec<SpecChange> {
    let shown = |price: Option<f64>| price.map(|price| format!("${price}"));
    let input = |prices: Option<Prices>| prices.map(|prices| prices.input);
    let cached = |prices: Option<Prices>| prices.and_then(|prices| prices.cached_input);
    let output = |prices: Option<Prices>| prices.map(|prices| prices.output);
    let all = [
        ("prices.input", input(base), input(head)),
        ("prices.cached_input", cached(base), cached(head)),
        ("prices.output", output(base), output(head)),
    ];
    let is_lower = |before: Option<f64>, now: Option<f64>| match (before, now) {
        (Some(before), Some(now)) => now < before,
        (Some(_), None) | (None, Some(_)) => true,
        (None, None) => false,
    };
    let changes =
        all.map(|(what, before, now)| change(what, shown(before), shown(now), is_used && is_lower(before, now)));
    changes.into_iter().flatten().collect()
}

fn abort(base: Abort, head: Abort) -> Vec<SpecChange> {
    let changes = [
        change("abort.connection_failures", text(base.connection_failures), text(head.connection_failures), false),
        change("abort.lost", text(base.lost), text(head.lost), false),
    ];
    changes.into_iter().flatten().collect()
}

fn journal(base: JournalSpec, head: JournalSpec) -> Vec<SpecChange> {
    let changes = [
        change("journal.tokens", text(base.tokens), text(head.tokens), false),
        change("journal.keep_text", text(base.keep_text), text(head.keep_text), false),
    ];
    changes.into_iter().flatten().collect()
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

pub(super) fn text(value: impl Display) -> Option<String> {
    Some(value.to_string())
}

/// The word of the spec for one of several choices.
pub(super) fn word(choice: &impl Serialize) -> Option<String> {
    serde_json::to_value(choice).ok()?.as_str().map(str::to_owned)
}

/// A change of something whose texts do not tell all of it, and may be the same.
pub(super) fn differ(
    what: &str,
    differs: bool,
    base: Option<String>,
    head: Option<String>,
    loosens: bool,
) -> Option<SpecChange> {
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
