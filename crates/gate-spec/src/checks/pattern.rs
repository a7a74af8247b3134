//! Metrics that only one shape of load has a value of, and those that need something asked beside the requests.

use gate_model::{Drifting, Iterations, Load, Metric, Nanos, Pattern, Scalar, ServerMetric};

use super::{Declared, Traffic, report, warn};
use crate::check::near_server;
use crate::context::Context;
use crate::load::expected;
use crate::raw::RawSpec;

/// The shortest ramp that a knee is found in.
const SHORTEST_RAMP: Nanos = Nanos::from_secs(120);
/// The fewest requests of a ramp that a knee is found in.
const FEWEST_ON_RAMP: f64 = 300.0;
/// The fewest requests before a spike that say how TTFT was.
const FEWEST_BEFORE: f64 = 60.0;
/// The shortest time at one rate that growth is seen in.
const SHORTEST_SOAK: Nanos = Nanos::from_secs(600);

/// A metric that this shape of load has no value of.
pub(super) fn refuse_outside(context: &mut Context, check: &Declared, traffic: &Traffic) {
    let (metric, load) = (check.parsed.metric, traffic.load);
    match (metric, &load.pattern) {
        (Metric::Scalar(Scalar::KneeRate), Pattern::Ramp { over, .. }) => {
            let due = expected(load).unwrap_or(0.0) * traffic.share;
            let by = traffic.sizing(context);
            if *over < SHORTEST_RAMP {
                let message = format!("`{metric}` needs a ramp of 120s or more, and `{by}` is over in {over}");
                warn(context, check, message, "make `over` longer, such as `over: 15m`");
            } else if due < FEWEST_ON_RAMP {
                let message = format!("`{metric}` needs 300 requests or more, and `{by}` comes to about {due:.0}");
                warn(context, check, message, "raise `to`, or make `over` longer");
            }
            warn_beyond(context, check, load);
        }
        (Metric::Scalar(Scalar::KneeRate), _) => {
            let message = format!("`{metric}` is the knee of a ramp, and this load is {}", shown(load));
            report(context, check, message, "add `pattern: {ramp: {to: …}}` to `load`, or remove this check");
        }
        (Metric::Scalar(Scalar::Recovery), Pattern::Spike { before, .. }) => {
            let rate = load.pace.rate().map_or(0.0, |rate| rate.0);
            let due = rate * before.as_secs_f64() * traffic.share;
            if due < FEWEST_BEFORE {
                let message =
                    format!("`{metric}` needs 60 requests or more before the spike, and there are about {due:.0}");
                warn(context, check, message, "raise `rps`, or make the spike's `before` longer");
            }
            warn_beyond(context, check, load);
        }
        (Metric::Spike(_), Pattern::Spike { .. }) => {}
        (Metric::Spike(_) | Metric::Scalar(Scalar::Recovery), _) => {
            let message = format!("`{metric}` is about a spike, and this load is {}", shown(load));
            report(context, check, message, "add `pattern: spike` to `load`, or remove this check");
        }
        (Metric::Drift(_), Pattern::Soak | Pattern::Steady) => match load.iterations {
            Iterations::For(time) if time >= SHORTEST_SOAK => {}
            Iterations::For(time) => {
                let by = traffic.sizing(context);
                let message = format!("`{metric}` needs 10 minutes or more at one rate, and `{by}` is over in {time}");
                let hint = match load.pattern {
                    Pattern::Soak => "make the soak longer, such as `pattern: {soak: 2h}`, or remove this check",
                    _ => "write `pattern: soak` in `load`, or a longer time",
                };
                report(context, check, message, hint);
            }
            Iterations::Fixed(_) | Iterations::Range { .. } => {
                let message =
                    format!("`{metric}` is growth over a long time, and this load is counted by `iterations`");
                report(context, check, message, "write `pattern: soak` in `load`, or remove this check");
            }
        },
        (Metric::Drift(_), _) => {
            let message = format!("`{metric}` is growth at one rate, and this load is {}", shown(load));
            report(context, check, message, "write `pattern: soak` in `load`, or remove this check");
        }
        _ => {}
    }
}

/// A bound that this pattern does not reach, so that the check is never decided.
fn warn_beyond(context: &mut Context, check: &Declared, load: &Load) {
    let (metric, Some(bound)) = (check.parsed.metric, check.parsed.bound.absolute()) else { return };
    let (message, hint) = match load.pattern {
        Pattern::Ramp { to, .. } if bound.value > to.0 => (
            format!(
                "`{metric}` is looked for up to {}/s, where this ramp ends, so `{}` is never proven",
                to.0, check.raw.check
            ),
            "raise `to` to about 1.5 times the bound, or lower the bound",
        ),
        Pattern::Spike { after, .. } if bound.value > after.0 as f64 => (
            format!("the load goes on for {after} after the spike, so `{}` is never violated", check.raw.check),
            "make the spike's `after` longer than the bound, or lower the bound",
        ),
        _ => return,
    };
    warn(context, check, message, hint);
}

/// The load as messages name it.
fn shown(load: &Load) -> String {
    match load.pattern {
        Pattern::Ramp { .. } | Pattern::Spike { .. } | Pattern::Soak | Pattern::Trace(_) => {
            format!("a {}", load.pattern.name())
        }
        Pattern::Steady => "steady".to_owned(),
        Pattern::Stages(_) => "of stages".to_owned(),
    }
}

/// A metric of what nobody asks: the server's own metrics, and prices.
pub(super) fn refuse_unasked(context: &mut Context, check: &Declared, raw: &RawSpec) {
    let metric = check.parsed.metric;
    match metric {
        Metric::Server(..) | Metric::Drift(Drifting::Server(_))
            if raw.target.metrics.is_none() && context.is_sound("target.metrics") =>
        {
            let message = format!("`{metric}` is one of the server's own metrics, and `target.metrics` is not given");
            report(context, check, message, "add it, such as `metrics: /metrics`, to `target`");
        }
        Metric::Scalar(Scalar::Cost) if raw.prices.is_none() && context.is_sound("prices") => {
            let message = format!("`{metric}` is in dollars, and there are no `prices`");
            report(context, check, message, "add them, such as `prices: {input: $2.50, output: $10}`");
        }
        _ => {}
    }
}

/// A name of the server's own that is nearly a common one is taken as it is, and most likely is a slip.
pub(super) fn warn_misspelt(context: &mut Context, check: &Declared) {
    let (Metric::Server(name, _) | Metric::Drift(Drifting::Server(name))) = check.parsed.metric else { return };
    let Some(near) = near_server(name.as_str()) else { return };
    let metric = check.parsed.metric;
    let meant = metric.to_string().replacen(name.as_str(), near, 1);
    let unit = ServerMetric::new(near).map(ServerMetric::unit);
    let bound = match (metric, unit) {
        (Metric::Server(..), Some(unit)) if unit != name.unit() => {
            format!(" {} {}", check.parsed.op.symbol(), unit.example())
        }
        _ => String::new(),
    };
    let message = format!("`{name}` is read as the server's own spelling, and the common name is `{near}`");
    let hint = format!("did you mean `{meant}{bound}`? if the server does call it `{name}`, leave it");
    warn(context, check, message, &hint);
}
