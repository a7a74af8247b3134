//! The plan as text and JSON: what will be sent, and what each check can find. Nothing has been sent.

use gate_model::{Arrivals, Check, Endpoint, Finding, GateSpec, Iterations, Plan, Power, Quantity, Rule};
use serde_json::{Value, json};

use crate::facts::{listing, long_time, overrides};
use crate::layout::{counted, listed, wrap};
use crate::style::{Style, Tone};
use crate::words::{SIMULATED, beyond_word, check_label, figure, finding_sentence, grouped, number};
use crate::{ReportError, escape};

/// What `gate plan` shows.
#[derive(Clone, Copy, Debug)]
pub struct PlanView<'a> {
    /// The resolved spec.
    pub spec: &'a GateSpec,
    /// Its plan.
    pub plan: &'a Plan,
    /// The rule of each check with what it can find, in the order of [`GateSpec::checks`].
    pub checks: &'a [(Rule, Option<Power>)],
    /// What a reader should know before the run.
    pub warnings: &'a [Finding],
}

/// Tokens a plan asks for at most.
struct Tokens {
    input: u64,
    output: u64,
}

/// The plan for people, at most 80 columns wide.
#[must_use]
pub fn plan_text(view: &PlanView<'_>, style: Style) -> String {
    let name = escape::terminal(&view.spec.name);
    let heading = format!("{}\n\n", style.paint(Tone::Doubtful, SIMULATED));
    let heading = if view.spec.is_simulated() { heading.as_str() } else { "" };
    let mut text = format!("{heading}gate {name}: plan; nothing is sent\n\n");
    let facts = [
        ("spec", view.spec.file.clone()),
        ("target", target(view.spec)),
        ("load", load(view)),
        ("requests", requests(view)),
        ("time", time(view.plan)),
        ("tokens", tokens_text(view.plan)),
        ("set by flags", overrides(&view.spec.overrides)),
    ];
    text.push_str(&listing(facts));
    text.push('\n');
    for (check, (rule, power)) in view.spec.checks.iter().zip(view.checks) {
        let label = wrap("", 2, &escape::terminal(&check_label(check)));
        text.push_str(&format!("{}\n", style.paint(Tone::Strong, label.trim_end())));
        for sentence in can_find(check, *rule, power.as_ref()) {
            text.push_str(&wrap("  ", 2, &sentence));
        }
    }
    if !view.warnings.is_empty() {
        text.push_str("\nWorth knowing:\n");
        let warnings = view.warnings.iter().map(finding_sentence);
        text.extend(warnings.map(|warning| wrap("  - ", 4, &escape::terminal(&warning))));
    }
    text
}

/// The plan for programs, with a newline at its end: the whole plan, the checks with what each can find, and the
/// warnings, each as data and in words.
///
/// # Errors
/// [`ReportError::Json`], which no plan of `gate` brings about.
pub fn plan_json(view: &PlanView<'_>) -> Result<String, ReportError> {
    let checks =
        view.spec.checks.iter().zip(view.checks).map(
            |(check, (rule, power))| json!({"text": check.to_string(), "check": check, "rule": rule, "power": power}),
        );
    let warnings = view.warnings.iter().map(|warning| json!({"text": finding_sentence(warning), "finding": warning}));
    let Tokens { input, output } = tokens(view.plan);
    let value = json!({
        "name": view.spec.name,
        "spec_file": view.spec.file,
        "target": endpoint(view.spec),
        "model": view.spec.target.model,
        "api": view.spec.target.api.name(),
        "simulated": view.spec.is_simulated(),
        "last_arrival_s": view.plan.duration().as_secs_f64(),
        "input_tokens": input,
        "output_tokens_at_most": output,
        "checks": checks.collect::<Vec<Value>>(),
        "warnings": warnings.collect::<Vec<Value>>(),
        "overrides": view.spec.overrides,
        "plan": view.plan,
    });
    Ok(serde_json::to_string_pretty(&value)? + "\n")
}

fn target(spec: &GateSpec) -> String {
    let model = spec.target.model.as_ref().map(|model| format!(", model {model}")).unwrap_or_default();
    format!("{}{model}, {}", endpoint(spec), spec.target.api.name())
}

fn endpoint(spec: &GateSpec) -> &str {
    match &spec.target.endpoint {
        Endpoint::Url(url) => url,
        Endpoint::Sim(_) => "sim",
    }
}

fn load(view: &PlanView<'_>) -> String {
    let arrivals = match view.spec.load.arrivals {
        Arrivals::Poisson => "Poisson arrivals",
        Arrivals::Constant => "constant arrivals",
    };
    format!("open loop, {}/s, {arrivals}, seed {}", number(view.spec.load.rate.0), view.plan.seed)
}

fn requests(view: &PlanView<'_>) -> String {
    let warmup = counted(view.plan.warmup.len(), "warm-up request");
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
    format!("{warmup}, then {judged}")
}

/// When each look's last request is due.
fn time(plan: &Plan) -> String {
    let due = plan.looks.iter().filter_map(|look| {
        let last = plan.requests.get((*look as usize).checked_sub(1)?)?;
        Some(format!("{} for {}", long_time(last.at), counted(*look as usize, "request")))
    });
    let due = due.collect::<Vec<_>>();
    if due.is_empty() { String::new() } else { format!("{}, after warm-up", listed(&due, "or")) }
}

fn tokens(plan: &Plan) -> Tokens {
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

/// What the check can find at this size, in sentences.
fn can_find(check: &Check, rule: Rule, power: Option<&Power>) -> Vec<String> {
    let Some(power) = power else {
        return vec![match rule {
            Rule::Counted => "compared as it is, when the run has ended".to_owned(),
            Rule::Point => "a number the run has once, compared as it is".to_owned(),
            Rule::Extreme => "one request beyond the limit violates it".to_owned(),
            Rule::Quantile | Rule::Rate => "what it can find is not known".to_owned(),
        }];
    };
    let beyond = beyond_word(check);
    let violating = power
        .violates_at
        .iter()
        .filter_map(|(n, count)| count.map(|count| format!("{} of {}", grouped(count), grouped(*n))));
    let violating = violating.collect::<Vec<_>>();
    let violated = if violating.is_empty() {
        "cannot be violated at this size".to_owned()
    } else {
        format!("violated when {} are {beyond}", listed(&violating, "or"))
    };
    let last = power.violates_at.last().map_or(0, |(n, _)| *n);
    let proven = match power.proves_at_most {
        Some(0) => format!("proven when none of {} is", grouped(last)),
        Some(count) => format!("proven when at most {} of {} are", grouped(count), grouped(last)),
        None => format!("{} requests are too few to prove it", grouped(last)),
    };
    let percent = |share: f64| figure(Quantity::share(share));
    let found = if power.detects_share < 1.0 {
        let (found, allowed) = (percent(power.detects_share), percent(power.allowed_share));
        format!("found with 80 % power: {found} {beyond}, where {allowed} are allowed")
    } else {
        "nothing is found with 80 % power at this size".to_owned()
    };
    vec![format!("{violated}; {proven}"), found]
}
