//! The load: how requests are sent, and in which shape over time.

use gate_model::{Arrivals, Clock, Endpoint, Http, Iterations, Load, Nanos, Pace, Pattern, PerSecond, Stage, UnixUrl};

use crate::context::Context;
use crate::leaf::arrivals;
use crate::problem::Problem;
use crate::raw::{RawLoad, RawPattern, RawStage};
use crate::scope::Scope;

/// How long a trace may be.
const LONGEST_TRACE: Nanos = Nanos::from_secs(86_400);
/// The most requests of each arm that a time of the schedule may come to.
const MOST_REQUESTS: f64 = 5_000_000.0;

/// The load of a scope.
pub(crate) fn load(context: &mut Context, scope: &Scope, raw: &RawLoad) -> Load {
    let shape = shape(context, scope, raw);
    let (pattern, iterations) = match shape {
        Some(shape) => {
            refuse_counts(context, scope, &shape, raw.iterations.first);
            let iterations = match (shape.lasts, raw.iterations.first, scope.is_written(context, "load.iterations")) {
                (None, None, true) => Iterations::Fixed(raw.iterations.last),
                (lasts, ..) => Iterations::For(lasts.unwrap_or(LONGEST_TRACE)),
            };
            (shape.pattern, iterations)
        }
        None => (Pattern::Steady, counted(context, scope, raw)),
    };
    let load = Load {
        pace: pace(context, scope, raw, &pattern, iterations),
        pattern,
        iterations,
        warmup: raw.warmup,
        arrivals: arrivals(&raw.arrivals).unwrap_or(Arrivals::Poisson),
        connections: raw.connections,
        http: match raw.http.as_str() {
            "1" => Http::One,
            "2" => Http::Two,
            _ => Http::Auto,
        },
        clock: raw.clock,
        workers: raw.workers,
        seed: raw.seed,
    };
    refuse_too_many(context, scope, &load);
    load
}

/// How many requests are due in the time of a schedule, on average; `None` where the load has no such time.
pub(crate) fn expected(load: &Load) -> Option<f64> {
    let due = |stage: &Stage| (stage.from.0 + stage.to.0) / 2.0 * stage.lasts.as_secs_f64();
    Some(load.stages()?.iter().map(due).sum())
}

/// A load that goes on for a time, or by a file.
struct Shape {
    /// The key it was written at.
    key: &'static str,
    pattern: Pattern,
    /// `None`: as long as the file.
    lasts: Option<Nanos>,
}

/// The shape that is written, if any; of several the first.
fn shape(context: &mut Context, scope: &Scope, raw: &RawLoad) -> Option<Shape> {
    let patterned = raw.pattern.and_then(|raw| pattern(context, scope, raw)).map(|(pattern, lasts)| Shape {
        key: "load.pattern",
        pattern,
        lasts: Some(lasts),
    });
    let staged = raw.stages.as_ref().map(|raw| {
        let stage =
            |raw: &RawStage| Stage { from: PerSecond(raw.rps.from), to: PerSecond(raw.rps.to), lasts: raw.lasts };
        let stages: Vec<_> = raw.iter().map(stage).collect();
        let lasts = stages.iter().fold(Nanos::ZERO, |sum, stage| sum + stage.lasts);
        Shape { key: "load.stages", pattern: Pattern::Stages(stages), lasts: Some(lasts) }
    });
    let traced =
        raw.trace.as_ref().map(|file| Shape { key: "load.trace", pattern: Pattern::Trace(file.clone()), lasts: None });
    let timed = raw.duration.map(|time| Shape { key: "load.duration", pattern: Pattern::Steady, lasts: Some(time) });
    let mut written = [patterned, staged, traced, timed].into_iter().flatten();
    let first = written.next()?;
    for other in written {
        let [one, path] = [first.key, other.key].map(|key| scope.path(context, key));
        let problem = Problem::error(context.key(&path), format!("`{path}` and `{one}` both say how the load goes on"));
        context.problems.push(problem.hint("keep one of the two"));
    }
    if let Pattern::Stages(stages) = &first.pattern
        && stages.iter().all(|stage| stage.from.0 == 0.0 && stage.to.0 == 0.0)
    {
        let path = scope.path(context, first.key);
        context.error(
            &path,
            format!("`{path}` sends nothing"),
            "give a stage a rate above 0, such as `{rps: 2, for: 1m}`",
        );
    }
    Some(first)
}

fn pattern(context: &mut Context, scope: &Scope, raw: RawPattern) -> Option<(Pattern, Nanos)> {
    if let Some(ramp) = raw.ramp {
        let to = ramp.to?;
        if ramp.from >= to {
            let path = scope.path(context, "load.pattern.ramp.to");
            let message = format!("`{path}` is {to}, and the ramp starts at {}: it has to grow", ramp.from);
            context.error(&path, message, "raise `to`, or lower `from`; `stages` takes any shape");
        }
        let pattern = Pattern::Ramp { from: PerSecond(ramp.from), to: PerSecond(to), over: ramp.over };
        return Some((pattern, ramp.over));
    }
    if let Some(spike) = raw.spike {
        if spike.times <= 1.0 {
            let path = scope.path(context, "load.pattern.spike.times");
            context.error(&path, format!("`{path}` is {}, which is no spike", spike.times), "such as `times: 5`");
        }
        let lasts = spike.before + spike.hold + spike.after;
        let pattern = Pattern::Spike { times: spike.times, hold: spike.hold, before: spike.before, after: spike.after };
        return Some((pattern, lasts));
    }
    let steady = raw.steady.map(|time| (Pattern::Steady, time));
    steady.or_else(|| raw.soak.map(|time| (Pattern::Soak, time)))
}

/// What counts requests has no meaning where a time says how long the load goes on.
fn refuse_counts(context: &mut Context, scope: &Scope, shape: &Shape, first: Option<u32>) {
    let by = scope.path(context, shape.key);
    let iterations = scope.path(context, "load.iterations");
    if context.is_written(&iterations) && context.is_sound(&iterations) {
        let key = context.key(&iterations);
        match (shape.lasts, first) {
            (None, None) => {}
            (None, Some(_)) => {
                let message = format!("`{iterations}` is a range, and of a trace it is a number of rows");
                let hint = "write one number, such as `iterations: 300`: this load is judged once, at its end";
                context.problems.push(Problem::error(key, message).hint(hint));
            }
            (Some(_), _) => {
                let message = format!("`{by}` says how long the load goes on, and so does `{iterations}`");
                let hint = "keep one of the two: what is due within a time is all measured";
                context.problems.push(Problem::error(key, message).hint(hint));
            }
        }
    }
    let extend = scope.path(context, "load.extend");
    if context.is_written(&extend) && context.is_sound(&extend) {
        let problem = Problem::error(
            context.key(&extend),
            format!("`{extend}` is of a range of iterations, and `{by}` says how long the load goes on"),
        );
        context.problems.push(problem.hint("remove it: this load is judged once, at its end"));
    }
}

/// A number of requests, or a range that may go on.
fn counted(context: &mut Context, scope: &Scope, raw: &RawLoad) -> Iterations {
    let last = raw.iterations.last;
    let path = scope.path(context, "load.extend");
    let counted = scope.path(context, "load.iterations");
    let is_sound = context.is_sound(&counted);
    let extend = raw.extend.as_ref().filter(|_| context.is_sound(&path));
    match raw.iterations.first {
        None => {
            if extend.is_some_and(|extend| extend.value.is_some()) && is_sound {
                let message = format!("`{path}` needs a range: a fixed number of iterations is never extended");
                let hint = format!("write `iterations: {last}..{last}` to allow it, or remove `extend`");
                context.error(&path, message, &hint);
            }
            Iterations::Fixed(last)
        }
        Some(first) => {
            let extend = extend.map_or(Some(2 * last), |extend| extend.value);
            if let Some(extend) = extend.filter(|extend| *extend <= last)
                && is_sound
            {
                let message = format!("`{path}` is {extend}, and `{counted}` already goes to {last}");
                let hint = format!("write a number above {last}, such as `extend: {}`, or `extend: none`", 2 * last);
                context.error(&path, message, &hint);
            }
            Iterations::Range { first, last, extend }
        }
    }
}

/// A rate is an open loop, a concurrency alone a closed one, and both an open loop with a cap. A shape with rates of its
/// own is an open loop.
fn pace(context: &mut Context, scope: &Scope, raw: &RawLoad, pattern: &Pattern, iterations: Iterations) -> Pace {
    let rate = match pattern {
        Pattern::Ramp { to, .. } => Some(*to),
        Pattern::Stages(stages) => {
            let highest = stages.iter().flat_map(|stage| [stage.from.0, stage.to.0]).fold(0.0, f64::max);
            Some(PerSecond(highest))
        }
        // Only the file knows its mean.
        Pattern::Trace(_) => Some(PerSecond(raw.rps)),
        Pattern::Steady | Pattern::Spike { .. } | Pattern::Soak => None,
    };
    if let Some(rate) = rate {
        refuse_own_rate(context, scope, pattern);
        return Pace::Open { rate, cap: raw.concurrency };
    }
    let is_open = scope.is_written(context, "load.rps") || !scope.is_sound(context, "load.rps");
    let Some(concurrency) = raw.concurrency.filter(|_| !is_open) else {
        return Pace::Open { rate: PerSecond(raw.rps), cap: raw.concurrency };
    };
    let path = scope.path(context, "load.concurrency");
    if scope.is_written(context, "load.arrivals") {
        let message =
            format!("`{path}` alone is a closed loop, which has no `arrivals`: the end of a request sends the next");
        let problem = Problem::error(context.key(&scope.path(context, "load.arrivals")), message);
        context.problems.push(problem.hint("remove `arrivals`, or add `rps` for an open loop with a cap"));
    }
    if let Iterations::For(_) = iterations {
        let by = ["load.pattern", "load.duration"].map(|key| scope.path(context, key));
        let by = by.into_iter().find(|path| context.is_written(path)).unwrap_or_else(|| "load.pattern".to_owned());
        let message = format!("`{by}` is of an open loop, and `{path}` alone is a closed one");
        let problem = Problem::error(context.key(&by), message);
        context.problems.push(problem.hint("count requests by `iterations`, or add `rps` for an open loop with a cap"));
    }
    Pace::Closed { concurrency }
}

/// A rate, or a distribution of arrivals, beside what has its own; a scenario's shape comes over the gate's rate.
fn refuse_own_rate(context: &mut Context, scope: &Scope, pattern: &Pattern) {
    let shape = match pattern {
        Pattern::Ramp { .. } => "load.pattern",
        Pattern::Stages(_) => "load.stages",
        _ => "load.trace",
    };
    let by = scope.path(context, shape);
    let is_trace = matches!(pattern, Pattern::Trace(_));
    for (key, what) in [("load.rps", "rates"), ("load.arrivals", "times")] {
        let path = scope.path(context, key);
        let is_over = by == scope.own(shape) && path != scope.own(key);
        if (key == "load.arrivals" && !is_trace) || !context.is_written(&path) || is_over {
            continue;
        }
        let message = format!("`{path}` has no meaning here: `{by}` has its own {what}");
        context.problems.push(Problem::error(context.key(&path), message).hint("remove it"));
    }
}

/// A rate over a time may come to more than anything can hold.
fn refuse_too_many(context: &mut Context, scope: &Scope, load: &Load) {
    let Some(expected) = expected(load).filter(|expected| *expected > MOST_REQUESTS) else { return };
    let keys = ["load.pattern", "load.stages", "load.duration"].map(|key| scope.path(context, key));
    let Some(path) = keys.into_iter().find(|path| context.is_written(path)) else { return };
    let millions = (expected / 1e6).round();
    let message = format!("`{path}` comes to about {millions} million requests, more than {}", MOST_REQUESTS / 1e6);
    let problem = Problem::error(context.key(&path), format!("{message} million"));
    context.problems.push(problem.hint("lower the rate, or shorten the time"));
}

/// What this endpoint can't do.
pub(crate) fn refuse_unspoken(context: &mut Context, scope: &Scope, load: &Load, endpoint: &Endpoint) {
    let is_unix = matches!(endpoint, Endpoint::Url(url) if UnixUrl::parse(url).is_some());
    if load.clock == Clock::Kernel && is_unix {
        let path = scope.path(context, "load.clock");
        let message = format!("`{path}` is `kernel`, and the kernel stamps nothing that comes over a Unix socket");
        context.error(&path, message, "remove it, or write `clock: user`");
    }
    if load.http == Http::Two && matches!(endpoint, Endpoint::Sim(_)) {
        let path = scope.path(context, "load.http");
        context.error(&path, format!("`{path}` is 2, and the simulated engine speaks HTTP/1.1"), "remove it");
    }
}
