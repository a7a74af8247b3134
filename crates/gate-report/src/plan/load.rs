//! How much is sent and when, in words.

use gate_model::{Arrivals, Clock, Connections, Http, Iterations, Load, Pace, Pattern, PerSecond, Stage};

use super::section::Section;
use crate::layout::{counted, listed};
use crate::words::{grouped, number, rate, span};

/// The load of a section: `open loop, 2/s, Poisson arrivals, seed 0`.
pub(super) fn load(section: &Section<'_>) -> String {
    let load = section.spec.load_of(section.first());
    let pace = match load.pace {
        Pace::Open { rate, cap } => {
            let cap = cap.map(|cap| format!(", at most {} at once, and waiting for a slot counts", grouped(cap)));
            let counted = if has_shape(load) { format!(": {}", section.count()) } else { String::new() };
            format!("open loop, {}, {}{}{counted}", course(load, rate), arrivals(load), cap.unwrap_or_default())
        }
        Pace::Closed { concurrency } => {
            let requests = section.plan.requests.len();
            let all = (concurrency as usize > requests)
                .then(|| format!(" (at most {requests} are ever open: all of them from the start)"));
            format!("closed loop, {} at once{}", grouped(concurrency), all.unwrap_or_default())
        }
    };
    format!("{pace}, seed {}", section.plan.seed)
}

fn arrivals(load: &Load) -> String {
    if matches!(load.pattern, Pattern::Trace(_)) {
        return "as they are there".to_owned();
    }
    match load.arrivals {
        Arrivals::Poisson => "Poisson arrivals".to_owned(),
        Arrivals::Constant => "constant arrivals".to_owned(),
        Arrivals::Gamma(shape) => {
            let than = match shape {
                shape if shape < 1.0 => ", in bursts",
                shape if shape > 1.0 => ", more even than Poisson's",
                _ => "",
            };
            format!("gamma arrivals of shape {}{than}", number(shape))
        }
    }
}

/// Whether the schedule alone says how many requests there are.
fn has_shape(load: &Load) -> bool {
    load.pattern != Pattern::Steady || matches!(load.iterations, Iterations::For(_))
}

/// How the rate goes.
fn course(load: &Load, base: PerSecond) -> String {
    match (&load.pattern, load.iterations) {
        (Pattern::Steady, Iterations::For(time)) => format!("{}/s for {}", number(base.0), span(time)),
        (Pattern::Steady, _) => format!("{}/s", number(base.0)),
        (Pattern::Soak, Iterations::For(time)) => format!("a soak of {} at {}", span(time), rate(base)),
        (Pattern::Soak, _) => format!("a soak at {}", rate(base)),
        (Pattern::Spike { .. }, _) => format!("{}, {} otherwise", shape(&load.pattern), rate(base)),
        (pattern, _) => shape(pattern),
    }
}

/// The shape of a pattern: `a ramp from 0 to 12/s over 15 min`.
pub(crate) fn shape(pattern: &Pattern) -> String {
    match pattern {
        Pattern::Steady | Pattern::Soak => pattern.name().to_owned(),
        Pattern::Ramp { from, to, over } => {
            format!("a ramp from {} to {} over {}", number(from.0), rate(*to), span(*over))
        }
        Pattern::Spike { times, hold, before, after } => format!(
            "a spike of {} times the base rate for {}, {} before it and {} after it",
            number(*times),
            span(*hold),
            span(*before),
            span(*after)
        ),
        Pattern::Stages(stages) => {
            let stages: Vec<String> = stages.iter().map(stage).collect();
            format!("stages: {}", listed(&stages, "then"))
        }
        Pattern::Trace(file) => format!("the times and lengths of {file}"),
    }
}

/// `4/s for 1 min`, or `from 1 to 4/s in 1 min`.
fn stage(stage: &Stage) -> String {
    let Stage { from, to, lasts } = stage;
    if from == to {
        format!("{} for {}", rate(*to), span(*lasts))
    } else {
        format!("from {} to {} in {}", number(from.0), rate(*to), span(*lasts))
    }
}

/// What sends and reads.
pub(super) fn client(load: &Load) -> String {
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

/// How many requests there are, and where they are judged.
pub(super) fn requests(section: &Section<'_>) -> String {
    let load = section.spec.load_of(section.first());
    let warmup = counted(section.plan.warmup.len(), "warm-up request");
    let pairs = if section.spec.reference.is_some() {
        "; each is a pair with one prompt, a request to each arm, in random order"
    } else {
        ""
    };
    let of_rarest = if section.plan.by_scenario.is_empty() { "" } else { " of the rarest scenario" };
    let judged = match load.iterations {
        _ if has_shape(load) => format!("{}, judged once at the end", section.count()),
        Iterations::For(_) => format!("{}, judged once at the end", section.count()),
        Iterations::Fixed(count) => format!("{}{of_rarest} measured, judged once", grouped(count)),
        Iterations::Range { first, last, extend } => {
            let further = extend.filter(|extend| *extend > last).map(|extend| {
                format!(
                    "; goes on to {} only where a required check is seen over its limit and not proven",
                    grouped(extend)
                )
            });
            let (first, last) = (grouped(first), grouped(last));
            format!(
                "{first} to {last}{of_rarest} measured, judged at {first} and {last}{}",
                further.unwrap_or_default()
            )
        }
    };
    let together = together(section).map(|together| format!("; {together}")).unwrap_or_default();
    let turns = if section.has_turns() && !has_shape(load) { format!(" ({})", section.count()) } else { String::new() };
    format!("{warmup}, then {judged}{turns}{pairs}{together}")
}

/// Where scenarios run together: what all of them come to at each look.
fn together(section: &Section<'_>) -> Option<String> {
    if section.plan.by_scenario.is_empty() {
        return None;
    }
    let looks: Vec<String> = section.plan.looks.iter().map(|look| grouped(*look)).collect();
    Some(format!("with all scenarios {} requests", listed(&looks, "or")))
}
